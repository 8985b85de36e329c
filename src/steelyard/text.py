"""The LIBSVM text format → CSR matrices and labels, at the speed of the disk: all at once, or block by block."""

from __future__ import annotations

import itertools
import mmap
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.files import read_blocks, read_bytes
from steelyard.losses import Array

_STRETCH = 1 << 22  # bytes that are worth a thread
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
    path : file to read
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
    X, part, _ = _read(read_bytes(path), n_features, zero_based, _Source(os.fspath(path), 0))
    return (X, part.y, part.query) if query_id else (X, part.y)


def stream_libsvm(
    path: str | os.PathLike[str], *, n_features: int | None, zero_based: bool = False, block_bytes: int = _BLOCK
) -> Iterator[tuple[Any, Array]]:
    """Read a LIBSVM / SVMlight file block by block, in constant memory.

    Parameters
    ----------
    path : file to read, or a pipe
    n_features : int or None
        Columns of every block; :func:`scan_libsvm` finds it. With None, a block has as many as it needs.
    zero_based : bool
        Whether the first column is index 0, rather than 1.
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
    >>> for X, y in steelyard.stream_libsvm(path, n_features=3):
    ...     _ = learner.learn(X, y)
    """
    for content, source in _texts(path, block_bytes):
        X, part, _ = _read(content, n_features, zero_based, source)
        yield X, part.y


class Extent(NamedTuple):
    """What a model must know of a file before it reads the first row."""

    rows: int
    n_features: int
    zero_based: bool
    labels: Array | None
    """The distinct labels, in order; None where there are more than a classification has."""


def scan_libsvm(path: str | os.PathLike[str], *, block_bytes: int = _BLOCK) -> Extent:
    """Read a LIBSVM file once, in constant memory, to see how large it is.

    Examples
    --------
    >>> import tempfile, pathlib, steelyard
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.libsvm")
    >>> _ = path.write_text("1 1:0.5 3:2e-1\\n-1 2:4\\n")
    >>> steelyard.scan_libsvm(path)
    Extent(rows=2, n_features=3, zero_based=False, labels=array([-1.,  1.]))
    """
    rows, smallest, largest = 0, 1, 0
    labels: Array | None = np.empty(0)
    for content, source in _texts(path, block_bytes):
        part = _parse(content, source)
        rows += part.y.size
        if part.indices.size:
            smallest, largest = min(smallest, int(part.indices.min())), max(largest, int(part.indices.max()))
        labels = None if labels is None else _few(np.union1d(labels, part.y))
    return Extent(rows, largest + (smallest == 0), smallest == 0, labels)


def read_with_extent(path: str | os.PathLike[str]) -> tuple[Any, Array, Extent]:
    """:func:`read_libsvm` and :func:`scan_libsvm` at once, for what can be read only once: a pipe."""
    X, part, base = _read(read_bytes(path), None, "auto", _Source(os.fspath(path), 0))
    return X, part.y, Extent(part.y.size, X.shape[1], base == 0, _few(np.unique(part.y)))


def _few(labels: Array) -> Array | None:
    return labels if labels.size <= _MOST_LABELS else None


class _Source(NamedTuple):
    """Where some text comes from: a file, and how many of its lines are before the text."""

    name: str
    lines: int


def _texts(path: str | os.PathLike[str], block_bytes: int) -> Iterator[tuple[bytes, _Source]]:
    """The blocks of a file, each with where it comes from."""
    lines = 0
    for content in read_blocks(path, block_bytes):
        yield content, _Source(os.fspath(path), lines)
        lines += content.count(b"\n")


class _Part(NamedTuple):
    """The lines of one stretch of a file."""

    y: Array
    query: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: Array
    disorder: int


def _read(
    content: bytes | mmap.mmap, n_features: int | None, zero_based: bool | str, source: _Source
) -> tuple[Any, _Part, int]:
    """The matrix of a text, its parts, and the index of the first column."""
    part = _parse(content, source)
    base = _first_index(int(part.indices.min()) if part.indices.size else 1, zero_based, source)
    return _matrix(part, base, n_features, content, source), part, base


