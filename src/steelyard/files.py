"""Files that are read whole or in blocks of lines, decompressed by name; writes that leave no half file behind."""

from __future__ import annotations

import bz2
import gzip
import lzma
import mmap
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_OPENERS: dict[str, Callable[..., IO[bytes]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}  # type: ignore[dict-item]
SUFFIXES = ("", *_OPENERS)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to read from, decompressed if it is called .gz, .bz2 or .xz."""
    try:
        with _OPENERS.get(Path(path).suffix.lower(), open)(path, "rb") as file:
            yield file
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # no such file, no permission, …
            raise
        raise ValueError(f"{os.fspath(path)}: the compressed file is damaged or cut off ({error})") from error


def read_bytes(path: str | os.PathLike[str]) -> bytes | mmap.mmap:
    """All the bytes of a file, decompressed; a plain file is mapped, not copied."""
    with _opened(path) as file:
        if Path(path).suffix.lower() in _OPENERS or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return bytes(file.read())  # a pipe has no size
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def read_blocks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    """The bytes of a file, decompressed, in blocks of whole lines of about ``size``."""
    rest = b""
    with _opened(path) as file:
        while chunk := file.read(size):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield rest + chunk[:cut]
                rest = chunk[cut:]
            else:
                rest += chunk
    if rest:
        yield rest


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of ``path`` when everything went well, and vanishes otherwise."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes files for the owner alone
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
