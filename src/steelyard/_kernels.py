"""The loops over rows. Arrays in, arrays out: nothing is allocated, nothing is raised.

One round of a learner, for a row q with label y and weight h:

    p = <q, x>                 predicted before anything is learned
    a = h * ||q||^2 / lam      in the metric
    c = step(p, y, a)          the update rule, a function of three numbers
    x moves by -(h/lam) c q    (center "trajectory"), or theta by -h c q and x = theta/lam (center "origin")
"""

from __future__ import annotations

import math

import numpy as np

from steelyard._compile import call_conjugate, call_step, jit
from steelyard._rows import ONE, add, add_many, dot, dot_many, fetch, meet, move

# Schedules of lam, one per learner.
CONSTANT, POWER, ADAGRAD, GAP = 0, 1, 2, 3

# Columns of ``state``, one row per learner.
ETA0 = 0  # initial rate
WEIGHT = 1  # cumulated importance weight, the clock of ``power``
LAM = 2  # lam_t of ``gap``
ENERGY = 3  # sum of h ||g||^2 of ``adagrad-norm``
LOSS = 4  # sum of h * loss, before learning
SCALE = 5  # x = SCALE * w, center "trajectory" in a ball
NORM2 = 6  # ||w||^2, kept while there is a ball
ROWS = 7  # rows learned
COLUMNS = 8

# Entries of ``config``, the same for all learners of a kernel call.
SCHEDULE, POWER_T, ORIGIN, DIAGONAL, ADAPTIVE, RADIUS, INTERCEPT, DENSE, CLASSES = range(9)
ENTRIES = 9

_LARGE = 1e300
AHEAD = 4  # rows between fetching a row and learning it


@jit
def _lam(state, schedule, power_t, adaptive):
    """lam_t, before the round."""
    if schedule == GAP:
        return state[LAM]
    if schedule == POWER:
        if power_t == 0.5:
            return math.sqrt(1.0 + state[WEIGHT]) / state[ETA0]
        return (1.0 + state[WEIGHT]) ** power_t / state[ETA0]
    if schedule == ADAGRAD and not adaptive:
        return math.sqrt(1.0 + state[ENERGY]) / state[ETA0]
    return 1.0 / state[ETA0]


@jit
def _integrated_rate(state, h, power_t):
    """∫ eta0 (1+s)^-power_t ds over the h units of weight to come: a rate that does not see how h is cut."""
    start = 1.0 + state[WEIGHT]
    if power_t == 0.5:
        return state[ETA0] * 2.0 * h / (math.sqrt(start) + math.sqrt(start + h))
    if power_t == 1.0:
        return state[ETA0] * math.log1p(h / start)
    rest = 1.0 - power_t
    return state[ETA0] * start**rest * math.expm1(rest * math.log1p(h / start)) / rest


@jit
def _rate(state, h, lam, schedule, power_t, origin):
    """h / lam, for the whole weight of the row."""
    if schedule == POWER and not origin:
        return _integrated_rate(state, h, power_t)
    return h / lam


@jit
def _advance(state, h, schedule, adaptive, value, slope, c, gap, a, norm2):
    """Everything the learner counts, after the round."""
    state[LOSS] += h * value
    state[WEIGHT] += h
    state[ROWS] += 1.0
    if schedule == GAP:
        grown = state[LAM] + h * (gap + 0.5 * a * c * c) / (state[ETA0] * state[ETA0])
        if grown < _LARGE:  # an overflow, or the NaN of a diverged learner, leaves lam as it is
            state[LAM] = grown
    elif schedule == ADAGRAD and not adaptive:
        grown = state[ENERGY] + h * slope * slope * norm2
        if grown < _LARGE:
            state[ENERGY] = grown


@jit
def _ball(state, lam, radius, origin):
    """The factor from w to x: 1/lam for theta, 1 for x itself, and less where the ball of radius D binds."""
    if not origin:
        return state[SCALE]
    if radius < math.inf:
        return 1.0 / max(lam, math.sqrt(max(state[NORM2], 0.0)) / radius)
    return 1.0 / lam


