"""Two experts of second order, for data with few columns: a full matrix each, and a Gaussian for what they do not know.

Both know all columns, a zero as well as any value: z = (q - mean) / unit. The unit is the column's spread over the root
of the share of rows in which it is not zero, so that z is of order 1 where a column is there, however seldom that is.
An expert holds weights x and P, the inverse of A = prior + sum of w z z^T, and has b = z^T P z, the variance of its
prediction p = <x, z>. The two have different priors (``layout.second_priors``): a strong one for noise, a weak one for
clean data.

*Squared loss*: recursive least squares. A row whose prediction is clipped to the labels seen counts with the clipped
over the unclipped residual as its weight: otherwise heavy-tailed rows, which are clipped when played, would be fitted
unclipped. *Logistic loss*: slope and curvature are averaged over that Gaussian: with s = sqrt(1 + pi b/8), the slope is
that at p/s, which is played, and the curvature that at p/s over s. If A grows along the flow by this curvature, b stays
in proportion to the slope, and the way D of y p/s solves

    t^2 D + 2 m t (e^D - 1) + m^2 (e^(2D) - 1)/2 = h b t / s,     m = 1/(1 + e^(-y p/s)), t = 1 - m,

after which x has moved by (y s D/b) P z and A by (m (e^D - 1)/b) z z^T. h is the row's weight over the typical one. For
A it counts as 10 at most, as in the mixture: a heavy row moves x as far as its weight says, but does not pin it there.

After many rows the two priors make no difference any more: from then on the first expert is the second one.

``second`` is (mean, variance, inverse, present, z, P, u, g, P, u, g, models): for each column its mean, its
variance, one over its unit, the weight of the rows in which it is not zero, and for the row at hand z; for
each expert P, of which half is kept, u = P z, and g, of which g g^T is still to be taken off P: that waits for the next
row, which reads P anyway. ``models`` has, for each output and expert, x and then GAMMA and INFO.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from steelyard.kernels.compile import dense_jit, f8, inline_jit, jit
from steelyard.kernels.features import RANGE
from steelyard.kernels.layout import EXPERTS, GAMMA, INFO, SECOND_EXTRA
from steelyard.kernels.mixing import clip
from steelyard.kernels.steps.lanes import Lanes, array_data, load, spread, store, total_of
from steelyard.kernels.steps.scalar import mean_excess
from steelyard.kernels.vectors import add_lanes, compare

_word = ir.IntType(64)
_GROWTH = 1.1  # a unit follows its column's spread when that has grown by so much
_MOST = 1e8  # what is known along a row grows by at most this factor, for the digits of P
_MODERATION = math.pi / 8.0
_OFTEN = 1000.0  # rows after which GAMMA is learned from every fourth one
_FARTHEST = 300.0  # that a row moves a margin, at most: e^600 is a float
_LEAST, _LARGEST = 1e-200, 1e200  # of b: otherwise a row is not learned


# -------------------------------------------------------------------------------------------------- the matrix


def _totals(dots: list[Lanes]) -> Lanes:
    """The sums over the lanes of eight vectors, in one vector: by halves, two of them at a time."""
    builder = dots[0].builder
    for half in (1, 2, 4):
        low = [i if not i & half else EXPERTS + i - half for i in range(EXPERTS)]
        patterns = [ir.Constant(ir.VectorType(ir.IntType(32), EXPERTS), [i + by for i in low]) for by in (0, half)]
        pairs = zip(dots[0::2], dots[1::2], strict=True)
        dots = [
            Lanes(builder, builder.shuffle_vector(left.value, right.value, patterns[0]))
            + Lanes(builder, builder.shuffle_vector(left.value, right.value, patterns[1]))
            for left, right in pairs
        ]
    return dots[0]


def _pass_rows(context: Any, builder: Any, sig: Any, args: Any, count: int) -> Any:
    """P -= g g^T for ``count`` rows of P, and what they add to u = P z; sets u of the eight that the rows are among."""
    matrix, gs, zs, us = (array_data(context, builder, sig.args[i], args[i]) for i in range(4))
    row, width = args[4], args[5]
    eight = ir.Constant(_word, EXPERTS)
    rows = [builder.add(row, ir.Constant(_word, i)) for i in range(count)]
    starts = [builder.mul(each, width) for each in rows]
    own, values = ([spread(builder, builder.load(builder.gep(data, [each]))) for each in rows] for data in (gs, zs))
    zero = ir.Constant(ir.VectorType(ir.DoubleType(), EXPERTS), [0.0] * EXPERTS)
    dots = [cgutils.alloca_once_value(builder, zero) for _ in range(EXPERTS)]

    def pass_eight(at: Any, total: Lanes, dots: list[Any]) -> Lanes:
        left, here = -load(builder, gs, at), load(builder, zs, at)
        for i, start in enumerate(starts):
            place = builder.add(start, at)
            new = left.times_plus(own[i], load(builder, matrix, place))
            store(builder, matrix, place, new)
            total = new.times_plus(values[i], total)
            if dots:
                builder.store(new.times_plus(here, Lanes(builder, builder.load(dots[i]))).value, dots[i])
        return total

    with cgutils.for_range(builder, builder.udiv(row, eight)) as loop:
        at = builder.mul(loop.index, eight)
        store(builder, us, at, pass_eight(at, load(builder, us, at), dots))
    diagonal = pass_eight(row, Lanes(builder, zero), [])
    store(builder, us, row, diagonal + _totals([Lanes(builder, builder.load(dot)) for dot in dots]))
    return context.get_dummy_value()


@intrinsic
def _pass_eight(typingctx: Any, P: Any, g: Any, z: Any, u: Any, row: Any, width: Any) -> Any:
    """P -= g g^T for eight rows of P from ``row`` on, and what they add to u = P z.

    P is symmetric, and of it only the columns up to the end of the rows' own eight are kept: those before these eight
    stand for the other half as well. ``width`` and ``row`` are multiples of eight.
    """
    signature = types.void(P, g, z, u, types.intp, types.intp)
    return signature, partial(_pass_rows, count=EXPERTS)


@intrinsic
def _pass_four(typingctx: Any, P: Any, g: Any, z: Any, u: Any, row: Any, width: Any) -> Any:
    """The same for the last four, where the other four are no columns."""
    signature = types.void(P, g, z, u, types.intp, types.intp)
    return signature, partial(_pass_rows, count=EXPERTS // 2)


@intrinsic
def _dot(typingctx: Any, x: Any, z: Any, width: Any) -> Any:
    """<x, z> of vectors whose ``width`` is a multiple of eight."""
    signature = types.float64(x, z, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right = (array_data(context, builder, sig.args[i], args[i]) for i in range(2))
        zero = ir.Constant(ir.VectorType(ir.DoubleType(), EXPERTS), [0.0] * EXPERTS)
        total = cgutils.alloca_once_value(builder, zero)
        with cgutils.for_range(builder, builder.udiv(args[2], ir.Constant(_word, EXPERTS))) as loop:
            at = builder.mul(loop.index, ir.Constant(_word, EXPERTS))
            product = load(builder, left, at).times_plus(load(builder, right, at), Lanes(builder, builder.load(total)))
            builder.store(product.value, total)
        return total_of(Lanes(builder, builder.load(total)))

    return signature, codegen


@jit
def _multiply(P, u, g, z, columns):
    """Take off P what the last row left to be taken, and set u = P z; returns b."""
    for row in range(0, columns, EXPERTS):
        if row + EXPERTS // 2 < columns:
            _pass_eight(P, g, z, u, row, z.size)
        else:
            _pass_four(P, g, z, u, row, z.size)
    return _dot(u, z, z.size)


@inline_jit
def _place(row, column, width):
    """Where P has an entry: of the two, the one whose columns are kept."""
    return row * width + column if column < row else column * width + row


@jit
def _grow_unit(P, u, g, j, ratio, prior, size, models, expert):
    """The unit of column j grows by ``ratio``: its weight and its row of P change with it, and the prior, which has
    become weaker by that, is made as strong as before. Exact, for any ratio."""
    width = g.size
    for k in range(width):  # what was left to be taken off
        for i in range((k // EXPERTS + 1) * EXPERTS):
            P[k * width + i] -= g[k] * g[i]
    g[:] = 0.0
    q = 1.0 / (ratio * ratio)
    add = prior * (1.0 - q)
    own = P[j * width + j]
    below = q + add * own
    for k in range(width):
        u[k] = P[_place(j, k, width)]
    u[j] = 0.0
    for k in range(width):
        factor = add * u[k] / below
        for i in range((k // EXPERTS + 1) * EXPERTS):
            P[k * width + i] -= factor * u[i]
    for k in range(width):  # both, where both are kept
        value = u[k] / (ratio * below) if k != j else own / below
        P[_place(j, k, width)] = value
        if k // EXPERTS == j // EXPERTS:
            P[j * width + k] = P[k * width + j] = value
    for c in range(size):
        at = (2 * int(c) + expert) * (width + SECOND_EXTRA)
        moved = models[at + j]
        for k in range(width):
            models[at + k] -= add * u[k] / below * moved
        models[at + j] = moved / (ratio * below)


# ------------------------------------------------------------------------------------------------- the columns


@intrinsic
def _observe_eight(
    typingctx: Any,
    mean: Any,
    variance: Any,
    inverse: Any,
    present: Any,
    q: Any,
    z: Any,
    at: Any,
    h: Any,
    share: Any,
    moving: Any,
    after: Any,
) -> Any:
    """Eight columns from ``at`` on take in q, and z = (q - mean)/unit; returns bits of those whose units must grow."""
    signature = types.uint64(mean, variance, inverse, present, q, z, types.intp, f8, f8, f8, f8)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = [array_data(context, builder, sig.args[i], args[i]) for i in range(6)]
        mean, variance, inverse, present, q = (load(builder, place, args[6]) for place in places[:5])
        h, share, moving, after = (spread(builder, number) for number in args[7:])
        away = q - mean
        moved = moving.times_plus(away, mean)
        rest = q - moved
        spread2 = share.times_plus(away.times_plus(rest, -variance), variance)
        there = present + compare(q, "!=", 0.0).choose(h, 0.0)
        for place, new in zip(places, (moved, spread2, None, there, None, rest * inverse), strict=True):
            if new is not None:
                store(builder, place, args[6], new)
        outgrown = compare(spread2 * (inverse * inverse) * after, ">", there * (_GROWTH * _GROWTH))
        return (outgrown | (compare(inverse, "==", 0.0) & compare(spread2, ">", 0.0))).bits

    return signature, codegen


@inline_jit
def _observe_columns(mean, variance, inverse, present, q, z, h, seen, centering):
    """Let the columns take in a row and set z = (q - mean)/unit. Returns whether a unit has to grow."""
    after = seen + h
    share = h / after
    growing = np.uint64(0)
    for at in range(0, z.size, EXPERTS):
        growing |= _observe_eight(
            mean, variance, inverse, present, q, z, at, h, share, share if centering else 0.0, after
        )
    return growing != np.uint64(0)


@jit
def _grow_units(second, size, features, seen, both, priors):
    mean, variance, inverse, present, _, P0, u0, g0, P1, u1, g1, models = second
    for j in range(features):
        if not variance[j] > 1e-24 * mean[j] * mean[j]:
            continue  # but rounding
        unit = math.sqrt(variance[j] * (seen / present[j]))
        ratio = unit * inverse[j]
        if inverse[j] > 0.0 and not ratio > _GROWTH:
            continue
        if inverse[j] > 0.0:
            for expert in range(0 if both else 1, 2):  # one after the other, so that this is compiled once
                P, u, g, prior = (P0, u0, g0, priors[0]) if expert == 0 else (P1, u1, g1, priors[1])
                _grow_unit(P, u, g, j, ratio, prior, size, models, expert)
        inverse[j] = 1.0 / unit


@dense_jit
def _standardize(mean, inverse, q, z, size):
    for j in range(size):
        z[j] = (q[j] - mean[j]) * inverse[j]


@inline_jit
def write_row(data, indices, lo, hi, dense, q, features):
    """Write a row to q, zeros and all."""
    if dense:
        for j in range(features):
            q[j] = np.float64(data[lo + np.uint64(j)])
    else:
        q[:features] = 0.0
        for e in range(lo, hi):
            q[np.uint64(indices[e])] = np.float64(data[e])


@inline_jit
def read_row(second, q, size, features, h, seen, centering, both, priors, variances):
    """Have z, u and b of the row q; ``h`` is its counted weight, ``seen`` that of all before it.

    Whole vectors are worked on: q is 0 after its last feature, and so is all that is known of columns there.
    """
    mean, variance, inverse, present, z, P0, u0, g0, P1, u1, g1, _ = second
    if h > 0.0:
        if _observe_columns(mean, variance, inverse, present, q, z, h, seen, centering):
            _grow_units(second, size, features, seen + h, both, priors)
            _standardize(mean, inverse, q, z, z.size)
    else:
        _standardize(mean, inverse, q, z, z.size)
    z[features] = 1.0 if centering else 0.0
    for expert in range(0 if both else 1, 2):
        P, u, g = (P0, u0, g0) if expert == 0 else (P1, u1, g1)
        variances[expert] = _multiply(P, u, g, z, features + 1)
        g[:] = 0.0


# ------------------------------------------------------------------------------------------------- the experts


@inline_jit
def predict_second(second, c, both, logistic, h, offset, low, high, clipping, variances, raw, p, evidence):
    """What the two play for an output: ``p[8:10]``; ``raw`` keeps <x, z>. A row of weight 0 retires none."""
    z, models = second[4], second[11]
    for expert in range(2):
        source = expert if both else 1
        at = (2 * int(c) + source) * (z.size + SECOND_EXTRA)
        raw[expert] = _dot(models[at : at + z.size], z, z.size) if expert == 0 or both else raw[0]
        played = raw[expert] / math.sqrt(1.0 + _MODERATION * max(variances[source], 0.0)) if logistic else raw[expert]
        if not abs(played) < RANGE or evidence[EXPERTS + expert] == math.inf:
            played = 0.0
            if h > 0.0:
                evidence[EXPERTS + expert] = math.inf
        if not logistic:
            played += offset
            if clipping:
                played = clip(played, low, high)
        p[EXPERTS + expert] = played


@jit
def _growth(d):
    """e^d - 1, by its series where that is shorter than a call."""
    return d + d * d * mean_excess(d) if d < 1.0 else math.expm1(d)


@jit
def _way(m, t, push):
    """The D of t^2 D + 2 m t (e^D - 1) + m^2 (e^2D - 1)/2 = push, or _FARTHEST, if that is less.

    Newton's from above, which never undershoots: the left side is at least D, since t + m = 1. A step ends within its
    square of the root. A short way starts from two terms of its series: from there, one step is enough.
    """
    d = push
    if push < 0.01:
        d = push / (1.0 + m * push)
    elif push > 0.1 and m > 1e-150:
        d = min(push, 0.5 * math.log1p(2.0 * push / (m * m)))
    d = min(d, _FARTHEST)
    for _ in range(60):
        x = _growth(d)
        rise = t + m * (1.0 + x)
        change = (t * t * d + m * x * (2.0 * t + m * (0.5 * x + 1.0)) - push) / (rise * rise)
        d -= change
        if not change * abs(change) > 1e-14 * d:
            break
    return clip(d, 0.0, _FARTHEST)  # a start below the root, because of the limit, ends anywhere above it


@jit
def _logistic_step(m, t, b, label, h, counted):
    """(step, grown): x moves by step * u, and what is known along z grows by 1 + grown, where h is but ``counted``.

    m and t are the probabilities of the label and of the other one.
    """
    s = math.sqrt(1.0 + _MODERATION * b)
    d = _way(m, t, min(h * b, 1e300) / s * t)
    step = label * s * d / b
    if h > counted:
        d = _way(m, t, counted * b / s * t)
    return step, m * _growth(d)


@jit
def _squared_step(p, b, label, offset, low, high, h, counted):
    """The same for the squared loss; ``offset``, ``low`` and ``high`` have taken the label in."""
    whole = p + offset
    weight = 1.0
    inside = clip(whole, low, high)
    if inside != whole:
        weight = (inside - label) / (whole - label)
    gain = min(weight * h * b, 1e300)
    return -(whole - label) * (gain / (1.0 + gain)) / b, weight * counted * b


@jit
def _calibrate(models, at, p, label, rows):
    """GAMMA x is the linear model to keep: p/s is not linear in z, and x alone is too sure of itself."""
    gamma, info = models[at + GAMMA], models[at + INFO]
    e = 1.0 / (1.0 + math.exp(min(label * gamma * p, 700.0)))
    info = info * (1.0 - 2.0 / (rows + 3.0)) + e * (1.0 - e) * p * p
    models[at + GAMMA] = clip(gamma + clip(e * label * p / (1.0 + info), -0.5, 0.5), 0.01, 4.0)
    models[at + INFO] = info


@inline_jit
def step_second(
    second, c, both, logistic, label, offset, low, high, h, counted, rows, variances, raw, evidence, experts, grown
):
    """Let both learn a label of an output; ``grown`` receives what P is to grow by, summed over the outputs."""
    z, models = second[4], second[11]
    likely, other = experts[3], experts[2]
    width = z.size
    for expert in range(0 if both else 1, 2):
        b = variances[expert]
        if not _LEAST < b < _LARGEST or evidence[EXPERTS + expert] == math.inf:
            continue
        at = (2 * int(c) + expert) * (width + SECOND_EXTRA)
        if logistic:
            if rows < _OFTEN or rows % 4.0 == 0.0:
                _calibrate(models, at + width, raw[expert], label, rows)
            step, more = _logistic_step(likely[EXPERTS + expert], other[EXPERTS + expert], b, label, h, counted)
        else:
            step, more = _squared_step(raw[expert], b, label, offset, low, high, h, counted)
        grown[expert] += min(more, _MOST)
        u = second[6] if expert == 0 else second[9]
        add_lanes(models[at : at + width], u, step, width)


@inline_jit
def leave_rest(second, both, size, variances, grown):
    """Set g of both: the outputs share P, which grows by the mean of what each would have it grow by."""
    for expert in range(0 if both else 1, 2):
        u, g = (second[6], second[7]) if expert == 0 else (second[9], second[10])
        mean = grown[expert] / np.float64(size)
        b = variances[expert]
        if mean > 0.0 and _LEAST < b < _LARGEST:
            add_lanes(g, u, math.sqrt(mean / ((1.0 + mean) * b)), g.size)
