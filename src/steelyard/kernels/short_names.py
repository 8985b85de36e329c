"""Names of at most 15 bytes, hashed sixteen at a time, as :mod:`steelyard.kernels.hashing` hashes one.

A parser puts each name into a batch, and has the batch hashed when it is full. A hash waits for itself at every
multiplication; those of sixteen names wait together.

A batch and all else that is needed here are in one vector ``work`` of words of eight bytes, since a parser has more
arrays than the processor has registers for their places. Of each name it has

    WORDS    its bytes as two words, those after its end zero
    SHAPES   its length, its slot from bit 8 on and the seed of its hash from bit 32 on
    PLACES   where it begins in the text, and from bit 32 on where its namespace does

and then STOPS, places of the text where a name may end. What is hashed already is ``HASHED`` long, and its hash is the
first word.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.intrinsics import ones, trailing_zeros
from steelyard.kernels.layout import BATCH, NAMES_STOPS, STOPS_OF

WORDS, SHAPES, PLACES, STOPS = (np.uint64(i) for i in (0, 2 * BATCH, 3 * BATCH, NAMES_STOPS))
HASHED = np.uint64(255)
_0, _1, _2, _8, _16, _32, _64 = (np.uint64(i) for i in (0, 1, 2, 8, 16, 32, 64))
_LITTLE_ENDIAN = sys.byteorder == "little"
_STOPS_OF = np.uint64(STOPS_OF)
_SIXTEEN = 16
_word = ir.IntType(32)
_vector = ir.VectorType(_word, _SIXTEEN)


def _numbers(number: int) -> Any:
    return ir.Constant(_vector, [number] * _SIXTEEN)


def _at(context: Any, builder: Any, kind: Any, array: Any, index: Any, pointee: Any) -> Any:
    """The place of ``array[index]``, as one of another type."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), pointee.as_pointer())


