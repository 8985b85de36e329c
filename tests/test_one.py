"""One event at a time: the same model to the bit as blocks, refusals by name, and River's own battery."""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

from oracle_hash import murmur3
from steelyard import Learner, Mixture, OnlineClassifier, OnlineRegressor
from steelyard.data.event import EventRow
from steelyard.events import EventLearner
from steelyard.losses import CustomLoss
from steelyard.river import SteelyardClassifier, SteelyardRegressor

BITS = 18


def rows_of(events, bits=BITS):
    """The hashed rows of some events, by an implementation apart."""
    data, indices, indptr = [], [], [0]
    for x in events:
        row = {}
        for name, value in x.items():
            if value is None:
                continue
            text, number = (f"{name}={value}", 1.0) if isinstance(value, str) else (str(name), float(value))
            if number != 0.0:
                at = murmur3(text.encode()) % 2**bits
                row[at] = row.get(at, 0.0) + number
        for at in sorted(row):
            indices.append(at)
            data.append(row[at])
        indptr.append(len(data))
    return csr_matrix((data, indices, indptr), shape=(len(events), 2**bits))


def some_events(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    events = []
    for _ in range(rows):
        x = {f"f{j}": float(rng.normal() * 10.0 ** (j % 5 - 2)) for j in range(12)}
        x |= {"job": str(rng.choice(["clerk", "cook", "smith"])), "flag": bool(rng.random() < 0.5)}
        x |= {"count": int(rng.integers(0, 4)), "gone": None, "steady": 3.0 + float(rng.normal()) / 10, 7: 2.0}
        for name in rng.choice(list(x)[:12], rng.integers(0, 6), replace=False):
            del x[name]
        events.append(x)
    return events, np.sign(rng.normal(size=rows)), np.where(rng.random(rows) < 0.1, 0.0, rng.exponential(size=rows))


def same(state, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(state, other, strict=True))


LEARNERS = {
    "one rate": lambda: Learner(eta0=0.5),
    "origin": lambda: Learner("hinge", update="proximal", center="origin", eta0=0.3),
    "adagrad": lambda: Learner("squared", update="linearized", schedule="adagrad-norm", eta0=0.1),
    "gap": lambda: Learner("absolute", schedule="gap", metric="scalar", center="origin", eta0=0.1),
    "certificate": lambda: Learner("huber", certificate=True, eta0=0.5),
    "ball": lambda: Learner("logistic", metric="scalar", radius=0.5),
    "classes": lambda: Learner("logistic", n_outputs=3),
    "own loss": lambda: Learner(CustomLoss(lambda p, y: (p - y) ** 2 / 2, lambda p, y: p - y), eta0=0.5),
    "mixture": lambda: Mixture("logistic"),
    "mixture, squared": lambda: Mixture("squared"),
    "mixture, absolute": lambda: Mixture("absolute"),
    "mixture, huber": lambda: Mixture("huber"),
    "mixture, hellinger": lambda: Mixture("hellinger"),
    "mixture, classes": lambda: Mixture("logistic", n_outputs=3),
    "mixture, no intercept": lambda: Mixture("squared", fit_intercept=False),
}


def labels_of(learner, y):
    if learner.n_outputs > 1:
        return np.arange(y.size) % 3.0
    return 37.5 * y + np.arange(y.size) if learner.loss.labels == "real" and isinstance(learner, Mixture) else y


@pytest.mark.parametrize("name", LEARNERS)
def test_events_give_the_model_of_blocks_to_the_bit(name):
    events, y, weight = some_events()
    y = labels_of(LEARNERS[name](), y)
    X = rows_of(events)
    one = EventLearner(LEARNERS[name](), BITS)
    for x, label, w in zip(events, y.tolist(), weight.tolist(), strict=True):
        one.learn(x, label, w)
    for cuts in ([0, 120], [0, 7, 50, 120]):
        blocks = LEARNERS[name]()
        for start, end in itertools.pairwise(cuts):
            blocks.learn(X[start:end], y[start:end], weight[start:end])
        assert same(one.learner.state, blocks.state)
    expected = blocks.predict(X).reshape(120, -1)
    before = pickle.dumps(one.learner.state)
    found = np.array([one.predict(x) for x in events])
    assert pickle.dumps(one.learner.state) == before
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_the_order_of_names_does_not_matter():
    events, y, weight = some_events()
    one, other = (EventLearner(Mixture(), BITS) for _ in range(2))
    for x, label, w in zip(events, y.tolist(), weight.tolist(), strict=True):
        one.learn(x, label, w)
        other.learn(dict(reversed(x.items())), label, w)
    assert same(one.learner.state, other.learner.state)


def test_rows_are_those_of_another_implementation():
    events, _, _ = some_events()
    for bits in (3, 10, 18):
        row, X = EventRow(bits), rows_of(events, bits)
        for i, x in enumerate(events):
            row.read(x)
            block = row.block()
            lo, hi = X.indptr[i : i + 2]
            assert block.indices.tolist() == X.indices[lo:hi].tolist()
            np.testing.assert_allclose(block.data, X.data[lo:hi], rtol=1e-12)


def test_long_events_find_room():
    one, blocks = EventLearner(Learner(eta0=0.5), BITS), Learner(eta0=0.5)
    events = [{f"n{i}": float(i + 1) for i in range(size)} for size in (3, 5, 200, 2, 5000, 0)]
    for x in events:
        one.learn(x, 1.0)
    blocks.learn(rows_of(events), np.ones(len(events)))
    assert same(one.learner.state, blocks.state)


@pytest.mark.parametrize("make", [lambda: Learner(eta0=0.5), Mixture, lambda: Mixture("squared")])
@pytest.mark.parametrize(
    "bad", [{"a": math.nan}, {"b": 1.0, "a": -math.inf}, {"a": 1e200, "b": 1.0}, {"a": [1]}, {"a": 10**5000}]
)
def test_what_cannot_be_learned_is_named_and_leaves_no_trace(make, bad):
    events, y, _ = some_events(40)
    one = EventLearner(make(), BITS)
    for _ in range(2):  # before anything is learned, and after
        before = pickle.dumps(one.learner.state)
        with pytest.raises(ValueError, match="feature 'a'"):
            one.learn({**events[0], **bad}, 1.0)
        assert pickle.dumps(one.learner.state) == before
        for x, label in zip(events, y.tolist(), strict=True):
            one.learn(x, label)
    with pytest.raises(ValueError, match="feature 'a'"):
        one.predict({**events[0], **bad})
    for w in (-1.0, math.nan, math.inf, None, "x", 10**400):
        with pytest.raises(ValueError, match="w is"):
            one.learn(events[0], 1.0, w)
        for weights in (None, {1: 2.0}):
            with pytest.raises(ValueError, match="w is"):
                OnlineClassifier(class_weight=weights).learn_one(events[0], 1, w)
    for x in ([1.0], None, "abc", 5):
        with pytest.raises(TypeError, match=f"dict of names and values, not {type(x).__name__}"):
            one.learn(x, 1.0)


@pytest.mark.parametrize("make", [lambda: Learner(eta0=0.5), Mixture])
def test_an_interrupt_leaves_no_trace(make):
    events, y, _ = some_events(40)
    one = EventLearner(make(), BITS)
    for x, label in zip(events, y.tolist(), strict=True):
        one.learn(x, label)
    before, kernel = pickle.dumps(one.learner.state), one._learn

    def interrupted():
        kernel()
        assert pickle.dumps(one.learner.state) != before
        raise KeyboardInterrupt

    one._learn = interrupted
    with pytest.raises(KeyboardInterrupt):
        one.learn({"f1": 5.0, "new": 2.0}, 1.0)  # most features are missing, so centers are dropped
    assert pickle.dumps(one.learner.state) == before


def test_divergence_is_said():
    one = EventLearner(Learner("squared", update="linearized", metric="scalar", schedule="constant", eta0=10.0), BITS)

    def learn_many():
        for i in range(400):
            one.learn({"a": 1e3}, float(i))

    with pytest.warns(RuntimeWarning, match="diverges"):
        learn_many()


# ------------------------------------------------------------------------------------------------------ estimators


@pytest.mark.parametrize("eta0", ["auto", 0.5])
def test_the_classifier_learns_as_partial_fit_does(eta0):
    events, y, weight = some_events()
    labels = np.where(y > 0, "yes", "no")
    model = OnlineClassifier(eta0=eta0, class_weight={"yes": 2.5})
    blocks = OnlineClassifier(eta0=eta0, class_weight={"yes": 2.5})
    for x, label, w in zip(events, labels.tolist(), weight.tolist(), strict=True):
        model.learn_one(x, label, w, classes=None if hasattr(model, "classes_") else ["yes", "no"])
    X = rows_of(events)
    blocks.partial_fit(X, labels, ["no", "yes"], weight)
    assert same(model.learner_.state, blocks.learner_.state)
    assert model.progressive_loss_ == pytest.approx(blocks.progressive_loss_, rel=1e-12)
    assert [model.predict_one(x) for x in events] == blocks.predict(X).tolist() == model.predict(X).tolist()
    found = [[*model.predict_proba_one(x).values()] for x in events]
    np.testing.assert_allclose(found, blocks.predict_proba(X), rtol=1e-10)
    model.partial_fit(X, labels, sample_weight=weight)  # and on with arrays
    blocks.learn_one(events[0], "yes")  # and on with events
    blocks = blocks.fit(X, labels)
    assert blocks.learn_one(events[0], "yes").predict_one(events[0]) in ("yes", "no")


def test_classes_come_one_at_a_time():
    model = OnlineClassifier()
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    model.learn_one({"a": 1.0}, "ham")
    assert model.predict_one({"a": 1.0}) == "ham"
    assert model.predict_proba_one({"a": -1.0}) == {"ham": 1.0}
    with pytest.raises(ValueError, match="one class only, 'ham'"):
        model.predict(csr_matrix((1, 2**BITS)))
    with pytest.raises(ValueError, match="feature 'a'"):
        model.learn_one({"a": math.nan}, "spam")
    assert model.classes_.tolist() == ["ham"]
    model.learn_one({"a": -1.0}, "spam")
    assert model.classes_.tolist() == ["ham", "spam"]
    assert set(model.predict_proba_one({"a": -1.0})) == {"ham", "spam"}
    with pytest.raises(ValueError, match="name them all in the first call"):
        model.learn_one({"a": 1.0}, "eggs")
    for label in (None, math.nan, math.inf, 0.5, [1], 10**400, 10**5000):
        with pytest.raises(ValueError, match="label of a class"):
            model.learn_one({"a": 1.0}, label)
    assert OnlineClassifier().learn_one({"a": 1.0}, 1).learn_one({"a": 2.0}, 0).classes_.tolist() == [0, 1]
    assert OnlineClassifier().learn_one({"a": 1.0}, np.True_).classes_.tolist() == [False, True]
    with pytest.raises(NotFittedError):
        OnlineClassifier().predict(np.zeros((1, 2)))


def test_more_classes_are_named_in_the_first_call():
    events, _, _ = some_events()
    labels = ["abc"[i % 3] for i in range(120)]
    model = OnlineClassifier(eta0=0.5).learn_one(events[0], labels[0], classes=["c", "a", "b"])
    for x, label in zip(events[1:], labels[1:], strict=True):
        model.learn_one(x, label)
    blocks = OnlineClassifier(eta0=0.5).partial_fit(rows_of(events), labels, ["a", "b", "c"])
    assert same(model.learner_.state, blocks.learner_.state)
    assert sum(model.predict_proba_one(events[0]).values()) == pytest.approx(1.0)
    assert [model.predict_one(x) for x in events] == blocks.predict(rows_of(events)).tolist()


@pytest.mark.parametrize("loss", ["squared", "poisson", "quantile"])
def test_the_regressor_learns_as_partial_fit_does(loss):
    events, _, weight = some_events()
    y = np.random.default_rng(3).poisson(3.0, 120)
    model, blocks = OnlineRegressor(loss), OnlineRegressor(loss)
    assert model.predict_one(events[0]) == (1.0 if loss == "poisson" else 0.0)
    for x, label, w in zip(events, y.tolist(), weight.tolist(), strict=True):
        model.learn_one(x, label, w)
    blocks.partial_fit(rows_of(events), y, weight)
    assert same(model.learner_.state, blocks.learner_.state)
    np.testing.assert_allclose([model.predict_one(x) for x in events], blocks.predict(rows_of(events)), rtol=1e-10)
    for bad in (math.nan, math.inf, "three", None, [1.0], 10**400):
        with pytest.raises(ValueError, match="y is"):
            model.learn_one(events[0], bad)


def test_a_first_event_that_fails_leaves_nothing():
    for model in (OnlineClassifier(), OnlineRegressor()):
        before = dict(model.__dict__)
        with pytest.raises(ValueError, match="feature 'a'"):
            model.learn_one({"a": math.nan}, 1)
        assert model.__dict__ == before


def test_arrays_without_names_and_events_do_not_mix():
    model = OnlineClassifier().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="fitted on arrays of 2 columns"):
        model.learn_one({"a": 1.0}, 1)
    with pytest.raises(ValueError, match="fitted on arrays of 2 columns"):
        model.predict_one({"a": 1.0})
    model = OnlineClassifier().learn_one({"a": 1.0}, True)
    with pytest.raises(ValueError, match="262144 features"):
        model.predict([[1.0, 2.0]])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_goes_on_by_itself(copied):
    events, y, _ = some_events()
    model = OnlineClassifier()
    for x, label in zip(events[:60], y.tolist(), strict=False):
        model.learn_one(x, label)
    other, untouched = copied(model), pickle.dumps(model.learner_.state)
    for x, label in zip(events[60:], y[60:].tolist(), strict=True):
        other.learn_one(x, label)
    assert pickle.dumps(model.learner_.state) == untouched
    for x, label in zip(events[60:], y[60:].tolist(), strict=True):
        model.learn_one(x, label)
    assert same(model.learner_.state, other.learner_.state)


