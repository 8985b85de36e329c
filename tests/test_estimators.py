"""The estimators: scikit-learn's whole battery, and what users do with an estimator."""

from __future__ import annotations

import itertools
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import steelyard
from steelyard import CustomLoss, OnlineClassifier, OnlineRegressor
from steelyard.data.block import as_block
from steelyard.data.order import MOST_ENTRIES, _sort, first_visits, group_equal_rows, shuffled_visits

ESTIMATORS = [
    OnlineClassifier(),
    OnlineRegressor(),
    OnlineClassifier("hinge"),
    OnlineRegressor("huber"),
    OnlineClassifier(eta0=1.0),
    OnlineRegressor(eta0=1.0),
    OnlineClassifier(schedule="constant", eta0=0.3),
    OnlineRegressor(schedule="constant", eta0=0.3),
    OnlineClassifier(loss="hinge", center="origin", schedule="constant", eta0=0.3),
    OnlineClassifier(update="proximal", schedule="adagrad-norm", eta0=1.0),
    OnlineClassifier(schedule="gap", center="origin", eta0=1.0),
    OnlineRegressor(update="aprox", schedule="adagrad-norm", eta0=1.0),
    OnlineRegressor(update="linearized", eta0=0.5),
    OnlineClassifier(metric="full", eta0=1.0),
    OnlineRegressor(metric="full", eta0=1.0),
    OnlineClassifier(early_stopping=True, passes=5),
    OnlineRegressor(early_stopping=True, passes=5, eta0=1.0),
]


PARTIAL = ("check_fit_score_takes_y", "check_n_features_in_after_fitting", "check_estimators_partial_fit_n_features")


def without_partial_fit(estimator):
    """Checks that call ``partial_fit``, which refuses ``early_stopping``, as scikit-learn's SGD does."""
    return dict.fromkeys(PARTIAL, "partial_fit refuses early_stopping") if estimator.early_stopping else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=without_partial_fit)
def test_scikit_learn_battery(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_fit_does_not_see_where_rows_stand(cancer):
    X, y = cancer
    order = np.random.default_rng(0).permutation(len(y))
    model = OnlineClassifier(random_state=3, passes=2).fit(X, y)
    moved = OnlineClassifier(random_state=3, passes=2).fit(X[order], y[order])
    np.testing.assert_array_equal(moved.coef_, model.coef_)
    sparse = OnlineClassifier(random_state=3, passes=2).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.coef_, model.coef_, rtol=1e-9)
    other = OnlineClassifier(random_state=4, passes=2).fit(X, y)
    assert not np.array_equal(other.coef_, model.coef_)


def test_without_shuffling_fit_is_partial_fit(cancer):
    X, y = cancer
    fitted = OnlineClassifier(shuffle=False).fit(X, y)
    streamed = OnlineClassifier()
    for start in range(0, len(y), 100):
        streamed.partial_fit(X[start : start + 100], y[start : start + 100], classes=[0, 1])
    np.testing.assert_array_equal(streamed.coef_, fitted.coef_)
    np.testing.assert_array_equal(streamed.intercept_, fitted.intercept_)
    assert streamed.progressive_loss_ == pytest.approx(fitted.progressive_loss_, rel=1e-12)
    assert 0.0 < fitted.progressive_loss_ < np.log(2.0)


def test_progressive_loss_is_the_loss_before_learning(iris):
    X, y = iris
    model = OnlineClassifier(metric="scalar", eta0=1.0)
    total = 0.0
    for i in range(0, 150, 5):
        scores = model.decision_function(X[i : i + 1])[0] if i else np.zeros(3)
        total += np.mean(np.log1p(np.exp(-np.where(np.arange(3) == y[i], 1, -1) * scores)))
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
    assert model.progressive_loss_ == pytest.approx(total / 30, rel=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "logarithmic", "hellinger"])
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_probabilities(loss, data, request):
    X, y = request.getfixturevalue(data)
    model = OnlineClassifier(loss, random_state=0, passes=5).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (len(y), len(model.classes_))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)
    assert model.score(X, y) > 0.5


def test_losses_without_probabilities_say_so(cancer):
    model = OnlineClassifier("hinge").fit(*cancer)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(cancer[0])


def test_class_weights_multiply_sample_weights(cancer):
    X, y = cancer
    weight = np.random.default_rng(0).exponential(size=len(y))
    by_class = OnlineClassifier(class_weight={0: 3.0}, random_state=0).fit(X, y, weight)
    by_hand = OnlineClassifier(random_state=0).fit(X, y, weight * np.where(y == 0, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.coef_, by_hand.coef_)
    balanced = OnlineClassifier(class_weight="balanced", eta0=1.0, shuffle=False).fit(X, y)
    factors = len(y) / (2 * np.bincount(y))
    by_hand = OnlineClassifier(eta0=1.0, shuffle=False).fit(X, y, factors[y])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"eta0": 1.0}])
