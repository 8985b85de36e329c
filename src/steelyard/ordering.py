"""Pseudo-random orders of rows that depend on what the rows are, not on where they stand; and rows that are equal.

An order drawn by position makes a row of weight 2 and the same row twice end up in different places. Sorting by a
hash of each row's content puts equal rows side by side and the rest in an order that looks random, so that exact
weights stay exact through a shuffled ``fit``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.blocks import Block
from steelyard.losses import Array


def content_order(block: Block, y: Array, seed: int) -> NDArray[np.int64]:
    """The rows sorted by a hash of their non-zeros, their label and ``seed``."""
    from steelyard._library import get_kernel

    keys = np.empty(block.n_rows, np.uint64)
    salt = np.random.default_rng(seed).integers(2**63, dtype=np.uint64)
    labels = (y + 0.0).view(np.uint64) ^ salt  # + 0.0 makes one zero of two
    get_kernel("row_keys", *block.types)(*block.arrays, labels, block.dense, np.empty(1), keys)
    return np.argsort(keys, kind="stable").astype(np.int64, copy=False)


def merge_equal_rows(
    block: Block, y: Array, weight: Array, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Array]:
    """One row for neighbours in ``order`` that are equal, and weights in which it carries what they had together.

    So a row of weight 2 and the same row twice are the same to any learner.
    """
    from steelyard._library import get_kernel

    same = np.zeros(order.size, np.uint8)
    get_kernel("same_rows", *block.types)(*block.arrays, y, order, block.dense, same)
    if not same.any():
        return order, weight
    starts = np.flatnonzero(same == 0)
    merged = weight.copy()
    merged[order[starts]] = np.add.reduceat(weight[order], starts)
    return order[starts], merged
