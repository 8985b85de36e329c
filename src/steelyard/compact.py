"""A table for the columns that are met, instead of one for all indices that there could be.

Names that are hashed into 2^25 columns fill a small part of them. A record of the mixture takes a cache line, so all
records would be 2 GB (one of a learner with one rate 16 bytes, so half a GB), and every one that is touched a page of
its own. Here columns get numbers as they come, and the table grows with them. What is learned is the same to the bit:
only where a record stands is another place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel
from steelyard.data.block import Block
from steelyard.data.memory import lazy_zeros
from steelyard.learner import Learner
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner
from steelyard.sparsearrays import Spread

FROM = 1 << 28
"""Bytes of a table of all columns from which it is a small one."""
_FIRST = 1 << 16
"""Columns of the first table; more than those up to which a mixture has experts with a matrix of all pairs."""


def compact_for(learner: OnlineLearner, block: Block) -> Compact | None:
    """Numbers for the columns of a learner that has learned nothing yet, if it is better off with a small table."""
    if block.dense or not isinstance(learner, (Mixture, Learner)) or learner.record_bytes is None:
        return None
    return Compact(learner.record_bytes) if block.n_features * learner.record_bytes >= FROM else None


class Compact:
    """The numbers of columns, from 1 on, in the order in which they come.

    What all records of so many bytes would take must be there all the same: whoever loads the model has them all.
    """

    def __init__(self, record: int) -> None:
        self._record = record
        self._n_features = 0
        self._numbers: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._columns: NDArray[np.uint32] = np.zeros(1, np.uint32)
        self._size = 1
        self._last: tuple[Block, Block] | None = None

    def take(self, block: Block) -> Block:
        """The block with numbers for its columns; with as many columns as there are numbers, or as at first."""
        if self._last is not None and self._last[0] is block:  # one that is learned in pieces
            return self._last[1]
        if block.n_features > self._n_features:
            self._grow(block.n_features)
        indices = block.indices[: int(block.indptr[-1])]
        numbers = np.empty(indices.size, np.uint32)
        kernel = get_kernel("number_columns", "f8", f"u{indices.itemsize}")
        size = int(kernel(indices, self._numbers, self._columns, self._size, numbers))
        if size < 0:
            raise AssertionError("a block has a column that is out of range")
        self._size = size
        self._last = block, replace(block, indices=numbers, n_features=max(self._size, _FIRST))
        return self._last[1]

    def _grow(self, n_features: int) -> None:
        lazy_zeros((n_features + 1) * self._record, np.uint8)  # or it is refused, in words
        columns = lazy_zeros(n_features + 1, np.uint32, huge=False)
        columns[: self._size] = self._columns[: self._size]
        numbers = lazy_zeros(n_features, np.uint32)
        numbers[columns[1 : self._size]] = np.arange(1, self._size, dtype=np.uint32)
        self._numbers, self._columns, self._n_features = numbers, columns, n_features

    def column(self, number: int) -> int:
        """The column that has a number."""
        return int(self._columns[number])

    def spread(self) -> Spread:
        """Which columns have numbers."""
        return Spread(self._columns[: self._size].astype(np.int64), self._n_features)