def test_balanced_classes_keep_whole_weights_exact(options):
    X, y = one_hot(60, 2, values=3)
    h = np.random.default_rng(0).integers(0, 4, 60)
    options = options | {"class_weight": "balanced", "random_state": 0}
    weighted = OnlineClassifier(**options).fit(X, y, sample_weight=h)
    repeated = OnlineClassifier(**options).fit(np.repeat(X, h, axis=0), np.repeat(y, h))
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)


def test_string_labels_and_names(iris):
    X, y = load_iris(as_frame=True, return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = OnlineClassifier(random_state=0, passes=10).fit(X, names)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert set(model.predict(X)) <= set(names)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.coef_.shape == (3, 4)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X.to_numpy())


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame, cancer):
    X, y = cancer
    columns = [f"c{j}" for j in range(X.shape[1])]
    table = frame(dict(zip(columns, X.T, strict=True)))
    model = OnlineClassifier(random_state=0).fit(table, y)
    np.testing.assert_array_equal(model.coef_, OnlineClassifier(random_state=0).fit(X, y).coef_)
    assert list(model.feature_names_in_) == columns
    model.predict(table)


def test_pipeline_search_cross_validation_and_copies(cancer, tmp_path):
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), OnlineClassifier(random_state=0))
    search = GridSearchCV(pipeline, {"onlineclassifier__eta0": [0.1, 1.0]}, cv=3, n_jobs=1).fit(X, y)
    assert search.best_score_ > 0.9
    assert cross_val_predict(pipeline, X, y, cv=3).shape == y.shape
    model = OnlineClassifier(random_state=0).fit(X, y)
    assert not hasattr(clone(model), "learner_")
    again = pickle.loads(pickle.dumps(model))
    joblib.dump(model, tmp_path / "model")
    for copy in (again, joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    again.partial_fit(X, y)
    model.partial_fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_regression_losses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    noise = rng.exponential(size=3000)
    y = X @ [1.0, -2.0] + noise
    for (loss, quantile), eta0 in itertools.product(
        [
            ("absolute", 0.5),
            (steelyard.losses.Quantile(0.9), 0.9),
            ("huber", None),
            ("squared", None),
        ],
        [2.0, "auto"],
    ):
        model = OnlineRegressor(loss, random_state=0, passes=10, eta0=eta0).fit(X, y)
        np.testing.assert_allclose(model.coef_, [1.0, -2.0], atol=0.15)
        if quantile:
            assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.05)
    counts = rng.poisson(np.exp(0.5 * X[:, 0] + 0.3))
    model = OnlineRegressor("poisson", random_state=0, passes=3).fit(X, counts)
    assert model.predict(X).mean() == pytest.approx(counts.mean(), rel=0.1)
    assert model.coef_[0] == pytest.approx(0.5, abs=0.1)


