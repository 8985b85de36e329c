"""Penalties and averaged models: a slow twin, what is exact, peers at equal objectives, bounds, and what is refused."""

from __future__ import annotations

import copy
import itertools

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import ElasticNet, LogisticRegression

import naive_penalties
from steelyard import Bank, Learner, OnlineClassifier, OnlineRegressor, merge
from steelyard.kernels import layout
from steelyard.lazystate import shrunk
from steelyard.updates import UPDATES, evaluate

SCHEDULES, METRICS, CENTERS = ("constant", "power", "adagrad-norm"), ("scalar", "diagonal"), ("origin", "trajectory")
PENALTIES = ((0.03, 0.0), (0.0, 0.05), (0.03, 0.05), (1.0, 0.0))


def data(n=60, d=6, seed=0, loss="logistic"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.logspace(-1, 1, d)
    X[rng.random(X.shape) < 0.4] = 0.0
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0, 30.0], n)
    return X, np.sign(y) if loss == "logistic" else y, weight


@pytest.mark.parametrize(
    ("schedule", "metric", "center"), list(itertools.product(SCHEDULES, METRICS, CENTERS)), ids="-".join
)
def test_learners_agree_with_the_slow_twin(schedule, metric, center):
    for number, (update, loss) in enumerate(itertools.product(UPDATES, ("logistic", "squared"))):
        X, y, weight = data(seed=number, loss=loss)
        rows = np.c_[X, np.ones(len(y))].tolist()
        options = {"update": update, "schedule": schedule, "metric": metric, "center": center, "eta0": 0.1}
        for l1, l2 in PENALTIES:
            theirs, x, _ = naive_penalties.learn(rows, y, weight, loss=loss, l1=l1, l2=l2, **options)
            for form in (X, sp.csr_matrix(X)):
                learner = Learner(loss, l1=l1, l2=l2, **options)
                trace = learner.learn(form, y, weight)
                scale = 1.0 + np.abs(theirs).max()
                assert np.abs(trace.prediction - theirs).max() <= 1e-10 * scale
                assert np.allclose(np.append(learner.coef_, learner.intercept_), x, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("schedule", "metric", "center"), list(itertools.product(SCHEDULES, METRICS, CENTERS)), ids="-".join
)
def test_the_average_is_that_of_the_models_on_the_way(schedule, metric, center):
    if (schedule, metric, center) == ("adagrad-norm", "diagonal", "origin"):
        with pytest.raises(ValueError, match="needs center='trajectory', or metric='scalar'"):
            Learner(schedule=schedule, metric=metric, center=center, average=True)
        return
    X, y, weight = data(seed=3)
    rows = np.c_[X, np.ones(len(y))].tolist()
    options = {"schedule": schedule, "metric": metric, "center": center, "eta0": 0.3}
    theirs, _, mean = naive_penalties.learn(rows, y, weight, loss="logistic", update="iwa", **options)
    for form in (X, sp.csr_matrix(X)):
        learner = Learner("logistic", average=True, **options)
        plain = Learner("logistic", **options)
        trace = learner.learn(form, y, weight)
        assert np.allclose(trace.prediction, theirs, rtol=1e-9, atol=1e-11)
        assert np.allclose(trace.prediction, plain.learn(form, y, weight).prediction, rtol=1e-9, atol=1e-11)
        assert np.allclose(np.append(learner.coef_, learner.intercept_), mean, rtol=1e-9, atol=1e-11)
        assert np.allclose(learner.predict(form), X @ learner.coef_ + learner.intercept_)


# ------------------------------------------------------------------------------------------------------- what is exact


sizes = st.floats(1e-6, 1e6)


@given(st.floats(-100, 100), sizes, sizes, st.floats(1e-8, 10), st.sampled_from([0.0, 1e-9, 1e-3, 0.019, 0.021, 3.0]))
def test_to_shrink_twice_is_to_shrink_once(x, first, second, l1, l2):
    start = np.array([x])
    twice = shrunk(shrunk(start, np.array(first), l1, l2), np.array(second), l1, l2)
    once = shrunk(start, np.array(first + second), l1, l2)
    assert abs(twice - once)[0] <= 1e-14 * (abs(x) + 4.0)


@given(st.floats(-3, 3), st.floats(1e-4, 30), st.sampled_from([1e-7, 0.1, 0.9]), st.sampled_from([1e-9, 0.001, 0.7]))
def test_shrinking_is_the_flow(x, way, l1, l2):
    with mpmath.workdps(40):
        rest = (abs(mpmath.mpf(x)) + mpmath.mpf(l1) / l2) * mpmath.exp(-mpmath.mpf(l2) * way) - mpmath.mpf(l1) / l2
        expected = float(max(0, rest))
    assert abs(float(shrunk(np.array([x]), np.array(way), l1, l2)[0])) == pytest.approx(expected, rel=1e-13, abs=2e-15)


