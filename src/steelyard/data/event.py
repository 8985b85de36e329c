"""One event, a dict of names and values → one row of hashed features, in arrays that are used again."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from steelyard.compiled.door import bind_kernel
from steelyard.data.block import Block
from steelyard.data.hashing import check_bits, hash_names

MOST_NAMES = 1 << 20
"""Names whose hashes are remembered."""
_MOST_NOTED = 10_000  # names that go into model files
_FIRST_ROOM = 64
_SHOWN = 60  # letters of a value in a message


class _Hashes(dict[str, int]):
    """The hash of every name that was met, up to ``MOST_NAMES`` of them."""

    def __missing__(self, name: Any) -> int:
        if not isinstance(name, str):
            if not isinstance(name, int) or isinstance(name, bool):  # as JSON has it: 7 is "7"
                raise TypeError(f"the name of a feature must be text, got {name!r}")
            return self[str(name)]
        try:
            found = int(hash_names([name])[0])
        except UnicodeEncodeError:
            raise ValueError(f"{name!r} is no text: it has half of a character") from None
        if len(self) < MOST_NAMES:
            self[name] = found
        return found


def shown(value: Any) -> str:
    """A value that is refused, as it is told."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "too large"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


class EventRow:
    """Room for one row. :meth:`read` fills ``values``, ``indices`` and ``indptr``.

    A number is the feature ``name``, text is the feature ``name=text`` with the value 1; None and an empty text are not
    there. Indices are MurmurHash3 with seed 0 in so many ``bits``; they ascend, equal ones are one with the sum of the
    values, and zeros are left out.

    Examples
    --------
    >>> from steelyard.data.event import EventRow
    >>> row = EventRow(18)
    >>> row.read({"age": 41, "job": "clerk", "income": None})
    >>> row.block().indices, row.block().data
    (array([ 31487, 165201], dtype=uint32), array([ 1., 41.]))
    """

    def __init__(self, bits: int) -> None:
        self.bits = check_bits(bits)
        self._names = _Hashes()
        self._make(_FIRST_ROOM)

    def _make(self, size: int) -> None:
        self.room = size
        self._hashes: Any = np.empty(size, np.uint32)
        self._given: Any = np.empty(size)
        self._starts: Any = np.zeros(2, np.int64)
        self.indices, self.values, self.indptr = np.empty(size, np.uint32), np.empty(size), np.zeros(2, np.uint64)
        slots, no_terms = np.zeros(size, np.uint16), np.zeros((0, 8), np.int64)
        room = (np.empty(size, np.uint32), np.empty(size), np.empty((2, size), np.uint64), np.empty(32, np.uint32))
        ends = (np.empty(266, np.int64), np.empty(size, np.int64), self.indptr.view(np.int64))
        given = (self._hashes, self._given, slots, self._starts, np.zeros(1, np.int64), no_terms, self.bits)
        self._settle = bind_kernel("settle", (*given, *room, *ends, self.indices, self.values))
        self._packers = [(struct.Struct(f"{n}I").pack_into, struct.Struct(f"{n}d").pack_into) for n in range(size + 1)]
        starts: Any = self._starts
        self._count = memoryview(starts)

    def read(self, x: Mapping[str, Any]) -> None:
        """Take in an event. Values that are not finite are left to who reads the row."""
        try:
            if len(x) > self.room:
                self._make(2 * len(x))
            put_hashes, put_values = self._packers[len(x)]
            put_values(self._given, 0, *x.values())
            put_hashes(self._hashes, 0, *map(self._names.__getitem__, x))
            self._count[1] = len(x)
        except (struct.error, OverflowError):  # not numbers only
            self._read_each(x)
        except (AttributeError, TypeError):
            if isinstance(x, Mapping):
                raise
            raise TypeError(f"an event is a dict of names and values, not {type(x).__name__}") from None
        self._settle()

    def _read_each(self, x: Mapping[str, Any]) -> None:
        names, hashes, values = self._names, [], []
        for name, value in x.items():
            kind = type(value)
            if kind is str or isinstance(value, str):
                if value:  # an empty text is a cell that is not there, as in files
                    hashes.append(names[f"{name}={value}"])
                    values.append(1.0)
            elif value is not None:
                hashes.append(names[name])
                values.append(value if kind is float else self._number(name, value))
        put_hashes, put_values = self._packers[len(hashes)]
        put_values(self._given, 0, *values)
        put_hashes(self._hashes, 0, *hashes)
        self._count[1] = len(hashes)

    @staticmethod
    def _number(name: Any, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"the feature {name!r} is {shown(value)}: values must be finite numbers, text, or None for one that is "
                f"not there, and not {type(value).__name__}"
            ) from None

    def block(self) -> Block:
        """The row as a block of its own."""
        end = int(self.indptr[1])
        return Block(self.values[:end].copy(), self.indices[:end].copy(), self.indptr.copy(), 1 << self.bits, False)

    def whole(self) -> Block:
        """The arrays as a block, with a row as long as there is room for: kernels ask how long the longest is."""
        self.indptr[1] = self.room
        return Block(self.values, self.indices, self.indptr, 1 << self.bits, False)

    @property
    def names(self) -> dict[int, str]:
        """The names that were met, the first of every column."""
        mask = (1 << self.bits) - 1
        found: dict[int, str] = {}
        for name, hashed in self._names.items():
            if len(found) >= _MOST_NOTED:
                break
            found.setdefault(hashed & mask, name)
        return found

    def name_of(self, column: int | None, x: Mapping[str, Any]) -> str:
        """Which feature of an event has a column: the largest of them."""
        mask = (1 << self.bits) - 1
        found = {
            name: math.inf if value != value else abs(float(value))
            for name, value in x.items()
            if value is not None and not isinstance(value, str) and self._names[name] & mask == column
        }
        return max(found, key=lambda name: found[name]) if found else ""
