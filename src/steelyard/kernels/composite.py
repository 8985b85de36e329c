"""The loop over rows with penalties where x follows from the table by one formula; no feature costs more than its own.

Center "origin", FTRL with a composite term: t is the weight cumulated before the row, lam_t/r_j the metric, and

    x_j = soft(theta_j, l1 t) / (lam_t/r_j + l2 t),    soft(z, k) = sign z max(0, |z| - k)

Center "trajectory", mirror descent, with l1 alone (l2 needs ``shrinking``): after each row |x_j| shrinks by
rate * l1 * r_j, rate = ∫ h/lam, and not below 0. With G the sum of all rates, ``paths``, a feature keeps
w_j = x_j + sign(x_j) l1 G r_j. As long as no row has it, x_j = soft(w_j, l1 G r_j).

The step of a row is the one for the length a = h * sum of q_j^2 / (A_j + l2 t), A_j = lam_t/r_j: of the regularizer
without l1. A feature that is zero, or becomes zero, answers less. So the prediction moves at most as far as such a step
says, and never passes the minimum. Where no feature of the row is zero, or becomes zero on the way, the step is the
flow in the regularizer. (Otherwise the flow has bends, and to follow it from bend to bend takes a sort and several
steps of the loss, in every row in which a feature becomes zero or ceases to be.)

The intercept is not penalised. The table is that of ``rows`` and ``metric``: for center "origin" it holds theta*r, or
theta itself under AdaGrad's metric.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.anyrow import add_dual, record_form, update_any
from steelyard.kernels.certificate import certify_round
from steelyard.kernels.compile import inline_dense_jit, inline_jit, jit
from steelyard.kernels.intrinsics import call_step, prefetch_once, trailing_zeros
from steelyard.kernels.layout import CLASSES, L1, L2, LAM, LOSS, ROWS, SUM_SQ_GRAD, WEIGHT
from steelyard.kernels.metric import _beyond, _count, _outgrows, _take_scale, _take_scales
from steelyard.kernels.outputs import label_of
from steelyard.kernels.rows import (
    FOUR,
    ONE,
    SIXTYFOUR,
    THREE,
    TWO,
    ZERO,
    fetch_ahead,
    fetch_four,
    weights_ahead,
)
from steelyard.kernels.schedule import CAPPED, bounded, grow, integrated_rate, lam_before
from steelyard.kernels.single import read_config


@inline_jit
def _soft(w, most):
    return w - min(max(w, -most), most)


# One output without AdaGrad: [r, w] a feature, or w alone under the scalar metric. Compiled for each form.


@inline_jit
def _observe_one(data, indices, e, table, form, penalty):
    """A feature's part of <q, x> and of the squared norm."""
    diagonal, ridge = form
    most, beta, lam = penalty
    q, j = np.float64(data[e]), np.uint64(indices[e])
    if not diagonal:
        return q * _soft(table[j], most), q * q
    r = table[TWO * j]
    part = lam / (lam + beta * r) if ridge else 1.0
    return q * _soft(table[TWO * j + ONE], most * r) * part, q * q * r * part


@inline_jit
def _observe_sparse(data, indices, lo, hi, table, form, penalty, ahead, stop):
    """<q, x> and the squared norm of the row, both times ``lam``, which is that of the metric (scalar: with l2 t).

    ``form`` is (diagonal, l2 counts), ``penalty`` (k, l2 t, lam): x is soft(., k). In four sums, as ``sparse_dot``.
    """
    p0 = p1 = p2 = p3 = 0.0
    n0 = n1 = n2 = n3 = 0.0
    rest = lo + (hi - lo) % FOUR
    width = TWO if form[0] else ONE
    for e in range(lo, rest):
        p, n = _observe_one(data, indices, e, table, form, penalty)
        p0, n0 = p0 + p, n0 + n
    for e in range(rest, hi, FOUR):
        ahead = fetch_four(indices, ahead, stop, table, width)
        p, n = _observe_one(data, indices, e, table, form, penalty)
        p0, n0 = p0 + p, n0 + n
        p, n = _observe_one(data, indices, e + ONE, table, form, penalty)
        p1, n1 = p1 + p, n1 + n
        p, n = _observe_one(data, indices, e + TWO, table, form, penalty)
        p2, n2 = p2 + p, n2 + n
        p, n = _observe_one(data, indices, e + THREE, table, form, penalty)
        p3, n3 = p3 + p, n3 + n
    return (p0 + p1) + (p2 + p3), (n0 + n1) + (n2 + n3)


