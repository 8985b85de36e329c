"""What ``--json`` prints: the same names for learning and evaluating."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.export.describe import plain

if TYPE_CHECKING:
    from steelyard.data.source import Source
    from steelyard.online import OnlineLearner
    from steelyard.scores import Scores
    from steelyard.streaming import Goal


def figures(goal: Goal, scores: Scores, learner: OnlineLearner, source: Source, unlabelled: int) -> dict[str, Any]:
    """All of them; those of passes are for learning to fill in."""
    calibration = scores.calibration
    found: dict[str, Any] = plain(
        {
            "task": goal.task,
            "classes": None if goal.classes is None else goal.classes.tolist(),
            "features": learner.n_features,
            **scores.as_dict(),
            "calibration": None if calibration is None else [each._asdict() for each in calibration],
            "passes": 0,
            "pass_losses": [],
            "unlabelled": unlabelled,
            "missing": source.missing,
            "skipped": source.skipped.count,
            "certified_gap": None,
            "model": None,
        }
    )
    return found