@intrinsic
def _stop_bits(typingctx: Any, text: Any, at: Any) -> Any:
    """A bit for each of the 64 bytes from ``text[at]`` on: whether it may end a name, as a blank, a control character,
    a colon and a bar may. The first byte has the lowest bit."""
    signature = types.uint64(text, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bytes_ = ir.VectorType(ir.IntType(8), 64)
        found = builder.load(_at(context, builder, sig.args[0], args[0], args[1], bytes_), align=1)
        stops = builder.icmp_unsigned("<", found, ir.Constant(bytes_, [33] * 64))
        for mark in b":|":
            stops = builder.or_(stops, builder.icmp_unsigned("==", found, ir.Constant(bytes_, [mark] * 64)))
        return builder.bitcast(stops, ir.IntType(64))

    return signature, codegen


@jit
def find_stops(text, at, end, work):
    """Find where bytes that may end a name stand, from ``at`` on in so many bytes; returns where in ``work`` they end.

    Where they stand is found for 64 bytes at once: a parser that looked for the end of each name would wait for it
    before it could look for the next. The last bytes of the text, fewer than 80, may not be looked at: behind a stop
    there are sixteen bytes more.
    """
    count = STOPS
    last = min(at + _STOPS_OF, max(end, _16) - _16)
    while at + _64 <= last:
        bits = _stop_bits(text, at)
        number = ones(bits)
        for start in range(_0, number, _8):
            for k in range(start, start + _8):  # eight, whether there are so many or not: no branch to guess wrong
                work[count + k] = at + trailing_zeros(bits)
                bits &= bits - _1
        count += number
        at += _64
    return count


@jit
def next_stops(text, at, end, work, mark, marks):
    """Go on to the first of the stops that is not before ``at``; where few are left, more are found."""
    while mark < marks and work[mark] < at:
        mark += _1
    if mark + _2 >= marks and _LITTLE_ENDIAN:
        return STOPS, find_stops(text, at, end, work)
    return mark, marks


@intrinsic
def copy_name(typingctx: Any, text: Any, at: Any, length: Any, work: Any, place: Any) -> Any:
    """Copy ``text[at : at + length]`` to ``work[place]`` and the word after it, with zeros behind it; sixteen bytes
    of the text are read."""
    signature = types.void(text, types.uint64, types.uint64, work, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte = ir.VectorType(ir.IntType(8), _SIXTEEN)
        nothing = ir.Constant(byte, ir.Undefined)
        found = builder.load(_at(context, builder, sig.args[0], args[0], args[1], byte), align=1)
        one = builder.insert_element(nothing, builder.trunc(args[2], ir.IntType(8)), _word(0))
        limit = builder.shuffle_vector(one, nothing, _numbers(0))
        inside = builder.icmp_unsigned("<", ir.Constant(byte, list(range(_SIXTEEN))), limit)
        target = _at(context, builder, sig.args[3], args[3], args[4], byte)
        builder.store(builder.select(inside, found, ir.Constant(byte, [0] * _SIXTEEN)), target, align=8)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _hash_sixteen(typingctx: Any, work: Any, start: Any, hashes: Any, slots: Any, at: Any) -> Any:
    """Hash the names ``start : start + 16`` of a batch into ``hashes[at : at + 16]``; their slots go to ``slots``."""
    signature = types.void(work, types.uint64, hashes, slots, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def shift(value: Any, count: int) -> Any:
            return builder.lshr(value, _numbers(count))

        def rotated(value: Any, count: int) -> Any:
            return builder.or_(builder.shl(value, _numbers(count)), shift(value, 32 - count))

        def times(value: Any, number: int) -> Any:
            return builder.mul(value, _numbers(number))

        def every(step: int, index: Any) -> list[Any]:
            """Each ``step``-th number of 32 bits from ``work[index]`` on: from the first on, from the second, …"""
            wide = ir.VectorType(_word, step * _SIXTEEN)
            loaded = builder.load(_at(context, builder, sig.args[0], args[0], index, wide), align=8)
            lanes = [ir.Constant(_vector, list(range(i, step * _SIXTEEN, step))) for i in range(step)]
            return [builder.shuffle_vector(loaded, ir.Constant(wide, ir.Undefined), each) for each in lanes]

        start = args[1]
        size = ir.IntType(64)
        parts = every(4, builder.mul(start, ir.Constant(size, 2)))
        shapes, h = every(2, builder.add(start, ir.Constant(size, int(SHAPES))))
        lengths = builder.and_(shapes, _numbers(255))
        for i, part in enumerate(parts):
            mixed = builder.xor(h, times(rotated(times(part, 0xCC9E2D51), 15), 0x1B873593))  # of no bytes: h
            whole = builder.add(times(rotated(mixed, 13), 5), _numbers(0xE6546B64))
            h = builder.select(builder.icmp_unsigned(">=", lengths, _numbers(4 * i + 4)), whole, mixed)
        h = builder.xor(h, lengths)
        h = times(builder.xor(h, shift(h, 16)), 0x85EBCA6B)
        h = times(builder.xor(h, shift(h, 13)), 0xC2B2AE35)
        h = builder.xor(h, shift(h, 16))
        h = builder.select(builder.icmp_unsigned("==", lengths, _numbers(int(HASHED))), parts[0], h)
        builder.store(h, _at(context, builder, sig.args[2], args[2], args[4], _vector), align=4)
        half = ir.VectorType(ir.IntType(16), _SIXTEEN)
        target = _at(context, builder, sig.args[3], args[3], args[4], half)
        builder.store(builder.trunc(shift(shapes, 8), half), target, align=2)
        return context.get_dummy_value()

    return signature, codegen


@inline_jit
def shape_of(slot, seed):
    """The shape of names of a slot, but for their lengths."""
    return np.uint64(slot) << _8 | np.uint64(seed) << _32


@inline_jit
def hash_batch(work, count, hashes, slots, at):
    """The hashes of the first ``count`` names go to ``hashes`` from ``at`` on, with anything up to 15 places behind."""
    for start in range(_0, count, _16):
        _hash_sixteen(work, start, hashes, slots, at + start)
