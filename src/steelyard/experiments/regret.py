"""Regret and its certified bounds on a data set: each update, and the mixture, against the best model in hindsight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.certificate import Certificate
from steelyard.comparator import Hindsight, hindsight
from steelyard.learner import Learner
from steelyard.losses import Array, Loss, get_loss
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner
from steelyard.updates import UPDATES

AUTO = "auto"
"""The mixture among the updates: it takes no rate."""


class RegretCurve(NamedTuple):
    """One update, or the mixture ("auto"), on one stream: its true regret and the bound on it, as the rounds go by."""

    update: str
    rounds: Array
    regret: Array
    bound: Array
    certificate: Certificate


def regret_curves(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    eta0: float,
    schedule: str = "gap",
    updates: Sequence[str] = (*UPDATES, AUTO),
    l2: float = 1.0,
    seed: int = 0,
    guard: bool = False,
) -> tuple[Hindsight, list[RegretCurve]]:
    """Run every update over one shuffle and follow its regret against the best model in hindsight (penalty ``l2``).

    The mixture, "auto" among the updates, takes no ``eta0``, ``schedule`` and ``guard``: it is the same for all.
    """
    chosen = get_loss(loss)
    best = hindsight(X, y, loss=chosen, l2=l2)
    order = np.random.default_rng([seed, 0]).permutation(len(y))
    X, y = X[order], np.asarray(y, dtype=np.float64)[order]
    theirs = np.cumsum(chosen.value(np.asarray(X @ best.coef).ravel() + best.intercept, y))
    stops = np.unique(np.append(np.geomspace(1, len(y), 60).astype(int), len(y)))
    runs = []
    for update in updates:
        learner: OnlineLearner = Mixture(chosen)
        if update != AUTO:
            learner = Learner(
                chosen, update=update, schedule=schedule, metric="scalar", center="origin", eta0=eta0, guard=guard
            )
        regret, bound, start = [], [], 0
        for stop in stops:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*diverges", category=RuntimeWarning)  # the table shows it
                learner.learn(X[start:stop], y[start:stop])
            certificate = learner.certify()
            regret.append(_or_infinite(certificate.total_loss - theirs[stop - 1]))
            bound.append(_or_infinite(certificate.regret_bound(best.coef, best.intercept)))
            start = stop
        runs.append(RegretCurve(update, stops, np.array(regret), np.array(bound), learner.certify()))
    return best, runs


def _or_infinite(number: float) -> float:
    """A learner that diverged has lost more than a float can hold."""
    return float("inf") if np.isnan(number) else number


LEGEND = (
    "certified bound: what the regret cannot exceed, known without the best model; of plain FTRL's: as a part of the\n"
    "linearized update's; sum of δ: how much the update's steps tighten the bound; δ < 0: rounds where they do not.\n"
    "auto is the mixture, the estimators' default, which takes no rate."
)
HEADS = ("update", "average loss", "true regret", "certified bound", "of plain FTRL's", "sum of δ", "δ < 0")


def table(runs: Sequence[RegretCurve]) -> list[tuple[str, ...]]:
    """A row of text for each curve; the bound is also given as a fraction of the linearized update's."""
    plain = next((run.bound[-1] for run in runs if run.update == "linearized"), np.nan)
    rows: list[tuple[str, ...]] = []
    for run in runs:
        certificate = run.certificate
        with np.errstate(invalid="ignore"):
            share = 1.0 if run.update == "linearized" else run.bound[-1] / plain
        rows.append(
            (
                run.update,
                f"{_or_infinite(certificate.average_loss):.4g}",
                f"{run.regret[-1]:.4g}",
                f"{run.bound[-1]:.4g}",
                f"{share:.3g}",
                "-" if certificate.delta is None or np.isnan(certificate.delta) else f"{certificate.delta:.4g}",
                "-" if certificate.delta is None else f"{certificate.negative_deltas} of {certificate.rounds}",
            )
        )
    return rows


def markdown(runs: Sequence[RegretCurve]) -> str:
    """The same as a table in Markdown, with its head."""
    rows = [HEADS, tuple("---:" if i else "---" for i in range(len(HEADS))), *table(runs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    return "\n".join(
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    )
