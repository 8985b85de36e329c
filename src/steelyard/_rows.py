"""What a kernel does to one row: dot products, additions and the diagonal metric, over sparse and dense rows alike.

A block of rows is three vectors. Sparse rows are CSR: values ``data[lo:hi]`` at features ``indices[lo:hi]``. A dense
row is ``data[lo:hi]`` with features 0, 1, 2, …, and ``indices`` is not read. Indices are unsigned, which spares a
test for negative ones at every access.

Weights live in one flat ``table``. Under the scalar metric, feature j owns ``table[j*K : (j+1)*K]``, one weight for
each of K outputs. Under the diagonal metric it owns a record ``[s, 1/s, w_1 … w_K, G_1 … G_K]``: its running scale
(the largest magnitude seen), the inverse, the weights and the sums of squared gradients, which AdaGrad makes grow.
The weight w is x itself for center ``trajectory`` and the dual theta for center ``origin``.
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


# ---------------------------------------------------- diagonal metric: lam_j = lam * s_j * sqrt(s_j^2 + G_j)


@jit
def _take_scale(table, base, q, size, origin):
    """Let a feature's scale take in q, before anything is predicted; a grown scale shrinks x by old/new."""
    old = table[base]
    if abs(q) > old:
        if not origin and old > 0.0:
            for k in range(base + TWO, base + TWO + size):
                table[k] *= old / abs(q)
        table[base] = abs(q)
        table[base + ONE] = 1.0 / abs(q)


@jit
def _inverse_metric(table, base, at, adaptive):
    """lam / lam_j: 1/s^2, or with AdaGrad 1/(s sqrt(s^2 + G)), where G stands ``at``."""
    inverse = table[base + ONE]
    if adaptive and inverse > 0.0:
        return inverse / math.sqrt(table[base] * table[base] + table[at])
    return inverse * inverse  # 0 for a feature that was never seen


@jit
def _count(table, at, energy):
    """Add to a sum of squared gradients; an overflow, or the NaN of a diverged learner, leaves it as it is."""
    if table[at] + energy < 1e300:
        table[at] += energy


@jit
def meet(table, base, q, size, origin, adaptive, frozen, p, norm2):
    """Add a feature's part of every prediction and of every ||q||^2 in the metric.

    A row of weight 0 is ``frozen``: it is predicted with the scale as it is.
    """
    if not frozen:
        _take_scale(table, base, q, size, origin)
    for k in range(size):
        at = base + TWO + k
        r = _inverse_metric(table, base, at + size, adaptive)
        p[k] += q * (table[at] * r if origin and table[base] > 0.0 else table[at])
        norm2[k] += q * q * r


@jit
def move(table, base, q, size, origin, adaptive, factor, energy):
    """Move the weights of a feature by factor_k * q (in the metric, for x) and count its squared gradient."""
    for k in range(size):
        at = base + TWO + k
        table[at] += factor[k] * q * (1.0 if origin else _inverse_metric(table, base, at + size, adaptive))
        if adaptive:
            _count(table, at + size, energy[k] * q * q)


@jit
def meet_single(data, indices, lo, hi, table, intercept, flags):
    """:func:`meet_row` for one output, with the sums in registers."""
    dense, origin, adaptive, frozen = flags
    p = 0.0
    norm2 = 0.0
    end = hi + ONE if intercept else hi
    for e in range(lo, end):
        q = np.float64(data[e]) if e < hi else 1.0
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * FOUR if e < hi else np.uint64(table.size) - FOUR
            if not frozen:
                _take_scale(table, base, q, ONE, origin)
            r = _inverse_metric(table, base, base + THREE, adaptive)
            w = table[base + TWO]
            p += q * (w * r if origin and table[base] > 0.0 else w)
            norm2 += q * q * r
    return p, norm2


@jit
def move_single(data, indices, lo, hi, table, intercept, flags, factor, energy, ahead, stop):
    """:func:`move_row` for one output; fetches the records of the row ``ahead:stop`` on the way."""
    dense, origin, adaptive, _ = flags
    end = hi + ONE if intercept else hi
    for e in range(lo, end):
        if ahead < stop:
            prefetch(table, np.uint64(indices[ahead]) * FOUR)
            ahead += ONE
        q = np.float64(data[e]) if e < hi else 1.0
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * FOUR if e < hi else np.uint64(table.size) - FOUR
            r = 1.0 if origin else _inverse_metric(table, base, base + THREE, adaptive)
            table[base + TWO] += factor * q * r
            if adaptive:
                _count(table, base + THREE, energy * q * q)


@jit
def meet_row(data, indices, lo, hi, table, size, intercept, flags, p, norm2):
    """:func:`meet` for every non-zero of a row and for the intercept."""
    dense, origin, adaptive, frozen = flags
    width = TWO + TWO * size
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
    width = TWO + TWO * size
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q != 0.0:
            base = (e - lo if dense else np.uint64(indices[e])) * width
            move(table, base, q, size, origin, adaptive, factor, energy)
    if intercept:
        move(table, np.uint64(table.size) - width, 1.0, size, origin, adaptive, factor, energy)
