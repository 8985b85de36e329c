"""The picture of a mixture's shares: it shows the shares, and says what they are of."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard import Mixture, OnlineClassifier, plot_bank

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")


def banks(columns, moments=4, seed=0):
    rng = np.random.default_rng(seed)
    mixture, found = Mixture("logistic"), []
    for _ in range(moments):
        X = rng.normal(size=(50, columns))
        mixture.learn(X, np.sign(X[:, 0] + rng.normal(size=50)))
        found.append(mixture.bank())
    return found


@pytest.fixture(autouse=True)
def _close():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.parametrize("columns", [3, 120])  # with the experts of second order, and without
def test_the_bands_are_the_shares(columns):
    some = banks(columns)
    ax = plot_bank(some, rows=[50, 100, 150, 200])
    assert len(ax.collections) == len(some[0])
    for k, band in enumerate(ax.collections):
        (path,) = band.get_paths()
        for row, bank in zip([50, 100, 150, 200], some, strict=True):
            heights = path.vertices[path.vertices[:, 0] == row, 1]
            assert np.ptp(heights) == pytest.approx(bank[k].weight, abs=1e-12)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rows learned", "share in the mixture")
    assert ax.get_title() == "Shares of the experts in the mixture"
    assert (ax.get_xlim(), ax.get_ylim()) == ((50, 200), (0, 1))
    assert len({text.get_text() for text in ax.get_legend().get_texts()}) == len(some[0])


def test_it_draws_where_it_is_told_to():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert plot_bank(banks(3), ax=ax, title="mine") is ax
    assert (ax.get_title(), ax.get_xlabel()) == ("mine", "moment")


def test_what_makes_no_picture_is_refused():
    some = banks(3)
    with pytest.raises(ValueError, match="at least two moments, got 1"):
        plot_bank(some[:1])
    with pytest.raises(ValueError, match="4 rising numbers"):
        plot_bank(some, rows=[1, 2, 3])
    with pytest.raises(ValueError, match="4 rising numbers"):
        plot_bank(some, rows=[1, 2, 2, 3])
    with pytest.raises(ValueError, match=r"banks\[1\] has other experts"):
        plot_bank([some[0], banks(120)[0]])
    X = np.random.default_rng(0).normal(size=(60, 3))
    many = OnlineClassifier().fit(X, np.arange(60) % 3).bank_
    with pytest.raises(ValueError, match=r"bank_\[k\]"):
        plot_bank([many, many])
