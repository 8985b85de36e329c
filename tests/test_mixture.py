"""The self-tuning mixture: its guarantee on any data, no divergence, and a double-precision twin written plainly."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

import steelyard
from naive_mixture import NaiveMixture
from steelyard import Bank, Learner, Mixture, OnlineClassifier, OnlineRegressor, cli
from steelyard.data.libsvm import LibsvmSource
from steelyard.kernels import layout
from steelyard.kernels.compile import jit
from steelyard.kernels.second import _way
from steelyard.kernels.steps.lanes import decay_lanes, exp_lanes
from steelyard.kernels.steps.logistic import logistic_lanes, logistic_sixteen_gap
from steelyard.kernels.vectors import put_lanes, take_lanes
from steelyard.mixture import RATES

LOSSES = ["logistic", "squared", "hinge", "squared_hinge", "exponential", "logarithmic", "hellinger"]
LOSSES += ["absolute", "quantile", "huber", "poisson"]


def labels_for(loss, n, rng, scale=1.0):
    if loss == "poisson":
        return rng.poisson(3.0, n).astype(float)
    if loss in ("squared", "absolute", "quantile", "huber"):
        return rng.normal(size=n) * scale
    return rng.choice([-1.0, 1.0], n)


def rough_rows(rng, n, d):
    """Dense, sparse, offset, heavy-tailed."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(0, rng.choice([0, 3]), (n, d)) + rng.choice([0.0, 1.0, 1e3], d)
    X[rng.random((n, d)) < rng.choice([0.0, 0.1, 0.6])] = 0.0
    return X


# ---------------------------------------------------------------------------------------------- vectors


@jit
def _lanes(x, a, ratio):
    for i in range(0, x.size, 8):
        exp_lanes(x, i)
        decay_lanes(a, i, ratio)


@jit
def _bank(p, y, a, value, slope, c, gap):
    for i in range(0, p.size, 16):
        logistic_sixteen_gap(p, y, a, i, value, slope, c, gap)


def test_vectors_have_the_digits_of_scalars():
    rng = np.random.default_rng(0)
    x, a, ratio = rng.uniform(-700, 700, 8000), 10.0 ** rng.uniform(-300, 300, 8000), np.empty(8000)
    e, decay = np.exp(x), -np.expm1(-a) / a
    _lanes(x, a, ratio)
    np.testing.assert_allclose(x, e, rtol=1e-15)
    np.testing.assert_allclose(ratio, decay, rtol=1e-15)
    p, y = rng.uniform(-30, 30, 8000), rng.choice([-1.0, 1.0], 8000)
    a = 10.0 ** np.where(rng.random(8000) < 0.5, rng.uniform(-100, 8, 8000), rng.uniform(-5, 4, 8000))
    value, slope, c, gap = np.empty((4, 8000))
    _bank(p, y, a, value, slope, c, gap)
    from steelyard.updates import evaluate

    expected = evaluate(steelyard.get_loss("logistic"), "iwa", p, y, a)
    for got, want, digits in zip((value, slope, c), expected[:3], (2e-15, 1e-15, 2e-13), strict=True):
        np.testing.assert_allclose(got, want, rtol=digits)
    np.testing.assert_allclose(gap, expected[3], rtol=1e-7, atol=1e-13)
    assert (gap >= 0.0).all()


@jit
def _there_and_back(offsets, doubles, singles, table, shift):
    n, mean, inverse = doubles[:2400], doubles[2400:4800], doubles[4800:]
    v, grown, curve = singles[:2400], singles[2400:4800], singles[4800:]
    for e in range(np.uint64(0), np.uint64(2200), np.uint64(8)):
        take_lanes((offsets, n, mean, v, inverse, grown, curve), e, table, shift)
    for e in range(2200):
        v[e] += np.float32(1.0)
    put_lanes((offsets, n, mean, v, grown, curve), 2200, table, shift)


def test_statistics_come_into_vectors_and_back():
    rng = np.random.default_rng(0)
    records = rng.normal(size=(2200, 16)).astype(np.float32)
    records[:, 11] = np.arange(-1100, 1100)
    before, offsets = records.copy(), np.uint64(16) * rng.permutation(2200).astype(np.uint64)
    doubles, singles = np.empty(7200), np.empty(7200, np.float32)
    _there_and_back(np.append(offsets, offsets[:200]), doubles, singles, records.reshape(-1), np.uint64(8))
    order = offsets.astype(int) // 16
    wide = before.view(np.float64)[order]
    np.testing.assert_array_equal(doubles[:2200], wide[:, 6])
    np.testing.assert_array_equal(doubles[2400:4600], wide[:, 7])
    np.testing.assert_array_equal(doubles[4800:7000], np.ldexp(1.0, np.minimum(1100 - order, 1023)))
    np.testing.assert_array_equal(singles[2400:4600], before[order, 8])
    np.testing.assert_array_equal(singles[4800:7000], before[order, 9])
    before[:, 10] += np.float32(1.0)
    np.testing.assert_array_equal(records, before)


