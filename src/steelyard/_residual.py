"""Step functions and conjugates of the losses for real labels.

At a kink (p = y) the slope is zero: a perfect prediction never moves.
"""

from __future__ import annotations

import math

from steelyard._compile import jit
from steelyard._scalar import APROX, IWA, LINEARIZED, NOWHERE, bregman_exp, decay, emit, omega, softplus, truncated


def squared(p, y, a, k, out):
    """(p - y)^2 / 2."""
    rule = k[0]
    r = p - y
    if a == 0.0 or rule == LINEARIZED:
        c = r
    elif rule == APROX:
        c = truncated(r, 0.5 * abs(r), a)
    elif rule == IWA:
        c = r * decay(a)
    else:
        c = r / (1.0 + a)
    emit(out, 0.5 * r * r, r, c, 0.5 * (r - c) * (r - c))


def squared_conjugate(s, y, k):
    """s^2/2 + s*y."""
    return s * (0.5 * s + y)


def pinball(p, y, a, k, out):
    """k[2]*(y - p) below the label, k[3]*(p - y) above it. Every implicit rule stops at the label."""
    r = p - y
    slope = 0.0
    if r < 0.0:
        slope = -k[2]
    elif r > 0.0:
        slope = k[3]
    c = slope if a == 0.0 or k[0] == LINEARIZED else truncated(slope, abs(r), a)
    emit(out, r * slope, slope, c, r * (slope - c))


def pinball_conjugate(s, y, k):
    """s*y for s in [-k[2], k[3]]."""
    return s * y if -k[2] <= s <= k[3] else math.inf


def huber(p, y, a, k, out):
    """r^2/2 for |r| <= delta, then its tangent."""
    rule, delta = k[0], k[2]
    r = abs(p - y)
    slope = min(r, delta)
    value = 0.5 * r * r if r <= delta else delta * (r - 0.5 * delta)
    if a == 0.0 or rule == LINEARIZED:
        v = slope
    elif rule == APROX:
        v = truncated(slope, 0.5 * r if r <= delta else r - 0.5 * delta, a)
    elif r - a * delta >= delta:  # the whole step stays on the tangent
        v = delta
    elif rule == IWA:
        if r <= delta:
            v = r * decay(a)
        else:
            v = ((r - delta) - delta * math.expm1(-(a - (r - delta) / delta))) / a
    else:
        v = r / (1.0 + a)
    side = math.copysign(1.0, p - y)
    gap = 0.5 * (r - v) * (r - v) if r <= delta else (delta - v) * (r - 0.5 * (delta + v))
    emit(out, value, side * slope, side * v, gap)


def huber_conjugate(s, y, k):
    """s^2/2 + s*y for |s| <= delta."""
    return s * (0.5 * s + y) if abs(s) <= k[2] else math.inf


@jit
def _poisson_flow(p, y, a, slope):
    """The travel D = p - u of the flow: e^D = e^(-ya) + e^p (1 - e^(-ya)) / y."""
    ya = y * a
    mean = decay(ya) if ya > 0.0 else 1.0
    growth = a * mean * slope
    if -0.5 < growth < 1e300:
        return math.log1p(growth)
    if ya <= 0.0:
        return softplus(math.log(a) + p)
    grown = p + math.log(mean) + math.log(a)
    top, low = max(grown, -ya), min(grown, -ya)
    return top + math.log1p(math.exp(low - top))


@jit
def _poisson_proximal(p, y, a, far):
    """The travel D of the proximal step: D = a (e^(p-D) - y). The flow's travel ``far`` bounds it."""
    if y * a <= 0.0:
        return omega(math.log(a) + p)
    ya = y * a
    goal = p - math.log(y)
    low, high = min(0.0, far), max(0.0, far)
    d = goal * (ya / (1.0 + ya))
    for _ in range(200):
        if not low < d < high:
            d = 0.5 * (low + high)
            if not low < d < high:
                break
        growth = d / ya
        f = d - goal + (math.log1p(growth) if growth < 1e300 else math.log(d) - math.log(ya))
        if f > 0.0:
            high = d
        else:
            low = d
        change = f / (1.0 + 1.0 / (ya + d))
        d -= change
        if abs(change) <= 1e-13 * abs(d):
            break
    return d


@jit
def _poisson_ratio(t):
    """|1 - t/(e^t - 1)|, the loss above its minimum over its slope at p = ln y + t."""
    if abs(t) < 1e-2:
        return abs(t) * (0.5 - t * (1.0 / 12.0 - t * t / 720.0))
    if t > 700.0:
        return 1.0
    return abs(1.0 - t / math.expm1(t))


def poisson(p, y, a, k, out):
    """e^p - y*p, the Poisson deviance with a log link up to a constant of y."""
    rule = k[0]
    e = math.exp(p)
    value = e - y * p
    slope = e - y
    if a == 0.0 or a * abs(slope) < NOWHERE or rule == LINEARIZED:
        c = slope
    elif rule == APROX:
        # the excess over the minimum, y - y ln y, divided by |slope|
        c = truncated(slope, _poisson_ratio(p - math.log(y)) if y > 0.0 else 1.0, a)
    else:
        travel = _poisson_flow(p, y, a, slope)
        if rule != IWA:
            travel = _poisson_proximal(p, y, a, travel)
        c = travel / a
    if slope > 0.0:
        c = min(c, slope)
    else:
        c = max(c, slope)
    gap = 0.0
    if k[1] != 0.0 and c != slope:
        if e == 0.0:
            gap = (c + y) * (math.log(c + y) - p - 1.0)
        else:
            gap = e * bregman_exp((c - slope) / e) if e < math.inf else math.inf
    emit(out, value, slope, c, gap)


def poisson_conjugate(s, y, k):
    """(s+y) ln(s+y) - (s+y) for s >= -y."""
    v = s + y
    if v < 0.0:
        return math.inf
    return v * math.log(v) - v if v > 0.0 else 0.0
