"""What a kernel does to one row: dot products, additions and the diagonal metric, over sparse and dense rows alike.

A block of rows is three vectors. Sparse rows are CSR: values ``data[lo:hi]`` at features ``indices[lo:hi]``. A dense
row is ``data[lo:hi]`` with features 0, 1, 2, …, and ``indices`` is not read. Indices are unsigned, which spares a
test for negative ones at every access.

Weights live in one flat ``table``. Under the scalar metric, feature j owns ``table[j*K : (j+1)*K]``, one weight for
each of K outputs. Under the diagonal metric it owns a record ``[r, w_1 … w_K]``, where r = 1/s^2 and s is its running
scale, the largest magnitude seen (r = 0: none yet); AdaGrad adds the sums of squared gradients ``G_1 … G_K``, in
units of s^2.

The weight w is x itself for center ``trajectory``. For center ``origin`` it is lam*x = theta (scalar metric), theta*r
(diagonal), or theta itself where x is theta in a metric that changes with every row (AdaGrad).
"""

from __future__ import annotations

import math

import numpy as np

from steelyard._compile import add_eight, dense_jit, inline_jit, jit, prefetch, prefetch_once, sixteen_rise

# signed numbers would turn an unsigned index into a float
ZERO, ONE, TWO, THREE, FOUR, EIGHT, SIXTEEN = (np.uint64(i) for i in (0, 1, 2, 3, 4, 8, 16))
LINE = EIGHT  # values of 8 bytes in a cache line


@jit
def fetch(data, indices, indptr, row):
    """Have a sparse row on its way from memory: a third faster."""
    for e in range(indptr[row], indptr[row + 1], LINE):
        prefetch_once(data, e)
        prefetch_once(indices, e)


@inline_jit
def canonical(indices, lo, hi, n_features):
    """Whether a row's indices ascend and stay below ``n_features``, so that they may be followed."""
    if lo == hi:
        return True
    rises = True
    if hi - lo > SIXTEEN:
        for e in range(lo + ONE, hi - SIXTEEN, SIXTEEN):
            rises &= sixteen_rise(indices, e)
        rises &= sixteen_rise(indices, hi - SIXTEEN)  # some of them for a second time
    else:
        for e in range(lo + ONE, hi):
            rises &= indices[e] > indices[e - ONE]
    return rises and indices[hi - ONE] < n_features


# ------------------------------------------------------------------------------ scalar metric, one output


@dense_jit
def dense_dot(data, lo, hi, table):
    """<q, w> and ||q||^2."""
    p = 0.0
    norm2 = 0.0
    for j in range(hi - lo):
        q = np.float64(data[lo + j])
        p += q * table[j]
        norm2 += q * q
    return p, norm2


@jit
def sparse_dot(data, indices, lo, hi, table):
    """<q, w> and ||q||^2, in four sums each, which need not wait for one another."""
    p0 = p1 = p2 = p3 = 0.0
    n0 = n1 = n2 = n3 = 0.0
    rest = lo + (hi - lo) % FOUR
    for e in range(lo, rest):
        q = np.float64(data[e])
        p0 += q * table[indices[e]]
        n0 += q * q
    for e in range(rest, hi, FOUR):
        q0, q1 = np.float64(data[e]), np.float64(data[e + ONE])
        q2, q3 = np.float64(data[e + TWO]), np.float64(data[e + THREE])
        p0 += q0 * table[indices[e]]
        p1 += q1 * table[indices[e + ONE]]
        p2 += q2 * table[indices[e + TWO]]
        p3 += q3 * table[indices[e + THREE]]
        n0 += q0 * q0
        n1 += q1 * q1
        n2 += q2 * q2
        n3 += q3 * q3
    return (p0 + p1) + (p2 + p3), (n0 + n1) + (n2 + n3)


@dense_jit
def dense_add(data, lo, hi, table, factor):
    """w += factor * q."""
    for j in range(hi - lo):
        table[j] += factor * np.float64(data[lo + j])


