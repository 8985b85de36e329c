"""What a round does to the experts of a mixture, beside their steps and how they are mixed.

Arguments: ``clocks`` and ``sums`` as in ``layout``; ``evidence``, the experts' cumulated losses, and ``p``, their
predictions; ``experts``, their vectors (see ``mixing``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from steelyard.kernels.compile import f8, inline_jit, jit
from steelyard.kernels.features import LARGE, RANGE
from steelyard.kernels.intrinsics import add_eight
from steelyard.kernels.layout import (
    COUNTED_EXPERT_LOSS,
    COUNTED_LOSS,
    CUT,
    EXPERT_LOSS,
    EXPERTS,
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
from steelyard.kernels.rows import EIGHT, add_outputs, dense_add, sparse_add
from steelyard.kernels.steps.lanes import array_data, in_all, load, means_eight, spread, spread_pair, store
from steelyard.kernels.vectors import add_lanes

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


@intrinsic
def _add_lanes(typingctx: Any, x: Any, at: Any, y: Any, evidence: Any, p: Any) -> Any:
    """p = x + y, x from ``at`` on; returns whether all are within RANGE, and none of the experts is retired."""
    signature = types.boolean(x, types.uint64, y, evidence, p)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x, y, evidence, target = (array_data(context, builder, sig.args[i], args[i]) for i in (0, 2, 3, 4))
        zero = ir.Constant(ir.IntType(64), 0)
        p = load(builder, x, args[1]) + load(builder, y, zero)
        store(builder, target, zero, p)
        bounds = [(abs(p), RANGE), (load(builder, evidence, zero), math.inf)]
        return in_all(builder, *(builder.fcmp_ordered("<", left.value, left.like(right)) for left, right in bounds))

    return signature, codegen


@inline_jit
def retire_and_clip(clocks, kind, labels, h, evidence, worth, at, out, p):
    """Set p to what eight experts predict: ``out``, and what the means are worth, ``worth`` from ``at`` on.

    Retires experts that leave the range of floats; real labels: predictions are kept within those seen. A row of weight
    0 retires none: it may hold anything, and changes nothing.
    """
    if not _add_lanes(worth, at, out, evidence, p):
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
    zero = np.uint64(0)
    counts = inner if kind == MIX_SQUARED else value
    add_eight(sums[c], np.uint64(EXPERT_LOSS), value, zero, h)
    add_eight(sums[c], np.uint64(COUNTED_EXPERT_LOSS), value, zero, counted)
    add_eight(evidence, zero, counts, zero, counted)
    if extra:
        for k in range(EXPERTS, TOTAL):
            sums[c, EXPERT_LOSS + k] += h * value[k]
            sums[c, COUNTED_EXPERT_LOSS + k] += counted * value[k]
            evidence[k] += counted * counts[k]
    shrink, share, even = means_eight(pi, ratio)
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
def add_to_certificate(data, indices, lo, hi, dense, intercept, slopes, q, resident, dual):
    """Add h c q of a row to the certificate; ``slopes`` has h c of every output, q the values of a ``resident`` row."""
    if slopes.size > 1:
        add_outputs(data, indices, lo, hi, dual, slopes, dense)
    elif resident:
        whole = (hi - lo) // EIGHT * EIGHT
        add_lanes(dual, q, slopes[0], whole)
        for j in range(whole, hi - lo):
            dual[j] += slopes[0] * q[j]
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


@intrinsic
def set_lengths(typingctx: Any, rates: Any, speed: Any, norm1: Any, norm2: Any, a: Any) -> Any:
    """The step length of every expert: its rate times ``speed`` times the row's norm, at most LARGE."""
    signature = types.void(rates, f8, f8, f8, a)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rates, target = (array_data(context, builder, sig.args[i], args[i]) for i in (0, 4))
        zero = ir.Constant(ir.IntType(64), 0)
        length = load(builder, rates, zero) * spread(builder, args[1]) * spread_pair(builder, args[2], args[3])
        store(builder, target, zero, length.at_most(LARGE))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _change_lanes(typingctx: Any, norm1: Any, norm2: Any, evidence: Any, a: Any, slope: Any, ratio: Any, c: Any) -> Any:
    """c = -(a / norm * ratio) * slope; 0 where the norm is 0 or the expert retired."""
    signature = types.void(f8, f8, evidence, a, slope, ratio, c)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = [array_data(context, builder, sig.args[i], args[i]) for i in range(2, 7)]
        zero = ir.Constant(ir.IntType(64), 0)
        evidence, a, slope, ratio = (load(builder, place, zero) for place in places[:4])
        norm = spread_pair(builder, args[0], args[1])
        change = -(a / norm * ratio) * slope
        change = abs(change).where("<", LARGE, change, 0.0)
        change = norm.where(">", 0.0, change, 0.0)
        store(builder, places[4], zero, evidence.where("<", math.inf, change, 0.0))
        return context.get_dummy_value()

    return signature, codegen


@inline_jit
def set_changes(norm1, norm2, held, evidence, experts):
    """By how much every expert moves, for each unit of q r; not at all where it is ``held`` or retired."""
    a, _, slope, ratio, change, _, _ = experts
    if held:
        change[:EXPERTS] = 0.0
    else:
        _change_lanes(norm1, norm2, evidence, a, slope, ratio, change)
