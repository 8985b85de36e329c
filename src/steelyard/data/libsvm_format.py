"""LIBSVM's lines → rows: ``label index:value index:value …``."""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_parser
from steelyard.data.memory import lazy_zeros
from steelyard.data.stretch import Format, Mistake, Part, Range
from steelyard.data.text import STRETCH
from steelyard.kernels import layout
from steelyard.losses import Array

_COMPLAINTS = {
    layout.BAD_LABEL: "the label is not a number",
    layout.BAD_INDEX: "a feature index must be a whole number of at most 18 digits",
    layout.BAD_VALUE: "the feature's value is not a number",
    layout.BAD_WEIGHT: "the weight after the label is not a number",
    layout.NO_COLON: "expected index:value",
    layout.BAD_QUERY: "qid must be a whole number of at most 18 digits",
}
_ODD_COMPLAINTS = {
    layout.ODD_LABEL: _COMPLAINTS[layout.BAD_LABEL],
    layout.ODD_VALUE: _COMPLAINTS[layout.BAD_VALUE],
    layout.ODD_WEIGHT: _COMPLAINTS[layout.BAD_WEIGHT],
}


class _Room:
    """Where a thread puts the numbers of a stretch before they are copied: the same memory for one after another."""

    def __init__(self) -> None:
        self.rows = self.pairs = -1
        self.odd = np.empty((1024, layout.ODD_SIZE), np.int64)
        self.work = np.empty(layout.NAMES_SIZE, np.uint64)

    def fit(self, content: bytes) -> None:
        """Have room for all of a stretch."""
        # bounds, not counts: memory that is never touched costs nothing, counting would cost a third of the parsing
        rows, pairs = len(content) // 2 + 1, len(content) // 4 + 1
        if len(content) > 4 * STRETCH:  # a very long line: bounds would take 16 times its bytes
            rows, pairs = content.count(b"\n") + 1, content.count(b":") + 1
        if rows > self.rows:
            self.rows = rows = rows + rows // 8  # the next stretch may be a little longer
            self.y, self.weight, self.lines = np.empty(rows), np.empty(rows), np.empty(rows, np.int32)
            self.query, self.indptr = np.empty(rows, np.int64), np.empty(rows + 1, np.int64)
            self.indptr[0] = 0
        if pairs > self.pairs:
            self.pairs = pairs = pairs + pairs // 8
            self.indices, self.values = np.empty(pairs, np.int64), np.empty(pairs)


class LibsvmFormat(Format):
    """LIBSVM's lines. Indices are left as they stand in the text: their first may be 0 or 1.

    Parameters
    ----------
    query : bool
        Whether the ``qid`` of rows is wanted.
    weighted : bool
        Whether a label may have a weight: ``label:weight``.

    Attributes
    ----------
    only_labels : bool
        Whether of the features only the range is wanted.
    """

    name = "libsvm"
    labels_may_lack = False

    def __init__(self, *, query: bool = False, weighted: bool = False) -> None:
        self._query, self.weighted, self.only_labels = query, weighted, False

    def new_room(self) -> Any:
        get_parser()  # before there are threads: it is loaded once
        return _Room()

    def hint(self, line: bytes, number: int) -> str:
        tokens = line.split()
        if tokens and re.fullmatch(rb"[-+]?\d+:[^,;]*", tokens[0]) and not self.weighted:
            return "a line starts with a label, any number where it is not known (label:weight needs --weight label)"
        return ""

    def parse(self, content: bytes, room: Any) -> Part:
        return _parse_in(room, get_parser(), content, self._query, self.weighted, self.only_labels)


def widest(ranges: list[Range]) -> Range:
    """The range of several, in the order of the file."""
    if not ranges:
        return Range()
    low, high = min(ranges, key=lambda each: each.smallest), max(ranges, key=lambda each: each.largest)
    return Range(low.smallest, low.smallest_line, high.largest, high.largest_line)


def range_in_file(part: Part) -> Range:
    """The range of a part with line numbers that count from 1, in its file."""
    found, before = part.range, part.first_line + 1
    if found.largest < 0:
        return found
    return Range(found.smallest, found.smallest_line + before, found.largest, found.largest_line + before)


def _parse_in(room: _Room, parser: Any, content: bytes, query: bool, weighted: bool, only_labels: bool) -> Part:
    room.fit(content)
    text, state = np.frombuffer(content, dtype=np.uint8), np.zeros(layout.PARSE_SIZE, np.int64)
    arrays = (room.y, room.weight, room.lines, room.query, room.indptr, room.indices, room.values)
    while True:
        parser(text, state, *arrays, room.odd, room.work, weighted)
        odd = int(state[layout.PARSE_ODD])
        if odd <= len(room.odd):
            break
        room.odd = np.empty((odd, layout.ODD_SIZE), np.int64)
    # tokens for Python's float come first: one of them may be wrong before the place where the parser stopped
    for kind, index, start, end in room.odd[:odd].tolist():
        (room.y, room.values, room.weight)[kind][index] = _float(content, start, end, kind)
    if state[layout.PARSE_RESULT] != layout.DONE:
        raise Mistake(content, int(state[layout.PARSE_STOPPED]), _COMPLAINTS[int(state[layout.PARSE_RESULT])])
    rows, count, lines = state[[layout.PARSE_ROWS, layout.PARSE_PAIRS, layout.PARSE_LINES]].tolist()
    found = Range(*state[layout.PARSE_SMALLEST : layout.PARSE_LARGEST_LINE + 1].tolist())
    pairs = 0 if only_labels else count
    part = Part(
        y=room.y[:rows].copy(),
        indptr=room.indptr[: 0 if only_labels else rows + 1].astype(index_type(count)),
        indices=room.indices[:pairs].astype(index_type(found.largest)),
        values=room.values[:pairs].copy(),
        lines=room.lines[:rows].copy(),
        line_count=lines,
        size=len(content),
        weight=room.weight[: rows if weighted else 0].copy(),
        range=found,
        query=room.query[: rows if query else 0].copy(),
    )
    return _sorted(part, content) if state[layout.PARSE_DISORDER] and not only_labels else part