@jit
def sparse_add(data, indices, lo, hi, table, factor):
    """w += factor * q."""
    for e in range(lo, hi):
        table[indices[e]] += factor * np.float64(data[e])


# ------------------------------------------------------------------------------- scalar metric, K outputs


# Eight outputs at a time are one vector of the machine; what is left over is done one by one.


@jit
def dot_many(data, indices, lo, hi, table, p, dense):
    """p_k = <q, w_k> for every output k; returns ||q||^2."""
    size = np.uint64(p.size)
    body = size - size % EIGHT
    p[:] = 0.0
    norm2 = 0.0
    for e in range(lo, hi):
        q = np.float64(data[e])
        base = (e - lo if dense else np.uint64(indices[e])) * size
        for k in range(ZERO, body, EIGHT):
            add_eight(p, k, table, base + k, q)
        for k in range(body, size):
            p[k] += q * table[base + k]
        norm2 += q * q
    return norm2


@jit
def add_many(data, indices, lo, hi, table, factor, dense):
    """w_k += factor_k * q for every output k."""
    size = np.uint64(factor.size)
    body = size - size % EIGHT
    for e in range(lo, hi):
        q = np.float64(data[e])
        base = (e - lo if dense else np.uint64(indices[e])) * size
        for k in range(ZERO, body, EIGHT):
            add_eight(table, base + k, factor, k, q)
        for k in range(body, size):
            table[base + k] += q * factor[k]


# --------------------------------------- diagonal metric: lam_j = lam / r_j, with AdaGrad lam sqrt(1 + G_j) / r_j

_GROWN = 1.0 + 1e-15  # q^2 r of a q beyond the scale; the largest q itself may be rounded to a little above 1


@inline_jit
def _outgrows(q, r):
    """Whether q is beyond the scale; or it is the first one, and may be zero."""
    return (q * q * r > _GROWN) | (r == 0.0)


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
def _count(table, at, energy):
    """Add to a sum of squared gradients; an overflow, or the NaN of a diverged learner, leaves it as it is."""
    if table[at] + energy < 1e300:
        table[at] += energy


# One output without AdaGrad: as fast as a row can be read. A row of weight 0 is ``frozen``: the scale stays as it is.


@inline_jit
def _meet_one(data, indices, e, table, origin, frozen):
    """A feature's part of the prediction and of ||q||^2 in the metric."""
    q, base = np.float64(data[e]), np.uint64(indices[e]) * TWO
    if not frozen and _outgrows(q, table[base]):
        _take_scale(table, base, q, ONE, origin, False)
    return q * table[base + ONE], q * q * table[base]


@jit
def sparse_meet(data, indices, lo, hi, table, origin, frozen):
    """<q, x> and ||q||^2 in the metric, for lam = 1, in four sums each, like :func:`sparse_dot`."""
    p0 = p1 = p2 = p3 = 0.0
    n0 = n1 = n2 = n3 = 0.0
    rest = lo + (hi - lo) % FOUR
    for e in range(lo, rest):
        p, n = _meet_one(data, indices, e, table, origin, frozen)
        p0, n0 = p0 + p, n0 + n
    for e in range(rest, hi, FOUR):
        p, n = _meet_one(data, indices, e, table, origin, frozen)
        p0, n0 = p0 + p, n0 + n
        p, n = _meet_one(data, indices, e + ONE, table, origin, frozen)
        p1, n1 = p1 + p, n1 + n
        p, n = _meet_one(data, indices, e + TWO, table, origin, frozen)
        p2, n2 = p2 + p, n2 + n
        p, n = _meet_one(data, indices, e + THREE, table, origin, frozen)
        p3, n3 = p3 + p, n3 + n
    return (p0 + p1) + (p2 + p3), (n0 + n1) + (n2 + n3)


