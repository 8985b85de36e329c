"""The loop of the self-tuning learner: eight experts over one read of the data, and their mixture.

The experts share two metrics and differ in their rate. For a feature with values q, seen with cumulated weight n:

    z = q - mean      for a column that is hardly ever zero: met in the first row, and varying by less than its mean
                      whenever it is zero; q itself for others
    v                 the mean of z^2, over the rows that have the feature; and u, the mean of q^2
    r_1 = 1 / sqrt(u (u/10 + G))   G adds h g^2 q^2: the rate falls like 1/sqrt(n)   (four experts, who read q)
    r_2 = 1 / (v + H)              H adds h g' z^2, g' the loss's curvature: like 1/n   (the other four, who read z)

An expert of rate eta plays p = <x, z>, takes a = eta h sum z^2 r, c = update(p, y, a), and moves x by -eta h c z r
(with q in place of z for the first four). The slope g is the mixture's. What a row adds to G and H shrinks with c/g, so
that a large weight, of which the flow needs only the first part, does not use up the rates.

A feature is one cache line: for each output 8 weights, then for each output (G, H), then v, an exponent k (these of
single precision), n and the mean. All but n and the mean are in units of 2^k, chosen when v is first known: single
precision then serves columns of any scale. Where v outgrows 4^k, k grows and the weights stay, so that x = w/2^k
shrinks with the scale. A feature without a center has the mean NaN. The last record is the intercept's, whose z is 1.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard._compile import call_step, inline_jit, jit, prefetch
from steelyard._rows import FOUR, ONE, TWO, fetch
from steelyard._vector import add_lanes, decay_lanes, dot_lanes, exp_lanes, logistic_lanes

EXPERTS = 8
HALF = 4
_WEIGHTS = np.uint64(8)
_OUTPUT = np.uint64(10)  # numbers of a record for each output
ZERO_POWER = 1100  # where ``powers`` has 2^0; 2^-k stands k places after it

# Entries of ``shared``.
SEEN = 0  # cumulated weight
ROWS = 1
CENTERED = 2  # how many features are centered
LOG_WEIGHT = 3  # sum of ln h over the rows of positive weight
LARGEST = 4  # the largest counted weight
LABEL_MEAN = 5
LABEL_VARIANCE = 6
LOWEST = 7
HIGHEST = 8
LABEL_UNIT = 9  # the power of two that labels are measured in, 0 before one is known (Python's business)
SHARED = 10  # how many; the centered features come after them

# Columns of ``state``, one row an output.
EVIDENCE = 0  # of each expert: the sum of counted weight times loss
LOSS = 8  # of each expert: the sum of weight times loss
MIXED = 16  # the same of the mixture
COUNTED = 17  # the sum of counted weight times the mixture's loss
GAP = 18  # of AdaHedge: what the mixture lost to mixing
TRUE = 19  # of each expert: the sum of counted weight times loss, where evidence is kept of labels within the range
COLUMNS = 27

# Entries of ``config``.
KIND, LABELS, INTERCEPT, DENSE, CLASSES, DELTA, WIDTH = range(7)
GENERIC, LOGISTIC, SQUARED = 0, 1, 2
PLAIN, PROPORTIONAL, UNIT, CUT = 0, 1, 2, 3  # how slopes grow with the labels' scale

EPSILON = 0.1
MOST = 10.0  # the largest counted weight, in typical weights
LARGE = 1e300
TINY = 1e-290  # smaller values are zero
RANGE = 1e30  # of an expert's predictions, in units of the labels


@jit
def _exponent(x):
    """The k with 2^k <= |x| < 2^(k+1)."""
    _, e = math.frexp(x)
    return e - 1


@jit
def _change_unit(table, base, size, k, powers, keep):
    """Measure a feature in units of 2^k. As the unit grows, x shrinks; ``keep`` keeps it for the first four experts."""
    at = base + size * _OUTPUT
    steps = min(k - int(table[at + ONE]), 1000)
    table[at + ONE] = k
    factor = powers[ZERO_POWER + steps]
    for j in range(base + size * _WEIGHTS, at + ONE):
        table[j] *= factor * factor
    if keep:
        for j in range(size * _WEIGHTS):
            if j % _WEIGHTS < FOUR:
                table[base + j] *= powers[ZERO_POWER - steps]


@inline_jit
def _meet(table, doubles, base, size, q, h, seen, centering, powers):
    """Let a feature's statistics take in q; returns q and z in the feature's unit, and whether it is centered."""
    at = base + size * _OUTPUT
    wide = (at >> ONE) + ONE  # n and the mean
    if h == 0.0:
        z = q * powers[ZERO_POWER + int(table[at + ONE])]
        return z, z, False
    count = doubles[wide]
    full = centering and count == seen and not math.isnan(doubles[wide + ONE])
    grown = min(count + h, LARGE)
    doubles[wide] = grown
    share = h / grown
    away = q
    z = q
    if full:
        away = q - doubles[wide + ONE]
        doubles[wide + ONE] += share * away
        z = q - doubles[wide + ONE]
        if z == 0.0:
            table[at] -= share * table[at]
            return (q * powers[ZERO_POWER + int(table[at + ONE])] if table[at] > 0.0 else 0.0), z, full
    elif count == 0.0:
        doubles[wide + ONE] = math.nan
    if table[at] == 0.0:
        table[at + ONE] = _exponent(z)  # not measured yet, so its weights are zero
    inverse = powers[ZERO_POWER + int(table[at + ONE])]
    if not abs(z * inverse) < 1e15:
        _change_unit(table, base, size, _exponent(z), powers, False)
        inverse = powers[ZERO_POWER + int(table[at + ONE])]
    z *= inverse
    v = table[at] + share * ((away * inverse) * z - table[at])
    if v > 4.0:
        steps = _exponent(math.sqrt(v))
        _change_unit(table, base, size, int(table[at + ONE]) + steps, powers, False)
        smaller = powers[ZERO_POWER + steps]
        inverse *= smaller
        z *= smaller
        v *= smaller * smaller
    table[at] = v
    return q * inverse, z, full


@jit
def _leave(table, doubles, base, last, size, powers):
    """Take a feature's center away: the intercept takes -mean * x over from the experts who read z."""
    at = base + size * _OUTPUT
    wide = (at >> ONE) + ONE
    center = doubles[wide + ONE]
    doubles[wide + ONE] = math.nan
    if table[at] == 0.0 and center != 0.0:
        table[at + ONE] = _exponent(center)
    mean = center * powers[ZERO_POWER + int(table[at + ONE])]
    v = np.float64(table[at]) + mean * mean
    if v > 4.0:
        steps = _exponent(math.sqrt(v))
        _change_unit(table, base, size, int(table[at + ONE]) + steps, powers, True)
        mean *= powers[ZERO_POWER + steps]
        v *= powers[ZERO_POWER + steps] * powers[ZERO_POWER + steps]
    table[at] = v
    for k in range(size * _WEIGHTS):
        if k % _WEIGHTS >= FOUR:
            table[last + k] += -mean * table[base + k]