@inline_dense_jit
def _observe_dense(data, lo, hi, table, form, penalty):
    """The same for a dense row, and how many features are beyond their scales: then it is to be done again."""
    diagonal, ridge = form
    most, beta, lam = penalty
    p = n = 0.0
    beyond = 0
    for j in range(hi - lo):
        q = np.float64(data[lo + j])
        if diagonal:
            r, w = table[TWO * j], table[TWO * j + ONE]
            part = lam / (lam + beta * r) if ridge else 1.0
            p += q * _soft(w, most * r) * part
            n += q * q * r * part
            beyond += int(_outgrows(q, r) & (q != 0.0))
        else:
            p += q * _soft(table[j], most)
            n += q * q
    return p, n, beyond


def _move(data, indices, lo, hi, table, form, most, change):
    """Center "trajectory": x += change * q in the metric. ``form`` is (dense, diagonal)."""
    dense, diagonal = form
    for e in range(lo, hi):
        q, j = np.float64(data[e]), e - lo if dense else np.uint64(indices[e])
        r = table[TWO * j] if diagonal else 1.0
        place = TWO * j + ONE if diagonal else j
        x = _soft(table[place], most * r) + change * q * r
        if diagonal:
            table[TWO * j] = r + 0.0 * q  # whole records vectorise
        table[place] = x + (most * r if x > 0.0 else -most * r)


_move_sparse, _move_dense = inline_jit(_move), inline_dense_jit(_move)


@inline_jit
def _observe_usual(data, indices, lo, hi, table, form, penalty, ahead, stop):
    """(<q, x>, the squared norm, how many features are beyond their scales, if the row is dense)."""
    dense, diagonal, ridge = form
    if dense:
        if not diagonal:
            return _observe_dense(data, lo, hi, table, (False, False), penalty)
        if ridge:
            return _observe_dense(data, lo, hi, table, (True, True), penalty)
        return _observe_dense(data, lo, hi, table, (True, False), penalty)
    if not diagonal:
        p, n = _observe_sparse(data, indices, lo, hi, table, (False, False), penalty, ahead, stop)
    elif ridge:
        p, n = _observe_sparse(data, indices, lo, hi, table, (True, True), penalty, ahead, stop)
    else:
        p, n = _observe_sparse(data, indices, lo, hi, table, (True, False), penalty, ahead, stop)
    return p, n, 0


@inline_jit
def _move_usual(data, indices, lo, hi, table, form, most, change):
    dense, diagonal, _ = form
    if dense and diagonal:
        _move_dense(data, indices, lo, hi, table, (True, True), most, change)
    elif dense:
        _move_dense(data, indices, lo, hi, table, (True, False), most, change)
    elif diagonal:
        _move_sparse(data, indices, lo, hi, table, (False, True), most, change)
    else:
        _move_sparse(data, indices, lo, hi, table, (False, False), most, change)


@inline_jit
def _rescale_sparse(data, indices, lo, hi, table, most, ahead, stop):
    """Center "trajectory": let the scales take in a sparse row, as ``metric._take_scales`` does."""
    for start in range(lo, hi, SIXTYFOUR):
        end = min(start + SIXTYFOUR, hi)
        beyond = ZERO
        for e in range(start, end):
            if ahead < stop:
                prefetch_once(table, np.uint64(indices[ahead]) * TWO)
                ahead += ONE
            beyond = beyond << ONE | _beyond(data, indices, e, table)
        while beyond != ZERO:
            e = end - ONE - trailing_zeros(beyond)
            beyond &= beyond - ONE
            q, base = np.float64(data[e]), np.uint64(indices[e]) * TWO
            r, new = table[base], 1.0 / (q * q)
            if q != 0.0:
                x = _soft(table[base + ONE], most * r) / (abs(q) * math.sqrt(r)) if r > 0.0 else table[base + ONE]
                table[base] = new
                table[base + ONE] = x + (most * new if x > 0.0 else -most * new)


