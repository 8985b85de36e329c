"""Where rows come from: streams of blocks with labels and weights, whatever they are read from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block, as_block
from steelyard.data.checks import DataError, check_weights
from steelyard.losses import Array

MOST_LABELS = 1000  # distinct labels that are kept: with more it is not a classification
MOST_NAMES = 10_000  # of features, the first that are met
PLACES = 1 << 18  # rows of a stream of which it is remembered where they stand
_SHOWN = 3  # of the mistakes that are skipped


class Extent(NamedTuple):
    """What a model must know of a file before it reads the first row."""

    rows: int
    n_features: int
    zero_based: bool
    labels: Array | None
    """The distinct labels, in order; None where there are more than a classification has."""
    largest_line: int = 0
    """The line of the largest index, from 1: where to look if it is too large. 0 where there is no index."""


class Rows(NamedTuple):
    """Some rows of a source, as learners take them."""

    block: Block
    y: Array
    weight: Array
    before: int
    """How many rows of the source come before them."""


class Skipped:
    """Rows that were left out because something was wrong with them: how many, and what it was for the first few."""

    def __init__(self) -> None:
        self.count = 0
        self.shown: list[str] = []

    def add(self, error: ValueError | str) -> None:
        """One more of them."""
        self.count += 1
        if len(self.shown) < _SHOWN:
            self.shown.append(str(error))

    def rest(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first of some rows is added already: where enough are shown, the others are counted with it."""
        if len(self.shown) < _SHOWN:
            return rows[:1]
        self.count += rows.size - 1
        return rows


class Source:
    """A stream of rows that can be gone through, and for most of them more than once.

    Subclasses say the four methods below. Iterating gives users ``(X, y, w)``, X a CSR matrix.
    """

    name: str
    read_again = True
    """Whether it can be gone through more than once."""
    label_names: list[str] | None = None
    """Text labels in the order in which they came: y then holds places among them. None where labels are numbers."""
    labels_may_lack = False
    """Whether a row may have no label, and NaN for it."""
    skips = False
    """Whether what cannot be read or learned is left out and counted, rather than the end of it all."""
    gaps: deque[int] | None = None
    """Where rows could not be read and were left out: how many rows came before each. Noted if a deque is put here."""
    missing = 0
    """How many cells were empty in the last pass."""
    bytes_read = 0
    """In the last pass; to be compared with ``total_bytes``, where these are known."""
    total_bytes: int | None = None

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        """Names of features, of the first that were met."""
        self.skipped = Skipped()
        """What was left out in the last pass."""

    def schema(self) -> dict[str, Any]:
        """What tells others how to read such rows in the same way: anything that JSON can hold."""
        return {}

    def stream(self) -> Iterator[Rows]:
        """The rows in one pass, without a look at them before: columns may become more from block to block."""
        return self.blocks()

    def extent(self) -> Extent:
        """How large it is. It may have to be read for that."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Rows]:
        """The rows, some at a time."""
        raise NotImplementedError

    def whole(self) -> Rows:
        """All the rows at once."""
        raise NotImplementedError

    def place(self, row: int, column: int | None = None) -> str:
        """Where a row stands, in words for people; with a column, which value of it."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any], Array]]:
        from scipy.sparse import csr_matrix

        for block, y, weight, _ in self.blocks():
            labels = self._shown_labels(y.copy())
            if block.dense:
                yield csr_matrix(block.data.reshape(block.n_rows, block.n_features)), labels, weight
                continue
            signed = block.indices.view(block.indices.dtype.str.replace("u", "i"))
            end = int(block.indptr[-1])  # copies, since users may keep them: see Recycled
            parts = (block.data[:end].copy(), signed[:end].copy(), block.indptr.astype(signed.dtype))
            yield csr_matrix(parts, shape=(block.n_rows, block.n_features)), labels, weight

    def _shown_labels(self, y: Array) -> NDArray[Any]:
        """Labels as users know them: text where they are text, and None for a row without."""
        if self.label_names is None:
            return y
        lacking = np.isnan(y)
        names = np.array([*self.label_names, None], dtype=object)
        found = names[np.where(lacking, len(self.label_names), y).astype(np.intp)]
        return found if lacking.any() else found.astype(str)


