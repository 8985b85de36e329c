"""Three figures that the paper has no room for: one example, a weighted stream, the IWA over the proximal step."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.experiments.plots import COLORS, INK, NAMES, draw_line, log_scale, new_figure, style
from steelyard.losses import Array
from steelyard.updates import UPDATES, step

_LABELS = {"squared": 3.0, "logistic": 1.0}


def figure_one_example(losses: tuple[str, ...] = ("squared", "logistic")) -> Any:
    """Where one example of weight h sends the prediction."""
    with style():
        figure = new_figure((4.6 * len(losses), 3.7))
        for ax, loss in zip(figure.subplots(1, len(losses), squeeze=False).ravel(), losses, strict=True):
            weights, label = np.logspace(-2, 3, 200), _LABELS[loss]
            ax.axhline(label, color=INK, lw=0.9, ls=":", label="the label")
            for update in UPDATES:
                after = -weights * np.asarray(step(0.0, label, weights, loss=loss, update=update))
                dashes = (0, (4.0, 1.6)) if update == "aprox" else "-"
                ax.plot(weights, after, color=COLORS[update], lw=2, ls=dashes, label=NAMES[update])
            pieces = np.array([_seen_often(loss, label, float(h)) for h in weights[::20]])
            ax.plot(weights[::20], pieces, ".", color=INK, ms=7, label="seen in 10,000 pieces", zorder=5)
            log_scale(ax.xaxis)
            ax.set_ylim(0, 6 if loss == "squared" else 12)
            ax.set_xlabel("importance weight h")
            ax.set_ylabel("prediction after the step, from 0")
            ax.set_title(f"{loss} loss, label {label:g}, step length a = h")
            ax.legend(loc="upper left", fontsize=8)
    return figure


def _seen_often(loss: str, y: float, h: float, pieces: int = 10_000) -> float:
    """Plain gradient descent on one example, in pieces of weight h/pieces."""
    p = 0.0
    for _ in range(pieces):
        slope = p - y if loss == "squared" else -y / (1.0 + np.exp(y * p))
        p -= (h / pieces) * slope
    return p


def figure_weighted_stream(weights: Array, losses: dict[str, Array]) -> Any:
    """Final loss against the weight of a few heavy examples; ``losses`` is (weights, repeats) for each contender.

    A line is the mean over the shuffles and a bar reaches from the smallest to the largest; contenders stand beside
    one another at each weight, so that no bar hides another.
    """
    ceiling, repeats = 10.0, next(iter(losses.values())).shape[1]
    with style():
        figure = new_figure((5.6, 4))
        ax = figure.subplots()
        ax.axhline(ceiling, color=INK, lw=0.9, ls=":", label="10 or more")
        for i, (name, values) in enumerate(losses.items()):
            beside = weights * 10 ** (0.035 * (i - (len(losses) - 1) / 2))
            cut = np.minimum(values, ceiling)
            draw_line(ax, beside, np.minimum(values.mean(axis=1), ceiling), name)
            ax.vlines(beside, cut.min(axis=1), cut.max(axis=1), color=COLORS[name], lw=1.1, alpha=0.7)
        log_scale(ax.xaxis)
        log_scale(ax.yaxis)
        ax.set_xlabel("importance weight h of one example in fifty")
        ax.set_ylabel("weighted averaged logistic loss, final model")
        ax.set_title(f"breast_cancer, one pass, rate 1, {repeats} shuffles")
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.93), fontsize=8)
    return figure


def figure_ratio() -> Any:
    """The IWA step over the proximal step of the logistic loss, over margin and step length."""
    with style():
        figure = new_figure((5.6, 4.0))
        ax = figure.subplots()
        margins, lengths = np.linspace(-10, 10, 161), np.logspace(-3, 4, 141)
        m, a = np.meshgrid(margins, lengths)
        ratio = np.asarray(step(m, 1.0, a, update="iwa")) / np.asarray(step(m, 1.0, a, update="proximal"))
        image = ax.pcolormesh(m, a, ratio, cmap="viridis", shading="gouraud", rasterized=True)
        lines = ax.contour(m, a, ratio, levels=[1.01, 1.05, 1.1, 1.2, 1.3], colors="#fdfdfd", linewidths=0.8)
        ax.clabel(lines, fontsize=7)
        log_scale(ax.yaxis)
        ax.grid(False)
        ax.set_xlabel("margin y·p before the step")
        ax.set_ylabel("step length a")
        ax.set_title(f"logistic loss: IWA step ÷ proximal step, 1 to {ratio.max():.2f}")
        figure.colorbar(image, label="IWA ÷ proximal")
    return figure
