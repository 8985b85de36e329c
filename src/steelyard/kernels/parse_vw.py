"""The compiled parser of Vowpal Wabbit's text: one pass over the bytes, names hashed on the way.

A line is ``label importance base 'tag |namespace:scale feature:value … |namespace …``. What comes out is for the
kernel ``settle``: of every feature its hash, its value times the scale, and the first byte of its namespace, by which
interactions name it.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.hashing import murmur
from steelyard.kernels.intrinsics import load_eight, trailing_zeros
from steelyard.kernels.layout import (
    BAD_BASE,
    BAD_LABEL,
    BAD_SCALE,
    BAD_VALUE,
    BAD_WEIGHT,
    BATCH,
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
from steelyard.kernels.short_names import HASHED, PLACES, SHAPES, STOPS, copy_name, hash_batch, next_stops, shape_of

BAR, QUOTE = 124, 39
_0, _1, _2, _3, _8, _9, _15, _16, _32 = (np.uint64(i) for i in (0, 1, 2, 3, 8, 9, 15, 16, 32))
_BATCH = np.uint64(BATCH)
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
def _is_name(text, at, end, hash_all):
    """Whether a name is hashed as it stands: no number, and no control characters around it."""
    if text[at] <= SPACE or text[end - _1] <= SPACE:
        return False
    return hash_all or text[at] - np.uint8(48) > 9


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
def _note_names(names, found, lately, known, mask, hashes, first, count, text, work):
    """Note where the names of a batch stand whose indices are not known, each once; returns how many are noted.

    A name that finds no room comes after as many others: what is noted does not depend on how many are known already.
    """
    end = np.uint64(text.size)
    for i in range(count):
        index = np.uint64(hashes[first + i]) & mask
        if known[index] != 0 or found >= names.shape[0]:
            continue
        slot = index & _LATELY
        while lately[slot] != 0 and lately[slot] != np.uint32(index + _1):  # few of its places are taken
            slot = (slot + _1) & _LATELY
        if lately[slot] == 0:
            lately[slot] = np.uint32(index + _1)
            name, space = work[PLACES + i] & _LOW, work[PLACES + i] >> _32
            names[found, 0], names[found, 1], names[found, 2] = index, space, _token_end(text, space, end)
            names[found, 3], names[found, 4] = name, _token_end(text, name, end)
            found += 1
    return found


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
    work,
    bits,
    hash_all,
    with_base,
):
    """Parse all of ``text``. Row r has the features ``starts[r] : starts[r + 1]``; y is NaN where there is no label.

    ``letters`` has the hashes of all names of one byte, as namespaces have them. ``seen`` receives which first bytes of
    namespaces there are; ``names``, where ``known`` is not empty, (index, start and end of the namespace, start and end
    of the name) of features whose index is not known, as many as there is room for; ``lately`` is room for 2^16.
    ``work`` is for names that wait to be hashed (:mod:`steelyard.kernels.short_names`). ``hashes`` and ``slots`` have
    room for 16 more than there can be.

    ``state`` and ``odd`` are as in :func:`steelyard.kernels.parse.parse`. An odd scale is noted for every feature that
    it belongs to, and once more for none, -1; those features have a value without it. Where ``with_base``, an initial
    prediction may stand in a line, and is passed over.
    """
    at, row, count, odd_tokens, line, found, weighted = _0, 0, _0, 0, 0, 0, 0
    end, mask = np.uint64(text.size), (_1 << np.uint64(bits)) - _1
    result, stopped = DONE, _0
    starts[0] = 0
    numbers = np.uint8(0 if hash_all else 10)  # digits with which a name is not a plain one
    done, full = _0, _BATCH  # of the features: the names of those from ``done`` on wait to be hashed, up to ``full``
    mark, marks = STOPS, STOPS  # where in ``work`` the next stop is, and where they end
    noting = known.size > 0
    if noting:
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
            result, at, given, odd_tokens = _words(text, first, end, row, y, weight, odd, odd_tokens)
            stopped = at
            if result != DONE:
                break
            if given == 3 and not with_base:
                result, stopped = HAS_BASE, first
                break
            weighted += given > 1
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
            shape, place = shape_of(slot, seed), space << _32
            scale, scale_start, scale_end = 1.0, _0, _0
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
                if count == full:
                    hash_batch(work, full - done, hashes, slots, done)
                    if noting:
                        found = _note_names(names, found, lately, known, mask, hashes, done, full - done, text, work)
                    done, full = count, count + _BATCH
                if mark + _2 >= marks or work[mark] != at:
                    mark, marks = next_stops(text, at, end, work, mark, marks)
                quick = mark + _2 < marks and scale_end == _0 and text[at] == SPACE
                while quick and mark + _2 < marks and count < full:  # names without values, and namespaces of a letter
                    name, name_end = at + _1, work[mark + _1]
                    length = name_end - name
                    if length - _1 < _15:
                        quick = text[name_end] == SPACE
                        if text[name] - np.uint8(48) < numbers or not (quick or _ends_short(text[name_end])):
                            break
                        at = name_end
                        mark += _1
                        batch = count - done
                        copy_name(text, name, length, work, _2 * batch)
                        work[SHAPES + batch], work[PLACES + batch] = length | shape, name | place
                        values[count] = scale
                        count += _1
                    else:
                        if (
                            length != _0
                            or text[name] != BAR
                            or work[mark + _2] != name + _2
                            or text[name + _2] != SPACE
                        ):
                            break
                        letter = text[name + _1]
                        shape, place = shape_of(letter, letters[letter]), (name + _1) << _32
                        scale, anonymous = 1.0, _0
                        seen[letter] = 1
                        at = name + _2
                        mark += _2
                while at < end and (text[at] == SPACE or text[at] == TAB):
                    at += _1
                if at >= end or text[at] == NEWLINE or text[at] == BAR or text[at] == RETURN:
                    break
                if count == full:
                    continue
                name = at
                at = _token_end(text, at, end)
                length, batch = at - name, count - done
                if length == _0:
                    h = ((shape >> _32) + anonymous) & _LOW
                    anonymous += _1
                elif length < _16 and at + _16 <= end and _LITTLE_ENDIAN and _is_name(text, name, at, hash_all):
                    h = _0
                    copy_name(text, name, length, work, _2 * batch)
                else:
                    h = _name_hash(text, name, at, shape >> _32, hash_all)
                    length = HASHED
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
                        note_odd(odd, odd_tokens, ODD_VALUE, np.int64(count), stopped, at)
                        odd_tokens += 1
                if scale_end > _0:
                    note_odd(odd, odd_tokens, ODD_SCALE, np.int64(count), scale_start, scale_end)
                    odd_tokens += 1
                if length == _0 or length == HASHED:
                    work[_2 * batch], length = h, HASHED
                work[SHAPES + batch], work[PLACES + batch] = length | shape, name | place
                values[count] = value
                count += _1
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
    hash_batch(work, count - done, hashes, slots, done)
    if noting:
        found = _note_names(names, found, lately, known, mask, hashes, done, count - done, text, work)
    state[PARSE_RESULT], state[PARSE_STOPPED] = result, stopped
    state[PARSE_ROWS], state[PARSE_PAIRS], state[PARSE_LINES] = row, count, line
    state[PARSE_ODD], state[PARSE_NAMES], state[PARSE_WEIGHTED] = odd_tokens, found, weighted
