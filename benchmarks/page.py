"""docs/benchmarks.md out of benchmarks/results: its tables are written by this script, and never by hand.

    python benchmarks/page.py             # writes the tables between the marks of the page, and of two of the guide
    python benchmarks/page.py --pictures docs/generated/benchmarks

What stands between ``<!-- NAME -->`` and ``<!-- end -->`` comes from the block of that name, and everything else
stays as it is; on the page of benchmarks nothing else has figures. The build of the site draws the pictures
(docs/_ext/pictures.py).
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import summary
from record import read, shown
from sets import table
from summary import figure, overall

from steelyard.data.files import atomic_write

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
PAGES = (PAGE, ROOT / "docs" / "guide" / "speed.md", ROOT / "docs" / "guide" / "no-learning-rate.md")
PICTURES = ROOT / "docs" / "generated" / "benchmarks"
MARK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)
SCRIPTS = {"rates": "quality"}  # what writes a result, where it has another name
GUIDE = {"guide_speed": ("speed", summary.speed), "guide_quality": ("quality", summary.quality)}
Result = dict[str, Any]


def fill(text: str, results: dict[str, Result]) -> str:
    """The page with its blocks written anew."""
    return MARK.sub(lambda mark: f"<!-- {mark[1]} -->\n{block(mark[1], results).strip()}\n<!-- end -->", text)


def block(name: str, results: dict[str, Result]) -> str:
    if name == "machine":
        return machine(results)
    if name in GUIDE:
        needed, write = GUIDE[name]
        return write(results) if needed in results else f"*Not measured yet: `python benchmarks/{needed}.py`.*"
    if name not in results:
        return f"*Not measured yet: `python benchmarks/{SCRIPTS.get(name, name)}.py`.*"
    result = results[name]
    parts = [BLOCKS[name](result)]
    if name in ALT:
        parts.insert(0, f"![{ALT[name]}](generated/benchmarks/{name}.svg)")
    return "\n\n".join([*(part.strip() for part in parts), source(result, results)])


def source(result: Result, results: dict[str, Result]) -> str:
    """The command and the date, and what differs from most of the page."""
    common = usual(results)
    other = [f"{key} {value}" for key, value in facts(result).items() if common.get(key) != value]
    return f"*`{result['command']}`, {result['date']}{'; ' + ', '.join(other) if other else ''}.*"


def facts(result: Result) -> dict[str, str]:
    return {key: str(value) for part in ("machine", "versions") for key, value in result[part].items()}


def usual(results: dict[str, Result]) -> dict[str, str]:
    """What most results have in common."""
    found: dict[str, list[str]] = {}
    for result in results.values():
        for key, value in facts(result).items():
            found.setdefault(key, []).append(value)
    return {key: max(sorted(set(values)), key=values.count) for key, values in found.items()}


def machine(results: dict[str, Result]) -> str:
    """One sentence a kind."""
    found = usual(results)
    kinds = {kind: list(next(iter(results.values()))[kind]) if results else [] for kind in ("machine", "versions")}
    said = {kind: ", ".join(f"{key} {found[key]}" for key in keys) for kind, keys in kinds.items()}
    return (
        f"Where nothing else is said, results are of this machine: {said['machine']}; and of these versions: "
        f"{said['versions']} (kernels: a digest of their sources)."
    )


# ------------------------------------------------------------------------------------------------------------ tables


def distinct(result: Result, key: str) -> list[str]:
    return list(dict.fromkeys(entry[key] for entry in result["entries"] if key in entry))


def lookup(result: Result) -> dict[tuple[str, str], Result]:
    return {(entry["case"], entry["contender"]): entry for entry in result["entries"]}


def ratios(result: Result) -> str:
    """Ratios to the peer, and the peer's own figure: a table for all cases in which the same take part."""
    found, parts = lookup(result), []
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for case in distinct(result, "case"):
        names = tuple(name for each, name in found if each == case)
        groups.setdefault((found[case, names[0]]["of"], names), []).append(case)
    for (peer, names), cases in groups.items():
        cells = [[case, *(cell(found[case, name]) for name in names)] for case in cases]
        if len(cases) > len(names):  # a table is rather long than wide
            parts.append(table([f"ratio to {peer}", *names], cells))
        else:
            columns = [row[1:] for row in cells]
            rows = [[name, *each] for name, *each in zip(names, *columns, strict=True)]
            parts.append(table([f"ratio to {peer}", *cases], rows))
    return "\n".join(parts)


def cell(entry: Result) -> str:
    own = f" ({shown(entry['value'], entry['unit'])})" if entry["contender"] == entry["of"] else ""
    return (figure(entry["ratio"]) + own).replace(" ", "\N{NO-BREAK SPACE}")


def each_case(result: Result) -> str:
    """A row a case, a column a contender, where there are many cases and few contenders."""
    found, names = lookup(result), distinct(result, "contender")
    rows = []
    for case in distinct(result, "case"):
        cells = [found.get((case, name)) for name in names]
        rows.append([case, *("" if each is None else shown(each["value"], each["unit"]) for each in cells)])
    return table(["", *names], rows)


def floor(result: Result) -> str:
    found = lookup(result)
    bandwidth = found["memory", "one core reads"]
    names = [name for name in distinct(result, "contender") if name != "one core reads"]
    rows = []
    for case in (case for case in distinct(result, "case") if case != "memory"):
        shape = found[case, names[0]]
        times = (f"{found[case, name]['value'] * 1e9:.2f}" for name in names)
        rows.append([f"{shape['columns']:,}", str(shape["nonzeros"]), *times])
    speed = f"Memory is read at {bandwidth['value']:.3g} GB/s by one core."
    head = ["features", "non-zeros a row", *(name.removesuffix(" alone") for name in names)]
    return f"Nanoseconds for each non-zero:\n\n{table(head, rows)}\n{speed}"


