"""The progressive loss along a stream, at a few points that do not depend on how the stream was cut into blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from steelyard.losses import Array
from steelyard.online import Trace

_GRID = np.unique(np.round(2.0 ** (np.arange(100) / 3.0)))
"""After how many rows there is a point: 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, … three in each doubling."""


class LossCurve(NamedTuple):
    """The average loss of all rows up to some, each before it was learned."""

    weight: Array
    """How much the rows up to there weigh: their number, where all weights are 1."""
    loss: Array


class Curve(NamedTuple):
    """What is known of a curve so far."""

    rows: int = 0
    weight: float = 0.0
    lost: float = 0.0
    points: tuple[tuple[float, float], ...] = ()
    """Weight and average loss."""

    def add(self, trace: Trace) -> Curve:
        """The curve with some more rows."""
        per_row = trace.loss if trace.loss.ndim == 1 else trace.loss.mean(axis=1)
        lost = trace.weight * np.where(trace.weight > 0.0, per_row, 0.0)
        rows = self.rows + lost.size
        due = _GRID[np.searchsorted(_GRID, self.rows, side="right") : np.searchsorted(_GRID, rows, side="right")]
        points = self.points
        if due.size:
            at = due.astype(np.intp) - self.rows - 1
            weight, total = self.weight + np.cumsum(trace.weight)[at], self.lost + np.cumsum(lost)[at]
            points += tuple((float(w), float(s / w)) for w, s in zip(weight, total, strict=True) if w > 0.0)
        return Curve(rows, self.weight + float(trace.weight.sum()), self.lost + float(lost.sum()), points)

    def ending_with(self, weight: float, loss: float) -> LossCurve:
        """The curve, up to its end."""
        points = [*self.points]
        if weight > 0.0:
            points = [each for each in points if each[0] < weight] + [(weight, loss)]
        return LossCurve(*np.array(points, np.float64).reshape(-1, 2).T.copy())
