"""``steelyard inspect``: what a model file holds."""

from __future__ import annotations

import argparse
import json
from typing import Any

from steelyard.cli.common import check_least, class_name, one_line

_EXAMPLES = """examples:
  steelyard inspect m
  steelyard inspect m --top 50
  steelyard inspect m --json | python -m json.tool
  steelyard inspect m --vw > m.txt
"""


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "inspect",
        help="what a model is, how it was learned, its largest coefficients",
        description="Say what a model predicts, how it was learned and from what, what is proved of it, and which "
        "features count most, by name where names were seen.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument(
        "--top", type=int, metavar="N", help="so many coefficients (default 20; with --json all that are not zero)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    form.add_argument(
        "--vw", action="store_true", help="print every weight as Vowpal Wabbit's --readable_model does, index:weight"
    )
    parser.set_defaults(run=run, interrupted="nothing was written")


def run(options: argparse.Namespace) -> int:
    """Print it."""
    from steelyard.export.describe import describe
    from steelyard.export.notes import check_notes
    from steelyard.export.vw import readable_model
    from steelyard.modelfile import load

    if options.top is None and not options.json:
        options.top = 20
    if options.top is not None:
        check_least(options, top=0)
    learner = load(options.model)
    check_notes(learner, options.model)
    if options.vw:
        print("\n".join(readable_model(learner)))
        return 0
    found = describe(learner, options.top)
    print(json.dumps(found, allow_nan=False) if options.json else "\n".join(_lines(found)))
    return 0


def _lines(found: dict[str, Any]) -> list[str]:
    options = {name: value for name, value in found["options"].items() if value is not None}
    what = {"Mixture": "a mixture of learners, no rate to choose", "Learner": "one learner", "Bank": "a bank of rates"}
    lines = [
        f"{'model':14s} {what[found['kind']]}: {found['task'] or 'task not noted'}, {found['loss']} loss",
        f"{'options':14s} {', '.join(f'{name} {value}' for name, value in options.items())}",
    ]
    if found["classes"] is not None:
        shown = ", ".join(map(class_name, found["classes"][:10])) + (", …" if len(found["classes"]) > 10 else "")
        lines.append(f"{'classes':14s} {shown}")
    data = {k: v for k, v in (found["data"] or {}).items() if v not in (None, [], {}, False)}
    if data:
        lines.append(f"{'data':14s} {', '.join(f'{name} {_short(value)}' for name, value in data.items())}")
    if found["learned"]:
        lines.append(f"{'learned':14s} {', '.join(f'{name} {value}' for name, value in found['learned'].items())}")
    lines.append(f"{'visits':14s} {found['visits']}, features {found['features']}, of them not zero {found['nonzero']}")
    if found["certificate"]:
        proved = found["certificate"]
        lines.append(
            f"{'certificate':14s} loss {proved['average_loss']:.6g}, within {proved['gap']:.4g} of every linear "
            f"model of norm {proved['norm']:.4g}{' in scaled columns' if proved['scaled'] else ''}"
        )
    if found["coefficients"]:
        lines += ["", f"{'coefficient':>14s}  feature"]
        for each in found["coefficients"]:
            name = one_line(each["name"]) if each["name"] is not None else f"index {each['index']}"
            of = f"  (class {class_name(each['class'])})" if "class" in each else ""
            lines.append(f"{each['value']:14.6g}  {name}{of}")
    if isinstance(found["intercept"], float):
        lines.append(f"{found['intercept']:14.6g}  (intercept)")
    return lines


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, (list, dict)) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
