"""The loop over rows with penalties and center "origin": FTRL with a composite term.

    x_j = soft(theta_j, l1 t) / (A_j + l2 t),    soft(z, k) = sign z max(0, |z| - k)

t is the weight cumulated before the row and A_j = lam_t / r_j the metric, as without penalties: x needs nothing but
theta, so a feature that a row does not have costs nothing. The regularizer stays the same during a row. Then the
prediction answers to a step linearly as long as no feature becomes zero or ceases to be: the step is the one for the
length a = h * n, n = sum of q_j^2/(A_j + l2 t) over the features that are not zero. A row in which a feature does is
noticed while theta moves; theta is put back, to the bit, and the step is found piece by piece (``piecewise``).

The intercept is not penalised. The table is that of ``rows`` and ``metric``: it holds theta*r, or theta itself under
AdaGrad's metric. ``unit`` is what it is measured in: r, else 1.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.certificate import certify_round
from steelyard.kernels.compile import inline_dense_jit, inline_jit, jit
from steelyard.kernels.intrinsics import call_step, prefetch_once
from steelyard.kernels.layout import (
    CLASSES,
    L1,
    L2,
    LAM,
    LINEARIZED,
    LOSS,
    ROWS,
    RULE,
    SUM_SQ_GRAD,
    WEIGHT,
)
from steelyard.kernels.metric import _count, _outgrow, _outgrows, _take_scale, _take_scales
from steelyard.kernels.outputs import label_of
from steelyard.kernels.piecewise import walk
from steelyard.kernels.rows import ONE, THREE, TWO, ZERO, fetch_ahead, weights_ahead
from steelyard.kernels.schedule import CAPPED, bounded, grow, lam_before
from steelyard.kernels.single import read_config

_SCALAR, _DIAGONAL, _ADAPTIVE = range(3)


@inline_jit
def _base(indices, e, lo, form):
    """Where a feature's record starts. ``form`` is (dense, kind of metric, numbers of a record, outputs)."""
    dense, _, width, _ = form
    return (e - lo if dense else np.uint64(indices[e])) * width


@inline_jit
def _measure(table, base, at, form):
    """(unit, r in the metric) of a feature."""
    _, kind, _, size = form
    if kind == _SCALAR:
        return 1.0, 1.0
    r = table[base]
    return (1.0, r / math.sqrt(1.0 + table[base + at + size])) if kind == _ADAPTIVE else (r, r)


def _observe(data, indices, lo, hi, table, at, form, penalty, ahead, stop):
    """<q, x>, ||q||^2 in the metric for lam = 1, and n. ``penalty`` is (l1 t, l2 t, lam)."""
    kappa, beta, lam = penalty
    p = norm2 = n = 0.0
    for e in range(lo, hi):
        if ahead < stop:
            prefetch_once(table, np.uint64(indices[ahead]) * form[2])
            ahead += ONE
        q, base = np.float64(data[e]), _base(indices, e, lo, form)
        unit, r = _measure(table, base, at, form)
        w = table[base + at]
        most = kappa * unit
        x = w - min(max(w, -most), most)
        part = 1.0
        if form[1] != _SCALAR and beta > 0.0:
            part = lam / (lam + beta * r)
        square = q * q * r
        norm2 += square
        n += square * part if (abs(w) > most) | (kappa == 0.0) else 0.0
        p += q * x * part * (r if form[1] == _ADAPTIVE else 1.0)
    return p, norm2, n


def _move(data, indices, lo, hi, table, at, form, kappa, factor, kept):
    """Move theta by factor * q, and keep what was there; returns in how many places a feature has become zero, or has
    ceased to be."""
    crossed = 0
    for e in range(lo, hi):
        q, base = np.float64(data[e]), _base(indices, e, lo, form)
        unit = _measure(table, base, at, form)[0] if form[1] == _DIAGONAL else 1.0
        w = table[base + at]
        new = w + factor * q * unit
        most = kappa * unit
        crossed += int(((w > most) != (new > most)) | ((w < -most) != (new < -most)))
        kept[e - lo] = w
        table[base + at] = new
    return crossed


