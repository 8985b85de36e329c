"""Learners that merge: what adds up, what is averaged, what is refused."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import (
    Bank,
    CustomLoss,
    Learner,
    Mixture,
    OnlineClassifier,
    OnlineRegressor,
    hindsight,
    merge,
)

SIGNS = ("logistic", "hinge", "squared")
LOSSES_OF_MIXTURES = ("logistic", "hinge", "squared", "absolute", "huber", "poisson")
OPTIONS = [
    dict(metric=metric, center=center, schedule=schedule, radius=radius)
    for metric, center, schedule, radius in itertools.product(
        ("scalar", "diagonal"), ("trajectory", "origin"), ("constant", "power", "adagrad-norm", "gap"), (None, 0.7)
    )
    if radius is None or metric == "scalar"
] + [dict(metric="full")]


def data(rows=600, columns=6, seed=0, loss="logistic"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.geomspace(0.1, 50, columns) + 30.0 * (np.arange(columns) == 2)
    X[:, columns // 2 :] *= rng.random((rows, columns - columns // 2)) < 0.5
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=columns)
    if loss in ("logistic", "hinge"):
        y = np.sign(z + rng.normal(size=rows))
    elif loss == "poisson":
        y = rng.poisson(np.exp(0.3 * z)).astype(float)
    else:
        y = 40.0 * z + rng.normal(size=rows) + 500.0
    return X, y, rng.exponential(size=rows)


def shards(start, X, y, w, count, first):
    """Copies of the start, each of which has learned its part of the rows after the first."""
    each = [copy.deepcopy(start) for _ in range(count)]
    for k, learner in enumerate(each):
        part = slice(first + k, None, count)
        learner.learn(X[part], y[part], w[part])
    return each


def split(make, loss, first=120, count=4, **how):
    X, y, w = data(loss=loss, **how)
    start = make()
    if first:
        start.learn(X[:first], y[:first], w[:first])
    return start, shards(start, X, y, w, count, first), (X, y, w)


def close(one, other, X, tolerance):
    a, b = one.predict(X), other.predict(X)
    np.testing.assert_allclose(b, a, atol=tolerance * max(np.abs(a).max(), 1e-30), rtol=0)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(str(v) for v in o.values()))
@pytest.mark.parametrize("first", [0, 120])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_learners_merge_in_any_order_and_certificates_add(options, first, loss):
    start, each, (X, y, w) = split(lambda: Learner(loss, certificate=True, **options), loss, first)
    whole = merge(each, start=start)
    before = {name: array.copy() for name, array in each[0].state._asdict().items()}
    close(whole, merge(each[::-1], start=start), X, 1e-12)
    close(whole, merge([merge(each[2:], start=start), each[1], merge(each[:1], start=start)], start=start), X, 1e-10)
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(each[0].state, name), array)
    total = (
        sum((one.certify() - start.certify() for one in each), start.certify())
        if first
        else sum(one.certify() for one in each)
    )
    mine = whole.certify()
    assert (mine.rounds, mine.guarded) == (600, 0)
    np.testing.assert_allclose(mine.weight, w.sum())
    np.testing.assert_allclose([mine.total_loss, mine.fenchel], [total.total_loss, total.fenchel], rtol=1e-10)
    np.testing.assert_allclose(mine.dual, total.dual, rtol=1e-9, atol=1e-9 * np.abs(total.dual).max())
    best = hindsight(X, y, sample_weight=w, loss=loss, l2=1e-3)
    regret = mine.total_loss - best.total_loss
    assert regret <= mine.regret_bound(best.coef, best.intercept) * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("center", ["origin", "trajectory"])
def test_a_merged_learner_goes_on_and_its_certificate_with_it(center, tmp_path):
    start, each, (X, y, w) = split(
        lambda: Learner("logistic", metric="scalar", center=center, certificate=True), "logistic"
    )
    whole = merge(each, start=start)
    whole.save(tmp_path / "m")
    again = Learner.load(tmp_path / "m")
    for learner in (whole, again):
        before = learner.certify()
        learner.learn(sp.csr_matrix(X[:50]), y[:50], w[:50])
        window = learner.certify() - before
        assert window.rounds == 50
        u = np.full(6, 0.01)
        lost = np.logaddexp(0.0, -y[:50] * (X[:50] @ u)) @ w[:50]
        assert window.total_loss - lost <= window.regret_bound(u) + 1e-9 * abs(before.fenchel)
    np.testing.assert_array_equal(whole.coef_, again.coef_)
    np.testing.assert_array_equal(whole.certify().dual, again.certify().dual)


def test_one_learner_is_what_it_was():
    for make in (lambda: Learner("logistic"), lambda: Learner("squared", metric="full"), lambda: Mixture("logistic")):
        start, each, (X, _, _) = split(make, "logistic", count=1)
        close(each[0], merge(each, start=start), X, 1e-6)
        close(each[0], merge([each[0], copy.deepcopy(start), copy.deepcopy(start)], start=start), X, 1e-6)


def test_the_full_metric_merges_to_what_one_learner_computes():
    start, each, (X, y, w) = split(lambda: Learner("squared", metric="full", eta0=10.0), "squared")
    sequential = Learner("squared", metric="full", eta0=10.0)
    sequential.learn(X, y, w)
    whole = merge(each, start=start)
    close(sequential, whole, X, 1e-9)
    more = np.random.default_rng(5).normal(size=(40, 6))
    for learner in (sequential, whole):
        learner.learn(more, more[:, 0])
    close(sequential, whole, X, 1e-9)


def test_rates_go_on_as_one_learner_would_have_them():
    start, each, (X, y, w) = split(lambda: Learner("logistic", metric="scalar"), "logistic")
    sequential = Learner("logistic", metric="scalar")
    sequential.learn(X, y, w)
    np.testing.assert_allclose(merge(each, start=start).lam(), sequential.lam(), rtol=1e-13)


def test_banks_merge_like_their_learners():
    X, y, w = data()
    rates = [0.1, 1.0]
    options = dict(schedule="power", metric="diagonal", center="trajectory")
    start = Bank("logistic", eta0=rates, updates=["iwa"], **options)
    start.learn(X[:120], y[:120], w[:120])
    whole = merge(shards(start, X, y, w, 3, 120), start=start)
    for k, rate in enumerate(rates):
        one = Learner("logistic", eta0=rate, **options)
        one.learn(X[:120], y[:120], w[:120])
        alone = merge(shards(one, X, y, w, 3, 120), start=one)
        np.testing.assert_allclose(whole.coef_[k], alone.coef_, rtol=1e-9)
    assert whole.average_loss.shape == (1, 2)


def test_several_classes_merge():
    X, _, w = data()
    y = (np.arange(600) % 3).astype(float)
    for make in (lambda: Mixture("logistic", n_outputs=3), lambda: Learner("logistic", n_outputs=3)):
        start = make()
        start.learn(X[:120], y[:120], w[:120])
        each = shards(start, X, y, w, 4, 120)
        whole = merge(each, start=start)
        nested = merge([merge(each[:2], start=start), merge(each[2:], start=start)], start=start)
        close(whole, nested, X, 1e-6)
        assert whole.predict(X).shape == (600, 3)


# ---------------------------------------------------------------------------------------------------------- mixtures


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("first", [0, 120])
@pytest.mark.parametrize("columns", [6, 120])
@pytest.mark.parametrize("loss", LOSSES_OF_MIXTURES)
def test_mixtures_merge_in_any_order(loss, columns, first, sparse):
    start, each, (X, y, w) = split(lambda: Mixture(loss), loss, first, columns=columns)
    if sparse:
        X = sp.csr_matrix(X)
        start = Mixture(loss)
        if first:
            start.learn(X[:first], y[:first], w[:first])
        each = shards(start, X, y, w, 4, first)
    whole = merge(each, start=start)
    close(whole, merge(each[::-1], start=start), X, 1e-6)
    close(whole, merge([merge(each[2:], start=start), each[1], each[0]], start=start), X, 1e-5)
    certificate = whole.certify()
    total = (
        sum((one.certify() - start.certify() for one in each), start.certify())
        if first
        else sum(one.certify() for one in each)
    )
    assert certificate.rounds == 600
    np.testing.assert_allclose(certificate.fenchel, total.fenchel, rtol=1e-9, atol=1e-9 * total.total_loss)
    np.testing.assert_allclose(certificate.dual, total.dual, rtol=1e-9, atol=1e-9 * np.abs(total.dual).max())
    np.testing.assert_allclose(certificate.total_loss, total.total_loss, rtol=1e-9)
    assert whole.regret() <= whole.regret_bound() * (1 + 1e-9) + 1e-9
    for _ in range(3):
        whole.learn(X[:200], y[:200], w[:200])
        assert whole.regret() <= whole.regret_bound() * (1 + 1e-9) + 1e-9


def test_statistics_of_columns_and_labels_are_those_of_all_rows():
    start, each, (X, y, w) = split(lambda: Mixture("squared"), "squared")
    sequential = Mixture("squared")
    sequential.learn(X, y, w)
    mine, theirs = merge(each, start=start).certify(), sequential.certify()
    np.testing.assert_allclose(mine.scale, theirs.scale, rtol=1e-5)
    np.testing.assert_allclose(mine.center, theirs.center, rtol=1e-9, atol=1e-9)
    whole = merge(each, start=start)
    np.testing.assert_allclose(whole.label_range, sequential.label_range)
    a, b = whole.state.clocks, sequential.state.clocks
    np.testing.assert_allclose(a[:5], b[:5], rtol=1e-6)  # weight, rows, centered, logarithms, largest
    np.testing.assert_allclose(a[5:9], b[5:9], rtol=1e-5)


def test_a_merged_mixture_is_about_as_good_as_one_that_saw_all():
    for loss, columns, most in (("logistic", 6, 1.01), ("logistic", 120, 1.15), ("squared", 6, 1.01)):
        X, y, w = data(rows=8000, columns=columns, loss=loss)
        X, y, w, test, labels = X[:6000], y[:6000], np.ones(6000), X[6000:], y[6000:]
        sequential = Mixture(loss)
        sequential.learn(X, y, w)
        start = Mixture(loss)
        start.learn(X[:1000], y[:1000], w[:1000])
        each = shards(start, X, y, w, 8, 1000)
        whole = merge(each, start=start)

        def lost(model, loss=loss, test=test, labels=labels):
            p = model.predict(test)
            return np.logaddexp(0.0, -labels * p).mean() if loss == "logistic" else ((p - labels) ** 2).mean()

        assert lost(whole) < most * lost(sequential)
        assert lost(whole) < np.mean([lost(one) for one in each])


def test_a_feature_of_one_shard_is_not_thinned_by_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[:, 2] = 0.0
    X[300:, 2] = rng.normal(size=100)
    y = np.sign(X @ [1.0, -1.0, 2.0] + 0.1 * rng.normal(size=400))
    each = [Mixture("logistic") for _ in range(4)]
    for k, learner in enumerate(each):
        rows = sp.csr_matrix(X[100 * k : 100 * k + 100])
        learner.learn(rows, y[100 * k : 100 * k + 100])
    assert merge(each).coef_[2] > 0.5 * each[3].coef_[2]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_means_that_move_after_the_start_do_no_harm(loss):
    """Rows sorted by a column: its mean moves all the time, and what the start knew is in another mean's terms."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(loc=20.0, size=(7000, 10))
        X[:5000] = X[:5000][np.argsort(X[:5000, 0])]
        y = (X - 20.0) @ rng.normal(size=10) + 0.3 * rng.normal(size=7000)
        y = y if loss == "squared" else np.sign(y)
        start = Mixture(loss)
        start.learn(X[:1000], y[:1000])
        each = [copy.deepcopy(start) for _ in range(4)]
        for k, learner in enumerate(each):
            learner.learn(X[1000 + k : 5000 : 4], y[1000 + k : 5000 : 4])
        whole = merge(each, start=start)
        lost = [float(m.loss.value(m.predict(X[5000:]), y[5000:]).mean()) for m in (whole, *each)]
        assert lost[0] <= max(lost[1:])
        chain = each[0]
        for learner in each[1:]:
            chain = merge([chain, learner], start=start)
        close(whole, chain, X, 1e-5)


