"""What the compiled parsers of CSV and of JSON lines work in, and the rows that they leave there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from steelyard.data.columns import TEXT, Columns
from steelyard.data.hashing import Settler
from steelyard.data.stretch import Part
from steelyard.kernels import layout


class Room:
    """Where a thread puts the cells of a stretch: the same memory for one after another."""

    def __init__(self) -> None:
        self.size = -1
        self.odd = np.empty((1024, layout.CSV_ODD_SIZE), np.int64)
        self.table = np.zeros(layout.CSV_TABLE, np.int64)
        self.label_ends = np.empty(layout.CSV_TABLE, np.int64)
        self.known = np.empty(0, np.uint8)
        self.state = np.empty(layout.CSV_SIZE, np.int64)
        self.settler = Settler()

    def fit(self, size: int, known: NDArray[np.uint8]) -> None:
        """Have room for a stretch of so many bytes, in bounds: memory that is never touched costs nothing."""
        if self.known.size != known.size:
            self.known = known.copy()
        if size <= self.size:
            return
        self.size = size = size + size // 8
        rows = size // 2 + 2  # a row has at least a byte and the end of the line
        self.y, self.weight, self.lines = np.empty(rows), np.empty(rows), np.empty(rows, np.int32)
        self.starts = np.empty(rows + 1, np.int64)
        self.hashes, self.values, self.features = np.empty(size, np.uint32), np.empty(size), np.empty(size, np.uint16)
        self.scratch, self.labels = np.empty(size + 8, np.uint8), np.empty(size, np.uint8)

    @property
    def rows(self) -> tuple[NDArray[np.generic], ...]:
        """What the rows go into."""
        return self.y, self.weight, self.lines, self.starts, self.hashes, self.values, self.features

    @property
    def words(self) -> tuple[NDArray[np.generic], ...]:
        """What texts, labels and odd tokens go into."""
        return self.scratch, self.labels, self.label_ends, self.table, self.odd

    def suffices(self, known: NDArray[np.uint8]) -> bool:
        """Whether there was room for all odd tokens. Where not, there is now, and the stretch is to be parsed again."""
        odd = int(self.state[layout.CSV_ODD])
        if odd <= len(self.odd):
            return True
        self.odd, self.known = np.empty((odd, layout.CSV_ODD_SIZE), np.int64), known.copy()
        return False

    def part(self, columns: Columns, line_count: int, size: int, weighted: bool) -> Part:
        """The rows, once odd tokens are in their places."""
        count, features = int(self.state[layout.CSV_ROWS]), int(self.state[layout.CSV_FEATURES])
        part = Part.empty(line_count, size)
        part.y, part.lines = self.y[:count].copy(), self.lines[:count].copy()
        if weighted:
            part.weight = self.weight[:count].copy()
        part.missing = int(self.state[layout.CSV_MISSING])
        if columns.label_kind == TEXT:
            ends = self.label_ends[: int(self.state[layout.CSV_LABELS]) + 1].tolist()
            part.labels = [decoded(self.labels[a:b].tobytes()) for a, b in pairwise(ends)]
        if columns.bits is None:
            width = len(columns.kinds)
            part.indptr = np.arange(count + 1, dtype=np.uint64) * np.uint64(width)
            part.values = self.values[: count * width].copy()
            return part
        raw = (self.hashes[:features], self.values[:features], self.features[:features], self.starts[: count + 1])
        settled = columns.settled(self.settler.settle(*raw, columns.bits, columns.meetings), 0)
        part.indptr, part.indices, part.values = settled.indptr, settled.indices, settled.values
        return part


def decoded(token: bytes) -> str:
    """Bytes of a text; those that are no UTF-8 come back when it is encoded again."""
    return token.decode("utf-8", "surrogateescape")