@pytest.mark.parametrize(("l1", "l2"), [*PENALTIES[:3], (1e-3, 1e-7), (0.0, 1e-5), (1e-4, 0.9), (0.0, 40.0)])
@pytest.mark.parametrize("metric", METRICS)
def test_the_kernel_shrinks_as_the_formula_says(metric, l1, l2):
    """A feature waits for 1 to 500 rows. Dense rows do not wait, and have a series of their own for short ways."""
    for wait in (1, 30, 500):
        X = np.zeros((wait + 2, 2))
        X[0, 0] = X[-1, 0] = 1.0
        X[1:-1, 1] = 0.5
        y = np.ones(len(X))
        found = []
        for form in (X, sp.csr_matrix(X)):
            learner = Learner("squared", metric=metric, l1=l1, l2=l2, eta0=0.7, schedule="constant")
            found += [learner.learn(form, y).prediction, learner.coef_]
        assert np.allclose(found[0], found[2], rtol=1e-12, atol=1e-14)
        assert np.allclose(found[1], found[3], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("center", CENTERS)
def test_blocks_and_rows_of_weight_zero_change_nothing(center):
    X, y, weight = data(seed=5)
    for form, (l1, l2), average in itertools.product(
        (X, sp.csr_matrix(X)), (*PENALTIES[:3], (0.0, 0.0)), (False, True)
    ):
        if average == (l1 + l2 > 0.0):
            continue
        options = {"center": center, "l1": l1, "l2": l2, "average": average, "eta0": 0.2}
        whole, parts = Learner(**options), Learner(**options)
        expected = whole.learn(form, y, weight).prediction
        found = [parts.learn(form[i : i + 7], y[i : i + 7], weight[i : i + 7]).prediction for i in range(0, 60, 7)]
        assert np.array_equal(np.concatenate(found), expected)
        before = copy.deepcopy(parts.state)
        assert np.allclose(
            parts.learn(form, y, np.zeros(60)).prediction, parts.predict(form), rtol=1e-12, atol=1e-13
        ) or (average)
        for mine, old in zip(parts.state, before, strict=True):
            assert np.array_equal(mine, old)
        assert np.array_equal(whole.coef_, parts.coef_)


@pytest.mark.parametrize("center", CENTERS)
def test_fit_is_exact_in_whole_weights_to_the_bit(center):
    X, y = load_breast_cancer(return_X_y=True)
    h = np.random.default_rng(0).integers(0, 4, len(y))
    options = {"eta0": 1.0, "center": center, "random_state": 0}
    for more in ({"l1": 1e-3}, {"l2": 1e-3}, {"l1": 1e-3, "l2": 1e-2}, {"average": True}):
        weighted = OnlineClassifier(**options, **more).fit(X, y, sample_weight=h)
        repeated = OnlineClassifier(**options, **more).fit(np.repeat(X, h, axis=0), np.repeat(y, h))
        assert np.array_equal(weighted.coef_, repeated.coef_)


@pytest.mark.parametrize("metric", METRICS)
def test_at_a_fixed_regularizer_weights_are_exact_where_no_feature_is_zero(metric):
    X, y, _ = data(n=200, seed=7)
    X = np.where(X == 0.0, 0.5, X)
    learner = Learner("logistic", center="origin", metric=metric, schedule="constant", eta0=0.1, l1=1e-5, l2=1e-3)
    learner.learn(X, y)
    assert (learner.coef_ != 0.0).all()  # or this is about something else
    once, twice = copy.deepcopy(learner), copy.deepcopy(learner)
    q, seen = X[:1], learner.state.clocks[0, layout.WEIGHT]
    once.learn(q, y[:1], [1.2])
    for h in (0.5, 0.7):
        twice.state.clocks[0, layout.WEIGHT] = seen  # the penalty's clock stands still
        twice.learn(q, y[:1], [h])
    once.state.clocks[0, layout.WEIGHT] = twice.state.clocks[0, layout.WEIGHT] = seen
    assert np.allclose(once._solve_coefficients(once.state), twice._solve_coefficients(twice.state), rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["iwa", "proximal"]),
    st.sampled_from(METRICS),
    st.sampled_from(PENALTIES),
    st.floats(-3, 6),
)
def test_no_step_passes_the_target_at_its_regularizer(seed, update, metric, penalties, weight):
    X, y, _ = data(n=30, seed=seed, loss="squared")
    l1, l2 = penalties
    learner = Learner("squared", center="origin", metric=metric, update=update, l1=l1, l2=l2, eta0=0.5)
    learner.learn(X, y)
    seen, target = learner.state.clocks[0, layout.WEIGHT], 7.0
    q = X[int(np.argmax(np.abs(X).sum(axis=1)))][None]
    p = learner.learn(q, [target], [10.0**weight]).prediction[0]
    learner.state.clocks[0, layout.WEIGHT] = seen
    x = learner._solve_coefficients(learner.state)[:, 0]
    after = q[0] @ x[:-1] + x[-1]
    assert (after - target) * (p - target) >= -1e-9 * abs(p - target) * (1.0 + abs(p - target))


