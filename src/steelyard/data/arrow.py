"""Parquet and Arrow files → rows, through pyarrow: batches of columns, in constant memory."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block, join_blocks
from steelyard.data.columns import MOST_NUMBER, NUMBER, TEXT, CellError, Cells, Columns, refused_integer
from steelyard.data.hashing import Settler
from steelyard.data.source import MOST_NAMES, PLACES, Extent, Rows, Skipped, Source, few_labels
from steelyard.losses import Array

_BATCH = 1 << 14  # rows
_PARQUET = (".parquet", ".pq")
_ENDINGS = (*_PARQUET, ".arrow", ".feather", ".ipc")


def open_arrow(paths: Sequence[str], *, skips: bool = False, **columns: Any) -> ArrowSource:
    """The source of files and folders; the other parameters are those of ``Columns``."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{paths[0]}: reading Parquet and Arrow needs pyarrow: pip install 'steelyard[arrow]'"
        ) from None
    return ArrowSource([file for path in paths for file in _files(path)], Columns(**columns), skips=skips)


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    inside = [file for file in sorted(Path(path).rglob("*")) if file.suffix in _ENDINGS and file.name[0] not in "._"]
    if not inside:
        raise FileNotFoundError(2, "no Parquet or Arrow file is in the folder", path)
    parted = next((file for file in inside if "=" in str(file.relative_to(path).parent)), None)
    if parted is not None:
        raise ValueError(f"{parted}: columns whose values stand in names of folders (key=value) are not read")
    return [str(file) for file in inside]


