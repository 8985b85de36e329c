"""Steps and conjugates of the losses for real labels and counts.

At a kink (p = y) the slope is zero: a perfect prediction never moves.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import intrinsic

from steelyard.kernels.compile import jit
from steelyard.kernels.layout import APROX, IWA, LINEARIZED, OWN, PROXIMAL, RULE, WANTS_GAP
from steelyard.kernels.steps.lanes import SIXTEEN, array_data, expm1, load, store
from steelyard.kernels.steps.scalar import (
    NOWHERE,
    bregman_exp,
    decay,
    is_implicit,
    omega,
    softplus,
    truncated,
    write_step,
)


def squared(p, y, a, k, out):
    """(p - y)^2 / 2."""
    rule = k[RULE]
    r = p - y
    if a == 0.0 or rule == LINEARIZED:
        c = r
    elif rule == APROX:
        c = truncated(r, 0.5 * abs(r), a)
    elif rule == IWA:
        c = r * decay(a)
    elif rule == PROXIMAL:
        c = r / (1.0 + a)
    else:
        c = math.nan
    write_step(out, 0.5 * r * r, r, c, 0.5 * (r - c) * (r - c))


def squared_conjugate(s, y, k):
    """s^2/2 + s*y."""
    return s * (0.5 * s + y)


@intrinsic
def squared_sixteen(typingctx: Any, p: Any, y: Any, a: Any, at: Any, value: Any, slope: Any, c: Any, gap: Any) -> Any:
    """Sixteen squared IWA steps."""
    signature = types.void(p, y, a, types.intp, value, slope, c, gap)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = {i: array_data(context, builder, sig.args[i], args[i]) for i in (0, 1, 2, 4, 5, 6, 7)}
        at = args[3]
        p, y, a = (load(builder, places[i], at, SIXTEEN) for i in range(3))
        slope = p - y
        c = slope * ((0.0 - expm1((0.0 - a).at_least(-708.0))) / a)
        store(builder, places[4], at, 0.5 * slope * slope)
        store(builder, places[5], at, slope)
        store(builder, places[6], at, c)
        store(builder, places[7], at, 0.5 * (slope - c) * (slope - c))
        return context.get_dummy_value()

    return signature, codegen


def pinball(p, y, a, k, out):
    """k[OWN]*(y - p) below the label, k[OWN + 1]*(p - y) above it. Every implicit rule stops at the label."""
    r = p - y
    slope = 0.0
    if r < 0.0:
        slope = -k[OWN]
    elif r > 0.0:
        slope = k[OWN + 1]
    c = math.nan
    if a == 0.0 or k[RULE] == LINEARIZED:
        c = slope
    elif is_implicit(k[RULE]):
        c = truncated(slope, abs(r), a)
    write_step(out, r * slope, slope, c, r * (slope - c))


def pinball_conjugate(s, y, k):
    """s*y for s in [-k[OWN], k[OWN + 1]]."""
    return s * y if -k[OWN] <= s <= k[OWN + 1] else math.inf


def huber(p, y, a, k, out):
    """r^2/2 for |r| <= delta, then its tangent."""
    rule, delta = k[RULE], k[OWN]
    r = abs(p - y)
    slope = min(r, delta)
    value = 0.5 * r * r if r <= delta else delta * (r - 0.5 * delta)
    if a == 0.0 or rule == LINEARIZED:
        v = slope
    elif rule == APROX:
        v = truncated(slope, 0.5 * r if r <= delta else r - 0.5 * delta, a)
    elif rule != IWA and rule != PROXIMAL:
        v = math.nan
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
    write_step(out, value, side * slope, side * v, gap)


def huber_conjugate(s, y, k):
    """s^2/2 + s*y for |s| <= delta."""
    return s * (0.5 * s + y) if abs(s) <= k[OWN] else math.inf


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
    rule = k[RULE]
    e = math.exp(p)
    value = e - y * p
    slope = e - y
    if a == 0.0 or a * abs(slope) < NOWHERE or rule == LINEARIZED:
        c = slope
    elif rule == APROX:
        # the excess over the minimum, y - y ln y, divided by |slope|
        c = truncated(slope, _poisson_ratio(p - math.log(y)) if y > 0.0 else 1.0, a)
    elif rule != IWA and rule != PROXIMAL:
        c = math.nan
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
    if k[WANTS_GAP] != 0.0 and c != slope:
        if e == 0.0:
            gap = (c + y) * (math.log(c + y) - p - 1.0)
        else:
            gap = e * bregman_exp((c - slope) / e) if e < math.inf else math.inf
    write_step(out, value, slope, c, gap)


def poisson_conjugate(s, y, k):
    """(s+y) ln(s+y) - (s+y) for s >= -y."""
    v = s + y
    if v < 0.0:
        return math.inf
    return v * math.log(v) - v if v > 0.0 else 0.0
