"""Step functions and conjugates of the losses for labels -1 and +1.

``m = y*p`` is the margin and every rule moves it upwards: ``m' = m + travel`` and ``c = -y*travel/a``.
At a kink the slope is the one of the flat side, so that a satisfied margin never moves.
"""

from __future__ import annotations

import math

from steelyard._compile import jit
from steelyard._scalar import (
    APROX,
    IWA,
    LINEARIZED,
    NOWHERE,
    bregman_exp,
    bregman_exp_series,
    decay,
    emit,
    log1p_unit,
    log_complement,
    log_excess,
    mean_excess,
    omega,
    quartic_step,
    softplus,
    truncated,
)

# ------------------------------------------------------------------------------------------------ logistic


# A short travel D, of tau = a*sigma, is solved for u = (1 - D/tau) / kappa, in few steps that wait for each other: a
# row waits for them. Then v = sigma - sigma*kappa*u.


@jit
def _series_flow(tau, k):
    """u for tau <= 0.006 and kappa = k: its series."""
    third = k * (5.0 / 12.0 - 0.625 * k) - 1.0 / 24.0
    fourth = k * (5.0 / 24.0 + k * (0.875 * k - 0.875)) - 1.0 / 120.0
    fifth = k * (7.0 / 90.0 + k * (k * (1.75 - 1.3125 * k) - 49.0 / 72.0)) - 1.0 / 720.0
    sixth = k * (17.0 / 720.0 + k * (k * (1.875 + k * (2.0625 * k - 3.4375)) - 137.0 / 360.0)) - 1.0 / 5040.0
    square = tau * tau
    start = 0.5 - tau * (0.5 * k - 1.0 / 6.0)
    return tau * (start - square * ((third + tau * fourth) + square * (fifth + tau * sixth)))


@jit
def _short_flow(tau, sigma, k):
    """u for tau <= 1 and kappa = k: from a fit of tau/D that puts D within 7e-5, one step of fourth order.

    The derivative of f = sigma*D + k*(e^D - 1) - tau is g + f, where g = 1 + tau - sigma*D: so the division by g need
    not wait for e^D.
    """
    k2 = k * k
    zeroth = (0.49890557 - 0.07517666 * k) + k2 * ((0.26183197 - 0.29487782 * k) + k2 * 0.10541659)
    first = (0.15148276 + 0.12647952 * k) + k2 * ((1.37993476 * k - 1.23222238) - k2 * 0.49273786)
    second = (0.06339919 - 0.6754346 * k) + k2 * ((1.68426346 - 1.60820246 * k) + k2 * 0.54976937)
    bend = tau * (zeroth + tau * (first + tau * second))
    rho = 1.0 / (1.0 + k * bend)
    u = bend * rho
    d = tau * rho
    mean = d * mean_excess(d)
    inverse = 1.0 / (1.0 + tau - sigma * d)
    r = (rho * mean - u) * inverse
    x = tau * k * r  # f / g
    curve = 0.5 * k * (1.0 + d * (1.0 + mean)) * inverse
    return u + r * (1.0 + x * (curve - 1.0 + x * (1.0 + curve * (2.0 * curve - 10.0 / 3.0))))


@jit
def _tiny_gap(u, sigma, kappa):
    """The gap for u < 0.004: sigma*kappa*u^2 sum_n u^n (kappa^(n+1) - (-sigma)^(n+1)) / ((n+1)(n+2))."""
    s = sigma * kappa
    d = kappa - sigma
    high = d * (1.0 / 20.0 - 0.1 * s) + u * (1.0 / 30.0 - s * (1.0 / 6.0) * (1.0 - s))
    return s * (u * u) * (0.5 + u * (d * (1.0 / 6.0) + u * ((1.0 / 12.0 - 0.25 * s) + u * high)))


@jit
def _entropy(v):
    """v ln v + (1-v) ln(1-v)."""
    left = v * math.log(v) if v > 0.0 else 0.0
    return left + ((1.0 - v) * log_complement(v) if v < 1.0 else 0.0)


