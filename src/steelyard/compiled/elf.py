"""What is in an object file of an ELF system of 64 bits: sections, symbols, relocations."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_SYMBOL_TABLE = 2  # the type of such a section
_RELOCATABLE = 1  # the type of an object file


class Section(NamedTuple):
    """A section, as the format has it."""

    name: str
    kind: int
    flags: int
    at: int
    size: int
    link: int
    info: int
    align: int
    width: int


class Elf(NamedTuple):
    """An object file."""

    code: bytes
    machine: int
    sections: list[Section]
    symbols: list[tuple[str, int, int]]
    """The name of each, in which section it is (0: in none), and where."""

    def content(self, section: Section) -> bytes:
        """The bytes of a section."""
        return _part(self.code, section.at, section.size)

    def relocations(self, section: Section) -> Iterator[tuple[int, int, int, int]]:
        """Of a section of them: where, which symbol, which kind, and what is added."""
        for where, kind, symbol, number in _RELOCATION.iter_unpack(self.content(section)):
            yield where, symbol, kind, number


def read_elf(code: bytes) -> Elf | None:
    """An ELF object of 64 bits, None for anything else; damaged ones raise what ``struct`` raises, or a ValueError."""
    magic, kind, machine, _, _, _, sections_at, _, _, _, _, size, count, names = _HEADER.unpack_from(code)
    if magic[:6] != b"\x7fELF\x02\x01" or kind != _RELOCATABLE or size != _SECTION.size:
        return None
    raw = [_SECTION.unpack_from(code, sections_at + i * size) for i in range(count)]
    text = _part(code, *raw[names][4:6])
    sections = []
    for name, kind, flags, _, at, length, link, info, align, width in raw:
        sections.append(Section(_name(text, name), kind, flags, at, length, link, info, align, width))
    symbols: list[tuple[str, int, int]] = []
    for section in sections:
        if section.kind != _SYMBOL_TABLE:
            continue
        if section.width != _SYMBOL.size or symbols:
            return None
        text = _part(code, sections[section.link].at, sections[section.link].size)
        for name, about, _, where, value, _ in _SYMBOL.iter_unpack(_part(code, section.at, section.size)):
            symbols.append((_name(text, name) if about & 15 != 3 else "", where, value))  # 3: a section itself
    return Elf(code, machine, sections, symbols)


def undefined_symbols(code: bytes) -> set[str] | None:
    """The names that an ELF object of 64 bits leaves open; None for anything else, damaged objects included."""
    try:
        elf = read_elf(code)
    except (struct.error, IndexError, ValueError, OverflowError):
        return None
    if elf is None:
        return None
    return {name for name, where, _ in elf.symbols[1:] if where == 0}  # the first symbol is none


def _part(code: bytes, at: int, size: int) -> bytes:
    if at + size > len(code):
        raise ValueError("it is cut off")
    return code[at : at + size]


def _name(text: bytes, at: int) -> str:
    return text[at : text.index(b"\0", at)].decode("ascii")
