"""scikit-learn estimators, thin over :class:`~steelyard.Mixture` and :class:`~steelyard.Learner`."""

from steelyard.estimators.classifier import OnlineClassifier
from steelyard.estimators.regressor import OnlineRegressor

__all__ = ["OnlineClassifier", "OnlineRegressor"]
