"""The ways out of a fitted estimator: to a file, to scikit-learn's own classes, to ONNX, to JSON."""

from __future__ import annotations

import json
import os
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


class Exports:
    """``save``, ``to_sklearn``, ``to_onnx`` and ``to_json`` of the classifier and the regressor."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, which :func:`steelyard.load` opens, and the shell's commands take.

        The file holds no code and no pickle. It is written whole or not at all, and a file that is there and no model
        is not replaced. Kept are what was learned, parameters, classes with their type, names of features, and how text
        is hashed; learning goes on from it to the same bits. A ``random_state`` that is an object is not kept.

        Examples
        --------
        >>> import pathlib, tempfile, steelyard
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = steelyard.OnlineClassifier(random_state=0).fit(X, y)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "m")
        >>> model.save(path)
        >>> bool((steelyard.load(path).predict_proba(X) == model.predict_proba(X)).all())
        True
        """
        from steelyard.estimators.files import save

        check_is_fitted(self)
        model: Any = self
        save(model, path)

    def to_sklearn(self, *, clip: bool = True) -> Any:
        """A fitted estimator of scikit-learn that predicts the same, with the same coefficients to the bit.

        ====================================  ===============================================
        loss                                  estimator
        ====================================  ===============================================
        logistic                              LogisticRegression; for more than two classes a
                                              OneVsRestClassifier of them
        hinge, squared_hinge                  LinearSVC
        squared, absolute, quantile, huber    LinearRegression
        poisson                               PoissonRegressor
        ====================================  ===============================================

        A regressor with ``eta0="auto"`` keeps predictions within the range of the targets that it has seen. Its
        LinearRegression then is the ``regressor_`` of a TransformedTargetRegressor that does so, too; with
        ``clip=False`` it stands alone, and its predictions may leave that range.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from steelyard import OnlineClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = OnlineClassifier(random_state=0).fit(X, y)
        >>> theirs = model.to_sklearn()
        >>> theirs
        LogisticRegression()
        >>> bool((theirs.predict(X) == model.predict(X)).all())
        True
        """
        from steelyard.export.scikit import to_sklearn

        return to_sklearn(_linear(self), clip=clip)

    def to_onnx(self) -> Any:
        """The fitted model as an ``onnx.ModelProto``, for any runtime; needs the extra ``onnx``
        (from a clone: ``pip install '.[onnx]'``).

        The input ``X`` is a float32 matrix with the columns in the order of ``fit``. A classifier has the outputs
        ``label`` and ``probabilities`` (or ``scores``, where its loss has no probabilities), a regressor ``variable``
        with one column. Inside, sums are in double precision, so results agree with ours to the precision of float32.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from steelyard import OnlineClassifier
        >>> model = OnlineClassifier(random_state=0).fit(*load_iris(return_X_y=True))
        >>> graph = model.to_onnx().graph
        >>> [output.name for output in graph.output]
        ['label', 'probabilities']
        """
        from steelyard.export.onnx import to_onnx

        return to_onnx(_linear(self))

    def to_json(self, *, top: int | None = None) -> str:
        """The fitted model as text: what it is, its options, and its coefficients by name, the largest first.

        All that are not zero, or the ``top`` ones. ``steelyard inspect --json`` prints the same of a file.

        Examples
        --------
        >>> import json
        >>> from sklearn.datasets import load_diabetes
        >>> from steelyard import OnlineRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> found = json.loads(OnlineRegressor(random_state=0).fit(X, y).to_json(top=1))
        >>> found["loss"], found["features"], found["coefficients"][0]["name"]
        ('squared', 10, 's5')
        """
        from steelyard.estimators.files import notes_of
        from steelyard.export.describe import describe

        check_is_fitted(self)
        if top is not None and (not isinstance(top, Integral) or isinstance(top, bool) or top < 0):
            raise ValueError(f"top must be None, or a whole number of coefficients, got {top!r}")
        model: Any = self
        return json.dumps(describe(model.learner_, top, notes_of(model)), allow_nan=False)


def _linear(model: Any) -> Any:
    """The linear model that an estimator predicts with."""
    from steelyard.export.linear import LinearModel

    check_is_fitted(model)
    learner = model.learner_
    schema = model._schema()
    if schema.get("bits") is not None and schema.get("format") != "libsvm":  # there, columns are numbers
        raise ValueError(
            "this model was fitted on names, or columns of text, that are hashed before the model sees them, and no "
            "other library does that: use save(), or make numbers of the columns first and fit on those"
        )
    classes = getattr(model, "classes_", None)
    return LinearModel(learner.loss, learner, classes, _names(model))


def _names(model: Any) -> Any:
    """The names of all features: those of the frame, or of the columns of a file."""
    known = model.learner_.notes.get("names") or {}
    if hasattr(model, "feature_names_in_") or not known:
        return getattr(model, "feature_names_in_", None)
    names = [known.get(str(index)) for index in range(model.learner_.n_features)]
    return None if None in names else np.array(names, dtype=object)
