"""Shares of a mixture's experts along a stream → a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from steelyard.losses import Array
from steelyard.mixture import Expert

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAMILIES = {"1/sqrt(n)": ("Blues", "1/√n"), "1/n": ("Oranges", "1/n"), "full matrix": ("Purples", "full matrix")}
"""Experts that learn in one way have shades of one colour: the map of it, and the name in the legend."""


def plot_bank(
    banks: Sequence[Sequence[Expert]],
    rows: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    title: str = "Shares of the experts in the mixture",
) -> Axes:
    """Draw the shares of a mixture's experts as they change along a stream. Needs matplotlib.

    Parameters
    ----------
    banks : list of banks
        What :meth:`Mixture.bank`, or ``bank_`` of an estimator, gave at some moments, in order. Of an estimator with
        more than two classes take one class: ``model.bank_[k]``.
    rows : array, optional
        How many rows had been learned at each of these moments. By default the moments are counted.
    ax : matplotlib Axes, optional
        By default a new figure.
    title : str

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import Mixture, plot_bank
    >>> rng = np.random.default_rng(0)
    >>> mixture, banks = Mixture("squared"), []
    >>> for _ in range(5):
    ...     X = rng.normal(size=(100, 2))
    ...     _ = mixture.learn(X, X @ [1.0, 2.0])
    ...     banks.append(mixture.bank())
    >>> ax = plot_bank(banks, rows=100 * np.arange(1, 6))
    >>> ax.get_ylabel()
    'share in the mixture'
    """
    shares, moments = _shares(banks), np.arange(1, len(banks) + 1) if rows is None else np.asarray(rows, np.float64)
    if moments.shape != (len(banks),) or not np.all(np.diff(moments) > 0):
        raise ValueError(f"rows must be {len(banks)} rising numbers, one for each bank, got {moments.tolist()}")
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'steelyard[plot]'") from None
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(8.0, 4.0), layout="constrained").subplots()
    colors, labels = [], []
    for decay in dict.fromkeys(expert.decay for expert in banks[0]):
        experts = [expert for expert in banks[0] if expert.decay == decay]
        shades, name = _FAMILIES.get(decay, ("Greys", decay))
        colors += list(mpl.colormaps[shades](np.linspace(0.35, 0.9, len(experts))))
        labels += [f"rate {expert.eta0:.2g}, {name}" for expert in experts]
    ax.stackplot(moments, shares.T, colors=colors, labels=labels, lw=0)
    ax.set(xlim=(moments[0], moments[-1]), ylim=(0.0, 1.0), title=title)
    ax.set_xlabel("moment" if rows is None else "rows learned")
    ax.set_ylabel("share in the mixture")
    handles, names = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], names[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)
    return ax


def _shares(banks: Sequence[Sequence[Expert]]) -> Array:
    """The shares, (moments, experts), of banks that belong together."""
    if len(banks) < 2:
        raise ValueError(f"a course of shares needs the banks of at least two moments, got {len(banks)}")
    for k, bank in enumerate(banks):
        if not all(isinstance(expert, Expert) for expert in bank):
            raise ValueError(
                f"banks[{k}] is no list of experts: take Mixture.bank() or bank_, and of several classes one, bank_[k]"
            )
        if [(e.eta0, e.decay) for e in bank] != [(e.eta0, e.decay) for e in banks[0]]:
            raise ValueError(f"banks[{k}] has other experts than banks[0]: they must be of one mixture")
    return np.array([[expert.weight for expert in bank] for bank in banks])
