"""The compiled parser of JSON lines: one pass over the bytes of a stretch, for objects of texts, numbers, truth values
and nulls under keys that are known. A stretch with anything else is left to Python, which also says what is wrong.
"""

from __future__ import annotations

import sys

import numpy as np

from steelyard.kernels.compile import jit
from steelyard.kernels.hashing import murmur_begin, murmur_on
from steelyard.kernels.intrinsics import load_eight, trailing_zeros
from steelyard.kernels.layout import (
    CELL_DROPPED,
    CELL_LABEL,
    CELL_LABEL_TEXT,
    CELL_NUMBER,
    CELL_TEXT,
    CELL_WEIGHT,
    CSV_DONE,
    CSV_FEATURES,
    CSV_LABELS,
    CSV_LINES,
    CSV_MISSING,
    CSV_ODD,
    CSV_RESULT,
    CSV_ROWS,
    CSV_WEIGHTED,
    JSON_OTHER,
)
from steelyard.kernels.parse import NEWLINE, RETURN, SPACE, TAB, number
from steelyard.kernels.parse_csv import BEFORE, QUOTE, _is_word, _label_place

BACKSLASH, OPEN, CLOSE, COMMA, COLON, MINUS, PLUS, POINT = 92, 123, 125, 44, 58, 45, 43, 46
_0, _1, _2, _3, _4, _8 = (np.uint64(i) for i in (0, 1, 2, 3, 4, 8))
_ONES, _TOP_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_LITTLE_ENDIAN = sys.byteorder == "little"
_TRUE, _FALSE, _NULL = (np.uint64(int.from_bytes(word, "little")) for word in (b"true", b"false", b"null"))
_MOST_DIGITS = np.uint64(1000)  # Python refuses whole numbers of some thousands
TEXT, NUMBER, WHOLE, YES, NO, NOTHING, OTHER = range(7)  # what a value is


@jit
def _blank(text, at, end):
    while at < end and (text[at] == SPACE or text[at] == TAB or text[at] == RETURN):
        at += _1
    return at


@jit
def _plain_end(text, at, end):
    """The first quote, backslash or control character from here on. Eight bytes at a time."""
    quotes, slashes, blanks = np.uint64(QUOTE) * _ONES, np.uint64(BACKSLASH) * _ONES, np.uint64(SPACE) * _ONES
    while _LITTLE_ENDIAN and at + _8 <= end:
        block = load_eight(text, at)
        x, y = block ^ quotes, block ^ slashes
        found = (((x - _ONES) & ~x) | ((y - _ONES) & ~y) | ((block - blanks) & ~block)) & _TOP_BITS
        if found != _0:
            return at + (trailing_zeros(found) >> _3)
        at += _8
    while at < end and text[at] != QUOTE and text[at] != BACKSLASH and text[at] >= SPACE:
        at += _1
    return at


@jit
def _text_end(text, at, end):
    """(where a text ends that begins here, after its quote; whether there are backslashes in it). The end of all, where
    it does not end."""
    escaped = False
    while True:
        at = _plain_end(text, at, end)
        if at >= end or text[at] < SPACE:
            return end, escaped
        if text[at] == QUOTE:
            return at, escaped
        escaped = True
        at += _2


@jit
def _hex(text, at, end):
    """The number that four hexadecimal digits say, or -1."""
    if at + _4 > end:
        return -1
    value = 0
    for i in range(4):
        byte = text[at + np.uint64(i)]
        if 48 <= byte <= 57:
            digit = byte - 48
        elif 97 <= byte | 32 <= 102:
            digit = (byte | 32) - 87
        else:
            return -1
        value = 16 * value + np.int64(digit)
    return value


@jit
def _plain_byte(byte):
    """What a letter after a backslash stands for; 0 for none."""
    if byte == QUOTE or byte == BACKSLASH or byte == 47:
        return byte
    if byte == 98:
        return np.uint8(8)
    if byte == 102:
        return np.uint8(12)
    if byte == 110:
        return np.uint8(10)
    if byte == 114:
        return np.uint8(13)
    return np.uint8(9) if byte == 116 else np.uint8(0)


