"""The LIBSVM text format → CSR matrices and labels, at the speed of the disk: all at once, or block by block."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.files import check_size, read_blocks
from steelyard.losses import Array

_STRETCH = 1 << 20  # bytes that one thread parses at a time: few enough for its cache
_BLOCK = 1 << 24  # bytes of a file that are parsed at a time, in a stream
_MOST_LABELS = 1000  # distinct labels that are kept: with more it is not a classification

_COMPLAINTS = (
    "",
    "the label is not a number",
    "a feature index must be a whole number of at most 18 digits",
    "the feature's value is not a number",
    "expected index:value",
    "qid must be a whole number of at most 18 digits",
)

_CONVERT = (
    "but only LIBSVM text (label index:value …) is read here: convert it, for example with "
    "sklearn.datasets.dump_svmlight_file"
)
_MAGIC = {  # how files of other kinds start
    b"\x1f\x8b": "a gzip file: give it a name that ends in .gz",
    b"BZh": "a bzip2 file: give it a name that ends in .bz2",
    b"\xfd7zXZ\0": "an xz file: give it a name that ends in .xz",
    b"\x28\xb5\x2f\xfd": "a zstd file: decompress it first",
    b"PK\x03\x04": "a zip file (or .npz, .xlsx): unpack it first",
    b"PAR1": f"a Parquet file, {_CONVERT}",
    b"ARROW1": f"an Arrow file, {_CONVERT}",
    b"\x93NUMPY": f"a NumPy file, {_CONVERT}",
    b"\x89HDF": f"an HDF5 file, {_CONVERT}",
    b"\xef\xbb\xbf": "text with a byte order mark: save it as UTF-8 without one",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


def read_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    query_id: bool = False,
) -> tuple[Any, ...]:
    """Read a LIBSVM / SVMlight file.

    Each line is ``label index:value index:value …``, with an optional ``qid:number`` and ``# comment``. Indices may
    come in any order and go beyond 2^31. Files called .gz, .bz2 or .xz are decompressed.

    Parameters
    ----------
    path : file to read, or a pipe
    n_features : int, optional
        Columns of the result; by default the largest index decides.
    zero_based : bool or "auto"
        Whether the first column is index 0. ``auto`` takes it to be 1 unless an index 0 occurs.
    query_id : bool
        Also return the qid of each row, -1 where there is none.

    Returns
    -------
    X : scipy.sparse.csr_matrix of float64, with sorted indices
    y : labels, float64
    qid : int64, with ``query_id=True``

    Raises
    ------
    ValueError
        Naming file, line, column and token of the first thing that is wrong.

    Examples
    --------
    >>> import tempfile, pathlib, steelyard
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.libsvm")
    >>> _ = path.write_text("1 1:0.5 3:2e-1  # a comment\\n-1 2:4\\n")
    >>> X, y = steelyard.read_libsvm(path)
    >>> X.toarray()
    array([[0.5, 0. , 0.2],
           [0. , 4. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    n_features, zero_based = _checked_features(n_features), _checked_base(zero_based)
    parts = list(_parsed(path, _STRETCH, query=query_id))
    columns, base = _columns(_wider([part.range for part in parts]), n_features, zero_based, os.fspath(path))
    X, y, query = _join(parts, columns, base, query_id)
    return (X, y, query) if query_id else (X, y)


def stream_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | Literal["auto"] | None = "auto",
    zero_based: bool | Literal["auto"] = "auto",
    block_bytes: int = _BLOCK,
) -> Iterator[tuple[Any, Array]]:
    """Read a LIBSVM / SVMlight file block by block, in constant memory.

    Parameters
    ----------
    path : file to read, or a pipe
    n_features : int, "auto" or None
        Columns of every block. With ``auto``, :func:`scan_libsvm` goes through the file first to find it; a pipe can be
        read only once, so it needs a number. With None, each block has as many columns as its own largest index needs,
        which is for those who cut or widen the blocks themselves: a learner wants the same columns in all of them.
    zero_based : bool or "auto"
        Whether the first column is index 0, rather than 1. ``auto`` takes it from the scan where there is one
        (``n_features="auto"``), and is False otherwise.
    block_bytes : int
        Bytes of text that are parsed at a time.

    Yields
    ------
    X, y : as :func:`read_libsvm` returns them, for some rows

    Examples
    --------
    >>> import tempfile, pathlib, steelyard
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.libsvm")
    >>> _ = path.write_text("1 1:0.5 3:2e-1\\n-1 2:4\\n")
    >>> learner = steelyard.Learner("logistic")
    >>> for X, y in steelyard.stream_libsvm(path):
    ...     _ = learner.learn(X, y)
    """
    check_size(block_bytes, "block_bytes")
    zero_based = _checked_base(zero_based)
    scan = isinstance(n_features, str) and n_features == "auto"
    if not scan:
        n_features = _checked_features(n_features)
    elif _is_read_once(path):
        raise ValueError(
            f"{os.fspath(path)} is a pipe or a device, which can be read only once: say how many columns there are "
            "with n_features=, or read it whole with read_libsvm"
        )
    return _stream(path, n_features, zero_based, block_bytes)


def _stream(
    path: str | os.PathLike[str], n_features: int | str | None, zero_based: bool | str, block_bytes: int
) -> Iterator[tuple[Any, Array]]:
    name = os.fspath(path)
    if isinstance(n_features, str):
        n_features, base = _columns(_scan(path, block_bytes)[2], None, zero_based, name)
        zero_based = base == 0
    zero_based = zero_based is True
    for parts in _blocks(path, block_bytes):
        columns, base = _columns(_wider([part.range for part in parts]), n_features, zero_based, name)
        X, y, _ = _join(parts, columns, base, False)
        yield X, y


def _blocks(path: str | os.PathLike[str], block_bytes: int) -> Iterator[list[_Part]]:
    """The stretches of a file, as many together as make a block."""
    parts: list[_Part] = []
    for part in _parsed(path, min(block_bytes, _STRETCH)):
        parts.append(part)
        if sum(each.size for each in parts) >= block_bytes:
            yield parts
            parts = []
    if parts:
        yield parts


class Extent(NamedTuple):
    """What a model must know of a file before it reads the first row."""

    rows: int
    n_features: int
    zero_based: bool
    labels: Array | None
    """The distinct labels, in order; None where there are more than a classification has."""
    largest_line: int = 0
    """The line of the largest index, from 1: where to look if it is too large. 0 where there is no index."""


def scan_libsvm(path: str | os.PathLike[str], *, block_bytes: int = _BLOCK) -> Extent:
    """Read a LIBSVM file once, in constant memory, to see how large it is.

    Examples
    --------
    >>> import tempfile, pathlib, steelyard
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.libsvm")
    >>> _ = path.write_text("1 1:0.5 3:2e-1\\n-1 2:4\\n")
    >>> steelyard.scan_libsvm(path)
    Extent(rows=2, n_features=3, zero_based=False, labels=array([-1.,  1.]), largest_line=1)
    """
    check_size(block_bytes, "block_bytes")
    rows, labels, found = _scan(path, block_bytes)
    return _extent(rows, labels, found)


def read_with_extent(path: str | os.PathLike[str]) -> tuple[Any, Array, Extent]:
    """:func:`read_libsvm` and :func:`scan_libsvm` at once, for what can be read only once: a pipe."""
    parts = list(_parsed(path, _STRETCH))
    found = _wider([part.range for part in parts])
    columns, base = _columns(found, None, "auto", os.fspath(path))
    X, y, _ = _join(parts, columns, base, False)
    return X, y, _extent(y.size, _few(np.unique(y)), found)


def _few(labels: Array) -> Array | None:
    return labels if labels.size <= _MOST_LABELS else None


# ------------------------------------------------------------------------------------- what may be asked for


def _checked_base(zero_based: Any) -> bool | Literal["auto"]:
    if isinstance(zero_based, str) and zero_based == "auto":
        return "auto"
    if isinstance(zero_based, (bool, np.bool_, int, np.integer)) and zero_based in (0, 1):
        return bool(zero_based)
    raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")


def _checked_features(n_features: Any) -> int | None:
    if n_features is None:
        return None
    if isinstance(n_features, (int, np.integer)) and not isinstance(n_features, bool) and n_features >= 0:
        return int(n_features)
    raise ValueError(f"n_features must be a whole number of columns, at least 0, got {n_features!r}")


def _is_read_once(path: str | os.PathLike[str]) -> bool:
    mode = os.stat(path).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))  # a folder is refused where it is opened


