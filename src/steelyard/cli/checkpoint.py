"""A run that was stopped goes on: the learner, how far it has come, and for which command."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.cli.common import UsageError, option_word

if TYPE_CHECKING:
    from steelyard.online import OnlineLearner

_WORDS = "checkpoint"
_SHOWN = {
    "data": "the files {}",
    "bytes": "files of {} bytes",
    "classes_found": "the classes {}",
    "task_found": "a {}",
}
"""What is compared, and is no option."""
_SWITCHES = {"shuffle": "--no-shuffle", "header": "--no-header", "fit_intercept": "--no-intercept"}


class Checkpoint(NamedTuple):
    """What a checkpoint file holds."""

    learner: OnlineLearner
    state: dict[str, Any]


def save(path: str, learner: OnlineLearner, state: dict[str, Any]) -> None:
    """Write the learner and the state of the run to one file, whole or not at all."""
    notes = learner.notes
    learner.notes = {**notes, _WORDS: state}
    try:
        learner.save(path)
    finally:
        learner.notes = notes


def load(path: str, command: dict[str, Any]) -> Checkpoint | None:
    """The learner and the state, if there are any; those of another command are refused."""
    if not os.path.exists(path):
        return None
    from steelyard.modelfile import load as load_model

    try:
        learner = load_model(path)
    except ValueError as error:
        raise ValueError(f"--checkpoint {error}: remove it to start anew, or name another file") from None
    state = learner.notes.pop(_WORDS, None)
    if not isinstance(state, dict):
        raise UsageError(f"--checkpoint {path} is a model, and not a checkpoint: name another file")
    if not _is_sound(state):
        raise UsageError(f"--checkpoint {path} was written by another version: remove it, or name another file")
    check_same(path, state["command"], command)
    return Checkpoint(learner, state)


def _is_sound(state: dict[str, Any]) -> bool:
    """Whether a state has what this version writes."""
    position, report, finished = state.get("position"), state.get("report"), state.get("finished", 0)
    if not (isinstance(position, list) and len(position) == 4 and isinstance(position[2], list)):
        return False
    whole = [*position[:2], *position[2], *(position[3] or [])]
    return (
        len(position[2]) == 5
        and len(whole) in (7, 12)
        and all(type(each) is int and each >= 0 for each in whole)
        and all(isinstance(state.get(part), dict) for part in ("command", "goal"))
        and (finished is None or isinstance(finished, dict))
        and isinstance(report, dict)
        and all(isinstance(report.get(part), kind) for part, kind in (("scores", dict), ("passes", list)))
    )


def check_same(path: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on with something else than what the checkpoint was written with."""
    now = json.loads(json.dumps(now))
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise UsageError(
                f"--checkpoint {path} was written with {_said(name, before.get(name))}, and now it is "
                f"{_said(name, now.get(name))}: give the same command and the same data, or another --checkpoint"
            )


def _said(name: str, value: Any) -> str:
    """A part of a command in the words of the shell."""
    if isinstance(value, list):
        value = " ".join(map(str, value))
    if name in _SHOWN:
        return _SHOWN[name].format("of an unknown number" if value is None else value)
    if name in _SWITCHES:
        return f"no {_SWITCHES[name]}" if value else _SWITCHES[name]
    if value is True:
        return option_word(name)
    return f"no {option_word(name)}" if value in (None, False, "") else f"{option_word(name)} {value}"
