"""The learner against the naive one, against itself in other layouts, and against bad input."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import naive
import steelyard
from steelyard import CustomLoss, Learner, Mixture
from steelyard.regularizers import CENTERS, METRICS, SCHEDULES
from steelyard.updates import UPDATES

SCALED = ("scalar", "diagonal")  # the metrics that lam_t multiplies
COMBINATIONS = [*itertools.product(SCHEDULES, SCALED, CENTERS), ("constant", "full", "trajectory")]


def make(loss, rows=80, features=6, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.6) * 10.0 ** rng.integers(-1, 2, features)
    score = X @ rng.normal(size=features) + rng.normal(size=rows)
    y = np.sign(score) if loss == "logistic" else score / score.std()
    weight = np.where(rng.random(rows) < 0.1, 0.0, rng.exponential(size=rows))
    return (sp.csr_matrix(X) if sparse else X), y, weight


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("schedule", "metric", "center"), COMBINATIONS)
def test_agrees_with_the_naive_learner(schedule, metric, center, loss, update):
    X, y, weight = make(loss)
    options = dict(update=update, schedule=schedule, metric=metric, center=center, eta0=0.3)
    learner = Learner(loss, **options)
    trace = learner.learn(X, y, weight)
    rows = np.column_stack([X, np.ones(len(X))]).tolist()
    predictions, x = naive.learn(rows, y.tolist(), weight.tolist(), loss=loss, **options)
    np.testing.assert_allclose(trace.prediction, predictions, rtol=1e-10, atol=1e-12 * np.abs(predictions).max())
    np.testing.assert_allclose([*learner.coef_, learner.intercept_], x, rtol=1e-10, atol=1e-12 * np.abs(x).max())
    expected = [naive.value(loss, p, t) for p, t in zip(predictions, y, strict=True)]
    np.testing.assert_allclose(trace.loss, expected, rtol=1e-9, atol=1e-12)
    assert trace.average_loss == pytest.approx(np.average(expected, weights=weight), rel=1e-10)
    assert learner.progressive_loss_ == pytest.approx(trace.average_loss, rel=1e-12)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_ball_agrees_with_the_naive_learner_and_holds(schedule, center, loss, update):
    for radius in (0.05, 0.5):
        X, y, weight = make(loss, rows=60, seed=3)
        options = dict(update=update, schedule=schedule, metric="scalar", center=center, eta0=1.0, radius=radius)
        learner = Learner(loss, **options)
        trace = learner.learn(X, y, weight)
        rows = np.column_stack([X, np.ones(len(X))]).tolist()
        predictions, x = naive.learn(rows, y.tolist(), weight.tolist(), loss=loss, **options)
        np.testing.assert_allclose(trace.prediction, predictions, rtol=1e-8, atol=1e-9)
        found = [*learner.coef_, learner.intercept_]
        np.testing.assert_allclose(found, x, rtol=1e-8, atol=1e-9)
        assert np.linalg.norm(found) <= radius * (1 + 1e-12)


@pytest.mark.parametrize("center", CENTERS)
def test_the_ball_keeps_its_norm_over_many_rows(center):
    X, y, weight = make("logistic", rows=2500, seed=3)
    learner = Learner("logistic", schedule="constant", metric="scalar", center=center, radius=0.05)
    learner.learn(X, y, weight)
    assert np.linalg.norm([*learner.coef_, learner.intercept_]) == pytest.approx(0.05, rel=1e-9)


def test_in_a_ball_weights_are_exact_for_center_origin():
    """The flow is autonomous in theta; with center trajectory, the model is put into the ball in between."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.choice([-1.0, 1.0], 30)
    whole, halves = 10.0 ** rng.uniform(-1, 1, 30), rng.uniform(0.1, 0.9, 30)
    for loss, center in itertools.product(("logistic", "squared", "hinge"), CENTERS):
        options = dict(schedule="constant", metric="scalar", center=center, eta0=2.0, radius=0.3)
        one, two = Learner(loss, **options), Learner(loss, **options)
        one.learn(X, y, whole)
        parts = np.column_stack([whole * halves, whole * (1.0 - halves)]).ravel()
        two.learn(np.repeat(X, 2, axis=0), np.repeat(y, 2), parts)
        difference = np.abs(one.coef_ - two.coef_).max()
        assert one.regularizer.keeps_weights_exact("iwa") == (center == "origin")
        assert difference <= 1e-10 or center == "trajectory"


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("schedule", "metric", "center"), COMBINATIONS)
def test_rows_blocks_layouts_and_types_give_the_same_bits(schedule, metric, center, outputs):
    X, y, weight = make("logistic", rows=60, seed=1)
    X = X.astype(np.float32).astype(np.float64)
    if outputs > 1:
        y = np.arange(60.0) % outputs
    options = dict(schedule=schedule, metric=metric, center=center, eta0=0.5, n_outputs=outputs)

    def state_after(matrix, cuts=(0, 60)):
        learner = Learner("logistic", **options)
        traces = [learner.learn(matrix[a:b], y[a:b], weight[a:b]) for a, b in itertools.pairwise(cuts)]
        return learner.state, np.concatenate([t.prediction for t in traces])

    def assert_same(got, expected):
        for a, b in zip([*got[0], got[1]], [*expected[0], expected[1]], strict=True):
            np.testing.assert_array_equal(a, b)

    dense = state_after(X)
    assert_same(state_after(X, range(61)), dense)
    assert_same(state_after(X, (0, 7, 7, 31, 60)), dense)
    assert_same(state_after(np.asfortranarray(X)), dense)
    assert_same(state_after(X.astype(np.float32)), dense)
    X.setflags(write=False)
    assert_same(state_after(X), dense)

    sparse = sp.csr_matrix(X)
    expected = state_after(sparse)
    assert_same(state_after(sparse, range(61)), expected)
    assert_same(state_after(sparse.astype(np.float32)), expected)
    wide = sparse.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_same(state_after(wide), expected)
    assert_same(state_after(sparse.tocsc()), expected)
    assert_same(state_after(sp.csr_array(sparse)), expected)
    # dense sums run in another order than sparse ones, so here only nearly
    np.testing.assert_allclose(expected[1], dense[1], rtol=1e-9, atol=1e-12)