# Any number of outputs, under any metric. ``form`` is (dense, diagonal, adaptive, origin, outputs).


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
            x = _soft(table[base + first + k], penalties[3 * k] * unit)
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
            x = _soft(table[base + first + k], penalties[3 * k] * r) + change[k] * q * r
            if adaptive:
                _count(table, base + ONE + size + k, square[k] * q * q * table[base])
            most = penalties[3 * k] * _measure(table, base, k, form)[0]
            table[base + first + k] = x + (most if x > 0.0 else -most)


@jit
def _rescale(data, indices, lo, hi, table, form, width, penalties):
    """Center "trajectory": let the scales take in a row; a scale that grows shrinks x by old/new."""
    dense, _, adaptive, _, size = form
    for e in range(lo, hi):
        q, base = np.float64(data[e]), (e - lo if dense else np.uint64(indices[e])) * width
        if q != 0.0 and _outgrows(q, table[base]):
            for k in range(size):
                place, r = base + ONE + k, _measure(table, base, k, form)[0]
                table[place] = _soft(table[place], penalties[3 * k] * r)
            _take_scale(table, base, q, size, False, adaptive)
            for k in range(size):
                place, most = base + ONE + k, penalties[3 * k] * _measure(table, base, k, form)[0]
                table[place] += most if table[place] > 0.0 else (-most if table[place] < 0.0 else 0.0)


@jit
def _take_row(data, indices, lo, hi, table, form, width, penalties, ahead, stop):
    """Let the scales take in a row."""
    dense, _, adaptive, origin, size = form
    usual = size == ONE and not adaptive and not dense
    if usual and origin:
        _take_scales(data, indices, lo, hi, table, True, ahead, stop)
    elif usual:
        _rescale_sparse(data, indices, lo, hi, table, penalties[0], ahead, stop)
    elif origin:
        for e in range(lo, hi):
            q, base = np.float64(data[e]), (e - lo if dense else np.uint64(indices[e])) * width
            if _outgrows(q, table[base]):
                _take_scale(table, base, q, size, True, adaptive)
    else:
        _rescale(data, indices, lo, hi, table, form, width, penalties)


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
    form, usual = (dense, diagonal, adaptive, origin, size), (dense, diagonal, l2 > 0.0)
    single = outputs == 1 and not adaptive
    penalties, work = work[: 3 * outputs], work[3 * outputs :]
    p, n, change = work[:outputs], work[outputs : 2 * outputs], work[2 * outputs : 3 * outputs]
    square, push = work[3 * outputs : 4 * outputs], work[4 * outputs : 5 * outputs]
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        ahead, stop = weights_ahead(indptr, order, i, table, dense)
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        for k in range(outputs):
            seen = clocks[k, WEIGHT]
            lam = lam_before(schedule, power_t, adaptive, eta0[k], seen, clocks[k, LAM], clocks[k, SUM_SQ_GRAD])
            penalties[3 * k] = l1 * (seen if origin else paths[k])
            penalties[3 * k + 1] = l2 * seen if origin else 0.0
            penalties[3 * k + 2] = lam
        if diagonal and h > 0.0 and not (dense and single):
            _take_row(data, indices, lo, hi, table, form, width, penalties, ahead, stop)
            ahead = stop
        if single:
            penalty = (penalties[0], penalties[1], penalties[2])
            p[0], n[0], beyond = _observe_usual(data, indices, lo, hi, table, usual, penalty, ahead, stop)
            if beyond > 0 and h > 0.0:
                _take_row(data, indices, lo, hi, table, form, width, penalties, ahead, stop)
                p[0], n[0], _ = _observe_usual(data, indices, lo, hi, table, usual, penalty, ahead, stop)
            if not diagonal:
                part = penalty[2] / (penalty[2] + penalty[1])
                p[0], n[0] = p[0] * part, n[0] * part
        else:
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
            table[at] += change[k] * (intercept if origin else own)
            if adaptive:
                _count(table, last + ONE + size + np.uint64(k), intercept * square[k])
        if h == 0.0:
            continue
        if origin:
            update_any(data, indices, lo, hi, table, options, change, square)
        elif single:
            _move_usual(data, indices, lo, hi, table, usual, penalties[0], change[0])
        else:
            _move_many(data, indices, lo, hi, table, form, width, penalties, change, square)
        if certify and dual.size:
            add_dual(data, indices, lo, hi, dual, (dense, origin, diagonal, adaptive, intercept), push)
    return -1
