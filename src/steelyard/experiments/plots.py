"""Tables → figures. The only file that imports matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import matplotlib as mpl
except ImportError:
    raise ImportError("figures need matplotlib: pip install 'steelyard[plot]'") from None
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steelyard.experiments import claims
from steelyard.experiments.regret import RegretCurve
from steelyard.experiments.sweep import SweepResult
from steelyard.losses import Array
from steelyard.updates import step

COLORS = {"linearized": "#d1495b", "aprox": "#edae49", "iwa": "#00798c", "proximal": "#30638e"}
COLORS |= {"sgd": "#8d96a3", "auto": "#5b3a8c"}
MARKERS = {"linearized": "o", "aprox": "s", "iwa": "^", "proximal": "D", "sgd": "v"}
NAMES = {**claims.NAMES, "sgd": "scikit-learn SGD", "auto": "mixture (no rate)"}

_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "steelyard",
}


def _line(ax: Axes, x: Array, y: Array, update: str, **options: Any) -> None:
    ax.plot(x, y, color=COLORS[update], marker=MARKERS[update], ms=3.5, lw=1.5, label=NAMES[update], **options)


def _plain(name: str, length: int = 50) -> str:
    """The name of a data set in a title: not too long, and a dollar is a dollar, not the start of a formula."""
    short = name if len(name) <= length else f"{name[: length // 2]}…{name[-length // 2 + 1 :]}"
    return short.replace("$", r"\$")


def plot_sweep(result: SweepResult, ax: Axes | None = None, *, title: str = "") -> Axes:
    """Mean loss against eta0, a curve an update with a band of one standard deviation over the shuffles.

    The axis ends a little above the worst of the best and the smallest rate; what lies beyond is drawn as an arrow at
    the top, at the rate where the curve leaves.
    """
    alone = ax is None
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(5.4, 3.6), layout="constrained").subplots()
    mean = result.mean
    implicit = [i for i, update in enumerate(result.updates) if update != "linearized"] or [0]
    finite = mean[implicit][np.isfinite(mean[implicit])]
    bottom = float(mean[np.isfinite(mean)].min())
    reach = max(float(finite.max()) if finite.size else bottom, float(mean[0, 0]))
    top = min(reach + 0.25 * (reach - bottom), bottom + 4.0 * max(float(mean[0, 0]) - bottom, 0.2 * bottom))
    for i, update in enumerate(result.updates):
        inside = mean[i] <= top
        _line(ax, result.eta0, np.where(inside, mean[i], np.nan), update)
        spread = _finite_spread(result, i)
        low, high = mean[i] - spread, np.minimum(mean[i] + spread, top)
        ax.fill_between(result.eta0, low, high, where=inside, color=COLORS[update], alpha=0.15, lw=0)
        beyond = np.flatnonzero(~inside)
        if beyond.size:
            ax.plot(
                result.eta0[beyond],
                np.full(beyond.size, top),
                ls="none",
                marker=r"$\uparrow$",
                ms=7,
                color=COLORS[update],
                clip_on=False,
            )
            worst = mean[i, beyond[-1]]
            text = "diverges" if np.isinf(worst) else f"{worst:.3g}"
            ax.annotate(
                f"{NAMES[update]}: {text} at {result.eta0[beyond[-1]]:g}",
                (result.eta0[beyond[-1]], top),
                xytext=(0, -12 - 10 * i),
                textcoords="offset points",
                ha="right",
                fontsize=7,
                color=COLORS[update],
            )
    ax.set_xscale("log")
    ax.set_ylim(bottom - 0.06 * (top - bottom), top)
    ax.set_xlabel("initial learning rate η₀")
    ax.set_ylabel(f"average {result.loss} loss")
    ax.set_title(_plain(title) if title else f"{result.loss} loss, {result.schedule} schedule")
    if alone:
        ax.legend(loc="upper center")
    return ax


def _finite_spread(result: SweepResult, i: int) -> Array:
    """The standard deviation over the shuffles for each rate; 0 where one diverged, and no band is drawn."""
    values = result.average_loss[i]
    whole = (values < 1e150).all(axis=1, keepdims=True)  # squares of larger ones are more than a float can hold
    return np.asarray(np.where(whole, values, 0.0).std(axis=1))


def figure_sweeps(results: dict[str, SweepResult], title: str) -> Figure:
    """The paper's figures 1 and 2: one panel a data set."""
    with mpl.rc_context(_STYLE):
        columns = min(3, len(results))
        rows = -(-len(results) // columns)
        figure = Figure(figsize=(max(4.2 * columns, 7.0), 3.3 * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, (name, result) in zip(axes, results.items(), strict=False):
            plot_sweep(result, ax=ax, title=name)
        for ax in axes[len(results) :]:
            ax.set_visible(False)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.suptitle(title)
    return figure


def figure_one_example() -> Figure:
    """Where one example of weight h sends the prediction, for the squared and the logistic loss."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        weights = np.logspace(-2, 3, 200)
        for ax, loss, label in zip(figure.subplots(1, 2), ("squared", "logistic"), (3.0, 1.0), strict=True):
            for update in ("linearized", "aprox", "iwa", "proximal"):
                after = -weights * np.asarray(step(0.0, label, weights, loss=loss, update=update))
                ax.plot(weights, after, color=COLORS[update], lw=2, label=NAMES[update])
            pieces = np.array([_seen_often(loss, label, float(h)) for h in weights[::20]])
            ax.plot(weights[::20], pieces, "k.", ms=6, label="seen in 10,000 pieces")
            if loss == "squared":
                ax.axhline(label, color="k", lw=0.8, ls=":")
                ax.text(0.012, label, " the label", va="bottom", fontsize=8)
            ax.set_xscale("log")
            ax.set_ylim(0, 6 if loss == "squared" else 12)
            ax.set_xlabel("importance weight h (rate 1, ‖q‖ = 1)")
            ax.set_ylabel("prediction after the step, from 0")
            ax.set_title(f"{loss} loss, label {label:g}: who overshoots, who is exact")
        ax.legend(loc="upper left")
    return figure


def _seen_often(loss: str, y: float, h: float, pieces: int = 10_000) -> float:
    """Plain gradient descent on one example, in pieces of weight h/pieces."""
    p = 0.0
    for _ in range(pieces):
        slope = p - y if loss == "squared" else -y / (1.0 + np.exp(y * p))
        p -= (h / pieces) * slope
    return p


def figure_weighted_stream(weights: Array, losses: dict[str, Array]) -> Figure:
    """Final loss against the weight of a few heavy examples; ``losses`` is (weights, repeats) for each contender."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        ax = figure.subplots()
        ceiling = 10.0
        for name, values in losses.items():
            mean = values.mean(axis=1)
            _line(ax, weights, np.minimum(mean, ceiling), name)
            ax.fill_between(
                weights,
                np.minimum(values.min(axis=1), ceiling),
                np.minimum(values.max(axis=1), ceiling),
                color=COLORS[name],
                alpha=0.15,
                lw=0,
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.axhline(ceiling, color="k", lw=0.6, ls=":")
        ax.text(weights[0], ceiling, " 10 or more", va="bottom", fontsize=8)
        ax.set_xlabel("importance weight of one example in fifty")
        ax.set_ylabel("final weighted average logistic loss")
        ax.set_title("breast_cancer with a few heavy examples: one pass, rate 1")
        ax.legend()
    return figure


def figure_regret(name: str, eta0: float, runs: Sequence[RegretCurve]) -> Figure:
    """True regret (full) and certified bound (dashed) against the round, with the slope of √T for the eye."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.8, 4.4), layout="constrained")
        ax = figure.subplots()
        for run in runs:
            ax.plot(run.rounds, np.where(run.regret > 0, run.regret, np.nan), color=COLORS[run.update], lw=1.8)
            ax.plot(run.rounds, np.where(run.bound > 0, run.bound, np.nan), color=COLORS[run.update], lw=1.4, ls="--")
            ax.plot([], [], color=COLORS[run.update], lw=1.8, label=NAMES[run.update])
        ax.plot([], [], color="k", lw=1.8, label="true regret")
        ax.plot([], [], color="k", lw=1.4, ls="--", label="certified bound")
        rounds = runs[0].rounds
        middle = np.median([run.bound[-1] for run in runs if np.isfinite(run.bound[-1])])
        ax.plot(rounds, middle * np.sqrt(rounds / rounds[-1]), color="0.6", lw=1, ls=":", label="slope of √T")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("rounds T")
        ax.set_ylabel("regret against the best model in hindsight")
        ax.set_title(f"{_plain(name, 40)}: regret and its certified bound, η₀ = {eta0:g}")
        ax.legend(ncols=2, fontsize=8)
    return figure


def figure_ratio() -> Figure:
    """The IWA step over the proximal step of the logistic loss, over margin and step length."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        ax = figure.subplots()
        margins, lengths = np.linspace(-10, 10, 161), np.logspace(-3, 4, 141)
        m, a = np.meshgrid(margins, lengths)
        ratio = np.asarray(step(m, 1.0, a, update="iwa")) / np.asarray(step(m, 1.0, a, update="proximal"))
        image = ax.pcolormesh(m, a, ratio, cmap="viridis", shading="gouraud", rasterized=True)
        lines = ax.contour(m, a, ratio, levels=[1.01, 1.05, 1.1, 1.2, 1.3], colors="w", linewidths=0.8)
        ax.clabel(lines, fontsize=7)
        ax.set_yscale("log")
        ax.grid(False)
        ax.set_xlabel("margin y·p before the step")
        ax.set_ylabel("step length a = h‖q‖²/λ")
        ax.set_title(f"logistic loss: IWA step ÷ proximal step (1 to {ratio.max():.2f})")
        figure.colorbar(image, label="ratio")
    return figure


def save(figure: Figure, folder: str | os.PathLike[str], name: str) -> None:
    """Write a figure as PNG, SVG and PDF."""
    with mpl.rc_context(_STYLE):
        for kind, metadata in (("png", {}), ("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
            figure.savefig(Path(folder) / f"{name}.{kind}", dpi=150, metadata=metadata)
