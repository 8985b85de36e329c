"""A model file at the shell: what it predicts, and how rows are read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.streaming import Goal

if TYPE_CHECKING:
    from steelyard.data.block import Block
    from steelyard.online import OnlineLearner


def load_model(path: str) -> tuple[OnlineLearner, Goal, dict[str, Any]]:
    """The learner, what it was learned for, and the schema of its data."""
    from steelyard.export.notes import check_notes, classes_of
    from steelyard.modelfile import load

    learner = load(path)
    check_notes(learner, path)
    classes = classes_of(learner, path)
    task = "regression" if classes is None else "classification"
    schema = learner.notes.get("data")
    if not isinstance(schema, dict):  # of an earlier version, or of Python
        schema = {"format": "libsvm", "zero_based": bool(learner.notes.get("zero_based", False))}
    return learner, Goal(task, learner.loss, classes), schema


def fitted_columns(learner: OnlineLearner, block: Block, name: str) -> tuple[Block, int]:
    """The rows with the model's columns, and how many values of others were left out."""
    if not block.dense:
        return block.narrowed(learner.n_features)
    if block.n_features != learner.n_features:
        raise ValueError(f"{name} has {block.n_features} columns, but the model has learned {learner.n_features}")
    return block, 0


def tell_of_unknown(count: int, learner: OnlineLearner) -> list[str]:
    """What there is to say of values of features that the model has never had."""
    known = f"{learner.n_features} that the model has learned"
    return [f"{count} values of features beyond the {known} were left out"] if count else []