@jit
def _steps_of_eight(p, y, a, value, slope, likely, ratio):
    right = True
    for i in range(0, p.size, 8):
        e = i + 8
        right &= logistic_lanes(p[i:e], y, a[i:e], value[i:e], slope[i:e], likely[i:e], ratio[i:e])
    return right


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("longest", [-0.5, 8.0])  # all of them short, or some long
def test_eight_steps_have_the_digits_of_weights(label, longest):
    from steelyard.updates import evaluate

    rng = np.random.default_rng(0)
    p, a = label * rng.uniform(-10, 30, 8000), 10.0 ** rng.uniform(-9, longest, 8000)
    value, slope, likely, ratio = np.empty((4, 8000))
    assert _steps_of_eight(p, label, a, value, slope, likely, ratio)
    expected = evaluate(steelyard.get_loss("logistic"), "iwa", p, np.full(8000, label), a)
    np.testing.assert_allclose(value, expected[0], rtol=2e-15)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-15)
    np.testing.assert_allclose(likely, 1.0 / (1.0 + np.exp(-label * p)), rtol=1e-14)
    np.testing.assert_allclose(ratio, expected[2] / expected[1], rtol=1e-6 if longest > 0.0 else 1e-11)
    assert not _steps_of_eight(31.0 + 0.0 * p, label, a, value, slope, likely, ratio)


# ------------------------------------------------------------------------------------------ a plain twin


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "offset", "weights", "wide"])
def test_the_mixture_is_what_its_formulas_say(loss, kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 4)) * [1.0, 30.0, 1e-3, 1.0]
    if kind == "sparse":
        X[rng.random(X.shape) < 0.5] = 0.0
    if kind == "offset":
        X += [5.0, -400.0, 0.0, 1.0]
        X[70:, 0] = 0.0  # a centered column that loses its center
    y = X @ [1.0, 0.02, 300.0, -1.0] + rng.normal(size=120)
    if kind == "wide":  # too many columns for second order
        X = np.column_stack([X, rng.normal(size=(120, 100))])
    y = np.sign(y) if loss == "logistic" else 7.0 * y + 40.0
    h = 10.0 ** rng.uniform(-1, 1.5, 120) if kind == "weights" else np.ones(120)
    trace = Mixture(loss).learn(X, y, h)
    twin = NaiveMixture(loss, X.shape[1])
    expected = np.array([twin.learn(*row) for row in zip(X, y, h, strict=True)])
    scale = np.abs(expected[:, 0]).max()
    np.testing.assert_allclose(trace.prediction, expected[:, 0], atol=1e-4 * scale)
    np.testing.assert_allclose(trace.loss, expected[:, 1], rtol=2e-3, atol=1e-5 * expected[:, 1].max())


