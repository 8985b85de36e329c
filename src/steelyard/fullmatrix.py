"""What a learner with metric "full" keeps beside its weights: a matrix, by the triangle S of A^-1 = S S'."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.memory import lazy_zeros
from steelyard.losses import LOSSES, Array, Loss

MOST_FEATURES = 10_000
"""The matrix has a number for each pair of features."""


class FullState(NamedTuple):
    """``ftrl.State``, and the matrix."""

    table: Array
    clocks: Array
    sums: Array
    dual: Array
    factor: Array
    """S column after column, each down to the diagonal, the intercept's last: see ``kernels.full``."""


def check_curvature(loss: Loss) -> None:
    """Refuse a loss that does not say how fast the matrix grows."""
    if loss.curvature is None:
        raise ValueError(
            "metric='full' needs a loss whose second derivative is bounded and not zero everywhere, unlike that of "
            f"the {loss.name} loss: use {', '.join(name for name, kind in LOSSES.items() if kind.curvature)}, "
            "or a CustomLoss with curvature="
        )


def new_factor(n_features: int, eta0: float) -> Array:
    """The triangle of A = I/eta0."""
    size = (n_features + 1) * (n_features + 2) // 2
    if n_features > MOST_FEATURES:
        raise ValueError(
            f"metric='full' keeps a number for each pair of features: {n_features} features would take "
            f"{8 * size / 1e9:.3g} GB, and at most {MOST_FEATURES} are taken. Use metric='diagonal'"
        )
    factor = lazy_zeros(size)
    factor[diagonal_of(n_features)] = np.sqrt(eta0)
    return factor


def diagonal_of(n_features: int) -> NDArray[np.intp]:
    """Where the diagonal of S stands."""
    return np.cumsum(np.arange(1, n_features + 2)) - 1
