"""Short tables and sentences for the guide, out of the same results as the page of benchmarks."""

from __future__ import annotations

import math
from typing import Any

from record import shown
from sets import table

Result = dict[str, Any]
SGD = "scikit-learn SGDClassifier"
MIXTURE = "Mixture, no learning rate"
LEARNERS = {
    SGD: "scikit-learn `SGDClassifier(shuffle=False)`",
    "linearized": "`Learner`, linearized, scalar metric",
    "iwa": "`Learner`, **IWA**, scalar metric",
    "iwa, center origin, certificate": "the same with a certificate, center `origin`",
    "OnlineClassifier(metric='scalar', eta0=1.0).fit": "`OnlineClassifier` with one rate, `shuffle=False`",
    "iwa, diagonal metric": "`Learner`, IWA, diagonal metric",
    MIXTURE: "`Mixture`, no learning rate (the estimators' default), with its certificate",
}
PEERS = {
    "VW default": "Vowpal Wabbit, default",
    "VW best": "Vowpal Wabbit, best of {rates} rates in hindsight",
    "VW coin": "Vowpal Wabbit `--coin`",
    "VW ftrl": "Vowpal Wabbit `--ftrl`",
    "scikit-learn best": "scikit-learn SGD, best of {both} rates and schedules in hindsight",
    "River best": "River, best of {rates} rates in hindsight",
    "iwa best": "our own IWA with one rate, best of {rates} in hindsight",
}
CLIPPED = 0.5  # a smaller ratio to the best linear model says that keeping predictions among the labels helped
FLOOR = 0.01  # a smaller ratio says that the peer diverged, and not by how much we are better


def figure(value: float | None) -> str:
    """A ratio for people: two digits after the point, or two digits."""
    if value is None:
        return "–"
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def ratio(result: Result, case: str, contender: str, of: str) -> str:
    """Of two contenders in one case, whose name begins so."""
    values = {e["contender"]: e["value"] for e in result["entries"] if e["case"].startswith(case)}
    return figure(values[contender] / values[of])


def speed(results: dict[str, Result]) -> str:
    """The guide's table of speed, and what else a reader asks, as far as it was measured."""
    result = results["speed"]
    cases = list(dict.fromkeys(entry["case"] for entry in result["entries"] if entry["contender"] == "linearized"))
    found = {(entry["case"], entry["contender"]): entry["ratio"] for entry in result["entries"]}
    rows = [[label, *(figure(found[case, name]) for case in cases)] for name, label in LEARNERS.items()]
    wide = ratio(result, "dense 100,000", MIXTURE, SGD)
    one = ratio(result, "partial_fit", "OnlineClassifier", SGD)
    said = [
        "On 50 columns the mixture has two learners with a full matrix. On 200 dense columns, without them, it takes "
        f"{wide} of scikit-learn's time. A `partial_fit` of one row takes {one} of scikit-learn's "
        "(`python benchmarks/speed.py`)."
    ]
    if "auto" in results:
        alone, vw = "Learner, eta0=1", "Vowpal Wabbit from its cache"
        sparse, dense = (ratio(results["auto"], case, "Mixture", alone) for case in ("CSR", "dense"))
        cached = ratio(results["auto"], "CSR", "Mixture", vw)
        said.append(
            f"The mixture takes {sparse} times as long as one learner under the diagonal metric on the sparse case, "
            f"{dense} times on the dense one, and {cached} of a pass of Vowpal Wabbit from its cache file "
            "(`python benchmarks/auto.py`)."
        )
    if "shuffle" in results:
        times = [entry for entry in results["shuffle"]["entries"] if entry["contender"] == "fit"]
        sparse, dense = (figure(entry["ratio"]) for entry in times if entry["case"].endswith("'auto'"))
        said.append(
            f"With its shuffle, `fit` takes {sparse} and {dense} of its time without (`python benchmarks/shuffle.py`)."
        )
    if "reader" in results:
        theirs, ours = results["reader"]["entries"]
        said.append(
            f"`read_libsvm` is {figure(theirs['value'] / ours['value'])} times as fast as scikit-learn's reader on "
            f"{ours['megabytes']:.0f} MB (`python benchmarks/reader.py`)."
        )
    if "startup" in results:
        later = {e["case"]: shown(e["value"], "s") for e in results["startup"]["entries"] if e["contender"] == "later"}
        ours, heavy = later["steelyard learn on 2 MB"], later["import sklearn.linear_model, numba"]
        said.append(
            f"`steelyard learn` on a file of 2 MB takes {ours}, start included, after the first time; importing "
            f"scikit-learn and Numba alone takes {heavy} there (`python benchmarks/startup.py`)."
        )
    return table(["", *cases], rows) + "\n" + "\n".join(said)


def quality(results: dict[str, Result]) -> str:
    """The guide's table of losses: our loss over theirs, over all sets."""
    entries = results["quality"]["entries"]
    rates = max((len(entry["rates"]) for entry in results["rates"]["entries"] if "rates" in entry), default=0)
    rows = []
    for name, label in PEERS.items():
        values = [entry["ratio"] or 0.0 for entry in entries if entry["contender"] == name and entry["counted"]]
        mean, worst, better = overall(values)
        rows.append([label.format(rates=rates, both=2 * rates), mean, worst, better])
    return table(["compared with", "geometric mean", "worst", "no worse on"], rows) + "\n" + measured_on(entries)


def measured_on(entries: list[Result]) -> str:
    """Which sets there were, and how near our loss is to that of the best linear model in hindsight."""
    shapes = [entry for entry in entries if entry["contender"] == "steelyard"]
    cases = [entry["case"] for entry in shapes]
    raw = [case for case in cases if not case.endswith("/scaled")]
    counts = {True: [], False: []}
    for entry in entries:
        if entry["contender"] == "best linear model":
            counts[entry["counted"]].append((entry["case"], entry["ratio"] or 0.0))
    near = [value for _, value in counts[True] if value >= CLIPPED]
    clipped = {case.split("/")[0]: value for case, value in counts[True] if value < CLIPPED}
    shuffles = shapes[0]["shuffles"]
    said = f"{len(raw)} sets, {len(cases) - len(raw)} of them also with their columns scaled; {shuffles} shuffles."
    if not near:
        return said
    said += (
        " The best linear model in hindsight has seen all labels before it predicts; our loss in one pass is "
        f"{overall(near)[0]} times its loss (geometric mean over {len(near)})"
    )
    without = ", ".join(case for case, _ in counts[False])
    said += f", without what it nearly separates ({without})" if without else ""
    said += (
        f", and without {', '.join(clipped)}, where ours is as little as {figure(min(clipped.values()))} of it because "
        "predictions are kept among the labels seen"
        if clipped
        else ""
    )
    return said + "."


def overall(values: list[float]) -> tuple[str, str, str]:
    """Geometric mean, the largest, and the share that is at most one."""
    mean = math.exp(sum(math.log(max(value, FLOOR)) for value in values) / len(values))
    share = sum(value <= 1.0 for value in values) / len(values)
    return f"{mean:.2f}", f"{max(values):.2f}", f"{share:.0%}"
