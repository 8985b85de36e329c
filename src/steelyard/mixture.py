"""The learner without a learning rate: a bank of experts in one pass, mixed online, with a guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.blocks import Block, check_finite
from steelyard.learner import Learner, State
from steelyard.losses import Array, Loss

if TYPE_CHECKING:
    from steelyard.certificate import Certificate

EXPERTS = 8
RATES = np.concatenate([np.logspace(-1.5, 1.0, 4), np.logspace(-1.0, 1.5, 4)])
"""Four rates under a metric that falls like 1/sqrt(n), and four under one that falls like 1/n."""

_POWERS = np.ldexp(1.0, np.minimum(1100 - np.arange(2201), 1023))  # 2^-k at place 1100 + k


class Expert(NamedTuple):
    """One learner of a mixture, as it is now."""

    eta0: float
    decay: str
    """``"1/sqrt(n)"`` or ``"1/n"``: how its rate for a feature falls with the feature's weight n."""
    loss: float
    """Its average loss so far, each example before it was learned; inf where it was retired."""
    weight: float
    """Its share in the mixture."""
    retired: bool
    """Whether its predictions left the range of floats; it then has no share any more."""


class Mixture(Learner):
    """Eight learners in one read of the data, mixed online: no learning rate to choose. See ``docs/theory.md``.

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

    def __init__(self, loss: str | Loss = "logistic", *, fit_intercept: bool = True, n_outputs: int = 1) -> None:
        super().__init__(loss, fit_intercept=fit_intercept, n_outputs=n_outputs, certificate=False)

    # ------------------------------------------------------------------------------------------ learning

    @property
    def _kind(self) -> int:
        return {"logistic": _LOGISTIC, "squared": _SQUARED}.get(self.loss.name, _GENERIC)

    @property
    def _labels(self) -> int:
        """How slopes grow with the labels' scale; labels that are classes have none."""
        if self._one_vs_rest or self.loss.labels != "real":
            return _PLAIN
        return {"squared": _PROPORTIONAL, "absolute": _UNIT, "quantile": _UNIT, "huber": _CUT}.get(
            self.loss.name, _PLAIN
        )

    def _empty_state(self, n_features: int) -> State:
        table = _aligned_zeros((n_features + 1) * self._record)
        table.reshape(-1, self._record)[-1, self._statistics] = 1.0  # the intercept's scale
        shared = np.zeros(_SHARED + n_features)
        if self._labels == _PLAIN:
            shared[_LOWEST], shared[_HIGHEST] = -1.0, 1.0
        return State(table, np.zeros((self.n_outputs, _COLUMNS)), shared)

    @property
    def _statistics(self) -> int:
        """Where a feature's own statistics stand in its record, after the parts of the outputs."""
        return (EXPERTS + 2) * self.n_outputs

    @property
    def _record(self) -> int:
        return -(-(self._statistics + 6) // 16) * 16

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
        from steelyard._library import compiled_loss, get_kernel

        step, parameters, _ = compiled_loss(self.loss)
        params = parameters.reshape(1, -1).copy()
        params[0, 0] = self._rules[0]
        unit = self._label_unit(state, y, weight, order)
        delta = getattr(self.loss, "delta", 1.0) / unit
        if self._labels == _CUT:
            params[0, 2] = delta
        longest = int(np.diff(block.indptr).max(initial=0))
        room = 1 + longest + max(longest, int(state.dual[_CENTERED]))
        work = np.empty(4 * room + (8 + self.n_outputs) * EXPERTS)
        flags = (self.fit_intercept, block.dense, self._one_vs_rest)
        config = np.array([self._kind, self._labels, *flags, delta, self._record], dtype=np.float64)
        learn = get_kernel(self._kernel, *block.types)
        rows = (*block.arrays, order, y if unit == 1.0 else y / unit, weight)
        tables = (state.table, state.table.view(np.float64), *state[1:])
        space = (np.empty(room, np.uint64), work)
        stopped = int(learn(step, params, *rows, *tables, config, RATES, _POWERS, *space, prediction, loss))
        if unit != 1.0:
            prediction *= unit
            with np.errstate(over="ignore"):
                loss *= self._loss_unit(state)
        return stopped

    @property
    def _kernel(self) -> str:
        return "learn_mixture"

    def _undo(self, block: Block, state: State) -> Callable[[], None]:
        """A mixture stops at rows that are not finite, and at no others: a small block is rather looked through."""
        if state.table.size >= block.data.size:
            check_finite(block)
            return lambda: None
        copies = [array.copy() for array in state]

        def undo() -> None:
            for array, copy in zip(state, copies, strict=True):
                array[:] = copy

        return undo

    def _label_unit(self, state: State, y: Array, weight: Array, order: NDArray[np.int64]) -> float:
        """The power of two near the first label that is not zero: labels are measured in it, and so of any size."""
        if self._labels == _PLAIN:
            return 1.0
        if state.dual[_LABEL_UNIT] == 0.0:
            first = np.flatnonzero((y[order] != 0.0) & (weight[order] > 0.0))[:1]
            if not first.size:
                return 1.0
            state.dual[_LABEL_UNIT] = np.ldexp(1.0, np.frexp(y[order[first[0]]])[1])
        return float(state.dual[_LABEL_UNIT])

    def _loss_unit(self, state: State) -> float:
        """What a loss of 1 in the state is in the user's labels."""
        unit = float(state.dual[_LABEL_UNIT]) or 1.0
        return unit if self._labels == _UNIT else unit * unit

    def _look_for_divergence(self, state: State, *_: Any) -> None:
        """An expert that leaves the range of floats is retired, and ``bank`` shows it; all of them are worth a word."""
        for evidence in state.scalars[:, :EXPERTS]:
            if not np.isfinite(evidence).any():
                warnings.warn(
                    "the labels or weights span more orders of magnitude than single precision holds: all experts of "
                    "the mixture are retired, and it predicts a constant. Look for outliers, or give a rate (eta0)",
                    RuntimeWarning,
                    stacklevel=4,
                )
                return

    def _options(self) -> dict[str, Any]:
        return {"fit_intercept": self.fit_intercept, "n_outputs": self.n_outputs}

    def predict(self, X: Any) -> Array:
        """The averaged model's prediction for every row, kept within the labels seen where labels have a range."""
        scores = super().predict(X)
        return scores if self.label_range is None else np.clip(scores, *self.label_range)

    def certify(self, output: int = 0) -> Certificate:
        """A mixture has a guarantee against its experts (``docs/theory.md``), and no certificate."""
        raise ValueError("a mixture keeps no certificate: give a learning rate, eta0=1.0 for example, to have one")

    # ---------------------------------------------------------------------------------------- the mixture

    def weights(self, output: int = 0) -> Array:
        """The experts' shares in the mixture."""
        state = self._learned()
        evidence = state.scalars[output, :EXPERTS]
        alive = np.isfinite(evidence)
        if not alive.any():
            return np.full(EXPERTS, 1.0 / EXPERTS)
        worse = evidence[alive] - evidence[alive].min()
        rate = self._mixing_rate(output)
        share = np.zeros(EXPERTS)
        share[alive] = worse == 0.0 if rate == np.inf else np.exp(-rate * worse)
        return np.asarray(share / share.sum())

    def _mixing_rate(self, output: int) -> float:
        state = self._learned()
        shared = state.dual
        largest = max(shared[_LARGEST], 1.0)
        if self._kind == _LOGISTIC:
            return float(1.0 / largest)
        if self._kind == _SQUARED:
            width = shared[_HIGHEST] - shared[_LOWEST]
            return float(4.0 / (width * width * largest)) if width > 0.0 else 1.0
        gap = float(state.scalars[output, _GAP])
        return float(np.log(EXPERTS)) / gap if gap > 1e-300 else np.inf

    def bank(self, output: int = 0) -> list[Expert]:
        """Every expert: its rate, its loss so far, its share in the mixture."""
        state = self._learned()
        seen = state.dual[_SEEN]
        retired = ~np.isfinite(state.scalars[output, :EXPERTS])
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self._loss_unit(state) * (state.scalars[output, _LOSS : _LOSS + EXPERTS] / (seen or np.nan))
        shares = self.weights(output)
        return [
            Expert(
                float(RATES[k]),
                "1/sqrt(n)" if k < EXPERTS // 2 else "1/n",
                float("inf") if retired[k] else float(losses[k]),
                float(shares[k]),
                bool(retired[k]),
            )
            for k in range(EXPERTS)
        ]

    def regret(self, output: int = 0) -> float:
        """By how much the mixture's cumulated loss exceeds that of its best expert, in counted weights.

        Experts that were retired do not count; where all of them were, it is -inf.
        """
        state = self._learned()
        s = state.scalars[output]
        evidence = s[:EXPERTS]
        losses = s[_TRUE : _TRUE + EXPERTS] if self._kind == _SQUARED else evidence
        best = losses[np.isfinite(evidence)].min(initial=np.inf)
        if s[_COUNTED] == best:  # both infinite, too
            return 0.0
        return self._loss_unit(state) * float(s[_COUNTED] - best)

    def regret_bound(self, output: int = 0) -> float:
        """What :meth:`regret` cannot exceed, whatever the data: see ``docs/theory.md``."""
        state = self._learned()
        largest = float(state.dual[_LARGEST])
        if self._kind == _LOGISTIC:
            return largest * float(np.log(EXPERTS))
        if self._kind == _SQUARED:
            width = float(state.dual[_HIGHEST] - state.dual[_LOWEST])
            return self._loss_unit(state) * largest * width * width * (float(np.log(EXPERTS)) / 4.0 + 0.5)
        return self._loss_unit(state) * 2.0 * float(state.scalars[output, _GAP])

    def _learned(self) -> State:
        if self.state is None:
            raise ValueError("this learner has not learned anything yet: call learn first")
        return self.state

    def _solve_coefficients(self, state: State) -> Array:
        """The averaged model: every expert's weights by its share, with the centers moved into the intercept."""
        records = state.table.reshape(-1, self._record)
        units = np.ldexp(1.0, -records[:, self._statistics + 1].astype(int))
        wide = state.table.view(np.float64).reshape(-1, self._record // 2)[:-1]
        count, mean = wide[:, self._statistics // 2 + 1], wide[:, self._statistics // 2 + 2]
        centered = (count == state.dual[_SEEN]) & ~np.isnan(mean)
        coef = np.empty((records.shape[0], self.n_outputs))
        for c in range(self.n_outputs):
            share = np.where(np.isfinite(state.scalars[c, :EXPERTS]), self.weights(c), 0.0)
            used = np.flatnonzero(share)
            weights = records[:, EXPERTS * c + used].astype(np.float64) * units[:, None]
            coef[:, c] = weights @ share[used]
            late = used >= EXPERTS // 2  # the experts who read centered features
            coef[-1, c] -= mean[centered] @ (weights[:-1][centered][:, late] @ share[used][late])
        if self._labels != _PLAIN:
            coef[-1] += state.dual[_LABEL_MEAN]
            coef *= state.dual[_LABEL_UNIT] or 1.0
        return coef

    @property
    def label_range(self) -> tuple[float, float] | None:
        """The lowest and highest label seen, where predictions are kept between them."""
        if self._labels == _PLAIN:
            return None
        shared = self._learned().dual
        unit = float(shared[_LABEL_UNIT]) or 1.0
        return float(shared[_LOWEST]) * unit, float(shared[_HIGHEST]) * unit

    @property
    def progressive_loss_(self) -> float:
        """The weighted average of the mixture's loss of every example before it was learned, over all calls."""
        if self.state is None or not self.state.dual[_SEEN] > 0.0:
            return float("nan")
        return self._loss_unit(self.state) * float(self.state.scalars[:, _MIXED].mean() / self.state.dual[_SEEN])

    def __repr__(self) -> str:
        seen = "nothing learned" if self.state is None else f"{int(self.state.dual[_ROWS])} rows learned"
        return f"<Mixture {self.loss.name}: {seen}>"


def _aligned_zeros(size: int) -> NDArray[np.float32]:
    """Zeros that start with a cache line, so that a record takes no line more than it needs."""
    block = np.empty(size + 16, np.float32)  # np.zeros would not ask for huge pages
    block.fill(0.0)
    skip = (-block.ctypes.data % 64) // 4
    return block[skip : skip + size]


# As in _mixture, which cannot be imported here without Numba (a test compares them).
_GENERIC, _LOGISTIC, _SQUARED = 0, 1, 2
_PLAIN, _PROPORTIONAL, _UNIT, _CUT = 0, 1, 2, 3
_SEEN, _ROWS, _CENTERED, _, _LARGEST, _LABEL_MEAN, _, _LOWEST, _HIGHEST, _LABEL_UNIT, _SHARED = range(11)
_LOSS, _MIXED, _COUNTED, _GAP, _TRUE, _COLUMNS = 8, 16, 17, 18, 19, 27
