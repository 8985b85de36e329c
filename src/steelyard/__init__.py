"""Steelyard: online linear learning with exact importance weights and no step that overshoots.

Names are loaded when first used: ``import steelyard`` imports neither Numba nor scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from steelyard import losses as losses
    from steelyard.bank import Bank as Bank
    from steelyard.certificate import Certificate as Certificate
    from steelyard.certificate import PaperBound as PaperBound
    from steelyard.certificate import paper_bound as paper_bound
    from steelyard.comparators import Hindsight as Hindsight
    from steelyard.comparators import hindsight as hindsight
    from steelyard.estimators import OnlineClassifier as OnlineClassifier
    from steelyard.estimators import OnlineRegressor as OnlineRegressor
    from steelyard.learner import Learner as Learner
    from steelyard.learner import State as State
    from steelyard.learner import Trace as Trace
    from steelyard.losses import CustomLoss as CustomLoss
    from steelyard.losses import Loss as Loss
    from steelyard.losses import get_loss as get_loss
    from steelyard.mixture import Expert as Expert
    from steelyard.mixture import Mixture as Mixture
    from steelyard.sweeps import SweepResult as SweepResult
    from steelyard.sweeps import sweep as sweep
    from steelyard.text import Extent as Extent
    from steelyard.text import read_libsvm as read_libsvm
    from steelyard.text import scan_libsvm as scan_libsvm
    from steelyard.text import stream_libsvm as stream_libsvm
    from steelyard.updates import step as step

_HOME = {
    "Bank": "bank",
    "OnlineClassifier": "estimators",
    "OnlineRegressor": "estimators",
    "Expert": "mixture",
    "Learner": "learner",
    "Mixture": "mixture",
    "State": "learner",
    "Trace": "learner",
    "Certificate": "certificate",
    "PaperBound": "certificate",
    "paper_bound": "certificate",
    "CustomLoss": "losses",
    "Loss": "losses",
    "Hindsight": "comparators",
    "get_loss": "losses",
    "hindsight": "comparators",
    "SweepResult": "sweeps",
    "Extent": "text",
    "read_libsvm": "text",
    "scan_libsvm": "text",
    "stream_libsvm": "text",
    "sweep": "sweeps",
    "step": "updates",
}

__all__ = [*sorted(_HOME), "__version__", "losses"]


def __getattr__(name: str) -> Any:
    if name == "losses":
        return importlib.import_module("steelyard.losses")
    if name in _HOME:
        return getattr(importlib.import_module(f"steelyard.{_HOME[name]}"), name)
    raise AttributeError(f"module 'steelyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
