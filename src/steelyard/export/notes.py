"""What the notes of a model file say, checked before it is believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.online import OnlineLearner


def check_notes(learner: OnlineLearner, path: str) -> None:
    """Refuse notes that are of another form than those that are written: others follow what they say."""
    notes = learner.notes
    forms = {"names": _are_names, "data": _is_schema, "learned": _is_dict, "estimator": _is_dict}
    for name, fits in forms.items():
        if notes.get(name) is not None and not fits(notes[name]):
            raise ValueError(f"{path}: what it notes as {name!r} is not of the form that a model file has")
    if notes.get("classes") is not None and not _are_labels(notes["classes"]):
        raise _no_classes(learner, path)


def _wanted(learner: OnlineLearner) -> int:
    """How many classes there are."""
    return 2 if learner.n_outputs == 1 else learner.n_outputs


def _no_classes(learner: OnlineLearner, path: str) -> ValueError:
    return ValueError(f"{path}: what it notes as its classes is not a list of {_wanted(learner)} labels")


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _are_labels(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, (str, int, float)) for each in value)


def _are_names(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and index.isascii() and index.isdigit() for index, name in value.items()
    )


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict) and all(fits(value.get(name)) for name, fits in _SCHEMA.items())


def _texts(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _text(value: Any) -> bool:
    return value is None or isinstance(value, str)


_SCHEMA: dict[str, Callable[[Any], bool]] = {
    "format": lambda value: isinstance(value, str),
    "label": _text,
    "label_kind": _text,
    "weight": _text,
    "drop": _texts,
    "interactions": _texts,
    "columns": lambda value: value is None or (isinstance(value, dict) and all(map(_text, value.values()))),
    "bits": lambda value: value is None or type(value) is int,
}


def classes_of(learner: OnlineLearner, path: str) -> NDArray[Any] | None:
    """The labels that the model was learned with, where it is a classifier: text or floats, as files have them."""
    classes = learner.notes.get("classes")
    if classes is None:
        return None
    if isinstance(classes, list) and len(classes) == _wanted(learner):
        if all(isinstance(each, str) for each in classes):
            return np.array(classes)
        if all(isinstance(each, (int, float)) and abs(each) < 1e300 for each in classes):
            exact = all(float(each) == each for each in classes)  # whole numbers may have more digits than a float
            return np.array([float(each) for each in classes] if exact else classes)
    raise _no_classes(learner, path)