@jit
def _gap(u, v, sigma, kappa, m, value):
    """The gap for v = sigma - sigma*kappa*u, as two parts that are not negative; value + v*m + entropy would cancel."""
    if u < 0.052:
        return sigma * bregman_exp_series(-kappa * u) + kappa * bregman_exp_series(sigma * u)
    if u < 1e300:
        return sigma * bregman_exp(-kappa * u) + kappa * bregman_exp(sigma * u)
    return value + v * m + _entropy(v)


@jit
def _long_flow(m, a):
    """The travel D of the flow for tau > 1: D + e^m (e^D - 1) = a.

    It ends at m' with m' + e^m' = a + m + e^m, so e^m' is omega of that; the form is taken that keeps digits. (The
    Lambert-W form that is usually printed cancels and overflows.)
    """
    start = math.exp(m)
    half = 0.5 * a + 0.5 * m + 0.5 * start
    if half > 1e300:  # twice that may overflow, and the next term of omega is below rounding
        return math.log(half) + math.log(2.0) - m
    end = omega(a + m + start)
    return math.log(end) - m if end > 1.0 else a - (end - start)


@jit
def _logistic_proximal(m, sigma, kappa, a):
    """The travel D of the proximal step: D (1 + e^(m+D)) = a."""
    tau = a * sigma
    if tau <= 1.0:
        d = 2.0 * tau / (1.0 + math.sqrt(1.0 + 4.0 * kappa * tau))
        for _ in range(8):
            x = math.expm1(d)
            grown = kappa * (1.0 + x)
            slope = 1.0 + kappa * x + d * grown
            change = quartic_step(
                (d * (1.0 + kappa * x) - tau) / slope,
                grown * (2.0 + d) / (2.0 * slope),
                grown * (3.0 + d) / (6.0 * slope),
            )
            d -= change
            if abs(change) <= 1e-4 * min(d, 1.0):
                break
        return d
    # Newton on ln D + ln(1+e^(m+D)) = ln a in the variable ln D, where it is convex: from above it never undershoots.
    d = min(tau, softplus(math.log(a) - m))
    for _ in range(60):
        u = m + d
        s = 1.0 / (1.0 + math.exp(-u))
        change = (math.log(d) + softplus(u) - math.log(a)) / (1.0 + d * s)
        d *= math.exp(-change)
        if abs(change) <= 1e-9:
            break
    return d


def logistic(p, y, a, k, out):
    """ln(1 + e^-m)."""
    rule = k[0]
    m = y * p
    e = math.exp(-abs(m))
    more = 1.0 / (1.0 + e)
    less = e * more
    sigma, kappa = (less, more) if m > 0.0 else (more, less)
    tau = a * sigma
    gap = 0.0
    if rule == IWA and tau <= 1.0:  # nearly always, and apart: there are few branches here that are hard to foresee
        tiny = tau <= 0.006
        u = _series_flow(tau, kappa) if tiny else _short_flow(tau, sigma, kappa)
        v = min(sigma - sigma * kappa * u, sigma)  # rounding must not pass the slope
        value = log1p_unit(e, more) + max(-m, 0.0)  # after v, for which the row waits
        if k[1] != 0.0:
            gap = _tiny_gap(u, sigma, kappa) if tiny else _gap(u, v, sigma, kappa, m, value)
        emit(out, value, -y * sigma, -y * v, gap)
        return
    value = log1p_unit(e, more) + max(-m, 0.0)
    u = -1.0  # where it is not known otherwise
    if tau < NOWHERE or rule == LINEARIZED:
        v = sigma
    elif rule == APROX:
        v = truncated(sigma, value / sigma if sigma > 0.0 else 1.0, a)  # for e^-m below rounding, value / slope is 1
    elif rule == IWA:
        d = _long_flow(m, a)
        v = d / a
        if k[1] != 0.0:  # two forms of the same, of which one does not cancel
            u = (1.0 - d / tau) / kappa if kappa > 0.5 else (math.expm1(d) / tau - 1.0) / sigma
    else:
        d = _logistic_proximal(m, sigma, kappa, a)
        v = d / a
        if k[1] != 0.0:
            u = math.expm1(d) * v / sigma
    v = min(v, sigma)
    if k[1] != 0.0:
        if u < 0.0 and v != sigma:
            u = (sigma - v) * (1.0 + e) * ((1.0 + e) / e)
        if u > 0.0:
            gap = _gap(u, v, sigma, kappa, m, value)
    emit(out, value, -y * sigma, -y * v, gap)


