"""A feature of the mixture: its record, its statistics, its unit and its center.

A record is one cache line of single precision where there is one output: for each output 8 weights, then for each
output (G, H), then v, an exponent k, and in double precision n and the mean. All but n and the mean are in units of
2^k, chosen when v is first known: single precision then serves columns of any scale. Where v outgrows 4^k, k grows and
the weights stay, so that x = w/2^k shrinks with the scale. A feature without a center has the mean NaN.

Arguments: ``table`` holds the records and ``doubles`` is the same memory in double precision; a record starts at
``base``, the intercept's at ``last``; ``size`` is the number of outputs, ``powers`` has 2^-k (``layout.ZERO_POWER``);
``centered`` lists the records of the centered features, as many as ``clocks[CENTERED]`` says; ``h`` is the weight of
the row and ``seen`` that of all rows before it, ``after`` that of all rows with it.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.intrinsics import bits_of
from steelyard.kernels.layout import CENTERED, EXPERTS, EXPONENT, HALF, OUTPUT_WIDTH, ZERO_POWER
from steelyard.kernels.rows import ONE

WEIGHTS = np.uint64(EXPERTS)  # unsigned, as all positions in the table
WIDTH_OF_OUTPUT = np.uint64(OUTPUT_WIDTH)

READ_Q = np.uint64(HALF)  # experts before this one read q, the others z
_EXPONENT = np.uint64(EXPONENT)  # the variance is where the statistics start
_MANTISSA, _EXPONENT_BITS = np.uint64(52), np.uint64(2047)  # where a double has its exponent

EPSILON = 0.1
LARGE = 1e300
TINY = 1e-290  # smaller values are zero
RANGE = 1e30  # of an expert's predictions, in units of the labels, and of the sums G and H


@inline_jit
def wide_place(at):
    """Where n stands in double precision, and the mean after it, for statistics that start ``at``."""
    return (at >> ONE) + ONE


@jit
def _exponent(x):
    """The k with 2^k <= |x| < 2^(k+1), from the bits of x; -1 where there is none."""
    e = np.int64((bits_of(x) >> _MANTISSA) & _EXPONENT_BITS)
    if e == 0 and x != 0.0:  # so small that it has fewer digits
        return np.int64((bits_of(x * 2.0**64) >> _MANTISSA) & _EXPONENT_BITS) - 1087
    return e - 1023 if 0 < e < 2047 else -1


@jit
def _change_unit(table, base, size, k, powers, keep):
    """Measure a feature in units of 2^k. As the unit grows, x shrinks; ``keep`` keeps it for the first four experts."""
    at = base + size * WIDTH_OF_OUTPUT
    steps = min(k - int(table[at + _EXPONENT]), 1000)
    table[at + _EXPONENT] = k
    factor = powers[ZERO_POWER + steps]
    for j in range(base + size * WEIGHTS, at + ONE):
        table[j] *= factor * factor
    if keep:
        for j in range(size * WEIGHTS):
            if j % WEIGHTS < READ_Q:
                table[base + j] *= powers[ZERO_POWER - steps]


@jit
def grown_weight(weight, h):
    """A cumulated weight after a row of weight h: larger than before, always, so that it tells what was in the row."""
    grown = min(weight + h, LARGE)
    return grown if grown > weight else weight * (1.0 + 2.3e-16)


@inline_jit
def observe(table, doubles, base, size, q, h, seen, after, centering, powers):
    """Let a feature's statistics take in q; returns q and z in the feature's unit, and whether it is centered."""
    at = base + size * WIDTH_OF_OUTPUT
    wide = wide_place(at)
    if h == 0.0:
        z = q * powers[ZERO_POWER + int(table[at + _EXPONENT])]
        return z, z, False
    count = doubles[wide]
    full = centering and count == seen and not math.isnan(doubles[wide + ONE])
    grown = after if full else min(count + h, LARGE)
    doubles[wide] = grown
    share = h / grown
    away = q
    z = q
    if full:
        away = q - doubles[wide + ONE]
        doubles[wide + ONE] += share * away
        z = q - doubles[wide + ONE]
        if z == 0.0 or (z > 0.0) != (away > 0.0):  # where the row outweighs all before it, z is but rounding
            z = 0.0
            table[at] -= share * table[at]
            return (q * powers[ZERO_POWER + int(table[at + _EXPONENT])] if table[at] > 0.0 else 0.0), z, full
    elif count == 0.0:
        doubles[wide + ONE] = math.nan
    if table[at] == 0.0:
        table[at + _EXPONENT] = _exponent(z)  # not measured yet, so its weights are zero
    inverse = powers[ZERO_POWER + int(table[at + _EXPONENT])]
    if not abs(z * inverse) < 1e15:
        _change_unit(table, base, size, _exponent(z), powers, False)
        inverse = powers[ZERO_POWER + int(table[at + _EXPONENT])]
    z *= inverse
    v = table[at] + share * ((away * inverse) * z - table[at])
    if v > 4.0:
        steps = _exponent(math.sqrt(v))
        _change_unit(table, base, size, int(table[at + _EXPONENT]) + steps, powers, False)
        smaller = powers[ZERO_POWER + steps]
        inverse *= smaller
        z *= smaller
        v *= smaller * smaller
    table[at] = v
    return q * inverse, z, full


@jit
def _drop_center(table, doubles, base, last, size, powers):
    """Take a feature's center away: the intercept takes -mean * x over from the experts who read z."""
    at = base + size * WIDTH_OF_OUTPUT
    wide = wide_place(at)
    center = doubles[wide + ONE]
    doubles[wide + ONE] = math.nan
    if table[at] == 0.0 and center != 0.0:
        table[at + _EXPONENT] = _exponent(center)
    mean = center * powers[ZERO_POWER + int(table[at + _EXPONENT])]
    v = np.float64(table[at]) + mean * mean
    if v > 4.0:
        steps = _exponent(math.sqrt(v))
        _change_unit(table, base, size, int(table[at + _EXPONENT]) + steps, powers, True)
        mean *= powers[ZERO_POWER + steps]
        v *= powers[ZERO_POWER + steps] * powers[ZERO_POWER + steps]
    table[at] = v
    for k in range(size * WEIGHTS):
        if k % WEIGHTS >= READ_Q:
            table[last + k] += -mean * table[base + k]


