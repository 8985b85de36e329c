"""Text in files and pipes → rows: one thread reads ahead, several parse, and what they find comes in order.

Files are cut into stretches of whole lines; a :class:`~steelyard.data.stretch.Format` says what is in one. Kernels hold
no lock, so reading, parsing and learning go on at the same time.
"""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block, copied, join_blocks
from steelyard.data.files import can_be_read_again, read_blocks, shown_name, total_size
from steelyard.data.mistakes import error_of
from steelyard.data.source import MOST_NAMES, PLACES, Extent, Rows, Skipped, Source, few_labels
from steelyard.data.stretch import Format, Mistake, Part

STRETCH = 1 << 20  # bytes that one thread parses at a time: few enough for its cache
_SMALL = 1 << 13  # bytes that are parsed at a time where lines are left out
_AHEAD = 4  # stretches that wait, parsed or being parsed
_MOST_THREADS = 8  # that parse: nobody takes rows as fast as more could


class Mark(NamedTuple):
    """A place in a file from which it can be read: what is before it."""

    row: int = 0
    line: int = 0
    byte: int = 0

    def after(self, part: Part) -> Mark:
        """The place after a stretch that begins here."""
        return Mark(self.row + part.y.size, self.line + part.line_count, self.byte + part.size)


@dataclass
class _Stretch:
    """Some lines of a file, which are being parsed."""

    file: str
    content: bytes
    header: int
    """How many bytes of it are no rows."""
    first: bool
    """Whether the file begins here."""
    part: Future[Part]

    def rows(self) -> bytes:
        """Its lines, without what is no row."""
        return self.content[self.header :] if self.header else self.content


class _Lines(NamedTuple):
    """Where the rows of a part stand."""

    before: int
    """Rows of the source before them."""
    lines: NDArray[np.int32]
    first: int
    file: str


def read_parts(
    paths: Sequence[str], form: Format, size: int, *, start: Mark | None = None, skipped: Skipped | None = None
) -> Iterator[Part]:
    """The stretches of files, parsed, in order. With ``skipped``, lines that cannot be read are left out and noted.

    ``start`` is where to begin in a single file.
    """
    ahead: deque[_Stretch] = deque()
    threads = max(1, min((os.cpu_count() or 1) - 1, _MOST_THREADS))
    rooms = [form.new_room() for _ in range(threads + 1)]  # the last for who skips what cannot be read
    at = Mark() if start is None else start
    file, lines = "", 0

    def parse(content: bytes) -> Part:
        room = rooms.pop()  # there is one for every thread, this one too
        try:
            return form.parse(content, room)
        finally:
            rooms.append(room)

    def help_out() -> bool:
        """Parse what no thread has begun with, rather than wait for what one is at."""
        for stretch in [ahead[i] for i in range(len(ahead))]:  # another thread may append to it
            if stretch.part.cancel():
                stretch.part = Future()
                _set(stretch.part, parse, stretch.rows())
                return True
        return False

    def finish(stretch: _Stretch) -> Iterator[Part]:
        nonlocal file, lines
        header = stretch.header
        if stretch.first:
            file, lines = stretch.file, at.line
        lines += stretch.content.count(b"\n", 0, header)
        while not stretch.part.done() and help_out():
            pass
        ahead.popleft()
        pieces: Iterator[Part]
        if skipped is None:
            try:
                pieces = iter([stretch.part.result()])  # in order, so the first mistake is the one raised
            except Mistake as mistake:
                raise error_of(_first(mistake, parse), form, file, lines) from None
        else:
            pieces = _good_pieces(stretch.part, stretch.rows(), parse, form, file, lines, skipped)
        for part in pieces:
            part.file, part.first_line = file, lines
            part.size += header
            header = 0
            lines += part.line_count
            yield part

    def submit(file: str, content: bytes, header: int, first: bool) -> _Stretch:
        stretch = _Stretch(file, content, header, first, Future())
        stretch.part = pool.submit(parse, stretch.rows())
        ahead.append(stretch)
        return stretch

    with ThreadPoolExecutor(threads) as pool, _parsing_ahead(paths, size, at.byte, form, submit) as stretches:
        for stretch in stretches:
            yield from finish(stretch)


def _first(mistake: Mistake, parse: Any) -> Mistake:
    """The first thing that is wrong: what is found last may stand before it."""
    while begin := _row_of(mistake)[0]:
        try:
            parse(mistake.content[:begin])
            return mistake
        except Mistake as earlier:
            mistake = earlier
    return mistake


