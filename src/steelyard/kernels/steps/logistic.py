"""The logistic loss: its step, for one number and for eight or sixteen at a time, and its conjugate.

``m = y*p`` is the margin and every rule moves it upwards: ``m' = m + D`` and ``c = -y*D/a``. IWA is ``_series_flow``,
``_short_flow`` and ``_long_flow`` for one number, and ``_last_step`` in vectors, which the mixture and banks run.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from steelyard.kernels.compile import f8, jit
from steelyard.kernels.layout import APROX, IWA, LINEARIZED, PROXIMAL, RULE, WANTS_GAP
from steelyard.kernels.steps.lanes import (
    SIXTEEN,
    Lanes,
    array_data,
    exp,
    expm1,
    in_all,
    load,
    log,
    log1p,
    rough_log,
    series,
    spread,
    store,
)
from steelyard.kernels.steps.scalar import (
    NOWHERE,
    bregman_exp,
    bregman_exp_series,
    log1p_unit,
    log_complement,
    mean_excess,
    omega,
    quartic_step,
    softplus,
    truncated,
    write_step,
)

# ------------------------------------------------------------------------------------------------- one number

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
    rule = k[RULE]
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
        if k[WANTS_GAP] != 0.0:
            gap = _tiny_gap(u, sigma, kappa) if tiny else _gap(u, v, sigma, kappa, m, value)
        write_step(out, value, -y * sigma, -y * v, gap)
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
        if k[WANTS_GAP] != 0.0:  # two forms of the same, of which one does not cancel
            u = (1.0 - d / tau) / kappa if kappa > 0.5 else (math.expm1(d) / tau - 1.0) / sigma
    elif rule == PROXIMAL:
        d = _logistic_proximal(m, sigma, kappa, a)
        v = d / a
        if k[WANTS_GAP] != 0.0:
            u = math.expm1(d) * v / sigma
    else:
        v = math.nan
    v = min(v, sigma)
    if k[WANTS_GAP] != 0.0:
        if u < 0.0 and v != sigma:
            u = (sigma - v) * (1.0 + e) * ((1.0 + e) / e)
        if u > 0.0:
            gap = _gap(u, v, sigma, kappa, m, value)
    write_step(out, value, -y * sigma, -y * v, gap)


def logistic_conjugate(s, y, k):
    """v ln v + (1-v) ln(1-v) for v = -y*s in [0, 1]."""
    v = -y * s
    if v < 0.0 or v > 1.0:
        return math.inf
    return _entropy(v)


# ------------------------------------------------------------------------------------- eight or sixteen at a time


def _losses(m: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(value, sigma, kappa) at margins: the loss, and the probabilities of the other label and of the label."""
    e = exp(-abs(m))
    more = 1.0 / (1.0 + e)
    less = e * more
    value = log1p(e, more) + (0.0 - m).at_least(0.0)
    return value, m.where(">", 0.0, less, more), m.where(">", 0.0, more, less)


# The travel D of IWA solves f = sigma*D + kappa*(e^D - 1) - tau = 0, where tau = a*sigma.


def _near_flow(tau: Lanes, sigma: Lanes, kappa: Lanes, steps: int) -> Lanes:
    """D within 4e-4, for two ``steps`` of Halley's, from its two upper bounds, which are within two fifths of it."""
    d = rough_log(1.0 + tau / kappa).at_most(tau)
    for _ in range(steps):
        x = expm1(d)
        f = sigma.times_plus(d, kappa.times_plus(x, -tau))
        slope = kappa.times_plus(x, 1.0)
        d = d - f * slope / slope.times_plus(slope, -0.5 * kappa.times_plus(x, kappa) * f)
    return d


def _last_step(d: Lanes, tau: Lanes, sigma: Lanes, kappa: Lanes) -> Lanes:
    """One step of fifth order: to 1e-13, from within 4e-4."""
    x = expm1(d)
    f = sigma.times_plus(d, kappa.times_plus(x, -tau))
    inverse = 1.0 / kappa.times_plus(x, 1.0)
    r, q = f * inverse, kappa.times_plus(x, kappa) * inverse
    fourth = q * q.times_plus(q * 0.625 - 5 / 12, 1 / 24)
    return d - r * r.times_plus(0.5 * q + r * (q * (0.5 * q - 1 / 6) + r * fourth), 1.0)


def _rough_flow(builder: Any, tau: Lanes, sigma: Lanes, kappa: Lanes) -> Lanes:
    """D within 1e-6 for margins above -10, and within 2e-4 down to -30; a few terms will do where all D are short."""
    start = cgutils.alloca_once(builder, tau.type)
    short = in_all(builder, builder.fcmp_ordered("<=", tau.value, tau.like(0.5)))
    with builder.if_else(short) as (then, otherwise):
        with then:
            builder.store((tau / tau.times_plus(0.5 * kappa, 1.0)).value, start)
        with otherwise:
            builder.store(_near_flow(tau, sigma, kappa, 1).value, start)
    return _last_step(Lanes(builder, builder.load(start)), tau, sigma, kappa)


