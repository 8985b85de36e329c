"""Ways out of a fitted estimator, and back: files, scikit-learn, ONNX, JSON, VW's text; early stopping, loss curves."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import steelyard
from steelyard import CustomLoss, Learner, Mixture, OnlineClassifier, OnlineRegressor, cli
from steelyard.estimators.curve import Curve
from steelyard.estimators.stopping import hold_out
from steelyard.export.vw import readable_model
from steelyard.losses import Hellinger, Huber, Quantile

CLASSIFYING = ["logistic", "hinge", "squared_hinge", "exponential", "logarithmic", Hellinger(eps=1e-3), "squared"]
REGRESSING = ["squared", "absolute", Quantile(0.8), Huber(2.0), "poisson"]
RATES = ["auto", 0.5]
LABELS = {
    "int": np.array([-3, 7]),
    "int32": np.array([0, 1], np.int32),
    "bool": np.array([False, True]),
    "str": np.array(["no", "yes"]),
    "float": np.array([-1.0, 1.0]),
    "object": np.array(["no", "yes"], dtype=object),
    "three": np.array(["a", "b", "c"]),
    "three numbers": np.array([1, 2, 5]),
    "large": np.array([3, 2**63 + 1], np.uint64),
}


def rows(seed=0, n=300):
    """Columns of different scales, as float32 has them, so that nothing is lost on the way to ONNX."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5000.0, 0.0, 3.0]
    X[:, 3] = X[:, 3] > 3.0
    return X.astype(np.float32).astype(np.float64)


def labelled(labels, seed=0):
    X = rows(seed)
    score = X[:, 0] + 100.0 * X[:, 2] + np.random.default_rng(seed + 1).normal(size=len(X))
    codes = np.searchsorted(np.quantile(score, np.arange(1, labels.size) / labels.size), score)
    return X, labels[codes]


def classifier(loss="logistic", labels="int", **options):
    X, y = labelled(LABELS[labels])
    return OnlineClassifier(loss, random_state=0, **options).fit(X, y), X, y


def regressor(loss="squared", **options):
    X = rows()
    y = X[:, 0] + 50.0 * X[:, 2] + (0.0 if loss == "poisson" else 1000.0)
    y = np.random.default_rng(0).poisson(np.exp(0.3 * X[:, 0])).astype(float) if loss == "poisson" else y
    return OnlineRegressor(loss, random_state=0, **options).fit(X, y), X, y


def run_onnx(model, X):
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X.astype(np.float32)}), strict=True))


def same(model, other, X):
    """Whether two estimators are the same to the bit, and go on so."""
    assert type(other) is type(model)
    np.testing.assert_array_equal(other.coef_, model.coef_)
    np.testing.assert_array_equal(other.intercept_, model.intercept_)
    predicted = other.predict(X)
    np.testing.assert_array_equal(predicted, model.predict(X))
    assert predicted.dtype == model.predict(X).dtype
    assert other.progressive_loss_ == model.progressive_loss_
    for mine, theirs in zip(other.loss_curve_, model.loss_curve_, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return True


# --------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("eta0", RATES)
@pytest.mark.parametrize("labels", LABELS)
def test_a_classifier_comes_back_to_the_bit(tmp_path, labels, eta0):
    model, X, y = classifier(labels=labels, eta0=eta0, passes=2)
    model.save(tmp_path / "m")
    other = steelyard.load(tmp_path / "m")
    assert same(model, other, X)
    assert other.get_params() == model.get_params()
    assert other.classes_.dtype == model.classes_.dtype
    assert other.pass_losses_ == model.pass_losses_
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    assert same(model.partial_fit(X, y), other.partial_fit(X, y), X)
    other.save(tmp_path / "again")
    assert same(other, steelyard.load(tmp_path / "again"), X)


@pytest.mark.parametrize("eta0", RATES)
@pytest.mark.parametrize("loss", REGRESSING)
def test_a_regressor_comes_back_to_the_bit(tmp_path, loss, eta0):
    model, X, y = regressor(loss, eta0=eta0)
    model.save(tmp_path / "m")
    other = steelyard.load(tmp_path / "m")
    assert same(model, other, X)
    assert other.get_params() == model.get_params()
    assert same(model.partial_fit(X, y), other.partial_fit(X, y), X)


def test_names_text_columns_and_parameters_are_kept(tmp_path):
    frame = pd.DataFrame({"age": [31.0, 45.0, 27.0, 52.0] * 5, "job": ["clerk", "nurse", "cook", "clerk"] * 5})
    y = np.array([True, False, False, True] * 5)
    model = OnlineClassifier(class_weight={True: 2.0, False: 1.0}, bits=10, random_state=np.int64(3)).fit(frame, y)
    model.save(tmp_path / "m")
    other = steelyard.load(tmp_path / "m")
    assert same(model, other, frame)
    assert other.class_weight == {True: 2.0, False: 1.0}
    assert list(other.feature_names_in_) == ["age", "job"]
    with pytest.raises(ValueError, match="fitted on a frame with columns of text"):
        other.predict(np.zeros((1, 1024)))
    assert same(model.partial_fit(frame, y), other.partial_fit(frame, y), frame)
    refitted = other.fit(frame, y)
    assert same(model.fit(frame, y), refitted, frame)
    numbers = frame[["age"]]
    model = OnlineRegressor().fit(numbers, y * 1.0)
    model.save(tmp_path / "m")
    other = steelyard.load(tmp_path / "m")
    assert list(other.feature_names_in_) == ["age"]
    with pytest.raises(ValueError, match="feature names"):
        other.predict(frame[["age"]].rename(columns={"age": "years"}))


def test_events_go_on_after_loading(tmp_path):
    model = OnlineClassifier(bits=8).learn_one({"job": "clerk"}, "yes")
    with pytest.raises(ValueError, match="one class only, 'yes': it is saved when it knows both"):
        model.save(tmp_path / "m")
    model.learn_one({"job": "cook"}, "no")
    model.save(tmp_path / "m")
    other = steelyard.load(tmp_path / "m")
    for each in (model, other):
        each.learn_one({"job": "clerk", "age": 3.0}, "yes", 2.0)
    assert other.predict_proba_one({"job": "cook"}) == model.predict_proba_one({"job": "cook"})
    np.testing.assert_array_equal(other.coef_, model.coef_)


def test_a_users_loss_must_be_given_again(tmp_path):
    mine = CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y)
    X = rows()
    model = OnlineRegressor(mine, eta0=0.5).fit(X, X[:, 0])
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="learned with the custom loss: it needs loss="):
        steelyard.load(tmp_path / "m")
    assert same(model, steelyard.load(tmp_path / "m", loss=mine), X)
    with pytest.raises(ValueError, match="no linear regressor for the custom loss"):
        model.to_sklearn()


