"""``steelyard predict``: a model and files → a line a row."""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from steelyard.cli.common import UsageError, class_name
from steelyard.cli.inputs import add_data_options, add_no_shuffle, check_data_options, open_data, tell_of_rows

if TYPE_CHECKING:
    from steelyard.losses import Array
    from steelyard.streaming import Goal

_EXAMPLES = """examples:
  steelyard predict m a9a.t > labels.txt
  steelyard predict m people.csv --probabilities
  steelyard predict m - --format vw --scores < today.vw
"""


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "predict",
        help="predict with a model, one line a row",
        description="Predict rows with a model that `steelyard learn --model` wrote. Labels need not be there. Every "
        "row has a line, which is empty for one that --on-error skip leaves out.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL")
    add_data_options(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--probabilities",
        action="store_true",
        help="the probability of the second class, or those of all classes where there are more",
    )
    kind.add_argument("--scores", action="store_true", help="scores instead of classes")
    add_no_shuffle(parser)
    parser.add_argument("--json", action="store_true", help="a JSON value a line: text in quotes, lists for several")
    parser.add_argument("--quiet", action="store_true", help="say nothing but what is wrong")
    parser.set_defaults(run=run, interrupted="what was predicted is printed")


def run(options: argparse.Namespace) -> int:
    """Predict block by block."""
    import numpy as np

    from steelyard.cli.model import fitted_columns, load_model, tell_of_unknown
    from steelyard.data.checks import check_finite
    from steelyard.data.source import sound_rows

    check_data_options(options)
    learner, goal, schema = load_model(options.model)
    if options.probabilities and (goal.classes is None or goal.loss.link not in ("logistic", "identity")):
        raise UsageError(f"--probabilities needs a classifier with probabilities, not one with {goal.loss.name} loss")
    source = open_data(options, schema, predict=True)
    unknown = 0
    gaps: deque[int] = deque()
    source.gaps = gaps
    for rows in source.stream():
        block, left_out = fitted_columns(learner, rows.block, source.name)
        unknown += left_out
        finite, kept = sound_rows(source, rows._replace(block=block), lambda each: check_finite(each.block))
        shown = _shown(goal, learner.predict_block(finite.block), options)
        lost = np.delete(np.arange(rows.y.size), kept)
        while gaps and gaps[0] <= rows.before + rows.y.size:
            lost = np.append(lost, gaps.popleft() - rows.before)
        for number, part in enumerate(np.split(shown, np.sort(np.searchsorted(kept, lost)))):
            if number:
                _write_gap(options.json)
            _write(part, options.json)
    for _ in gaps:
        _write_gap(options.json)
    for told in () if options.quiet else tell_of_unknown(unknown, learner):
        print(f"steelyard: {told}", file=sys.stderr)
    if source.skipped.count:  # even if quiet
        print("\n".join(f"steelyard: {each}" for each in tell_of_rows(source)), file=sys.stderr)
    return 0


def _write_gap(as_json: bool) -> None:
    """A line without a value, for a row that is left out: so every row has a line."""
    sys.stdout.write("null\n" if as_json else "\n")


def _shown(goal: Goal, scores: Array, options: argparse.Namespace) -> Any:
    """What is printed for rows: classes, targets, probabilities or scores."""
    import numpy as np

    if options.scores:
        return scores
    if options.probabilities:
        p = np.asarray(goal.loss.inverse_link(scores))
        if p.ndim == 1:
            return p
        total = p.sum(axis=1, keepdims=True)
        return np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0.0)
    if goal.classes is not None:
        above = (scores > goal.loss.threshold).astype(int)
        shown = goal.classes if options.json else np.array([class_name(each) for each in goal.classes.tolist()])
        return shown[above if scores.ndim == 1 else scores.argmax(axis=1)]
    with np.errstate(over="ignore"):
        return goal.loss.inverse_link(scores)


def _write(values: Any, as_json: bool) -> None:
    import numpy as np

    from steelyard.export.describe import plain

    if as_json:
        sys.stdout.writelines(f"{json.dumps(each)}\n" for each in plain(values))
    else:
        np.savetxt(sys.stdout, values, fmt="%s" if values.dtype.kind == "U" else "%.10g")
