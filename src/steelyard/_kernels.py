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

from steelyard._ball import step_in_ball
from steelyard._compile import call_conjugate, call_step, jit
from steelyard._rows import (
    ONE,
    ZERO,
    add_many,
    canonical,
    dense_add,
    dense_dot,
    dense_meet,
    dense_move,
    dot_many,
    fetch,
    meet_row,
    meet_single,
    move_row,
    move_single,
    sparse_add,
    sparse_dot,
    sparse_meet,
    sparse_move,
)
from steelyard._scalar import IWA
from steelyard._vector import BANK, logistic_bank, logistic_bank_gap, squared_bank

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
FENCHEL = 8  # sum of h * (loss(p) + conjugate(c)), for the certificate
DELTA = 9  # sum of delta_t = H_t(g_t) - H_t(z_t), scalar metric and center "origin"
NEGATIVE = 10  # how many of them are negative
GUARDED = 11  # how often the guard took another slope
COLUMNS = 12

# Entries of ``config``, the same for all learners of a kernel call.
SCHEDULE, POWER_T, ORIGIN, DIAGONAL, ADAPTIVE, RADIUS, INTERCEPT, DENSE, CLASSES, CERTIFY, GUARD, VECTOR = range(12)

_LARGE = 1e300
_CAPPED = 0.999e300  # a step as long as :func:`_bounded` lets it be, whatever the rounding
AHEAD = 4  # rows between fetching a row and learning it


@jit
def _lam(schedule, power_t, adaptive, eta0, weight, lam, energy):
    """lam_t, before the round."""
    if schedule == GAP:
        return lam
    if schedule == POWER:
        if power_t == 0.5:
            return math.sqrt(1.0 + weight) / eta0
        return (1.0 + weight) ** power_t / eta0
    if schedule == ADAGRAD and not adaptive:
        return math.sqrt(1.0 + energy) / eta0
    return 1.0 / eta0


@jit
def _rate(schedule, power_t, origin, eta0, weight, lam, h):
    """h / lam for the whole weight of the row. For ``power`` and center "trajectory" it is the integral

    ∫ eta0 (1+s)^-power_t ds over the h units of weight to come, which does not see how h is cut.
    """
    if schedule != POWER or origin:
        return h / lam
    start = 1.0 + weight
    if power_t == 0.5:
        return eta0 * 2.0 * h / (math.sqrt(start) + math.sqrt(start + h))
    if power_t == 1.0:
        return eta0 * math.log1p(h / start)
    rest = 1.0 - power_t
    return eta0 * start**rest * math.expm1(rest * math.log1p(h / start)) / rest


@jit
def _bounded(rate, norm2):
    """The rate, less where the step length would overflow."""
    return rate if rate * norm2 <= _LARGE else _LARGE / norm2


@jit
def _grow(schedule, adaptive, eta0, lam, energy, h, slope, c, gap, a, norm2):
    """(lam, energy) after the round. An overflow, or the NaN of a diverged learner, leaves them as they are."""
    if schedule == GAP:
        grown = lam + h * (gap + 0.5 * a * c * c) / (eta0 * eta0)
        if grown < _LARGE:
            lam = grown
    elif schedule == ADAGRAD and not adaptive:
        grown = energy + h * slope * slope * norm2
        if grown < _LARGE:
            energy = grown
    return lam, energy


@jit
def _ball(state, k, lam, radius, origin):
    """The factor from w to x: 1/lam for theta, 1 for x itself, and less where the ball of radius D binds."""
    if not origin:
        return state[k, SCALE]
    if radius < math.inf:
        return 1.0 / max(lam, math.sqrt(max(state[k, NORM2], 0.0)) / radius)
    return 1.0 / lam


@jit
def _refresh(state, k, table):
    """Recompute ||w||^2 from time to time, so that rounding does not pile up; the cost vanishes over the rows."""
    outputs = state.shape[0]
    size = table.size // outputs
    if state[k, ROWS] % max(size, 1024) == 0.0:
        norm2 = 0.0
        for j in range(size):
            norm2 += table[j * outputs + k] * table[j * outputs + k]
        state[k, NORM2] = norm2


