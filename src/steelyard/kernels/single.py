"""The loop over rows for one output.

One round of a learner, for a row q with label y and weight h:

    p = <q, x>                 predicted before anything is learned
    a = h * ||q||^2 / lam      in the metric
    c = step(p, y, a)          the update rule, a function of three numbers
    x moves by -(h/lam) c q    (center "trajectory"), or theta by -h c q and x = theta/lam (center "origin")

The arguments of every learn kernel:

    step, conjugate            addresses of the loss's step and conjugate (the latter is used in a ball only)
    params                     a row of parameters of the step for each output (``layout.RULE`` and after)
    eta0                       the initial rate of each output
    data, indices, indptr      the block of rows, see ``rows``
    order, y, weight           row numbers in the order to learn them; label and weight of each row of the block
    table                      the weights: see ``rows`` and ``metric``
    clocks, sums               see ``layout``, one row an output
    dual                       receives the sum of h*c*q, where it is not empty
    config, work               options (``layout``), and room to work in
    predictions, losses        receive what was predicted before each row was learned, and its loss

Each stops at a row whose features or their squares are not finite and returns its place in ``order``; else -1.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.ball import add_to_norm, ball_factor, ball_step, keep_in_ball
from steelyard.kernels.certificate import certify_round, delta_of_round, guarded_step
from steelyard.kernels.compile import inline_jit
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import (
    ADAPTIVE,
    CERTIFY,
    DELTA,
    DENSE,
    DIAGONAL,
    FENCHEL,
    GUARD,
    INSPECTED,
    INTERCEPT,
    LAM,
    LOSS,
    NEGATIVE,
    ORIGIN,
    POWER_T,
    RADIUS,
    ROWS,
    SCHEDULE,
    SUM_SQ_GRAD,
    WEIGHT,
)
from steelyard.kernels.metric import (
    dense_observe,
    dense_update,
    observe_single,
    sparse_observe,
    sparse_update,
    update_single,
)
from steelyard.kernels.rows import canonical, dense_add, dense_dot, fetch_ahead, sparse_add, sparse_dot, weights_ahead
from steelyard.kernels.schedule import CAPPED, bounded, grow, integrated_rate, lam_before


@inline_jit
def read_config(config):
    """The options of a call as numbers and flags."""
    return (
        int(config[SCHEDULE]),
        config[POWER_T],
        config[ORIGIN] != 0.0,
        config[DIAGONAL] != 0.0,
        config[ADAPTIVE] != 0.0,
        config[RADIUS],
        config[INTERCEPT],
        config[DENSE] != 0.0,
        config[CERTIFY] != 0.0,
        config[GUARD] != 0.0,
    )


def learn_plain(
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
    """:func:`learn` without ball, guard, AdaGrad's diagonal metric or ``dual``: as little as a row can need.

    Where nobody has, it looks at the indices of a sparse row itself, and stops at one that is not ``canonical``.
    """
    schedule, power_t, origin, diagonal, _, _, intercept, dense, certify, _ = read_config(config)
    known = dense or config[INSPECTED] != 0.0
    eta = eta0[0]
    # in registers while the loop runs: the compiler cannot know that weights and sums do not overlap
    seen, lam_gap, sum_sq_grad = clocks[0, WEIGHT], clocks[0, LAM], clocks[0, SUM_SQ_GRAD]
    total, rows, fenchel = sums[0, LOSS], sums[0, ROWS], sums[0, FENCHEL]
    deltas, negative = sums[0, DELTA], sums[0, NEGATIVE]
    bias = table[table.size - 1]  # its scale is 1, under the diagonal metric
    n_features = np.uint64(table.size // (2 if diagonal else 1) - 1)
    after = lam_before(schedule, power_t, False, eta, seen, lam_gap, sum_sq_grad)
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        if not known and not canonical(indices, lo, hi, n_features):
            return i
        ahead, stop = weights_ahead(indptr, order, i, table, dense)
        # the kernel itself branches: behind a common function, the dense loops would not vectorise
        if diagonal:
            if dense:
                p, norm2 = dense_observe(data, lo, hi, table, origin, h == 0.0)
            else:
                p, norm2 = sparse_observe(data, indices, lo, hi, table, origin, h == 0.0, ahead, stop)
        elif dense:
            p, norm2 = dense_dot(data, lo, hi, table)
        else:
            p, norm2 = sparse_dot(data, indices, lo, hi, table, ahead, stop)
        norm2 += intercept
        if not norm2 < math.inf:
            return i
        lam = after if certify else lam_before(schedule, power_t, False, eta, seen, lam_gap, sum_sq_grad)
        factor = 1.0 / lam if origin else 1.0
        p = factor * (p + intercept * bias)
        rate = bounded(integrated_rate(schedule, power_t, origin, eta, seen, lam, h), norm2)
        a = rate * norm2
        value, slope, c, gap = call_step(step, p, y[row], a, params, 0)
        fetch_ahead(data, indices, indptr, order, y, weight, i)  # here, where the additions wait for c
        predictions[i] = p
        losses[i] = value
        if h == 0.0:
            continue
        change = -c * (rate * lam if origin else rate)
        if diagonal:
            if dense:
                dense_update(data, lo, hi, table, change)
            else:
                sparse_update(data, indices, lo, hi, table, change)
        elif dense:
            dense_add(data, lo, hi, table, change)
        else:
            sparse_add(data, indices, lo, hi, table, change)
        bias += change if intercept != 0.0 else 0.0  # which 0 times inf is not
        lam_gap, sum_sq_grad = grow(schedule, False, eta, lam_gap, sum_sq_grad, h, slope, c, gap, a, norm2)
        seen += h
        if certify:
            after = lam_before(schedule, power_t, False, eta, seen, lam_gap, sum_sq_grad)
            delta, below = delta_of_round(h, p, value, slope, c, gap, a, lam / after)
            fenchel += math.inf if a >= CAPPED else h * (gap + c * p)
            deltas += delta
            negative += 1.0 if below else 0.0
        total += h * value
        rows += 1.0
    table[table.size - 1] = bias
    clocks[0, WEIGHT], clocks[0, LAM], clocks[0, SUM_SQ_GRAD] = seen, lam_gap, sum_sq_grad
    sums[0, LOSS], sums[0, ROWS], sums[0, FENCHEL] = total, rows, fenchel
    sums[0, DELTA], sums[0, NEGATIVE] = deltas, negative
    return -1


def learn(
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
    """Learn the rows in ``order``, for one output and any options."""
    schedule, power_t, origin, diagonal, adaptive, radius, intercept, dense, certify, guard = read_config(config)
    eta = eta0[0]
    last = table.size - 1  # the intercept, under the scalar metric
    seen, lam_gap, sum_sq_grad = clocks[0, WEIGHT], clocks[0, LAM], clocks[0, SUM_SQ_GRAD]
    total, rows = sums[0, LOSS], sums[0, ROWS]
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        ahead, stop = weights_ahead(indptr, order, i, table, dense)
        flags = (dense, origin, adaptive, h == 0.0)
        if diagonal:
            p, norm2 = observe_single(data, indices, lo, hi, table, intercept != 0.0, flags)
        else:
            if dense:
                p, norm2 = dense_dot(data, lo, hi, table)
            else:
                p, norm2 = sparse_dot(data, indices, lo, hi, table, ahead, stop)
            p += intercept * table[last]
            norm2 += intercept
        if not norm2 < math.inf:
            return i
        lam = lam_before(schedule, power_t, adaptive, eta, seen, lam_gap, sum_sq_grad)
        factor = ball_factor(clocks, 0, lam, radius, origin)
        p *= factor
        rate = bounded(integrated_rate(schedule, power_t, origin, eta, seen, lam, h), norm2)
        a = rate * norm2
        value, slope, c, gap = call_step(step, p, y[row], a, params, 0)
        if radius < math.inf:
            geometry = (factor, 1.0 / lam if origin else factor, norm2, radius, rate)
            c, gap = ball_step(step, conjugate, params, 0, clocks, geometry, p, y[row], value, slope, c, gap)
        predictions[i] = p
        losses[i] = value
        if h == 0.0:
            continue
        lam_gap, sum_sq_grad = grow(schedule, adaptive, eta, lam_gap, sum_sq_grad, h, slope, c, gap, a, norm2)
        seen += h
        if certify or guard:
            ratio = lam / lam_before(schedule, power_t, adaptive, eta, seen, lam_gap, sum_sq_grad)
            if guard:
                c, gap = guarded_step(sums, 0, step, params, h, p, y[row], a, ratio, value, slope, c, gap)
            if certify:
                certify_round(sums, 0, h, p, value, slope, c, gap, a, ratio, a >= CAPPED)
        change = -c * (rate * lam) if origin else -c * rate / factor
        lost = False
        if radius < math.inf:
            lost = add_to_norm(clocks, 0, change * (2.0 * p / factor + change * norm2))
        if diagonal:
            square = h * slope * slope
            update_single(data, indices, lo, hi, table, intercept != 0.0, flags, change, square, ahead, stop)
        else:
            if dense:
                dense_add(data, lo, hi, table, change)
            else:
                sparse_add(data, indices, lo, hi, table, change)
            table[last] += change if intercept != 0.0 else 0.0
        if certify and dual.size:
            if dense:
                dense_add(data, lo, hi, dual, h * c)
            else:
                sparse_add(data, indices, lo, hi, dual, h * c)
            dual[dual.size - 1] += intercept * h * c
        total += h * value
        rows += 1.0
        if radius < math.inf:
            keep_in_ball(clocks, 0, table, radius, origin, rows, lost)
    clocks[0, WEIGHT], clocks[0, LAM], clocks[0, SUM_SQ_GRAD] = seen, lam_gap, sum_sq_grad
    sums[0, LOSS], sums[0, ROWS] = total, rows
    return -1
