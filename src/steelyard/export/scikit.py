"""A linear model → a fitted estimator of scikit-learn that predicts the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.export.linear import LinearModel

_STRAIGHT = ("squared", "absolute", "quantile", "huber")


def to_sklearn(model: LinearModel, *, clip: bool = True) -> Any:
    """The estimator; see :meth:`OnlineClassifier.to_sklearn`."""
    loss = model.loss.name
    if model.classes is None:
        return _regressor(model, clip)
    if loss == "logistic":
        return _logistic(model) if model.classes.size == 2 else _one_vs_rest(model)
    if loss in ("hinge", "squared_hinge"):
        from sklearn.svm import LinearSVC

        return _filled(LinearSVC(loss=loss), model, model.coef, model.intercept, model.classes)
    raise ValueError(
        f"to_sklearn() makes no classifier of the {loss} loss: it is for logistic, hinge and squared_hinge. to_onnx() "
        "and to_json() take every loss"
    )


def _filled(estimator: Any, model: LinearModel, coef: Any, intercept: Any, classes: Any = None) -> Any:
    """An estimator with what ``fit`` would have set."""
    estimator.coef_, estimator.intercept_ = np.array(coef), np.array(intercept)
    estimator.n_features_in_ = model.n_features
    if model.names is not None:
        estimator.feature_names_in_ = np.array(model.names, dtype=object)
    if classes is not None:
        estimator.classes_ = np.array(classes)
        estimator.n_iter_ = np.array([1], dtype=np.int32)
    return estimator


def _logistic(model: LinearModel) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _filled(LogisticRegression(), model, model.coef, model.intercept, model.classes)


def _one_vs_rest(model: LinearModel) -> Any:
    """LogisticRegression itself would make probabilities of several scores in another way."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    classes = np.asarray(model.classes)
    found = OneVsRestClassifier(DummyClassifier()).fit(np.zeros((classes.size, 1)), classes)  # sets its classes
    found.estimator = LogisticRegression()
    found.estimators_ = [
        _filled(LogisticRegression(), model, model.coef[k : k + 1], model.intercept[k : k + 1], [0, 1])
        for k in range(classes.size)
    ]
    found.n_features_in_ = model.n_features
    if model.names is not None:
        found.feature_names_in_ = np.array(model.names, dtype=object)
    return found


def _regressor(model: LinearModel, clip: bool) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import LinearRegression, PoissonRegressor
    from sklearn.preprocessing import FunctionTransformer

    coef, intercept = model.coef[0], float(model.intercept[0])
    if model.loss.name == "poisson":
        fitted = PoissonRegressor().fit([[0.0], [1.0]], [1.0, 2.0])  # which sets its link; the rest is replaced
        return _filled(fitted, model, coef, intercept)
    if model.loss.name not in _STRAIGHT:
        raise ValueError(
            f"scikit-learn has no linear regressor for the {model.loss.name} loss: to_sklearn() is for "
            f"{', '.join(_STRAIGHT)} and poisson. Its scores are X @ coef_ + intercept_"
        )
    line = _filled(LinearRegression(), model, coef, intercept)
    if model.range is None or not clip:
        return line
    low, high = model.range
    limits = FunctionTransformer(inverse_func=np.clip, check_inverse=False, inv_kw_args={"a_min": low, "a_max": high})
    found = TransformedTargetRegressor(LinearRegression(), transformer=limits)
    found.fit(np.zeros((2, 1)), np.array([low, high]))  # which sets what is not public; the regressor is replaced
    found.regressor_ = line
    if model.names is not None:
        found.feature_names_in_ = line.feature_names_in_
    return found
