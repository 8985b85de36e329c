"""Penalties: objectives beside scikit-learn's, sparse models beside Vowpal Wabbit's, one pass over text, and the time.

    python benchmarks/penalties.py --data FOLDER [--only a b c d e]

a   many passes: the objective over that of scikit-learn at equal penalties, and which share of the zeros agrees
b   one pass: progressive loss beside `vw --ftrl` with l1 and l2, at as many coefficients that are not zero; each takes
    the best of the same number of rates
c   one pass over text: how many coefficients are not zero, and the accuracy on other rows beside that without l1
d   the time of a pass with penalties over that of one without, in one run
e   a row of weight 2 beside the row twice, in `partial_fit`, where the penalty's clock moves in between
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from record import Results, parser
from sets import dense
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.preprocessing import normalize
from speed import dense_data, sparse_data

from steelyard import Learner, OnlineClassifier, OnlineRegressor, read_libsvm
from steelyard import open as open_source
from steelyard.data.datasets import find

SPARSE = {"center": "origin", "schedule": "adagrad-norm"}
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Of Vowpal Wabbit and ours alike: neither has more tries than the other."""
TRIES = 12
PASSES, SHUFFLES = 500, 5


def read(name, folder, seed=0):
    X, y = read_libsvm(find(name, folder))
    order = np.random.default_rng(seed).permutation(len(y))
    return dense(X[order]), y[order]


def standardised(X):
    spread = X.std(axis=0)
    return (X[:, spread > 0.0] - X.mean(axis=0)[spread > 0.0]) / spread[spread > 0.0]


# -------------------------------------------------------------------------------- objectives


def objective(loss, X, y, model, l1, l2):
    coef, p = model.coef_.ravel(), X @ model.coef_.ravel() + np.ravel(model.intercept_)[0]
    fit = np.logaddexp(0.0, -y * p).mean() if loss == "logistic" else 0.5 * ((p - y) ** 2).mean()
    return fit + l1 * np.abs(coef).sum() + 0.5 * l2 * coef @ coef


def beside_sklearn(results, folder):
    names = {"breast cancer": None, "heart_scale": 1, "german.numer_scale": 1, "diabetes": None, "housing_scale": 0}
    rows = []
    for name, kind in names.items():
        if kind is None:
            X, y = (load_breast_cancer if name == "breast cancer" else load_diabetes)(return_X_y=True)
            kind = int(name == "breast cancer")
        else:
            X, y = read(name, folder)
        X = standardised(X)
        y = np.where(y == y.max(), 1.0, -1.0) if kind else (y - y.mean()) / y.std()
        for l1, l2 in ((0.01, 0.0), (0.0, 0.01), (0.005, 0.005)):
            total = l1 + l2
            if kind:
                options = {"solver": "saga", "tol": 1e-7, "max_iter": 20_000}
                theirs = LogisticRegression(C=1.0 / (total * len(y)), l1_ratio=l1 / total, **options).fit(X, y)
            else:
                theirs = ElasticNet(alpha=total, l1_ratio=l1 / total, tol=1e-9, max_iter=10**6).fit(X, y)
            make = OnlineClassifier if kind else OnlineRegressor
            ours = make(eta0=1.0, l1=l1, l2=l2, passes=PASSES, random_state=0, **SPARSE).fit(X, y)
            loss = "logistic" if kind else "squared"
            ratio = objective(loss, X, y, ours, l1, l2) / objective(loss, X, y, theirs, l1, l2)
            agree = ((ours.coef_.ravel() != 0.0) == (theirs.coef_.ravel() != 0.0)).mean()
            rows.append([name, f"{l1:g}", f"{l2:g}", f"{ratio:.4f}", f"{agree:.1%}" if l1 else ""])
    results.table(
        f"{PASSES} passes with eta0=1: the objective beside scikit-learn's",
        ["set", "l1", "l2", "objective / scikit-learn's", "zeros that agree"],
        rows,
    )


# -------------------------------------------------------------------------------- Wabbit


