"""What an object file refers to and does not hold: the symbols that must be there before it may be loaded."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2  # the type of such a section
_RELOCATABLE = 1  # the type of an object file


def undefined_symbols(code: bytes) -> set[str] | None:
    """The names that an ELF object of 64 bits leaves open; None for anything else, damaged objects included."""
    try:
        return _undefined(code)
    except (struct.error, IndexError, ValueError, OverflowError):
        return None


def _undefined(code: bytes) -> set[str] | None:
    magic, kind, _, _, _, _, sections_at, _, _, _, _, size, count, _ = _HEADER.unpack_from(code)
    if magic[:6] != b"\x7fELF\x02\x01" or kind != _RELOCATABLE or size != _SECTION.size:
        return None
    sections = [_SECTION.unpack_from(code, sections_at + i * size) for i in range(count)]
    found: set[str] = set()
    for _, kind, _, _, at, length, link, _, _, width in sections:
        if kind != _SYMBOL_TABLE:
            continue
        if width != _SYMBOL.size or at + length > len(code):
            return None
        names_at, names_size = sections[link][4:6]
        names = code[names_at : names_at + names_size]
        for place in range(at + width, at + length, width):  # the first symbol is none
            name, _, _, section, _, _ = _SYMBOL.unpack_from(code, place)
            if section == 0:
                found.add(names[name : names.index(b"\0", name)].decode("ascii"))
    return found
