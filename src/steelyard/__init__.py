"""Steelyard: online linear learning with exact importance weights and no step that overshoots.

Names are loaded when first used: ``import steelyard`` imports neither Numba nor scikit-learn.
"""

from __future__ import annotations

import importlib

__version__ = "0.2.0"

TYPE_CHECKING = False  # which type checkers take for true; importing typing takes longer than all the rest of this
if TYPE_CHECKING:
    from typing import Any

    from steelyard import distributed as distributed
    from steelyard import losses as losses
    from steelyard.bank import Bank as Bank
    from steelyard.certificate import Certificate as Certificate
    from steelyard.comparator import Hindsight as Hindsight
    from steelyard.comparator import hindsight as hindsight
    from steelyard.data.checks import DataError as DataError
    from steelyard.data.libsvm import read_libsvm as read_libsvm
    from steelyard.data.libsvm import scan_libsvm as scan_libsvm
    from steelyard.data.libsvm import stream_libsvm as stream_libsvm
    from steelyard.data.opening import open as open
    from steelyard.data.source import Extent as Extent
    from steelyard.data.source import Source as Source
    from steelyard.distributed.merge import merge as merge
    from steelyard.estimators import OnlineClassifier as OnlineClassifier
    from steelyard.estimators import OnlineRegressor as OnlineRegressor
    from steelyard.estimators.files import load as load
    from steelyard.experiments.bankplot import plot_bank as plot_bank
    from steelyard.experiments.sweep import SweepResult as SweepResult
    from steelyard.experiments.sweep import sweep as sweep
    from steelyard.ftrl import State as State
    from steelyard.learner import Learner as Learner
    from steelyard.losses import CustomLoss as CustomLoss
    from steelyard.losses import Loss as Loss
    from steelyard.losses import get_loss as get_loss
    from steelyard.mixture import Expert as Expert
    from steelyard.mixture import Mixture as Mixture
    from steelyard.mixture import MixtureState as MixtureState
    from steelyard.online import Trace as Trace
    from steelyard.paperbound import PaperBound as PaperBound
    from steelyard.paperbound import paper_bound as paper_bound
    from steelyard.updates import step as step

_HOME = {
    "Bank": "bank",
    "Certificate": "certificate",
    "CustomLoss": "losses",
    "DataError": "data.checks",
    "Expert": "mixture",
    "Extent": "data.source",
    "Hindsight": "comparator",
    "Learner": "learner",
    "Loss": "losses",
    "Mixture": "mixture",
    "MixtureState": "mixture",
    "OnlineClassifier": "estimators",
    "OnlineRegressor": "estimators",
    "PaperBound": "paperbound",
    "Source": "data.source",
    "State": "ftrl",
    "SweepResult": "experiments.sweep",
    "Trace": "online",
    "get_loss": "losses",
    "hindsight": "comparator",
    "load": "estimators.files",
    "merge": "distributed.merge",
    "open": "data.opening",
    "paper_bound": "paperbound",
    "plot_bank": "experiments.bankplot",
    "read_libsvm": "data.libsvm",
    "scan_libsvm": "data.libsvm",
    "step": "updates",
    "stream_libsvm": "data.libsvm",
    "sweep": "experiments.sweep",
}

# without ``open``, since ``from steelyard import *`` must not take Python's own away
__all__ = [*sorted({*_HOME} - {"open"}), "__version__", "distributed", "losses"]


def __getattr__(name: str) -> Any:
    if name in ("distributed", "losses"):
        return importlib.import_module(f"steelyard.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"steelyard.{_HOME[name]}"), name)
    raise AttributeError(f"module 'steelyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "open"]
