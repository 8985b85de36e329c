"""The statistics of a row's features on their way: from records to vectors, through a row, and back.

Sparse rows bring the statistics of their features from the records and take them back. Dense rows without many zeros
are ``resident``: all features stay in the vectors for a whole block. Both come to the same numbers, to the bit.

``vectors`` is (offsets, q, n, mean, v, inverse, whole, z, first, second), see ``kernels.vectors``; ``offsets`` says
where the features' records start. ``singles`` has v first and then, for each output, G and H of all features; in
rows that are not resident, those of one output at a time. Other arguments: see ``features``.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.features import (
    TINY,
    WEIGHTS,
    WIDTH_OF_OUTPUT,
    drop_center_at_zero,
    keep_record,
    observe,
    wide_place,
)
from steelyard.kernels.intrinsics import prefetch, trailing_zeros
from steelyard.kernels.layout import CENTERED, ZERO_POWER
from steelyard.kernels.rows import EIGHT, ONE, TWO, ZERO
from steelyard.kernels.vectors import copy_lanes, observe_lanes, put_lanes, take_lanes

_LOWEST_EIGHT = np.uint64(255)
_WHOLE_EIGHTS = ~np.uint64(7)


@inline_jit
def rows_ahead(indptr, order, i, dense):
    """Where the next sparse row stands."""
    if dense or i + 1 >= order.size:
        return ZERO, ZERO
    return indptr[order[i + 1]], indptr[order[i + 1] + 1]


@inline_jit
def _take(records, vectors, e, base):
    """Read the statistics of a feature into the vectors."""
    table, doubles, _, size, powers = records
    _, _, n, mean, v, inverse, _, _, _, _ = vectors
    at = base + size * WIDTH_OF_OUTPUT
    wide = wide_place(at)
    n[e], mean[e] = doubles[wide], doubles[wide + ONE]
    v[e] = table[at]
    inverse[e] = powers[np.uint64(ZERO_POWER + int(table[at + ONE]))]


@inline_jit
def _put_back(records, vectors, e):
    """Write the statistics of a feature to its record."""
    table, doubles, _, size, _ = records
    offsets, _, n, mean, v, _, _, _, _, _ = vectors
    at = offsets[e] + size * WIDTH_OF_OUTPUT
    wide = wide_place(at)
    doubles[wide], doubles[wide + ONE] = n[e], mean[e]
    table[at] = v[e]


@inline_jit
def _take_row(records, vectors, singles, start, count, last):
    """Read the statistics of a row's features into the vectors, from eight of which one is at ``start`` on.

    They are filled up with the intercept's record and the value zero, which is that of a feature that is not there.
    G and H of the last output, which stand beside them, come along.
    """
    table, _, _, size, _ = records
    offsets, q, n, mean, v, inverse, whole, z, _, _ = vectors
    for e in range(np.uint64(count), np.uint64(count) + EIGHT):
        q[e] = whole[e] = z[e] = 0.0
        offsets[e] = last
    room = v.size
    columns = (offsets, n, mean, v, inverse, singles[room : 2 * room], singles[2 * room :])
    for e in range(np.uint64(start) & _WHOLE_EIGHTS, np.uint64(count) + ONE, EIGHT):
        take_lanes(columns, e, table, size * WIDTH_OF_OUTPUT - TWO)


@inline_jit
def _put_row_back(records, vectors, singles, count):
    """Write them to the records, and G and H of the last output."""
    table, _, _, size, _ = records
    offsets, _, n, mean, v, _, _, _, _, _ = vectors
    room = v.size
    columns = (offsets, n, mean, v, singles[room : 2 * room], singles[2 * room :])
    put_lanes(columns, count, table, size * WIDTH_OF_OUTPUT - TWO)


@inline_jit
def take_sums(records, vectors, singles, c, count):
    """Read G and H of an output for the features of a row that is not resident; of a single one, they are there."""
    table, _, _, size, _ = records
    room = np.uint64(vectors[4].size)
    if size > ONE:
        for e in range(np.uint64(count)):
            at = vectors[0][e] + size * WEIGHTS + TWO * c
            singles[room + e] = table[at]
            singles[room + room + e] = table[at + ONE]


@inline_jit
def put_sums_back(records, vectors, singles, c, count):
    """Write them to the records again; with those of the last output go the statistics, which stand beside them."""
    table, _, _, size, _ = records
    room = np.uint64(vectors[4].size)
    if c + ONE == size:
        _put_row_back(records, vectors, singles, count)
    else:
        for e in range(np.uint64(count)):
            at = vectors[0][e] + size * WEIGHTS + TWO * c
            table[at] = singles[room + e]
            table[at + ONE] = singles[room + room + e]


@jit
def _move_sums(records, vectors, singles, e, back):
    """Read G and H of all outputs of a resident feature, or write them ``back``."""
    table, _, _, size, _ = records
    offsets, v = vectors[0], vectors[4]
    room = np.uint64(v.size)
    at = offsets[e] + size * WEIGHTS
    for k in range(TWO * size):
        place = room * (k + ONE) + np.uint64(e)
        if back:
            table[at + k] = singles[place]
        else:
            singles[place] = table[at + k]


@jit
def take_all(records, vectors, singles, last, features):
    """Bring all ``features``, and the intercept after them, into the vectors: they become resident."""
    offsets, q, n, _, _, _, whole, z, _, _ = vectors
    q[features:] = whole[features:] = z[features:] = 0.0  # what is no feature takes in nothing
    n[features:] = -1.0
    offsets[features:] = last
    for e in range(features):
        offsets[e] = np.uint64(e) * records[2]
        _take(records, vectors, e, offsets[e])
        _move_sums(records, vectors, singles, e, False)
    _move_sums(records, vectors, singles, features, False)


@jit
def put_all_back(records, vectors, singles, features):
    """Bring everything that is resident back to the records; the intercept has no statistics."""
    for e in range(features):
        _put_back(records, vectors, e)
        _move_sums(records, vectors, singles, e, True)
    _move_sums(records, vectors, singles, features, True)


@inline_jit
def gather_row(row, ahead, records, vectors, journal):
    """Find the records of a row's features; returns how many there are, and the sum of their squares.

    Records of the row ``ahead`` are fetched one by one on the way: all at once, they would wait in line.
    """
    data, indices, lo, hi, dense, h = row
    table, doubles, width, size, _ = records
    offsets, q = vectors[0], vectors[1]
    stamps, copies, copied, dual = journal
    next_lo, next_hi = ahead
    keeping = stamps.size > 0 and h > 0.0
    count = ZERO  # unsigned, as all positions
    sum_of_squares = 0.0
    for e in range(lo, hi):
        if next_lo < next_hi:
            prefetch(table, np.uint64(indices[next_lo]) * width)
            prefetch(dual, np.uint64(indices[next_lo]) * size)
            next_lo += ONE
        value = np.float64(data[e])
        sum_of_squares += value * value
        if not abs(value) <= TINY:
            base = (e - lo if dense else np.uint64(indices[e])) * width
            if keeping:
                keep_record(doubles, dual, base, width, size, stamps, np.uint64(indices[e]), copies, copied)
            offsets[count] = base
            q[count] = value
            count += ONE
    return np.int64(count), sum_of_squares


@inline_jit
def copy_row(data, lo, q, features):
    """Bring the values of a dense row into the vectors; returns the sum of their squares."""
    whole = np.uint64(features) // EIGHT * EIGHT
    sum_of_squares = copy_lanes(data, lo, q, whole)
    for j in range(whole, np.uint64(features)):
        value = np.float64(data[lo + j])
        q[j] = value
        sum_of_squares += value * value
    return sum_of_squares


@jit
def _settle(records, vectors, singles, centered, clocks, last, e, h, seen, after, centering, resident):
    """What ``observe_lanes`` leaves: one feature, by way of its record."""
    table, doubles, _, size, powers = records
    offsets, q, _, _, _, _, whole, z, _, _ = vectors
    base = offsets[e]
    if resident:
        _put_back(records, vectors, e)
        _move_sums(records, vectors, singles, e, True)
    if not abs(q[e]) <= TINY:
        whole[e], z[e], _ = observe(table, doubles, base, size, q[e], h, seen, after, centering, powers)
    else:
        whole[e], z[e], _ = observe(table, doubles, base, size, 0.0, h, seen, after, True, powers)
        if drop_center_at_zero(table, doubles, base, last, size, powers):
            whole[e] = z[e] = 0.0
            for i in range(int(clocks[CENTERED])):
                if centered[i] == base:
                    clocks[CENTERED] -= 1.0
                    centered[i] = centered[int(clocks[CENTERED])]
                    break
    _take(records, vectors, e, base)
    if resident:
        _move_sums(records, vectors, singles, e, False)
    else:  # the last output's, as in ``_take_row``
        room, at = z.size, base + size * WIDTH_OF_OUTPUT - TWO
        singles[room + e], singles[2 * room + e] = table[at], table[at + ONE]


@inline_jit
def observe_eight(records, vectors, singles, centered, clocks, last, e, h, seen, after, centering, resident):
    """Let eight features of a row, from e on, take in its values; returns how many that are there are centered."""
    _, q, n, mean, v, inverse, whole, z, _, _ = vectors
    result = observe_lanes(q, n, mean, v, inverse, whole, z, e, h, seen, after, centering)
    rare = result & _LOWEST_EIGHT
    while rare != ZERO:
        place = int(e + trailing_zeros(rare))
        _settle(records, vectors, singles, centered, clocks, last, place, h, seen, after, centering, resident)
        rare &= rare - ONE
    return int(result >> EIGHT)


@jit
def read_values(vectors, count):
    """A row of weight 0 changes nothing: z is q, since ``features.predict_centered`` adds what the means are worth."""
    _, q, _, _, _, inverse, whole, z, _, _ = vectors
    for e in range(count):
        whole[e] = z[e] = q[e] * inverse[e] if abs(q[e]) > TINY else 0.0


@jit
def observe_missing(records, vectors, singles, centered, clocks, last, count, h, seen, after):
    """Centered features that a sparse row lacks are zero in it: z = -mean. Returns the new ``count`` of features."""
    table, doubles, _, size, powers = records
    offsets, q, _, _, _, _, whole, z, _, _ = vectors
    start = count
    _put_row_back(records, vectors, singles, count)  # what the row has is known by its n
    i = 0
    while i < int(clocks[CENTERED]):
        base = centered[i]
        if doubles[wide_place(base + size * WIDTH_OF_OUTPUT)] == seen:
            whole[count], z[count], _ = observe(table, doubles, base, size, 0.0, h, seen, after, True, powers)
            if drop_center_at_zero(table, doubles, base, last, size, powers):
                clocks[CENTERED] -= 1.0
                centered[i] = centered[int(clocks[CENTERED])]
                continue
            offsets[count] = base
            q[count] = 0.0
            count += 1
        i += 1
    _take_row(records, vectors, singles, start, count, last)
    return count


@inline_jit
def observe_row(
    row, ahead, clocks, centered, last, seen, after, intercept, resident, records, vectors, singles, journal
):
    """Bring the features of a row into the vectors, and let them take in its values; the intercept comes last.

    Returns how many they are; -1 where the row has a value that is not finite, or squares beyond floats.
    """
    data, _, lo, _, _, h = row
    offsets, q, _, _, v, _, whole, z, _, _ = vectors
    if resident:
        count = np.int64(last // records[2])
        sum_of_squares = copy_row(data, lo, q, count)
    else:
        count, sum_of_squares = gather_row(row, ahead, records, vectors, journal)
    if not sum_of_squares < math.inf:
        return -1
    if not resident:
        _take_row(records, vectors, singles, ZERO, count, last)
    if h == 0.0:
        if resident:
            put_all_back(records, vectors, singles, count)
        read_values(vectors, count)
    else:
        full = 0
        for e in range(ZERO, np.uint64(count), EIGHT):
            full += observe_eight(
                records, vectors, singles, centered, clocks, last, e, h, seen, after, intercept, resident
            )
        if seen == 0.0 and intercept:
            for e in range(count):
                if not abs(q[e]) <= TINY:
                    centered[int(clocks[CENTERED])] = offsets[e]
                    clocks[CENTERED] += 1.0
        elif not resident and full < clocks[CENTERED]:
            count = observe_missing(records, vectors, singles, centered, clocks, last, count, h, seen, after)
    if intercept:
        offsets[count] = last
        v[count] = whole[count] = z[count] = 1.0
        count += 1
    return count
