"""The full metric: against least squares in 50 digits, against its differential equation, and at the ends of floats."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.integrate import solve_ivp
from sklearn.base import clone
from sklearn.linear_model import Ridge

from steelyard import Bank, CustomLoss, Learner, OnlineClassifier, OnlineRegressor
from steelyard.fullmatrix import MOST_FEATURES
from steelyard.losses import LOSSES, Huber, get_loss
from strategies import CUSTOM, random_labels
from test_modelfile import rewrite

CURVED = [
    *(kind() for kind in LOSSES.values() if kind.curvature),
    Huber(0.3),
    CustomLoss(CUSTOM["logistic"].value, CUSTOM["logistic"].slope, labels="sign", infimum=0.0, curvature=0.1),
]


def ids(loss):
    return f"{type(loss).__name__}-{loss.name}"


def stream(loss, rows=60, features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) @ (np.eye(features) + 0.9)
    return X, random_labels(get_loss(loss), rng, rows), rng.exponential(size=rows)


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def inverse(learner):
    """A^-1 from the triangle."""
    n = learner.n_features + 1
    columns = np.zeros((n, n))
    columns[np.tril_indices(n)] = learner.state.factor
    return columns.T @ columns


def ridge(Q, y, h, eta0):
    """The u that minimizes ||u||^2/eta0 + sum h (y - <q, u>)^2, and the minimum, in 50 digits."""
    with mp.workdps(50):
        rows, labels, weights = mp.matrix(Q.tolist()), mp.matrix(y.tolist()), mp.diag(h.tolist())
        A = mp.eye(Q.shape[1]) / mp.mpf(eta0) + rows.T * weights * rows
        u = mp.lu_solve(A, rows.T * weights * labels)
        residual = labels - rows * u
        least = (u.T * u)[0] / mp.mpf(eta0) + (residual.T * weights * residual)[0]
        return np.array([float(v) for v in u]), float(least)


# ------------------------------------------------------------------------------------------------- what it computes


@pytest.mark.parametrize(("eta0", "digits"), [(0.01, 1e-13), (1.0, 1e-13), (1e6, 1e-9)])
def test_the_squared_loss_gives_recursive_least_squares(eta0, digits):
    X, y, h = stream("squared")
    learner = Learner("squared", metric="full", eta0=eta0)
    trace = learner.learn(X, y, h)
    Q = with_ones(X)
    u, least = ridge(Q, y, h, eta0)
    np.testing.assert_allclose([*learner.coef_, learner.intercept_], u, rtol=digits, atol=digits * np.abs(u).max())
    A, total = np.eye(5) / eta0, 0.0
    for q, label, weight, p in zip(Q, y, h, trace.prediction, strict=True):
        total += weight * (p - label) ** 2 / (1.0 + weight * q @ np.linalg.solve(A, q))
        A += weight * np.outer(q, q)
    assert total == pytest.approx(least, rel=max(digits, 1e-10))
    np.testing.assert_allclose(inverse(learner) @ A, np.eye(5), atol=1e-10 * np.sqrt(eta0 + 1.0))


@pytest.mark.parametrize("loss", CURVED, ids=ids)
def test_the_step_is_the_flow_while_the_matrix_grows(loss):
    """dx/ds = -slope(<q, x>) A(s)^-1 q with A(s) = A + kappa s q q', by a solver that knows no closed form."""
    X, y, h = stream(loss, rows=3, features=2)
    h = 3.0 * h
    learner = Learner(loss, metric="full", eta0=2.0)
    learner.learn(X, y, h)
    x, A = np.zeros(3), np.eye(3) / 2.0
    for q, label, weight in zip(with_ones(X), y, h, strict=True):

        def flow(s, x, q=q, label=label, A=A):
            return -loss.slope(float(q @ x), label) * np.linalg.solve(A + loss.curvature * s * np.outer(q, q), q)

        x = solve_ivp(flow, (0.0, weight), x, "DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
        A = A + loss.curvature * weight * np.outer(q, q)
    np.testing.assert_allclose([*learner.coef_, learner.intercept_], x, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("loss", CURVED, ids=ids)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_weight_may_be_cut_anywhere(loss, data):
    X, y, h = stream(loss, rows=12, seed=data.draw(st.integers(0, 10**6)))
    h = h * 10.0 ** data.draw(st.integers(-6, 6))
    parts = np.array(data.draw(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=5)))
    parts /= parts.sum()
    options = dict(metric="full", eta0=data.draw(st.sampled_from([1e-3, 1.0, 1e2])))
    whole, cut = Learner(loss, **options), Learner(loss, **options)
    assert whole.regularizer.keeps_weights_exact("iwa")
    whole.learn(X, y, h)
    cut.learn(np.repeat(X, parts.size, axis=0), np.repeat(y, parts.size), np.outer(h, parts).ravel())
    longest = loss.curvature * h.max() * options["eta0"] * (1.0 + (X * X).sum(axis=1).max())
    digits = (1e-12 if loss.name != "custom" else 1e-8) + 1e-15 * longest  # a user's flow is solved numerically
    np.testing.assert_allclose(cut.coef_, whole.coef_, atol=digits * np.abs(whole.coef_).max(), rtol=0.0)


def test_the_certificate_bounds_the_regret_against_the_best_model():
    X, y, h = stream("squared", rows=200)
    for update in ("iwa", "proximal", "aprox"):
        learner = Learner("squared", metric="full", eta0=10.0, update=update, certificate=True)
        played = float(h @ learner.learn(X, y, h).loss)
        u, _ = ridge(with_ones(X), y, h, 1e6)
        regret = played - 0.5 * float(h @ (with_ones(X) @ u - y) ** 2)
        assert 0.0 < regret <= learner.certify().regret_bound(u[:-1], u[-1]) * (1.0 + 1e-12)


# ------------------------------------------------------------------------------------------------------ the extremes


@pytest.mark.parametrize("loss", CURVED, ids=ids)
def test_weights_and_values_at_the_ends_of_floats(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * [1e-150, 1.0, 1e149, 1.0]
    X[:, 3] = X[:, 1]  # collinear
    y = rng.choice([-1.0, 1.0], 80)
    learner = Learner(loss, metric="full")
    for h in (np.full(80, 1e-300), np.full(80, 1e300), 10.0 ** rng.uniform(-300, 300, 80)):
        trace = learner.learn(X, y, h)
        assert (np.abs(trace.prediction) < 1e6).all()
        assert np.isfinite(learner.state.factor).all()
        assert (np.diag(inverse(learner)) >= 0.0).all()


@pytest.mark.parametrize("weight", [1e8, 1e16, 1e24, 1e100, 1e299])
def test_more_of_a_row_that_is_known_moves_nothing_else(weight):
    """From 1e16 on, what is left of b in that direction is less than the rounding of its terms."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 4)), np.array([1.0, -1.0, 1.0])
    for loss, digits in (("squared", 1e-12), ("huber", 1e-12), ("logistic", 0.1)):
        once, often = Learner(loss, metric="full"), Learner(loss, metric="full")
        once.learn(X, y, np.full(3, weight))
        often.learn(np.repeat(X, 5, axis=0), np.repeat(y, 5), np.full(15, weight / 5.0))
        np.testing.assert_allclose(often.coef_, once.coef_, atol=digits * np.abs(once.coef_).max())


def test_a_huge_weight_ends_at_the_label():
    for weight in (1e17, 1e300):
        learner = Learner("squared", metric="full")
        learner.learn([[1.0, 2.0]], [3.0], [weight])
        assert learner.predict([[1.0, 2.0]])[0] == pytest.approx(3.0, rel=1e-14)


def test_a_million_rows_do_not_wear_the_matrix_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 3)) @ np.array([[1.0, 1.0, 1.0], [0.0, 1e-3, 0.0], [0.0, 0.0, 10.0]])
    y = X @ [1.0, -2.0, 0.5] + 1.0
    learner = Learner("squared", metric="full", eta0=100.0)
    learner.learn(X, y)
    Q = with_ones(X)
    A = np.eye(4) / 100.0 + Q.T @ Q
    np.testing.assert_allclose(inverse(learner), np.linalg.inv(A), rtol=1e-7, atol=1e-16)
    np.testing.assert_allclose([*learner.coef_, learner.intercept_], np.linalg.solve(A, Q.T @ y), rtol=1e-6)


@pytest.mark.parametrize("eta0", [1.0, 1e6])
def test_columns_as_they_come(eta0):
    """Seconds since 1970 beside thousandths: the matrix has a condition of 1e18 and more."""
    rng = np.random.default_rng(0)
    X = np.column_stack([1.5e9 + 1e4 * rng.normal(size=200), rng.normal(size=200), 1e-3 * rng.normal(size=200)])
    y = X @ [1e-6, 2.0, 500.0] + 0.1 * rng.normal(size=200)
    learner = Learner("squared", metric="full", eta0=eta0)
    learner.learn(X, y)
    u, _ = ridge(with_ones(X), y, np.ones(200), eta0)
    np.testing.assert_allclose([*learner.coef_, learner.intercept_], u, rtol=1e-7)


def test_columns_that_repeat_each_other_share_their_weight():
    rng = np.random.default_rng(0)
    column = rng.normal(size=(200, 1))
    learner = Learner("squared", metric="full", eta0=1e8, fit_intercept=False)
    learner.learn(np.hstack([column] * 3), 6.0 * column[:, 0])
    np.testing.assert_allclose(learner.coef_, [2.0, 2.0, 2.0], rtol=1e-6)


# ------------------------------------------------------------------------------------------ the life of a learner


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_refused_or_interrupted_block_changes_nothing(outputs, form, monkeypatch):
    X, y, h = stream("logistic")
    X[:, 2] = 0.0  # a feature that moves although no row has it
    y = y if outputs == 1 else np.arange(60.0) % 3
    learner = Learner("logistic", metric="full", n_outputs=outputs, certificate=True)
    learner.learn(form(X[:, ::-1]), y, h)
    before = [array.copy() for array in learner.state]
    bad = X.copy()
    bad[50, 1] = np.inf
    with pytest.raises(ValueError, match="inf in row 50, column 1"):
        learner.learn(form(bad), y)
    inner = Learner._run_kernel

    def interrupted(self, *arguments):
        inner(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Learner, "_run_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(form(X), y)
    for kept, now in zip(before, learner.state, strict=True):
        np.testing.assert_array_equal(kept, now)


HARM = {
    "an entry": lambda factor: np.where(np.arange(factor.size) == 1, np.nan, factor),
    "a diagonal": lambda factor: np.where(np.arange(factor.size) == 2, -1.0, factor),
    "a size": lambda factor: factor[:-1],
    "a shape": lambda factor: factor[:, None],
    "a type": lambda factor: factor.astype(np.float32),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_matrix_that_no_learner_can_have_is_not_loaded(tmp_path, harm):
    X, y, h = stream("squared")
    learner = Learner("squared", metric="full", eta0=3.0)
    learner.learn(X, y, h)
    learner.save(tmp_path / "m")
    np.testing.assert_array_equal(Learner.load(tmp_path / "m").state.factor, learner.state.factor)
    rewrite(tmp_path / "m", factor=HARM[harm](learner.state.factor))
    with pytest.raises(ValueError, match=r"m is damaged: its (matrix|arrays)"):
        Learner.load(tmp_path / "m")


def test_the_estimators_have_it():
    X, y, h = stream("squared")
    model = OnlineRegressor(metric="full", eta0=2.0, fit_intercept=False, random_state=0)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params()["schedule"] is None
    expected = Ridge(alpha=0.5, fit_intercept=False).fit(X, y, h)
    np.testing.assert_allclose(model.fit(X, y, h).coef_, expected.coef_, rtol=1e-10)  # in whatever order
    np.testing.assert_allclose(clone(model).partial_fit(X, y, h).coef_, expected.coef_, rtol=1e-10)
    classes = np.arange(60) % 3
    classifier = OnlineClassifier(metric="full", eta0=1.0).fit(X + 3.0 * np.eye(4)[classes], classes)
    assert classifier.score(X + 3.0 * np.eye(4)[classes], classes) > 0.5
    with pytest.raises(ValueError, match="metric='full' needs a learning rate"):
        OnlineRegressor(metric="full").fit(X, y)
    OnlineRegressor(schedule="power").fit(X, y)
    with pytest.raises(ValueError, match="schedule='gap' needs a learning rate"):
        OnlineRegressor(schedule="gap").fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(schedule="power"), "schedule='power' means nothing under metric='full'"),
        (dict(schedule="adagrad-norm"), "schedule='adagrad-norm' means nothing under metric='full'"),
        (dict(power_t=0.3), "power_t=0.3 means nothing under metric='full'"),
        (dict(center="origin"), "metric='full' needs center='trajectory'"),
        (dict(radius=1.0), "radius needs metric='scalar'"),
        (dict(guard=True), "guard=True needs center='origin', metric='scalar'"),
        (dict(loss="hinge"), "unlike that of the hinge loss: use squared, logistic, squared_hinge, huber, or a Custom"),
        (dict(loss="poisson"), "unlike that of the poisson loss"),
        (dict(loss=CUSTOM["huber"]), "unlike that of the custom loss"),
    ],
)
def test_what_means_nothing_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Learner(**{"loss": "squared", "metric": "full"} | options)


def test_what_it_has_no_room_for_is_refused():
    with pytest.raises(ValueError, match="a bank has no metric='full'"):
        Bank("squared", metric="full")
    learner = Learner("squared", metric="full")
    with pytest.raises(ValueError, match=r"10001 features would take 0\.4 GB, and at most 10000 are taken"):
        learner.learn(sp.csr_matrix((1, MOST_FEATURES + 1)), [1.0])
    learner.learn([[1.0]], [1.0])
    with pytest.raises(ValueError, match="a matrix in place of lam"):
        learner.lam()
    with pytest.raises(ValueError, match="row 0, column 0: too large"):
        Learner("squared", metric="full", eta0=1e200).learn([[1e60]], [1.0])
    with pytest.raises(ValueError, match="curvature must be a finite number > 0, got 0"):
        CustomLoss(CUSTOM["huber"].value, CUSTOM["huber"].slope, curvature=0.0)
