"""The loop of the self-tuning learner: eight experts over one read of the data, and their mixture.

The experts share two metrics and differ in their rate. For a feature with values q, seen with cumulated weight n:

    z = q - mean      for a column that is hardly ever zero: in the first row, and varying by less than its mean
                      whenever it is zero; q itself for others
    v                 the mean of z^2, over the rows that have the feature; and u, the mean of q^2
    r_1 = 1 / sqrt(u (u/10 + G))   G adds h g^2 q^2: the rate falls like 1/sqrt(n)   (four experts, who read q)
    r_2 = 1 / (v + H)              H adds h g' z^2, g' the loss's curvature: like 1/n   (the other four, who read z)

An expert of rate eta plays p = <x, z>, takes a = eta h sum z^2 r, c = update(p, y, a), and moves x by -eta h c z r
(with q in place of z for the first four). The slope g is the mixture's. What a row adds to G and H shrinks with c/g, so
that a large weight, of which the flow needs only the first part, does not use up the rates.

``features`` has the records of the features, ``mixing`` the three ways of mixing. The last record is the intercept's,
whose z is 1.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.features import (
    LARGE,
    RANGE,
    WEIGHTS,
    WIDTH_OF_OUTPUT,
    add_bounded,
    grown_weight,
    inverse_metrics,
    keep_record,
    observe,
    observe_missing,
    predict_centered,
)
from steelyard.kernels.intrinsics import prefetch
from steelyard.kernels.layout import (
    CENTERED,
    COUNTED_EXPERT_LOSS,
    COUNTED_LOSS,
    CUT,
    EVIDENCE,
    EXPERT_LOSS,
    EXPERT_VECTORS,
    EXPERTS,
    HALF,
    HIGHEST,
    LABEL_MEAN,
    LABEL_VARIANCE,
    LARGEST,
    LOG_WEIGHT,
    LOWEST,
    MIX_CLASSES,
    MIX_DELTA,
    MIX_DENSE,
    MIX_INTERCEPT,
    MIX_KIND,
    MIX_LABELS,
    MIX_LOGISTIC,
    MIX_ROWS,
    MIX_SEEN,
    MIX_SQUARED,
    MIX_WIDTH,
    MIXED_LOSS,
    MIXING_COST,
    PLAIN,
    PROPORTIONAL,
    ROW_VECTORS,
)
from steelyard.kernels.mixing import clip, mix_convex, mix_logistic, mix_squared
from steelyard.kernels.rows import ONE, TWO, ZERO, fetch
from steelyard.kernels.steps.lanes import add_lanes, dot_lanes

MOST = 10.0  # the largest counted weight, in typical weights
TINY = 1e-290  # smaller values are zero


@inline_jit
def _counted_weight(clocks, h):
    """How much a row counts in the mixture, its weight over the typical one; and the logarithm of its weight."""
    if h > 0.0 and (h != 1.0 or clocks[LOG_WEIGHT] != 0.0):
        logarithm = math.log(h)
        typical = (clocks[LOG_WEIGHT] + logarithm) / (clocks[MIX_ROWS] + 1.0)
        return min(math.exp(min(logarithm - typical, 3.0)), MOST), logarithm
    return 1.0, 0.0


@inline_jit
def _retire_and_clip(clocks, kind, labels, evidence, p):
    """Retire experts that leave the range of floats; real labels: predictions are kept within those seen."""
    for k in range(EXPERTS):
        if not abs(p[k]) < RANGE or evidence[k] == math.inf:
            p[k] = 0.0
            evidence[k] = math.inf
    if labels != PLAIN:
        for k in range(EXPERTS):
            p[k] = clip(p[k] + clocks[LABEL_MEAN], clocks[LOWEST], clocks[HIGHEST]) if clocks[MIX_ROWS] > 0.0 else 0.0
    elif kind == MIX_SQUARED:
        for k in range(EXPERTS):
            p[k] = clip(p[k], clocks[LOWEST], clocks[HIGHEST])


@jit
def _follow_labels(clocks, label, h, seen, moving):
    """Let the labels' mean and spread take in a label; returns by how much the mean moved, and the spread."""
    share = h / min(seen + h, LARGE)
    away = label - clocks[LABEL_MEAN]
    moved = away * share if moving else 0.0
    clocks[LABEL_MEAN] += moved
    clocks[LABEL_VARIANCE] += share * (away * (away - moved) - clocks[LABEL_VARIANCE])
    return moved, math.sqrt(clocks[LABEL_VARIANCE])


