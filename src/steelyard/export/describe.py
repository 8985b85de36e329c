"""What there is to say of a model, as JSON can hold it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from steelyard import __version__
from steelyard.data.naming import name_products
from steelyard.losses import Array, CustomLoss
from steelyard.online import OnlineLearner


def describe(learner: OnlineLearner, top: int | None = None, notes: dict[str, Any] | None = None) -> dict[str, Any]:
    """All of it, with the ``top`` coefficients or all that are not zero. Numbers that are not finite are None.

    With ``link`` and ``label_range`` it says how to predict: the sum of coefficients times values and the intercept,
    cut to the range where there is one, is a score; a link makes a probability or a mean of it.
    """
    notes = learner.notes if notes is None else notes
    parameters = {} if isinstance(learner.loss, CustomLoss) else vars(learner.loss)
    limits = getattr(learner, "label_range", None) if learner.state is not None else None
    found: dict[str, Any] = {
        "steelyard": __version__,
        "kind": type(learner).__name__,
        "task": notes.get("task"),
        "loss": learner.loss.name,
        "loss_parameters": parameters,
        "link": learner.loss.link,
        "label_range": None if limits is None else list(limits),
        "classes": notes.get("classes"),
        "options": learner._options(),
        "data": notes.get("data"),
        "learned": notes.get("learned"),
        "visits": 0,
        "features": 0,
        "nonzero": 0,
        "intercept": None,
        "coefficients": [],
        "certificate": None,
    }
    if learner.state is not None:
        coef = np.atleast_2d(learner.coef_)
        found["visits"], found["features"] = learner._rows(), coef.shape[1]
        found["nonzero"] = int((coef != 0.0).any(axis=0).sum())
        found["intercept"] = learner.intercept_ if coef.shape[0] == 1 else learner.intercept_.tolist()
        found["coefficients"] = _largest(coef, top, notes)
        if learner.certificate:
            proved = certified(learner)
            if proved.gap < math.inf:
                found["certificate"] = proved._asdict()
    sayable: dict[str, Any] = plain(found)
    return sayable


def plain(value: Any) -> Any:
    """The same with numbers of Python, of which those that JSON does not know are None."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _largest(coef: Array, top: int | None, notes: dict[str, Any]) -> list[dict[str, Any]]:
    """The coefficients with the largest absolute values, over all outputs."""
    schema, classes = notes.get("data") or {}, notes.get("classes")
    names = {int(index): name for index, name in (notes.get("names") or {}).items()}
    one_based = schema.get("zero_based") is False
    flat = np.abs(coef).reshape(-1)
    places = np.flatnonzero(flat)
    places = places[np.lexsort((places, -flat[places]))][:top]
    names |= name_products((places % coef.shape[1]).tolist(), names, schema)
    found = []
    for place in places.tolist():
        output, index = divmod(place, coef.shape[1])
        each: dict[str, Any] = {
            "index": index,
            "name": names.get(index, str(index + 1) if one_based else None),
            "value": float(coef[output, index]),
        }
        if coef.shape[0] > 1:
            each["class"] = classes[output] if classes and len(classes) == len(coef) else output
        found.append(each)
    return found


class Certified(NamedTuple):
    """What is proved of a model; of several classes, of the mean of all."""

    gap: float
    """By how much the average loss is at most above that of every model as large as the learned one."""
    norm: float
    """How large that is."""
    average_loss: float
    scaled: bool
    """Whether norms are those of scaled columns: where the learner knows the scale of its columns."""


def certified(learner: OnlineLearner) -> Certified:
    """What a learner's certificates prove of models that are as large as the learned one."""
    coef, intercept = np.atleast_2d(learner.coef_), np.atleast_1d(learner.intercept_)
    gap = largest = lost = 0.0
    scaled = True
    order = None if learner.spread is None else learner.spread.order(coef.shape[1] + 1)
    if order is not None:
        coef = coef[:, order[:-1]]
    for k in range(learner.n_outputs):
        certificate = learner.certify(k)
        if order is not None:
            others = {name: getattr(certificate, name) for name in ("dual", "scale", "center")}
            others = {name: array if array is None else array[order] for name, array in others.items()}
            certificate = replace(certificate, **others)
        scaled = certificate.scale is not None
        finite = bool(np.isfinite(coef[k]).all() and np.isfinite(intercept[k]))  # a learner may have diverged
        radius = certificate.norm(coef[k], float(intercept[k]), scaled=scaled) if finite else np.inf
        bound = certificate.regret_bound(radius=radius, scaled=scaled) if radius < np.inf else np.inf
        gap += bound / certificate.weight / learner.n_outputs if certificate.rounds else np.inf
        largest, lost = max(largest, radius), lost + certificate.average_loss / learner.n_outputs
    return Certified(gap, largest, lost, scaled)
