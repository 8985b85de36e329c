"""More than one machine: shards that are learned apart, and merged.

``fit`` is loaded when first used: ``import steelyard.distributed`` imports neither Dask nor scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from steelyard.distributed.merge import merge  # the function takes the place of the file of the same name

if TYPE_CHECKING:
    from steelyard.distributed.dask import fit as fit

__all__ = ["fit", "merge"]


def __getattr__(name: str) -> Any:
    if name == "fit":
        return importlib.import_module("steelyard.distributed.dask").fit
    raise AttributeError(f"module 'steelyard.distributed' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
