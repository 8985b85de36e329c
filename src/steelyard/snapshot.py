"""What a block of rows may change in a state, kept until it is known that nothing went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block
from steelyard.data.memory import give_back, lazy_zeros, scratch


class Snapshot:
    """A copy of a state, or of what the features of a block own in it, if that is less.

    Parameters
    ----------
    block : rows that will be learned
    records : arrays with a row for each feature, and one for the intercept at their end
    others : arrays that are kept whole
    whole : whether rows may change the records of features that they do not have
    """

    def __init__(
        self, block: Block, records: list[NDArray[Any]], others: list[NDArray[Any]], *, whole: bool = False
    ) -> None:
        self._last = block.n_features
        self._views = [view for view in records if view.size]
        self._places: NDArray[np.intp] | None = None
        if whole or block.dense or block.indices.size >= block.n_features:
            self._saved = [view.copy() for view in self._views]
        else:
            # a feature that is there twice is kept twice; an index out of range, at which the kernel stops, is clipped
            self._places = np.append(block.indices.astype(np.intp), self._last)
            self._saved = [scratch((self._places.size, view.shape[1]), view.dtype) for view in self._views]
            for view, copy in zip(self._views, self._saved, strict=True):
                np.take(view, self._places, axis=0, out=copy, mode="clip")
        self._others = [(array, array.copy()) for array in others]

    def restore(self) -> None:
        """Put everything back."""
        places: Any = slice(None) if self._places is None else np.clip(self._places, 0, self._last)
        for view, copy in zip(self._views, self._saved, strict=True):
            view[places] = copy
        for array, copy in self._others:
            array[...] = copy

    def release(self) -> None:
        """All went well: the copy is not needed any more."""
        if self._places is not None:
            for copy in self._saved:
                give_back(copy)


class Journal:
    """A snapshot that the kernel writes while it learns: of each record before it is first changed.

    Parameters
    ----------
    block : sparse rows that will be learned
    records : a row of single and one of double precision for each feature, and for the intercept at their end
    stamps : bytes for each feature, all 0; taken from this list, and put back when they are so again
    always : records that rows may change without having them
    others : arrays that are kept whole
    """

    def __init__(
        self,
        block: Block,
        records: list[NDArray[Any]],
        stamps: list[NDArray[np.uint8]],
        always: NDArray[np.intp],
        others: list[NDArray[Any]],
    ) -> None:
        self._parts = [view.view(np.float64) for view in records]
        self._others = [(array, array.copy()) for array in others]
        self._always = always
        self._kept = [part[self._always].copy() for part in self._parts]
        most = min(block.indices.size, block.n_features)
        self._home = stamps
        self.stamps = stamps.pop() if stamps else lazy_zeros(block.n_features, np.uint8)
        self.records = scratch((most, sum(part.shape[1] for part in self._parts)), np.float64)
        self.features = np.empty(most + 1, np.uint64)
        self.features[0] = 0

    def _features(self) -> NDArray[np.int64]:
        return self.features[1 : int(self.features[0]) + 1].view(np.int64)

    def restore(self) -> None:
        """Put everything back."""
        features = self._features()
        start = 0
        for part, kept in zip(self._parts, self._kept, strict=True):
            part[features] = self.records[: features.size, start : start + part.shape[1]]
            part[self._always] = kept
            start += part.shape[1]
        for array, copy in self._others:
            array[...] = copy

    def release(self) -> None:
        """The copies are not needed any more."""
        self.stamps[self._features()] = 0
        self._home[:] = [self.stamps]
        self.features[0] = 0
        give_back(self.records)