def test_what_is_saved_and_what_is_not(tmp_path):
    class Mine(OnlineClassifier):
        pass

    X, y = labelled(LABELS["int"])
    with pytest.raises(TypeError, match="holds an OnlineClassifier or OnlineRegressor, not a Mine"):
        Mine().fit(X, y).save(tmp_path / "m")
    with pytest.raises(ValueError, match="not fitted"):
        OnlineClassifier().save(tmp_path / "m")
    model = OnlineClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    (tmp_path / "m").write_text("notes of mine")
    with pytest.raises(ValueError, match="is no model: it would be lost"):
        model.save(tmp_path / "m")
    assert (tmp_path / "m").read_text() == "notes of mine"
    model.save(tmp_path / "n")
    assert steelyard.load(tmp_path / "n").random_state is None


def test_learners_open_as_learners(tmp_path):
    X, y = labelled(LABELS["float"])
    for learner in (Learner("logistic"), Mixture("logistic"), steelyard.Bank("logistic")):
        learner.learn(X, y)
        learner.save(tmp_path / "m")
        assert type(steelyard.load(tmp_path / "m")) is type(learner)
    model = OnlineClassifier().fit(X, y)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(Learner.load(tmp_path / "m").coef_, model.coef_[0])
    (tmp_path / "nothing").write_bytes(b"PK")
    with pytest.raises(ValueError, match="nothing is not a Steelyard model file"):
        steelyard.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "wrong",
    [
        {"parameters": {"loss": "logistic", "unknown": 1}},
        {"parameters": 3},
        {"classes_dtype": "<i8"},
        {"classes_dtype": "<U1000000000"},
        {"classes_dtype": "V8"},
        {"n_features_in": 7},
        {"feature_names": [1, 2, 3, 4]},
        {"feature_names": ["a"]},
        {"columns": {"columns": 3}},
        {"curve": [1]},
        {"progress": ["a", "b"]},
        {"pass_losses": {"a": 1}},
        {"loss": "hinge"},
        {"columns": {"columns": dict.fromkeys("abcd", "number"), "label_kind": "text", "bits": 5}},
    ],
)
def test_notes_made_to_do_harm_are_refused(tmp_path, wrong):
    from steelyard import modelfile
    from steelyard.estimators.files import notes_of

    model, _, _ = classifier(labels="str")
    notes = notes_of(model)
    notes["estimator"]["parameters"] |= {"loss": wrong.pop("loss")} if "loss" in wrong else {}
    notes["estimator"] |= wrong
    modelfile.save(model.learner_, tmp_path / "m", notes=notes)
    with pytest.raises(ValueError, match="m: what it says of its estimator is not right"):
        steelyard.load(tmp_path / "m")
    modelfile.save(model.learner_, tmp_path / "m", notes=notes_of(model) | {"classes": ["a"]})
    with pytest.raises(ValueError, match="is not a list of 2 labels"):
        steelyard.load(tmp_path / "m")


