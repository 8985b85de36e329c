"""What a round does to the experts of a mixture, beside their steps and how they are mixed.

Arguments: ``clocks`` and ``sums`` as in ``layout``; ``evidence``, the experts' cumulated losses, and ``p``, their
predictions; ``experts``, their vectors (see ``mixing``).
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.features import LARGE, RANGE
from steelyard.kernels.layout import (
    COUNTED_EXPERT_LOSS,
    COUNTED_LOSS,
    CUT,
    EXPERT_LOSS,
    EXPERTS,
    HALF,
    HIGHEST,
    LABEL_MEAN,
    LABEL_VARIANCE,
    LOG_WEIGHT,
    LOWEST,
    MIX_FENCHEL,
    MIX_ROWS,
    MIX_SQUARED,
    MIXED_LOSS,
    PLAIN,
    PROPORTIONAL,
    TOTAL,
)
from steelyard.kernels.mixing import clip
from steelyard.kernels.rows import add_outputs, dense_add, sparse_add

MOST = 10.0  # the largest counted weight, in typical weights


@inline_jit
def counted_weight(clocks, h):
    """A row's weight over the typical one; how much it counts in the mixture, which is that or MOST; and the logarithm
    of its weight."""
    if h > 0.0 and (h != 1.0 or clocks[LOG_WEIGHT] != 0.0):
        logarithm = math.log(h)
        typical = (clocks[LOG_WEIGHT] + logarithm) / (clocks[MIX_ROWS] + 1.0)
        relative = math.exp(min(logarithm - typical, 690.0))
        return relative, min(relative, MOST), logarithm
    return 1.0, 1.0, 0.0


@inline_jit
def mixing_rate(kind, low, high, largest):
    """A loss that counts 1 multiplies an expert's share by e^(-rate * loss). The rate never rises."""
    if kind == MIX_SQUARED:
        width = high - low
        return 4.0 / (width * width * largest) if width > 0.0 else 0.0
    return 1.0 / largest


@inline_jit
def retire_and_clip(clocks, kind, labels, h, evidence, p):
    """Retire experts that leave the range of floats; real labels: predictions are kept within those seen.

    A row of weight 0 retires none: it may hold anything, and changes nothing.
    """
    for k in range(EXPERTS):
        if not abs(p[k]) < RANGE or evidence[k] == math.inf:
            p[k] = 0.0
            if h > 0.0:
                evidence[k] = math.inf
    if labels != PLAIN:
        for k in range(EXPERTS):
            p[k] = clip(p[k] + clocks[LABEL_MEAN], clocks[LOWEST], clocks[HIGHEST]) if clocks[MIX_ROWS] > 0.0 else 0.0
    elif kind == MIX_SQUARED:
        for k in range(EXPERTS):
            p[k] = clip(p[k], clocks[LOWEST], clocks[HIGHEST])


@jit
def _follow_labels(clocks, label, h, seen, moving):
    """Let the labels' mean and spread take in a label; returns by how much the mean moved, and the spread."""
    share = h / min(seen + h, LARGE)
    away = label - clocks[LABEL_MEAN]
    moved = away * share if moving else 0.0
    clocks[LABEL_MEAN] += moved
    clocks[LABEL_VARIANCE] += share * (away * (away - moved) - clocks[LABEL_VARIANCE])
    return moved, math.sqrt(clocks[LABEL_VARIANCE])


@inline_jit
def label_scales(clocks, kind, labels, delta, label, h, seen, intercept, first_label):
    """The labels' mean moves first: what it explains, the experts need not. Returns by how much it moved, the scale of
    slopes, and how much faster steps must be because of it."""
    moved = 0.0
    unit = 1.0
    if labels != PLAIN and h > 0.0:
        moving = first_label or (intercept and kind == MIX_SQUARED)
        moved, unit = _follow_labels(clocks, label, h, seen, moving)
    scale = 1.0
    if labels == PROPORTIONAL:
        scale = unit
    elif labels == CUT:
        scale = min(unit, delta)
    return moved, scale, unit / scale if scale > 0.0 else 0.0


@inline_jit
def count_losses(sums, c, kind, h, counted, loss, extra, evidence, pi, experts):
    """Add the losses of a round to those of the mixture and of every expert; returns the mean of c/slope over the
    experts of first order."""
    _, value, _, ratio, _, _, inner = experts
    sums[c, MIXED_LOSS] += h * loss
    sums[c, COUNTED_LOSS] += counted * loss
    shrink = 0.0
    share = 0.0
    even = 0.0
    for k in range(EXPERTS):
        shrink += pi[k] * ratio[k]
        share += pi[k]
        even += ratio[k] / EXPERTS
    for k in range(TOTAL if extra else EXPERTS):
        sums[c, EXPERT_LOSS + k] += h * value[k]
        evidence[k] += counted * (inner[k] if kind == MIX_SQUARED else value[k])
        sums[c, COUNTED_EXPERT_LOSS + k] += counted * value[k]
    return shrink / share if share > 1e-200 else even


@inline_jit
def certify_round(sums, c, h, mixed, slope):
    """Add h (loss + conjugate(slope)) = h * slope * p to the certificate; returns h * slope, with which the row enters.

    Fenchel-Young is an equality at the slope of the mixture's own prediction. Where that is beyond floats, so is the
    bound, from then on.
    """
    push = h * slope
    gap = push * mixed
    if not abs(gap) < math.inf:
        sums[c, MIX_FENCHEL] = math.inf
        return 0.0
    sums[c, MIX_FENCHEL] += gap
    return push


@inline_jit
def add_to_certificate(data, indices, lo, hi, dense, intercept, slopes, dual):
    """Add h c q of a row to the certificate, ``slopes`` being h c of every output."""
    if slopes.size > 1:
        add_outputs(data, indices, lo, hi, dual, slopes, dense)
    elif dense:
        dense_add(data, lo, hi, dual, slopes[0])
    else:
        sparse_add(data, indices, lo, hi, dual, slopes[0])
    if intercept:
        for c in range(slopes.size):
            dual[dual.size - slopes.size + c] += slopes[c]


@inline_jit
def count_row(clocks, labels, logarithm, label):
    """A row more, its weight, and the range of labels with its own."""
    first = clocks[MIX_ROWS] == 0.0
    clocks[MIX_ROWS] += 1.0
    clocks[LOG_WEIGHT] += logarithm
    if labels != PLAIN:
        clocks[LOWEST] = label if first else min(clocks[LOWEST], label)
        clocks[HIGHEST] = label if first else max(clocks[HIGHEST], label)


@inline_jit
def set_changes(norm1, norm2, held, evidence, experts):
    """By how much every expert moves, for each unit of q r; not at all where it is ``held`` or retired."""
    a, _, slope, ratio, change, _, _ = experts
    for k in range(EXPERTS):
        norm = norm1 if k < HALF else norm2
        change[k] = -(a[k] / norm * ratio[k]) * slope[k] if norm > 0.0 else 0.0
        if held or not abs(change[k]) < LARGE or evidence[k] == math.inf:
            change[k] = 0.0
