"""All the passes of a fit over rows in memory, for the estimators and the shell alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from steelyard.data.block import Block, inspected
from steelyard.data.checks import DataError, check_labels
from steelyard.data.order import group_equal_rows, shuffled_visits, visits_in_order
from steelyard.learner import Learner
from steelyard.losses import Array, Loss, get_loss
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner, Trace


def check_classifies(loss: Loss) -> None:
    """Refuse a loss that cannot classify."""
    if loss.invalid_labels(np.array([-1.0, 1.0])).size:
        raise ValueError(
            f"the {loss.name} loss takes {loss.domain}: it cannot classify; use OnlineRegressor, or --task regression "
            "at the shell"
        )


def check_regresses(loss: Loss) -> None:
    """Refuse a loss whose labels are classes."""
    if loss.labels in ("sign", "binary"):
        raise ValueError(
            f"the {loss.name} loss takes labels {loss.domain}: use OnlineClassifier, or --task classification at the "
            "shell"
        )


def new_learner(loss: str, eta0: float | str, *, classes: int | None) -> OnlineLearner:
    """What the estimators learn with, at their defaults: for so many classes, or for a regression."""
    chosen = get_loss(loss)
    if classes is None:
        check_regresses(chosen)
    else:
        check_classifies(chosen)
    outputs = classes if classes is not None and classes > 2 else 1
    return (
        Mixture(chosen, n_outputs=outputs) if isinstance(eta0, str) else Learner(chosen, eta0=eta0, n_outputs=outputs)
    )


def targets(y: Array, classes: Array | None, loss: Loss) -> Array:
    """Labels as a learner wants them: -1 and +1 for two classes, numbers of classes for more, real ones as they are."""
    if classes is None:
        return check_labels(y, loss, y.size)
    codes = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    bad = np.flatnonzero(~(classes[codes] == y) | ~np.isfinite(y))
    if bad.size:
        why = "not a class" if np.isfinite(y[bad[0]]) else "not finite"
        raise DataError("label", int(bad[0]), None, float(y[bad[0]]), why)
    return 2.0 * codes - 1.0 if classes.size == 2 else codes.astype(np.float64)


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
