"""The loop of the self-tuning learner: sixteen experts over one read of the data, and their mixture.

The experts share a metric and differ in their rate. For a feature with values q, seen with cumulated weight n:

    z = q - mean      while the feature was in every row so far (a column that never is zero), and q itself after that
    v                 the mean of z^2, over the rows that have the feature
    r_1 = 1 / sqrt(v (v/10 + G))   G adds h g^2 z^2: the rate falls like 1/sqrt(n)   (eight experts)
    r_2 = 1 / (v + H)              H adds h u z^2, u the loss's curvature: like 1/n   (the other eight)

An expert of rate eta plays p = <x, z>, takes a = eta h sum z^2 r, c = update(p, y, a), and moves x by -eta h c z r.
The slope g is the mixture's. What a row adds to G and H shrinks with c/g, so that a large weight, of which the flow
needs only the first part, does not use up the rates.

A feature's record is ``[n, mean, v, reference]`` and, for each output, ``[G, H, 16 weights]``. Weights are measured in
units of the reference, the largest v so far: where v outgrows it, they shrink with its root. The last record is the
intercept's, whose z is 1.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard._compile import call_step, jit
from steelyard._rows import ONE, THREE, TWO
from steelyard._vector import add_sixteen, decay_lanes, dot_sixteen, exp_lanes, logistic_lanes

EXPERTS = 16
HALF = 8
_SHARED = np.uint64(4)
_OUTPUT = np.uint64(18)

# Entries of ``shared``.
SEEN = 0  # cumulated weight
ROWS = 1
CENTERED = 2  # features that were in every row
LOG_WEIGHT = 3  # sum of ln h over the rows of positive weight
LARGEST = 4  # the largest counted weight
LABEL_MEAN = 5
LABEL_VARIANCE = 6
LOWEST = 7
HIGHEST = 8
SHARED = 9

# Columns of ``state``, one row an output.
EVIDENCE = 0  # of each expert: the sum of counted weight times loss
LOSS = 16  # of each expert: the sum of weight times loss
MIXED = 32  # the same of the mixture
COUNTED = 33  # the sum of counted weight times the mixture's loss
GAP = 34  # of AdaHedge: what the mixture lost to mixing
COLUMNS = 35

# Entries of ``config``.
KIND, LABELS, INTERCEPT, DENSE, CLASSES, DELTA, WIDTH = range(7)
GENERIC, LOGISTIC, SQUARED = 0, 1, 2
PLAIN, PROPORTIONAL, UNIT, CUT = 0, 1, 2, 3  # how slopes grow with the labels' scale

EPSILON = 0.1
GROWTH = 1.21  # of v over its reference, before weights are rescaled
MOST = 10.0  # the largest counted weight, in typical weights
LARGE = 1e300


@jit
def _meet(table, base, size, q, h, seen, centering):
    """Let a feature's statistics take in q; returns z, and whether the feature is centered."""
    count = table[base]
    if h == 0.0:
        return q, False
    full = centering and count == seen
    grown = min(count + h, LARGE)
    share = h / grown
    z = q
    square = q * q
    if full:
        away = q - table[base + ONE]
        table[base + ONE] += share * away
        z = q - table[base + ONE]
        square = away * z
    v = table[base + TWO] + share * (square - table[base + TWO])
    table[base] = grown
    table[base + TWO] = v
    reference = table[base + THREE]
    if v > GROWTH * reference:
        if reference > 0.0:
            factor = math.sqrt(reference / v)
            for c in range(size):
                first = base + _SHARED + np.uint64(c) * _OUTPUT + TWO
                for k in range(first, first + np.uint64(EXPERTS)):
                    table[k] *= factor
        table[base + THREE] = v
    return z, full


@jit
def _leave(table, width, size, seen, h, p):
    """Add to each prediction what centered features have in it that this row lacks: -mean * x.

    They lose their centers, and the intercept takes over. A row of weight 0 changes nothing, and there all centered
    features are meant. Returns how many lost their center.
    """
    last = np.uint64(table.size) - width
    left = 0
    for base in range(np.uint64(0), last, width):
        if table[base] == seen:
            mean = table[base + ONE]
            for c in range(size):
                first = base + _SHARED + np.uint64(c) * _OUTPUT + TWO
                into = last + _SHARED + np.uint64(c) * _OUTPUT + TWO
                for k in range(EXPERTS):
                    shift = -mean * table[first + np.uint64(k)]
                    if h > 0.0:
                        table[into + np.uint64(k)] += shift
                    else:
                        p[c * EXPERTS + k] += shift
            if h > 0.0:
                table[base + ONE] = 0.0
                table[base + TWO] += mean * mean
                table[base + THREE] = max(table[base + THREE], table[base + TWO])
                left += 1
    return left


