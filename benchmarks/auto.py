"""One pass without a learning rate, against one learner with a rate and one pass of Vowpal Wabbit, in one run.

    python benchmarks/auto.py

Vowpal Wabbit reads its binary cache file, which it wrote in a pass before; ours reads the matrix in memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from speed import dense_data, fastest, sparse_data
from vowpalwabbit import Workspace

from steelyard import Learner, Mixture


def write_text(path, X, y):
    with open(path, "w") as file:
        for i, label in enumerate(y):
            row = slice(X.indptr[i], X.indptr[i + 1])
            features = " ".join(f"{j}:{value:.7g}" for j, value in zip(X.indices[row], X.data[row], strict=True))
            file.write(f"{label:g} | {features}\n")


def report(title, times):
    print(f"\n{title}")
    for name, seconds in times.items():
        print(f"  {name:36s} {seconds * 1e3:8.1f} ms   {seconds / times['Learner, eta0=1']:5.2f} of one learner")


def main():
    X, y = sparse_data(200_000)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "rows.vw")
        write_text(text, X, y)
        options = f"-d {text} -c --cache_file {text}.cache --quiet -b 18 --loss_function logistic --holdout_off"
        times = fastest(
            {
                "Learner, eta0=1": lambda: Learner("logistic").learn(X, y),
                "Mixture": lambda: Mixture("logistic").learn(X, y),
                "Mixture, squared loss": lambda: Mixture("squared").learn(X, y),
                "Vowpal Wabbit from its cache": lambda: Workspace(options).finish(),
            },
            repeats=5,
        )
    report("CSR 200,000 x 131,072, 75 non-zeros a row", times)
    print(f"  Mixture / Vowpal Wabbit: {times['Mixture'] / times['Vowpal Wabbit from its cache']:.2f}")
    X, y = dense_data(500_000)
    times = fastest(
        {
            "Learner, eta0=1": lambda: Learner("logistic").learn(X, y),
            "Mixture": lambda: Mixture("logistic").learn(X, y),
            "Mixture, squared loss": lambda: Mixture("squared").learn(X, y),
        },
        repeats=5,
    )
    report("dense 500,000 x 50", times)


if __name__ == "__main__":
    main()