def test_a_bit_that_flips_in_an_estimators_file_is_found(tmp_path):
    model, X, _ = classifier(labels="str")
    path = tmp_path / "m"
    model.save(path)
    whole, refused = path.read_bytes(), 0
    rng = np.random.default_rng(0)
    for at in rng.integers(len(whole), size=1500).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << int(rng.integers(8))]) + whole[at + 1 :])
        try:
            other = steelyard.load(path)
        except ValueError as error:
            named = str(path) in str(error)
            refused += 1
        else:
            named = other.get_params() == model.get_params() and (other.predict(X) == model.predict(X)).all()
        assert named
    assert refused > 1000


def test_estimators_of_earlier_formats_still_load():
    """From format 5 on, files say what estimator they were saved from."""
    models = Path(__file__).parent / "models"
    for path in sorted(models.glob("format-*-estimator")):
        told = json.loads((models / f"{path.name.rsplit('-', 1)[0]}.json").read_text())["estimator"]
        model = steelyard.load(path)
        assert isinstance(model, OnlineClassifier)
        assert (model.passes, model.random_state, model.classes_.dtype.kind) == (2, 0, "U")
        frame = pd.DataFrame(told["rows"], columns=list(model.feature_names_in_))
        np.testing.assert_allclose(model.decision_function(frame), told["predict"], rtol=1e-13)
        assert model.partial_fit(frame, ["yes", "no", "yes"]).progressive_loss_ > 0.0


# ------------------------------------------------------------------------------------------------- files and the shell


def shell(*arguments):
    assert cli.main([str(each) for each in arguments]) == 0


@pytest.mark.parametrize("options", [[], ["--eta0", "0.5", "--center", "origin"]])
def test_a_model_of_the_shell_opens_as_an_estimator(tmp_path, capsys, options):
    X, y = labelled(LABELS["float"])
    pairs = zip(y, X.tolist(), strict=True)
    lines = [f"{label:g} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(r)) for label, r in pairs]
    (tmp_path / "d.libsvm").write_text("\n".join(lines) + "\n")
    shell("learn", tmp_path / "d.libsvm", "--model", tmp_path / "m", "--quiet", "--seed", "3", *options)
    model = steelyard.load(tmp_path / "m")
    assert isinstance(model, OnlineClassifier)
    assert (model.passes, model.shuffle, model.random_state) == (1, True, 3)
    capsys.readouterr()
    shell("predict", tmp_path / "m", tmp_path / "d.libsvm", "--probabilities")
    printed = np.array(capsys.readouterr().out.split(), float)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], printed, rtol=1e-9)
    fitted = OnlineClassifier(**model.get_params()).fit(sp.csr_matrix(X), y)
    assert model.progressive_loss_ == pytest.approx(fitted.progressive_loss_, rel=1e-12)
    assert model.score(X, y) > 0.6
    model.to_onnx()
    model.save(tmp_path / "n")
    assert steelyard.load(tmp_path / "n").predict(X).tolist() == model.predict(X).tolist()


def test_a_saved_estimator_is_taken_by_the_shell(tmp_path, capsys):
    frame = pd.DataFrame({"age": [31.0, 45.0, 27.0, 52.0] * 5, "job": ["clerk", "nurse", "cook", "clerk"] * 5})
    y = np.array(["yes", "no", "no", "yes"] * 5)
    frame.assign(paid=y).to_csv(tmp_path / "d.csv", index=False)
    frame.to_csv(tmp_path / "new.csv", index=False)
    model = OnlineClassifier(random_state=0).fit(frame, y)
    model.save(tmp_path / "m")
    shell("predict", tmp_path / "m", tmp_path / "new.csv")
    assert capsys.readouterr().out.split() == model.predict(frame).tolist()
    shell("evaluate", tmp_path / "m", tmp_path / "d.csv", "--label", "paid", "--json")
    assert json.loads(capsys.readouterr().out)["accuracy"] == model.score(frame, y)
    shell("inspect", tmp_path / "m")
    assert "classes        no, yes" in capsys.readouterr().out
    numbers = OnlineRegressor(random_state=0).fit(frame[["age"]], frame["age"] * 2.0)
    numbers.save(tmp_path / "m")
    frame[["age"]].to_csv(tmp_path / "new.csv", index=False)
    shell("predict", tmp_path / "m", tmp_path / "new.csv")
    np.testing.assert_allclose(np.array(capsys.readouterr().out.split(), float), numbers.predict(frame[["age"]]))
    shell("inspect", tmp_path / "m", "--json")
    assert json.loads(capsys.readouterr().out) == json.loads(numbers.to_json())