@jit
def _meet_missing(table, doubles, members, shared, last, size, h, seen, powers, offsets, whole, z, count):
    """Centered features that the row lacks are zero in it: z = -mean. Returns the new ``count`` of features met.

    One that varies by more than its mean is zero too often to be worth it, and loses its center.
    """
    i = 0
    while i < int(shared[CENTERED]):
        base = np.uint64(members[i])
        at = base + size * _OUTPUT
        wide = (at >> ONE) + ONE
        if doubles[wide] == seen:
            whole[count], z[count], _ = _meet(table, doubles, base, size, 0.0, h, seen, True, powers)
            mean = doubles[wide + ONE] * powers[ZERO_POWER + int(table[at + ONE])]
            if table[at] >= mean * mean:
                _leave(table, doubles, base, last, size, powers)
                shared[CENTERED] -= 1.0
                members[i] = members[int(shared[CENTERED])]
                continue
            offsets[count] = base
            count += 1
        i += 1
    return count


@jit
def _predict_centered(table, doubles, members, shared, size, p, powers):
    """Add -mean * x of all centered features to the predictions: a row of weight 0 changes no mean."""
    for i in range(int(shared[CENTERED])):
        base = np.uint64(members[i])
        at = base + size * _OUTPUT
        mean = doubles[(at >> ONE) + TWO] * powers[ZERO_POWER + int(table[at + ONE])]
        for k in range(size * _WEIGHTS):
            if k % _WEIGHTS >= FOUR:
                p[k] += -mean * table[base + k]


@inline_jit
def _measure(v, g, h, q, z):
    """(q r_1, z r_2) of a feature."""
    if v == 0.0:
        return 0.0, 0.0
    u = v + (q - z) * (q - z)
    root = math.sqrt(u * (EPSILON * u + g))
    both = 1.0 / (root * (v + h))  # one division; in the feature's unit, nothing overflows
    return q * ((v + h) * both), z * (root * both)


