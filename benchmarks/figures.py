"""Results of benchmarks as pictures: each takes the JSON of one benchmark and gives a figure.

The ground is transparent, and the site changes light and dark where its theme is dark (docs/_static/steelyard.css); a
contender has the same colour everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steelyard.experiments.plots import COLORS, MARKERS, NAMES

STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "steelyard",
}
OURS, SKLEARN, VW, RIVER, LIMIT = COLORS["auto"], COLORS["sgd"], "#a0522d", "#4b8b3b", "#222222"
CLOSE = "#6fb7c1"  # IWA with a metric
LOOKS: dict[str, dict[str, Any]] = {
    "scikit-learn SGDClassifier": {"color": SKLEARN, "marker": "v", "label": "scikit-learn SGD"},
    "Learner, IWA, scalar metric": {"color": COLORS["iwa"], "marker": "^", "label": "IWA, one rate, scalar metric"},
    "Learner, IWA, diagonal metric": {"color": CLOSE, "marker": "D", "label": "IWA, one rate, diagonal metric"},
    "Learner, IWA, full metric": {"color": COLORS["iwa"], "marker": "s", "ls": "--", "label": "IWA, full metric"},
    "Mixture, no learning rate": {"color": OURS, "marker": "o", "label": "mixture, no rate"},
    "gather and scatter alone": {"color": LIMIT, "marker": "x", "ls": "--", "label": "limit: gather and scatter alone"},
    "memory bandwidth": {"color": LIMIT, "ls": ":", "label": "limit: memory bandwidth"},
    "flow": {"color": LIMIT, "ls": ":", "lw": 2.5, "label": "gradient flow (50 digits)"},
    "Vowpal Wabbit": {"color": VW, "marker": "P", "label": "Vowpal Wabbit"},
    "Vowpal Wabbit --invariant --power_t 0": {"color": VW, "marker": "P", "ls": "--", "label": "VW --invariant"},
    "River": {"color": RIVER, "marker": "*", "label": "River"},
    "scikit-learn SGD, constant": {"color": SKLEARN, "marker": "v", "label": "scikit-learn, constant"},
    "scikit-learn SGD, invscaling": {"color": SKLEARN, "marker": "v", "ls": "--", "label": "scikit-learn, invscaling"},
    **{
        name: {"color": COLORS[name], "marker": MARKERS[name], "label": NAMES[name]}
        for name in MARKERS
        if name != "sgd"
    },
}
LOOKS |= {f"Learner, {name}": LOOKS[name] for name in MARKERS if name != "sgd"}
DOTS = {
    "scikit-learn best": {"color": SKLEARN, "marker": "v", "label": "scikit-learn SGD, best rate"},
    "River best": {"color": RIVER, "marker": "*", "label": "River, best rate"},
    "VW default": {"color": VW, "marker": "P", "mfc": "none", "label": "Vowpal Wabbit, default"},
    "VW best": {"color": VW, "marker": "P", "label": "Vowpal Wabbit, best rate"},
    "VW coin": {"color": VW, "marker": "x", "label": "Vowpal Wabbit --coin"},
    "iwa best": {"color": COLORS["iwa"], "marker": "^", "label": "our IWA, best rate"},
    "best linear model": {"color": LIMIT, "marker": "|", "label": "best linear model in hindsight"},
}
LOWEST = 0.01  # ratios below are drawn here: the contender diverged
RATE_SETS = ("a9a", "ijcnn1", "covtype.libsvm.binary.scale", "cadata", "abalone_scale", "reuters")
RATE_TOP = 5.0


def line(ax: Axes, x: Iterable[float], y: Iterable[float], name: str, **more: Any) -> None:
    """A curve in the looks of its contender; what is not a number is left out."""
    values = [math.nan if each is None else each for each in y]
    ax.plot(list(x), values, **{"lw": 1.5, "ms": 4, **LOOKS[name], **more})


def contenders(entries: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(entry["contender"] for entry in entries))


def below(figure: Figure, ax: Axes, columns: int) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)


def floor(result: dict[str, Any]) -> Figure:
    """Nanoseconds a non-zero against the length of rows, a panel a table size."""
    entries = [entry for entry in result["entries"] if "columns" in entry]
    tables = sorted({entry["columns"] for entry in entries})
    figure = Figure(figsize=(3.3 * len(tables), 4.2), layout="constrained")
    axes = figure.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    for ax, columns in zip(axes, tables, strict=True):
        for name in contenders(entries):
            those = [each for each in entries if each["columns"] == columns and each["contender"] == name]
            line(ax, [each["nonzeros"] for each in those], [each["value"] * 1e9 for each in those], name)
        lengths = sorted({entry["nonzeros"] for entry in entries})
        ax.set(xscale="log", yscale="log", xlabel="non-zeros in a row", ylabel="ns for each non-zero")
        ax.set_xticks(lengths, [str(length) for length in lengths])
        ax.minorticks_off()
        ax.set_title(f"{columns:,} features: a table of {size(8 * columns)}")
    for ax in axes[1:]:
        ax.set_ylabel("")
    below(figure, axes[0], 3)
    figure.suptitle("One pass of the logistic loss, and the physical limit")
    return figure


def size(number: int) -> str:
    return f"{number >> 10} KiB" if number < 1 << 20 else f"{number >> 20} MiB"


def growth(result: dict[str, Any]) -> Figure:
    """Seconds against rows and against columns, with fitted slopes."""
    cases = list(dict.fromkeys(entry["case"] for entry in result["entries"]))
    figure = Figure(figsize=(5.0 * len(cases), 4.2), layout="constrained")
    for ax, case in zip(figure.subplots(1, len(cases), squeeze=False)[0], cases, strict=True):
        for entry in (entry for entry in result["entries"] if entry["case"] == case):
            label = f"{LOOKS[entry['contender']]['label']}: slope {entry['slope']:.2f}"
            line(ax, entry["sizes"], entry["value"], entry["contender"], label=label)
        what, _, more = case.partition(", ")
        ax.set(xscale="log", yscale="log", xlabel=f"number of {what}", ylabel="seconds of one pass")
        ax.set_title(f"Growth in {what} ({more})")
        ax.legend(fontsize=7.5)
    return figure


def quality(result: dict[str, Any]) -> Figure:
    """A row a set, a mark a contender: our loss over its loss."""
    entries = [entry for entry in result["entries"] if entry["contender"] in DOTS and entry.get("counted")]
    sets = list(dict.fromkeys(entry["case"] for entry in entries))[::-1]
    figure = Figure(figsize=(7.6, 1.6 + 0.27 * len(sets)), layout="constrained")
    ax = figure.subplots()
    ax.axvline(1.0, color=OURS, lw=1.5, label="our default, no rate")
    for k, (name, looks) in enumerate(DOTS.items()):
        those = [entry for entry in entries if entry["contender"] == name]
        x = [max(entry["ratio"] or 0.0, LOWEST) for entry in those]
        aside = 0.3 - 0.1 * k  # marks that coincide stand above each other
        ax.plot(x, [sets.index(entry["case"]) + aside for entry in those], ls="none", **{"ms": 5, **looks})
    ax.set(xscale="log", xlabel="our loss over theirs: left of the line we are better", ylabel="set")
    ticks = [0.01, 0.03, 0.1, 0.3, 1.0, 2.0]
    ax.set_xticks(ticks, ["≤ 0.01", *(f"{each:g}" for each in ticks[1:])])
    ax.minorticks_off()
    ax.set_yticks(range(len(sets)), sets)
    ax.set_title("Progressive loss of one pass, untuned, against tuned peers")
    below(figure, ax, 3)
    return figure


def weights(result: dict[str, Any]) -> Figure:
    """Where a step lands for each weight, and how a weight differs from copies."""
    figure = Figure(figsize=(11.5, 4.2), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, loss, top in zip(axes, ("squared", "logistic"), (6.0, 10.0), strict=False):
        those = [entry for entry in result["entries"] if entry["case"] == f"lands, {loss} loss"]
        for entry in those:
            line(ax, entry["weights"], entry["value"], entry["contender"], ms=0)
        ax.set(xscale="log", ylim=(0.0, top), xlabel="weight h", ylabel="prediction after one step, from 0")
        ax.set_title(f"Where it lands: {loss} loss, label {those[0]['label']:g}")
        ax.legend(fontsize=7.5, loc="upper left")
    for k, entry in enumerate(entry for entry in result["entries"] if entry["case"] == "copies"):
        wide = {"lw": 3.4 - 0.35 * k, "ms": 9.0 - 0.7 * k}  # of curves that coincide, each shows beside the next
        line(axes[2], entry["weights"][1:], entry["value"][1:], entry["contender"], **wide)  # weight 1: no difference
    axes[2].set(xscale="log", yscale="log", xlabel="weight h", ylabel="largest difference of predictions, relative")
    axes[2].set_title("Weight h once, or h copies side by side")
    axes[2].legend(fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.42))
    return figure


def rates(result: dict[str, Any]) -> Figure:
    """Loss over that of our default on the same rows, against the rate: a row a set, our updates beside the peers."""
    entries = result["entries"]
    known = list(dict.fromkeys(entry["case"] for entry in entries))
    sets = [name for name in RATE_SETS if name in known][:6] or known[:6]
    figure = Figure(figsize=(9.6, 0.9 + 2.7 * len(sets)), layout="constrained")
    grid = figure.subplots(len(sets), 2, squeeze=False, sharey=True)
    for axes, name in zip(grid, sets, strict=True):
        those = {entry["contender"]: entry for entry in entries if entry["case"] == name and "rates" in entry}
        base = {entry["contender"]: entry["value"] for entry in entries if entry["case"] == name}
        for k, (contender, entry) in enumerate(those.items()):
            ax = axes[0 if contender in NAMES else 1]
            ours = base["steelyard on River's rows" if contender == "River" else "steelyard"]
            y = np.array([math.inf if each is None else each / ours for each in entry["value"]])
            more = (
                {"ls": "--"} if contender == "aprox" else {"lw": 3.4, "alpha": 0.6} if contender == "proximal" else {}
            )
            line(ax, entry["rates"], np.where(y <= RATE_TOP, y, np.nan), contender, ms=6, **more)
            gone = np.array(entry["rates"])[y > RATE_TOP]
            top = np.full(gone.size, RATE_TOP / 1.09 ** (k % 4))  # below one another
            ax.plot(gone, top, ls="none", marker=6, ms=6, color=LOOKS[contender]["color"])
        for ax, who in zip(axes, ("our updates", "peers"), strict=True):
            ax.axhline(1.0, color=OURS, lw=1.8, label="mixture, no rate")
            ax.set(xscale="log", yscale="log", ylim=(0.7, RATE_TOP))
            ax.set_yticks([1, 2, 5], ["1", "2", "5"])
            ax.minorticks_off()
            ax.set_title(f"{name}: {who}")
            ax.set_xlabel("learning rate η₀")
        axes[0].set_ylabel("loss over that of our default")
    for ax, side in zip(grid[0], ("left", "right"), strict=True):
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc=f"outside upper {side}", ncols=2, fontsize=9)
    figure.supxlabel("triangles near the top: the loss at this rate is beyond the axis", fontsize=10)
    return figure


def text(result: dict[str, Any]) -> Figure:
    """Whole processes from text to a model, as parts of Vowpal Wabbit's time."""
    those = [entry for entry in result["entries"] if entry["of"] == "VW" != entry["contender"]][::-1]
    figure = Figure(figsize=(7.6, 1.2 + 0.34 * len(those)), layout="constrained")
    ax = figure.subplots()
    colors = [OURS if "no rate" in entry["contender"] else COLORS["iwa"] for entry in those]
    ax.barh(range(len(those)), [entry["ratio"] for entry in those], color=colors, height=0.6)
    ax.axvline(1.0, color=VW, lw=1.8, label="Vowpal Wabbit")
    ax.set_yticks(range(len(those)), [f"{entry['case']}: {entry['contender']}" for entry in those], fontsize=7.5)
    ax.set(xlabel="time as a part of Vowpal Wabbit's", ylabel="input: learner")
    ax.legend(fontsize=8)
    ax.set_title("From text to a model, whole processes")
    return figure


FIGURES: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "floor": floor,
    "growth": growth,
    "text": text,
    "quality": quality,
    "rates": rates,
    "weights": weights,
}


def draw(results: dict[str, dict[str, Any]], folder: Path) -> list[Path]:
    """Write the pictures of those results that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in FIGURES.items():
        if name in results:
            with mpl.rc_context(STYLE):
                paths.append(folder / f"{name}.svg")
                figure(results[name]).savefig(paths[-1], transparent=True, metadata={"Date": None})
    return paths
