"""Slow readers of CSV and JSON lines, byte by byte, written from the formats' descriptions and for nothing but that."""

from __future__ import annotations

import math
import re

from sklearn.utils import murmurhash3_32

NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
WHOLE = re.compile(rb"[-+]?\d+")


class Refused(Exception):
    """The row cannot be read; ``end`` is where it ends."""


def add(row, name, value, bits):
    index = murmurhash3_32(name, 0, positive=True) % 2**bits
    if value:
        row[index] = row.get(index, 0.0) + value


def exact(token):
    """A finite number; a whole one must be held exactly."""
    if not NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise Refused(token)
    if WHOLE.fullmatch(token) and int(float(token)) != int(token):
        raise Refused(token)
    return float(token)


# ------------------------------------------------------------------------------------------------------------------ CSV


def csv_cell(text, at, delimiter):
    """(cell, where it ends) of a cell that begins here; what follows is a delimiter, the end of a line or of all."""
    if text[at : at + 1] == b'"':
        cell, at = b"", at + 1
        while True:
            if at == len(text):
                return None, at
            if text[at : at + 2] == b'""':
                cell, at = cell + b'"', at + 2
            elif text[at : at + 1] == b'"':
                return cell, at + 1
            else:
                cell, at = cell + text[at : at + 1], at + 1
    start = at
    while at < len(text) and text[at : at + 1] not in (delimiter, b"\n"):
        at += 1
    if text[at - 1 : at] == b"\r" and at > start and text[at : at + 1] != delimiter:
        return text[start : at - 1], at
    return text[start:at], at


def csv_row(text, at, delimiter):
    """(cells or None, where the row ends); None where it cannot be cut into cells."""
    begin, cells, good = at, [], True
    while True:
        cell, at = csv_cell(text, at, delimiter)
        if cell is None:  # quotes that do not end take no more than a line with them
            return None, text.find(b"\n", begin) + 1 or len(text)
        cells.append(cell)
        if text[at : at + 1] == b"\r" and text[at + 1 : at + 2] in (b"\n", b""):
            at += 1
        while at < len(text) and text[at : at + 1] not in (delimiter, b"\n"):
            good, at = False, at + 1
        if at == len(text):
            return cells if good else None, at
        at += 1
        if text[at - 1 : at] == b"\n":
            return cells if good else None, at


def csv_number(cell):
    """None where there is nothing."""
    cell = cell.strip(b" ")
    if cell.lower() in (b"true", b"false"):
        return float(cell.lower() == b"true")
    return exact(cell) if cell else None


def csv_features(cells, roles, names, bits):
    """(label, weight, {index: value}, empty cells) of a row; ``roles`` are number, text, label, weight, class, drop."""
    if len(cells) != len(roles):
        raise Refused(cells)
    label, weight, row, missing = math.nan, 1.0, {}, 0
    for cell, role, name in zip(cells, roles, names, strict=True):
        if role == "text":
            missing += not cell
            if cell:
                add(row, name + b"=" + cell, 1.0, bits)
        elif role == "class":
            label = cell or math.nan
        elif role != "drop":
            value = csv_number(cell)
            if role == "weight":
                if value is None:
                    raise Refused(cell)
                weight = value
            elif role == "label":
                label = math.nan if value is None else value
            elif value is None:
                missing += 1
            else:
                add(row, name, value, bits)
    return label, weight, row, missing


def read_csv(text, roles, names, bits, delimiter=b","):
    """(rows, the lines of each that is refused) of a text without a header."""
    rows, refused, at = [], [], 0
    while at < len(text):
        if text[at : at + 1] == b"\n" or text[at : at + 2] == b"\r\n" or text[at:] == b"\r":
            at += 1 + (text[at : at + 2] == b"\r\n")
            continue
        cells, end = csv_row(text, at, delimiter)
        try:
            if cells is None or b"\0" in text[at:end]:
                raise Refused(text[at:end])
            rows.append(csv_features(cells, roles, names, bits))
        except Refused:
            first = text.count(b"\n", 0, at) + 1
            refused.append((first, first + text.count(b"\n", at, max(end - 1, at))))
        at = end
    return rows, refused