@inline_jit
def _add(table, at, energy):
    """Add to a sum; an overflow leaves it as it is."""
    if table[at] + energy < RANGE:
        table[at] += energy


@jit
def _mixing_weights(evidence, rate, pi):
    """pi_k in proportion to e^(-rate * evidence_k); an infinite rate takes the leaders, a retired expert gets none."""
    least = math.inf
    total = 0.0
    for k in range(EXPERTS):
        least = min(least, evidence[k])
    if least == math.inf:
        pi[:] = 1.0
    elif rate == math.inf:
        for k in range(EXPERTS):
            pi[k] = 1.0 if evidence[k] == least else 0.0
    else:
        for k in range(EXPERTS):
            pi[k] = -rate * (evidence[k] - least)
        exp_lanes(pi, 0)
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
    exp_lanes(scratch, 0)
    total = 0.0
    for k in range(EXPERTS):
        total += pi[k] * scratch[k]
    return least - math.log(total)


@jit
def _logistic_steps(step, params, p, y, a, value, slope, ratio):
    """Eight logistic steps, in vectors where all of them are of a usual size."""
    usual = True
    for k in range(EXPERTS):
        usual &= abs(p[k]) <= 30.0 and 1e-100 <= a[k] <= 1e8
    if not usual:
        _steps(step, params, p, y, a, value, slope, ratio)
        return
    logistic_lanes(p, y, a, 0, value, slope, ratio)
    for k in range(EXPERTS):
        slope[k] *= -y


@jit
def _steps(step, params, p, y, a, value, slope, ratio):
    """Eight steps of any loss; ratio = c/slope."""
    for k in range(EXPERTS):
        value[k], slope[k], c, _ = call_step(step, p[k], y, a[k], params, 0)
        ratio[k] = min(max(c / slope[k], 0.0), 1.0) if slope[k] != 0.0 else 1.0


@jit
def _clip(x, low, high):
    return min(max(x, low), high)


@jit
def _follow_labels(shared, label, h, seen, moving):
    """Let the labels' mean and spread take in a label; returns by how much the mean moved, and the spread."""
    share = h / min(seen + h, LARGE)
    away = label - shared[LABEL_MEAN]
    moved = away * share if moving else 0.0
    shared[LABEL_MEAN] += moved
    shared[LABEL_VARIANCE] += share * (away * (away - moved) - shared[LABEL_VARIANCE])
    return moved, math.sqrt(shared[LABEL_VARIANCE])


@jit
def _aggregate(pi, p, low, high, rate, scratch):
    """The aggregating algorithm's prediction for the squared loss and labels in [low, high]."""
    width = high - low
    if not width > 0.0:
        return low
    if rate * width * width < 1e-9:  # the limit, which is the mean
        mean = 0.0
        for k in range(EXPERTS):
            mean += pi[k] * p[k]
        return _clip(mean, low, high)
    ends = 0.0
    for label in (low, high):
        for k in range(EXPERTS):
            scratch[k] = -0.5 * rate * (p[k] - label) * (p[k] - label)
        exp_lanes(scratch, 0)
        total = 0.0
        for k in range(EXPERTS):
            total += pi[k] * scratch[k]
        ends = -math.log(total) / rate - ends
    # ends = g(high) - g(low), where g(label) bounds the loss that a label may cost
    return _clip(0.5 * (low + high) - ends / width, low, high)


# Each of these takes a label and what the experts predict, writes every expert's loss, slope and c/slope, and returns
# the mixture's prediction, its loss, and what the row adds to G and H. ``experts`` are eight vectors: the step lengths,
# the three results, the shares, and room to work in.


@jit
def _mix_logistic(step, params, label, largest, evidence, p, experts):
    """Probabilities are mixed: the loss of the mixture is never above that of the experts' average probability."""
    a, value, slope, ratio, pi, change, scratch, zeros = experts
    _logistic_steps(step, params, p, label, a, value, slope, ratio)
    _mixing_weights(evidence, 1.0 / largest, pi)
    loss = _log_mean(pi, value, zeros, scratch)
    for k in range(EXPERTS):
        change[k] = label * p[k]
    mixed = label * (_log_mean(pi, value, change, scratch) - loss)
    sigma = -math.expm1(-loss)
    return mixed, loss, sigma * sigma, sigma * (1.0 - sigma)


