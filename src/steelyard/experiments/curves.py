"""Measures of a curve of loss against learning rate: how much it varies, and how wide its flat part is."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from steelyard.experiments.sweep import SweepResult
from steelyard.losses import Array

NAMES = {"linearized": "linearized", "aprox": "aProx", "iwa": "IWA", "proximal": "proximal"}
"""The updates as the paper writes them, in figures and in text alike."""


def curve(result: SweepResult, update: str) -> Array:
    """The mean loss of an update, a number for each rate."""
    return np.asarray(result.mean[result.updates.index(update)])


def sensitivity(result: SweepResult, update: str) -> float:
    """Worst over best mean loss across the grid; inf where a rate diverges."""
    mean = curve(result, update)
    return float(mean.max() / mean.min())


def large_rate_sensitivity(result: SweepResult, update: str) -> float:
    """The same over the rates from the best one upwards: the price of a rate that is too large."""
    mean = curve(result, update)
    return float(mean[mean.argmin() :].max() / mean.min())


def good_rates(result: SweepResult, update: str, tolerance: float) -> tuple[float, float]:
    """The ends of the range of rates around the best one whose mean loss is within ``tolerance`` of the best."""
    mean = curve(result, update)
    return _around_best(result, mean <= mean.min() * (1.0 + tolerance), int(mean.argmin()))


def _around_best(result: SweepResult, good: NDArray[np.bool_], best: int) -> tuple[float, float]:
    """The ends of the range of rates that are all good, and the best one among them."""
    low = high = best
    while low > 0 and good[low - 1]:
        low -= 1
    while high < good.size - 1 and good[high + 1]:
        high += 1
    return float(result.eta0[low]), float(result.eta0[high])


def width(result: SweepResult, update: str, tolerance: float) -> float:
    """How many decades that range spans."""
    low, high = good_rates(result, update, tolerance)
    return math.log10(high / low)


def distance(result: SweepResult, one: str, other: str) -> float:
    """The median relative difference of the mean loss of ``one`` from that of ``other``, over the rates from the best
    of ``other`` upwards: with small rates all updates are the same."""
    a, b = curve(result, one), curve(result, other)
    upwards = slice(int(b.argmin()), None)
    with np.errstate(invalid="ignore"):
        relative: Array = np.abs(a[upwards] - b[upwards]) / b[upwards]
    return float(np.median(np.nan_to_num(relative, nan=np.inf, posinf=np.inf)))


def changes(result: SweepResult, one: str, other: str) -> float | None:
    """The smallest rate from which on the mean loss of ``one`` is below that of ``other``, up to the largest rate;
    None where it is not below there."""
    below = curve(result, one) < curve(result, other)
    if not below[-1]:
        return None
    above = np.flatnonzero(~below)
    return float(result.eta0[above[-1] + 1 if above.size else 0])


def rates_below(result: SweepResult, update: str, loss: float) -> tuple[float, float] | None:
    """The ends of the range of rates around the best one whose mean loss is below ``loss``; None if the best is not."""
    mean = curve(result, update)
    return None if mean.min() >= loss else _around_best(result, mean < loss, int(mean.argmin()))
