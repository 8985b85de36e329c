"""The paper's regret bound term by term, to compare with the telescoped one of a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.certificate import Certificate
from steelyard.learner import Learner
from steelyard.losses import Array
from steelyard.updates import evaluate


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
    if options.get("guard"):
        raise ValueError("paper_bound runs the update's own slopes, without the guard")
    for name in ("l1", "l2", "average"):
        if options.get(name):
            raise ValueError(f"the paper's bound is one without penalties and averages: leave out {name}")
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
