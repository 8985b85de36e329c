"""CSV and TSV → rows: named columns of numbers and text.

Cells may stand in quotes (a quote inside is written twice) and then hold delimiters and ends of lines. Which columns
are text is decided from the first stretch, about 1 MB: those with a cell that is no number.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel
from steelyard.data.columns import MOST_NUMBER, NUMBER, TEXT, Columns, Places, not_finite, refused_integer
from steelyard.data.stretch import BOM, Format, Mistake, Part
from steelyard.data.table import Room, decoded
from steelyard.kernels import layout
from steelyard.losses import Array

_DELIMITERS = (b",", b";", b"\t", b"|")
_MISSING = {"na", "n/a", "nan", "null", "none", "?", "-", "."}
"""Beside numbers, these do not make a column text: they are refused where they stand."""
_BOOLEANS = {"true": 1.0, "false": 0.0}
_IN_QUOTES = re.compile(rb'"[^"]*(?:""[^"]*)*"(?!")')
_LONE_RETURN = re.compile(rb"\r[^\n]")
_MOST_WRONG = 100  # rows among the first that are passed over, to see what columns hold
_RETURNS = r"lines must end in \n or \r\n, and not in \r alone"


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
            self._heads = columns.heads()

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
        lines = re.findall(r"[^\n]*\n|[^\n]+", content[skipped:].decode("utf-8", "surrogateescape"))
        rows = _readable(lines, delimiter.decode())
        nul = self._nul(content[: content.find(b"\n") + 1 or len(content)])
        if nul is not None:
            raise nul
        first, read = next(rows, (None, 0))
        if first is None:
            told = "the first line must be one of cells, with quotes that end"
            if _LONE_RETURN.search(content, 0, content.find(b"\n") + 1 or len(content)):
                told = _RETURNS
            raise Mistake(content, skipped, told if content[skipped:].strip() else "there are only empty lines")
        if self._header:
            names = [name or str(number) for number, name in enumerate(first, 1)]
            end = skipped
            for _ in range(read):
                end = content.find(b"\n", end) + 1 or len(content)
        else:
            names, end = [str(number) for number in range(1, len(first) + 1)], skipped
            rows = itertools.chain([(first, read)], rows)
        if any("\r" in name for name in names):
            raise Mistake(content, skipped, _RETURNS)
        try:
            if not self.columns.decided:
                kinds = _kinds(names, (row for row, _ in rows if self._counts(row, names)))
                self.columns.decide(names, kinds.__getitem__)
                self._take_over()
            self._names, self._places = names, self.columns.places(names)
        except ValueError as error:
            raise Mistake(content, skipped, str(error)) from None
        return end

    def _counts(self, row: Sequence[str], names: Sequence[str]) -> bool:
        """Whether a row says what columns hold: not the header once more, nor one that is refused for its weight."""
        if row == names or len(row) != len(names):
            return False
        weight = self.columns.weight
        return weight not in names or _is_weight(row[names.index(weight)])

    # ------------------------------------------------------------------------------------------------------- the rows

    def new_room(self) -> Any:
        get_kernel("parse_csv")  # before there are threads: it is loaded once
        return Room()

    def parse(self, content: bytes, room: Room) -> Part:
        nul = self._nul(content)
        if nul is not None:
            raise nul
        found = self._fill(content, room)
        columns = self.columns
        names = columns.column_names()
        names.update(self._patch(content, room, int(found[layout.CSV_ODD])))
        if found[layout.CSV_RESULT] != layout.CSV_DONE:
            raise self._mistake(content, int(found[layout.CSV_STOPPED]), int(found[layout.CSV_BEGIN]), found)
        part = room.part(columns, int(found[layout.CSV_LINES]), len(content), columns.weight in self._names)
        part.names = names.copy
        return part

    def _fill(self, content: bytes, room: Room) -> NDArray[np.int64]:
        if self._places is None or self._delimiter is None:
            raise AssertionError("the first stretch comes first")
        room.fit(len(content) + len(self.columns.kinds) + 1, self.known)
        heads = np.empty(2 * max(len(self.columns.kinds), 1), np.uint64)
        text = np.frombuffer(content, np.uint8)
        while True:
            room.table[:] = 0
            get_kernel("parse_csv")(
                *(text, room.state, *self._places, *self._heads, heads),
                *(self._delimiter[0], self.dense, self.bits or 0, room.known, *room.rows, *room.words),
            )
            if room.suffices(self.known):
                return room.state

    def _patch(self, content: bytes, room: Room, odd: int) -> Iterator[tuple[int, str]]:
        """Numbers that are left to Python, put where they belong; the features among the odd tokens, with names."""
        mask = (1 << (self.bits or 0)) - 1
        for role, column, index, start, end in room.odd[:odd].tolist():
            token = _unquoted(content[start:end])
            if role == layout.CELL_TEXT:
                yield int(room.hashes[index]) & mask, f"{self._names[column]}={decoded(token)}"
                continue
            try:
                value = parse_number(decoded(token).strip(" "))
            except ValueError as error:
                raise self._mistake(
                    content, start, end, None, self._advice(role, column, decoded(token), str(error))
                ) from None
            target: Array = {layout.CELL_LABEL: room.y, layout.CELL_WEIGHT: room.weight}.get(role, room.values)
            target[index] = value

    def _advice(self, role: int, column: int, token: str, complaint: str) -> str:
        name = self._names[column]
        if token == name:
            return f"in the column {name!r} stands its name: is this the header once more? Leave that line out"
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


def _readable(lines: list[str], delimiter: str) -> Iterator[tuple[list[str], int]]:
    """The rows that can be read, each with how many lines are read then; none if the first of them cannot be.

    Of others that cannot be it is told where they are parsed.
    """
    at, wrong, started = 0, 0, False
    while wrong < _MOST_WRONG:
        reader = csv.reader(lines[at:], delimiter=delimiter, strict=True)
        read = 0
        try:
            for row in reader:
                read = reader.line_num
                if row:
                    started = True
                    yield row, at + read
            return
        except csv.Error:
            if not started:
                return
            at, wrong = at + read + 1, wrong + 1


def _is_weight(cell: str) -> bool:
    try:
        return 0.0 <= parse_number(cell.strip(" ")) < np.inf
    except ValueError:
        return False


def _kinds(names: Sequence[str], rows: Iterator[list[str]]) -> dict[str, str]:
    """Which columns are numbers, by the first rows."""
    different: list[set[str]] = [set() for _ in names]
    for row in rows:
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