def _parse(content: bytes | mmap.mmap, source: _Source) -> _Part:
    """Parse stretches of whole lines side by side, in threads: the parser holds no lock."""
    text = np.frombuffer(content, dtype=np.uint8)
    count = max(1, min(os.cpu_count() or 1, text.size // _STRETCH))
    cuts = [0]
    for i in range(1, count):
        cuts.append(max(cuts[-1], content.find(b"\n", text.size * i // count) + 1 or text.size))
    cuts.append(text.size)
    if count == 1:
        return _parse_stretch(text, 0, text.size, source)
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(_parse_stretch, text, lo, hi, source) for lo, hi in itertools.pairwise(cuts)]
        parts = [future.result() for future in futures]  # in order, so the first mistake of the file is the one raised
    starts = np.cumsum([0] + [part.values.size for part in parts])
    indptr = [part.indptr[1:] + start for part, start in zip(parts, starts, strict=False)]
    return _Part(
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.query for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
        sum(part.disorder for part in parts),
    )


def _parse_stretch(text: NDArray[np.uint8], lo: int, hi: int, source: _Source) -> _Part:
    from steelyard._library import get_parser

    # bounds, not counts: memory that is never touched costs nothing, counting would cost a third of the parsing
    rows, pairs = (hi - lo) // 2 + 1, (hi - lo) // 4 + 1
    y, values = np.empty(rows), np.empty(pairs)
    query, indices = np.empty(rows, np.int64), np.empty(pairs, np.int64)
    indptr, state = np.empty(rows + 1, np.int64), np.zeros(6, np.int64)
    indptr[0] = 0
    odd = np.empty((1024, 4), np.int64)
    while True:
        get_parser()(text[lo:hi], state, y, query, indptr, indices, values, odd)
        result, stopped, rows, count, strange, disorder = (int(v) for v in state)
        if strange <= len(odd):
            break
        odd = np.empty((strange, 4), np.int64)
    # tokens for Python's float come first: one of them may be wrong before the place where the parser stopped
    for kind, index, start, end in odd[:strange].tolist():
        (y, values)[kind][index] = _float(text, lo + start, lo + end, kind, source)
    if result:
        raise _error(text, lo + stopped, _COMPLAINTS[result], source)
    small = count == 0 or int(indices[:count].max()) < 2**31 - 1
    positions = indices[:count].astype(np.int32 if small else np.int64)
    return _Part(y[:rows], query[:rows], indptr[: rows + 1], positions, values[:count], disorder)


def _float(text: NDArray[np.uint8], start: int, end: int, kind: int, source: _Source) -> float:
    token = text[start:end].tobytes()
    try:
        if b"_" in token:  # Python's float takes 1_000, the format does not
            raise ValueError
        return float(token)
    except ValueError:
        raise _error(text, start, _COMPLAINTS[3 if kind else 1], source) from None


def _error(text: NDArray[np.uint8], at: int, complaint: str, source: _Source) -> ValueError:
    before = text[:at].tobytes()
    line = source.lines + before.count(b"\n") + 1
    column = at - (before.rfind(b"\n") + 1) + 1
    token = text[at : at + 60].tobytes().split(b"\n")[0].split()
    shown = token[0].decode("utf-8", "replace") if token else "the end of the line"
    if shown.startswith("|"):
        complaint = "expected index:value; this looks like Vowpal Wabbit's format, which is not read here"
    return ValueError(f"{source.name}, line {line}, column {column}: {complaint}, got {shown!r}")


def _first_index(smallest: int, zero_based: bool | str, source: _Source) -> int:
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    if zero_based is False and smallest == 0:
        raise ValueError(f"{source.name}: an index is 0, but with zero_based=False they start at 1")
    return 0 if zero_based is True or (zero_based == "auto" and smallest == 0) else 1


def _matrix(part: _Part, base: int, n_features: int | None, content: bytes | mmap.mmap, source: _Source) -> Any:
    import scipy.sparse as sp

    indices = part.indices
    indices -= base
    columns = int(indices.max()) + 1 if indices.size else 0
    if n_features is not None:
        if columns > n_features:
            raise ValueError(f"{source.name}: the largest index needs {columns} columns, but n_features={n_features}")
        columns = n_features
    kind = np.int32 if max(columns, part.values.size) < 2**31 else np.int64
    arrays = (part.values, indices.astype(kind, copy=False), part.indptr.astype(kind))
    X = sp.csr_matrix(arrays, shape=(part.y.size, columns))
    if part.disorder:
        _sort(X, base, content, source)
    return X


def _sort(X: Any, base: int, content: bytes | mmap.mmap, source: _Source) -> None:
    """Put the indices of every row in order; a row with an index twice is refused, since it has no one meaning."""
    X.sort_indices()
    twice = np.setdiff1d(np.flatnonzero(np.diff(X.indices) == 0) + 1, X.indptr)
    if twice.size:
        row = int(np.searchsorted(X.indptr, twice[0], side="right")) - 1
        at = _second_place(bytes(content), row, int(X.indices[twice[0]]) + base)
        raise _error(np.frombuffer(content, dtype=np.uint8), at, "an index may stand only once in a line", source)


def _second_place(content: bytes, row: int, index: int) -> int:
    """Where an index stands for the second time in the line of an example."""
    lines = (line for line in re.finditer(rb"[^\n]*", content) if line[0].split(b"#")[0].split())
    start = next(itertools.islice(lines, row, None)).start()
    places = re.compile(rb"(?<=\s)\+?0*%d:" % index).finditer(content, start)
    second = next(itertools.islice(places, 1, None), None)
    return second.start() if second else start
