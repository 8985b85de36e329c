"""The loop over rows for several outputs: classes one-vs-rest, or the learners of a bank."""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.ball import add_to_norm, ball_factor, ball_step, keep_in_ball
from steelyard.kernels.certificate import certify_round, guarded_step
from steelyard.kernels.compile import jit
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import (
    CLASSES,
    CONSTANT,
    IWA,
    LAM,
    LOSS,
    OUTPUT_LANES,
    POWER,
    ROWS,
    RULE,
    SUM_SQ_GRAD,
    VECTOR,
    VECTOR_LOGISTIC,
    VECTOR_NONE,
    WANTS_GAP,
    WEIGHT,
    WORK_A,
    WORK_C,
    WORK_CHANGE,
    WORK_GAP,
    WORK_LABEL,
    WORK_LAM,
    WORK_LOST,
    WORK_NORM2,
    WORK_P,
    WORK_PUSH,
    WORK_RATE,
    WORK_SIZE,
    WORK_SLOPE,
    WORK_SQUARE,
    WORK_VALUE,
)
from steelyard.kernels.metric import observe_row, update_row
from steelyard.kernels.rows import add_outputs, dot_outputs, fetch_ahead
from steelyard.kernels.schedule import CAPPED, bounded, grow, integrated_rate, lam_before
from steelyard.kernels.single import read_config
from steelyard.kernels.steps.logistic import logistic_sixteen, logistic_sixteen_gap
from steelyard.kernels.steps.residual import squared_sixteen


@jit
def label_of(y, k, classes):
    """The label that output k sees: its own +-1 under one-vs-rest, the label itself otherwise."""
    if classes:
        return 1.0 if y == k else -1.0
    return y


@jit
def _steps(step, params, kind, p, y, a, value, slope, c, gap):
    """The step of every output, sixteen at a time where there are vectors for the loss and all are of usual size."""
    size = params.shape[0]
    longest = 1e8 if kind == VECTOR_LOGISTIC else 1e300
    widest = 30.0 if kind == VECTOR_LOGISTIC else math.inf
    for first in range(0, size, OUTPUT_LANES):
        last = min(first + OUTPUT_LANES, size)
        usual = kind != VECTOR_NONE
        if usual:
            for k in range(first, last):
                usual &= params[k, RULE] == IWA and abs(p[k]) <= widest and 1e-100 <= a[k] <= longest
        if not usual:
            for k in range(first, last):
                value[k], slope[k], c[k], gap[k] = call_step(step, p[k], y[k], a[k], params, k)
        elif kind == VECTOR_LOGISTIC and params[0, WANTS_GAP] == 0.0:
            logistic_sixteen(p, y, a, first, value, slope, c)
        elif kind == VECTOR_LOGISTIC:
            logistic_sixteen_gap(p, y, a, first, value, slope, c, gap)
        else:
            squared_sixteen(p, y, a, first, value, slope, c, gap)


@jit
def _set_rates(schedule, power_t, adaptive, origin, eta0, clocks, h, lam, rate):
    """lam_t and h/lam_t of every output."""
    seen = clocks[0, WEIGHT]
    if schedule == CONSTANT or schedule == POWER:  # all outputs have the lam of the first, over eta0
        common = lam_before(schedule, power_t, adaptive, 1.0, seen, 0.0, 0.0)
        unit = integrated_rate(schedule, power_t, origin, 1.0, seen, common, h)
        for k in range(eta0.size):
            lam[k] = common / eta0[k]
            rate[k] = unit * eta0[k]
    else:
        for k in range(eta0.size):
            lam[k] = lam_before(schedule, power_t, adaptive, eta0[k], seen, clocks[k, LAM], clocks[k, SUM_SQ_GRAD])
            rate[k] = h / lam[k]


