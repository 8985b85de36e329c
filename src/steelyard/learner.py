"""The learner: a state of plain arrays, learned block by block or row by row with the same result to the bit."""

from __future__ import annotations

import json
import os
import warnings
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.blocks import (
    Block,
    as_block,
    check_finite,
    check_labels,
    check_order,
    check_weights,
    inspected,
    refuse_rows,
    strange_rows,
)
from steelyard.files import atomic_write
from steelyard.losses import LOSSES, Array, CustomLoss, Loss, get_loss
from steelyard.schedules import SCHEDULES, Regularizer
from steelyard.updates import check_update

if TYPE_CHECKING:
    from steelyard.certificate import Certificate

_FORMAT = 1


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
        return float(self.weight @ per_row) / total if total > 0.0 else float("nan")


class State(NamedTuple):
    """Everything a learner has learned. A copy of the arrays is a snapshot."""

    table: NDArray[Any]
    """Weights and, under the diagonal metric, scales and sums of squared gradients: see ``_rows`` and ``_mixture``."""
    scalars: Array
    """One row an output: eta0, cumulated weight, lam, sum of squared gradients, cumulated loss, …"""
    dual: Array
    """The sum of h*c*q, (features + 1) x outputs, where a certificate needs it beside the table; else empty. For a
    mixture, what its outputs share."""


