"""The user's cache folder of compiled code. An object is code: nobody but the user may be able to write it.

The folder and each file are opened, then looked at, then read: what is checked is what is read, whatever is renamed in
between, and no link is followed. Files are written whole or not at all.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None

MOST_BYTES = 1 << 25  # of one object
_KEPT = 12  # folders of other versions
_OURS = re.compile("[0-9a-f]{20}")  # their names, as ``objects.cache_folder`` gives them
_STALE = 3600.0  # seconds after which a half file was left behind by a process that was killed
PATIENCE = 120.0  # seconds to wait for a process that compiles the same; the longest function takes a third of it


_DAY = 86400.0


class NoFolder(OSError):
    """There is no place for a cache folder."""


class Unsafe(OSError):
    """A folder or a file that others can write to, or that is not what it should be."""


def cache_root() -> Path:
    """Where compiled code is kept: in ``STEELYARD_CACHE``, or in the user's cache folder."""
    chosen = os.environ.get("STEELYARD_CACHE")
    if chosen and not os.path.isabs(chosen):  # in whatever folder a program runs, it would take what it finds there
        raise ValueError(f"STEELYARD_CACHE must be an absolute path, got {chosen!r}")
    if chosen:
        return Path(chosen) / "kernels"
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home())
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            given = os.environ.get("XDG_CACHE_HOME", "")
            base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"  # as its specification says
    except RuntimeError:
        raise NoFolder("there is no home folder") from None
    if not base.is_absolute():
        raise NoFolder(f"the home folder is no absolute path: {base}")
    return base / "steelyard" / "kernels"


def _check(status: os.stat_result, what: str | os.PathLike[str]) -> None:
    """Refuse what another user owns or may write to."""
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise Unsafe(f"{what} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unsafe(f"others may write to {what}")


@contextmanager
def opened(path: Path) -> Iterator[int | None]:
    """A folder that is safe, as a number for ``dir_fd``; None where the system has no such thing."""
    if os.open not in os.supports_dir_fd:
        if path.is_symlink() or not path.is_dir():
            raise FileNotFoundError(path)
        yield None
        return
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise Unsafe(f"{path} is a link, or no folder") from error
        raise
    try:
        _check(os.fstat(number), path)
        yield number
    finally:
        os.close(number)


def read(path: Path, name: str) -> bytes:
    """The bytes of a file in a safe folder, if it is a safe file itself."""
    with opened(path.parent), opened(path) as folder:
        where = path / name if folder is None else name
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(where, flags, dir_fd=folder), "rb") as file:
            if folder is not None and time.time() - os.fstat(folder).st_mtime > _DAY:
                with suppress(OSError):
                    os.utime(folder)  # what is in use is not the oldest
            status = os.fstat(file.fileno())
            _check(status, path / name)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                raise Unsafe(f"{path / name} is no object")
            return file.read()


def make(path: Path) -> None:
    """Have a folder that only the user can look into, and the one above it."""
    top = path.parent.parent
    try:
        top.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise Unsafe(f"{top} is no folder") from None
    for folder in (path.parent, path):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        with opened(folder):
            pass
    _forget(path)


def write(path: Path, name: str, content: bytes) -> None:
    """Put a file into a folder, whole or not at all."""
    with opened(path) as folder:
        temporary = f".{name}.{secrets.token_hex(8)}.tmp"
        where, target = (path / temporary, path / name) if folder is None else (temporary, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(where, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
            os.replace(where, target, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException as error:
            with suppress(OSError):
                os.unlink(where, dir_fd=folder)
            if isinstance(error, OSError):  # the folder is what the user can do something about
                error.filename, error.filename2 = str(path), None
            raise


def _forget(path: Path) -> None:
    """Remove what processes that were killed have left, and the oldest folders: each change of a kernel makes one."""
    with suppress(OSError):
        ours = [
            other
            for other in path.parent.iterdir()
            if _OURS.fullmatch(other.name) and other.is_dir() and not other.is_symlink()
        ]
        others = [other for other in ours if other != path]
        others.sort(key=lambda other: other.stat().st_mtime, reverse=True)
        for other in others[_KEPT:]:
            shutil.rmtree(other, ignore_errors=True)
        for file in (file for other in ours for file in other.glob(".*.tmp")):
            if time.time() - file.stat().st_mtime > _STALE:
                file.unlink()


@contextmanager
def locked(path: Path, name: str) -> Iterator[bool]:
    """One process at a time compiles a function; the others wait for what it keeps. Without locks, all compile it.

    A process that was stopped keeps its lock: after PATIENCE nobody waits for it any longer, and False is given.
    """
    file = None
    got = True
    if fcntl is not None:
        with suppress(OSError), opened(path) as folder:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            file = open(os.open(f"{name}.lock", flags, 0o600, dir_fd=folder), "wb")  # noqa: SIM115
            got = _take(file.fileno())
    try:
        yield got
    finally:
        if file is not None:
            with suppress(OSError):  # a copy of it in a child would keep the lock
                fcntl.flock(file.fileno(), fcntl.LOCK_UN)  # type: ignore[union-attr]
            file.close()


def _take(number: int) -> bool:
    """Lock a file, within PATIENCE."""
    assert fcntl is not None
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