@jit
def _put_character(code, scratch, at):
    """A character in UTF-8; returns where it ends."""
    if code < 0x80:
        scratch[at] = code
        return at + 1
    size = 2 if code < 0x800 else (3 if code < 0x10000 else 4)
    for i in range(size - 1, 0, -1):
        scratch[at + i] = 0x80 | (code & 0x3F)
        code >>= 6
    scratch[at] = ((0xF00 >> size) & 0xFF) | code
    return at + size


@jit
def _unescape(text, at, end, scratch):
    """Copy a text with backslashes to ``scratch``; its size, or -1 where it is left to Python."""
    size = BEFORE
    while at < end:
        byte = text[at]
        if byte != BACKSLASH:
            scratch[size] = byte
            size += 1
            at += _1
            continue
        byte = text[at + _1]  # there is one: a text does not end after a backslash
        at += _2
        if byte != 117:
            plain = _plain_byte(byte)
            if plain == 0:
                return -1
            scratch[size] = plain
            size += 1
            continue
        code = _hex(text, at, end)
        at += _4
        if 0xD800 <= code <= 0xDFFF:  # half of a character
            if code > 0xDBFF or at + _2 > end or text[at] != BACKSLASH or text[at + _1] != 117:
                return -1
            other = _hex(text, at + _2, end)
            if not 0xDC00 <= other <= 0xDFFF:
                return -1
            code = 0x10000 + ((code - 0xD800) << 10) + (other - 0xDC00)
            at += _2 + _4
        if code < 0:
            return -1
        size = _put_character(code, scratch, size)
    return size - BEFORE


@jit
def _digits_end(text, at, end):
    while at < end and 48 <= text[at] <= 57:
        at += _1
    return at


@jit
def _number_end(text, at, end):
    """(where a number of JSON ends, whether it is a whole one); where it begins, if there is none."""
    start = at
    if text[at] == MINUS:
        at += _1
    stop = _digits_end(text, at, end)
    if stop == at or (text[at] == 48 and stop > at + _1):
        return start, False
    at, whole = stop, True
    if at < end and text[at] == POINT:
        stop = _digits_end(text, at + _1, end)
        if stop == at + _1:
            return start, False
        at, whole = stop, False
    if at < end and text[at] | 32 == 101:
        at += _1
        if at < end and (text[at] == MINUS or text[at] == PLUS):
            at += _1
        stop = _digits_end(text, at, end)
        if stop == at:
            return start, False
        at, whole = stop, False
    return at, whole


@jit
def _value(text, at, end):
    """(what stands here, where it begins, where it ends, where to go on, whether it has backslashes)."""
    if at >= end:
        return OTHER, at, at, at, False
    byte = text[at]
    if byte == QUOTE:
        stop, escaped = _text_end(text, at + _1, end)
        return (TEXT if stop < end else OTHER), at + _1, stop, stop + _1, escaped
    if byte == MINUS or 48 <= byte <= 57:
        stop, whole = _number_end(text, at, end)
        return (OTHER if stop == at else (WHOLE if whole else NUMBER)), at, stop, stop, False
    if byte >= 97 and at + _4 <= end:  # _is_word takes letters of either case, JSON small ones only
        if byte == 116 and _is_word(text, at, 4, _TRUE) and _is_small(text, at, _4):
            return YES, at, at + _4, at + _4, False
        if byte == 110 and _is_word(text, at, 4, _NULL) and _is_small(text, at, _4):
            return NOTHING, at, at + _4, at + _4, False
        if byte == 102 and at + _4 < end and _is_word(text, at, 5, _FALSE) and _is_small(text, at, _4 + _1):
            return NO, at, at + _4 + _1, at + _4 + _1, False
    return OTHER, at, at, at, False


@jit
def _is_small(text, at, size):
    small = True
    for i in range(size):
        small &= text[at + np.uint64(i)] >= 97
    return small


@jit
def _is_key(text, at, size, keys, begin, stop):
    same = np.int64(size) == stop - begin
    i = 0
    while same and i < stop - begin:
        same = text[at + np.uint64(i)] == keys[begin + i]
        i += 1
    return same


