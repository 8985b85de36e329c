"""Learning one event at a time: the thin path from a dict of names and values to the kernel.

The model is the same to the bit as if the events came in blocks. All that a block of one row would prepare anew each
time is prepared once: arrays for one row, and kernels that are bound to them and to the state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from steelyard.compiled.door import bind_kernel
from steelyard.data.checks import MOST_WEIGHT, DataError
from steelyard.data.event import EventRow, shown
from steelyard.kernels import layout
from steelyard.losses import CustomLoss
from steelyard.mixture import _POWERS, Mixture
from steelyard.online import OnlineLearner, Progress


class _Stopped(Exception):
    """The kernel came to a row that it cannot learn, or that must not be learned this way."""


class EventLearner:
    """A learner of hashed features that takes one event at a time. Not to be shared between threads.

    Examples
    --------
    >>> from steelyard import Learner
    >>> from steelyard.events import EventLearner
    >>> events = EventLearner(Learner("logistic", eta0=0.5))
    >>> for job, y in [("clerk", -1.0), ("cook", 1.0), ("clerk", -1.0)]:
    ...     events.learn({"job": job, "age": 41}, y)
    >>> events.predict({"job": "clerk", "age": 41})[0] < 0.0 < events.predict({"job": "cook"})[0]
    True
    """

    def __init__(self, learner: OnlineLearner, bits: int = 18) -> None:
        self.learner = learner
        self.row = EventRow(bits)
        self._unbind()

    def _unbind(self) -> None:
        self._state: Any = None
        self._room = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"learner": self.learner, "bits": self.row.bits}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(kept["learner"], kept["bits"])  # type: ignore[misc]

    # ------------------------------------------------------------------------------------------------------- binding

    def _bind(self) -> bool:
        """Make the kernels ready for the state as it is; False where rows must go the way of blocks."""
        learner, state, row = self.learner, self.learner.state, self.row
        if state is None or learner._origin is None or isinstance(learner.loss, CustomLoss):
            return False
        if learner.n_features != 1 << row.bits or not learner._changes_row_only(state):
            return False
        outputs, length = learner.n_outputs, int(row.indptr[1])
        sizes = (1, 1, outputs, outputs)
        buffers: list[Any] = [np.zeros(size) for size in sizes]
        y, weight, prediction, loss = buffers
        block = row.whole()
        name, given = learner._arguments(block, np.zeros(1, np.int64), y, weight, state, prediction, loss)
        row.indptr[1] = length
        self._learn: Callable[[], int] = bind_kernel(name, given)
        views: list[Any] = [memoryview(array) for array in buffers]
        self._y, self._weight, self._prediction, self._loss = views
        self._predict = self._bind_predict(prediction)
        self._bind_keep(1 << 12)
        self._place, self._step = layout.LOSS, layout.SUMS_SIZE
        if isinstance(learner, Mixture):
            self._place, self._step = layout.EVIDENCE, layout.MIX_SUMS_SIZE
        self._sums = memoryview(state.sums.reshape(-1))
        self._unit = self._loss_unit = 1.0
        if isinstance(learner, Mixture) and learner.label_range is not None:
            self._unit = float(state.clocks[layout.LABEL_UNIT])
            self._loss_unit = learner._loss_unit(state)
        self._outputs = range(outputs)
        self._state, self._room = state, row.room
        return True

    def _bind_predict(self, prediction: Any) -> Callable[[], Any] | None:
        """The mixture has a kernel for it; others learn with weight 0, which changes nothing."""
        learner, row = self.learner, self.row
        if not isinstance(learner, Mixture):
            return None
        state: Any = learner.state
        tables = (state.table, state.table.view(np.float64), state.sums, state.clocks, state.centered)
        options = (learner._kind, learner._labels, learner._record)
        given = (row.values, row.indices, row.indptr, *tables, *options, _POWERS, np.empty(layout.EXPERTS), prediction)
        return bind_kernel("predict_event", given)

    def _bind_keep(self, size: int) -> None:
        learner, state, row = self.learner, self.learner.state, self.row
        self._saved = np.zeros(size)
        mixed = isinstance(learner, Mixture)
        table = state.table.view(np.float64)
        centered = state.centered if mixed else np.empty(0, np.uint64)
        counted = layout.CENTERED if mixed else layout.MIX_CLOCKS_SIZE + layout.CLOCKS_SIZE * learner.n_outputs
        flat = (state.clocks.reshape(-1), state.sums.reshape(-1))
        width = learner._record // 2 if mixed else learner._record  # type: ignore[attr-defined]
        given = (row.indices, row.indptr, table, width, state.dual, learner.n_outputs, *flat, centered, counted)
        self._keep: Callable[[], int] = bind_kernel("keep_event", (*given, self._saved, False))
        self._put_back: Callable[[], int] = bind_kernel("keep_event", (*given, self._saved, True))

    # ------------------------------------------------------------------------------------------------------ learning

    def learn(self, x: Mapping[str, Any], y: float, w: float = 1.0) -> None:
        """Learn one event, with a label that the loss takes. Where this raises, everything is as it was."""
        try:
            right = 0.0 <= w <= MOST_WEIGHT
        except TypeError:
            right = False
        if not right:
            raise ValueError(f"w is {shown(w)}: weights must be finite and not negative, and at most {MOST_WEIGHT:g}")
        row, learner = self.row, self.learner
        row.read(x)
        if (learner.state is not self._state or row.room != self._room or self._state is None) and not self._bind():
            self._learn_block(x, y, w)
            return
        self._y[0], self._weight[0] = y / self._unit, w
        needed = self._keep()
        if needed > self._saved.size:
            self._bind_keep(2 * needed)
            self._keep()
        before = learner.progress
        try:
            if self._learn() != -1:
                raise _Stopped
            for k in self._outputs:
                if not math.isfinite(self._sums[k * self._step + self._place]):
                    raise _Stopped  # the way of blocks warns of it
            if before is not None and w > 0.0:
                lost = self._loss[0] if len(self._outputs) == 1 else sum(self._loss) / len(self._outputs)
                total = before.weight + w
                old = before.average * (before.weight / total) if before.weight > 0.0 else 0.0
                learner.progress = Progress(old + lost * self._loss_unit * (w / total), total)
            learner._coef = None
        except BaseException as error:
            self._put_back()
            learner.progress = before
            if not isinstance(error, _Stopped):
                raise
            self._learn_block(x, y, w)

    def _learn_block(self, x: Mapping[str, Any], y: float, w: float) -> None:
        try:
            self.learner.learn_block(self.row.block(), np.array([y], np.float64), np.array([w], np.float64))
        except DataError as error:
            raise self._named(error, x) from None

    def _named(self, error: DataError, x: Mapping[str, Any]) -> ValueError:
        """The same with the name of the feature in place of row and column."""
        if error.part != "feature":
            return error
        return ValueError(f"the feature {self.row.name_of(error.column, x)!r} is {error.value}: {error.reason}")

    # ---------------------------------------------------------------------------------------------------- predicting

    def predict(self, x: Mapping[str, Any]) -> list[float]:
        """The prediction of each output for an event, which costs no more for more features of the model."""
        row, learner = self.row, self.learner
        row.read(x)
        if (learner.state is not self._state or row.room != self._room or self._state is None) and not self._bind():
            return self._predict_block(x)
        if self._predict is not None:
            self._predict()
        else:
            self._y[0] = 1.0
            self._weight[0] = 0.0
            if self._learn() != -1:
                return self._predict_block(x)
        found: list[float] = self._prediction.tolist()
        for p in found:
            if not math.isfinite(p):
                return self._predict_block(x)
        return found

    def _predict_block(self, x: Mapping[str, Any]) -> list[float]:
        from steelyard.data.checks import check_finite

        block = self.row.block()
        try:
            check_finite(block)
        except DataError as error:
            raise self._named(error, x) from None
        return [float(p) for p in self.learner.predict_block(block).ravel()]
