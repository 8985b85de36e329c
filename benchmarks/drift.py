"""Streams that change: the average loss of the mixture, of its best expert in hindsight, and of Vowpal Wabbit.

    python benchmarks/drift.py

A stream stays as it is, turns its model round once, changes between two models three times, turns slowly, or becomes
noise in its second half. 10 columns (with experts of second order) and 150 (without), 20,000 rows. Vowpal Wabbit runs
at its default.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from quality import as_rows, vw_loss
from record import Results, parser

from steelyard import Mixture

ROWS = 20_000


def models(d, rows):
    """The model of every row, for each kind of stream."""
    rng = np.random.default_rng(d)
    u, w = 2.0 * rng.normal(size=(2, d)) / np.sqrt(d)
    t = np.arange(rows)[:, None] / rows
    return {
        "stays": u + 0.0 * t,
        "turns round once": np.where(t < 0.5, u, -u),
        "changes three times": np.where((4 * t).astype(int) % 2 == 0, u, w),
        "turns slowly": np.cos(6 * t) * u + np.sin(6 * t) * w,
        "becomes noise": np.where(t < 0.5, u, 0.0),
    }


def vowpal(X, y, loss):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.vw"
        lines = (f"{y} | {' '.join(f'{i}:{v:.7g}' for i, v in x.items())}\n" for x, y in as_rows(X, y))
        path.write_text("".join(lines))
        return vw_loss(path, loss) / (2.0 if loss == "squared" else 1.0)


def main():
    options = parser(__doc__).parse_args()
    rows = 200 if options.quick else ROWS
    results = Results("drift", options)
    for d in (10, 150):
        rng = np.random.default_rng(d + 1)
        X = rng.normal(size=(rows, d))
        for name, model in models(d, rows).items():
            score = (X * model).sum(axis=1)
            targets = {
                "logistic": np.where(score + rng.logistic(size=rows) > 0, 1.0, -1.0),
                "squared": score + 0.5 * rng.normal(size=rows),
            }
            for loss, y in targets.items():
                mixture = Mixture(loss)
                ours = mixture.learn(X, y).average_loss
                best = min(expert.loss for expert in mixture.bank())
                losses = {"mixture": ours, "its best expert": best, "VW default": vowpal(X, y, loss)}
                results.compare(f"{name}, {d} columns, {loss} loss", losses, "mixture", unit="")
    results.save()


if __name__ == "__main__":
    main()