@inline_jit
def _label_scales(clocks, kind, labels, delta, label, h, seen, intercept, first_label):
    """The labels' mean moves first: what it explains, the experts need not. Returns by how much it moved, the scale of
    slopes, and how much faster steps must be because of it."""
    moved = 0.0
    unit = 1.0
    if labels != PLAIN and h > 0.0:
        moving = first_label or (intercept and kind == MIX_SQUARED)
        moved, unit = _follow_labels(clocks, label, h, seen, moving)
    scale = 1.0
    if labels == PROPORTIONAL:
        scale = unit
    elif labels == CUT:
        scale = min(unit, delta)
    return moved, scale, unit / scale if scale > 0.0 else 0.0


@inline_jit
def _norms(table, row, count, sums_at, statistics):
    """Fill in q r_1 and z r_2 of every feature of a row; returns sum q^2 r_1 and sum z^2 r_2."""
    offsets, whole, z, first, second = row
    norm1 = 0.0
    norm2 = 0.0
    for e in range(count):
        at = offsets[e] + sums_at
        v = np.float64(table[offsets[e] + statistics])
        g, curve = np.float64(table[at]), np.float64(table[at + ONE])
        first[e], second[e] = inverse_metrics(v, g, curve, whole[e], z[e])
        norm1 += whole[e] * first[e]
        norm2 += z[e] * second[e]
    return norm1, norm2


@inline_jit
def _count_losses(sums, c, kind, h, counted, loss, evidence, experts):
    """Add the losses of the round to those of the mixture and of every expert; returns the mean of c/slope."""
    _, value, _, ratio, pi, change, _, _ = experts
    sums[c, MIXED_LOSS] += h * loss
    sums[c, COUNTED_LOSS] += counted * loss
    shrink = 0.0
    for k in range(EXPERTS):
        own = change[k] if kind == MIX_SQUARED else value[k]
        sums[c, EXPERT_LOSS + k] += h * own
        evidence[k] += counted * value[k]
        sums[c, COUNTED_EXPERT_LOSS + k] += counted * own
        shrink += pi[k] * ratio[k]
    return shrink


@inline_jit
def _set_changes(norm1, norm2, held, evidence, experts):
    """By how much every expert moves, for each unit of q r; not at all where it is ``held`` or retired."""
    a, _, slope, ratio, _, change, _, _ = experts
    for k in range(EXPERTS):
        norm = norm1 if k < HALF else norm2
        change[k] = -(a[k] / norm * ratio[k]) * slope[k] if norm > 0.0 else 0.0
        if held or not abs(change[k]) < LARGE or evidence[k] == math.inf:
            change[k] = 0.0


@inline_jit
def _update_features(table, row, count, start, sums_at, change, steepness, curvature):
    """Move the weights of every feature of a row, and add to its G and H."""
    offsets, whole, z, first, second = row
    for e in range(count):
        add_lanes(table, offsets[e] + start, change, first[e], second[e])
        at = offsets[e] + sums_at
        add_bounded(table, at, steepness * whole[e] * whole[e])
        add_bounded(table, at + ONE, curvature * z[e] * z[e])


