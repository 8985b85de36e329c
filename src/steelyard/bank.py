"""A bank of learners over one read of the data: every update with every initial rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.learner import _LOSS, _WEIGHT, Learner
from steelyard.losses import Array, Loss
from steelyard.schedules import Regularizer
from steelyard.updates import check_update


class Bank(Learner):
    """Learners that share loss, schedule, metric and center, and differ in update and initial rate.

    The weights of one feature lie side by side, so each non-zero is read once for all of them. Output ``k`` of
    ``learn`` and ``predict`` is the learner with update ``k // len(eta0)`` and rate ``k % len(eta0)``. A learner that
    diverges shows losses of inf or NaN; the others go on.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import Bank
    >>> bank = Bank("squared", updates=("linearized", "iwa"), eta0=[0.1, 1.0, 10.0])
    >>> _ = bank.learn(np.ones((20, 1)), np.ones(20))
    >>> bank.average_loss.shape
    (2, 3)
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        updates: Sequence[str] = ("iwa",),
        eta0: ArrayLike = (0.1, 1.0, 10.0),
        **options: Any,
    ) -> None:
        rates = np.atleast_1d(np.asarray(eta0, dtype=np.float64))
        if rates.ndim != 1 or not rates.size:
            raise ValueError(f"eta0 must be a list of rates, got shape {rates.shape}")
        if isinstance(updates, str) or not len(updates):
            raise ValueError(f"updates must be a list of update names, got {updates!r}")
        super().__init__(loss, eta0=float(rates[0]), update=updates[0], **options)
        for rate in rates:
            Regularizer(eta0=float(rate))
        self.updates = tuple(updates)
        self.rates = rates
        self.n_outputs = len(self.updates) * rates.size
        self._rules = np.repeat([check_update(update, self.loss) for update in self.updates], rates.size)
        self._eta0 = np.tile(rates, len(self.updates))

    @property
    def average_loss(self) -> Array:
        """The progressive loss of every learner, (updates, rates); inf where one diverged."""
        if self.state is None:
            raise ValueError("this bank has not learned anything yet: call learn first")
        scalars = self.state.scalars
        average = scalars[:, _LOSS] / scalars[:, _WEIGHT]
        return np.where(np.isnan(average), np.inf, average).reshape(len(self.updates), self.rates.size)

    def _options(self) -> dict[str, Any]:
        options = {**super()._options(), "updates": self.updates, "eta0": self.rates.tolist()}
        return {name: value for name, value in options.items() if name not in ("update", "n_outputs")}

    def _look_for_divergence(self, *_: Any) -> None:
        """A diverging learner in a bank is a result, not an accident."""
