"""What the property tests draw: losses with labels of their domain, predictions and step lengths over all scales."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from steelyard.losses import LOSSES, CustomLoss, Hellinger, Huber, Logarithmic, Loss, Quantile

BUILT_IN: list[Loss] = [cls() for cls in LOSSES.values()]
VARIANTS: list[Loss] = [*BUILT_IN, Quantile(0.9), Huber(0.01), Logarithmic(1e-3), Hellinger(1e-2)]


def custom_logistic_value(p, y):
    m = y * p
    return math.log1p(math.exp(-m)) if m > 0 else math.log1p(math.exp(m)) - m


def custom_logistic_slope(p, y):
    m = y * p
    return -y * (math.exp(-m) / (1.0 + math.exp(-m)) if m > 0 else 1.0 / (1.0 + math.exp(m)))


CUSTOM: dict[str, CustomLoss] = {
    "squared": CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y, infimum=0.0),
    "logistic": CustomLoss(custom_logistic_value, custom_logistic_slope, labels="sign", infimum=0.0),
    "exponential": CustomLoss(
        lambda p, y: math.exp(-y * p), lambda p, y: -y * math.exp(-y * p), labels="sign", infimum=0.0
    ),
    "hinge": CustomLoss(
        lambda p, y: max(0.0, 1.0 - y * p), lambda p, y: -y if y * p < 1.0 else 0.0, labels="sign", infimum=0.0
    ),
    "huber": CustomLoss(
        lambda p, y: 0.5 * (p - y) ** 2 if abs(p - y) <= 1.0 else abs(p - y) - 0.5,
        lambda p, y: min(1.0, max(-1.0, p - y)),
        infimum=0.0,
    ),
    "absolute": CustomLoss(
        lambda p, y: abs(p - y), lambda p, y: 1.0 if p > y else (-1.0 if p < y else 0.0), infimum=0.0
    ),
    "poisson": CustomLoss(lambda p, y: math.exp(p) - y * p, lambda p, y: math.exp(p) - y, labels="count"),
}

predictions = st.one_of(
    st.floats(-1e9, 1e9),
    st.floats(-60.0, 60.0),
    st.floats(-1.5, 1.5),
    st.sampled_from([0.0, 1.0, -1.0, 1e-300, -1e-300, 1e9, -1e9, 0.5, 1e-6]),
)
lengths = st.one_of(
    st.floats(-300.0, 300.0).map(lambda e: 10.0**e),
    st.floats(1e-3, 1e3),
    st.sampled_from([1e-300, 1e300, 1.0, 1e-16, 1e16]),
)


def labels(loss: Loss) -> st.SearchStrategy[float]:
    """Labels of a loss's domain."""
    if loss.labels in ("sign", "binary"):
        return st.sampled_from([-1.0, 1.0])
    if loss.labels == "count":
        return st.one_of(st.integers(0, 1000).map(float), st.floats(0.0, 1e3).filter(lambda v: v == 0 or v > 1e-3))
    return st.one_of(st.floats(-1e3, 1e3), st.floats(-1e9, 1e9))


def random_labels(loss: Loss, rng: np.random.Generator, size: int) -> np.ndarray:
    """The same, for a generator."""
    if loss.labels in ("sign", "binary"):
        return rng.choice([-1.0, 1.0], size)
    return rng.integers(0, 20, size).astype(float) if loss.labels == "count" else rng.normal(size=size) * 10.0