@inline_jit
def _rows_ahead(data, indices, indptr, order, i, dense):
    """Where the next sparse row stands; the one after it is fetched."""
    if dense or i + 1 >= order.size:
        return ZERO, ZERO
    if i + 2 < order.size:
        fetch(data, indices, indptr, order[i + 2])
    return indptr[order[i + 1]], indptr[order[i + 1] + 1]


@inline_jit
def _observe_row(
    data,
    indices,
    lo,
    hi,
    ahead,
    dense,
    h,
    seen,
    after,
    intercept,
    table,
    doubles,
    width,
    size,
    powers,
    features,
    journal,
):
    """Let the features of a row take in its values; returns how many there are, how many of them are centered, and
    the sum of their squares.

    Records of the row ``ahead`` are fetched one by one on the way: all at once, they would wait in line.
    """
    offsets, whole, z, _, _ = features
    stamps, copies, copied = journal
    next_lo, next_hi = ahead
    keeping = stamps.size > 0 and h > 0.0
    count = 0
    full = 0
    sum_of_squares = 0.0
    for e in range(lo, hi):
        if next_lo < next_hi:
            prefetch(table, np.uint64(indices[next_lo]) * width)
            next_lo += ONE
        q = np.float64(data[e])
        if not abs(q) <= TINY:
            base = (e - lo if dense else np.uint64(indices[e])) * width
            if keeping:
                keep_record(doubles, base, width, stamps, np.uint64(indices[e]), copies, copied)
            whole[count], z[count], is_centered = observe(
                table, doubles, base, size, q, h, seen, after, intercept, powers
            )
            offsets[count] = base
            count += 1
            full += int(is_centered)
            sum_of_squares += q * q
    return count, full, sum_of_squares


