"""Estimators in model files: the learner's file, whose notes say what the estimator was."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard import modelfile
from steelyard.data.columns import NUMBER, TEXT, Columns
from steelyard.estimators.base import OnlineEstimator
from steelyard.estimators.classifier import OnlineClassifier
from steelyard.estimators.curve import Curve
from steelyard.estimators.regressor import OnlineRegressor
from steelyard.export.notes import check_notes, classes_of
from steelyard.kernels import layout
from steelyard.losses import CustomLoss, Loss, get_loss
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner, Progress
from steelyard.regularizers import default_schedule

_KINDS: dict[str, type[OnlineEstimator]] = {"classification": OnlineClassifier, "regression": OnlineRegressor}
_WORD = "estimator"


def save(model: OnlineEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator: see :meth:`OnlineClassifier.save`."""
    if type(model) not in _KINDS.values():
        raise TypeError(f"a model file holds an OnlineClassifier or OnlineRegressor, not a {type(model).__name__}")
    modelfile.save(model.learner_, path, notes=notes_of(model))


def notes_of(model: Any) -> dict[str, Any]:
    """What a file says beside the learner: the words that the shell knows, and what makes the estimator again."""
    notes = dict(model.learner_.notes)
    classes = getattr(model, "classes_", None)
    names = getattr(model, "feature_names_in_", None)
    texts = classes is not None and np.asarray(classes).dtype.kind in "OUT"
    notes["task"] = "regression" if classes is None else "classification"
    notes["classes"] = None if classes is None else _plain_labels(classes)
    notes.setdefault("data", _schema(model, names, TEXT if texts else NUMBER))
    if names is not None and getattr(model, "columns_", None) is None:
        notes["names"] = {str(index): str(name) for index, name in enumerate(names)}
    else:
        events = getattr(model, "_events", None)
        met = {} if events is None or events.learner is not model.learner_ else events.row.names
        met = {str(index): name for index, name in {**met, **(getattr(model, "_names", None) or {})}.items()}
        if met:
            notes["names"] = {**met, **(notes.get("names") or {})}
    progress = model.learner_.progress or Progress()
    notes[_WORD] = {
        "parameters": _saved_parameters(model),
        "classes_dtype": None
        if classes is None
        else classes.dtype.str
        if classes.dtype.kind in "biuf"
        else classes.dtype.kind,
        "n_features_in": model.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "columns": getattr(model, "columns_", None),
        "pass_losses": getattr(model, "pass_losses_", None),
        "validation_losses": getattr(model, "validation_losses_", None),
        "progress": list(progress),
        "curve": list(model._curve),
    }
    return notes


def _plain_labels(classes: NDArray[Any]) -> list[Any]:
    labels: list[Any] = classes.tolist()
    if len(labels) < 2:
        raise ValueError(
            f"this model has learned events of one class only, {labels[0]!r}: it is saved when it knows both"
        )
    for label in labels:
        if not isinstance(label, (str, bool, int, float)):
            raise TypeError(f"a model file holds classes that are text, numbers or truth values, not {label!r}")
    return labels


def _schema(model: Any, names: Any, label_kind: str) -> dict[str, Any]:
    """How the shell reads rows for this model."""
    if hasattr(model, "schema_"):
        return dict(model.schema_)
    if getattr(model, "columns_", None) is not None:
        return {**model.columns_, "format": "csv", "label_kind": label_kind}
    if names is not None:
        columns = Columns(schema={"columns": {str(name): NUMBER for name in names}, "label_kind": label_kind})
        return {**columns.schema(), "format": "csv"}
    return {"format": "libsvm", "zero_based": False}


def _saved_parameters(model: Any) -> dict[str, Any]:
    """The parameters as JSON has them."""
    found = dict(model.get_params(deep=False))
    if isinstance(found["loss"], CustomLoss):
        found["loss"] = None
    elif isinstance(found["loss"], Loss):
        found["loss"] = [found["loss"].name, vars(found["loss"])]
    if not isinstance(found["random_state"], (int, np.integer)):
        found["random_state"] = None
    if isinstance(found.get("class_weight"), dict):
        found["class_weight"] = [[_item(label), float(weight)] for label, weight in found["class_weight"].items()]
    return found


