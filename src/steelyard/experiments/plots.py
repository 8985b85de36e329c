"""Tables → figures. The only file that imports matplotlib."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

try:
    import matplotlib as mpl
except ImportError:
    raise ImportError("figures need matplotlib: pip install 'steelyard[plot]'") from None
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.path import Path as MarkPath

from steelyard.experiments import curves
from steelyard.experiments.findings import GOOD
from steelyard.experiments.regret import RegretCurve
from steelyard.experiments.sweep import SweepResult
from steelyard.losses import Array

INK = "#1b2430"
COLORS = {"linearized": "#d1495b", "aprox": "#d18f1d", "iwa": "#00798c", "proximal": "#7a4fa3"}
COLORS |= {"sgd": "#7d8793", "auto": "#3f4a57"}
MARKERS = {"linearized": "o", "aprox": "s", "iwa": "^", "proximal": "D", "sgd": "v"}
NAMES = {**curves.NAMES, "sgd": "scikit-learn's SGD", "auto": "mixture (no rate)"}
WIDTHS = {"linearized": 1.5, "aprox": 1.5, "iwa": 1.3, "proximal": 3.4}
"""Where curves coincide the wide one shows on both sides of the narrow one."""
DASHES = {"aprox": (0, (4.0, 1.6))}

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "steelyard",
}
STYLE |= dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
_PANEL = (3.9, 3.0)
"""Inches of a panel with one axis."""


def style() -> Any:
    """A context in which figures are drawn as all of ours are."""
    return mpl.rc_context(STYLE)


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure, in inches, whose parts find their places by themselves."""
    return Figure(figsize=size, layout="constrained")


def log_scale(axis: Any) -> None:
    """A logarithmic axis whose ticks are written without a formula, which takes matplotlib most of a figure's time."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_formatter(lambda value, _: _power_of_ten(value))
    axis.set_minor_formatter(lambda value, _: "")


def _power_of_ten(value: float) -> str:
    exponent = round(np.log10(value)) if value > 0 else 0
    superscripts = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"10{str(exponent).translate(superscripts)}"


_ARROW = MarkPath([(0, -1), (0, 1), (-0.55, 0.25), (0, 1), (0.55, 0.25)], [1, 2, 1, 2, 2])


def draw_line(ax: Axes, x: Array, y: Array, update: str, **options: Any) -> None:
    """A curve; where there are many points, each update's markers stand at points of their own."""
    order = list(COLORS).index(update)
    if len(x) >= 12:
        options |= {"markevery": (order % 4, 4)}
    style: dict[str, Any] = {"lw": WIDTHS.get(update, 1.5), "ls": DASHES.get(update, "-")}
    style |= {"alpha": 0.6, "zorder": 2} if update == "proximal" else {"zorder": 3 + order / 10}
    ax.plot(x, y, color=COLORS[update], marker=MARKERS[update], ms=4.5, label=NAMES[update], **style | options)


def _plain(name: str, length: int = 50) -> str:
    """The name of a data set in a title: not too long, and a dollar is a dollar, not the start of a formula."""
    short = name if len(name) <= length else f"{name[: length // 2]}…{name[-length // 2 + 1 :]}"
    return short.replace("$", r"\$")


