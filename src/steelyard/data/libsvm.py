"""The LIBSVM text format → matrices and labels, at the speed of the disk: all at once, or block by block."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from steelyard.data.block import Block, inspected
from steelyard.data.files import can_be_read_again, check_size, read_blocks
from steelyard.data.hashing import check_bits
from steelyard.data.libsvm_format import (
    Joined,
    LibsvmFormat,
    columns_of,
    join_parts,
    lone_part,
    range_in_file,
    widest,
)
from steelyard.data.source import Extent, Rows, few_labels
from steelyard.data.stretch import BOM, Part, Range
from steelyard.data.text import STRETCH, Mark, TextSource, read_parts
from steelyard.losses import Array

_BLOCK = 1 << 24  # bytes of a file that are parsed at a time, in a stream
_KEPT = 1 << 27  # bytes of parsed rows that a source keeps, so that a file of usual size is parsed once


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
    parts = list(read_parts([os.fspath(path)], LibsvmFormat(query=query_id), STRETCH))
    columns, base = columns_of(widest([range_in_file(part) for part in parts]), n_features, zero_based, os.fspath(path))
    joined = join_parts(parts, columns, base, query_id)
    X = _matrix(joined, columns)
    return (X, joined.y, joined.query) if query_id else (X, joined.y)


def _matrix(joined: Joined, columns: int) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix((joined.values, joined.indices, joined.indptr), shape=(joined.y.size, columns))


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
    source = LibsvmSource(path, n_features=n_features, zero_based=zero_based, block_bytes=block_bytes, kept_bytes=0)
    if n_features == "auto" and not can_be_read_again(path):
        raise ValueError(
            f"{os.fspath(path)} is a pipe or a device, which can be read only once: say how many columns there are "
            "with n_features=, or read it whole with read_libsvm"
        )
    return ((X, y) for X, y, _ in source)


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
    return LibsvmSource(path, block_bytes=block_bytes, kept_bytes=0).extent()


class LibsvmSource(TextSource):
    """LIBSVM files as a source of rows.

    Parameters
    ----------
    path : file to read, or several, or a pipe; ``-`` is standard input
    n_features, zero_based, block_bytes : as for :func:`stream_libsvm`
    kept_bytes : int
        Up to so many bytes of parsed rows are kept: a file of that size is parsed once, a larger one once for
        :meth:`extent` and once for each pass. What can be read only once is kept whole.
    start : Mark
        Where :meth:`blocks` begins, if not with the first line.
    bits : int, optional
        Take the lowest so many bits of every index as its column.
    weighted : bool
        Whether a label may have a weight, ``label:weight``. Without, all weights are 1.
    on_error : {"stop", "skip"}

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from steelyard.data.libsvm import LibsvmSource
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.libsvm")
    >>> _ = path.write_text("1 1:0.5 3:2e-1\\n\\n-1 2:4\\n")
    >>> source = LibsvmSource(path)
    >>> for X, y, w in source:
    ...     print(X.toarray(), y, w)
    [[0.5 0.  0.2]
     [0.  4.  0. ]] [ 1. -1.] [1. 1.]
    >>> source.extent().n_features, source.place(1)
    (3, 'line 3')
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        n_features: int | Literal["auto"] | None = "auto",
        zero_based: bool | Literal["auto"] = "auto",
        block_bytes: int = _BLOCK,
        kept_bytes: float = _KEPT,
        start: Mark | None = None,
        bits: int | None = None,
        weighted: bool = False,
        on_error: str = "stop",
    ) -> None:
        check_size(block_bytes, "block_bytes")
        form = LibsvmFormat(weighted=weighted)
        super().__init__([path] if isinstance(path, (str, os.PathLike)) else path, form, on_error=on_error)
        self._lines = form
        self._block_bytes = int(block_bytes)
        self._stretch = min(self._block_bytes, STRETCH)
        self._start = start
        self._zero_based = _checked_base(zero_based)
        self._bits = None if bits is None else check_bits(bits)
        self._scans = isinstance(n_features, str) and n_features == "auto" and bits is None
        self._n_features = None if self._scans or bits is not None else _checked_features(n_features)
        self._kept_bytes = math.inf if kept_bytes and not self.read_again else kept_bytes
        self._kept: list[Part] | None = None
        self._found: Range | None = None
        self._rows_found, self._labels = 0, np.empty(0)
        self._many_labels = False
        self._base: int | None = None

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"format": "libsvm", "zero_based": self._base == 0}
        if self._lines.weighted:
            found["weight"] = "label"
        return found if self._bits is None else {**found, "bits": self._bits}

    # ------------------------------------------------------------------------------------------------------ the scan

    def extent(self) -> Extent:
        found = self._scan()
        columns, base = self._columns(found, self._n_features, self._zero_based)
        labels = None if self._many_labels else self._labels
        return Extent(self._rows_found, columns, base == 0, labels, found.largest_line)

    def _scan(self) -> Range:
        """Go through the file once, keeping what is parsed as long as it is not too much."""
        if self._found is not None:
            return self._found
        self._rows_found, found, size = 0, Range(), 0
        self._kept = [] if self._kept_bytes > 0 else None
        self._lines.only_labels = self._kept is None
        try:
            for part in self._read_parts():
                self._rows_found += part.y.size
                if not self._many_labels:
                    labels = few_labels(np.union1d(self._labels, part.y))
                    self._many_labels, self._labels = labels is None, np.empty(0) if labels is None else labels
                found = widest([found, range_in_file(part)])
                if self._kept is not None:
                    self._kept.append(part)
                    size += part.nbytes
                    if size > self._kept_bytes:
                        self._kept, self._lines.only_labels = None, True
        finally:
            self._lines.only_labels = False
        self._found = found
        return found

    def _columns(self, found: Range, n_features: int | None, zero_based: bool | str) -> tuple[int, int]:
        """How many columns there are, and which index is the first."""
        if self._bits is not None:
            return 1 << self._bits, 0
        columns, base = columns_of(found, n_features, zero_based, self.name)
        self._base = base
        return columns, base

    # ---------------------------------------------------------------------------------------------------- in blocks

    def blocks(self) -> Iterator[Rows]:
        n_features, zero_based = self._n_features, self._zero_based is True
        if self._scans:
            n_features, base = self._columns(self._scan(), None, self._zero_based)
            zero_based = base == 0
        before = 0 if self._start is None else self._start.row
        self._places.clear()
        for parts in self._block_parts(self._kept or self._read_parts()):
            found = widest([range_in_file(part) for part in parts])
            columns, base = self._columns(found, n_features, zero_based)
            rows = self._joined(list(parts), columns, base, before)
            before += rows.y.size
            yield rows

    def stream(self) -> Iterator[Rows]:
        """Without a scan: the first block says where indices start, and the columns grow as larger ones come."""
        if self._kept is not None or self._n_features is not None:
            yield from self.blocks()
            return
        parts, before = self._read_parts(), 0
        self._places.clear()
        first = next(self._block_parts(parts), [])
        columns, base = self._columns(widest([range_in_file(part) for part in first]), None, self._zero_based)
        while first:
            rows = self._alone(first.pop(0), columns, base, before)
            before += rows.y.size
            yield rows
        for part in parts:  # one by one: so they are parsed while others are learned
            columns = max(columns, self._columns(range_in_file(part), None, base == 0)[0])
            rows = self._alone(part, columns, base, before)
            before += rows.y.size
            yield rows

    def _block_parts(self, each: Iterable[Part]) -> Iterator[list[Part]]:
        """The parts of the file, as many together as make a block."""
        parts: list[Part] = []
        size = 0
        for part in each:
            parts.append(part)
            size += part.size
            if size >= self._block_bytes:
                yield parts
                parts, size = [], 0
        if parts:
            yield parts

    def whole(self) -> Rows:
        self._kept_bytes, self._remembered = math.inf, sys.maxsize
        found = self._scan()
        if self._kept is None:
            self._kept = list(self._read_parts())
        columns, base = self._columns(found, self._n_features, self._zero_based)
        parts, self._kept = self._kept, None
        return self._joined(parts, columns, base, 0)

    def _joined(self, parts: list[Part], columns: int, base: int, before: int) -> Rows:
        at = before
        for part in parts:
            self.remember(part, at)
            at += part.y.size
        return self._as_rows(join_parts(parts, columns, base), columns, before)

    def _alone(self, part: Part, columns: int, base: int, before: int) -> Rows:
        """:meth:`_joined` of a part that nobody else has: nothing is copied."""
        self.remember(part, before)
        return self._as_rows(lone_part(part, columns, base), columns, before)

    def _as_rows(self, joined: Joined, columns: int, before: int) -> Rows:
        weight = joined.weight if joined.weight.size else np.ones(joined.y.size)
        if self._bits is not None:
            return Rows(self._masked(joined, columns), joined.y, weight, before)
        unsigned = joined.indices.view(f"u{joined.indices.itemsize}")
        block = Block(joined.values, unsigned, joined.indptr.astype(np.uint64), columns, False)
        return Rows(block, joined.y, weight, before)

    @staticmethod
    def _masked(joined: Joined, columns: int) -> Block:
        indices = (joined.indices & (columns - 1)).astype(np.uint32)
        indptr = joined.indptr.astype(np.uint64)
        return inspected(Block(joined.values, indices, indptr, columns, False, inspected=False))

    # -------------------------------------------------------------------------------------------------------- places

    def _column(self, file: str, line: int, column: int | None) -> str:
        if column is None:
            return ""
        index = column + (1 if self._base is None and self._zero_based is not True else self._base or 0)
        if not can_be_read_again(file) if os.path.exists(file) else True:
            return f", index {index}"
        found = re.search(rb"(?<=\s)\+?0*%d:" % index, _line_of(file, line))
        return f", column {found.start() + 1}, index {index}" if found else f", index {index}"


def _line_of(file: str, number: int) -> bytes:
    """A line of a file, counted from 1, without its comment."""
    for content in read_blocks(file, STRETCH):
        lines = content.removeprefix(BOM).removesuffix(b"\n").split(b"\n")
        if number <= len(lines):
            return lines[number - 1].split(b"#")[0]
        number -= len(lines)
    return b""


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
