"""Rows as learners take them in an Arrow file: parsed once, hashed once, then mapped into memory.

A file has one record batch for each block of rows, with the columns

    label     float64, NaN where a row has none; of text labels, their places among all of them
    weight    float64
    indices   list of uint32, ascending in every row; not there where rows are dense
    values    list of float64; not there where all of them are 1

and an empty batch at its end, whose metadata say what every format says of its rows: how they were read, names, sizes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block
from steelyard.data.checks import DataError, check_finite, check_weights
from steelyard.data.files import atomic_write
from steelyard.data.source import Extent, Rows, Skipped, Source, few_labels, sound_rows
from steelyard.losses import Array

_MAGIC = b"ARROW1\0\0"
_KEY, _VERSION = b"steelyard", 1
_MOST_INDEX = 2**32


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            "the binary cache is an Arrow file, which needs pyarrow: pip install 'steelyard[arrow]'"
        ) from None
    return pyarrow


def write_cache(source: Source, path: str | os.PathLike[str], report: Any = None) -> int:
    """Write the rows of a source, whole or not at all, in constant memory; returns how many they are.

    ``report`` is told of every block, with the rows so far.
    """
    pa = _pyarrow()
    rows = columns = 0
    dense, labels = False, np.empty(0)
    many = False
    with atomic_write(path) as file:
        writer = None
        for found in source.stream():
            (block, y, weight, _), _ = sound_rows(source, found, lambda each: _check(source, each))
            if writer is None:
                dense = block.dense
                schema = _arrow_schema(pa, dense)
                writer = pa.ipc.new_file(file, schema)
            columns = max(columns, block.n_features)
            if columns > _MOST_INDEX:
                raise ValueError(f"{source.name} has indices of more than 32 bits: hash them, with --bits (bits=)")
            writer.write_batch(_batch(pa, schema, block, y, weight))
            rows += y.size
            if not many:
                few = few_labels(np.union1d(labels, y[~np.isnan(y)]))
                many, labels = few is None, np.empty(0) if few is None else few
            if report is not None:
                report(rows)
        if writer is None or not rows:
            raise ValueError(f"{source.name} has no rows: there is nothing to convert")
        end = {
            "version": _VERSION,
            "rows": rows,
            "columns": columns,
            "dense": dense,
            "labels": None if many else labels.tolist(),
            "label_names": source.label_names,
            "labels_may_lack": source.labels_may_lack,
            "missing": source.missing,
            "schema": source.schema(),
            "names": {str(index): name for index, name in source.names.items()},
        }
        writer.write_batch(_empty(pa, schema), custom_metadata={_KEY: json.dumps(end).encode()})
        writer.close()
    return rows


def _check(source: Source, rows: Rows) -> None:
    """Refuse what could not be learned from: where the rows came from is not known later."""
    check_weights(rows.weight, rows.y.size)
    bad = np.flatnonzero(~(np.isfinite(rows.y) | (np.isnan(rows.y) & source.labels_may_lack)))
    if bad.size:
        raise DataError("label", int(bad[0]), None, float(rows.y[bad[0]]), "not finite")
    check_finite(rows.block)


def _arrow_schema(pa: Any, dense: bool) -> Any:
    fields = [pa.field("label", pa.float64()), pa.field("weight", pa.float64())]
    if not dense:
        fields.append(pa.field("indices", pa.large_list(pa.uint32())))
    fields.append(pa.field("values", pa.large_list(pa.float64())))
    return pa.schema(fields, metadata={_KEY: str(_VERSION).encode()})


def _batch(pa: Any, schema: Any, block: Block, y: Array, weight: Array) -> Any:
    count = int(block.indptr[-1])
    offsets = pa.array(block.indptr.astype(np.int64))
    values = block.data[:count].astype(np.float64, copy=False)
    each = [pa.array(y), pa.array(weight)]
    if not block.dense:
        indices = pa.array(block.indices[:count].astype(np.uint32, copy=False))
        each.append(pa.LargeListArray.from_arrays(offsets, indices))
        if (values == 1.0).all():  # no numbers at all: rows without values are rows of ones
            offsets, values = pa.array(np.zeros(y.size + 1, np.int64)), np.empty(0)
    each.append(pa.LargeListArray.from_arrays(offsets, pa.array(values)))
    return pa.record_batch(each, schema=schema)


def _empty(pa: Any, schema: Any) -> Any:
    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)


def is_cache(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one that :func:`write_cache` wrote."""
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return False
    with _pyarrow().memory_map(os.fspath(path)) as file:
        try:
            metadata = _pyarrow().ipc.open_file(file).schema.metadata
        except Exception:  # whatever is wrong with it, it will be said by who reads it as a table
            return False
    return metadata is not None and _KEY in metadata


