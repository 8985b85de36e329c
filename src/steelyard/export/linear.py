"""The linear model that predictions are made with, whatever it was learned with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.losses import Array, Loss
from steelyard.online import OnlineLearner


class LinearModel:
    """Scores ``X @ coef.T + intercept``, cut to a range where there is one, and what they mean.

    Attributes
    ----------
    loss : Loss
        Its link and its threshold say what a score means.
    coef, intercept : (outputs, features), (outputs,)
    classes : array or None
        Of a classifier, in order.
    names : array or None
        Of the features.
    range : (lowest, highest) or None
        Scores are kept within it.
    """

    def __init__(
        self, loss: Loss, learner: OnlineLearner, classes: NDArray[Any] | None, names: NDArray[Any] | None
    ) -> None:
        self.loss, self.classes, self.names = loss, classes, names
        self.coef: Array = np.atleast_2d(learner.coef_)
        self.intercept: Array = np.atleast_1d(learner.intercept_)
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise ValueError("this model has diverged: not all of its coefficients are finite, so it is not exported")
        self.range: tuple[float, float] | None = getattr(learner, "label_range", None)

    @property
    def n_features(self) -> int:
        """How many columns it takes."""
        return int(self.coef.shape[1])