def test_a_small_start_and_many_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 30))
    y = X @ rng.normal(size=30) + 0.3 * rng.normal(size=3000)
    w = rng.exponential(size=3000)
    start = Mixture("squared")
    start.learn(X[:50], y[:50], w[:50])
    each = shards(start, X[:850], y[:850], w[:850], 8, 50)
    whole = merge(each, start=start)
    lost = [float(((m.predict(X[1000:]) - y[1000:]) ** 2).mean()) for m in (whole, *each)]
    assert lost[0] < min(lost[1:])
    nested = merge([merge(each[:3], start=start), merge(each[3:], start=start)], start=start)
    close(whole, nested, X, 1e-5)


@pytest.mark.parametrize("options", [{}, {"center": "origin"}, {"schedule": "constant", "eta0": 0.1}])
def test_a_model_is_the_average_whatever_the_largest_values_are(options):
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(4000, 10))
    y = X @ rng.normal(size=10) + 0.05 * rng.normal(size=4000)
    each = [Learner("squared", **options) for _ in range(8)]
    for k, learner in enumerate(each):
        learner.learn(X[k::8], y[k::8])
    np.testing.assert_allclose(merge(each).coef_, np.mean([one.coef_ for one in each], axis=0), rtol=1e-9)


def test_constants_are_those_of_the_kernels():
    from steelyard.distributed import merge_mixture
    from steelyard.kernels import features, mixing

    assert merge_mixture._MOVED == mixing.MOVED
    assert merge_mixture._MOST_SUM == features.RANGE


