"""scikit-learn estimators, thin over :class:`~steelyard.Mixture` and :class:`~steelyard.Learner`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from steelyard.data.block import as_block
from steelyard.data.checks import check_labels, check_weights
from steelyard.fitting import check_classifies, check_regresses, learn_passes
from steelyard.learner import Learner
from steelyard.losses import Array, Loss, get_loss
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner, Progress
from steelyard.regularizers import Regularizer
from steelyard.updates import check_update

_CHOSEN_BY_AUTO = {
    "update": "iwa",
    "schedule": "power",
    "power_t": 0.5,
    "metric": "diagonal",
    "center": "trajectory",
    "radius": None,
    "certificate": None,
}
"""What ``eta0="auto"`` decides: these parameters must be left at their defaults."""


class _Online(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share: parameters, passes, and a fit that fails without a trace."""

    learner_: OnlineLearner
    _progress: Progress

    def __init__(
        self,
        loss: str | Loss,
        *,
        update: str,
        eta0: float | str,
        schedule: str,
        power_t: float,
        metric: str,
        center: str,
        radius: float | None,
        passes: int,
        fit_intercept: bool,
        shuffle: bool,
        random_state: Any,
        verbose: int,
        certificate: bool | None,
    ) -> None:
        self.loss = loss
        self.update = update
        self.eta0 = eta0
        self.schedule = schedule
        self.power_t = power_t
        self.metric = metric
        self.center = center
        self.radius = radius
        self.passes = passes
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.certificate = certificate

    def _new_learner(self, n_outputs: int = 1) -> OnlineLearner:
        if isinstance(self.eta0, str):
            return self._new_mixture(n_outputs)
        return Learner(
            self.loss,
            update=self.update,
            schedule=self.schedule,
            metric=self.metric,
            center=self.center,
            eta0=self.eta0,
            power_t=self.power_t,
            radius=self.radius,
            fit_intercept=self.fit_intercept,
            n_outputs=n_outputs,
            certificate=self.certificate,
        )

    def _new_mixture(self, n_outputs: int) -> Mixture:
        if self.eta0 != "auto":
            raise ValueError(f"eta0 must be 'auto' or a positive number, got {self.eta0!r}")
        check_update(self.update, get_loss(self.loss))
        Regularizer(self.schedule, self.metric, self.center, 1.0, self.power_t)
        for name, only in _CHOSEN_BY_AUTO.items():
            value = getattr(self, name)
            if value != only and not (name == "certificate" and value is False):
                raise ValueError(
                    f"{name}={value!r} needs a learning rate, eta0=1.0 for example: eta0='auto' mixes learners whose "
                    f"{name} it chooses itself"
                )
        return Mixture(self.loss, fit_intercept=self.fit_intercept, n_outputs=n_outputs)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put every attribute back if the body raises, so that a failed call leaves no trace."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool, **checks: Any) -> Any:
        """scikit-learn's checks, but the one for finite features: the learner makes it, and names the row."""
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False}
        try:
            return validate_data(self, X, y, reset=reset, **options, **checks)
        except ValueError as error:
            if not str(error).startswith("Input y contains"):
                raise
            nan = "NaN" in str(error)
            row = next(i for i, v in enumerate(np.ravel(y)) if (v != v if nan else v in (np.inf, -np.inf)))
            raise ValueError(f"{error} The first is in row {row}.") from None

    def _run(self, learner: OnlineLearner, X: Any, y: Array, weight: Array, factor: Array | None = None) -> None:
        """All the passes of ``fit``; ``factor`` is what ``class_weight`` multiplies the weights by."""
        if not isinstance(self.passes, Integral) or self.passes < 1:
            raise ValueError(f"passes must be an integer of at least 1, got {self.passes!r}")
        self.pass_losses_ = []
        traces = learn_passes(
            learner,
            as_block(X, inspect=False),
            y,
            weight,
            passes=int(self.passes),
            shuffle=self.shuffle,
            random=check_random_state(self.random_state),
            factor=factor,
        )
        for done, trace in enumerate(traces):
            if done == 0:
                self._progress = Progress().add(trace)
            self.pass_losses_.append(trace.average_loss)
            if self.verbose:
                what = "progressive loss" if done == 0 else "average loss, of rows already learned,"
                print(f"pass {done + 1} of {self.passes}: {what} {trace.average_loss:.6g}")

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.learner_.predict(self._validate(X, reset=False))

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "learner_", None) is not None

    @property
    def progressive_loss_(self) -> float:
        """The weighted average loss of every example *before* it was learned for the first time.

        That is the first pass of ``fit`` (``pass_losses_`` has all of them) and every later ``partial_fit``.
        """
        check_is_fitted(self)
        return self._progress.average

    @property
    def bank_(self) -> Any:
        """With ``eta0="auto"``, every expert of the mixture: its rate, its loss so far, its share.

        A list of :class:`~steelyard.Expert`, or one list for each class where there are more than two.
        """
        check_is_fitted(self)
        if not isinstance(self.learner_, Mixture):
            raise AttributeError(f"there is a bank_ only with eta0='auto', not with eta0={self.eta0!r}")
        each = [self.learner_.bank(k) for k in range(self.learner_.n_outputs)]
        return each[0] if len(each) == 1 else each

    @property
    def certificate_(self) -> Any:
        """What the model can prove about its regret, over all rows since the first call."""
        check_is_fitted(self)
        if not self.learner_.certificate:
            raise AttributeError(
                "this model has no certificate_: it needs a learning rate, and certificate=True or center='origin'"
            )
        each = [self.learner_.certify(k) for k in range(self.learner_.n_outputs)]
        return each[0] if len(each) == 1 else each

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _refuse_no_weight(weight: Array) -> Array:
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: there is nothing to learn")
    return weight


