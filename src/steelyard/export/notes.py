"""What the notes of a model file say, checked before it is believed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.online import OnlineLearner


def classes_of(learner: OnlineLearner, path: str) -> NDArray[Any] | None:
    """The labels that the model was learned with, where it is a classifier: text or floats, as files have them."""
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
