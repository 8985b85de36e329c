"""The regressor: real targets and counts."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from steelyard.data.block import as_block
from steelyard.data.checks import check_labels, check_weights
from steelyard.estimators.base import OnlineEstimator, refuse_no_weight
from steelyard.estimators.curve import Curve
from steelyard.estimators.events import RegressorEvents
from steelyard.estimators.streams import learn_source
from steelyard.fitting import check_regresses
from steelyard.losses import Array, Loss, get_loss
from steelyard.online import OnlineLearner, Progress


class OnlineRegressor(RegressorMixin, RegressorEvents, OnlineEstimator):  # type: ignore[misc]
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

    _label_checks: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def __init__(
        self,
        loss: str | Loss = "squared",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Learn from scratch, in ``passes`` passes."""
        with self._all_or_nothing():
            X, y = self._validate(X, y, reset=True)
            learner = self._regressing_learner()
            labels = check_labels(y, learner.loss, X.shape[0])
            weight = refuse_no_weight(check_weights(sample_weight, X.shape[0]))
            self._run(learner, X, labels, weight)
            self.learner_ = learner
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Learn a block of rows, as they come."""
        self._refuse_early_stopping("partial_fit")
        with self._all_or_nothing():
            first = not self.__sklearn_is_fitted__()
            X, y = self._validate(X, y, reset=first)
            if first:
                self.learner_ = self._regressing_learner()
                self.learner_.progress, self._curve = Progress(), Curve()
            labels = check_labels(y, self.learner_.loss, X.shape[0])
            weight = check_weights(sample_weight, X.shape[0])
            self._curve = self._curve.add(self.learner_.learn_block(as_block(X), labels, weight))
        return self

    def fit_stream(self, source: Any) -> OnlineRegressor:
        """Learn from scratch from a stream of any size, block by block, the rows as they come.

        ``source`` is what :func:`steelyard.open` gives, or a file that it can open without options; see
        :meth:`OnlineClassifier.fit_stream`.
        """
        with self._all_or_nothing():
            self.__dict__.pop("feature_names_in_", None)
            learn_source(self, source, task="regression")
        return self

    def _weigh_labels(self, y: Any, weight: Array) -> tuple[NDArray[Any], Array]:
        check_labels(y, get_loss(self.loss), len(y))
        return np.empty(0), np.array([weight.sum()])

    def _begin(self, labels: NDArray[Any], mass: Array) -> tuple[OnlineLearner, Array | None]:
        refuse_no_weight(mass)
        return self._regressing_learner(), None

    def _examples(self, y: Any, weight: Array, factors: Array | None) -> tuple[Array, Array, Array | None]:
        return check_labels(y, get_loss(self.loss), len(y)), weight, None

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
