"""Checks of data before anything is learned from it. What is refused is told as facts, and in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block, as_block, refuse_kinds
from steelyard.losses import Array, Loss

MOST_WEIGHT = 1e300


class OptionError(ValueError):
    """What was asked for cannot be, whatever else the data hold: the shell's exit status is 2 and not 1."""


class DataError(ValueError):
    """A value that cannot be learned from, and where it stands.

    Attributes
    ----------
    part : {"feature", "label", "weight"}
    row, column : where it stands in the rows at hand; ``column`` is None for a label or a weight
    value : what it is
    reason : why it is refused, and what to do
    rows : all rows in which something like it is known to be wrong, this one first
    """

    def __init__(
        self, part: str, row: int, column: int | None, value: Any, reason: str, rows: NDArray[np.intp] | None = None
    ) -> None:
        self.part, self.row, self.column, self.value, self.reason = part, row, column, value, reason
        self.rows = np.array([row], np.intp) if rows is None else rows
        super().__init__(part, row, column, value, reason)

    def __str__(self) -> str:
        if self.part == "feature":
            where = f"row {self.row}" if self.column is None else f"row {self.row}, column {self.column}"
            return f"X holds {self.value} in {where}: {self.reason}"
        if self.part == "weight":
            return f"sample_weight is {self.value} in row {self.row}: {self.reason}"
        return f"label {self.shown} in row {self.row} is {self.reason}"

    @property
    def shown(self) -> str:
        """The value as people read it: labels may be text."""
        return f"{self.value:g}" if isinstance(self.value, (int, float, np.number)) else repr(self.value)


def check_rows(
    X: Any, y: Any, sample_weight: Any, order: Any, loss: Loss, classes: int | None, *, inspect: bool
) -> tuple[Block, Array, Array, NDArray[np.int64] | None]:
    """Everything that a learner is given, as its kernel takes it: rows, labels (or classes), weights and order."""
    block = as_block(X, inspect=inspect)
    rows = block.n_rows
    labels = check_labels(y, loss, rows) if classes is None else check_classes(y, classes, rows)
    weight = check_weights(sample_weight, rows)
    return block, labels, weight, None if order is None else check_order(order, rows)


def check_finite(block: Block) -> None:
    """Refuse features that are not finite, or whose squares add up to more than a float holds, naming the first."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.dot(block.data, block.data)):  # one fast pass for all; only now look closely
            filled = np.flatnonzero(np.diff(block.indptr) > 0)
            square = np.square(block.data[: int(block.indptr[-1])], dtype=np.float64)
            sums = np.add.reduceat(square, block.indptr[filled].astype(np.intp))
            refuse_rows(block, filled[~np.isfinite(sums)])


def nonfinite_rows(block: Block, rows: NDArray[Any]) -> NDArray[Any]:
    """Those of ``rows``, as they stand in the block, with a feature that is not finite, or whose square is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.square(block.data[: int(block.indptr[-1])], dtype=np.float64)
    places = np.searchsorted(block.indptr, np.flatnonzero(~np.isfinite(square)), side="right") - 1
    return np.intersect1d(places, rows)


def refuse_rows(block: Block, rows: NDArray[Any]) -> None:
    """Raise for the first of ``rows`` that has such a feature, or whose squares add up to too much."""
    for row in rows:
        lo, hi = int(block.indptr[row]), int(block.indptr[row + 1])
        values = block.data[lo:hi].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values @ values):
                continue
        at = int(np.argmax(np.where(np.isnan(values), np.inf, np.abs(values))))
        column = at if block.dense else int(block.indices[lo + at])
        why = "its square overflows, so divide the column by a constant"
        if not np.isfinite(values[at]):
            why = "features must be finite numbers, not NaN or inf"
        raise DataError("feature", int(row), column, values[at], why, rows[rows >= row])


def refuse_scale(block: Block, row: int) -> None:
    """Raise for the value of a row that is farthest from 1: in the metric, the row leaves the range of floats."""
    lo, hi = int(block.indptr[row]), int(block.indptr[row + 1])
    values = block.data[lo:hi].astype(np.float64)
    at = int(np.argmax(np.abs(np.log(np.where(values == 0.0, 1.0, np.abs(values))))))
    column = at if block.dense else int(block.indices[lo + at])
    raise DataError("feature", row, column, values[at], "too large or too small beside what was there; rescale it")


def check_order(order: Any, rows: int) -> NDArray[np.int64]:
    """Row numbers in the order to take them, each of them one of the rows."""
    values = np.asarray(order)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"order must be a list of row numbers, got {values.ndim} dimensions of {values.dtype}")
    bad = np.flatnonzero((values < 0) | (values >= rows))
    if bad.size:
        raise ValueError(f"order names row {values[bad[0]]}, but X has rows 0 … {rows - 1}")
    return np.ascontiguousarray(values, dtype=np.int64)


def check_labels(y: Any, loss: Loss, rows: int) -> Array:
    """Labels as contiguous float64, one a row, all of them in the loss's domain."""
    values = _numbers(y, "y")
    if values.shape != (rows,):
        raise ValueError(f"y must hold one label for each of the {rows} rows of X, got shape {values.shape}")
    bad = loss.invalid_labels(values)
    if bad.size:
        raise DataError(
            "label", int(bad[0]), None, float(values[bad[0]]), f"outside the {loss.name} loss: use {loss.domain}"
        )
    return values


def check_classes(y: Any, n_classes: int, rows: int) -> Array:
    """Classes 0 … n_classes-1 as contiguous float64, one a row."""
    values = _numbers(y, "y")
    if values.shape != (rows,):
        raise ValueError(f"y must hold a class 0 … {n_classes - 1} for each row, got shape {values.shape}")
    bad = np.flatnonzero(~((values >= 0.0) & (values < n_classes) & (values == np.floor(values))))
    if bad.size:
        raise DataError("label", int(bad[0]), None, float(values[bad[0]]), f"none of the classes 0 … {n_classes - 1}")
    return values


def check_weights(sample_weight: Any, rows: int) -> Array:
    """Importance weights as contiguous float64, one a row, finite and not negative; ones where there are none."""
    if sample_weight is None:
        return np.ones(rows)
    values = _numbers(sample_weight, "sample_weight")
    values = np.full(rows, float(values)) if values.ndim == 0 else np.array(values, order="C")  # a copy, to keep
    if values.shape != (rows,):
        raise ValueError(f"sample_weight must hold one weight for each of the {rows} rows, got shape {values.shape}")
    bad = np.flatnonzero(~((values >= 0.0) & (values <= MOST_WEIGHT)))
    if bad.size:
        why = "weights must be finite and not negative"
        if MOST_WEIGHT < values[bad[0]] < np.inf:
            why = f"weights must be at most {MOST_WEIGHT:g}"
        raise DataError("weight", int(bad[0]), None, values[bad[0]], why, bad)
    return values


def _numbers(values: Any, name: str) -> Array:
    """Contiguous float64, but nothing that would lose its meaning on the way there."""
    refuse_kinds(values, name)
    return np.asarray(values, dtype=np.float64, order="C")
