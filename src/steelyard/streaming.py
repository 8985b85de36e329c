"""A source of rows → a learner: what is to be learned is decided from the first rows, and a run can be gone on with."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.compact import Compact, compact_for
from steelyard.data.block import Block, inspected
from steelyard.data.checks import DataError, OptionError, check_finite, check_labels, check_weights
from steelyard.data.order import first_visits, group_equal_rows, shuffled_visits
from steelyard.data.source import MOST_LABELS, Rows, Source, cut_block, distinct, take_rows, told_of
from steelyard.fitting import check_classifies, check_regresses, pass_seeds
from steelyard.losses import Array, Loss, get_loss
from steelyard.online import OnlineLearner, Trace

_FIRST = 1 << 24  # bytes of the first rows, which decide what is learned
_VISITS = 1 << 16  # rows of a step where they are shuffled


class Goal(NamedTuple):
    """What is to be learned."""

    task: str
    """``"classification"`` or ``"regression"``."""
    loss: Loss
    classes: NDArray[Any] | None
    """The labels of a classification in order, numbers or text."""

    @property
    def n_outputs(self) -> int:
        """Of the learner: one for two classes or a regression, else one for each class."""
        return self.classes.size if self.classes is not None and self.classes.size > 2 else 1


def decide_goal(
    source: Source,
    first: Sequence[Rows],
    *,
    whole: bool,
    task: str | None = None,
    classes: Sequence[Any] | None = None,
    loss: str | Loss | None = None,
) -> Goal:
    """What to learn, as far as it is not said, from the first rows (all of them, with ``whole``).

    Two labels, or labels that are text, are classes; other numbers are real targets.
    """
    found = _labels(source, first)
    if not found.size and classes is None:
        what = "has no rows" if not any(rows.y.size for rows in first) else "has no labels"
        raise ValueError(f"{source.name} {what}: there is nothing to learn")
    text = source.label_names is not None
    if task is None:
        task = "classification" if text or classes is not None or found.size == 2 else "regression"
    if task == "regression":
        if text:
            raise OptionError(
                f"{source.name} has labels that are text, {_shown(found[0])} for example: they are no regression"
            )
        chosen = get_loss("squared" if loss is None else loss)
        check_regresses(chosen)
        return Goal(task, chosen, None)
    chosen = get_loss("logistic" if loss is None else loss)
    check_classifies(chosen)
    named = found if classes is None else _named_classes(source.name, classes, text)
    if classes is not None and named.size < 2:
        raise OptionError(f"a classifier needs at least two classes, got {list(classes)!r}")
    if classes is None and not text and named.size > 2 and (named != np.floor(named)).any():
        some = _shown(named[named != np.floor(named)][0])
        raise ValueError(
            f"{source.name} has {named.size} different labels, {some} for example: this looks like a regression, so "
            "say --task regression (OnlineRegressor), or name the classes with --classes (classes=)"
        )
    where = "" if whole or classes is not None else ", in its first rows"
    if named.size > MOST_LABELS and classes is None:
        raise ValueError(f"{source.name} has too many different labels for a classification{where}")
    if named.size < 2:
        more = "" if whole else ". If there are others later, name all of them with --classes (classes=)"
        raise ValueError(
            f"{source.name} has one label only{where}, {_shown(named[0])}: a classifier needs at least two{more}"
        )
    return Goal(task, chosen, named)


def _refuse_nan_labels(source: Source, rows: Rows) -> None:
    bad = np.flatnonzero(np.isnan(rows.y))
    if bad.size:
        with told_of(source, rows.before):
            raise DataError("label", int(bad[0]), None, float("nan"), "not finite")


def _labels(source: Source, first: Iterable[Rows]) -> NDArray[Any]:
    """The different labels of some rows, in order."""
    each = [distinct(rows.y) for rows in first]
    found = distinct(np.concatenate([np.empty(0), *each]))
    if source.label_names is None:
        return found
    return np.unique(np.array(source.label_names)[found.astype(np.intp)]) if found.size else np.empty(0, "U1")


def _named_classes(name: str, classes: Sequence[Any], text: bool) -> NDArray[Any]:
    if text:
        return np.unique([str(each) for each in classes])
    try:
        words = {"true": 1.0, "false": 0.0}  # which are numbers in every format
        return np.unique([float(words.get(str(each).lower(), each)) for each in classes])
    except ValueError:
        given = np.asarray(classes).tolist()
        raise OptionError(f"{name} has labels that are numbers, so classes must be, too, got {given}") from None


def _shown(label: Any) -> str:
    return repr(str(label)) if isinstance(label, str) else f"{label:g}"


def encode_labels(y: Array, goal: Goal, label_names: Sequence[str] | None, *, learns: bool = True) -> Array:
    """Labels as a learner wants them: -1 and +1 for two classes, numbers of classes for more, real ones as they are."""
    if goal.classes is None:
        return check_labels(y, goal.loss, y.size)
    if label_names is None and goal.classes.size == 2:  # a search would take longer than parsing does
        codes = y == goal.classes[1]
        right = codes | (y == goal.classes[0])
    elif label_names is None:
        codes = np.minimum(np.searchsorted(goal.classes, y), goal.classes.size - 1)
        right = goal.classes[codes] == y
    else:
        names = np.array(label_names)
        of_name = np.minimum(np.searchsorted(goal.classes, names), goal.classes.size - 1)
        codes = of_name[y.astype(np.intp)]
        right = (goal.classes[of_name] == names)[y.astype(np.intp)]
    bad = np.flatnonzero(~right)
    if bad.size:
        label: Any = float(y[bad[0]]) if label_names is None else label_names[int(y[bad[0]])]
        known = ", ".join(map(_shown, goal.classes[:10].tolist())) + (", …" if goal.classes.size > 10 else "")
        advice = "; name all of them with --classes (classes=)" if learns else ", which the model knows"
        why = f"none of the classes {known}{advice}"
        if isinstance(label, float) and not np.isfinite(label):
            why = "not finite"
        raise DataError("label", int(bad[0]), None, label, why, bad)
    if goal.classes.size == 2:
        return np.where(codes, 1.0, -1.0)
    return np.asarray(codes, np.float64)


class Ready(NamedTuple):
    """Rows that can be learned: labelled, encoded, checked."""

    block: Block
    y: Array
    weight: Array
    before: int
    kept: NDArray[np.intp] | None
    """Which of the source's rows they are, after ``before``; None where all are."""


