"""A sparse row's records, side by side: read once, worked on with vectors, and written back.

Where x follows from a record by a formula, as it does under penalties, to read records one by one and to work each out
would take several times as long as the row itself.

``room`` is four parts of one size, a multiple of eight: r, w, x and stamps. There is one output, and no AdaGrad: [r, w]
is the record of a feature.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compile import inline_dense_jit, inline_jit
from steelyard.kernels.intrinsics import eight_outgrow, prefetch_once, trailing_zeros
from steelyard.kernels.metric import GROWN, _outgrows
from steelyard.kernels.rows import EIGHT, ONE, TWO, ZERO
from steelyard.kernels.schedule import LARGE
from steelyard.kernels.shrinking import shrunk

SEVEN = np.uint64(7)


@inline_jit
def parts(room):
    """The parts of ``room``: (r, w, x, stamps)."""
    size = room.size // 4
    return room[:size], room[size : 2 * size], room[2 * size : 3 * size], room[3 * size : 4 * size]


@inline_jit
def soft(w, most):
    """sign(w) max(0, |w| - most); no weight is beyond 1e300, so that nothing is inf less inf."""
    most = min(most, LARGE)
    return w - min(max(w, -most), most)


@inline_jit
def gather(indices, lo, hi, table, room, ahead, stop):
    """Read [r, w] of every feature; fetches the records of the row ``ahead:stop`` on the way."""
    r, w, _, _ = parts(room)
    for e in range(lo, hi):
        if ahead < stop:
            prefetch_once(table, np.uint64(indices[ahead]) * TWO)
            ahead += ONE
        base = np.uint64(indices[e]) * TWO
        r[e - lo], w[e - lo] = table[base], table[base + ONE]


@inline_jit
def scatter(indices, lo, hi, table, room):
    """Write every w back."""
    w = parts(room)[1]
    for e in range(lo, hi):
        table[np.uint64(indices[e]) * TWO + ONE] = w[e - lo]


@inline_jit
def gather_stamped(indices, lo, hi, table, stamps, room, ahead, stop):
    """:func:`gather`, with the stamps."""
    r, w, _, since = parts(room)
    for e in range(lo, hi):
        if ahead < stop:
            prefetch_once(table, np.uint64(indices[ahead]) * TWO)
            prefetch_once(stamps, np.uint64(indices[ahead]))
            ahead += ONE
        j = np.uint64(indices[e])
        r[e - lo], w[e - lo], since[e - lo] = table[TWO * j], table[TWO * j + ONE], stamps[j]


@inline_jit
def scatter_stamped(indices, lo, hi, table, stamps, room, now):
    """:func:`scatter`, with a stamp for each."""
    w = parts(room)[1]
    for e in range(lo, hi):
        j = np.uint64(indices[e])
        table[TWO * j + ONE], stamps[j] = w[e - lo], now


@inline_dense_jit
def keep_soft(count, room, most):
    """x = soft(w, most r), which is kept."""
    r, w, x, _ = parts(room)
    for e in range(count):
        x[e] = soft(w[e], most * r[e])


@inline_dense_jit
def keep_shrunk(count, room, flow):
    """x: w after shrinking since its stamp, which is kept. ``flow`` is (l1, l2, now)."""
    r, w, x, since = parts(room)
    l1, l2, now = flow
    for e in range((count + SEVEN) // EIGHT * EIGHT):  # whole vectors: the last few one by one would take as long
        x[e] = shrunk(w[e], (now - since[e]) * r[e], l1, l2)


@inline_jit
def _take_scale(data, indices, lo, e, table, room, origin):
    """Let the scale of feature e of the row take in its value."""
    r, w, x, _ = parts(room)
    q = np.float64(data[lo + e])
    if q == 0.0:
        return
    if r[e] > 0.0:
        shrink = 1.0 / (abs(q) * math.sqrt(r[e]))
        if origin:
            w[e] = w[e] * shrink * shrink
        else:
            x[e] *= shrink
    r[e] = 1.0 / (q * q)
    table[np.uint64(indices[lo + e]) * TWO] = r[e]


@inline_jit
def take_scales(data, indices, lo, hi, table, room, origin):
    """Let the scales take in the row, as ``metric._take_scales`` does: of x, or for center "origin" of w."""
    r = parts(room)[0]
    count = hi - lo
    whole = count - count % EIGHT
    for start in range(ZERO, whole, EIGHT):
        beyond = eight_outgrow(data, lo + start, r, start, GROWN)
        while beyond != ZERO:
            _take_scale(data, indices, lo, start + trailing_zeros(beyond), table, room, origin)
            beyond &= beyond - ONE
    for e in range(whole, count):
        if _outgrows(np.float64(data[lo + e]), r[e]):
            _take_scale(data, indices, lo, e, table, room, origin)


@inline_dense_jit
def observe_origin(data, lo, hi, room, most, beta, lam):
    """Center "origin": (<q, x>, the squared norm), both times lam; x = soft(w, most r) / (lam + beta r)."""
    r, w, _, _ = parts(room)
    p = n = 0.0
    for e in range(hi - lo):
        q = np.float64(data[lo + e])
        part = q * (lam / (lam + beta * r[e]))
        p += soft(w[e], most * r[e]) * part
        n += q * r[e] * part
    return p, n


@inline_dense_jit
def observe_kept(data, lo, hi, room):
    """(<q, x>, the squared norm) for x as it is kept."""
    r, _, x, _ = parts(room)
    p = n = 0.0
    for e in range(hi - lo):
        q = np.float64(data[lo + e])
        p += q * x[e]
        n += q * q * r[e]
    return p, n


@inline_dense_jit
def move_origin(data, lo, hi, room, change):
    """w += change * q in the metric."""
    r, w, _, _ = parts(room)
    for e in range(hi - lo):
        w[e] += change * np.float64(data[lo + e]) * r[e]


@inline_dense_jit
def move_soft(data, lo, hi, room, most, change):
    """x += change * q in the metric, and w follows."""
    r, w, x, _ = parts(room)
    for e in range(hi - lo):
        moved = x[e] + change * np.float64(data[lo + e]) * r[e]
        w[e] = moved + math.copysign(min(most * r[e], LARGE), moved)


@inline_dense_jit
def move_kept(data, lo, hi, room, change):
    """w = x + change * q in the metric."""
    r, w, x, _ = parts(room)
    for e in range(hi - lo):
        w[e] = x[e] + change * np.float64(data[lo + e]) * r[e]


# The scalar metric has no r.


@inline_jit
def gather_scalar(indices, lo, hi, table, room, ahead, stop):
    """:func:`gather` where a record is w alone."""
    w = parts(room)[1]
    for e in range(lo, hi):
        if ahead < stop:
            prefetch_once(table, np.uint64(indices[ahead]))
            ahead += ONE
        w[e - lo] = table[indices[e]]


@inline_jit
def scatter_scalar(indices, lo, hi, table, room):
    """:func:`scatter` where a record is w alone."""
    w = parts(room)[1]
    for e in range(lo, hi):
        table[indices[e]] = w[e - lo]


@inline_dense_jit
def observe_scalar(data, lo, hi, room, most):
    """:func:`observe_soft` for r = 1."""
    _, w, x, _ = parts(room)
    p = n = 0.0
    for e in range(hi - lo):
        q = np.float64(data[lo + e])
        x[e] = soft(w[e], most)
        p += q * x[e]
        n += q * q
    return p, n


@inline_dense_jit
def move_scalar(data, lo, hi, room, most, change):
    """:func:`move_soft` for r = 1."""
    _, w, x, _ = parts(room)
    for e in range(hi - lo):
        moved = x[e] + change * np.float64(data[lo + e])
        w[e] = moved + math.copysign(min(most, LARGE), moved)