class ArrowSource(Source):
    """Files of columns with types, one after another, as one stream of rows."""

    labels_may_lack = True

    def __init__(self, paths: Sequence[str], columns: Columns, *, skips: bool = False) -> None:
        super().__init__()
        self.paths, self.columns = list(paths), columns
        self.name = self.paths[0] if len(self.paths) == 1 else f"{len(self.paths)} files"
        self.total_bytes = sum(os.path.getsize(path) for path in self.paths)
        self.skips = skips
        self._places: deque[_Place] = deque()
        self._remembered = PLACES
        self._known = columns.new_known()

    def schema(self) -> dict[str, Any]:
        return {"format": "arrow", **self.columns.schema()}

    def blocks(self) -> Iterator[Rows]:
        settler, before, done = Settler(), 0, 0
        self.missing, self.bytes_read, self.skipped = 0, 0, Skipped()
        self._places.clear()
        for path in self.paths:
            row, size = 0, os.path.getsize(path)
            for batch, total in _batches(path):
                self._begin(path, batch.schema)
                found = self._good_rows(batch, _Place(before, path, row, np.arange(batch.num_rows)), settler)
                if found is not None:
                    yield found
                    before += found.y.size
                row += batch.num_rows
                self.bytes_read = done + int(size * min(row / max(total, 1), 1.0))
            done += size

    def _good_rows(self, batch: Any, place: _Place, settler: Settler) -> Rows | None:
        """The rows of a batch that can be read; others are refused, or left out and noted."""
        count = batch.num_rows
        while batch.num_rows:
            try:
                found = self._rows(batch, place.before, settler)
                break
            except CellError as error:
                for at in error.rows if self.skips and error.rows.size else [error.row]:
                    told = f"{place.path}, row {place.number(int(at))}, column {error.column!r}: {error.complaint}"
                    if not self.skips or not error.rows.size:
                        raise ValueError(told) from None
                    self.skipped.add(told)
                others = np.delete(np.arange(batch.num_rows), error.rows)
                batch, place = batch.take(others), place._replace(kept=place.kept[others])
        if self.gaps is not None:
            lost = np.delete(np.arange(count), place.kept)
            self.gaps.extend((place.before + np.searchsorted(place.kept, lost)).tolist())
        self._places.append(place)
        while place.before - self._places[0].before > self._remembered:
            self._places.popleft()
        return found if batch.num_rows else None

    def _begin(self, path: str, schema: Any) -> None:
        kinds = {field.name: _kind(field.type) for field in schema}
        try:
            if not self.columns.decided:
                others = (self.columns.weight, *self.columns.drop, *self.columns.text)
                bad = next((field for field in schema if field.name not in others and not kinds[field.name]), None)
                if bad is not None:
                    raise ValueError(_refused_type(bad.name, bad.type))
                self.columns.decide(schema.names, lambda name: kinds[name] or TEXT)
                self.names.update(self.columns.column_names())
                self._known = self.columns.new_known()
                if self._known.size:
                    self._known[list(self.names)] = 1
            self.columns.places(schema.names)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def _rows(self, batch: Any, before: int, settler: Settler) -> Rows:
        columns, count = self.columns, batch.num_rows
        cells = [self._cells(slot, batch.column(name)) for slot, name in enumerate(columns.kinds)]
        found = columns.rows(cells, count, settler)
        for index, each in columns.cell_names(cells, self._known).items():
            if len(self.names) < MOST_NAMES:
                self.names[index], self._known[index] = each, 1
        if len(self.names) >= MOST_NAMES:
            self._known = np.empty(0, np.uint8)
        wide = columns.n_features or 0
        block = Block(found.values, found.indices, found.indptr, wide, columns.bits is None)
        y, weight = np.full(count, np.nan), np.ones(count)
        if columns.label in batch.schema.names:
            y = self._labels(batch.column(columns.label))
        if columns.weight in batch.schema.names:
            weight, there = _numbers(batch.column(columns.weight), str(columns.weight))
            if there is not None:
                rows = np.flatnonzero(~there)
                raise CellError(int(rows[0]), str(columns.weight), "the weight is not there", rows)
        self.missing += found.missing
        return Rows(block, y, weight, before)

    def _cells(self, slot: int, column: Any) -> Cells:
        name, kind = self.columns.each[slot]
        if kind == TEXT:
            return self.columns.text_cells(slot, *_texts(column, name))
        return self.columns.number_cells(slot, *_numbers(column, name))

    def _labels(self, column: Any) -> Array:
        name = str(self.columns.label)
        if self.columns.label_kind == NUMBER:
            values, there = _numbers(column, name)
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                told = "the label must be a finite number, or null where it is not known"
                raise CellError(int(bad[0]), name, told, bad)
            return values if there is None else np.asarray(np.where(there, values, np.nan), np.float64)
        texts, codes = _texts(column, name)
        self.label_names = [] if self.label_names is None else self.label_names
        for text in texts:
            if text and text not in self.label_names:
                self.label_names.append(text)
        place = {text: float(i) for i, text in enumerate(self.label_names)}
        return np.asarray(np.array([*(place.get(text, np.nan) for text in texts), np.nan])[codes], np.float64)

    def whole(self) -> Rows:
        self._remembered = sys.maxsize
        each = list(self.blocks())
        if not each:
            raise ValueError(f"{self.name} has no rows")
        y, weight = (np.concatenate([rows[i] for rows in each]) for i in (1, 2))
        return Rows(join_blocks([rows.block for rows in each]), y, weight, 0)

    def extent(self) -> Extent:
        rows, labels = 0, np.empty(0)
        many = False
        for each in self.blocks():
            rows += each.y.size
            found = None if many else few_labels(np.union1d(labels, each.y[~np.isnan(each.y)]))
            many, labels = found is None, labels if found is None else found
        return Extent(rows, self.columns.n_features or 0, True, None if many else labels)

    def place(self, row: int, column: int | None = None) -> str:
        name = None if column is None else self.names.get(column)
        where = "" if column is None else f", feature {name}" if name else f", index {column}"
        for place in self._places:
            if place.before <= row < place.before + place.kept.size:
                shown = "" if len(self.paths) == 1 else f"{place.path}, "
                return f"{shown}row {place.number(row - place.before)}{where}"
        return f"example {row + 1}{where}"