def logistic_conjugate(s, y, k):
    """v ln v + (1-v) ln(1-v) for v = -y*s in [0, 1]."""
    v = -y * s
    if v < 0.0 or v > 1.0:
        return math.inf
    return _entropy(v)


# --------------------------------------------------------------------------------------------- exponential


def exponential(p, y, a, k, out):
    """e^-m."""
    rule = k[0]
    m = y * p
    value = math.exp(-m)
    if a == 0.0 or a * value < NOWHERE or rule == LINEARIZED:
        v = value
    elif rule == APROX:
        v = truncated(value, 1.0, a)
    elif rule == IWA:
        pull = a * value
        v = (math.log1p(pull) if pull < 1e300 else softplus(math.log(a) - m)) / a
    else:
        v = omega(math.log(a) - m) / a
    v = min(v, value)  # a denormal product may round above the slope
    gap = 0.0
    if k[1] != 0.0 and v != value:
        gap = value * bregman_exp((v - value) / value) if value < math.inf else math.inf
    emit(out, value, -y * value, -y * v, gap)


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
    v = slope if a == 0.0 or k[0] == LINEARIZED else truncated(slope, short, a)
    emit(out, short, -y * slope, -y * v, short * (1.0 - v))


def hinge_conjugate(s, y, k):
    """s*y for v = -y*s in [0, 1]."""
    v = -y * s
    return -v if 0.0 <= v <= 1.0 else math.inf


def squared_hinge(p, y, a, k, out):
    """max(0, 1-m)^2 / 2: the squared loss on the side where it pulls."""
    rule = k[0]
    short = max(0.0, 1.0 - y * p)
    if a == 0.0 or rule == LINEARIZED:
        v = short
    elif rule == APROX:
        v = truncated(short, 0.5 * short, a)
    elif rule == IWA:
        v = short * decay(a)
    else:
        v = short / (1.0 + a)
    emit(out, 0.5 * short * short, -y * short, -y * v, 0.5 * (short - v) * (short - v))


def squared_hinge_conjugate(s, y, k):
    """v^2/2 - v for v = -y*s >= 0."""
    v = -y * s
    return 0.5 * v * v - v if v >= 0.0 else math.inf


# ------------------------------------------------- losses of a probability: w is the one of the true label
# A linear prediction may leave [0, 1]. Above 1 the label is certain: no loss, no step. Below eps the loss goes on
# as its tangent, so that it is finite and convex on the whole line.


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
    rule, eps = k[0], k[2]
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
    emit(out, value, -side * slope, -side * v, gap)


def logarithmic_conjugate(s, y, k):
    """-1 - ln v for v = -y*s in [1, 1/eps], -v below 1; for a negative label, plus v."""
    v = -_sign(y) * s
    if v < 0.0 or v > 1.0 / k[2]:
        return math.inf
    if y > 0.0:
        return -v if v <= 1.0 else -1.0 - math.log(v)
    return 0.0 if v <= 1.0 else (v - 1.0) - math.log1p(v - 1.0)


def hellinger(p, y, a, k, out):
    """2 - 2 sqrt(w), where w is the probability given to the true label."""
    rule, eps = k[0], k[2]
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
    emit(out, value, -side * slope, -side * v, gap)


def hellinger_conjugate(s, y, k):
    """1/v - 2 for v = -y*s in [1, eps^-1/2], -v below 1; for a negative label, plus v."""
    v = -_sign(y) * s
    if v < 0.0 or v * v > 1.0 / k[2]:
        return math.inf
    if y > 0.0:
        return -v if v <= 1.0 else 1.0 / v - 2.0
    return 0.0 if v <= 1.0 else (v - 1.0) * (v - 1.0) / v
