"""How good predictions are: loss, accuracy, AUC, R², calibration, with weights, in constant memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steelyard.losses import Array, Loss

EXACT_ROWS = 1 << 22
"""Up to so many rows the AUC is exact; with more, scores that agree in two or three digits count as equal."""
_BIN_BITS = 16  # of a score in single precision: its sign, its exponent and seven binary digits
CALIBRATION_BINS = 10


def row_losses(loss: Loss, prediction: Array, y: Array) -> Array:
    """The loss of every row, with labels as learners take them; of several classes, one for each against the rest."""
    from steelyard.updates import evaluate

    labels = y
    if prediction.ndim == 2:
        labels = np.where(np.arange(prediction.shape[1]) == y[:, None], 1.0, -1.0).reshape(-1)
    value, _, _, _ = evaluate(loss, "linearized", prediction.reshape(-1), labels, 0.0)
    return np.asarray(value).reshape(prediction.shape)


class CalibrationBin(NamedTuple):
    """Rows whose predicted probability is in a tenth of [0, 1]."""

    low: float
    high: float
    weight: float
    predicted: float
    """The mean of the predicted probabilities."""
    observed: float
    """The share of the second class."""


class Scores:
    """Adds up predictions and labels, a block at a time.

    Parameters
    ----------
    loss : Loss
    classes : int or None
        How many classes there are; None for a regression.
    exact_rows : int
        Up to so many rows are kept, for an exact AUC.
    """

    def __init__(self, loss: Loss, classes: int | None, *, exact_rows: int = EXACT_ROWS) -> None:
        self._loss, self._classes, self._exact_rows = loss, classes, exact_rows
        self.rows = 0
        self.weight = 0.0
        self._lost = self._right = 0.0
        self._moments = np.zeros(5)  # weight, mean and squares of labels, squared errors, mean error
        self._kept: list[tuple[Array, Array, Array]] | None = []
        self._bins = np.zeros((2, 1 << _BIN_BITS))
        self._calibration = np.zeros((CALIBRATION_BINS, 3))

    def add(self, prediction: Array, loss: Array, y: Array, weight: Array) -> None:
        """Rows with their scores, losses, labels (as a learner has them) and weights."""
        self.rows += y.size
        total = float(weight.sum())
        if not total > 0.0:
            return
        self.weight += total
        per_row = loss if loss.ndim == 1 else loss.mean(axis=1)
        self._lost += float(weight @ np.where(weight > 0.0, per_row, 0.0))
        if self._classes is None:
            self._add_targets(np.asarray(self._loss.inverse_link(prediction)), y, weight, total)
            return
        guess = (
            np.where(prediction > self._loss.threshold, 1.0, -1.0)
            if prediction.ndim == 1
            else prediction.argmax(axis=1)
        )
        self._right += float(weight @ (guess == y))
        if prediction.ndim == 1:
            self._add_ranks(prediction, y > 0.0, weight)
            if self.is_probabilistic:
                self._add_probabilities(np.asarray(self._loss.inverse_link(prediction)), y > 0.0, weight)

    @property
    def is_probabilistic(self) -> bool:
        """Whether scores are probabilities behind a link."""
        return self._loss.link in ("logistic", "identity") and self._classes is not None

    def _add_targets(self, prediction: Array, y: Array, weight: Array, total: float) -> None:
        mean = float(weight @ y) / total
        seen, old_mean, squares, errors, bias = self._moments
        both = seen + total
        squares += float(weight @ (y - mean) ** 2) + (mean - old_mean) ** 2 * seen * total / both
        errors += float(weight @ (prediction - y) ** 2)
        bias += float(weight @ (prediction - y))
        self._moments[:] = both, old_mean + (mean - old_mean) * total / both, squares, errors, bias

    def _add_ranks(self, prediction: Array, positive: Any, weight: Array) -> None:
        waiting = [(prediction, np.where(positive, weight, 0.0), np.where(positive, 0.0, weight))]
        if self._kept is not None:
            self._kept += waiting
            if self.rows <= self._exact_rows:
                return
            waiting, self._kept = self._kept, None
        for scores, plus, minus in waiting:
            place = _key(scores) >> np.uint32(32 - _BIN_BITS)
            for row, values in enumerate((plus, minus)):
                self._bins[row] += np.bincount(place, values, 1 << _BIN_BITS)

    def _add_probabilities(self, p: Array, positive: Any, weight: Array) -> None:
        place = np.minimum((p * CALIBRATION_BINS).astype(np.intp), CALIBRATION_BINS - 1)
        for column, values in enumerate((weight, weight * p, weight * positive)):
            self._calibration[:, column] += np.bincount(place, values, CALIBRATION_BINS)

    # -------------------------------------------------------------------------------------------------- what comes out

    @property
    def average_loss(self) -> float:
        """By weight, and over outputs where there are several."""
        return self._lost / self.weight if self.weight else float("nan")

    @property
    def accuracy(self) -> float | None:
        """The share of right classes."""
        return None if self._classes is None else self._right / self.weight if self.weight else float("nan")

    @property
    def auc(self) -> float | None:
        """For two classes: how often a row of the second has a higher score than one of the first; ties count half."""
        if self._classes != 2:
            return None
        if self._kept is None:
            plus, minus = self._bins
        else:
            scores = np.concatenate([np.empty(0), *(each[0] for each in self._kept)])
            _, place = np.unique(scores, return_inverse=True)
            size = int(place.max(initial=-1)) + 1
            plus, minus = np.zeros((2, size))
            plus += np.bincount(place, np.concatenate([np.empty(0), *(each[1] for each in self._kept)]), size)
            minus += np.bincount(place, np.concatenate([np.empty(0), *(each[2] for each in self._kept)]), size)
        pairs = plus.sum() * minus.sum()
        if not pairs > 0.0:
            return float("nan")
        below = np.cumsum(minus) - minus
        return float(plus @ (below + 0.5 * minus) / pairs)

    @property
    def r2(self) -> float | None:
        """For a regression: 1 - squared errors over squared deviations from the mean."""
        if self._classes is not None:
            return None
        return 1.0 - float(self._moments[3] / self._moments[2]) if self._moments[2] > 0.0 else float("nan")

    @property
    def rmse(self) -> float | None:
        """For a regression: the root of the mean squared error."""
        return None if self._classes is not None else float(np.sqrt(self._moments[3] / (self._moments[0] or np.nan)))

    @property
    def bias(self) -> float | None:
        """For a regression: by how much predictions are too high on average."""
        return None if self._classes is not None else float(self._moments[4] / (self._moments[0] or np.nan))

    @property
    def calibration(self) -> list[CalibrationBin] | None:
        """For two classes and a loss with probabilities: the tenths of [0, 1] that predictions fell into."""
        if self._classes != 2 or not self.is_probabilistic:
            return None
        return [
            CalibrationBin(i / CALIBRATION_BINS, (i + 1) / CALIBRATION_BINS, w, p / w, hits / w)
            for i, (w, p, hits) in enumerate(self._calibration.tolist())
            if w > 0.0
        ]

    @property
    def calibration_error(self) -> float | None:
        """The mean distance of predicted and observed probability, by the weight of the bins."""
        bins = self.calibration
        if bins is None:
            return None
        return sum(each.weight * abs(each.predicted - each.observed) for each in bins) / (self.weight or np.nan)

    def state(self) -> dict[str, Any]:
        """Everything that was added up, as JSON can hold it, for :meth:`restore`; not where rows are kept."""
        used = np.flatnonzero(self._bins.any(axis=0))
        return {
            "sums": [self.rows, self.weight, self._lost, self._right],
            "moments": self._moments.tolist(),
            "calibration": self._calibration.tolist(),
            "bins": [used.tolist(), *self._bins[:, used].tolist()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` said."""
        self.rows, self.weight, self._lost, self._right = state["sums"]
        self._moments[:], self._calibration[:] = state["moments"], state["calibration"]
        used, *bins = state["bins"]
        self._bins[:, used] = bins
        self._kept = None

    def as_dict(self) -> dict[str, Any]:
        """Everything by name, the same names for learning and evaluating; None where a score has no meaning."""
        found = {
            "examples": self.rows,
            "weighted_examples": self.weight,
            "loss": self._loss.name,
            "average_loss": self.average_loss,
            "accuracy": self.accuracy,
            "auc": self.auc,
            "calibration_error": self.calibration_error,
            "r2": self.r2,
            "rmse": self.rmse,
            "bias": self.bias,
        }
        return {name: None if isinstance(value, float) and value != value else value for name, value in found.items()}


def _key(scores: Array) -> Any:
    """Numbers that are ordered as the scores are."""
    bits = scores.astype(np.float32).view(np.uint32)
    return np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))