@intrinsic
def logistic_lanes(typingctx: Any, p: Any, y: Any, a: Any, value: Any, slope: Any, kappa: Any, ratio: Any) -> Any:
    """Eight logistic steps with one label: value, slope, ``kappa``, the label's probability, and ``ratio = c/slope``.

    Returns whether they are right: for |p| <= 30 and a in [1e-100, 1e8]. The ratio has the digits that weights of
    single precision need.
    """
    signature = types.boolean(p, f8, a, value, slope, kappa, ratio)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = {i: array_data(context, builder, sig.args[i], args[i]) for i in (0, 2, 3, 4, 5, 6)}
        at = ir.Constant(ir.IntType(64), 0)
        p, y, a = load(builder, places[0], at), spread(builder, args[1]), load(builder, places[2], at)
        value, sigma, kappa = _losses(y * p)
        tau = a * sigma
        inverse = 1.0 / tau
        store(builder, places[3], at, value)
        store(builder, places[4], at, -y * sigma)
        store(builder, places[5], at, kappa)
        store(builder, places[6], at, (_rough_flow(builder, tau, sigma, kappa) * inverse).at_most(1.0))
        bounds = [(abs(p), "<=", 30.0), (a, ">=", 1e-100), (a, "<=", 1e8)]
        return in_all(builder, *(builder.fcmp_ordered(sign, x.value, x.like(bound)) for x, sign, bound in bounds))

    return signature, codegen


@intrinsic
def probability_lanes(typingctx: Any, p: Any, y: Any, at: Any, value: Any, other: Any, likely: Any) -> Any:
    """Logistic losses of eight predictions from ``at`` on, and the probabilities of the other label and the label."""
    signature = types.void(p, f8, types.intp, value, other, likely)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = [array_data(context, builder, sig.args[i], args[i]) for i in (0, 3, 4, 5)]
        m = spread(builder, args[1]) * load(builder, places[0], args[2])
        for place, what in zip(places[1:], _losses(m), strict=True):
            store(builder, place, args[2], what)
        return context.get_dummy_value()

    return signature, codegen


def _entropy_lanes(v: Lanes) -> Lanes:
    """v ln v + (1-v) ln(1-v) for v in (0, 1); 1-v is kept normal, where its logarithm does not matter any more."""
    rest = (1.0 - v).at_least(1e-300)
    return v * log(v.at_least(1e-300)) + rest * (log(rest) + ((1.0 - rest) - v) / rest)


def _logistic_gap(value: Lanes, m: Lanes, sigma: Lanes, kappa: Lanes, v: Lanes) -> Lanes:
    """value + v*m + entropy(v), and its series where v is near sigma."""
    short = sigma - v

    def excess(t: Lanes) -> Lanes:
        u = t * t
        return u * (series(u, [0.5, 1 / 12, 1 / 30, 1 / 56]) - t * series(u, [1 / 6, 0.05, 1 / 42]))

    near = sigma * excess(0.0 - short / sigma) + kappa * excess(short / kappa)
    far = value + v * m + _entropy_lanes(v)
    return short.where("<", 0.02 * sigma.at_most(kappa), near, far).at_least(0.0)


def _logistic_sixteen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    places = {i: array_data(context, builder, sig.args[i], args[i]) for i in range(len(args)) if i != 3}
    at = args[3]
    p, y, a = (load(builder, places[i], at, SIXTEEN) for i in range(3))
    value, sigma, kappa = _losses(y * p)
    tau = a * sigma
    d = _last_step(_near_flow(tau, sigma, kappa, 2), tau, sigma, kappa)
    v = (d / a).at_most(sigma)
    away = -y
    store(builder, places[4], at, value)
    store(builder, places[5], at, away * sigma)
    store(builder, places[6], at, away * v)
    if len(args) > 7:
        store(builder, places[7], at, _logistic_gap(value, y * p, sigma, kappa, v))
    return context.get_dummy_value()


@intrinsic
def logistic_sixteen(typingctx: Any, p: Any, y: Any, a: Any, at: Any, value: Any, slope: Any, c: Any) -> Any:
    """Sixteen logistic IWA steps, each with its label: values, slopes and c."""
    return types.void(p, y, a, types.intp, value, slope, c), _logistic_sixteen


@intrinsic
def logistic_sixteen_gap(
    typingctx: Any, p: Any, y: Any, a: Any, at: Any, value: Any, slope: Any, c: Any, gap: Any
) -> Any:
    """The same, and the gaps."""
    return types.void(p, y, a, types.intp, value, slope, c, gap), _logistic_sixteen