class Feed:
    """Makes rows of a source ready to learn. What is wrong is raised, or with ``skip`` left out and counted.

    Attributes
    ----------
    unlabelled : int
        Rows without a label, which are left out.
    """

    def __init__(
        self, source: Source, goal: Goal, *, skip: bool = False, factors: Array | None = None, learns: bool = True
    ) -> None:
        self._learns = learns
        self._source, self._goal, self._skip, self._factors = source, goal, skip, factors
        self.unlabelled = 0

    def ready(self, rows: Rows) -> Ready:
        """The rows as learners take them."""
        block, y, weight, before = rows
        kept: NDArray[np.intp] | None = None
        if np.isnan(y).any() and self._source.labels_may_lack:
            kept = np.flatnonzero(~np.isnan(y))
            self.unlabelled += y.size - kept.size
            block, y, weight = take_rows(block, kept), y[kept], weight[kept]
        while True:
            try:
                return Ready(block, *self._checked(block, y, weight), before, kept)
            except DataError as error:
                place = error.row if kept is None else int(kept[error.row])
                told = DataError(error.part, place, error.column, error.value, error.reason)
                self._refuse(told, before)
                others = np.delete(np.arange(y.size), self._source.skipped.rest(error.rows))
                kept = others if kept is None else kept[others]
                block, y, weight = take_rows(block, others), y[others], weight[others]

    def _checked(self, block: Block, y: Array, weight: Array) -> tuple[Array, Array]:
        labels = encode_labels(y, self._goal, self._source.label_names, learns=self._learns)
        weight = check_weights(weight, labels.size)
        if self._skip:  # else the learner stops there itself
            check_finite(block)
        if self._factors is not None:
            codes = (labels + 1.0) / 2.0 if self._goal.n_outputs == 1 else labels
            weight = check_weights(weight * self._factors[codes.astype(np.intp)], labels.size)
        return labels, weight

    def _refuse(self, error: DataError, before: int) -> None:
        try:
            with told_of(self._source, before):
                raise error
        except ValueError as told:
            if not self._skip:
                raise
            self._source.skipped.add(told)