def test_labels_of_any_unit_merge_without_a_start():
    X, y, _ = data(loss="squared")
    each = []
    for k, unit in enumerate((1e-3, 1.0, 1e6)):
        learner = Mixture("squared")
        learner.learn(X[200 * k : 200 * k + 200], unit * y[200 * k : 200 * k + 200])
        each.append(learner)
    whole = merge(each)
    low, high = whole.label_range
    assert low == min(one.label_range[0] for one in each)
    assert high == max(one.label_range[1] for one in each)
    assert whole.certify().total_loss == pytest.approx(sum(one.certify().total_loss for one in each))
    assert np.isfinite(whole.coef_).all()
    assert whole.regret() <= whole.regret_bound()


def test_centers_that_one_shard_has_dropped():
    """A column that is never zero in the start, and seldom anything else in one shard."""
    rng = np.random.default_rng(0)
    X = rng.normal(loc=(20.0, 0.0), size=(900, 2))
    X[400:, 0] *= rng.random(500) < 0.05
    y = np.sign(X[:, 1] + 0.05 * (X[:, 0] - 20.0) + rng.normal(size=900))
    start = Mixture("logistic")
    start.learn(X[:100], y[:100])
    each = [copy.deepcopy(start), copy.deepcopy(start)]
    each[0].learn(X[100:400], y[100:400])
    each[1].learn(X[400:], y[400:])
    assert [one.certify().center[0] != 0.0 for one in each] == [True, False]
    whole = merge(each, start=start)
    assert whole.certify().center[0] == 0.0
    lost = [np.logaddexp(0.0, -y * model.predict(X)).mean() for model in (whole, *each)]
    assert lost[0] < max(lost[1:])
    whole.learn(X, y)
    assert np.isfinite(whole.coef_).all()