class Learner:
    """Generalized implicit FTRL for linear predictions. Not to be shared between threads.

    Each round predicts ``p = <q, x>``, computes ``c = update(p, y, a)`` and moves the model along ``-c*q``.

    Parameters
    ----------
    loss : str or Loss
    update : {"iwa", "proximal", "aprox", "linearized"}
    schedule : {"power", "constant", "adagrad-norm", "gap"}
    metric : {"diagonal", "scalar"}
        ``diagonal`` divides each feature by its running scale, so that raw columns work.
    center : {"trajectory", "origin"}
        ``origin`` is FTRL (the paper's), ``trajectory`` is mirror descent.
    eta0 : float
        The initial learning rate, 1/lam_1.
    power_t : float
        The exponent of ``schedule="power"``.
    radius : float, optional
        Keep the model in the ball ``||x|| <= radius``, intercept included (scalar metric).
    fit_intercept : bool
        Learn a constant feature.
    n_outputs : int
        1, or the number of classes of a one-vs-rest problem, whose labels are 0 … n_outputs-1.
    certificate : bool, optional
        Keep what a regret bound needs; see :meth:`certify`. By default where it is nearly free: one output with center
        ``origin``. With center ``trajectory`` it takes one more vector, and one more addition a non-zero.
    guard : bool
        Keep Algorithm 1's condition H_t(z_t) <= H_t(g_t) also where lam grows, by taking another surrogate slope where
        the update's own breaks it.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import Learner
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> learner = Learner(loss="logistic", eta0=1.0)
    >>> round(learner.learn(X, y).average_loss, 4)
    0.7855
    >>> learner.predict(X).round(3)
    array([ 0.362, -0.297])
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        update: str = "iwa",
        schedule: str = "power",
        metric: str = "diagonal",
        center: str = "trajectory",
        eta0: float = 1.0,
        power_t: float = 0.5,
        radius: float | None = None,
        fit_intercept: bool = True,
        n_outputs: int = 1,
        certificate: bool | None = None,
        guard: bool = False,
    ) -> None:
        self.loss = get_loss(loss)
        self.update = update
        self.regularizer = Regularizer(schedule, metric, center, eta0, power_t, radius)
        self.fit_intercept = bool(fit_intercept)
        self.n_outputs = int(n_outputs)
        if self.n_outputs < 1:
            raise ValueError(f"n_outputs must be at least 1, got {n_outputs}")
        if self.n_outputs > 1 and self.loss.invalid_labels(np.array([-1.0, 1.0])).size:
            raise ValueError(f"the {self.loss.name} loss takes {self.loss.domain}, so it has no one-vs-rest form")
        self._eta0 = np.full(self.n_outputs, self.regularizer.eta0)
        self._rules = np.full(self.n_outputs, check_update(update, self.loss))
        self._one_vs_rest = self.n_outputs > 1
        if certificate is None:
            certificate = self.n_outputs == 1 and center == "origin"
        self.certificate = bool(certificate)
        if guard and (center, metric, radius) != ("origin", "scalar", None):
            raise ValueError(
                "guard=True needs center='origin', metric='scalar' and no radius: Algorithm 1's condition is for those"
            )
        self.guard = bool(guard)
        self.state: State | None = None
        self.notes: dict[str, Any] = {}
        """What goes into the model file with the learner: anything that JSON can hold."""
        self._coef: Array | None = None

    # ------------------------------------------------------------------------------------------ learning

    def learn(self, X: Any, y: Any, sample_weight: Any = None, *, order: Any = None) -> Trace:
        """Learn a block of rows, in the given ``order`` of rows (as they come, without one).

        Where this raises, the learner is as it was.
        """
        block = as_block(X, inspect=not self._inspects)
        if order is not None:
            order = check_order(order, block.n_rows)
        return self._learn(block, *self._check_targets(block, y, sample_weight), order)

    def _check_targets(self, block: Block, y: Any, sample_weight: Any) -> tuple[Array, Array]:
        if not self._one_vs_rest:
            labels = check_labels(y, self.loss, block.n_rows)
        else:
            labels = np.ascontiguousarray(y, dtype=np.float64)
            bad = np.flatnonzero(~np.isin(labels, np.arange(self.n_outputs)))
            if labels.shape != (block.n_rows,) or bad.size:
                what = f"class {labels.ravel()[bad[0]]:g} in row {bad[0]}" if bad.size else f"shape {labels.shape}"
                raise ValueError(f"y must hold a class 0 … {self.n_outputs - 1} for each row, got {what}")
        return labels, check_weights(sample_weight, block.n_rows)

    def _learn(self, block: Block, y: Array, weight: Array, order: NDArray[np.int64] | None) -> Trace:
        state = self._state_for(block)
        seen = weight if order is None else weight[order]
        if order is None:
            order = np.arange(block.n_rows, dtype=np.int64)
        prediction, loss = np.empty((2, order.size * self.n_outputs))
        undo = None if self.state is None else self._undo(block, state)
        bad = self._run_kernel(block, order, y, weight, state, prediction, loss)
        if bad >= 0:
            if undo is not None:
                undo()
            if not block.inspected:
                return self._learn(inspected(block), y, weight, order)
            refuse_rows(block, np.append(strange_rows(block, order), order[bad]))
            raise ValueError(
                f"row {order[bad]} of X is too large or too small for a float, measured in the metric; rescale it"
            )
        try:
            self._look_for_divergence(state, prediction, order)
        except Warning:  # where the user's filter makes errors of warnings
            if undo is not None:
                undo()
            raise
        self.state = state
        self._coef = None
        shape = (order.size,) if self.n_outputs == 1 else (order.size, self.n_outputs)
        return Trace(prediction.reshape(shape), loss.reshape(shape), seen)

    def _run_kernel(
        self,
        block: Block,
        order: NDArray[np.int64],
        y: Array,
        weight: Array,
        state: State,
        prediction: Array,
        loss: Array,
    ) -> int:
        """Learn the rows; returns the place in ``order`` where it had to stop, or -1."""
        from steelyard._library import compiled_conjugate, compiled_loss, get_kernel

        step, parameters, _ = compiled_loss(self.loss)
        conjugate = 0 if self.regularizer.radius is None else compiled_conjugate(self.loss)
        params = np.tile(parameters, (self.n_outputs, 1))
        params[:, 0] = self._rules
        params[:, 1] = self.certificate or self.guard or self.regularizer.schedule == "gap"
        work = np.empty(13 * (-(-self.n_outputs // 16) * 16))
        learn = get_kernel(self._kernel, *block.types)
        rows = (*block.arrays, order, y, weight)
        return int(learn(step, conjugate, params, *rows, *state, self._config(block), work, prediction, loss))

    def _undo(self, block: Block, state: State) -> Callable[[], None]:
        """A function that puts the state back to what it is now, if the kernel stops at a row it cannot learn.

        It keeps the whole state, or what the features of the block own in it, if that is less.
        """
        records: Any = slice(None)
        if not block.dense and state.table.size >= block.data.size:
            records = np.append(block.indices[block.indices < block.n_features].astype(np.intp), block.n_features)
        views = (state.table.reshape(-1, self._record), state.dual.reshape(-1, self.n_outputs))
        copies = [view[records].copy() if view.size else view for view in views]
        scalars = state.scalars.copy()

        def undo() -> None:
            for view, copy in zip(views, copies, strict=True):
                if view.size:
                    view[records] = copy
            state.scalars[:] = scalars

        return undo

    def _look_for_divergence(self, state: State, prediction: Array, order: NDArray[np.int64]) -> None:
        if np.isfinite(state.scalars[:, _LOSS]).all():
            return
        bad = np.flatnonzero(~np.isfinite(prediction))
        where = f", first predicted in row {order[bad[0] // self.n_outputs]}" if bad.size else ""
        advice = "Use update='iwa', or a smaller eta0."
        if self.update in ("iwa", "proximal"):
            advice = "Such an update never overshoots: look for labels or weights that are too large themselves."
        warnings.warn(
            f"the losses grew past what a float can hold{where}: update={self.update!r} with "
            f"eta0={self.regularizer.eta0:g} diverges on this data. {advice}",
            RuntimeWarning,
            stacklevel=4,
        )

    def _state_for(self, block: Block) -> State:
        """The state, a new one at the first call, which fixes the number of features."""
        if self.state is None:
            return self._empty_state(block.n_features)
        if block.n_features != self.n_features:
            raise ValueError(f"X has {block.n_features} features, but the learner has learned {self.n_features}")
        return self.state

    def _empty_state(self, n_features: int) -> State:
        scalars = np.zeros((self.n_outputs, _COLUMNS))
        scalars[:, _ETA0] = self._eta0
        scalars[:, _LAM] = 1.0 / self._eta0
        scalars[:, _SCALE] = 1.0
        beside = self.certificate and self.regularizer.center == "trajectory"
        dual = np.zeros((n_features + 1) * self.n_outputs if beside else 0)
        table = np.zeros((n_features + 1, self._record))
        if self.regularizer.metric == "diagonal":
            table[-1, 0] = 1.0  # the intercept's scale
        return State(table.reshape(-1), scalars, dual)

    @property
    def _kernel(self) -> str:
        """The kernel that learns with as little as these options need."""
        if self.n_outputs > 1:
            return "learn_many"
        r = self.regularizer
        beside = self.certificate and r.center == "trajectory"
        plain = r.radius is None and not (r.adaptive or beside or self.guard)
        return "learn_plain" if plain else "learn"

    @property
    def _inspects(self) -> bool:
        """Whether the kernel looks at the indices of sparse rows itself."""
        return self._kernel == "learn_plain"

    @property
    def _record(self) -> int:
        """Numbers a feature owns in the table."""
        if self.regularizer.metric == "scalar":
            return self.n_outputs
        return 1 + (2 if self.regularizer.adaptive else 1) * self.n_outputs

    def _config(self, block: Block) -> Array:
        r = self.regularizer
        radius = np.inf if r.radius is None else r.radius
        flags = (r.center == "origin", r.metric == "diagonal", r.adaptive)
        in_vectors = {"logistic": 1, "squared": 2}.get(self.loss.name, 0)
        more = (self.fit_intercept, block.dense, self._one_vs_rest, self.certificate, self.guard, in_vectors)
        return np.array([SCHEDULES[r.schedule], r.power_t, *flags, radius, *more], dtype=np.float64)

    # ---------------------------------------------------------------------------------------- predicting

    def predict(self, X: Any) -> Array:
        """<q, x> for every row: (rows,), or (rows, outputs) where there are several."""
        from steelyard._library import get_kernel

        block = as_block(X)
        check_finite(block)
        coef = self._coefficients()
        if block.n_features != self.n_features:
            raise ValueError(f"X has {block.n_features} features, but the learner has learned {self.n_features}")
        out = np.empty(block.n_rows * self.n_outputs)
        if block.n_rows:
            get_kernel("predict", *block.types)(*block.arrays, coef.reshape(-1), block.dense, out)
        return out if self.n_outputs == 1 else out.reshape(-1, self.n_outputs)

    def _coefficients(self) -> Array:
        """x of every feature and output, the intercept in the last row; kept until the next ``learn``."""
        if self.state is None:
            raise ValueError("this learner has not learned anything yet: call learn first")
        if self._coef is None:
            self._coef = self._solve_coefficients(self.state)
        return self._coef

    def _solve_coefficients(self, state: State) -> Array:
        r = self.regularizer
        table = state.table.reshape(-1, self._record)
        weights = table if r.metric == "scalar" else table[:, 1 : 1 + self.n_outputs]
        scalars = state.scalars
        if r.center == "trajectory":
            return np.ascontiguousarray(weights * scalars[:, _SCALE])
        lam = self._lam()
        if r.radius is not None:
            lam = np.maximum(lam, np.linalg.norm(weights, axis=0) / r.radius)
        if r.adaptive:
            weights = weights * table[:, :1] / np.sqrt(1.0 + table[:, 1 + self.n_outputs :])
        return np.ascontiguousarray(weights / lam)

    def _lam(self) -> Array:
        """lam of the round to come, one an output."""
        assert self.state is not None
        s, r = self.state.scalars, self.regularizer
        if r.schedule == "gap":
            return np.asarray(s[:, _LAM])
        growth = np.ones(self.n_outputs)
        if r.schedule == "power":
            growth = (1.0 + s[:, _WEIGHT]) ** r.power_t
        elif r.schedule == "adagrad-norm" and not r.adaptive:
            growth = np.sqrt(1.0 + s[:, _ENERGY])
        return np.asarray(growth / s[:, _ETA0])

    @property
    def n_features(self) -> int:
        """How many features the learner has seen, without the intercept."""
        if self.state is None:
            raise ValueError("this learner has not learned anything yet: call learn first")
        return self.state.table.size // self._record - 1

    @property
    def coef_(self) -> Array:
        """The weights: (features,), or (outputs, features)."""
        x = self._coefficients()[:-1]
        return np.array(x[:, 0] if self.n_outputs == 1 else x.T)

    @property
    def intercept_(self) -> Any:
        """The weight of the constant feature, a number or one an output."""
        x = self._coefficients()[-1]
        return float(x[0]) if self.n_outputs == 1 else x.copy()

    @property
    def progressive_loss_(self) -> float:
        """The weighted average of the loss of every example before it was learned, over all calls."""
        if self.state is None:
            return float("nan")
        weight, loss = self.state.scalars[0, _WEIGHT], self.state.scalars[:, _LOSS].mean()
        return float(loss / weight) if weight > 0.0 else float("nan")

    def certify(self, output: int = 0) -> Certificate:
        """The certificate of one output: a regret bound for any comparator, over everything learned so far."""
        from steelyard.certificate import Certificate

        if not self.certificate:
            raise ValueError("this learner keeps no certificate: make it with certificate=True")
        if self.state is None:
            raise ValueError("this learner has not learned anything yet: call learn first")
        k, r = range(self.n_outputs)[output], self.regularizer
        if r.center == "origin":
            table = self.state.table.reshape(-1, self._record)
            dual = -table[:, k if r.metric == "scalar" else 1 + k]
            if r.metric == "diagonal" and not r.adaptive:  # where theta stands in the metric
                dual = np.divide(dual, table[:, 0], out=np.zeros_like(dual), where=table[:, 0] > 0.0)
        else:
            dual = self.state.dual.reshape(-1, self.n_outputs)[:, k].copy()
        s = self.state.scalars[k]
        known = r.center == "origin" and r.metric == "scalar" and r.radius is None
        return Certificate(
            rounds=int(s[_ROWS]),
            weight=float(s[_WEIGHT]),
            total_loss=float(s[_LOSS]),
            fenchel=float(s[_FENCHEL]),
            dual=dual,
            fit_intercept=self.fit_intercept,
            delta=float(s[_DELTA]) if known else None,
            negative_deltas=int(s[_NEGATIVE]) if known else None,
            guarded=int(s[_GUARDED]),
        )

    # --------------------------------------------------------------------------------------- model files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file, atomically: a reader sees the old file or the new one, whole."""
        header = {
            "format": _FORMAT,
            "kind": type(self).__name__,
            "loss": self.loss.name,
            "loss_parameters": {} if isinstance(self.loss, CustomLoss) else vars(self.loss),
            "options": self._options(),
            "notes": self.notes,
        }
        arrays = {} if self.state is None else self.state._asdict()
        with atomic_write(path) as file:
            np.savez(file, header=np.array(json.dumps(header)), **arrays)

    def _options(self) -> dict[str, Any]:
        """What makes another learner like this one, beside the loss."""
        return {
            "update": self.update,
            "fit_intercept": self.fit_intercept,
            "n_outputs": self.n_outputs,
            "certificate": self.certificate,
            "guard": self.guard,
            **vars(self.regularizer),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, loss: CustomLoss | None = None) -> Learner:
        """Read a learner; one with a user's own loss needs that ``loss`` again, since functions are not saved."""
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                arrays = {name: file[name] for name in State._fields if name in file}
            newer = header["format"] > _FORMAT
            _class_of(header["kind"])
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, AttributeError) as error:
            raise ValueError(f"{os.fspath(path)} is not a Steelyard model file, or it is damaged") from error
        if newer:
            raise ValueError(f"{os.fspath(path)} was written by a newer Steelyard (format {header['format']})")
        if (header["loss"] == "custom") != (loss is not None):
            needed = "needs" if loss is None else "does not need"
            raise ValueError(f"{os.fspath(path)} was learned with the {header['loss']} loss: it {needed} loss=")
        chosen = loss if loss is not None else LOSSES[header["loss"]](**header["loss_parameters"])
        learner: Learner = _class_of(header["kind"])(chosen, **header["options"])
        learner.notes = header["notes"]
        if arrays:
            learner.state = State(**arrays)
            expected = learner._empty_state(learner.n_features)
            if any(a.shape != b.shape for a, b in zip(learner.state, expected, strict=True)):
                raise ValueError(f"{os.fspath(path)} is damaged: its arrays do not fit together")
        return learner

    def __repr__(self) -> str:
        r = self.regularizer
        seen = "nothing learned" if self.state is None else f"{int(self.state.scalars[0, _ROWS])} rows learned"
        return (
            f"<Learner {self.loss.name}/{self.update}, {r.schedule} from eta0={r.eta0:g}, {r.metric} metric, "
            f"center {r.center}: {seen}>"
        )


def _class_of(kind: str) -> Any:
    if kind == "Mixture":
        from steelyard.mixture import Mixture

        return Mixture
    if kind == "Bank":
        from steelyard.bank import Bank

        return Bank
    return {"Learner": Learner}[kind]


# Columns of State.scalars; _kernels, which cannot be imported here without Numba, has the same (a test compares them).
_ETA0, _WEIGHT, _LAM, _ENERGY, _LOSS, _SCALE, _NORM2, _ROWS, _FENCHEL, _DELTA, _NEGATIVE, _GUARDED, _COLUMNS = range(13)