@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize("metric", METRICS)
def test_a_vanishing_penalty_is_none(center, metric):
    X, y, weight = data(seed=11)
    plain = Learner(center=center, metric=metric)
    plain.learn(X, y, weight)
    for penalty in ({"l1": 1e-30}, {"l2": 1e-30}):
        learner = Learner(center=center, metric=metric, **penalty)
        learner.learn(X, y, weight)
        assert np.allclose(learner.coef_, plain.coef_, rtol=1e-11, atol=1e-14)


# -------------------------------------------------------------------------------------------------- several outputs


@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("metric", METRICS)
def test_classes_and_banks_are_learners_side_by_side(center, schedule, metric):
    X, y, weight = data(seed=13)
    labels = np.arange(60.0) % 3
    for l1, l2 in PENALTIES[:3]:
        options = {"center": center, "schedule": schedule, "metric": metric, "l1": l1, "l2": l2}
        many = Learner(n_outputs=3, eta0=0.2, certificate=True, **options)
        bank = Bank(eta0=[0.1, 1.0], certificate=True, **options)
        for form in (X, sp.csr_matrix(X)):
            many.learn(form, labels, weight)
            bank.learn(form, y, weight)
        for k in range(3):
            alone = Learner(eta0=0.2, certificate=True, **options)
            for form in (X, sp.csr_matrix(X)):
                alone.learn(form, np.where(labels == k, 1.0, -1.0), weight)
            assert np.allclose(many.coef_[k], alone.coef_, rtol=1e-9, atol=1e-12)
            assert np.allclose(many.certify(k).dual, alone.certify().dual, rtol=1e-9, atol=1e-9)
        for k, eta0 in enumerate((0.1, 1.0)):
            alone = Learner(eta0=eta0, certificate=True, **options)
            for form in (X, sp.csr_matrix(X)):
                alone.learn(form, y, weight)
            assert np.allclose(bank.coef_[k], alone.coef_, rtol=1e-9, atol=1e-12)


# -------------------------------------------------------------------------------------------------------------- peers


def logistic_objective(X, y, coef, intercept, l1, l2):
    loss = np.logaddexp(0.0, -y * (X @ coef + intercept)).mean()
    return loss + l1 * np.abs(coef).sum() + 0.5 * l2 * coef @ coef


@pytest.mark.parametrize(("l1", "l2"), [(0.01, 0.0), (0.0, 0.01), (0.005, 0.005)])
def test_many_passes_come_to_scikit_learns_objective(l1, l2):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    signs = 2.0 * y - 1.0
    theirs = LogisticRegression(
        C=1.0 / ((l1 + l2) * len(y)), l1_ratio=l1 / (l1 + l2), solver="saga", tol=1e-8, max_iter=20_000
    ).fit(X, y)
    best = logistic_objective(X, signs, theirs.coef_[0], theirs.intercept_[0], l1, l2)
    options = {"eta0": 10.0, "schedule": "adagrad-norm", "center": "origin", "random_state": 0}
    ours = OnlineClassifier(l1=l1, l2=l2, passes=100, **options).fit(X, y)
    found = logistic_objective(X, signs, ours.coef_[0], ours.intercept_[0], l1, l2)
    assert best - 1e-6 <= found <= 1.01 * best
    if l1:
        assert ((ours.coef_[0] != 0.0) == (theirs.coef_[0] != 0.0)).mean() >= 0.95


def test_regression_comes_to_the_elastic_net():
    X, y = load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    theirs = ElasticNet(alpha=0.1, l1_ratio=0.5, tol=1e-10, max_iter=10**5).fit(X, y)
    ours = OnlineRegressor(eta0=0.5, center="origin", l1=0.05, l2=0.05, passes=300, random_state=0).fit(X, y)
    assert np.abs(ours.coef_ - theirs.coef_).max() < 0.02


