"""Rows looked at before they are learned: are their indices in order, and which of them are equal?"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compile import jit
from steelyard.kernels.rows import ONE, canonical


def inspect(indices, indptr, n_features):
    """The first row whose indices do not ascend or reach ``n_features``; -1 where there is none."""
    for i in range(indptr.size - 1):
        if not canonical(indices, indptr[i], indptr[i + 1], n_features):
            return i
    return -1


@jit
def _mix(z):
    """A bijection of 64 bits that leaves no pattern (the finalizer of splitmix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_keys(data, indices, indptr, labels, dense, scratch, keys, entries):
    """A hash of every row's content: its non-zeros, in whatever order and layout, and the bits of its label.

    ``scratch`` is one float64: numbers are hashed as such, so that float32 data has the order of its float64 copy.
    ``entries`` receives the number of non-zeros.
    """
    bits = scratch.view(np.uint64)
    for i in range(keys.size):
        lo, hi = indptr[i], indptr[i + 1]
        key = _mix(labels[i] + np.uint64(0x9E3779B97F4A7C15))
        count = 0
        for e in range(lo, hi):
            scratch[0] = np.float64(data[e])
            if scratch[0] != 0.0:
                j = e - lo if dense else np.uint64(indices[e])
                key += _mix(_mix(bits[0]) ^ (j + ONE))
                count += 1
        keys[i] = _mix(key)
        entries[i] = count


def same_rows(data, indices, indptr, y, order, dense, same):
    """same[i] = 1 where row order[i] has the label and the non-zeros of row order[i-1]."""
    for i in range(1, order.size):
        a, b = order[i - 1], order[i]
        if y[a] != y[b]:
            continue
        at, end = indptr[a], indptr[a + 1]
        there, stop = indptr[b], indptr[b + 1]
        equal = True
        while equal:
            while at < end and data[at] == 0.0:
                at += ONE
            while there < stop and data[there] == 0.0:
                there += ONE
            if at == end or there == stop:
                equal = at == end and there == stop
                break
            here = at - indptr[a] if dense else np.uint64(indices[at])
            equal = data[at] == data[there] and here == (there - indptr[b] if dense else np.uint64(indices[there]))
            at += ONE
            there += ONE
        same[i] = equal
