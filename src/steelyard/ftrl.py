"""Generalized implicit FTRL with one regularizer: what ``Learner`` and ``Bank`` share."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import compiled_conjugate, compiled_loss, get_kernel
from steelyard.data.block import Block
from steelyard.data.memory import lazy_zeros
from steelyard.fullmatrix import FullState, check_curvature, new_factor
from steelyard.kernels import layout
from steelyard.lazystate import AveragedState, PenalisedState, averaged, shrunk, soft
from steelyard.losses import Array, Loss
from steelyard.online import OnlineLearner
from steelyard.regularizers import SCHEDULES, Regularizer, check_flag
from steelyard.snapshot import Journal, Snapshot
from steelyard.sparsearrays import SparseArray

if TYPE_CHECKING:
    from steelyard.certificate import Certificate

_VECTOR_FORMS = {None: layout.VECTOR_NONE, "logistic": layout.VECTOR_LOGISTIC, "squared": layout.VECTOR_SQUARED}


class State(NamedTuple):
    """Everything that a learner or a bank has learned. A copy of the arrays is a snapshot."""

    table: Array
    """The weights and, under the diagonal metric, scales and sums of squared gradients: see ``kernels.rows`` and
    ``kernels.metric``."""
    clocks: Array
    """One row an output: what sets lam_t (``kernels.layout.WEIGHT`` and after)."""
    sums: Array
    """One row an output: what adds up over rows (``kernels.layout.ROWS`` and after)."""
    dual: Array
    """The sum of h*c*q, (features + 1) x outputs, where a certificate needs it beside the table; else empty."""


_WORK = {"learn_composite": (8, 0), "learn_penalised": (0, 4), "learn_shrinking": (6, 4), "learn_averaged": (5, 0)}
"""Kernels whose state has two arrays more, and their room to work in: numbers for each output, and for each output and
non-zero of the longest row."""


def _check_average(regularizer: Regularizer, guard: bool) -> None:
    """Refuse what has no closed form for the average."""
    if regularizer.penalised:
        raise ValueError("average=True takes no l1 and l2: penalties and averages have no closed form together")
    if regularizer.metric == "full" or regularizer.radius is not None or guard:
        what = "metric='full'" if regularizer.metric == "full" else "guard=True" if guard else "radius"
        raise ValueError(f"average=True and {what} do not go together: a row then moves all weights, not only its own")
    if regularizer.adaptive and regularizer.center == "origin":
        raise ValueError(
            "average=True with schedule='adagrad-norm' and metric='diagonal' needs center='trajectory', or "
            "metric='scalar'"
        )


class Ftrl(OnlineLearner):
    """One regularizer; for each output an initial rate and an update rule."""

    state: State | FullState | PenalisedState | AveragedState | None

    def __init__(
        self,
        loss: str | Loss,
        regularizer: Regularizer,
        eta0: Array | float,
        rules: Array | float,
        *,
        fit_intercept: bool,
        n_outputs: int,
        one_vs_rest: bool,
        certificate: bool,
        guard: bool,
        average: bool = False,
    ) -> None:
        super().__init__(loss, fit_intercept=fit_intercept, n_outputs=n_outputs, one_vs_rest=one_vs_rest)
        self.regularizer = regularizer
        self._eta0 = np.full(self.n_outputs, eta0)
        self._rules = np.full(self.n_outputs, rules)
        self.certificate = check_flag("certificate", certificate)
        self.guard = check_flag("guard", guard)
        if guard and (regularizer.center, regularizer.metric, regularizer.radius) != ("origin", "scalar", None):
            raise ValueError(
                "guard=True needs center='origin', metric='scalar' and no radius: Algorithm 1's condition is for those"
            )
        if guard and regularizer.penalised:
            raise ValueError(
                "guard=True takes no l1 and l2: Algorithm 1's condition is for a learner without penalties"
            )
        self.average = check_flag("average", average)
        if self.average:
            _check_average(regularizer, self.guard)
        self._full = regularizer.metric == "full"
        if self._full:
            check_curvature(self.loss)
        self._keeps_dual = self.certificate and regularizer.center == "trajectory"
        """Whether the sum of h*c*q stands beside the table; for center "origin" the table has it."""
        adaptive = regularizer.adaptive
        plain = regularizer.radius is None and not (adaptive or self._keeps_dual or self.guard)
        self._kernel = "learn_plain" if plain else "learn"
        self.grows = False
        """Whether weights have a common factor that grows, which is taken out now and then: ``kernels.penalised``."""
        self._stamped = self.average
        """Whether each weight has a number beside it that says since when it waits."""
        if self._full or self.n_outputs > 1:
            self._kernel = "learn_full" if self._full else "learn_outputs"
        if regularizer.penalised:
            lazy = regularizer.center == "trajectory" and regularizer.l2 > 0.0
            alone = self.n_outputs == 1 and not adaptive
            self.grows = alone and lazy and regularizer.metric == "scalar"
            self._stamped = lazy and not self.grows
            self._kernel = "learn_penalised" if alone else "learn_shrinking" if lazy else "learn_composite"
        elif self.average:
            self._kernel = "learn_averaged"
        """The kernel that learns with as little as these options need."""
        self.inspects_indices = self._kernel == "learn_plain"
        diagonal = regularizer.metric == "diagonal"
        self._record = 1 + (1 + adaptive) * self.n_outputs if diagonal else self.n_outputs
        """Numbers a feature owns in the table."""
        self.record_bytes = None if self._full else 8 * self._record
        self._config = self._make_config()

    # -------------------------------------------------------------------------------------------------------- state

    def _new_state(self, n_features: int) -> State | FullState | PenalisedState | AveragedState:
        clocks = np.zeros((self.n_outputs, layout.CLOCKS_SIZE))
        clocks[:, layout.LAM] = 1.0 / self._eta0
        clocks[:, layout.SCALE] = 1.0
        table = lazy_zeros((n_features + 1) * self._record)
        if self.regularizer.metric == "diagonal":
            table[-self._record] = 1.0  # the intercept's scale
        dual = lazy_zeros((n_features + 1) * self.n_outputs if self._keeps_dual else 0)
        sums = np.zeros((self.n_outputs, layout.SUMS_SIZE))
        if self._full:
            return FullState(table, clocks, sums, dual, new_factor(n_features, self.regularizer.eta0))
        if self._kernel in _WORK:
            waiting = lazy_zeros((n_features + 1) * self.n_outputs if self._stamped else 0)
            kind = AveragedState if self.average else PenalisedState
            return kind(table, clocks, sums, dual, waiting, np.zeros(self.n_outputs))
        return State(table, clocks, sums, dual)

    def _keep_dual(self) -> None:
        """Have the sum of h*c*q beside the table from now on: after a merge, the table has it no more."""
        self._keeps_dual = True
        if self._kernel == "learn_plain":
            self._kernel, self.inspects_indices = "learn", False

    def _keep_stamps(self) -> None:
        """Have a stamp for each weight from now on, in place of the factor."""
        self._kernel, self._stamped, self.grows = "learn_shrinking", True, False

    def _rows(self) -> int:
        return int(self._learned().sums[0, layout.ROWS])

    def resize(self, n_features: int) -> None:
        if self._full:
            raise ValueError("metric='full' must know how many columns there are before the first row")
        super().resize(n_features)

    def _snapshot(self, block: Block, state: Any, weight: Array) -> Snapshot | Journal:
        # where the ball binds, all weights may be rescaled; a matrix moves those of features that a row does not have
        whole = self.regularizer.radius is not None or self._full
        if self.grows:
            most = state.paths[0] + self._eta0[0] * weight.sum()  # since no rate is above eta0
            whole = not self.regularizer.l2 * most < layout.SHRUNK_FAR
        others = [state.clocks, state.sums, *([state.factor] if self._full else []), *state[5:]]
        return Snapshot(block, self._record_arrays(state), others, whole=whole)

    def _record_arrays(self, state: Any) -> list[NDArray[Any]]:
        others = [state.dual, *([state[4]] if self._kernel in _WORK else [])]
        views = [array.reshape(-1, self.n_outputs) for array in others if array.size]
        return [state.table.reshape(-1, self._record), *views]

    def parts(self) -> dict[str, SparseArray | NDArray[Any]]:
        if self.state is None or self.spread is None:
            return super().parts()
        views = self._record_arrays(self.state)
        records = len(views[0])
        return {
            name: self.spread.part(array, records) if any(np.may_share_memory(array, view) for view in views) else array
            for name, array in self.state._asdict().items()
        }

    def _resized(self, state: Any, new: Any) -> Any:
        resized = super()._resized(state, new)
        return resized._replace(paths=state.paths) if self._kernel in _WORK else resized

    # ----------------------------------------------------------------------------------------------------- learning

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
        name, given = self._arguments(block, order, y, weight, state, prediction, loss)
        return int(get_kernel(name, *block.types)(*given))

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
        step, parameters, _ = compiled_loss(self.loss)
        conjugate = 0 if self.regularizer.radius is None else compiled_conjugate(self.loss)
        params = np.tile(parameters, (self.n_outputs, 1))
        params[:, layout.RULE] = self._rules
        params[:, layout.WANTS_GAP] = self.certificate or self.guard or self.regularizer.schedule == "gap"
        room = layout.WORK_SIZE * (-(-self.n_outputs // layout.OUTPUT_LANES) * layout.OUTPUT_LANES)
        if self._full:
            room = 2 * (block.n_features + 1) + layout.FULL_VECTORS * self.n_outputs
        if self._kernel in _WORK:
            longest = 0 if block.dense else -(-int(np.diff(block.indptr).max(initial=0)) // 8) * 8
            own, each = _WORK[self._kernel]
            room = self.n_outputs * (own + each * longest)
        work = np.empty(room)
        config = self._config.copy()
        config[layout.DENSE], config[layout.INSPECTED] = block.dense, block.inspected
        rows = (*block.arrays, order, y, weight)
        return self._kernel, (step, conjugate, params, self._eta0, *rows, *state, config, work, prediction, loss)

    def _changes_row_only(self, state: Any) -> bool:
        return self.regularizer.radius is None and not self._full and self._kernel not in _WORK

    def _make_config(self) -> Array:
        """The options as the kernels take them; whether a block is dense is filled in for each."""
        r = self.regularizer
        config = np.empty(layout.CONFIG_SIZE)
        config[layout.SCHEDULE] = SCHEDULES[r.schedule]
        config[layout.POWER_T] = r.power_t
        config[layout.ORIGIN] = r.center == "origin"
        config[layout.DIAGONAL] = r.metric == "diagonal"
        config[layout.ADAPTIVE] = r.adaptive
        config[layout.RADIUS] = np.inf if r.radius is None else r.radius
        config[layout.INTERCEPT] = self.fit_intercept
        config[layout.DENSE] = config[layout.INSPECTED] = 0.0
        config[layout.CLASSES] = self.one_vs_rest
        config[layout.CERTIFY] = self.certificate
        config[layout.GUARD] = self.guard
        config[layout.VECTOR] = _VECTOR_FORMS[self.loss.vector_form]
        config[layout.CURVATURE] = self.loss.curvature or np.nan
        config[layout.L1], config[layout.L2] = r.l1, r.l2
        return config

    def _warn_of_divergence(self, update: str, state: Any, prediction: Array, order: NDArray[np.int64]) -> None:
        """Say so if a loss is not finite any more, and what to do."""
        if np.isfinite(state.sums[:, layout.LOSS]).all():
            return
        bad = np.flatnonzero(~np.isfinite(prediction))
        where = f", first predicted in row {order[bad[0] // self.n_outputs]}" if bad.size else ""
        advice = "Use update='iwa', or a smaller eta0."
        if update in ("iwa", "proximal"):
            advice = "Such an update never overshoots: look for labels or weights that are too large themselves."
        warnings.warn(
            f"the losses grew past what a float can hold{where}: update={update!r} with "
            f"eta0={self.regularizer.eta0:g} diverges on this data. {advice}",
            RuntimeWarning,
            stacklevel=5,
        )

    # ---------------------------------------------------------------------------------------------------- predicting

    def _solve_coefficients(self, state: Any) -> Array:
        r = self.regularizer
        table = state.table.reshape(-1, self._record)
        weights = table[:, 1 : 1 + self.n_outputs] if r.metric == "diagonal" else table
        if r.penalised:
            return self._solve_penalised(state, table, weights)
        if self.average:
            return averaged(state, weights, r.center == "origin")
        if r.center == "trajectory":
            return np.ascontiguousarray(weights * state.clocks[:, layout.SCALE])
        lam = self.lam()
        if r.radius is not None:
            lam = np.maximum(lam, np.linalg.norm(weights, axis=0) / r.radius)
        if r.adaptive:
            weights = weights * table[:, :1] / np.sqrt(1.0 + table[:, 1 + self.n_outputs :])
        return np.ascontiguousarray(weights / lam)

    def _solve_penalised(self, state: Any, table: Array, weights: Array) -> Array:
        """x by the formulas of ``kernels.composite`` and ``kernels.shrinking``, as of now; the state stays."""
        r = self.regularizer
        inverse = table[:, :1] if r.metric == "diagonal" else np.ones((len(table), 1))
        unit = np.ones_like(inverse) if r.adaptive else inverse
        if r.adaptive:
            inverse = inverse / np.sqrt(1.0 + table[:, 1 + self.n_outputs :])
        if r.center == "trajectory":
            since = state.stamps.reshape(weights.shape) if state.stamps.size else 0.0
            x = shrunk(weights, (state.paths - since) * inverse, r.l1, r.l2)
            x[-1] = weights[-1]
            return x
        seen, lam = state.clocks[:, layout.WEIGHT], self.lam()
        x = soft(weights, r.l1 * seen * unit) / (lam + r.l2 * seen * inverse)
        x[-1] = weights[-1] / lam
        return np.ascontiguousarray(x * inverse if r.adaptive else x)

    def lam(self) -> Array:
        """lam of the round to come, one an output."""
        r = self.regularizer
        if self._full:
            raise ValueError("metric='full' has a matrix in place of lam")
        weight, lam, sum_sq_grad = self._learned().clocks[:, [layout.WEIGHT, layout.LAM, layout.SUM_SQ_GRAD]].T
        if r.schedule == "gap":
            return np.asarray(lam)
        growth = np.ones(self.n_outputs)
        if r.schedule == "power":
            growth = (1.0 + weight) ** r.power_t
        elif r.schedule == "adagrad-norm" and not r.adaptive:
            growth = np.sqrt(1.0 + sum_sq_grad)
        return np.asarray(growth / self._eta0)

    # ------------------------------------------------------------------------------------------------- certificates

    def _dual_sums(self) -> Array:
        """The sum of h*c*q, (features + 1) x outputs."""
        state, r = self._learned(), self.regularizer
        if self._keeps_dual:
            return np.asarray(state.dual.reshape(-1, self.n_outputs))
        table = state.table.reshape(-1, self._record)
        if r.metric == "scalar":
            return np.asarray(-table)
        dual = -table[:, 1 : 1 + self.n_outputs]
        if not r.adaptive:  # where theta stands in the metric
            dual = np.divide(dual, table[:, :1], out=np.zeros_like(dual), where=table[:, :1] > 0.0)
        return np.asarray(dual)

    def certify(self, output: int = 0) -> Certificate:
        from steelyard.certificate import Certificate

        if not self.certificate:
            raise ValueError("this learner keeps no certificate: make it with certificate=True")
        state = self._learned()
        k, r = range(self.n_outputs)[output], self.regularizer
        dual = self._dual_sums()[:, k].copy()
        scale = None
        if r.metric == "diagonal":  # the table has 1/s^2
            inverse = state.table.reshape(-1, self._record)[:, 0]
            scale = np.divide(1.0, np.sqrt(inverse), out=np.zeros_like(inverse), where=inverse > 0.0)
        sums = state.sums[k]
        known = r.center == "origin" and r.metric == "scalar" and r.radius is None and not r.penalised
        return Certificate(
            rounds=int(sums[layout.ROWS]),
            weight=float(state.clocks[k, layout.WEIGHT]),
            total_loss=float(sums[layout.LOSS]),
            fenchel=float(sums[layout.FENCHEL]),
            dual=dual,
            fit_intercept=self.fit_intercept,
            delta=float(sums[layout.DELTA]) if known else None,
            negative_deltas=int(sums[layout.NEGATIVE]) if known else None,
            guarded=int(sums[layout.GUARDED]),
            scale=scale,
            center=None if scale is None else np.zeros_like(scale),
        )