@jit
def _measure(table, first, base, z):
    """(z r_1, z r_2) of a feature, for one output whose part of the record starts at ``first``."""
    v = table[base + TWO]
    if v == 0.0:
        return 0.0, 0.0
    return z / (math.sqrt(v) * math.sqrt(EPSILON * v + table[first])), z / (v + table[first + ONE])


@jit
def _add(table, at, energy):
    """Add to a sum; an overflow leaves it as it is."""
    if table[at] + energy < LARGE:
        table[at] += energy


@jit
def _exponentials(x):
    exp_lanes(x, 0)
    exp_lanes(x, HALF)


@jit
def _mixing_weights(evidence, rate, pi):
    """pi_k in proportion to e^(-rate * evidence_k); an infinite rate takes the leaders, a retired expert gets none."""
    least = evidence.min()
    total = 0.0
    if least == math.inf:
        pi[:] = 1.0
    elif rate == math.inf:
        for k in range(EXPERTS):
            pi[k] = 1.0 if evidence[k] == least else 0.0
    else:
        for k in range(EXPERTS):
            pi[k] = -rate * (evidence[k] - least)
        _exponentials(pi)
        for k in range(EXPERTS):
            if evidence[k] == math.inf:
                pi[k] = 0.0
    for k in range(EXPERTS):
        total += pi[k]
    for k in range(EXPERTS):
        pi[k] /= total


@jit
def _log_mean(pi, x, shift, scratch):
    """-ln sum pi_k e^(-x_k - shift_k), without underflow."""
    least = math.inf
    for k in range(EXPERTS):
        scratch[k] = x[k] + shift[k]
        if pi[k] > 0.0:
            least = min(least, scratch[k])
    for k in range(EXPERTS):
        scratch[k] = least - scratch[k]
    _exponentials(scratch)
    total = 0.0
    for k in range(EXPERTS):
        total += pi[k] * scratch[k]
    return least - math.log(total)


@jit
def _logistic_steps(step, params, p, y, a, value, slope, ratio):
    """Sixteen logistic steps, in vectors where all of them are of a usual size."""
    usual = True
    for k in range(EXPERTS):
        usual &= abs(p[k]) <= 30.0 and 1e-100 <= a[k] <= 1e8
    if not usual:
        _steps(step, params, p, y, a, value, slope, ratio)
        return
    logistic_lanes(p, y, a, 0, value, slope, ratio)
    logistic_lanes(p, y, a, HALF, value, slope, ratio)
    for k in range(EXPERTS):
        slope[k] *= -y


@jit
def _steps(step, params, p, y, a, value, slope, ratio):
    """Sixteen steps of any loss; ratio = c/slope."""
    for k in range(EXPERTS):
        value[k], slope[k], c, _ = call_step(step, p[k], y, a[k], params, 0)
        ratio[k] = min(max(c / slope[k], 0.0), 1.0) if slope[k] != 0.0 else 1.0


@jit
def _aggregate(pi, p, low, high, rate, scratch):
    """The aggregating algorithm's prediction for the squared loss and labels in [low, high]."""
    width = high - low
    if not width > 0.0:
        return low
    ends = 0.0
    for label in (low, high):
        for k in range(EXPERTS):
            scratch[k] = -0.5 * rate * (p[k] - label) * (p[k] - label)
        _exponentials(scratch)
        total = 0.0
        for k in range(EXPERTS):
            total += pi[k] * scratch[k]
        ends = -math.log(total) / rate - ends
    # ends = g(high) - g(low), where g(label) bounds the loss that a label may cost
    return min(max(0.5 * (low + high) - ends / width, low), high)


