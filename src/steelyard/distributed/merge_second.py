"""What the experts of second order of several mixtures know, merged: it adds up.

With P = A^-1 the matrix of an expert, x its weights, and prior the strength of its prior, the rows that it has learned
are in A - prior and in A x. Both are written for common units and centers of the columns, z' = S z, and then add up:
for the squared loss and rows that are not clipped, that is what one expert would know of all rows, to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steelyard.kernels import layout
from steelyard.kernels.layout import EXPERTS, SECOND
from steelyard.losses import Array


class _Second(NamedTuple):
    """Views of what two experts know; see ``kernels.second``."""

    columns: Array
    """mean, variance, one over the unit, the weight of rows in which a column is not zero"""
    matrices: Array
    """P of each, of which the lower half counts"""
    pending: Array
    """g of each: g g^T is still to be taken off P"""
    models: Array
    """(outputs, experts, x and then GAMMA and INFO)"""


def _view(second: Array, width: int, outputs: int) -> _Second:
    start, own = layout.SECOND_COLUMNS * width, width * (width + 1)
    matrices = second[start : start + SECOND * own].reshape(SECOND, own)
    return _Second(
        second[:start].reshape(-1, width),
        matrices[:, : width * width].reshape(SECOND, width, width),
        matrices[:, width * width :],
        second[start + SECOND * own :].reshape(outputs, SECOND, width + layout.SECOND_EXTRA),
    )


def merge_second(mixture: Any, states: list[Any], first: Any, new: Any, learned: list[float]) -> None:
    """Write the second-order part of ``new``, whose clocks and sums are merged already."""
    features = first.centered.size
    width, size = layout.second_width(features), features + 1
    views = [_view(state.second, width, mixture.n_outputs) for state in (*states, first)]
    offsets = np.zeros(len(views))
    if mixture.fit_intercept:
        offsets += [s.clocks[layout.LABEL_MEAN] - new.clocks[layout.LABEL_MEAN] for s in (*states, first)]
    seen = np.array([state.clocks[layout.SECOND_SEEN] for state in (*states, first)])
    merged = _view(new.second, width, mixture.n_outputs)
    signs = np.ones(len(views))
    signs[-1] = 1.0 - len(states)
    parts = signs * seen / max(new.clocks[layout.SECOND_SEEN], 1e-300)
    _merge_columns(views, parts, signs, merged, features)
    _merge_calibration(mixture, states, new, views, learned, merged, width)
    both = new.clocks[layout.MATRICES] > 1.0
    for expert in range(0 if both else 1, SECOND):
        prior = layout.second_priors(features)[expert]
        total, pushed = np.zeros((size, size)), np.zeros((size, mixture.n_outputs))
        for view, sign, offset in zip(views, signs, offsets, strict=True):
            change = _change(view.columns, merged.columns, features)
            matrix, x = _matrix(view, expert, size), view.models[:, expert, :size].T
            if not (np.isfinite(matrix).all() and np.isfinite(x).all()):
                continue  # of a retired expert
            of_rows = matrix - prior * np.eye(size)
            total += sign * (change @ of_rows @ change.T)
            pushed += sign * (change @ (matrix @ x + offset * of_rows[:, -1:]))
        known = _positive(total) + prior * np.eye(size)
        merged.matrices[expert] = np.eye(width) / prior
        merged.matrices[expert, :size, :size] = np.linalg.inv(known)
        merged.models[:, expert, :size] = np.linalg.solve(known, pushed).T


def _merge_columns(views: list[_Second], parts: Array, signs: Array, merged: _Second, features: int) -> None:
    here = slice(features)
    reference = views[-1].columns[0, here] if parts[-1] else views[0].columns[0, here]
    away = np.array([view.columns[0, here] - reference for view in views])
    variances = np.array([view.columns[1, here] for view in views])
    moved = parts @ away
    merged.columns[0, here] = reference + moved
    merged.columns[1, here] = np.maximum(parts @ (variances + away * away) - moved * moved, 0.0)
    inverses = np.array([view.columns[2, here] for view in views])
    least = np.where(inverses > 0.0, inverses, np.inf).min(axis=0)
    merged.columns[2, here] = np.where(np.isfinite(least), least, 0.0)  # the largest unit: units never shrink
    merged.columns[3, here] = signs @ np.array([view.columns[3, here] for view in views])


def _merge_calibration(
    mixture: Any, states: list[Any], new: Any, views: list[_Second], learned: list[float], merged: _Second, width: int
) -> None:
    """GAMMA is 1/sqrt(1 + u) with u falling like 1/rows, as an expert's variances do; of u and of INFO, what a row adds
    is averaged."""
    rows = [state.clocks[layout.MIX_ROWS] for state in states]
    total, shares = new.clocks[layout.MIX_ROWS], np.array(learned) / np.sum(learned)
    each = [view.models[:, :, width:] for view in views[:-1]]
    unsure = [(1.0 / own[:, :, layout.GAMMA] ** 2 - 1.0) * n for own, n in zip(each, rows, strict=True)]
    info = [own[:, :, layout.INFO] / n for own, n in zip(each, rows, strict=True)]
    merged.models[:, :, width + layout.GAMMA] = 1.0 / np.sqrt(1.0 + np.tensordot(shares, unsure, 1) / total)
    merged.models[:, :, width + layout.INFO] = np.tensordot(shares, info, 1) * total


def _change(columns: Array, common: Array, features: int) -> Array:
    """S: from the z of one mixture to z' of the common units and centers."""
    mean, _, inverse, _ = columns[:, :features]
    change = np.eye(features + 1)
    known = inverse > 0.0
    change[range(features), range(features)] = np.divide(
        common[2, :features], inverse, out=np.ones(features), where=known
    )
    change[:features, features] = np.where(known, (mean - common[0, :features]) * common[2, :features], 0.0)
    return change


def _matrix(view: _Second, expert: int, size: int) -> Array:
    """A of an expert."""
    stored, g = view.matrices[expert][:size, :size], view.pending[expert][:size]
    rows, columns = np.indices((size, size))
    whole = np.where(columns < (rows // EXPERTS + 1) * EXPERTS, stored, stored.T) - np.outer(g, g)
    inverse: Array = np.linalg.inv(0.5 * (whole + whole.T))
    return np.asarray(0.5 * (inverse + inverse.T))


def _positive(matrix: Array) -> Array:
    """The matrix without the negative eigenvalues that rounding may have given it."""
    matrix = 0.5 * (matrix + matrix.T)
    values, vectors = np.linalg.eigh(matrix)
    return matrix if values[0] >= 0.0 else np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