def _item(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


# ------------------------------------------------------------------------------------------------------------- loading


def load(path: str | os.PathLike[str], *, loss: CustomLoss | None = None) -> Any:
    """Open a model file: an estimator, or the learner where it was saved without one.

    A file of ``model.save`` gives the estimator as it was. A file of ``steelyard learn`` gives the estimator that
    ``fit_stream`` would give: ``steelyard.open(file, schema=model.schema_)`` reads rows for it. A file of a
    ``Learner``, ``Mixture`` or ``Bank`` gives that. A model with a user's own loss needs that ``loss`` again: functions
    are not saved. What is not right is refused with a ValueError that names the file.

    Examples
    --------
    >>> import pathlib, tempfile, steelyard
    >>> path = pathlib.Path(tempfile.mkdtemp(), "m")
    >>> steelyard.OnlineClassifier(eta0=1.0).fit([[0.0], [1.0]], ["no", "yes"]).save(path)
    >>> steelyard.load(path).predict([[2.0]]).tolist()
    ['yes']
    """
    name = os.fspath(path)
    learner = modelfile.load(path, loss=loss)
    task = learner.notes.get("task")
    if task is None or "checkpoint" in learner.notes:
        return learner
    check_notes(learner, name)
    try:
        kind = _KINDS[task]
        saved = learner.notes.pop(_WORD, None)
        classes = classes_of(learner, name)
        if (classes is None) != (kind is OnlineRegressor):
            raise ValueError(f"{name}: it has classes and is a {task}")
        return _of_shell(kind, learner, classes) if saved is None else _as_it_was(kind, learner, classes, saved)
    except Exception as error:
        if str(error).startswith(name):
            raise
        raise ValueError(f"{name}: what it says of its estimator is not right ({error})") from error


def _as_it_was(kind: type[Any], learner: OnlineLearner, classes: Any, saved: dict[str, Any]) -> Any:
    parameters = dict(saved["parameters"])
    if parameters["loss"] is None or isinstance(parameters["loss"], list):
        parameters["loss"] = learner.loss
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = {label: float(weight) for label, weight in parameters["class_weight"]}
    model = kind(**parameters)
    if classes is not None:
        model.classes_ = _typed(learner.notes["classes"], str(saved["classes_dtype"]))
    model.columns_ = saved["columns"]
    if model.columns_ is None and saved["feature_names"] is None:
        model.schema_ = learner.notes.get("data") or {}
    if "columns" in model._schema():
        Columns.of_schema(model._schema())
    names, width = saved["feature_names"], int(saved["n_features_in"])
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names) or len(names) != width:
            raise ValueError("its names of features")
        model.feature_names_in_ = np.array(names, dtype=object)
    expected = width if model.columns_ is None else 1 << model.columns_["bits"]
    if learner.state is not None and expected != learner.n_features:
        raise ValueError("its number of features")
    if get_loss(model.loss) != learner.loss:
        raise ValueError("its loss")
    model.n_features_in_ = width
    for name in ("pass_losses", "validation_losses"):
        if saved[name] is not None:
            setattr(model, name + "_", [float(each) for each in saved[name]])
    rows, weight, lost, points = saved["curve"]
    model._curve = Curve(int(rows), float(weight), float(lost), tuple((float(w), float(p)) for w, p in points))
    average, seen = saved["progress"]
    learner.progress, model.learner_ = Progress(float(average), float(seen)), learner
    return model


def _typed(labels: list[Any], kind: str) -> NDArray[Any]:
    """Labels with the type that they had."""
    if kind in ("O", "T"):
        return np.array(labels, dtype=object)
    right = kind == "U" or (kind[1:2] in ("b", "i", "u", "f") and np.dtype(kind).itemsize <= 8)
    found = np.array(labels, dtype=None if kind == "U" else np.dtype(kind)) if right else None
    if found is None or found.dtype.kind != np.dtype(kind).kind or found.tolist() != labels:
        raise ValueError("the type of its classes")
    return found


def _of_shell(kind: type[Any], learner: OnlineLearner, classes: Any) -> Any:
    """The estimator that would have learned the same."""
    known = kind._get_param_names()
    parameters = {name: value for name, value in learner._options().items() if name in known}
    if isinstance(learner, Mixture):
        parameters["eta0"] = "auto"
    elif parameters["schedule"] == default_schedule(parameters["metric"]):
        parameters["schedule"] = None
    special = isinstance(learner.loss, CustomLoss) or learner.loss != type(learner.loss)()
    how = learner.notes.get("learned") or {}
    data = learner.notes.get("data") or {}
    bits = data.get("bits")
    model = kind(
        **parameters,
        loss=learner.loss if special else learner.loss.name,
        passes=how.get("passes", 1),
        shuffle=how.get("shuffle", True),
        random_state=how.get("seed"),
        bits=bits if bits is not None and 1 << int(bits) == learner.n_features else None,
    )
    if classes is not None:
        model.classes_ = classes
    model.columns_ = None
    model.n_features_in_, model.schema_ = learner.n_features, data
    learner.progress, model.learner_ = _progress_of(learner) if how.get("passes") == 1 else Progress(), learner
    return model


def _progress_of(learner: Any) -> Progress:
    """Of one pass: what the state has."""
    mixed = isinstance(learner, Mixture)
    weight = learner.state.clocks[layout.MIX_SEEN] if mixed else learner.state.clocks[0, layout.WEIGHT]
    return Progress(learner.progressive_loss_, float(weight))