# ---------------------------------------------------------------------------------------- files to parts


class _Mistake(Exception):
    """What is wrong, and where in a stretch."""

    def __init__(self, content: bytes, at: int, complaint: str) -> None:
        self.content, self.at, self.complaint = content, at, complaint


class _Range(NamedTuple):
    """The smallest and the largest index of some lines, and where they are for the first time."""

    smallest: int = 2**62
    smallest_line: int = 0
    largest: int = -1
    largest_line: int = 0

    def after(self, lines: int) -> _Range:
        """The same with line numbers that count from 1, after the lines before."""
        if self.largest < 0:
            return self
        return _Range(self.smallest, self.smallest_line + lines + 1, self.largest, self.largest_line + lines + 1)


@dataclass
class _Part:
    """The lines of one stretch of a file."""

    y: Array
    query: NDArray[np.int64]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    values: Array
    size: int
    lines: int
    range: _Range


class _Room:
    """Where a thread puts the numbers of a stretch before they are copied: the same memory for one after another."""

    def __init__(self) -> None:
        self.rows = self.pairs = -1
        self.odd = np.empty((1024, 4), np.int64)

    def fit(self, content: bytes) -> None:
        """Have room for all of a stretch."""
        # bounds, not counts: memory that is never touched costs nothing, counting would cost a third of the parsing
        rows, pairs = len(content) // 2 + 1, len(content) // 4 + 1
        if len(content) > 4 * _STRETCH:  # a very long line: bounds would take 16 times its bytes
            rows, pairs = content.count(b"\n") + 1, content.count(b":") + 1
        if rows > self.rows:
            self.rows = rows = rows + rows // 8  # the next stretch may be a little longer
            self.y, self.query, self.indptr = np.empty(rows), np.empty(rows, np.int64), np.empty(rows + 1, np.int64)
            self.indptr[0] = 0
        if pairs > self.pairs:
            self.pairs = pairs = pairs + pairs // 8
            self.indices, self.values = np.empty(pairs, np.int64), np.empty(pairs)


