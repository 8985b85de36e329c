"""What shuffling costs: ``fit`` as it is beside ``fit`` with shuffle=False, and its parts, as ratios within one run.

python benchmarks/shuffle.py [--quick]
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from speed import dense_data, fastest, sparse_data

from steelyard import OnlineClassifier
from steelyard.data.block import as_block
from steelyard.data.order import group_equal_rows, shuffled_visits


def fit(X, y, eta0, shuffle):
    OnlineClassifier(eta0=eta0, shuffle=shuffle, random_state=0).fit(X, y)


def measure(title, X, y):
    block, weight = as_block(X), np.ones(len(y))
    groups = group_equal_rows(block, y, weight)
    runs = {
        "hash and group the rows": lambda: group_equal_rows(block, y, weight),
        "sort the visits": lambda: shuffled_visits(groups, len(y), 0),
    }
    runs |= {(eta0, shuffle): partial(fit, X, y, eta0, shuffle) for eta0 in ("auto", 1.0) for shuffle in (False, True)}
    times = fastest(runs, repeats=5)
    print(f"\n{title}")
    for name in list(runs)[:2]:
        print(f"  {name:28s} {times[name] * 1e3:8.1f} ms")
    for eta0 in ("auto", 1.0):
        plain, shuffled = times[eta0, False], times[eta0, True]
        print(
            f"  fit, eta0={eta0!r:18s} {shuffled * 1e3:8.1f} ms   {shuffled / plain:5.2f} of {plain * 1e3:.1f} ms "
            "without shuffling"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    scale = 10 if parser.parse_args().quick else 1
    measure("CSR 200,000 x 131,072, 75 non-zeros a row", *sparse_data(200_000 // scale))
    measure("dense 500,000 x 50", *dense_data(500_000 // scale))


if __name__ == "__main__":
    main()