@settings(max_examples=60)
@given(
    loss=st.sampled_from(LOSSES_OF_MIXTURES[:5]),
    rows=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    first=st.integers(0, 10),
    scale=st.sampled_from([1e-150, 1e-3, 1.0, 1e20, 1e150]),
    heavy=st.sampled_from([1.0, 1e-100, 1e100]),
    seed=st.integers(0, 10**6),
)
def test_odd_shards_merge_to_finite_models_and_true_bounds(loss, rows, first, scale, heavy, seed):
    rng = np.random.default_rng(seed)
    start = Mixture(loss)

    def block(n):
        X = rng.normal(size=(n, 3)) * [scale, 1.0, 1.0] * (rng.random((n, 3)) < 0.7)
        y = np.sign(rng.normal(size=n)) if loss in ("logistic", "hinge") else rng.normal(size=n) * scale**0.1
        return X, np.where(y == 0.0, 1.0, y), heavy ** rng.random(n) * (rng.random(n) < 0.9)

    X, y, w = block(first)
    if first:
        start.learn(X, y, w)
    parts = [block(n) for n in rows]
    each = []
    for part in parts:
        learner = copy.deepcopy(start)
        if len(part[1]):
            learner.learn(*part)
        each.append(learner)
    if all(one.state is None for one in each):
        return
    whole = merge(each, start=start)
    assert np.isfinite(whole.coef_).all()
    certificate = whole.certify()
    u = rng.normal(size=3) / [scale, 1.0, 1.0]
    X = np.vstack([X, *(part[0] for part in parts)])
    y, w = np.concatenate([y, *(p[1] for p in parts)]), np.concatenate([w, *(p[2] for p in parts)])
    lost = whole.loss.value(X @ u, y) @ w
    size = abs(certificate.fenchel) + certificate.total_loss + np.abs(certificate.dual[:-1]) @ np.abs(u) + lost
    assert certificate.total_loss - lost <= certificate.regret_bound(u) + 1e-9 * size
    bound = whole.regret_bound()
    assert whole.regret() <= bound + 1e-9 * (abs(bound) + certificate.total_loss)


