"""JSON lines → rows: an object a line, whose keys are columns; objects inside of it are columns called ``a.b``.

A compiled parser reads stretches in which there is nothing but texts, numbers, truth values and nulls under known keys,
once each. Others, with objects in objects for example, are read by Python's ``json``, which also says what is wrong.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from steelyard.compiled.door import get_kernel
from steelyard.data.columns import NUMBER, TEXT, CellError, Columns, as_number, as_text, joined_bytes
from steelyard.data.stretch import Format, Mistake, Part
from steelyard.data.table import Room
from steelyard.kernels import layout
from steelyard.losses import Array


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no value to learn from: write null where nothing is known")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


_NESTED = {dict, list}
_MOST_VALUES = 1 << 27  # of dense rows in one stretch
_decoder = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_once)


class _Keys:
    """The keys of objects, as the compiled parser knows them."""

    def __init__(self, columns: Columns) -> None:
        label_and_weight = (each for each in (columns.label, columns.weight) if each is not None)
        self.names = [*dict.fromkeys([*columns.kinds, *columns.drop, *label_and_weight])]
        self.bytes, self.ends = joined_bytes(self.names)
        slot_of = {name: slot for slot, name in enumerate(columns.kinds)}
        self.roles = np.array([columns.role(name) for name in self.names], np.int64)
        self.slots = np.array([slot_of.get(name, 0) for name in self.names], np.int64)
        self.heads = columns.heads()


class _Room(Room):
    """With what a row has under each of the keys."""

    follows = np.empty(0, np.int64)

    def fit_dense(self, size: int) -> None:
        """Have room for so many values; where it would be too much, the parser stops and leaves the rest to Python."""
        if self.values.size < size <= _MOST_VALUES:
            self.values = np.empty(size)

    def fit_keys(self, keys: int, features: int) -> None:
        """Have room for so many keys, of which so many are features."""
        if self.follows.size == keys + 1:
            return
        self.follows = np.append(np.arange(1, keys + 1), 0)
        self.stamps, self.there = np.empty(keys, np.int64), np.empty(features, np.int64)
        self.cells, self.amounts = np.empty(features, np.uint64), np.empty(features)
        self.heads = np.empty(2 * features, np.uint64)


class JsonFormat(Format):
    """Objects, one a line. The parameters are those of :class:`~steelyard.data.columns.Columns`.

    Columns are the keys of the first stretch, about 1 MB; a key that comes later for the first time is refused.
    """

    name = "json"

    def __init__(self, **columns: Any) -> None:
        self.columns = Columns(**columns)
        self._take_over()

    def _take_over(self) -> None:
        self.n_features, self.bits = self.columns.n_features, self.columns.bits
        self.dense = self.columns.decided and self.bits is None
        self.known = self.columns.new_known()
        self._keys = _Keys(self.columns) if self.columns.decided else None

    def column_name(self, column: int) -> str | None:
        return list(self.columns.kinds)[column] if self.dense else None

    def schema(self) -> dict[str, Any]:
        return {"format": self.name, **self.columns.schema()}

    def start(self, content: bytes) -> int:
        if self.columns.decided:
            return 0
        kinds: dict[str, str] = {}
        wrong: list[Mistake] = []  # told where lines are parsed, if they do not hide what columns there are
        for _, _, row in _objects(content, wrong):
            refused = self.columns.weight in row and not _is_weight(row[self.columns.weight])
            for name, value in row.items():
                kinds.setdefault(name, NUMBER)
                if isinstance(value, str) and not refused:
                    kinds[name] = TEXT
        try:
            if not kinds and wrong:
                raise wrong[0]
            self.columns.decide(list(kinds), kinds.__getitem__)
        except ValueError as error:
            raise (wrong or [Mistake(content, 0, str(error))])[0] from None
        self._take_over()
        return 0

    def new_room(self) -> Any:
        get_kernel("parse_json")  # before there are threads: it is loaded once
        return _Room()

    def parse(self, content: bytes, room: Any) -> Part:
        part = self._compiled(content, room)
        return self._interpreted(content, room) if part is None else part

    def _compiled(self, content: bytes, room: _Room) -> Part | None:
        """The rows by the compiled parser; None where there is something that it leaves to Python."""
        columns, keys = self.columns, self._keys
        if keys is None:
            raise AssertionError("the first stretch comes first")
        try:
            content.isascii() or content.decode()
        except UnicodeDecodeError:
            return None
        room.fit(len(content) + len(columns.kinds) + 1, self.known)
        room.fit_keys(len(keys.names), len(columns.kinds))
        if self.dense:  # of a row's columns all may be missing
            room.fit_dense((content.count(b"\n") + 1) * len(columns.kinds))
        text = np.frombuffer(content, np.uint8)
        while True:
            room.table[:] = 0
            get_kernel("parse_json")(
                *(text, room.state, keys.bytes, keys.ends, keys.roles, keys.slots, room.follows, room.stamps),
                *(*keys.heads, room.heads, self.dense, self.bits or 0, room.known, *room.rows),
                *(room.there, room.cells, room.amounts, *room.words),
            )
            if room.suffices(self.known):
                break
        state = room.state
        rows, weighted = int(state[layout.CSV_ROWS]), int(state[layout.CSV_WEIGHTED])
        says_weights = columns.weight is not None and not (columns.optional_label and not weighted)
        names: dict[int, str] = {}
        done = state[layout.CSV_RESULT] == layout.CSV_DONE and not (says_weights and weighted < rows)
        if not done or not self._patch(content, keys, room, names):
            room.known = self.known.copy()
            return None
        part = room.part(columns, content.count(b"\n"), len(content), says_weights)
        part.names = {**names, **columns.column_names()}.copy
        return part

    def _patch(self, content: bytes, keys: _Keys, room: _Room, names: dict[int, str]) -> bool:
        """Put numbers that are left to Python where they belong, and note names; False where a number is refused."""
        mask = (1 << (self.bits or 0)) - 1
        for role, key, index, start, end in room.odd[: int(room.state[layout.CSV_ODD])].tolist():
            token = content[start:end].decode()
            if role == layout.CELL_TEXT:
                text = json.loads(f'"{token}"') if "\\" in token else token
                names.setdefault(index & mask, f"{keys.names[key]}={text}")
                continue
            try:
                value = as_number(json.loads(token), 0, "")
            except (CellError, ValueError):
                return False
            targets: dict[int, Array] = {layout.CELL_LABEL: room.y, layout.CELL_WEIGHT: room.weight}
            targets.get(role, room.values)[index] = value
        return True

    def _interpreted(self, content: bytes, room: _Room) -> Part:
        columns, found = self.columns, list(_objects(content))
        rows = [row for _, _, row in found]
        part = Part.empty(content.count(b"\n"), len(content))
        allowed = {*columns.kinds, *columns.drop, columns.label, columns.weight}
        try:
            for at, row in enumerate(rows):
                if not row.keys() <= allowed:
                    name = next(name for name in row if name not in allowed)
                    raise CellError(at, name, f"the key is not in the first rows: leave it out with --drop {name}")
            part.y, part.labels = self._labels([row.get(columns.label) for row in rows])
            if columns.weight is not None and not (
                columns.optional_label and all(columns.weight not in r for r in rows)
            ):
                part.weight = self._weights([row.get(columns.weight) for row in rows])
            cells = [columns.object_cells(i, [row.get(n) for row in rows]) for i, n in enumerate(columns.kinds)]
        except CellError as error:
            complaint = f"in the column {error.column!r}: {error.complaint}"
            raise Mistake(content, found[error.row][1], complaint) from None
        part.indptr, part.indices, part.values, part.missing = columns.rows(cells, len(rows), room.settler)
        part.lines = np.array([line for line, _, _ in found], np.int32)
        part.names = {**columns.cell_names(cells, self.known), **columns.column_names()}.copy
        return part

    def _labels(self, values: list[Any]) -> tuple[Any, list[str] | None]:
        name = self.columns.label or ""
        if self.columns.label_kind == NUMBER:
            each = [np.nan if v is None else as_number(v, row, name) for row, v in enumerate(values)]
            return np.array(each, np.float64), None
        place: dict[str, int] = {}
        codes = [np.nan if v in (None, "") else place.setdefault(as_text(v), len(place)) for v in values]
        return np.array(codes, np.float64), list(place)

    def _weights(self, values: list[Any]) -> Any:
        name = self.columns.weight or ""
        for row, value in enumerate(values):
            if value is None:
                raise CellError(row, name, "the weight is not there")
        return np.array([as_number(value, row, name) for row, value in enumerate(values)], np.float64)


def _is_weight(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0.0 <= value < float("inf")


def _objects(content: bytes, wrong: list[Mistake] | None = None) -> Any:
    """(line, where it begins, the object) of every line that is not empty; what is ``wrong`` is raised, or noted."""
    at = 0
    for number, line in enumerate(content.split(b"\n")):
        if line.strip():
            try:
                row = _flat(_object(content, line, at), content, at)
            except Mistake as mistake:
                if wrong is None:
                    raise
                wrong.append(mistake)
            else:
                yield number, at, row
        at += len(line) + 1


def _object(content: bytes, line: bytes, at: int) -> Any:
    try:
        found = _decoder.decode(line.decode("utf-8-sig" if line.startswith(b"\xef") else "utf-8"))
    except RecursionError:
        raise Mistake(content, at, "objects are too deep in one another") from None
    except json.JSONDecodeError as error:
        where = at + len(line.decode("utf-8-sig")[: error.pos].encode())
        where += 3 * line.startswith(b"\xef\xbb\xbf")
        raise Mistake(content, where, f"a line must be one JSON object ({error.msg})") from None
    except ValueError as error:  # no UTF-8, or NaN
        raise Mistake(content, at, f"a line must be one JSON object ({error})") from None
    if not isinstance(found, dict):
        raise Mistake(content, at, "a line must be one JSON object")
    return found


def _flat(row: dict[str, Any], content: bytes, at: int, before: str = "") -> dict[str, Any]:
    if before == "" and _NESTED.isdisjoint(map(type, row.values())):  # as most are
        return row
    found: dict[str, Any] = {}
    for key, value in row.items():
        name = before + key
        if isinstance(value, list):
            raise Mistake(content, at, f"the key {name!r} holds a list: give each of its values a key of its own")
        inside = _flat(value, content, at, f"{name}.") if isinstance(value, dict) else {name: value}
        twice = found.keys() & inside.keys()
        if twice:
            raise Mistake(content, at, f"two keys mean the column {min(twice)!r}")
        found.update(inside)
    return found
