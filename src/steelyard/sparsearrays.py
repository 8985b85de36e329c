"""Arrays of which most records are zero, stored as the places and the contents of the others."""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.memory import lazy_zeros

_CHUNK = 1 << 16  # records that are looked at in one go
_FULL = 0.5  # of the pages of an array: from here on huge pages come as quickly
_WORTH = 4096  # bytes that must be saved: less is not worth a second array


class SparseArray(NamedTuple):
    """An array of ``rows`` records, all zero bits but those at ``places``."""

    rows: int
    places: NDArray[Any]
    records: NDArray[Any]
    """(places, numbers of a record)."""

    @property
    def size(self) -> int:
        """How many numbers the whole array has."""
        return self.rows * int(self.records.shape[1])

    @property
    def fits(self) -> bool:
        """Whether places and records belong together: places ascend and are those of records."""
        places = self.places
        if places.dtype.kind != "u" or places.ndim != 1 or self.records.ndim != 2 or not self.records.shape[1]:
            return False
        ascending = bool((places[1:] > places[:-1]).all())
        return ascending and places.size == len(self.records) and (not places.size or int(places[-1]) < self.rows)

    def whole(self, *, beside: int = 0) -> NDArray[Any]:
        """The array itself, in memory that costs nothing where it is zero; ``beside`` as ``lazy_zeros`` has it."""
        places = self.places.astype(np.intp)
        width = self.records.dtype.itemsize * self.records.shape[1]
        touched = np.count_nonzero(np.diff(places * width // mmap.PAGESIZE, prepend=-1)) * mmap.PAGESIZE
        huge = touched > _FULL * self.rows * width  # else most of the time went into zeros that nobody needs
        table = lazy_zeros(self.size, self.records.dtype, beside=beside, huge=huge)
        table.reshape(self.rows, -1)[places] = self.records
        return table


class Spread(NamedTuple):
    """Which columns the records of a small table are of: record i is that of ``columns[i]``, the last the intercept's.

    Record 0 is of no column, and those between the columns and the last are not in use.
    """

    columns: NDArray[Any]
    n_features: int

    def order(self, records: int) -> NDArray[np.intp]:
        """The places of so many records in the order of their columns: sums in it are those of a whole table."""
        keys = self.columns.astype(np.uint64) << np.uint64(32) | np.arange(self.columns.size, dtype=np.uint64)
        keys[1:].sort()
        return np.append((keys & np.uint64(0xFFFFFFFF)).astype(np.intp), np.arange(keys.size, records))

    def part(self, array: NDArray[Any], records: int) -> SparseArray | NDArray[Any]:
        """The array of all columns, where ``array`` has so many records: as it would be stored if it were there."""
        width = array.size // records
        used = _filled(array, width)
        columns = np.append(self.columns, np.full(records - self.columns.size, self.n_features))[used]
        order = np.argsort(columns)
        rows = self.n_features + 1
        kind, most = _kind_and_most(rows, width * array.itemsize)
        found = SparseArray(rows, columns[order].astype(kind), array.reshape(records, width)[used[order]])
        return found if used.size <= most else found.whole()


def _kind_and_most(rows: int, record: int) -> tuple[np.dtype[Any], int]:
    """The type of places, and of how many records of so many bytes a sparse array is worth having."""
    kind: np.dtype[Any] = np.dtype(np.uint32 if rows <= 1 << 32 else np.uint64)
    return kind, (rows * record - _WORTH) // (record + kind.itemsize)


def sparse_array(array: NDArray[Any], rows: int) -> SparseArray | None:
    """The array by its records that are not zero, if that is smaller; ``rows`` records, if their number divides it.

    Zero is what has no bit set: -0.0 is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.sparsearrays import sparse_array
    >>> table = np.zeros(3000)
    >>> table[7] = 0.5
    >>> found = sparse_array(table, 1000)
    >>> found.places, found.records
    (array([2], dtype=uint32), array([[0. , 0.5, 0. ]]))
    >>> bool((found.whole() == table).all())
    True
    """
    if array.ndim != 1 or array.nbytes <= _WORTH:
        return None
    width = array.size // rows if array.size % rows == 0 else 1
    rows = array.size // width
    kind, most = _kind_and_most(rows, width * array.itemsize)
    found, count = [], 0
    for start in range(0, rows, _CHUNK):
        places = _filled(array[start * width : (start + _CHUNK) * width], width) + start
        found.append(places)
        count += places.size
        if count > most:
            return None
    places = np.concatenate(found)
    return SparseArray(rows, places.astype(kind), array.reshape(rows, width)[places])


def _filled(part: NDArray[Any], width: int) -> NDArray[np.intp]:
    """Which records of a part have a bit set."""
    size = width * part.itemsize
    word = next(each for each in (8, 4, 2, 1) if size % each == 0)
    places = np.flatnonzero(part.view(f"u{word}")) // (size // word)
    return places[np.append(True, places[1:] != places[:-1])] if places.size else places