EXACT = [("constant", metric, center) for metric in SCALED for center in CENTERS]
EXACT += [("power", metric, "trajectory") for metric in SCALED]


@pytest.mark.parametrize("power_t", [0.5, 0.3, 1.0, 0.0])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "huber", "poisson"])
@pytest.mark.parametrize(("schedule", "metric", "center"), EXACT)
def test_a_weight_cut_in_two_moves_every_coefficient_the_same(schedule, metric, center, loss, power_t):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = {"poisson": rng.poisson(2.0, 40).astype(float), "squared": rng.normal(size=40), "huber": rng.normal(size=40)}
    y = y.get(loss, rng.choice([-1.0, 1.0], 40))
    first, second = rng.exponential(size=(2, 40)) * 3.0
    options = dict(schedule=schedule, metric=metric, center=center, eta0=0.4, power_t=power_t)
    assert Learner(loss, **options).regularizer.keeps_weights_exact("iwa")
    whole, cut = Learner(loss, **options), Learner(loss, **options)
    whole.learn(X, y, first + second)
    cut.learn(np.repeat(X, 2, axis=0), np.repeat(y, 2), np.column_stack([first, second]).ravel())
    np.testing.assert_allclose(cut.coef_, whole.coef_, rtol=1e-12, atol=1e-14)
    assert cut.intercept_ == pytest.approx(whole.intercept_, rel=1e-12)


