"""All the passes of a fit over rows in memory, for the estimators and the shell alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from steelyard.data.block import Block, inspected
from steelyard.data.checks import OptionError
from steelyard.data.order import group_equal_rows, shuffled_visits, visits_in_order
from steelyard.learner import Learner
from steelyard.losses import Array, Loss, get_loss
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner, Trace
from steelyard.regularizers import Regularizer, default_schedule
from steelyard.updates import check_update


def check_classifies(loss: Loss) -> None:
    """Refuse a loss that cannot classify."""
    if loss.invalid_labels(np.array([-1.0, 1.0])).size:
        raise OptionError(
            f"the {loss.name} loss takes {loss.domain}: it cannot classify; use OnlineRegressor, or --task regression "
            "at the shell"
        )


def check_regresses(loss: Loss) -> None:
    """Refuse a loss whose labels are classes."""
    if loss.labels in ("sign", "binary"):
        raise OptionError(
            f"the {loss.name} loss takes labels {loss.domain}: use OnlineClassifier, or --task classification at the "
            "shell"
        )


CHOSEN_BY_AUTO = {
    "update": "iwa",
    "schedule": None,
    "power_t": 0.5,
    "metric": "diagonal",
    "center": "trajectory",
    "radius": None,
}
"""What ``eta0="auto"`` decides: these parameters must be left at their defaults."""


def new_learner(
    loss: str | Loss,
    eta0: float | str = "auto",
    *,
    update: str = "iwa",
    schedule: str | None = None,
    power_t: float = 0.5,
    metric: str = "diagonal",
    center: str = "trajectory",
    radius: float | None = None,
    fit_intercept: bool = True,
    certificate: bool | None = None,
    n_outputs: int = 1,
    l1: float = 0.0,
    l2: float = 0.0,
    average: bool = False,
) -> OnlineLearner:
    """What the estimators and the shell learn with: a mixture for ``eta0="auto"``, else one learner with that rate."""
    if not isinstance(eta0, str):
        return Learner(
            loss,
            update=update,
            schedule=schedule,
            metric=metric,
            center=center,
            eta0=eta0,
            power_t=power_t,
            radius=radius,
            fit_intercept=fit_intercept,
            n_outputs=n_outputs,
            certificate=certificate,
            l1=l1,
            l2=l2,
            average=average,
        )
    if eta0 != "auto":
        raise ValueError(f"eta0 must be 'auto' or a positive number, got {eta0!r}")
    check_update(update, get_loss(loss))
    Regularizer(default_schedule(metric) if schedule is None else schedule, metric, center, 1.0, power_t, None, l1, l2)
    for name, value in (("l1", l1), ("l2", l2), ("average", average)):
        if value:
            raise ValueError(
                f"{name}={value!r} needs a learning rate, eta0=1.0 for example: eta0='auto' mixes many learners, and "
                "their mixture has neither a penalty nor an average"
            )
    said = {
        "update": update,
        "schedule": None if schedule == "power" else schedule,  # which is what None is
        "power_t": power_t,
        "metric": metric,
        "center": center,
        "radius": radius,
    }
    for name, only in CHOSEN_BY_AUTO.items():
        if said[name] != only:
            raise ValueError(
                f"{name}={said[name]!r} needs a learning rate, eta0=1.0 for example: eta0='auto' mixes learners whose "
                f"{name} it chooses itself"
            )
    return Mixture(loss, fit_intercept=fit_intercept, n_outputs=n_outputs)


def pass_seeds(random: np.random.RandomState, passes: int) -> list[int]:
    """What decides the order of rows in each of the passes."""
    return [int(random.randint(np.iinfo(np.int32).max)) for _ in range(passes)]


def learn_passes(
    learner: OnlineLearner,
    block: Block,
    y: Array,
    weight: Array,
    *,
    seeds: Iterable[int | Sequence[int]],
    shuffle: bool = True,
    factor: Array | None = None,
) -> Iterator[Trace]:
    """Learn the rows once for each seed, in an order that depends on the seed and the rows and not on their places;
    yields what each pass saw. The learner is to be thrown away if this raises.

    ``factor`` multiplies the weights, the same for equal rows: it makes their visits heavier, and not more.
    """
    groups = None
    if shuffle or isinstance(learner, Mixture):  # without shuffling, a given rate takes the rows as they are
        block = inspected(block)
        groups = group_equal_rows(block, y, weight, neighbours=not shuffle)
    elif not learner.inspects_indices:
        block = inspected(block)
    for seed in seeds:
        order, counted = None, weight
        if groups is not None and shuffle:
            order, counted = shuffled_visits(groups, len(y), seed)
        elif groups is not None:
            order, counted = visits_in_order(groups, len(y))
        if factor is not None:
            counted = counted * factor
        yield learner.learn_block(block, y, counted, order, keep=False)