def plot_sweep(result: SweepResult, ax: Axes | None = None, *, title: str = "", constant: float | None = None) -> Axes:
    """Mean loss against eta0, a curve an update with a band of one standard deviation over the shuffles.

    The axis ends a little above the worst of the best and the smallest rate; what lies beyond is drawn as an arrow at
    the top, at the rate where the curve leaves, and a line above the axis says to where. A dotted line shows the loss
    of the best ``constant`` prediction, if it is given.
    """
    alone = ax is None
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(5.4, 3.6), layout="constrained").subplots()
    mean, top, bottom = result.mean, *_limits(result)
    notes = []
    for i, update in enumerate(result.updates):
        inside = mean[i] <= top
        draw_line(ax, result.eta0, np.where(inside, mean[i], np.nan), update)
        spread = _finite_spread(result, i)
        low, high = mean[i] - spread, np.minimum(mean[i] + spread, top)
        ax.fill_between(result.eta0, low, high, where=inside, color=COLORS[update], alpha=0.15, lw=0)
        beyond = np.flatnonzero(~inside)
        if beyond.size:
            at, up = result.eta0[beyond], np.full(beyond.size, top)
            mark: dict[str, Any] = {"marker": _ARROW, "ms": 8, "mew": 1.3, "fillstyle": "none"}
            ax.plot(at, up, ls="none", color=COLORS[update], clip_on=False, **mark)
            worst = mean[i, beyond[-1]]
            text = "diverges" if np.isinf(worst) else f"{worst:,.0f}" if 100 <= worst < 1e9 else f"{worst:.3g}"
            notes.append((f"{NAMES[update]}: {text} at η₀ = {at[-1]:g}", COLORS[update]))
    for line, (text, color) in enumerate(reversed(notes)):
        place = {"xy": (1.0, 1.0), "xycoords": "axes fraction", "xytext": (0, 8 + 10 * line)}
        ax.annotate(text, **place, textcoords="offset points", ha="right", fontsize=7.5, color=color)  # type: ignore[arg-type]
    if constant is not None:
        ax.axhline(constant, color=INK, lw=0.9, ls=":", zorder=1, label="best constant prediction")
    log_scale(ax.xaxis)
    ax.set_ylim(bottom - 0.06 * (top - bottom), top)
    ax.set_xlabel("initial learning rate η₀")
    ax.set_ylabel(f"averaged {result.loss} loss")
    title = _plain(title) if title else f"{result.loss} loss, {result.schedule} schedule"
    ax.set_title(title, pad=10.0 + 10.0 * len(notes))
    if alone:
        ax.legend(loc="upper center")
    return ax


def _limits(result: SweepResult) -> tuple[float, float]:
    """Where the axis of losses ends, and the smallest loss."""
    mean = result.mean
    implicit = [i for i, update in enumerate(result.updates) if update != "linearized"] or [0]
    finite = mean[implicit][np.isfinite(mean[implicit])]
    bottom = float(mean[np.isfinite(mean)].min())
    reach = max(float(finite.max()) if finite.size else bottom, float(mean[0, 0]))
    top = min(reach + 0.25 * (reach - bottom), bottom + 4.0 * max(float(mean[0, 0]) - bottom, 0.2 * bottom))
    return max(top, bottom + 1e-3 * abs(bottom)), bottom  # also where nothing varies


def _finite_spread(result: SweepResult, i: int) -> Array:
    """The standard deviation over the shuffles for each rate; 0 where one diverged, and no band is drawn."""
    values = result.average_loss[i]
    whole = (values < 1e150).all(axis=1, keepdims=True)  # squares of larger ones are more than a float can hold
    return np.asarray(np.where(whole, values, 0.0).std(axis=1))


def _ratios(result: SweepResult, ax: Axes) -> None:
    """Each update's loss over the proximal update's, on the axis below a sweep, where curves that coincide part."""
    base = curves.curve(result, "proximal")
    ratios = {update: curves.curve(result, update) / base for update in result.updates}
    implicit = np.concatenate([ratio for update, ratio in ratios.items() if update != "linearized"])
    implicit = implicit[np.isfinite(implicit)]
    top, bottom = max(1.1, float(implicit.max())), min(0.9, float(implicit.min()))
    room = 0.12 * (top - bottom)
    for update, ratio in ratios.items():
        draw_line(ax, result.eta0, np.where(ratio <= top + room, ratio, np.nan), update)
    ax.set_ylim(bottom - room, top + room)
    log_scale(ax.xaxis)
    ax.set_xlabel("initial learning rate η₀")
    ax.set_ylabel("÷ proximal")


def draw_sweep(figure: FigureBase, name: str, result: SweepResult, constant: float | None) -> None:
    """A panel of figures 1, 2 and 4: a sweep, and below it the ratios."""
    notes = int((~(result.mean <= _limits(result)[0])).any(axis=1).sum())
    above = max(43, 23 + 10 * notes) / (72 * HEIGHTS[draw_sweep])  # the title, and a line for each note
    grid: dict[str, Any] = {"left": 0.165, "right": 0.965, "top": 1.0 - above, "bottom": 0.115}
    grid |= {"hspace": 0.1, "height_ratios": (3.0, 1.25)}
    upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw=grid)
    plot_sweep(result, upper, title=name, constant=constant)
    upper.set_xlabel("")
    _ratios(result, lower)
    figure.align_ylabels([upper, lower])