def _row_of(mistake: Mistake) -> tuple[int, int]:
    """Where the row begins and ends in which a mistake is."""
    content, at = mistake.content, mistake.at
    return mistake.row or (content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at) + 1 or len(content))


def _good_pieces(
    future: Future[Part], content: bytes, parse: Any, form: Format, file: str, lines: int, skipped: Skipped
) -> Iterator[Part]:
    """What can be read of a stretch: the lines between those that cannot be."""
    while True:
        try:
            yield future.result()
            return
        except Mistake as mistake:
            skipped.add(error_of(mistake, form, file, lines))
            begin, end = _row_of(mistake)
        if begin:  # there may be another mistake, that was found later
            before: Future[Part] = Future()
            _set(before, parse, content[:begin])
            yield from _good_pieces(before, content[:begin], parse, form, file, lines, skipped)
        lost = Part.empty(content.count(b"\n", begin, end), end - begin)
        lost.lost = True
        yield lost
        lines += content.count(b"\n", 0, end)
        content = content[end:]
        if not content:
            return
        if len(content) > _SMALL:  # what comes after a mistake is copied and parsed again: little of it at a time
            for piece in _small_pieces(content, form):
                future = Future()
                _set(future, parse, piece)
                yield from _good_pieces(future, piece, parse, form, file, lines, skipped)
                lines += piece.count(b"\n")
            return
        future = Future()
        _set(future, parse, content)


def _small_pieces(content: bytes, form: Format) -> Iterator[bytes]:
    """Lines of a stretch, some at a time."""
    while content:
        end = content.find(b"\n", _SMALL) + 1 or len(content)
        while end < len(content) and not form.cut(content[:end]):
            end = content.find(b"\n", end) + 1 or len(content)
        yield content[:end]
        content = content[end:]


def _set(future: Future[Part], parse: Any, content: bytes) -> None:
    try:
        future.set_result(parse(content))
    except Exception as error:  # it is raised when the rows before are taken
        future.set_exception(error)


