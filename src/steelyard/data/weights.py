"""Weights of rows in a file of their own, one a line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from steelyard.data.checks import MOST_WEIGHT
from steelyard.data.files import read_blocks, shown_name
from steelyard.data.source import Extent, Rows, Source
from steelyard.data.stretch import BOM
from steelyard.data.text import STRETCH


class WeightedSource(Source):
    """A source with the weights of its rows in a file of their own, one a line."""

    def __init__(self, source: Source, weights: str | os.PathLike[str]) -> None:
        super().__init__()
        self._source, self._path, self._shown = source, os.fspath(weights), shown_name(weights)
        self.name, self.read_again, self.total_bytes = source.name, source.read_again, source.total_bytes
        self.names, self.labels_may_lack = source.names, source.labels_may_lack

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def schema(self) -> dict[str, Any]:
        return self._source.schema()

    def extent(self) -> Extent:
        return self._source.extent()

    def place(self, row: int, column: int | None = None) -> str:
        return self._source.place(row, column)

    def whole(self) -> Rows:
        rows = self._source.whole()
        return next(self._weighted(iter([rows])), rows)

    def blocks(self) -> Iterator[Rows]:
        return self._weighted(self._source.blocks())

    def stream(self) -> Iterator[Rows]:
        return self._weighted(self._source.stream())

    def _weighted(self, blocks: Iterator[Rows]) -> Iterator[Rows]:
        numbers, at = _numbers(self._path), 0
        kept = np.empty(0)
        for rows in blocks:
            while kept.size < rows.y.size:
                more = next(numbers, None)
                if more is None:
                    raise ValueError(f"{self._shown} has {at + kept.size} weights, and {self.name} has more rows")
                kept = np.concatenate([kept, more])
            self.bytes_read, self.missing, self.label_names = (
                self._source.bytes_read,
                self._source.missing,
                self._source.label_names,
            )
            yield rows._replace(weight=rows.weight * kept[: rows.y.size])
            at, kept = at + rows.y.size, kept[rows.y.size :]
        left = kept.size + sum(more.size for more in numbers)
        if left:
            raise ValueError(f"{self._shown} has {at + left} weights, and {self.name} has {at} rows")


def _numbers(path: str) -> Iterator[Any]:
    """The numbers of a file, one a line."""
    line = 0
    for content in read_blocks(path, STRETCH):
        tokens = (content if line else content.removeprefix(BOM)).splitlines()
        try:
            found = np.array([float(token) for token in tokens])
        except ValueError:
            place = next(i for i, token in enumerate(tokens) if not _is_number(token))
            shown = tokens[place][:60].decode("utf-8", "replace")
            raise ValueError(
                f"{shown_name(path)}, line {line + place + 1}: a weight is one number a line, got {shown!r}"
            ) from None
        bad = np.flatnonzero(~((found >= 0.0) & (found <= MOST_WEIGHT)))
        if bad.size:
            raise ValueError(
                f"{shown_name(path)}, line {line + bad[0] + 1} has the weight {found[bad[0]]:g}: weights must be "
                "finite and not negative"
            )
        line += len(tokens)
        yield found


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token