def lines(X, y):
    """The rows as Vowpal Wabbit reads them."""
    for row, label in zip(X, y, strict=True):
        at = row.indices if hasattr(row, "indices") else np.flatnonzero(row)
        values = row.data if hasattr(row, "indices") else row[at]
        yield f"{label:g} | " + " ".join(f"{j}:{v:.17g}" for j, v in zip(at, values, strict=True)) + "\n"


def wabbit(path, l1, alpha):
    """Its progressive loss and how many weights are not zero; its penalties are of the sum of the losses."""
    import vowpalwabbit

    options = f"--ftrl --ftrl_alpha {alpha} --l1 {l1} --l2 1 --loss_function logistic"
    run = vowpalwabbit.Workspace(f"-d {path} --quiet -b 18 --holdout_off {options}")
    average = run.get_sum_loss() / run.get_weighted_examples()
    held = np.array([run.get_weight(j) for j in range(1 << 18)])
    run.finish()
    return average, int((held != 0.0).sum())


def steelyard(X, y, l1, eta0):
    """Ours, at the same penalties: they are of the average here, and the intercept counts."""
    learner = Learner("logistic", eta0=eta0, l1=l1 / len(y), l2=1.0 / len(y), certificate=False, **SPARSE)
    return learner.learn(X, y).average_loss, int((learner.coef_ != 0.0).sum()) + 1


def best_of_rates(learn, count):
    """The lowest loss over RATES, each with the least l1 that leaves at most ``count`` weights, by bisection."""
    found = []
    for rate in RATES:
        low, high = 1e-3, 1e4
        for _ in range(TRIES):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if learn(middle, rate)[1] > count else (low, middle)
        found.append((*learn(high, rate), rate))
    return min(found)


def beside_wabbit(results, folder):
    rows, better = [], []
    for name in ("a9a", "ijcnn1", "mushrooms", "reuters", "svmguide1", "german.numer_scale"):
        X, y = read(name, folder)
        y = np.where(y == y.max(), 1.0, -1.0)
        seen = int(np.count_nonzero(np.abs(X).sum(axis=0)))
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "rows")
            path.write_text("".join(lines(X, y)))
            for count in dict.fromkeys(max(int(share * seen), 2) + 1 for share in (0.5, 0.2)):
                theirs = best_of_rates(lambda l1, rate, path=path: wabbit(path, l1, rate), count)
                ours = best_of_rates(lambda l1, rate, X=X, y=y: steelyard(X, y, l1, rate), count)
                shown = [
                    f"{each:{form}}"
                    for run in (theirs, ours)
                    for each, form in zip(run, (".4f", "d", "g"), strict=True)
                ]
                rows.append([name, f"{count} of {seen + 1}", *shown, f"{ours[0] / theirs[0]:.3f}"])
                better.append(ours[0] <= theirs[0])
    results.table(
        f"One pass: progressive loss beside that of `vw --ftrl`, with at most so many weights that are not zero; of "
        f"{len(RATES)} rates each takes the best, and l1 by {TRIES} bisections. Ours is no worse in {sum(better)} of "
        f"{len(better)} lines",
        ["set", "at most", "VW", "not zero", "rate", "ours", "not zero", "rate", "ours / VW"],
        rows,
    )


# -------------------------------------------------------------------------------- text


def texts(folder):
    """Rows to learn and rows to test; of rcv1_small, which has no test file, every third is held out."""
    for name in ("news20", "reuters", "rcv1_small"):
        if name == "rcv1_small":
            source = open_source(find("rcv1_small.vw", folder), format="vw")
            blocks = [(X, y) for X, y, _ in source]
            X, y = sp.vstack([each for each, _ in blocks]).tocsr(), np.concatenate([each for _, each in blocks])
            test = np.arange(len(y)) % 3 == 2
            X, y, T, z = X[~test], y[~test], X[test], y[test]
        else:
            X, y = read_libsvm(find(name, folder))
            T, z = read_libsvm(find(f"{name}.t", folder), n_features=X.shape[1])
        yield name, normalize(X), y, normalize(T), z


def one_text(X, y, T, z, eta0, l1, seed):
    """How many coefficients of a class are not zero, and the accuracy."""
    model = OnlineClassifier(eta0=eta0, l1=l1, random_state=seed, **SPARSE).fit(X, y)
    return (model.coef_ != 0.0).sum(axis=1).mean(), model.score(T, z)