# ------------------------------------------------------------------------------------------------------ what is refused


def test_what_does_not_fit_is_refused_in_a_sentence():
    X, y, _ = data()
    made = Learner("logistic")
    made.learn(X, y)

    def other(*args, **options):
        learner = Learner(*args, **options)
        learner.learn(X, y)
        return learner

    for learner, message in (
        (other("squared"), "learner 1 does not fit to learner 0: their losses are logistic and squared"),
        (other("logistic", eta0=2.0), "eta0 is 1.0 and 2.0"),
        (other("logistic", metric="scalar"), "metric is 'diagonal' and 'scalar'"),
        (other("logistic", fit_intercept=False), "fit_intercept is True and False"),
    ):
        with pytest.raises(ValueError, match=message):
            merge([made, learner])
    mixture = Mixture("logistic")
    mixture.learn(X, y)
    with pytest.raises(ValueError, match="one is a Learner, the other a Mixture"):
        merge([made, mixture])
    wide = Learner("logistic")
    wide.learn(np.hstack([X, X]), y)
    with pytest.raises(ValueError, match="they have 6 and 12 features"):
        merge([made, wide])
    with pytest.raises(ValueError, match="there is nothing to merge"):
        merge([])
    with pytest.raises(TypeError, match="learner 1 is a list"):
        merge([made, []])
    with pytest.raises(ValueError, match="the start does not fit to learner 0: eta0"):
        merge([made, made], start=other("logistic", eta0=3.0))
    early, late = Learner("logistic"), copy.deepcopy(made)
    early.learn(X[:10], y[:10])
    with pytest.raises(ValueError, match="learner 0 has learned 10 rows, and the start 600: it does not come from"):
        merge([early], start=late)
    with pytest.raises(ValueError, match="learner 0 is the start itself: let copies of it learn"):
        merge([late, made], start=late)
    with pytest.raises(ValueError, match="learner 0 does not come from this start: give the learner that all"):
        merge([made], start=early)
    late.learn(X[:5], y[:5])
    with pytest.raises(ValueError, match="copies of one that had learned before: its rows would count several times"):
        merge([made, late])
    with pytest.raises(TypeError, match="give the learners in a list"):
        merge(made, early)
    with pytest.raises(ValueError, match="learner 0 has learned nothing"):
        merge([Learner("logistic")], start=late)


def test_losses_with_parameters_and_custom_losses():
    X, y, _ = data(loss="squared")
    one, other = Learner("quantile"), Learner("quantile")
    other.loss = type(other.loss)(0.9)
    for learner in (one, other):
        learner.learn(X, y)
    with pytest.raises(ValueError, match="their losses have the parameters"):
        merge([one, other])
    mine = CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y)
    learners = [Learner(mine, metric="scalar", eta0=1e-3) for _ in range(2)]
    for k, learner in enumerate(learners):
        learner.learn(X[k::2], y[k::2])
    learners[1].loss = copy.copy(mine)  # as it is after a way through another process
    whole = merge(learners)
    assert whole.state.sums[0, 0] == 600
    other = Learner(CustomLoss(lambda p, y: (p - y) ** 2, lambda p, y: 2.0 * (p - y)), metric="scalar", eta0=1e-3)
    other.learn(X, y)
    with pytest.raises(ValueError, match="their custom losses are not the same"):
        merge([learners[0], other])


