"""The step and the conjugate of a user's own convex loss, from nothing but its value and its slope.

Both functions come as addresses inside the parameters, so this file is compiled once, cached, and serves every loss.
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import jit
from steelyard.kernels.flow import flow_solver
from steelyard.kernels.intrinsics import call_scalar
from steelyard.kernels.layout import APROX, IWA, LINEARIZED, OWN, PROXIMAL, RULE, WANTS_GAP
from steelyard.kernels.steps.scalar import truncated, write_step

# after the rule and the wish for a gap: addresses of value and slope, infimum of the loss
_VALUE, _SLOPE, _INFIMUM = OWN, OWN + 1, OWN + 2

_LARGE = 1e300  # a user's loss may overflow where its flow does not


@jit
def _pull(context, d):
    """How fast the flow moves at distance d from p: the slope, towards the minimum, never below 0 or infinite."""
    slope, p, y, side = context
    return min(max(0.0, side * call_scalar(slope, p - side * d, y)), _LARGE)


_flow_travel, _proximal_travel = flow_solver(_pull)


@jit
def _slope_inverse(slope, y, s, low, high):
    """A point of [low, high] where the slope passes s, by bisection to the last bit."""
    for _ in range(1100):
        middle = 0.5 * low + 0.5 * high
        if not low < middle < high:
            break
        if call_scalar(slope, middle, y) < s:
            low = middle
        else:
            high = middle
    return high


def numeric(p, y, a, k, out):
    """A step of a user's loss, for any rule."""
    rule = k[RULE]
    slope_at = k[_SLOPE]
    value = call_scalar(k[_VALUE], p, y)
    slope = call_scalar(slope_at, p, y)
    side = 1.0 if slope > 0.0 else -1.0
    if a == 0.0 or a * slope == 0.0 or rule == LINEARIZED:
        c = slope
    elif rule == APROX:
        c = truncated(slope, (min(value, _LARGE) - k[_INFIMUM]) / min(abs(slope), _LARGE), a)
    elif rule == IWA:
        c = side * _flow_travel((slope_at, p, y, side), a) / a
    elif rule == PROXIMAL:
        c = side * _proximal_travel((slope_at, p, y, side), a) / a
    else:
        c = math.nan
    if slope > 0.0:
        c = min(c, slope)
    else:
        c = max(c, slope)
    gap = 0.0
    if k[WANTS_GAP] != 0.0 and c != slope:
        # the slope passes c between the minimum and p, and aProx may stop short of the proximal point
        end = p - a * c
        for _ in range(64):
            if (call_scalar(slope_at, end, y) - c) * side <= 0.0:
                break
            end = p - 2.0 * (p - end)
        u = _slope_inverse(slope_at, y, c, min(p, end), max(p, end))
        gap = value - call_scalar(k[_VALUE], u, y) - c * (p - u) if value < math.inf else math.inf
    write_step(out, value, slope, c, gap)


def numeric_conjugate(s, y, k):
    """sup_u s*u - value(u): where the slope passes s, or the limit at infinity where it never does."""
    slope_at = k[_SLOPE]
    side = 1.0 if call_scalar(slope_at, 0.0, y) < s else -1.0
    near, reach = 0.0, 1.0
    while reach < 1e15 and (call_scalar(slope_at, side * reach, y) - s) * side < 0.0:
        near = reach
        reach *= 2.0
    rise = (s - call_scalar(slope_at, side * reach, y)) * side
    if rise > 0.0:  # the slope never gets there: s is outside the domain, or on its edge
        return math.inf if rise > 1e-12 * (1.0 + abs(s)) else s * side * reach - call_scalar(k[_VALUE], side * reach, y)
    u = _slope_inverse(slope_at, y, s, min(side * near, side * reach), max(side * near, side * reach))
    return s * u - call_scalar(k[_VALUE], u, y)
