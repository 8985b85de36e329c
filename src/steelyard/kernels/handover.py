"""From a Python call to a kernel: reads where arrays have their numbers, and refuses any that a kernel cannot take.

Asking NumPy for the address of an array costs half a microsecond, and kernels take up to thirty arrays: more than a
short row takes to learn. This reads addresses and sizes where NumPy and Python keep them, at positions that the caller
has checked (``compiled.call``).
"""

from __future__ import annotations

from steelyard.kernels.compile import jit
from steelyard.kernels.intrinsics import load_half, load_word, store_word
from steelyard.kernels.plan import (
    DIGIT,
    FIELD_DATA,
    FIELD_DIMENSION_COUNT,
    FIELD_DIMENSIONS,
    FIELD_DTYPE,
    FIELD_FLAGS,
    PLAN_ARGUMENT,
    PLAN_BOOL,
    PLAN_COUNT,
    PLAN_FIELDS,
    PLAN_HEAD,
    PLAN_INT,
    PLAN_NDARRAY,
    PLAN_SHIFT,
    PLAN_TUPLE_ITEMS,
    PLAN_TUPLE_SIZE,
    PLAN_TYPE,
    REFUSED,
    WORDS,
)


@jit
def _whole_number(number, fields, shift):
    """Python's number, or -1 where it is negative or has more than 63 bits."""
    size = load_word(number + fields)
    if size < 0 or (shift > 0 and size & 2 != 0):  # below zero, as older and newer versions of Python say it
        return -1
    digits = number + fields + 8
    value = 0
    for i in range(size >> shift):
        digit = load_half(digits + 4 * i)
        if i > 2 or (i == 2 and digit > 7):
            return -1
        value |= digit << (DIGIT * i)
    return value


def hand_over(arguments, plan, words):
    """Write a tuple of ``arguments`` into ``words``, as the C function of a kernel takes them.

    Returns 0, or REFUSED plus the place of an argument that is not as it must be. The interpreter's lock must be held:
    other threads could change the arrays.
    """
    count = load_word(plan + 8 * PLAN_COUNT)
    if load_word(arguments + load_word(plan + 8 * PLAN_TUPLE_SIZE)) != count:
        return REFUSED + count
    items = arguments + load_word(plan + 8 * PLAN_TUPLE_ITEMS)
    type_at, ndarray = load_word(plan + 8 * PLAN_TYPE), load_word(plan + 8 * PLAN_NDARRAY)
    fields = load_word(plan + 8 * PLAN_FIELDS)
    for i in range(count):
        wanted = plan + 8 * (PLAN_HEAD + PLAN_ARGUMENT * i)
        dtype, flags, dimensions = load_word(wanted), load_word(wanted + 8), load_word(wanted + 16)
        to = words + 8 * WORDS * i
        item = load_word(items + 8 * i)
        kind = load_word(item + type_at)
        if dtype == 0:
            if kind != load_word(plan + 8 * PLAN_INT) and kind != load_word(plan + 8 * PLAN_BOOL):
                return REFUSED + i
            number = _whole_number(item, fields, load_word(plan + 8 * PLAN_SHIFT))
            if number < 0:
                return REFUSED + i
            store_word(to, number)
            continue
        if kind != ndarray:
            return REFUSED + i
        array = item + fields
        if load_word(array + FIELD_DTYPE) != dtype or load_half(array + FIELD_FLAGS) & flags != flags:
            return REFUSED + i
        if load_half(array + FIELD_DIMENSION_COUNT) != dimensions:
            return REFUSED + i
        sizes = load_word(array + FIELD_DIMENSIONS)
        store_word(to, load_word(array + FIELD_DATA))
        store_word(to + 8, load_word(sizes))
        if dimensions == 2:
            store_word(to + 16, load_word(sizes + 8))
    return 0
