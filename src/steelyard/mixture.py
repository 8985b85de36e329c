"""The learner without a learning rate: a bank of experts in one pass, mixed online, with a guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import compiled_loss, get_kernel
from steelyard.data.block import Block
from steelyard.data.memory import lazy_zeros, thin_copy
from steelyard.kernels import layout
from steelyard.kernels.layout import EXPERTS, TOTAL
from steelyard.losses import Array, Loss
from steelyard.online import OnlineLearner
from steelyard.secondorder import new_second, second_model
from steelyard.snapshot import Journal, Snapshot
from steelyard.sparsearrays import SparseArray, sparse_array

if TYPE_CHECKING:
    from steelyard.certificate import Certificate

RATES = np.concatenate([np.logspace(-1.5, 1.0, layout.HALF), np.logspace(-1.0, 1.5, layout.HALF)])
"""Four rates under a metric that falls like 1/sqrt(n), and four under one that falls like 1/n."""

_POWERS = np.ldexp(1.0, np.minimum(layout.ZERO_POWER - np.arange(layout.POWERS_SIZE), 1023))
_MIXING = {"convex": layout.MIX_CONVEX, "logistic": layout.MIX_LOGISTIC, "squared": layout.MIX_SQUARED}
_LABEL_SCALES = {
    "none": layout.PLAIN,
    "proportional": layout.PROPORTIONAL,
    "constant": layout.UNIT,
    "cut": layout.CUT,
}
_NO_JOURNAL = (np.empty(0, np.uint8), np.empty(0), np.empty(0, np.uint64))
_CHUNK = 1 << 16  # features that are solved for at a time


class Expert(NamedTuple):
    """One learner of a mixture, as it is now."""

    eta0: float
    decay: str
    """``"1/sqrt(n)"`` or ``"1/n"``: how its rate for a feature falls with the feature's weight n; or ``"full matrix"``,
    where ``eta0`` is that of ``Learner(metric="full")``, one over the strength of the prior, in scaled columns."""
    loss: float
    """Its average loss so far, each example before it was learned; inf where it was retired."""
    weight: float
    """Its share in the mixture."""
    retired: bool
    """Whether its predictions left the range of floats; it then has no share any more."""


class MixtureState(NamedTuple):
    """Everything that a mixture has learned. A copy of the arrays is a snapshot."""

    table: NDArray[np.float32]
    """A record for each feature, the intercept's last: see ``kernels.features``."""
    clocks: Array
    """What all outputs share: ``kernels.layout.MIX_SEEN`` and after."""
    sums: Array
    """One row an output: losses of the mixture and of each expert (``kernels.layout.EVIDENCE`` and after)."""
    centered: NDArray[np.uint64]
    """Where the records of the centered features start, as many as ``clocks[CENTERED]`` says."""
    dual: Array
    """The sum of h*c*q, (features + 1) x outputs, c the mixture's slope: for the certificate."""
    second: Array
    """What the experts of second order have learned (``kernels.second``); empty where there are none."""