class _Place(NamedTuple):
    """Where the rows of a batch stand."""

    before: int
    """Rows of the source before them."""
    path: str
    first: int
    """Rows of the file before the batch."""
    kept: NDArray[np.intp]
    """Which rows of the batch they are."""

    def number(self, at: int) -> int:
        """Which row of the file one of them is, from 1."""
        return self.first + int(self.kept[at]) + 1


def _batches(path: str) -> Iterator[tuple[Any, int]]:
    """The batches of a file, and how many rows it has (0 where it does not say)."""
    import pyarrow as pa

    try:
        if Path(path).suffix in _PARQUET or _starts(path, b"PAR1"):
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH):
                    yield batch, file.metadata.num_rows
                if not file.metadata.num_rows:
                    yield pa.RecordBatch.from_pylist([], schema=file.schema_arrow), 0
        elif _starts(path, b"ARROW1"):
            with pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
                for number in range(file.num_record_batches):
                    batch = file.get_batch(number)
                    for at in range(0, batch.num_rows, _BATCH):
                        yield batch.slice(at, _BATCH), batch.num_rows * file.num_record_batches
        else:
            with pa.OSFile(path) as source, pa.ipc.open_stream(source) as file:
                for batch in file:
                    yield batch, 0
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # no such file, no permission, …
            raise
        raise ValueError(f"{path}: it cannot be read as Parquet or Arrow ({error})") from None


def _starts(path: str, magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def _kind(kind: Any) -> str | None:
    """Whether a type is one of numbers or of text; None where it is neither."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        return NUMBER
    if types.is_decimal(kind):
        return NUMBER
    texts = (types.is_string, types.is_large_string, getattr(types, "is_string_view", types.is_string))
    return TEXT if any(test(kind) for test in texts) else None


def _refused_type(name: str, kind: Any) -> str:
    what = (
        "dates or times: make numbers of them, days for example"
        if "time" in str(kind) or "date" in str(kind)
        else (f"{kind}: neither numbers nor text")
    )
    return f"the column {name!r} holds {what}; or leave it out with --drop {name} (drop=)"


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _numbers(column: Any, name: str) -> tuple[Array, Any]:
    """Values, 0 where there is none, and which are there: None where all are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decoded(column)
    if _kind(column.type) != NUMBER:
        told = f"the column has numbers, but here {column.type}; if it is text say --text {name} (text=)"
        raise CellError(0, name, told, np.empty(0, np.intp))
    there = None if not column.null_count else np.asarray(pc.is_valid(column))
    if pa.types.is_integer(column.type):
        whole = np.asarray(pc.fill_null(column, 0))
        large = np.flatnonzero(
            (whole > MOST_NUMBER) | (whole < -MOST_NUMBER) if whole.dtype.kind == "i" else whole > MOST_NUMBER
        )
        for row in large:
            if int(float(whole[row])) != int(whole[row]):
                raise CellError(int(row), name, refused_integer(whole[row]))
    values = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0)
    return np.array(values, np.float64), there


def _texts(column: Any, name: str) -> tuple[list[str], Any]:
    """The different texts, and which each cell is: -1 where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _decoded(column)
    if pa.types.is_boolean(column.type) or _kind(column.type) == TEXT:
        column = column.cast(pa.large_string())
    elif _kind(column.type) == NUMBER:
        column = pa.array([None if each is None else str(each) for each in column.to_pylist()], pa.large_string())
    else:
        column = column.cast(pa.large_string())
    encoded = column.dictionary_encode()
    codes = np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), -1))
    try:
        return encoded.dictionary.to_pylist(), codes
    except UnicodeDecodeError:
        bad = [
            at for at, text in enumerate(encoded.dictionary.cast(pa.large_binary()).to_pylist()) if not _is_text(text)
        ]
        rows = np.flatnonzero(np.isin(codes, bad))
        raise CellError(int(rows[0]), name, "a cell of text holds bytes that are no UTF-8", rows) from None


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