_observe_sparse, _observe_dense = inline_jit(_observe), inline_dense_jit(_observe)
_move_sparse, _move_dense = inline_jit(_move), inline_dense_jit(_move)


@inline_jit
def _observe_row(data, indices, lo, hi, table, at, form, penalty, ahead, stop):
    """:func:`_observe`, compiled for each of the usual forms."""
    dense, kind, _, size = form
    if size == ONE and kind == _SCALAR:
        if dense:
            return _observe_dense(data, indices, lo, hi, table, ZERO, (True, _SCALAR, ONE, ONE), penalty, ZERO, ZERO)
        return _observe_sparse(data, indices, lo, hi, table, ZERO, (False, _SCALAR, ONE, ONE), penalty, ahead, stop)
    if size == ONE and kind == _DIAGONAL:
        kappa, beta, lam = penalty
        if dense and beta == 0.0:
            plain = (kappa, 0.0, lam)
            return _observe_dense(data, indices, lo, hi, table, ONE, (True, _DIAGONAL, TWO, ONE), plain, ZERO, ZERO)
        if dense:
            return _observe_dense(data, indices, lo, hi, table, ONE, (True, _DIAGONAL, TWO, ONE), penalty, ZERO, ZERO)
        if beta == 0.0:
            plain = (kappa, 0.0, lam)
            return _observe_sparse(data, indices, lo, hi, table, ONE, (False, _DIAGONAL, TWO, ONE), plain, ahead, stop)
        return _observe_sparse(data, indices, lo, hi, table, ONE, (False, _DIAGONAL, TWO, ONE), penalty, ahead, stop)
    return _observe_sparse(data, indices, lo, hi, table, at, form, penalty, ahead, stop)


@inline_jit
def _move_row(data, indices, lo, hi, table, at, form, kappa, factor, kept):
    """:func:`_move`, compiled for each of the usual forms."""
    dense, kind, _, size = form
    if size == ONE and kind == _SCALAR:
        if dense:
            return _move_dense(data, indices, lo, hi, table, ZERO, (True, _SCALAR, ONE, ONE), kappa, factor, kept)
        return _move_sparse(data, indices, lo, hi, table, ZERO, (False, _SCALAR, ONE, ONE), kappa, factor, kept)
    if size == ONE and kind == _DIAGONAL:
        if dense:
            return _move_dense(data, indices, lo, hi, table, ONE, (True, _DIAGONAL, TWO, ONE), kappa, factor, kept)
        return _move_sparse(data, indices, lo, hi, table, ONE, (False, _DIAGONAL, TWO, ONE), kappa, factor, kept)
    return _move_sparse(data, indices, lo, hi, table, at, form, kappa, factor, kept)


@jit
def _put_back(indices, lo, hi, table, at, form, kept):
    for e in range(lo, hi):
        table[_base(indices, e, lo, form) + at] = kept[e - lo]


@jit
def _find_breakpoints(data, indices, lo, hi, table, at, form, penalty, side, far, places, change):
    """The breakpoints up to ``far``, see ``piecewise``; returns how many."""
    kappa, beta, lam = penalty
    count = 0
    for e in range(lo, hi):
        q, base = np.float64(data[e]), _base(indices, e, lo, form)
        unit, r = _measure(table, base, at, form)
        most = kappa * unit
        pace = abs(q) * unit
        if pace == 0.0:
            continue
        w = table[base + at] if side * q < 0.0 else -table[base + at]  # so that it rises
        n = q * q * r / (lam + beta * r)
        if w < -most and (-most - w) / pace < far:
            places[count], change[count] = (-most - w) / pace, -n
            count += 1
        if w <= most and (most - w) / pace < far:
            places[count], change[count] = (most - w) / pace, n
            count += 1
    return count


@jit
def _take_row(data, indices, lo, hi, table, form, ahead, stop):
    """Let the scales take in a row."""
    dense, kind, width, size = form
    if not dense and size == ONE and kind == _DIAGONAL:
        _take_scales(data, indices, lo, hi, table, True, ahead, stop)
    elif not (dense and size == ONE and kind == _DIAGONAL) or _outgrow(data, lo, hi, table):
        for e in range(lo, hi):
            q, base = np.float64(data[e]), _base(indices, e, lo, form)
            if _outgrows(q, table[base]):
                _take_scale(table, base, q, size, True, kind == _ADAPTIVE)