@jit
def _find_key(text, at, size, keys, key_ends, guess):
    """Which key stands here, -1 for none of them; ``guess`` is tried first."""
    count = key_ends.size - 1
    if guess < count and _is_key(text, at, size, keys, key_ends[guess], key_ends[guess + 1]):
        return guess
    for k in range(count):
        if _is_key(text, at, size, keys, key_ends[k], key_ends[k + 1]):
            return k
    return -1


@jit
def _copy(text, at, end, scratch):
    size = np.int64(end - at)
    for i in range(size):
        scratch[BEFORE + i] = text[at + np.uint64(i)]
    return size


@jit
def _written(text, kind, start, stop, escaped, scratch):
    """Put the text that a value means into ``scratch``; its size, or -1 where it is left to Python."""
    if kind == TEXT and escaped:
        return _unescape(text, start, stop, scratch)
    if kind == NUMBER:  # Python writes it in its own way
        return -1
    if kind == WHOLE and ((text[start] == MINUS and text[start + _1] == 48) or stop - start > _MOST_DIGITS):
        return -1
    return _copy(text, start, stop, scratch)


@jit
def _hash_text(names, begin, stop, head, scratch, size):
    """The hash of the name of a column, as far as ``head`` does not have it, and of a text in ``scratch``."""
    length = np.uint64(stop - begin)
    rest = np.int64(length & _3)
    for i in range(rest):
        scratch[BEFORE - rest + i] = names[stop - rest + i]
    return murmur_on(scratch, np.uint64(BEFORE - rest), np.uint64(BEFORE + size), head, length + np.uint64(size))


@jit
def _note(odd, place, role, key, index, start, stop):
    if place < odd.shape[0]:
        odd[place, 0], odd[place, 1], odd[place, 2] = role, key, index
        odd[place, 3], odd[place, 4] = start, stop
    return place + 1