class Seen(NamedTuple):
    """Checksums of rows, which do not depend on where rows are cut into blocks."""

    labels: int = 0
    weights: int = 0
    sizes: int = 0
    indices: int = 0
    values: int = 0

    def add(self, ready: Ready) -> Seen:
        """With some more rows."""
        block = ready.block
        sizes = np.diff(block.indptr)
        used = slice(int(block.indptr[0]), int(block.indptr[-1]))
        return Seen(
            zlib.crc32(ready.y.data, self.labels),
            zlib.crc32(ready.weight.data, self.weights),
            zlib.crc32(sizes.data, self.sizes),
            self.indices if block.dense else zlib.crc32(block.indices[used].data, self.indices),
            zlib.crc32(block.data[used].data, self.values),
        )


class Position(NamedTuple):
    """How far a run has come: whole passes, and rows of the next one."""

    passes: int = 0
    rows: int = 0
    seen: Seen | None = None
    """Of the rows of this pass; of all rows, where they are shuffled. None where nobody asks."""
    whole: Seen | None = None
    """Of all rows, once a pass has gone through them as they stand."""


class OtherRows(OptionError):
    """A run that goes on is given other rows than those that were learned."""


class Step(NamedTuple):
    """What some rows were seen to be before they were learned."""

    trace: Trace
    y: Array
    """Their labels, as the learner has them."""
    position: Position
    first: Array | None = None
    """Where rows are visited again: the weight of those that are visited for the first time, and 0 for others."""