@jit
def drop_center_at_zero(table, doubles, base, last, size, powers):
    """Whether a centered feature has lost its center at a zero: one that varies by more than its mean is zero too often
    to be worth it."""
    at = base + size * WIDTH_OF_OUTPUT
    mean = doubles[wide_place(at) + ONE] * powers[ZERO_POWER + int(table[at + _EXPONENT])]
    if table[at] < mean * mean:
        return False
    _drop_center(table, doubles, base, last, size, powers)
    return True


@jit
def predict_centered(table, doubles, centered, clocks, size, p, powers):
    """Add -mean * x of all centered features to the predictions: a row of weight 0 changes no mean."""
    for i in range(int(clocks[CENTERED])):
        base = centered[i]
        at = base + size * WIDTH_OF_OUTPUT
        mean = doubles[wide_place(at) + ONE] * powers[ZERO_POWER + int(table[at + _EXPONENT])]
        for k in range(size * WEIGHTS):
            if k % WEIGHTS >= READ_Q:
                p[k] += -mean * table[base + k]


@jit
def keep_record(doubles, dual, base, width, size, stamps, feature, copies, copied):
    """Copy what a feature owns, before its first change; see ``mixture.learn_mixture``."""
    if stamps[feature] == 0:
        stamps[feature] = 1
        saved = copied[0]
        copied[saved + ONE] = feature
        copied[0] = saved + ONE
        half = width >> ONE
        start, to = base >> ONE, saved * (half + size)
        for j in range(half):
            copies[to + j] = doubles[start + j]
        for c in range(size):
            copies[to + half + c] = dual[feature * size + c]
