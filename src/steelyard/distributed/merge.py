"""Learners of shards, merged into one: all went on from one ``start``, each with rows of its own.

    what adds up       a = a_0 + sum over shards of (a_s - a_0): rows, weights, losses, certificates, what sets rates
    what is averaged   x = sum of n_s x_s / sum of n_s, n_s how much shard s has learned of it since the start

A merge of merges is the merge of all, to rounding, and the order does not matter; of mixtures, but for columns whose
spread differs much between shards, as in shards of very few rows (``merge_mixture``).
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from steelyard.losses import Array, CustomLoss
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner, Origin, Progress

_Any = TypeVar("_Any")
LEAST_WEIGHT = 1e-300
"""That a learner counts with, if rounding has taken the weight of its rows."""


def merge(learners: Sequence[_Any], start: _Any | None = None) -> _Any:
    """One learner of several that went on from the same ``start``, each with rows of its own.

    The model is the average of the learners' models; a feature that only some of them have met is averaged over those.
    Two things are better than an average: under ``metric="full"``, and for the experts of second order of a mixture,
    what was learned adds up; and a mixture's experts whose rates fall like 1/n move farther than their average.
    Rows, weights, losses and certificates add up: the certificate of the result is about all predictions that were
    made before their rows were learned, by whichever learner, and holds for one comparator over all the rows. The
    result can go on learning, with the rates that so many rows call for.

    Parameters
    ----------
    learners : list of Learner, Bank or Mixture, or of fitted estimators
        All of one kind and with the same options.
    start : the learner that all of them are copies of, before they went on
        None where they began with nothing.

    Returns
    -------
    A new learner or estimator; those that were given stay as they are.

    Examples
    --------
    >>> import copy
    >>> import numpy as np
    >>> from steelyard import Mixture, merge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 3))
    >>> y = np.sign(X @ [1.0, -2.0, 0.5] + rng.normal(size=900))
    >>> start = Mixture("logistic")
    >>> _ = start.learn(X[:100], y[:100])
    >>> shards = [copy.deepcopy(start) for _ in range(4)]
    >>> for k, shard in enumerate(shards):
    ...     _ = shard.learn(X[100 + k :: 4], y[100 + k :: 4])
    >>> whole = merge(shards, start=start)
    >>> whole.certify().rounds
    900
    """
    if hasattr(learners, "learn") or hasattr(learners, "partial_fit"):
        raise TypeError("give the learners in a list: merge([a, b], start=start)")
    each = list(learners)
    if not each:
        raise ValueError("there is nothing to merge: give the learners in a list")
    merged: _Any = (_merge_estimators if hasattr(each[0], "partial_fit") else _merge_learners)(each, start)
    return merged


def _merge_learners(each: list[Any], start: Any) -> Any:
    everyone = each if start is None else [*each, start]
    for number, learner in enumerate(each):
        _check_kind(learner, f"learner {number}")
    if start is not None:
        _check_kind(start, "the start")
    for number, learner in enumerate(everyone[1:], 1):
        what = f"learner {number}" if number < len(each) else "the start"
        difference = _difference(each[0], learner)
        if difference:
            raise ValueError(f"{what} does not fit to learner 0: {difference}")
    base = start if start is not None and start.state is not None else None
    grown = []
    for number, learner in enumerate(each):
        if _check_grown(learner, base, number):
            grown.append(learner)
    if base is None:
        _check_apart(grown)
    result = copy.copy(each[0] if base is None else base)
    result.notes = copy.deepcopy(result.notes)
    result._coef = None
    result.progress = _merged_progress(each, base)
    if len(grown) > 1:
        try:
            result.state = _merged_state(result, grown, base)
        except np.linalg.LinAlgError as error:
            raise ValueError("what the learners know does not fit together: do all come from this start?") from error
        result._origin = _merged_origin(result, grown) if base is None else base._origin
        return result
    same = copy.deepcopy(grown[0] if grown else next((one for one in everyone if one.state is not None), result))
    same.notes, same.progress = result.notes, result.progress
    return same


def _merged_state(result: Any, grown: list[Any], base: Any) -> Any:
    if isinstance(result, Mixture):
        from steelyard.distributed.merge_mixture import merge_mixtures

        return merge_mixtures(result, [learner.state for learner in grown], None if base is None else base.state)
    from steelyard.distributed.merge_ftrl import merge_ftrl

    return merge_ftrl(result, grown, base)


def _check_kind(learner: Any, what: str) -> None:
    if not isinstance(learner, OnlineLearner):
        raise TypeError(
            f"{what} is a {type(learner).__name__}: merge takes a Learner, Bank or Mixture, or fitted estimators"
        )
    check_merges(learner, what)


def check_merges(learner: OnlineLearner, what: str) -> None:
    """Refuse learners that have no merge."""
    options = learner._options()
    if options.get("l1") or options.get("l2") or options.get("average"):
        raise ValueError(
            f"{what} has l1, l2 or average: such learners cannot be merged, since an average of models is neither "
            "sparse nor what one learner would have learned. Learn without them, or on one machine"
        )


def _difference(one: OnlineLearner, other: OnlineLearner) -> str:
    """Why two learners cannot be merged, or nothing."""
    if type(one) is not type(other):
        return f"one is a {type(one).__name__}, the other a {type(other).__name__}"
    if one.loss.name != other.loss.name:
        return f"their losses are {one.loss.name} and {other.loss.name}"
    if isinstance(one.loss, CustomLoss):
        if _written(one.loss) != _written(other.loss):
            return "their custom losses are not the same"
    elif vars(one.loss) != vars(other.loss):
        return f"their losses have the parameters {vars(one.loss)} and {vars(other.loss)}"
    mine, theirs = one._options(), other._options()
    for name, value in mine.items():
        if not np.array_equal(value, theirs[name]):
            return f"{name} is {value!r} and {theirs[name]!r}"
    if one.state is not None and other.state is not None and one.n_features != other.n_features:
        return f"they have {one.n_features} and {other.n_features} features"
    return ""


def _written(loss: Any) -> list[Any]:
    """A user's loss as it was written: copies that were sent to other processes are the same."""
    return [_code(each) if callable(each) else each for each in vars(loss).values()]


