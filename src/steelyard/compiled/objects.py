"""Object files: where they are, whether they may be run, and how they are kept.

A file is one line of JSON, the key of what it holds and a SHA-256 over key and code, and then the code. If the key is
not the one that is asked for, or the checksum is wrong, it is as if the file were not there. The code is run only if
all that it refers to is known (``is_closed``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from steelyard.compiled import folder
from steelyard.compiled.elf import undefined_symbols
from steelyard.compiled.machine import Target, compiler_here, usable_targets
from steelyard.kernels import signatures
from steelyard.kernels.digest import source_digest

SYMBOL = "steelyard_function"
"""The C function that every object holds."""
KNOWN = frozenset(["exp", "expm1", "log", "log1p", "pow", "hypot", "fmod", "memset", "memcpy", "memmove"])
"""What objects may refer to: the C library's mathematics and its moves of memory."""
PACKAGED = Path(__file__).with_name("objects")
"""The objects that came with the package, a folder a target; there is none in a source checkout."""

_FORMAT = 1
Key = dict[str, str]


def _key(name: str, where: dict[str, str]) -> Key:
    """What an object is for: the function, its arguments, the sources, and what it was compiled for."""
    kernel = name.partition("-")[0]
    arguments = " ".join(signatures.signature(name).arguments) if kernel in signatures.KERNELS else "C"
    return {"format": str(_FORMAT), "name": name, "arguments": arguments, "sources": source_digest(), **where}


def key_here(name: str) -> Key:
    """The key of an object that is compiled here, for this processor."""
    return _key(name, compiler_here())


def key_of_target(name: str, target: Target) -> Key:
    """The key of an object of a wheel. It names no compiler: such an object runs under any version of llvmlite."""
    return _key(name, {"target": target.name, "features": target.llvm_features})


def _seal(key: Key, code: bytes) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode() + b"\n" + code).hexdigest()


def pack(key: Key, code: bytes) -> bytes:
    """The file of an object."""
    return json.dumps({"key": key, "sha256": _seal(key, code)}).encode() + b"\n" + code


def unpack(content: bytes, key: Key) -> bytes | None:
    """The code in a file, if it is whole and the one that is asked for."""
    head, _, code = content.partition(b"\n")
    try:
        found = json.loads(head)
    except (ValueError, RecursionError):
        return None
    return code if found == {"key": key, "sha256": _seal(key, code)} else None


def is_closed(code: bytes) -> bool:
    """Whether all that an object refers to is known. Where that cannot be read, it is not: not an ELF system."""
    needed = undefined_symbols(code)
    return needed is not None and needed <= KNOWN


def file_name(name: str) -> str:
    """The name of a function's file."""
    return f"{name}.object"


def cache_folder() -> Path:
    """The folder of what is compiled here: another one for every version of sources, compiler and processor."""
    where = json.dumps([source_digest(), compiler_here(), _FORMAT], sort_keys=True)
    return folder.cache_root() / hashlib.sha256(where.encode()).hexdigest()[:20]


def missing(place: Path, target: Target) -> list[str]:
    """The functions whose objects for a wheel are not in the target's folder, or are damaged, or of other sources."""

    def is_there(name: str) -> bool:
        try:
            content = (place / target.name / file_name(name)).read_bytes()
        except OSError:
            return False
        code = unpack(content, key_of_target(name, target))
        return code is not None and is_closed(code)

    return [name for name in signatures.every_name() if not is_there(name)]


def _candidates(name: str) -> Iterator[bytes | None]:
    for target in usable_targets():
        try:
            content = _packaged(str(PACKAGED / target.name / file_name(name)))
        except OSError:
            continue
        yield unpack(content, key_of_target(name, target))
    yield find_kept(name)


def _packaged(path: str) -> bytes:
    """A file of the package, by its loader: the package may be in an archive."""
    return bytes(__spec__.loader.get_data(path))  # type: ignore[union-attr]


def find(name: str) -> bytes | None:
    """The code of a function: from the package, or from the cache folder; None where neither has it."""
    return next((code for code in _candidates(name) if code is not None), None)


def find_kept(name: str) -> bytes | None:
    """The code of a function in the cache folder."""
    try:
        return unpack(folder.read(cache_folder(), file_name(name)), key_here(name))
    except OSError:  # no such file, one that is not safe, or not even a home folder
        return None


def keep(name: str, code: bytes) -> None:
    """Put the code of a function into the cache folder; raises OSError where that is not possible, or not safe."""
    folder.write(cache_folder(), file_name(name), pack(key_here(name), code))
