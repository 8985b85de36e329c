"""The life of a learner, whatever it learns with: check, learn, undo, predict, save and load.

:class:`~steelyard.Learner` (one rate), :class:`~steelyard.Bank` (many) and :class:`~steelyard.Mixture` (none to choose)
are siblings under this roof. Each has a state of its own, a named tuple of plain arrays: weights, clocks (what sets the
rates) and sums (what adds up over rows), with options kept apart from them.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel
from steelyard.data.block import Block, as_block, inspected
from steelyard.data.checks import check_finite, check_rows, nonfinite_rows, refuse_rows, refuse_scale
from steelyard.data.memory import thin_copy
from steelyard.losses import Array, CustomLoss, Loss, get_loss
from steelyard.regularizers import check_flag
from steelyard.snapshot import Journal, Snapshot
from steelyard.sparsearrays import SparseArray, Spread, sparse_array

if TYPE_CHECKING:
    from steelyard.certificate import Certificate

MOST_OUTPUTS = 1_000_000
_SAMPLE = 512  # numbers of the first rows that name a learner
_Self = TypeVar("_Self", bound="OnlineLearner")


class Trace(NamedTuple):
    """What a call of ``learn`` saw, row by row, before each row was learned.

    ``prediction`` and ``loss`` have one entry a row, or one row of entries where there are several outputs.
    """

    prediction: Array
    loss: Array
    weight: Array

    def __repr__(self) -> str:
        return f"<Trace of {len(self.loss)} rows: average loss {self.average_loss:.6g}>"

    @property
    def average_loss(self) -> float:
        """The progressive loss: the weighted average of the losses, over outputs too. NaN without weight."""
        total = float(self.weight.sum())
        per_row = self.loss if self.loss.ndim == 1 else self.loss.mean(axis=1)
        counting = np.where(self.weight > 0.0, per_row, 0.0)  # a row of weight 0 may have an infinite loss
        return float(self.weight @ counting) / total if total > 0.0 else float("nan")


class Progress(NamedTuple):
    """The average loss so far, and of how much weight."""

    average: float = float("nan")
    weight: float = 0.0

    def add(self, trace: Trace) -> Progress:
        """The same with what a call of ``learn`` saw."""
        return self.join(Progress(trace.average_loss, float(trace.weight.sum())))

    def join(self, other: Progress) -> Progress:
        """The average of both, each by its weight."""
        if not other.weight > 0.0 or not self.weight > 0.0:
            return other if other.weight > 0.0 else self
        share = other.weight / (self.weight + other.weight)
        return Progress((1.0 - share) * self.average + share * other.average, self.weight + other.weight)


class Origin(NamedTuple):
    """What tells a learner and its copies from others: the first rows that it has learned, and how many they were."""

    name: str
    rows: int


def _origin_of(state: Any, block: Block, y: Array) -> str:
    parts = (state.sums, state.clocks, *(array[:_SAMPLE] for array in (block.data, block.indices, y)))
    return hashlib.blake2b(b"".join(part.tobytes() for part in parts), digest_size=8).hexdigest()


class _Stopped(Exception):
    """A kernel came to a row that it cannot learn."""


class OnlineLearner:
    """What :class:`Learner`, :class:`Bank` and :class:`Mixture` share. Not to be shared between threads."""

    certificate = False
    """Whether it keeps what a regret bound needs."""
    record_bytes: int | None = None
    """What a feature takes in its table; None where the number of features must be known from the start."""
    inspects_indices = False
    """Whether the kernel looks at the indices of sparse rows itself."""

    def __init__(self, loss: str | Loss, *, fit_intercept: bool, n_outputs: int, one_vs_rest: bool) -> None:
        self.loss = get_loss(loss)
        self.fit_intercept = check_flag("fit_intercept", fit_intercept)
        self.n_outputs = int(n_outputs)
        if not 1 <= self.n_outputs <= MOST_OUTPUTS:
            raise ValueError(f"n_outputs must be at least 1, and at most {MOST_OUTPUTS}, got {n_outputs}")
        self.one_vs_rest = one_vs_rest
        if one_vs_rest and self.loss.invalid_labels(np.array([-1.0, 1.0])).size:
            raise ValueError(f"the {self.loss.name} loss takes {self.loss.domain}, so it has no one-vs-rest form")
        self.state: Any = None
        """The learned arrays, None before anything is learned. A copy of them is a snapshot."""
        self.notes: dict[str, Any] = {}
        """What goes into the model file with the learner: anything that JSON can hold."""
        self.progress: Progress | None = None
        """Where it is set: the average loss of all rows before they were learned, kept up to date."""
        self.spread: Spread | None = None
        """Where it is set, the state has records of these columns only: it is to be shown and saved, and no more."""
        self._coef: Array | None = None
        self._origin: Origin | None = None
        """What tells this learner and its copies from others, for ``merge``; not in model files."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in self.state or ())

    # ------------------------------------------------------------------------- what each kind of learner says itself

    def _new_state(self, n_features: int) -> Any:
        """A state in which nothing is learned."""
        raise NotImplementedError

    def _record_arrays(self, state: Any) -> list[NDArray[Any]]:
        """Views of the arrays that have a row for each feature, and one for the intercept at their end."""
        raise NotImplementedError

    def _snapshot(self, block: Block, state: Any, weight: Array) -> Snapshot | Journal:
        """What learning the block may change."""
        raise NotImplementedError

    def _run_kernel(
        self,
        block: Block,
        order: NDArray[np.int64],
        y: Array,
        weight: Array,
        state: Any,
        prediction: Array,
        loss: Array,
        snapshot: Snapshot | Journal | None,
    ) -> int:
        """Learn the rows; returns the place in ``order`` where it had to stop, or -1."""
        raise NotImplementedError

    def _arguments(
        self,
        block: Block,
        order: NDArray[np.int64],
        y: Array,
        weight: Array,
        state: Any,
        prediction: Array,
        loss: Array,
    ) -> tuple[str, tuple[Any, ...]]:
        """The kernel that learns the rows, by its name, and what it takes."""
        raise NotImplementedError

    def _changes_row_only(self, state: Any) -> bool:
        """Whether a row changes nothing but records of its features, of centered ones and of the intercept, and sums:
        one that is learned by itself can then be undone by ``kernels.event``."""
        raise NotImplementedError

    def _check_results(self, state: Any, prediction: Array, order: NDArray[np.int64]) -> None:
        """Warn of what the rows have led to."""

    def _solve_coefficients(self, state: Any) -> Array:
        """x of every feature and output, the intercept in the last row."""
        raise NotImplementedError

    def parts(self) -> dict[str, SparseArray | NDArray[Any]]:
        """The arrays of the state by their names, as they are stored: those that are mostly zero by their records."""
        if self.state is None:
            return {}
        rows = self.n_features + 1
        return {name: sparse_array(array, rows) or array for name, array in self.state._asdict().items()}

    def _options(self) -> dict[str, Any]:
        """What makes another learner like this one, beside the loss."""
        raise NotImplementedError

    def _rows(self) -> int:
        """How many rows were learned."""
        raise NotImplementedError

    def certify(self, output: int = 0) -> Certificate:
        """The certificate of one output: a regret bound for any comparator, over everything learned so far."""
        raise ValueError("this learner keeps no certificate")

    # ------------------------------------------------------------------------------------------------------ learning

    def learn(self, X: Any, y: Any, sample_weight: Any = None, *, order: Any = None) -> Trace:
        """Learn a block of rows, in the given ``order`` of rows (as they come, without one).

        Where this raises, for whatever reason, the learner is as it was.
        """
        classes = self.n_outputs if self.one_vs_rest else None
        inspect = not self.inspects_indices
        return self.learn_block(*check_rows(X, y, sample_weight, order, self.loss, classes, inspect=inspect))

    def learn_block(
        self, block: Block, y: Array, weight: Array, order: NDArray[np.int64] | None = None, *, keep: bool = True
    ) -> Trace:
        """:meth:`learn` for what is checked already.

        Without ``keep``, a failure leaves the learner unusable, which is for callers who then throw it away.
        """
        known = self.state
        if known is not None and not keep:  # a kernel that stops at indices in disorder could not be undone
            block = inspected(block)
        if known is not None and block.n_features != self.n_features:
            raise ValueError(f"X has {block.n_features} features, but the learner has learned {self.n_features}")
        rows = np.arange(y.size, dtype=np.int64) if order is None else order
        seen = weight if order is None else weight[order]
        state = self._new_state(block.n_features) if known is None else known
        snapshot: Snapshot | Journal | None = None
        if keep and known is not None:
            snapshot = self._snapshot(block, state, seen)
        stopped = -1
        try:
            prediction, loss = np.empty((2, rows.size * self.n_outputs))
            stopped = self._run_kernel(block, rows, y, weight, state, prediction, loss, snapshot)
            if stopped >= 0:
                raise _Stopped
            if isinstance(self.loss, CustomLoss):
                self._check_custom_loss(prediction, y, rows)
            self._check_results(state, prediction, rows)
            shape = (rows.size,) if self.n_outputs == 1 else (rows.size, self.n_outputs)
            trace = Trace(prediction.reshape(shape), loss.reshape(shape), seen)
            progress = None if self.progress is None else self.progress.add(trace)
            self.state, self._coef, self.progress = state, None, progress
            if self._origin is None:
                self._origin = Origin(_origin_of(state, block, y), self._rows())
        except BaseException as error:  # an interrupt, too, which arrives when the kernel is done
            try:
                self._restore(known, snapshot)
            except BaseException:  # a second interrupt
                self._restore(known, snapshot)
                raise
            if not isinstance(error, _Stopped):
                raise
        else:
            if snapshot is not None:
                snapshot.release()
            return trace
        if not block.inspected:
            return self.learn_block(inspected(block), y, weight, order, keep=keep)
        refuse_rows(block, np.append(nonfinite_rows(block, rows), rows[stopped]))
        refuse_scale(block, int(rows[stopped]))
        raise AssertionError("a kernel stopped at a row that it can learn")

    def _restore(self, known: Any, snapshot: Snapshot | Journal | None) -> None:
        if snapshot is not None:
            snapshot.restore()
        self.state, self._coef = known, None

    def _check_custom_loss(self, prediction: Array, y: Array, rows: NDArray[np.int64]) -> None:
        """A user's loss that raises gives NaN where it is compiled: what it was asked for is named."""
        from steelyard.updates import evaluate

        labels = np.repeat(y[rows], self.n_outputs)
        if self.one_vs_rest:
            labels = np.where(labels == np.tile(np.arange(self.n_outputs), rows.size), 1.0, -1.0)
        asked = np.flatnonzero(np.isfinite(prediction))
        value, slope, _, _ = evaluate(self.loss, "linearized", prediction[asked], labels[asked], 0.0)
        bad = np.flatnonzero(np.isnan(value) | np.isnan(slope))
        if bad.size:
            at = asked[bad[0]]
            raise ValueError(
                f"CustomLoss: {'value' if np.isnan(value[bad[0]]) else 'slope'} raises, or is not a number, at "
                f"p={prediction[at]}, y={labels[at]:g}, in row {rows[at // self.n_outputs]}"
            )

    def resize(self, n_features: int) -> None:
        """Have so many columns from now on: new ones are as if they had always been there and been zero.

        Columns are left out only where nothing was learned of them, which the caller knows.
        """
        state = self._learned()
        new = self._new_state(n_features)
        kept = min(n_features, self.n_features)
        for old, other in zip(self._record_arrays(state), self._record_arrays(new), strict=True):
            other[:kept], other[-1] = old[:kept], old[-1]
        self.state, self._coef = self._resized(state, new), None

    def _resized(self, state: Any, new: Any) -> Any:
        """A state with the records of ``new`` and all else of ``state``."""
        return new._replace(clocks=state.clocks, sums=state.sums)

    # ---------------------------------------------------------------------------------------------------- predicting

    def predict(self, X: Any) -> Array:
        """<q, x> for every row: (rows,), or (rows, outputs) where there are several."""
        block = as_block(X)
        check_finite(block)
        return self.predict_block(block)

    def predict_block(self, block: Block) -> Array:
        """:meth:`predict` for what is checked already."""
        coef = self._coefficients()
        if block.n_features != self.n_features:
            raise ValueError(f"X has {block.n_features} features, but the learner has learned {self.n_features}")
        out = np.empty(block.n_rows * self.n_outputs)
        if block.n_rows:
            get_kernel("predict", *block.types)(*block.arrays, coef.reshape(-1), block.dense, out)
        return out if self.n_outputs == 1 else out.reshape(-1, self.n_outputs)

    def _learned(self) -> Any:
        if self.state is None:
            raise ValueError("this learner has not learned anything yet: call learn first")
        return self.state

    def _coefficients(self) -> Array:
        """x of every feature and output, the intercept in the last row; kept until the next ``learn``."""
        state = self._learned()
        if self._coef is None:
            self._coef = self._solve_coefficients(state)
        return self._coef

    @property
    def n_features(self) -> int:
        """How many features the learner has seen, without the intercept."""
        state = self._learned()
        return len(self._record_arrays(state)[0]) - 1 if self.spread is None else self.spread.n_features

    @property
    def coef_(self) -> Array:
        """The weights: (features,), or (outputs, features)."""
        x = self._coefficients()[:-1]
        return thin_copy(x[:, 0]) if self.n_outputs == 1 else np.array(x.T)

    @property
    def intercept_(self) -> Any:
        """The weight of the constant feature, a number or one an output."""
        x = self._coefficients()[-1]
        return float(x[0]) if self.n_outputs == 1 else x.copy()

    # --------------------------------------------------------------------------------------------------- model files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file, atomically: a reader sees the old file or the new one, whole."""
        from steelyard.modelfile import save

        save(self, path)

    @classmethod
    def load(cls: type[_Self], path: str | os.PathLike[str], *, loss: CustomLoss | None = None) -> _Self:
        """Read a learner of any kind; one with a user's own loss needs that ``loss`` again: functions are not saved."""
        from steelyard.modelfile import load

        return load(path, loss=loss)  # type: ignore[return-value]
