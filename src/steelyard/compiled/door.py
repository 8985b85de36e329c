"""The one door to compiled code: kernels, and the step and conjugate of each loss, as all the package uses them.

Each is looked for among the objects that came with the package, then in the user's cache folder; what is in neither is
compiled by Numba and kept. So Numba is imported for what is nowhere yet, and for a user's own loss.

``STEELYARD_KERNELS=numba`` calls everything through Numba and keeps nothing: slow to start, but open to its tools, such
as bounds checks (``NUMBA_BOUNDSCHECK=1``).
"""

from __future__ import annotations

import logging  # noqa: F401 - not used: see "forks" below
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.compiled import folder, objects
from steelyard.compiled.call import bound_function, python_function
from steelyard.compiled.machine import objects_are_elf, settings_are_known
from steelyard.kernels.layout import OWN
from steelyard.kernels.signatures import HAND_OVER, KERNELS, signature, variant
from steelyard.losses import Array, CustomLoss, Loss

_lock = threading.RLock()
compiled_here: list[str] = []
"""The functions that this process had to compile."""


class CannotBuild(Exception):
    """A function that cannot be made an object."""


class Compiled(NamedTuple):
    """A loss as kernels see it: an address, and parameters; those before ``layout.OWN`` are to be filled in."""

    step: int
    parameters: Array
    keep_alive: tuple[Any, ...]


# ------------------------------------------------------------------------------------------------ what callers need


@cache
def get_kernel(name: str, data: str = "f8", indices: str = "u4") -> Any:
    """The kernel ``name`` for rows of the given value and index types; where it is written, its arguments are named."""
    chosen = variant(name, data, indices)
    with _lock:
        address = None if _through_numba() else _address(chosen)
        if address is not None:
            return python_function(chosen, signature(chosen), address, _address(HAND_OVER))
        return through_numba(chosen)


def bind_kernel(name: str, given: tuple[Any, ...], data: str = "f8", indices: str = "u4") -> Callable[[], Any]:
    """The kernel with its arguments, arrays that stay where they are: to be called again and again with others in them.

    A result below -1 is a failure inside, and nothing can be said of what was done.
    """
    chosen = variant(name, data, indices)
    with _lock:
        address = None if _through_numba() else _address(chosen)
    if address is not None:
        return bound_function(chosen, signature(chosen), address, given)
    return partial(get_kernel(name, data, indices), *given)


def get_parser() -> Any:
    """The LIBSVM parser, whose arguments are described where it is written."""
    return get_kernel("parse")


@cache
def compiled_loss(loss: Loss) -> Compiled:
    """The compiled step function of a loss, with what it needs."""
    parameters: tuple[float, ...] = loss.parameters
    users: tuple[Any, ...] = ()
    if isinstance(loss, CustomLoss):
        with _lock:
            from steelyard.kernels.library import user_function

            users = (user_function(loss.value, "value"), user_function(loss.slope, "slope"))
        infimum = np.nan if loss.infimum is None else loss.infimum
        parameters = (*map(_address_as_float, users), infimum)
    return Compiled(_scalar(f"step-{loss.name}"), np.array([*(OWN * [0.0]), *parameters]), users)


def compiled_conjugate(loss: Loss) -> int:
    """The address of a loss's conjugate."""
    return _scalar(f"conjugate-{loss.name}")


def _address_as_float(function: Any) -> float:
    return float(np.array([function.address], dtype=np.int64).view(np.float64)[0])


@cache
def _scalar(name: str) -> int:
    """The address of a step or a conjugate."""
    with _lock:
        address = None if _through_numba() else _address(name)
        return int(through_numba(name).address) if address is None else address


# ---------------------------------------------------------------------------------------------- where it comes from


@cache
def _through_numba() -> bool:
    return _choice() == "numba" or not can_load()


def _choice() -> str:
    chosen = os.environ.get("STEELYARD_KERNELS") or "objects"
    if chosen not in ("objects", "numba"):
        raise ValueError(f"STEELYARD_KERNELS must be objects or numba, got {chosen!r}")
    return chosen


def can_load() -> bool:
    """Whether the system's objects can be looked into, and there is a loader for them."""
    from steelyard.compiled import loader

    return objects_are_elf() and loader.can_load()


