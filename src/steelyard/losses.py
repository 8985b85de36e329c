"""The losses: what each one is, which labels it takes, and how to evaluate it.

Every loss is unweighted, convex in the prediction ``p``, and named by a short word that ``get_loss`` understands.
Evaluation is exact to the last digits and broadcasts over arrays; it compiles on first use.

>>> from steelyard.losses import Huber, get_loss
>>> get_loss("logistic").value(0.0, 1.0)
0.6931471805599453
>>> Huber(delta=2.0).slope([0.5, 9.0], 0.0)
array([0.5, 2. ])
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_DOMAINS: dict[str, tuple[str, Callable[[Array], NDArray[np.bool_]]]] = {
    "sign": ("-1 or +1", lambda y: np.abs(y) == 1.0),
    "binary": ("-1 (or 0) or +1", lambda y: (np.abs(y) == 1.0) | (y == 0.0)),
    "count": ("a finite number >= 0", lambda y: (y >= 0.0) & (y < np.inf)),
    "real": ("a finite number", np.isfinite),
}


class Loss:
    """A convex loss of a prediction and a label.

    Subclasses are the built-in losses; :class:`CustomLoss` is a user's own.
    """

    name: ClassVar[str]
    labels: str
    """Which labels it takes: ``"sign"``, ``"binary"``, ``"count"`` or ``"real"``."""
    link: ClassVar[str | None] = None
    """How a prediction becomes a probability or a mean: ``"logistic"``, ``"identity"``, ``"exp"``, or not at all."""
    threshold: ClassVar[float] = 0.0
    """The prediction at which a classifier changes its mind."""
    vector_form: ClassVar[str | None] = None
    """Which compiled step in vectors it has: ``"logistic"``, ``"squared"``, or none."""
    mixing: ClassVar[str] = "convex"
    """How experts are mixed: ``"logistic"`` (their probabilities), ``"squared"`` (the aggregating algorithm), or
    ``"convex"`` (AdaHedge, for any loss)."""
    label_scale: ClassVar[str]
    """What happens to slopes where real labels are in another unit: they are ``"proportional"`` to it, ``"constant"``,
    or proportional up to where the loss is ``"cut"``; ``"none"`` for labels that have no unit. Every loss says it."""
    curvature: float | None = None
    """What stands for the second derivative under ``metric="full"``: that derivative where it is constant, a quarter of
    its largest value where it is not. None where it is zero or has no bound."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that its compiled functions take."""
        return ()

    def parameters_in(self, unit: float) -> tuple[float, ...]:
        """Those numbers for labels and predictions measured in ``unit``; nothing where they do not depend on it."""
        return ()

    def invalid_labels(self, y: Array) -> NDArray[np.intp]:
        """Positions of the labels that are outside the loss's domain."""
        return np.flatnonzero(~_DOMAINS[self.labels][1](y))

    @property
    def domain(self) -> str:
        """The labels it takes, in words."""
        return _DOMAINS[self.labels][0]

    def inverse_link(self, p: Array) -> Array:
        """The probability of +1 or the mean that a prediction stands for; the prediction itself where there is none."""
        if self.link == "logistic":
            return np.asarray(np.exp(-np.logaddexp(0.0, -p)))
        if self.link == "identity":
            return np.clip(p, 0.0, 1.0)
        return np.asarray(np.exp(p)) if self.link == "exp" else p

    def value(self, p: ArrayLike, y: ArrayLike) -> Any:
        """The loss of predicting ``p`` when the label is ``y``."""
        from steelyard.updates import evaluate

        return evaluate(self, "linearized", p, y, 0.0)[0]

    def slope(self, p: ArrayLike, y: ArrayLike) -> Any:
        """The derivative in ``p``; at a kink, the one of the side that does not move."""
        from steelyard.updates import evaluate

        return evaluate(self, "linearized", p, y, 0.0)[1]

    def flow(self, p: ArrayLike, y: ArrayLike, a: ArrayLike) -> Any:
        """Where the gradient flow du/ds = -slope(u) is at time ``a``, started from ``p``."""
        from steelyard.updates import evaluate

        return np.asarray(p, float) - np.asarray(a, float) * evaluate(self, "iwa", p, y, a)[2]

    def prox(self, p: ArrayLike, y: ArrayLike, a: ArrayLike) -> Any:
        """The proximal point, argmin over u of a*value(u) + (u - p)^2/2."""
        from steelyard.updates import evaluate

        return np.asarray(p, float) - np.asarray(a, float) * evaluate(self, "proximal", p, y, a)[2]

    def conjugate(self, s: ArrayLike, y: ArrayLike) -> Any:
        """sup over u of s*u - value(u, y); infinite outside its domain."""
        from steelyard.updates import conjugate

        return conjugate(self, s, y)


