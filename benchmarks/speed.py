"""One pass over the same data, side by side with scikit-learn's SGD, as ratios within one run.

    python benchmarks/speed.py

Each contender runs several times, taking turns, and its fastest run counts: on a shared machine the fastest run is
the one least disturbed.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import scipy.sparse as sp
from record import Results, parser
from sklearn.linear_model import SGDClassifier

from steelyard import Learner, Mixture, OnlineClassifier

PEER = "scikit-learn SGDClassifier"


def sparse_data(rows, features=131_072, nonzeros=75):
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, features - nonzeros, (rows, nonzeros)).astype(np.int32), axis=1)
    indices += np.arange(nonzeros, dtype=np.int32)  # none twice in a row
    indptr = np.arange(0, rows * nonzeros + 1, nonzeros).astype(np.int32)
    values = rng.normal(size=rows * nonzeros) / np.sqrt(nonzeros)
    X = sp.csr_matrix((values, indices.ravel(), indptr), shape=(rows, features))
    return X, np.sign(X @ rng.normal(size=features) + 0.1 * rng.normal(size=rows))


def dense_data(rows, features=50):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    return X, np.sign(X @ rng.normal(size=features) + rng.normal(size=rows))


def contenders(X, y):
    def learner(**options):
        return lambda: Learner("logistic", **options).learn(X, y)

    def scikit_learn():
        SGDClassifier(loss="log_loss", max_iter=1, tol=None, shuffle=False).fit(X, y)

    return {
        PEER: scikit_learn,
        "linearized": learner(update="linearized", metric="scalar"),
        "iwa": learner(metric="scalar"),
        "iwa, constant rate": learner(metric="scalar", schedule="constant", eta0=0.5),
        "proximal": learner(update="proximal", metric="scalar"),
        "iwa, center origin, no certificate": learner(metric="scalar", center="origin", certificate=False),
        "iwa, center origin, certificate": learner(metric="scalar", center="origin", certificate=True),
        "iwa, certificate": learner(metric="scalar", certificate=True),
        "iwa, diagonal metric": learner(),
        "iwa, diagonal AdaGrad": learner(schedule="adagrad-norm"),
        "Mixture, no learning rate": lambda: Mixture("logistic").learn(X, y),
        "OnlineClassifier(metric='scalar', eta0=1.0).fit": lambda: OnlineClassifier(
            metric="scalar", eta0=1.0, shuffle=False
        ).fit(X, y),
    }


def large_table(X, y):
    """The default learner where its table, of 16 MB, outgrows the cache."""

    def scikit_learn():
        SGDClassifier(loss="log_loss", max_iter=1, tol=None, shuffle=False, learning_rate="constant", eta0=0.1).fit(
            X, y
        )

    return {
        PEER: scikit_learn,
        "iwa": lambda: Learner("logistic", metric="scalar").learn(X, y),
        "iwa, diagonal metric": lambda: Learner("logistic").learn(X, y),
    }


def one_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1, 20)), np.array([1.0])
    ours, theirs = OnlineClassifier(), SGDClassifier(loss="log_loss")
    return {
        PEER: lambda: theirs.partial_fit(X, y, classes=[-1.0, 1.0]),
        "OnlineClassifier": lambda: ours.partial_fit(X, y, classes=[-1.0, 1.0]),
    }


def fastest(runs, repeats, inner=1):
    for run in runs.values():
        run()
    times = dict.fromkeys(runs, np.inf)
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(inner):
                run()
            times[name] = min(times[name], (time.perf_counter() - start) / inner)
    return times


def main():
    options = parser(__doc__).parse_args()
    scale, many, few = (100, 1, 1) if options.quick else (1, 15, 7)
    warnings.simplefilter("ignore")
    results = Results("speed", options)
    X, y = sparse_data(200_000 // scale)
    times = fastest(contenders(X, y), repeats=many)
    results.compare(f"CSR {X.shape[0]:,} × {X.shape[1]:,}, 75 non-zeros a row", times, PEER, nonzeros=X.nnz)
    X, y = sparse_data(1_000_000 // scale, features=1 << 20, nonzeros=20)
    times = fastest(large_table(X, y), repeats=few)
    results.compare(f"CSR {X.shape[0]:,} × {X.shape[1]:,}, 20 non-zeros a row", times, PEER, nonzeros=X.nnz)
    X, y = dense_data(500_000 // scale)
    times = fastest(contenders(X, y), repeats=many)
    results.compare(f"dense {X.shape[0]:,} × {X.shape[1]}", times, PEER, nonzeros=X.size)
    X, y = dense_data(100_000 // scale, features=200)
    names = (PEER, "iwa", "Mixture, no learning rate")
    times = fastest({name: contenders(X, y)[name] for name in names}, repeats=few)
    results.compare(f"dense {X.shape[0]:,} × {X.shape[1]}", times, PEER, nonzeros=X.size)
    results.compare("partial_fit of one row, 20 columns", fastest(one_row(), repeats=few, inner=300 // scale), PEER)
    results.save()


if __name__ == "__main__":
    main()
