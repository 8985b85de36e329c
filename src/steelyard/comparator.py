"""The best linear model in hindsight, with a duality gap that says how good the answer is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from steelyard.data.block import as_block
from steelyard.data.checks import check_finite, check_labels, check_weights
from steelyard.losses import Array, Loss, get_loss
from steelyard.updates import conjugate, evaluate


class Hindsight(NamedTuple):
    """A comparator and what is known of it.

    ``total_loss`` is its cumulated loss; no model of the ball has one smaller than ``total_loss - gap`` (with ``l2``,
    the same of the loss plus l2/2 times the squared norm).
    """

    coef: Array
    intercept: float
    total_loss: float
    gap: float

    def __repr__(self) -> str:
        return f"<Hindsight of {self.coef.size} features: total loss {self.total_loss:.6g}, to {self.gap:.2g}>"


def hindsight(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "logistic",
    radius: float | None = None,
    l2: float | None = None,
    sample_weight: Any = None,
    fit_intercept: bool = True,
) -> Hindsight:
    """The model with the smallest cumulated loss, in a ball or with a quadratic penalty.

    Parameters
    ----------
    X, y, sample_weight : data
    loss : name or Loss
    radius : float
        Over all models of norm up to ``radius``, intercept included.
    l2 : float
        Or with the penalty l2/2 * ‖u‖² on the sum of the losses, intercept included. (The ``l2`` of a
        :class:`Learner` is on their average, without the intercept: multiply it by the sum of the weights.)
    fit_intercept : bool

    Returns
    -------
    Hindsight
        Solved by SciPy's L-BFGS. The duality gap is computed from the slopes at the answer, so it holds whatever the
        solver did: for smooth losses it is tiny, for losses with kinks it says how far to trust the answer.

    Examples
    --------
    >>> import numpy as np, steelyard
    >>> X, y = np.eye(2), np.array([1.0, -1.0])
    >>> best = steelyard.hindsight(X, y, radius=2.0, fit_intercept=False)
    >>> best.coef.round(4), best.gap < 1e-6
    (array([ 1.4142, -1.4142]), True)
    """
    from scipy.sparse import issparse

    if (radius is None) == (l2 is None):
        raise ValueError("give radius= or l2=, and not both")
    bound = radius if radius is not None else l2
    if bound is None or not 0.0 < bound < np.inf:
        raise ValueError(f"{'radius' if radius is not None else 'l2'} must be a finite number > 0, got {bound!r}")
    block = as_block(X)
    check_finite(block)
    chosen = get_loss(loss)
    rows = X.tocsr() if issparse(X) else np.asarray(X, dtype=np.float64)
    labels, weight = check_labels(y, chosen, block.n_rows), check_weights(sample_weight, block.n_rows)
    problem = _Problem(rows, labels, weight, chosen, fit_intercept)
    u = problem.penalised(l2) if l2 is not None else problem.in_ball(float(bound))
    total, slopes = problem.loss_and_slopes(u)
    dual_norm = float(np.linalg.norm(problem.back(slopes)))
    dual = -float(
        weight @ conjugate(chosen, np.divide(slopes, weight, out=np.zeros_like(slopes), where=weight > 0), labels)
    )
    if l2 is not None:
        gap = total + 0.5 * l2 * float(u @ u) - (dual - dual_norm**2 / (2.0 * l2))
    else:
        gap = total - (dual - float(bound) * dual_norm)
    return Hindsight(u[:-1], float(u[-1]), total, max(gap, 0.0))


class _Problem:
    """Cumulated loss of u = (coefficients, intercept) and its gradient."""

    def __init__(self, X: Any, y: Array, weight: Array, loss: Loss, fit_intercept: bool) -> None:
        self.X, self.y, self.weight, self.loss, self.fit_intercept = X, y, weight, loss, fit_intercept

    def loss_and_slopes(self, u: Array) -> tuple[float, Array]:
        p = np.asarray(self.X @ u[:-1]).ravel() + u[-1]
        value, slope, _, _ = evaluate(self.loss, "linearized", p, self.y, 0.0)
        return float(self.weight @ value), self.weight * slope

    def back(self, slopes: Array) -> Array:
        """The sum of slope * q."""
        return np.append(np.asarray(self.X.T @ slopes).ravel(), slopes.sum() if self.fit_intercept else 0.0)

    def penalised(self, l2: float, start: Array | None = None) -> Array:
        from scipy.optimize import minimize

        def objective(u: Array) -> tuple[float, Array]:
            total, slopes = self.loss_and_slopes(u)
            return total + 0.5 * l2 * float(u @ u), self.back(slopes) + l2 * u

        x0 = np.zeros(self.X.shape[1] + 1) if start is None else start
        options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
        return np.asarray(minimize(objective, x0, jac=True, method="L-BFGS-B", options=options).x)

    def in_ball(self, radius: float) -> Array:
        """The penalty whose solution has the norm of the ball, by bisection on its logarithm."""
        scale = float(np.linalg.norm(self.back(self.loss_and_slopes(np.zeros(self.X.shape[1] + 1))[1]))) / radius
        if scale == 0.0:
            return np.zeros(self.X.shape[1] + 1)
        low, high = np.log(scale * 1e-12), np.log(scale * 2.0)
        u = self.penalised(float(np.exp(low)))
        if np.linalg.norm(u) <= radius:
            return u  # the ball does not bind
        for _ in range(60):
            middle = 0.5 * (low + high)
            u = self.penalised(float(np.exp(middle)), start=u)
            norm = float(np.linalg.norm(u))
            if abs(norm - radius) <= 1e-10 * radius:
                break
            low, high = (middle, high) if norm > radius else (low, middle)
        return u * min(1.0, radius / float(np.linalg.norm(u)))