def parse_json(
    text,
    state,
    keys,
    key_ends,
    roles,
    slots,
    follows,
    stamps,
    names,
    name_ends,
    heads,
    dense,
    bits,
    known,
    y,
    weight,
    lines,
    starts,
    hashes,
    values,
    features,
    there,
    cells,
    amounts,
    scratch,
    labels,
    label_ends,
    table,
    odd,
):
    """Parse the rows of ``text``; ``state`` receives what is found, as ``layout`` has it for CSV.

    Key k is ``keys[key_ends[k] : key_ends[k + 1]]``, has its role (``CELL_…``) in ``roles``, its number among the
    features in ``slots``, and ``follows[k]`` is the key that came after it last, ``follows[-1]`` the first. ``stamps``
    and, a feature column each, ``there``, ``cells`` and ``amounts`` are for what a row has. All else is as for
    :func:`steelyard.kernels.parse_csv.parse_csv`, with keys for columns; a text is noted in ``odd`` with its hash.
    """
    end, mask = np.uint64(text.size), (_1 << np.uint64(bits)) - _1
    n_keys, n_features = key_ends.size - 1, name_ends.size - 1
    at, line, row, count, odd_tokens, missing, n_labels, weighted = _0, 0, 0, 0, 0, 0, 0, 0
    result = CSV_DONE
    stamps[:], there[:] = 0, 0
    for slot in range(n_features):
        begin, stop = np.uint64(name_ends[slot]), np.uint64(name_ends[slot + 1])
        heads[slot] = murmur_begin(names, begin, stop)
        rest = (stop - begin) & _3
        heads[n_features + slot] = murmur_on(names, stop - rest, stop, heads[slot], stop - begin)
    label_ends[0] = 0
    starts[0] = 0
    while at < end:
        at = _blank(text, at, end)
        if at >= end:
            break
        if text[at] == NEWLINE:
            at += _1
            line += 1
            continue
        if text[at] != OPEN:
            result = JSON_OTHER
            break
        y[row], weight[row] = np.nan, 1.0
        row_odd, last = odd_tokens, n_keys
        at = _blank(text, at + _1, end)
        ended = at < end and text[at] == CLOSE
        while not ended:
            if at >= end or text[at] != QUOTE:
                result = JSON_OTHER
                break
            stop, escaped = _text_end(text, at + _1, end)
            if stop >= end or escaped:
                result = JSON_OTHER
                break
            key = _find_key(text, at + _1, stop - at - _1, keys, key_ends, follows[last])
            at = _blank(text, stop + _1, end)
            if key < 0 or stamps[key] == row + 1 or at >= end or text[at] != COLON:
                result = JSON_OTHER
                break
            follows[last], stamps[key], last = key, row + 1, key
            kind, start, stop, at, escaped = _value(text, _blank(text, at + _1, end), end)
            role, slot = roles[key], slots[key]
            wrong = kind == OTHER
            if not wrong and role == CELL_DROPPED:
                if escaped:
                    wrong = _unescape(text, start, stop, scratch) < 0
                elif kind == WHOLE:
                    wrong = stop - start > _MOST_DIGITS
            if wrong:
                result = JSON_OTHER
                break
            if role == CELL_TEXT or role == CELL_LABEL_TEXT:
                size = 0 if kind == NOTHING else _written(text, kind, start, stop, escaped, scratch)
                if size < 0:
                    result = JSON_OTHER
                    break
                if size > 0 and role == CELL_LABEL_TEXT:
                    place = _label_place(scratch, size, table, labels, label_ends, n_labels)
                    if place < 0:
                        result = JSON_OTHER
                        break
                    n_labels = max(n_labels, place + 1)
                    y[row] = np.float64(place)
                elif size > 0:
                    h = _hash_text(names, name_ends[slot], name_ends[slot + 1], heads[slot], scratch, size)
                    there[slot], cells[slot], amounts[slot] = row + 1, h, 1.0
                    if known.size > 0 and known[h & mask] == 0:
                        known[h & mask] = 1
                        odd_tokens = _note(odd, odd_tokens, role, key, np.int64(h), start, stop)
            elif role != CELL_DROPPED and kind != NOTHING:
                if kind == TEXT:
                    result = JSON_OTHER
                    break
                value, how = (1.0 if kind == YES else 0.0), 1
                if kind == NUMBER or kind == WHOLE:
                    value, _, how = number(text, start, stop)
                    if kind == WHOLE:
                        value += 0.0  # a whole number has no -0
                if how != 1:
                    odd_tokens = _note(odd, odd_tokens, role, key, slot if role == CELL_NUMBER else row, start, stop)
                if role == CELL_NUMBER:
                    there[slot], cells[slot], amounts[slot] = row + 1, heads[n_features + slot], value
                elif role == CELL_LABEL:
                    y[row] = value
                elif role == CELL_WEIGHT:
                    weight[row] = value
                    weighted += 1
            at = _blank(text, at, end)
            if at < end and text[at] == COMMA:
                at = _blank(text, at + _1, end)
                continue
            ended = at < end and text[at] == CLOSE
            if not ended:
                result = JSON_OTHER
                break
        if result == CSV_DONE:
            at = _blank(text, at + _1, end)
            if (at < end and text[at] != NEWLINE) or (dense and (row + 1) * n_features > values.size):
                result = JSON_OTHER
        if result != CSV_DONE:
            break
        for slot in range(n_features):  # in the order of the columns, whatever that of the keys is
            found = there[slot] == row + 1
            missing += not found
            if dense:
                there[slot] = row * n_features + slot
                values[there[slot]] = amounts[slot] if found else 0.0
            elif found:
                hashes[count], values[count], features[count] = np.uint32(cells[slot]), amounts[slot], np.uint16(slot)
                there[slot] = count
                count += 1
        for place in range(row_odd, min(odd_tokens, odd.shape[0])):
            if odd[place, 0] == CELL_NUMBER:
                odd[place, 2] = there[odd[place, 2]]
        there[:] = 0
        lines[row] = np.int32(line)
        row += 1
        starts[row] = count
    state[CSV_RESULT], state[CSV_ROWS], state[CSV_FEATURES], state[CSV_ODD] = result, row, count, odd_tokens
    state[CSV_LINES], state[CSV_MISSING], state[CSV_LABELS] = line, missing, n_labels
    state[CSV_WEIGHTED] = weighted