# -------------------------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("eta0", RATES)
@pytest.mark.parametrize(
    ("loss", "labels", "kind"),
    [
        ("logistic", "str", LogisticRegression),
        ("logistic", "bool", LogisticRegression),
        ("logistic", "three", OneVsRestClassifier),
        ("logistic", "three numbers", OneVsRestClassifier),
        ("hinge", "int", LinearSVC),
        ("squared_hinge", "three", LinearSVC),
    ],
)
def test_scikit_learns_classifiers_predict_the_same(loss, labels, kind, eta0):
    model, _, _ = classifier(loss, labels, eta0=eta0)
    theirs = model.to_sklearn()
    assert type(theirs) is kind
    new = rows(seed=5)
    for sparse in (new, sp.csr_matrix(new)):
        predicted = theirs.predict(sparse)
        assert predicted.dtype == model.predict(new).dtype
        np.testing.assert_array_equal(predicted, model.predict(new))
        np.testing.assert_allclose(theirs.decision_function(sparse), model.decision_function(new), rtol=1e-9, atol=1e-9)
    if loss == "logistic":
        np.testing.assert_allclose(theirs.predict_proba(new), model.predict_proba(new), rtol=1e-9, atol=1e-12)
    if kind is not OneVsRestClassifier:
        np.testing.assert_array_equal(theirs.coef_, model.coef_)
        np.testing.assert_array_equal(theirs.intercept_, model.intercept_)
    assert theirs.n_features_in_ == 4
    np.testing.assert_array_equal(theirs.classes_, model.classes_)


@pytest.mark.parametrize("eta0", RATES)
@pytest.mark.parametrize("loss", REGRESSING)
def test_scikit_learns_regressors_predict_the_same(loss, eta0):
    model, X, y = regressor(loss, eta0=eta0)
    theirs = model.to_sklearn()
    far = np.vstack([rows(seed=5), 10.0 * X[:20], -10.0 * X[:20]])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(theirs.predict(far[:300]), model.predict(far[:300]), rtol=1e-9, atol=1e-9)
    if loss == "poisson":
        assert type(theirs) is PoissonRegressor
        return
    np.testing.assert_allclose(theirs.predict(far), model.predict(far), rtol=1e-9, atol=1e-9)
    line = model.to_sklearn(clip=False)
    assert type(line) is LinearRegression
    np.testing.assert_array_equal(line.coef_, model.coef_)
    if eta0 == "auto":
        assert type(theirs) is TransformedTargetRegressor
        assert model.predict(far).max() <= y.max() < line.predict(far).max()


def test_names_go_along_to_scikit_learn():
    X, y = labelled(LABELS["three"])
    frame = pd.DataFrame(X, columns=list("abcd"))
    for model in (OnlineClassifier().fit(frame, y), OnlineRegressor().fit(frame, X[:, 0])):
        theirs = model.to_sklearn()
        assert list(theirs.feature_names_in_) == list("abcd")
        predicted = theirs.predict(frame)
        assert (predicted == model.predict(frame)).all() or np.allclose(predicted, model.predict(frame), rtol=1e-12)


def test_ways_out_that_there_are_not(tmp_path):
    for loss in ("exponential", "logarithmic", "squared"):
        with pytest.raises(ValueError, match=f"makes no classifier of the {loss} loss"):
            classifier(loss)[0].to_sklearn()
    frame = pd.DataFrame({"job": ["clerk", "nurse"] * 4})
    (tmp_path / "d.vw").write_text("1 | a b\n-1 | c\n")
    events = OnlineClassifier(bits=6).learn_one({"a": 1.0}, "yes").learn_one({"b": 1.0}, "no")
    events.save(tmp_path / "m")
    for model in (
        OnlineClassifier().fit(frame, [0, 1] * 4),
        OnlineClassifier().fit_stream(tmp_path / "d.vw"),
        OnlineClassifier(bits=6).learn_one({"a": 1.0}, "yes"),
        events,
        steelyard.load(tmp_path / "m"),
    ):
        for way in (model.to_sklearn, model.to_onnx):
            with pytest.raises(ValueError, match="hashed before the model sees them, and no other library does that"):
                way()
    assert steelyard.load(tmp_path / "m").predict_one({"a": 1.0}) == "yes"
    assert cli.main(["predict", str(tmp_path / "m"), str(tmp_path / "d.vw")]) != 0
    with pytest.raises(ValueError, match="not fitted"):
        OnlineClassifier().to_onnx()


