"""A loaded kernel as a Python function: arrays are handed over as addresses, and none that could do harm is.

Two ways lead there. The quick one passes the tuple of arguments as it is, and compiled code (``kernels.handover``)
reads what it needs of each array, in nanoseconds rather than half a microsecond. It depends on where Python and NumPy
keep things, so this is checked first, and it refuses all but the usual. What it refuses goes the slow way, which asks
NumPy: there an array of another kind is refused with a ``TypeError``, and an unusual one that is right is taken.

The lock of the interpreter is held while arguments are read, and released while the kernel runs.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from steelyard.kernels import plan
from steelyard.kernels.signatures import Signature

_Word = ctypes.c_int64
_Enter = ctypes.CFUNCTYPE(_Word, ctypes.c_void_p)
_Bound = ctypes.PYFUNCTYPE(_Word, ctypes.c_void_p)
_HandOver = ctypes.PYFUNCTYPE(_Word, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)  # which keeps the lock
_NEEDED = plan.C_CONTIGUOUS | plan.ALIGNED


class Argument(NamedTuple):
    """What an argument must be: an array of a dtype and so many dimensions, or a number."""

    dtype: np.dtype[Any] | None
    dimensions: int
    writable: bool


def _argument(word: str) -> Argument:
    code = word.removeprefix("const ").rstrip("[,]")
    dimensions = word.count("[") + word.count(",")
    return Argument(np.dtype(code) if dimensions else None, dimensions, not word.startswith("const "))


@cache
def layout_is_known() -> bool:
    """Whether Python and NumPy keep things where the quick way reads them, found out on a few objects."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8 or sys.byteorder != "little":
        return False
    if np.ndarray.__basicsize__ < _HEAD + plan.FIELD_FLAGS + 4:
        return False
    vector, matrix = np.arange(5.0), np.zeros((3, 7), np.uint32)
    vector.flags.writeable = False
    numbers = (0, 1, 2**30 - 1, 2**30, 2**31, 2**60 + 5, 2**62 + 2**31 + 7, 2**63 - 1, True, False)
    return (
        _tuple_is_known((vector, matrix))
        and all(map(_array_is_known, (vector, matrix, matrix.T, matrix[:, ::2], matrix[:0])))
        and all(map(_number_is_known, numbers))
        and _read(-1, _HEAD) >> 63 | _read(-1, _HEAD) & 2 > 0
    )


_HEAD: int = object.__basicsize__
_SHIFT = 0 if sys.version_info < (3, 12) else 3


def _read(thing: Any, offset: int, size: int = 8) -> int:
    return int.from_bytes(ctypes.string_at(id(thing) + offset, size), "little")


def _tuple_is_known(things: tuple[Any, ...]) -> bool:
    items = [_read(things, tuple.__basicsize__ + 8 * i) for i in range(len(things))]
    return _read(things, _HEAD) == len(things) and items == list(map(id, things))


def _array_is_known(array: np.ndarray[Any, Any]) -> bool:
    flags = _read(array, _HEAD + plan.FIELD_FLAGS, 4)
    return (
        _read(array, _HEAD - 8) == id(np.ndarray)
        and _read(array, _HEAD + plan.FIELD_DATA) == array.ctypes.data
        and _read(array, _HEAD + plan.FIELD_DIMENSION_COUNT, 4) == array.ndim
        and _read(array, _HEAD + plan.FIELD_DTYPE) == id(array.dtype)
        and bool(flags & plan.C_CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & plan.ALIGNED) == array.flags.aligned
        and bool(flags & plan.WRITEABLE) == array.flags.writeable
        and _shape(array) == array.shape  # last, since it follows an address
    )