def draw_widths(figure: FigureBase, name: str, result: SweepResult, constant: float | None) -> None:
    """A panel of figure 3: how many decades of rates are good, against what counts as good."""
    del constant
    grid = {"left": 0.165, "right": 0.965, "top": 0.87, "bottom": 0.17}
    ax = figure.subplots(gridspec_kw=grid)
    tolerances = np.logspace(-2, 1, 61)
    for update in result.updates:
        draw_line(ax, tolerances, np.array([curves.width(result, update, t) for t in tolerances]), update)
    for tolerance in GOOD:
        ax.axvline(tolerance, color=INK, lw=0.9, ls=":", zorder=1)
    log_scale(ax.xaxis)
    ax.set_xticks([0.01, 0.1, 1.0, 10.0], ["1 %", "10 %", "100 %", "1000 %"])
    ax.set_ylim(-0.2, np.log10(result.eta0[-1] / result.eta0[0]) + 0.2)
    ax.set_xlabel("a good rate's loss is above the best by at most")
    ax.set_ylabel("decades of good rates")
    ax.set_title(_plain(name))


Draw = Callable[[FigureBase, str, SweepResult, float | None], None]
HEIGHTS: dict[Draw, float] = {draw_sweep: 4.3, draw_widths: 3.0}


def panel(draw: Draw, name: str, result: SweepResult, constant: float | None) -> Figure:
    """One data set alone, for pages that arrange panels by themselves."""
    with style():
        figure = Figure(figsize=(_PANEL[0], HEIGHTS[draw]))
        draw(figure, name, result, constant)
    return figure


def figure_panels(draw: Draw, results: dict[str, SweepResult], constants: dict[str, float], title: str) -> Figure:
    """One panel a data set, with a title and a legend for all."""
    with style():
        columns = min(3, len(results))
        rows = -(-len(results) // columns)
        size = max(_PANEL[0] * columns, 7.0), HEIGHTS[draw] * rows + 0.8
        figure = Figure(figsize=size)
        heights = (0.4, HEIGHTS[draw] * rows, 0.4)
        parts: Any = figure.subfigures(3, 1, height_ratios=heights)
        panels = np.ravel(parts[1].subfigures(rows, columns, squeeze=False))
        for part, (name, result) in zip(panels, results.items(), strict=False):
            draw(part, name, result, constants.get(name))
        parts[0].text(0.5, 0.5, title, ha="center", va="center", fontsize=12)
        handles, labels = panels[0].axes[0].get_legend_handles_labels()
        parts[2].legend(handles, labels, loc="center", ncols=len(labels), fontsize=10 if columns > 1 else 8)
    return figure


def figure_regret(name: str, eta0: float, runs: Sequence[RegretCurve]) -> Figure:
    """True regret (full) and certified bound (dashed) against the round, with the slope of √T for the eye."""
    with style():
        figure = new_figure((6.8, 4.4))
        ax = figure.subplots()
        for run in runs:
            ax.plot(run.rounds, np.where(run.regret > 0, run.regret, np.nan), color=COLORS[run.update], lw=1.8)
            ax.plot(run.rounds, np.where(run.bound > 0, run.bound, np.nan), color=COLORS[run.update], lw=1.4, ls="--")
            ax.plot([], [], color=COLORS[run.update], lw=1.8, label=NAMES[run.update])
        ax.plot([], [], color=INK, lw=1.8, label="true regret")
        ax.plot([], [], color=INK, lw=1.4, ls="--", label="certified bound")
        rounds = runs[0].rounds
        middle = np.median([run.bound[-1] for run in runs if np.isfinite(run.bound[-1])])
        ax.plot(rounds, middle * np.sqrt(rounds / rounds[-1]), color="0.6", lw=1, ls=":", label="slope of √T")
        log_scale(ax.xaxis)
        log_scale(ax.yaxis)
        ax.set_xlabel("rounds T")
        ax.set_ylabel("regret against the best model in hindsight")
        ax.set_title(f"{_plain(name, 40)}: regret and its certified bound, η₀ = {eta0:g}")
        ax.legend(ncols=2, fontsize=8)
    return figure


def save(figure: Figure, folder: str | os.PathLike[str], name: str) -> None:
    """Write a figure as PNG, SVG and PDF."""
    with style():
        for kind, metadata in (("png", {}), ("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
            figure.savefig(Path(folder) / f"{name}.{kind}", dpi=150, metadata=metadata)


def as_svg(figure: Figure) -> str:
    """A figure as the text of an SVG file."""
    import io

    text = io.StringIO()
    with style(), mpl.rc_context({"svg.fonttype": "none"}):  # text stays text: a third of the size
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
