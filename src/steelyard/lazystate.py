"""What a learner keeps beside ``ftrl.State`` where features wait: for their penalties, or to be averaged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steelyard.kernels import layout
from steelyard.losses import Array


class PenalisedState(NamedTuple):
    """With penalties: see ``kernels.penalised``."""

    table: Array
    clocks: Array
    sums: Array
    dual: Array
    stamps: Array
    """How far the path was when a weight was last shrunk, (features + 1) x outputs; empty where nobody needs it."""
    paths: Array
    """The sum of all rates, one an output."""


class AveragedState(NamedTuple):
    """``average=True``: see ``kernels.averaged``."""

    table: Array
    clocks: Array
    sums: Array
    dual: Array
    drift: Array
    """The sum of clock * move of each weight, (features + 1) x outputs."""
    paths: Array
    """The clock: the sum of h, or of h/lam for center "origin", one an output."""


def soft(theta: Array, most: Any) -> Array:
    """sign(theta) max(0, |theta| - most)."""
    return theta - np.clip(theta, -most, most)


def shrunk(x: Array, way: Array, l1: float, l2: float) -> Array:
    """x after shrinking for ``way``: |x| e^-z - l1 (1 - e^-z)/l2 and not below 0, z = l2 way."""
    if l2 == 0.0:
        with np.errstate(over="ignore"):  # what is beyond all floats leaves nothing
            return soft(x, l1 * way)
    kept, lost = np.exp(-l2 * way), -np.expm1(-l2 * way)
    return np.asarray(np.copysign(np.maximum(0.0, np.abs(x) * kept - l1 * (lost / l2)), x))


def averaged(state: AveragedState, weights: Array, origin: bool) -> Array:
    """The average model of weights (features + 1) x outputs; before any weight is seen, the model itself: zero."""
    weight = state.clocks[:, layout.WEIGHT]
    counted = np.where(weight > 0.0, weight, 1.0)
    drift = state.drift.reshape(weights.shape) / counted
    return np.asarray(weights * (state.paths / counted) - drift if origin else weights - drift)
