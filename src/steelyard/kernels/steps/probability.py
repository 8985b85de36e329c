"""Steps and conjugates of the losses of a probability: w is the one given to the true label.

A linear prediction may leave [0, 1]. Above 1 the label is certain: no loss, no step. Below eps the loss goes on as its
tangent, so that it is finite and convex on the whole line.
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import jit
from steelyard.kernels.layout import APROX, IWA, LINEARIZED, OWN, PROXIMAL, RULE
from steelyard.kernels.steps.scalar import log_excess, truncated, write_step


@jit
def _probability(p, y):
    """(w, 1 - w) of the true label; both from p itself, since 1 - w has no digits left where w is near 1."""
    return (p, 1.0 - p) if y > 0.0 else (1.0 - p, p)


@jit
def _sign(y):
    """+1 or -1: these two losses also take labels 1 and 0, as their authors write them."""
    return 1.0 if y > 0.0 else -1.0


def logarithmic(p, y, a, k, out):
    """-ln w, where w is the probability given to the true label."""
    rule, eps = k[RULE], k[OWN]
    w, short = _probability(p, y)
    value = 0.0
    slope = 0.0
    if w < eps:
        value = (eps - w) / eps - math.log(eps)
        slope = 1.0 / eps
    elif short > 0.0:
        value = -math.log(w) if w < 0.5 else -math.log1p(-short)
        slope = 1.0 / w
    if slope == 0.0 or a == 0.0 or rule == LINEARIZED:
        v = slope
    elif rule == APROX:
        v = truncated(slope, value / slope, a)
    elif rule == IWA:
        travel = 0.0
        left = a
        if w < eps:  # at constant speed 1/eps to eps
            travel = min(a / eps, eps - w)
            left = a - (eps - w) * eps
        if left > 0.0:
            start = max(w, eps)
            rest = 1.0 - eps if w < eps else short
            travel += min(2.0 * left / (start + math.sqrt(start * start + 2.0 * left)), rest)
        v = travel / a
    elif rule != PROXIMAL:
        v = math.nan
    elif w + a / eps <= eps:
        v = slope
    elif short <= a:
        v = short / a
    else:
        root = math.sqrt(w * w + 4.0 * a)
        v = 2.0 / (w + root) if w >= 0.0 else (root - w) / (2.0 * a)
    v = min(v, slope)
    gap = 0.0
    if v != slope:
        gap = value - v * short
        if v > 1.0:  # -ln(v w) + v w - 1, and beside the tangent below eps what its kink adds
            top = max(w, eps)
            gap = log_excess((v - slope) * top) + (top - w) * (slope - v)
    side = _sign(y)
    write_step(out, value, -side * slope, -side * v, gap)


def logarithmic_conjugate(s, y, k):
    """-1 - ln v for v = -y*s in [1, 1/eps], -v below 1; for a negative label, plus v."""
    v = -_sign(y) * s
    if v < 0.0 or v > 1.0 / k[OWN]:
        return math.inf
    if y > 0.0:
        return -v if v <= 1.0 else -1.0 - math.log(v)
    return 0.0 if v <= 1.0 else (v - 1.0) - math.log1p(v - 1.0)


def hellinger(p, y, a, k, out):
    """2 - 2 sqrt(w), where w is the probability given to the true label."""
    rule, eps = k[RULE], k[OWN]
    w, short = _probability(p, y)
    steepest = 1.0 / math.sqrt(eps)
    value = 0.0
    slope = 0.0
    if w < eps:
        value = 2.0 - 2.0 * math.sqrt(eps) + (eps - w) * steepest
        slope = steepest
    elif short > 0.0:
        value = 2.0 * short / (1.0 + math.sqrt(w))
        slope = 1.0 / math.sqrt(w)
    if slope == 0.0 or a == 0.0 or rule == LINEARIZED:
        v = slope
    elif rule == APROX:
        v = truncated(slope, value / slope, a)
    elif rule == IWA:
        travel = 0.0
        left = a
        if w < eps:
            travel = min(a * steepest, eps - w)
            left = a - (eps - w) / steepest
        if left > 0.0:
            start = max(w, eps)
            rest = 1.0 - eps if w < eps else short
            growth = math.expm1(math.log1p(1.5 * left / (start * math.sqrt(start))) * (2.0 / 3.0))
            travel += min(start * growth, rest)
        v = travel / a
    elif rule != PROXIMAL:
        v = math.nan
    elif w + a * steepest <= eps:
        v = slope
    elif short <= a:
        v = short / a
    else:  # r = sqrt(w') solves r^3 - w r - a = 0; the cubic is convex for r > 0, and Newton comes from above
        r = min(1.0, math.sqrt(max(w, 0.0)) + a ** (1.0 / 3.0))
        for _ in range(100):
            change = (r * (r * r - w) - a) / (3.0 * r * r - w)
            r -= change
            if abs(change) <= 1e-9 * r:
                break
        v = 1.0 / r
    v = min(v, slope)
    gap = 0.0
    if v != slope:
        gap = value - v * short
        if v > 1.0:  # (1 - v sqrt(w))^2 / v, and beside the tangent below eps what its kink adds
            top = max(w, eps)
            left = (slope - v) * math.sqrt(top)
            gap = left * left / v + (top - w) * (slope - v)
    side = _sign(y)
    write_step(out, value, -side * slope, -side * v, gap)


def hellinger_conjugate(s, y, k):
    """1/v - 2 for v = -y*s in [1, eps^-1/2], -v below 1; for a negative label, plus v."""
    v = -_sign(y) * s
    if v < 0.0 or v * v > 1.0 / k[OWN]:
        return math.inf
    if y > 0.0:
        return -v if v <= 1.0 else 1.0 / v - 2.0
    return 0.0 if v <= 1.0 else (v - 1.0) * (v - 1.0) / v
