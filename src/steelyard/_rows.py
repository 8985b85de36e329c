"""What a kernel does to one row: dot products, additions and the diagonal metric, over sparse and dense rows alike.

A block of rows is three vectors. Sparse rows are CSR: values ``data[lo:hi]`` at features ``indices[lo:hi]``. A dense
row is ``data[lo:hi]`` with features 0, 1, 2, …, and ``indices`` is not read. Indices are unsigned, which spares a
test for negative ones at every access.

Weights live in one flat ``table``. Under the scalar metric, feature j owns ``table[j*K : (j+1)*K]``, one weight for
each of K outputs. Under the diagonal metric it owns a record ``[s, 1/s, w_1 … w_K, G_1 … G_K]``: its running scale
(the largest magnitude seen), the inverse, the weights and, for AdaGrad, the sums of squared gradients.
The weight w is x itself for center ``trajectory`` and the dual theta for center ``origin``.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard._compile import dense_jit, jit, prefetch_once

# signed numbers would turn an unsigned index into a float
ONE, LINE = np.uint64(1), np.uint64(8)  # LINE: values of 8 bytes in a cache line


@jit
def fetch(data, indices, indptr, row):
    """Have a sparse row on its way to the nearest cache, without it driving the weights out of the next: 20 % faster."""
    for e in range(indptr[row], indptr[row + 1], LINE):
        prefetch_once(data, e)
        prefetch_once(indices, e)


# ------------------------------------------------------------------------------ scalar metric, one output


@dense_jit
def _dense_dot(data, lo, hi, table):
    p = 0.0
    norm2 = 0.0
    for j in range(hi - lo):
        q = np.float64(data[lo + j])
        p += q * table[j]
        norm2 += q * q
    return p, norm2


@jit
def _sparse_dot(data, indices, lo, hi, table):
    p = 0.0
    norm2 = 0.0
    for e in range(lo, hi):
        q = np.float64(data[e])
        p += q * table[indices[e]]
        norm2 += q * q
    return p, norm2


@jit
def dot(data, indices, lo, hi, table, dense):
    """<q, w> and ||q||^2."""
    if dense:
        return _dense_dot(data, lo, hi, table)
    return _sparse_dot(data, indices, lo, hi, table)


@dense_jit
def _dense_add(data, lo, hi, table, factor):
    for j in range(hi - lo):
        table[j] += factor * np.float64(data[lo + j])


@jit
def add(data, indices, lo, hi, table, factor, dense):
    """w += factor * q."""
    if dense:
        _dense_add(data, lo, hi, table, factor)
    else:
        for e in range(lo, hi):
            table[indices[e]] += factor * np.float64(data[e])


# ------------------------------------------------------------------------------- scalar metric, K outputs


@dense_jit
def _accumulate(weights, q, p):
    for k in range(p.size):
        p[k] += q * weights[k]


@dense_jit
def _spread(weights, q, factor):
    for k in range(factor.size):
        weights[k] += q * factor[k]


@jit
def dot_many(data, indices, lo, hi, table, p, dense):
    """p_k = <q, w_k> for every output k; returns ||q||^2."""
    p[:] = 0.0
    norm2 = 0.0
    size = np.uint64(p.size)
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q != 0.0:
            j = e - lo if dense else np.uint64(indices[e])
            _accumulate(table[j * size : (j + ONE) * size], q, p)
            norm2 += q * q
    return norm2


@jit
def add_many(data, indices, lo, hi, table, factor, dense):
    """w_k += factor_k * q for every output k."""
    size = np.uint64(factor.size)
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q != 0.0:
            j = e - lo if dense else np.uint64(indices[e])
            _spread(table[j * size : (j + ONE) * size], q, factor)


# ---------------------------------------------------- diagonal metric: lam_j = lam * s_j * sqrt(s_j^2 + G_j)
# A record is [s, 1/s, w_1 … w_K, G_1 … G_K]; the sums G are there with AdaGrad only.


@jit
def inverse_metric(record, k, size, adaptive):
    """lam / lam_j for output k: 1/s^2, or with AdaGrad 1/(s sqrt(s^2 + G))."""
    if adaptive:
        return record[1] / math.sqrt(record[0] * record[0] + record[2 + size + k])
    return record[1] * record[1]


@jit
def meet(record, q, size, origin, adaptive, frozen, p, norm2):
    """Add a feature's part of every prediction and of every ||q||^2 in the metric.

    First the scale takes in q, and a grown scale shrinks x by old/new, unless the row is ``frozen`` (of weight 0).
    """
    if abs(q) > record[0] and not frozen:
        if not origin and record[0] > 0.0:
            shrink = record[0] / abs(q)
            for k in range(size):
                record[2 + k] *= shrink
        record[0] = abs(q)
        record[1] = 1.0 / abs(q)
    for k in range(size):
        r = inverse_metric(record, k, size, adaptive)
        p[k] += q * (record[2 + k] * r if origin and record[0] > 0.0 else record[2 + k])
        norm2[k] += q * q * r


@jit
def move(record, q, size, origin, adaptive, factor, energy):
    """Move the weights of a feature by factor_k * q (in the metric, for x) and count its squared gradient."""
    for k in range(size):
        r = 1.0 if origin else inverse_metric(record, k, size, adaptive)
        record[2 + k] += factor[k] * q * r
        if adaptive:
            record[2 + size + k] += energy[k] * q * q
