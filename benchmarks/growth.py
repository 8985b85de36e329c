"""Time against the number of rows and of columns, both logarithmic, and the slope of a straight line through it.

    python benchmarks/growth.py

A slope of 1 says that twice as much takes twice as long. The slope is fitted to the upper half of the sizes, where a
call's fixed cost is small. A matrix of all pairs of columns (``metric="full"``, and the mixture up to 100 columns)
has a slope of up to 2 in the columns.
"""

from __future__ import annotations

import warnings

import numpy as np
from record import Results, parser
from sklearn.linear_model import SGDClassifier
from speed import PEER, dense_data, fastest, sparse_data

from steelyard import Learner, Mixture

ROWS = tuple(int(n) for n in np.logspace(3, 6, 7).round(-1))
COLUMNS = tuple(1 << k for k in range(2, 11))
MOST_PAIRS = 256  # columns, with a matrix of all their pairs


def contenders(X, y):
    return {
        PEER: lambda: SGDClassifier(loss="log_loss", max_iter=1, tol=None, shuffle=False).fit(X, y),
        "Learner, IWA, scalar metric": lambda: Learner("logistic", metric="scalar").learn(X, y),
        "Learner, IWA, diagonal metric": lambda: Learner("logistic").learn(X, y),
        "Mixture, no learning rate": lambda: Mixture("logistic").learn(X, y),
        "Learner, IWA, full metric": lambda: Learner("logistic", metric="full").learn(X, y),
    }


def slope(sizes, seconds):
    """Of the straight line through the upper half, on log-log axes."""
    half = slice(len(sizes) // 2, None)
    return float(np.polyfit(np.log(sizes[half]), np.log(seconds[half]), 1)[0])


def measure(results, case, sizes, make, repeats, limits):
    """A curve a contender: its seconds at each size that it is run at."""
    found = {}
    for size in sizes:
        runs = {name: run for name, run in contenders(*make(size)).items() if size <= limits.get(name, np.inf)}
        for name, seconds in fastest(runs, repeats).items():
            found.setdefault(name, []).append(seconds)
    print(f"\n{case}: {', '.join(f'{size:,}' for size in sizes)}")
    for name, seconds in found.items():
        at = list(sizes[: len(seconds)])
        steep = slope(at, seconds)
        print(f"  {name:32s} slope {steep:.2f}, {seconds[-1]:.3g} s at {at[-1]:,}", flush=True)
        results.add(case, name, seconds, "s", sizes=at, slope=steep)


def main():
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    results = Results("growth", options)
    rows, columns, repeats, tall = (ROWS[:3], COLUMNS[:4], 1, 200) if options.quick else (ROWS, COLUMNS, 3, 20_000)

    def long(n):
        return sparse_data(n, features=1 << 16, nonzeros=20)

    def wide(d):
        return dense_data(tall, d)

    measure(results, "rows, 20 non-zeros in each", rows, long, repeats, {"Learner, IWA, full metric": 0})
    measure(results, f"columns, {tall:,} dense rows", columns, wide, repeats, {"Learner, IWA, full metric": MOST_PAIRS})
    results.save()


if __name__ == "__main__":
    main()
