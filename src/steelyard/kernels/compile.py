"""How functions are compiled: flags, types, and what becomes of them: a part of another, an object file, or a call.

*A step is an address.* The scalar function of a loss is compiled on its own, as a C function
``void step(p, y, a, params*, out*)``, and kernels receive its address. So a kernel is compiled once and
serves every loss, a user's own included, and a loss is compiled once and serves every kernel.

*A kernel is an object file.* Behind a C function of raw words (:mod:`steelyard.kernels.entry`) it needs nothing of
Numba or Python, so that a later process can load and call it without either (:mod:`steelyard.compiled`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba import types

f8 = types.float64
STEP_SIGNATURE = types.void(f8, f8, f8, types.CPointer(f8), types.CPointer(f8))
"""``step(p, y, a, params, out)``: ``out`` receives value, slope, c and the Fenchel-Young gap."""
CONJUGATE_SIGNATURE = f8(f8, f8, types.CPointer(f8))
SCALAR_SIGNATURE = f8(f8, f8)
"""A user's ``value(p, y)`` or ``slope(p, y)``."""

# No reference counts: kernels allocate nothing, and the counts would cost more than a row's arithmetic.
# A product and a sum may be fused, which rounds once instead of twice. Nothing more outside dense loops: reordered
# gathers are slower, and the compiler must not drop inf and NaN.
_FASTMATH = {"contract"}
_DENSE_FASTMATH = {"reassoc", "contract", "nsz"}
_FLAGS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}


def jit(function: Callable[..., Any]) -> Any:
    """A helper that kernels and steps call: compiled into its caller."""
    return numba.njit(fastmath=_FASTMATH, **_FLAGS)(function)


def inline_jit(function: Callable[..., Any]) -> Any:
    """A small helper of an inner loop, which is never called but always written out."""
    return numba.njit(fastmath=_FASTMATH, forceinline=True, **_FLAGS)(function)


def dense_jit(function: Callable[..., Any]) -> Any:
    """A helper over contiguous numbers, whose sums may be reordered so that they vectorise."""
    return numba.njit(fastmath=_DENSE_FASTMATH, **_FLAGS)(function)


def inline_dense_jit(function: Callable[..., Any]) -> Any:
    """:func:`dense_jit` for a helper that is always written out, so that it is compiled for the constants it gets."""
    return numba.njit(fastmath=_DENSE_FASTMATH, forceinline=True, **_FLAGS)(function)


def dispatched(function: Callable[..., Any], signature: Any, cache: str | None) -> Any:
    """``function`` for exactly one signature, called through Numba, which keeps it in the folder ``cache`` if any."""
    with _caching_in(cache):
        dispatcher = numba.njit(fastmath=_FASTMATH, cache=cache is not None, **_FLAGS)(function)
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def c_function(function: Callable[..., Any], signature: Any, cache: str | None = None) -> Any:
    """A scalar function as a C function of this process, with an ``.address``."""
    with _caching_in(cache):
        return numba.cfunc(signature, cache=cache is not None, error_model="numpy", fastmath=_FASTMATH)(function)


@contextmanager
def _caching_in(folder: str | None) -> Iterator[None]:
    """Where Numba looks for what is compiled already.

    It notices an edit in the file of a function, but not in a file whose functions were inlined into it: the folder
    must be another one for every version of the sources.
    """
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = before if folder is None else folder
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def jit_user(function: Callable[..., Any]) -> Callable[[float, float], float]:
    """A user's function that returns NaN where the user's raises: a C function cannot raise."""
    compiled = numba.njit(function)

    def guarded(p: float, y: float) -> float:
        try:
            return float(compiled(p, y))
        except Exception:
            return np.nan

    return guarded


def numba_type(word: str) -> Any:
    """The type that a word of ``kernels.signatures`` says."""
    code = word.removeprefix("const ").rstrip("[,]")
    number = types.boolean if code == "b1" else getattr(types, np.dtype(code).name)
    dimensions = word.count("[") + word.count(",")
    return types.Array(number, dimensions, "C", readonly=word.startswith("const ")) if dimensions else number
