"""MurmurHash3 of names, as Vowpal Wabbit and scikit-learn have it, inside kernels and for a column of names."""

from __future__ import annotations

import sys

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.intrinsics import load_four

_LITTLE_ENDIAN = sys.byteorder == "little"
_1, _2, _3, _4, _8 = (np.uint64(i) for i in (1, 2, 3, 4, 8))
_LOW = np.uint64(0xFFFFFFFF)  # of a product in 64 bits, what one in 32 bits would be
_C1, _C2, _N, _M1, _M2 = (np.uint64(i) for i in (0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35))
_5, _13, _15, _16, _17, _19, _24, _31, _32 = (np.uint64(i) for i in (5, 13, 15, 16, 17, 19, 24, 31, 32))


@jit
def _mixed(k):
    k = (k * _C1) & _LOW
    k = ((k << _15) | (k >> _17)) & _LOW
    return (k * _C2) & _LOW


@jit
def _four(text, at):
    if _LITTLE_ENDIAN:
        return np.uint64(load_four(text, at))
    return (
        np.uint64(text[at])
        | np.uint64(text[at + _1]) << _8
        | np.uint64(text[at + _2]) << _16
        | np.uint64(text[at + _3]) << _24
    )


@jit
def murmur(text, at, end, seed):
    """The 32-bit MurmurHash3 of ``text[at:end]``; positions, seed and result are ``uint64``."""
    return murmur_on(text, at, end, seed & _LOW, end - at)


@jit
def murmur_begin(text, at, end):
    """How far the hash of ``text[at:end]`` from the seed 0 comes with all but its last 0 to 3 bytes."""
    h = np.uint64(0)
    while at + _4 <= end:
        h = _with_four(h, text, at)
        at += _4
    return h


@jit
def _with_four(h, text, at):
    h ^= _mixed(_four(text, at))
    h = ((h << _13) | (h >> _19)) & _LOW
    return (h * _5 + _N) & _LOW


@jit
def murmur_on(text, at, end, h, length):
    """Go on with ``text[at:end]`` where the hash has come to ``h``, to the end of so many bytes in all."""
    while at + _4 <= end:
        h = _with_four(h, text, at)
        at += _4
    rest = end - at
    if rest > np.uint64(0):
        k = np.uint64(text[at])
        if rest > _1:
            k |= np.uint64(text[at + _1]) << _8
        if rest > _2:
            k |= np.uint64(text[at + _2]) << _16
        h ^= _mixed(k)
    return murmur_end(h, length)


@inline_jit
def murmur_tail(h, word, bits):
    """Go on with the lowest ``bits`` bits of ``word``, 0 to 7 bytes, the first lowest: without a branch."""
    has_four = bits >= _32
    whole = h ^ _mixed(word & _LOW)
    whole = ((whole << _13) | (whole >> _19)) & _LOW
    h = ((whole * _5 + _N) & _LOW) if has_four else h
    rest = (word >> _32) if has_four else word
    return h ^ _mixed(rest & ((_1 << (bits & _31)) - _1))  # of no bytes it is 0


@inline_jit
def murmur_eight(h, word):
    """Go on with the eight bytes of ``word``, the first lowest."""
    for half in (word & _LOW, word >> _32):
        h ^= _mixed(half)
        h = ((h << _13) | (h >> _19)) & _LOW
        h = (h * _5 + _N) & _LOW
    return h


@inline_jit
def murmur_end(h, length):
    """The hash, after all bytes of a name of so many."""
    h ^= length
    h ^= h >> _16
    h = (h * _M1) & _LOW
    h ^= h >> _13
    h = (h * _M2) & _LOW
    return h ^ (h >> _16)


def hash_names(text, ends, seeds, hashes):
    """The hash of every name: name i is ``text[ends[i] : ends[i + 1]]``, and starts from ``seeds[i]``."""
    for i in range(hashes.size):
        hashes[i] = np.uint32(murmur(text, np.uint64(ends[i]), np.uint64(ends[i + 1]), np.uint64(seeds[i])))