# -------------------------------------------------------------------------------------------------------- certificates


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["logistic", "squared", "hinge", "absolute"]),
    st.sampled_from(CENTERS),
    st.sampled_from(METRICS),
    st.sampled_from([(0.0, 0.0), *PENALTIES]),
    st.floats(-3, 3),
)
def test_no_model_beats_the_penalised_bound(seed, loss, center, metric, own, size):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    X = rng.standard_cauchy((n, d)) * 10.0 ** rng.integers(-2, 3, d)  # hostile
    y = rng.choice([-1.0, 1.0], n) if loss in ("logistic", "hinge") else 10.0 * rng.standard_cauchy(n)
    h = 10.0 ** rng.uniform(-3, 3, n)
    learner = Learner(loss, center=center, metric=metric, certificate=True, l1=own[0], l2=own[1], eta0=10.0**size)
    learner.learn(X, y, h)
    certificate = learner.certify()
    for _ in range(20):
        u, b = rng.standard_cauchy(d) / np.abs(X).max(axis=0), rng.normal()
        l1, l2 = 10.0 ** rng.uniform(-3, 1, 2)
        p = X @ u + b
        value = evaluate(learner.loss, "linearized", p, y, 0.0)[0]
        for kind in ((l1, l2, np.inf), (l1, 0.0, np.abs(u).sum()), (0.0, l2, np.inf)):
            objective = h @ value + h.sum() * (kind[0] * np.abs(u).sum() + 0.5 * kind[1] * u @ u)
            bound = certificate.penalised_bound(kind[0], kind[1], intercept=abs(b), radius=kind[2])
            assert certificate.total_loss - objective <= bound + 1e-9 * (abs(certificate.total_loss) + abs(objective))


