"""``steelyard evaluate``: how good a model is on rows with labels."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from steelyard.cli.inputs import add_data_options, add_no_shuffle, check_data_options, open_data, tell_of_rows

if TYPE_CHECKING:
    from steelyard.scores import Scores
    from steelyard.streaming import Goal

_EXAMPLES = """examples:
  steelyard evaluate m a9a.t
  steelyard evaluate m people.csv --json
"""


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "evaluate",
        help="loss, accuracy, AUC, R², calibration of a model",
        description="Compare a model's predictions with labels, by the rows' weights: loss, accuracy, AUC and "
        "calibration, or R² and errors for real targets. Nothing is learned.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL")
    add_data_options(parser)
    add_no_shuffle(parser)
    parser.add_argument("--quiet", action="store_true", help="nothing beside the figures")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.set_defaults(run=run, interrupted="nothing was written")


def run(options: argparse.Namespace) -> int:
    """Score block by block."""
    from steelyard.cli.figures import figures
    from steelyard.cli.model import fitted_columns, load_model, tell_of_unknown
    from steelyard.data.checks import check_finite
    from steelyard.data.source import told_of
    from steelyard.scores import Scores, row_losses
    from steelyard.streaming import Feed

    check_data_options(options)
    learner, goal, schema = load_model(options.model)
    source = open_data(options, schema)
    feed = Feed(source, goal, skip=options.on_error == "skip", learns=False)
    scores = Scores(goal.loss, None if goal.classes is None else goal.classes.size)
    unknown = 0
    for rows in source.stream():
        ready = feed.ready(rows)
        block, left_out = fitted_columns(learner, ready.block, source.name)
        unknown += left_out
        with told_of(source, ready.before, ready.kept):
            check_finite(block)
        prediction = learner.predict_block(block)
        scores.add(prediction, row_losses(goal.loss, prediction, ready.y), ready.y, ready.weight)
    if not scores.weight:
        raise ValueError(f"{source.name} has no rows with labels and weight: there is nothing to evaluate")
    if options.json:
        print(json.dumps({**figures(goal, scores, learner, source, feed.unlabelled), "model": options.model}))
        return 0
    told = [*tell_of_rows(source, feed.unlabelled), *tell_of_unknown(unknown, learner)]
    if told and not options.quiet:
        print("\n".join(f"steelyard: {each}" for each in told), file=sys.stderr)
    _print(scores, goal)
    return 0


def _print(scores: Scores, goal: Goal) -> None:
    calibration = scores.calibration
    half = ", ½ (p − y)²" if goal.loss.name == "squared" else ""
    lines = [
        ("examples", f"{scores.rows}"),
        ("weighted examples", f"{scores.weight:.10g}"),
        ("average loss", f"{scores.average_loss:.6g} ({goal.loss.name}{half})"),
        ("accuracy", scores.accuracy),
        ("AUC", scores.auc),
        ("R²", scores.r2),
        ("root of the mean squared error", scores.rmse),
        ("predictions minus labels, mean", scores.bias),
        ("calibration error", scores.calibration_error),
    ]
    for name, value in lines:
        if value is not None:
            print(f"{name:32s} {value if isinstance(value, str) else f'{value:.6g}'}")
    if calibration:
        print(f"\n{'predicted':>12s} {'mean':>9s} {'observed':>9s} {'weight':>12s}")
        for each in calibration:
            print(f"{each.low:5.1f} … {each.high:.1f} {each.predicted:9.4f} {each.observed:9.4f} {each.weight:12.6g}")