def one_pass(results, folder):
    rows = []
    for name, X, y, T, z in texts(folder):
        seen = np.unique(X.indices).size
        for eta0 in (0.3, 1.0):
            found = [one_text(X, y, T, z, eta0, 0.0, seed) for seed in range(SHUFFLES)]
            plain = np.mean([score for _, score in found])
            for part in (0.02, 0.05, 0.07, 0.1, 0.2):
                found = [one_text(X, y, T, z, eta0, part / len(y), seed) for seed in range(SHUFFLES)]
                kept, score = np.mean(found, axis=0)
                cells = [f"{eta0:g}", f"{part:g} / n = {part / len(y):.1g}", f"{kept / seen:.1%}", f"{score:.2%}"]
                rows.append([name, f"{len(y):,}", *cells, f"{plain:.2%}", f"{100.0 * (plain - score):.1f}"])
    results.table(
        "One pass over text, rows of length one: how many coefficients of the words that occur are not zero, and the "
        f"accuracy on rows that were not learned; means of {SHUFFLES} shuffles",
        ["set", "rows n", "eta0", "l1", "not zero", "accuracy", "without l1", "points lost"],
        rows,
    )


# -------------------------------------------------------------------------------- time


def times(results, repeats, scale):
    cases = {"l1": {"l1": 1e-4}, "l2": {"l2": 1e-4}, "both": {"l1": 1e-4, "l2": 1e-4}, "average": {"average": True}}
    rows = []
    for kind, (X, y) in {"CSR": sparse_data(50_000 // scale), "dense": dense_data(200_000 // scale)}.items():
        for metric in ("diagonal", "scalar"):
            for center in ("origin", "trajectory"):
                options = {"metric": metric, "center": center, "certificate": False}
                best = dict.fromkeys(["", *cases], np.inf)
                for _ in range(repeats):
                    for name in best:
                        learner = Learner("logistic", **options, **cases.get(name, {}))
                        start = time.thread_time()
                        learner.learn(X, y)
                        best[name] = min(best[name], time.thread_time() - start)
                rows.append([kind, metric, center, *(f"{best[name] / best['']:.2f}" for name in cases)])
    results.table("Time of a pass with penalties, as a part of one without", ["rows", "metric", "center", *cases], rows)


# -------------------------------------------------------------------------------- weights


def weights(results, folder):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = standardised(X), np.where(y == 1, 1.0, -1.0)
    rows = []
    for center in ("origin", "trajectory"):
        for l1, l2 in ((0.0, 0.0), (0.01, 0.0), (0.0, 0.01)):
            options = {"center": center, "schedule": "constant", "eta0": 1.0, "l1": l1, "l2": l2}
            twice, heavy = Learner(**options), Learner(**options)
            twice.learn(np.repeat(X, 2, axis=0), np.repeat(y, 2))
            heavy.learn(X, y, np.full(len(y), 2.0))
            apart = np.linalg.norm(twice.coef_ - heavy.coef_) / np.linalg.norm(twice.coef_)
            rows.append([center, f"{l1:g}", f"{l2:g}", f"{apart:.1e}"])
    results.table(
        "A row of weight 2 beside the row twice", ["center", "l1", "l2", "relative distance of the models"], rows
    )


def main():
    options = parser(__doc__)
    options.add_argument("--data", help="folder with LIBSVM files; without one, d and e only")
    options.add_argument("--only", nargs="+", choices=list("abcde"), default=None)
    options.add_argument("--repeats", type=int, default=5, help="of the times (default 5)")
    options = options.parse_args()
    results = Results("penalties", options)
    repeats, scale = (1, 100) if options.quick else (options.repeats, 1)
    parts = {
        "a": lambda: beside_sklearn(results, options.data),
        "b": lambda: beside_wabbit(results, options.data),
        "c": lambda: one_pass(results, options.data),
        "d": lambda: times(results, repeats, scale),
        "e": lambda: weights(results, options.data),
    }
    for part in options.only or (parts if options.data else "de"):
        parts[part]()
    results.save(keep=options.only is not None)


if __name__ == "__main__":
    main()
