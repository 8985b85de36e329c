"""Memory that costs nothing until it is touched, and memory that is used again."""

from __future__ import annotations

import math
import mmap
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LARGE = 1 << 22  # bytes from which pages are asked for one by one
_PRIVATE: dict[str, Any] = {}
if hasattr(mmap, "MAP_ANONYMOUS"):  # shared memory, the default, has no huge pages
    _PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
_FILLED = 1 << 30  # bytes: of a larger table little may be touched, and a huge page is taken for a single number;
_SPARED = 8  # but the eighth part of all memory is not too much for a table, and huge pages come much faster
_HUGE = 1 << 21  # bytes of a huge page, which starts at a multiple of them


def lazy_zeros(size: int, dtype: DTypeLike = np.float64, *, beside: int = 0, huge: bool = True) -> NDArray[Any]:
    """Zeros that start with a cache line. A page of a large array takes memory when something is written to it.

    ``beside`` is how many bytes a larger array has that belongs to the same features, and is as full as this one.
    Without ``huge`` no huge pages are asked for: it is known that little of the array will be touched.
    More than the machine has is refused with a MemoryError that says how much it is.
    """
    kind = np.dtype(dtype)
    count = size * kind.itemsize
    if count > (limit := _physical_memory()):
        raise MemoryError(
            f"a table of {size} numbers takes {count / 1e9:.3g} GB, and this machine has {limit / 1e9:.3g} GB"
        )
    if count < _LARGE:
        block = np.zeros(count + 64, np.uint8)
        return block[-block.ctypes.data % 64 :][:count].view(kind)
    pages = mmap.mmap(-1, count + 2 * _HUGE, **_PRIVATE)
    huge = huge and max(count, beside) <= max(_FILLED, limit / _SPARED)
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):  # fewer pages to look up
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    block = np.frombuffer(pages, np.uint8)
    return block[-block.ctypes.data % _HUGE :][:count].view(kind)


def thin_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of a vector, which takes memory only where there is something in it."""
    copy = lazy_zeros(array.size, array.dtype)
    used = array.nonzero()[0]  # NumPy's flatnonzero copies what is not contiguous
    copy[used] = array[used]
    return copy


class Recycled:
    """Memory that is used again as soon as no array refers to it: fresh pages cost more than parsing into them.

    Who keeps arrays of it for long should copy them: they hold all of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.data.memory import Recycled
    >>> memory = Recycled()
    >>> first, second = memory.take([(3, np.float64), (5, np.int32)])
    >>> where = first.ctypes.data
    >>> del first, second
    >>> memory.take([(2, np.float64)])[0].ctypes.data == where
    True
    """

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.uint8]] = []

    def take(self, wanted: Sequence[tuple[int, DTypeLike]]) -> list[NDArray[Any]]:
        """Arrays of such sizes and types with anything in them. A page takes memory when something is written to it."""
        kinds = [(size, np.dtype(kind)) for size, kind in wanted]
        block = self._block(sum(-(-size * kind.itemsize // 64) * 64 for size, kind in kinds))
        arrays, at = [], 0
        for size, kind in kinds:
            arrays.append(block[at : at + size * kind.itemsize].view(kind))
            at += -(-size * kind.itemsize // 64) * 64
        return arrays

    def _block(self, size: int) -> NDArray[np.uint8]:
        for block in self._blocks:
            if sys.getrefcount(block) <= _ALONE and block.size >= size:
                return block
        pages = np.frombuffer(mmap.mmap(-1, size + size // 8 + 1, **_PRIVATE), np.uint8)
        self._blocks = [block for block in self._blocks if block.size >= size][-_MOST_BLOCKS:]
        self._blocks.append(pages)
        return pages


def _alone() -> int:
    """The count of references to a block in a list, as ``Recycled._block`` sees it."""
    count = 0
    for block in [np.empty(0)]:
        count = sys.getrefcount(block)
    return count


_ALONE = _alone()
_MOST_BLOCKS = 15
_WORTH_KEEPING = range(1 << 16, 1 << 26)  # bytes: less comes cheaply, more is not kept from others


class _Spare(threading.local):
    """A block of this thread that nobody needs just now: fresh pages would cost more than what is written to them."""

    block = np.empty(0, np.uint8)


_spare = _Spare()


def scratch(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    """An array with anything in it; :func:`give_back` may have left one."""
    kind = np.dtype(dtype)
    size = shape[0] * shape[1] * kind.itemsize
    block, _spare.block = _spare.block, _Spare.block
    if block.size < size:
        block = np.empty(size, np.uint8)
    return block[:size].view(kind).reshape(shape)


def give_back(array: NDArray[Any]) -> None:
    """Say that an array of :func:`scratch` is not used any more."""
    block = array
    while isinstance(block.base, np.ndarray):
        block = block.base
    if block.nbytes in _WORTH_KEEPING:
        _spare.block = block


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on every system
        return math.inf