def test_two_classes_are_one_problem_seen_from_both_sides():
    """Of two outputs each makes the shared matrix grow by the same: so they are what one output is."""
    X, y = load_breast_cancer(return_X_y=True)
    both = Mixture("logistic", n_outputs=2).learn(X, y).prediction
    one = Mixture("logistic").learn(X, np.where(y == 1, 1.0, -1.0)).prediction
    np.testing.assert_allclose(both[:, 1], one, atol=1e-4 * np.abs(one).max())
    np.testing.assert_allclose(both[:, 0], -one, atol=1e-4 * np.abs(one).max())


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_matrix_of_second_order_stays_one(loss):
    """Columns that are equal, nearly equal, constant and heavy-tailed: what is not known stays as the prior has it."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50_000, 3))
    nearly = Z[:, 1] + 1e-7 * rng.normal(size=50_000)
    X = np.column_stack([Z, Z[:, 0], nearly, np.full(50_000, 3.0), rng.standard_t(1.5, size=50_000)])
    y = Z @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=50_000)
    learner = Mixture(loss)
    trace = learner.learn(X, np.sign(y) if loss == "logistic" else y)
    assert learner.state.clocks[layout.MATRICES] == 1.0
    width = layout.second_width(7)
    start = layout.SECOND_COLUMNS * width + width * (width + 1)
    P = learner.state.second[start : start + width * width].reshape(width, width)[:8, :8]
    known = np.linalg.eigvalsh(np.tril(P) + np.tril(P, -1).T)
    assert known[0] > 0.0
    np.testing.assert_allclose(known[-3:], 1 / 0.03, rtol=1e-5)
    assert known[-4] < 1.0
    assert trace.loss[-1000:].mean() < (0.06 if loss == "logistic" else 0.0065)


# ------------------------------------------------------------------------------------------ the guarantee


@settings(max_examples=150, deadline=None)
@given(
    loss=st.sampled_from(["logistic", "squared", "absolute", "hinge", "poisson"]),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 200),
    weighted=st.booleans(),
)
def test_the_guarantee_holds_on_any_data(loss, seed, n, weighted):
    rng = np.random.default_rng(seed)
    X = rough_rows(rng, n, rng.integers(1, 5))
    y = labels_for(loss, n, rng, scale=10.0 ** rng.uniform(-5, 5)) + (
        rng.choice([0.0, 100.0]) if loss == "squared" else 0
    )
    if loss == "squared" and n > 3:
        y += rng.choice([0.0, 100.0])
        y[n // 2] *= 50.0  # the range grows late
    h = 10.0 ** rng.uniform(-3, 3, n) if weighted else np.ones(n)
    learner = Mixture(loss)
    trace = learner.learn(X, y, h)
    regret, bound = learner.regret(), learner.regret_bound()
    assert regret <= bound + 1e-9 * (1.0 + abs(bound) + h @ np.abs(trace.loss))
    if not weighted:
        best = min(expert.loss for expert in learner.bank()) * n
        assert regret == pytest.approx(trace.loss.sum() - best, abs=1e-9 * (1.0 + np.abs(trace.loss).sum()))
        price = np.log(16.0) + layout.SHARING_COST
        if loss == "logistic":
            assert bound == pytest.approx(price, rel=1e-12)
        if loss == "squared" and n > 1:
            assert bound == pytest.approx((y.max() - y.min()) ** 2 * (price / 4 + 0.5), rel=1e-9)


def test_what_moving_the_shares_costs_in_all():
    t = np.arange(3.0, 1e6)
    paid = -np.log1p(-0.25 / (t * np.log(t) ** 2)).sum()
    later = 0.25 / np.log(1e6 - 1.0)  # the integral of 1/(t ln^2 t) over what is left
    assert paid + later < layout.SHARING_COST < paid + later + 1e-3


def short_stream(rng):
    """A short stream that is made to break things: weights and scales far apart, labels that leave their range."""
    loss = rng.choice(LOSSES) if rng.random() < 0.7 else "squared"
    n, d = rng.integers(1, 9), rng.integers(1, 4)
    X = rng.choice([0.0, 1.0, -1.0, 2.0, 1e3, 1e-3], (n, d)) * 10.0 ** rng.choice([0, 0, 0, 100, -100], d)
    if rng.random() < 0.5:
        X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.choice([0, 0, 0, 7, 14], (n, 1))
    outputs = 1
    if loss in ("squared", "absolute", "quantile", "huber"):
        y = rng.choice([0.0, 1.0, -1.0, 2.0, 3.0, 10.0, 100.0, -50.0], n) * 10.0 ** rng.choice(
            [0, 0, 0, 0, 20, -20, 60]
        )
        if rng.random() < 0.4:
            y[rng.integers(0, n) :] *= 10.0 ** rng.choice([2, 10, 31, 35, 40, 80])
    elif loss == "poisson":
        y = rng.choice([0.0, 1.0, 2.0, 5.0, 100.0], n)
    elif rng.random() < 0.3:
        outputs, y = 3, rng.integers(0, 3, n).astype(float)
    else:
        y = rng.choice([-1.0, 1.0], n) if rng.random() < 0.7 else np.ones(n)
    spread = [
        rng.uniform(-1, 1, n),
        rng.uniform(-10, 10, n),
        rng.uniform(-150, 150, n),
        rng.choice([-150.0, 0.0, 150.0], n),
    ]
    h = np.ones(n) if rng.random() < 0.3 else 10.0 ** spread[rng.integers(4)]
    return loss, X, y, h, {"n_outputs": outputs, "fit_intercept": bool(rng.random() < 0.8)}


def retiring_stream(rng):
    """Labels that grow just so much that some experts leave the range of their floats, and others do not."""
    n = rng.integers(10, 400)
    X = rng.normal(size=(n, rng.integers(1, 4))) * 10.0 ** rng.choice([0, 1, 2], (n, 1))
    y = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(28, 32)
    y[0] = 1.0
    y = np.abs(y) if rng.random() < 0.5 else y
    h = np.ones(n) if rng.random() < 0.5 else 10.0 ** rng.uniform(-1, 1, n)
    return "squared", X, y, h, {"fit_intercept": bool(rng.random() < 0.5)}


def assert_bounded(loss, X, y, h, options):
    learner = Mixture(loss, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*all experts of the mixture are retired")
        learner.learn(X, y, h)
    for k in range(learner.n_outputs):
        regret, bound = learner.regret(k), learner.regret_bound(k)
        total = learner._loss_unit(learner.state) * learner.state.sums[k, layout.COUNTED_LOSS]
        assert regret <= bound + 1e-9 * (bound + abs(total)), (loss, X, y, h, options)  # to the rounding of the sums


def test_a_search_for_streams_that_break_a_bound_finds_none():
    for seed in range(8000):
        assert_bounded(*short_stream(np.random.default_rng(seed)))
    for seed in range(450, 750):
        assert_bounded(*retiring_stream(np.random.default_rng(seed)))


def test_a_weight_that_overflows_the_losses_does_not_break_the_bound():
    learner = Mixture("exponential")
    learner.learn([[1.0], [1.0], [1.0]], [1.0, 1.0, -1.0], [1e150, 1.0, 1.0])
    assert learner.regret() <= learner.regret_bound()


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_no_prediction_sees_its_own_label(loss):
    rng = np.random.default_rng(0)
    X, y = rough_rows(rng, 200, 3), labels_for(loss, 200, rng)
    other = y.copy()
    other[-1] = -other[-1]
    last = [Mixture(loss).learn(X, labels).prediction[-1] for labels in (y, other)]
    assert last[0] == pytest.approx(last[1], rel=1e-12)


# ------------------------------------------------------------------------------------- nothing diverges


@settings(max_examples=400, deadline=None)
@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    weights=st.sampled_from(["none", "counts", "wild"]),
    intercept=st.booleans(),
)
def test_everything_stays_finite(loss, seed, n, weights, intercept):
    rng = np.random.default_rng(seed)
    d = rng.integers(1, 6)
    X = rough_rows(rng, n, d) * 10.0 ** rng.uniform(-147, 147, d)
    y = labels_for(loss, n, rng, scale=10.0 ** rng.choice([0, 20, -20, 150, -150]))
    h = {"none": None, "counts": rng.integers(0, 3, n), "wild": 10.0 ** rng.uniform(-300, 300, n)}[weights]
    learner = Mixture(loss, fit_intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*all experts of the mixture are retired")
        trace = learner.learn(X, y, h)
        found = (trace.prediction, learner.predict(X), learner.coef_, learner.intercept_, learner.weights())
        learner.bank()
    assert all(np.isfinite(each).all() for each in found)
    assert learner.weights().sum() == pytest.approx(1.0)


def test_an_expert_that_overflows_is_retired_in_public():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(np.arange(60) < 3, 1e-40, 1e40) * X[:, 0]
    with pytest.warns(RuntimeWarning, match="all experts of the mixture are retired"):
        model = OnlineRegressor(shuffle=False).fit(X, y)
    retired = [expert.retired for expert in model.bank_]
    assert all(retired)
    for expert in model.bank_:
        assert (expert.loss == np.inf) == expert.retired
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.coef_).all()


def test_targets_and_columns_of_any_scale():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    plain = OnlineRegressor(random_state=0, shuffle=False).fit(X, y)
    scaled = OnlineRegressor(shuffle=False).fit(X * 2.0**200, y * 2.0**-90)
    np.testing.assert_array_equal(scaled.predict(X * 2.0**200), plain.predict(X) * 2.0**-90)
    moved = OnlineRegressor(shuffle=False).fit(X * 3e-7, 1e6 * y - 3e8)
    assert moved.score(X * 3e-7, 1e6 * y - 3e8) == pytest.approx(plain.score(X, y), abs=0.02)
    assert plain.score(X, y) > 0.3


def test_a_zero_now_and_then_does_not_cost_a_column_its_center():
    rng = np.random.default_rng(0)
    year, other = 2000.0 + rng.integers(0, 24, 8000), rng.normal(size=8000)
    y = (year - 2011.0) / 7.0 + other + 0.3 * rng.normal(size=8000) > 0
    X = np.column_stack([year, other])
    whole = OnlineClassifier(random_state=0).fit(X[:4000], y[:4000]).score(X[4000:], y[4000:])
    X[[1000, 2500], 0] = 0.0
    holes = OnlineClassifier(random_state=0).fit(X[:4000], y[:4000]).score(X[4000:], y[4000:])
    assert whole > 0.92
    assert holes > whole - 0.03


def test_infinite_losses_of_experts_are_counted():
    X = np.array([[-1.8], [-1.6], [0.0], [-0.7], [0.0], [0.1], [90.0]])
    learner = Mixture("poisson")
    learner.learn(X, [4.0, 5, 3, 4, 0, 2, 4], [125.22, 6.82, 74.13, 17.46, 490.2, 95.07, 0.31])
    assert learner.regret() <= learner.regret_bound()


@pytest.mark.parametrize("columns", [3, 8, 120])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_nothing_depends_on_what_memory_held(columns, form, monkeypatch):
    rng = np.random.default_rng(columns)
    X, h = rough_rows(rng, 60, columns), rng.exponential(size=60)
    h[::9] = 0.0
    empty = np.empty
    for loss, outputs in (("logistic", 1), ("squared", 1), ("hinge", 1), ("logistic", 3)):
        y = labels_for(loss, 60, rng) if outputs == 1 else rng.integers(0, 3, 60).astype(float)
        found = []
        for value in (0.0, np.nan, 1e300):

            def full_of(*arguments, value=value, **options):
                array = empty(*arguments, **options)
                return array if array.dtype.kind != "f" else np.full_like(array, value)

            with monkeypatch.context() as patch:
                rows = form(X)
                patch.setattr(np, "empty", full_of)
                found.append(Mixture(loss, n_outputs=outputs).learn(rows, y, h).prediction)
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])


# ----------------------------------------------------------------------------------------------- weights


def test_a_common_factor_on_all_weights_changes_nothing():
    rng = np.random.default_rng(0)
    X, h = rng.normal(size=(300, 3)), rng.exponential(size=300)
    y = np.sign(X[:, 0] + rng.normal(size=300))
    expected = Mixture("logistic").learn(X, y, h).prediction
    for factor in (1e-3, 1000.0, 1e150):
        np.testing.assert_allclose(Mixture("logistic").learn(X, y, factor * h).prediction, expected, atol=1e-5)


def test_weights_in_the_mixture():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 3))
    y = np.sign(X @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=4000))
    h = np.ones(4000)
    h[0] = h[10] = 1e9
    learner = Mixture("logistic")
    learner.learn(X[:20], y[:20], h[:20])
    early = learner.weights()
    trace = learner.learn(X[20:], y[20:], h[20:])
    assert np.abs(learner.weights() - early).max() > 0.1  # not frozen
    alone = Mixture("logistic").learn(X, y)
    assert trace.loss[-1000:].mean() < 1.2 * alone.loss[-1000:].mean()
    # all weights times a constant count the same in the mixture
    first, second = (Mixture("logistic") for _ in range(2))
    first.learn(X[:1], y[:1], [5.0])
    second.learn(X[:1], y[:1], [1e-3])
    assert first.state.sums[0, :8] == pytest.approx(second.state.sums[0, :8])


def test_one_heavy_row_ends_at_its_label():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    learner = Mixture("squared")
    learner.learn(X, y)
    learner.learn(X[:1], y[:1], [1e12])
    assert learner.predict(X[:1])[0] == pytest.approx(y[0], abs=1e-3)


@pytest.mark.parametrize("margin", [-800.0, -340.0, -300.0, -250.0, -10.0, 0.0, 10.0])
@pytest.mark.parametrize("push", [1e-3, 1.0, 500.0, 1e5])
def test_the_way_of_a_second_order_step_is_never_beyond_its_root(margin, push):
    e = np.exp(-abs(margin))
    m, t = (1.0 / (1.0 + e), e / (1.0 + e)) if margin > 0.0 else (e / (1.0 + e), 1.0 / (1.0 + e))
    d = _way(m, t, push)
    assert 0.0 < d <= 300.0
    travelled = t * t * d + 2.0 * m * t * np.expm1(d) + m * m * np.expm1(2.0 * d) / 2.0
    assert travelled <= push * (1.0 + 1e-6)
    assert d == 300.0 or travelled == pytest.approx(push, rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_weight_zero_changes_nothing(loss):
    rng = np.random.default_rng(0)
    X, y = rough_rows(rng, 40, 3), labels_for(loss, 40, rng)
    learner = Mixture(loss)
    learner.learn(X, y)
    before = [array.copy() for array in learner.state]
    other = pickle.loads(pickle.dumps(learner))
    trace = learner.learn(X[:5] * 100.0, -y[:5], np.zeros(5))
    learner.learn(np.full((1, 3), 1e60), y[:1], [0.0])  # predictions of experts who would be retired for them
    for name, old, new in zip(learner.state._fields, before, learner.state, strict=True):
        if name != "second":  # where a part of the last row may wait for the next one
            np.testing.assert_array_equal(old, new)
    assert np.isfinite(trace.prediction).all()
    again = [each.learn(X, y).prediction for each in (learner, other)]
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_fit_takes_a_weight_for_so_many_rows(layout, shuffle):
    X, y = load_breast_cancer(return_X_y=True)
    h = np.random.default_rng(0).integers(0, 4, len(y))
    options = dict(random_state=0, passes=2, shuffle=shuffle)
    weighted = OnlineClassifier(**options).fit(layout(X), y, sample_weight=h)
    repeated = OnlineClassifier(**options).fit(layout(np.repeat(X, h, axis=0)), np.repeat(y, h))
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_array_equal(weighted.intercept_, repeated.intercept_)


# -------------------------------------------------------------------------------------- use as a learner


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_one_by_one_layouts_and_files(loss, tmp_path):
    rng = np.random.default_rng(4)
    X, y = rough_rows(rng, 80, 4), labels_for(loss, 80, rng)
    h = rng.exponential(size=80)
    whole = Mixture(loss)
    trace = whole.learn(X, y, h)
    single, sparse = Mixture(loss), Mixture(loss)
    for i in range(40):
        single.learn(X[i : i + 1], y[i : i + 1], h[i : i + 1])
    single.save(tmp_path / "half")
    single = Learner.load(tmp_path / "half")
    assert isinstance(single, Mixture)
    for i in range(40, 80):
        single.learn(X[i : i + 1], y[i : i + 1], h[i : i + 1])
    for other in (single, pickle.loads(pickle.dumps(whole))):
        for name, a, b in zip(whole.state._fields, whole.state, other.state, strict=True):
            used = int(whole.state.clocks[layout.CENTERED]) if name == "centered" else a.size  # others were left behind
            np.testing.assert_array_equal(a[:used], b[:used])
        np.testing.assert_array_equal(other.predict(X), whole.predict(X))
    # sparse rows add up in another order
    scale = np.abs(trace.prediction).max()
    np.testing.assert_allclose(sparse.learn(sp.csr_matrix(X), y, h).prediction, trace.prediction, atol=1e-5 * scale)
    np.testing.assert_allclose(sparse.predict(X), whole.predict(X), atol=1e-4 * scale)
    assert whole.progressive_loss_ == pytest.approx(trace.average_loss, rel=1e-12)
    assert "80 rows learned" in repr(whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_types_of_values_and_indices(dtype, index):
    rng = np.random.default_rng(0)
    X = rough_rows(rng, 60, 4).astype(dtype)
    y = labels_for("logistic", 60, rng)
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
    for plain, others in ((X, (X, np.asfortranarray(X))), (sp.csr_matrix(X), (sparse, sparse.tocsc()))):
        expected = Mixture("logistic").learn(plain.astype(np.float64), y).prediction
        for each in others:
            np.testing.assert_array_equal(Mixture("logistic").learn(each, y).prediction, expected)


def test_one_vs_rest_is_a_mixture_for_each_class():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(150)
    model = OnlineClassifier(random_state=0, passes=5).fit(X, y)
    assert model.score(X, y) > 0.9
    assert len(model.bank_) == 3
    X = np.column_stack([X, 0.1 * rng.normal(size=(150, 100))])  # no second order, where classes share a matrix
    many = Mixture("logistic", n_outputs=3)
    trace = many.learn(X[order], y[order])
    for k in range(3):
        one = Mixture("logistic")
        alone = one.learn(X[order], np.where(y[order] == k, 1.0, -1.0))
        np.testing.assert_allclose(trace.prediction[:, k], alone.prediction, rtol=1e-9, atol=1e-12)
        assert [expert.weight for expert in many.bank(k)] == pytest.approx([expert.weight for expert in one.bank()])


def test_classes_of_sparse_rows_whose_units_grow_and_centers_are_missing():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 110)), rng.integers(0, 3, 300)
    X[:, 0] = (5.0 + 0.1 * X[:, 0]) * (rng.random(300) < 0.9)
    X[:, 1] *= np.exp2(np.arange(300) // 10)
    X[:, 5:] *= rng.random((300, 105)) < 0.2
    X = sp.csr_matrix(X)
    many = Mixture("logistic", n_outputs=3)
    many.learn(X, y)
    records = many.state.table.reshape(111, -1)
    for k in range(3):
        one = Mixture("logistic")
        one.learn(X, np.where(y == k, 1.0, -1.0))
        alone = one.state.table.reshape(111, -1)
        np.testing.assert_allclose(records[:, 8 * k : 8 * k + 8], alone[:, :8], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(records[:, 24 + 2 * k : 26 + 2 * k], alone[:, 8:10], rtol=1e-6)
        np.testing.assert_array_equal(records[:, 30:36], alone[:, 10:16])


def test_the_bank_of_an_estimator():
    X, y = load_breast_cancer(return_X_y=True)
    model = OnlineClassifier(random_state=0).fit(X, y)
    assert [expert.eta0 for expert in model.bank_] == pytest.approx([*RATES, 1 / 3, 4.0])
    assert [expert.decay for expert in model.bank_] == ["1/sqrt(n)"] * 4 + ["1/n"] * 4 + ["full matrix"] * 2
    assert sum(expert.weight for expert in model.bank_) == pytest.approx(1.0)
    best = min(expert.loss for expert in model.bank_)
    assert model.progressive_loss_ <= best + (np.log(16.0) + layout.SHARING_COST) / len(y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_, rtol=1e-9)
    with pytest.raises(AttributeError, match="bank_ only with eta0='auto'"):
        OnlineClassifier(eta0=1.0).fit(X, y).bank_  # noqa: B018


@pytest.mark.parametrize("name", ["cancer", "digits", "diabetes"])
def test_no_rate_is_as_good_as_the_best_one(name):
    X, y = {"cancer": load_breast_cancer, "digits": load_digits, "diabetes": load_diabetes}[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order].astype(float)
    loss = "squared" if name == "diabetes" else "logistic"
    y = (y - y.mean()) / y.std() if loss == "squared" else np.where(y % 2 == 1, 1.0, -1.0)
    untuned = Mixture(loss).learn(X, y).average_loss
    bank = Bank(loss, updates=("iwa", "linearized"), eta0=np.logspace(-3, 3, 13), schedule="adagrad-norm")
    bank.learn(X, y)
    assert untuned <= 1.05 * bank.average_loss.min()


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_without_an_intercept_there_is_none(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2)) + 3.0
    y = X @ [1.0, -2.0] + 0.01 * rng.normal(size=500)
    model = OnlineRegressor(loss, fit_intercept=False, random_state=0, passes=20).fit(X, y)
    np.testing.assert_array_equal(model.intercept_, 0.0)
    np.testing.assert_allclose(model.predict(X), np.clip(X @ model.coef_, y.min(), y.max()), rtol=1e-9)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0], atol=0.1)


def test_predictions_stay_among_the_labels_seen():
    X = np.linspace(-1, 1, 200).reshape(-1, 1)
    model = OnlineRegressor(random_state=0, passes=3).fit(X, 3.0 * X[:, 0])
    assert model.predict([[1000.0]])[0] == 3.0
    assert model.learner_.label_range == (-3.0, 3.0)


def test_misuse_is_named():
    with pytest.raises(ValueError, match="not learned anything"):
        Mixture().bank()
    with pytest.raises(ValueError, match="not learned anything"):
        Mixture().certify()
    with pytest.raises(ValueError, match="nan in row 1, column 0"):
        Mixture().learn([[1.0], [np.nan]], [1.0, -1.0])
    learner = Mixture("squared")
    learner.learn([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0])
    before = learner.state.table.copy()
    with pytest.raises(ValueError, match="inf in row 1, column 1"):
        learner.learn(np.array([[1.0, 2.0], [1.0, np.inf]] * 40), np.ones(80))
    np.testing.assert_array_equal(learner.state.table, before)


# ------------------------------------------------------------------------------------- the command line


@pytest.fixture
def libsvm(tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y = load_breast_cancer(return_X_y=True)
    dump_svmlight_file(X, np.where(y == 1, 7, 3), str(tmp_path / "cancer"), zero_based=False)
    return tmp_path


def test_learn_and_predict_from_the_shell(libsvm, capsys):

    data, model = str(libsvm / "cancer"), str(libsvm / "model")
    assert cli.main(["learn", data, "--model", model, "--passes", "2"]) == 0
    out = capsys.readouterr().out
    assert "classification, 569 rows, 30 features, logistic loss" in out
    assert len([line for line in out.splitlines() if "1/n" in line or "1/sqrt(n)" in line]) == 8
    assert len([line for line in out.splitlines() if "full matrix" in line]) == 2
    assert cli.main(["predict", model, data]) == 0
    X, y = steelyard.read_libsvm(data)
    labels = np.array(capsys.readouterr().out.split(), dtype=float)
    expected = OnlineClassifier(passes=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(labels, expected.predict(X))
    assert cli.main(["predict", model, data, "--scores"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    np.testing.assert_allclose(scores, expected.decision_function(X), rtol=1e-8)
    assert cli.main(["learn", data, "--eta0", "0.5", "--task", "regression", "--no-shuffle"]) == 0
    assert "regression" in capsys.readouterr().out


@pytest.mark.parametrize("eta0", ["auto", "0.5"])
def test_a_streamed_model_is_the_one_learned_at_once(libsvm, eta0, capsys, monkeypatch):
    monkeypatch.setitem(LibsvmSource.__init__.__kwdefaults__, "block_bytes", 5000)
    data, model = str(libsvm / "cancer"), str(libsvm / "model")
    assert cli.main(["learn", data, "--model", model, "--passes", "2", "--no-shuffle", "--eta0", eta0]) == 0
    out, err = capsys.readouterr()
    assert "classification, 569 rows, 30 features" in out
    assert "rows" not in err  # no progress in a pipe
    X, y = steelyard.read_libsvm(data)
    rate = eta0 if eta0 == "auto" else float(eta0)
    expected = OnlineClassifier(passes=2, shuffle=False, eta0=rate).fit(X, y)
    np.testing.assert_array_equal(steelyard.Learner.load(model).coef_, expected.coef_[0])
    assert cli.main(["predict", model, data]) == 0
    np.testing.assert_array_equal(np.array(capsys.readouterr().out.split(), dtype=float), expected.predict(X))


def test_a_model_remembers_where_indices_start(tmp_path, capsys):
    """A file without index 0 looks as if it started at 1, whatever the model was learned from."""

    (tmp_path / "train").write_text("1 0:1\n-1 1:1\n" * 50)
    (tmp_path / "test").write_text("1 1:1\n1 5:2\n")
    for more in ([], ["--no-shuffle"]):
        assert cli.main(["learn", str(tmp_path / "train"), "--model", str(tmp_path / "model"), *more]) == 0
        capsys.readouterr()
        assert cli.main(["predict", str(tmp_path / "model"), str(tmp_path / "test")]) == 0
        out, err = capsys.readouterr()
        assert out.split()[0] == "-1"
        assert "1 values of features beyond the 2 that the model has learned were left out" in err


def test_mistakes_at_the_shell(libsvm, capsys, monkeypatch):
    data = str(libsvm / "cancer")
    (libsvm / "empty").write_text("")
    (libsvm / "nan").write_text("1 1:1\n# nothing\n-1 1:2\n" * 20 + "1 1:1\n1 1:1 2:nan\n1 1:1\n")
    assert cli.main(["learn", data, "--model", str(libsvm / "model")]) == 0
    monkeypatch.setitem(LibsvmSource.__init__.__kwdefaults__, "block_bytes", 100)
    (libsvm / "many").write_text("".join(f"{i} 1:1\n" for i in range(1500)))
    for arguments, message in [
        (["learn", str(libsvm / "none")], "No such file"),
        (["learn", str(libsvm / "empty")], "has no rows"),
        (["learn", str(libsvm / "empty"), "--no-shuffle"], "has no rows"),
        (["learn", data, "--passes", "0"], "--passes must be at least 1, got 0"),
        (["learn", str(libsvm / "many"), "--task", "classification"], "too many different labels"),
        (["learn", data, "--eta0", "fast"], "--eta0 must be auto or a number, got 'fast'"),
        (["learn", data, "--loss", "log"], "unknown loss 'log'"),
        (["learn", data, "--model", data], "is there, and is not what this command writes: it would be lost"),
        (["predict", data, data], "not a Steelyard model file"),
        (["learn", str(libsvm / "nan")], "nan, line 62, column 7, index 2 has the value nan: features must be finite"),
        (["learn", str(libsvm / "nan"), "--no-shuffle"], "nan, line 62, column 7, index 2 has the value nan"),
        (["predict", str(libsvm / "model"), str(libsvm / "nan")], "nan, line 62, column 7, index 2 has the value nan"),
    ]:
        usage = {"--passes", "--eta0", "--loss", "--model"} & set(arguments)  # else it is the data's fault
        assert cli.main(arguments) == (2 if usage else 1)
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge", "absolute"])
def test_a_row_of_weight_zero_may_hold_anything(loss):
    """A fill value, for one: predictions leave their range there, and no expert is retired for it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=300))
    weight = np.ones(300)
    weight[100] = 0.0
    X[100, 1] = 9.97e36
    for form in (np.asarray, sp.csr_matrix):
        mixture, without = Mixture(loss), Mixture(loss)
        mixture.learn(form(X), y, weight)
        without.learn(form(X[weight > 0]), y[weight > 0])
        assert not any(expert.retired for expert in mixture.bank())
        np.testing.assert_array_equal(mixture.coef_, without.coef_)
        np.testing.assert_array_equal(mixture.state.sums, without.state.sums)


@pytest.mark.parametrize("eta0", ["auto", 1.0])
def test_an_infinite_loss_of_weight_zero_does_not_count(eta0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=300))
    weight = np.ones(300)
    weight[200] = 0.0
    X[200, 0] = -1e6 * y[200]
    model = OnlineClassifier(loss="exponential", eta0=eta0)
    assert model.partial_fit(X, y, classes=[-1, 1], sample_weight=weight).progressive_loss_ < 2.0


def test_no_row_moves_a_margin_farther_than_it_may():
    from steelyard.kernels.second import _way

    for m, push in [(0.0, 1e183), (1e-200, 1e10), (1e-300, 1e300), (1e-140, 400.0)]:
        assert 0.0 < _way(m, 1.0 - m, push) <= 300.0
    assert _way(0.0, 1.0, 20.0) == pytest.approx(20.0)