@contextmanager
def _parsing_ahead(
    paths: Sequence[str],
    size: int,
    start: int,
    form: Format,
    submit: Callable[[str, bytes, int, bool], _Stretch],
) -> Iterator[Iterator[_Stretch]]:
    """The stretches of files, in order. A thread reads them and has them parsed, some ahead of who takes them:
    decompressing, waiting for a pipe and parsing go on beside everything else.
    """
    ahead: queue.Queue[Any] = queue.Queue(_AHEAD)
    stop = threading.Event()

    def wait_until_taken() -> None:
        with ahead.all_tasks_done:
            while ahead.unfinished_tasks and not stop.is_set():
                ahead.all_tasks_done.wait(0.1)

    def read() -> None:
        try:
            for path in paths:
                first = True
                for content in read_blocks(path, size, start, form.cut, form.first_decides):
                    header = 0
                    if first:
                        wait_until_taken()  # rows before it are parsed, and told of, as the file before says
                    if stop.is_set():
                        return
                    if first:
                        try:
                            header = form.start(content)
                        except Mistake as mistake:
                            raise error_of(mistake, form, shown_name(path), 0) from None
                    ahead.put(submit(shown_name(path), content, header, first))
                    first = False
            ahead.put(None)
        except BaseException as error:
            ahead.put(error)

    def come() -> Iterator[_Stretch]:
        while (found := ahead.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
            ahead.task_done()

    thread = threading.Thread(target=read, daemon=True)  # it may wait for a pipe that nobody writes to any more
    thread.start()
    try:
        yield come()
    finally:
        stop.set()
        with suppress(queue.Empty):
            while True:
                ahead.get_nowait()
        with ahead.all_tasks_done:
            ahead.all_tasks_done.notify_all()


class TextSource(Source):
    """Text files, one after another, as one stream of rows.

    Parameters
    ----------
    paths : files, ``-`` for standard input
    form : Format
    on_error : {"stop", "skip"}
        Whether a line that cannot be read ends it all, or is left out and counted in ``skipped``.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], form: Format, *, on_error: str = "stop") -> None:
        super().__init__()
        self.paths = [os.fspath(path) for path in paths]
        self.name = shown_name(self.paths[0]) if len(self.paths) == 1 else f"{len(self.paths)} files"
        self.format = form
        self.read_again = all(map(can_be_read_again, self.paths))
        self.total_bytes = total_size(self.paths)
        self.skips = on_error == "skip"
        self.labels_may_lack = form.labels_may_lack
        self._start: Mark | None = None
        self._stretch = STRETCH
        self._gone_through = False
        self._places: deque[_Lines] = deque()
        self._remembered = PLACES

    def schema(self) -> dict[str, Any]:
        return self.format.schema()

    # ---------------------------------------------------------------------------------------------------- in blocks

    def _read_parts(self) -> Iterator[Part]:
        """The parts of all files, each once; names and labels are gathered on the way."""
        if self._gone_through and not self.read_again:
            raise ValueError(f"{self.name} can be read only once, and has been")
        self._gone_through = True
        self.missing, self.bytes_read = 0, 0
        self.skipped, rows = Skipped(), 0
        skipped = self.skipped if self.skips else None
        for part in read_parts(self.paths, self.format, self._stretch, start=self._start, skipped=skipped):
            self.missing += part.missing
            self.bytes_read += part.size
            rows += part.y.size
            if part.lost and self.gaps is not None:
                self.gaps.append(rows)
            self._gather_names(part)
            if part.labels is not None:
                part.y = self._coded(part)
            yield part

    def _coded(self, part: Part) -> Any:
        """Text labels as numbers: their places among all that have come so far."""
        if self.label_names is None:
            self.label_names = []
            self._codes: dict[str, int] = {}
        for name in part.labels or ():
            if name not in self._codes:
                self._codes[name] = len(self.label_names)
                self.label_names.append(name)
        codes = np.array([*(self._codes[name] for name in part.labels or ()), np.nan])
        return codes[np.where(np.isnan(part.y), len(part.labels or ()), part.y).astype(np.intp)]

    def _gather_names(self, part: Part) -> None:
        if part.names is None:
            return
        room = MOST_NAMES - len(self.names)
        new = {} if room <= 0 else {index: name for index, name in part.names().items() if index not in self.names}
        for index, name in itertools.islice(new.items(), room):
            self.names[index] = name
            if index < self.format.known.size:
                self.format.known[index] = 1
        if len(self.names) >= MOST_NAMES:  # from now on nobody notes any
            self.format.known = np.empty(0, np.uint8)

    def blocks(self) -> Iterator[Rows]:
        self._places.clear()
        before = 0
        for part in self._read_parts():
            if part.y.size:
                yield self._rows(part, before)
                before += part.y.size

    def _rows(self, part: Part, before: int) -> Rows:
        self.remember(part, before)
        weight = part.weight if part.weight.size else np.ones(part.y.size)
        return Rows(self._block(part), part.y, weight, before)

    def _block(self, part: Part) -> Block:
        columns = self.format.n_features
        if columns is None:
            raise ValueError(f"{self.name} has no rows")
        indptr = part.indptr.astype(np.uint64, copy=False)
        indices = part.indices.view(f"u{part.indices.itemsize}")
        return Block(part.values, indices, indptr, columns, self.format.dense)

    # ------------------------------------------------------------------------------------------------------- at once

    def whole(self) -> Rows:
        self._remembered = sys.maxsize
        each = [Rows(copied(rows.block), rows.y.copy(), rows.weight.copy(), rows.before) for rows in self.blocks()]
        if not each:
            return Rows(self._block(Part.empty(0, 0)), np.empty(0), np.empty(0), 0)
        block = join_blocks([rows.block for rows in each])
        return Rows(block, np.concatenate([rows.y for rows in each]), np.concatenate([rows.weight for rows in each]), 0)

    def extent(self) -> Extent:
        rows, labels = 0, np.empty(0)
        many = False
        for each in self.blocks():
            rows += each.y.size
            if not many:
                found = few_labels(np.union1d(labels, each.y[~np.isnan(each.y)]))
                many, labels = found is None, labels if found is None else found
        columns = self.format.n_features
        return Extent(rows, 0 if columns is None else columns, True, None if many else labels)

    # -------------------------------------------------------------------------------------------------------- places

    def remember(self, part: Part, before: int) -> None:
        """Note where the rows of a part stand, for :meth:`place`."""
        self._places.append(_Lines(before, part.lines, part.first_line, part.file))
        while before - self._places[0].before > self._remembered:
            self._places.popleft()

    def place(self, row: int, column: int | None = None) -> str:
        for before, lines, first, file in self._places:
            if before <= row < before + lines.size:
                line = first + int(lines[row - before]) + 1
                shown = "" if len(self.paths) == 1 else f"{file}, "
                return f"{shown}line {line}" + self._column(file, line, column)
        return f"example {row + 1}"

    def _column(self, file: str, line: int, column: int | None) -> str:
        if column is None:
            return ""
        name = self.format.column_name(column) or self.names.get(column)
        return f", feature {name}" if name else f", index {column}"