@jit
def _project(state, k, table, radius):
    """Back onto the ball, center "trajectory": only the common factor changes."""
    outputs = state.shape[0]
    norm = state[k, SCALE] * math.sqrt(max(state[k, NORM2], 0.0))
    if norm > radius:
        state[k, SCALE] *= radius / norm
    if state[k, SCALE] < 1e-100:
        for j in range(table.size // outputs):
            table[j * outputs + k] *= state[k, SCALE]
        state[k, NORM2] *= state[k, SCALE] * state[k, SCALE]
        state[k, SCALE] = 1.0


@jit
def _delta(h, p, value, slope, c, gap, a, ratio):
    """delta_t = H_t(g_t) - H_t(z_t), by how much c beats the slope in the round's term of the bound; is it negative?

    x_t was played with lam_t, H_t measures with lam_(t+1), and ratio = lam_t / lam_(t+1). What is negative by less than
    a part in 1e12 of the loss and its own terms is rounding.
    """
    bend = (slope - c) * p * (1.0 - ratio)
    half = 0.5 * a * ratio
    delta = h * (bend - gap + half * (slope - c) * (slope + c))
    return delta, delta < -1e-12 * h * (abs(value) + abs(bend) + gap + half * slope * slope)


@jit
def _certify(state, k, h, p, value, slope, c, gap, a, ratio, capped):
    """Add a round to the certificate: h (loss(p) + conjugate(c)), and delta_t."""
    state[k, FENCHEL] += math.inf if capped else h * (gap + c * p)
    delta, negative = _delta(h, p, value, slope, c, gap, a, ratio)
    state[k, DELTA] += delta
    if negative:
        state[k, NEGATIVE] += 1.0


@jit
def _guarded(state, k, step, params, h, p, y, a, ratio, value, slope, c, gap):
    """(c, gap) that satisfy H_t(z_t) <= H_t(g_t): c itself, the rule from theta_t/lam_(t+1), or the slope."""
    if not _delta(h, p, value, slope, c, gap, a, ratio)[1]:
        return c, gap
    state[k, GUARDED] += 1.0
    there, _, other, other_gap = call_step(step, p * ratio, y, a * ratio, params, k)
    other_gap = max(0.0, value - there + other_gap - other * p * (1.0 - ratio))  # seen from p
    if _delta(h, p, value, slope, other, other_gap, a, ratio)[0] > 0.0:
        return other, other_gap
    return slope, 0.0


@jit
def _next_row(indptr, order, i, dense):
    """Where the next sparse row stands: what it needs is fetched while this one is learned."""
    if dense or i + 1 >= order.size:
        return ZERO, ZERO
    row = order[i + 1]
    return indptr[row], indptr[row + 1]


@jit
def _label(y, k, classes):
    """The label that output k sees: its own +-1 under one-vs-rest, the label itself otherwise."""
    if classes:
        return 1.0 if y == k else -1.0
    return y


def learn_plain(
    step,
    conjugate,
    params,
    data,
    indices,
    indptr,
    order,
    y,
    weight,
    table,
    state,
    dual,
    config,
    work,
    predictions,
    losses,
):
    """:func:`learn` without ball, guard, AdaGrad's diagonal metric or ``dual``: as little as a row can need.

    It looks at the indices of a sparse row itself, and also stops at a row that is not :func:`canonical`.
    """
    schedule = int(config[SCHEDULE])
    power_t = config[POWER_T]
    origin = config[ORIGIN] != 0.0
    intercept = config[INTERCEPT]
    diagonal = config[DIAGONAL] != 0.0
    dense = config[DENSE] != 0.0
    certify = config[CERTIFY] != 0.0
    s = state[0]
    eta0, seen, lam_gap, energy, total, rows = s[ETA0], s[WEIGHT], s[LAM], s[ENERGY], s[LOSS], s[ROWS]
    bias = table[table.size - 1]  # its scale is 1, under the diagonal metric
    n_features = np.uint64(table.size // (2 if diagonal else 1) - 1)
    fenchel, deltas, negative = s[FENCHEL], s[DELTA], s[NEGATIVE]
    after = _lam(schedule, power_t, False, eta0, seen, lam_gap, energy)
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        if not dense and not canonical(indices, lo, hi, n_features):
            return i
        if diagonal:
            if dense:
                p, norm2 = dense_meet(data, lo, hi, table, origin, h == 0.0)
            else:
                p, norm2 = sparse_meet(data, indices, lo, hi, table, origin, h == 0.0)
        elif dense:
            p, norm2 = dense_dot(data, lo, hi, table)
        else:
            p, norm2 = sparse_dot(data, indices, lo, hi, table)
        norm2 += intercept
        if not norm2 < math.inf:
            return i
        lam = after if certify else _lam(schedule, power_t, False, eta0, seen, lam_gap, energy)
        factor = 1.0 / lam if origin else 1.0
        p = factor * (p + intercept * bias)
        rate = _bounded(_rate(schedule, power_t, origin, eta0, seen, lam, h), norm2)
        a = rate * norm2
        value, slope, c, gap = call_step(step, p, y[row], a, params, 0)
        if not dense and i + AHEAD < order.size:  # here, where the additions wait for c
            fetch(data, indices, indptr, order[i + AHEAD])
        predictions[i] = p
        losses[i] = value
        if h == 0.0:
            continue
        change = -c * (rate * lam if origin else rate)
        if diagonal:
            if dense:
                dense_move(data, lo, hi, table, change)
            else:
                ahead, end = _next_row(indptr, order, i, dense)
                sparse_move(data, indices, lo, hi, table, change, ahead, end)
        elif dense:
            dense_add(data, lo, hi, table, change)
        else:
            sparse_add(data, indices, lo, hi, table, change)
        bias += intercept * change
        lam_gap, energy = _grow(schedule, False, eta0, lam_gap, energy, h, slope, c, gap, a, norm2)
        seen += h
        if certify:
            after = _lam(schedule, power_t, False, eta0, seen, lam_gap, energy)
            delta, below = _delta(h, p, value, slope, c, gap, a, lam / after)
            fenchel += math.inf if a >= _CAPPED else h * (gap + c * p)
            deltas += delta
            negative += 1.0 if below else 0.0
        total += h * value
        rows += 1.0
    table[table.size - 1] = bias
    s[WEIGHT], s[LAM], s[ENERGY], s[LOSS], s[ROWS] = seen, lam_gap, energy, total, rows
    s[FENCHEL], s[DELTA], s[NEGATIVE] = fenchel, deltas, negative
    return -1


def learn(
    step,
    conjugate,
    params,
    data,
    indices,
    indptr,
    order,
    y,
    weight,
    table,
    state,
    dual,
    config,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order``, for one output: the fast path.

    ``predictions`` and ``losses`` receive what was predicted before each row was learned, and its loss.
    ``dual`` receives the sum of h*c*q, where it is not empty. Stops at a row whose features or their squares are not
    finite and returns its place in ``order``; else -1.
    """
    schedule = int(config[SCHEDULE])
    power_t = config[POWER_T]
    origin = config[ORIGIN] != 0.0
    diagonal = config[DIAGONAL] != 0.0
    adaptive = config[ADAPTIVE] != 0.0
    radius = config[RADIUS]
    intercept = config[INTERCEPT]
    dense = config[DENSE] != 0.0
    certify = config[CERTIFY] != 0.0
    guard = config[GUARD] != 0.0
    last = table.size - 1  # the intercept, under the scalar metric
    s = state[0]
    # in registers while the loop runs: the compiler cannot know that weights and state do not overlap
    eta0, seen, lam_gap, energy, total, rows = s[ETA0], s[WEIGHT], s[LAM], s[ENERGY], s[LOSS], s[ROWS]
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        if not dense and i + AHEAD < order.size:
            fetch(data, indices, indptr, order[i + AHEAD])
        flags = (dense, origin, adaptive, h == 0.0)
        if diagonal:
            p, norm2 = meet_single(data, indices, lo, hi, table, intercept != 0.0, flags)
        else:
            # the kernel itself branches: behind a common function, the dense loops would not vectorise
            if dense:
                p, norm2 = dense_dot(data, lo, hi, table)
            else:
                p, norm2 = sparse_dot(data, indices, lo, hi, table)
            p += intercept * table[last]
            norm2 += intercept
        if not norm2 < math.inf:
            return i
        lam = _lam(schedule, power_t, adaptive, eta0, seen, lam_gap, energy)
        factor = _ball(state, 0, lam, radius, origin)
        p *= factor
        rate = _bounded(_rate(schedule, power_t, origin, eta0, seen, lam, h), norm2)
        a = rate * norm2
        value, slope, c, gap = call_step(step, p, y[row], a, params, 0)
        if radius < math.inf:
            unit = 1.0 / lam if origin else s[SCALE]
            start, square = p / factor * unit, max(s[NORM2], 0.0) * unit * unit
            c, gap = step_in_ball(
                step, conjugate, params, 0, p, y[row], start, norm2, square, radius, rate, value, slope, c, gap
            )
        predictions[i] = p
        losses[i] = value
        if h == 0.0:
            continue
        lam_gap, energy = _grow(schedule, adaptive, eta0, lam_gap, energy, h, slope, c, gap, a, norm2)
        seen += h
        if certify or guard:
            ratio = lam / _lam(schedule, power_t, adaptive, eta0, seen, lam_gap, energy)
            if guard:
                c, gap = _guarded(state, 0, step, params, h, p, y[row], a, ratio, value, slope, c, gap)
            if certify:
                _certify(state, 0, h, p, value, slope, c, gap, a, ratio, a >= _CAPPED)
        change = -c * (rate * lam if origin else rate / factor)
        if radius < math.inf:
            s[NORM2] += change * (2.0 * p / factor + change * norm2)
        if diagonal:
            ahead, end = _next_row(indptr, order, i, dense)
            move_single(data, indices, lo, hi, table, intercept != 0.0, flags, change, h * slope * slope, ahead, end)
        else:
            if dense:
                dense_add(data, lo, hi, table, change)
            else:
                sparse_add(data, indices, lo, hi, table, change)
            table[last] += intercept * change
        if certify and dual.size:
            if dense:
                dense_add(data, lo, hi, dual, h * c)
            else:
                sparse_add(data, indices, lo, hi, dual, h * c)
            dual[dual.size - 1] += intercept * h * c
        total += h * value
        rows += 1.0
        if radius < math.inf:
            s[ROWS] = rows
            _refresh(state, 0, table)
            if not origin:
                _project(state, 0, table, radius)
    s[WEIGHT], s[LAM], s[ENERGY], s[LOSS], s[ROWS] = seen, lam_gap, energy, total, rows
    return -1


@jit
def _steps(step, params, kind, p, y, a, value, slope, c, gap):
    """The step of every output, sixteen at a time where there are vectors for the loss and all are of usual size."""
    size = params.shape[0]
    longest = 1e8 if kind == 1.0 else 1e300
    widest = 30.0 if kind == 1.0 else math.inf
    for first in range(0, size, BANK):
        last = min(first + BANK, size)
        usual = kind != 0.0
        if usual:
            for k in range(first, last):
                usual &= params[k, 0] == IWA and abs(p[k]) <= widest and 1e-100 <= a[k] <= longest
        if not usual:
            for k in range(first, last):
                value[k], slope[k], c[k], gap[k] = call_step(step, p[k], y[k], a[k], params, k)
        elif kind == 1.0 and params[0, 1] == 0.0:
            logistic_bank(p, y, a, first, value, slope, c)
        elif kind == 1.0:
            logistic_bank_gap(p, y, a, first, value, slope, c, gap)
        else:
            squared_bank(p, y, a, first, value, slope, c, gap)


def learn_many(
    step,
    conjugate,
    params,
    data,
    indices,
    indptr,
    order,
    y,
    weight,
    table,
    state,
    dual,
    config,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order`` for K outputs, under either metric; like :func:`learn`.

    ``work`` holds 13 vectors of K numbers, filled up to a multiple of sixteen.
    """
    schedule = int(config[SCHEDULE])
    power_t = config[POWER_T]
    origin = config[ORIGIN] != 0.0
    diagonal = config[DIAGONAL] != 0.0
    adaptive = config[ADAPTIVE] != 0.0
    radius = config[RADIUS]
    intercept = config[INTERCEPT]
    dense = config[DENSE] != 0.0
    classes = config[CLASSES] != 0.0
    certify = config[CERTIFY] != 0.0
    guard = config[GUARD] != 0.0
    size = state.shape[0]
    wide = work.size // 13
    last = table[table.size - size :]  # the intercept's weights, under the scalar metric
    all_p, all_a, labels = work[:wide], work[wide : 2 * wide], work[2 * wide : 3 * wide]
    value, slope, c, gap = (
        work[3 * wide : 4 * wide],
        work[4 * wide : 5 * wide],
        work[5 * wide : 6 * wide],
        work[6 * wide : 7 * wide],
    )
    norm2 = work[7 * wide : 7 * wide + size]
    change = work[8 * wide : 8 * wide + size]
    energy = work[9 * wide : 9 * wide + size]
    push = work[10 * wide : 10 * wide + size]
    rate = work[11 * wide : 12 * wide]
    lam = work[12 * wide : 13 * wide]
    p = all_p[:size]
    all_p[:] = 0.0
    all_a[:] = 1.0
    labels[:] = 1.0
    same_clock = schedule == CONSTANT or schedule == POWER  # all outputs have the lam of the first, over eta0
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        frozen = h == 0.0
        flags = (dense, origin, adaptive, frozen)
        if diagonal:
            meet_row(data, indices, lo, hi, table, np.uint64(size), intercept != 0.0, flags, p, norm2)
        else:
            norm2[:] = dot_many(data, indices, lo, hi, table, p, dense) + intercept
            for k in range(size):
                p[k] += intercept * last[k]
        for k in range(size):
            if not norm2[k] < math.inf:
                return i
        seen = state[0, WEIGHT]
        if same_clock:
            common = _lam(schedule, power_t, adaptive, 1.0, seen, 0.0, 0.0)
            unit = _rate(schedule, power_t, origin, 1.0, seen, common, h)
            for k in range(size):
                lam[k] = common / state[k, ETA0]
                rate[k] = unit * state[k, ETA0]
        else:
            for k in range(size):
                lam[k] = _lam(schedule, power_t, adaptive, state[k, ETA0], seen, state[k, LAM], state[k, ENERGY])
                rate[k] = h / lam[k]
        for k in range(size):
            p[k] *= _ball(state, k, lam[k], radius, origin)
            rate[k] = _bounded(rate[k], norm2[k])
            all_a[k] = rate[k] * norm2[k]
            labels[k] = _label(y[row], k, classes)
        _steps(step, params, config[VECTOR], all_p, labels, all_a, value, slope, c, gap)
        if radius < math.inf:
            for k in range(size):
                unit = 1.0 / lam[k] if origin else state[k, SCALE]
                start = p[k] / _ball(state, k, lam[k], radius, origin) * unit
                square = max(state[k, NORM2], 0.0) * unit * unit
                c[k], gap[k] = step_in_ball(
                    step,
                    conjugate,
                    params,
                    k,
                    p[k],
                    labels[k],
                    start,
                    norm2[k],
                    square,
                    radius,
                    rate[k],
                    value[k],
                    slope[k],
                    c[k],
                    gap[k],
                )
        for k in range(size):
            predictions[i * size + k] = p[k]
            losses[i * size + k] = value[k]
            if not frozen:
                a = all_a[k]
                state[k, LAM], state[k, ENERGY] = _grow(
                    schedule,
                    adaptive,
                    state[k, ETA0],
                    state[k, LAM],
                    state[k, ENERGY],
                    h,
                    slope[k],
                    c[k],
                    gap[k],
                    a,
                    norm2[k],
                )
                state[k, WEIGHT] += h
                if certify or guard:
                    eta0, now = state[k, ETA0], state[k, WEIGHT]
                    ratio = lam[k] / _lam(schedule, power_t, adaptive, eta0, now, state[k, LAM], state[k, ENERGY])
                    if guard:
                        c[k], gap[k] = _guarded(
                            state, k, step, params, h, p[k], labels[k], a, ratio, value[k], slope[k], c[k], gap[k]
                        )
                    if certify:
                        _certify(state, k, h, p[k], value[k], slope[k], c[k], gap[k], a, ratio, a >= _CAPPED)
                state[k, LOSS] += h * value[k]
                state[k, ROWS] += 1.0
            factor = 1.0 if origin else state[k, SCALE]
            push[k] = h * c[k]
            energy[k] = h * slope[k] * slope[k]
            change[k] = -c[k] * (rate[k] * lam[k] if origin else rate[k] / factor)
            if radius < math.inf and not frozen:
                factor = _ball(state, k, lam[k], radius, origin)
                state[k, NORM2] += change[k] * (2.0 * p[k] / factor + change[k] * norm2[k])
        if frozen:
            continue
        if diagonal:
            move_row(data, indices, lo, hi, table, np.uint64(size), intercept != 0.0, flags, change, energy)
        else:
            add_many(data, indices, lo, hi, table, change, dense)
            for k in range(size):
                last[k] += intercept * change[k]
        if certify and dual.size:
            add_many(data, indices, lo, hi, dual, push, dense)
            for k in range(size):
                dual[dual.size - size + k] += intercept * push[k]
        if radius < math.inf:
            for k in range(size):
                _refresh(state, k, table)
                if not origin:
                    _project(state, k, table, radius)
    return -1


def predict(data, indices, indptr, coef, dense, predictions):
    """<q, x_k> for every row and output; ``coef`` is features x outputs, with the intercept as its last row."""
    size = predictions.size // (indptr.size - 1)
    last = coef[coef.size - size :]
    for i in range(indptr.size - 1):
        lo, hi = indptr[i], indptr[i + 1]
        p = predictions[i * size : (i + 1) * size]
        if size == 1:
            p[0] = dense_dot(data, lo, hi, coef)[0] if dense else sparse_dot(data, indices, lo, hi, coef)[0]
        else:
            dot_many(data, indices, lo, hi, coef, p, dense)
        for k in range(size):
            p[k] += last[k]


def evaluate(step, params, p, y, a, out):
    """The four results of a step function, for every (p, y, a)."""
    for i in range(p.size):
        out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3] = call_step(step, p[i], y[i], a[i], params, 0)


def conjugates(conjugate, params, s, y, out):
    """The conjugate, for every (s, y)."""
    for i in range(s.size):
        out[i] = call_conjugate(conjugate, s[i], y[i], params)


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
