"""The step and the conjugate of a user's own convex loss, from nothing but its value and its slope.

Both functions come as addresses inside the parameters, so this file is compiled once, cached, and serves every loss.

The flow's travel time is an integral: to move from p to p' takes ``∫ du / |slope(u)|``. The solver advances by
proximal steps for the time that is left. By the sandwich lemma a proximal step never passes the flow, so the time
left shrinks to zero from above, quadratically at the end, and every integral stays on the side where the loss pulls.
"""

from __future__ import annotations

import math

from steelyard._compile import call_scalar, jit
from steelyard._scalar import APROX, IWA, LINEARIZED, emit, truncated

# after the rule and the wish for a gap: addresses of value and slope, infimum of the loss
_VALUE, _SLOPE, _INFIMUM = 2, 3, 4

_LARGE = 1e300  # a user's loss may overflow where its flow does not

# The 13-point Kronrod extension of Gauss-Lobatto rules (Gander & Gautschi, 2000), on [-1, 1]: nodes from the outside
# in, their weights, and the weights of the 7-point rule inside it.
_NODES = (1.0, 0.942882415695480, math.sqrt(2.0 / 3.0), 0.641853342345781, math.sqrt(0.2), 0.236383199662150)
_FINE = (
    0.0158271919734802,
    0.094273840218850,
    0.155071987336585,
    0.188821573960182,
    0.199773405226859,
    0.224926465333340,
)
_FINE_MIDDLE = 0.242611071901408
_COARSE = (77.0 / 1470.0, 0.0, 432.0 / 1470.0, 0.0, 625.0 / 1470.0, 0.0)
_COARSE_MIDDLE = 672.0 / 1470.0


@jit
def _pull(slope, u, y, side):
    """How fast the flow moves at u: the slope, towards the minimum, never below 0 and never infinite."""
    return min(max(0.0, side * call_scalar(slope, u, y)), _LARGE)


@jit
def _proximal_travel(slope, u, y, side, time):
    """The D >= 0 with D = time * pull(u - side*D), to the last bits, by bracketing.

    The unknown spans hundreds of decades, so a bracket is first found by ever larger factors, then narrowed by
    secants of (D - time*pull)/(D + time*pull), which is bounded and increasing, with bisections in between.
    """
    high = time * _pull(slope, u, y, side)
    if high == 0.0:
        return 0.0
    high = min(high, 1e300)
    f_high = 1.0
    low, f_low = high, 1.0
    factor = 0.5
    for _ in range(64):
        move = time * _pull(slope, u - side * low, y, side)
        f_low = (low - move) / (low + move)
        if f_low <= 0.0:
            break
        high, f_high = low, f_low
        low = max(low * factor, 1e-300)
        factor *= factor
    for i in range(200):
        if high - low <= 4e-16 * high or f_low == 0.0:
            break
        if high > 4.0 * low:
            d = math.sqrt(low) * math.sqrt(high)
        else:
            d = low - f_low * (high - low) / (f_high - f_low)
            margin = 1e-16 * high
            if i % 3 == 2 or not low + margin < d < high - margin:
                d = 0.5 * (low + high)
        move = time * _pull(slope, u - side * d, y, side)
        f = (d - move) / (d + move)
        if f > 0.0:
            high, f_high = d, f
        else:
            low, f_low = d, f
    return low


@jit
def _travel_time(slope, u, y, side, distance, tolerance):
    """∫ 1/pull over the way from u, by panels that shrink at kinks and grow back.

    The rule has nodes at both ends of a panel: a kink just before the end would hide between other nodes.
    The tolerance is absolute. A relative one would chase the rounding noise of slopes near the minimum.
    """
    total = 0.0
    start = 0.0
    width = distance
    for count in range(2000):
        width = min(width, distance - start)
        half = 0.5 * width
        middle = start + half
        value = 1.0 / _pull(slope, u - side * middle, y, side)
        fine = _FINE_MIDDLE * value
        coarse = _COARSE_MIDDLE * value
        for j in range(6):
            shift = half * _NODES[j]
            value = 1.0 / _pull(slope, u - side * (middle - shift), y, side)
            value += 1.0 / _pull(slope, u - side * (middle + shift), y, side)
            fine += _FINE[j] * value
            coarse += _COARSE[j] * value
        panel = half * fine
        error = abs(half * coarse - panel)
        # written so that an infinite panel, beside a minimum, is accepted: the flow takes for ever to get there
        if not error > max(tolerance, 1e-14 * (total + panel)) or width <= 1e-12 * distance or count > 1000:
            total += panel
            start += width
            width *= 4.0
        else:
            width *= 0.5
        if start >= distance or start + width == start:
            break
    return total


@jit
def _flow_travel(slope, p, y, side, a):
    """How far the flow gets from p in time a."""
    travel = 0.0
    left = a
    for _ in range(100):
        u = p - side * travel
        speed = _pull(slope, u, y, side)
        if left * speed <= 1e-14 * travel:  # what is left moves nothing any more
            travel += left * speed
            break
        d = _proximal_travel(slope, u, y, side, left)
        if d <= 1e-17 * travel:
            break
        # Onwards the flow is no faster than at the end of this leg, d/left: what an error in time can move it by.
        left -= _travel_time(slope, u, y, side, d, 1e-13 * (travel + d) * (left / d))
        travel += d
        if not left > 0.0:
            break
    return travel


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
    rule = k[0]
    slope_at = k[_SLOPE]
    value = call_scalar(k[_VALUE], p, y)
    slope = call_scalar(slope_at, p, y)
    side = 1.0 if slope > 0.0 else -1.0
    if a == 0.0 or a * slope == 0.0 or rule == LINEARIZED:
        c = slope
    elif rule == APROX:
        c = truncated(slope, (min(value, _LARGE) - k[_INFIMUM]) / min(abs(slope), _LARGE), a)
    elif rule == IWA:
        c = side * _flow_travel(slope_at, p, y, side, a) / a
    else:
        c = side * _proximal_travel(slope_at, p, y, side, a) / a
    if slope > 0.0:
        c = min(c, slope)
    else:
        c = max(c, slope)
    gap = 0.0
    if k[1] != 0.0 and c != slope:
        # the slope passes c between the minimum and p, and aProx may stop short of the proximal point
        end = p - a * c
        for _ in range(64):
            if (call_scalar(slope_at, end, y) - c) * side <= 0.0:
                break
            end = p - 2.0 * (p - end)
        u = _slope_inverse(slope_at, y, c, min(p, end), max(p, end))
        gap = value - call_scalar(k[_VALUE], u, y) - c * (p - u) if value < math.inf else math.inf
    emit(out, value, slope, c, gap)


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
