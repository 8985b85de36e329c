"""One event at a time: what a row may change, kept and put back; and the mixture's prediction of a single row.

Blocks of rows need neither: they keep copies as they learn, and solve for the coefficients of all features at once.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compile import jit
from steelyard.kernels.features import READ_Q, WEIGHTS, WIDTH_OF_OUTPUT, wide_place
from steelyard.kernels.layout import (
    CENTERED,
    EVIDENCE,
    EXPERTS,
    EXPONENT,
    HIGHEST,
    LABEL_MEAN,
    LABEL_UNIT,
    LOWEST,
    MIX_CONVEX,
    MIX_SEEN,
    MIXING_COST,
    PLAIN,
    SHARES,
    ZERO_POWER,
)
from steelyard.kernels.rows import ONE, TWO

_EXPONENT = np.uint64(EXPONENT)


@jit
def _move(array, start, count, saved, at, back):
    """Copy numbers to ``saved[at:]``, or back from there; returns where the next ones go."""
    if back:
        for j in range(count):
            array[start + j] = saved[at + j]
    else:
        for j in range(count):
            saved[at + j] = array[start + j]
    return at + count


def keep_event(indices, indptr, table, width, dual, size, clocks, sums, centered, counted_at, saved, back):
    """Copy all that learning one row may change to ``saved``; or, with ``back``, put it back from there.

    A feature owns ``width`` numbers of ``table`` and ``size`` of ``dual``, unless that is empty; the intercept is the
    last one. Features whose records start at ``centered`` may change without being in the row: how many there are is
    in ``clocks[counted_at]``, and none where ``counted_at`` is not a place. Returns for how many numbers ``saved`` must
    have room; where it has not, nothing was done.
    """
    if dual.size == 0:
        size = np.uint64(0)
    last = np.uint64(table.size) // width - ONE
    row = indptr[1]
    count = np.uint64(0)
    if back:
        count = np.uint64(saved[0])
    elif counted_at < np.uint64(clocks.size):
        count = np.uint64(clocks[counted_at])
    needed = ONE + np.uint64(clocks.size + sums.size) + (row + count + ONE) * (width + size) + count
    if needed > np.uint64(saved.size):
        return np.int64(needed)
    saved[0] = np.float64(count)
    at = _move(clocks, np.uint64(0), np.uint64(clocks.size), saved, ONE, back)
    at = _move(sums, np.uint64(0), np.uint64(sums.size), saved, at, back)
    for e in range(row + count + ONE):
        feature = last
        if e < row:
            feature = np.uint64(indices[e])
        elif e < row + count:
            if back:
                centered[e - row] = np.uint64(saved[at])
            else:
                saved[at] = np.float64(centered[e - row])
            at += ONE
            feature = centered[e - row] // (TWO * width)  # counted in single precision
        at = _move(table, feature * width, width, saved, at, back)
        at = _move(dual, feature * size, size, saved, at, back)
    return np.int64(needed)


@jit
def _set_shares(sums, c, kind, share):
    """The shares of the experts in the averaged model; those who are retired have none."""
    best = math.inf
    for k in range(EXPERTS):
        best = min(best, sums[c, EVIDENCE + k])
    total, cost = 0.0, sums[c, MIXING_COST]
    for k in range(EXPERTS):
        share[k] = 0.0
        if sums[c, EVIDENCE + k] < math.inf:
            share[k] = sums[c, SHARES + k]
            if kind == MIX_CONVEX:
                worse = sums[c, EVIDENCE + k] - best
                if cost > 1e-300:
                    share[k] = math.exp(-math.log(float(EXPERTS)) / cost * worse)
                else:
                    share[k] = 1.0 if worse == 0.0 else 0.0
        total += share[k]
    for k in range(EXPERTS):
        share[k] = share[k] / total if total > 0.0 else 0.0


@jit
def _weight_of(table, base, place, share, first, last):
    """The average of a feature's weights, of the experts from ``first`` to ``last``, in the feature's unit."""
    x = 0.0
    for k in range(first, last):
        if share[k] > 0.0:
            x += share[k] * np.float64(table[base + place + k])
    return x


def predict_event(
    data, indices, indptr, table, doubles, sums, clocks, centered, kind, labels, width, powers, share, predictions
):
    """The averaged model's prediction of one row, for every output: ``Mixture.predict`` without the other features.

    The arguments are those of ``mixture.learn_mixture``; ``share`` is room for the experts' shares. It is NaN where the
    features or their squares are not finite.
    """
    size = np.uint64(sums.shape[0])
    statistics = size * WIDTH_OF_OUTPUT
    last = np.uint64(table.size) - width
    unit = clocks[LABEL_UNIT] if clocks[LABEL_UNIT] > 0.0 else 1.0
    norm2 = 0.0
    for e in range(indptr[1]):
        norm2 += data[e] * data[e]
    for c in range(size):
        _set_shares(sums, c, kind, share)
        place = c * WEIGHTS
        p = 0.0
        for e in range(indptr[1]):
            base = np.uint64(indices[e]) * width
            x = _weight_of(table, base, place, share, np.uint64(0), WEIGHTS)
            p += data[e] * (x * powers[ZERO_POWER + int(table[base + statistics + _EXPONENT])])
        bias = _weight_of(table, last, place, share, np.uint64(0), WEIGHTS)
        for i in range(int(clocks[CENTERED])):
            base = centered[i]
            at = base + statistics
            wide = wide_place(at)
            mean = doubles[wide + ONE]
            if doubles[wide] == clocks[MIX_SEEN] and not math.isnan(mean):
                x = _weight_of(table, base, place, share, READ_Q, WEIGHTS)
                bias -= mean * (x * powers[ZERO_POWER + int(table[at + _EXPONENT])])
        p += bias
        if labels != PLAIN:
            p = (p + clocks[LABEL_MEAN]) * unit
            p = min(max(p, clocks[LOWEST] * unit), clocks[HIGHEST] * unit)
        predictions[c] = p if norm2 < math.inf else math.nan