@jit
def _mix_squared(label, low, high, first_row, moved, scale, largest, counted, evidence, p, experts):
    """The aggregating algorithm, on the range of labels seen before. ``change`` receives the losses at the label
    itself, ``value`` those at the label within the range."""
    a, value, slope, ratio, pi, change, scratch, _ = experts
    rate = 4.0 / ((high - low) * (high - low) * largest) if high > low else 1.0
    _mixing_weights(evidence, rate, pi)
    mixed = 0.0 if first_row else _aggregate(pi, p, low, high, rate * counted, scratch)
    loss = 0.5 * (mixed - label) * (mixed - label)
    inside = _clip(label, low, high)
    for k in range(EXPERTS):
        value[k] = 0.5 * (p[k] - inside) * (p[k] - inside)
        change[k] = 0.5 * (p[k] - label) * (p[k] - label)
        slope[k] = p[k] + moved - label
    decay_lanes(a, 0, ratio)
    steepness = (mixed - label) / scale if scale > 0.0 else 0.0
    return mixed, loss, steepness * steepness, 1.0


@jit
def _mix_convex(step, params, label, scale, counted, gap, evidence, p, experts):
    """AdaHedge, for any other loss; also returns what ``gap``, which sets its rate, grows by."""
    a, value, slope, ratio, pi, change, scratch, zeros = experts
    rate = math.log(8.0) / gap if gap > 1e-300 else math.inf
    _mixing_weights(evidence, rate, pi)
    _steps(step, params, p, label, a, value, slope, ratio)
    mixed = 0.0
    for k in range(EXPERTS):
        if pi[k] > 0.0:
            mixed += pi[k] * p[k]
    loss, gradient, _, _ = call_step(step, mixed, label, 0.0, params, 0)
    steepness = (gradient / scale) * (gradient / scale) if scale > 0.0 else 0.0
    if loss == math.inf:
        return mixed, loss, steepness, steepness, math.inf
    least = math.inf
    for k in range(EXPERTS):
        if pi[k] > 0.0:
            least = min(least, value[k])
    soft = counted * least
    if least < math.inf and rate < math.inf:
        for k in range(EXPERTS):  # the smallest first comes off, so that no product overflows for all of them
            change[k] = counted * rate * (value[k] - least) if pi[k] > 0.0 else math.inf
        soft += _log_mean(pi, change, zeros, scratch) / rate
    elif least < math.inf:
        first, second = math.inf, math.inf
        for k in range(EXPERTS):
            first = min(first, evidence[k])
            second = min(second, evidence[k] + counted * value[k])
        soft = second - first if second < math.inf else 0.0
    return mixed, loss, steepness, steepness, max(0.0, counted * loss - soft)


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
    state,
    shared,
    config,
    rates,
    powers,
    offsets,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order``: like ``_kernels.learn``, for the mixture.

    ``doubles`` is the memory of ``table`` seen in double precision, ``rates`` are those of the experts, ``powers`` has
    2^-k, and ``offsets`` and ``work`` have room for the longest row.
    """
    kind = int(config[KIND])
    labels = int(config[LABELS])
    intercept = config[INTERCEPT] != 0.0
    dense = config[DENSE] != 0.0
    classes = config[CLASSES] != 0.0
    size = np.uint64(state.shape[0])
    statistics = size * _OUTPUT
    width = np.uint64(config[WIDTH])
    last = np.uint64(table.size) - width
    members = shared[SHARED:]  # the centered features, as many as CENTERED says
    room = offsets.size
    z, whole = work[:room], work[room : 2 * room]
    first, second = work[2 * room : 3 * room], work[3 * room : 4 * room]
    rest = work[4 * room :]
    a, value, slope, ratio = rest[0:8], rest[8:16], rest[16:24], rest[24:32]
    pi, change, scratch, zeros = rest[32:40], rest[40:48], rest[48:56], rest[56:64]
    experts = (a, value, slope, ratio, pi, change, scratch, zeros)
    p_all = rest[64:]
    zeros[:] = 0.0
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        seen = shared[SEEN]
        count = 0
        full = 0
        # records of the next row are fetched one by one while this row is read: all at once, they would wait in line
        next_lo, next_hi = lo, lo
        if not dense and i + 1 < order.size:
            next_lo, next_hi = indptr[order[i + 1]], indptr[order[i + 1] + 1]
            if i + 2 < order.size:
                fetch(data, indices, indptr, order[i + 2])
        energy_of_row = 0.0
        for e in range(lo, hi):
            if next_lo < next_hi:
                prefetch(table, np.uint64(indices[next_lo]) * width)
                next_lo += ONE
            q = np.float64(data[e])
            if not abs(q) <= TINY:
                base = (e - lo if dense else np.uint64(indices[e])) * width
                whole[count], z[count], centered = _meet(table, doubles, base, size, q, h, seen, intercept, powers)
                offsets[count] = base
                count += 1
                full += int(centered)
                energy_of_row += q * q
        if not energy_of_row < math.inf:
            return i
        p_all[:] = 0.0
        if h == 0.0:
            _predict_centered(table, doubles, members, shared, size, p_all, powers)
        elif seen == 0.0:
            shared[CENTERED] = full
            for e in range(full):
                members[e] = offsets[e]
        elif full < shared[CENTERED]:
            count = _meet_missing(
                table, doubles, members, shared, last, size, h, seen, powers, offsets, whole, z, count
            )
        if intercept:
            offsets[count] = last
            z[count] = whole[count] = 1.0
            count += 1

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
            start = c * _WEIGHTS
            sums = size * _WEIGHTS + TWO * c
            p = p_all[c * _WEIGHTS : (c + ONE) * _WEIGHTS]
            dot_lanes(table, offsets, start, whole, z, count, p)
            evidence = state[c, EVIDENCE : EVIDENCE + EXPERTS]
            for k in range(EXPERTS):
                if not abs(p[k]) < RANGE or evidence[k] == math.inf:  # retired
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
            first_label = intercept and shared[ROWS] == 0.0
            if labels != PLAIN and h > 0.0:
                moving = first_label or (intercept and kind == SQUARED)
                moved, unit = _follow_labels(shared, label, h, seen, moving)
            scale = 1.0  # of slopes
            if labels == PROPORTIONAL:
                scale = unit
            elif labels == CUT:
                scale = min(unit, config[DELTA])
            speed = unit / scale if scale > 0.0 else 0.0

            norm1 = 0.0
            norm2 = 0.0
            for e in range(count):
                at = offsets[e] + sums
                v = np.float64(table[offsets[e] + statistics])
                g, curve = np.float64(table[at]), np.float64(table[at + ONE])
                first[e], second[e] = _measure(v, g, curve, whole[e], z[e])
                norm1 += whole[e] * first[e]
                norm2 += z[e] * second[e]
            for k in range(HALF):
                a[k] = min(rates[k] * speed * h * norm1, LARGE)
                a[HALF + k] = min(rates[HALF + k] * speed * h * norm2, LARGE)

            # every expert's step, the mixture's prediction and its loss
            if kind == LOGISTIC:
                mixed, loss, steepness, curvature = _mix_logistic(step, params, label, largest, evidence, p, experts)
            elif kind == SQUARED:
                first_row = labels != PLAIN and not shared[ROWS] > 0.0
                mixed, loss, steepness, curvature = _mix_squared(
                    label, low, high, first_row, moved, scale, largest, counted, evidence, p, experts
                )
            else:
                mixed, loss, steepness, curvature, gap = _mix_convex(
                    step, params, label, scale, counted, state[c, GAP], evidence, p, experts
                )
                if h > 0.0:
                    state[c, GAP] += gap
            predictions[np.uint64(i) * size + c] = mixed
            losses[np.uint64(i) * size + c] = loss
            if h == 0.0:
                continue

            state[c, MIXED] += h * loss
            state[c, COUNTED] += counted * loss
            shrink = 0.0
            for k in range(EXPERTS):
                state[c, LOSS + k] += h * (change[k] if kind == SQUARED else value[k])
                evidence[k] += counted * value[k]
                state[c, TRUE + k] += counted * (change[k] if kind == SQUARED else value[k])
                shrink += pi[k] * ratio[k]
                norm = norm1 if k < HALF else norm2
                change[k] = -(a[k] / norm * ratio[k]) * slope[k] if norm > 0.0 else 0.0
                if labels != PLAIN and kind != SQUARED and first_label:
                    change[k] = 0.0  # the offset takes it
                if not abs(change[k]) < LARGE or evidence[k] == math.inf:
                    change[k] = 0.0
            steepness *= h * shrink
            curvature *= h * shrink
            for e in range(count):
                add_lanes(table, offsets[e] + start, change, first[e], second[e])
                at = offsets[e] + sums
                _add(table, at, steepness * whole[e] * whole[e])
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
