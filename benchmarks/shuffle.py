"""What shuffling costs: ``fit`` as it is beside ``fit`` with shuffle=False, and its parts, as ratios within one run.

python benchmarks/shuffle.py
"""

from __future__ import annotations

from functools import partial

import numpy as np
from record import Results, parser
from speed import dense_data, fastest, sparse_data

from steelyard import OnlineClassifier
from steelyard.data.block import as_block
from steelyard.data.order import group_equal_rows, shuffled_visits


def fit(X, y, eta0, shuffle):
    OnlineClassifier(eta0=eta0, shuffle=shuffle, random_state=0).fit(X, y)


def measure(results, case, X, y, repeats):
    block, weight = as_block(X), np.ones(len(y))
    groups = group_equal_rows(block, y, weight)
    parts = {
        "hash and group the rows": lambda: group_equal_rows(block, y, weight),
        "sort the visits": lambda: shuffled_visits(groups, len(y), 0),
    }
    names = {False: "fit(shuffle=False)", True: "fit"}
    for eta0 in ("auto", 1.0):
        fits = {name: partial(fit, X, y, eta0, shuffle) for shuffle, name in names.items()}
        results.compare(f"{case}, eta0={eta0!r}", fastest(fits | parts, repeats), names[False])


def main():
    options = parser(__doc__).parse_args()
    scale, repeats = (100, 1) if options.quick else (1, 5)
    results = Results("shuffle", options)
    for kind, (X, y) in (("CSR", sparse_data(200_000 // scale)), ("dense", dense_data(500_000 // scale))):
        measure(results, f"{kind} {X.shape[0]:,} × {X.shape[1]:,}", X, y, repeats)
    results.save()


if __name__ == "__main__":
    main()