@jit
def _refresh(state, table, outputs, k):
    """Recompute ||w||^2 from time to time, so that rounding does not pile up; the cost vanishes over the rows."""
    size = table.size // outputs
    if state[ROWS] % max(size, 1024) == 0.0:
        norm2 = 0.0
        for j in range(size):
            norm2 += table[j * outputs + k] * table[j * outputs + k]
        state[NORM2] = norm2


@jit
def _project(state, table, outputs, k, radius):
    """Back onto the ball, center "trajectory": only the common factor changes."""
    norm = state[SCALE] * math.sqrt(max(state[NORM2], 0.0))
    if norm > radius:
        state[SCALE] *= radius / norm
    if state[SCALE] < 1e-100:
        for j in range(table.size // outputs):
            table[j * outputs + k] *= state[SCALE]
        state[NORM2] *= state[SCALE] * state[SCALE]
        state[SCALE] = 1.0


@jit
def _label(y, k, classes):
    """The label that output k sees: its own +-1 under one-vs-rest, the label itself otherwise."""
    if classes:
        return 1.0 if y == k else -1.0
    return y


def learn(step, params, data, indices, indptr, order, y, weight, table, state, config, work, predictions, losses):
    """Learn the rows in ``order``, for one output under the scalar metric: the fast path.

    ``predictions`` and ``losses`` receive what was predicted before each row was learned, and its loss.
    """
    schedule = int(config[SCHEDULE])
    power_t = config[POWER_T]
    origin = config[ORIGIN] != 0.0
    radius = config[RADIUS]
    intercept = config[INTERCEPT]
    dense = config[DENSE] != 0.0
    last = table.size - 1  # the intercept
    s = state[0]
    k = params[0]
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        if not dense and i + AHEAD < order.size:
            fetch(data, indices, indptr, order[i + AHEAD])
        p, norm2 = dot(data, indices, lo, hi, table, dense)
        p += intercept * table[last]
        norm2 += intercept
        lam = _lam(s, schedule, power_t, False)
        factor = _ball(s, lam, radius, origin)
        p *= factor
        rate = _rate(s, h, lam, schedule, power_t, origin)
        if rate * norm2 > _LARGE:
            rate = _LARGE / norm2
        a = rate * norm2
        value, slope, c, gap = call_step(step, p, y[row], a, k)
        predictions[i] = p
        losses[i] = value
        if h == 0.0:
            continue
        change = -c * (rate * lam if origin else rate / factor)
        if radius < math.inf:
            s[NORM2] += change * (2.0 * p / factor + change * norm2)
        add(data, indices, lo, hi, table, change, dense)
        table[last] += intercept * change
        _advance(s, h, schedule, False, value, slope, c, gap, a, norm2)
        if radius < math.inf:
            _refresh(s, table, 1, 0)
            if not origin:
                _project(s, table, 1, 0, radius)


def learn_many(step, params, data, indices, indptr, order, y, weight, table, state, config, work, predictions, losses):
    """Learn the rows in ``order`` for K outputs, under either metric. ``work`` holds 4*K numbers."""
    schedule = int(config[SCHEDULE])
    power_t = config[POWER_T]
    origin = config[ORIGIN] != 0.0
    diagonal = config[DIAGONAL] != 0.0
    adaptive = config[ADAPTIVE] != 0.0
    radius = config[RADIUS]
    intercept = config[INTERCEPT]
    dense = config[DENSE] != 0.0
    classes = config[CLASSES] != 0.0
    size = state.shape[0]
    width = np.uint64(2 + size * (2 if adaptive else 1) if diagonal else size)
    last = table[table.size - np.int64(width) :]  # the intercept's weights
    p = work[:size]
    norm2 = work[size : 2 * size]
    change = work[2 * size : 3 * size]
    energy = work[3 * size : 4 * size]
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        frozen = h == 0.0
        if diagonal:
            p[:] = 0.0
            norm2[:] = 0.0
            for e in range(lo, hi):
                q = np.float64(data[e])
                if q != 0.0:
                    base = (e - lo if dense else np.uint64(indices[e])) * width
                    meet(table[base : base + width], q, size, origin, adaptive, frozen, p, norm2)
            if intercept != 0.0:
                meet(last, 1.0, size, origin, adaptive, frozen, p, norm2)
        else:
            norm2[:] = dot_many(data, indices, lo, hi, table, p, dense) + intercept
            for k in range(size):
                p[k] += intercept * last[k]
        for k in range(size):
            s = state[k]
            lam = _lam(s, schedule, power_t, adaptive)
            factor = _ball(s, lam, radius, origin)
            p[k] *= factor
            rate = _rate(s, h, lam, schedule, power_t, origin)
            if rate * norm2[k] > _LARGE:
                rate = _LARGE / norm2[k]
            a = rate * norm2[k]
            value, slope, c, gap = call_step(step, p[k], _label(y[row], k, classes), a, params[k])
            predictions[i * size + k] = p[k]
            losses[i * size + k] = value
            change[k] = -c * (rate * lam if origin else rate / factor)
            energy[k] = h * slope * slope
            if h != 0.0:
                if radius < math.inf:
                    s[NORM2] += change[k] * (2.0 * p[k] / factor + change[k] * norm2[k])
                _advance(s, h, schedule, adaptive, value, slope, c, gap, a, norm2[k])
        if frozen:
            continue
        if diagonal:
            for e in range(lo, hi):
                q = np.float64(data[e])
                if q != 0.0:
                    base = (e - lo if dense else np.uint64(indices[e])) * width
                    move(table[base : base + width], q, size, origin, adaptive, change, energy)
            if intercept != 0.0:
                move(last, 1.0, size, origin, adaptive, change, energy)
        else:
            add_many(data, indices, lo, hi, table, change, dense)
            for k in range(size):
                last[k] += intercept * change[k]
        if radius < math.inf:
            for k in range(size):
                _refresh(state[k], table, size, k)
                if not origin:
                    _project(state[k], table, size, k, radius)


def predict(data, indices, indptr, coef, dense, predictions):
    """<q, x_k> for every row and output; ``coef`` is features x outputs, with the intercept as its last row."""
    size = predictions.size // (indptr.size - 1)
    last = coef[coef.size - size :]
    for i in range(indptr.size - 1):
        lo, hi = indptr[i], indptr[i + 1]
        p = predictions[i * size : (i + 1) * size]
        if size == 1:
            p[0] = dot(data, indices, lo, hi, coef, dense)[0]
        else:
            dot_many(data, indices, lo, hi, coef, p, dense)
        for k in range(size):
            p[k] += last[k]


def evaluate(step, params, p, y, a, out):
    """The four results of a step function, for every (p, y, a)."""
    for i in range(p.size):
        out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3] = call_step(step, p[i], y[i], a[i], params)


def conjugates(conjugate, params, s, y, out):
    """The conjugate, for every (s, y)."""
    for i in range(s.size):
        out[i] = call_conjugate(conjugate, s[i], y[i], params)


@jit
def _mix(z):
    """A bijection of 64 bits that leaves no pattern (the finalizer of splitmix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_keys(data, indices, indptr, labels, dense, scratch, keys):
    """A hash of every row's content: its non-zeros, in whatever order and layout, and the bits of its label.

    ``scratch`` is one float64: numbers are hashed as such, so that float32 data has the order of its float64 copy.
    """
    bits = scratch.view(np.uint64)
    for i in range(keys.size):
        lo, hi = indptr[i], indptr[i + 1]
        key = _mix(labels[i] + np.uint64(0x9E3779B97F4A7C15))
        for e in range(lo, hi):
            scratch[0] = np.float64(data[e])
            if scratch[0] != 0.0:
                j = e - lo if dense else np.uint64(indices[e])
                key += _mix(_mix(bits[0]) ^ (j + ONE))
        keys[i] = _mix(key)
