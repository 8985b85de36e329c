"""A row under either metric and for any number of outputs: what the kernels that do a little more have in common.

``options`` is (dense, origin, diagonal, adaptive, intercept), ``h`` the weight of the row, ``p`` and ``norm2`` have a
number for each output, and the intercept counts as a feature.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compile import inline_jit
from steelyard.kernels.metric import (
    dense_observe,
    dense_update,
    observe_row,
    observe_single,
    sparse_observe,
    sparse_update,
    update_row,
    update_single,
)
from steelyard.kernels.rows import (
    ONE,
    TWO,
    ZERO,
    add_outputs,
    dense_add,
    dense_dot,
    dot_outputs,
    sparse_add,
    sparse_dot,
)


@inline_jit
def observe_any(data, indices, lo, hi, table, options, h, ahead, stop, p, norm2):
    """<q, w> and ||q||^2 in the metric for lam = 1, of every output; before, the scales take in the row."""
    dense, origin, diagonal, adaptive, intercept = options
    size = p.size
    frozen = h == 0.0
    flags = (dense, origin, adaptive, frozen)
    if diagonal and (size > 1 or adaptive):
        if size > 1:
            observe_row(data, indices, lo, hi, table, np.uint64(size), intercept != 0.0, flags, p, norm2)
        else:
            p[0], norm2[0] = observe_single(data, indices, lo, hi, table, intercept != 0.0, flags)
        return
    if size > 1:
        norm2[:] = dot_outputs(data, indices, lo, hi, table, p, dense)
    elif diagonal:
        if dense:
            p[0], norm2[0] = dense_observe(data, lo, hi, table, origin, frozen)
        else:
            p[0], norm2[0] = sparse_observe(data, indices, lo, hi, table, origin, frozen, ahead, stop)
    elif dense:
        p[0], norm2[0] = dense_dot(data, lo, hi, table)
    else:
        p[0], norm2[0] = sparse_dot(data, indices, lo, hi, table, ahead, stop)
    for k in range(size):
        p[k] += intercept * table[table.size - size + k]
        norm2[k] += intercept


@inline_jit
def update_any(data, indices, lo, hi, table, options, factor, square):
    """w_k += factor_k * q in the metric; ``square`` is what AdaGrad counts."""
    dense, origin, diagonal, adaptive, intercept = options
    size = factor.size
    flags = (dense, origin, adaptive, False)
    if diagonal and (size > 1 or adaptive):
        if size > 1:
            update_row(data, indices, lo, hi, table, np.uint64(size), intercept != 0.0, flags, factor, square)
        else:
            update_single(data, indices, lo, hi, table, intercept != 0.0, flags, factor[0], square[0], ZERO, ZERO)
        return
    if size > 1:
        add_outputs(data, indices, lo, hi, table, factor, dense)
    elif diagonal:
        if dense:
            dense_update(data, lo, hi, table, factor[0])
        else:
            sparse_update(data, indices, lo, hi, table, factor[0])
    elif dense:
        dense_add(data, lo, hi, table, factor[0])
    else:
        sparse_add(data, indices, lo, hi, table, factor[0])
    for k in range(size):
        table[table.size - size + k] += factor[k] if intercept != 0.0 else 0.0


@inline_jit
def add_dual(data, indices, lo, hi, dual, options, push):
    """Add push_k * q to a vector for each output."""
    dense, _, _, _, intercept = options
    size = push.size
    if size > 1:
        add_outputs(data, indices, lo, hi, dual, push, dense)
    elif dense:
        dense_add(data, lo, hi, dual, push[0])
    else:
        sparse_add(data, indices, lo, hi, dual, push[0])
    for k in range(size):
        dual[dual.size - size + k] += intercept * push[k]


@inline_jit
def record_form(diagonal, adaptive, outputs):
    """(where the first weight stands in a record, numbers of a record)."""
    first = ONE if diagonal else ZERO
    return first, first + (TWO if adaptive else ONE) * np.uint64(outputs)
