"""How fast any learner with float64 weights can be on the sparse case: dot product and addition alone, no loss.

    python benchmarks/floor.py

In one run with scikit-learn's SGD: what is left between the two is all that a loss, a schedule and checks can cost.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import SGDClassifier
from speed import fastest, sparse_data

from steelyard import Learner
from steelyard.data.block import as_block
from steelyard.kernels.compile import jit
from steelyard.kernels.rows import fetch, sparse_add, sparse_dot


@jit
def rows(data, indices, indptr, table, ahead):
    """A dot product and an addition for each row, with or without fetching rows ahead."""
    for i in range(indptr.size - 1):
        lo, hi = indptr[i], indptr[i + 1]
        if ahead > 0 and i + ahead < indptr.size - 1:
            fetch(data, indices, indptr, i + ahead)
        p, norm2 = sparse_dot(data, indices, lo, hi, table, hi, hi)  # no weights are fetched ahead
        sparse_add(data, indices, lo, hi, table, 1e-9 * (p + norm2))


def main():
    X, y = sparse_data(200_000)
    block, table = as_block(X), np.zeros(X.shape[1] + 1)
    runs = {
        "scikit-learn SGDClassifier": lambda: SGDClassifier(loss="log_loss", max_iter=1, tol=None, shuffle=False).fit(
            X, y
        ),
        "dot and addition alone": lambda: rows(*block.arrays, table, 0),
        "the same, rows fetched ahead": lambda: rows(*block.arrays, table, 4),
        "Learner, iwa, scalar metric": lambda: Learner("logistic", metric="scalar").learn(X, y),
    }
    times = fastest(runs, repeats=9)
    peer = times["scikit-learn SGDClassifier"]
    for name, seconds in times.items():
        print(f"{name:32s} {seconds * 1e3:7.1f} ms   {seconds / peer:.2f} of scikit-learn")


if __name__ == "__main__":
    main()