def growth(result: Result) -> str:
    rows = []
    for entry in result["entries"]:
        took = f"{shown(entry['value'][-1], 's')} at {entry['sizes'][-1]:,}"
        rows.append([f"{entry['case']}: {entry['contender']}", f"{entry['slope']:.2f}", took])
    return table(["", "slope", "one pass"], rows)


def as_kept(result: Result) -> str:
    return "\n".join(f"{each['case']}:\n\n{table(each['head'], each['value'])}" for each in result["entries"])


def memory(result: Result) -> str:
    rows = []
    for kind in distinct(result, "case"):
        short, long = (entry for entry in result["entries"] if entry["case"] == kind)
        rows.append([kind, *(f"{each['value']:.0f} MB ({each['contender']})" for each in (short, long))])
    return table(["format", "short stream", "long stream"], rows)


def quality(result: Result) -> str:
    """Over all sets: the geometric mean of our loss over theirs, the worst, and how often ours is no larger."""
    rows = []
    for name in distinct(result, "contender"):
        those = [each for each in result["entries"] if each["contender"] == name and each.get("counted")]
        values = [each["ratio"] if each["ratio"] is not None else 0.0 for each in those]
        if values:
            rows.append([name, *overall(values), str(len(values))])
    shape = [entry for entry in result["entries"] if "rows" in entry and entry["contender"] == "steelyard"]
    sets = ", ".join(f"{each['case']} ({each['rows']:,} × {each['columns']:,})" for each in shape)
    head = ["compared with", "geometric mean", "worst", "no worse on", "sets"]
    return f"{table(head, rows)}\nSets (rows × columns): {sets}."


def rates(result: Result) -> str:
    """How much of the grid is within a tenth of our default's loss, by contender: a mean over the sets."""
    found = lookup(result)
    rows = []
    for name in distinct(result, "contender"):
        near, best = [], []
        for case in distinct(result, "case"):
            entry = found.get((case, name))
            if entry is None or "rates" not in entry:
                continue
            ours = found[case, "steelyard on River's rows" if name == "River" else "steelyard"]["value"]
            losses = [math.inf if each is None else each / ours for each in entry["value"]]
            near.append(sum(each <= 1.1 for each in losses) / len(losses))
            best.append(min(losses))
        if near:
            rows.append([name, f"{sum(near) / len(near):.0%}", f"{min(best):.2f}"])
    return table(["", "of all rates, within a tenth of our default's loss", "lowest loss over ours, of all sets"], rows)


def weights(result: Result) -> str:
    rows = []
    for entry in result["entries"]:
        if entry["case"].startswith("flow"):
            loss = entry["case"].removeprefix("flow, ")
            what = f"IWA step against the flow, {loss}: largest relative error of {entry['steps']:,}"
            rows.append([what, f"{entry['value']:.1e}"])
        elif entry["case"] == "copies":
            most = entry["weights"][-1]
            rows.append([f"{entry['contender']}: weight {most} against {most} copies", f"{entry['value'][-1]:.1e}"])
    return table(["", "relative difference"], rows)


def scores(result: Result) -> str:
    found, rows = lookup(result), []
    models = distinct(result, "contender")
    for case in distinct(result, "case"):
        name, _, what = case.rpartition(", ")
        if what in ("accuracy", "R²"):
            rows.append([name, what, *(f"{found[case, model]['value']:.3f}" for model in models)])
    return table(["set", "score", *models], rows)


def shards(result: Result) -> str:
    merged = {**result, "entries": [entry for entry in result["entries"] if "bound" in entry]}
    found, counts = lookup(merged), distinct(merged, "contender")
    rows = [[case, *(figure(found[case, count]["value"]) for count in counts)] for case in distinct(merged, "case")]
    return table(["loss on held-out rows, over one pass in one place", *counts], rows)


BLOCKS: dict[str, Callable[[Result], str]] = {
    **dict.fromkeys(
        ("speed", "auto", "shuffle", "bank", "reader", "events", "text", "workers", "ways", "modelsize"), ratios
    ),
    **dict.fromkeys(("startup", "drift", "repeated"), each_case),
    "memory": memory,
    "penalties": as_kept,
    "floor": floor,
    "growth": growth,
    "quality": quality,
    "rates": rates,
    "weights": weights,
    "scores": scores,
    "shards": shards,
}
ALT = {
    "floor": "Nanoseconds for each non-zero against the length of rows, for three sizes of tables, and the limit",
    "growth": "Seconds against rows and against columns, both axes logarithmic, with fitted slopes",
    "text": "Time from text to a model as a part of Vowpal Wabbit's",
    "quality": "Our loss over that of each peer, a row a set",
    "rates": "Loss over that of our default against the learning rate, for six sets",
    "weights": "Where a step lands for each weight; weights against copies",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw the pictures there too")
    options = parser.parse_args()
    results = read()
    for page in PAGES:
        text = fill(page.read_text(encoding="utf-8"), results)
        with atomic_write(page) as file:
            file.write(text.encode())
    if options.pictures:
        from figures import draw

        draw(results, options.pictures)


if __name__ == "__main__":
    main()
