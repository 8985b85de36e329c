"""The visits of a pass: which row is learned when, and with how much weight.

An order drawn by position makes a row of weight 2 and the same row twice end up in different places. Here equal rows
are joined to one row with their total weight W, and the weight is spread again over the pass: m visits of weight W/m,
at places that are drawn from a hash of the row's content and the number of the visit.

m = ceil(W), or ceil(W/2^j) where that would be too many visits. Where all weights are whole numbers, the visits depend
on the multiset of rows and weights alone, and a row of weight 2 and the same row twice give the same model to the bit.
Otherwise m is at least the number of copies of the row: weights may be small, and then ceil(W) says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel
from steelyard.data.block import Block
from steelyard.data.checks import MOST_WEIGHT, check_finite
from steelyard.losses import Array

MOST_ENTRIES = 2_000_000
"""Non-zeros that the visits of a pass may have, where twice those of the distinct rows are fewer."""


class Visits(NamedTuple):
    """One pass over a block: row numbers in the order to take them, and the weight of a visit for each row number."""

    order: NDArray[np.int64]
    weight: Array


class Groups(NamedTuple):
    """The distinct rows of a block, with what all their copies weigh together."""

    rows: NDArray[np.int64]
    """One row of each group."""
    keys: NDArray[np.uint64] | None
    """A hash of its content, where they are to be shuffled."""
    weight: Array
    visits: NDArray[np.int64]
    """In how many parts its weight is learned."""
    copies: NDArray[np.int64]
    """How many rows with a weight it has."""


def group_equal_rows(block: Block, y: Array, weight: Array, *, neighbours: bool = False) -> Groups:
    """Join equal rows of a block: all of them, or with ``neighbours`` those that stand side by side."""
    order = np.arange(block.n_rows, dtype=np.int64)
    keys = entries = None
    repeated = neighbours
    if not neighbours:
        keys, entries = row_keys_and_sizes(block, y)
        ascending = _sort(keys.copy(), order)
        repeated = bool((ascending[1:] == ascending[:-1]).any())
    same = np.zeros(order.size, np.uint8)
    if repeated:  # equal keys are equal rows, but for an accident that is excluded:
        _kernel("same_rows", *block.types)(*block.arrays, y, order, block.dense, same)
    starts = np.flatnonzero(same == 0)
    copies = np.diff(np.append(starts, order.size))
    total = _sum_groups(weight[order], starts, copies)
    rows = order[starts]
    if not total.all():  # rows without weight are as if they were not there, but for what must not be in them
        check_finite(block)
        heavy = total > 0.0
        rows, total, starts, copies = rows[heavy], total[heavy], starts[heavy], copies[heavy]
    visits = np.ones(rows.size)
    if total.max(initial=0.0) > 1.0:
        if entries is None:
            entries = row_keys_and_sizes(block, y)[1]
        visits = _count_visits(total, entries[rows] + 1)
    positive = np.append(0, np.cumsum(weight[order] > 0.0))
    counted = positive[starts + copies] - positive[starts]
    if not (weight == np.floor(weight)).all():
        visits = np.maximum(visits, counted)
    return Groups(rows, None if keys is None else keys[rows], total, visits.astype(np.int64), counted)


def _kernel(name: str, *types: str) -> Any:
    return get_kernel(name, *types)


def row_keys(block: Block, y: Array) -> NDArray[np.uint64]:
    """A hash of every row's content and label: equal rows have the same."""
    return row_keys_and_sizes(block, y)[0]


def row_keys_and_sizes(block: Block, y: Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A hash of every row's content, and how many non-zeros it has."""
    keys, entries = np.empty(block.n_rows, np.uint64), np.empty(block.n_rows, np.int64)
    labels = (y + 0.0).view(np.uint64)  # + 0.0 makes one zero of two
    _kernel("row_keys", *block.types)(*block.arrays, labels, block.dense, np.empty(1), keys, entries)
    return keys, entries


def _sort(keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Sort keys where they stand, and the rows with them."""
    _kernel("sort_keys")(keys, rows, np.empty_like(keys), np.empty_like(rows), np.zeros((2, 4096), np.int64))
    return keys


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
    low, high = 0, max(int(np.frexp(total.max())[1]), 0)  # where there is one visit each
    while low < high:
        middle = (low + high) // 2
        if np.maximum(np.ceil(np.ldexp(total, -middle)), 1.0) @ entries <= limit:
            high = middle
        else:
            low = middle + 1
    return np.maximum(np.ceil(np.ldexp(total, -low)), 1.0)


def shuffled_visits(groups: Groups, n_rows: int, seed: int | Sequence[int]) -> Visits:
    """The visits of a pass in the pseudo-random order that ``seed`` and the content of the rows decide.

    A seed of several numbers, of which all but the first are 0, is the same as the first (up to four numbers).
    """
    salt = np.random.default_rng(seed).integers(2**63, dtype=np.uint64)
    count = int(groups.visits.sum())
    places, rows = np.empty(count, np.uint64), np.empty(count, np.int64)
    _kernel("visit_places")(groups.keys, groups.rows, groups.visits, salt, places, rows)
    _sort(places, rows)
    return Visits(rows, _visit_weights(groups, n_rows))


def first_visits(groups: Groups, order: NDArray[np.int64], n_rows: int) -> Array | None:
    """What rows weigh that are visited for the first time, for each visit of a pass; 0 where a row comes again.

    A group of k rows with m visits has k such visits, at the same distance. None where no row comes again.
    """
    first = np.minimum(groups.copies, groups.visits)
    if (first == groups.visits).all():
        return None
    place = np.empty(n_rows, np.int64)
    place[groups.rows] = np.arange(groups.rows.size)
    by_row = np.argsort(order, kind="stable")
    group = place[order[by_row]]
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    number = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
    k, m = first[group], groups.visits[group]
    weight = np.empty(order.size)
    weight[by_row] = np.where(number * k // m != (number - 1) * k // m, groups.weight[group] / k, 0.0)
    return weight


def visits_in_order(groups: Groups, n_rows: int) -> Visits:
    """The visits of a pass over the rows as they stand, those of a row side by side."""
    return Visits(np.repeat(groups.rows, groups.visits), _visit_weights(groups, n_rows))


def _visit_weights(groups: Groups, n_rows: int) -> Array:
    weight = np.zeros(n_rows)
    weight[groups.rows] = groups.weight / groups.visits
    return weight
