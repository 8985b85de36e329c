"""Mixtures, merged; see ``merge``.

The mixtures are brought to common terms first, without changing what they predict: one unit of labels, one offset, one
center and one unit for every column. A column stays centered where all of them center it. Then

    statistics    of columns and labels are those of all rows together
    weights       are averaged; of a feature, by the weight of the rows that each mixture has met it in since the start
    G and H       add up, so the rates go on as if one mixture had seen all rows
    shares        those of the start, after all the losses that the experts have had since

What experts of second order know adds up: ``merge_second``.

A column whose spread is far larger in all rows than it is in one mixture's has shrunk the weights of the others, who
know better; that mixture's weights shrink as well, if its spread is less than a quarter. Only this makes the order of
merging matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.distributed.merge import LEAST_WEIGHT, added
from steelyard.distributed.merge_second import merge_second
from steelyard.kernels import layout
from steelyard.kernels.layout import EXPERTS, HALF, TOTAL
from steelyard.losses import Array
from steelyard.mixture import RATES, Mixture, MixtureState

_CHUNK = 1 << 14  # features at a time
_MOST_SUM = 1e30  # of G and H: ``kernels.features.RANGE``
_FAR = 4.0  # a spread that is so many times larger is another one
_ALONE = 6.0  # of rate * features of a row: b of ``_Stretch`` is 1/2 there. Measured: ``benchmarks/shards.py``
_ADDED_CLOCKS = [layout.MIX_SEEN, layout.MIX_ROWS, layout.LOG_WEIGHT, layout.SECOND_SEEN]
_MOVED = 0.25  # ``kernels.mixing.MOVED``


class _Records(NamedTuple):
    """Some features of one mixture, in double precision."""

    w: Array
    """(features, outputs, experts)"""
    sums: Array
    """G and H: (features, outputs, 2)"""
    v: Array
    k: Array
    n: Array
    mean: Array
    centered: Any


def merge_mixtures(mixture: Mixture, states: list[MixtureState], base: MixtureState | None) -> MixtureState:
    """The state of several mixtures, all of which have learned something since ``base``."""
    n_features = states[0].centered.size
    first = mixture._new_state(n_features) if base is None else base
    new = mixture._new_state(n_features)
    everyone = _in_common_unit(mixture, [*states, first])
    states, first = everyone[:-1], everyone[-1]
    learned = [max(float(s.clocks[layout.MIX_SEEN] - first.clocks[layout.MIX_SEEN]), LEAST_WEIGHT) for s in states]
    _merge_clocks(mixture, states, first, new.clocks)
    offsets = [np.zeros((mixture.n_outputs, EXPERTS)) for _ in everyone]
    if mixture._labels != layout.PLAIN:
        for state, offset in zip(everyone, offsets, strict=True):
            offset += state.clocks[layout.LABEL_MEAN] - new.clocks[layout.LABEL_MEAN]
    stretch = _Stretch(mixture, first)
    new.table[:] = first.table
    changed = _changed(mixture, states, first)
    centered = np.zeros(n_features, bool)
    for start in range(0, changed.size, _CHUNK):
        part = changed[start : start + _CHUNK]
        centered[part] = _merge_features(mixture, states, first, new, part, stretch, offsets)
    places = np.flatnonzero(centered)
    new.centered[: places.size] = places.astype(np.uint64) * np.uint64(mixture._record)
    new.clocks[layout.CENTERED] = places.size
    _merge_intercept(mixture, states, first, new, learned, stretch, offsets)
    new.dual[:] = added([state.dual for state in states], first.dual)
    _merge_sums(mixture, states, first, new)
    if new.second.size and all(state.second.size for state in everyone):
        merge_second(mixture, states, first, new, learned)
    elif new.second.size:  # models of a version that had no such experts
        new = new._replace(second=np.empty(0))
    return new


def _in_common_unit(mixture: Mixture, states: list[MixtureState]) -> list[MixtureState]:
    """All states with the labels in the largest of their units; units are powers of two, so nothing is rounded."""
    units = [float(state.clocks[layout.LABEL_UNIT]) for state in states]
    unit = max(units)
    return [
        state if own in (unit, 0.0) else _in_unit(mixture, state, own / unit, unit)
        for state, own in zip(states, units, strict=True)
    ]


def _in_unit(mixture: Mixture, state: MixtureState, factor: float, unit: float) -> MixtureState:
    table, clocks, sums, second = state.table.copy(), state.clocks.copy(), state.sums.copy(), state.second.copy()
    table.reshape(-1, mixture._record)[:, : EXPERTS * mixture.n_outputs] *= factor
    clocks[[layout.LABEL_MEAN, layout.LOWEST, layout.HIGHEST]] *= factor
    clocks[layout.LABEL_VARIANCE] *= factor * factor
    clocks[layout.MIXING_RATE] /= factor * factor
    clocks[layout.LABEL_UNIT] = unit
    constant = mixture._labels == layout.UNIT
    sums[:, : layout.SHARES] *= factor if constant else factor * factor
    dual = state.dual if constant else state.dual * factor
    if second.size:
        width = layout.second_width(state.centered.size)
        models = second[second.size - mixture.n_outputs * layout.SECOND * (width + layout.SECOND_EXTRA) :]
        models.reshape(-1, width + layout.SECOND_EXTRA)[:, :width] *= factor
    return MixtureState(table, clocks, sums, state.centered, dual, second)


def _merge_clocks(mixture: Mixture, states: list[MixtureState], first: MixtureState, clocks: Array) -> None:
    each, zero = np.array([state.clocks for state in states]), first.clocks
    clocks[_ADDED_CLOCKS] = added(list(each[:, _ADDED_CLOCKS]), zero[_ADDED_CLOCKS])
    everyone = np.vstack([each, zero])
    shards = np.maximum(each[:, layout.SHARDS] - zero[layout.SHARDS], 1.0)
    clocks[layout.SHARDS] = zero[layout.SHARDS] + shards.sum()
    clocks[layout.LARGEST] = everyone[:, layout.LARGEST].max()
    clocks[layout.LABEL_UNIT] = everyone[:, layout.LABEL_UNIT].max()
    known = everyone[everyone[:, layout.RESIDENT] != 0.0, layout.RESIDENT]
    clocks[layout.RESIDENT] = zero[layout.RESIDENT] or known.min(initial=1.0)
    clocks[layout.MATRICES] = everyone[:, layout.MATRICES].min()
    if mixture._labels != layout.PLAIN:
        seen = everyone[everyone[:, layout.MIX_ROWS] > 0.0]
        clocks[layout.LOWEST], clocks[layout.HIGHEST] = seen[:, layout.LOWEST].min(), seen[:, layout.HIGHEST].max()
        parts = everyone[:, layout.MIX_SEEN] / clocks[layout.MIX_SEEN]
        parts[-1] *= 1 - len(states)
        center = seen[-1, layout.LABEL_MEAN]
        away = everyone[:, layout.LABEL_MEAN] - center
        moved = float(parts @ away)
        clocks[layout.LABEL_MEAN] = center + moved
        variance = parts @ (everyone[:, layout.LABEL_VARIANCE] + away * away) - moved * moved
        clocks[layout.LABEL_VARIANCE] = max(variance, 0.0)
    clocks[layout.MIXING_RATE] = _mixing_rate(mixture, clocks)


def _mixing_rate(mixture: Mixture, clocks: Array) -> float:
    """``kernels.experts.mixing_rate``."""
    if not clocks[layout.LARGEST] > 0.0:
        return 0.0
    if mixture._kind != layout.MIX_SQUARED:
        return float(1.0 / clocks[layout.LARGEST])
    width = clocks[layout.HIGHEST] - clocks[layout.LOWEST]
    return float(4.0 / (width * width * clocks[layout.LARGEST])) if width > 0.0 else 0.0


# ------------------------------------------------------------------------------------------------------ features


def _changed(mixture: Mixture, states: list[MixtureState], first: MixtureState) -> NDArray[np.intp]:
    """The features that some mixture has met since the start; of the others, the start has everything."""
    counts = [
        state.table.view(np.float64).reshape(-1, mixture._record // 2)[:-1, mixture._statistics // 2 + 1]
        for state in (*states, first)
    ]
    return np.flatnonzero(np.logical_or.reduce([count != counts[-1] for count in counts[:-1]]))


def _read(mixture: Mixture, state: MixtureState, part: Any) -> _Records:
    outputs, at = mixture.n_outputs, mixture._statistics
    records = state.table.reshape(-1, mixture._record)[part, : at + 2].astype(np.float64)
    w = records[:, : EXPERTS * outputs].reshape(-1, outputs, EXPERTS)
    sums = records[:, EXPERTS * outputs : at].reshape(-1, outputs, layout.SUMS_OF_OUTPUT)
    doubles = state.table.view(np.float64).reshape(-1, mixture._record // 2)[part, at // 2 + 1 :][:, :2]
    n, mean = doubles[:, 0].copy(), doubles[:, 1].copy()
    seen = state.clocks[layout.MIX_SEEN]
    centered = (n == seen) & ~np.isnan(mean) & (seen > 0.0)
    return _Records(w, sums, records[:, at + layout.VARIANCE], records[:, at + layout.EXPONENT], n, mean, centered)


def _merge_features(
    mixture: Mixture,
    states: list[MixtureState],
    first: MixtureState,
    new: MixtureState,
    part: Any,
    stretch: _Stretch,
    offsets: list[Array],
) -> Any:
    """Merge some features; ``offsets`` receives what the intercepts pay for it. Returns which are centered."""
    each = [_read(mixture, state, part) for state in states]
    zero = _read(mixture, first, part)
    centered = np.logical_and.reduce([one.centered for one in each])
    known = [one.v > 0.0 for one in (*each, zero)]
    k = np.maximum.reduce([np.where(there, one.k, -np.inf) for there, one in zip(known, (*each, zero), strict=True)])
    k = np.where(np.isfinite(k), k, 0.0)
    n = np.where(centered, new.clocks[layout.MIX_SEEN], added([one.n for one in each], zero.n))
    mean, v, spreads = _pooled(each, zero, centered, n, k)
    steps = np.where(v > 4.0, np.floor(np.log2(np.maximum(v, 4.0)) / 2.0), 0.0)
    tiny = (v > 0.0) & (v < 1e-30)
    steps = np.where(tiny, np.floor(np.log2(np.where(tiny, v, 1.0)) / 2.0), steps)
    k, v = k + steps, np.ldexp(v, (-2.0 * steps).astype(int))
    shares, models = [], []
    spread_now = np.sqrt(np.ldexp(v, (2.0 * steps).astype(int)))
    for one, spread, offset in zip((*each, zero), spreads, offsets, strict=True):
        shrink = np.minimum(1.0, _FAR * spread / np.where(v > 0.0, spread_now, 1.0))
        shrink = np.where((v > 0.0) & (one.v > 0.0), shrink, 1.0)
        w = np.ldexp(one.w, (k - one.k).astype(int)[:, None, None]) * shrink[:, None, None]
        models.append(w)
        shares.append(np.maximum(one.n - zero.n, 0.0)[:, None, None])
        moved = np.where(centered, mean - one.mean, -one.mean)  # of the center: -mean where there is none any more
        moved = np.where(one.centered, moved, 0.0)
        x = np.ldexp(w[:, :, HALF:], -k.astype(int)[:, None, None])
        used = moved != 0.0
        offset[:, HALF:] += np.einsum("j,jck->ck", moved[used], x[used])
    since = [share.reshape(-1) for share in shares[:-1]]
    stretches = [stretch.of(state, zero.n, own) for state, own in zip(states, since, strict=True)]
    stretches.append(stretch.of(new, zero.n, np.sum(since, axis=0)))
    w = _moved(models[:-1], models[-1], shares[:-1], stretches)
    sums = added(
        [np.ldexp(one.sums, (2.0 * (one.k - k)).astype(int)[:, None, None]) for one in each],
        np.ldexp(zero.sums, (2.0 * (zero.k - k)).astype(int)[:, None, None]),
    )
    mean = np.where(n > 0.0, np.where(centered, mean, np.nan), 0.0)
    _write(mixture, new, part, _Records(w, np.clip(sums, 0.0, _MOST_SUM), v, k, n, mean, centered))
    return centered


class _Stretch:
    """How much farther than the average of its shards' moves a state has moved from the start, by feature and expert.

    If K shards each move a little, one learner of all their rows would have moved K times as far as they do on average;
    if each moves so far that it fits its own rows, it would have moved like the average. For one feature by itself, in
    units in which its prior counts 1, the curvature known at the start is R = 1 + k n_0, and k n came since (n weights
    of rows that have the feature, k the mean curvature of the loss): then s = (K R + k n)/(R + k n) is right, K the
    number of shards that met the feature. But the features of a row move together, and the more so the more there are
    and the faster the expert is. So the moves are stretched by 1 + b (s - 1), where b falls with both; by nothing where
    the rate falls like 1/sqrt(n), which is for noise, nor for losses that are not curved like the squared or the
    logistic one.

    It follows from what adds up, so a merge knows by how much each of its states is stretched, and merges of merges
    are right.
    """

    def __init__(self, mixture: Mixture, first: MixtureState) -> None:
        self._rows, self._seen, self._shards = first.clocks[[layout.MIX_ROWS, layout.MIX_SEEN, layout.SHARDS]]
        counts = first.table.view(np.float64).reshape(-1, mixture._record // 2)[:-1, mixture._statistics // 2 + 1]
        known = self._seen > 0.0
        active = 1.0 + float(counts.sum()) / self._seen if known else 1.0
        last = first.table.reshape(-1, mixture._record)[-1, EXPERTS * mixture.n_outputs : mixture._statistics]
        self._curvature = float(last.reshape(-1, 2)[:, 1].mean()) / self._seen if known else 0.0
        self._part = np.zeros(EXPERTS)
        if known and mixture._kind != layout.MIX_CONVEX:
            self._part[HALF:] = 1.0 / (1.0 + RATES[HALF:] * active / _ALONE)

    def of(self, state: MixtureState, before: Array, since: Array) -> Array:
        """For features with weight ``before`` at the start and ``since`` from then on: (features, 1, experts)."""
        shards = max(float(state.clocks[layout.SHARDS] - self._shards), 1.0)
        weight = float(state.clocks[layout.MIX_SEEN] - self._seen)
        rows = since * ((float(state.clocks[layout.MIX_ROWS]) - self._rows) / weight) if weight > 0.0 else since
        met = np.maximum(-shards * np.expm1(-rows / shards), 1.0)
        with np.errstate(over="ignore"):
            alone = 1.0 + (met - 1.0) / (1.0 + self._curvature * since / (1.0 + self._curvature * before))
        return np.asarray(1.0 + (alone - 1.0)[:, None, None] * self._part)


def _moved(models: list[Array], start: Array, shares: list[Array], stretches: list[Array]) -> Array:
    """The start, and from there the average move, by ``shares``, as it is before it is stretched."""
    *own, new = stretches
    total: Any = sum(shares)
    move: Any = 0.0
    for model, share, stretch in zip(models, shares, own, strict=True):
        part = np.divide(share, total, out=np.zeros_like(share), where=total > 0.0)
        move = move + np.where(part > 0.0, part * (model - start) / stretch, 0.0)
    return np.asarray(start + new * move)


def _pooled(
    each: list[_Records], zero: _Records, centered: Any, n: Array, k: Array
) -> tuple[Array, Array, list[Array]]:
    """Mean and variance of columns over all rows, the variance in units of 4^k, and the spread that each knows."""
    reference = np.where(zero.centered, zero.mean, each[0].mean)
    total = np.zeros_like(n)
    square = np.zeros_like(n)
    spreads = []
    inverse = np.ldexp(1.0, np.minimum(-k, 1023.0).astype(int))
    for one, sign in [(one, 1.0) for one in each] + [(zero, 1.0 - len(each))]:
        share = sign * np.divide(one.n, n, out=np.zeros_like(n), where=n > 0.0)
        own = np.ldexp(one.v, (2.0 * (one.k - k)).astype(int))
        away = np.where(centered & (one.n > 0.0), (one.mean - reference) * inverse, 0.0)
        dropped = np.where(one.centered & ~centered, one.mean * inverse, 0.0)
        own = own + dropped * dropped
        total += share * away
        square += share * (own + away * away)
        spreads.append(np.sqrt(own))
    mean = np.where(centered, reference + total / inverse, 0.0)
    return mean, np.maximum(square - total * total, 0.0), spreads


def _write(mixture: Mixture, new: MixtureState, part: Any, records: _Records) -> None:
    table = new.table.reshape(-1, mixture._record)
    outputs, at = mixture.n_outputs, mixture._statistics
    with np.errstate(over="ignore"):  # an expert with such a weight is retired
        table[part, : EXPERTS * outputs] = records.w.reshape(-1, EXPERTS * outputs)
        table[part, EXPERTS * outputs : at] = records.sums.reshape(-1, layout.SUMS_OF_OUTPUT * outputs)
    table[part, at + layout.VARIANCE], table[part, at + layout.EXPONENT] = records.v, records.k
    doubles = new.table.view(np.float64).reshape(-1, mixture._record // 2)
    doubles[part, at // 2 + 1], doubles[part, at // 2 + 2] = records.n, records.mean


def _merge_intercept(
    mixture: Mixture,
    states: list[MixtureState],
    first: MixtureState,
    new: MixtureState,
    learned: list[float],
    stretch: _Stretch,
    offsets: list[Array],
) -> None:
    last = slice(first.centered.size, first.centered.size + 1)
    each, zero = [_read(mixture, state, last) for state in states], _read(mixture, first, last)
    *models, start = (one.w + offset for one, offset in zip((*each, zero), offsets, strict=True))
    before = first.clocks[layout.MIX_SEEN] * np.ones(1)
    stretches = [stretch.of(state, before, np.full(1, own)) for state, own in zip(states, learned, strict=True)]
    stretches.append(stretch.of(new, before, np.full(1, np.sum(learned))))
    w = _moved(models, start, [np.full((1, 1, 1), amount) for amount in learned], stretches)
    if not mixture.fit_intercept:
        w = np.zeros_like(w)
    sums = np.clip(added([one.sums for one in each], zero.sums), 0.0, _MOST_SUM)
    _write(mixture, new, last, zero._replace(w=w, sums=sums, v=np.ones(1), k=np.zeros(1)))


# -------------------------------------------------------------------------------------------------------- the mixing


def _merge_sums(mixture: Mixture, states: list[MixtureState], first: MixtureState, new: MixtureState) -> None:
    """Losses add up."""
    sums = new.sums
    sums[:, : layout.SHARES] = added([s.sums[:, : layout.SHARES] for s in states], first.sums[:, : layout.SHARES])
    evidence = mixture._evidence_of(sums)
    if mixture._kind != layout.MIX_CONVEX:
        sums[:, layout.SHARES :] = _merge_shares(mixture, states, first, new)
    new.sums[:, layout.MERGED] = 0.0
    for c in range(mixture.n_outputs):
        counted = sums[c, layout.COUNTED_EXPERT_LOSS :][:TOTAL] if mixture._kind == layout.MIX_SQUARED else evidence[c]
        alive = np.isfinite(evidence[c])
        if not alive.any():
            continue
        regrets = sums[c, layout.COUNTED_LOSS] - counted[alive]
        if mixture._kind == layout.MIX_CONVEX:
            sums[c, layout.MERGED] = max(0.0, regrets.max() - sums[c, layout.MIXING_COST])
            continue
        price = 1.0 / new.clocks[layout.MIXING_RATE] if new.clocks[layout.MIXING_RATE] > 0.0 else 0.0
        shares = sums[c, layout.SHARES :][:TOTAL][alive]
        begin = -np.log(mixture._first_shares(new.second.size > 0)[0])
        with np.errstate(divide="ignore"):
            sums[c, layout.MERGED] = (regrets - price * np.log(shares)).max() - price * begin


def _merge_shares(mixture: Mixture, states: list[MixtureState], first: MixtureState, new: MixtureState) -> Array:
    """The shares of the start, times e^(-rate * losses since). What mixtures have moved among experts meanwhile is left
    out: it would add up to more than one mixture moves."""
    begin = mixture._first_shares(new.second.size > 0)
    rate = new.clocks[layout.MIXING_RATE]
    alive = np.isfinite(mixture._evidence_of(new.sums))

    with np.errstate(invalid="ignore"):  # of retired experts
        power = -rate * (mixture._evidence_of(new.sums) - mixture._evidence_of(first.sums))
    own = first.clocks[layout.MIXING_RATE]
    if own > 0.0:
        power += rate / own * np.log(np.maximum(first.sums[:, layout.SHARES :], 1e-300) / np.maximum(begin, 1e-300))
    power = np.where(alive, power, -np.inf)
    highest = power.max(axis=1, keepdims=True)
    shares = np.where(alive, begin * np.exp(power - np.where(np.isfinite(highest), highest, 0.0)), 0.0)
    even = np.where(alive, begin, 0.0)
    even = np.where(alive.any(axis=1, keepdims=True), even, np.where(np.arange(TOTAL) < EXPERTS, 1.0, 0.0))
    even /= even.sum(axis=1, keepdims=True)
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0.0, shares / np.where(total > 0.0, total, 1.0), even)
    t = new.clocks[layout.MIX_ROWS] + 3.0
    moved = _MOVED / (t * np.log(t) ** 2)  # as after every row: ``kernels.mixing.share_out``
    return np.asarray((1.0 - moved) * shares + moved * even)
