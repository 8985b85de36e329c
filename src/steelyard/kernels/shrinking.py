"""The loop over rows with l2, or both penalties, and center "trajectory", for many outputs or under AdaGrad's metric:
mirror descent, and after each row x shrinks. (For one output: :mod:`steelyard.kernels.penalised`.)

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
from steelyard.kernels.compile import inline_dense_jit, inline_jit, jit
from steelyard.kernels.intrinsics import bits_of, call_step, from_bits, prefetch_once
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

_LOG2_E = 1.0 / math.log(2.0)
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # the first with zeros at its end
_ROUND = 1.5 * 2.0**52  # a number plus this has its whole part in the last bits
_ONE_BITS, _FRACTION = np.uint64(1023 << 52), np.uint64(52)
_SHORT = 1e-4  # up to here few terms are exact to the last digit: a dense row's features shrink after each row
_GONE = 700.0  # e^-700 is as good as 0, and its bits are those of a usual number
_F = tuple(1.0 / math.factorial(n) for n in range(2, 14))


@inline_jit
def decay(z):
    """(e^-z, 1 - e^-z) for z >= 0, each to the last digits, without a branch: a row's features, and those of a dense
    table all at once, differ too much in z for the processor to guess one."""
    whole = min(z, _GONE) * _LOG2_E + _ROUND
    n = whole - _ROUND
    r = (min(z, _GONE) - n * _LN2_HIGH) - n * _LN2_LOW  # at most ln(2)/2 in size
    q = r * r
    even = 1.0 + q * (_F[1] + q * (_F[3] + q * (_F[5] + q * (_F[7] + q * (_F[9] + q * _F[11])))))
    odd = _F[0] + q * (_F[2] + q * (_F[4] + q * (_F[6] + q * (_F[8] + q * _F[10]))))
    lost = r * (even - r * odd)  # 1 - e^-r
    power = from_bits(_ONE_BITS - (bits_of(whole) << _FRACTION))  # 2^-n
    return power - power * lost, (1.0 - power) + power * lost


@inline_jit
def shrunk(x, d, l1, l2):
    """x after shrinking for d."""
    kept, lost = decay(l2 * d)
    return math.copysign(max(0.0, abs(x) * kept - l1 / l2 * lost), x)


@inline_jit
def _measure(table, base, at, form):
    """1/m of a feature. ``form`` is (diagonal, adaptive, numbers of a record, outputs)."""
    diagonal, adaptive, _, size = form
    r = table[base] if diagonal else 1.0
    return r / math.sqrt(1.0 + table[base + at + size]) if adaptive else r


@inline_dense_jit
def _shrink_all(each, ways, count, l1, l2):
    """Numbers shrink, each for its own way."""
    for e in range(count):
        each[e] = shrunk(each[e], ways[e], l1, l2)


@inline_jit
def _settle(data, indices, lo, hi, table, stamps, at, k, form, penalty, now, ahead, stop, room):
    """Let the features of a sparse row shrink up to now: side by side, so that several are done at a time."""
    _, _, width, size = form
    l1, l2 = penalty
    each, ways = room[: room.size // 2], room[room.size // 2 :]
    for e in range(lo, hi):
        if ahead < stop:
            prefetch_once(table, np.uint64(indices[ahead]) * width)
            prefetch_once(stamps, np.uint64(indices[ahead]) * size)
            ahead += ONE
        j = np.uint64(indices[e])
        each[e - lo] = table[j * width + at]
        ways[e - lo] = (now - stamps[j * size + k]) * _measure(table, j * width, at, form)
        stamps[j * size + k] = now
    _shrink_all(each, ways, hi - lo, l1, l2)
    for e in range(lo, hi):
        table[np.uint64(indices[e]) * width + at] = each[e - lo]


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


@jit
def _shrink_row(table, at, form, penalty, d):
    """Every feature of a table shrinks, as those of a dense row do."""
    l1, l2 = penalty
    for j in range(np.uint64(table.size) // form[2] - ONE):
        base = j * form[2]
        table[base + at] = shrunk(table[base + at], d * _measure(table, base, at, form), l1, l2)


@jit
def _catch_up(table, stamps, path, at, k, form, penalty):
    """Every feature shrinks up to now."""
    _, _, width, size = form
    l1, l2 = penalty
    for j in range(np.uint64(table.size) // width - ONE):
        base = j * width
        d = (path - stamps[j * size + k]) * _measure(table, base, at, form)
        table[base + at] = shrunk(table[base + at], d, l1, l2)


# One output, [r, w] a feature, dense rows.


@inline_dense_jit
def move_and_shrink(data, lo, hi, table, change, l1, l2, d):
    """x += change * q in the metric, and then shrinks; returns how many would shrink too far for a few terms, and have
    not shrunk yet."""
    far = 0
    for j in range(hi - lo):
        q, r = np.float64(data[lo + j]), table[TWO * j]
        x = table[TWO * j + ONE] + change * q * r
        z = l2 * (d * r)
        left = abs(x) * (1.0 - z * (1.0 - z * (_F[0] - z * (_F[1] - z * _F[2]))))
        left = max(0.0, left - l1 * (d * r) * (1.0 - z * (_F[0] - z * (_F[1] - z * _F[2]))))
        table[TWO * j] = r + 0.0 * q  # whole records vectorise
        table[TWO * j + ONE] = math.copysign(left, x) if z < _SHORT else x
        far += int(not z < _SHORT)
    return far


@jit
def shrink_far(table, l1, l2, d):
    """Those of :func:`move_and_shrink` that have not shrunk yet."""
    for j in range(np.uint64(table.size) // TWO - ONE):
        way = d * table[TWO * j]
        if not l2 * way < _SHORT:
            table[TWO * j + ONE] = shrunk(table[TWO * j + ONE], way, l1, l2)


@jit
def catch_up(table, stamps, path, l1, l2):
    """Every feature shrinks up to now."""
    _catch_up(table, stamps, path, ONE, ZERO, (True, False, TWO, ONE), (l1, l2))


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

    ``work`` holds six numbers an output, and four for each output and feature of the longest row.
    """
    schedule, power_t, _, diagonal, adaptive, _, intercept, dense, certify, _ = read_config(config)
    options = (dense, False, diagonal, adaptive, intercept)
    classes = config[CLASSES] != 0.0
    penalty = (config[L1], config[L2])
    outputs = sums.shape[0]
    p, norm2, change = work[:outputs], work[outputs : 2 * outputs], work[2 * outputs : 3 * outputs]
    square, push = work[3 * outputs : 4 * outputs], work[4 * outputs : 5 * outputs]
    rates, rest = work[5 * outputs : 6 * outputs], work[6 * outputs :]
    kept, room = rest[: rest.size // 2], rest[rest.size // 2 :]
    first, width = record_form(diagonal, adaptive, outputs)
    form = (diagonal, adaptive, width, np.uint64(outputs))
    if dense:
        for k in range(np.uint64(outputs)):
            _catch_up(table, stamps, paths[k], first + k, k, form, penalty)
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
                _settle(data, indices, lo, hi, table, stamps, first + k, k, form, penalty, paths[k], ahead, stop, room)
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
                _shrink_row(table, first + k, form, penalty, rates[k])
    if dense:
        for j in range(stamps.size):
            stamps[j] = paths[j % outputs]
    return -1
