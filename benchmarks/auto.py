"""One pass without a learning rate, against one learner with a rate and one pass of Vowpal Wabbit, in one run.

    python benchmarks/auto.py

Vowpal Wabbit reads its binary cache file, which it wrote in a pass before; ours reads the matrix in memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from record import Results, parser
from speed import dense_data, fastest, sparse_data
from vowpalwabbit import Workspace

from steelyard import Learner, Mixture

ALONE, VW = "Learner, eta0=1", "Vowpal Wabbit from its cache"


def write_text(path, X, y):
    with open(path, "w") as file:
        for i, label in enumerate(y):
            row = slice(X.indptr[i], X.indptr[i + 1])
            features = " ".join(f"{j}:{value:.7g}" for j, value in zip(X.indices[row], X.data[row], strict=True))
            file.write(f"{label:g} | {features}\n")


def ours(X, y):
    return {
        ALONE: lambda: Learner("logistic").learn(X, y),
        "Mixture": lambda: Mixture("logistic").learn(X, y),
        "Mixture, squared loss": lambda: Mixture("squared").learn(X, y),
    }


def main():
    options = parser(__doc__).parse_args()
    scale, repeats = (200, 1) if options.quick else (1, 5)
    results = Results("auto", options)
    X, y = sparse_data(200_000 // scale)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "rows.vw")
        write_text(text, X, y)
        words = f"-d {text} -c --cache_file {text}.cache --quiet -b 18 --loss_function logistic --holdout_off"
        times = fastest({**ours(X, y), VW: lambda: Workspace(words).finish()}, repeats)
    case = f"CSR {X.shape[0]:,} × {X.shape[1]:,}, 75 non-zeros a row"
    results.compare(case, times, ALONE)
    results.compare(f"{case}, logistic loss", {name: times[name] for name in ("Mixture", VW)}, VW)
    X, y = dense_data(500_000 // scale)
    results.compare(f"dense {X.shape[0]:,} × {X.shape[1]}", fastest(ours(X, y), repeats), ALONE)
    results.save()


if __name__ == "__main__":
    main()
