"""Early stopping: rows that are held out, and the model of the pass that predicts them best."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.data.block import Block
from steelyard.data.order import row_keys
from steelyard.data.source import take_rows
from steelyard.losses import Array
from steelyard.online import OnlineLearner
from steelyard.scores import row_losses


class EarlyStopping:
    """Watches the loss of held-out rows, pass by pass.

    Equal rows are on one side together, drawn by a hash of their content: a row of weight 2 and the same row twice are
    split alike, wherever they stand.

    Parameters
    ----------
    block, y, weight, factor : the rows as learners take them; ``weight`` decides how many are held out, and ``factor``
        multiplies it where the loss is averaged
    fraction : of the weight, of each of the ``strata``
    strata : numbers of classes, or None
    patience : passes without improvement, after which it is enough
    tol : an improvement lowers the loss by more than this part of it; with None every pass is one
    seed : decides the draw
    """

    def __init__(
        self,
        block: Block,
        y: Array,
        weight: Array,
        factor: Array | None,
        *,
        fraction: float,
        strata: Array | None,
        patience: int,
        tol: float | None,
        seed: int,
    ) -> None:
        check_stopping(fraction, patience, tol)
        self.held = hold_out(row_keys(block, y), weight, fraction, strata, seed)
        """Which rows are held out."""
        if not self.held.any():
            raise ValueError(
                f"early_stopping with validation_fraction={fraction} leaves no row to hold out: of n_samples={y.size} "
                "too few are different, and of positive weight"
            )
        rows = np.flatnonzero(self.held)
        self._block, self._y = take_rows(block, rows), y[rows]
        self._weight = weight[rows] if factor is None else (weight * factor)[rows]
        self._patience, self._tol = patience, tol
        self._best: Any = None
        self._best_loss = np.inf
        self._waited = 0
        self.losses: list[float] = []
        """The average loss of the held-out rows after each pass; infinite where the learner had diverged."""

    def enough(self, learner: OnlineLearner) -> bool:
        """Look at the model after a pass; True if the passes so far are enough."""
        loss = self._loss(learner)
        self.losses.append(loss)
        least = self._best_loss
        needed = least - self._tol * abs(least) if self._tol is not None and np.isfinite(least) else np.inf
        self._waited = 0 if loss < needed else self._waited + 1
        if loss < least:
            self._best_loss = loss
            self._best = type(learner.state)(*(array.copy() for array in learner.state))
        return self._tol is not None and self._waited >= self._patience

    def _loss(self, learner: OnlineLearner) -> float:
        """The average over the held-out rows; infinite where the learner has diverged."""
        prediction = learner.predict_block(self._block)
        if np.isnan(prediction).any():
            return np.inf
        each = row_losses(learner.loss, prediction, self._y)
        each = each if each.ndim == 1 else each.mean(axis=1)
        with np.errstate(all="ignore"):
            loss = float(self._weight @ each / self._weight.sum())
        return loss if loss == loss else np.inf

    def put_back(self, learner: OnlineLearner) -> None:
        """Give the learner what it had learned after the best pass."""
        if self._best is not None:
            learner.state, learner._coef = self._best, None


def check_stopping(fraction: Any, patience: Any, tol: Any) -> None:
    """Refuse parameters that are wrong, by their names in the estimators."""
    if not isinstance(fraction, Real) or not 0.0 < float(fraction) < 1.0:
        raise ValueError(f"validation_fraction must be a number between 0 and 1, got {fraction!r}")
    if not isinstance(patience, Integral) or isinstance(patience, bool) or patience < 1:
        raise ValueError(f"n_iter_no_change must be an integer of at least 1, got {patience!r}")
    if tol is not None and not (isinstance(tol, Real) and 0.0 <= float(tol) < 1.0):
        raise ValueError(f"tol must be None, or a number from 0 to 1 (a part of the loss), got {tol!r}")


def hold_out(
    keys: NDArray[np.uint64], weight: Array, fraction: float, strata: Array | None, seed: int
) -> NDArray[np.bool_]:
    """Which rows to hold out: at most ``fraction`` of the weight of each stratum, or else its lightest row.

    Rows with the same key stay together, and one of a stratum's different rows at least is left to learn from.
    """
    each, first, group = np.unique(keys, return_index=True, return_inverse=True)
    total = np.bincount(group, weight)
    salt = np.random.default_rng([seed, 1]).integers(2**63, dtype=np.uint64)
    place = _mixed(each ^ salt)
    kind = np.zeros(each.size) if strata is None else strata[first]
    held = np.zeros(each.size, np.bool_)
    for stratum in np.unique(kind):
        own = np.flatnonzero((kind == stratum) & (total > 0.0))
        if own.size < 2:
            continue
        own = own[np.argsort(place[own])]
        most = fraction * total[own].sum()
        light = own[total[own] <= most]
        chosen = light[np.cumsum(total[light]) <= most]
        held[chosen if chosen.size else own[total[own].argmin()]] = True
    return np.asarray(held[group])


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of the 64-bit numbers that leaves no pattern: multiply and fold, twice."""
    with np.errstate(over="ignore"):
        for factor in (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)):
            keys = (keys ^ (keys >> np.uint64(31))) * factor
        return np.asarray(keys ^ (keys >> np.uint64(31)), np.uint64)