@jit
def sparse_move(data, indices, lo, hi, table, factor, ahead, stop):
    """w += factor * q in the metric; fetches the records of the row ``ahead:stop`` on the way."""
    for e in range(lo, hi):
        if ahead < stop:
            prefetch(table, np.uint64(indices[ahead]) * TWO)
            ahead += ONE
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
def dense_meet(data, lo, hi, table, origin, frozen):
    """:func:`sparse_meet` for a dense row: scales first, then sums that vectorise."""
    if not frozen and _outgrow(data, lo, hi, table):
        for e in range(lo, hi):
            if _outgrows(np.float64(data[e]), table[(e - lo) * TWO]):
                _take_scale(table, (e - lo) * TWO, np.float64(data[e]), ONE, origin, False)
    return _dense_sums(data, lo, hi, table)


@dense_jit
def dense_move(data, lo, hi, table, factor):
    """:func:`sparse_move` for a dense row. r is written, too: whole records vectorise."""
    for j in range(hi - lo):
        q, r, w = np.float64(data[lo + j]), table[TWO * j], table[TWO * j + ONE]
        table[TWO * j] = r + 0.0 * q
        table[TWO * j + ONE] = w + factor * q * r


# Any number of outputs, with or without AdaGrad.


@jit
def meet(table, base, q, size, origin, adaptive, frozen, p, norm2):
    """Add a feature's part of every prediction and of every ||q||^2 in the metric."""
    if not frozen and _outgrows(q, table[base]):
        _take_scale(table, base, q, size, origin, adaptive)
    for k in range(size):
        at = base + ONE + k
        r = _inverse_metric(table, base, at + size, adaptive)
        p[k] += q * (table[at] * r if origin and adaptive else table[at])
        norm2[k] += q * q * r


@jit
def move(table, base, q, size, origin, adaptive, factor, energy):
    """Move the weights of a feature by factor_k * q (in the metric, unless they are theta); count its square."""
    for k in range(size):
        at = base + ONE + k
        r = 1.0 if origin and adaptive else _inverse_metric(table, base, at + size, adaptive)
        table[at] += factor[k] * q * r
        if adaptive:
            _count(table, at + size, energy[k] * q * q * table[base])


@jit
def meet_row(data, indices, lo, hi, table, size, intercept, flags, p, norm2):
    """:func:`meet` for every non-zero of a row and for the intercept."""
    dense, origin, adaptive, frozen = flags
    width = ONE + (TWO if adaptive else ONE) * size
    p[:] = 0.0
    norm2[:] = 0.0
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width
            meet(table, base, q, size, origin, adaptive, frozen, p, norm2)
    if intercept:
        meet(table, np.uint64(table.size) - width, 1.0, size, origin, adaptive, frozen, p, norm2)


@jit
def move_row(data, indices, lo, hi, table, size, intercept, flags, factor, energy):
    """:func:`move` for every non-zero of a row and for the intercept."""
    dense, origin, adaptive, _ = flags
    width = ONE + (TWO if adaptive else ONE) * size
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width
            move(table, base, q, size, origin, adaptive, factor, energy)
    if intercept:
        move(table, np.uint64(table.size) - width, 1.0, size, origin, adaptive, factor, energy)


@jit
def meet_single(data, indices, lo, hi, table, intercept, flags):
    """:func:`meet_row` for one output, with the sums in registers."""
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
def move_single(data, indices, lo, hi, table, intercept, flags, factor, energy, ahead, stop):
    """:func:`move_row` for one output; fetches the records of the row ``ahead:stop`` on the way."""
    dense, origin, adaptive, _ = flags
    width = THREE if adaptive else TWO
    end = hi + ONE if intercept else hi
    for e in range(lo, end):
        if ahead < stop:
            prefetch(table, np.uint64(indices[ahead]) * width)
            ahead += ONE
        q = np.float64(data[e]) if e < hi else 1.0
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width if e < hi else np.uint64(table.size) - width
            r = 1.0 if origin and adaptive else _inverse_metric(table, base, base + TWO, adaptive)
            table[base + ONE] += factor * q * r
            if adaptive:
                _count(table, base + TWO, energy * q * q * table[base])
