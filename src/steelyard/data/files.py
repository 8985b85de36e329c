"""Files that are read whole or in blocks of lines, decompressed by name; writes that leave no half file behind."""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import re
import secrets
import select
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter, FileIO
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None

_LAST = 1 << 12  # bytes at the end of a block in which a line should end
_MOMENT = 0.1  # seconds that lines of a slow pipe wait for others
_MOST_LINE = 16  # blocks, after which quotes that do not end are taken for a mistake
STDIN = "-"
"""Standard input, where a file is named."""


def _open_zstd(path: str | os.PathLike[str], mode: str) -> IO[bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.open(path, mode)  # type: ignore[no-any-return]
    try:
        from pyarrow import CompressedInputStream, OSFile
    except ImportError:
        raise ImportError(
            f"{os.fspath(path)}: reading .zst needs pyarrow, or Python 3.14: pip install 'steelyard[arrow]'"
        ) from None
    return CompressedInputStream(OSFile(os.fspath(path)), "zstd")  # type: ignore[no-any-return]


_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}
SUFFIXES = ("", *_OPENERS)


def shown_name(path: str | os.PathLike[str]) -> str:
    """How people are told of a file."""
    return "standard input" if path in (STDIN, "/dev/stdin") else os.fspath(path)


def can_be_read_again(path: str | os.PathLike[str]) -> bool:
    """Whether it is a file, and not a pipe or a device."""
    if path == STDIN:
        return False
    mode = os.stat(path).st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)  # a folder is refused where it is opened


def total_size(paths: Sequence[str | os.PathLike[str]]) -> int | None:
    """The bytes of files; None where they are compressed, or there is a pipe among them."""
    plain = all(can_be_read_again(path) and Path(path).suffix.lower() not in SUFFIXES[1:] for path in paths)
    return sum(os.path.getsize(path) for path in paths) if plain else None


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to read from, decompressed if it is called .gz, .bz2, .xz or .zst."""
    if path == STDIN:  # without a buffer, whose lock a thread that still waits would hold at the end
        with open(0, "rb", buffering=0, closefd=False) as file:
            yield file
        return
    try:
        with _OPENERS.get(Path(path).suffix.lower(), open)(path, "rb") as file:
            yield file
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # no such file, no permission, …
            raise
        raise ValueError(f"{os.fspath(path)}: the compressed file is damaged or cut off ({error})") from error


def check_size(size: int, name: str = "size") -> None:
    """Refuse a size of blocks that is none."""
    whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
    if not whole or size < 1:
        raise ValueError(f"{name} must be a whole number of bytes, at least 1, got {size!r}")


def read_blocks(
    path: str | os.PathLike[str],
    size: int,
    start: int = 0,
    cut: Callable[[bytes], bool] | None = None,
    first_full: bool = True,
) -> Iterator[bytes]:
    """The bytes of a file from ``start`` on, decompressed, in blocks of whole lines of about ``size``.

    Where ``cut`` says that a block may not end where it does, it goes on for another line. Blocks of a slow pipe are
    what has come in a moment, but for the first if ``first_full``.
    """
    check_size(size)
    return _blocks(path, int(size), start, cut, first_full)


def _blocks(
    path: str | os.PathLike[str], size: int, start: int, cut: Callable[[bytes], bool] | None, full: bool
) -> Iterator[bytes]:
    with _opened(path) as file:
        if _is_plain(file):
            for block in _exact_blocks(file.fileno(), size, start):
                if cut is not None and not cut(block):
                    break
                yield block
                start += len(block)
        if start:  # a pipe cannot be asked for it
            file.seek(start)
        pieces: list[bytes] = []  # of what has not ended yet
        waiting = 0
        while chunk := _read_full(file, size, full):
            full = False
            end = chunk.rfind(b"\n") + 1
            if end:
                block = b"".join([*pieces, chunk[:end]]) if pieces or end < len(chunk) else chunk
                if cut is None or waiting > _MOST_LINE * size or cut(block):
                    yield block
                    pieces, waiting, chunk = [], 0, chunk[end:]
            if chunk:
                pieces.append(chunk)
                waiting += len(chunk)
        if pieces:
            yield b"".join(pieces)


def _is_plain(file: IO[bytes]) -> bool:
    """Whether any place of it can be read as it stands."""
    return isinstance(file, BufferedReader) and hasattr(os, "pread") and stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _exact_blocks(number: int, size: int, at: int) -> Iterator[bytes]:
    """Blocks that are read up to the end of a line and not beyond, so that nothing has to be copied: as long as
    there are ``size`` bytes, and a line ends among the last of them."""
    last = min(size, _LAST)
    while True:
        tail = os.pread(number, last, at + size - last)
        wanted = size - last + tail.rfind(b"\n") + 1
        if len(tail) < last or wanted == size - last:
            return
        block = os.pread(number, wanted, at)
        if len(block) < wanted:  # somebody has made it shorter
            return
        yield block
        at += wanted


def _read_full(file: IO[bytes], size: int, full: bool) -> bytes:
    """So many bytes, or all there are: a pipe gives few at a time. If not ``full``, what has come in a moment."""
    chunk = file.read(size)
    if not chunk or len(chunk) == size:
        return chunk
    pieces, missing, until = [chunk], size - len(chunk), time.monotonic() + _MOMENT
    while missing and (full or _has_more(file, until)) and (chunk := file.read(missing)):
        pieces.append(chunk)
        missing -= len(chunk)
    return b"".join(pieces)


def _has_more(file: IO[bytes], until: float) -> bool:
    """Whether something can be read, or the file ends, before a time; True where it cannot be told."""
    if not isinstance(file, FileIO) or not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1e3))


def sha256(path: str | os.PathLike[str], limit: int) -> str:
    """The SHA-256 of a file, decompressed, in constant memory; more than ``limit`` bytes are refused."""
    size, digest = 0, hashlib.sha256()
    with _opened(path) as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
            if size > limit:
                raise ValueError(f"{os.fspath(path)} decompresses to more than {limit} bytes")
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of ``path`` when everything went well, and vanishes otherwise.

    A link stays, and what it points to is replaced; a file that is there keeps its permissions, and its owner where
    that is allowed. A pipe or a device is written to, not replaced. Where a process was killed in the middle of this,
    its half file is removed by the next one that writes to ``path``.
    """
    try:
        there = os.stat(path)
    except FileNotFoundError:
        there = None
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder, name a file", os.fspath(path))
    stream = _stream(path)
    temporary: Path | None = None
    try:
        if stream or (there is not None and not stat.S_ISREG(there.st_mode)):
            with tempfile.TemporaryFile() as whole:  # a writer may go back in it, as that of a zip file does
                yield whole
                whole.seek(0)
                # standard output may be a file of the shell, which goes on writing to it: neither replaced nor emptied
                place = os.dup(int(stream[1] or _STREAMS[stream[2]])) if stream else path
                with open(place, "wb") as file:
                    shutil.copyfileobj(whole, file)
        else:
            target = Path(os.path.realpath(path))
            with suppress(OSError):
                _sweep(target)
            temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
            with _new(temporary, 0o666 if there is None else 0o600) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if there is not None:
                    _keep_access(temporary, there)
                if fcntl is not None:  # before the file is closed: it is locked until then, so nobody sweeps it
                    os.replace(temporary, target)
            if fcntl is None:  # where there are no locks, a file may have to be closed before it is moved
                os.replace(temporary, target)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # of the file that the caller knows
        raise