def learn_outputs(
    step,
    conjugate,
    params,
    eta0,
    data,
    indices,
    indptr,
    order,
    y,
    weight,
    table,
    clocks,
    sums,
    dual,
    config,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order`` for K outputs, under either metric: like ``single.learn``.

    ``work`` holds ``layout.WORK_SIZE`` vectors of K numbers, filled up to a multiple of sixteen.
    """
    schedule, power_t, origin, diagonal, adaptive, radius, intercept, dense, certify, guard = read_config(config)
    classes = config[CLASSES] != 0.0
    size = sums.shape[0]
    wide = work.size // WORK_SIZE
    last = table[table.size - size :]  # the intercept's weights, under the scalar metric
    all_p, all_a = work[WORK_P * wide : (WORK_P + 1) * wide], work[WORK_A * wide : (WORK_A + 1) * wide]
    labels = work[WORK_LABEL * wide : (WORK_LABEL + 1) * wide]
    value, slope = work[WORK_VALUE * wide : (WORK_VALUE + 1) * wide], work[WORK_SLOPE * wide : (WORK_SLOPE + 1) * wide]
    c, gap = work[WORK_C * wide : (WORK_C + 1) * wide], work[WORK_GAP * wide : (WORK_GAP + 1) * wide]
    norm2 = work[WORK_NORM2 * wide : WORK_NORM2 * wide + size]
    change = work[WORK_CHANGE * wide : WORK_CHANGE * wide + size]
    square = work[WORK_SQUARE * wide : WORK_SQUARE * wide + size]
    push = work[WORK_PUSH * wide : WORK_PUSH * wide + size]
    rate = work[WORK_RATE * wide : (WORK_RATE + 1) * wide]
    lam = work[WORK_LAM * wide : (WORK_LAM + 1) * wide]
    lost = work[WORK_LOST * wide : WORK_LOST * wide + size]
    p = all_p[:size]
    all_p[:] = 0.0
    all_a[:] = 1.0
    labels[:] = 1.0
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        frozen = h == 0.0
        flags = (dense, origin, adaptive, frozen)
        if diagonal:
            observe_row(data, indices, lo, hi, table, np.uint64(size), intercept != 0.0, flags, p, norm2)
        else:
            norm2[:] = dot_outputs(data, indices, lo, hi, table, p, dense) + intercept
            for k in range(size):
                p[k] += intercept * last[k]
        for k in range(size):
            if not norm2[k] < math.inf:
                return i
        _set_rates(schedule, power_t, adaptive, origin, eta0, clocks, h, lam, rate)
        for k in range(size):
            p[k] *= ball_factor(clocks, k, lam[k], radius, origin)
            rate[k] = bounded(rate[k], norm2[k])
            all_a[k] = rate[k] * norm2[k]
            labels[k] = label_of(y[row], k, classes)
        _steps(step, params, config[VECTOR], all_p, labels, all_a, value, slope, c, gap)
        if radius < math.inf:
            for k in range(size):
                factor = ball_factor(clocks, k, lam[k], radius, origin)
                geometry = (factor, 1.0 / lam[k] if origin else factor, norm2[k], radius, rate[k])
                c[k], gap[k] = ball_step(
                    step, conjugate, params, k, clocks, geometry, p[k], labels[k], value[k], slope[k], c[k], gap[k]
                )
        for k in range(size):
            predictions[i * size + k] = p[k]
            losses[i * size + k] = value[k]
        if frozen:
            continue
        for k in range(size):
            a = all_a[k]
            clocks[k, LAM], clocks[k, SUM_SQ_GRAD] = grow(
                schedule,
                adaptive,
                eta0[k],
                clocks[k, LAM],
                clocks[k, SUM_SQ_GRAD],
                h,
                slope[k],
                c[k],
                gap[k],
                a,
                norm2[k],
            )
            clocks[k, WEIGHT] += h
            if certify or guard:
                now = lam_before(
                    schedule, power_t, adaptive, eta0[k], clocks[k, WEIGHT], clocks[k, LAM], clocks[k, SUM_SQ_GRAD]
                )
                ratio = lam[k] / now
                if guard:
                    c[k], gap[k] = guarded_step(
                        sums, k, step, params, h, p[k], labels[k], a, ratio, value[k], slope[k], c[k], gap[k]
                    )
                if certify:
                    certify_round(sums, k, h, p[k], value[k], slope[k], c[k], gap[k], a, ratio, a >= CAPPED)
            sums[k, LOSS] += h * value[k]
            sums[k, ROWS] += 1.0
            factor = ball_factor(clocks, k, lam[k], radius, origin)
            push[k] = h * c[k]
            square[k] = h * slope[k] * slope[k]
            change[k] = -c[k] * (rate[k] * lam[k]) if origin else -c[k] * rate[k] / factor
            lost[k] = 0.0
            if radius < math.inf:
                lost[k] = add_to_norm(clocks, k, change[k] * (2.0 * p[k] / factor + change[k] * norm2[k]))
        if diagonal:
            update_row(data, indices, lo, hi, table, np.uint64(size), intercept != 0.0, flags, change, square)
        else:
            add_outputs(data, indices, lo, hi, table, change, dense)
            for k in range(size):
                last[k] += change[k] if intercept != 0.0 else 0.0
        if certify and dual.size:
            add_outputs(data, indices, lo, hi, dual, push, dense)
            for k in range(size):
                dual[dual.size - size + k] += intercept * push[k]
        if radius < math.inf:
            for k in range(size):
                keep_in_ball(clocks, k, table, radius, origin, sums[k, ROWS], lost[k] != 0.0)
    return -1
