"""What each partition says of its rows before anything is learned, and whether all of them fit together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.stretch import Range
from steelyard.data.text import Mark
from steelyard.losses import Array

MOST_APART = 0.25
"""How different the labels of shards may be: the total variation from all labels, averaged over the shards."""


class Found(NamedTuple):
    """One partition, or one file."""

    name: str
    rows: int
    n_features: int = 0
    feature_names: tuple[str, ...] | None = None
    dense: bool = False
    labels: NDArray[Any] = np.empty(0)
    """The different ones, of a classification."""
    mass: Array = np.zeros(1)
    """How much the rows of each label weigh; without labels, how much all rows weigh."""
    range: Range = Range()
    """Of the indices of a file."""
    marks: tuple[Mark, ...] = ()
    """Where a file can be read from."""
    size: int = 0
    """Bytes of a file that can be read from anywhere; 0 where it cannot, or is no file."""


def check_agreement(found: Sequence[Found]) -> Found:
    """The first partition with rows; others that do not go with it are refused."""
    filled = [each for each in found if each.rows]
    if not filled:
        raise ValueError(f"there are no rows: all {len(found)} partitions are empty")
    first = filled[0]
    for each in filled:
        if each.feature_names != first.feature_names:
            raise ValueError(
                f"{each.name} has the columns {_shown(each.feature_names)}, but {first.name} has "
                f"{_shown(first.feature_names)}: all partitions need the same, in the same order"
            )
        if each.n_features != first.n_features:
            raise ValueError(
                f"{each.name} has {each.n_features} columns, but {first.name} has {first.n_features}: all partitions "
                "need the same"
            )
        if each.dense != first.dense:
            kind = "dense" if each.dense else "sparse"
            raise ValueError(f"{each.name} is {kind}, but {first.name} is not: make all partitions one or the other")
        if _text(each.labels) != _text(first.labels):
            raise ValueError(
                f"{each.name} has labels like {each.labels.tolist()[0]!r}, but {first.name} has labels like "
                f"{first.labels.tolist()[0]!r}: make them all strings or all numbers"
            )
    return first


def warn_of_unmixed(found: Sequence[Found], groups: Sequence[Sequence[int]]) -> None:
    """Warn where shards, each of some partitions, hold other labels than the rest: they learn their own rows."""
    if len(groups) < 2 or not found[groups[0][0]].labels.size:
        return
    labels, total = add_up([(found[p].labels, found[p].mass) for group in groups for p in group])
    apart = 0.0
    for group in groups:
        mine, mass = add_up([(found[p].labels, found[p].mass) for p in group])
        spread = np.zeros(labels.size)
        spread[np.searchsorted(labels, mine)] = mass
        if mass.sum() > 0.0 and total.sum() > 0.0:
            apart += float(np.abs(spread / mass.sum() - total / total.sum()).sum()) / 2.0 / len(groups)
    if apart > MOST_APART:
        warnings.warn(
            f"the shards hold different labels: {100 * apart:.0f} % of a shard's rows, on average, would have to "
            "change theirs for it to be like all rows. Shards learn their own rows, so the model will be poor, and its "
            "progressive loss too good. Mix the rows of the partitions first: see 'Rows must be mixed' in the "
            "documentation of many machines",
            UserWarning,
            stacklevel=4,
        )


def add_up(weighed: Sequence[tuple[NDArray[Any], Array]]) -> tuple[NDArray[Any], Array]:
    """All labels of several, in order, and how much the rows of each weigh.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.distributed.found import add_up
    >>> add_up([(np.array([1, 3]), np.array([5.0, 1.0])), (np.array([2, 3]), np.array([1.0, 1.0]))])
    (array([1, 2, 3]), array([5., 1., 2.]))
    """
    labels = np.unique(np.concatenate([each for each, _ in weighed]))
    mass = np.zeros(max(labels.size, 1))
    for each, weights in weighed:
        mass[np.searchsorted(labels, each) if labels.size else slice(None)] += weights
    return labels, mass


def _text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "OUS"


def _shown(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "without names"
    return str(list(names)) if len(names) <= 10 else f"{list(names[:10])} and {len(names) - 10} more"