def _shape(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    sizes = ctypes.string_at(_read(array, _HEAD + plan.FIELD_DIMENSIONS), 8 * array.ndim)
    return struct.unpack(f"<{array.ndim}q", sizes)


def _number_is_known(number: int) -> bool:
    if sys.int_info[:2] != (plan.DIGIT, 4) or _read(number, _HEAD - 8) != id(type(number)):
        return False
    count = _read(number, _HEAD) >> _SHIFT
    if count > 3 or (_SHIFT and _read(number, _HEAD) & 2):
        return False
    return sum(_read(number, _HEAD + 8 + 4 * i, 4) << (plan.DIGIT * i) for i in range(count)) == number


def _make_plan(arguments: list[Argument]) -> np.ndarray[Any, np.dtype[np.int64]]:
    words = np.zeros(plan.PLAN_HEAD + plan.PLAN_ARGUMENT * len(arguments), np.int64)
    words[plan.PLAN_COUNT] = len(arguments)
    words[plan.PLAN_TUPLE_SIZE], words[plan.PLAN_TUPLE_ITEMS] = _HEAD, tuple.__basicsize__
    words[plan.PLAN_TYPE], words[plan.PLAN_FIELDS] = _HEAD - 8, _HEAD
    words[plan.PLAN_NDARRAY], words[plan.PLAN_INT], words[plan.PLAN_BOOL] = id(np.ndarray), id(int), id(bool)
    words[plan.PLAN_SHIFT] = _SHIFT
    rows = words[plan.PLAN_HEAD :].reshape(-1, plan.PLAN_ARGUMENT)
    for row, (dtype, dimensions, writable) in zip(rows, arguments, strict=True):
        if dtype is not None:
            row[:] = id(dtype), _NEEDED | (plan.WRITEABLE if writable else 0), dimensions
    return words


def python_function(name: str, signature: Signature, address: int, hand_over: int | None) -> Callable[..., int]:
    """The kernel at an address, to be called with arrays and numbers; without ``hand_over``, always the slow way."""
    arguments = [_argument(word) for word in signature.arguments]
    if plan.WORDS * len(arguments) > plan.MOST_WORDS:
        raise AssertionError(f"{name} takes too many arguments")
    slow = _slow_function(name, arguments, address)
    if hand_over is None or not layout_is_known():
        return slow
    words = _make_plan(arguments)
    quick, enter, where = _HandOver(hand_over), _Enter(address), words.ctypes.data
    room = _Word * (plan.WORDS * len(arguments))

    def call(*given: Any) -> int:
        own = room()
        if quick(given, where, own) != 0:
            return slow(*given)
        code: int = enter(own)
        return code if code >= -1 else _succeeded(name, code)

    call.plan = words  # type: ignore[attr-defined]  # kept alive: compiled code reads it
    call.__name__ = name
    return call


def bound_function(name: str, signature: Signature, address: int, given: tuple[Any, ...]) -> Callable[[], int]:
    """The kernel with arguments that stay the same arrays, read once: a call takes a fraction of a microsecond.

    The interpreter's lock is kept. Where the kernel failed, what is returned is below -1.
    """
    arguments = [_argument(word) for word in signature.arguments]
    words = np.zeros(plan.WORDS * len(given), np.int64)
    for i, (wanted, value) in enumerate(zip(arguments, given, strict=True)):
        row = words[plan.WORDS * i : plan.WORDS * (i + 1)]
        if wanted.dtype is None:
            row[0] = _checked_number(name, i, value)
            continue
        array = _checked_array(name, i, wanted, value)
        if not array.flags.aligned:
            raise TypeError(f"{name}: argument {i} must be aligned")
        row[0], row[1 : 1 + array.ndim] = array.ctypes.data, array.shape
    call = partial(_Bound(address), words.ctypes.data)
    call.kept = (words, given)  # type: ignore[attr-defined]  # compiled code reads them
    return call


def _slow_function(name: str, arguments: list[Argument], address: int) -> Callable[..., int]:
    enter = _Enter(address)

    def call(*given: Any) -> int:
        if len(given) != len(arguments):
            raise TypeError(f"{name} takes {len(arguments)} arguments, got {len(given)}")
        words = np.zeros(plan.WORDS * len(given), np.int64)
        copies: dict[Any, Any] = {}  # arguments that are the same memory stay the same
        results = []
        for i, (wanted, value) in enumerate(zip(arguments, given, strict=True)):
            row = words[plan.WORDS * i : plan.WORDS * (i + 1)]
            if wanted.dtype is None:
                row[0] = _checked_number(name, i, value)
                continue
            array = value = _checked_array(name, i, wanted, value)
            if not value.flags.aligned:  # what came through a pipe may begin anywhere
                array = copies.setdefault((value.ctypes.data, value.shape, value.dtype), value.copy())
                if wanted.writable:
                    results.append((value, array))
            row[0], row[1 : 1 + array.ndim] = array.ctypes.data, array.shape
        code = int(enter(words.ctypes.data))
        for value, array in results:
            value[...] = array
        return _succeeded(name, code)

    call.__name__ = name
    return call


def _succeeded(name: str, code: int) -> int:
    if code == plan.FAILED:
        raise RuntimeError(f"{name} failed inside: run with STEELYARD_KERNELS=numba to see where")
    return code


def _checked_number(name: str, place: int, value: Any) -> int:
    """The number as one with a sign that has the same 64 bits."""
    if not isinstance(value, (int, np.integer, np.bool_)):
        raise TypeError(f"{name}: argument {place} must be a whole number, got {type(value).__name__}")
    number = int(value)
    if not -(2**63) <= number < 2**64:
        raise OverflowError(f"{name}: argument {place} must fit into 64 bits, got {number}")
    return number - 2**64 if number >= 2**63 else number


def _checked_array(name: str, place: int, wanted: Argument, value: Any) -> np.ndarray[Any, Any]:
    """The array as NumPy has it, since a subclass may say anything of itself; refused where a kernel would read it as
    something else."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name}: argument {place} must be an array, got {type(value).__name__}")
    array: np.ndarray[Any, Any] = np.asarray(value)
    flags = array.flags
    if array.dtype != wanted.dtype or array.ndim != wanted.dimensions:
        raise TypeError(
            f"{name}: argument {place} must be an array of {wanted.dtype} with {wanted.dimensions} dimension(s), got "
            f"{array.dtype} with {array.ndim}"
        )
    if not (flags.c_contiguous and (flags.writeable or not wanted.writable)):
        raise TypeError(f"{name}: argument {place} must be {'writable' if flags.c_contiguous else 'contiguous'}")
    return array