def test_columns_of_a_file_keep_their_names(tmp_path):
    (tmp_path / "d.csv").write_text("age,height,y\n1,2,0\n5,1,1\n3,3,1\n")
    model = OnlineClassifier().fit_stream(steelyard.open(tmp_path / "d.csv", label="y"))
    model.save(tmp_path / "m")
    for each in (model, steelyard.load(tmp_path / "m")):
        assert each.to_sklearn().feature_names_in_.tolist() == ["age", "height"]
        assert json.loads(each.to_onnx().metadata_props[0].value) == ["age", "height"]


# ---------------------------------------------------------------------------------------------------------------- ONNX


@pytest.mark.parametrize("eta0", RATES)
@pytest.mark.parametrize("labels", ["str", "three"])
@pytest.mark.parametrize("loss", CLASSIFYING)
def test_onnx_classifies_the_same(loss, labels, eta0):
    model, _, _ = classifier(loss, labels, eta0=eta0)
    new = rows(seed=5)
    found = run_onnx(model, new)
    assert list(found) == ["label", "probabilities" if hasattr(model, "predict_proba") else "scores"]
    np.testing.assert_array_equal(found["label"], model.predict(new))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), atol=1e-6)
        assert found["probabilities"].dtype == np.float32
    else:
        scores = model.decision_function(new).reshape(len(new), -1)
        np.testing.assert_allclose(found["scores"], scores, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("labels", LABELS)
def test_onnx_has_the_classes_with_their_kind(labels):
    model, X, _ = classifier(labels=labels)
    label = run_onnx(model, X)["label"]
    np.testing.assert_array_equal(label, model.predict(X))
    wanted = {"i": np.int64, "u": np.uint64, "b": np.bool_, "f": np.float64}.get(model.classes_.dtype.kind, object)
    assert label.dtype == wanted


@pytest.mark.parametrize("eta0", RATES)
@pytest.mark.parametrize("loss", REGRESSING)
def test_onnx_regresses_the_same(loss, eta0):
    model, X, _ = regressor(loss, eta0=eta0)
    far = np.vstack([rows(seed=5), 10.0 * X[:20]]) if loss != "poisson" else rows(seed=5)
    far = far.astype(np.float32).astype(np.float64)
    found = run_onnx(model, far)
    assert list(found) == ["variable"]
    np.testing.assert_allclose(found["variable"][:, 0], model.predict(far), rtol=1e-6, atol=1e-6)


def test_onnx_takes_only_the_columns_that_count():
    X = sp.random(200, 1000, 0.01, random_state=0, format="csr")
    X = sp.csr_matrix(sp.hstack([X[:, :40], sp.csr_matrix((200, 960))]))
    y = np.arange(200) % 2
    model = OnlineClassifier().fit(X, y)
    proto = model.to_onnx()
    assert len(proto.SerializeToString()) < 4000
    np.testing.assert_allclose(run_onnx(model, X.toarray())["probabilities"], model.predict_proba(X), atol=1e-6)
    frame = pd.DataFrame(rows(), columns=list("abcd"))
    named = OnlineClassifier().fit(frame, np.arange(300) % 2).to_onnx()
    assert {each.key: json.loads(each.value) for each in named.metadata_props} == {"feature_names": list("abcd")}


def test_without_onnx_there_is_a_sentence():
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import steelyard\n"
        "model = steelyard.OnlineClassifier(eta0=1.0).fit([[0.0], [1.0]], [0, 1])\n"
        "try:\n    model.to_onnx()\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "to_onnx() needs the package onnx: pip install 'steelyard[onnx]'"


# ------------------------------------------------------------------------------------------------------- JSON, VW, CSV


def test_json_says_enough_to_predict():
    for model, X in (classifier()[:2], classifier(labels="three")[:2], regressor()[:2]):
        found = json.loads(model.to_json(), parse_constant=lambda word: pytest.fail(word))
        outputs = len(found["classes"]) if found["classes"] and len(found["classes"]) > 2 else 1
        coef = np.zeros((outputs, found["features"]))
        for each in found["coefficients"]:
            coef[found["classes"].index(each["class"]) if outputs > 1 else 0, each["index"]] = each["value"]
        scores = X @ coef.T + found["intercept"]
        if found["label_range"]:
            scores = np.clip(scores, *found["label_range"])
        np.testing.assert_allclose(
            scores.reshape(model.learner_.predict(X).shape), model.learner_.predict(X), rtol=1e-9
        )
        assert found["certificate"]["gap"] > 0.0
        assert found["nonzero"] == np.count_nonzero(np.atleast_2d(model.coef_).any(axis=0))
        assert len(json.loads(model.to_json(top=2))["coefficients"]) == 2
        for top in ("x", -1, 1.5, True):
            with pytest.raises(ValueError, match="top must be None, or a whole number of coefficients, got"):
                model.to_json(top=top)


def test_readable_text_is_as_vowpal_wabbits(tmp_path, capsys):
    """The same kinds of lines in the same order, and weights where Vowpal Wabbit has them."""
    from vowpalwabbit import Workspace

    examples = ["1 |a x:2 y", "-1 |a z |b 5:0.5", "1 | w", "-1 | v"]
    workspace = Workspace(f"--quiet -b 18 --readable_model {tmp_path / 'theirs'} --invert_hash {tmp_path / 'named'}")
    for each in examples:
        workspace.learn(each)
    workspace.finish()
    (tmp_path / "d.vw").write_text("\n".join(examples) + "\n")
    shell("learn", tmp_path / "d.vw", "--format", "vw", "--model", tmp_path / "m", "--quiet", "--eta0", "0.5")
    shell("inspect", tmp_path / "m", "--vw")
    ours = capsys.readouterr().out.splitlines()
    theirs, named = ((tmp_path / name).read_text().splitlines() for name in ("theirs", "named"))

    def weights(lines):
        found = [re.fullmatch(r"(?:(.+):)?(\d+):-?[\d.]+(?:e-?\d+)?(?: .*)?", line) for line in lines[9:]]
        return {int(each[2]): each[1] for each in found if each}

    def kinds(lines):
        return [line.split(":")[0].split()[0] for line in lines[:9]]

    assert kinds(ours) == kinds(theirs)
    assert list(weights(ours)) == sorted(weights(ours))
    assert set(weights(ours)) == set(weights(theirs))
    assert weights(ours) == weights(named)
    model = steelyard.load(tmp_path / "m")
    values = {int(line.rsplit(":", 2)[-2]): float(line.rsplit(":", 1)[1]) for line in ours[10:]}
    for index, value in values.items():
        expected = model.intercept_[0] if index == 116060 else model.coef_[0, index]
        assert value == pytest.approx(expected, rel=1e-8)
    few = Learner("squared")
    few.learn(np.eye(14), np.arange(14.0) + 1.0)  # Vowpal Wabbit's constant would be that of feature 12
    lines = dict(line.split(":") for line in [*readable_model(few)][10:])
    assert [*map(int, lines)] == [*range(15)]
    assert float(lines["12"]) == pytest.approx(few.coef_[12])
    assert float(lines["14"]) == pytest.approx(few.intercept_)
    classifier(labels="three")[0].save(tmp_path / "n")
    assert cli.main(["inspect", str(tmp_path / "n"), "--vw"]) == 1
    assert "for two classes or a regression" in capsys.readouterr().err


def test_a_sweep_as_a_frame(monkeypatch):
    X = rows()
    result = steelyard.sweep(X, X[:, 0], loss="squared", eta0=[0.1, 1.0], repeats=2, updates=("iwa",))
    frame = result.to_frame()
    assert frame.to_dict("records") == result.rows()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame\\(\\) needs the package pandas: pip install pandas"):
        result.to_frame()


# ------------------------------------------------------------------------------------------------------ early stopping


def noisy(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 30))
    return X, (X[:, 0] + 2.0 * rng.normal(size=n) > 0.0).astype(int)


