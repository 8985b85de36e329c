"""The loop over rows for a learner that also keeps the average of its models, each with the weight of its row.

    average = sum h_t x_t / sum h_t,    x_t the model that row t was predicted with

x_t is a factor f_t times w_t: 1 for center "trajectory", 1/lam_t for center "origin". With the clock
s_t = sum of h_i f_i over i <= t, summing by parts gives

    sum h_t x_t = s_T w - z,    z = sum over the moves of w of (the clock at the move) * (the move),

w moves where a row has a feature, so others cost nothing. ``drift`` has z, ``paths`` the clock of each output. A scale
that grows moves w, too, before the row is predicted: at the clock of the row before.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.anyrow import add_dual, observe_any, record_form, update_any
from steelyard.kernels.certificate import certify_round
from steelyard.kernels.compile import jit
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import CLASSES, LAM, LOSS, ROWS, SUM_SQ_GRAD, WEIGHT
from steelyard.kernels.metric import _outgrows
from steelyard.kernels.outputs import label_of
from steelyard.kernels.rows import ONE, ZERO, fetch_ahead
from steelyard.kernels.schedule import CAPPED, bounded, grow, integrated_rate, lam_before
from steelyard.kernels.single import read_config


@jit
def _count_shrinking(data, indices, lo, hi, table, drift, paths, dense, origin, width):
    """The moves of features whose scale grows: see ``metric._take_scale``."""
    size = np.uint64(paths.size)
    for e in range(lo, hi):
        q, j = np.float64(data[e]), e - lo if dense else np.uint64(indices[e])
        r = table[j * width]
        if q != 0.0 and r > 0.0 and _outgrows(q, r):
            shrink = 1.0 / (abs(q) * math.sqrt(r))
            part = shrink * shrink if origin else shrink
            for k in range(size):
                drift[j * size + k] += paths[k] * ((part - 1.0) * table[j * width + ONE + k])


@jit
def _count_moves(data, indices, lo, hi, table, drift, paths, form, change):
    """The moves of a step."""
    dense, diagonal, adaptive, intercept, width = form
    size = np.uint64(paths.size)
    end = hi + ONE if intercept != 0.0 else hi
    for e in range(lo, end):
        q, j = 1.0, np.uint64(table.size) // width - ONE
        if e < hi:
            q, j = np.float64(data[e]), e - lo if dense else np.uint64(indices[e])
        for k in range(size):
            r = table[j * width] if diagonal else 1.0
            if adaptive:
                r /= math.sqrt(1.0 + table[j * width + ONE + k + size])
            drift[j * size + k] += paths[k] * (change[k] * q * r)


def learn_averaged(
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
    drift,
    paths,
    config,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order``, for any number of outputs: like ``single.learn``.

    ``work`` holds five numbers an output.
    """
    schedule, power_t, origin, diagonal, adaptive, _, intercept, dense, certify, _ = read_config(config)
    options = (dense, origin, diagonal, adaptive, intercept)
    classes = config[CLASSES] != 0.0
    outputs = sums.shape[0]
    p, norm2, change = work[:outputs], work[outputs : 2 * outputs], work[2 * outputs : 3 * outputs]
    square, push = work[3 * outputs : 4 * outputs], work[4 * outputs : 5 * outputs]
    _, width = record_form(diagonal, adaptive, outputs)
    form = (dense, diagonal, adaptive, intercept, width)
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        if diagonal and h > 0.0:
            _count_shrinking(data, indices, lo, hi, table, drift, paths, dense, origin, width)
        observe_any(data, indices, lo, hi, table, options, h, ZERO, ZERO, p, norm2)
        for k in range(outputs):
            if not norm2[k] < math.inf:
                return i
            seen = clocks[k, WEIGHT]
            lam = lam_before(schedule, power_t, adaptive, eta0[k], seen, clocks[k, LAM], clocks[k, SUM_SQ_GRAD])
            p[k] *= 1.0 / lam if origin else 1.0
            rate = bounded(integrated_rate(schedule, power_t, origin, eta0[k], seen, lam, h), norm2[k])
            a = rate * norm2[k]
            label = label_of(y[row], k, classes)
            value, slope, c, gap = call_step(step, p[k], label, a, params, k)
            predictions[i * outputs + k] = p[k]
            losses[i * outputs + k] = value
            if h == 0.0:
                continue
            clocks[k, LAM], clocks[k, SUM_SQ_GRAD] = grow(
                schedule, adaptive, eta0[k], clocks[k, LAM], clocks[k, SUM_SQ_GRAD], h, slope, c, gap, a, norm2[k]
            )
            clocks[k, WEIGHT] += h
            paths[k] += h / lam if origin else h
            if certify:
                after = lam_before(
                    schedule, power_t, adaptive, eta0[k], clocks[k, WEIGHT], clocks[k, LAM], clocks[k, SUM_SQ_GRAD]
                )
                certify_round(sums, k, h, p[k], value, slope, c, gap, a, lam / after, a >= CAPPED)
            sums[k, LOSS] += h * value
            sums[k, ROWS] += 1.0
            change[k] = -c * (rate * lam if origin else rate)
            square[k], push[k] = h * slope * slope, h * c
        if h == 0.0:
            continue
        _count_moves(data, indices, lo, hi, table, drift, paths, form, change)
        update_any(data, indices, lo, hi, table, options, change, square)
        if certify and dual.size:
            add_dual(data, indices, lo, hi, dual, options, push)
    return -1