def test_only_the_promised_settings_keep_weights_exact():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 4)) * 0.5, rng.normal(size=30)
    for update, (schedule, metric, center) in itertools.product(UPDATES, COMBINATIONS):
        options = dict(update=update, schedule=schedule, metric=metric, center=center, eta0=0.4)
        whole, cut = Learner("squared", **options), Learner("squared", **options)
        whole.learn(X, y, np.full(len(y), 2.0))
        cut.learn(np.repeat(X, 2, axis=0), np.repeat(y, 2))
        same = np.allclose(cut.coef_, whole.coef_, rtol=1e-9)
        assert same == whole.regularizer.keeps_weights_exact(update), options


@pytest.mark.parametrize("metric", SCALED)
def test_a_huge_weight_ends_at_the_label(metric):
    for weight in (1e6, 1e300):
        learner = Learner("squared", metric=metric, eta0=1.0)
        learner.learn([[1.0, 2.0]], [3.0], [weight])
        assert learner.predict([[1.0, 2.0]])[0] == pytest.approx(3.0, rel=1e-12)
        logistic = Learner("logistic", metric=metric, schedule="constant", eta0=1.0)
        logistic.learn([[1.0, 2.0]], [1.0], [weight])
        assert 10.0 < logistic.predict([[1.0, 2.0]])[0] < 800.0


@pytest.mark.parametrize(("schedule", "metric", "center"), COMBINATIONS)
def test_weight_zero_is_exactly_nothing(schedule, metric, center):
    X, y, _ = make("logistic", seed=4)
    with_zeros, without = (Learner("logistic", schedule=schedule, metric=metric, center=center) for _ in range(2))
    keep = np.arange(len(y)) % 3 > 0
    with_zeros.learn(X * np.where(keep, 1.0, 100.0)[:, None], y, keep.astype(float))
    without.learn(X[keep], y[keep])
    for a, b in zip(with_zeros.state, without.state, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("metric", METRICS)
def test_one_vs_rest_is_one_learner_for_each_class(metric):
    X, _, weight = make("logistic", seed=5)
    classes = np.arange(len(X)) % 3
    together = Learner("logistic", metric=metric, n_outputs=3)
    together.learn(X, classes, weight)
    for k in range(3):
        alone = Learner("logistic", metric=metric)
        alone.learn(X, np.where(classes == k, 1.0, -1.0), weight)
        np.testing.assert_allclose(together.coef_[k], alone.coef_, rtol=1e-10)
        np.testing.assert_allclose(together.predict(X)[:, k], alone.predict(X), rtol=1e-10)


def test_columns_of_any_scale_stay_finite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1e-150, 1.0, 1e150]
    y = np.sign(X[:, 0] * 1e150 + X[:, 2] * 1e-150)
    learner = Learner("logistic")
    learner.learn(X, y)
    assert np.isfinite(learner.coef_).all()
    # what a column of scale 1 would teach, a column of scale s teaches divided by s, to rounding
    ordinary = Learner("logistic")
    ordinary.learn(X * [1e150, 1.0, 1e-150], y)
    np.testing.assert_allclose(learner.coef_ * [1e-150, 1.0, 1e150], ordinary.coef_, rtol=1e-9)


def test_a_diverging_learner_is_reported_and_does_not_crash():
    X, y, _ = make("squared", rows=500)
    learner = Learner("squared", update="linearized", schedule="constant", metric="scalar", eta0=100.0)
    with pytest.warns(
        RuntimeWarning, match=r"update='linearized' with eta0=100 diverges .* in row \d+.*update='iwa'|row"
    ):
        learner.learn(X, y)
    steady = Learner("squared", schedule="constant", metric="scalar", eta0=100.0)
    assert np.isfinite(steady.learn(X, y).loss).all()


