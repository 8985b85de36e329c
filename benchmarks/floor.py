"""How fast any learner with float64 weights can be: rows of every length, tables of every size, and the physical limit.

    python benchmarks/floor.py

The limit is twofold: a dot product and an addition for each row, with no loss and no schedule ("gather and scatter"),
and the time that it takes to read the 12 bytes of a non-zero out of memory once. The tables of weights have 32 KiB,
1 MiB and 64 MiB of float64: within the nearest cache, within the caches, beyond them. All learners are warm: they
learn the same rows again, as in a stream, and allocate nothing large.
"""

from __future__ import annotations

import numpy as np
from record import Results, parser
from sklearn.linear_model import SGDClassifier
from speed import PEER, fastest, sparse_data
from threadpoolctl import threadpool_limits

from steelyard import Learner, Mixture
from steelyard.data.block import as_block
from steelyard.kernels.compile import jit
from steelyard.kernels.rows import fetch, sparse_add, sparse_dot

LENGTHS = (5, 20, 75, 300)
TABLES = (1 << 12, 1 << 17, 1 << 23)
NONZEROS = 6_000_000
BYTES = 12  # of a non-zero: its value and its index
GATHER = "gather and scatter alone"


@jit
def rows(data, indices, indptr, table, ahead):
    """A dot product and an addition for each row, with or without fetching rows ahead."""
    for i in range(indptr.size - 1):
        lo, hi = indptr[i], indptr[i + 1]
        if ahead > 0 and i + ahead < indptr.size - 1:
            fetch(data, indices, indptr, i + ahead)
        p, norm2 = sparse_dot(data, indices, lo, hi, table, hi, hi)  # no weights are fetched ahead
        sparse_add(data, indices, lo, hi, table, 1e-9 * (p + norm2))


def contenders(X, y):
    block, table = as_block(X), np.zeros(X.shape[1] + 1)
    theirs = SGDClassifier(loss="log_loss", shuffle=False)
    scalar, diagonal, mixture = Learner("logistic", metric="scalar"), Learner("logistic"), Mixture("logistic")
    return {
        PEER: lambda: theirs.partial_fit(X, y, classes=[-1.0, 1.0]),
        "Learner, IWA, scalar metric": lambda: scalar.learn(X, y),
        "Learner, IWA, diagonal metric": lambda: diagonal.learn(X, y),
        "Mixture, no learning rate": lambda: mixture.learn(X, y),
        GATHER: lambda: rows(*block.arrays, table, 0),
        f"{GATHER}, ahead": lambda: rows(*block.arrays, table, 4),
    }


def bandwidth(size):
    """Bytes a second that one core reads from memory: the product of a long vector with itself."""
    vector = np.ones(size)
    with threadpool_limits(1):
        return 8 * size / fastest({"read": lambda: vector @ vector}, repeats=9)["read"]


def main():
    options = parser(__doc__).parse_args()
    nonzeros, repeats, tables = (60_000, 1, TABLES[:2]) if options.quick else (NONZEROS, 3, TABLES)
    results = Results("floor", options)
    speed = bandwidth(1 << 20 if options.quick else 1 << 25)
    print(f"memory is read at {speed / 1e9:.1f} GB/s")
    results.add("memory", "one core reads", speed / 1e9, "GB/s")
    for features in tables:
        for length in LENGTHS:
            X, y = sparse_data(nonzeros // length, features, length)
            times = fastest(contenders(X, y), repeats)
            times[GATHER] = min(times[GATHER], times.pop(f"{GATHER}, ahead"))
            times["memory bandwidth"] = BYTES * X.nnz / speed
            each = {name: seconds / X.nnz for name, seconds in times.items()}
            case = f"{length} non-zeros a row, {features:,} features"
            results.compare(case, each, PEER, nonzeros=length, columns=features)
    results.save()


if __name__ == "__main__":
    main()
