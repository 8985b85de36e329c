"""The diagonal metric: lam_j = lam / r_j, and with AdaGrad lam sqrt(1 + G_j) / r_j.

A feature owns a record ``[r, w_1 … w_K]`` of the table, where r = 1/s^2 and s is its running scale, the largest
magnitude seen (r = 0: none yet). AdaGrad adds the sums of squared gradients ``G_1 … G_K``, in units of s^2.

The weight w is x itself for center ``trajectory``. For center ``origin`` it is theta*r, or theta itself where x is
theta in a metric that changes with every row (AdaGrad).

Arguments: ``data, indices, lo, hi`` are a row as in ``rows``; ``origin`` and ``adaptive`` (AdaGrad) are options;
``frozen`` says that the row has weight 0, so that the scales stay as they are.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compile import dense_jit, inline_jit, jit
from steelyard.kernels.intrinsics import prefetch_once, trailing_zeros
from steelyard.kernels.rows import FOUR, ONE, SIXTYFOUR, THREE, TWO, ZERO, fetch_four

GROWN = 1.0 + 1e-15  # q^2 r of a q beyond the scale; the largest q itself may be rounded to a little above 1


@inline_jit
def _outgrows(q, r):
    """Whether q is beyond the scale; or it is the first one, and may be zero."""
    return (q * q * r > GROWN) | (r == 0.0)


@jit
def _take_scale(table, base, q, size, origin, adaptive):
    """Let a feature's scale take in q, before anything is predicted. A grown scale shrinks x by old/new, for center
    ``trajectory``; for center ``origin`` it follows from theta, which stays."""
    if q == 0.0:
        return
    if table[base] > 0.0:
        shrink = 1.0 / (abs(q) * math.sqrt(table[base]))
        for k in range(base + ONE, base + ONE + size):
            if not (origin and adaptive):
                table[k] *= shrink
            if origin and not adaptive:  # theta/s^2; the square of ``shrink`` might be too small for a float
                table[k] *= shrink
            if adaptive:
                table[k + size] *= shrink * shrink
    table[base] = 1.0 / (q * q)


@jit
def _inverse_metric(table, base, at, adaptive):
    """lam / lam_j, where G stands ``at``; 0 for a feature that was never seen."""
    r = table[base]
    return r / math.sqrt(1.0 + table[at]) if adaptive else r


@jit
def _count(table, at, square):
    """Add to a sum of squared gradients; an overflow, or the NaN of a diverged learner, leaves it as it is."""
    if table[at] + square < 1e300:
        table[at] += square


# One output without AdaGrad: as fast as a row can be read. A row of weight 0 is ``frozen``: the scale stays as it is.


@inline_jit
def _beyond(data, indices, e, table):
    """1 where a feature outgrows its scale."""
    return np.uint64(_outgrows(np.float64(data[e]), table[np.uint64(indices[e]) * TWO]))


@inline_jit
def _take_scales(data, indices, lo, hi, table, origin, ahead, stop):
    """:func:`_take_scale` for a sparse row; fetches the records of the row ``ahead:stop`` on the way.

    First a bit for each of 64 features, then those whose scales grow: a branch for each feature would be guessed wrong
    three times a row, and would wait for its record every time.
    """
    for start in range(lo, hi, SIXTYFOUR):
        end = min(start + SIXTYFOUR, hi)
        beyond = ZERO
        rest = start + (end - start) % FOUR
        for e in range(start, rest):
            beyond = beyond << ONE | _beyond(data, indices, e, table)
        for e in range(rest, end, FOUR):
            ahead = fetch_four(indices, ahead, stop, table, TWO)
            b0 = _beyond(data, indices, e, table)
            b1 = _beyond(data, indices, e + ONE, table)
            b2 = _beyond(data, indices, e + TWO, table)
            b3 = _beyond(data, indices, e + THREE, table)
            beyond = beyond << FOUR | (b0 << THREE | b1 << TWO | (b2 << ONE | b3))
        while beyond != ZERO:
            e = end - ONE - trailing_zeros(beyond)
            beyond &= beyond - ONE
            q, base = np.float64(data[e]), np.uint64(indices[e]) * TWO
            r, w = table[base], table[base + ONE]
            if q != 0.0:
                shrink = 1.0 / (abs(q) * math.sqrt(r))
                smaller = w * shrink * shrink if origin else w * shrink
                table[base] = 1.0 / (q * q)
                table[base + ONE] = smaller if r > 0.0 else w


@inline_jit
def _observe_one(data, indices, e, table):
    """A feature's part of the prediction and of ||q||^2 in the metric."""
    q, base = np.float64(data[e]), np.uint64(indices[e]) * TWO
    return q * table[base + ONE], q * q * table[base]


@jit
def sparse_observe(data, indices, lo, hi, table, origin, frozen, ahead, stop):
    """<q, x> and ||q||^2 in the metric, for lam = 1, in four sums each, like :func:`sparse_dot`."""
    p0 = p1 = p2 = p3 = 0.0
    n0 = n1 = n2 = n3 = 0.0
    rest = lo + (hi - lo) % FOUR
    if not frozen:
        _take_scales(data, indices, lo, hi, table, origin, ahead, stop)
    for e in range(lo, rest):
        p, n = _observe_one(data, indices, e, table)
        p0, n0 = p0 + p, n0 + n
    for e in range(rest, hi, FOUR):
        p, n = _observe_one(data, indices, e, table)
        p0, n0 = p0 + p, n0 + n
        p, n = _observe_one(data, indices, e + ONE, table)
        p1, n1 = p1 + p, n1 + n
        p, n = _observe_one(data, indices, e + TWO, table)
        p2, n2 = p2 + p, n2 + n
        p, n = _observe_one(data, indices, e + THREE, table)
        p3, n3 = p3 + p, n3 + n
    return (p0 + p1) + (p2 + p3), (n0 + n1) + (n2 + n3)