def _number(value: Any) -> float:
    if not isinstance(value, (Real, np.bool_)):
        raise TypeError(f"it returned {value!r}, which is not a number")
    return float(value)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True)
class Squared(Loss):
    r""":math:`\tfrac{1}{2} (p-y)^2`."""

    name, labels, label_scale = "squared", "real", "proportional"
    vector_form, mixing, curvature = "squared", "squared", 1.0


@dataclass(frozen=True)
class Absolute(Loss):
    r""":math:`|p-y|`; the slope at p = y is 0."""

    name, labels, label_scale = "absolute", "real", "constant"

    @property
    def parameters(self) -> tuple[float, ...]:
        return (1.0, 1.0)


@dataclass(frozen=True)
class Quantile(Loss):
    r"""The pinball loss :math:`\tau(y-p)_+ + (1-\tau)(p-y)_+`, whose minimum is the ``tau``-quantile.

    The slope at p = y is 0.
    """

    tau: float = 0.5
    name, labels, label_scale = "quantile", "real", "constant"

    def __post_init__(self) -> None:
        _require(0.0 < self.tau < 1.0, f"the quantile loss needs 0 < tau < 1, got tau={self.tau}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.tau, 1.0 - self.tau)


@dataclass(frozen=True)
class Huber(Loss):
    r""":math:`\tfrac{1}{2} r^2` for :math:`|r| \le \delta`, :math:`\delta(|r|-\delta/2)` beyond, r = p - y."""

    delta: float = 1.0
    name, labels, label_scale, curvature = "huber", "real", "cut", 0.25

    def __post_init__(self) -> None:
        _require(0.0 < self.delta < np.inf, f"the huber loss needs a finite delta > 0, got delta={self.delta}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.delta,)

    def parameters_in(self, unit: float) -> tuple[float, ...]:
        return (self.delta / unit,)


@dataclass(frozen=True)
class Poisson(Loss):
    r""":math:`e^p - yp` for counts :math:`y \ge 0`; the mean is :math:`e^p`."""

    name, labels, link, label_scale = "poisson", "count", "exp", "none"


@dataclass(frozen=True)
class Logistic(Loss):
    r""":math:`\ln(1+e^{-yp})`; the probability of +1 is :math:`1/(1+e^{-p})`."""

    name, labels, link, label_scale = "logistic", "sign", "logistic", "none"
    vector_form, mixing, curvature = "logistic", "logistic", 1.0 / 16.0


@dataclass(frozen=True)
class Exponential(Loss):
    r""":math:`e^{-yp}`."""

    name, labels, label_scale = "exponential", "sign", "none"


@dataclass(frozen=True)
class Hinge(Loss):
    r""":math:`\max(0, 1-yp)`; the slope at yp = 1 is 0."""

    name, labels, label_scale = "hinge", "sign", "none"


@dataclass(frozen=True)
class SquaredHinge(Loss):
    r""":math:`\tfrac{1}{2} \max(0, 1-yp)^2`."""

    name, labels, label_scale, curvature = "squared_hinge", "sign", "none", 0.25


@dataclass(frozen=True)
class _OfProbability(Loss):
    eps: float = 1e-6
    labels, link, threshold, label_scale = "binary", "identity", 0.5, "none"

    def __post_init__(self) -> None:
        _require(0.0 < self.eps < 1.0, f"the {self.name} loss needs 0 < eps < 1, got eps={self.eps}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.eps,)


@dataclass(frozen=True)
class Logarithmic(_OfProbability):
    r""":math:`-\ln w`, where w is the probability of the true label: p for +1, 1-p for -1 (or 0).

    A linear prediction may leave [0, 1]. Above w = 1 there is no loss and no step; below ``eps`` the loss goes on as
    its tangent, so it is finite, convex and not negative on the whole line.
    """

    name = "logarithmic"


@dataclass(frozen=True)
class Hellinger(_OfProbability):
    r""":math:`2-2\sqrt w`, where w is the probability of the true label: p for +1, 1-p for -1 (or 0).

    Outside [0, 1] it goes on as :class:`Logarithmic` does.
    """

    name = "hellinger"


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A user's own convex loss, from two plain Python functions of two numbers.

    Everything else (IWA flow, proximal step, conjugate) is derived numerically, to about 1e-10. The two functions
    are compiled, so they may use numbers, ``math`` and ``numpy`` scalars, and constants from outside; nothing else is
    compiled again.

    Parameters
    ----------
    value, slope : functions of (p, y)
        The loss and its derivative in ``p``, which must not decrease in ``p``. Both are tried at a few points when the
        loss is made, then compiled once: constants from outside are frozen, and they must not print or raise.
    labels : {"real", "sign", "count"}
        The labels it takes.
    infimum : float, optional
        The smallest value of the loss, 0 for most. Only ``update="aprox"`` needs it.
    curvature : float, optional
        What stands for its second derivative. Only ``metric="full"`` needs it.

    Examples
    --------
    >>> import math, steelyard
    >>> logcosh = steelyard.CustomLoss(
    ...     value=lambda p, y: math.log(math.cosh(p - y)), slope=lambda p, y: math.tanh(p - y)
    ... )
    >>> round(steelyard.step(3.0, 1.0, 0.5, loss=logcosh, update="iwa"), 6)
    0.940843
    """

    value: Callable[[float, float], float]  # type: ignore[assignment]
    slope: Callable[[float, float], float]  # type: ignore[assignment]
    labels: str = "real"
    infimum: float | None = None
    curvature: float | None = None
    name, label_scale = "custom", "none"  # nothing is known of its slopes: labels are taken as they are

    def __post_init__(self) -> None:
        for part in ("value", "slope"):
            _require(callable(getattr(self, part)), f"CustomLoss needs {part}, a function of (p, y)")
        _require(self.labels in _DOMAINS, f"unknown labels={self.labels!r}; choose one of {', '.join(_DOMAINS)}")
        _require(
            self.curvature is None or 0.0 < self.curvature < np.inf,
            f"CustomLoss: curvature must be a finite number > 0, got {self.curvature}",
        )
        for y in {"real": (0.0, 1.5), "count": (1.0, 3.0)}.get(self.labels, (-1.0, 1.0)):
            self._probe(y)

    def _probe(self, y: float) -> None:
        """Try both functions at a few points: a mistake here would be a wrong model later, without a word."""
        points = (-2.0, -0.7, 0.3, 1.1, 2.6)
        slopes = []
        for p in points:
            try:
                around = [_number(self.value(p + shift, y)) for shift in (-1e-5, 0.0, 1e-5)]
                slopes.append([_number(self.slope(p + shift, y)) for shift in (-1e-5, 0.0, 1e-5)])
            except Exception as error:
                raise ValueError(f"CustomLoss: value or slope failed at p={p}, y={y}: {error}") from error
            _require(bool(np.isfinite(around + slopes[-1]).all()), f"CustomLoss: not a finite number at p={p}, y={y}")
            low, middle, high = slopes[-1]
            rise = (around[2] - around[0]) / 2e-5
            smooth = abs(high - low) <= 1e-2 * (1.0 + abs(middle))  # not at a kink
            _require(
                not smooth or abs(rise - middle) <= 1e-3 * (1.0 + abs(middle)),
                f"CustomLoss: slope({p}, {y}) is {middle:g}, but value rises by {rise:g} there",
            )
        _require(
            all(a[1] <= b[1] + 1e-12 for a, b in itertools.pairwise(slopes)),
            f"CustomLoss: the slope falls somewhere between p={points[0]} and p={points[-1]} (y={y}): it is not convex",
        )


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (
        Squared,
        Logistic,
        Exponential,
        Logarithmic,
        Hellinger,
        Hinge,
        SquaredHinge,
        Absolute,
        Quantile,
        Huber,
        Poisson,
    )
}


_ELSEWHERE = {
    "log_loss": "logistic",
    "log": "logistic",
    "squared_error": "squared",
    "absolute_error": "absolute",
    "pinball": "quantile",
    "mse": "squared",
    "mae": "absolute",
}


def get_loss(loss: str | Loss) -> Loss:
    """The loss of that name, with its default parameters, or the object itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    hint = _ELSEWHERE.get(str(loss))
    meant = f" (what others call {loss!r} is {hint!r} here)" if hint else ""
    close = get_close_matches(str(loss), LOSSES, 1)
    if close and not hint:
        meant = f" (did you mean {close[0]!r}?)"
    raise ValueError(
        f"unknown loss {loss!r}{meant}; choose one of {', '.join(LOSSES)}, or pass a Loss or CustomLoss object"
    )
