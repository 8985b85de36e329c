"""The compiled parser of CSV: one pass over the bytes of a stretch of rows.

Cells may stand in quotes, with a quote inside written twice, and then hold delimiters and ends of lines. What a column
is, is known before. A number that is not exact after one multiplication is left to Python, see ``kernels.parse``.
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
    CSV_AFTER_QUOTE,
    CSV_BEGIN,
    CSV_COLUMN,
    CSV_DONE,
    CSV_FEATURES,
    CSV_LABELS,
    CSV_LINES,
    CSV_MANY_LABELS,
    CSV_MISSING,
    CSV_NO_WEIGHT,
    CSV_ODD,
    CSV_OPEN_QUOTE,
    CSV_RESULT,
    CSV_ROWS,
    CSV_STOPPED,
    CSV_TABLE,
    CSV_TOO_FEW,
    CSV_TOO_MANY,
)
from steelyard.kernels.parse import NEWLINE, RETURN, SPACE, number

QUOTE = 34
_0, _1, _2, _3, _4, _8 = (np.uint64(i) for i in (0, 1, 2, 3, 4, 8))
_ONES, _TOP_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_SLOTS = np.uint64(CSV_TABLE - 1)
_LITTLE_ENDIAN = sys.byteorder == "little"
BEFORE = 4  # bytes of ``scratch`` before a cell, for the end of the column's name


@jit
def _cell_end(text, at, end, delimiter):
    """Where a cell without quotes ends: at the next delimiter or end of line. Eight bytes at a time."""
    delimiters, newlines = np.uint64(delimiter) * _ONES, np.uint64(NEWLINE) * _ONES
    while _LITTLE_ENDIAN and at + _8 <= end:
        block = load_eight(text, at)
        x, y = block ^ delimiters, block ^ newlines  # a byte that is looked for becomes 0
        found = (((x - _ONES) & ~x) | ((y - _ONES) & ~y)) & _TOP_BITS
        if found != _0:
            return at + (trailing_zeros(found) >> _3)
        at += _8
    while at < end and text[at] != delimiter and text[at] != NEWLINE:
        at += _1
    return at


@jit
def _ends_line(text, at, end):
    """Whether a carriage return stands here that belongs to the end of a line."""
    return text[at] == RETURN and (at + _1 >= end or text[at + _1] == NEWLINE)


@jit
def _unquote(text, at, end, scratch):
    """Copy a cell in quotes to ``scratch``: (its size, where it ends, how many lines end in it, whether it ended)."""
    at += _1
    size, ends = BEFORE, 0
    while at < end:
        byte = text[at]
        if byte == QUOTE:
            if at + _1 >= end or text[at + _1] != QUOTE:
                return size - BEFORE, at + _1, ends, True
            at += _1
        elif byte == NEWLINE:
            ends += 1
        scratch[size] = byte
        size += 1
        at += _1
    return size - BEFORE, at, ends, False


@jit
def _is_word(text, at, size, word):
    """Whether a word stands here, in letters of either case; ``word`` has small ones, the first lowest."""
    for i in range(size):
        if np.uint64(text[at + np.uint64(i)] | np.uint8(32)) != (word >> np.uint64(8 * i)) & np.uint64(255):
            return False
    return True


_TRUE, _FALSE = (np.uint64(int.from_bytes(word, "little")) for word in (b"true", b"false"))


@jit
def _cell_number(text, at, end):
    """(value, how it went: 1 exact, 0 left to Python, 2 nothing there); spaces around it do not count."""
    while at < end and text[at] == SPACE:
        at += _1
    while end > at and text[end - _1] == SPACE:
        end -= _1
    if at == end:
        return 0.0, 2
    if text[at] >= 70:  # F: a letter
        if end - at == _4 and _is_word(text, at, 4, _TRUE):
            return 1.0, 1
        if end - at == _4 + _1 and _is_word(text, at, 5, _FALSE):
            return 0.0, 1
        return 0.0, 0
    value, stop, how = number(text, at, end)
    return value, 1 if how == 1 and stop == end else 0


@jit
def _label_place(scratch, size, table, labels, ends, count):
    """The number of a label among those met: ``count`` if it is new, and is then kept; -1 where there is no room."""
    h = murmur_on(scratch, np.uint64(BEFORE), np.uint64(BEFORE + size), _0, np.uint64(size))
    place = h & _SLOTS
    while table[place] > 0:
        known = table[place] - 1
        if ends[known + 1] - ends[known] == size:
            same = True
            for i in range(size):
                if labels[ends[known] + i] != scratch[BEFORE + i]:
                    same = False
                    break
            if same:
                return known
        place = (place + _1) & _SLOTS
    if 2 * (count + 1) > CSV_TABLE:
        return -1
    table[place] = count + 1
    for i in range(size):
        labels[ends[count] + i] = scratch[BEFORE + i]
    ends[count + 1] = ends[count] + size
    return count


def parse_csv(
    text,
    state,
    roles,
    slots,
    names,
    name_ends,
    heads,
    delimiter,
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
    scratch,
    labels,
    label_ends,
    table,
    odd,
):
    """Parse the rows of ``text``; ``state`` receives what is found, as ``layout`` has it.

    A column of the file has its role (``CELL_…``) in ``roles`` and its number among the features in ``slots``. The name
    of a feature column is ``names[name_ends[slot] : name_ends[slot + 1]]``, with ``=`` after it where it is text;
    ``heads`` receives how far its hash has come. Where rows are ``dense``, ``values`` has one for each feature column,
    0 where there is none; else row r has the hashed features ``starts[r] : starts[r + 1]``, with the hash, the value
    and the slot of each.

    ``known`` says which indices of so many ``bits`` have a name; where it is not empty, a feature that is text and has
    none is noted in ``odd``, and has one. Labels that are text are numbered; ``labels`` receives each, label i from
    ``label_ends[i]`` on. ``odd`` receives tokens for Python; those that find no room are counted.
    """
    end, mask = np.uint64(text.size), (_1 << np.uint64(bits)) - _1
    width, n_features = roles.size, name_ends.size - 1
    at, line, row, count, odd_tokens, missing, n_labels = _0, 0, 0, 0, 0, 0, 0
    result, stopped, begin, column = CSV_DONE, _0, _0, 0
    for slot in range(n_features):
        heads[slot] = murmur_begin(names, np.uint64(name_ends[slot]), np.uint64(name_ends[slot + 1]))
        if bits > 0:
            hashes_of = np.uint64(name_ends[slot + 1] - name_ends[slot])
            heads[n_features + slot] = murmur_on(
                names,
                np.uint64(name_ends[slot + 1]) - (hashes_of & _3),
                np.uint64(name_ends[slot + 1]),
                heads[slot],
                hashes_of,
            )
    label_ends[0] = 0
    starts[0] = 0
    while at < end:
        if text[at] == NEWLINE:
            at += _1
            line += 1
            continue
        if _ends_line(text, at, end):
            at += _1
            continue
        begin, first_line, column = at, line, 0
        y[row] = np.nan
        weight[row] = 1.0
        while True:
            start, quoted, size = at, text[at] == QUOTE if at < end else False, 0
            if quoted:
                size, at, ends, closed = _unquote(text, at, end, scratch)
                if not closed:
                    result, stopped = CSV_OPEN_QUOTE, start
                    break
                line += ends
                stop = at
                if at < end and _ends_line(text, at, end):
                    at += _1
                if at < end and text[at] != delimiter and text[at] != NEWLINE:
                    result, stopped = CSV_AFTER_QUOTE, at
                    break
            else:
                at = stop = _cell_end(text, at, end, delimiter)
                if stop > start and (at >= end or text[at] == NEWLINE) and text[stop - _1] == RETURN:
                    stop -= _1
                size = np.int64(stop - start)
            if column >= width:
                result, stopped = CSV_TOO_MANY, start
                break
            role, slot = roles[column], slots[column]
            if role == CELL_TEXT or role == CELL_LABEL_TEXT:
                if not quoted:
                    for i in range(size):
                        scratch[BEFORE + i] = text[start + np.uint64(i)]
                if role == CELL_LABEL_TEXT:
                    if size > 0:
                        place = _label_place(scratch, size, table, labels, label_ends, n_labels)
                        if place < 0:
                            result, stopped = CSV_MANY_LABELS, start
                            break
                        n_labels = max(n_labels, place + 1)
                        y[row] = np.float64(place)
                elif size == 0:
                    missing += 1
                else:
                    length = np.uint64(name_ends[slot + 1] - name_ends[slot])
                    rest = np.int64(length & _3)
                    for i in range(rest):
                        scratch[BEFORE - rest + i] = names[name_ends[slot + 1] - rest + i]
                    h = murmur_on(
                        scratch,
                        np.uint64(BEFORE - rest),
                        np.uint64(BEFORE + size),
                        heads[slot],
                        length + np.uint64(size),
                    )
                    hashes[count], values[count], features[count] = np.uint32(h), 1.0, np.uint16(slot)
                    if known.size > 0 and known[h & mask] == 0:
                        known[h & mask] = 1
                        if odd_tokens < odd.shape[0]:
                            odd[odd_tokens, 0], odd[odd_tokens, 1], odd[odd_tokens, 2] = role, column, count
                            odd[odd_tokens, 3], odd[odd_tokens, 4] = start, stop
                        odd_tokens += 1
                    count += 1
            elif role != CELL_DROPPED:
                if quoted:
                    value, how = _cell_number(scratch, np.uint64(BEFORE), np.uint64(BEFORE + size))
                else:
                    value, how = _cell_number(text, start, stop)
                index = row
                if role == CELL_NUMBER:
                    index = row * n_features + slot if dense else count
                if how == 0:
                    if odd_tokens < odd.shape[0]:
                        odd[odd_tokens, 0], odd[odd_tokens, 1], odd[odd_tokens, 2] = role, column, index
                        odd[odd_tokens, 3], odd[odd_tokens, 4] = start, stop
                    odd_tokens += 1
                if role == CELL_NUMBER:
                    if how == 2:
                        missing += 1
                    if dense:
                        values[index] = value
                    elif how != 2:
                        hashes[count] = np.uint32(heads[n_features + slot])
                        values[count], features[count] = value, np.uint16(slot)
                        count += 1
                elif role == CELL_LABEL:
                    if how != 2:
                        y[row] = value
                elif how == 2:
                    result, stopped = CSV_NO_WEIGHT, start
                    break
                elif role == CELL_WEIGHT:
                    weight[row] = value
            column += 1
            if at >= end or text[at] != delimiter:
                break
            at += _1
        if result == CSV_DONE and column < width:
            result, stopped = CSV_TOO_FEW, at
        if result != CSV_DONE:
            break
        if at < end:
            at += _1
            line += 1
        lines[row] = np.int32(first_line)
        row += 1
        starts[row] = count
    state[CSV_RESULT], state[CSV_STOPPED], state[CSV_BEGIN], state[CSV_COLUMN] = result, stopped, begin, column
    state[CSV_ROWS], state[CSV_FEATURES], state[CSV_ODD] = row, count, odd_tokens
    state[CSV_LINES], state[CSV_MISSING], state[CSV_LABELS] = line, missing, n_labels


def ends_quoted(text, delimiter):
    """1 where ``text``, which begins with a row, ends inside of quotes, else 0."""
    at, end = _0, np.uint64(text.size)
    while at < end:
        if text[at] == QUOTE:
            at += _1
            while True:
                while at < end and text[at] != QUOTE:
                    at += _1
                if at >= end:
                    return 1
                if at + _1 >= end or text[at + _1] != QUOTE:
                    break
                at += _2
        at = _cell_end(text, at, end, delimiter) + _1
    return 0