def test_the_penalised_bound_is_attained_and_refuses():
    X, y, _ = data(seed=2)
    learner = Learner(center="origin", fit_intercept=False, l1=0.01)
    learner.learn(X, y)
    certificate = learner.certify()
    s = -certificate.dual[:-1] / certificate.weight
    u = np.sign(s) * np.maximum(0.0, np.abs(s) - 0.01) / 0.3  # where r* is attained
    by_hand = certificate.regret_bound(u) - certificate.weight * (0.01 * np.abs(u).sum() + 0.15 * u @ u)
    assert certificate.penalised_bound(0.01, 0.3) == pytest.approx(by_hand, rel=1e-12)
    assert certificate.penalised_bound(0.0) == np.inf
    assert certificate.penalised_bound(1e3) == pytest.approx(certificate.fenchel)
    with pytest.raises(ValueError, match="no intercept"):
        certificate.penalised_bound(0.1, intercept=1.0)
    for name, value in itertools.product(("l1", "l2", "intercept", "radius"), (-1.0, "a", None, np.nan)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            certificate.penalised_bound(**{name: value})


# ---------------------------------------------------------------------------------------------- the life of a learner


@pytest.mark.parametrize("options", [{"l1": 0.01}, {"l2": 0.1}, {"l1": 0.01, "l2": 0.1}, {"average": True}], ids=str)
@pytest.mark.parametrize("center", CENTERS)
def test_files_failures_and_copies(tmp_path, options, center):
    X, y, weight = data(seed=17)
    for form in (X, sp.csr_matrix(X)):
        learner = Learner(center=center, certificate=True, **options)
        learner.learn(form, y, weight)
        learner.save(tmp_path / "m")
        other = Learner.load(tmp_path / "m")
        assert np.array_equal(other.coef_, learner.coef_)
        bad = X.copy()
        bad[-1, 0] = np.nan
        before = copy.deepcopy(learner.state)
        with pytest.raises(ValueError, match="row 59"):
            learner.learn(bad if form is X else sp.csr_matrix(bad), y)
        for mine, old in zip(learner.state, before, strict=True):
            assert np.array_equal(mine, old)
        learner.learn(form, y)
        other.learn(form, y)
        assert np.array_equal(other.coef_, learner.coef_)
        learner.resize(9)
        assert learner.coef_.shape == (9,)
        assert np.array_equal(learner.coef_[:6], other.coef_)
        learner.learn(np.c_[X, np.ones((60, 3))], y)


def test_events_learn_as_rows_do():
    from steelyard.events import EventLearner

    rng = np.random.default_rng(0)
    events = [
        ({f"f{j}": float(rng.normal()) for j in rng.integers(0, 9, 4)}, rng.choice([-1.0, 1.0])) for _ in range(50)
    ]
    for options in ({"l1": 0.01}, {"l1": 0.01, "center": "origin"}, {"l2": 0.1}, {"average": True}):
        by_event = EventLearner(Learner(**options), bits=8)
        by_row = Learner(**options)
        for event, y in events:
            by_event.learn(event, y)
            by_event.row.read(event)
            by_row.learn_block(by_event.row.block(), np.array([y]), np.ones(1))
        assert np.array_equal(by_event.learner.coef_, by_row.coef_)
        assert by_event.predict(events[0][0])[0] == pytest.approx(by_row.predict_block(by_event.row.block())[0])


def test_what_means_nothing_is_refused():
    X, y = np.eye(3), np.array([0, 1, 1])
    for options, sentence in (
        ({"l1": -1.0}, "l1 must be 0, or a number between"),
        ({"l2": True}, "l2 must be 0, or a number between"),
        ({"l1": 0.1, "metric": "full"}, "no closed form"),
        ({"l1": 0.1, "metric": "scalar", "radius": 1.0}, "not both"),
        ({"l1": 0.1, "metric": "scalar", "center": "origin", "guard": True}, "takes no l1 and l2"),
        ({"l1": 0.1, "average": True}, "no closed form together"),
        ({"average": True, "metric": "full"}, "do not go together"),
        ({"average": True, "metric": "scalar", "radius": 1.0}, "do not go together"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Learner(**options)
    for name in ("average", "fit_intercept", "certificate", "guard"):
        with pytest.raises(ValueError, match=f"{name} must be True or False, got 'False'"):
            Learner(**{name: "False"})
    for name in ("average", "fit_intercept", "shuffle", "early_stopping"):
        with pytest.raises(ValueError, match=f"{name} must be True or False, got 'False'"):
            OnlineClassifier(**{name: "False"}).fit(X, y)
    for options in ({"l1": 0.1}, {"l2": 0.1}, {"average": True}):
        with pytest.raises(ValueError, match="needs a learning rate"):
            OnlineClassifier(**options).fit(X, y)
        model = OnlineClassifier(eta0=1.0, **options).fit(X, y)
        assert clone(model).get_params()[next(iter(options))] == next(iter(options.values()))
        with pytest.raises(ValueError, match="cannot be merged"):
            merge([model, model])


# ------------------------------------------------------------------------------------------------ one common factor


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_the_factor_of_l2_begins_anew(form, l1):
    """Under the scalar metric weights keep e^(l2 G), which would grow out of floats: here l2 G comes to 1500."""
    X, y, weight = data(n=200, seed=3)
    options = {"center": "trajectory", "metric": "scalar", "schedule": "constant", "l1": l1, "l2": 2.0}
    alone, bank = Learner(eta0=1.0, **options), Bank(eta0=[1.0, 0.5], **options)
    trace = alone.learn(form(X), y, weight)
    assert 2.0 * weight.sum() > layout.SHRUNK_FAR
    assert alone.state.paths[0] * 2.0 <= layout.SHRUNK_FAR + 2.0 * weight.max()
    assert np.allclose(trace.prediction, bank.learn(form(X), y, weight).prediction[:, 0], rtol=1e-9, atol=1e-12)
    assert np.allclose(alone.coef_, bank.coef_[0], rtol=1e-9, atol=1e-12)
    pieces = Learner(eta0=1.0, **options)
    for start in range(0, 200, 7):
        pieces.learn(form(X[start : start + 7]), y[start : start + 7], weight[start : start + 7])
    assert pieces.coef_.tobytes() == alone.coef_.tobytes()
    before = copy.deepcopy(alone)
    X[-1, 0] = np.inf
    with pytest.raises(ValueError, match="inf"):
        alone.learn(form(X), y, weight)
    assert alone.state.table.tobytes() == before.state.table.tobytes()
    assert alone.state.paths.tobytes() == before.state.paths.tobytes()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_penalty_that_is_beyond_all_floats_leaves_zero(metric, classes, form):
    """l1 times the sum of all rates times 1/s^2 overflows: the model is zero, and the intercept goes on."""
    X, y = form(np.full((3, 1), 1e-150)), np.array([1.0, -1.0, 1.0]) if classes == 1 else np.arange(3.0)
    learner = Learner(schedule="constant", metric=metric, eta0=1.0, l1=1e30, n_outputs=classes)
    for _ in range(3):
        learner.learn(X, y, [1.0, 1e6, 1.0])
    assert not learner.coef_.any()
    assert np.isfinite(learner.intercept_).all()
    assert np.isfinite(learner.predict(X)).all()
