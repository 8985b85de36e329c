"""A bank of learners over one read of the data: every update with every initial rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ftrl import Ftrl
from steelyard.kernels import layout
from steelyard.losses import Array, Loss, get_loss
from steelyard.regularizers import Regularizer
from steelyard.updates import check_update


class Bank(Ftrl):
    """Learners that share loss, schedule, metric and center, and differ in update and initial rate.

    The weights of one feature lie side by side, so each non-zero is read once for all of them. Output ``k`` of
    ``learn`` and ``predict`` is the learner with update ``k // len(eta0)`` and rate ``k % len(eta0)``. A learner that
    diverges shows losses of inf or NaN; the others go on.

    Parameters
    ----------
    loss : str or Loss
    updates : list of update names
    eta0 : list of initial rates
    schedule, metric, center, power_t, radius, fit_intercept, certificate, guard, l1, l2
        As for :class:`Learner`.

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
        schedule: str = "power",
        metric: str = "diagonal",
        center: str = "trajectory",
        power_t: float = 0.5,
        radius: float | None = None,
        fit_intercept: bool = True,
        certificate: bool | None = None,
        guard: bool = False,
        l1: float = 0.0,
        l2: float = 0.0,
    ) -> None:
        rates = np.atleast_1d(np.asarray(eta0, dtype=np.float64))
        if rates.ndim != 1 or not rates.size:
            raise ValueError(f"eta0 must be a list of rates, got shape {rates.shape}")
        if isinstance(updates, str) or not len(updates):
            raise ValueError(f"updates must be a list of update names, got {updates!r}")
        if metric == "full":
            raise ValueError("a bank has no metric='full': every rate would need a matrix of its own. Use a Learner")
        for rate in rates:
            Regularizer(eta0=float(rate))
        rules = [check_update(update, get_loss(loss)) for update in updates]
        super().__init__(
            loss,
            Regularizer(schedule, metric, center, float(rates[0]), power_t, radius, l1, l2),
            np.tile(rates, len(updates)),
            np.repeat(rules, rates.size),
            fit_intercept=fit_intercept,
            n_outputs=len(updates) * rates.size,
            one_vs_rest=False,  # all of them see the same label
            certificate=center == "origin" if certificate is None else certificate,
            guard=guard,
        )
        self.updates, self.rates = tuple(updates), rates

    @property
    def average_loss(self) -> Array:
        """The progressive loss of every learner, (updates, rates); inf where one diverged."""
        state = self._learned()
        average = state.sums[:, layout.LOSS] / state.clocks[:, layout.WEIGHT]
        return np.where(np.isnan(average), np.inf, average).reshape(len(self.updates), self.rates.size)

    def _options(self) -> dict[str, Any]:
        return {
            "updates": self.updates,
            "fit_intercept": self.fit_intercept,
            "certificate": self.certificate,
            "guard": self.guard,
            **vars(self.regularizer),
            "eta0": self.rates.tolist(),
        }

    def __repr__(self) -> str:
        seen = "nothing learned" if self.state is None else f"{int(self.state.sums[0, layout.ROWS])} rows learned"
        return f"<Bank {self.loss.name}, {len(self.updates)} updates x {self.rates.size} rates: {seen}>"
