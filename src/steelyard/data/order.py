"""The visits of a pass: which row is learned when, and with how much weight.

An order drawn by position makes a row of weight 2 and the same row twice end up in different places. Here equal rows
are joined to one row with their total weight W, and the weight is spread again over the pass: m visits of weight W/m,
at places that are drawn from a hash of the row's content and the number of the visit.

m = ceil(W), or ceil(W/2^j) where that would be too many visits. Where all weights are whole numbers, the visits depend
on the multiset of rows and weights alone, and a row of weight 2 and the same row twice give the same model to the bit.
Otherwise m is at least the number of copies of the row: weights may be small, and then ceil(W) says little.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block
from steelyard.data.checks import MOST_WEIGHT, check_finite
from steelyard.losses import Array

MOST_ENTRIES = 2_000_000
"""Non-zeros that the visits of a pass may have, where twice those of the distinct rows are fewer."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Visits(NamedTuple):
    """One pass over a block: row numbers in the order to take them, and the weight of a visit for each row number."""

    order: NDArray[np.int64]
    weight: Array


class Groups(NamedTuple):
    """The distinct rows of a block, with what all their copies weigh together."""

    rows: NDArray[np.int64]
    """One row of each group."""
    keys: NDArray[np.uint64]
    """A hash of its content."""
    weight: Array
    visits: NDArray[np.int64]
    """In how many parts its weight is learned."""


def group_equal_rows(block: Block, y: Array, weight: Array, *, neighbours: bool = False) -> Groups:
    """Join equal rows of a block: all of them, or with ``neighbours`` those that stand side by side."""
    from steelyard.kernels.library import get_kernel

    keys, entries = np.empty(block.n_rows, np.uint64), np.empty(block.n_rows, np.int64)
    labels = (y + 0.0).view(np.uint64)  # + 0.0 makes one zero of two
    get_kernel("row_keys", *block.types)(*block.arrays, labels, block.dense, np.empty(1), keys, entries)
    order = np.arange(block.n_rows)
    if not neighbours:
        order = np.argsort(keys, kind="stable").astype(np.int64, copy=False)
    same = np.zeros(order.size, np.uint8)
    if (keys[order[1:]] == keys[order[:-1]]).any():  # equal keys are equal rows, but for an accident that is excluded:
        get_kernel("same_rows", *block.types)(*block.arrays, y, order, block.dense, same)
    starts = np.flatnonzero(same == 0)
    copies = np.diff(np.append(starts, order.size))
    total = _sum_groups(weight[order], starts, copies)
    rows = order[starts]
    if not total.all():  # rows without weight are as if they were not there, but for what must not be in them
        check_finite(block)
        heavy = total > 0.0
        rows, total, starts, copies = rows[heavy], total[heavy], starts[heavy], copies[heavy]
    visits = _count_visits(total, entries[rows] + 1)
    if not (weight == np.floor(weight)).all():
        positive = np.append(0, np.cumsum(weight[order] > 0.0))
        visits = np.maximum(visits, positive[starts + copies] - positive[starts])
    return Groups(rows, keys[rows], total, visits.astype(np.int64))


def _sum_groups(values: Array, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> Array:
    """The sum of each group, smallest values first: it must not depend on the order of the rows."""
    if starts.size == values.size:
        return values
    if not (values == values[0]).all():
        values = values[np.lexsort((values, np.repeat(np.arange(starts.size), sizes)))]
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(np.add.reduceat(values, starts), MOST_WEIGHT))


def _count_visits(total: Array, entries: NDArray[np.int64]) -> Array:
    """ceil(W/2^j), at least 1, for the smallest j that makes few enough visits."""
    limit = max(2 * int(entries.sum()), MOST_ENTRIES)
    low, high = 0, 1024
    while low < high:
        middle = (low + high) // 2
        if np.maximum(np.ceil(np.ldexp(total, -middle)), 1.0) @ entries <= limit:
            high = middle
        else:
            low = middle + 1
    return np.maximum(np.ceil(np.ldexp(total, -low)), 1.0)


def shuffled_visits(groups: Groups, n_rows: int, seed: int) -> Visits:
    """The visits of a pass in the pseudo-random order that ``seed`` and the content of the rows decide."""
    salt = np.random.default_rng(seed).integers(2**63, dtype=np.uint64)
    group, k = _expand(groups.visits)
    places = _mix(_mix(groups.keys ^ salt)[group] + k.astype(np.uint64) * _GOLDEN)
    return Visits(groups.rows[group[np.argsort(places, kind="stable")]], _visit_weights(groups, n_rows))


def visits_in_order(groups: Groups, n_rows: int) -> Visits:
    """The visits of a pass over the rows as they stand, those of a row side by side."""
    return Visits(groups.rows[_expand(groups.visits)[0]], _visit_weights(groups, n_rows))


def _visit_weights(groups: Groups, n_rows: int) -> Array:
    weight = np.zeros(n_rows)
    weight[groups.rows] = groups.weight / groups.visits
    return weight


def _expand(visits: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """For every visit: its group, and how many visits of the group come before it."""
    group = np.repeat(np.arange(visits.size), visits)
    return group, np.arange(group.size) - np.repeat(np.cumsum(visits) - visits, visits)


def _mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64: 64 bits to 64 bits, one to one and without a pattern."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))