_STREAMS = {"stdout": 1, "stderr": 2}
_STREAM = re.compile(r"/(?:dev|proc/self)/(?:fd/(\d+)|(stdout|stderr))")


def _stream(path: str | os.PathLike[str]) -> re.Match[str] | None:
    """The stream of this process that a path names, if it names one."""
    return _STREAM.fullmatch(os.path.abspath(path))


def is_replaced(path: str | os.PathLike[str]) -> bool:
    """Whether :func:`atomic_write` replaces what is there: a file, and neither a pipe, a device nor a stream."""
    return os.path.isfile(path) and not _stream(path)


def _new(path: Path, mode: int) -> BufferedWriter:
    """A new file, locked as long as it is open where there are locks."""
    while True:
        file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
        if not _locked(file, wait=True) or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # before it was locked, another process took it for a forgotten one and removed it


def _sweep(target: Path) -> None:
    """Remove the temporary files of this target whose writers are gone: a living writer holds a lock."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.tmp")
    for name in filter(ours.fullmatch, os.listdir(target.parent)):
        path = target.with_name(name)
        with suppress(OSError), open(path, "r+b") as file:
            # its name may belong to another file by now: one that was swept is made anew, under the same name
            if _locked(file, wait=False) and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                path.unlink()


def _locked(file: IO[bytes], *, wait: bool) -> bool:
    """Whether a file could be locked: not while another process has locked it, nor where there are no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _keep_access(temporary: Path, there: os.stat_result) -> None:
    """Give a file the group, the owner and the permissions of another, as far as that is allowed."""
    if hasattr(os, "chown"):
        for owner in ((-1, there.st_gid), (there.st_uid, -1)):
            with suppress(OSError):
                os.chown(temporary, *owner)
    with suppress(OSError):
        os.chmod(temporary, stat.S_IMODE(there.st_mode))
