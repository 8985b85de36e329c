"""The loop over rows under the full metric: psi_t(x) = x'A_t x / 2, with a matrix that grows by kappa h q q' a row.

    b = q' A^-1 q
    a = ln(1 + kappa h b) / kappa      the time for which the flow of the loss is run
    c = step(p, y, a)                  the update rule, as under every metric
    x moves by -(a c / b) A^-1 q       and then A <- A + kappa h q q'

``factor`` holds the triangle S of A^-1 = S S', column after column, each down to the diagonal. Carlson's formula brings
it up to date in one pass that also gives A^-1 q. Whatever the rounding, A^-1 = S S' is then symmetric and b >= 0, which
the Sherman-Morrison formula for A^-1 itself does not promise; and a triangle is half the memory.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compile import dense_jit, jit
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import CLASSES, CURVATURE, FENCHEL, LOSS, ROWS, WEIGHT
from steelyard.kernels.outputs import label_of
from steelyard.kernels.rows import ONE, ZERO, add_outputs, dense_add, dense_dot, dot_outputs
from steelyard.kernels.schedule import LARGE
from steelyard.kernels.single import read_config

MOST = 1.7e308
NOISE = 2e-15  # a sum that is smaller than this part of its terms is their rounding, and 0 is as good


@dense_jit
def _dot(factor, start, n, q):
    """<S_j, q>, and the sum of the magnitudes of its terms."""
    phi = 0.0
    size = 0.0
    for i in range(n):
        term = factor[start + i] * q[i]
        phi += term
        size += abs(term)
    return phi, size


@dense_jit
def _update_column(factor, start, n, v, keep, back, phi):
    """S_j <- keep * S_j - back * v, then v += phi * S_j as it was."""
    for i in range(n):
        s = factor[start + i]
        factor[start + i] = keep * s - back * v[i]
        v[i] += phi * s


@jit
def absorb(factor, q, v, rest):
    """Let A grow by q q' / rest. Sets v = A^-1 q and returns b = <q, v>, both with A as it was before.

    With phi = S' q, v = S phi, and the new column j is made of the old one and of what the columns before it have given
    to v. Where a row comes again with a huge weight, phi is rounding, and v would be nothing else. The square roots are
    divided by one after the other: their product may be too small for a float.
    """
    v[:] = 0.0
    b = 0.0
    root = math.sqrt(rest)
    start = ZERO
    for j in range(ZERO, np.uint64(q.size)):
        n = j + ONE
        phi, size = _dot(factor, start, n, q)
        if abs(phi) > NOISE * size:
            b += phi * phi
            grown = math.sqrt(rest + b)
            _update_column(factor, start, n, v, root / grown, phi / grown / root, phi)
            root = grown
        start += n
    return b


@jit
def _rate(b, rest, curvature, h):
    """a/b = ln(1 + b/rest) / (curvature b), which is h where b is small beside ``rest`` = 1/(curvature h)."""
    t = b / rest
    if t == math.inf:
        return (math.log(b) - math.log(rest)) / (curvature * b)
    return h * (math.log1p(t) / t) if t > 0.0 else h


@jit
def _spread(data, indices, lo, hi, q, dense):
    """Write a row into ``q``; returns ||q||^2."""
    norm2 = 0.0
    for e in range(lo, hi):
        value = np.float64(data[e])
        q[e - lo if dense else np.uint64(indices[e])] = value
        norm2 += value * value
    return norm2


def learn_full(
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
    factor,
    config,
    work,
    predictions,
    losses,
):
    """Learn the rows in ``order``, for any number of outputs: the matrix does not depend on labels, so they share it.

    The arguments are those of ``single.learn``, and ``factor``. ``work`` has room for q and A^-1 q, then for
    ``layout.FULL_VECTORS`` vectors of one number an output.
    """
    _, _, _, _, _, _, intercept, dense, certify, _ = read_config(config)
    classes, curvature = config[CLASSES] != 0.0, config[CURVATURE]
    outputs = sums.shape[0]
    size = np.uint64(table.size // outputs)
    q, v = work[:size], work[size : size + size]
    room = work[size + size :]  # FULL_VECTORS of one number an output
    p, change, push = room[:outputs], room[outputs : 2 * outputs], room[2 * outputs : 3 * outputs]
    q[:] = 0.0
    q[size - ONE] = intercept
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        if not (_spread(data, indices, lo, hi, q, dense) + intercept) * max(1.0, eta0[0]) < LARGE:  # then b is so, too
            return i
        if outputs == 1:
            p[0] = dense_dot(q, ZERO, size, table)[0]
        else:
            dot_outputs(q, indices, ZERO, size, table, p, True)
        b = rate = 0.0
        if h > 0.0:
            rest = min(1.0 / (curvature * h), MOST)
            b = absorb(factor, q, v, rest)
            rate = _rate(b, rest, curvature, h)
        for k in range(outputs):
            value, _, c, gap = call_step(step, p[k], label_of(y[row], k, classes), rate * b, params, k)
            predictions[i * outputs + k] = p[k]
            losses[i * outputs + k] = value
            if h > 0.0:
                change[k] = -rate * c
                push[k] = h * c
                clocks[k, WEIGHT] += h
                sums[k, LOSS] += h * value
                sums[k, ROWS] += 1.0
                if certify:
                    sums[k, FENCHEL] += h * (gap + c * p[k])
        if h > 0.0:
            if outputs == 1:
                dense_add(v, ZERO, size, table, change[0])
            else:
                add_outputs(v, indices, ZERO, size, table, change, True)
            if dual.size:
                add_outputs(q, indices, ZERO, size, dual, push, True)
        if not dense:
            for e in range(lo, hi):
                q[indices[e]] = 0.0
    return -1