def test_through_numba_the_model_is_the_same():
    code = (
        "import sys, json, hashlib; sys.path.insert(0, sys.argv[1]); import test_one as t\n"
        "from steelyard.events import EventLearner\n"
        "out = []\n"
        "for name in ('one rate', 'mixture'):\n"
        "    events, y, weight = t.some_events(30); one = EventLearner(t.LEARNERS[name](), 8)\n"
        "    for x, label, w in zip(events, y.tolist(), weight.tolist()): one.learn(x, label, w)\n"
        "    digest = hashlib.sha256(b''.join(a.tobytes() for a in one.learner.state)).hexdigest()\n"
        "    out.append([digest, one.predict(events[0])[0]])\n"
        "print(json.dumps(out))"
    )
    folder = os.path.dirname(__file__)
    found = []
    for kernels in ("objects", "numba"):
        env = {**os.environ, "STEELYARD_KERNELS": kernels}
        run = subprocess.run([sys.executable, "-c", code, folder], env=env, check=True, capture_output=True, text=True)
        found.append(json.loads(run.stdout))
    assert found[0] == found[1]


# ----------------------------------------------------------------------------------------------------------- River


@pytest.mark.parametrize(
    "model",
    [SteelyardClassifier(), SteelyardClassifier(eta0=0.5), SteelyardRegressor(), SteelyardRegressor(eta0=0.5)],
    ids=["classifier", "classifier, one rate", "regressor", "regressor, one rate"],
)
def test_rivers_own_battery(model):
    from river import checks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of River's own
        checks.check_estimator(model)


def test_river_is_imported_by_its_adapter_only():
    code = "import steelyard, sys; steelyard.OnlineClassifier; assert 'river' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_empty_text_is_not_there():
    with_empty, without = OnlineClassifier(), OnlineClassifier()
    for i in range(20):
        with_empty.learn_one({"a": 1.0 * i, "job": ""}, i % 2)
        without.learn_one({"a": 1.0 * i}, i % 2)
    assert with_empty.coef_.tobytes() == without.coef_.tobytes()


def test_names_of_events_are_kept(tmp_path):
    model = OnlineClassifier()
    for i in range(6):
        model.learn_one({"age": 30.0 + i, "job": "xy"[i % 2]}, i % 2 == 0)
    names = {each["name"] for each in json.loads(model.to_json())["coefficients"]}
    assert names == {"age", "job=x", "job=y"}
    model.save(tmp_path / "m")
    from steelyard import load

    assert load(tmp_path / "m").to_json() == model.to_json()