@jit
def _count_row(data, indices, lo, hi, table, at, form, intercept, square):
    """AdaGrad: add to the sums of squared gradients."""
    size = form[3]
    for e in range(lo, hi):
        q, base = np.float64(data[e]), _base(indices, e, lo, form)
        _count(table, base + at + size, square * q * q * table[base])
    last = np.uint64(table.size) - form[2]
    _count(table, last + at + size, intercept * square * table[last])


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
    config,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order``, for any number of outputs: like ``single.learn``.

    ``work`` holds five vectors as long as the longest row.
    """
    schedule, power_t, _, diagonal, adaptive, _, intercept, dense, certify, _ = read_config(config)
    classes = config[CLASSES] != 0.0
    l1, l2 = config[L1], config[L2]
    outputs = sums.shape[0]
    size = np.uint64(outputs)
    kind = (_ADAPTIVE if adaptive else _DIAGONAL) if diagonal else _SCALAR
    first = ONE if diagonal else ZERO
    width = first + (TWO if adaptive else ONE) * size
    form = (dense, kind, width, size)
    room = work.size // 5
    kept, places, change = work[:room], work[room : 3 * room], work[3 * room :]
    last = np.uint64(table.size) - width
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        ahead, stop = weights_ahead(indptr, order, i, table, dense)
        if diagonal and h > 0.0:
            _take_row(data, indices, lo, hi, table, form, ahead, stop)
            ahead = stop
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        for k in range(outputs):
            at = first + np.uint64(k)
            seen = clocks[k, WEIGHT]
            lam = lam_before(schedule, power_t, adaptive, eta0[k], seen, clocks[k, LAM], clocks[k, SUM_SQ_GRAD])
            penalty = (l1 * seen, l2 * seen, lam)
            p, norm2, n = _observe_row(data, indices, lo, hi, table, at, form, penalty, ahead, stop)
            plain = lam if diagonal else lam + l2 * seen  # what ``part`` leaves to divide by
            own = 1.0 / math.sqrt(1.0 + table[last + at + size]) if adaptive else 1.0
            p = p / plain + intercept * (table[last + at] * (own / lam))
            n = n / plain + intercept * (own / lam)
            norm2 += intercept * own
            if not norm2 < math.inf:
                return i
            label = label_of(y[row], k, classes)
            counted = bounded(h, norm2 / lam)
            a = counted * n
            value, slope, c, gap = call_step(step, p, label, a, params, k)
            predictions[i * outputs + k] = p
            losses[i * outputs + k] = value
            if h == 0.0:
                continue
            kappa = penalty[0]
            crossed = _move_row(data, indices, lo, hi, table, at, form, kappa, -counted * c, kept)
            if crossed > 0 and kappa > 0.0 and params[k, RULE] != LINEARIZED:
                _put_back(indices, lo, hi, table, at, form, kept)
                side, far = 1.0 if slope > 0.0 else -1.0, counted * abs(slope)
                found = _find_breakpoints(
                    data, indices, lo, hi, table, at, form, penalty, side, far, places, change
                )
                start = (p, label, counted, value, slope, n)
                c, gap, a = walk(step, conjugate, params, k, start, places, change, found)
                _move_row(data, indices, lo, hi, table, at, form, kappa, -counted * c, kept)
            table[last + at] -= intercept * (counted * c)
            if adaptive:
                _count_row(data, indices, lo, hi, table, at, form, intercept, h * slope * slope)
            clocks[k, LAM], clocks[k, SUM_SQ_GRAD] = grow(
                schedule, adaptive, eta0[k], clocks[k, LAM], clocks[k, SUM_SQ_GRAD], h, slope, c, gap, a, norm2
            )
            clocks[k, WEIGHT] += h
            if certify:
                certify_round(sums, k, h, p, value, slope, c, gap, a, 1.0, a >= CAPPED)
            sums[k, LOSS] += h * value
            sums[k, ROWS] += 1.0
    return -1