def _distinct(labels: Any) -> NDArray[Any]:
    """The classes among some labels, in order."""
    values = np.asarray(labels)
    if values.size and values.dtype.kind in "biuf":  # two numbers are found without sorting
        ends = np.array([values.min(), values.max()])
        if ends[0] < ends[1] and ((values == ends[0]) | (values == ends[1])).all():
            return ends
    try:
        return np.unique(values)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in np.ravel(labels)})
        raise ValueError(
            f"labels of kinds {kinds} have no common order: make them all strings or all numbers"
        ) from None


def _is_probabilistic(estimator: Any) -> bool:
    loss = get_loss(estimator.loss)
    if loss.link not in ("logistic", "identity"):
        raise AttributeError(
            f"predict_proba needs a probabilistic loss: 'logistic', 'logarithmic' or 'hellinger', not {loss.name!r}"
        )
    return True


class OnlineClassifier(ClassifierMixin, _Online):  # type: ignore[misc]
    """Linear classifier that learns online, with exact importance weights.

    Several classes are learned one-vs-rest, in one pass over the data.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        ``logistic``, ``hinge``, ``squared_hinge``, ``exponential``, ``logarithmic``, ``hellinger``, ``squared``,
        ``absolute``, ``huber``, ``quantile``, or a :class:`~steelyard.CustomLoss`.
    update : {"iwa", "proximal", "aprox", "linearized"}, default="iwa"
        ``iwa`` makes weights exact and never overshoots.
    eta0 : float or "auto", default="auto"
        Initial learning rate. ``auto`` needs none: it learns with eight rates in one pass and mixes them, see
        :class:`Mixture`. ``update``, ``schedule``, ``power_t``, ``metric``, ``center``, ``radius`` and ``certificate``
        belong to a rate, and ``auto`` chooses them itself.
    schedule : {"power", "constant", "adagrad-norm", "gap"}, default="power"
    power_t : float, default=0.5
        Exponent of ``schedule="power"``.
    metric : {"diagonal", "scalar"}, default="diagonal"
        ``diagonal`` divides each feature by its running scale, so that raw columns work.
    center : {"trajectory", "origin"}, default="trajectory"
    radius : float, default=None
        Keep the model in a ball of this radius (needs ``metric="scalar"``).
    passes : int, default=1
        Passes of ``fit`` over the data.
    fit_intercept : bool, default=True
    shuffle : bool, default=True
        Let ``fit`` take the rows in a pseudo-random order. The order is keyed by the rows' content, so a row of weight
        2 and the same row twice give the same model. ``partial_fit`` takes rows as they come.
    class_weight : dict or "balanced", default=None
        Multiplies the sample weights. ``balanced`` makes all classes weigh the same in ``fit``.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
    certificate : bool, default=None
        Keep what a regret bound needs; by default where it is nearly free, see :class:`Learner`.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, learner_
    progressive_loss_ : float
        The weighted average loss of every example before it was learned for the first time. The squared loss is half
        the squared error.
    pass_losses_ : list of float
        After ``fit``: the average loss of each pass. The first is the progressive loss; from the second pass on, rows
        are predicted that were learned before.
    coef_, intercept_
        The linear model that predictions are made with. With ``eta0="auto"`` it is the average of the experts, each by
        its share in the mixture.
    bank_ : list of Expert, with ``eta0="auto"``
    certificate_ : Certificate, or a list with one for each class where there are more than two

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from steelyard import OnlineClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OnlineClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        update: str = "iwa",
        eta0: float | str = "auto",
        schedule: str = "power",
        power_t: float = 0.5,
        metric: str = "diagonal",
        center: str = "trajectory",
        radius: float | None = None,
        passes: int = 1,
        fit_intercept: bool = True,
        shuffle: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        certificate: bool | None = None,
    ) -> None:
        super().__init__(
            loss,
            update=update,
            eta0=eta0,
            schedule=schedule,
            power_t=power_t,
            metric=metric,
            center=center,
            radius=radius,
            passes=passes,
            fit_intercept=fit_intercept,
            shuffle=shuffle,
            random_state=random_state,
            verbose=verbose,
            certificate=certificate,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineClassifier:
        """Learn from scratch, in ``passes`` passes."""
        with self._all_or_nothing():
            X, y = self._validate(X, y, reset=True)
            self.classes_ = _distinct(y)
            check_classification_targets(self.classes_ if self.classes_.size == 2 else y)  # the same, but quicker
            if self.classes_.size < 2:
                only = self.classes_.tolist()[0]
                raise ValueError(f"y holds one class only, {only!r}: a classifier needs examples of at least two")
            codes = self._codes(y)
            weight = check_weights(sample_weight, codes.size)
            factor = self._class_factors(codes, weight, partial=False)
            counted = weight if factor is None else weight * factor
            if not _refuse_no_weight(counted).all() and np.unique(codes[counted > 0]).size < 2:
                raise ValueError("all rows of positive weight are of one class: a classifier needs at least two")
            learner = self._classifying_learner()
            self._run(learner, X, self._signs(codes), weight, factor)
            self.learner_ = learner
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OnlineClassifier:
        """Learn a block of rows, as they come. The first call names all ``classes``."""
        with self._all_or_nothing():
            first = not self.__sklearn_is_fitted__()
            X, y = self._validate(X, y, reset=first)
            if first:
                if classes is None:
                    raise ValueError("the first call of partial_fit needs classes=, all the classes that may come")
                self.classes_ = _distinct(classes)
                if self.classes_.size < 2:
                    raise ValueError(f"classes must name at least two classes, got {self.classes_.tolist()}")
                self.learner_, self._progress = self._classifying_learner(), Progress()
            elif classes is not None and not np.array_equal(_distinct(classes), self.classes_):
                given = _distinct(classes).tolist()
                raise ValueError(f"classes={given} differ from those of the first call, {self.classes_.tolist()}")
            codes = self._codes(y)
            weight = check_weights(sample_weight, codes.size)
            factor = self._class_factors(codes, weight, partial=True)
            if factor is not None:
                weight = weight * factor
            self._progress = self._progress.add(self.learner_.learn_block(as_block(X), self._signs(codes), weight))
        return self

    def _classifying_learner(self) -> OnlineLearner:
        check_classifies(get_loss(self.loss))
        return self._new_learner(self.classes_.size if self.classes_.size > 2 else 1)

    def _codes(self, y: Any) -> NDArray[np.intp]:
        if self.classes_.size == 2:
            codes = (y == self.classes_[1]).astype(np.intp)  # much faster
        else:
            try:
                codes = np.searchsorted(self.classes_, y)
            except TypeError:  # labels that have no order among the classes: the first will be named
                codes = np.zeros(len(y), np.intp)
            codes[codes == self.classes_.size] = 0
        bad = np.flatnonzero(self.classes_[codes] != y)
        if bad.size:
            label = np.asarray(y)[bad].tolist()[0]
            raise ValueError(f"label {label!r} in row {bad[0]} is not one of the classes {self.classes_.tolist()}")
        return np.asarray(codes)

    def _signs(self, codes: NDArray[np.intp]) -> Array:
        """Labels as the learner wants them: -1 and +1 for two classes, the class's number for more."""
        numbers = codes.astype(np.float64)
        return 2.0 * numbers - 1.0 if self.classes_.size == 2 else numbers

    def _class_factors(self, codes: NDArray[np.intp], weight: Array, *, partial: bool) -> Array | None:
        """What ``class_weight`` multiplies each row's weight by; None where it is 1."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {self.class_weight!r}")
            if partial:
                raise ValueError(
                    "class_weight='balanced' needs all the data, which partial_fit never has: "
                    "pass a dict with a weight for each class"
                )
            mass = np.bincount(codes, weight, minlength=self.classes_.size)
            factors = np.divide(weight.sum(), mass.size * mass, out=np.zeros_like(mass), where=mass > 0)
        else:
            if not isinstance(self.class_weight, dict):
                raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {self.class_weight!r}")
            unknown = [c for c in self.class_weight if c not in self.classes_]
            if unknown:
                raise ValueError(f"class_weight names {unknown[0]!r}, not one of the classes {self.classes_.tolist()}")
            factors = np.array([float(self.class_weight.get(c, 1.0)) for c in self.classes_.tolist()])
            if not ((factors >= 0.0) & (factors < np.inf)).all():
                raise ValueError(
                    f"class_weight must hold finite numbers that are not negative, got {self.class_weight}"
                )
        check_weights(weight * factors[codes], codes.size)
        return np.asarray(factors[codes])

    def decision_function(self, X: Any) -> Array:
        """How far each row is on the side of ``classes_[1]``, or of each class where there are more than two."""
        return self._scores(X) - get_loss(self.loss).threshold

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    @available_if(_is_probabilistic)
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class; under one-vs-rest, the classes' own probabilities divided by their sum."""
        p = get_loss(self.loss).inverse_link(self._scores(X))
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0))

    @available_if(_is_probabilistic)
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @property
    def coef_(self) -> Array:
        """Weights, (1, features) for two classes and (classes, features) for more."""
        check_is_fitted(self)
        return np.atleast_2d(self.learner_.coef_)

    @property
    def intercept_(self) -> Array:
        """Intercepts, one a row of ``coef_``."""
        check_is_fitted(self)
        return np.atleast_1d(self.learner_.intercept_)


