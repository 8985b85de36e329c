"""Frames of pandas and polars with columns of text → rows, hashed as the columns of files are."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.data.columns import NUMBER, TEXT, Cells, Columns, Rows, refuse_repeats
from steelyard.data.hashing import Settler
from steelyard.data.source import MOST_NAMES


def is_frame(X: Any) -> bool:
    """Whether it has named columns, as frames of pandas and polars have."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "shape") and hasattr(X, "__getitem__")


def frame_kinds(X: Any) -> dict[str, str]:
    """What each column of a frame holds."""
    refuse_repeats(list(X.columns))
    return {name: _kind(X[name], name) for name in X.columns}


def _kind(column: Any, name: str) -> str:
    kind = str(column.dtype).lower()
    if kind.startswith(("datetime", "date", "time", "duration", "period")):
        raise ValueError(f"the column {name!r} holds dates or times: make numbers of them, days for example")
    if kind.startswith("category") and hasattr(column, "cat"):  # pandas: the categories have a type of their own
        return NUMBER if column.cat.categories.dtype.kind in "biuf" else TEXT
    if kind.startswith(("str", "string", "utf8", "categorical", "enum", "large_string")):
        return TEXT
    if kind == "object":
        return TEXT if any(isinstance(value, str) for value in column) else NUMBER
    return NUMBER


def frame_rows(X: Any, columns: Columns, names: dict[int, str] | None = None) -> Rows:
    """The rows of a frame whose columns are decided. Null, and pandas' NaN, is a cell that is not there.

    ``names`` receives those of the features, as far as they are noted: see :meth:`Columns.cell_names`.
    """
    cells = [_cells(X[name], slot, columns) for slot, name in enumerate(columns.kinds)]
    if names is not None and len(names) < MOST_NAMES:
        for index, name in {**columns.cell_names(cells, columns.new_known()), **columns.column_names()}.items():
            names.setdefault(index, name)
    return columns.rows(cells, len(X), Settler())


def _cells(column: Any, slot: int, columns: Columns) -> Cells:
    is_null = column.isna if hasattr(column, "isna") else column.is_null
    null = np.asarray(is_null(), np.bool_)
    if getattr(getattr(column, "dtype", None), "kind", "") in ("f", "i", "u", "b") and not hasattr(column, "is_null"):
        values = np.asarray(column)
        if values.dtype.kind in "fb":
            numbers = np.where(null, 0.0, values.astype(np.float64))
            return columns.number_cells(slot, numbers, ~null if null.any() else None)
    values = column.to_list()
    return columns.object_cells(slot, [None if gone else value for value, gone in zip(values, null, strict=True)])