# ------------------------------------------------------------------------------------------ model files


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_saved_learner_goes_on_to_the_bit(tmp_path, outputs):
    X, y, weight = make("logistic")
    y = y if outputs == 1 else np.arange(80.0) % 3
    loss = steelyard.losses.Logarithmic(eps=1e-4)
    learner = Learner(loss, schedule="adagrad-norm", eta0=0.2, n_outputs=outputs)
    learner.learn(X[:40], y[:40], weight[:40])
    learner.save(tmp_path / "model")
    again = Learner.load(tmp_path / "model")
    assert again.loss == loss
    assert repr(again) == repr(learner)
    for each in (learner, again):
        each.learn(X[40:], y[40:], weight[40:])
    for a, b, c in zip(learner.state, again.state, pickle.loads(pickle.dumps(again)).state, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_empty_learner_can_be_saved(tmp_path):
    Learner("huber").save(tmp_path / "empty.npz")
    assert Learner.load(tmp_path / "empty.npz").state is None


def test_saving_fails_without_harm(tmp_path, monkeypatch):
    learner = Learner("squared")
    learner.learn([[1.0]], [1.0])
    learner.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    learner.learn([[1.0]], [5.0])
    monkeypatch.setattr(np.lib.format, "write_array", lambda file, *more, **options: file.write(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_users_loss_is_asked_for_when_loading(tmp_path):
    mine = CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y)
    learner = Learner(mine)
    learner.learn([[1.0]], [2.0])
    learner.save(tmp_path / "m")
    with pytest.raises(ValueError, match="needs loss="):
        Learner.load(tmp_path / "m")
    assert Learner.load(tmp_path / "m", loss=mine).coef_ == learner.coef_


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "m").write_bytes(b"not a model")
    np.save(tmp_path / "a.npy", np.ones(3))
    np.savez(tmp_path / "b.npz", header=np.array("{}"))
    np.savez(tmp_path / "c.npz", header=np.array("[1]"))
    for name in ("m", "a.npy", "b.npz", "c.npz"):
        with pytest.raises(ValueError, match=f"{name} is not a Steelyard model file"):
            Learner.load(tmp_path / name)
    learner = Learner("squared")
    learner.learn([[1.0, 2.0]], [1.0])
    learner.state = learner.state._replace(clocks=learner.state.clocks[:, :3])
    learner.save(tmp_path / "cut")
    with pytest.raises(ValueError, match="cut is damaged: its arrays do not fit together"):
        Learner.load(tmp_path / "cut")


# -------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(loss="smooth"), "unknown loss 'smooth'; choose one of squared, logistic"),
        (dict(loss="log_loss"), "what others call 'log_loss' is 'logistic' here"),
        (dict(update="sgd"), "unknown update 'sgd'; choose one of linearized, aprox, iwa, proximal"),
        (dict(schedule="fast"), "unknown schedule 'fast'; choose one of constant, power, adagrad-norm, gap"),
        (dict(metric="dense"), "unknown metric 'dense'; choose one of scalar, diagonal, full"),
        (dict(center="mean"), "unknown center 'mean'; choose one of origin, trajectory"),
        (dict(eta0=0.0), "eta0 must be a finite number > 0, got 0.0"),
        (dict(eta0="big"), "eta0 must be a finite number > 0, got 'big'"),
        (dict(radius=-1.0, metric="scalar"), "radius must be a finite number > 0"),
        (dict(radius=1.0), "radius needs metric='scalar'"),
        (dict(power_t=1.5), "power_t must be a number between 0 and 1"),
        (dict(n_outputs=0), "n_outputs must be at least 1"),
        (dict(guard=True), "guard=True needs center='origin'"),
        (dict(loss="poisson", n_outputs=3), "no one-vs-rest form"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Learner(**options)


X3 = np.arange(12.0).reshape(4, 3)
Y4 = np.array([1.0, -1.0, 1.0, -1.0])


def bad(row, column, value, dtype=np.float64):
    X = X3.astype(dtype)
    X[row, column] = value
    return X


@pytest.mark.parametrize("dressed", [np.asarray, sp.csr_matrix, lambda X: np.vstack([X] * 50)[-4:]])
@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        (X3[0], Y4, None, "two dimensions"),
        (bad(2, 1, np.nan), Y4, None, "nan in row 2, column 1"),
        (bad(3, 2, np.inf), Y4, None, "inf in row 3, column 2"),
        (bad(3, 2, np.inf, np.float32), Y4, None, "inf in row 3, column 2"),
        (bad(1, 0, 1e200), Y4, None, "row 1, column 0: its square overflows"),
        (X3, Y4[:3], None, "one label for each of the 4 rows"),
        (X3, [1, -1, 2, 1], None, "label 2 in row 2 is outside the logistic loss: use -1 or"),
        (X3, [1, -1, np.nan, 1], None, "label nan in row 2"),
        (X3, Y4, [1, -2, 1, 1], "sample_weight is -2.0 in row 1"),
        (X3, Y4, [1, np.nan, 1, 1], "sample_weight is nan in row 1"),
        (X3, Y4, [1, 1, 1, np.inf], "sample_weight is inf in row 3"),
        (X3, Y4, [1, 1], "one weight for each of the 4 rows"),
        (X3[:, :2], Y4, None, "X has 2 features, but the learner has learned 3"),
    ],
)
@pytest.mark.parametrize("metric", METRICS)
def test_bad_input_is_named_and_changes_nothing(X, y, weight, message, metric, dressed):
    if dressed is not np.asarray and np.ndim(X) == 1:
        pytest.skip("a single row has no sparse or stacked form")
    learner = Learner("logistic", metric=metric)
    for first in (True, False):
        if first and "has learned 3" in message:
            learner.learn(X3, Y4)
        before = None if learner.state is None else [a.copy() for a in learner.state]
        with pytest.raises(ValueError, match=message):
            learner.learn(dressed(X), y, weight)
        if before is None:
            assert learner.state is None
        else:
            for a, b in zip(before, learner.state, strict=True):
                np.testing.assert_array_equal(a, b)
        learner.learn(X3, Y4)


