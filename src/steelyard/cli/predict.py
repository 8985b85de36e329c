"""``steelyard predict``: a model and a file → a line a row."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from steelyard.cli.common import input_path

if TYPE_CHECKING:
    from steelyard.online import OnlineLearner


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "predict",
        help="predict with a model, one line a row",
        description="Predict the rows of a LIBSVM file with a model that `steelyard learn --model` wrote.",
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("data", type=input_path, metavar="DATA", help="LIBSVM file; - is standard input")
    parser.add_argument("--scores", action="store_true", help="scores instead of classes")
    parser.set_defaults(run=run, interrupted="what was predicted is printed")


def run(options: argparse.Namespace) -> int:
    """Predict block by block."""
    import numpy as np

    from steelyard.data.checks import check_finite
    from steelyard.data.libsvm import LibsvmSource
    from steelyard.data.source import told_of
    from steelyard.modelfile import load

    learner = load(options.model)
    classes = _classes(learner, options.model)
    zero_based = bool(learner.notes.get("zero_based", False))
    source = LibsvmSource(options.data, n_features=None, zero_based=zero_based, kept_bytes=0)
    unknown = 0
    for rows, _, _, before in source.blocks():
        block, left_out = rows.narrowed(learner.n_features)
        unknown += left_out
        with told_of(source, before):
            check_finite(block)
        scores = learner.predict_block(block)
        if classes is not None and not options.scores:
            labels = np.array(classes)
            above = (scores > learner.loss.threshold).astype(int)
            scores = labels[above if scores.ndim == 1 else scores.argmax(axis=1)]
        elif learner.loss.link == "exp" and not options.scores:
            scores = learner.loss.inverse_link(scores)
        np.savetxt(sys.stdout, scores, fmt="%s" if scores.dtype.kind == "U" else "%.10g")
    if unknown:
        print(
            f"steelyard: {unknown} values of features beyond the {learner.n_features} that the model has learned were "
            "left out",
            file=sys.stderr,
        )
    return 0


def _classes(learner: OnlineLearner, path: str) -> list[Any] | None:
    """The labels that the model was learned with, where it is a classifier."""
    classes = learner.notes.get("classes")
    if classes is None:
        return None
    wanted = 2 if learner.n_outputs == 1 else learner.n_outputs
    if isinstance(classes, list) and len(classes) == wanted:
        if all(isinstance(each, str) for each in classes):
            return classes
        if all(isinstance(each, (int, float)) and abs(each) < 1e300 for each in classes):
            return [float(each) for each in classes]
    raise ValueError(f"{path}: what it notes as its classes is not a list of {wanted} labels")