# ----------------------------------------------------------------------------------------------------------- JSON lines

BLANK = " \t\r"
JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Json:
    """A JSON text, read letter by letter."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def blanks(self):
        while self.at < len(self.text) and self.text[self.at] in BLANK:
            self.at += 1

    def take(self, word):
        if not self.text.startswith(word, self.at):
            raise Refused(self.text)
        self.at += len(word)

    def value(self):
        self.blanks()
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        letter = self.text[self.at : self.at + 1]
        if letter == '"':
            return self.string()
        if letter == "{":
            return dict(self.members())
        if letter == "[":
            raise Refused(self.text)
        found = JSON_NUMBER.match(self.text, self.at)
        if not found:
            raise Refused(self.text)
        self.at = found.end()
        return found[0]  # its digits: what is exact is seen later

    def string(self):
        self.take('"')
        found = []
        while True:
            letter = self.text[self.at : self.at + 1]
            self.at += 1
            if letter == '"':
                joined = "".join(found)
                return ("text", joined.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"))
            if not letter or ord(letter) < 32:
                raise Refused(self.text)
            if letter == "\\":
                letter = self.text[self.at : self.at + 1]
                self.at += 1
                if letter == "u":
                    digits = self.text[self.at : self.at + 4]
                    if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                        raise Refused(self.text)
                    found.append(chr(int(digits, 16)))
                    self.at += 4
                    continue
                if letter not in ESCAPES or not letter:
                    raise Refused(self.text)
                letter = ESCAPES[letter]
            found.append(letter)

    def members(self):
        self.take("{")
        self.blanks()
        names = set()
        if self.text.startswith("}", self.at):
            self.at += 1
            return
        while True:
            self.blanks()
            _, name = self.string()
            if name in names:
                raise Refused(name)
            names.add(name)
            self.blanks()
            self.take(":")
            yield name, self.value()
            self.blanks()
            if self.text.startswith("}", self.at):
                self.at += 1
                return
            self.take(",")


def flat(found, before=""):
    for name, value in found.items():
        if isinstance(value, dict):
            yield from flat(value, before + name + ".")
        else:
            yield before + name, value


def json_number(value):
    if isinstance(value, tuple):
        raise Refused(value)
    return float(value) if isinstance(value, bool) else exact(value.encode())


def json_text(value):
    if isinstance(value, tuple):
        return value[1]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(float(value)) if re.search("[.eE]", value) else str(int(value))


def json_row(line, roles, bits):
    """(label, weight, {index: value}, empty cells) of a line; ``roles`` by name."""
    try:
        parser = Json(line.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError:
        raise Refused(line) from None
    found = parser.value()
    parser.blanks()
    if not isinstance(found, dict) or parser.at != len(parser.text):
        raise Refused(line)
    pairs = list(flat(found))
    cells = dict(pairs)
    if len(cells) < len(pairs) or not cells.keys() <= roles.keys():
        raise Refused(line)
    label, weight, row, missing = math.nan, 1.0, {}, 0
    for name, role in roles.items():
        value = cells.get(name)
        if role == "weight":
            if value is None:
                raise Refused(line)
            weight = json_number(value)
        elif role == "label":
            label = math.nan if value is None else json_number(value)
        elif role == "number":
            missing += value is None
            if value is not None:
                add(row, name.encode(), json_number(value), bits)
        elif role == "text":
            text = None if value is None else json_text(value)
            missing += not text
            if text:
                try:
                    add(row, f"{name}={text}".encode("utf-8", "surrogateescape"), 1.0, bits)
                except UnicodeEncodeError:  # half of a pair of surrogates
                    raise Refused(line) from None
    return label, weight, row, missing


def read_json(text, roles, bits):
    """(rows, the lines of each that is refused)."""
    rows, refused = [], []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(json_row(line, roles, bits))
        except Refused:
            refused.append((number, number))
    return rows, refused
