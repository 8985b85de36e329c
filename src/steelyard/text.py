"""The LIBSVM text format → a CSR matrix and labels, at the speed of the disk."""

from __future__ import annotations

import itertools
import mmap
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.files import read_bytes
from steelyard.losses import Array

_STRETCH = 1 << 22  # bytes that are worth a thread

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
    name = os.fspath(path)
    content = read_bytes(path)
    y, query, indptr, indices, values, disorder = _parse(content, name)
    base = _first_index(indices, zero_based, name)
    indices -= base
    columns = int(indices.max()) + 1 if indices.size else 0
    if n_features is not None:
        if columns > n_features:
            raise ValueError(f"{name}: the largest index needs {columns} columns, but n_features={n_features}")
        columns = n_features
    X = _matrix(values, indices, indptr, columns)
    if disorder:
        _sort(X, base, content, name)
    return (X, y, query) if query_id else (X, y)


class _Part(NamedTuple):
    """The lines of one stretch of a file."""

    y: Array
    query: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: Array
    disorder: int


def _parse(content: bytes | mmap.mmap, name: str) -> _Part:
    """Parse stretches of whole lines side by side, in threads: the parser holds no lock."""
    text = np.frombuffer(content, dtype=np.uint8)
    count = max(1, min(os.cpu_count() or 1, text.size // _STRETCH))
    cuts = [0]
    for i in range(1, count):
        cuts.append(max(cuts[-1], content.find(b"\n", text.size * i // count) + 1 or text.size))
    cuts.append(text.size)
    if count == 1:
        return _parse_stretch(text, 0, text.size, name)
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(_parse_stretch, text, lo, hi, name) for lo, hi in itertools.pairwise(cuts)]
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


def _parse_stretch(text: NDArray[np.uint8], lo: int, hi: int, name: str) -> _Part:
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
        (y, values)[kind][index] = _float(text, lo + start, lo + end, kind, name)
    if result:
        raise _error(text, lo + stopped, _COMPLAINTS[result], name)
    small = count == 0 or int(indices[:count].max()) < 2**31 - 1
    positions = indices[:count].astype(np.int32 if small else np.int64)
    return _Part(y[:rows], query[:rows], indptr[: rows + 1], positions, values[:count], disorder)


def _float(text: NDArray[np.uint8], start: int, end: int, kind: int, name: str) -> float:
    token = text[start:end].tobytes()
    try:
        if b"_" in token:  # Python's float takes 1_000, the format does not
            raise ValueError
        return float(token)
    except ValueError:
        raise _error(text, start, _COMPLAINTS[3 if kind else 1], name) from None


def _error(text: NDArray[np.uint8], at: int, complaint: str, name: str) -> ValueError:
    before = text[:at].tobytes()
    line = before.count(b"\n") + 1
    column = at - (before.rfind(b"\n") + 1) + 1
    token = text[at : at + 60].tobytes().split(b"\n")[0].split()
    shown = token[0].decode("utf-8", "replace") if token else "the end of the line"
    return ValueError(f"{name}, line {line}, column {column}: {complaint}, got {shown!r}")


def _first_index(indices: NDArray[Any], zero_based: bool | str, name: str) -> int:
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    smallest = int(indices.min()) if indices.size else 1
    if zero_based is False and smallest == 0:
        raise ValueError(f"{name}: an index is 0, but with zero_based=False they start at 1")
    return 0 if zero_based is True or (zero_based == "auto" and smallest == 0) else 1


def _matrix(values: NDArray[Any], indices: NDArray[Any], indptr: NDArray[np.int64], columns: int) -> Any:
    import scipy.sparse as sp

    small = max(columns, values.size) < 2**31
    kind = np.int32 if small else np.int64
    return sp.csr_matrix(
        (values, indices.astype(kind, copy=False), indptr.astype(kind)), shape=(indptr.size - 1, columns)
    )


def _sort(X: Any, base: int, content: bytes | mmap.mmap, name: str) -> None:
    """Put the indices of every row in order; a row with an index twice is refused, since it has no one meaning."""
    X.sort_indices()
    twice = np.setdiff1d(np.flatnonzero(np.diff(X.indices) == 0) + 1, X.indptr)
    if twice.size:
        row = int(np.searchsorted(X.indptr, twice[0], side="right")) - 1
        at = _second_place(bytes(content), row, int(X.indices[twice[0]]) + base)
        raise _error(np.frombuffer(content, dtype=np.uint8), at, "an index may stand only once in a line", name)


def _second_place(content: bytes, row: int, index: int) -> int:
    """Where an index stands for the second time in the line of an example."""
    lines = (line for line in re.finditer(rb"[^\n]*", content) if line[0].split(b"#")[0].split())
    start = next(itertools.islice(lines, row, None)).start()
    places = re.compile(rb"(?<=\s)\+?0*%d:" % index).finditer(content, start)
    second = next(itertools.islice(places, 1, None), None)
    return second.start() if second else start