def test_losses_of_other_constants_are_others():
    def make(scale):
        def value(p, y):
            return scale * (p - y) ** 2

        def slope(p, y):
            return 2.0 * scale * (p - y)

        learner = Learner(CustomLoss(value, slope), metric="scalar", eta0=1e-3)
        learner.learn([[1.0], [2.0]], [1.0, scale])
        return learner

    assert merge([make(0.1), make(0.1)])._rows() == 4  # two functions of the same text and constants
    with pytest.raises(ValueError, match="their custom losses are not the same"):
        merge([make(0.1), make(5.0)])


def test_rows_whose_weight_is_lost_to_rounding_are_merged():
    start = Learner("logistic", certificate=True)
    start.learn([[1.0, 2.0]], [1.0], [1e17])
    each = [copy.deepcopy(start) for _ in range(2)]
    for learner in each:
        learner.learn(np.eye(2), [1.0, -1.0])
    assert merge(each, start=start).certify().rounds == 5


def test_weights_of_hundreds_of_orders_of_magnitude():
    rng = np.random.default_rng(0)
    start = Mixture("squared")
    start.learn(rng.normal(size=(5, 2)), rng.normal(size=5), np.full(5, 1e-200))
    each = [copy.deepcopy(start) for _ in range(2)]
    for learner in each:
        learner.learn(rng.normal(size=(20, 2)), rng.normal(size=20), np.full(20, 1e150))
    assert np.isfinite(merge(each, start=start).coef_).all()


def test_nothing_learned_merges_to_nothing_learned():
    assert merge([Mixture(), Mixture()]).state is None
    start = Mixture()
    start.learn([[1.0], [2.0]], [1.0, -1.0])
    same = merge([copy.deepcopy(start), copy.deepcopy(start)], start=start)
    np.testing.assert_array_equal(same.state.table, start.state.table)
    same.learn([[1.0]], [1.0])
    assert start.certify().rounds == 2


# ----------------------------------------------------------------------------------------------------------- estimators


def test_estimators_merge():
    X, y, _ = data()
    labels = np.where(y > 0, "yes", "no")
    start = OnlineClassifier().partial_fit(X[:100], labels[:100], classes=["no", "yes"])
    each = [copy.deepcopy(start).partial_fit(X[100 + k :: 2], labels[100 + k :: 2]) for k in range(2)]
    whole = merge(each, start=start)
    assert whole.certificate_.rounds == 600
    assert whole.score(X, labels) > 0.7
    seen = 100 * start.progressive_loss_ + sum(350 * e.progressive_loss_ - 100 * start.progressive_loss_ for e in each)
    assert whole.progressive_loss_ == pytest.approx(seen / 600)
    whole.partial_fit(X[:10], labels[:10])
    with pytest.raises(TypeError, match="estimator 1 is a OnlineRegressor"):
        merge([each[0], OnlineRegressor().fit(X, y)])
    with pytest.raises(ValueError, match="estimator 1 is not fitted"):
        merge([each[0], OnlineClassifier()])
    with pytest.raises(ValueError, match="its classes_ is another"):
        merge([each[0], OnlineClassifier().fit(X, y)])


def test_the_gap_to_the_best():
    start, each, (X, y, w) = split(lambda: Mixture("logistic"), "logistic")
    whole = merge(each, start=start)
    best = hindsight(X, y, sample_weight=w, l2=1e-3)
    certificate = whole.certify()
    lost = float(np.logaddexp(0.0, -y * whole.predict(X)) @ w)
    radius = certificate.norm(best.coef, best.intercept, scaled=True)
    gap = certificate.gap_to_best(lost, radius, scaled=True)
    assert lost - best.total_loss <= gap < np.inf
    assert gap == pytest.approx(lost - certificate.best_loss_lower_bound(radius, scaled=True))
