"""A loader of our objects that needs no LLVM: importing llvmlite takes as long as learning a small file.

Objects are compiled for the large code model, so all that is left to do is to put their sections somewhere, to write
absolute addresses of 64 bits where the relocations say, and to let the processor run them. Anything else is left to
LLVM's loader: another system, another kind of relocation, or one to something that is not there.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from contextlib import suppress
from typing import Any

from steelyard.compiled.elf import Elf, read_elf

_X86_64 = 62  # a machine
_PROGBITS, _RELA, _NOBITS = 1, 4, 8  # types of sections
_WRITTEN, _ALLOCATED = 1, 2  # flags of theirs
_ABSOLUTE_64 = 1  # a relocation: the address of a symbol and a number
_READ, _RUN = 1, 4  # as mprotect has them
_UNWINDING = ".eh_frame"


def works_here() -> bool:
    """Whether the system and the processor are those that this is for."""
    return sys.platform == "linux" and sys.maxsize > 2**32 and os.uname().machine == "x86_64"


def load(code: bytes, symbol: str) -> int | None:
    """The address of a function in an object that was checked (``objects.unpack``); None if LLVM shall do it."""
    if not works_here():
        return None
    with suppress(struct.error, IndexError, ValueError, OverflowError, AttributeError, OSError):
        elf = read_elf(code)
        return None if elf is None or elf.machine != _X86_64 else _load(elf, symbol)
    return None


def _load(elf: Elf, symbol: str) -> int | None:
    starts, size = _layout(elf)
    if any(elf.sections[number].flags & _WRITTEN for number in starts):  # what runs here cannot be written to
        return None
    pages = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    view = (ctypes.c_char * len(pages)).from_buffer(pages)
    base = ctypes.addressof(view)
    process = ctypes.CDLL(None)
    for number, start in starts.items():
        section = elf.sections[number]
        if section.kind == _PROGBITS:
            pages[start : start + section.size] = elf.content(section)
    addresses: dict[int, int] = {}

    def address(index: int) -> int:
        if index not in addresses:
            name, where, value = elf.symbols[index]
            if where in starts:
                addresses[index] = base + starts[where] + value
            elif where == 0:  # the C library has it, or an AttributeError says that it has not
                addresses[index] = _address_of(getattr(process, name))
            else:
                raise ValueError(name)
        return addresses[index]

    for section in elf.sections:
        if section.kind != _RELA or section.info not in starts or elf.sections[section.info].name == _UNWINDING:
            continue
        for place, index, kind, number in elf.relocations(section):
            if kind != _ABSOLUTE_64 or not 0 <= place <= elf.sections[section.info].size - 8:
                return None
            at = starts[section.info] + place
            pages[at : at + 8] = struct.pack("<Q", (address(index) + number) % 2**64)
    names = [name for name, _, _ in elf.symbols]
    if symbol not in names:
        return None
    protect = process.mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(base, len(pages), _READ | _RUN):
        return None
    # never freed: a thread may be running it when the interpreter has ended
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(view))
    return address(names.index(symbol))


def _layout(elf: Elf) -> tuple[dict[int, int], int]:
    """Where each section begins that the function needs when it runs, and how much they take together."""
    starts, end = {}, 0
    for number, section in enumerate(elf.sections):
        if section.kind in (_PROGBITS, _NOBITS) and section.flags & _ALLOCATED and section.name != _UNWINDING:
            end = -(-end // max(section.align, 1)) * max(section.align, 1)
            starts[number] = end
            end += section.size
    return starts, end


def _address_of(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
