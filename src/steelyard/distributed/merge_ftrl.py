"""Learners with one regularizer, merged; see ``merge``.

A column's scale is the largest of all. AdaGrad's sums of squared gradients say how much a learner has learned of a
feature.

Under the full metric nothing is averaged: with A_s the matrix and x_s the model of a shard, A_s and A_s x_s add up. For
the squared loss that is what one learner would have computed from all rows, to rounding.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from steelyard.distributed.merge import LEAST_WEIGHT, added, average
from steelyard.ftrl import Ftrl, State
from steelyard.kernels import layout
from steelyard.losses import Array

_ADDED_CLOCKS = [layout.WEIGHT, layout.LAM, layout.SUM_SQ_GRAD]


def merge_ftrl(result: Ftrl, grown: list[Any], base: Any) -> Any:
    """The state of ``result``, which has the options of all: of ``grown`` learners that have learned since ``base``."""
    if result.certificate:
        result._keep_dual()
    new: Any = result._new_state(grown[0].n_features)
    origin = base
    if origin is None:
        origin = copy.copy(result)
        origin.state = result._new_state(grown[0].n_features)
    states, first = [learner.state for learner in grown], origin.state
    new.clocks[:, _ADDED_CLOCKS] = added([s.clocks[:, _ADDED_CLOCKS] for s in states], first.clocks[:, _ADDED_CLOCKS])
    new.sums[...] = added([s.sums for s in states], first.sums)
    if result.certificate:
        new.dual[:] = added([learner._dual_sums() for learner in grown], origin._dual_sums()).reshape(-1)
    if result.regularizer.metric == "full":
        _merge_matrices(result, states, first, new)
        return new
    learned = [np.maximum(s.clocks[:, layout.WEIGHT] - first.clocks[:, layout.WEIGHT], LEAST_WEIGHT) for s in states]
    models = [learner._solve_coefficients(learner.state) for learner in grown]
    shares = learned
    if result.regularizer.metric == "diagonal":
        shrinks = _take_scales(result, [*states, first], new)
        if result.regularizer.adaptive:
            shares = _add_squares(result, [*states, first], shrinks, new)
    result.state = new  # for its lam
    _set_model(result, new, average(models, shares, learned))
    return new


def _take_scales(result: Ftrl, states: list[Any], new: State) -> list[Array]:
    """Give ``new`` the largest scale of every column; returns old/new of each state."""
    inverses = [state.table.reshape(-1, result._record)[:, :1] for state in states]
    smallest = np.full_like(inverses[0], np.inf)
    for inverse in inverses:
        smallest = np.where(inverse > 0.0, np.minimum(smallest, inverse), smallest)
    common = np.where(np.isfinite(smallest), smallest, 0.0)
    new.table.reshape(-1, result._record)[:, :1] = common
    return [np.sqrt(np.divide(common, inverse, out=np.ones_like(inverse), where=inverse > 0.0)) for inverse in inverses]


def _add_squares(result: Ftrl, states: list[Any], shrinks: list[Array], new: State) -> list[Array]:
    """AdaGrad: add up the squared gradients; returns what each state has added to the last, the weight of its model."""
    part = slice(1 + result.n_outputs, None)
    squares = [state.table.reshape(-1, result._record)[:, part] for state in states]
    *each, first = (g * shrink * shrink for g, shrink in zip(squares, shrinks, strict=True))
    new.table.reshape(-1, result._record)[:, part] = added(each, first)
    return [np.maximum(g - first, 0.0) for g in each]


def _set_model(result: Ftrl, new: State, x: Array) -> None:
    """Write x into the table, as center and metric have it there: the inverse of ``Ftrl._solve_coefficients``."""
    r = result.regularizer
    table = new.table.reshape(-1, result._record)
    if r.radius is not None:  # an average of points in a ball is in it, but for rounding
        x = x * np.minimum(1.0, r.radius / np.maximum(np.linalg.norm(x, axis=0), r.radius))
    weights = x
    if r.center == "origin":
        weights = x * result.lam()
        if r.adaptive:
            below = np.where(table[:, :1] > 0.0, table[:, :1], 1.0)
            weights = weights * np.sqrt(1.0 + table[:, 1 + result.n_outputs :]) / below
    first = 1 if r.metric == "diagonal" else 0
    table[:, first : first + result.n_outputs] = weights
    if r.radius is not None:
        new.clocks[:, layout.NORM2] = (weights * weights).sum(axis=0)


def _merge_matrices(result: Ftrl, states: list[Any], first: Any, new: Any) -> None:
    """Metric "full": A and A x add up."""
    size = new.table.size // result.n_outputs
    matrix, pushed = _natural(first, size)
    whole, push = matrix.copy(), pushed.copy()
    for state in states:
        one, moved = _natural(state, size)
        whole += one - matrix
        push += moved - pushed
    factor = _triangle(whole)
    columns, rows = np.tril_indices(size)  # S column after column, each down to the diagonal
    new.factor[:] = factor[rows, columns]
    new.table[:] = (factor @ (factor.T @ push)).reshape(-1)


def _natural(state: Any, size: int) -> tuple[Array, Array]:
    """A and A x."""
    from scipy.linalg import solve_triangular

    factor = np.zeros((size, size))
    columns, rows = np.tril_indices(size)
    factor[rows, columns] = state.factor
    root = solve_triangular(factor, np.eye(size), lower=False)  # S^-1, and A = S^-T S^-1
    return root.T @ root, root.T @ (root @ state.table.reshape(size, -1))


def _triangle(matrix: Array) -> Array:
    """The upper triangle S of A^-1 = S S'. Where rounding has taken A's definiteness, a little is added to it."""
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    scale = 1.0 / np.sqrt(matrix.diagonal())
    even = matrix * scale * scale[:, None]
    jitter = 0.0
    while True:
        try:
            root = cholesky(even + jitter * np.eye(len(even)), lower=True)
            break
        except LinAlgError:
            jitter = max(4.0 * jitter, 1e-15)
    inverse = solve_triangular(root, np.eye(len(even)), lower=True)
    return np.asarray(scale[:, None] * inverse.T)
