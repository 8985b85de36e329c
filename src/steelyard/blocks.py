"""Any matrix a user may hold → a block of rows as the kernels read it, checked before anything is learned.

Dense and CSR rows, float32 and float64 values, 32 and 64 bit indices are used in place, read-only ones included.
Anything else (other sparse formats, integers, Fortran order, lists, frames) is converted once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.losses import Array, Loss

_NO_INDICES = np.empty(0, np.uint32)


@dataclass(frozen=True)
class Block:
    """Rows in CSR form; ``indices`` is empty and not read when the block is dense."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[np.uint64]
    n_features: int
    dense: bool
    inspected: bool = True
    """Whether the indices are known to ascend in every row and to be in range: see :func:`inspected`."""

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint64]]:
        """What kernels take, in their order."""
        return self.data, self.indices, self.indptr

    @property
    def types(self) -> tuple[str, str]:
        """The kinds of values and indices, which select the kernel."""
        return self.data.dtype.str[1:], self.indices.dtype.str[1:]


def as_block(X: Any, *, inspect: bool = True) -> Block:
    """View or convert a matrix as a block. Shapes are checked, values are not: see :func:`check_finite`.

    A caller who looks at the indices itself may do without the pass that inspects them.
    """
    if hasattr(X, "indptr") or hasattr(X, "tocsr"):
        return inspected(_sparse_block(X)) if inspect else _sparse_block(X)
    values = np.asarray(X)
    if values.ndim != 2:
        hint = "; reshape one row to (1, n_features)" if values.ndim == 1 else ""
        raise ValueError(f"X must have two dimensions, rows and features, got shape {values.shape}{hint}")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    rows, features = values.shape
    data = np.ascontiguousarray(values).reshape(-1)
    indptr = np.arange(0, (rows + 1) * features, max(features, 1), dtype=np.uint64) if features else None
    if indptr is None:
        indptr = np.zeros(rows + 1, np.uint64)
    return Block(data, _NO_INDICES, indptr[: rows + 1], features, True)


def _sparse_block(X: Any) -> Block:
    if getattr(X, "format", "csr") != "csr":
        X = X.tocsr()
    data = X.data if X.data.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
    rows, features = X.shape
    indices, indptr = np.ascontiguousarray(X.indices), np.ascontiguousarray(X.indptr)
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    if indptr.size != rows + 1 or indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError("X is not a valid CSR matrix: its indptr does not cut its data into rows")
    if indptr[-1] > min(data.size, indices.size):
        raise ValueError("X is not a valid CSR matrix: its indptr goes past the end of its data")
    unsigned = indices.view(f"u{indices.dtype.itemsize}")  # negative indices become huge ones
    return Block(np.ascontiguousarray(data), unsigned, indptr.astype(np.uint64), features, False, inspected=False)


def inspected(block: Block) -> Block:
    """The block with indices that are in range and ascend in every row.

    An index twice in a row is one feature, with the sum of the two values.
    """
    from steelyard._library import get_kernel

    if block.inspected:
        return block
    bad = get_kernel("inspect", "f8", block.types[1])(block.indices, block.indptr, block.n_features)
    if bad < 0:
        return replace(block, inspected=True)
    end = int(block.indptr[-1])
    signed = block.indices[:end].view(block.indices.dtype.str.replace("u", "i"))
    outside = np.flatnonzero(block.indices[:end] >= block.n_features)
    if outside.size:
        row = int(np.searchsorted(block.indptr, outside[0], side="right")) - 1
        raise ValueError(
            f"X is not a valid CSR matrix: column index {signed[outside[0]]} in row {row} is outside "
            f"0 … {block.n_features - 1}"
        )
    from scipy.sparse import csr_matrix

    parts = (block.data[:end], signed, block.indptr.view(np.int64))
    X = csr_matrix(parts, shape=(block.n_rows, block.n_features), copy=True)
    X.sum_duplicates()
    return replace(_sparse_block(X), inspected=True)


def check_finite(block: Block) -> None:
    """Refuse features that are not finite, or whose squares add up to more than a float holds, naming the first."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(np.dot(block.data, block.data)):  # one fast pass for all; only now look closely
            refuse_rows(block, np.arange(block.n_rows))


def strange_rows(block: Block, rows: NDArray[Any]) -> NDArray[Any]:
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
        what = "its square overflows, so divide the column by a constant"
        if not np.isfinite(values[at]):
            what = "features must be finite numbers, not NaN or inf"
        raise ValueError(f"X holds {values[at]} in row {row}, column {column}: {what}")


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
    values = np.ascontiguousarray(y, dtype=np.float64)
    if values.shape != (rows,):
        raise ValueError(f"y must hold one label for each of the {rows} rows of X, got shape {values.shape}")
    bad = loss.invalid_labels(values)
    if bad.size:
        row = int(bad[0])
        raise ValueError(f"label {values[row]:g} in row {row} is outside the {loss.name} loss: use {loss.domain}")
    return values


def check_weights(sample_weight: Any, rows: int) -> Array:
    """Importance weights as contiguous float64, one a row, finite and not negative; ones where there are none."""
    if sample_weight is None:
        return np.ones(rows)
    values = np.asarray(sample_weight, dtype=np.float64)
    values = np.full(rows, float(values)) if values.ndim == 0 else np.array(values, order="C")  # a copy, to keep
    if values.shape != (rows,):
        raise ValueError(f"sample_weight must hold one weight for each of the {rows} rows, got shape {values.shape}")
    bad = np.flatnonzero(~((values >= 0.0) & (values < np.inf)))
    if bad.size:
        row = int(bad[0])
        raise ValueError(f"sample_weight is {values[row]} in row {row}: weights must be finite and not negative")
    return values