def index_type(largest: int) -> type[np.signedinteger[Any]]:
    """The smallest type of indices that SciPy takes."""
    return np.int32 if largest < 2**31 - 1 else np.int64


def _sorted(part: Part, content: bytes) -> Part:
    """Put the indices of every row in order; a row with an index twice is refused, since it has no one meaning."""
    row = np.repeat(np.arange(part.y.size), np.diff(part.indptr))
    order = np.lexsort((part.indices, row))
    part.indices, part.values = part.indices[order], part.values[order]
    twice = np.flatnonzero((part.indices[1:] == part.indices[:-1]) & (row[1:] == row[:-1]))
    if twice.size:
        at = _second_place(content, int(row[twice[0]]), int(part.indices[twice[0]]))
        raise Mistake(content, at, "an index may stand only once in a line")
    return part


def _second_place(content: bytes, row: int, index: int) -> int:
    """Where an index stands for the second time in the line of an example."""
    lines = (line for line in re.finditer(rb"[^\n]*", content) if line[0].split(b"#")[0].split())
    start = next(itertools.islice(lines, row, None)).start()
    places = re.compile(rb"(?<=\s)\+?0*%d:" % index).finditer(content, start)
    second = next(itertools.islice(places, 1, None), None)
    return second.start() if second else start


def _float(content: bytes, start: int, end: int, kind: int) -> float:
    token = content[start:end]
    try:
        if b"_" in token:  # Python's float takes 1_000, the format does not
            raise ValueError
        return float(token)
    except ValueError:
        raise Mistake(content, start, _ODD_COMPLAINTS[kind]) from None


def columns_of(found: Range, n_features: int | None, zero_based: bool | str, name: str) -> tuple[int, int]:
    """How many columns a matrix has, and which index is the first of them."""
    if zero_based is False and found.smallest == 0:
        raise ValueError(
            f"{name}, line {found.smallest_line}: an index is 0, but with zero_based=False they start at 1; "
            "say zero_based=True, or mend the line"
        )
    base = 0 if zero_based is True or (zero_based == "auto" and found.smallest == 0) else 1
    needed = 0 if found.largest < 0 else found.largest + 1 - base
    if n_features is not None and needed > n_features:
        raise ValueError(
            f"{name}, line {found.largest_line}: index {found.largest} needs {needed} columns, but "
            f"n_features={n_features}; give a larger n_features, or mend the line"
        )
    return needed if n_features is None else n_features, base


class Joined(NamedTuple):
    """Several parts in one: rows in CSR form, labels and queries."""

    values: Array
    indices: NDArray[Any]
    indptr: NDArray[Any]
    y: Array
    weight: Array
    """Empty where all are 1."""
    query: NDArray[np.int64]


def lone_part(part: Part, columns: int, base: int) -> Joined:
    """The rows of one part, which is used up: its memory becomes theirs."""
    kind = np.int32 if max(columns, part.values.size) < 2**31 else np.int64
    part.indices -= part.indices.dtype.type(base)
    indices, indptr = part.indices.astype(kind, copy=False), part.indptr.astype(kind, copy=False)
    return Joined(part.values, indices, indptr, part.y, part.weight, part.query)


def join_parts(parts: list[Part], columns: int, base: int, query_id: bool = False) -> Joined:
    """The rows of parts, which are used up: no two copies of all of them at a time. Index ``base`` is column 0."""
    rows, count = sum(part.y.size for part in parts), sum(part.values.size for part in parts)
    kind = np.int32 if max(columns, count) < 2**31 else np.int64
    y, query, indptr = np.empty(rows), np.empty(rows if query_id else 0, np.int64), np.zeros(rows + 1, kind)
    indices, values = lazy_zeros(count, kind), lazy_zeros(count)  # with huge pages, where there are any
    weight = np.ones(rows if any(part.weight.size for part in parts) else 0)
    row, pair = rows, count
    while parts:  # the last one first: memory that was taken last can be given back first
        part = parts.pop()
        end, last = row, pair
        row, pair = row - part.y.size, pair - part.values.size
        y[row:end] = part.y
        if part.weight.size:
            weight[row:end] = part.weight
        if query_id:
            query[row:end] = part.query
        np.add(part.indptr[1:], pair, out=indptr[row + 1 : end + 1], casting="unsafe")
        np.subtract(part.indices, base, out=indices[pair:last], casting="unsafe")
        values[pair:last] = part.values
    return Joined(values, indices, indptr, y, weight, query)
