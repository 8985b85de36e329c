"""The compiled parser of Vowpal Wabbit's text: one pass over the bytes, names hashed on the way.

A line is ``label importance base 'tag |namespace:scale feature:value … |namespace …``. What comes out is for the
kernel ``settle``: of every feature its hash, its value times the scale, and the first byte of its namespace, by which
interactions name it.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.hashing import murmur, murmur_eight, murmur_end, murmur_tail
from steelyard.kernels.intrinsics import load_eight, trailing_zeros
from steelyard.kernels.layout import (
    BAD_BASE,
    BAD_LABEL,
    BAD_SCALE,
    BAD_VALUE,
    BAD_WEIGHT,
    DONE,
    HAS_BASE,
    LONE_RETURN,
    NO_BAR,
    NO_NAMESPACE,
    ODD_BASE,
    ODD_LABEL,
    ODD_SCALE,
    ODD_VALUE,
    ODD_WEIGHT,
    PARSE_LINES,
    PARSE_NAMES,
    PARSE_ODD,
    PARSE_PAIRS,
    PARSE_RESULT,
    PARSE_ROWS,
    PARSE_STOPPED,
    PARSE_WEIGHTED,
    TAB_IN_LABEL,
    TOO_MANY_WORDS,
)
from steelyard.kernels.parse import (
    _LITTLE_ENDIAN,
    COLON,
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    _few_digits,
    note_odd,
    number,
)

BAR, QUOTE = 124, 39
_0, _1, _2, _3, _7, _8, _9, _16, _64 = (np.uint64(i) for i in (0, 1, 2, 3, 7, 8, 9, 16, 64))
_BYTE, _TWO_BYTES, _DIGIT, _MINUS, _BLANK_BAR = (np.uint64(i) for i in (0xFF, 0xFFFF, 48, 45, 0x7C20))
_LOW = np.uint64(0xFFFFFFFF)
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_BLANKS, _COLONS, _BARS = np.uint64(0x2121212121212121), np.uint64(0x3A3A3A3A3A3A3A3A), np.uint64(0x7C7C7C7C7C7C7C7C)
_LATELY = np.uint64(0xFFFF)


@inline_jit
def _stops(byte):
    """Whether a byte ends a name or a number."""
    return byte == SPACE or byte == BAR or byte == NEWLINE or byte == COLON or byte == TAB or byte == RETURN


@inline_jit
def _marks(word):
    """The top bit of bytes that may end a name. The lowest that is marked is marked rightly: a borrow comes from one
    that is marked itself."""
    colons, bars = word ^ _COLONS, word ^ _BARS
    return (((word - _BLANKS) & ~word) | ((colons - _ONES) & ~colons) | ((bars - _ONES) & ~bars)) & _TOPS


@inline_jit
def _ends_short(byte):
    """Whether a byte ends a name that has no value."""
    return byte == SPACE or byte == NEWLINE or byte == BAR


@inline_jit
def _short_name(text, at, end, seed, hash_all):
    """(how long it is, its hash) of a name of 1 to 15 bytes, no number and without a value, which are most; else 0.

    Two words of eight bytes are all that is looked at.
    """
    if not _LITTLE_ENDIAN or at + _16 > end:
        return _0, _0
    word = load_eight(text, at)
    if not hash_all and (word & _BYTE) - _DIGIT <= _9:
        return _0, _0
    bits = trailing_zeros(_marks(word)) & ~_7
    if bits == _0:  # the next namespace
        return _0, _0
    if bits < _64:
        h, length = murmur_tail(seed, word, bits), bits >> _3
        stop = (word >> bits) & _BYTE
    else:
        other = load_eight(text, at + _8)
        bits = trailing_zeros(_marks(other)) & ~_7
        if bits == _64:
            return _0, _0
        h, length = murmur_tail(murmur_eight(seed, word), other, bits), _8 + (bits >> _3)
        stop = (other >> bits) & _BYTE
    return (length if _ends_short(stop) else _0), murmur_end(h, length)


@inline_jit
def _short_label(text, at, end):
    """(bytes, label) of a label of one digit before a bar, which most are, with a sign or without; 0 bytes where it is
    another one."""
    if not _LITTLE_ENDIAN or at + _8 > end:
        return _0, 0.0
    word = load_eight(text, at)
    signed = (word & _BYTE) == _MINUS
    rest = word >> _8 if signed else word
    digit = (rest & _BYTE) - _DIGIT
    if digit > _9 or (rest >> _8) & _TWO_BYTES != _BLANK_BAR:
        return _0, 0.0
    return (_3 if signed else _2), (-np.float64(digit) if signed else np.float64(digit))


@jit
def _token_end(text, at, end):
    """Where a name or a number ends, eight bytes at a time; other control characters are part of it."""
    while True:
        while _LITTLE_ENDIAN and at + _8 <= end:
            word = load_eight(text, at)
            found = _marks(word)
            if found != _0:
                at += trailing_zeros(found) >> _3
                break
            at += _8
        while at < end and not _stops(text[at]):
            at += _1
            if _LITTLE_ENDIAN and text[at - _1] > SPACE and at + _8 <= end:
                break
        if at >= end or _stops(text[at]):
            return at


@jit
def _trimmed_hash(text, at, end, seed):
    """The hash of a name with control characters around it, which do not count."""
    while at < end and text[at] <= SPACE:
        at += _1
    while at < end and text[end - _1] <= SPACE:
        end -= _1
    total, stop = _few_digits(text, at, end, _0)
    return (total + seed) & _LOW if stop == end else murmur(text, at, end, seed)


@inline_jit
def _name_hash(text, at, end, seed, hash_all):
    """The hash of a name that is not empty; one of digits only is that number."""
    if not hash_all:
        if text[at] - np.uint8(48) <= 9:
            total, stop = _few_digits(text, at, end, _0)
            if stop == end:
                return (total + seed) & _LOW
        if text[at] <= SPACE or text[end - _1] <= SPACE:
            return _trimmed_hash(text, at, end, seed)
    return murmur(text, at, end, seed)


@jit
def _skip(text, at, end, byte):
    while at < end and text[at] == byte:
        at += _1
    return at


@jit
def _ends_line(text, at, end):
    """Whether a line ends here: with or without a carriage return, or with the text."""
    if at >= end or text[at] == NEWLINE:
        return True
    return text[at] == RETURN and (at + _1 >= end or text[at + _1] == NEWLINE)


@jit
def _is_tag(text, start, stop, end):
    """Whether a word before the bar is a tag: it touches the bar, or starts with a quote and is the last one."""
    if stop < end and text[stop] == BAR:
        return True
    if text[start] != QUOTE:
        return False
    after = _skip(text, stop, end, SPACE)
    return after < end and text[after] == BAR


@jit
def _word_end(text, at, end):
    """Where a word before the bar ends; colons are part of it."""
    at = _token_end(text, at, end)
    while at < end and text[at] == COLON:
        at = _token_end(text, at + _1, end)
    return at


@jit
def _words(text, at, end, row, y, weight, odd, odd_tokens):
    """What is before the bar: (result, where, how many numbers, odd tokens). Where is the bar, or what is wrong."""
    count = 0
    while True:
        at = _skip(text, at, end, SPACE)
        if _ends_line(text, at, end):
            return NO_BAR, at, count, odd_tokens
        if text[at] == BAR:
            return DONE, at, count, odd_tokens
        if text[at] == TAB:
            return TAB_IN_LABEL, at, count, odd_tokens
        start = at
        at = _word_end(text, at, end)
        if at == start:
            return LONE_RETURN, at, count, odd_tokens
        if _is_tag(text, start, at, end):
            return DONE, _skip(text, at, end, SPACE), count, odd_tokens
        if count == 3:
            return TOO_MANY_WORDS, start, count, odd_tokens
        value, stop, how = number(text, start, at)
        if how < 0 or stop != at:
            wrong = BAD_LABEL if count == 0 else (BAD_WEIGHT if count == 1 else BAD_BASE)
            return wrong, start, count, odd_tokens
        if how == 0:
            kind = ODD_LABEL if count == 0 else (ODD_WEIGHT if count == 1 else ODD_BASE)
            note_odd(odd, odd_tokens, kind, row, start, at)
            odd_tokens += 1
        if count == 0:
            y[row] = value
        elif count == 1:
            weight[row] = value
        count += 1


@jit
def _note_name(names, found, lately, index, space, space_end, name, name_end):
    """Note where the name of an index stands, unless it was noted lately; returns how many are noted."""
    place = index & _LATELY
    if lately[place] == np.uint32(index + _1) or found >= names.shape[0]:
        return found
    lately[place] = np.uint32(index + _1)
    names[found, 0], names[found, 1], names[found, 2] = index, space, space_end
    names[found, 3], names[found, 4] = name, name_end
    return found + 1


def parse_vw(
    text,
    letters,
    known,
    state,
    y,
    weight,
    lines,
    starts,
    hashes,
    values,
    slots,
    seen,
    odd,
    names,
    lately,
    bits,
    hash_all,
    with_base,
):
    """Parse all of ``text``. Row r has the features ``starts[r] : starts[r + 1]``; y is NaN where there is no label.

    ``letters`` has the hashes of all names of one byte, as namespaces have them. ``seen`` receives which first bytes of
    namespaces there are; ``names``, where ``known`` is not empty, (index, start and end of the namespace, start and end
    of the name) of features whose index is not known, as many as there is room for; ``lately`` is room for 2^16.

    ``state`` and ``odd`` are as in :func:`steelyard.kernels.parse.parse`. An odd scale is noted for every feature that
    it belongs to, and once more for none, -1; those features have a value without it. Where ``with_base``, an initial
    prediction may stand in a line, and is passed over.
    """
    at, row, count, odd_tokens, line, found, weighted = _0, 0, 0, 0, 0, 0, 0
    end, mask = np.uint64(text.size), (_1 << np.uint64(bits)) - _1
    result, stopped = DONE, _0
    starts[0] = 0
    if known.size > 0:
        lately[:] = 0
    while at < end:
        y[row], weight[row], lines[row] = np.nan, 1.0, np.int32(line)
        length, label = _short_label(text, at, end)
        if length > _0:
            y[row] = label
            at += length
        if text[at] != BAR:
            first = _skip(text, at, end, SPACE)
            if _ends_line(text, first, end):  # nothing but blanks: no row
                at = first + _1 if first >= end or text[first] == NEWLINE else first + _1 + _1
                line += 1
                continue
            result, at, words, odd_tokens = _words(text, first, end, row, y, weight, odd, odd_tokens)
            stopped = at
            if result != DONE:
                break
            if words == 3 and not with_base:
                result, stopped = HAS_BASE, first
                break
            weighted += words > 1
        while at < end and text[at] == BAR:  # a namespace
            at += _1
            space = at
            if at + _1 < end and text[at + _1] == SPACE and not _stops(text[at]):
                slot = text[at]
                seed = np.uint64(letters[slot])
                at += _1
            else:
                at = _token_end(text, at, end)
                slot, seed = np.uint8(SPACE), _0
                if at > space:
                    slot, seed = text[space], _name_hash(text, space, at, _0, hash_all)
                elif at < end and text[at] == COLON:
                    result, stopped = NO_NAMESPACE, at
                    break
            seen[slot] = 1
            space_end, scale, scale_start, scale_end = at, 1.0, _0, _0
            if at < end and text[at] == COLON:
                stopped = at + _1
                at = _token_end(text, stopped, end)
                scale, stop, how = number(text, stopped, at)
                if how < 0 or stop != at or (at < end and text[at] == COLON):
                    result = BAD_SCALE
                    break
                if how == 0:
                    scale, scale_start, scale_end = 1.0, stopped, at
                    note_odd(odd, odd_tokens, ODD_SCALE, -1, stopped, at)
                    odd_tokens += 1
            anonymous = _0
            while True:  # a feature
                if at < end and text[at] == SPACE and scale_end == _0:
                    length, h = _short_name(text, at + _1, end, seed, hash_all)
                    if length > _0:
                        name = at + _1
                        at = name + length
                        hashes[count], values[count], slots[count] = np.uint32(h), scale, np.uint16(slot)
                        count += 1
                        if known.size > 0 and known[h & mask] == 0:
                            found = _note_name(names, found, lately, h & mask, space, space_end, name, at)
                        continue
                while at < end and (text[at] == SPACE or text[at] == TAB):
                    at += _1
                if at >= end or text[at] == NEWLINE or text[at] == BAR or text[at] == RETURN:
                    break
                name = at
                at = _token_end(text, at, end)
                name_end = at
                if at > name:
                    h = _name_hash(text, name, at, seed, hash_all)
                else:
                    h = (seed + anonymous) & _LOW
                    anonymous += _1
                value = scale
                if at < end and text[at] == COLON:
                    stopped = at + _1
                    at = _token_end(text, stopped, end)
                    value, stop, how = number(text, stopped, at)
                    if how < 0 or stop != at or (at < end and text[at] == COLON):
                        result = BAD_VALUE
                        break
                    value *= scale
                    if how == 0:
                        value = scale
                        note_odd(odd, odd_tokens, ODD_VALUE, count, stopped, at)
                        odd_tokens += 1
                if scale_end > _0:
                    note_odd(odd, odd_tokens, ODD_SCALE, count, scale_start, scale_end)
                    odd_tokens += 1
                hashes[count], values[count], slots[count] = np.uint32(h), value, np.uint16(slot)
                count += 1
                if known.size > 0 and known[h & mask] == 0:
                    found = _note_name(names, found, lately, h & mask, space, space_end, name, name_end)
            if result != DONE:
                break
        if result != DONE:
            break
        if not _ends_line(text, at, end):
            result, stopped = LONE_RETURN, at
            break
        at += _1 if at >= end or text[at] == NEWLINE else _1 + _1
        row += 1
        line += 1
        starts[row] = count
    state[PARSE_RESULT], state[PARSE_STOPPED] = result, stopped
    state[PARSE_ROWS], state[PARSE_PAIRS], state[PARSE_LINES] = row, count, line
    state[PARSE_ODD], state[PARSE_NAMES], state[PARSE_WEIGHTED] = odd_tokens, found, weighted
