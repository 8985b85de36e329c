"""A model as Vowpal Wabbit's ``--readable_model`` writes it, or its ``--invert_hash`` where there are names."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard import __version__
from steelyard.losses import Array
from steelyard.online import OnlineLearner

CONSTANT = 11650396
"""The hash of Vowpal Wabbit's constant feature."""


def readable_model(learner: OnlineLearner) -> Iterator[str]:
    """Its lines: a head, and ``index:weight`` or ``name:index:weight`` for each weight that is not zero, by index.

    The intercept is the constant, at the place where Vowpal Wabbit has it, or after all features where a feature has
    that place. Vowpal Wabbit does not read such text.
    """
    if learner.n_outputs > 1 or learner.state is None:
        raise ValueError("Vowpal Wabbit's readable text has one weight an index: it is for two classes or a regression")
    coef: Array = learner.coef_
    bits = max(int(coef.size - 1).bit_length(), 1)
    place = CONSTANT & ((1 << bits) - 1)
    hashed = (learner.notes.get("data") or {}).get("bits") is not None  # most places then are nobody's
    if place < coef.size and (coef[place] != 0.0 or not hashed):
        place = coef.size
        bits = place.bit_length()
    limits = getattr(learner, "label_range", None) or (-1.0, 1.0)
    names = learner.notes.get("names") or {}
    yield f"Version {__version__} (steelyard)"
    yield "Id "
    yield f"Min label:{limits[0]:g}"
    yield f"Max label:{limits[1]:g}"
    yield f"bits:{bits}"
    yield from ("lda:0", "0 ngram:", "0 skip:", "options:", ":0")
    weights = {int(index): float(coef[index]) for index in np.flatnonzero(coef)}
    if learner.fit_intercept:
        weights[place] = learner.intercept_
        names = names and {**names, str(place): "Constant"}
    for index in sorted(weights):
        name = names.get(str(index), "").replace("\n", "\\n").replace("\r", "\\r")
        yield f"{name + ':' if name else ''}{index}:{weights[index]:.9g}"
