"""MurmurHash3, 32 bits, as its author describes it, in plain Python."""

from __future__ import annotations


def _rotated(x, by):
    return (x << by | x >> (32 - by)) % 2**32


def murmur3(data, seed=0):
    h, size = seed, len(data)
    for at in range(0, size, 4):
        part = data[at : at + 4]
        k = int.from_bytes(part, "little") * 0xCC9E2D51 % 2**32
        h ^= _rotated(k, 15) * 0x1B873593 % 2**32
        if len(part) == 4:
            h = (_rotated(h, 13) * 5 + 0xE6546B64) % 2**32
    h ^= size
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor % 2**32
    return h
