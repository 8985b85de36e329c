"""The classifier: labels of any kind → classes, several of them one-vs-rest."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from steelyard.data.block import as_block
from steelyard.data.checks import DataError, check_weights
from steelyard.estimators.base import OnlineEstimator, refuse_no_weight
from steelyard.estimators.curve import Curve
from steelyard.estimators.events import ClassifierEvents
from steelyard.estimators.streams import learn_source
from steelyard.fitting import check_classifies
from steelyard.losses import Array, Loss, get_loss
from steelyard.online import OnlineLearner, Progress
from steelyard.streaming import Goal


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


class OnlineClassifier(ClassifierMixin, ClassifierEvents, OnlineEstimator):  # type: ignore[misc]
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
        Initial learning rate. ``auto`` needs none: it learns with many rates in one pass and mixes them, see
        :class:`Mixture`. ``update``, ``schedule``, ``power_t``, ``metric``, ``center`` and ``radius`` belong to a rate,
        and ``auto`` chooses them itself.
    schedule : {"power", "constant", "adagrad-norm", "gap"}, default=None
        None is ``power``, and nothing under ``metric="full"``, which has no schedule.
    power_t : float, default=0.5
        Exponent of ``schedule="power"``.
    metric : {"diagonal", "scalar", "full"}, default="diagonal"
        ``diagonal`` divides each feature by its running scale, so that raw columns work. ``full`` keeps a matrix of all
        pairs of features, see :class:`Learner`.
    center : {"trajectory", "origin"}, default="trajectory"
        ``origin`` is FTRL (the paper's); ``trajectory`` is mirror descent, with which weights are exact under
        ``power``, too.
    radius : float, default=None
        Keep the model in a ball of this radius (needs ``metric="scalar"``).
    passes : int, default=1
        Passes of ``fit`` over the data.
    early_stopping : bool, default=False
        Let ``fit`` hold out a part of the rows, look at their average loss after each pass, stop where it gets no
        better, and keep the model of the best pass; ``passes`` is then the most that are made. With one pass there is
        nothing to stop, and a warning says so. Equal rows are held out together, so that none is on both sides.
        ``partial_fit``, ``learn_one`` and ``fit_stream`` refuse it: they have no rows to hold out.
    validation_fraction : float, default=0.1
        How much is held out, as a part of the weight; for a classifier of each class.
    n_iter_no_change : int, default=5
        After so many passes without improvement ``fit`` stops.
    tol : float or None, default=1e-3
        An improvement lowers the held-out loss by more than this part of it: it is relative, because losses have the
        unit of the labels (scikit-learn's is absolute). With None all passes are made, and the best is kept.
    fit_intercept : bool, default=True
        Learn a constant term.
    shuffle : bool, default=True
        Let ``fit`` take the rows in a pseudo-random order. The order is keyed by the rows' content, so a row of weight
        2 and the same row twice give the same model. ``partial_fit`` takes rows as they come.
    class_weight : dict or "balanced", default=None
        Multiplies the sample weights. ``balanced`` makes all classes weigh the same in ``fit``. Factors
        that are not whole numbers make the visits of a row heavier, and not more.
    random_state : int, RandomState or None, default=None
        Seed of the order in which ``fit`` takes the rows. None takes another one in each call.
    verbose : int, default=0
        With 1 or more, ``fit`` prints the average loss of each pass.
    certificate : bool, default=None
        With a rate: keep what a regret bound needs; by default where it is nearly free, see :class:`Learner`. ``auto``
        always keeps it, whatever stands here.
    bits : int, default=None
        Frames with columns of text are hashed into ``2**bits`` features, 18 by default: a number is the feature
        ``column``, a text the feature ``column=text`` with the value 1. There, null and pandas' NaN are features that
        are not there. With ``bits``, frames of numbers are hashed, too.
    l1, l2 : float, default=0.0
        Penalties, with a rate: the objective is sum h loss / sum h + l1 ‖x‖₁ + l2/2 ‖x‖², in the units of your
        columns and without the intercept, which is scikit-learn SGD's. (``hindsight``'s ``l2`` is of the sum.) For
        exact zeros use ``center="origin"``.
    average : bool, default=False
        With a rate: predict with the average of all models on the way, see :class:`Learner`.

    Attributes
    ----------
    classes_ : array
        The labels that were seen, in order; column k of :meth:`predict_proba` belongs to ``classes_[k]``.
    n_features_in_ : int
        How many columns the data of the first call had.
    feature_names_in_ : array of str
        Their names, where that data was a frame whose columns all have text for a name.
    learner_ : Learner or Mixture
        What learns below the estimator; its labels are numbers of its own.
    progressive_loss_ : float
        The weighted average loss of every example before it was learned: of every visit in the first pass of ``fit``
        (a row of weight 3 is visited three times, as three copies of it are) and of every row of ``partial_fit``. The
        squared loss is half the squared error.
    pass_losses_ : list of float
        Of the last ``fit``: the average loss of each pass. The first is the progressive loss; from the second pass on,
        rows are predicted that were learned before.
    validation_losses_ : list of float, with ``early_stopping``
        The average loss of the held-out rows after each pass, infinite where the learner had diverged. The model is
        that of the smallest.
    loss_curve_ : LossCurve
        How ``progressive_loss_`` came about along the stream: its arrays ``weight`` and ``loss`` have about a hundred
        points at most.
    coef_, intercept_
        The linear model that predictions are made with. With ``eta0="auto"`` it is the average of the experts, each by
        its share in the mixture.
    bank_ : list of Expert, with ``eta0="auto"``
        Every learner of the mixture: its rate, its loss so far and its share.
    certificate_ : Certificate, or a list with one for each class where there are more than two
        A bound on how far the progressive loss, over all visits of all passes, is above that of any linear model.
        With ``eta0="auto"`` it speaks of the mixture's own predictions, and not of ``coef_``. A model without one
        (a rate, and ``certificate`` not asked for) has no such attribute.

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
        schedule: str | None = None,
        power_t: float = 0.5,
        metric: str = "diagonal",
        center: str = "trajectory",
        radius: float | None = None,
        passes: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float | None = 1e-3,
        fit_intercept: bool = True,
        shuffle: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        certificate: bool | None = None,
        bits: int | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        average: bool = False,
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
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            fit_intercept=fit_intercept,
            shuffle=shuffle,
            random_state=random_state,
            verbose=verbose,
            certificate=certificate,
            bits=bits,
            l1=l1,
            l2=l2,
            average=average,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineClassifier:
        """Learn from scratch, in ``passes`` passes."""
        with self._all_or_nothing():
            X, y = self._validate(X, y, reset=True)
            self.classes_ = _distinct(y)
            check_classification_targets(self.classes_ if self.classes_.size == 2 else y)  # the same, but quicker
            self._refuse_one_class()
            weight = check_weights(sample_weight, len(y))
            learner, factors = self._begin(*self._weigh_labels(y, weight))
            self._run(learner, X, *self._examples(y, weight, factors))
            self.learner_ = learner
        return self

    def _name_classes(self, classes: Any) -> None:
        self.classes_ = _distinct(classes)
        if self.classes_.size < 2:
            raise ValueError(f"classes must name at least two classes, got {self.classes_.tolist()}")

    def _refuse_one_class(self) -> None:
        if self.classes_.size < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y holds one class only, {only!r}: a classifier needs examples of at least two")

    def _weigh_labels(self, y: Any, weight: Array) -> tuple[NDArray[Any], Array]:
        if not hasattr(self, "classes_"):  # some of the rows: they may be of one class
            found = copy(self)
            found.classes_ = _distinct(y)
            if found.classes_.dtype.kind == "f" and (found.classes_ != np.floor(found.classes_)).any():
                check_classification_targets(found.classes_)
            return found._weigh_labels(y, weight)
        codes = self._codes(y)
        if isinstance(self.class_weight, str):
            order = np.lexsort((weight, codes))  # sums must not depend on the order of rows
            codes, weight = codes[order], weight[order]
        return self.classes_, np.bincount(codes, weight, minlength=self.classes_.size).astype(np.float64)

    def _begin(self, labels: NDArray[Any], mass: Array) -> tuple[OnlineLearner, Array | None]:
        self.classes_ = labels
        self._refuse_one_class()
        factors = self._class_factors(mass)
        counting = np.where(factors > 0.0, mass, 0.0)
        if np.count_nonzero(refuse_no_weight(counting)) < 2:
            raise ValueError("all rows of positive weight are of one class: a classifier needs at least two")
        return self._classifying_learner(), factors

    def _examples(self, y: Any, weight: Array, factors: Array | None) -> tuple[Array, Array, Array | None]:
        codes = self._codes(y)
        if factors is None:
            return self._signs(codes), weight, None
        factor = factors[codes]
        counted = check_weights(weight * factor, codes.size)
        if (factors == np.floor(factors)).all():  # these are counts, as weights are
            weight, factor = counted, np.ones_like(factor)
        return self._signs(codes), weight, factor

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OnlineClassifier:
        """Learn a block of rows, as they come. The first call names all ``classes``."""
        self._refuse_early_stopping("partial_fit")
        with self._all_or_nothing():
            first = not self.__sklearn_is_fitted__()
            X, y = self._validate(X, y, reset=first)
            if first:
                if classes is None:
                    raise ValueError("the first call of partial_fit needs classes=, all the classes that may come")
                self._name_classes(classes)
                self.learner_ = self._classifying_learner()
                self.learner_.progress, self._curve = Progress(), Curve()
            elif classes is not None and not np.array_equal(_distinct(classes), self.classes_):
                given = _distinct(classes).tolist()
                raise ValueError(f"classes={given} differ from those of the first call, {self.classes_.tolist()}")
            codes = self._codes(y)
            weight = check_weights(sample_weight, codes.size)
            weight = check_weights(weight * self._class_factors(None)[codes], codes.size)
            self._curve = self._curve.add(self.learner_.learn_block(as_block(X), self._signs(codes), weight))
        return self

    def fit_stream(self, source: Any, *, classes: Any = None) -> OnlineClassifier:
        """Learn from scratch from a stream of any size, block by block, the rows as they come.

        Parameters
        ----------
        source : Source or path
            What :func:`steelyard.open` gives, or a file that it can open without options.
        classes : list, optional
            All the labels. By default those of the first rows, some 16 MB of them; a later row with another label is
            refused by its line.

        Nothing has to be known before, and rows are not shuffled. With more than one of ``passes`` the source is gone
        through again. Afterwards ``steelyard.open(path, schema=model.schema_)`` reads other files in the same way.

        Examples
        --------
        >>> import pathlib, tempfile, steelyard
        >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.libsvm")
        >>> _ = path.write_text("1 1:0.5 3:2e-1\\n-1 2:4\\n")
        >>> model = steelyard.OnlineClassifier().fit_stream(path)
        >>> [model.predict(X).tolist() for X, y, w in steelyard.open(path)]
        [[1.0, -1.0]]
        """
        with self._all_or_nothing():
            self.__dict__.pop("feature_names_in_", None)
            goal = learn_source(self, source, task="classification", classes=classes, factors=self._factors_of_goal)
            if goal.classes is None:
                raise AssertionError("a classification has classes")
            self.classes_ = goal.classes
        return self

    def _factors_of_goal(self, goal: Goal) -> Array | None:
        if goal.classes is None or self.class_weight is None:
            return None
        self.classes_ = goal.classes
        return self._class_factors(None)

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
            raise DataError("label", int(bad[0]), None, label, f"not one of the classes {self.classes_.tolist()}")
        return np.asarray(codes)

    def _signs(self, codes: NDArray[np.intp]) -> Array:
        """Labels as the learner wants them: -1 and +1 for two classes, the class's number for more."""
        numbers = codes.astype(np.float64)
        return 2.0 * numbers - 1.0 if self.classes_.size == 2 else numbers

    def _class_factors(self, mass: Array | None) -> Array:
        """What ``class_weight`` multiplies the weights of each class by; ``mass``: what the classes weigh, if known."""
        if self.class_weight is None:
            return np.ones(self.classes_.size)
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {self.class_weight!r}")
            if mass is None:
                raise ValueError(
                    "class_weight='balanced' needs all the data, which partial_fit never has: "
                    "pass a dict with a weight for each class"
                )
            factors = np.divide(mass.sum(), mass.size * mass, out=np.zeros_like(mass), where=mass > 0)
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
        return np.asarray(factors)

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
