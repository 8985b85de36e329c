"""An estimator learned from a source: a file of any size, a pipe, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from steelyard.data.opening import open as open_source
from steelyard.data.source import Source
from steelyard.estimators.base import OnlineEstimator
from steelyard.losses import Array
from steelyard.online import Progress
from steelyard.streaming import Goal, Run


def learn_source(
    model: OnlineEstimator,
    source: Source | str | os.PathLike[str],
    *,
    task: str,
    classes: Sequence[Any] | None = None,
    factors: Callable[[Goal], Array | None] = lambda goal: None,
) -> Goal:
    """Learn from scratch in ``model.passes`` passes, rows as they come; returns what was learned for.

    Sets ``learner_``, ``n_features_in_``, ``pass_losses_``, ``loss_curve_`` and ``schema_``.
    """
    if not isinstance(source, Source):
        source = open_source(source)
    model._refuse_early_stopping("a stream")
    passes = len(model._pass_seeds())
    model._events = model._targets = model.columns_ = None
    job = Run(
        source,
        lambda goal: model._new_learner(goal.n_outputs),
        task=task,
        classes=classes,
        loss=model.loss,
        passes=passes,
        skip=source.skips,
        factors=factors,
    )
    model._begin_passes()
    losses = [Progress() for _ in range(passes)]
    for step in job.steps():
        number = step.position.passes
        losses[number] = losses[number].add(step.trace)
        if number == 0:
            model._curve = model._curve.add(step.trace)
    learner = job.finish()
    for loss in losses:
        model._end_pass(loss.average)
    learner.progress = losses[0]
    learner.notes = job.notes()
    model.learner_ = learner
    model.n_features_in_ = learner.n_features
    model.schema_ = source.schema()
    return job.goal