class Run:
    """Passes over a source, block by block as the rows stand, or shuffled with all of them in memory.

    Parameters
    ----------
    source : Source
    new_learner : callable
        Makes a learner for a goal.
    task, classes, loss : see :func:`decide_goal`
    passes, shuffle, seed : as the estimators have them
    skip : bool
        Leave rows out that cannot be learned from.
    factors : callable, optional
        What weights are multiplied by, for each of the classes.
    compact : bool
        Let the learner have records of the columns that are met only, where that is worth it: for those who show it
        and save it, and do nothing else with it.
    """

    def __init__(
        self,
        source: Source,
        new_learner: Callable[[Goal], OnlineLearner],
        *,
        task: str | None = None,
        classes: Sequence[Any] | None = None,
        loss: str | Loss | None = None,
        passes: int = 1,
        shuffle: bool = False,
        seed: int | np.random.RandomState = 0,
        skip: bool = False,
        factors: Callable[[Goal], Array | None] = lambda goal: None,
        compact: bool = False,
    ) -> None:
        if passes > 1 and not shuffle and not source.read_again:
            raise OptionError(f"{source.name} can be read only once, so there is one pass over it without shuffling")
        self.source, self.passes, self.shuffle, self._skip = source, passes, shuffle, skip
        self._seeds: list[int] = []
        if shuffle:  # NumPy's random numbers take time to import
            random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
            self._seeds = pass_seeds(random, passes)
        self._goal_options: dict[str, Any] = {"task": task, "classes": classes, "loss": loss}
        self._new_learner, self._factors = new_learner, factors
        self.columns = 0
        """How many there are, as far as the rows went."""
        self.rows: int | None = None
        """Of one pass, once they are counted: where rows are shuffled, one of weight 2 is visited twice."""
        self.examples: int | None = None
        """Rows of the data that are learned, where that is not what is counted."""
        self.position = Position()
        """How far the learner has come."""
        self.tells_rows = False
        """Whether positions say which rows were seen, so that another run can tell whether it has the same."""
        self.busy = False
        """Whether it is learning just now, and must not be interrupted."""
        self.asked_to_stop = False
        """Set by others, for those who go through the steps."""
        self.on_step: Callable[[Step], None] = lambda step: None
        """Told of every step before anything else can happen."""
        self._may_compact = compact
        self._compact: Compact | None = None
        self._first: Iterator[Rows] | None = None
        self._all: Rows | None = None
        self._begin()

    def _begin(self) -> None:
        """Look at the first rows, and decide."""
        if self.shuffle:
            self._all = self.source.whole()
            first = [self._all]
        else:
            blocks = self.source.stream()
            told = self._goal_options["classes"] is not None or self._goal_options["task"] == "regression"
            first, size = [], 0
            for rows in blocks:
                first.append(rows)
                size += rows.block.data.nbytes + rows.block.indices.nbytes
                if size >= _FIRST or (told and not np.isnan(rows.y).all()):  # a slow pipe is not waited for
                    break
            self._first = chain(first, blocks)
        if not self._skip and not self.source.labels_may_lack:
            for rows in first:
                _refuse_nan_labels(self.source, rows)
        self.goal = decide_goal(self.source, first, whole=self.shuffle, **self._goal_options)
        self.feed = Feed(self.source, self.goal, skip=self._skip, factors=self._factors(self.goal))
        self.learner = self._new_learner(self.goal)

    def steps(self, start: Position | None = None, most: int | None = None) -> Iterator[Step]:
        """Learn, at most so many rows at a time; where it ``start``s, the learner has come already.

        After the last one :meth:`finish` is to be called.
        """
        start = Position() if start is None else start
        return self._shuffled(start, most) if self.shuffle else self._streamed(start, most)

    def finish(self) -> OnlineLearner:
        """The learner, with as many columns as there were."""
        if self.learner.state is None:
            raise ValueError(f"{self.source.name} has no rows that can be learned from")
        if self._compact is not None:
            self.learner.spread = self._compact.spread()
        elif self.learner.n_features != self.columns:
            self.learner.resize(self.columns)
        return self.learner

    @contextmanager
    def whole_learner(self) -> Iterator[OnlineLearner]:
        """The learner with all its columns, to be saved on the way."""
        before = self.learner.spread
        try:
            if self._compact is not None:
                self.learner.spread = self._compact.spread()
            yield self.learner
        finally:
            self.learner.spread = before

    def notes(self) -> dict[str, Any]:
        """What a model file says beside the learner: what it predicts, and how rows are read for it."""
        classes = self.goal.classes
        return {
            "task": self.goal.task,
            "classes": None if classes is None else classes.tolist(),
            "data": self.source.schema(),
            "names": {str(index): name for index, name in self.source.names.items()},
        }

    # ----------------------------------------------------------------------------------------------- block by block

    def _streamed(self, start: Position, most: int | None) -> Iterator[Step]:
        whole = start.whole
        for number in range(self.passes):
            blocks = self.source.stream() if self._first is None else self._first
            self._first = None
            if number < start.passes:
                blocks = iter(())
            done = self.feed.unlabelled = 0
            skipped = start.rows if number == start.passes else 0
            seen = Seen() if self.tells_rows else None
            for rows in chain.from_iterable(_cut(rows, skipped, most) for rows in blocks):
                done = rows.before + rows.y.size
                self.columns = max(self.columns, rows.block.n_features)
                ready = self.feed.ready(rows)
                seen = None if seen is None else seen.add(ready)
                if done == skipped:
                    self._check_seen(start.seen, seen)
                if ready.y.size and done > skipped:
                    yield self._learn(ready, Position(number, done, seen, whole))
            if done < skipped:
                raise OtherRows(f"{self.source.name} has {done} rows, and {skipped} of its rows were learned before")
            if number >= start.passes:
                self.rows = done
                self._check_seen(whole, seen)
                whole = seen

    def _check_seen(self, before: Seen | None, seen: Seen | None) -> None:
        """Refuse rows that are not those that were learned before."""
        if seen is not None and before is not None and seen != before:
            raise OtherRows(f"the rows of {self.source.name} are not those that were learned before")

    def _learn(
        self, ready: Ready, position: Position, order: NDArray[np.int64] | None = None, first: Array | None = None
    ) -> Step:
        whole, y, weight, before, kept = ready
        self.busy = True
        try:
            if self._may_compact and self.learner.state is None:
                self._compact = compact_for(self.learner, whole)
            with told_of(self.source, before, kept):
                try:
                    block = self._widened(whole if self._compact is None else self._compact.take(whole))
                    trace = self.learner.learn_block(block, y, weight, order, keep=False)
                except MemoryError as error:
                    raise MemoryError(f"{error}; {self._suspect(whole, before)}") from None
                except DataError as error:
                    if self._compact is None or error.column is None:
                        raise
                    column = self._compact.column(error.column)
                    raise DataError(error.part, error.row, column, error.value, error.reason, error.rows) from None
            step = Step(trace, y if order is None else y[order], position, first)
            self.position = position
            self.on_step(step)
            return step
        finally:
            self.busy = False

    def _suspect(self, block: Block, before: int) -> str:
        """Where the largest index is, which asks for a table that is too large."""
        if block.dense or not block.indices.size:
            return f"{self.source.name} has {block.n_features} columns"
        at = int(block.indices[: int(block.indptr[-1])].argmax())
        row = int(np.searchsorted(block.indptr, at, side="right")) - 1
        return (
            f"{self.source.name} has {block.n_features} columns: is its largest index, in "
            f"{self.source.place(before + row)}, a mistake? Indices can be hashed into fewer, with --bits (bits=)"
        )

    def _widened(self, block: Block) -> Block:
        """The block with the learner's columns, which become twice as many if there are too few."""
        if self.learner.state is None:
            return block
        if block.n_features > self.learner.n_features:
            try:
                self.learner.resize(max(block.n_features, 2 * self.learner.n_features))
            except ValueError:  # of a matrix over all pairs
                raise OptionError(
                    f"{self.source.name} has {block.n_features} columns, its first rows had {self.learner.n_features}, "
                    "and the matrix of metric full cannot grow: hash features with --bits (bits=), or leave out "
                    "--no-shuffle"
                ) from None
        return block if block.dense else replace(block, n_features=self.learner.n_features)

    # ---------------------------------------------------------------------------------------------------- shuffled

    def _shuffled(self, start: Position, most: int | None) -> Iterator[Step]:
        if self._all is None:
            raise AssertionError("the rows were used up")
        ready = self.feed.ready(self._all)
        self._all = None
        ready = ready._replace(block=inspected(ready.block))
        self.columns, self.examples = ready.block.n_features, ready.y.size
        seen = Seen().add(ready) if self.tells_rows else None
        self._check_seen(start.seen, seen)
        groups = group_equal_rows(ready.block, ready.y, ready.weight)
        for number in range(start.passes, self.passes):
            order, weight = shuffled_visits(groups, ready.y.size, self._seeds[number])
            self.rows = order.size
            size = max(_VISITS, order.size // 32) if most is None else most
            first = first_visits(groups, order, ready.y.size) if number == 0 else None
            for lo in range(start.rows if number == start.passes else 0, order.size, size):
                part, position = order[lo : lo + size], Position(number, min(lo + size, order.size), seen)
                new = None if first is None else first[lo : lo + size]
                yield self._learn(ready._replace(weight=weight), position, part, new)


def _cut(rows: Rows, skipped: int, most: int | None) -> Iterator[Rows]:
    """Some rows, in pieces of at most so many; those that are ``skipped`` in pieces of their own."""
    at, size = 0, rows.y.size
    while at < size:
        end = size if most is None else min(size, at + most)
        if rows.before + at < skipped < rows.before + end:
            end = skipped - rows.before
        whole = at == 0 and end == size
        piece = slice(at, end)
        yield (
            rows if whole else Rows(cut_block(rows.block, piece), rows.y[piece], rows.weight[piece], rows.before + at)
        )
        at = end
