"""What a caller may give as data: Dask collections, partition by partition, or files."""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import Any, NamedTuple

_TAKES = "steelyard.distributed.fit takes a Dask array, a Dask DataFrame or a list of LIBSVM files"


class Partition(NamedTuple):
    """Lazy rows, labels and weights; the latter two may be names of columns."""

    X: Any
    y: Any
    weight: Any


def file_paths(X: Any) -> list[str] | None:
    """The files, with whole paths, because workers may be in other folders; None where X is something else."""
    if isinstance(X, (str, os.PathLike)):
        X = [X]
    if not isinstance(X, (list, tuple)) or not all(isinstance(each, (str, os.PathLike)) for each in X):
        return None
    if not X:
        raise ValueError("the list of files is empty: was there no file for a pattern?")
    return [os.path.abspath(os.fspath(each)) for each in X]


def partitions(X: Any, y: Any, weight: Any) -> list[Partition]:
    """The partitions of Dask collections, which must go together."""
    frame = _is_frame(X)
    if not frame and not _is_array(X):
        raise TypeError(f"X is a {_kind(X)}, but {_TAKES}. Data in memory is learned by model.fit(X, y)")
    if y is None:
        raise ValueError("y is missing: the labels, as a Dask array or series, or the name of a column of X")
    if not frame:
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and features, got shape {X.shape}")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    parts = _delayed(X)
    columns = [_beside(X, parts, values, name) for values, name in ((y, "y"), (weight, "sample_weight"))]
    return [Partition(*each) for each in zip(parts, *columns, strict=True)]


def _beside(X: Any, parts: list[Any], values: Any, name: str) -> list[Any]:
    """Labels or weights, partition by partition."""
    if values is None:
        return [None] * len(parts)
    if isinstance(values, str):
        if not _is_frame(X):
            raise ValueError(f"{name}={values!r} names a column, but X is a {_kind(X)}: only a frame has names")
        if values not in X.columns:
            near = get_close_matches(values, map(str, X.columns), n=1)
            shown = f"did you mean {near[0]!r}?" if near else f"it has {list(X.columns)[:10]}"
            raise ValueError(f"{name}={values!r} is no column of X, which has {len(X.columns)}: {shown}")
        return [values] * len(parts)
    if not hasattr(values, "__dask_graph__"):
        raise TypeError(
            f"{name} is a {_kind(values)}: give a Dask array or series with the partitions of X, for example "
            "dask.array.from_array(y, chunks=X.chunks[0])"
        )
    if getattr(values, "ndim", 1) != 1:
        raise ValueError(f"{name} must have one dimension, got {values.ndim}")
    if _is_array(X) and _is_array(values) and values.chunks[0] != X.chunks[0]:
        rows, others = sum(X.chunks[0]), sum(values.chunks[0])  # NaN where they are not known
        if rows == others:
            values = values.rechunk((X.chunks[0],))
        elif rows == rows and others == others:
            raise ValueError(f"X has {rows} rows, but {name} has {others}")
    if _is_frame(X) and getattr(values, "name", None) in list(X.columns):
        raise ValueError(
            f"X still has the column {values.name!r}, which is {name}: it would be learned from. Give "
            f"{name}={values.name!r}, which takes it out, or drop it from X"
        )
    found = _delayed(values)
    if len(found) != len(parts):
        raise ValueError(f"X has {len(parts)} partitions, but {name} has {len(found)}: they must go together")
    return found


def _delayed(values: Any) -> list[Any]:
    found = values.to_delayed()
    return list(found.ravel() if hasattr(found, "ravel") else found)


def _is_array(values: Any) -> bool:
    return hasattr(values, "__dask_graph__") and hasattr(values, "chunks")


def _is_frame(values: Any) -> bool:
    return hasattr(values, "__dask_graph__") and hasattr(values, "columns")


def _kind(values: Any) -> str:
    return f"{type(values).__module__.split('.')[0]}.{type(values).__name__}".removeprefix("builtins.")
