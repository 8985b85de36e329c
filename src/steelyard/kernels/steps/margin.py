"""Steps and conjugates of the exponential, hinge and squared hinge losses, for labels -1 and +1.

``m = y*p`` is the margin and every rule moves it upwards: ``m' = m + travel`` and ``c = -y*travel/a``.
At a kink the slope is the one of the flat side, so that a satisfied margin never moves.
"""

from __future__ import annotations

import math

from steelyard.kernels.layout import APROX, IWA, LINEARIZED, PROXIMAL, RULE, WANTS_GAP
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


def exponential(p, y, a, k, out):
    """e^-m."""
    rule = k[RULE]
    m = y * p
    value = math.exp(-m)
    if a == 0.0 or a * value < NOWHERE or rule == LINEARIZED:
        v = value
    elif rule == APROX:
        v = truncated(value, 1.0, a)
    elif rule == IWA:
        pull = a * value
        v = (math.log1p(pull) if pull < 1e300 else softplus(math.log(a) - m)) / a
    elif rule == PROXIMAL:
        v = omega(math.log(a) - m) / a
    else:
        v = math.nan
    v = min(v, value)  # a denormal product may round above the slope
    gap = 0.0
    if k[WANTS_GAP] != 0.0 and v != value:
        gap = value * bregman_exp((v - value) / value) if value < math.inf else math.inf
    write_step(out, value, -y * value, -y * v, gap)


def exponential_conjugate(s, y, k):
    """v ln v - v for v = -y*s >= 0."""
    v = -y * s
    if v < 0.0:
        return math.inf
    return v * math.log(v) - v if v > 0.0 else 0.0


# --------------------------------------------------------------------------------------- hinge and its square


def hinge(p, y, a, k, out):
    """max(0, 1-m). Every implicit rule is the same: go at unit speed and stop at the margin."""
    short = max(0.0, 1.0 - y * p)
    slope = 1.0 if short > 0.0 else 0.0
    v = math.nan
    if a == 0.0 or k[RULE] == LINEARIZED:
        v = slope
    elif is_implicit(k[RULE]):
        v = truncated(slope, short, a)
    write_step(out, short, -y * slope, -y * v, short * (1.0 - v))


def hinge_conjugate(s, y, k):
    """s*y for v = -y*s in [0, 1]."""
    v = -y * s
    return -v if 0.0 <= v <= 1.0 else math.inf


def squared_hinge(p, y, a, k, out):
    """max(0, 1-m)^2 / 2: the squared loss on the side where it pulls."""
    rule = k[RULE]
    short = max(0.0, 1.0 - y * p)
    if a == 0.0 or rule == LINEARIZED:
        v = short
    elif rule == APROX:
        v = truncated(short, 0.5 * short, a)
    elif rule == IWA:
        v = short * decay(a)
    elif rule == PROXIMAL:
        v = short / (1.0 + a)
    else:
        v = math.nan
    write_step(out, 0.5 * short * short, -y * short, -y * v, 0.5 * (short - v) * (short - v))


def squared_hinge_conjugate(s, y, k):
    """v^2/2 - v for v = -y*s >= 0."""
    v = -y * s
    return 0.5 * v * v - v if v >= 0.0 else math.inf