def test_a_users_loss_in_an_estimator():
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    mine = CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y)
    model = OnlineRegressor(mine, eta0=1.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, OnlineRegressor(eta0=1.0, random_state=0).fit(X, y).coef_, rtol=1e-6)
    tuned = OnlineRegressor(mine, random_state=0, passes=20).fit(X, y)
    assert tuned.score(X, y) > 0.4


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [
        (OnlineClassifier("poisson"), [0, 1, 0, 1], "poisson loss takes a finite number >= 0: it cannot classify"),
        (OnlineRegressor("logistic"), [0, 1, 0, 1], "logistic loss takes labels -1 or \\+1: use OnlineClassifier"),
        (OnlineRegressor("poisson"), [0, 1, -3, 1], "label -3 in row 2"),
        (OnlineRegressor(), [0, np.inf, 2, np.nan], "y contains NaN. The first is in row 3"),
        (OnlineRegressor(), [0, -np.inf, 2, 3], "y contains infinity.* The first is in row 1"),
        (OnlineClassifier(), np.array(["a", 1] * 2, dtype=object), r"kinds \['int', 'str'\] have no common order"),
        (OnlineClassifier(), [0.5, 1.5, 0.5, 1.5], "Unknown label type: continuous"),
        (OnlineClassifier(), [1, 1, 1, 1], "one class only"),
        (OnlineClassifier(update="sgd"), [0, 1, 0, 1], "unknown update 'sgd'"),
        (OnlineClassifier(eta0="best"), [0, 1, 0, 1], "eta0 must be 'auto' or a positive number, got 'best'"),
        (OnlineClassifier(update="proximal"), [0, 1, 0, 1], "update='proximal' needs a learning rate, eta0=1.0 for"),
        (OnlineClassifier(passes=0), [0, 1, 0, 1], "passes must be an integer of at least 1, got 0"),
        (OnlineClassifier(class_weight="even"), [0, 1, 0, 1], "class_weight must be a dict, 'balanced' or None"),
        (OnlineClassifier(class_weight={7: 2.0}), [0, 1, 0, 1], "class_weight names 7, not one of the classes"),
        (OnlineClassifier(class_weight={1: -2.0}), [0, 1, 0, 1], "class_weight must hold finite numbers"),
        (OnlineClassifier(class_weight=[1, 2]), [0, 1, 0, 1], "class_weight must be a dict"),
    ],
)
def test_bad_fits_are_named(estimator, y, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(np.arange(8.0).reshape(4, 2), y)
    assert not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[1.0, np.nan]], [1], {}, "nan in row 0, column 1"),
        ([[1.0, 2.0]], [5], {}, "label .*5.* in row 0 is not one of the classes"),
        ([[1.0, 2.0]], [1], {"sample_weight": [-1.0]}, "sample_weight is -1.0 in row 0"),
        ([[1.0, 2.0]], [1], {"classes": [0, 1, 7]}, "differ from those of the first call"),
        ([[1.0, 2.0, 3.0]], [1], {}, "3 features, but OnlineClassifier is expecting 2"),
        ([[1.0, 2.0], [3.0, 4.0]], [1], {}, "inconsistent numbers of samples"),
    ],
)
def test_a_failed_partial_fit_leaves_no_trace(X, y, options, message, fitted):
    model = OnlineClassifier()
    if fitted:
        model.partial_fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], classes=[0, 1])
    elif "first call" in message or "expecting" in message:
        pytest.skip("this mistake needs a first call")
    else:
        options = {"classes": [0, 1], **options}
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, **options)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("eta0", ["auto", 1.0])
def test_the_first_bad_row_is_named_whatever_the_order(eta0):
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[[7, 50, 399], 1] = np.nan
    with pytest.raises(ValueError, match="nan in row 7, column 1"):
        OnlineClassifier(eta0=eta0).fit(X, np.arange(400) % 2)


def test_labels_of_another_kind_are_named():
    X = np.arange(6.0).reshape(3, 2)
    model = OnlineClassifier().partial_fit(X, [0, 1, 2], classes=[0, 1, 2])
    for labels in (["0", "1", "2"], np.array(["0", "1", "2"], dtype=object)):
        with pytest.raises(ValueError, match="label '0' in row 0 is not one of the classes"):
            model.partial_fit(X, labels)


def test_unfitted_use_and_first_calls():
    with pytest.raises(NotFittedError):
        OnlineClassifier().predict([[1.0]])
    for name in ("progressive_loss_", "coef_", "intercept_", "certificate_"):
        with pytest.raises(NotFittedError):
            getattr(OnlineRegressor(), name)
    with pytest.raises(ValueError, match="first call of partial_fit needs classes="):
        OnlineClassifier().partial_fit([[1.0]], [1])
    with pytest.raises(ValueError, match="at least two classes"):
        OnlineClassifier().partial_fit([[1.0]], [1], classes=[1])
    with pytest.raises(ValueError, match="never has"):
        OnlineClassifier(class_weight="balanced").partial_fit([[1.0]], [1], classes=[0, 1])