class OnlineRegressor(RegressorMixin, _Online):  # type: ignore[misc]
    """Linear regression that learns online, with exact importance weights.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        ``squared``, ``absolute``, ``quantile``, ``huber``, ``poisson``, or a :class:`~steelyard.CustomLoss`. With
        ``poisson``, :meth:`predict` returns the mean e^p.

    The other parameters are those of :class:`OnlineClassifier`. With ``eta0="auto"``, predictions are those of the
    linear model ``coef_``, ``intercept_``, kept within the range of the targets seen (but for ``poisson``).

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import OnlineRegressor
    >>> X = np.linspace(-1, 1, 200).reshape(-1, 1)
    >>> y = 3 * X[:, 0] + 1
    >>> model = OnlineRegressor(passes=5, random_state=0).fit(X, y)
    >>> model.coef_.round(1), model.intercept_.round(1)
    (array([3.]), array([1.]))
    """

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        update: str = "iwa",
        eta0: float | str = "auto",
        schedule: str = "power",
        power_t: float = 0.5,
        metric: str = "diagonal",
        center: str = "trajectory",
        radius: float | None = None,
        passes: int = 1,
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: int = 0,
        certificate: bool | None = None,
    ) -> None:
        super().__init__(
            loss,
            update=update,
            eta0=eta0,
            schedule=schedule,
            power_t=power_t,
            metric=metric,
            center=center,
            radius=radius,
            passes=passes,
            fit_intercept=fit_intercept,
            shuffle=shuffle,
            random_state=random_state,
            verbose=verbose,
            certificate=certificate,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Learn from scratch, in ``passes`` passes."""
        with self._all_or_nothing():
            X, y = self._validate(X, y, reset=True, y_numeric=True)
            learner = self._regressing_learner()
            labels = check_labels(y, learner.loss, X.shape[0])
            weight = _refuse_no_weight(check_weights(sample_weight, X.shape[0]))
            self._run(learner, X, labels, weight)
            self.learner_ = learner
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Learn a block of rows, as they come."""
        with self._all_or_nothing():
            first = not self.__sklearn_is_fitted__()
            X, y = self._validate(X, y, reset=first, y_numeric=True)
            if first:
                self.learner_, self._progress = self._regressing_learner(), Progress()
            labels = check_labels(y, self.learner_.loss, X.shape[0])
            trace = self.learner_.learn_block(as_block(X), labels, check_weights(sample_weight, X.shape[0]))
            self._progress = self._progress.add(trace)
        return self

    def _regressing_learner(self) -> OnlineLearner:
        check_regresses(get_loss(self.loss))
        return self._new_learner()

    def predict(self, X: Any) -> Array:
        """The predicted target of each row; for the Poisson loss, its mean."""
        with np.errstate(over="ignore"):
            scores = get_loss(self.loss).inverse_link(self._scores(X))
        if get_loss(self.loss).link == "exp" and not np.isfinite(scores).all():
            warnings.warn("some Poisson means are too large for a float: they are inf", RuntimeWarning, stacklevel=2)
        return scores

    @property
    def coef_(self) -> Array:
        """Weights, (features,)."""
        check_is_fitted(self)
        return self.learner_.coef_

    @property
    def intercept_(self) -> Array:
        """The intercept, (1,)."""
        check_is_fitted(self)
        return np.atleast_1d(self.learner_.intercept_)
