"""What the experts of second order of several mixtures know, merged: it adds up.

With P = A^-1 the matrix of an expert, x its weights, and prior the strength of its prior, the rows that it has learned
are in A - prior and in A x. What a shard has learned since the start is its own less the start's; written for common
units and centers of the columns, z' = S z, these add up. For the squared loss and rows that are not clipped, that is
what one expert would know of all rows, but for the centers, which move while rows are learned.
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
        start, push = _learned_rows(views[-1], expert, prior, size)
        change = _change(views[-1].columns, merged.columns, features)
        total = change @ start @ change.T
        pushed = change @ (push + offsets[-1] * start[:, -1:])
        for view, state, offset in zip(views[:-1], states, offsets[:-1], strict=True):
            rows, moved = _learned_rows(view, expert, prior, size)
            if not (np.isfinite(rows).all() and np.isfinite(moved).all()):
                continue  # of a retired expert
            # what it has of the start, which is taken off: a learner changes its units, and only a merge its centers
            among = state.clocks[layout.SHARDS] > first.clocks[layout.SHARDS]
            kept = _change(views[-1].columns, view.columns, features)
            if not among:
                kept[:features, features] = 0.0
            shift = offsets[-1] - offset if among else 0.0
            rows = rows - kept @ start @ kept.T
            moved = moved - kept @ (push + shift * start[:, -1:])
            change = _change(view.columns, merged.columns, features)
            total += change @ rows @ change.T
            pushed += change @ (moved + offset * rows[:, -1:])
        known, pushed = _positive(total, pushed)
        known += prior * np.eye(size)
        merged.matrices[expert] = np.eye(width) / prior
        merged.matrices[expert, :size, :size] = np.linalg.inv(known)
        merged.models[:, expert, :size] = np.linalg.solve(known, pushed).T


def _learned_rows(view: _Second, expert: int, prior: float, size: int) -> tuple[Array, Array]:
    """A - prior and A x: what an expert has learned from rows."""
    matrix = _matrix(view, expert, size)
    return matrix - prior * np.eye(size), matrix @ view.models[:, expert, :size].T


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


def _positive(matrix: Array, pushed: Array) -> tuple[Array, Array]:
    """The matrix without the negative eigenvalues that rounding may have given it, and what is pushed along others."""
    matrix = 0.5 * (matrix + matrix.T)
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= 0.0:
        return matrix, pushed
    kept = vectors[:, values > 0.0]
    return (kept * values[values > 0.0]) @ kept.T, kept @ (kept.T @ pushed)
