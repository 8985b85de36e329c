"""Differential tests against Vowpal Wabbit, prediction by prediction on real data, and scikit-learn's SGD."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import SGDRegressor
from sklearn.preprocessing import StandardScaler, normalize
from vowpalwabbit import Workspace

from steelyard import Learner
from steelyard.losses import Quantile


def data(task):
    X, y = load_breast_cancer(return_X_y=True) if task == "classification" else load_diabetes(return_X_y=True)
    X = normalize(StandardScaler().fit_transform(X))
    return X, (2.0 * y - 1.0 if task == "classification" else (y - y.mean()) / y.std())


def vowpal_wabbit(X, y, weight, loss, rate, extra=""):
    """The sequence of its predictions, each before its row is learned."""
    bounds = "--min_prediction -1000000 --max_prediction 1000000"  # it clips to the labels seen otherwise
    options = f"--invariant --power_t 0 -l {rate!r} --loss_function {loss} --noconstant --quiet {bounds} {extra}"
    workspace = Workspace(options)
    predictions = []
    for q, label, h in zip(X, y, weight, strict=True):
        features = " ".join(f"f{j}:{value:.9g}" for j, value in enumerate(q))
        example = workspace.parse(f"{label} {h} | {features}")
        workspace.learn(example)
        predictions.append(example.get_simplelabel_prediction())
        workspace.finish_example(example)
    workspace.finish()
    return np.array(predictions)


# For the logistic loss, 1e-4 is about what single precision and an approximate Lambert W leave of Vowpal Wabbit's own
# digits: at smaller rates the first adds up to more, at larger ones the second.
@pytest.mark.parametrize(("eta", "weighted"), [(0.1, False), (0.2, False), (0.02, True)])
@pytest.mark.parametrize(
    ("loss", "name", "task", "factor", "extra"),
    [
        ("squared", "squared", "regression", 0.5, ""),  # its squared loss has no 1/2
        ("logistic", "logistic", "classification", 1.0, ""),
        ("hinge", "hinge", "classification", 1.0, ""),
        (Quantile(0.3), "quantile", "regression", 1.0, "--quantile_tau 0.3"),
    ],
    ids=["squared", "logistic", "hinge", "quantile"],
)
def test_vowpal_wabbits_invariant_updates(loss, name, task, factor, extra, eta, weighted):
    X, y = data(task)
    weight = np.random.default_rng(0).integers(1, 9, len(y)).astype(float) if weighted else np.ones(len(y))
    theirs = vowpal_wabbit(X, y, weight, name, eta * factor, extra)
    learner = Learner(loss, schedule="constant", metric="scalar", eta0=eta, fit_intercept=False)
    ours = learner.learn(X, y, weight).prediction
    assert np.abs(ours).max() > 0.5
    assert np.abs(ours - theirs).max() < 1e-4


def test_the_linearized_rule_is_scikit_learns_sgd():
    X, y = data("regression")
    theirs = SGDRegressor(penalty=None, learning_rate="constant", eta0=0.05, max_iter=1, tol=None, shuffle=False)
    theirs.fit(X, y)
    learner = Learner("squared", update="linearized", schedule="constant", metric="scalar", eta0=0.05)
    learner.learn(X, y)
    np.testing.assert_allclose(learner.coef_, theirs.coef_, rtol=1e-10)
    assert learner.intercept_ == pytest.approx(theirs.intercept_[0], rel=1e-10)
