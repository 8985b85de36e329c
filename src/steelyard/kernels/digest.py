"""The digest of the kernel sources, which tells compiled code of one version from that of another. Needs no Numba."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def source_digest() -> str:
    """Of every file of this package, and of those that name what is frozen into it."""
    folder = Path(__file__).parent
    files = [*sorted(folder.rglob("*.py")), folder.parent / "updates.py", folder.parent / "regularizers.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
