"""lam_t of each schedule, and the rate of a row. A schedule that is not known gives NaN.

Arguments: ``schedule`` is its code, ``eta0`` the initial rate, ``weight`` the weight cumulated before the row, ``h``
that of the row, ``lam`` and ``sum_sq_grad`` the clocks of the schedules "gap" and "adagrad-norm".
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import jit
from steelyard.kernels.layout import ADAGRAD, CONSTANT, GAP_SCHEDULE, POWER

LARGE = 1e300
CAPPED = 0.999e300  # a step as long as :func:`bounded` lets it be, whatever the rounding


@jit
def lam_before(schedule, power_t, adaptive, eta0, weight, lam, sum_sq_grad):
    """lam_t, before the round."""
    if schedule == GAP_SCHEDULE:
        return lam
    if schedule == POWER:
        if power_t == 0.5:
            return math.sqrt(1.0 + weight) / eta0
        return (1.0 + weight) ** power_t / eta0
    if schedule == ADAGRAD and not adaptive:
        return math.sqrt(1.0 + sum_sq_grad) / eta0
    return 1.0 / eta0 if schedule == CONSTANT or schedule == ADAGRAD else math.nan


@jit
def integrated_rate(schedule, power_t, origin, eta0, weight, lam, h):
    """h / lam for the whole weight of the row. For ``power`` and center "trajectory" it is the integral

    ∫ eta0 (1+s)^-power_t ds over the h units of weight to come, which does not see how h is cut.
    """
    if schedule != POWER or origin:
        return h / lam
    start = 1.0 + weight
    if power_t == 0.5:
        return eta0 * 2.0 * h / (math.sqrt(start) + math.sqrt(start + h))
    if power_t == 1.0:
        return eta0 * math.log1p(h / start)
    rest = 1.0 - power_t
    return eta0 * start**rest * math.expm1(rest * math.log1p(h / start)) / rest


@jit
def bounded(rate, norm2):
    """The rate, less where the step length would overflow."""
    return LARGE / norm2 if rate * norm2 > LARGE else rate


@jit
def grow(schedule, adaptive, eta0, lam, sum_sq_grad, h, slope, c, gap, a, norm2):
    """(lam, sum_sq_grad) after the round. An overflow, or the NaN of a diverged learner, leaves them as they are."""
    if schedule == GAP_SCHEDULE:
        grown = lam + h * (gap + 0.5 * a * c * c) / (eta0 * eta0)
        if grown < LARGE:
            lam = grown
    elif schedule == ADAGRAD and not adaptive:
        grown = sum_sq_grad + h * slope * slope * norm2
        if grown < LARGE:
            sum_sq_grad = grown
    return lam, sum_sq_grad
