"""The loop over rows with l2, or both penalties, and center "trajectory": mirror descent, and after each row x shrinks.

    x_j' = -(l1 sign x_j + l2 x_j) / m_j    for the rate of the row, rate = ∫ h / lam

m_j is the metric: 1/r_j, or sqrt(1 + G_j)/r_j under AdaGrad's. ``paths`` has the sum of all rates of each output, and
``stamps`` the sum up to which a weight has shrunk. With d = (path - stamp)/m_j,

    |x| ← max(0, |x| e^(-l2 d) - l1 (1 - e^(-l2 d)) / l2).

To shrink twice is to shrink once for the sum. So a feature waits until a row has it: m_j stays as it is as long as no
row does. Dense rows have all features, which then shrink after each row. The intercept is not penalised.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.anyrow import add_dual, observe_any, record_form, update_any
from steelyard.kernels.certificate import certify_round
from steelyard.kernels.compile import dense_jit, inline_dense_jit, inline_jit, jit
from steelyard.kernels.intrinsics import call_step, prefetch_once
from steelyard.kernels.layout import (
    CLASSES,
    L1,
    L2,
    LAM,
    LOSS,
    ROWS,
    SUM_SQ_GRAD,
    WEIGHT,
)
from steelyard.kernels.outputs import label_of
from steelyard.kernels.rows import ONE, TWO, ZERO, fetch_ahead, weights_ahead
from steelyard.kernels.schedule import CAPPED, bounded, grow, integrated_rate, lam_before
from steelyard.kernels.single import read_config

_SHORT = 0.02  # up to here the series below are exact to the last digit


@inline_jit
def _shrunk(x, d, l1, l2):
    """x after shrinking for d, where l2 d is less than ``_SHORT``; else :func:`_shrunk_far`."""
    z = l2 * d
    part = 1.0 - z / 2.0 * (1.0 - z / 3.0 * (1.0 - z / 4.0 * (1.0 - z / 5.0 * (1.0 - z / 6.0 * (1.0 - z / 7.0)))))
    left = max(0.0, abs(x) * (1.0 - z * part) - l1 * (d * part))  # part = (1 - e^-z)/z
    return left if x > 0.0 else -left


@jit
def _shrunk_far(x, d, l1, l2):
    """x after shrinking for any d."""
    z = l2 * d
    if not z >= _SHORT:
        return _shrunk(x, d, l1, l2)
    lost = -math.expm1(-z)
    left = max(0.0, abs(x) * (1.0 - lost) - l1 * (lost / l2))
    return left if x > 0.0 else -left


@inline_jit
def _measure(table, base, at, form):
    """1/m of a feature. ``form`` is (diagonal, adaptive, numbers of a record, outputs)."""
    diagonal, adaptive, _, size = form
    r = table[base] if diagonal else 1.0
    return r / math.sqrt(1.0 + table[base + at + size]) if adaptive else r


@inline_jit
def _settle(data, indices, lo, hi, table, stamps, at, k, form, penalty, now, ahead, stop):
    """Let the features of a sparse row shrink up to now."""
    _, _, width, size = form
    l1, l2 = penalty
    for e in range(lo, hi):
        if ahead < stop:
            prefetch_once(table, np.uint64(indices[ahead]) * width)
            prefetch_once(stamps, np.uint64(indices[ahead]) * size)
            ahead += ONE
        j = np.uint64(indices[e])
        place = j * width + at
        d = (now - stamps[j * size + k]) * _measure(table, j * width, at, form)
        stamps[j * size + k] = now
        if l2 * d < _SHORT:
            table[place] = _shrunk(table[place], d, l1, l2)
        else:
            table[place] = _shrunk_far(table[place], d, l1, l2)


@inline_jit
def _settle_row(data, indices, lo, hi, table, stamps, at, k, form, penalty, now, ahead, stop):
    """:func:`_settle`, compiled for the usual form."""
    if form[0] and form[3] == ONE and not form[1]:
        usual = (True, False, TWO, ONE)
        _settle(data, indices, lo, hi, table, stamps, ONE, ZERO, usual, penalty, now, ahead, stop)
    else:
        _settle(data, indices, lo, hi, table, stamps, at, k, form, penalty, now, ahead, stop)


@jit
def _keep(indices, lo, hi, table, stamps, first, form, kept, back):
    """Keep the weights and stamps of a sparse row; or, with ``back``, put them back."""
    _, _, width, size = form
    room = kept.size // 2
    for e in range(lo, hi):
        j = np.uint64(indices[e])
        for k in range(size):
            at, place, stamp = (e - lo) * size + k, j * width + first + k, j * size + k
            if back:
                table[place], stamps[stamp] = kept[at], kept[room + at]
            else:
                kept[at], kept[room + at] = table[place], stamps[stamp]


@dense_jit
def _all_short(table, limit):
    """Whether no r of records [r, w] is above a limit."""
    count = 0
    for j in range(table.size // 2):
        count += int(not table[TWO * j] <= limit)
    return count == 0


def _shrink(table, at, form, penalty, d):
    """Every feature of a table shrinks, as those of a dense row do, where l2 d is short for all."""
    width = form[2]
    l1, l2 = penalty
    for j in range(np.uint64(table.size) // width - ONE):
        base = j * width
        x, r = table[base + at], _measure(table, base, at, form)
        if form[0]:
            table[base] = r + 0.0 * x  # whole records vectorise
        table[base + at] = _shrunk(x, d * r, l1, l2)


_shrink_form = inline_dense_jit(_shrink)


@jit
def _shrink_far(table, stamps, path, at, k, form, penalty, d):
    """The same for any d, and up to ``path`` where there are stamps."""
    _, _, width, size = form
    l1, l2 = penalty
    for j in range(np.uint64(table.size) // width - ONE):
        base = j * width
        way = path - stamps[j * size + k] if stamps.size > 0 else d
        table[base + at] = _shrunk_far(table[base + at], way * _measure(table, base, at, form), l1, l2)


@inline_jit
def _shrink_row(table, stamps, at, k, form, penalty, d):
    """The features of a dense row shrink."""
    diagonal, adaptive, _, size = form
    l2 = penalty[1]
    usual = size == ONE and not adaptive
    if usual and not diagonal and l2 * d < _SHORT:
        _shrink_form(table, ZERO, (False, False, ONE, ONE), penalty, d)
    elif usual and diagonal and _all_short(table, _SHORT / (l2 * d)):
        _shrink_form(table, ONE, (True, False, TWO, ONE), penalty, d)
    else:
        _shrink_far(table, stamps[:0], 0.0, at, k, form, penalty, d)


def learn_shrinking(
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

    ``work`` holds six numbers an output, and two for each output and feature of the longest row.
    """
    schedule, power_t, _, diagonal, adaptive, _, intercept, dense, certify, _ = read_config(config)
    options = (dense, False, diagonal, adaptive, intercept)
    classes = config[CLASSES] != 0.0
    penalty = (config[L1], config[L2])
    outputs = sums.shape[0]
    p, norm2, change = work[:outputs], work[outputs : 2 * outputs], work[2 * outputs : 3 * outputs]
    square, push = work[3 * outputs : 4 * outputs], work[4 * outputs : 5 * outputs]
    rates, kept = work[5 * outputs : 6 * outputs], work[6 * outputs :]
    first, width = record_form(diagonal, adaptive, outputs)
    form = (diagonal, adaptive, width, np.uint64(outputs))
    if dense:
        for k in range(np.uint64(outputs)):
            _shrink_far(table, stamps, paths[k], first + k, k, form, penalty, 0.0)
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        ahead, stop = weights_ahead(indptr, order, i, table, dense)
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        if not dense:
            if h == 0.0:
                _keep(indices, lo, hi, table, stamps, first, form, kept, False)
            for k in range(np.uint64(outputs)):
                _settle_row(data, indices, lo, hi, table, stamps, first + k, k, form, penalty, paths[k], ahead, stop)
                ahead = stop
        observe_any(data, indices, lo, hi, table, options, h, ZERO, ZERO, p, norm2)
        if h == 0.0 and not dense:
            _keep(indices, lo, hi, table, stamps, first, form, kept, True)
        for k in range(outputs):
            if not norm2[k] < math.inf:
                return i
            seen = clocks[k, WEIGHT]
            lam = lam_before(schedule, power_t, adaptive, eta0[k], seen, clocks[k, LAM], clocks[k, SUM_SQ_GRAD])
            rates[k] = integrated_rate(schedule, power_t, False, eta0[k], seen, lam, h)
            rate = bounded(rates[k], norm2[k])
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
            if certify:
                certify_round(sums, k, h, p[k], value, slope, c, gap, a, 1.0, a >= CAPPED)
            sums[k, LOSS] += h * value
            sums[k, ROWS] += 1.0
            change[k], square[k], push[k] = -c * rate, h * slope * slope, h * c
        if h == 0.0:
            continue
        update_any(data, indices, lo, hi, table, options, change, square)
        if certify and dual.size:
            add_dual(data, indices, lo, hi, dual, options, push)
        for k in range(np.uint64(outputs)):
            paths[k] += rates[k]
            if dense:
                _shrink_row(table, stamps, first + k, k, form, penalty, rates[k])
    if dense:
        for j in range(stamps.size):
            stamps[j] = paths[j % outputs]
    return -1
