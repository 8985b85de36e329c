"""Scalar pieces that the step functions of several losses share.

A step function is ``step(p, y, a, k, out)``: prediction, label, step length, parameters (``layout.RULE`` and after) and
four results, which are the loss's value and slope at ``p``, the surrogate slope ``c``, and the Fenchel-Young gap
``value(p) + conjugate(c) - c*p``, which is never negative and is zero where ``c`` is the slope. A rule that a step
function does not know gives c = NaN.
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import jit
from steelyard.kernels.layout import APROX, IWA, PROXIMAL

_E = tuple(1.0 / math.factorial(n) for n in range(19))
NOWHERE = 1e-290  # a travel so short that the slope stays as it is; numbers below soon have no digits left


@jit
def write_step(out, value, slope, c, gap):
    """Write the results of a step; rounding may not make the gap negative."""
    out[0] = value
    out[1] = slope
    out[2] = c
    out[3] = max(gap, 0.0)


@jit
def is_implicit(rule):
    """Whether it is one of the rules other than linearized: on losses with a kink they are all the same."""
    return rule == APROX or rule == IWA or rule == PROXIMAL


@jit
def decay(a):
    """(1 - e^-a) / a, the mean of e^-s over [0, a]."""
    return -math.expm1(-a) / a


@jit
def truncated(slope, ratio, a):
    """The aProx slope: ``slope * min(1, excess / (a * slope**2))``, where ratio = excess / |slope|.

    The excess is the loss above its infimum. Written so that no square is formed.
    """
    return math.copysign(min(abs(slope), ratio / a), slope)


@jit
def log1p_unit(e, inverse):
    """ln(1 + e) for e in [0, 1], where inverse = 1/(1+e): the fast logarithm, and what the rounding of 1 + e left."""
    u = 1.0 + e
    return math.log(u) + (e - (u - 1.0)) * inverse


@jit
def log_complement(v):
    """ln(1 - v) for v in [0, 1): the fast logarithm, with the rounding of 1 - v divided out."""
    u = 1.0 - v
    return math.log(u) * (v / (1.0 - u)) if u < 1.0 else -v


@jit
def log_excess(t):
    """t - ln(1 + t) for t > -1."""
    if abs(t) > 0.02:
        return t - math.log1p(t)
    u = t * t
    even = 0.5 + u * (0.25 + u * (1.0 / 6.0 + u * 0.125))
    odd = 1.0 / 3.0 + u * (0.2 + u * (1.0 / 7.0 + u / 9.0))
    return u * (even - t * odd)


@jit
def mean_excess(x):
    """(e^x - 1 - x) / x^2 for |x| <= 1: its series, in groups that need not wait for one another."""
    x2 = x * x
    x4 = x2 * x2
    x8 = x4 * x4
    one = (_E[2] + x * _E[3]) + x2 * (_E[4] + x * _E[5])
    two = (_E[6] + x * _E[7]) + x2 * (_E[8] + x * _E[9])
    three = (_E[10] + x * _E[11]) + x2 * (_E[12] + x * _E[13])
    four = (_E[14] + x * _E[15]) + x2 * (_E[16] + x * _E[17])
    return (one + x4 * two) + x8 * ((three + x4 * four) + x8 * _E[18])


@jit
def softplus(t):
    """ln(1 + e^t) without overflow."""
    if t > 0.0:
        return t + math.log1p(math.exp(-t))
    return math.log1p(math.exp(t))


@jit
def bregman_exp_series(t):
    """:func:`bregman_exp` for |t| < 0.052, to 1e-14 of itself."""
    u = t * t
    odd = 1.0 / 6.0 + u * (1.0 / 20.0 + u * (1.0 / 42.0 + u * (1.0 / 72.0 + u * (1.0 / 110.0))))
    even = 0.5 + u * (1.0 / 12.0 + u * (1.0 / 30.0 + u * (1.0 / 56.0 + u * (1.0 / 90.0))))
    return u * (even - t * odd)


@jit
def bregman_exp(t):
    """(1 + t) ln(1 + t) - t for t >= -1: what a Poisson-like conjugate pays for a relative error t."""
    if t <= -1.0:
        return 1.0
    if abs(t) < 0.05:
        return bregman_exp_series(t)
    return (1.0 + t) * math.log1p(t) - t


@jit
def omega(t):
    """Wright's omega function: the w > 0 with w + ln w = t, that is W(e^t) without forming e^t."""
    if t < -40.0:
        return math.exp(t)
    if t > 1e15:  # the next term, ln(t)/t, is below rounding, and squares may overflow
        return t - math.log(t)
    w = math.exp(t) / (1.0 + math.exp(t)) if t < 1.0 else t - math.log(t)
    if t >= 1.0 and w < 0.5:
        w = 0.5
    for _ in range(12):
        r = t - w - math.log(w)
        one = w + 1.0
        common = one * (one + r * (2.0 / 3.0))
        change = r / one * (common - 0.5 * r) / (common - r)
        w *= 1.0 + change
        if abs(change) < 1e-5:  # the iteration is of fourth order: what is left is below rounding
            break
    return w


@jit
def quartic_step(r, second, third):
    """The root's distance for f = r*f' and its Taylor ratios f''/(2f') and f'''/(6f'), to fourth order."""
    return r * (1.0 + r * (second + r * (2.0 * second * second - third)))
