"""The learner with one rate: learned block by block or row by row, with the same result to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.ftrl import Ftrl, State
from steelyard.kernels import layout
from steelyard.losses import Array, Loss, get_loss
from steelyard.regularizers import Regularizer, default_schedule
from steelyard.updates import check_update


class Learner(Ftrl):
    """Generalized implicit FTRL for linear predictions. Not to be shared between threads.

    Each round predicts ``p = <q, x>``, computes ``c = update(p, y, a)`` and moves the model along ``-c*q``.

    Parameters
    ----------
    loss : str or Loss
        The name of a loss, one of ``steelyard.losses``, or a :class:`~steelyard.CustomLoss`.
    update : {"iwa", "proximal", "aprox", "linearized"}
        How ``c`` is chosen; ``iwa`` makes weights exact and never overshoots.
    schedule : {"power", "constant", "adagrad-norm", "gap"}, optional
        By default ``power``. Metric ``full`` has none: leave it out.
    metric : {"diagonal", "scalar", "full"}
        ``diagonal`` divides each feature by its running scale, so that raw columns work. ``full`` keeps a matrix of all
        pairs of features: for the squared loss and ``iwa`` it is recursive least squares, with the penalty
        ‖u‖² / (2 eta0), intercept included. It takes O(d^2) a row, at most 10,000 features, and a loss with a
        ``curvature``.
    center : {"trajectory", "origin"}
        ``origin`` is FTRL (the paper's), ``trajectory`` is mirror descent.
    eta0 : float
        The initial learning rate, 1/lam_1. Under metric ``full`` the matrix starts at I/eta0: a large one is a weak
        prior.
    power_t : float
        The exponent of ``schedule="power"``.
    radius : float, optional
        Keep the model in the ball ``‖x‖ <= radius``, intercept included (scalar metric). Where the ball binds, the
        step is found numerically, which takes much longer.
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
    l1, l2 : float
        Penalties: the objective is sum h loss / sum h + l1 ‖x‖₁ + l2/2 ‖x‖², in the units of your columns, and
        without the intercept, as in scikit-learn's SGD. (``hindsight``'s ``l2`` is of the sum, and not of the average.)
        With l1, center ``origin`` gives exact zeros, many of them: see docs/guide/penalties.md. Features that a row
        does not have cost nothing. The progressive loss is without the penalties.
    average : bool
        Predict with the average of all models on the way, each with the weight of the row that it predicted
        (Polyak-Ruppert); the progressive loss stays that of the models themselves. Not with l1 or l2, a radius, metric
        ``full``, ``guard``, nor with schedule ``adagrad-norm``, metric ``diagonal`` and center ``origin`` together.

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
        schedule: str | None = None,
        metric: str = "diagonal",
        center: str = "trajectory",
        eta0: float = 1.0,
        power_t: float = 0.5,
        radius: float | None = None,
        fit_intercept: bool = True,
        n_outputs: int = 1,
        certificate: bool | None = None,
        guard: bool = False,
        l1: float = 0.0,
        l2: float = 0.0,
        average: bool = False,
    ) -> None:
        chosen = default_schedule(metric) if schedule is None else schedule
        regularizer = Regularizer(chosen, metric, center, eta0, power_t, radius, l1, l2)
        super().__init__(
            loss,
            regularizer,
            regularizer.eta0,
            check_update(update, get_loss(loss)),
            fit_intercept=fit_intercept,
            n_outputs=n_outputs,
            one_vs_rest=n_outputs > 1,
            certificate=n_outputs == 1 and center == "origin" if certificate is None else certificate,
            guard=guard,
            average=average,
        )
        self.update = update

    def _check_results(self, state: Any, prediction: Array, order: NDArray[np.int64]) -> None:
        self._warn_of_divergence(self.update, state, prediction, order)

    @property
    def progressive_loss_(self) -> float:
        """The weighted average of the loss of every example before it was learned, over all calls."""
        if self.state is None:
            return float("nan")
        weight, loss = self.state.clocks[0, layout.WEIGHT], self.state.sums[:, layout.LOSS].mean()
        return float(loss / weight) if weight > 0.0 else float("nan")

    def _options(self) -> dict[str, Any]:
        return {
            "update": self.update,
            "fit_intercept": self.fit_intercept,
            "n_outputs": self.n_outputs,
            "certificate": self.certificate,
            "guard": self.guard,
            "average": self.average,
            **vars(self.regularizer),
        }

    def __repr__(self) -> str:
        r = self.regularizer
        seen = "nothing learned" if self.state is None else f"{int(self.state.sums[0, layout.ROWS])} rows learned"
        return (
            f"<Learner {self.loss.name}/{self.update}, {r.schedule} from eta0={r.eta0:g}, {r.metric} metric, "
            f"center {r.center}: {seen}>"
        )


__all__ = ["Learner", "State"]