def learn_mixture(
    step,
    params,
    data,
    indices,
    indptr,
    order,
    y,
    weight,
    table,
    doubles,
    sums,
    clocks,
    centered,
    config,
    rates,
    powers,
    offsets,
    work,
    stamps,
    copies,
    copied,
    predictions,
    losses,
):
    """Learn the rows in ``order``: like ``single.learn``, for the mixture.

    ``doubles`` is the memory of ``table`` seen in double precision, ``rates`` are those of the experts, ``powers`` has
    2^-k, and ``offsets`` and ``work`` have room for the longest row.

    Where ``stamps`` is not empty, the first change of a feature's record is preceded by a copy of it: the copies go to
    ``copies``, the features to ``copied[1:]`` and their number to ``copied[0]``. A stamp is 1 where a feature has been
    copied.
    """
    kind, labels = int(config[MIX_KIND]), int(config[MIX_LABELS])
    intercept, dense, classes = config[MIX_INTERCEPT] != 0.0, config[MIX_DENSE] != 0.0, config[MIX_CLASSES] != 0.0
    size = np.uint64(sums.shape[0])
    statistics = size * WIDTH_OF_OUTPUT
    width = np.uint64(config[MIX_WIDTH])
    last = np.uint64(table.size) - width
    room = offsets.size
    features = (offsets, work[:room], work[room : 2 * room], work[2 * room : 3 * room], work[3 * room : 4 * room])
    rest = work[ROW_VECTORS * room :]
    experts = (  # slices, since a kernel cannot return arrays from a function
        rest[:EXPERTS],
        rest[EXPERTS : 2 * EXPERTS],
        rest[2 * EXPERTS : 3 * EXPERTS],
        rest[3 * EXPERTS : 4 * EXPERTS],
        rest[4 * EXPERTS : 5 * EXPERTS],
        rest[5 * EXPERTS : 6 * EXPERTS],
        rest[6 * EXPERTS : 7 * EXPERTS],
        rest[7 * EXPERTS : 8 * EXPERTS],
    )
    whole, z = features[1], features[2]
    a, change, zeros = experts[0], experts[5], experts[7]
    p_all = rest[EXPERT_VECTORS * EXPERTS :]
    zeros[:] = 0.0
    journal = (stamps, copies, copied)
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        seen = clocks[MIX_SEEN]
        after = grown_weight(seen, h)
        ahead = _rows_ahead(data, indices, indptr, order, i, dense)
        count, full, sum_of_squares = _observe_row(
            data,
            indices,
            lo,
            hi,
            ahead,
            dense,
            h,
            seen,
            after,
            intercept,
            table,
            doubles,
            width,
            size,
            powers,
            features,
            journal,
        )
        if not sum_of_squares < math.inf:
            return i
        p_all[:] = 0.0
        if h == 0.0:
            predict_centered(table, doubles, centered, clocks, size, p_all, powers)
        elif seen == 0.0:
            clocks[CENTERED] = full
            for e in range(full):
                centered[e] = offsets[e]
        elif full < clocks[CENTERED]:
            count = observe_missing(
                table, doubles, centered, clocks, last, size, h, seen, after, powers, offsets, whole, z, count
            )
        if intercept:
            offsets[count] = last
            z[count] = whole[count] = 1.0
            count += 1

        counted, logarithm = _counted_weight(clocks, h)
        largest = max(clocks[LARGEST], counted)
        low, high = clocks[LOWEST], clocks[HIGHEST]
        first_label = intercept and clocks[MIX_ROWS] == 0.0
        for c in range(size):
            label = y[row]
            if classes:
                label = 1.0 if label == c else -1.0
            start, sums_at = c * WEIGHTS, size * WEIGHTS + TWO * c
            p = p_all[c * WEIGHTS : (c + ONE) * WEIGHTS]
            dot_lanes(table, offsets, start, whole, z, count, p)
            evidence = sums[c, EVIDENCE : EVIDENCE + EXPERTS]
            _retire_and_clip(clocks, kind, labels, evidence, p)
            moved, scale, speed = _label_scales(
                clocks, kind, labels, config[MIX_DELTA], label, h, seen, intercept, first_label
            )
            norm1, norm2 = _norms(table, features, count, sums_at, statistics)
            for k in range(HALF):
                a[k] = min(rates[k] * speed * h * norm1, LARGE)
                a[HALF + k] = min(rates[HALF + k] * speed * h * norm2, LARGE)

            # every expert's step, the mixture's prediction and its loss
            if kind == MIX_LOGISTIC:
                mixed, loss, steepness, curvature = mix_logistic(step, params, label, largest, evidence, p, experts)
            elif kind == MIX_SQUARED:
                first_row = labels != PLAIN and not clocks[MIX_ROWS] > 0.0
                mixed, loss, steepness, curvature = mix_squared(
                    label, low, high, first_row, moved, scale, largest, counted, evidence, p, experts
                )
            else:
                mixed, loss, steepness, curvature, cost = mix_convex(
                    step, params, label, scale, counted, sums[c, MIXING_COST], evidence, p, experts
                )
                if h > 0.0:
                    sums[c, MIXING_COST] += cost
            predictions[np.uint64(i) * size + c] = mixed
            losses[np.uint64(i) * size + c] = loss
            if h == 0.0:
                continue
            shrink = _count_losses(sums, c, kind, h, counted, loss, evidence, experts)
            held = labels != PLAIN and kind != MIX_SQUARED and first_label  # the offset takes it
            _set_changes(norm1, norm2, held, evidence, experts)
            steepness *= h * shrink
            curvature *= h * shrink
            _update_features(table, features, count, start, sums_at, change, steepness, curvature)
        if h == 0.0:
            continue
        clocks[MIX_SEEN] = after
        clocks[MIX_ROWS] += 1.0
        clocks[LOG_WEIGHT] += logarithm
        clocks[LARGEST] = largest
        if labels != PLAIN:
            clocks[LOWEST] = min(low, y[row]) if clocks[MIX_ROWS] > 1.0 else y[row]
            clocks[HIGHEST] = max(high, y[row]) if clocks[MIX_ROWS] > 1.0 else y[row]
    return -1
