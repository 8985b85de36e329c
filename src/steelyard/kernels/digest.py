"""The digest of the kernel sources, which tells compiled code of one version from that of another. Needs no Numba."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

RECORD = "sources.digest"
"""The file beside this one in which a wheel has the digest, for installations without sources."""


@cache
def source_digest() -> str:
    """Of every file of this package, and of those that name what is frozen into it.

    An installation without them (files of bytecode alone, or the package in an archive) has what the wheel recorded.
    Without a record, it is the digest of the bytecode or of the archive: what is compiled can still be kept.
    """
    files = _files(".py")
    return _digest(files) if files else _recorded() or _digest(_files(".pyc") or [Path(_loader().archive)])


def _files(ending: str) -> list[Path]:
    folder = Path(__file__).parent
    if not Path(__file__).with_suffix(ending).exists():
        return []
    more = (folder.parent / f"{name}{ending}" for name in ("updates", "regularizers"))
    return [*sorted(folder.rglob(f"*{ending}")), *more]


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _recorded() -> str | None:
    try:  # by the loader, since it may be in an archive
        return str(_loader().get_data(str(Path(__file__).with_name(RECORD))), "ascii").strip()
    except OSError:
        return None


def _loader() -> Any:
    return __spec__.loader
