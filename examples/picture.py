"""The pictures of the README and of the first page: what a weight does to one update, and what a rate does to a pass.

python examples/picture.py [FOLDER]
"""

import io
import re
import sys
from pathlib import Path

import numpy as np

import steelyard

NAMES = {"iwa": "IWA (Steelyard)", "linearized": "linearized (SGD)", "aprox": "aProx", "proximal": "proximal"}
COLORS = {  # as on the page that `steelyard paper` writes
    "light": {"iwa": "#00798c", "linearized": "#d1495b", "aprox": "#d18f1d", "proximal": "#7a4fa3", "auto": "#3f4a57"},
    "dark": {"iwa": "#3fc1d3", "linearized": "#ff7d8c", "aprox": "#f2b84b", "proximal": "#bd93ea", "auto": "#c3ccd6"},
}
GROUND = {"light": ("#ffffff", "#222222"), "dark": ("#14181e", "#e4e6eb")}


def one_example(ax, colors, ink):
    """Where one example of weight h sends the prediction."""
    weights = np.logspace(-2, 3, 120)
    for update, name in NAMES.items():
        after = -weights * np.asarray(steelyard.step(0.0, 3.0, weights, loss="squared", update=update))
        inside = after <= 6.0
        ax.plot(weights[inside], after[inside], color=colors[update], lw=2.2, label=name)
    ax.axhline(3.0, color=ink, lw=0.8, ls=":")
    ax.text(0.01, 3.08, "the label")
    ax.set(xscale="log", ylim=(0, 6), xlabel="importance weight of one example", ylabel="prediction after one step")
    ax.set_title("IWA does not overshoot")
    ax.legend(loc="upper left")


def one_pass(ax, colors, ink):
    """The progressive loss of one pass against the rate."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import scale

    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X), 2.0 * y - 1.0
    updates = ("iwa", "linearized")
    result = steelyard.sweep(X, y, loss="logistic", updates=updates, eta0=np.logspace(-3, 3, 25), repeats=5)
    for update, losses in zip(result.updates, result.mean, strict=True):
        inside = losses <= 1.0
        ax.plot(
            result.eta0[inside],
            losses[inside],
            color=colors[update],
            lw=2.2,
            label=f"{NAMES[update].split(' (')[0]}, a rate",
        )
    losses = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(y))
        losses.append(steelyard.Mixture("logistic").learn(X[order], y[order]).average_loss)
    ax.axhline(np.mean(losses), color=colors["auto"], lw=2.2, ls="--", label="Steelyard, no rate")
    ax.set(xscale="log", ylim=(0, 0.8), xlabel="learning rate", ylabel="log loss of one pass (breast_cancer)")
    ax.set_title("No rate to tune")
    ax.legend(loc=(0.22, 0.72))


def small(svg):
    """The same picture in half the bytes: paths to a hundredth of a point, and on one line each."""

    def rounded(path):
        return " ".join(re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}", path[0]).split())

    return re.sub(r'd="[^"]*"', rounded, svg)


def main():
    """Draw it for the light and for the dark theme."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "_static"
    for theme, (ground, ink) in GROUND.items():
        style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True}
        style |= {"axes.titleweight": "bold", "axes.titlelocation": "left", "legend.frameon": False}
        style |= {"grid.color": "#888888", "grid.alpha": 0.25, "axes.facecolor": ground, "figure.facecolor": ground}
        style |= dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
        style |= {"svg.hashsalt": "steelyard", "svg.fonttype": "none", "path.simplify_threshold": 1.0}
        with mpl.rc_context(style):
            for name, draw in (("step", one_example), ("rate", one_pass)):  # on a phone one stands below the other
                figure = Figure(figsize=(4.2, 3.4), layout="constrained")
                draw(figure.subplots(), COLORS[theme], ink)
                text = io.StringIO()
                figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
                (folder / f"why-{name}-{theme}.svg").write_text(small(text.getvalue()), encoding="utf-8")


if __name__ == "__main__":
    main()