def _numbers(array: Any, kind: Any) -> NDArray[Any]:
    """The numbers of an Arrow array where they are. (Its own ``to_numpy`` imports pandas, which takes 0.1 s.)"""
    if not len(array):
        return np.empty(0, kind)
    content = array.buffers()[1]
    return np.frombuffer(content, kind, len(array), array.offset * np.dtype(kind).itemsize)


class CacheSource(Source):
    """A file of :func:`write_cache` as a source; its rows are read where they are mapped.

    Examples
    --------
    >>> import pathlib, tempfile, steelyard
    >>> from steelyard.data.cache import CacheSource, write_cache
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "tiny.libsvm").write_text("1 1:0.5 3:2e-1\\n-1 2:4\\n")
    >>> write_cache(steelyard.open(folder / "tiny.libsvm"), folder / "tiny.arrow")
    2
    >>> [X.toarray().tolist() for X, y, w in CacheSource(folder / "tiny.arrow")]
    [[[0.5, 0.0, 0.2], [0.0, 4.0, 0.0]]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.name = os.fspath(path)
        pa = _pyarrow()
        try:
            self._reader = pa.ipc.open_file(pa.memory_map(self.name))
            batch, end = self._reader.get_batch_with_custom_metadata(self._reader.num_record_batches - 1)
            said = json.loads(end[_KEY])
            if batch.num_rows or said["version"] > _VERSION:
                raise ValueError
            if self._reader.schema.types != _arrow_schema(pa, said["dense"]).types:
                raise ValueError
            labels = None if said["labels"] is None else np.array(said["labels"], np.float64)
            self._extent = Extent(int(said["rows"]), int(said["columns"]), True, labels)
            self._dense, self._schema = bool(said["dense"]), dict(said["schema"])
            self.label_names, self.labels_may_lack = said["label_names"], bool(said["labels_may_lack"])
            self.missing = int(said["missing"])
            self.names = {int(index): str(name) for index, name in said["names"].items()}
        except Exception as error:
            raise ValueError(
                f"{self.name} is a damaged cache, or one of a later version: write it again with steelyard convert"
            ) from error
        self.total_bytes = os.path.getsize(self.name)
        self._ones = np.ones(0)

    def schema(self) -> dict[str, Any]:
        return dict(self._schema)

    def extent(self) -> Extent:
        return self._extent

    def blocks(self) -> Iterator[Rows]:
        before = self.bytes_read = 0
        self.skipped = Skipped()
        for number in range(self._reader.num_record_batches - 1):
            try:
                batch = self._reader.get_batch(number)
                rows = self._rows(batch, before)
            except Exception as error:  # whatever damage does: fewer numbers than there are said to be, a bad header, …
                raise self._damaged() from error
            self.bytes_read += batch.nbytes
            yield rows
            before += batch.num_rows

    def _rows(self, batch: Any, before: int) -> Rows:
        y, weight = (_numbers(batch.column(i), np.float64) for i in range(2))
        lists = batch.column(batch.num_columns - 1)
        data = _numbers(lists.values, np.float64)
        indices = np.empty(0, np.uint32)
        if not self._dense:
            lists = batch.column(2)
            indices = _numbers(lists.values, np.uint32)
            if data.size < indices.size:
                data = self._all_ones(indices.size)
        indptr = _numbers(lists.offsets, np.uint64)
        self._check(batch, indptr, indices, data)
        return Rows(Block(data, indices, indptr, self._extent.n_features, self._dense), y, weight, before)

    def _check(self, batch: Any, indptr: Any, indices: Any, data: Any) -> None:
        """A file may be damaged, and kernels follow what is in it: places must be in order, and in range."""
        right = indptr[0] == 0 and (indptr[1:] >= indptr[:-1]).all() and int(indptr[-1]) <= data.size
        right = right and (self._dense or int(indptr[-1]) <= indices.size)
        if self._dense:
            right = right and (np.diff(indptr) == self._extent.n_features).all()
        else:
            right = right and int(indices.max(initial=0)) < max(self._extent.n_features, 1)
        if not right:
            raise self._damaged()

    def _damaged(self) -> ValueError:
        return ValueError(f"{self.name} is damaged: write it again with steelyard convert")

    def _all_ones(self, size: int) -> Array:
        if self._ones.size < size:
            self._ones = np.ones(size)
        return self._ones[:size]

    def whole(self) -> Rows:
        from steelyard.data.block import join_blocks

        each = list(self.blocks())
        block = join_blocks([rows.block for rows in each])
        return Rows(block, np.concatenate([rows.y for rows in each]), np.concatenate([rows.weight for rows in each]), 0)

    def place(self, row: int, column: int | None = None) -> str:
        name = None if column is None else self.names.get(column, f"index {column}")
        return f"row {row + 1}" + ("" if name is None else f", {name}")
