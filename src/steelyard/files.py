"""Files that are read whole or in blocks of lines, decompressed by name; writes that leave no half file behind."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

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


def check_size(size: int, name: str = "size") -> None:
    """Refuse a size of blocks that is none."""
    whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
    if not whole or size < 1:
        raise ValueError(f"{name} must be a whole number of bytes, at least 1, got {size!r}")


def read_blocks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    """The bytes of a file, decompressed, in blocks of whole lines of about ``size``."""
    check_size(size)
    return _blocks(path, int(size))


def _blocks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    with _opened(path) as file:
        while block := file.read(size):
            yield block if block.endswith(b"\n") else block + file.readline()


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
