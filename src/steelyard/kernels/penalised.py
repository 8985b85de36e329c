"""The loop over rows with penalties, for one output without AdaGrad's metric; no feature costs more than its own.

Center "origin", FTRL with a composite term: t is the weight cumulated before the row, lam_t/r_j the metric, and

    x_j = soft(theta_j, l1 t) / (lam_t/r_j + l2 t),    soft(z, k) = sign z max(0, |z| - k)

Center "trajectory", mirror descent: after each row, of the rate ∫ h/lam, x shrinks as the flow

    x_j' = -r_j (l1 sign x_j + l2 x_j)

says, for the time rate, and not past 0. With G the sum of all rates, ``paths``, a feature keeps

    w_j = x_j + sign(x_j) l1 G r_j,   so that x_j = soft(w_j, l1 G r_j)                         with l1 alone
    w_j = E x_j + sign(x_j) k,        so that x_j = soft(w_j, k) / E                            with l2, scalar metric
          E = e^(l2 G), k = l1 (E - 1)/l2; before E grows out of floats, G begins anew
    w_j = x_j, and a stamp: what G was when it was written                                      with l2, diagonal metric

The step of a row is the one for the length a = h * sum of q_j^2 / (A_j + l2 t), A_j = lam_t/r_j: of the regularizer
without l1. A feature that is zero, or becomes zero, answers less. So the prediction moves at most as far as such a step
says, and never passes the minimum. Where no feature of the row is zero, or becomes zero on the way, the step is the
flow in the regularizer. (Otherwise the flow has bends, and to follow it from bend to bend takes a sort and several
steps of the loss, in every row in which a feature becomes zero or ceases to be.)

The intercept is not penalised. The table is that of ``rows`` and ``metric``, with theta*r for center "origin". Records
of a sparse row are read once, worked on side by side and written back (:mod:`steelyard.kernels.gathered`).
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.certificate import delta_of_round
from steelyard.kernels.compile import inline_dense_jit, inline_jit, jit
from steelyard.kernels.gathered import (
    gather,
    gather_scalar,
    gather_stamped,
    keep_shrunk,
    keep_soft,
    move_kept,
    move_origin,
    move_scalar,
    move_soft,
    observe_kept,
    observe_origin,
    observe_scalar,
    scatter,
    scatter_scalar,
    scatter_stamped,
    soft,
    take_scales,
)
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import (
    DELTA,
    FENCHEL,
    L1,
    L2,
    LAM,
    LOSS,
    NEGATIVE,
    ROWS,
    SHRUNK_FAR,
    SUM_SQ_GRAD,
    WEIGHT,
)
from steelyard.kernels.metric import _outgrows, dense_observe, dense_update
from steelyard.kernels.rows import (
    ONE,
    TWO,
    dense_add,
    dense_dot,
    fetch_ahead,
    sparse_add,
    sparse_dot,
    weights_ahead,
)
from steelyard.kernels.schedule import CAPPED, LARGE, bounded, grow, integrated_rate, lam_before
from steelyard.kernels.shrinking import catch_up, decay, move_and_shrink, shrink_far
from steelyard.kernels.single import read_config


@inline_dense_jit
def _observe_dense(data, lo, hi, table, form, penalty):
    """<q, x> and the squared norm of a dense row, both times ``lam``, which is that of the metric (scalar: with l2 t),
    and how many features are beyond their scales: then it is to be done again.

    ``form`` is (diagonal, l2 counts), ``penalty`` (k, l2 t, lam): x is soft(., k).
    """
    diagonal, ridge = form
    most, beta, lam = penalty
    p = n = 0.0
    beyond = 0
    for j in range(hi - lo):
        q = np.float64(data[lo + j])
        if diagonal:
            r, w = table[TWO * j], table[TWO * j + ONE]
            part = lam / (lam + beta * r) if ridge else 1.0
            p += q * soft(w, most * r) * part
            n += q * q * r * part
            beyond += int(_outgrows(q, r) & (q != 0.0))
        else:
            p += q * soft(table[j], most)
            n += q * q
    return p, n, beyond


@inline_dense_jit
def _move_dense(data, lo, hi, table, diagonal, most, change):
    """Center "trajectory": x += change * q in the metric, and w follows."""
    for j in range(hi - lo):
        q = np.float64(data[lo + j])
        r = table[TWO * j] if diagonal else 1.0
        place = TWO * j + ONE if diagonal else j
        x = soft(table[place], most * r) + change * q * r
        if diagonal:
            table[TWO * j] = r + 0.0 * q  # whole records vectorise
        table[place] = x + math.copysign(min(most * r, LARGE), x)


@jit
def _rescale_dense(data, lo, hi, table, origin, most):
    """Let the scales take in a dense row."""
    for j in range(hi - lo):
        q, r, w = np.float64(data[lo + j]), table[TWO * j], table[TWO * j + ONE]
        if q == 0.0 or not _outgrows(q, r):
            continue
        shrink = 1.0 / (abs(q) * math.sqrt(r)) if r > 0.0 else 1.0
        table[TWO * j] = new = 1.0 / (q * q)
        if origin:
            table[TWO * j + ONE] = w * shrink * shrink
        else:
            x = soft(w, most * r) * shrink
            table[TWO * j + ONE] = x + math.copysign(min(most * new, LARGE), x)


@inline_jit
def _observe_dense_row(data, lo, hi, table, modes, penalty, frozen):
    """<q, x> and the squared norm of a dense row, before which the scales take it in."""
    diagonal, origin, ridge, stamped = modes
    if stamped:
        return dense_observe(data, lo, hi, table, False, frozen)
    if not diagonal:
        if penalty[0] == 0.0:  # without l1
            return dense_dot(data, lo, hi, table)
        p, n, _ = _observe_dense(data, lo, hi, table, (False, False), penalty)
        return p, n
    if ridge:
        p, n, beyond = _observe_dense(data, lo, hi, table, (True, True), penalty)
    else:
        p, n, beyond = _observe_dense(data, lo, hi, table, (True, False), penalty)
    if beyond > 0 and not frozen:
        _rescale_dense(data, lo, hi, table, origin, penalty[0])
        p, n, _ = _observe_dense(data, lo, hi, table, (True, ridge), penalty)
    return p, n


@inline_jit
def _observe_sparse_row(data, indices, lo, hi, table, stamps, modes, penalty, flow, frozen, ahead, stop, room):
    """The same for a sparse row; its records stay in ``room``. ``flow`` is (l1, l2, G)."""
    diagonal, origin, ridge, stamped = modes
    most, beta, lam = penalty
    if not diagonal:
        if most == 0.0:  # without l1
            return sparse_dot(data, indices, lo, hi, table, ahead, stop)
        gather_scalar(indices, lo, hi, table, room, ahead, stop)
        return observe_scalar(data, lo, hi, room, most)
    if stamped:
        gather_stamped(indices, lo, hi, table, stamps, room, ahead, stop)
        keep_shrunk(hi - lo, room, flow)
    else:
        gather(indices, lo, hi, table, room, ahead, stop)
        if not origin:
            keep_soft(hi - lo, room, most)
    if not frozen:
        take_scales(data, indices, lo, hi, table, room, origin)
    if not origin:
        return observe_kept(data, lo, hi, room)
    if ridge:
        return observe_origin(data, lo, hi, room, most, beta, lam)
    return observe_origin(data, lo, hi, room, most, 0.0, 1.0)


@inline_jit
def _move_sparse_row(data, indices, lo, hi, table, stamps, modes, most, change, now, room):
    """Learn a sparse row whose records are in ``room``."""
    diagonal, origin, _, stamped = modes
    if not diagonal:
        if origin or most == 0.0:
            sparse_add(data, indices, lo, hi, table, change)
        else:
            move_scalar(data, lo, hi, room, most, change)
            scatter_scalar(indices, lo, hi, table, room)
        return
    if origin:
        move_origin(data, lo, hi, room, change)
    elif stamped:
        move_kept(data, lo, hi, room, change)
    else:
        move_soft(data, lo, hi, room, most, change)
    if stamped:
        scatter_stamped(indices, lo, hi, table, stamps, room, now)
    else:
        scatter(indices, lo, hi, table, room)


@inline_jit
def _move_dense_row(data, lo, hi, table, modes, most, change, flow, rate):
    """Learn a dense row."""
    diagonal, origin, _, stamped = modes
    if stamped:
        if move_and_shrink(data, lo, hi, table, change, flow[0], flow[1], rate) > 0:
            shrink_far(table, flow[0], flow[1], rate)
    elif origin and diagonal:
        dense_update(data, lo, hi, table, change)
    elif origin or (most == 0.0 and not diagonal):
        dense_add(data, lo, hi, table, change)
    elif diagonal:
        _move_dense(data, lo, hi, table, True, most, change)
    else:
        _move_dense(data, lo, hi, table, False, most, change)


@jit
def _begin_anew(table, l1, l2, path):
    """Have in the table what x is now, as if nothing had shrunk so far."""
    kept, lost = decay(l2 * path)
    for j in range(np.uint64(table.size) - ONE):
        table[j] = soft(table[j], l1 / l2 * (lost / kept)) * kept


def learn_penalised(
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
    """Learn the rows in ``order``: like ``single.learn``. ``work`` holds four numbers for each feature of the longest
    sparse row; ``stamps`` is empty where no feature has one."""
    schedule, power_t, origin, diagonal, _, _, intercept, dense, certify, _ = read_config(config)
    l1, l2 = config[L1], config[L2]
    eta, last = eta0[0], table.size - 1
    modes = (diagonal, origin, l2 > 0.0, stamps.size > 0)
    growing, kept, grown = not diagonal and not origin and l2 > 0.0, 1.0, 1.0
    seen, lam_gap, sum_sq_grad, path = clocks[0, WEIGHT], clocks[0, LAM], clocks[0, SUM_SQ_GRAD], paths[0]
    total, rows, fenchel = sums[0, LOSS], sums[0, ROWS], sums[0, FENCHEL]
    deltas, negative, bias = sums[0, DELTA], sums[0, NEGATIVE], table[last]
    if dense and stamps.size > 0:
        catch_up(table, stamps, path, l1, l2)
    stopped = -1
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        ahead, stop = weights_ahead(indptr, order, i, table, dense)
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        lam = lam_before(schedule, power_t, False, eta, seen, lam_gap, sum_sq_grad)
        most, beta = l1 * (seen if origin else path), l2 * seen
        if growing:
            if l2 * path > SHRUNK_FAR:
                _begin_anew(table, l1, l2, path)
                path = 0.0
            kept, lost = decay(l2 * path)
            grown = 1.0 / kept
            most = l1 / l2 * lost * grown
        penalty, flow = (most, beta if origin else 0.0, lam), (l1, l2, path)
        if dense:
            p, norm2 = _observe_dense_row(data, lo, hi, table, modes, penalty, h == 0.0)
        else:
            p, norm2 = _observe_sparse_row(
                data, indices, lo, hi, table, stamps, modes, penalty, flow, h == 0.0, ahead, stop, work
            )
        if origin and not diagonal:
            p, norm2 = p * (lam / (lam + beta)), norm2 * (lam / (lam + beta))
        p = (p * kept + intercept * bias) * (1.0 / lam if origin else 1.0)
        norm2 += intercept
        if not norm2 < math.inf:
            stopped = i
            break
        full = integrated_rate(schedule, power_t, origin, eta, seen, lam, h)
        rate = bounded(full, norm2)
        a = rate * norm2
        value, slope, c, gap = call_step(step, p, y[row], a, params, 0)
        predictions[i] = p
        losses[i] = value
        if h == 0.0:
            continue
        change = -c * (rate * lam if origin else rate)
        lam_gap, sum_sq_grad = grow(schedule, False, eta, lam_gap, sum_sq_grad, h, slope, c, gap, a, norm2)
        seen += h
        if dense:
            _move_dense_row(data, lo, hi, table, modes, most, change * grown, flow, full)
        else:
            _move_sparse_row(data, indices, lo, hi, table, stamps, modes, most, change * grown, path, work)
        bias += change if intercept != 0.0 else 0.0
        path += full
        if certify:
            delta, below = delta_of_round(h, p, value, slope, c, gap, a, 1.0)
            fenchel += math.inf if a >= CAPPED else h * (gap + c * p)
            deltas += delta
            negative += 1.0 if below else 0.0
            if dual.size:
                if dense:
                    dense_add(data, lo, hi, dual, h * c)
                else:
                    sparse_add(data, indices, lo, hi, dual, h * c)
                dual[dual.size - 1] += intercept * h * c
        total += h * value
        rows += 1.0
    table[last], paths[0] = bias, path
    clocks[0, WEIGHT], clocks[0, LAM], clocks[0, SUM_SQ_GRAD] = seen, lam_gap, sum_sq_grad
    sums[0, LOSS], sums[0, ROWS], sums[0, FENCHEL] = total, rows, fenchel
    sums[0, DELTA], sums[0, NEGATIVE] = deltas, negative
    if dense:
        for j in range(stamps.size):
            stamps[j] = path
    return stopped