KINDS = {
    "scalar": lambda: Learner("logistic", metric="scalar"),
    "diagonal": lambda: Learner("logistic"),
    "AdaGrad": lambda: Learner("logistic", schedule="adagrad-norm"),
    "ball": lambda: Learner("logistic", metric="scalar", radius=1.0),
    "full": lambda: Learner("logistic", metric="full"),
    "mixture": lambda: Mixture("logistic"),
}


@pytest.mark.parametrize("rows", [3, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_an_invalid_csr_matrix_is_refused(kind, rows):
    learner = KINDS[kind]()
    y = np.resize([1.0, -1.0], rows)
    X = sp.csr_matrix(np.tile(np.eye(3), (rows // 3, 1)))
    learner.learn(X, y)
    before = [array.copy() for array in learner.state]
    for index in (7, 3, -1):
        X.indices[-2] = index
        with pytest.raises(ValueError, match=rf"column index {index} in row {rows - 2} is outside 0 … 2"):
            learner.learn(X, y)
        for kept, now in zip(before, learner.state, strict=True):
            np.testing.assert_array_equal(kept, now)
    X = sp.csr_matrix(np.eye(3))
    X.indptr[1] = 3
    with pytest.raises(ValueError, match="indptr does not cut its data into rows"):
        learner.learn(X, [1, -1, 1])
    X = sp.csr_matrix(np.eye(3))
    X.indptr[3] = 4
    with pytest.raises(ValueError, match="indptr goes past the end of its data"):
        learner.learn(X, [1, -1, 1])


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("length", [2, 3, 16, 17, 18, 33, 75])
def test_rows_in_disorder_are_put_in_order(length, width):
    """An index too early, or twice, at every place of the last row: whichever way the kernel compares them."""
    n = 100
    rng = np.random.default_rng(length)
    y = np.resize([1.0, -1.0], 60)
    for place in range(1, length, 1 if length < 33 else 7):
        columns = np.array([np.sort(rng.choice(n, length, replace=False)) for _ in y])
        columns[-1, place] = columns[-1, place - 1] if place % 2 else columns[-1, 0]
        rng.shuffle(columns[0])
        indptr = np.arange(0, length * y.size + 1, length)
        X = sp.csr_matrix((rng.normal(size=columns.size), columns.ravel().astype(width), indptr), shape=(y.size, n))
        X.indices = X.indices.astype(width)
        for make_learner in KINDS.values():
            learner, ordered = make_learner(), make_learner()
            for _ in range(2):
                learner.learn(X, y)
                ordered.learn(sp.csr_matrix(X.toarray()), y)
            np.testing.assert_allclose(learner.coef_, ordered.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dressed", [np.asarray, sp.csr_matrix])
def test_a_row_that_the_metric_cannot_measure_changes_nothing(dressed):
    learner = Learner("squared")
    learner.learn(np.eye(4)[1:], [1.0, 2.0, 3.0])
    before = [array.copy() for array in learner.state]
    X = dressed(np.array([[0.0, 3.0, 1.0, 0.0], [1e-160, 0.0, 0.0, 2.0]]))
    with pytest.raises(ValueError, match="X holds 1e-160 in row 1, column 0: too large or too small"):
        learner.learn(X, [1.0, 1.0])
    for kept, now in zip(before, learner.state, strict=True):
        np.testing.assert_array_equal(kept, now)


@pytest.mark.parametrize("rows", [3, 300])
def test_only_rows_in_the_order_are_looked_at(rows):
    """Whatever the size of the block."""
    X, y = np.ones((rows, 2)), np.ones(rows)
    X[1] = np.nan
    order = np.delete(np.arange(rows), 1)
    learner = Learner("squared")
    learner.learn(X, y, order=order)
    learner.learn(X, y, order=order)
    with pytest.raises(ValueError, match="nan in row 1"):
        learner.learn(X, y)


def test_a_warning_made_an_error_changes_nothing():
    learner = Learner("squared", update="linearized", schedule="constant", metric="scalar")
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.ones(50)
    learner.learn(0.1 * X, y)
    before = [array.copy() for array in learner.state]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fresh in (False, True):
            one = Learner("squared", update="linearized", schedule="constant", metric="scalar") if fresh else learner
            with pytest.raises(RuntimeWarning, match="diverges"):
                one.learn(1e8 * X, y)
            assert not fresh or one.state is None
    for kept, now in zip(before, learner.state, strict=True):
        np.testing.assert_array_equal(kept, now)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("schedule", "center"), list(itertools.product(SCHEDULES, CENTERS)))
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_of_any_scale_give_the_same_model(schedule, center, n_outputs, sparse):
    rng = np.random.default_rng(1)
    X, scale = rng.normal(size=(60, 4)), np.array([1e-150, 1.0, 1e150, 1e20])
    y = rng.integers(0, 3, 60).astype(float) if n_outputs == 3 else np.sign(X[:, 0])
    models = []
    for columns in (X, X * scale):
        learner = Learner("logistic", schedule=schedule, center=center, n_outputs=n_outputs)
        learner.learn(sp.csr_matrix(columns) if sparse else columns, y)
        models.append(learner.coef_)
    np.testing.assert_allclose(models[1] * scale, models[0], rtol=1e-8)


def test_prediction_needs_learning_and_the_same_features():
    learner = Learner("logistic")
    with pytest.raises(ValueError, match="has not learned anything yet"):
        learner.predict(X3)
    learner.learn(X3, Y4)
    with pytest.raises(ValueError, match="X has 2 features"):
        learner.predict(X3[:, :2])
    with pytest.raises(ValueError, match="nan in row 0"):
        learner.predict(bad(0, 0, np.nan))
    assert learner.predict(X3[:0]).shape == (0,)
    assert learner.learn(X3[:0], Y4[:0]).prediction.shape == (0,)


def test_classes_outside_the_outputs_are_named():
    with pytest.raises(ValueError, match="label 3 in row 1 is none of the classes 0 … 2"):
        Learner("logistic", n_outputs=3).learn(X3, [0, 3, 1, 2])


# ------------------------------------------------------------------------------------ a user's own loss


def test_a_users_loss_runs_in_the_same_kernel_as_the_built_in_one():
    X, y, weight = make("squared")
    mine = CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y, infimum=0.0)
    for update in UPDATES:
        own, built_in = Learner(mine, update=update), Learner("squared", update=update)
        np.testing.assert_allclose(
            own.learn(X, y, weight).prediction, built_in.learn(X, y, weight).prediction, rtol=1e-8, atol=1e-10
        )


def test_what_a_users_loss_lacks_is_refused_by_name():
    mine = CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y)
    with pytest.raises(ValueError, match="pass infimum= to CustomLoss"):
        Learner(mine, update="aprox")
    with pytest.raises(ValueError, match="CustomLoss needs slope"):
        CustomLoss(lambda p, y: 0.0, None)
    with pytest.raises(ValueError, match="unknown labels='any'"):
        CustomLoss(lambda p, y: 0.0, lambda p, y: 0.0, labels="any")
    names = {"zero": 0.0}
    broken = CustomLoss(lambda p, y: names["zero"], lambda p, y: 0.0)
    with pytest.raises(TypeError, match="the value of a CustomLoss could not be compiled"):
        Learner(broken).learn(X3, Y4)


@pytest.mark.parametrize(
    ("value", "slope", "message"),
    [
        (lambda p, y: 1 / 0, lambda p, y: 0.0, "value or slope failed at p=-2.0, y=0.0: division by zero"),
        (lambda p: p, lambda p, y: 0.0, "value or slope failed"),
        (lambda p, y: p * p / 2, lambda p, y: np.nan, "not a finite number at p=-2.0"),
        (lambda p, y: p**4, lambda p, y: p, "slope\\(-2.0, 0.0\\) is -2, but value rises by -32"),
        (lambda p, y: -p * p / 2, lambda p, y: -p, "it is not convex"),
    ],
)
def test_a_users_mistakes_are_found_when_the_loss_is_made(value, slope, message):
    with pytest.raises(ValueError, match=message):
        CustomLoss(value, slope)


def test_orders_are_checked_and_converted():
    learner = Learner("logistic")
    learner.learn(X3, Y4, order=[3, 0])
    expected = Learner("logistic")
    expected.learn(X3[[3, 0]], Y4[[3, 0]])
    np.testing.assert_array_equal(learner.coef_, expected.coef_)
    learner.learn(X3, Y4, order=np.arange(4, dtype=np.int32)[::-1])
    before = learner.coef_
    for order, message in [
        ([4], "order names row 4, but X has rows 0 … 3"),
        ([-1], "order names row -1"),
        ([10**9], "order names row 1000000000"),
        ([0.5], "a list of row numbers, got 1 dimensions of float64"),
        ([[0]], "got 2 dimensions"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.learn(X3, Y4, order=order)
    np.testing.assert_array_equal(learner.coef_, before)


def test_loss_parameters_are_checked():
    for wrong, message in [
        (lambda: steelyard.losses.Quantile(1.0), "0 < tau < 1"),
        (lambda: steelyard.losses.Huber(-1.0), "delta > 0"),
        (lambda: steelyard.losses.Hellinger(0.0), "0 < eps < 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()


def test_step_refuses_what_it_cannot_use():
    for arguments, message in [
        ((np.nan, 1.0, 1.0), "p must be a number, got nan"),
        ((0.0, 2.0, 1.0), "label 2 is outside the logistic loss"),
        (([0.0, 0.0], [1.0, 0.5], 1.0), "label 0.5 at position 1"),
        ((0.0, 1.0, -1.0), "a must be a finite number >= 0, got -1"),
        ((0.0, 1.0, np.inf), "a must be a finite number >= 0, got inf"),
    ]:
        with pytest.raises(ValueError, match=message):
            steelyard.step(*arguments)
