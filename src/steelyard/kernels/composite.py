"""The loop over rows with penalties where x follows from the table by one formula: many outputs, or AdaGrad's metric.

The formulas are those of :mod:`steelyard.kernels.penalised`, with lam and G of each output. With l2 and center
"trajectory" features shrink at paces of their own: :mod:`steelyard.kernels.shrinking`. For center "origin" the table
holds theta*r, or theta itself under AdaGrad's metric.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.anyrow import add_dual, record_form, update_any
from steelyard.kernels.certificate import certify_round
from steelyard.kernels.compile import jit
from steelyard.kernels.gathered import soft
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import CLASSES, L1, L2, LAM, LOSS, ROWS, SUM_SQ_GRAD, WEIGHT
from steelyard.kernels.metric import _count, _outgrows, _take_scale
from steelyard.kernels.outputs import label_of
from steelyard.kernels.rows import ONE, TWO, ZERO, fetch_ahead
from steelyard.kernels.schedule import CAPPED, LARGE, bounded, grow, integrated_rate, lam_before
from steelyard.kernels.single import read_config

# ``form`` is (dense, diagonal, adaptive, origin, outputs).


@jit
def _measure(table, base, k, form):
    """(1/m, what the table's unit is) of a feature for output k."""
    _, diagonal, adaptive, origin, size = form
    r = table[base] if diagonal else 1.0
    if not adaptive:
        return r, r
    r /= math.sqrt(1.0 + table[base + ONE + size + k])
    return r, 1.0 if origin else r


@jit
def _observe_many(data, indices, lo, hi, table, form, width, penalties, p, n):
    """:func:`_observe` for every output; ``penalties`` has k, l2 t and lam of each."""
    dense, diagonal, adaptive, origin, size = form
    first = ONE if diagonal else ZERO
    p[:] = 0.0
    n[:] = 0.0
    for e in range(lo, hi):
        q = np.float64(data[e])
        base = (e - lo if dense else np.uint64(indices[e])) * width
        for k in range(size):
            r, unit = _measure(table, base, k, form)
            lam = penalties[3 * k + TWO]
            part = lam / (lam + penalties[3 * k + ONE] * r)
            x = soft(table[base + first + k], penalties[3 * k] * unit)
            p[k] += q * part * (x * r if adaptive and origin else x)
            n[k] += q * q * r * part


@jit
def _move_many(data, indices, lo, hi, table, form, width, penalties, change, square):
    """Center "trajectory": x += change_k * q in the metric, and AdaGrad counts squares."""
    dense, diagonal, adaptive, _, size = form
    first = ONE if diagonal else ZERO
    for e in range(lo, hi):
        q = np.float64(data[e])
        if q == 0.0:
            continue
        base = (e - lo if dense else np.uint64(indices[e])) * width
        for k in range(size):
            r = _measure(table, base, k, form)[0]
            x = soft(table[base + first + k], penalties[3 * k] * r) + change[k] * q * r
            if adaptive:
                _count(table, base + ONE + size + k, square[k] * q * q * table[base])
            most = penalties[3 * k] * _measure(table, base, k, form)[0]
            table[base + first + k] = x + math.copysign(min(most, LARGE), x)


@jit
def _rescale(data, indices, lo, hi, table, form, width, penalties):
    """Center "trajectory": let the scales take in a row; a scale that grows shrinks x by old/new."""
    dense, _, adaptive, _, size = form
    for e in range(lo, hi):
        q, base = np.float64(data[e]), (e - lo if dense else np.uint64(indices[e])) * width
        if q != 0.0 and _outgrows(q, table[base]):
            for k in range(size):
                place, r = base + ONE + k, _measure(table, base, k, form)[0]
                table[place] = soft(table[place], penalties[3 * k] * r)
            _take_scale(table, base, q, size, False, adaptive)
            for k in range(size):
                place, most = base + ONE + k, penalties[3 * k] * _measure(table, base, k, form)[0]
                table[place] += math.copysign(min(most, LARGE), table[place])


@jit
def _take_row(data, indices, lo, hi, table, form, width, penalties):
    """Let the scales take in a row."""
    dense, _, adaptive, origin, size = form
    if not origin:
        _rescale(data, indices, lo, hi, table, form, width, penalties)
        return
    for e in range(lo, hi):
        q, base = np.float64(data[e]), (e - lo if dense else np.uint64(indices[e])) * width
        if _outgrows(q, table[base]):
            _take_scale(table, base, q, size, True, adaptive)


def learn_composite(
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
    stamps,
    paths,
    config,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order``, for any number of outputs: like ``single.learn``.

    ``work`` holds eight numbers an output. ``paths`` has G of each; ``stamps`` is not used.
    """
    schedule, power_t, origin, diagonal, adaptive, _, intercept, dense, certify, _ = read_config(config)
    classes = config[CLASSES] != 0.0
    l1, l2 = config[L1], config[L2]
    outputs = sums.shape[0]
    size = np.uint64(outputs)
    first, width = record_form(diagonal, adaptive, outputs)
    last = np.uint64(table.size) - width
    options = (dense, origin, diagonal, adaptive, 0.0)
    form = (dense, diagonal, adaptive, origin, size)
    penalties, work = work[: 3 * outputs], work[3 * outputs :]
    p, n, change = work[:outputs], work[outputs : 2 * outputs], work[2 * outputs : 3 * outputs]
    square, push = work[3 * outputs : 4 * outputs], work[4 * outputs : 5 * outputs]
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        for k in range(outputs):
            seen = clocks[k, WEIGHT]
            lam = lam_before(schedule, power_t, adaptive, eta0[k], seen, clocks[k, LAM], clocks[k, SUM_SQ_GRAD])
            penalties[3 * k] = l1 * (seen if origin else paths[k])
            penalties[3 * k + 1] = l2 * seen if origin else 0.0
            penalties[3 * k + 2] = lam
        if diagonal and h > 0.0:
            _take_row(data, indices, lo, hi, table, form, width, penalties)
        _observe_many(data, indices, lo, hi, table, form, width, penalties, p, n)
        for k in range(outputs):
            lam = penalties[3 * k + 2]
            own = intercept / math.sqrt(1.0 + table[last + ONE + size + np.uint64(k)]) if adaptive else intercept
            bias = table[last + first + np.uint64(k)] * (own if origin else intercept)
            n[k] += own
            if not n[k] < math.inf:
                return i
            p[k] = (p[k] + bias) / lam if origin else p[k] + bias
            seen = clocks[k, WEIGHT]
            full = integrated_rate(schedule, power_t, origin, eta0[k], seen, lam, h)
            rate = bounded(full, n[k])
            a = rate * n[k]
            value, slope, c, gap = call_step(step, p[k], label_of(y[row], k, classes), a, params, k)
            predictions[i * outputs + k] = p[k]
            losses[i * outputs + k] = value
            if h == 0.0:
                continue
            clocks[k, LAM], clocks[k, SUM_SQ_GRAD] = grow(
                schedule, adaptive, eta0[k], clocks[k, LAM], clocks[k, SUM_SQ_GRAD], h, slope, c, gap, a, n[k]
            )
            clocks[k, WEIGHT] += h
            paths[k] += full
            if certify:
                certify_round(sums, k, h, p[k], value, slope, c, gap, a, 1.0, a >= CAPPED)
            sums[k, LOSS] += h * value
            sums[k, ROWS] += 1.0
            change[k] = -c * (rate * lam if origin else rate)
            square[k], push[k] = h * slope * slope, h * c
            at = last + first + np.uint64(k)
            table[at] += change[k] * (intercept if origin else own) if intercept != 0.0 else 0.0
            if adaptive:
                _count(table, last + ONE + size + np.uint64(k), intercept * square[k])
        if h == 0.0:
            continue
        if origin:
            update_any(data, indices, lo, hi, table, options, change, square)
        else:
            _move_many(data, indices, lo, hi, table, form, width, penalties, change, square)
        if certify and dual.size:
            add_dual(data, indices, lo, hi, dual, (dense, origin, diagonal, adaptive, intercept), push)
    return -1
