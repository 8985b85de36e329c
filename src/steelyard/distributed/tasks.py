"""What workers do, each a pure function of its arguments: load rows, learn a slice, merge two models.

Nothing here knows of Dask: other systems can run the same.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steelyard.data.block import as_block, join_blocks
from steelyard.data.checks import DataError, check_finite, check_weights
from steelyard.data.source import Rows, Source, cut_block, told_of
from steelyard.distributed.found import Found
from steelyard.distributed.merge import merge
from steelyard.fitting import learn_passes
from steelyard.losses import Array
from steelyard.online import OnlineLearner, Progress

if TYPE_CHECKING:
    from steelyard.estimators.base import OnlineEstimator

BATCH_BYTES = 1 << 26
"""Rows are taken to memory, and shuffled, so many bytes of them at a time, or a block where that has more."""


class Held(Source):
    """Rows of a partition that are in memory; their labels may be text."""

    def __init__(self, name: str, rows: Rows, columns: tuple[str, ...] | None = None) -> None:
        self.name, self._rows, self._columns = name, rows, columns

    def blocks(self) -> Iterator[Rows]:
        yield self._rows

    def whole(self) -> Rows:
        return self._rows

    def place(self, row: int, column: int | None = None) -> str:
        if column is None:
            return f"row {row}"
        return f"row {row}, column {column if self._columns is None else repr(self._columns[column])}"

    def __sizeof__(self) -> int:
        block, y, weight, _ = self._rows  # workers decide by it what to keep in memory, and what to move
        return object.__sizeof__(self) + sum(array.nbytes for array in (*block.arrays, y, weight))

    def cut(self, start: int, stop: int) -> Held:
        """Some of the rows, which share their memory."""
        return Held(self.name, cut_rows(self._rows, start, stop), self._columns)


def cut_rows(rows: Rows, start: int, stop: int) -> Rows:
    """Rows ``start`` … ``stop`` of a source, as far as they are among these."""
    lo, hi = (min(max(at - rows.before, 0), rows.y.size) for at in (start, stop))
    return Rows(cut_block(rows.block, slice(lo, hi)), rows.y[lo:hi], rows.weight[lo:hi], rows.before + lo)


class Loaded(NamedTuple):
    """A partition in memory, checked, and what is to be known of it."""

    source: Held
    found: Found


def load(number: int, model: OnlineEstimator, X: Any, y: Any, weight: Any) -> Loaded:
    """Check a partition of arrays or a frame, whose labels and weights may be names of its columns."""
    name = f"partition {number}"
    given, taken = X, {each for each in (y, weight) if isinstance(each, str)}
    if taken:
        X = X.drop(columns=list(taken))
        y, weight = (given[each] if isinstance(each, str) else each for each in (y, weight))
    rows = int(X.shape[0])
    for what, values in (("y", y), ("sample_weight", weight)):
        if values is not None and np.shape(values)[:1] != (rows,):
            raise ValueError(f"{name}: X has {rows} rows, but {what} has {np.shape(values)[0]}: they must go together")
    if not rows:
        empty = Rows(as_block(np.empty((0, 0))), np.empty(0), np.empty(0), 0)
        return Loaded(Held(name, empty), Found(name, 0))
    probe = copy.copy(model)
    with _told_of(name):
        X, y = probe._validate(X, y, reset=True)
        block = as_block(X)
        names = tuple(probe.feature_names_in_) if hasattr(probe, "feature_names_in_") else None
        source = Held(name, Rows(block, y, np.ones(rows), 0), names)
        with told_of(source):
            check_finite(block)
            weight = check_weights(weight, rows)
            labels, mass = probe._weigh_labels(y, weight)
    found = Found(name, rows, block.n_features, names, block.dense, labels, mass)
    return Loaded(Held(name, Rows(block, y, weight, 0), names), found)


@contextmanager
def _told_of(name: str) -> Iterator[None]:
    """What is wrong with a partition, with its name before."""
    try:
        yield
    except (ValueError, TypeError) as error:
        message = str(error)
        raise ValueError(message if message.startswith(name) else f"{name}: {message}") from None


def found_in(loaded: Loaded) -> Found:
    """What is to be known of a partition, without its rows."""
    return loaded.found


def cut(loaded: Loaded, start: int, stop: int) -> Held:
    """Some rows of a partition."""
    return loaded.source.cut(start, stop)


class Learned(NamedTuple):
    """A model, and the average loss of the rows that made it of its start, each before it was learned."""

    learner: OnlineLearner
    progress: Progress


def learn(
    start: OnlineLearner, sources: Sequence[Source], model: OnlineEstimator, factors: Array | None, seed: Sequence[int]
) -> Learned:
    """Learn the rows of some sources from a common start, which stays as it is."""
    learner = copy.deepcopy(start)
    learner.progress = Progress()
    for number, batch in enumerate(_batches(sources)):
        with _told_of_batch(batch):
            y = np.concatenate([rows.y for _, rows in batch])
            labels, weight, factor = model._examples(y, np.concatenate([rows.weight for _, rows in batch]), factors)
            block = join_blocks([rows.block for _, rows in batch])
            seeds = [[*seed, number]]
            for _ in learn_passes(learner, block, labels, weight, seeds=seeds, shuffle=model.shuffle, factor=factor):
                pass
    progress, learner.progress = learner.progress, None
    return Learned(learner, progress)


def _batches(sources: Iterable[Source]) -> Iterator[list[tuple[Source, Rows]]]:
    batch: list[tuple[Source, Rows]] = []
    size = 0
    for source in sources:
        for rows in source.blocks():
            batch.append((source, rows))
            size += sum(array.nbytes for array in rows.block.arrays)
            if size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def _told_of_batch(batch: Sequence[tuple[Source, Rows]]) -> Iterator[None]:
    """What is wrong with a row of several sources, told of the one that has it."""
    try:
        yield
    except DataError as error:
        row = error.row
        for source, rows in batch:
            if row < rows.y.size:
                with told_of(source, rows.before):
                    raise DataError(error.part, row, error.column, error.value, error.reason) from None
            row -= rows.y.size
        raise
    except ValueError as error:
        (first, rows), (last, others) = batch[0], batch[-1]
        until = last.place(others.before + others.y.size - 1)
        where = f"{first.name}, {first.place(rows.before)} … {last.name}, {until}"
        raise ValueError(f"in the rows of {where}, counted from 0: {error}") from error


def merge_two(left: Learned, right: Learned, start: OnlineLearner) -> Learned:
    """Both in one."""
    return Learned(merge([left.learner, right.learner], start), left.progress.join(right.progress))


def merge_tree(learned: Sequence[Any], merge_two: Any) -> Any:
    """Merge in pairs of neighbours, and the results again, in a tree whose shape depends on their number alone."""
    while len(learned) > 1:
        pairs = [learned[i : i + 2] for i in range(0, len(learned), 2)]
        learned = [merge_two(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return learned[0]
