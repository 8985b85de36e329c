"""CSV and TSV → rows: named columns of numbers and text.

Cells may stand in quotes (a quote inside is written twice) and then hold delimiters and ends of lines. Which columns
are text is decided from the first stretch, about 1 MB: those with a cell that is no number.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel
from steelyard.data.columns import MOST_NUMBER, NUMBER, TEXT, Columns, Places, not_finite, refused_integer
from steelyard.data.hashing import Settler
from steelyard.data.stretch import BOM, Format, Mistake, Part
from steelyard.kernels import layout
from steelyard.losses import Array

_DELIMITERS = (b",", b";", b"\t", b"|")
_MISSING = {"na", "n/a", "nan", "null", "none", "?", "-", "."}
"""Beside numbers, these do not make a column text: they are refused where they stand."""
_BOOLEANS = {"true": 1.0, "false": 0.0}
_IN_QUOTES = re.compile(rb'"[^"]*(?:""[^"]*)*"(?!")')
_LONE_RETURN = re.compile(rb"\r[^\n]")
_RETURNS = r"lines must end in \n or \r\n, and not in \r alone"


class _Room:
    """Where a thread puts the cells of a stretch: the same memory for one after another."""

    def __init__(self) -> None:
        self.size = -1
        self.odd = np.empty((1024, layout.CSV_ODD_SIZE), np.int64)
        self.table = np.zeros(layout.CSV_TABLE, np.int64)
        self.label_ends = np.empty(layout.CSV_TABLE, np.int64)
        self.known = np.empty(0, np.uint8)
        self.state = np.empty(layout.CSV_SIZE, np.int64)
        self.settler = Settler()

    def fit(self, size: int) -> None:
        """Have room for a stretch of so many bytes, in bounds: memory that is never touched costs nothing."""
        if size <= self.size:
            return
        self.size = size = size + size // 8
        rows = size // 2 + 2  # a row has at least a byte and the end of the line
        self.y, self.weight, self.lines = np.empty(rows), np.empty(rows), np.empty(rows, np.int32)
        self.starts = np.empty(rows + 1, np.int64)
        self.hashes, self.values, self.features = np.empty(size, np.uint32), np.empty(size), np.empty(size, np.uint16)
        self.scratch, self.labels = np.empty(size + 8, np.uint8), np.empty(size, np.uint8)


class CsvFormat(Format):
    """Lines of cells with one delimiter between them.

    Parameters
    ----------
    delimiter : str, optional
        By default the one of ``,`` ``;`` ``|`` and the tab that stands most often in the first line.
    header : bool
        Whether the first line has the names of the columns; without, they are 1, 2, …
    label, weight, drop, text, bits, interactions, schema, optional_label
        As :class:`~steelyard.data.columns.Columns` has them.
    """

    name = "csv"

    def __init__(self, *, delimiter: str | None = None, header: bool = True, **columns: Any) -> None:
        self.columns = Columns(**columns)
        self._delimiter, self._header = None if delimiter is None else delimiter.encode(), header
        self._names: list[str] = []
        self._places: Places | None = None
        self._take_over()

    def _take_over(self) -> None:
        """What is decided about the columns, as others ask for it."""
        columns = self.columns
        self.n_features, self.bits = columns.n_features, columns.bits
        self.dense = columns.decided and columns.bits is None
        self.known = columns.new_known()
        if columns.decided:
            endings = [name + ("=" if kind == TEXT else "") for name, kind in columns.kinds.items()]
            encoded = [name.encode("utf-8", "surrogateescape") for name in endings]
            self._bytes = np.frombuffer(b"".join(encoded) + b"\0", np.uint8)
            self._ends = np.append(0, np.cumsum([len(each) for each in encoded])).astype(np.int64)

    def column_name(self, column: int) -> str | None:
        return list(self.columns.kinds)[column] if self.dense else None

    def schema(self) -> dict[str, Any]:
        return {"format": self.name, **self.columns.schema()}

    # ------------------------------------------------------------------------------------------------------ the start

    def cut(self, content: bytes) -> bool:
        if b'"' not in content:
            return True
        delimiter = self._found_delimiter(content)
        return not get_kernel("ends_quoted")(np.frombuffer(content, np.uint8), delimiter[0])

    def _found_delimiter(self, content: bytes) -> bytes:
        if self._delimiter is None:
            line = content.removeprefix(BOM).lstrip(b"\r\n").split(b"\n", 1)[0]
            outside = re.sub(rb'"[^"]*"', b"", line)
            self._delimiter = max(_DELIMITERS, key=outside.count)
        return self._delimiter

    def start(self, content: bytes) -> int:
        delimiter = self._found_delimiter(content)
        skipped = len(BOM) if content.startswith(BOM) else 0
        lines = re.finditer(r"[^\n]*\n|[^\n]+", content[skipped:].decode("utf-8", "surrogateescape"))
        reader = csv.reader((line[0] for line in lines), delimiter=delimiter.decode(), strict=True)
        rows = filter(None, _readable(reader))
        nul = self._nul(content[: content.find(b"\n") + 1 or len(content)])
        if nul is not None:
            raise nul
        first = next(rows, None)
        if first is None:
            told = "the first line must be one of cells, with quotes that end"
            if _LONE_RETURN.search(content, 0, content.find(b"\n") + 1 or len(content)):
                told = _RETURNS
            raise Mistake(content, skipped, told if content[skipped:].strip() else "there are only empty lines")
        if self._header:
            names = [name or str(number) for number, name in enumerate(first, 1)]
            end = skipped
            for _ in range(reader.line_num):
                end = content.find(b"\n", end) + 1 or len(content)
        else:
            names, end = [str(number) for number in range(1, len(first) + 1)], skipped
            rows = filter(None, [first, *rows])
        if any("\r" in name for name in names):
            raise Mistake(content, skipped, _RETURNS)
        try:
            if not self.columns.decided:
                kinds = _kinds(names, rows)
                self.columns.decide(names, kinds.__getitem__)
                self._take_over()
            self._names, self._places = names, self.columns.places(names)
        except ValueError as error:
            raise Mistake(content, skipped, str(error)) from None
        return end

    # ------------------------------------------------------------------------------------------------------- the rows

    def new_room(self) -> Any:
        get_kernel("parse_csv")  # before there are threads: it is loaded once
        return _Room()

    def parse(self, content: bytes, room: Any) -> Part:
        nul = self._nul(content)
        if nul is not None:
            raise nul
        found = self._fill(content, room)
        rows, columns = int(found[layout.CSV_ROWS]), self.columns
        names = columns.column_names()
        names.update(self._patch(content, room, int(found[layout.CSV_ODD])))
        if found[layout.CSV_RESULT] != layout.CSV_DONE:
            raise self._mistake(content, int(found[layout.CSV_STOPPED]), int(found[layout.CSV_BEGIN]), found)
        part = Part.empty(int(found[layout.CSV_LINES]), len(content))
        part.y, part.lines = room.y[:rows].copy(), room.lines[:rows].copy()
        if columns.weight in self._names:
            part.weight = room.weight[:rows].copy()
        part.missing, part.names = int(found[layout.CSV_MISSING]), names
        if columns.label_kind == TEXT:
            ends = room.label_ends[: int(found[layout.CSV_LABELS]) + 1].tolist()
            part.labels = [_text(room.labels[a:b].tobytes()) for a, b in pairwise(ends)]
        if self.bits is None:
            width = len(columns.kinds)
            part.indptr = np.arange(rows + 1, dtype=np.uint64) * np.uint64(width)
            part.values = room.values[: rows * width].copy()
            return part
        count, starts = int(found[layout.CSV_FEATURES]), room.starts[: rows + 1]
        raw = (room.hashes[:count], room.values[:count], room.features[:count], starts)
        settled = columns.settled(room.settler.settle(*raw, self.bits, columns.meetings), 0)
        part.indptr, part.indices, part.values = settled.indptr, settled.indices, settled.values
        return part

    def _fill(self, content: bytes, room: _Room) -> NDArray[np.int64]:
        if self._places is None or self._delimiter is None:
            raise AssertionError("the first stretch comes first")
        room.fit(len(content) + len(self.columns.kinds) + 1)
        if room.known.size != self.known.size:
            room.known = self.known.copy()
        arrays = (room.y, room.weight, room.lines, room.starts, room.hashes, room.values, room.features)
        heads = np.empty(2 * max(len(self.columns.kinds), 1), np.uint64)
        text, before = np.frombuffer(content, np.uint8), None
        while True:
            room.table[:] = 0
            get_kernel("parse_csv")(
                *(text, room.state, *self._places, self._bytes, self._ends, heads),
                *(self._delimiter[0], self.dense, self.bits or 0, room.known, *arrays),
                *(room.scratch, room.labels, room.label_ends, room.table, room.odd),
            )
            odd = int(room.state[layout.CSV_ODD])
            if odd <= len(room.odd) or before == odd:
                return room.state
            room.odd, before = np.empty((odd, layout.CSV_ODD_SIZE), np.int64), None
            room.known = self.known.copy()

    def _patch(self, content: bytes, room: _Room, odd: int) -> Iterator[tuple[int, str]]:
        """Numbers that are left to Python, put where they belong; the features among the odd tokens, with names."""
        mask = (1 << (self.bits or 0)) - 1
        for role, column, index, start, end in room.odd[:odd].tolist():
            token = _unquoted(content[start:end])
            if role == layout.CELL_TEXT:
                yield int(room.hashes[index]) & mask, f"{self._names[column]}={_text(token)}"
                continue
            try:
                value = parse_number(_text(token).strip(" "))
            except ValueError as error:
                raise self._mistake(content, start, end, None, self._advice(role, column, str(error))) from None
            target: Array = {layout.CELL_LABEL: room.y, layout.CELL_WEIGHT: room.weight}.get(role, room.values)
            target[index] = value

    def _advice(self, role: int, column: int, complaint: str) -> str:
        name = self._names[column]
        if role == layout.CELL_WEIGHT:
            return f"the weight in the column {name!r} must be a number, finite and not negative"
        if role == layout.CELL_LABEL and complaint:
            return f"the label in the column {name!r} must be a finite number, or an empty cell where it is not known"
        if complaint:
            return f"in the column {name!r} {complaint}"
        what = "labels" if role == layout.CELL_LABEL else "cells"
        return (
            f"the column {name!r} has numbers in the first rows, so all its {what} must be numbers or empty; "
            f"if it is text say --text {name} (text=)"
        )

    def _mistake(
        self, content: bytes, at: int, begin: int, found: NDArray[np.int64] | None, complaint: str = ""
    ) -> Mistake:
        end = None
        if found is not None:
            width, column = len(self._names), int(found[layout.CSV_COLUMN])
            complaint = {
                layout.CSV_TOO_FEW: f"a row has {width} cells, as the first line has, but this one has {column}",
                layout.CSV_TOO_MANY: f"a row has {width} cells, as the first line has, but this one has more",
                layout.CSV_OPEN_QUOTE: "the quotes of a cell do not end",
                layout.CSV_AFTER_QUOTE: "after a cell in quotes comes a delimiter or the end of the line",
                layout.CSV_MANY_LABELS: "there are too many different labels that are text for a classification",
                layout.CSV_NO_WEIGHT: f"the weight, in the column {self.columns.weight!r}, is empty",
            }[int(found[layout.CSV_RESULT])]
        else:
            begin, end = _row_begin(content, at, self._found_delimiter(content)), begin
        row = (begin, _row_end(content, begin, self._found_delimiter(content)))
        return Mistake(content, at, complaint, row=row, end=end)

    def _nul(self, content: bytes) -> Mistake | None:
        """No text has bytes of zero: it is UTF-16, or no text."""
        at = content.find(b"\0")
        return (
            None if at < 0 else self._mistake(content, at, at + 1, None, "there is a byte of zero, which no text has")
        )


def _readable(reader: Any) -> Iterator[list[str]]:
    """The rows that can be read: others are complained of where they are parsed."""
    while True:
        try:
            yield from reader
            return
        except csv.Error:
            continue


def _kinds(names: Sequence[str], rows: Iterator[list[str]]) -> dict[str, str]:
    """Which columns are numbers, by the first rows."""
    different: list[set[str]] = [set() for _ in names]
    for row in rows:
        if len(row) == len(names):
            for cells, cell in zip(different, row, strict=True):
                cells.add(cell)
    return {name: kind_of_cells(cells) for name, cells in zip(names, different, strict=True)}


def kind_of_cells(cells: set[str]) -> str:
    """Whether cells of text are numbers: all that are not empty, but for words that say that there is none."""
    words = {word for word in (cell.strip(" ").lower() for cell in cells) if word}
    others = {word for word in words if not _is_number(word)}
    return NUMBER if not others or (others <= _MISSING and others != words) else TEXT


def _is_number(word: str) -> bool:
    try:
        return parse_number(word) is not None
    except ValueError as error:
        return bool(str(error)) and word not in _MISSING  # a number that is refused


def parse_number(word: str) -> float:
    """A number, or true or false; without a message, the error says that it is none of these."""
    value = _BOOLEANS.get(word.lower())
    if value is None:
        try:
            if "_" in word or not word.isascii() or word != word.strip():  # all of which Python's float takes
                raise ValueError
            value = float(word)
        except ValueError:
            raise ValueError("") from None
    if not np.isfinite(value):
        raise ValueError(not_finite(value))
    if abs(value) >= MOST_NUMBER and word.lstrip("+-").isdigit() and int(value) != int(word):
        raise ValueError(refused_integer(word))
    return value


def _unquoted(cell: bytes) -> bytes:
    return cell[1:-1].replace(b'""', b'"') if cell.startswith(b'"') else cell


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "surrogateescape")


def _row_begin(content: bytes, at: int, delimiter: bytes) -> int:
    """Where the row begins in which ``at`` is; the content begins with a row."""
    begin = 0
    while begin < at and (end := _row_end(content, begin, delimiter)) <= at:
        begin = end
    return begin


def _row_end(content: bytes, begin: int, delimiter: bytes) -> int:
    """Where a row ends, cell by cell; where quotes do not end, where its first line does."""
    at, last = begin, len(content)
    ends = re.compile(b"[" + re.escape(delimiter) + b"\n]")
    while at < last:
        if content.startswith(b'"', at):
            inside = _IN_QUOTES.match(content, at)
            if inside is None:
                return content.find(b"\n", begin) + 1 or last
            at = inside.end()
        found = ends.search(content, at)
        if found is None:
            return last
        at = found.end()
        if found[0] == b"\n":
            return at
    return last
