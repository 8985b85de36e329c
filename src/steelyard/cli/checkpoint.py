"""A run that was stopped goes on: the learner, how far it has come, and for which command."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from steelyard.cli.common import UsageError

if TYPE_CHECKING:
    from steelyard.online import OnlineLearner

_WORDS = "checkpoint"


def save(path: str, learner: OnlineLearner, state: dict[str, Any]) -> None:
    """Write the learner and the state of the run to one file, whole or not at all."""
    notes = learner.notes
    learner.notes = {**notes, _WORDS: state}
    try:
        learner.save(path)
    finally:
        learner.notes = notes


def load(path: str, command: dict[str, Any]) -> tuple[OnlineLearner, dict[str, Any]] | None:
    """The learner and the state, if there are any; those of another command are refused."""
    if not os.path.exists(path):
        return None
    from steelyard.modelfile import load as load_model

    learner = load_model(path)
    state = learner.notes.pop(_WORDS, None)
    if not isinstance(state, dict) or "command" not in state:
        raise UsageError(f"--checkpoint {path} is a model, and not a checkpoint: name another file")
    command = json.loads(json.dumps(command))
    for name in sorted({*state["command"], *command}):
        before, now = state["command"].get(name), command.get(name)
        if before != now:
            raise UsageError(
                f"--checkpoint {path} was written with {name} {before!r}, and it is {now!r} now: give the same "
                "command, or another --checkpoint"
            )
    return learner, state
