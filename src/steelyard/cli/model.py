"""A model file at the shell: what it predicts, and how rows are read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.streaming import Goal

if TYPE_CHECKING:
    from steelyard.data.block import Block
    from steelyard.online import OnlineLearner


def load_model(path: str) -> tuple[OnlineLearner, Goal, dict[str, Any]]:
    """The learner, what it was learned for, and the schema of its data."""
    from steelyard.modelfile import load

    learner = load(path)
    classes = _classes(learner, path)
    task = "regression" if classes is None else "classification"
    schema = learner.notes.get("data")
    if not isinstance(schema, dict):  # of an earlier version, or of Python
        schema = {"format": "libsvm", "zero_based": bool(learner.notes.get("zero_based", False))}
    return learner, Goal(task, learner.loss, classes), schema


def _classes(learner: OnlineLearner, path: str) -> NDArray[Any] | None:
    """The labels that the model was learned with, where it is a classifier."""
    classes = learner.notes.get("classes")
    if classes is None:
        return None
    wanted = 2 if learner.n_outputs == 1 else learner.n_outputs
    if isinstance(classes, list) and len(classes) == wanted:
        if all(isinstance(each, str) for each in classes):
            return np.array(classes)
        if all(isinstance(each, (int, float)) and abs(each) < 1e300 for each in classes):
            return np.array([float(each) for each in classes])
    raise ValueError(f"{path}: what it notes as its classes is not a list of {wanted} labels")


def fitted_columns(learner: OnlineLearner, block: Block, name: str) -> tuple[Block, int]:
    """The rows with the model's columns, and how many values of others were left out."""
    if not block.dense:
        return block.narrowed(learner.n_features)
    if block.n_features != learner.n_features:
        raise ValueError(f"{name} has {block.n_features} columns, but the model has learned {learner.n_features}")
    return block, 0
