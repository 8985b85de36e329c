"""One bank of 25 rates against 25 single passes, on the same data in one run.

    python benchmarks/bank.py

What the bank saves is reading the rows: much where rows are long and sparse, little where the scalar solve is most of
the work, nothing where dense rows are in the cache anyway.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from speed import fastest, sparse_data

from steelyard import Bank, Learner

RATES = np.logspace(-3, 3, 25)


def main():
    digits, number = load_digits(return_X_y=True)
    odd = np.where(number % 2 == 1, 1.0, -1.0)
    wide, narrow = sparse_data(20_000, features=8192), sparse_data(50_000, features=128, nonzeros=14)
    cases = {
        "squared, CSR 75 non-zeros a row": ("squared", *wide),
        "squared, CSR 14 non-zeros a row": ("squared", *narrow),
        "logistic, CSR 75 non-zeros a row": ("logistic", *wide),
        "logistic, CSR 14 non-zeros a row": ("logistic", *narrow),
        "logistic, dense digits, 64 columns": ("logistic", digits / 16.0, odd),
    }
    for name, (loss, X, y) in cases.items():
        for schedule, center in (("gap", "origin"), ("power", "trajectory")):
            options = {"schedule": schedule, "center": center, "metric": "scalar"}

            def bank(loss=loss, X=X, y=y, options=options):
                Bank(loss, updates=["iwa"], eta0=RATES, **options).learn(X, y)

            def singles(loss=loss, X=X, y=y, options=options):
                for rate in RATES:
                    Learner(loss, eta0=rate, **options).learn(X, y)

            times = fastest({"bank": bank, "singles": singles}, repeats=5)
            shown = ", ".join(f"{each} {seconds * 1e3:.1f} ms" for each, seconds in times.items())
            print(f"{name:36s} {schedule:6s} {shown}: {times['bank'] / times['singles']:.2f}")


if __name__ == "__main__":
    main()