def _code(function: Any) -> Any:
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    kept = [_code(each) if callable(each) else repr(each) for each in cells]
    return getattr(function, "__code__", function), kept, repr(getattr(function, "__defaults__", None))


def _check_grown(learner: Any, base: Any, number: int) -> bool:
    """Whether a learner has learned anything since the start, which it must come from."""
    if base is not None and learner is base:
        raise ValueError(
            f"learner {number} is the start itself: let copies of it learn (copy.deepcopy), and keep it as it was"
        )
    if learner.state is None:
        if base is not None and base._rows() > 0:
            raise ValueError(f"learner {number} has learned nothing: it does not come from this start, which has")
        return False
    least = 0 if base is None else base._rows()
    if learner._rows() < least:
        raise ValueError(
            f"learner {number} has learned {learner._rows()} rows, and the start {least}: it does not come from this "
            "start"
        )
    if base is not None and None not in (learner._origin, base._origin) and learner._origin != base._origin:
        raise ValueError(
            f"learner {number} does not come from this start: give the learner that all of them are copies of"
        )
    return bool(learner._rows() > least)


def _check_apart(grown: list[Any]) -> None:
    """Without a start, copies of one learner would count its rows several times."""
    known = [learner._origin for learner in grown if learner._origin is not None]
    gone_on = [each._origin for each in grown if each._origin is not None and each._rows() > each._origin.rows]
    if any(known.count(origin) > 1 for origin in gone_on):
        raise ValueError(
            "some of the learners are copies of one that had learned before: its rows would count several times. Give "
            "it as start="
        )


def _merged_origin(result: Any, grown: list[Any]) -> Origin | None:
    names = sorted(learner._origin.name for learner in grown if learner._origin is not None)
    if len(names) < len(grown):
        return None
    return Origin(hashlib.blake2b("".join(names).encode(), digest_size=8).hexdigest(), result._rows())


def _merged_progress(each: list[Any], base: Any) -> Progress | None:
    if any(learner.progress is None for learner in each):
        return None
    first = Progress() if base is None or base.progress is None else base.progress
    total = first.average * first.weight if first.weight > 0.0 else 0.0
    weight = first.weight
    for learner in each:
        average, own = learner.progress
        if own > first.weight:
            total += average * own - (first.average * first.weight if first.weight > 0.0 else 0.0)
            weight += own - first.weight
    return Progress(total / weight, weight) if weight > 0.0 else Progress()


def _merge_estimators(each: list[Any], start: Any) -> Any:
    everyone = each if start is None else [*each, start]
    for number, estimator in enumerate(everyone):
        what = f"estimator {number}" if number < len(each) else "the start"
        if type(estimator) is not type(each[0]):
            raise TypeError(f"{what} is a {type(estimator).__name__}, but estimator 0 is a {type(each[0]).__name__}")
        if getattr(estimator, "learner_", None) is None:
            if number == len(each):
                continue  # a start that knows nothing
            raise ValueError(f"{what} is not fitted: merge takes estimators that have learned something")
        for name in ("classes_", "feature_names_in_"):
            mine: Any = getattr(each[0], name, None)
            own: Any = getattr(estimator, name, None)
            if (mine is None) != (own is None) or (mine is not None and not np.array_equal(mine, own)):
                raise ValueError(f"{what} does not fit to estimator 0: its {name} is another")
    result = copy.copy(each[0])
    result.learner_ = merge(
        [estimator.learner_ for estimator in each], None if start is None else getattr(start, "learner_", None)
    )
    for name in ("pass_losses_", "validation_losses_", "_curve"):  # of one fit, and not of these together
        result.__dict__.pop(name, None)
    return result


def added(parts: Sequence[Array], base: Array | float) -> Array:
    """base + sum of (part - base); what is infinite in the base stays so."""
    known = np.asarray(base, dtype=np.float64)
    total = np.array(np.broadcast_to(known, np.shape(parts[0])))
    with np.errstate(invalid="ignore", over="ignore"):
        for part in parts:
            total += part - known
    return np.where(np.isfinite(known), total, known)


def average(values: Sequence[Array], weights: Sequence[Array], otherwise: Sequence[Array]) -> Array:
    """The average by ``weights``; where all of those are 0, by ``otherwise``, which are not."""
    heavy = np.zeros(np.broadcast_shapes(*(np.shape(w) for w in weights)))
    for weight in weights:
        heavy = np.maximum(heavy, weight)
    use = heavy > 0.0
    below = np.where(use, heavy, 1.0)
    total: Array = np.zeros_like(heavy)
    spare = max(float(np.max(w)) for w in otherwise)
    scaled = [np.where(use, w / below, o / spare) for w, o in zip(weights, otherwise, strict=True)]
    for weight in scaled:
        total = total + weight
    result: Array = np.zeros(np.broadcast_shapes(heavy.shape, np.shape(values[0])))
    for value, weight in zip(values, scaled, strict=True):
        share = weight / total
        result += np.where(share > 0.0, share * value, 0.0)
    return result