class Mixture(OnlineLearner):
    """Eight learners in one read of the data, mixed online: no learning rate to choose. See ``docs/theory.md``.

    Where there are at most 100 columns, two more with a full matrix join them, for the squared and the logistic loss.

    Parameters
    ----------
    loss : str or Loss
    fit_intercept : bool
        Without one, neither columns nor labels are centered.
    n_outputs : int
        1, or the number of classes of a one-vs-rest problem, whose labels are 0 … n_outputs-1.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import Mixture
    >>> X, y = np.arange(40.0).reshape(-1, 1) * 1e6, np.arange(40.0) * 3 + 5
    >>> mixture = Mixture("squared")
    >>> trace = mixture.learn(X, y)
    >>> best = 40 * min(expert.loss for expert in mixture.bank())
    >>> bool(trace.loss.sum() <= best + mixture.regret_bound())
    True
    """

    state: MixtureState | None

    def __init__(self, loss: str | Loss = "logistic", *, fit_intercept: bool = True, n_outputs: int = 1) -> None:
        super().__init__(loss, fit_intercept=fit_intercept, n_outputs=n_outputs, one_vs_rest=n_outputs > 1)
        self._kind = _MIXING[self.loss.mixing]
        self._labels = layout.PLAIN if self.one_vs_rest else _LABEL_SCALES[self.loss.label_scale]
        self._statistics = layout.OUTPUT_WIDTH * self.n_outputs
        """Where a feature's own statistics stand in its record, after the parts of the outputs."""
        lines = -(-(self._statistics + layout.STATISTICS_WIDTH) // layout.RECORD_LINE)
        self._record = lines * layout.RECORD_LINE
        """Numbers of a record: whole cache lines."""
        self.record_bytes = 4 * self._record
        self._stamps: list[NDArray[np.uint8]] = []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_stamps": []}  # room to work in

    # -------------------------------------------------------------------------------------------------------- state

    def _new_state(self, n_features: int) -> MixtureState:
        table = lazy_zeros((n_features + 1) * self._record, np.float32)
        table[-self._record + self._statistics + layout.VARIANCE] = 1.0  # the intercept's scale
        clocks = np.zeros(layout.MIX_CLOCKS_SIZE)
        if self._labels == layout.PLAIN:
            clocks[layout.LOWEST], clocks[layout.HIGHEST] = -1.0, 1.0
        sums = np.zeros((self.n_outputs, layout.MIX_SUMS_SIZE))
        curved = self._kind != layout.MIX_CONVEX
        second = new_second(n_features, self.n_outputs) if curved else np.empty(0)
        if second.size:
            clocks[layout.MATRICES] = layout.SECOND
        else:
            self._evidence_of(sums)[:, EXPERTS:] = np.inf
        sums[:, layout.SHARES :] = self._first_shares(second.size > 0)
        dual = lazy_zeros((n_features + 1) * self.n_outputs, beside=table.nbytes)
        centered = lazy_zeros(n_features, np.uint64, beside=table.nbytes)
        return MixtureState(table, clocks, sums, centered, dual, second)

    def _resized(self, state: Any, new: Any) -> Any:
        count = int(state.clocks[layout.CENTERED])
        new.centered[:count] = state.centered[:count]
        if state.second.size and self.n_features == new.centered.size:
            return new._replace(clocks=state.clocks, sums=state.sums, second=state.second)
        clocks, sums = state.clocks.copy(), state.sums.copy()
        if state.second.size:  # experts that have a matrix of all columns end here, and the others share what they had
            clocks[layout.MATRICES] = 0.0
            self._evidence_of(sums)[:, EXPERTS:] = np.inf
            sums[:, layout.SHARES + EXPERTS :] = 0.0
            shares = sums[:, layout.SHARES :]
            total = shares.sum(axis=1, keepdims=True)
            np.copyto(
                shares, np.where(total > 0.0, shares / np.where(total > 0.0, total, 1.0), self._first_shares(False))
            )
        return new._replace(clocks=clocks, sums=sums, second=np.empty(0))

    def _record_arrays(self, state: MixtureState) -> list[NDArray[Any]]:
        return [state.table.reshape(-1, self._record), state.dual.reshape(-1, self.n_outputs)]

    def parts(self) -> dict[str, SparseArray | NDArray[Any]]:
        if self.state is None:
            return {}
        state, spread, n_features = self.state, self.spread, self.n_features
        arrays: dict[str, Any] = state._asdict()
        starts = state.centered[: int(state.clocks[layout.CENTERED])]  # what comes after them was left behind
        if spread is not None:
            records = state.table.size // self._record
            arrays |= {name: spread.part(arrays[name], records) for name in ("table", "dual")}
            columns = spread.columns[(starts // np.uint64(self._record)).astype(np.intp)]
            starts = (columns * self._record).astype(np.uint64)
        arrays["centered"] = lazy_zeros(n_features, np.uint64)
        arrays["centered"][: starts.size] = starts
        return {
            name: array if isinstance(array, SparseArray) else sparse_array(array, n_features + 1) or array
            for name, array in arrays.items()
        }

    def _snapshot(self, block: Block, state: Any, weight: Array) -> Snapshot | Journal:
        centered = state.centered[: int(state.clocks[layout.CENTERED])]
        others = [state.clocks, state.sums, state.second, centered]
        if block.dense:
            return Snapshot(block, self._record_arrays(state), others)
        always = np.append((centered // np.uint64(self._record)).astype(np.intp), block.n_features)
        return Journal(block, self._record_arrays(state), self._stamps, always, others)

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
        unit = self._label_unit(state, y, weight, order)
        with np.errstate(over="ignore"):  # labels so far apart retire all experts, of which there is a warning
            labels = y if unit == 1.0 else y / unit
        name, given = self._arguments(block, order, labels, weight, state, prediction, loss, snapshot)
        stopped = int(get_kernel(name, *block.types)(*given))
        if unit != 1.0:
            with np.errstate(over="ignore", invalid="ignore"):  # after a stop there is anything in them
                prediction *= unit
                loss *= self._loss_unit(state)
        return stopped

    def _arguments(
        self,
        block: Block,
        order: NDArray[np.int64],
        y: Array,
        weight: Array,
        state: Any,
        prediction: Array,
        loss: Array,
        snapshot: Snapshot | Journal | None = None,
    ) -> tuple[str, tuple[Any, ...]]:
        """Labels, and what is predicted and lost, are in their unit."""
        step, parameters, _ = compiled_loss(self.loss)
        params = parameters.reshape(1, -1).copy()
        params[0, layout.RULE] = layout.IWA
        unit = float(state.clocks[layout.LABEL_UNIT]) or 1.0
        own = self.loss.parameters_in(unit)
        if own:
            params[0, layout.OWN :] = own
        longest = int(np.diff(block.indptr).max(initial=0))
        resident = block.dense and self._resident(block, state, order)
        room = block.n_features if resident else longest + max(longest, int(state.clocks[layout.CENTERED]))
        room = (room + 4 * EXPERTS) // EXPERTS * EXPERTS  # with the intercept, and whole vectors
        outputs = (EXPERTS + 1) * self.n_outputs  # predictions and slopes
        outputs += layout.SECOND_VECTORS * layout.second_width(block.n_features) if state.second.size else 0
        # vectors that start with a cache line are read faster
        work = lazy_zeros(layout.ROW_VECTORS * room + layout.EXPERT_VECTORS * layout.SLOTS + outputs)
        singles = lazy_zeros((1 + 2 * (self.n_outputs if resident else 1)) * room, np.float32)
        config = np.empty(layout.MIX_CONFIG_SIZE)
        config[layout.MIX_KIND], config[layout.MIX_LABELS] = self._kind, self._labels
        config[layout.MIX_INTERCEPT], config[layout.MIX_DENSE] = self.fit_intercept, block.dense
        config[layout.MIX_CLASSES] = self.one_vs_rest
        config[layout.MIX_DELTA] = own[0] if self._labels == layout.CUT else 0.0
        config[layout.MIX_WIDTH], config[layout.MIX_RESIDENT] = self._record, resident
        config[layout.MIX_STRONG], config[layout.MIX_WEAK] = layout.second_priors(block.n_features)
        rows = (*block.arrays, order, y, weight)
        wide = state.table.view(np.float64)
        tables = (state.table, wide, state.sums, state.clocks, state.centered, state.dual, state.second)
        space = (np.empty(room, np.uint64), work, singles)
        journal = _NO_JOURNAL
        if isinstance(snapshot, Journal):
            journal = (snapshot.stamps, snapshot.records.reshape(-1), snapshot.features)
        constants = (config, RATES, _POWERS)
        return "learn_mixture", (step, params, *rows, *tables, *constants, *space, *journal, prediction, loss)

    def _changes_row_only(self, state: Any) -> bool:
        known = self._labels == layout.PLAIN or state.clocks[layout.LABEL_UNIT] > 0.0
        return bool(known and not state.second.size)

    @staticmethod
    def _resident(block: Block, state: MixtureState, order: NDArray[np.int64]) -> bool:
        """Whether to work on all features of dense rows, those that are zero too: if the first row has few zeros.

        Decided once, because it may change the last bits: rows give the same model in whatever blocks they come.
        """
        if state.clocks[layout.RESIDENT] == 0.0 and order.size:
            first = block.data[int(block.indptr[order[0]]) :][: block.n_features]
            state.clocks[layout.RESIDENT] = 1.0 if 4 * np.count_nonzero(first) >= first.size else -1.0
        return bool(state.clocks[layout.RESIDENT] > 0.0)

    def _label_unit(self, state: MixtureState, y: Array, weight: Array, order: NDArray[np.int64]) -> float:
        """The power of two near the first label that is not zero: labels are measured in it, and so of any size."""
        if self._labels == layout.PLAIN:
            return 1.0
        if state.clocks[layout.LABEL_UNIT] == 0.0:
            first = np.flatnonzero((y[order] != 0.0) & (weight[order] > 0.0))[:1]
            if not first.size:
                return 1.0
            state.clocks[layout.LABEL_UNIT] = np.ldexp(1.0, min(np.frexp(y[order[first[0]]])[1], 1023))
        return float(state.clocks[layout.LABEL_UNIT])

    def _loss_unit(self, state: MixtureState) -> float:
        """What a loss of 1 in the state is in the user's labels."""
        unit = float(state.clocks[layout.LABEL_UNIT]) or 1.0
        return unit if self._labels == layout.UNIT else unit * unit

    def _check_results(self, state: Any, prediction: Array, order: NDArray[np.int64]) -> None:
        """An expert that leaves the range of floats is retired, and ``bank`` shows it; warn if all of them are."""
        for evidence in self._evidence(state):
            if not np.isfinite(evidence).any():
                warnings.warn(
                    "the labels or weights span more orders of magnitude than single precision holds: all experts of "
                    "the mixture are retired, and it predicts a constant. Look for outliers, or give a rate (eta0)",
                    RuntimeWarning,
                    stacklevel=4,
                )
                return

    def _rows(self) -> int:
        return int(self._learned().clocks[layout.MIX_ROWS])

    def _options(self) -> dict[str, Any]:
        return {"fit_intercept": self.fit_intercept, "n_outputs": self.n_outputs}

    def predict_block(self, block: Block) -> Array:
        """The averaged model's prediction for every row, kept within the labels seen where labels have a range."""
        scores = super().predict_block(block)
        return scores if self.label_range is None else np.clip(scores, *self.label_range)

    # -------------------------------------------------------------------------------------------------- the mixture

    @staticmethod
    def _evidence_of(sums: Array) -> Array:
        return sums[:, layout.EVIDENCE : layout.EVIDENCE + TOTAL]

    def _evidence(self, state: MixtureState) -> Array:
        """One row an output; the columns of experts of second order only where there are any."""
        return self._evidence_of(state.sums)[:, : TOTAL if state.second.size else EXPERTS]

    @staticmethod
    def _first_shares(second: bool) -> Array:
        """The shares before the first row: one half for either kind of experts."""
        shares = np.full(TOTAL, 0.5 / EXPERTS)
        shares[EXPERTS:] = 0.5 / layout.SECOND
        return shares if second else np.where(np.arange(TOTAL) < EXPERTS, 1.0 / EXPERTS, 0.0)

    def weights(self, output: int = 0) -> Array:
        """The experts' shares in the mixture."""
        state = self._learned()
        evidence = self._evidence(state)[output]
        alive = np.isfinite(evidence)
        share = np.where(alive, state.sums[output, layout.SHARES :][: evidence.size], 0.0)
        if self._kind == layout.MIX_CONVEX and alive.any():
            cost = float(state.sums[output, layout.MIXING_COST])
            worse = evidence[alive] - evidence[alive].min()
            share[alive] = np.exp(-np.log(EXPERTS) / cost * worse) if cost > 1e-300 else worse == 0.0
        if not share.any():
            share[:EXPERTS] = 1.0
        return np.asarray(share / share.sum())

    def bank(self, output: int = 0) -> list[Expert]:
        """Every expert: its rate, its loss so far, its share in the mixture."""
        state = self._learned()
        seen = state.clocks[layout.MIX_SEEN]
        retired = ~np.isfinite(self._evidence(state)[output])
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self._loss_unit(state) * (state.sums[output, layout.EXPERT_LOSS :][:TOTAL] / (seen or np.nan))
        rates = [*RATES, *(1.0 / prior for prior in layout.second_priors(self.n_features))]
        decays = ["1/sqrt(n)"] * layout.HALF + ["1/n"] * layout.HALF + ["full matrix"] * layout.SECOND
        return [
            Expert(
                float(rates[k]),
                decays[k],
                float("inf") if retired[k] else float(losses[k]),
                float(share),
                bool(retired[k]),
            )
            for k, share in enumerate(self.weights(output))
        ]

    def regret(self, output: int = 0) -> float:
        """By how much the mixture's cumulated loss exceeds that of its best expert, in counted weights.

        Experts that were retired do not count; where all of them were, it is -inf.
        """
        state = self._learned()
        sums, evidence = state.sums[output], self._evidence(state)[output]
        counted = sums[layout.COUNTED_EXPERT_LOSS :][: evidence.size]
        losses = counted if self._kind == layout.MIX_SQUARED else evidence
        best = losses[np.isfinite(evidence)].min(initial=np.inf)
        if sums[layout.COUNTED_LOSS] == best:  # both infinite, too
            return 0.0
        regret = self._loss_unit(state) * float(sums[layout.COUNTED_LOSS] - best)
        return float("inf") if np.isnan(regret) else regret  # more than a float can hold

    def regret_bound(self, output: int = 0) -> float:
        """What :meth:`regret` cannot exceed, whatever the data: see ``docs/theory.md``."""
        state = self._learned()
        unit, largest = self._loss_unit(state), float(state.clocks[layout.LARGEST])
        merged = unit * float(state.sums[output, layout.MERGED])
        experts = layout.SHARING_COST - float(np.log(self._first_shares(state.second.size > 0)[0]))
        if self._kind == layout.MIX_LOGISTIC:
            return merged + largest * experts
        if self._kind == layout.MIX_SQUARED:
            width = float(state.clocks[layout.HIGHEST] - state.clocks[layout.LOWEST])
            return merged + unit * largest * width * width * (experts / 4.0 + 0.5)
        return merged + unit * 2.0 * float(state.sums[output, layout.MIXING_COST])

    # ------------------------------------------------------------------------------------------------- certificates

    @property
    def certificate(self) -> bool:  # type: ignore[override]
        """Whether there is one: always, but for models of files that were written before mixtures kept it."""
        return self.state is None or not np.isnan(self.state.sums[:, layout.MIX_FENCHEL]).any()

    def certify(self, output: int = 0) -> Certificate:
        """The certificate of one output: a regret bound for any comparator, in true weights."""
        from steelyard.certificate import Certificate

        state = self._learned()
        if not self.certificate:
            raise ValueError(
                "this model was saved by an older version, which kept no certificate: learn it anew for one"
            )
        k = range(self.n_outputs)[output]
        sums, loss_unit = state.sums[k], self._loss_unit(state)
        scale, center = self._column_units(state)
        with np.errstate(over="ignore"):
            return Certificate(
                rounds=int(state.clocks[layout.MIX_ROWS]),
                weight=float(state.clocks[layout.MIX_SEEN]),
                total_loss=loss_unit * float(sums[layout.MIXED_LOSS]),
                fenchel=loss_unit * float(sums[layout.MIX_FENCHEL]),
                dual=self._dual(state, k),
                fit_intercept=self.fit_intercept,
                scale=scale,
                center=center,
            )

    def _dual(self, state: MixtureState, k: int) -> Array:
        """Z of one output, in the units of the labels."""
        dual: Array = thin_copy(state.dual.reshape(-1, self.n_outputs)[:, k])
        if self._labels != layout.UNIT and state.clocks[layout.LABEL_UNIT] > 0.0:
            dual *= state.clocks[layout.LABEL_UNIT]
        return dual

    def _seen_features(self, state: MixtureState) -> Iterator[NDArray[np.intp]]:
        """The features that have a weight, and the intercept last, some at a time: of a hashed table they are few."""
        count = state.table.view(np.float64).reshape(-1, self._record // 2)[:, self._statistics // 2 + 1]
        seen = np.append(count[:-1].nonzero()[0], count.size - 1)
        return (seen[start : start + _CHUNK] for start in range(0, seen.size, _CHUNK))

    def _centers(self, state: MixtureState, features: NDArray[np.intp]) -> Array:
        """The means of these features; 0 of those that are not centered, and of the intercept."""
        doubles = state.table.view(np.float64).reshape(-1, self._record // 2)
        count, mean = doubles[features, self._statistics // 2 + 1 :][:, :2].T
        centered = (count == state.clocks[layout.MIX_SEEN]) & ~np.isnan(mean) & (features < len(doubles) - 1)
        return np.where(centered, mean, 0.0)

    def _column_units(self, state: MixtureState) -> tuple[Array, Array]:
        """The spread of every column around its center, and the center: 0 where a column is not centered."""
        records = state.table.reshape(-1, self._record)
        scale, center = lazy_zeros(len(records)), lazy_zeros(len(records))
        for features in self._seen_features(state):
            variance, exponent = records[features, self._statistics :][:, :2].T
            with np.errstate(over="ignore"):
                scale[features] = np.ldexp(np.sqrt(variance.astype(np.float64)), exponent.astype(int))
            centers = self._centers(state, features)
            centered = np.flatnonzero(centers)
            center[features[centered]] = centers[centered]
        return scale, center

    def _solve_coefficients(self, state: Any) -> Array:
        """The averaged model: every expert's weights by its share, with the centers moved into the intercept."""
        records = state.table.reshape(-1, self._record)
        shares = [np.where(np.isfinite(e), self.weights(c), 0.0) for c, e in enumerate(self._evidence(state))]
        coef = lazy_zeros(len(records) * self.n_outputs).reshape(-1, self.n_outputs)
        offset = np.zeros(self.n_outputs)
        for features in self._seen_features(state):
            part = records[features]
            units = np.ldexp(1.0, -part[:, self._statistics + layout.EXPONENT].astype(int))
            center = self._centers(state, features)
            centered = np.flatnonzero(center)
            for c, share in enumerate(shares):
                used = np.flatnonzero(share[:EXPERTS])
                weights = part[:, EXPERTS * c + used].astype(np.float64) * units[:, None]
                coef[features, c] = weights @ share[used]
                late = used >= layout.HALF  # the experts who read centered features
                offset[c] += center[centered] @ (weights[centered][:, late] @ share[used][late])
        coef[-1] -= offset
        if state.second.size:
            for c, share in enumerate(shares):
                coef[:, c] += second_model(
                    state.second,
                    len(records) - 1,
                    c,
                    share[EXPERTS:],
                    joined=state.clocks[layout.MATRICES] == 1.0,
                    calibrated=self._kind == layout.MIX_LOGISTIC,
                )
        if self._labels != layout.PLAIN:
            coef[-1] += state.clocks[layout.LABEL_MEAN]
            coef *= state.clocks[layout.LABEL_UNIT] or 1.0
        return coef

    @property
    def label_range(self) -> tuple[float, float] | None:
        """The lowest and highest label seen, where predictions are kept between them."""
        if self._labels == layout.PLAIN:
            return None
        clocks = self._learned().clocks
        unit = float(clocks[layout.LABEL_UNIT]) or 1.0
        return float(clocks[layout.LOWEST]) * unit, float(clocks[layout.HIGHEST]) * unit

    @property
    def progressive_loss_(self) -> float:
        """The weighted average of the mixture's loss of every example before it was learned, over all calls."""
        if self.state is None or not self.state.clocks[layout.MIX_SEEN] > 0.0:
            return float("nan")
        return self._loss_unit(self.state) * float(
            self.state.sums[:, layout.MIXED_LOSS].mean() / self.state.clocks[layout.MIX_SEEN]
        )

    def __repr__(self) -> str:
        seen = "nothing learned" if self.state is None else f"{int(self.state.clocks[layout.MIX_ROWS])} rows learned"
        return f"<Mixture {self.loss.name}: {seen}>"
