"""A regret bound that is computed while learning: Fenchel-Young, summed over the rounds.

For any comparator u, with z_t = h_t c_t q_t, the conjugate inequality of each round adds up to

    Regret_T(u) = sum h_t loss_t(p_t) - sum h_t loss_t(<q_t, u>)  <=  C_T - <Z_T, u>,
    C_T = sum h_t (loss_t(p_t) + conjugate_t(c_t)),   Z_T = sum z_t.

It is the paper's Theorem 2.2, telescoped. It holds for every update, schedule, metric, center and sequence of data,
since it asks nothing of how p_t and c_t were chosen, and it needs no second look at the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.losses import Array


@dataclass(frozen=True)
class Certificate:
    """What a learner can prove about its regret.

    Attributes
    ----------
    rounds, weight, total_loss : how much was learned, and the cumulated progressive loss
    fenchel : C_T
    dual : Z_T, the intercept's entry last
    delta, negative_deltas : the sum of delta_t, by which the surrogate slopes beat the gradients in the paper's bound,
        and how many are negative; known for center "origin" and the scalar metric without a ball
    guarded : how often ``guard=True`` took another slope than the update's
    scale, center : of every column, the intercept's last, where the learner knows them: what ``scaled`` norms measure in

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import Learner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = np.sign(X @ [1.0, -2.0, 0.5])
    >>> learner = Learner("logistic", center="origin", metric="scalar")
    >>> _ = learner.learn(X, y)
    >>> print(learner.certify().summary(radius=3))
    1000 rounds, average loss 0.271: within 0.08815 a round of every linear model of norm <= 3
    """

    rounds: int
    weight: float
    total_loss: float
    fenchel: float
    dual: Array
    fit_intercept: bool = True
    delta: float | None = None
    negative_deltas: int | None = None
    guarded: int = 0
    scale: Array | None = None
    center: Array | None = None

    @property
    def average_loss(self) -> float:
        """The progressive loss."""
        return self.total_loss / self.weight if self.weight > 0.0 else float("nan")

    def regret_bound(self, u: ArrayLike | None = None, intercept: float = 0.0, *, radius: float | None = None) -> float:
        """An upper bound on the regret against the comparator ``u``, or against all of norm up to ``radius``.

        ``u`` is in the coordinates of ``coef_``, ``intercept`` is its constant. The norm of a ball includes the
        intercept where one is learned.
        """
        if (u is None) == (radius is None):
            raise ValueError("give a comparator u, or a radius, and not both")
        if radius is not None:
            if not 0.0 <= radius < np.inf:
                raise ValueError(f"radius must be a finite number >= 0, got {radius}")
            with np.errstate(over="ignore"):  # an infinite bound is a bound
                return self.fenchel + radius * float(np.linalg.norm(self.dual))
        comparator = np.asarray(u, dtype=np.float64).ravel()
        if comparator.size != self.dual.size - 1:
            raise ValueError(f"u has {comparator.size} entries, but the learner has {self.dual.size - 1} features")
        if intercept != 0.0 and not self.fit_intercept:
            raise ValueError("the learner has no intercept, so its certificate says nothing of comparators with one")
        return self.fenchel - float(self.dual[:-1] @ comparator) - float(self.dual[-1]) * intercept

    def best_loss_lower_bound(self, radius: float) -> float:
        """No model of norm up to ``radius`` has a smaller total loss on what was learned."""
        return self.total_loss - self.regret_bound(radius=radius)

    def summary(self, radius: float = 1.0) -> str:
        """One line for people."""
        if not self.rounds:
            return "nothing learned yet"
        gap = self.regret_bound(radius=radius) / self.weight
        little = "" if gap < self.average_loss else " (above the average loss itself, it says little)"
        return (
            f"{self.rounds} rounds, average loss {self.average_loss:.4g}: within {gap:.4g} a round of every linear "
            f"model of norm <= {radius:g}{little}"
        )

    def __repr__(self) -> str:
        return f"<Certificate: {self.summary()}>"

    def __add__(self, other: Any) -> Certificate:
        """The certificate of two consecutive streams, whoever learned them."""
        if not isinstance(other, Certificate):
            return NotImplemented
        if self.dual.size != other.dual.size or self.fit_intercept != other.fit_intercept:
            raise ValueError("certificates of learners with different features do not add up")
        known = self.delta is not None and other.delta is not None
        return Certificate(
            self.rounds + other.rounds,
            self.weight + other.weight,
            self.total_loss + other.total_loss,
            self.fenchel + other.fenchel,
            self.dual + other.dual,
            self.fit_intercept,
            (self.delta or 0.0) + (other.delta or 0.0) if known else None,
            (self.negative_deltas or 0) + (other.negative_deltas or 0) if known else None,
            self.guarded + other.guarded,
        )


@dataclass(frozen=True)
class PaperBound:
    """The paper's Theorem 2.2, term by term.

    Regret_T(u) <= psi_(T+1)(u) - min psi_1 + sum_t terms_t + last, where

        terms_t = psi*_(t+1)(theta_t - g_t) - psi*_t(theta_t) + <x_t, g_t> - delta_t
        last    = F_(T+1)(x_(T+1)) - F_(T+1)(u)

    The conjugates are those of the regularizers restricted to the feasible set, and min psi_1 is 0.
    """

    regularizer: float
    terms: Array
    delta: Array
    last: float

    @property
    def total(self) -> float:
        """The bound: equal to ``Certificate.regret_bound(u)`` to rounding."""
        return self.regularizer + float(self.terms.sum()) + self.last


def paper_bound(
    X: Any, y: Any, u: ArrayLike, intercept: float = 0.0, *, sample_weight: Any = None, **options: Any
) -> tuple[PaperBound, Certificate]:
    """Run a learner row by row and keep every term of the paper's bound against ``u``; for small data.

    ``options`` are those of :class:`Learner`, with center "origin" and the scalar metric (the paper's), and with
    ``radius`` for a ball. Returns the terms, and the learner's own certificate.
    """
    from steelyard.learner import Learner
    from steelyard.updates import evaluate

    if options.get("guard"):
        raise ValueError("paper_bound runs the update's own slopes, without the guard")
    learner = Learner(center="origin", metric="scalar", certificate=True, **options)
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    radius = np.inf if learner.regularizer.radius is None else learner.regularizer.radius
    theta, lam = np.zeros(X.shape[1] + 1), 1.0 / learner.regularizer.eta0

    def dual_regularizer(theta: Array, lam: float) -> float:
        norm = float(np.linalg.norm(theta))
        return norm * norm / (2.0 * lam) if norm <= lam * radius else radius * norm - lam * radius * radius / 2.0

    terms, deltas = [], []
    for i in np.flatnonzero(weight > 0.0):
        q, h = np.append(X[i], float(learner.fit_intercept)), float(weight[i])
        p = float(learner.learn(X[i : i + 1], y[i : i + 1], weight[i : i + 1]).prediction[0])
        assert learner.state is not None
        after_theta, after = learner.state.table.copy(), float(learner.lam()[0])
        slope = evaluate(learner.loss, "linearized", p, y[i], 0.0)[1]
        g = h * slope * q
        c = evaluate(learner.loss, learner.update, p, y[i], h * float(q @ q) / lam)[2]
        if radius < np.inf and q.any():  # a step in a ball is found numerically: it is read off theta
            c = float(np.clip((theta - after_theta) @ q / (h * float(q @ q)), min(0.0, slope), max(0.0, slope)))
        surrogate = float(learner.loss.conjugate(c, y[i]))
        h_of_g = dual_regularizer(theta - g, after) + h * float(learner.loss.conjugate(slope, y[i]))
        h_of_z = dual_regularizer(after_theta, after) + h * surrogate
        deltas.append(h_of_g - h_of_z)
        linear = dual_regularizer(theta - g, after) - dual_regularizer(theta, lam) + p * h * slope
        terms.append(linear - deltas[-1])
        theta, lam = after_theta, after
    comparator = np.append(np.asarray(u, dtype=np.float64).ravel(), intercept)
    norm2 = 0.5 * lam * float(comparator @ comparator)
    last = -dual_regularizer(theta, lam) - (norm2 - float(theta @ comparator))
    return PaperBound(norm2, np.array(terms), np.array(deltas), last), learner.certify()