def _scan(path: str | os.PathLike[str], block_bytes: int) -> tuple[int, Array | None, _Range]:
    """Rows, labels and indices of a file."""
    rows, found = 0, _Range()
    labels: Array | None = np.empty(0)
    for part in _parsed(path, min(block_bytes, _STRETCH), only_labels=True):
        rows += part.y.size
        labels = None if labels is None else _few(np.union1d(labels, part.y))
        found = _wider([found, part.range])
    return rows, labels, found


def _extent(rows: int, labels: Array | None, found: _Range) -> Extent:
    zero_based = found.smallest == 0
    return Extent(rows, max(found.largest, 0) + zero_based, zero_based, labels, found.largest_line)


def _wider(ranges: list[_Range]) -> _Range:
    """The range of several, in the order of the file."""
    if not ranges:
        return _Range()
    low, high = min(ranges, key=lambda each: each.smallest), max(ranges, key=lambda each: each.largest)
    return _Range(low.smallest, low.smallest_line, high.largest, high.largest_line)


def _parsed(
    path: str | os.PathLike[str], size: int, *, query: bool = False, only_labels: bool = False
) -> Iterator[_Part]:
    """The stretches of a file, in order; several are parsed side by side, in threads: the parser holds no lock."""
    from steelyard._library import get_parser

    parser = get_parser()  # before the threads: it is loaded once
    name, lines = os.fspath(path), 0
    most = os.cpu_count() or 1
    rooms = [_Room() for _ in range(most)]
    futures: deque[Future[_Part]] = deque()
    with ThreadPoolExecutor(most) as pool:
        for content in itertools.chain(read_blocks(path, size), itertools.repeat(b"")):
            if content:
                futures.append(pool.submit(_parse, parser, content, rooms, query, only_labels))
            elif not futures:
                return
            while futures and (not content or len(futures) > most or futures[0].done()):
                try:
                    part = futures.popleft().result()  # in order, so the first mistake is the one raised
                except _Mistake as mistake:
                    raise _error(mistake, name, lines) from None
                part.range = part.range.after(lines)
                lines += part.lines
                yield part


def _parse(parser: Any, content: bytes, rooms: list[_Room], query: bool, only_labels: bool) -> _Part:
    room = rooms.pop()  # there is one for every thread
    try:
        return _parse_in(room, parser, content, query, only_labels)
    finally:
        rooms.append(room)


def _parse_in(room: _Room, parser: Any, content: bytes, query: bool, only_labels: bool) -> _Part:
    room.fit(content)
    text, state = np.frombuffer(content, dtype=np.uint8), np.zeros(11, np.int64)
    while True:
        parser(text, state, room.y, room.query, room.indptr, room.indices, room.values, room.odd)
        result, stopped, rows, count, strange, disorder, lines, *found = state.tolist()
        if strange <= len(room.odd):
            break
        room.odd = np.empty((strange, 4), np.int64)
    # tokens for Python's float come first: one of them may be wrong before the place where the parser stopped
    for kind, index, start, end in room.odd[:strange].tolist():
        (room.y, room.values)[kind][index] = _float(content, start, end, kind)
    if result:
        raise _Mistake(content, stopped, _COMPLAINTS[result])
    pairs = 0 if only_labels else count
    part = _Part(
        room.y[:rows].copy(),
        room.query[: rows if query else 0].copy(),
        room.indptr[: 0 if only_labels else rows + 1].astype(_kind(count)),
        room.indices[:pairs].astype(_kind(found[2])),
        room.values[:pairs].copy(),
        len(content),
        lines,
        _Range(*found),
    )
    return _sorted(part, content) if disorder and not only_labels else part