@pytest.mark.parametrize("options", [{"eta0": 3.0}, {}, {"eta0": 1.0, "shuffle": False}])
def test_the_model_of_the_best_pass_is_kept(options):
    X, y = noisy()
    model = OnlineClassifier(random_state=0, early_stopping=True, passes=30, n_iter_no_change=3, **options).fit(X, y)
    losses = model.validation_losses_
    best = int(np.argmin(losses))
    assert len(losses) == len(model.pass_losses_) < 30
    short = OnlineClassifier(random_state=0, early_stopping=True, passes=best + 1, n_iter_no_change=99, **options).fit(
        X, y
    )
    if options.get("shuffle", True) and best == 0:  # the seeds of passes do not depend on how many there are
        np.testing.assert_array_equal(short.coef_, model.coef_)
    np.testing.assert_allclose(short.validation_losses_, losses[: best + 1], rtol=1e-12)
    np.testing.assert_array_equal(short.coef_, model.coef_)
    assert model.progressive_loss_ == model.pass_losses_[0]
    model.set_params(early_stopping=False).fit(X, y)
    assert not hasattr(model, "validation_losses_")
    assert len(model.pass_losses_) == 30


def test_tol_none_makes_all_passes_and_keeps_the_best():
    X, y = noisy()
    model = OnlineClassifier(eta0=3.0, random_state=0, early_stopping=True, passes=12, tol=None).fit(X, y)
    assert len(model.validation_losses_) == 12
    assert model.validation_losses_[-1] > min(model.validation_losses_)