def test_an_index_twice_in_a_row_is_one_feature():
    twice = sp.csr_matrix((np.array([1.0, 1.0, 2.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    y = [0, 1]
    np.testing.assert_allclose(
        OnlineClassifier(shuffle=False).fit(twice, y).coef_,
        OnlineClassifier(shuffle=False).fit(twice.toarray(), y).coef_,
    )


def test_one_weight_for_all_rows(cancer):
    X, y = cancer
    one = OnlineClassifier(random_state=0).fit(X, y, sample_weight=3)
    np.testing.assert_array_equal(one.coef_, OnlineClassifier(random_state=0).fit(X, y, np.full(len(y), 3.0)).coef_)


def test_verbose_tells_each_pass(capsys, cancer):
    OnlineClassifier(passes=2, verbose=1).fit(*cancer)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pass 1 of 2: progressive loss 0.")
    assert lines[1].startswith("pass 2 of 2: average loss, of rows already learned, 0.")
    assert len(lines) == 2


# ------------------------------------------------------------------------------------------ repeated rows


def one_hot(n, seed, columns=4, values=2):
    """Rows of few kinds, and labels that follow them loosely."""
    rng = np.random.default_rng(seed)
    X = np.eye(values)[rng.integers(0, values, (n, columns))].reshape(n, -1)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ rng.normal(size=X.shape[1])))).astype(int)


@pytest.mark.parametrize("options", [{}, {"eta0": 1.0}, {"eta0": 1.0, "update": "proximal", "schedule": "gap"}])
@pytest.mark.parametrize("weights", ["none", "balanced", "real"])
def test_fit_on_rows_of_few_kinds_is_as_good_as_a_stream(options, weights):
    X, y = one_hot(4000, 0)
    h = np.random.default_rng(1).lognormal(size=4000) if weights == "real" else None
    if weights == "balanced":
        options = options | {"class_weight": {0: 0.7, 1: 1.9}}
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(4000)
        rows = (X[order], y[order])
        fitted = OnlineClassifier(random_state=seed, **options).fit(*rows, sample_weight=h)
        streamed = OnlineClassifier(**options).partial_fit(*rows, classes=[0, 1], sample_weight=h)
        assert fitted.progressive_loss_ == pytest.approx(streamed.progressive_loss_, rel=0.05)
        cost = np.where(y == 1, 1.9, 0.7) if weights == "balanced" else h
        losses = [log_loss(y, model.predict_proba(X), sample_weight=cost) for model in (fitted, streamed)]
        assert losses[0] <= 1.05 * losses[1]


def test_the_promise_of_the_mixture_holds_for_repeated_rows(cancer):
    X, y = (cancer[0] > 1).astype(float), cancer[1]
    for passes in (1, 2):
        model = OnlineClassifier(random_state=0, passes=passes).fit(X, y)
        best = min(expert.loss for expert in model.bank_)
        assert np.mean(model.pass_losses_) <= best + np.log(8.0) / (passes * len(y))
    assert model.progressive_loss_ == OnlineClassifier(random_state=0).fit(X, y).progressive_loss_


@pytest.mark.parametrize("options", [{}, {"eta0": 1.0}, {"eta0": 1.0, "update": "linearized"}, {"shuffle": False}])
def test_copies_and_whole_weights_are_the_same_to_the_bit(options):
    X, y = one_hot(200, 3, values=3)
    h = np.random.default_rng(0).integers(0, 5, 200)
    weighted = OnlineClassifier(random_state=0, passes=2, **options).fit(X, y, sample_weight=h)
    repeated = OnlineClassifier(random_state=0, passes=2, **options).fit(np.repeat(X, h, axis=0), np.repeat(y, h))
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    assert weighted.progressive_loss_ == pytest.approx(repeated.progressive_loss_, rel=1e-12)


def test_weights_do_not_multiply_the_work():
    X, y = np.random.default_rng(0).normal(size=(1000, 3)), np.arange(1000) % 2
    block = as_block(X)
    assert group_equal_rows(block, y - 0.5, np.full(1000, 0.1)).visits.tolist() == [1] * 1000
    for h in (
        np.random.default_rng(0).lognormal(sigma=5.0, size=1000),
        np.full(1000, 1e300),
        10.0 ** np.arange(1000).clip(0, 300).round(),
        np.full(1000, 7000.0),
    ):
        groups = group_equal_rows(block, y - 0.5, h)
        visits = shuffled_visits(groups, 1000, seed=0)
        assert 4 * visits.order.size <= MOST_ENTRIES
        weight = np.bincount(visits.order, visits.weight[visits.order] / h.max())
        np.testing.assert_allclose(weight, h / h.max(), rtol=1e-9)


@pytest.mark.parametrize("size", [0, 1, 2, 5000])
@pytest.mark.parametrize("bits", [2, 30, 64])
def test_hashes_are_sorted_to_the_last_bit_and_equal_ones_stay_in_order(size, bits):
    keys = np.random.default_rng(0).integers(0, 2**bits - 1, size, dtype=np.uint64, endpoint=True)
    expected = np.argsort(keys, kind="stable")
    rows = np.arange(size)
    ascending = _sort(keys.copy(), rows)
    assert rows.tolist() == expected.tolist()
    assert ascending.tolist() == keys[expected].tolist()


def test_without_shuffling_equal_neighbours_are_learned_one_by_one():
    X, y = one_hot(300, 5)
    order = np.lexsort(X.T)
    fitted = OnlineClassifier(shuffle=False).fit(X[order], y[order])
    streamed = OnlineClassifier().partial_fit(X[order], y[order], classes=[0, 1])
    np.testing.assert_array_equal(fitted.coef_, streamed.coef_)


@pytest.mark.parametrize("options", [{}, {"eta0": 1.0}])
def test_rows_without_weight_are_as_if_they_were_not_there(options, monkeypatch):
    monkeypatch.setattr("steelyard.data.order.MOST_ENTRIES", 100)  # so that the limit on visits counts
    X, y = np.random.default_rng(0).normal(size=(300, 3)), np.arange(300) % 2
    h = 3 * np.random.default_rng(1).integers(0, 2, 300)
    weighted = OnlineClassifier(random_state=0, **options).fit(X, y, sample_weight=h)
    repeated = OnlineClassifier(random_state=0, **options).fit(np.repeat(X, h, axis=0), np.repeat(y, h))
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    X[h == 0] = np.nan
    with pytest.raises(ValueError, match="nan in row"):
        OnlineClassifier(random_state=0, **options).fit(X, y, sample_weight=h)


def test_whole_class_weights_are_sample_weights(cancer):
    X, y = cancer
    by_class = OnlineClassifier(random_state=0, class_weight={0: 3, 1: 1}).fit(X, y)
    by_row = OnlineClassifier(random_state=0).fit(X, y, sample_weight=np.where(y == 0, 3, 1))
    repeated = OnlineClassifier(random_state=0).fit(
        np.repeat(X, np.where(y == 0, 3, 1), axis=0), np.repeat(y, np.where(y == 0, 3, 1))
    )
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
    np.testing.assert_array_equal(by_class.coef_, repeated.coef_)


def test_weights_of_any_scale_are_learned_alike(cancer):
    X, y = cancer
    losses = [OnlineClassifier(random_state=0).fit(X, y, sample_weight=h).progressive_loss_ for h in (1000.0, 1000.5)]
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_text_in_arrays_is_refused_with_advice():
    with pytest.raises(ValueError, match="Encode text columns first"):
        OnlineClassifier().fit(np.array([["x", 1.0], ["y", 2.0], ["x", 3.0]], dtype=object), [0, 1, 0])


# ------------------------------------------------------------------------------------------- in a notebook


@pytest.mark.parametrize("estimator", [*ESTIMATORS, OnlineRegressor("poisson"), OnlineClassifier("logarithmic")])
def test_models_can_be_displayed(estimator, cancer):
    X, y = cancer
    model = clone(estimator).fit(X[:60], y[:60])
    for each in (estimator, model):
        assert type(each).__name__ in each._repr_html_()
        for name in dir(each):
            hasattr(each, name)
    assert hasattr(model, "certificate_") == (model.eta0 == "auto" or model.learner_.certificate)
    assert hasattr(model, "bank_") == (model.eta0 == "auto")


def test_the_progressive_loss_is_that_of_the_first_pass(cancer):
    X, y = cancer
    model = OnlineClassifier(random_state=0, passes=3).fit(X[:300], y[:300])
    assert model.progressive_loss_ == model.pass_losses_[0] > model.pass_losses_[2]
    first = model.progressive_loss_
    before = clone(model).fit(X[:300], y[:300]).learner_
    model.partial_fit(X[300:], y[300:])
    expected = (300 * first + before.learn(X[300:], 2.0 * y[300:] - 1.0).loss.sum()) / 569
    assert model.progressive_loss_ == pytest.approx(expected, rel=1e-12)


def test_text_as_targets_is_named():
    for y in (["1", "b"], np.array([1.0, "b"], dtype=object)):
        with pytest.raises(ValueError, match=r"y has the text '(1|b)' in row (0|1): targets of a regression"):
            OnlineRegressor().fit([[1.0], [2.0]], y)


def test_rows_that_are_visited_for_the_first_time():
    rng = np.random.default_rng(0)
    X, weight = rng.integers(0, 4, (60, 2)).astype(float), rng.integers(0, 5, 60).astype(float)
    block, y = as_block(X), np.zeros(60)
    groups = group_equal_rows(block, y, weight)
    order, _ = shuffled_visits(groups, 60, 3)
    first = first_visits(groups, order, 60)
    assert first.sum() == pytest.approx(weight.sum())
    for row, copies, visits in zip(groups.rows, groups.copies, groups.visits, strict=True):
        same = (X[row] == X).all(axis=1) & (weight > 0.0)
        assert copies == same.sum()
        seen = first[order == row]
        assert seen.size == visits == weight[same].sum()
        assert np.count_nonzero(seen) == copies
        assert seen[0] > 0.0
    assert first_visits(group_equal_rows(block, y, np.ones(60)), order, 60) is None
