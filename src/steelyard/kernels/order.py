"""Rows looked at before they are learned: are their indices in order, and which of them are equal?"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compile import jit
from steelyard.kernels.rows import ONE, canonical

_DIGIT, _LOW, _HIGH = np.uint64(4095), np.uint64(40), np.uint64(52)  # twelve bits, and where the two digits stand


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


def visit_places(keys, rows, visits, salt, places, visited):
    """For every visit of every row: a pseudo-random place in the order to come, and the row."""
    at = 0
    for i in range(keys.size):
        key = _mix(keys[i] ^ salt)
        for k in range(visits[i]):
            places[at] = _mix(key + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15))
            visited[at] = rows[i]
            at += 1


@jit
def _sort_digit(keys, rows, to_keys, to_rows, shift, starts):
    """Move keys and rows to where twelve bits of the keys say."""
    for i in range(keys.size):
        digit = (keys[i] >> shift) & _DIGIT
        at = starts[digit]
        starts[digit] = at + 1
        to_keys[at], to_rows[at] = keys[i], rows[i]


def sort_keys(keys, rows, other_keys, other_rows, counts):
    """Sort hashes, and the rows they belong to along with them; those of equal hashes stay in their order.

    The highest 24 bits by their digits, lower digit first; then neighbours that agree in them, which are few, by
    insertion. ``other_keys``, ``other_rows`` and ``counts`` (2 x 4096 zeros) are room to work in.
    """
    for i in range(keys.size):
        counts[0, (keys[i] >> _LOW) & _DIGIT] += 1
        counts[1, keys[i] >> _HIGH] += 1
    for p in range(2):
        start = 0
        for digit in range(counts.shape[1]):
            start, counts[p, digit] = start + counts[p, digit], start
    _sort_digit(keys, rows, other_keys, other_rows, _LOW, counts[0])
    _sort_digit(other_keys, other_rows, keys, rows, _HIGH, counts[1])
    for i in range(1, keys.size):
        key, row = keys[i], rows[i]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at], rows[at] = keys[at - 1], rows[at - 1]
            at -= 1
        keys[at], rows[at] = key, row


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
