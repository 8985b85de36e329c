"""``steelyard inspect``: what a model file holds."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from steelyard.cli.common import check_least

if TYPE_CHECKING:
    from steelyard.online import OnlineLearner

_EXAMPLES = """examples:
  steelyard inspect m
  steelyard inspect m --top 50
  steelyard inspect m --json | python -m json.tool
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
    parser.add_argument("--top", type=int, default=20, metavar="N", help="so many coefficients (default 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.set_defaults(run=run, interrupted="nothing was written")


def run(options: argparse.Namespace) -> int:
    """Print it."""
    from steelyard.modelfile import load

    check_least(options, top=0)
    learner = load(options.model)
    found = describe(learner, options.top)
    print(json.dumps(found) if options.json else "\n".join(_lines(found)))
    return 0


def describe(learner: OnlineLearner, top: int) -> dict[str, Any]:
    """What there is to say of a model, as JSON can hold it."""
    from steelyard.cli.report import certified

    notes = learner.notes
    found: dict[str, Any] = {
        "kind": type(learner).__name__,
        "task": notes.get("task"),
        "loss": learner.loss.name,
        "classes": notes.get("classes"),
        "options": learner._options(),
        "data": notes.get("data"),
        "learned": notes.get("learned"),
        "rows": 0,
        "features": 0,
        "nonzero": 0,
        "intercept": None,
        "coefficients": [],
        "certificate": None,
    }
    if learner.state is None:
        return found
    coef = _outputs_of(learner)
    found["rows"], found["features"] = learner._rows(), coef.shape[1]
    found["nonzero"] = int((coef != 0.0).any(axis=0).sum())
    found["intercept"] = learner.intercept_ if coef.shape[0] == 1 else learner.intercept_.tolist()
    found["coefficients"] = _largest(learner, coef, top)
    if learner.certificate:
        gap, radius, loss = certified(learner)
        if gap < float("inf"):
            found["certificate"] = {"gap": gap, "norm": radius, "average_loss": loss}
    return found


def _outputs_of(learner: OnlineLearner) -> Any:
    import numpy as np

    return np.atleast_2d(learner.coef_)


def _largest(learner: OnlineLearner, coef: Any, top: int) -> list[dict[str, Any]]:
    """The coefficients with the largest absolute values, over all outputs."""
    import numpy as np

    from steelyard.data.naming import name_products

    names = {int(index): name for index, name in (learner.notes.get("names") or {}).items()}
    classes = learner.notes.get("classes")
    one_based = (learner.notes.get("data") or {}).get("zero_based") is False
    flat = np.abs(coef).reshape(-1)
    count = min(top, int(np.count_nonzero(flat)))
    if not count:
        return []
    places = np.argpartition(-flat, count - 1)[:count]
    places = places[np.lexsort((places, -flat[places]))]
    names |= name_products((places % coef.shape[1]).tolist(), names, learner.notes.get("data") or {})
    found = []
    for place in places.tolist():
        output, index = divmod(place, coef.shape[1])
        each: dict[str, Any] = {
            "index": index,
            "name": names.get(index, str(index + 1) if one_based else None),
            "value": float(coef[output, index]),
        }
        if coef.shape[0] > 1:
            each["class"] = classes[output] if classes else output
        found.append(each)
    return found


def _lines(found: dict[str, Any]) -> list[str]:
    options = {name: value for name, value in found["options"].items() if value is not None}
    what = {"Mixture": "a mixture of learners, no rate to choose", "Learner": "one learner", "Bank": "a bank of rates"}
    lines = [
        f"{'model':14s} {what[found['kind']]}: {found['task'] or 'task not noted'}, {found['loss']} loss",
        f"{'options':14s} {', '.join(f'{name} {value}' for name, value in options.items())}",
    ]
    if found["classes"] is not None:
        shown = ", ".join(map(str, found["classes"][:10])) + (", …" if len(found["classes"]) > 10 else "")
        lines.append(f"{'classes':14s} {shown}")
    data = {k: v for k, v in (found["data"] or {}).items() if v not in (None, [], {}, False)}
    if data:
        lines.append(f"{'data':14s} {', '.join(f'{name} {_short(value)}' for name, value in data.items())}")
    if found["learned"]:
        lines.append(f"{'learned':14s} {', '.join(f'{name} {value}' for name, value in found['learned'].items())}")
    lines.append(f"{'rows':14s} {found['rows']}, features {found['features']}, of them not zero {found['nonzero']}")
    if found["certificate"]:
        proved = found["certificate"]
        lines.append(
            f"{'certificate':14s} loss {proved['average_loss']:.6g}, within {proved['gap']:.4g} of every linear "
            f"model of norm {proved['norm']:.4g} in scaled columns"
        )
    if found["coefficients"]:
        lines += ["", f"{'coefficient':>14s}  feature"]
        for each in found["coefficients"]:
            name = each["name"] if each["name"] is not None else f"index {each['index']}"
            lines.append(f"{each['value']:14.6g}  {name}" + (f"  (class {each['class']})" if "class" in each else ""))
    if isinstance(found["intercept"], float):
        lines.append(f"{found['intercept']:14.6g}  (intercept)")
    return lines


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, (list, dict)) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
