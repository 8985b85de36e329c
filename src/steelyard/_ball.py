"""The step of a learner whose model must stay in a ball of radius D: the flow in that regularizer.

Without a ball, moving the model by -v*q changes the prediction by -v*||q||^2. In a ball the prediction answers with

    P(v) = <q, x - v q> / max(1, ||x - v q|| / D),

x the model before it is put into the ball. The IWA step follows dv/ds = slope(P(v)) for the time ``rate``, the
proximal step solves v = rate * slope(P(v)), and aProx stops where P(v) is where the tangent reaches the least loss.
slope(P(v)) is monotone in v, so the sandwich lemma holds as it does without a ball, and H_t(z_t) <= H_t(g_t) at a
constant lam.
"""

from __future__ import annotations

import math

from steelyard._compile import call_conjugate, call_step, jit
from steelyard._flow import flow_solver
from steelyard._scalar import APROX, IWA, LINEARIZED


@jit
def _response(geometry, v):
    """P(v). ``geometry`` is ||q||, the parts of x along q and across it, and D."""
    length, along, across, radius = geometry
    left = along - v * length
    return length * left / max(1.0, math.hypot(left, across) / radius)


@jit
def _pull(context, d):
    """The slope at distance d, towards the minimum, never below 0 and never infinite."""
    step, params, k, y, side, geometry = context
    slope = call_step(step, _response(geometry, side * d), y, 0.0, params, k)[1]
    return min(max(0.0, side * slope), 1e300)


_flow_travel, _proximal_travel = flow_solver(_pull)


@jit
def _truncated_travel(geometry, side, goal, far):
    """The way to where P is ``goal``, at most ``far``: by bisection, since P is monotone."""
    low, high = 0.0, far
    if (_response(geometry, side * far) - goal) * side >= 0.0:
        return far
    for _ in range(1100):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if (_response(geometry, side * middle) - goal) * side > 0.0:
            low = middle
        else:
            high = middle
    return high


@jit
def step_in_ball(step, conjugate, params, k, p, y, start, norm2, square, radius, rate, value, slope, c, gap):
    """(c, gap) of a step, where (value, slope, c, gap) are those without a ball, for the prediction p.

    ``start`` is <q, x> and ``square`` is ||x||^2 of the model before it is put into the ball, ``norm2`` is ||q||^2.
    """
    move = rate * c
    end = square - 2.0 * move * start + move * move * norm2
    outside = radius * radius * (1.0 + 1e-15)
    rule = params[k, 0]
    if rule == LINEARIZED or slope == 0.0 or not norm2 * rate > 0.0 or (square <= outside and end <= outside):
        return c, gap
    side = 1.0 if slope > 0.0 else -1.0
    length = math.sqrt(norm2)
    along = start / length
    geometry = (length, along, math.sqrt(max(0.0, square - along * along)), radius)
    if rule == APROX:
        if c == slope:  # the tangent stays above the least loss even where the prediction answers more
            return c, gap
        travel = _truncated_travel(geometry, side, p - rate * norm2 * c, rate * abs(slope))
    elif rule == IWA:
        travel = _flow_travel((step, params, k, y, side, geometry), rate)
    else:
        travel = _proximal_travel((step, params, k, y, side, geometry), rate)
    c = side * min(travel / rate, abs(slope))
    return c, max(0.0, value + call_conjugate(conjugate, c, y, params[k]) - c * p)
