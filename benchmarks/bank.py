"""One bank of 25 rates against 25 single passes, on the same data in one run.

    python benchmarks/bank.py

What the bank saves is reading the rows: much where rows are long and sparse, little where the scalar solve is most of
the work, nothing where dense rows are in the cache anyway.
"""

from __future__ import annotations

import numpy as np
from record import Results, parser
from sklearn.datasets import load_digits
from speed import fastest, sparse_data

from steelyard import Bank, Learner

RATES = np.logspace(-3, 3, 25)


def main():
    options = parser(__doc__).parse_args()
    rates, rows, repeats = (RATES[::8], 500, 1) if options.quick else (RATES, 20_000, 5)
    results = Results("bank", options)
    digits, number = load_digits(return_X_y=True)
    odd = np.where(number % 2 == 1, 1.0, -1.0)
    wide, narrow = sparse_data(rows, features=8192), sparse_data(rows * 5 // 2, features=128, nonzeros=14)
    cases = {
        "squared, CSR 75 non-zeros a row": ("squared", *wide),
        "squared, CSR 14 non-zeros a row": ("squared", *narrow),
        "logistic, CSR 75 non-zeros a row": ("logistic", *wide),
        "logistic, CSR 14 non-zeros a row": ("logistic", *narrow),
        "logistic, dense digits, 64 columns": ("logistic", digits / 16.0, odd),
    }
    for name, (loss, X, y) in cases.items():
        for schedule, center in (("gap", "origin"), ("power", "trajectory")):
            chosen = {"schedule": schedule, "center": center, "metric": "scalar"}

            def bank(loss=loss, X=X, y=y, chosen=chosen):
                Bank(loss, updates=["iwa"], eta0=rates, **chosen).learn(X, y)

            def singles(loss=loss, X=X, y=y, chosen=chosen):
                for rate in rates:
                    Learner(loss, eta0=rate, **chosen).learn(X, y)

            alone = f"{rates.size} single passes"
            results.compare(f"{name}, {schedule}", fastest({"one bank": bank, alone: singles}, repeats), alone)
    results.save()


if __name__ == "__main__":
    main()