@contextmanager
def told_of(source: Source, before: int = 0, kept: NDArray[np.intp] | None = None) -> Iterator[None]:
    """What is wrong with a row of a block, told of the source; ``before`` of its rows were before the block.

    Where not all rows of the source came into the block, ``kept`` says which did.
    """
    try:
        yield
    except DataError as error:
        row = error.row if kept is None else int(kept[error.row])
        place = source.place(before + row, error.column)
        what = {"feature": "the value", "label": "the label", "weight": "the weight"}[error.part]
        joined = "it is " if error.part == "label" else ""
        raise ValueError(f"{source.name}, {place} has {what} {error.shown}: {joined}{error.reason}") from None


class ArraySource(Source):
    """Arrays, frames and sparse matrices as a source, in blocks of ``block_rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.data.source import ArraySource
    >>> source = ArraySource(np.eye(3), [1.0, -1.0, 1.0], block_rows=2)
    >>> [X.shape for X, y, w in source]
    [(2, 3), (1, 3)]
    >>> source.extent().labels
    array([-1.,  1.])
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, *, block_rows: int = 1 << 16) -> None:
        super().__init__()
        self.name = type(X).__name__
        self._block = as_block(X)
        self._y = np.ascontiguousarray(y, dtype=np.float64)
        if self._y.shape != (self._block.n_rows,):
            raise ValueError(
                f"y must hold one label for each of the {self._block.n_rows} rows of X, got shape {self._y.shape}"
            )
        self._weight = check_weights(sample_weight, self._block.n_rows)
        self._block_rows = max(int(block_rows), 1)

    def extent(self) -> Extent:
        return Extent(self._block.n_rows, self._block.n_features, True, few_labels(np.unique(self._y)))

    def blocks(self) -> Iterator[Rows]:
        for start in range(0, self._block.n_rows, self._block_rows):
            rows = slice(start, min(start + self._block_rows, self._block.n_rows))
            yield Rows(cut_block(self._block, rows), self._y[rows], self._weight[rows], start)

    def whole(self) -> Rows:
        return Rows(self._block, self._y, self._weight, 0)

    def place(self, row: int, column: int | None = None) -> str:
        return f"row {row}" if column is None else f"row {row}, column {column}"


def cut_block(block: Block, rows: slice) -> Block:
    """Some rows of a block, which share its memory."""
    indptr: NDArray[np.uint64] = block.indptr[rows.start : rows.stop + 1]
    lo, hi = int(indptr[0]), int(indptr[-1])
    indices = block.indices if block.dense else block.indices[lo:hi]
    return Block(block.data[lo:hi], indices, indptr - indptr[0], block.n_features, block.dense, block.inspected)


def take_rows(block: Block, rows: NDArray[np.intp]) -> Block:
    """Some rows of a block, copied."""
    sizes = np.diff(block.indptr)[rows].astype(np.intp)
    ends = np.append(0, np.cumsum(sizes))
    places = np.repeat(block.indptr[rows].astype(np.intp) - ends[:-1], sizes) + np.arange(ends[-1])
    indices = block.indices if block.dense else block.indices[places]
    return replace(block, data=block.data[places], indices=indices, indptr=ends.astype(np.uint64))


def sound_rows(source: Source, rows: Rows, check: Callable[[Rows], Any]) -> tuple[Rows, NDArray[np.intp]]:
    """Those of a source's rows that pass a check, and which they are; others are refused, or left out and noted."""
    kept = np.arange(rows.y.size)
    while True:
        try:
            with told_of(source, rows.before, kept):
                check(rows)
            return rows, kept
        except ValueError as told:
            if not source.skips or not isinstance(told.__context__, DataError):
                raise
            source.skipped.add(told)
            others = np.delete(np.arange(kept.size), source.skipped.rest(told.__context__.rows))
            kept = kept[others]
            rows = Rows(take_rows(rows.block, others), rows.y[others], rows.weight[others], rows.before)


def distinct(labels: Array) -> Array:
    """The different labels, in order, without NaN. (``np.unique`` imports NumPy's masked arrays.)"""
    ordered = np.sort(labels[~np.isnan(labels)])
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if ordered.size else ordered


def few_labels(labels: Array) -> Array | None:
    """The labels, or None where there are too many of them to be classes."""
    return labels if labels.size <= MOST_LABELS else None
