"""The compiled LIBSVM parser: one pass over the bytes of a file.

A number of up to 18 digits whose mantissa fits in 53 bits and whose decimal exponent is at most 22 in size
is exact after one multiplication or division by a power of ten (Clinger, 1990). Any other token is left to Python's
own ``float``: its place is noted, and it is patched in afterwards.
"""

from __future__ import annotations

import sys

import numpy as np

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.intrinsics import load_eight, trailing_zeros
from steelyard.kernels.layout import (
    BAD_INDEX,
    BAD_LABEL,
    BAD_QUERY,
    BAD_VALUE,
    BAD_WEIGHT,
    DONE,
    NO_COLON,
    ODD_END,
    ODD_INDEX,
    ODD_KIND,
    ODD_LABEL,
    ODD_START,
    ODD_VALUE,
    ODD_WEIGHT,
    PARSE_DISORDER,
    PARSE_LARGEST,
    PARSE_LARGEST_LINE,
    PARSE_LINES,
    PARSE_ODD,
    PARSE_PAIRS,
    PARSE_RESULT,
    PARSE_ROWS,
    PARSE_SMALLEST,
    PARSE_SMALLEST_LINE,
    PARSE_STOPPED,
)
from steelyard.kernels.short_names import STOPS, next_stops

TAB, NEWLINE, RETURN, SPACE, HASH, PLUS, MINUS, POINT, COLON = 9, 10, 13, 32, 35, 43, 45, 46, 58

_POWERS = np.array([10.0**i for i in range(23)])  # an array: indexing a tuple is a jump table in Numba
_EXACT = 9007199254740992  # 2^53
_NO_INDEX = 2**62


# signed numbers would turn an unsigned position into a float, and a signed position is tested for < 0 at every access
_0, _1, _2, _3, _4, _7, _8, _10, _16, _18, _32, _48, _64 = (
    np.uint64(i) for i in (0, 1, 2, 3, 4, 7, 8, 10, 16, 18, 32, 48, 64)
)
_BYTE, _ONES, _POINTS = np.uint64(0xFF), np.uint64(0x0101010101010101), np.uint64(0x2E2E2E2E2E2E2E2E)
_100, _10000 = np.uint64(100), np.uint64(10000)
_ZEROS, _ABOVE_NINE = np.uint64(0x3030303030303030), np.uint64(0x7676767676767676)
_TOP_BITS, _PAIRS = np.uint64(0x8080808080808080), np.uint64(0x00FF00FF00FF00FF)
_FOURS, _LOW_HALF = np.uint64(0x0000FFFF0000FFFF), np.uint64(0x00000000FFFFFFFF)
_TENS = np.array([10**i for i in range(9)], np.uint64)
_LITTLE_ENDIAN = sys.byteorder == "little"


@jit
def _is_end(byte):
    return byte == SPACE or byte == NEWLINE or byte == HASH or byte == TAB or byte == RETURN  # the frequent ones first


@jit
def _few_digits(text, at, end, total):
    """:func:`_digits` one by one, which is faster for one or two, as in an index or before a point."""
    while at < end:
        digit = text[at] - np.uint8(48)  # unsigned: anything but a digit is larger than 9
        if digit > 9:
            break
        total = total * _10 + np.uint64(digit)
        at += _1
    return total, at


@jit
def _digits(text, at, end, total):
    """Append the digits from ``at`` on to ``total``; wraps around after 19 of them.

    Eight bytes at a time: those that are digits are found, moved to the top and added up in three multiplications,
    without a branch that depends on how many there are.
    """
    while _LITTLE_ENDIAN and at + _8 <= end:
        block = load_eight(text, at) ^ _ZEROS  # digits become 0 … 9
        other = ((block + _ABOVE_NINE) | block) & _TOP_BITS
        bits = trailing_zeros(other) & ~_7  # 8 for each digit before the first other byte
        count = bits >> _3
        block = block << (_64 - bits) if count > _0 else _0
        block = (block * _10 + (block >> _8)) & _PAIRS
        block = (block * _100 + (block >> _16)) & _FOURS
        block = (block * _10000 + (block >> _32)) & _LOW_HALF
        total = total * _TENS[count] + block
        at += count
        if count < _8:
            return total, at
    return _few_digits(text, at, end, total)


@jit
def _token_end(text, at, end):
    while at < end and not _is_end(text[at]):
        at += _1
    return at


