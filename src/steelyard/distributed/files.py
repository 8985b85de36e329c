"""Files that workers read themselves: what is in them, and some rows of them, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steelyard.data.block import Block
from steelyard.data.checks import DataError, check_finite
from steelyard.data.files import SUFFIXES
from steelyard.data.libsvm import LibsvmSource
from steelyard.data.libsvm_format import LibsvmFormat, columns_of, range_in_file, widest
from steelyard.data.source import Rows, Source, told_of
from steelyard.data.stretch import Part, Range
from steelyard.data.text import STRETCH, Mark, read_parts
from steelyard.distributed.found import Found, add_up
from steelyard.distributed.tasks import cut_rows

if TYPE_CHECKING:
    from steelyard.estimators.base import OnlineEstimator

SPLIT_BYTES = 1 << 26
"""A file that can be read from anywhere counts as a partition for each so many bytes."""


def scan_file(number: int, model: OnlineEstimator, path: str) -> Found:
    """Read a file once, in constant memory; what cannot be learned from is refused by line."""
    name = f"partition {number}, {path}"
    source = LibsvmSource(path, n_features=None, zero_based=True, kept_bytes=0)
    source.name = name
    at, marks, size = Mark(), [], 0
    span, weighed = Range(), []
    with _told_of(number, path):
        for part in read_parts([path], LibsvmFormat(), STRETCH):
            source.remember(part, at.row)
            with told_of(source, at.row):
                _check_values(part)
                weighed.append(model._weigh_labels(part.y, np.ones(part.y.size)))
            marks.append(at)
            at = at.after(part)
            span = widest([span, range_in_file(part)])
    if Path(path).suffix.lower() not in SUFFIXES[1:]:
        size = at.byte
    if not at.row:
        return Found(name, 0)
    labels, mass = add_up(weighed)
    return Found(name, at.row, labels=labels, mass=mass, range=span, marks=tuple(marks), size=size)


@contextmanager
def _told_of(number: int, path: str) -> Iterator[None]:
    """What is wrong with a file, with its number and name before."""
    try:
        yield
    except ValueError as error:
        message = str(error).removeprefix(f"partition {number}, ")
        where = "" if message.startswith(path) else f"{path}: "
        raise ValueError(f"partition {number}, {where}{message}") from None


def _check_values(part: Part) -> None:
    bad = np.flatnonzero(~np.isfinite(part.y))
    if bad.size:
        raise DataError("label", int(bad[0]), None, float(part.y[bad[0]]), "not finite")
    unsigned = part.indices.view(f"u{part.indices.itemsize}")
    check_finite(Block(part.values, unsigned, part.indptr.astype(np.uint64), part.range.largest + 1, False))


def common_columns(
    found: Sequence[Found], paths: Sequence[str], n_features: int | None, zero_based: Any
) -> tuple[int, bool]:
    """How many columns all files have together, and whether the first of them is index 0."""
    if isinstance(zero_based, str):
        zero_based = any(each.range.smallest == 0 for each in found)
    columns = [columns_of(each.range, n_features, zero_based, path)[0] for each, path in zip(found, paths, strict=True)]
    return max(columns), bool(zero_based)


class FilePart(NamedTuple):
    """Rows of a file that count as one partition."""

    file: int
    start: int
    rows: int


def parts_of(found: Sequence[Found]) -> list[FilePart]:
    """The partitions of files: one each, and more of a large one."""
    parts = []
    for file, each in enumerate(found):
        number = max(each.size // SPLIT_BYTES, 1)
        ends = [each.rows * k // number for k in range(number + 1)]
        parts += [FilePart(file, lo, hi - lo) for lo, hi in pairwise(ends)]
    return parts


class FileSlice(Source):
    """Some rows of a file: small to send, and read where they are learned."""

    def __init__(
        self, found: Found, path: str | os.PathLike[str], n_features: int, zero_based: bool, start: int, stop: int
    ) -> None:
        super().__init__()
        self.name, self._start, self._stop = found.name, start, stop
        mark = max((mark for mark in found.marks if mark.row <= start), default=Mark())
        self._file = LibsvmSource(
            path, n_features=n_features, zero_based=zero_based, block_bytes=STRETCH, kept_bytes=0, start=mark
        )

    def blocks(self) -> Iterator[Rows]:
        before = self._start
        for rows in self._file.blocks():
            inside = cut_rows(rows, self._start, self._stop)
            if inside.y.size:
                yield inside
            before = rows.before + rows.y.size
            if before >= self._stop:
                return
        raise ValueError(
            f"{self.name} ends after {before} rows, and had {self._stop} or more: it was changed meanwhile"
        )

    def place(self, row: int, column: int | None = None) -> str:
        return self._file.place(row, column)
