"""What a kernel does to one row: dot products and additions, over sparse and dense rows alike.

A block of rows is three vectors. Sparse rows are CSR: values ``data[lo:hi]`` at features ``indices[lo:hi]``. A dense
row is ``data[lo:hi]`` with features 0, 1, 2, …, and ``indices`` is not read. Indices are unsigned, which spares a
test for negative ones at every access.

Weights live in one flat ``table``. Under the scalar metric, which is the one of this file, feature j owns
``table[j*K : (j+1)*K]``, one weight for each of K outputs; the intercept is the last feature. The weight w is x itself
for center ``trajectory`` and lam*x = theta for center ``origin``.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compile import dense_jit, inline_jit, jit
from steelyard.kernels.intrinsics import add_eight, prefetch_once, sixteen_rise

# signed numbers would turn an unsigned index into a float
ZERO, ONE, TWO, THREE, FOUR, EIGHT, SIXTEEN, SIXTYFOUR = (np.uint64(i) for i in (0, 1, 2, 3, 4, 8, 16, 64))
LINE = EIGHT  # values of 8 bytes in a cache line
AHEAD = 8  # rows between fetching a row and learning it
WEIGHTS_AHEAD = 2  # the same for its weights, whose places are known only when its indices have come
LARGE_TABLE = 1 << 18  # numbers, 2 MB: a smaller one stays in the cache anyway


@jit
def fetch(data, indices, indptr, row):
    """Have a row on its way from memory: its values and, where it is sparse, its indices."""
    lo, hi = indptr[row], indptr[row + 1]
    for e in range(lo, hi, LINE):
        prefetch_once(data, e)
    prefetch_once(data, hi - ONE)
    if indices.size > 0:
        for e in range(lo, hi, SIXTEEN):
            prefetch_once(indices, e)
        prefetch_once(indices, hi - ONE)


@inline_jit
def fetch_ahead(data, indices, indptr, order, y, weight, i):
    """While row ``order[i]`` is learned, have one to come on its way: in a random order nothing else would.

    Where it stands was fetched before, and so this does not wait for memory itself.
    """
    if i + AHEAD < order.size:
        row = order[i + AHEAD]
        fetch(data, indices, indptr, row)
        prefetch_once(y, np.uint64(row))
        prefetch_once(weight, np.uint64(row))
        prefetch_once(indptr, np.uint64(order[min(i + 2 * AHEAD, order.size - 1)]))


@inline_jit
def weights_ahead(indptr, order, i, table, dense):
    """Where the row stands whose weights are fetched while ``order[i]`` is learned; nowhere for a small table."""
    if dense or table.size < LARGE_TABLE or i + WEIGHTS_AHEAD >= order.size:
        return ZERO, ZERO
    row = order[i + WEIGHTS_AHEAD]
    return indptr[row], indptr[row + 1]


@inline_jit
def fetch_four(indices, ahead, stop, table, width):
    """Fetch the weights of four non-zeros, a few at a time: all at once, they would wait in line."""
    for e in range(ahead, min(ahead + FOUR, stop)):
        prefetch_once(table, np.uint64(indices[e]) * width)
    return ahead + FOUR


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
def sparse_dot(data, indices, lo, hi, table, ahead, stop):
    """<q, w> and ||q||^2, in four sums each, which need not wait for one another; fetches the weights of the row
    ``ahead:stop`` on the way."""
    p0 = p1 = p2 = p3 = 0.0
    n0 = n1 = n2 = n3 = 0.0
    rest = lo + (hi - lo) % FOUR
    if rest > lo:
        ahead = fetch_four(indices, ahead, stop, table, ONE)
    for e in range(lo, rest):
        q = np.float64(data[e])
        p0 += q * table[indices[e]]
        n0 += q * q
    for e in range(rest, hi, FOUR):
        ahead = fetch_four(indices, ahead, stop, table, ONE)
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
def dot_outputs(data, indices, lo, hi, table, p, dense):
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
def add_outputs(data, indices, lo, hi, table, factor, dense):
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