def _kind(largest: int) -> type[np.signedinteger[Any]]:
    """The smallest type of indices that SciPy takes."""
    return np.int32 if largest < 2**31 - 1 else np.int64


def _sorted(part: _Part, content: bytes) -> _Part:
    """Put the indices of every row in order; a row with an index twice is refused, since it has no one meaning."""
    import scipy.sparse as sp

    X = sp.csr_matrix((part.values, part.indices, part.indptr), shape=(part.y.size, part.range.largest + 1))
    X.sort_indices()
    twice = np.setdiff1d(np.flatnonzero(np.diff(X.indices) == 0) + 1, X.indptr)
    if twice.size:
        row = int(np.searchsorted(X.indptr, twice[0], side="right")) - 1
        at = _second_place(content, row, int(X.indices[twice[0]]))
        raise _Mistake(content, at, "an index may stand only once in a line")
    part.indices, part.values = X.indices, X.data
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
        raise _Mistake(content, start, _COMPLAINTS[3 if kind else 1]) from None


# ------------------------------------------------------------------------------------- parts to a matrix


def _columns(found: _Range, n_features: int | None, zero_based: bool | str, name: str) -> tuple[int, int]:
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


def _join(parts: list[_Part], columns: int, base: int, query_id: bool) -> tuple[Any, Array, NDArray[np.int64]]:
    """The matrix, the labels and the queries of parts, which are used up: no two copies of all of them at a time."""
    import scipy.sparse as sp

    rows, count = sum(part.y.size for part in parts), sum(part.values.size for part in parts)
    kind = np.int32 if max(columns, count) < 2**31 else np.int64
    y, query, indptr = np.empty(rows), np.empty(rows if query_id else 0, np.int64), np.zeros(rows + 1, kind)
    indices, values = np.empty(count, kind), np.empty(count)
    row, pair = rows, count
    while parts:  # the last one first: memory that was taken last can be given back first
        part = parts.pop()
        end, last = row, pair
        row, pair = row - part.y.size, pair - part.values.size
        y[row:end] = part.y
        if query_id:
            query[row:end] = part.query
        np.add(part.indptr[1:], pair, out=indptr[row + 1 : end + 1], casting="unsafe")
        np.subtract(part.indices, base, out=indices[pair:last], casting="unsafe")
        values[pair:last] = part.values
    return sp.csr_matrix((values, indices, indptr), shape=(rows, columns)), y, query


# ------------------------------------------------------------------------------------------ what is wrong


def _error(mistake: _Mistake, name: str, lines: int) -> ValueError:
    """A mistake as the user is told of it; ``lines`` of the file are before its stretch."""
    content, at, complaint = mistake.content, mistake.at, mistake.complaint
    line = lines + content.count(b"\n", 0, at) + 1
    start = content.rfind(b"\n", 0, at) + 1
    token = content[at : at + 60].split(b"\n")[0].split()
    shown = token[0].decode("utf-8", "replace") if token else "the end of the line"
    if shown.startswith("|"):
        complaint = "expected index:value; this looks like Vowpal Wabbit's format, which is not read here"
    hint = "" if shown.startswith("|") else _looks_like(content, start, line)
    return ValueError(f"{name}, line {line}, column {at - start + 1}: {complaint}, got {shown!r}{hint}")


def _looks_like(content: bytes, start: int, line: int) -> str:
    """What a line that cannot be read seems to be, if not LIBSVM text."""
    if line == 1:
        for magic, kind in _MAGIC.items():
            if content.startswith(magic):
                return f"; this looks like {kind}"
    text = content[start : start + 1000].split(b"\n")[0].split(b"#")[0].strip()
    tokens = text.split()
    if b"\0" in text:
        return f"; this looks like a binary file, {_CONVERT}"
    if text.startswith((b"{", b"[")):
        return f"; this looks like JSON, {_CONVERT}"
    if tokens and re.search(rb"[,;]", tokens[0]) and any(re.match(rb"\d+:", token) for token in tokens[1:]):
        return "; a line has one label here, not several"
    if b":" not in text or (tokens and re.search(rb"[,;]", tokens[0])):
        if re.search(rb"[,;]", text):
            return f"; this looks like CSV, {_CONVERT}"
        if b"\t" in text:
            return f"; this looks like a table with tabs, {_CONVERT}"
        if line == 1 and tokens and re.match(rb'"?[A-Za-z_]', tokens[0]):
            return f"; this looks like the header of a table, {_CONVERT}"
    return ""