@jit
def number(text, at, end):
    """(value, next position, how it went: 1 exact, 0 left to Python, -1 no number)."""
    start = at
    negative = False
    if at < end and (text[at] == MINUS or text[at] == PLUS):
        negative = text[at] == MINUS
        at += _1
    first = at
    mantissa, at = _few_digits(text, at, end, _0)
    count = at - first
    scale = 0
    if at < end and text[at] == POINT:
        first = at + _1
        mantissa, at = _digits(text, first, end, mantissa)
        count += at - first
        scale = -np.int64(at - first)
    if count == _0:
        at = _token_end(text, at, end)
        return 0.0, at, 0 if at > start else -1
    if at < end and (text[at] == 101 or text[at] == 69):  # e, E
        at += _1
        down = False
        if at < end and (text[at] == MINUS or text[at] == PLUS):
            down = text[at] == MINUS
            at += _1
        first = at
        exponent, at = _few_digits(text, at, end, _0)
        if at == first:
            return 0.0, at, -1
        if at - first > _4:
            return 0.0, at, 0
        scale += -np.int64(exponent) if down else np.int64(exponent)
    if at < end and not _is_end(text[at]) and text[at] != COLON:
        return 0.0, _token_end(text, at, end), 0
    if count > _18 or mantissa > np.uint64(_EXACT) or scale < -22 or scale > 22:
        return 0.0, at, 0
    value = np.float64(mantissa)
    value = value / _POWERS[-scale] if scale < 0 else value * _POWERS[scale]
    return -value if negative else value, at, 1


@jit
def _skip_blanks(text, at, end):
    """Past spaces and a comment, to the next token or the end of the line."""
    while at < end and (text[at] == SPACE or text[at] == TAB or text[at] == RETURN):
        at += _1
    if at < end and text[at] == HASH:
        while at < end and text[at] != NEWLINE:
            at += _1
    return at


@jit
def note_odd(odd, place, kind, index, start, end):
    """Note a token for Python's float, where there is room."""
    if place < odd.shape[0]:
        odd[place, ODD_KIND], odd[place, ODD_INDEX] = kind, index
        odd[place, ODD_START], odd[place, ODD_END] = start, end


@jit
def _label_end(text, at, end):
    """Where a label ends that a weight may follow: at a colon, too."""
    while at < end and not _is_end(text[at]) and text[at] != COLON:
        at += _1
    return at


@jit
def _is_query(text, at, end):
    """Whether ``qid:`` stands here."""
    if end - at < _4:
        return False
    return text[at] == 113 and text[at + _1] == 105 and text[at + _1 + _1] == 100 and text[at + _4 - _1] == COLON


@inline_jit
def _short_digits(text, at, length):
    """(number, whether it is one) of one to eight digits; eight bytes are read."""
    shift = _64 - _8 * length
    block = (load_eight(text, at) << shift) ^ (_ZEROS << shift)  # the last one highest; digits become 0 … 9
    other = ((block + _ABOVE_NINE) | block) & _TOP_BITS
    block = (block * _10 + (block >> _8)) & _PAIRS
    block = (block * _100 + (block >> _16)) & _FOURS
    block = (block * _10000 + (block >> _32)) & _LOW_HALF
    return block, other == _0


@inline_jit
def _short_number(text, at, length):
    """(mantissa, digits behind the point, whether it is one) of a number of one to eight bytes: digits, and a point or
    none. Eight bytes are read."""
    if length == _1:
        digit = np.uint64(text[at]) - _48
        return digit, _0, digit < _10
    block = load_eight(text, at) << (_64 - _8 * length)
    points = block ^ _POINTS
    point = (points - _ONES) & ~points & _TOP_BITS  # the lowest that is marked is one
    shift = _64 - _8 * length
    behind = _0
    if point != _0:
        place = trailing_zeros(point) & ~_7
        behind, below = _7 - (place >> _3), (_1 << place) - _1
        block = (block & ~(below | (_BYTE << place))) | ((block & below) << _8)
        shift += _8
    block ^= _ZEROS << shift
    other = ((block + _ABOVE_NINE) | block) & _TOP_BITS
    block = (block * _10 + (block >> _8)) & _PAIRS
    block = (block * _100 + (block >> _16)) & _FOURS
    block = (block * _10000 + (block >> _32)) & _LOW_HALF
    return block, behind, other == _0