@jit
def _clip(x, low, high):
    return min(max(x, low), high)


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
    state,
    shared,
    config,
    rates,
    offsets,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order``: like ``_kernels.learn``, for the mixture.

    ``rates`` are those of the sixteen experts; ``offsets`` and ``work`` have room for the longest row.
    """
    kind = int(config[KIND])
    labels = int(config[LABELS])
    intercept = config[INTERCEPT] != 0.0
    dense = config[DENSE] != 0.0
    classes = config[CLASSES] != 0.0
    size = state.shape[0]
    width = np.uint64(config[WIDTH])
    last = np.uint64(table.size) - width
    room = offsets.size
    z, first_z, second_z = work[:room], work[room : 2 * room], work[2 * room : 3 * room]
    rest = work[3 * room :]
    a, value, slope, ratio = rest[0:16], rest[16:32], rest[32:48], rest[48:64]
    pi, change, scratch, zeros = rest[64:80], rest[80:96], rest[96:112], rest[112:128]
    p_all = rest[128:]
    zeros[:] = 0.0
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        seen = shared[SEEN]
        count = 0
        full = 0
        energy_of_row = 0.0
        for e in range(lo, hi):
            q = np.float64(data[e])
            if q != 0.0:
                base = (e - lo if dense else np.uint64(indices[e])) * width
                z[count], centered = _meet(table, base, size, q, h, seen, intercept)
                offsets[count] = base
                count += 1
                full += int(centered)
                energy_of_row += q * q
        if not energy_of_row < math.inf:
            return i
        if intercept:
            offsets[count] = last
            z[count] = 1.0
            count += 1
        p_all[:] = 0.0
        if h == 0.0:
            if shared[CENTERED] > 0.0:
                _leave(table, width, size, seen, h, p_all)
        elif seen == 0.0:
            shared[CENTERED] = full
        elif full < shared[CENTERED]:
            shared[CENTERED] -= _leave(table, width, size, seen, h, p_all)

        # how much the row counts in the mixture: its weight over the typical one
        counted = 1.0
        logarithm = 0.0
        if h > 0.0 and (h != 1.0 or shared[LOG_WEIGHT] != 0.0):
            logarithm = math.log(h)
            typical = (shared[LOG_WEIGHT] + logarithm) / (shared[ROWS] + 1.0)
            counted = min(math.exp(min(logarithm - typical, 3.0)), MOST)
        largest = max(shared[LARGEST], counted)
        low, high = shared[LOWEST], shared[HIGHEST]

        for c in range(size):
            label = y[row]
            if classes:
                label = 1.0 if label == c else -1.0
            start = _SHARED + np.uint64(c) * _OUTPUT
            p = p_all[c * EXPERTS : (c + 1) * EXPERTS]
            dot_sixteen(table, offsets, start + TWO, z, count, p)
            evidence = state[c, EVIDENCE : EVIDENCE + EXPERTS]
            for k in range(EXPERTS):
                if not abs(p[k]) < LARGE or evidence[k] == math.inf:  # retired
                    p[k] = 0.0
                    evidence[k] = math.inf
            if labels != PLAIN:
                for k in range(EXPERTS):
                    p[k] = _clip(p[k] + shared[LABEL_MEAN], low, high) if shared[ROWS] > 0.0 else 0.0
            elif kind == SQUARED:
                for k in range(EXPERTS):
                    p[k] = _clip(p[k], low, high)

            # the labels' mean moves first: what it explains, the experts need not
            moved = 0.0
            unit = 1.0
            if labels != PLAIN and h > 0.0:
                grown = min(seen + h, LARGE)
                away = label - shared[LABEL_MEAN]
                if kind == SQUARED or shared[ROWS] == 0.0:
                    moved = away * (h / grown)
                spread = away * (away - moved)
                shared[LABEL_MEAN] += moved
                shared[LABEL_VARIANCE] += (h / grown) * (spread - shared[LABEL_VARIANCE])
                unit = math.sqrt(shared[LABEL_VARIANCE])
            scale = 1.0  # of slopes
            if labels == PROPORTIONAL:
                scale = unit
            elif labels == CUT:
                scale = min(unit, config[DELTA])
            speed = unit / scale if scale > 0.0 else 0.0

            norm1 = 0.0
            norm2 = 0.0
            for e in range(count):
                first_z[e], second_z[e] = _measure(table, offsets[e] + start, offsets[e], z[e])
                norm1 += z[e] * first_z[e]
                norm2 += z[e] * second_z[e]
            for k in range(HALF):
                a[k] = min(rates[k] * speed * h * norm1, LARGE)
                a[HALF + k] = min(rates[HALF + k] * speed * h * norm2, LARGE)

            # every expert's step, the mixture's prediction and its loss
            if kind == LOGISTIC:
                _logistic_steps(step, params, p, label, a, value, slope, ratio)
                _mixing_weights(evidence, 1.0 / largest, pi)
                loss = _log_mean(pi, value, zeros, scratch)
                for k in range(EXPERTS):
                    change[k] = label * p[k]
                mixed = label * (_log_mean(pi, value, change, scratch) - loss)
                sigma = -math.expm1(-loss)
                steepness = sigma * sigma
                curvature = sigma * (1.0 - sigma)
                counted_loss = loss
            elif kind == SQUARED:
                rate = 4.0 / ((high - low) * (high - low) * largest) if high > low else 1.0
                _mixing_weights(evidence, rate, pi)
                mixed = _aggregate(pi, p, low, high, rate * counted, scratch) if shared[ROWS] > 0.0 or labels == PLAIN else 0.0
                loss = 0.5 * (mixed - label) * (mixed - label)
                inside = _clip(label, low, high)
                counted_loss = 0.5 * (mixed - inside) * (mixed - inside)
                for k in range(EXPERTS):
                    value[k] = 0.5 * (p[k] - inside) * (p[k] - inside)
                    change[k] = 0.5 * (p[k] - label) * (p[k] - label)
                    slope[k] = p[k] + moved - label
                decay_lanes(a, 0, ratio)
                decay_lanes(a, HALF, ratio)
                steepness = (mixed - label) / scale if scale > 0.0 else 0.0
                steepness *= steepness
                curvature = 1.0
            else:
                rate = math.log(16.0) / state[c, GAP] if state[c, GAP] > 0.0 else math.inf
                _mixing_weights(evidence, rate, pi)
                _steps(step, params, p, label, a, value, slope, ratio)
                mixed = 0.0
                hedge = 0.0
                for k in range(EXPERTS):
                    mixed += pi[k] * p[k]
                    hedge += pi[k] * value[k]
                loss, gradient, _, _ = call_step(step, mixed, label, 0.0, params, 0)
                steepness = (gradient / scale) * (gradient / scale) if scale > 0.0 else 0.0
                curvature = steepness
                counted_loss = loss
                if h > 0.0:
                    for k in range(EXPERTS):
                        change[k] = counted * rate * value[k]
                    soft = 0.0
                    if rate < math.inf:
                        soft = _log_mean(pi, change, zeros, scratch) / rate
                    else:
                        soft = math.inf
                        for k in range(EXPERTS):
                            if pi[k] > 0.0:
                                soft = min(soft, counted * value[k])
                    state[c, GAP] += max(0.0, counted * hedge - soft)
            predictions[i * size + c] = mixed
            losses[i * size + c] = loss
            if h == 0.0:
                continue

            state[c, MIXED] += h * loss
            state[c, COUNTED] += counted * counted_loss
            shrink = 0.0
            for k in range(EXPERTS):
                state[c, LOSS + k] += h * (change[k] if kind == SQUARED else value[k])
                evidence[k] += counted * value[k]
                shrink += pi[k] * ratio[k]
                change[k] = -rates[k] * speed * (h * ratio[k]) * slope[k]
                if labels != PLAIN and kind != SQUARED and shared[ROWS] == 0.0:
                    change[k] = 0.0  # the offset takes the first label
                if not abs(change[k]) < LARGE or evidence[k] == math.inf:
                    change[k] = 0.0
            steepness *= h * shrink
            curvature *= h * shrink
            for e in range(count):
                at = offsets[e] + start
                add_sixteen(table, at + TWO, change, first_z[e], second_z[e])
                _add(table, at, steepness * z[e] * z[e])
                _add(table, at + ONE, curvature * z[e] * z[e])
        if h == 0.0:
            continue
        shared[SEEN] = min(seen + h, LARGE)
        shared[ROWS] += 1.0
        shared[LOG_WEIGHT] += logarithm
        shared[LARGEST] = largest
        if labels != PLAIN:
            shared[LOWEST] = min(low, y[row]) if shared[ROWS] > 1.0 else y[row]
            shared[HIGHEST] = max(high, y[row]) if shared[ROWS] > 1.0 else y[row]
    return -1
