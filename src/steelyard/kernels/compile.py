"""How functions are compiled: flags, signatures, the disk cache.

Two decisions live here.

*A step is an address.* The scalar function of a loss is compiled on its own, as a C function
``void step(p, y, a, params*, out*)``, and kernels receive its address. So a kernel is compiled once and
serves every loss, a user's own included, and a loss is compiled once and serves every kernel.

*The cache key holds a digest of the sources.* Numba notices an edit in the file of a cached function, but
not in a file whose functions were inlined into it; with the digest in the key, no stale code is ever run.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.caching import FunctionCache

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


@cache
def _digest() -> str:
    """Of every file of this package, and of those that name what is frozen into it."""
    folder = Path(__file__).parent
    files = [*sorted(folder.rglob("*.py")), folder.parent / "updates.py", folder.parent / "regularizers.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class _SourceKeyedCache(FunctionCache):  # type: ignore[misc]
    """Numba's disk cache, with the digest of every kernel source in the key."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _digest())


_warned = False
_cached: list[Any] = []


def _attach_cache(compiled: Any, function: Callable[..., Any]) -> None:
    """Give ``compiled`` a disk cache, or warn once when there is no folder to keep it in."""
    global _warned
    try:
        compiled._cache = _SourceKeyedCache(function)
    except RuntimeError:  # raised by Numba when neither the package's folder nor the user's is writable
        if not _warned:
            _warned = True
            warnings.warn(
                "no writable folder for compiled kernels: they are compiled again in every process. "
                "Set NUMBA_CACHE_DIR to a writable folder to avoid it.",
                RuntimeWarning,
                stacklevel=2,
            )
        return
    _cached.append(compiled)


def jit(function: Callable[..., Any]) -> Any:
    """A helper that kernels and steps call: compiled into its caller, not cached on its own."""
    return numba.njit(fastmath=_FASTMATH, **_FLAGS)(function)


def inline_jit(function: Callable[..., Any]) -> Any:
    """A small helper of an inner loop, which is never called but always written out."""
    return numba.njit(fastmath=_FASTMATH, forceinline=True, **_FLAGS)(function)


def dense_jit(function: Callable[..., Any]) -> Any:
    """A helper over contiguous numbers, whose sums may be reordered so that they vectorise."""
    return numba.njit(fastmath=_DENSE_FASTMATH, **_FLAGS)(function)


def kernel(function: Callable[..., Any], signature: Any) -> Any:
    """Compile ``function`` for exactly one signature, from the disk cache where it is there."""
    dispatcher = numba.njit(fastmath=_FASTMATH, **_FLAGS)(function)
    _attach_cache(dispatcher, function)
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def c_function(function: Callable[..., Any], signature: Any, *, cached: bool = True) -> Any:
    """Compile a scalar function as a C function with an ``.address``."""
    from numba.core.ccallback import CFunc

    options = {"error_model": "numpy", "fastmath": _FASTMATH}
    compiled = CFunc(function, (signature.args, signature.return_type), locals={}, options=options)
    if cached:
        _attach_cache(compiled, function)
    compiled.compile()
    return compiled


def jit_user(function: Callable[..., Any]) -> Callable[[float, float], float]:
    """A user's function that returns NaN where the user's raises: a C function cannot raise."""
    compiled = numba.njit(function)

    def guarded(p: float, y: float) -> float:
        try:
            return float(compiled(p, y))
        except Exception:
            return np.nan

    return guarded


def cache_counts() -> tuple[int, int]:
    """How many kernels and steps of this process came from the disk cache, and how many were compiled."""
    hits = misses = 0
    for item in _cached:
        if hasattr(item, "cache_hits"):  # a C function
            hits, misses = hits + item.cache_hits, misses + (item.cache_hits == 0)
        else:
            hits += sum(item.stats.cache_hits.values())
            misses += sum(item.stats.cache_misses.values())
    return hits, misses


def readonly(dtype: Any) -> Any:
    """A contiguous vector that a kernel reads only; writable and read-only arrays both fit."""
    return types.Array(dtype, 1, "C", readonly=True)
