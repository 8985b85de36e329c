"""The step where the prediction answers piecewise linearly: the flow in a regularizer with an L1 penalty.

Let v be how far theta has moved along the row, from 0. The prediction is P(v), with P(0) = p and dP/dv = -side*n(v),
where n is the squared norm of the row over the features that are not zero. It changes at *breakpoints*, where a feature
becomes zero or ceases to be. With s the slope's side, the rules are

    IWA         dv/dtau = |loss'(P(v))|, for the time h
    proximal    v = h |loss'(P(v))|
    aProx       v = h |loss'(p)|, or less: where P(v) is where the tangent reaches the least loss

and c = side * v / h. Between breakpoints P is a line, so each piece is a step of the loss's own. loss'(P(v)) is
monotone in v, so the sandwich lemma holds as it does without a penalty, and for IWA the flow is autonomous: the weights
h1 and then h2 lead as far as h1 + h2, as long as the regularizer stays the same.

Breakpoints stand in ``at``, what n changes by there in ``change``; ``count`` of them, in any order.
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import jit
from steelyard.kernels.intrinsics import call_conjugate, call_step
from steelyard.kernels.layout import APROX, IWA, PROXIMAL, RULE

_FAR = 1e100  # a step so long that aProx reaches the least loss


@jit
def _sift(at, change, first, count):
    """Let the breakpoint ``first`` sink to its place in the heap, whose least one comes first."""
    place, moved = at[first], change[first]
    while 2 * first + 1 < count:
        child = 2 * first + 1
        if child + 1 < count and at[child + 1] < at[child]:
            child += 1
        if at[child] >= place:
            break
        at[first], change[first] = at[child], change[child]
        first = child
    at[first], change[first] = place, moved


@jit
def _speed(loss, spot):
    """|loss'| at a prediction, 0 beyond the minimum."""
    step, params, k, y, side = loss
    return max(0.0, side * call_step(step, spot, y, 0.0, params, k)[1])


@jit
def _travel(loss, spot, n, time):
    """How far the rule gets from a prediction in a time, if n stays as it is."""
    step, params, k, y, _ = loss
    return time * abs(call_step(step, spot, y, time * n, params, k)[2])


@jit
def _time_to(loss, spot, n, distance, limit):
    """The time in which the flow goes a distance, which it does before ``limit``.

    The way is concave in the time: after one step of Newton's method, all others come from below.
    """
    side = loss[4]
    speed = _speed(loss, spot)
    if n == 0.0:
        return distance / speed
    time = distance / speed
    middle, end = _speed(loss, spot - side * n * (0.5 * distance)), _speed(loss, spot - side * n * distance)
    if end > 0.5 * speed:
        time = distance * (1.0 / speed + 4.0 / middle + 1.0 / end) / 6.0
    for _ in range(60):
        time = min(time, limit)
        gone = _travel(loss, spot, n, time)
        left = distance - gone
        if abs(left) <= 1e-14 * distance:
            break
        there = _speed(loss, spot - side * n * gone)
        if not there > 0.0:
            break
        time += left / there
    return time


@jit
def walk(step, conjugate, params, k, start, at, change, count):
    """(c, gap, a) of the step of output k; ``a`` is the length of the step without breakpoints that costs as much.

    ``start`` is (p, y, h, value, slope, n), with n at the start.
    """
    p, y, h, value, slope, n = start
    rule = params[k, RULE]
    if not (rule == IWA or rule == PROXIMAL or rule == APROX):
        return math.nan, math.nan, 0.0
    side = 1.0 if slope > 0.0 else -1.0
    loss = (step, params, k, y, side)
    far = h * abs(slope)
    reach = _FAR * abs(call_step(step, p, y, _FAR, params, k)[2]) if rule == APROX else 0.0
    here, spot, area, left = 0.0, p, 0.0, h
    for i in range(count // 2 - 1, -1, -1):
        _sift(at, change, i, count)
    while True:
        bend = at[0] if count > 0 else math.inf
        leg = bend - here
        if rule == IWA:
            end = here + _travel(loss, spot, n, left)
        elif rule == PROXIMAL:
            end = math.inf
            if count == 0 or h * _speed(loss, spot - side * n * leg) < bend:
                end = max(here, h * abs(call_step(step, spot + side * n * here, y, h * n, params, k)[2]))
        else:
            need = reach - side * (p - spot)
            end = min(far, here + need / n if n * (far - here) > need else far)
        if count == 0 or end <= bend:
            leg = min(end, bend) - here
            break
        if rule == IWA:
            left -= _time_to(loss, spot, n, leg, left)
        area += leg * (side * (p - spot) + 0.5 * n * leg)
        spot -= side * n * leg
        here = bend
        n = max(0.0, n + change[0])
        count -= 1
        at[0], change[0] = at[count], change[count]
        _sift(at, change, 0, count)
        if rule == IWA and not left > 0.0:
            leg = 0.0
            break
    area += leg * (side * (p - spot) + 0.5 * n * leg)
    end = min(here + leg, far)
    c = side * end / h
    gap = max(0.0, value + call_conjugate(conjugate, c, y, params[k]) - c * p)
    return c, gap, 2.0 * area * h / (end * end) if end > 0.0 else 0.0
