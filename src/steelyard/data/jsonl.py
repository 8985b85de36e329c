"""JSON lines → rows: an object a line, whose keys are columns; objects inside of it are columns called ``a.b``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from steelyard.data.columns import NUMBER, TEXT, CellError, Columns, as_number, as_text
from steelyard.data.hashing import Settler
from steelyard.data.stretch import Format, Mistake, Part


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no value to learn from: write null where nothing is known")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_once)


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
            for name, value in row.items():
                kinds.setdefault(name, NUMBER)
                if isinstance(value, str):
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
        return Settler()

    def parse(self, content: bytes, room: Any) -> Part:
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
        part.indptr, part.indices, part.values, part.missing = columns.rows(cells, len(rows), room)
        part.lines = np.array([line for line, _, _ in found], np.int32)
        part.names = {**columns.cell_names(cells, self.known), **columns.column_names()}
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
        found = _decoder.decode(line.decode("utf-8-sig"))
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