def parse(text, state, y, weight, lines, query, indptr, indices, values, odd, work, weighted):
    """Parse all of ``text``; ``state`` receives what is found, ``lines`` the line of every row.

    That is the result, where it stopped, rows, non-zeros, odd tokens, disorder, lines, the smallest index and its line,
    the largest index and its line. Disorder counts the indices that are not larger than the one before them in their
    row. Lines are counted from 0; without an index, the smallest is 2^62 and the largest is -1.

    Where rows are ``weighted``, a label may have a weight, ``label:weight``; without it a line that starts with
    ``index:value`` lacks its label.

    ``odd`` receives (kind, index, start, end) of tokens for Python: a label, a value or a weight. Those that find no
    room are counted, so that the caller can come again with more. ``work`` is room to find the ends of tokens in
    (:mod:`steelyard.kernels.short_names`).
    """
    at, row, count, odd_tokens = _0, 0, 0, 0
    end = np.uint64(text.size)
    result, stopped, disorder = DONE, _0, 0
    line, smallest, smallest_line, largest, largest_line = 0, np.int64(_NO_INDEX), 0, np.int64(-1), 0
    lucky = True  # whether the pairs of late were short
    mark, marks = STOPS, STOPS  # where in ``work`` the next end of a token is, and where they end
    while at < end:
        at = _skip_blanks(text, at, end)
        if at >= end:
            break
        if text[at] == NEWLINE:
            at += _1
            line += 1
            continue
        stopped = at
        if weighted:
            value, at, how = number(text, at, _label_end(text, at, end))
        else:
            value, at, how = number(text, at, end)
        colon = weighted and at < end and text[at] == COLON
        if how < 0 or (at < end and not _is_end(text[at]) and not colon):
            result = BAD_LABEL
            break
        if how == 0:
            note_odd(odd, odd_tokens, ODD_LABEL, row, stopped, at)
            odd_tokens += 1
        y[row] = value
        weight[row] = 1.0
        if colon:
            stopped = at + _1
            value, at, how = number(text, stopped, end)
            if how < 0 or (at < end and not _is_end(text[at])):
                result = BAD_WEIGHT
                break
            if how == 0:
                note_odd(odd, odd_tokens, ODD_WEIGHT, row, stopped, at)
                odd_tokens += 1
            weight[row] = value
        lines[row] = np.int32(line)
        query[row] = -1
        last = np.int64(-1)
        quick = lucky or row & 15 == 0  # where values are long, few rows are tried
        while True:
            if quick and (mark + _2 >= marks or work[mark] < at):
                mark, marks = next_stops(text, at, end, work, mark, marks)
            first = count
            if quick and mark + _2 < marks and work[mark] == at and text[at] == SPACE:
                while mark + _2 < marks and text[at] == SPACE:  # pairs as short as most
                    colon, stop = work[mark + _1], work[mark + _2]
                    length, place = colon - at - _1, colon + _1
                    negative = text[place] == MINUS
                    place += np.uint64(negative)
                    size = stop - place
                    if text[colon] != COLON or length - _1 > _7 or size - _1 > _7 or text[stop] > SPACE:
                        break
                    index, good = _short_digits(text, at + _1, length)
                    mantissa, behind, fine = _short_number(text, place, size)
                    if not (good and fine):
                        break
                    value = np.float64(mantissa)
                    if behind != _0:
                        value /= _POWERS[behind]
                    indices[count], values[count] = np.int64(index), -value if negative else value
                    disorder += np.int64(index) <= last
                    last = np.int64(index)
                    count += 1
                    at = stop
                    mark += _2
                quick = lucky = count > first
                if quick:
                    low, high = indices[first], last
                    if disorder > 0:
                        for e in range(first, count):
                            low, high = min(low, indices[e]), max(high, indices[e])
                    if high > largest:
                        largest, largest_line = high, line
                    if low < smallest:
                        smallest, smallest_line = low, line
            at = _skip_blanks(text, at, end)
            if at >= end or text[at] == NEWLINE:
                at += _1
                break
            stopped = at
            index, at = _few_digits(text, at, end, _0)
            if at == stopped and _is_query(text, at, end):
                first = at + _4
                group, at = _few_digits(text, first, end, _0)
                if at == first or at - first > _18 or (at < end and not _is_end(text[at])):
                    result = BAD_QUERY
                    break
                query[row] = np.int64(group)
                continue
            if at == stopped or at - stopped > _18:
                result = BAD_INDEX
                break
            if at >= end or text[at] != COLON:
                result = NO_COLON
                break
            stopped = at + _1
            value, at, how = number(text, stopped, end)
            if how < 0 or (at < end and not _is_end(text[at])):
                result = BAD_VALUE
                break
            if how == 0:
                note_odd(odd, odd_tokens, ODD_VALUE, count, stopped, at)
                odd_tokens += 1
            position = np.int64(index)
            if position <= last:
                disorder += 1
            last = position
            if position > largest:
                largest, largest_line = position, line
            if position < smallest:
                smallest, smallest_line = position, line
            indices[count] = position
            values[count] = value
            count += 1
        if result != DONE:
            break
        row += 1
        line += 1
        indptr[row] = count
    state[PARSE_RESULT], state[PARSE_STOPPED] = result, stopped
    state[PARSE_ROWS], state[PARSE_PAIRS], state[PARSE_LINES] = row, count, line
    state[PARSE_ODD], state[PARSE_DISORDER] = odd_tokens, disorder
    state[PARSE_SMALLEST], state[PARSE_SMALLEST_LINE] = smallest, smallest_line
    state[PARSE_LARGEST], state[PARSE_LARGEST_LINE] = largest, largest_line
