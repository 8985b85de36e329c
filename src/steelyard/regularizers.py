"""How a learner's regularizer grows, measured and centred: choices, their meaning, and which ones go together.

=============  ==========================================================================================
constant       lam = 1/eta0, the setting of the paper's theorem
power          eta = eta0 * (1+t)^-power_t, t the cumulated weight. Center "trajectory" uses its integral over the
               row's weight, so that a weight cut in two moves the model exactly as far
adagrad-norm   lam_t = sqrt(1 + sum h ||g||^2) / eta0, over the rows before t
gap            lam_(t+1) = lam_t + gamma_t / eta0^2, gamma_t = h (value(p) + conjugate(c) - c p + a c^2/2) >= 0
=============  ==========================================================================================

``gap`` is our reading of a corollary that the paper refers to without printing it. In ``adagrad-norm`` a weight h
counts as h examples, not as one with an h times larger gradient.

Metric ``scalar`` measures ||x||^2. Metric ``diagonal`` measures sum_j s_j sqrt(s_j^2 + G_j) x_j^2, where s_j is the
largest magnitude of feature j so far and G_j, which only ``adagrad-norm`` makes grow, its sum of h g_j^2. Metric
``full`` measures x'Ax, where A = I/eta0 + sum kappa h q q' over the rows before t and kappa is a constant of the loss,
``Loss.curvature``. There lam stays as it is, and what grows is A.

Penalties: with ``l1`` and ``l2`` the objective is sum h loss / sum h + l1 ||x||_1 + l2/2 ||x||^2, in the units of the
user's columns, the intercept left out. Write A_j for the metric times lam.

=============  ==========================================================================================
origin         x_j = soft(theta_j, l1 t) / (A_j + l2 t), t the weight cumulated before the row: exact zeros
trajectory     after each row, x_j' = -(l1 sign x_j + l2 x_j) / A_j for the weight of the row
=============  ==========================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

SCHEDULES = {"constant": 0, "power": 1, "adagrad-norm": 2, "gap": 3}
METRICS = ("scalar", "diagonal", "full")
CENTERS = ("origin", "trajectory")


def _choose(name: str, value: Any, choices: Any) -> None:
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; choose one of {', '.join(choices)}")


def default_schedule(metric: str) -> str:
    """The schedule where none is given: a matrix that grows needs no other."""
    return "constant" if metric == "full" else "power"


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """A truth value. A text is none: Python takes every one for true, "False" too."""
    if isinstance(value, str) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _penalty(name: str, value: Any) -> float:
    number: Any = value if isinstance(value, Real) and not isinstance(value, bool) else -1.0
    if not (number == 0 or 1e-30 <= number <= 1e30):  # compared as it is: a whole number may be larger than floats are
        raise ValueError(f"{name} must be 0, or a number between 1e-30 and 1e30, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Regularizer:
    """A checked choice of schedule, metric, center, feasible set and penalties."""

    schedule: str = "power"
    metric: str = "diagonal"
    center: str = "trajectory"
    eta0: float = 1.0
    power_t: float = 0.5
    radius: float | None = None
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        _choose("schedule", self.schedule, SCHEDULES)
        _choose("metric", self.metric, METRICS)
        _choose("center", self.center, CENTERS)
        object.__setattr__(self, "eta0", _positive("eta0", self.eta0))
        if self.radius is not None:
            object.__setattr__(self, "radius", _positive("radius", self.radius))
            if not 1e-30 <= float(self.radius) <= 1e30:
                raise ValueError(f"radius must be between 1e-30 and 1e30, got {self.radius!r}")
            if self.metric != "scalar":
                raise ValueError(
                    "radius needs metric='scalar': the nearest point of a ball in another metric has no closed form"
                )
        if not isinstance(self.power_t, Real) or not 0.0 <= float(self.power_t) <= 1.0:
            raise ValueError(f"power_t must be a number between 0 and 1, got {self.power_t!r}")
        if self.metric == "full":
            self._check_full()
        object.__setattr__(self, "l1", _penalty("l1", self.l1))
        object.__setattr__(self, "l2", _penalty("l2", self.l2))
        if self.penalised:
            self._check_penalties()

    def _check_full(self) -> None:
        """Refuse what means nothing where a matrix grows."""
        if self.schedule != "constant" or self.power_t != 0.5:
            what = f"schedule={self.schedule!r}" if self.schedule != "constant" else f"power_t={self.power_t!r}"
            raise ValueError(
                f"{what} means nothing under metric='full': its matrix grows with every row, and so lowers the rate by "
                "itself. Leave it out"
            )
        if self.center != "trajectory":
            raise ValueError(
                "metric='full' needs center='trajectory': with center='origin', a matrix that grows would pull the "
                "model back to zero"
            )

    def _check_penalties(self) -> None:
        """Refuse what penalties have no closed form with."""
        if self.metric == "full":
            raise ValueError(
                "l1 and l2 need metric='diagonal' or 'scalar': under metric='full' the penalised model has no closed "
                "form. There, 1/eta0 is the penalty of a ridge regression"
            )
        if self.radius is not None:
            raise ValueError("give l1 and l2, or radius, and not both: each of them keeps the model small by itself")

    @property
    def penalised(self) -> bool:
        """Whether there is a penalty."""
        return self.l1 > 0.0 or self.l2 > 0.0

    @property
    def adaptive(self) -> bool:
        """Whether each feature keeps its own sum of squared gradients."""
        return self.metric == "diagonal" and self.schedule == "adagrad-norm"

    def keeps_weights_exact(self, update: str) -> bool:
        """Whether one row of weight h1+h2 moves the model as two adjacent rows of weights h1 and h2 do."""
        if self.penalised:  # the penalty's clock moves between the rows
            return False
        if self.radius is not None:  # the flow in a ball is one in theta: with center "trajectory" it starts anew
            return update == "iwa" and self.schedule == "constant" and self.center == "origin"
        by_schedule = self.schedule == "constant" or (self.schedule == "power" and self.center == "trajectory")
        return update == "iwa" and by_schedule