def through_numba(name: str) -> Any:
    """The function of that name as Numba calls it, which keeps it where objects cannot be loaded."""
    _check_that_numba_compiles()
    from steelyard.kernels import library

    if name == HAND_OVER:  # Numba hands over in its own way
        return None
    found = library.numba_kernel if name.partition("-")[0] in KERNELS else library.numba_scalar
    where = _numba_folder()
    if where is not None and not any(Path(where).rglob("*.nbi")):
        _say_once()
    try:
        return found(name, where)
    except Exception:  # what Numba kept may be damaged, and it does not look
        if where is None:
            raise
        shutil.rmtree(where, ignore_errors=True)
        return found(name, _numba_folder())


def _numba_folder() -> str | None:
    """Where Numba keeps what it compiles: where objects cannot be loaded; nowhere if everything shall go through it."""
    if _choice() == "numba":
        return None
    try:
        where = objects.cache_folder()
        folder.make(where)
    except OSError as error:
        _warn_of_cache(error)
        return None
    return str(where)


_addresses: dict[str, int | None] = {}


def _address(name: str) -> int | None:
    """The address of a function, loaded once; None where only Numba itself can run it here."""
    with _lock:
        if name not in _addresses:
            try:
                _addresses[name] = _load(objects.find(name) or _compile(name))
            except CannotBuild:  # with settings of Numba that no object can be made with
                _addresses[name] = None
        return _addresses[name]


def _load(code: bytes) -> int | None:
    from steelyard.compiled.loader import CannotLoad, load

    if not objects.is_closed(code):  # on a system with another format of objects, or with other libraries of Numba
        return None
    try:
        return load(code)
    except CannotLoad:
        return None


def _compile(name: str) -> bytes:
    """Compile a function and keep it; where another process is at it, wait and take what that one keeps."""
    try:
        where = objects.cache_folder()
        folder.make(where)
    except OSError as error:
        _warn_of_cache(error)
        return build(name)
    _say_once()
    with folder.locked(where, name) as alone:
        code = objects.find_kept(name)
        if code is None and not alone:
            _say(f"another process compiles {name} and does not come to an end (it may be stopped); not waiting for it")
        if code is None:
            code = build(name)
            try:
                if settings_are_known():
                    objects.keep(name, code)
            except OSError as error:
                _warn_of_cache(error)
        return code


def build(name: str) -> bytes:
    """The object file of a function, compiled now."""
    _check_that_numba_compiles()
    compiled_here.append(name)
    from steelyard.kernels.library import object_file

    code = object_file(name, objects.SYMBOL)
    if code is None:
        raise CannotBuild(name)
    return code


def _check_that_numba_compiles() -> None:
    """Kernels are written for compilation, and do not run as Python."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise ValueError(
            "NUMBA_DISABLE_JIT is set, and a kernel must be compiled: unset it, or use a wheel that has them"
        )


@cache
def _say_once() -> None:
    """A line about the wait to come: nobody should wonder for so long."""
    _say(
        "compiling for this machine, once; it takes up to a minute (`steelyard compile` compiles everything beforehand)"
    )


def _say(line: str) -> None:
    """One line on standard error."""
    with suppress(AttributeError, OSError, ValueError):  # there is none, or nobody reads it
        sys.stderr.write(f"steelyard: {line}\n")
        sys.stderr.flush()


def _warn_of_cache(error: Exception) -> None:
    """Once a process, whatever the reason."""
    if not _told:
        _told.append(error)
        warnings.warn(
            f"compiled kernels cannot be kept ({error}): every process compiles them again, for up to a minute. Set "
            "STEELYARD_CACHE to a folder that has room, and that you, and nobody else, may write to",
            RuntimeWarning,
            stacklevel=2,
        )


_told: list[Exception] = []


# ------------------------------------------------------------------------------------------------------------ forks
# A child has one thread. It must not wait for a lock that another one had, so a fork waits for compilations: ours, and
# those of a user's own Numba code, whose lock a child would find taken for ever if it had to compile something. What is
# imported for them is imported under our lock, too: Python has a lock for each module that is just being imported.
# Before a fork the hooks that were registered last run first. Logging has one that takes its lock, which Numba's import
# wants: so logging is imported before ours is registered, and its lock taken only when nothing is being compiled.

_over_fork: list[Any] = []


def _before_fork() -> None:
    _lock.acquire()
    theirs = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    if theirs is not None:
        theirs.acquire()
        _over_fork.append(theirs)


def _after_fork() -> None:
    while _over_fork:
        _over_fork.pop().release()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
