"""Steelyard in River's own classes: for its pipelines, metrics and ``progressive_val_score``.

Needs River, which Steelyard itself does not: ``pip install river``.
"""

from __future__ import annotations

from typing import Any

try:
    from river import base
except ImportError as error:
    raise ImportError("steelyard.river needs River: pip install river") from error

from steelyard.estimators import OnlineClassifier, OnlineRegressor


class SteelyardClassifier(base.Classifier):
    """:class:`~steelyard.OnlineClassifier` as a classifier of River, with weights that are exact.

    Parameters
    ----------
    loss, update, eta0, schedule, metric, center, fit_intercept
        As those of :class:`~steelyard.OnlineClassifier`.
    classes
        All the classes, as a tuple, where there are more than two.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from steelyard.river import SteelyardClassifier
    >>> model = SteelyardClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.85
    True
    """

    def __init__(
        self,
        loss: str = "logistic",
        update: str = "iwa",
        eta0: float | str = "auto",
        schedule: str | None = None,
        metric: str = "diagonal",
        center: str = "trajectory",
        fit_intercept: bool = True,
        classes: tuple[Any, ...] | None = None,
    ) -> None:
        self.loss, self.update, self.eta0, self.schedule = loss, update, eta0, schedule
        self.metric, self.center, self.fit_intercept, self.classes = metric, center, fit_intercept, classes
        self.estimator = OnlineClassifier(
            loss,
            update=update,
            eta0=eta0,
            schedule=schedule,
            metric=metric,
            center=center,
            fit_intercept=fit_intercept,
        )

    @property
    def _multiclass(self) -> bool:
        return self.classes is not None and len(self.classes) > 2

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one event of weight ``w``."""
        if self.classes is not None and not hasattr(self.estimator, "learner_"):
            self.estimator.learn_one(x, y, w, classes=self.classes)
        else:
            self.estimator.learn_one(x, y, w)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The class of one event; None before anything is learned."""
        return self.estimator.predict_one(x)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each class, by its label; before anything is learned, of False and True."""
        if self.classes is None and not hasattr(self.estimator, "learner_"):
            return {False: 0.5, True: 0.5}
        return self.estimator.predict_proba_one(x)


class SteelyardRegressor(base.Regressor):
    """:class:`~steelyard.OnlineRegressor` as a regressor of River, with weights that are exact.

    Parameters
    ----------
    loss, update, eta0, schedule, metric, center, fit_intercept
        As those of :class:`~steelyard.OnlineRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from steelyard.river import SteelyardRegressor
    >>> model = SteelyardRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get() < 1.0
    True
    """

    def __init__(
        self,
        loss: str = "squared",
        update: str = "iwa",
        eta0: float | str = "auto",
        schedule: str | None = None,
        metric: str = "diagonal",
        center: str = "trajectory",
        fit_intercept: bool = True,
    ) -> None:
        self.loss, self.update, self.eta0, self.schedule = loss, update, eta0, schedule
        self.metric, self.center, self.fit_intercept = metric, center, fit_intercept
        self.estimator = OnlineRegressor(
            loss,
            update=update,
            eta0=eta0,
            schedule=schedule,
            metric=metric,
            center=center,
            fit_intercept=fit_intercept,
        )

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn one event of weight ``w``."""
        self.estimator.learn_one(x, y, w)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The predicted target of one event."""
        return self.estimator.predict_one(x)
