"""Hashed features → rows as learners take them: interactions, indices of so many bits that ascend, none twice.

Every hashed format comes through here: its parser says for each feature a hash of 32 bits, a value, and the slot (the
namespace or the column) that it belongs to. A feature that stands twice in a row, or meets another one by its hash,
is one with the sum of the values; one with the value 0 is as if it were not there.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.intrinsics import sixteen_are, sort_sixteen, trailing_zeros

_0, _1, _8, _16, _32 = (np.uint64(i) for i in (0, 1, 8, 16, 32))
_PRIME = np.uint64(16777619)  # Vowpal Wabbit's
_BYTE, _LOW = np.uint64(255), np.uint64(0xFFFFFFFF)
_FEW = 24  # which are sorted by insertion
_QUICK_BITS = 27  # of an index that is below 2^31 with its place among sixteen beside it


@jit
def _sort_few(keys, count):
    for i in range(1, count):
        key = keys[i]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


@jit
def _sort_bytes(keys, other, count, shift, starts):
    """Move keys to where one of their bytes says."""
    starts[:] = 0
    for i in range(count):
        starts[(keys[i] >> shift) & _BYTE] += 1
    start = 0
    for digit in range(256):
        start, starts[digit] = start + starts[digit], start
    for i in range(count):
        digit = (keys[i] >> shift) & _BYTE
        other[starts[digit]] = keys[i]
        starts[digit] += 1


@jit
def _sort(keys, other, count, mask, starts):
    """Sort keys, whose upper half is at most ``mask`` and whose lower half ascends already."""
    if count <= _FEW:
        _sort_few(keys, count)
        return
    shift = _32
    while mask > _0:
        _sort_bytes(keys, other, count, shift, starts)
        for i in range(count):
            keys[i] = other[i]
        shift += _8
        mask >>= _8


@inline_jit
def _place_few(hashes, values, start, count, mask, keys, indices, out, at):
    """Put at most sixteen features, from ``start`` on, to where they belong. False where an index is there twice, or a
    value is 0: that is done elsewhere. Sixteen of each are read and written, whatever they are."""
    start, at, number = np.uint64(start), np.uint64(at), np.uint32(count)
    if not sort_sixteen(hashes, start, number, np.uint32(mask), indices, at, keys):
        return False
    end = at + np.uint64(count)
    if sixteen_are(values, start, number, 1.0):  # as words have it
        for e in range(at, at + _16):
            out[e] = 1.0
        return True
    good = True
    for e in range(at, end):
        value = values[start + np.uint64(keys[e - at])]
        out[e] = value
        good &= value != 0.0
    return good


@jit
def _by_slot(slots, lo, hi, meets, first, members):
    """The features of a row by slots: those of the slot that terms call m are members[first[m] : first[m + 1]]."""
    first[:] = 0
    for e in range(lo, hi):
        if meets[slots[e]] > 0:
            first[meets[slots[e]] + 1] += 1
    for m in range(1, first.size):
        first[m] += first[m - 1]
    end = first[first.size - 1]
    for e in range(hi - 1, lo - 1, -1):  # backwards, so that those of a slot stay in their order
        m = meets[slots[e]] + 1
        if m > 1:
            first[m] -= 1
            members[first[m]] = e
    for m in range(1, first.size - 1):
        first[m] = first[m + 1]
    first[first.size - 1] = end


@inline_jit
def _bits_by_slot(slots, lo, hi, meets, who):
    """The features of a row by slots, a bit for each of at most 64: those of the slot that terms call m are who[m]."""
    who[:] = 0
    one = 1
    for e in range(lo, hi):
        who[meets[slots[e]]] |= one
        one <<= 1


@inline_jit
def _combine_two(term, hashes, values, lo, who, at, raw, product):
    """:func:`_combine` for an interaction of two slots, from bits."""
    same = term[1] == term[2]
    firsts = np.uint64(who[term[1]])
    while firsts != _0:
        i = lo + np.int64(trailing_zeros(firsts))
        seconds = np.uint64(who[term[2]])
        if same:
            seconds = firsts  # itself, and those after it
        firsts &= firsts - _1
        head = np.uint64(hashes[i]) * _PRIME
        while seconds != _0:
            j = lo + np.int64(trailing_zeros(seconds))
            seconds &= seconds - _1
            if at < raw.size:
                raw[at], product[at] = np.uint32((head ^ np.uint64(hashes[j])) & _LOW), values[i] * values[j]
            at += 1
    return at


@jit
def _combine(term, hashes, values, first, members, place, at, raw, product):
    """The features of one interaction, after the ``at`` that are there; returns how many there are then.

    Where a slot follows itself in the term, each set of its features is taken once, a feature with itself too.
    """
    size = term[0]
    for p in range(size):  # an odometer, one wheel a slot
        place[p] = first[term[1 + p]]
        if place[p] == first[term[1 + p] + 1]:
            return at
    while True:
        if at < raw.size:
            h, v = _0, 1.0
            for p in range(size):
                e = members[place[p]]
                h = (h * _PRIME) ^ np.uint64(hashes[e])
                v *= values[e]
            raw[at], product[at] = np.uint32(h & _LOW), v
        at += 1
        p = size - 1
        while p >= 0:
            place[p] += 1
            if place[p] < first[term[1 + p] + 1]:
                break
            p -= 1
        if p < 0:
            return at
        for later in range(p + 1, size):
            same = term[1 + later] == term[later]
            place[later] = place[later - 1] if same else first[term[1 + later]]


def settle(
    hashes, values, slots, starts, meets, terms, bits, raw, product, keys, few, counts, members, indptr, indices, out
):
    """Rows of hashed features, settled; returns for how many features there must be room.

    Row r has the features ``starts[r] : starts[r + 1]``. A row of ``terms`` is how many slots meet, at most 7, and
    which, by the numbers from 1 on that ``meets`` gives to slots; it gives 0 to those that meet none.

    ``raw``, ``product``, ``keys`` (2 x as many), ``members``, ``indices`` and ``out`` are of one size. Where there is
    no room for a row with its interactions, or for all rows, nothing is right but what is returned: come again with so
    much. ``few`` is for 32 numbers, ``counts`` for 264 and two more than there are slots that meet.
    """
    mask = (_1 << np.uint64(bits)) - _1
    digits, place, first = counts[:256], counts[256:264], counts[264:]
    room = indices.size
    at = needed = 0
    indptr[0] = 0
    pairs = terms.shape[0] > 0
    for t in range(terms.shape[0]):
        pairs &= terms[t, 0] == 2
    for r in range(starts.size - 1):
        lo, hi = starts[r], starts[r + 1]
        count = hi - lo
        quick = (
            count <= 16 and bits <= _QUICK_BITS and terms.shape[0] == 0 and at + 16 <= room and lo + 16 <= hashes.size
        )
        if quick and _place_few(hashes, values, lo, count, mask, few, indices, out, at):
            at += count
            needed = max(needed, at)
            indptr[r + 1] = at
            continue
        if count <= room:
            for e in range(count):
                raw[e], product[e] = hashes[lo + e], values[lo + e]
            if pairs and hi - lo <= 64:
                _bits_by_slot(slots, lo, hi, meets, first)
                for t in range(terms.shape[0]):
                    count = _combine_two(terms[t], hashes, values, lo, first, count, raw, product)
            elif terms.shape[0] > 0:
                _by_slot(slots, lo, hi, meets, first, members)
                for t in range(terms.shape[0]):
                    count = _combine(terms[t], hashes, values, first, members, place, count, raw, product)
        needed = max(needed, at + count)  # at most, since equal ones are not joined yet
        if needed > room:
            at += count
            continue
        quick = count <= 16 and bits <= _QUICK_BITS and terms.shape[0] > 0 and at + 16 <= room
        if quick and _place_few(raw, product, 0, count, mask, few, indices, out, at):
            at += count
            indptr[r + 1] = at
            continue
        for e in range(count):
            keys[0, e] = (np.uint64(raw[e]) & mask) << _32 | np.uint64(e)
        _sort(keys[0], keys[1], count, mask, digits)
        last = np.uint64(0xFFFFFFFFFFFFFFFF)
        for e in range(count):
            key = keys[0, e]
            value = product[key & _LOW]
            if value == 0.0:
                continue
            if key >> _32 == last:
                out[at - 1] += value
                continue
            last = key >> _32
            indices[at], out[at] = np.uint32(last), value
            at += 1
        indptr[r + 1] = at
    return needed
