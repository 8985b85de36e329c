"""The state of a mixture's experts of second order, as Python makes and reads it; ``kernels.second`` learns."""

from __future__ import annotations

import numpy as np

from steelyard.data.memory import lazy_zeros
from steelyard.kernels import layout
from steelyard.losses import Array


def new_second(n_features: int, n_outputs: int) -> Array:
    """Two experts who know nothing yet; empty where columns are too many for a full matrix."""
    if not 0 < n_features <= layout.SECOND_MOST:
        return np.empty(0)
    width = layout.second_width(n_features)
    models = np.zeros((n_outputs * layout.SECOND, width + layout.SECOND_EXTRA))
    models[:, width + layout.GAMMA] = models[:, width + layout.INFO] = 1.0
    parts = [np.zeros(layout.SECOND_COLUMNS * width)]
    for prior in layout.second_priors(n_features):
        parts += [(np.eye(width) / prior).ravel(), np.zeros(width)]
    whole = np.concatenate([*parts, models.ravel()])
    second = lazy_zeros(whole.size)  # which starts with a cache line
    second[:] = whole
    return second


def second_model(second: Array, n_features: int, output: int, share: Array, *, joined: bool, calibrated: bool) -> Array:
    """The models of the two for one output, by their shares, in the columns as they come; the intercept last.

    ``joined`` where the first one has become the second, ``calibrated`` where GAMMA x is the linear model.
    """
    width = layout.second_width(n_features)
    mean, _, inverse, _ = second[: layout.SECOND_COLUMNS * width].reshape(-1, width)[:, :n_features]
    matrices = layout.SECOND * width * (width + 1)
    models = second[layout.SECOND_COLUMNS * width + matrices :].reshape(-1, layout.SECOND, width + layout.SECOND_EXTRA)
    x = models[output][[1, 1]] if joined else models[output]
    used = share * x[:, width + layout.GAMMA] if calibrated else share
    whole = used @ np.where(share[:, None] > 0.0, x[:, : n_features + 1], 0.0)
    whole[:-1] *= inverse
    whole[-1] -= whole[:-1] @ mean
    return np.asarray(whole)
