"""A slow reader of Vowpal Wabbit's text, written from the format's description and for nothing but to be read."""

from __future__ import annotations

import itertools
import math
import re

from sklearn.utils import murmurhash3_32

PRIME = 16777619
NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|infinity|nan)", re.IGNORECASE)


class Refused(Exception):
    """The line is not in the format."""


def number(token):
    if not NUMBER.fullmatch(token):
        raise Refused(token)
    return float(token)


def hashed(name, seed, hash_all):
    if not hash_all:
        name = name.strip(bytes(range(33)))
        if all(48 <= byte <= 57 for byte in name):
            return (int(name or b"0") + seed) % 2**32
    return murmurhash3_32(name, seed, positive=True)


def before_the_bar(text, ignore_base):
    """Label, or NaN, and importance."""
    if b"\t" in text or b"\r" in text:
        raise Refused(text)
    words = [word for word in text.split(b" ") if word]
    if words and (not text.endswith(b" ") or words[-1].startswith(b"'")):
        words.pop()
    if len(words) > (3 if ignore_base else 2):
        raise Refused(text)
    numbers = [number(word) for word in words]
    if numbers and math.isnan(numbers[0]):
        raise Refused(text)
    return (numbers[0] if numbers else math.nan), (numbers[1] if len(numbers) > 1 else 1.0)


def features(text, hash_all):
    """(first byte of the namespace, hash, value) of each, from what follows the first bar."""
    found = []
    for space in text.split(b"|"):
        words = re.split(rb"[ \t]", space)
        name, *scale = words[0].split(b":")
        if len(scale) > 1 or (scale and not name):
            raise Refused(space)
        factor = number(scale[0]) if scale else 1.0
        seed = hashed(name, 0, hash_all) if name else 0
        anonymous = 0
        for word in filter(None, words[1:]):
            feature, *value = word.split(b":")
            if len(value) > 1:
                raise Refused(word)
            if feature:
                index = hashed(feature, seed, hash_all)
            else:
                index, anonymous = (seed + anonymous) % 2**32, anonymous + 1
            found.append((name[:1] or b" ", index, factor * (number(value[0]) if value else 1.0)))
    return found


def crossed(found, pair):
    """The products of two namespaces, by their first letters."""
    first, second = ([each[1:] for each in found if each[0] == letter] for letter in pair)
    pairs = itertools.product(first, second)
    if pair[0] == pair[1]:
        pairs = itertools.combinations_with_replacement(first, 2)
    return [(((PRIME * i) ^ j) % 2**32, v * w) for (i, v), (j, w) in pairs]


def read_line(line, bits=18, pairs=(), hash_all=False, ignore_base=False):
    """(label, importance, {index: value}) of a line without its end; None where it is empty. Zeros are left out."""
    if not line.strip(b" "):
        return None
    if b"|" not in line or b"\r" in line:
        raise Refused(line)
    head, _, tail = line.partition(b"|")
    label, importance = before_the_bar(head, ignore_base)
    found = features(tail, hash_all)
    row = {}
    for index, value in [each[1:] for each in found] + [each for pair in pairs for each in crossed(found, pair)]:
        if value != 0.0:
            row[index % 2**bits] = row.get(index % 2**bits, 0.0) + value
    return label, importance, row


def read(text, **options):
    """All the rows of a text."""
    lines = text.split(b"\n")
    rows = [read_line(line.removesuffix(b"\r"), **options) for line in lines]
    return [row for row in rows if row is not None]