@pytest.mark.filterwarnings("ignore:the losses grew past what a float can hold:RuntimeWarning")
def test_a_learner_that_diverges_is_stopped():
    X, y = noisy()
    options = {"update": "linearized", "schedule": "constant", "metric": "scalar", "early_stopping": True, "passes": 9}
    model = OnlineRegressor(eta0=100.0, random_state=0, n_iter_no_change=2, **options).fit(X, y)
    assert model.validation_losses_ == [math.inf, math.inf]


@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_held_out_rows_respect_weights_and_copies(kind):
    X, y = noisy()
    h = np.random.default_rng(1).integers(0, 4, len(y))
    options = {"random_state": 0, "early_stopping": True, "passes": 6, "eta0": 1.0}
    weighted = kind(**options).fit(X, y, sample_weight=h)
    order = np.random.default_rng(2).permutation(int(h.sum()))
    repeated = kind(**options).fit(np.repeat(X, h, axis=0)[order], np.repeat(y, h)[order])
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_allclose(weighted.validation_losses_, repeated.validation_losses_, rtol=1e-12)
    other = kind(**options | {"random_state": 1}).fit(X, y, sample_weight=h)
    assert other.validation_losses_[0] != weighted.validation_losses_[0]


def test_what_is_held_out():
    rng = np.random.default_rng(0)
    keys = np.repeat(rng.integers(2**63, size=500, dtype=np.uint64), 4)
    weight, strata = rng.exponential(size=2000), np.repeat(np.arange(500) % 5 == 0, 4) * 1.0
    held = hold_out(keys, weight, 0.2, strata, 0)
    assert (held.reshape(500, 4) == held.reshape(500, 4)[:, :1]).all()  # copies are together
    for stratum in (0.0, 1.0):
        own = strata == stratum
        share = weight[own & held].sum() / weight[own].sum()
        assert 0.15 < share <= 0.2
    assert (hold_out(keys, weight, 0.2, strata, 1) != held).any()
    weight[7] = 1e6  # a row that outweighs all others is learned from
    assert not hold_out(keys, weight, 0.2, None, 0)[7]
    assert hold_out(keys[:8], np.ones(8), 0.01, None, 0).sum() == 4  # one of two different rows
    assert not hold_out(keys[:4], np.ones(4), 0.5, None, 0).any()
    assert not hold_out(keys, np.zeros(2000), 0.5, None, 0).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validation_fraction": 0.0}, "validation_fraction must be a number between 0 and 1, got 0.0"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be an integer of at least 1, got 0"),
        ({"tol": -1.0}, "tol must be None, or a number from 0 to 1"),
    ],
)
def test_wrong_parameters_of_early_stopping(options, message, tmp_path):
    X, y = noisy(50)
    with pytest.raises(ValueError, match=message):
        OnlineClassifier(early_stopping=True, passes=2, **options).fit(X, y)
    OnlineClassifier(**options).fit(X, y)  # not used
    with pytest.raises(ValueError, match="leaves no row to hold out"):
        OnlineRegressor(early_stopping=True, passes=2).fit(np.ones((5, 2)), np.ones(5))
    (tmp_path / "d").write_text("1 1:1\n0 1:2\n")
    with pytest.raises(ValueError, match="early_stopping=True is for fit: a stream has no rows to hold out"):
        OnlineClassifier(early_stopping=True).fit_stream(tmp_path / "d")
    for kind in (OnlineClassifier, OnlineRegressor):
        with pytest.warns(UserWarning, match="passes=1 stops nothing: rows are held out, and not learned"):
            model = kind(early_stopping=True).fit(X, y)
        with pytest.raises(ValueError, match=r"partial_fit has no rows to hold out\. Set it to False"):
            model.partial_fit(X, y)
        with pytest.raises(ValueError, match="learn_one has no rows to hold out"):
            kind(early_stopping=True).learn_one({"a": 1.0}, 1)


# --------------------------------------------------------------------------------------------------------- loss curves


def test_the_curve_is_the_progressive_loss_wherever_a_stream_is_cut():
    X, y = noisy(1000)
    weight = np.random.default_rng(0).integers(0, 3, 1000).astype(float)
    learner = Learner("logistic", eta0=1.0)
    trace = learner.learn(X, 2.0 * y - 1.0, weight)
    lost = np.cumsum(trace.weight * trace.loss) / np.maximum(np.cumsum(trace.weight), 1e-300)
    curves = []
    for size in (1000, 64, 1):
        model = OnlineClassifier(eta0=1.0)
        for at in range(0, 1000, size):
            part = slice(at, at + size)
            model.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=weight[part])
        curves.append(model.loss_curve_)
        assert model.loss_curve_.loss[-1] == model.progressive_loss_
    for curve in curves:
        np.testing.assert_allclose(curve.weight, curves[0].weight)
        np.testing.assert_allclose(curve.loss, curves[0].loss, rtol=1e-10)
        at = np.searchsorted(np.cumsum(weight), curve.weight)
        np.testing.assert_allclose(curve.loss, lost[at], rtol=1e-10)
    assert 20 < curves[0].weight.size < 40
    fitted = OnlineClassifier(eta0=1.0, passes=3).fit(X, y).loss_curve_
    assert fitted.weight[-1] == 1000.0