@jit
def sparse_update(data, indices, lo, hi, table, factor):
    """w += factor * q in the metric."""
    for e in range(lo, hi):
        base = np.uint64(indices[e]) * TWO
        table[base + ONE] += factor * np.float64(data[e]) * table[base]


@dense_jit
def _outgrow(data, lo, hi, table):
    """How many features of a dense row are beyond their scales."""
    count = 0
    for j in range(hi - lo):
        q = np.float64(data[lo + j])
        count += int(_outgrows(q, table[TWO * j]) & (q != 0.0))
    return count


@dense_jit
def _dense_sums(data, lo, hi, table):
    p = 0.0
    norm2 = 0.0
    for j in range(hi - lo):
        q = np.float64(data[lo + j])
        p += q * table[TWO * j + ONE]
        norm2 += q * q * table[TWO * j]
    return p, norm2


@jit
def dense_observe(data, lo, hi, table, origin, frozen):
    """:func:`sparse_observe` for a dense row: scales first, then sums that vectorise."""
    if not frozen and _outgrow(data, lo, hi, table):
        for e in range(lo, hi):
            if _outgrows(np.float64(data[e]), table[(e - lo) * TWO]):
                _take_scale(table, (e - lo) * TWO, np.float64(data[e]), ONE, origin, False)
    return _dense_sums(data, lo, hi, table)


@dense_jit
def dense_update(data, lo, hi, table, factor):
    """:func:`sparse_update` for a dense row. r is written, too: whole records vectorise."""
    for j in range(hi - lo):
        q, r, w = np.float64(data[lo + j]), table[TWO * j], table[TWO * j + ONE]
        table[TWO * j] = r + 0.0 * q
        table[TWO * j + ONE] = w + factor * q * r


# Any number of outputs, with or without AdaGrad.


@jit
def observe(table, base, q, size, origin, adaptive, frozen, p, norm2):
    """Add a feature's part of every prediction and of every ||q||^2 in the metric."""
    if not frozen and _outgrows(q, table[base]):
        _take_scale(table, base, q, size, origin, adaptive)
    for k in range(size):
        at = base + ONE + k
        r = _inverse_metric(table, base, at + size, adaptive)
        p[k] += q * (table[at] * r if origin and adaptive else table[at])
        norm2[k] += q * q * r


@jit
def update(table, base, q, size, origin, adaptive, factor, square):
    """Move the weights of a feature by factor_k * q (in the metric, unless they are theta); count its square."""
    for k in range(size):
        at = base + ONE + k
        r = 1.0 if origin and adaptive else _inverse_metric(table, base, at + size, adaptive)
        table[at] += factor[k] * q * r
        if adaptive:
            _count(table, at + size, square[k] * q * q * table[base])


@jit
def observe_row(data, indices, lo, hi, table, size, intercept, flags, p, norm2):
    """:func:`observe` for every non-zero of a row and for the intercept."""
    dense, origin, adaptive, frozen = flags
    width = ONE + (TWO if adaptive else ONE) * size
    p[:] = 0.0
    norm2[:] = 0.0
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width
            observe(table, base, q, size, origin, adaptive, frozen, p, norm2)
    if intercept:
        observe(table, np.uint64(table.size) - width, 1.0, size, origin, adaptive, frozen, p, norm2)


@jit
def update_row(data, indices, lo, hi, table, size, intercept, flags, factor, square):
    """:func:`update` for every non-zero of a row and for the intercept."""
    dense, origin, adaptive, _ = flags
    width = ONE + (TWO if adaptive else ONE) * size
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width
            update(table, base, q, size, origin, adaptive, factor, square)
    if intercept:
        update(table, np.uint64(table.size) - width, 1.0, size, origin, adaptive, factor, square)


@jit
def observe_single(data, indices, lo, hi, table, intercept, flags):
    """:func:`observe_row` for one output, with the sums in registers."""
    dense, origin, adaptive, frozen = flags
    width = THREE if adaptive else TWO
    p = 0.0
    norm2 = 0.0
    end = hi + ONE if intercept else hi
    for e in range(lo, end):
        q = np.float64(data[e]) if e < hi else 1.0
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width if e < hi else np.uint64(table.size) - width
            if not frozen and _outgrows(q, table[base]):
                _take_scale(table, base, q, ONE, origin, adaptive)
            r = _inverse_metric(table, base, base + TWO, adaptive)
            w = table[base + ONE]
            p += q * (w * r if origin and adaptive else w)
            norm2 += q * q * r
    return p, norm2


@jit
def update_single(data, indices, lo, hi, table, intercept, flags, factor, square, ahead, stop):
    """:func:`update_row` for one output; fetches the records of the row ``ahead:stop`` on the way."""
    dense, origin, adaptive, _ = flags
    width = THREE if adaptive else TWO
    end = hi + ONE if intercept else hi
    for e in range(lo, end):
        if ahead < stop:
            prefetch_once(table, np.uint64(indices[ahead]) * width)
            ahead += ONE
        q = np.float64(data[e]) if e < hi else 1.0
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width if e < hi else np.uint64(table.size) - width
            r = 1.0 if origin and adaptive else _inverse_metric(table, base, base + TWO, adaptive)
            table[base + ONE] += factor * q * r
            if adaptive:
                _count(table, base + TWO, square * q * q * table[base])
