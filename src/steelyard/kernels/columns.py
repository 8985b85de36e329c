"""Columns get numbers in the order in which they come: see :mod:`steelyard.compact`."""

from __future__ import annotations

import numpy as np

from steelyard.kernels.intrinsics import prefetch_once

_AHEAD = np.uint64(32)  # columns: where a number stands is seldom in the cache


def number_columns(indices, numbers, columns, size, out):
    """Write the number of each index to ``out``; returns how many numbers there are then, counted from 0, or -1 where
    there is no such column.

    ``numbers`` has the number of each column, 0 where it has none; ``columns`` the column of each up to ``size``.
    """
    for e in range(np.uint64(indices.size)):
        if e + _AHEAD < np.uint64(indices.size):
            prefetch_once(numbers, np.uint64(indices[e + _AHEAD]))
        column = np.uint64(indices[e])
        if column >= np.uint64(numbers.size):
            return -1
        number = numbers[column]
        if number == 0:
            number = np.uint32(size)
            numbers[column] = number
            columns[size] = np.uint32(column)
            size += 1
        out[e] = number
    return size
