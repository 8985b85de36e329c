"""One event at a time, a dict of names and values, as River's users work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from steelyard.data.event import shown
from steelyard.data.hashing import DEFAULT_BITS, check_bits
from steelyard.events import EventLearner
from steelyard.losses import get_loss
from steelyard.online import OnlineLearner, Progress

_MOST_LABEL = 1 << 63  # beyond are no whole numbers of NumPy's


class EventEstimator:
    """What the classifier and the regressor share: a learner of hashed features, made by the first event."""

    _events: EventLearner | None = None
    _targets: dict[Any, tuple[float, float]] | None = None
    """Of a classifier: what each label is to the learner, and what multiplies its weights."""

    def _ready(self, model: Any, learner: OnlineLearner | None) -> EventLearner:
        """The learner of events; ``learner`` is a new one, where nothing was learned yet."""
        known, schema = getattr(model, "learner_", None), model._schema()
        bits = schema.get("bits") or (DEFAULT_BITS if model.bits is None else check_bits(model.bits))
        if schema.get("interactions"):
            raise ValueError(
                f"this model was learned with the interactions {schema['interactions']}, which events do not have: use "
                "a new model for them"
            )
        if known is not None and schema.get("columns") and schema.get("bits") is None:
            raise ValueError(
                f"this model was learned from {known.n_features} columns that are all numbers, and stand in their "
                "order; names of events are hashed. Learn with bits=18 (--bits 18) if events are to go on with it"
            )
        if known is not None and known.state is not None and known.n_features != 1 << bits:
            raise ValueError(
                f"this model was fitted on arrays of {known.n_features} columns, whose names it does not know: events "
                f"are hashed into {1 << bits} columns. Use a new model for them"
            )
        if known is None:
            known = learner
            assert known is not None
            known.progress = Progress()
            model.schema_ = {"format": "json", "columns": None, "bits": bits}
        return EventLearner(known, bits)

    def _refuse_one_class_so_far(self) -> None:
        """Arrays of predictions need both classes."""
        if self._targets is not None and len(self._targets) == 1:
            only = next(iter(self._targets))
            raise ValueError(
                f"this model has learned events of one class only, {only!r}: it takes arrays when it knows both"
            )


class ClassifierEvents(EventEstimator):
    """``learn_one``, ``predict_one`` and ``predict_proba_one`` of a classifier."""

    def learn_one(self: Any, x: Mapping[str, Any], y: Any, w: float = 1.0, *, classes: Any = None) -> Any:
        """Learn one event: a dict of names and values, its label and its weight.

        Text is the feature ``name=text`` with the value 1, a number the feature ``name``; None is not there. Names are
        hashed into 2^18 columns. The model is the same to the bit as that of ``partial_fit`` with such rows, also of
        frames, and ``steelyard.open(path, schema=model.schema_)`` reads files for it.

        The first call may name all ``classes``, in order or not; more than two must be named. Without names there are
        two, as they come: 1 and True stand for the positive class, and any other label that comes first for the
        negative one. ``classes_`` has the negative one first.
        """
        events, targets = self._events, self._targets
        if events is not None and classes is None and events.learner is self.learner_:
            try:
                target, factor = targets[y]
            except (KeyError, TypeError):
                pass
            else:
                events.learn(x, target, w if factor == 1.0 else _times(w, factor))
                return self
        self._refuse_early_stopping("learn_one")
        with self._all_or_nothing():  # the first event, or the first of a class
            label = _checked(y)
            events = self._begin_events(label, classes)
            target, factor = self._targets.get(label) or self._new_label(label)
            events.learn(x, target, w if factor == 1.0 else _times(w, factor))
        return self

    def _begin_events(self: Any, y: Any, classes: Any) -> EventLearner:
        with self._all_or_nothing():
            events: EventLearner
            if not self.__sklearn_is_fitted__():
                if classes is None:
                    classes = [False, True] if isinstance(y, (bool, np.bool_)) else None
                if classes is not None:
                    self._name_classes(classes)
                    factors = self._class_factors(None)
                else:
                    self.classes_ = np.array([y])
                    factors = np.array([self._factor_of(y)])
                learner = self._classifying_learner()
                events = self._ready(self, learner)
                self.learner_ = events.learner
                self.n_features_in_ = 1 << events.row.bits
            else:
                events = self._ready(self, None)
                if classes is not None and sorted(np.unique(classes)) != sorted(self.classes_):
                    given = np.asarray(classes).tolist()
                    raise ValueError(f"classes={given} differ from those of the first call, {self.classes_.tolist()}")
                if self._targets is not None and self.classes_.size == 1:
                    self._events = events  # nothing new but the learner's room to work in
                    return events
                factors = self._class_factors(None)
            labels = self.classes_.tolist()
            if len(labels) == 1:
                targets = [1.0 if labels[0] == 1 else -1.0]
            else:
                targets = [-1.0, 1.0] if len(labels) == 2 else [float(k) for k in range(len(labels))]
            self._targets = {
                label: (target, float(factor)) for label, target, factor in zip(labels, targets, factors, strict=True)
            }
            self._events = events
        return events

    def _new_label(self: Any, label: Any) -> tuple[float, float]:
        """A label that was not there before: the second of two that come without names."""
        known = list(self._targets)
        if len(known) != 1:
            raise ValueError(
                f"label {label!r} is not one of the classes {known}: where there are more than two, name them all in "
                "the first call, learn_one(x, y, classes=[…]), or of steelyard.river's class, classes=(…)"
            )
        if isinstance(label, str) != isinstance(known[0], str):
            raise ValueError(f"labels {known[0]!r} and {label!r} have no common order: make them all text or numbers")
        target = -self._targets[known[0]][0]
        both = [label, known[0]] if target < 0.0 else [known[0], label]
        found = (target, self._factor_of(label))
        self.classes_ = np.array(both)
        self._targets = {**self._targets, label: found}
        return found

    def _factor_of(self: Any, label: Any) -> float:
        if self.class_weight is None:
            return 1.0
        if not isinstance(self.class_weight, dict):
            raise ValueError(
                f"class_weight must be a dict or None for events, which come one at a time, got {self.class_weight!r}"
            )
        factor = float(self.class_weight.get(label, 1.0))
        if not 0.0 <= factor < math.inf:
            raise ValueError(f"class_weight must hold finite numbers that are not negative, got {self.class_weight}")
        return factor

    def predict_one(self: Any, x: Mapping[str, Any]) -> Any:
        """The class of one event; None before anything is learned."""
        if not self.__sklearn_is_fitted__():
            return None
        scores = self._event_scores(x)
        labels = self.classes_.tolist()
        if len(labels) == 1:
            return labels[0]
        if len(scores) == 1:
            return labels[scores[0] > get_loss(self.loss).threshold]
        return labels[max(range(len(scores)), key=scores.__getitem__)]

    def predict_proba_one(self: Any, x: Mapping[str, Any]) -> dict[Any, float]:
        """The probability of each class, by its label; empty before anything is learned."""
        loss = get_loss(self.loss)
        if loss.link not in ("logistic", "identity"):
            raise NotImplementedError(
                "predict_proba_one needs a probabilistic loss: 'logistic', 'logarithmic' or 'hellinger', not "
                f"{loss.name!r}"
            )
        if not self.__sklearn_is_fitted__():
            return {}
        scores = self._event_scores(x)
        labels = self.classes_.tolist()
        if len(labels) == 1:
            return {labels[0]: 1.0}
        each = (
            [_sigmoid(p) for p in scores] if loss.link == "logistic" else loss.inverse_link(np.array(scores)).tolist()
        )
        if len(each) == 1:
            return {labels[0]: 1.0 - each[0], labels[1]: each[0]}
        total = sum(each)
        return {label: p / total if total > 0.0 else 1.0 / len(each) for label, p in zip(labels, each, strict=True)}

    def _event_scores(self: Any, x: Mapping[str, Any]) -> list[float]:
        events = self._events
        if events is None or events.learner is not self.learner_:
            events = self._begin_events(None, None)
        return events.predict(x) if self.learner_.state is not None else [0.0] * self.learner_.n_outputs


class RegressorEvents(EventEstimator):
    """``learn_one`` and ``predict_one`` of a regressor."""

    def learn_one(self: Any, x: Mapping[str, Any], y: float, w: float = 1.0) -> Any:
        """Learn one event, a dict of names and values: see :meth:`OnlineClassifier.learn_one`."""
        target, loss = _number(y), get_loss(self.loss)
        if (loss.labels != "real" or not math.isfinite(target)) and loss.invalid_labels(np.array([target])).size:
            raise ValueError(f"y is {target:g}, outside the {loss.name} loss: use {loss.domain}")
        events = self._events
        if events is not None and events.learner is self.learner_:
            events.learn(x, target, w)
            return self
        self._refuse_early_stopping("learn_one")
        with self._all_or_nothing():
            self._begin_events().learn(x, target, w)
        return self

    def _begin_events(self: Any) -> EventLearner:
        with self._all_or_nothing():
            events: EventLearner
            new = None if self.__sklearn_is_fitted__() else self._regressing_learner()
            events = self._ready(self, new)
            self._events = events
            self.learner_, self.n_features_in_ = events.learner, 1 << events.row.bits
        return events

    def predict_one(self: Any, x: Mapping[str, Any]) -> float:
        """The predicted target of one event; for the Poisson loss, its mean. Before anything is learned, that of 0."""
        score = 0.0
        if self.__sklearn_is_fitted__():
            events = self._events
            if events is None or events.learner is not self.learner_:
                events = self._begin_events()
            if self.learner_.state is not None:
                score = events.predict(x)[0]
        if get_loss(self.loss).link != "exp":
            return score
        try:
            return math.exp(score)
        except OverflowError:
            return math.inf


def _times(w: Any, factor: float) -> Any:
    """A weight times that of its class; what cannot be multiplied is left to who checks weights."""
    try:
        return w * factor
    except (TypeError, OverflowError):
        return w


def _number(y: Any) -> float:
    """A target of a regression."""
    try:
        if isinstance(y, (str, bytes)):
            raise TypeError
        return float(y)
    except (TypeError, ValueError, OverflowError):
        what = "the text " if isinstance(y, str) else ""
        raise ValueError(f"y is {what}{shown(y)}: targets of a regression must be finite numbers") from None


def _checked(label: Any) -> Any:
    """A label as Python has it, if it can be one of a class."""
    value = label.item() if isinstance(label, np.generic) else label
    if (
        not isinstance(value, (str, bool, int, float))
        or value != value
        or (isinstance(value, float) and (math.isinf(value) or value != math.floor(value)))
        or (isinstance(value, int) and abs(value) >= _MOST_LABEL)
    ):
        raise ValueError(f"y is {shown(label)}: the label of a class must be text, a whole number or a truth value")
    return value


def _sigmoid(p: float) -> float:
    if p >= 0.0:
        return 1.0 / (1.0 + math.exp(-p))
    small = math.exp(p)
    return small / (1.0 + small)
