"""Any matrix a user may hold → a block of rows as the kernels read it, checked before anything is learned.

Dense and CSR rows, float32 and float64 values, 32 and 64 bit indices are used in place, read-only ones included.
Anything else (other sparse formats, integers, Fortran order, lists, frames) is converted once.
Values are looked at in ``checks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel

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

    def narrowed(self, n_features: int) -> tuple[Block, int]:
        """The sparse rows with ``n_features`` columns: values beyond are left out, and counted."""
        if self.dense:
            raise ValueError("only sparse rows can have another number of columns")
        inside = self.indices < n_features
        left_out = int(inside.size - np.count_nonzero(inside))
        if not left_out:
            return replace(self, n_features=n_features), 0
        kept = np.append(np.uint64(0), np.cumsum(inside, dtype=np.uint64))
        return replace(
            self,
            data=self.data[inside],
            indices=self.indices[inside],
            indptr=kept[self.indptr.astype(np.intp)],
            n_features=n_features,
        ), left_out

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
    refuse_kinds(X, "X")
    values = np.asarray(X)
    if values is not X:
        refuse_kinds(values, "X")
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


def refuse_kinds(values: Any, name: str) -> None:
    """Refuse masked arrays, complex numbers, dates and durations: as floats they would silently be something else."""
    if type(values) is np.ndarray and values.dtype.kind in "fiub":
        return
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array: fill in what is masked, with {name}.filled(…), or leave it out")
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "c":
        raise ValueError(f"{name} holds complex numbers: take their real parts, or their absolute values")
    if kind in ("m", "M"):
        raise ValueError(f"{name} holds dates or durations: make numbers of them, days for example")


def _sparse_block(X: Any) -> Block:
    if getattr(X, "format", "csr") != "csr":
        X = X.tocsr()
    refuse_kinds(X.data, "X")
    data = X.data if X.data.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
    rows, features = X.shape
    indices, indptr = np.ascontiguousarray(X.indices), np.ascontiguousarray(X.indptr)
    for name, part in (("indices", indices), ("indptr", indptr)):
        if part.dtype.kind not in "iu":
            raise ValueError(f"X is not a valid CSR matrix: its {name} are {part.dtype}, and not whole numbers")
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    if indptr.size != rows + 1 or indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError("X is not a valid CSR matrix: its indptr does not cut its data into rows")
    if indptr[-1] > min(data.size, indices.size):
        raise ValueError("X is not a valid CSR matrix: its indptr goes past the end of its data")
    if indices.dtype == np.int32 and features > 2**31 and indices.size and indices.min() < 0:
        indices = indices.astype(np.int64)  # as unsigned numbers of 32 bits, negative ones would be in range
    unsigned = indices.view(f"u{indices.dtype.itemsize}")  # negative indices become huge ones
    return Block(np.ascontiguousarray(data), unsigned, indptr.astype(np.uint64), features, False, inspected=False)


def copied(block: Block) -> Block:
    """The block in memory of its own, as large as it needs to be: see ``memory.Recycled``."""
    end = int(block.indptr[-1])
    return replace(block, data=block.data[:end].copy(), indices=block.indices[:end].copy(), indptr=block.indptr.copy())


def join_blocks(blocks: Sequence[Block]) -> Block:
    """The rows of several blocks of the same columns, all dense or all sparse, in one."""
    if len(blocks) == 1:
        return blocks[0]
    ends = np.cumsum([0, *(int(block.indptr[-1]) for block in blocks)]).astype(np.uint64)
    data = np.concatenate([block.data[: int(block.indptr[-1])] for block in blocks])
    indices = [block.indices[: int(block.indptr[-1])] for block in blocks]  # nothing, of dense ones
    indptr = [block.indptr[:-1] + before for block, before in zip(blocks, ends[:-1], strict=True)]
    return replace(
        blocks[0],
        data=data,
        indices=np.concatenate(indices),
        indptr=np.concatenate([*indptr, ends[-1:]]),
        inspected=all(block.inspected for block in blocks),
    )


def inspected(block: Block) -> Block:
    """The block with indices that are in range and ascend in every row.

    An index twice in a row is one feature, with the sum of the two values.
    """
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
