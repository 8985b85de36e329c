"""The progressive loss along a stream, at a few points that do not depend on how the stream was cut into blocks."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from steelyard.losses import Array
from steelyard.online import Trace

_GRID = sorted({round(2.0 ** (k / 3.0)) for k in range(100)})
"""After how many rows there is a point: 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, … three in each doubling."""
_POINTS = frozenset(_GRID)


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
        loss = trace.loss if trace.loss.ndim == 1 else trace.loss.mean(axis=1)
        if loss.size and not trace.weight.min() > 0.0:
            loss = np.where(trace.weight > 0.0, loss, 0.0)  # a row of weight 0 may have an infinite loss
        rows, weight, lost, points = self
        start, end = rows, rows + loss.size
        for stop in (*_GRID[bisect_right(_GRID, rows) : bisect_right(_GRID, end)], end):
            part = slice(rows - start, stop - start)
            weight, lost = weight + float(trace.weight[part].sum()), lost + float(trace.weight[part] @ loss[part])
            if weight > 0.0 and stop in _POINTS and stop > rows:
                points += ((weight, lost / weight),)
            rows = stop
        return Curve(end, weight, lost, points)

    def ending_with(self, weight: float, loss: float) -> LossCurve:
        """The curve, up to its end."""
        points = [*self.points]
        if weight > 0.0:
            points = [each for each in points if each[0] < weight] + [(weight, loss)]
        return LossCurve(*np.array(points, np.float64).reshape(-1, 2).T.copy())