def test_a_curve_has_few_points():
    curve = Curve()
    rng = np.random.default_rng(0)
    for _ in range(20):
        loss = rng.random(10_000)
        curve = curve.add(steelyard.Trace(loss, loss, np.ones(10_000)))
    ending = curve.ending_with(curve.weight, curve.lost / curve.weight)
    assert ending.weight.size < 3 * math.log2(200_000) + 2
    assert Curve().ending_with(0.0, float("nan")).loss.size == 0
    nothing = Curve().add(steelyard.Trace(np.array([0.0]), np.array([np.inf]), np.array([0.0])))
    assert nothing.points == ()


def test_models_that_have_diverged_are_shown_and_not_exported(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(120, 3))
    with pytest.warns(RuntimeWarning):
        model = OnlineRegressor(eta0=1.0, center="origin").fit(X * 1e150, X[:, 0] * 1e300)
    assert json.loads(model.to_json())["certificate"] is None
    for export in (model.to_sklearn, model.to_onnx):
        with pytest.raises(ValueError, match="has diverged"):
            export()


def test_classes_that_onnx_does_not_have_are_refused():
    days = np.array(["2020-01-01", "2021-01-01"] * 5, dtype="datetime64[D]")
    model = OnlineClassifier(eta0=1.0).fit(np.arange(10.0).reshape(-1, 1), days)
    with pytest.raises(ValueError, match="ONNX has classes that are text, numbers or truth values"):
        model.to_onnx()


@pytest.mark.parametrize("name", sorted(path.name for path in (Path(__file__).parent / "models").glob("format-?-*")))
def test_models_of_every_format_are_shown(name, capsys):
    for form in ([], ["--json"]):
        assert cli.main(["inspect", str(Path(__file__).parent / "models" / name), *form]) == 0
        assert capsys.readouterr().out


@pytest.mark.parametrize(
    "notes",
    [
        {"data": "text"},
        {"data": {"bits": 3}},
        {"data": {"format": "csv", "label": ["y"]}},
        {"data": {"format": "csv", "columns": 3}},
        {"data": {"format": "csv", "drop": 3}},
        {"names": ["a"]},
        {"names": {"a": "b"}},
        {"learned": 3},
    ],
)
def test_notes_of_another_form_are_refused_by_name(tmp_path, capsys, notes):
    learner = Mixture()
    learner.learn([[1.0], [2.0]], [1.0, -1.0])
    learner.notes = {"classes": [0, 1], "task": "classification", **notes}
    learner.save(tmp_path / "m")
    (tmp_path / "rows").write_text("1 1:1\n")
    for words in (["inspect", "m"], ["predict", "m", "rows"], ["evaluate", "m", "rows"]):
        assert cli.main([words[0], *(str(tmp_path / word) for word in words[1:])]) == 1
        assert f"m: what it notes as '{next(iter(notes))}' is not of the form" in capsys.readouterr().err
    with pytest.raises(ValueError, match="what it notes as"):
        steelyard.load(tmp_path / "m")


@pytest.mark.parametrize("classes", [1, True, {"a": 1}, [[1], [2]]])
def test_classes_that_are_none_are_not_shown(tmp_path, capsys, classes):
    learner = Mixture()
    learner.learn([[1.0], [2.0]], [1.0, -1.0])
    learner.notes = {"classes": classes, "task": "classification"}
    learner.save(tmp_path / "m")
    assert cli.main(["inspect", str(tmp_path / "m")]) == 1
    assert "m: what it notes as its classes is not a list of 2 labels" in capsys.readouterr().err


def test_what_needs_a_users_loss_takes_nothing_else(tmp_path):
    learner = Learner()
    learner.learn([[1.0]], [1.0])
    learner.save(tmp_path / "m")
    with pytest.raises(TypeError, match="takes that loss, not 'squared'"):
        steelyard.load(tmp_path / "m", loss="squared")
    with pytest.raises(ValueError, match="l1 must be 0, or a number between"):
        Learner(l1=10**400)


@pytest.mark.parametrize("option", [{"l1": 0.1}, {"l2": 0.1}, {"average": True}])
def test_the_papers_bound_has_no_penalties(option):
    with pytest.raises(ValueError, match="without penalties and averages"):
        steelyard.paper_bound([[1.0]], [1.0], [1.0], **option)
