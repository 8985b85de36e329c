"""A learner whose model must stay in a ball of radius D: its step, which is the flow in that regularizer.

Without a ball, moving the model by -v*q changes the prediction by -v*||q||^2. In a ball the prediction answers with

    P(v) = <q, x - v q> / max(1, ||x - v q|| / D),

x the model before it is put into the ball. The IWA step follows dv/ds = slope(P(v)) for the time ``rate``, the
proximal step solves v = rate * slope(P(v)), and aProx stops where P(v) is where the tangent reaches the least loss.
slope(P(v)) is monotone in v, so the sandwich lemma holds as it does without a ball, and H_t(z_t) <= H_t(g_t) at a
constant lam.
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import jit
from steelyard.kernels.flow import flow_solver
from steelyard.kernels.intrinsics import call_conjugate, call_step
from steelyard.kernels.layout import APROX, IWA, LINEARIZED, NORM2, PROXIMAL, RULE, SCALE

_LONGEST = 1e140  # of a step, in the units of the table


@jit
def ball_factor(clocks, k, lam, radius, origin):
    """The factor from w to x: 1/lam for theta, 1 for x itself, and less where the ball of radius D binds."""
    if not origin:
        return clocks[k, SCALE]
    if radius < math.inf:
        return 1.0 / max(lam, math.sqrt(max(clocks[k, NORM2], 0.0)) / radius)
    return 1.0 / lam


@jit
def keep_in_ball(clocks, k, table, radius, origin, rows, lost):
    """After a round, ``rows`` of them so far: the norm is kept right, and the model is put back onto the ball.

    ``lost`` says that its norm has lost its digits.
    """
    if lost or rows % max(table.size // clocks.shape[0], 1024) == 0.0:
        _refresh_norm(clocks, k, table)
    if not origin:
        _project(clocks, k, table, radius)


@jit
def _refresh_norm(clocks, k, table):
    """Recompute ||w||^2 from time to time, so that rounding does not pile up; the cost vanishes over the rows."""
    outputs = clocks.shape[0]
    norm2 = 0.0
    for j in range(table.size // outputs):
        norm2 += table[j * outputs + k] * table[j * outputs + k]
    clocks[k, NORM2] = norm2


@jit
def _project(clocks, k, table, radius):
    """Back onto the ball, center "trajectory": only the common factor changes."""
    outputs = clocks.shape[0]
    norm = clocks[k, SCALE] * math.sqrt(max(clocks[k, NORM2], 0.0))
    if norm > radius:
        clocks[k, SCALE] *= radius / norm
    if clocks[k, SCALE] < 1e-100:
        for j in range(table.size // outputs):
            table[j * outputs + k] *= clocks[k, SCALE]
        clocks[k, NORM2] *= clocks[k, SCALE] * clocks[k, SCALE]
        clocks[k, SCALE] = 1.0


@jit
def _response(shape, v):
    """P(v). ``shape`` is ||q||, the parts of x along q and across it, and D."""
    length, along, across, radius = shape
    left = along - v * length
    return length * left / max(1.0, math.hypot(left, across) / radius)


@jit
def _pull(context, d):
    """The slope at distance d, towards the minimum, never below 0 and never infinite."""
    step, params, k, y, side, shape = context
    slope = call_step(step, _response(shape, side * d), y, 0.0, params, k)[1]
    return min(max(0.0, side * slope), 1e300)


_flow_travel, _proximal_travel = flow_solver(_pull)


@jit
def _truncated_travel(shape, side, goal, far):
    """The way to where P is ``goal``, at most ``far``: by bisection, since P is monotone."""
    low, high = 0.0, far
    if (_response(shape, side * far) - goal) * side >= 0.0:
        return far
    for _ in range(1100):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if (_response(shape, side * middle) - goal) * side > 0.0:
            low = middle
        else:
            high = middle
    return high


@jit
def _step_in_ball(step, conjugate, params, k, clocks, geometry, p, y, value, slope, c, gap):
    """:func:`ball_step`, however long it is."""
    factor, unit, norm2, radius, rate = geometry
    start, square = p / factor * unit, max(clocks[k, NORM2], 0.0) * unit * unit
    move = rate * c
    end = square - 2.0 * move * start + move * move * norm2
    outside = radius * radius * (1.0 + 1e-15)
    rule = params[k, RULE]
    if rule == LINEARIZED or slope == 0.0 or not norm2 * rate > 0.0 or (square <= outside and end <= outside):
        return c, gap
    side = 1.0 if slope > 0.0 else -1.0
    length = math.sqrt(norm2)
    along = start / length
    shape = (length, along, math.sqrt(max(0.0, square - along * along)), radius)
    if rule == APROX:
        if c == slope:  # the tangent stays above the least loss even where the prediction answers more
            return c, gap
        travel = _truncated_travel(shape, side, p - rate * norm2 * c, rate * abs(slope))
    elif rule == IWA:
        travel = _flow_travel((step, params, k, y, side, shape), rate)
    elif rule == PROXIMAL:
        travel = _proximal_travel((step, params, k, y, side, shape), rate)
    else:
        return math.nan, math.nan
    c = side * min(travel / rate, abs(slope))
    return c, max(0.0, value + call_conjugate(conjugate, c, y, params[k]) - c * p)


@jit
def ball_step(step, conjugate, params, k, clocks, geometry, p, y, value, slope, c, gap):
    """(c, gap) of a step of output k, where (value, slope, c, gap) are those without a ball, for the prediction p.

    ``geometry`` is (factor from w to the model in the ball, factor from w to the model before it is put there, ||q||^2,
    D, rate). A step is cut short where the squares of the weights would overflow.
    """
    c, gap = _step_in_ball(step, conjugate, params, k, clocks, geometry, p, y, value, slope, c, gap)
    _, unit, norm2, _, rate = geometry
    longest = _LONGEST * unit
    move = rate * abs(c) * math.sqrt(norm2)
    if move > longest:
        c *= longest / move
        gap = max(0.0, value + call_conjugate(conjugate, c, y, params[k]) - c * p)
    return c, gap


@jit
def add_to_norm(clocks, k, added):
    """||w||^2 after a step; returns whether so much of it was taken away that rounding is left."""
    before = clocks[k, NORM2]
    clocks[k, NORM2] = before + added
    return clocks[k, NORM2] < 1e-3 * before
