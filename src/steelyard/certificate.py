"""A regret bound that is computed while learning: Fenchel-Young, summed over the rounds.

For any comparator u, with z_t = h_t c_t q_t, the conjugate inequality of each round adds up to

    Regret_T(u) = sum h_t loss_t(p_t) - sum h_t loss_t(<q_t, u>)  <=  C_T - <Z_T, u>,
    C_T = sum h_t (loss_t(p_t) + conjugate_t(c_t)),   Z_T = sum z_t.

It is the paper's Theorem 2.2, telescoped. It holds for every update, schedule, metric, center and sequence of data,
and for a mixture, since it asks nothing of how p_t and c_t were chosen, and it needs no second look at the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.losses import Array

LEAST_SPREAD = 1e-6
"""Of a column's center: a column that varies less counts as if it varied that much. So the rounding of Z_j, which is in
proportion to the center, is divided by 1e-6 of it at most, and a constant column needs no rule of its own."""
LEAST_SCALE = 1e-290
"""Of any column: a mixture takes smaller values for zero."""


@dataclass(frozen=True, eq=False)
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
    scale, center : of every column, the intercept's last (1 and 0), where the learner knows them: of a mixture the
        spread of the column and its mean (0 where it is not centered), under the diagonal metric the largest
        magnitude and 0. They are what ``scaled`` norms measure in

    A ball of models is measured in one of two norms. The plain one is sqrt(sum u_j^2 + b^2), b the intercept where one
    is learned. The scaled one is that of the same model written for the columns (q_j - center_j)/scale_j, which does
    not depend on the units of the columns: sqrt(sum (scale_j u_j)^2 + (b + sum center_j u_j)^2). A bound holds for all
    models at once, so it holds whatever numbers stand in ``scale`` and ``center``.

    ``later - earlier`` is the certificate of the rounds between two of one learner, ``one + other`` that of two streams
    together.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import Learner, Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = np.sign(X @ [1.0, -2.0, 0.5] + rng.normal(size=1000))
    >>> learner = Learner("logistic", center="origin", metric="scalar")
    >>> _ = learner.learn(X, y)
    >>> print(learner.certify().summary(radius=3))
    1000 rounds, average loss 0.3656: within 0.1012 a round of every linear model of norm <= 3
    >>> mixture = Mixture("logistic")
    >>> _ = mixture.learn(X * [1e-3, 1.0, 1e6] + [0.0, 50.0, 0.0], y)
    >>> print(mixture.certify().summary(radius=3))
    1000 rounds, average loss 0.3248: within 0.04906 a round of every linear model of norm <= 3 in scaled columns
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

    def regret_bound(
        self,
        u: ArrayLike | None = None,
        intercept: ArrayLike = 0.0,
        *,
        radius: float | None = None,
        scaled: bool = False,
    ) -> float:
        """An upper bound on the regret against the comparator ``u``, or against all of norm up to ``radius``.

        ``u`` is in the coordinates of ``coef_``, ``intercept`` is its constant. The norm of a ball includes the
        intercept where one is learned; with ``scaled`` it is that of :meth:`norm` with ``scaled``. The bound is inf
        where a float cannot hold it.
        """
        if (u is None) == (radius is None):
            raise ValueError("give a comparator u, or a radius, and not both")
        if radius is not None:
            if not 0.0 <= radius < np.inf:
                raise ValueError(f"radius must be a finite number >= 0, got {radius}")
            return _or_infinite(self.fenchel + float(radius) * self.dual_norm(scaled=scaled))
        if scaled:
            raise ValueError("scaled=True belongs to a radius: u is in the coordinates of coef_")
        used, model = self._comparator(u, intercept)  # what u does not use cannot make its bound infinite
        with np.errstate(over="ignore", invalid="ignore"):
            return _or_infinite(self.fenchel - float(self.dual[used] @ model))

    def penalised_bound(
        self, l1: float = 0.0, l2: float = 0.0, *, intercept: float = 0.0, radius: float = np.inf
    ) -> float:
        """An upper bound on sum h loss(p) - sum h (loss(<q, u> + b) + r(u)), for all u with ``‖u‖₁ <= radius`` and
        ``|b| <= intercept`` at once, ``r(u) = l1 ‖u‖₁ + l2/2 ‖u‖²``::

            C + H r*(-Z/H) + B |Z_b|,    H = sum h, B = intercept, Z_b the intercept's entry of Z

        r* is the sum of ``max(0, |s_j| - l1)^2 / (2 l2)``; without l2, and within the radius D, it is
        ``D max(0, max |s_j| - l1)``. So the bound is finite if l2 > 0, or radius < inf, or no ``|Z_j|`` is above H l1.

        It compares the cumulated progressive loss with H times the *penalised* objective of u. The penalties of the
        learner's own models on the way are not in it: a bound on the loss and those together is not claimed. It holds
        for any learner, whatever penalties that learner has itself.
        """
        for name, value in (("l1", l1), ("l2", l2), ("intercept", intercept)):
            if not isinstance(value, Real) or not 0.0 <= value < np.inf:
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
        if not isinstance(radius, Real) or not radius >= 0.0:
            raise ValueError(f"radius must be a number >= 0, got {radius!r}")
        if intercept > 0.0 and not self.fit_intercept:
            raise ValueError("the learner has no intercept, so its certificate says nothing of comparators with one")
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            beyond = np.maximum(0.0, np.abs(self.dual[:-1]) - l1 * self.weight)  # of H s_j
            largest = float(beyond.max(initial=0.0))
            free = min(radius * largest if largest > 0.0 else 0.0, np.inf)
            if l2 > 0.0 and self.weight > 0.0:
                free = min(free, float(beyond @ beyond) / (2.0 * l2 * self.weight))
            bias = intercept * abs(float(self.dual[-1])) if intercept > 0.0 else 0.0
            return _or_infinite(self.fenchel + free + bias)

    def norm(self, coef: ArrayLike, intercept: ArrayLike = 0.0, *, scaled: bool = False) -> float:
        """The norm of a model, in the sense of ``regret_bound(radius=...)``; with ``scaled``, of scaled columns."""
        used, model = self._comparator(coef, intercept)
        if not scaled:
            return _norm(model)
        features = used < self.dual.size - 1
        scale, center = self._columns(used[features])
        with np.errstate(over="ignore", invalid="ignore"):
            constant = center @ model[features] + model[~features].sum()
            return _norm(np.append(model[features] * scale, constant))

    def dual_norm(self, *, scaled: bool = False) -> float:
        """The largest <Z_T, u> over all models of norm 1: by how much the bound grows with the radius."""
        if not scaled:
            return _norm(self.dual)
        centered = False if self.center is None else self.center[:-1] != 0.0
        used = np.flatnonzero((self.dual[:-1] != 0.0) | centered)  # most of a hashed table is neither
        scale, center = self._columns(used)
        with np.errstate(over="ignore", invalid="ignore"):
            return _norm(np.append((self.dual[used] - center * self.dual[-1]) / scale, self.dual[-1]))

    def _columns(self, used: NDArray[np.intp]) -> tuple[Array, Array]:
        """Scale and center of some columns, not the intercept's: positive, and finite or (never used) infinite."""
        if self.scale is None or self.center is None:
            raise ValueError("the learner does not know the scale of its columns: leave out scaled=True")
        center, scale = self.center[used], self.scale[used]
        center = np.where(np.isfinite(center) & self.fit_intercept, center, 0.0)
        least = np.maximum(LEAST_SCALE, LEAST_SPREAD * np.abs(center))
        return np.where(np.isnan(scale), np.inf, np.maximum(scale, least)), center

    def _comparator(self, u: Any, intercept: ArrayLike) -> tuple[NDArray[np.intp], Array]:
        """Where a model, the intercept last, is not zero, and what it is there, if the certificate speaks of it."""
        constant = np.asarray(intercept, dtype=np.float64).ravel()  # an estimator's intercept_ has one entry
        if constant.size != 1:
            raise ValueError(f"intercept must be one number, got {constant.size}: a certificate is about one class")
        model = np.asarray(u, dtype=np.float64).ravel()
        if model.size != self.dual.size - 1:
            raise ValueError(f"u has {model.size} entries, but the learner has {self.dual.size - 1} features")
        if constant[0] != 0.0 and not self.fit_intercept:
            raise ValueError("the learner has no intercept, so its certificate says nothing of comparators with one")
        used = np.flatnonzero(model)
        where, model = np.append(used, model.size)[: used.size + (constant[0] != 0.0)], np.append(model[used], constant)
        if not np.isfinite(model).all():
            raise ValueError("u and its intercept must be finite")
        return where, model[: where.size]

    def best_loss_lower_bound(self, radius: float, *, scaled: bool = False) -> float:
        """No model of norm up to ``radius`` has a smaller total loss on what was learned."""
        least = self.total_loss - self.regret_bound(radius=radius, scaled=scaled)
        return least if np.isfinite(least) else -np.inf

    def gap_to_best(self, total_loss: float, radius: float, *, scaled: bool = False) -> float:
        """By how much ``total_loss`` exceeds that of the best model of norm up to ``radius``, at most.

        ``total_loss`` is the summed loss, h*loss, of any one model, over the rows that the certificate is about: what
        one pass of evaluation gives, for a merged model for example. The certificate itself speaks of the predictions
        that were made while learning. A gap below zero means that the model is a larger one, or that ``total_loss`` is
        not the sum over those rows (the mean, for example).
        """
        return _or_infinite(float(total_loss) - self.best_loss_lower_bound(radius, scaled=scaled))

    def summary(self, radius: float = 1.0, *, scaled: bool | None = None) -> str:
        """One line for people; in scaled columns where the learner knows their scale, unless told otherwise."""
        if not self.rounds:
            return "nothing learned yet"
        scaled = self.scale is not None if scaled is None else scaled
        bound = self.regret_bound(radius=radius, scaled=scaled)
        gap = _or_infinite(bound / self.weight) if self.weight > 0.0 else np.inf  # a window may lose its weight
        which = f"every linear model of norm <= {radius:g}{' in scaled columns' if scaled else ''}"
        loss = f"{self.rounds} rounds, average loss {self.average_loss:.4g}"
        if gap < 0.0:
            return f"{loss}: better by {-gap:.4g} a round, or more, than {which}"
        little = "" if gap < self.average_loss else " (above the average loss itself, it says little)"
        return f"{loss}: within {gap:.4g} a round of {which}{little}"

    def __repr__(self) -> str:
        return f"<Certificate: {self.summary()}>"

    def __add__(self, other: Any) -> Certificate:
        """The certificate of two consecutive streams, whoever learned them.

        Scales and centers are those of both streams together, as far as the learners know them.
        """
        if isinstance(other, int) and other == 0:  # where sum() begins
            return self
        if not isinstance(other, Certificate):
            return NotImplemented
        self._check_fits(other, "do not add up")
        scale, center = self._pooled(other)
        return self._combined(other, 1, scale, center)

    __radd__ = __add__

    def __sub__(self, earlier: Any) -> Certificate:
        """The certificate of the rounds that a learner learned after an earlier certificate of its own.

        That both are of one learner is not known here, and cannot be checked: for others the difference means nothing.

        The sums are subtracted, so their rounding stays: it is relative to all that was learned, not to these rounds.
        """
        if not isinstance(earlier, Certificate):
            return NotImplemented
        self._check_fits(earlier, "cannot be subtracted")
        if self.rounds < earlier.rounds or self.weight < earlier.weight:
            raise ValueError(
                f"a certificate of {self.rounds} rounds does not contain one of {earlier.rounds}: the later one, of "
                "the same learner, comes first"
            )
        return self._combined(earlier, -1, self.scale, self.center)

    def _check_fits(self, other: Certificate, what: str) -> None:
        if self.dual.size != other.dual.size or self.fit_intercept != other.fit_intercept:
            raise ValueError(f"certificates of learners with different features {what}")

    def _combined(self, other: Certificate, sign: int, scale: Array | None, center: Array | None) -> Certificate:
        known = self.delta is not None and other.delta is not None
        with np.errstate(over="ignore", invalid="ignore"):
            return Certificate(
                self.rounds + sign * other.rounds,
                self.weight + sign * other.weight,
                _or_infinite(self.total_loss + sign * other.total_loss),
                _or_infinite(self.fenchel + sign * other.fenchel),
                self.dual + sign * other.dual,
                self.fit_intercept,
                (self.delta or 0.0) + sign * (other.delta or 0.0) if known else None,
                (self.negative_deltas or 0) + sign * (other.negative_deltas or 0) if known else None,
                self.guarded + sign * other.guarded,
                scale,
                center,
            )

    def _pooled(self, other: Certificate) -> tuple[Array | None, Array | None]:
        """The center and spread of two streams' columns together; nothing, where one of them does not know."""
        if self.scale is None or self.center is None or other.scale is None or other.center is None:
            return None, None
        total = self.weight + other.weight
        share = self.weight / total if 0.0 < total < np.inf else 0.5
        with np.errstate(over="ignore", invalid="ignore"):
            between = np.sqrt(share * (1.0 - share)) * (self.center - other.center)
            within = np.hypot(np.sqrt(share) * self.scale, np.sqrt(1.0 - share) * other.scale)
            return np.hypot(within, between), share * self.center + (1.0 - share) * other.center


def _norm(x: Array) -> float:
    """The Euclidean norm, whatever the squares do; inf where it is not known."""
    largest = float(np.abs(x).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.linalg.norm(x / largest)) if largest < np.inf else np.inf


def _or_infinite(bound: float) -> float:
    """A sum that left the range of floats, in whichever direction, bounds nothing."""
    return bound if np.isfinite(bound) else np.inf
