"""What named columns mean, in every format that has them: CSV, JSON lines, Parquet, Arrow, and frames.

One column holds the labels, one may hold weights, some are left out. Any other is a feature if it holds numbers, called
as the column is, or as many features as it has different texts, called ``column=text``, of which a row has one with the
value 1. A cell that is empty is a feature that is not there.

Where all columns are numbers they stay as they are, dense and in order. As soon as there is text, or interactions, or
``bits``, all features are hashed: the index is MurmurHash3 of the name, of which ``bits`` bits are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.data.hashing import DEFAULT_BITS, Interactions, Meetings, Settled, Settler, check_bits, hash_names
from steelyard.kernels import layout
from steelyard.losses import Array

NUMBER, TEXT = "number", "text"
"""Kinds of columns."""
MOST_NUMBER = 2**53
"""Whole numbers beyond are not all there among floats."""
MOST_COLUMNS = 1 << 16
_MOST_NAMED = 24  # bits, up to which it is noted which indices have a name
_SHOWN = 8  # columns that a message names


class CellError(ValueError):
    """A cell that cannot be read: its row among those at hand, its column by name, and what is wrong.

    Where the same is wrong in others, ``rows`` has all of them; it is empty if it is the whole column that is wrong.
    """

    def __init__(self, row: int, column: str, complaint: str, rows: NDArray[np.intp] | None = None) -> None:
        super().__init__(f"row {row}, column {column!r}: {complaint}")
        self.row, self.column, self.complaint = row, column, complaint
        self.rows = np.array([row], np.intp) if rows is None else rows


class Places(NamedTuple):
    """What the columns of one file are, in the order of the file."""

    roles: NDArray[np.int64]
    """``layout.CELL_…``."""
    slots: NDArray[np.int64]
    """Which feature column it is; 0 for those that are none."""


class Cells(NamedTuple):
    """One column of some rows."""

    hashes: NDArray[np.uint32] | np.uint32
    """Of the features' names: one for all, or one a row."""
    values: Array | float
    there: NDArray[np.bool_] | None
    """Which rows have the cell; None where all do."""
    named: tuple[NDArray[np.uint32], list[str]] | None = None
    """Of a column of text: the hashes and the names of its features."""


class Rows(NamedTuple):
    """Rows as a part holds them."""

    indptr: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    values: Array
    missing: int


class Columns:
    """The columns that there are, and what each means; decided from the first rows, or by what another one decided.

    Parameters
    ----------
    label, weight : names, or None
    drop, text : names of columns to leave out, and of those that are text whatever they hold
    bits, interactions : as :func:`steelyard.open` has them
    schema : what :meth:`schema` of another one said; where its ``columns`` are None, any may come
    optional_label : whether the columns of labels and weights may be absent
    """

    def __init__(
        self,
        *,
        label: str | None = None,
        weight: str | None = None,
        drop: Sequence[str] = (),
        text: Sequence[str] = (),
        bits: int | None = None,
        interactions: str | Sequence[str] | None = None,
        schema: dict[str, Any] | None = None,
        optional_label: bool = False,
    ) -> None:
        self.label, self.weight, self.optional_label = label, weight, optional_label
        self.drop, self.text = list(drop), list(text)
        self.bits = None if bits is None else check_bits(bits)
        self._interactions = Interactions(interactions)
        self.kinds: dict[str, str] = {}
        """Of the features, in their order."""
        self.label_kind = NUMBER
        self.decided = False
        if label is not None and label == weight:
            raise ValueError(f"the column {label!r} cannot hold both the labels and the weights")
        if schema is not None:
            self._recall(schema)

    @classmethod
    def of_schema(cls, schema: dict[str, Any]) -> Columns:
        """The columns that a model was learned from; rows need no labels."""
        said: dict[str, Any] = {name: schema.get(name) for name in ("label", "weight", "bits", "interactions")}
        return cls(schema=schema, optional_label=True, **said)

    def _recall(self, schema: dict[str, Any]) -> None:
        kinds = schema.get("columns", ())
        if kinds is None:  # of events, whose names were hashed without a look at others
            return
        if not isinstance(kinds, dict) or not all(kind in (NUMBER, TEXT) for kind in kinds.values()):
            raise ValueError("the model does not say which columns it was learned from")
        self.label_kind = TEXT if schema.get("label_kind") == TEXT else NUMBER
        self.drop += [str(name) for name in schema.get("drop") or ()]
        self._settle({str(name): str(kind) for name, kind in kinds.items()})

    def schema(self) -> dict[str, Any]:
        """What tells others how to read such columns in the same way."""
        return {
            "label": self.label,
            "label_kind": self.label_kind,
            "weight": self.weight,
            "drop": self.drop,
            "columns": self.kinds,
            "bits": self.bits,
            "interactions": self._interactions.specs,
        }

    # ----------------------------------------------------------------------------------------------------- decisions

    def decide(self, names: Sequence[str], kind_of: Callable[[str], str]) -> None:
        """Say what each of the columns is, in their order; ``kind_of`` tells what the first rows hold."""
        self._check_names(names, [*self.drop, *self.text])
        others = (self.label, self.weight, *self.drop)
        if self.label is not None and self.label in names:
            self.label_kind = TEXT if self.label in self.text else kind_of(self.label)
        kinds = {name: TEXT if name in self.text else kind_of(name) for name in names if name not in others}
        self._settle(kinds)

    def _check_names(self, names: Sequence[str], wanted: Iterable[str]) -> None:
        refuse_repeats(names)
        if self.label is None and not self.optional_label:
            raise ValueError(f"say which column holds the labels, with --label (label=): there are {_list(names)}")
        needed = () if self.optional_label else (self.label, self.weight)
        for name in (*(each for each in needed if each is not None), *wanted):
            if name not in names:
                raise ValueError(f"there is no column {name!r}: there are {_list(names)}")

    def _settle(self, kinds: dict[str, str]) -> None:
        """Features, and whether they are hashed, are known from here on."""
        if len(kinds) > MOST_COLUMNS:
            raise ValueError(f"there are {len(kinds)} columns, but at most {MOST_COLUMNS} are read")
        self.kinds, self.decided = kinds, True
        self.each = list(kinds.items())
        if self._interactions or TEXT in kinds.values():
            self.bits = DEFAULT_BITS if self.bits is None else self.bits
        slots = dict(enumerate(kinds))
        self.meetings: Meetings = self._interactions.meetings(slots, max(len(kinds), 1))
        for spec in self._interactions.specs:
            if not Interactions([spec]).meetings(slots, max(len(kinds), 1)).terms.size:
                raise ValueError(f"the interaction {spec!r} is one of no columns: there are {_list(list(kinds))}")
        self.hashes = hash_names(kinds) if kinds else np.empty(0, np.uint32)

    def places(self, names: Sequence[str]) -> Places:
        """What the columns of a file are, whose order may be another one."""
        self._check_names(names, ())
        absent = [name for name in self.kinds if name not in names]
        if absent:
            raise ValueError(f"there is no column {absent[0]!r}, which was there before: there are {_list(names)}")
        slot_of = {name: slot for slot, name in enumerate(self.kinds)}
        roles, slots = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
        for at, name in enumerate(names):
            roles[at] = self.role(name)
            slots[at] = slot_of.get(name, 0)
        return Places(roles, slots)

    def role(self, name: str) -> int:
        """What a column is, ``layout.CELL_…``."""
        if name == self.label:
            return layout.CELL_LABEL_TEXT if self.label_kind == TEXT else layout.CELL_LABEL
        if name == self.weight:
            return layout.CELL_WEIGHT
        if name in self.drop:
            return layout.CELL_DROPPED
        if name not in self.kinds:
            raise ValueError(
                f"the column {name!r} was not there before: leave it out with --drop {name} (drop=), or learn again"
            )
        return layout.CELL_TEXT if self.kinds[name] == TEXT else layout.CELL_NUMBER

    # ------------------------------------------------------------------------------------------------------ features

    @property
    def n_features(self) -> int | None:
        """How many indices there are; None before it is decided."""
        if not self.decided:
            return None
        return len(self.kinds) if self.bits is None else 1 << self.bits

    def new_known(self) -> NDArray[np.uint8]:
        """Which indices have a name already: none. Empty where it is not noted."""
        few = self.bits is not None and self.bits <= _MOST_NAMED
        return np.zeros(1 << self.bits if few and self.bits is not None else 0, np.uint8)

    def heads(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """How the names of features begin, one after another, and where each ends: of text, the column and ``=``."""
        return joined_bytes([name + ("=" if kind == TEXT else "") for name, kind in self.kinds.items()])

    def column_names(self) -> dict[int, str]:
        """The names of features that are known without looking at cells: of numbers."""
        if self.bits is None:
            return dict(enumerate(self.kinds))
        indices = (self.hashes & np.uint32((1 << self.bits) - 1)).tolist()
        each = zip(indices, self.kinds.items(), strict=True)
        return {index: name for index, (name, kind) in each if kind == NUMBER}

    def cell_names(self, cells: Iterable[Cells], known: NDArray[np.uint8]) -> dict[int, str]:
        """The names of the features of some cells that are text and not ``known``; none where nothing is noted."""
        found: dict[int, str] = {}
        for each in cells:
            if each.named is not None and known.size:
                indices = each.named[0] & np.uint32(known.size - 1)
                for at in np.flatnonzero(known[indices] == 0).tolist():
                    if each.named[1][at]:
                        found.setdefault(int(indices[at]), each.named[1][at])
        return found

    def number_cells(self, slot: int, values: Array, there: NDArray[np.bool_] | None) -> Cells:
        """A column of numbers; where a cell is not there its value does not count."""
        finite = np.isfinite(values)
        bad = np.flatnonzero(~finite if there is None else there & ~finite)
        if bad.size:
            first = float(values[bad[0]])
            same = bad[np.isnan(values[bad])] if first != first else bad[values[bad] == first]
            raise CellError(int(bad[0]), self.each[slot][0], not_finite(first), same)
        return Cells(self.hashes[slot], values, there)

    def text_cells(self, slot: int, texts: Sequence[str], codes: NDArray[Any]) -> Cells:
        """A column of text: ``codes`` are places among ``texts``, -1 where there is none. An empty text is none."""
        name = self.each[slot][0]
        prefix = f"{name}="
        names = [prefix + text if text else "" for text in texts]
        try:
            hashes = np.append(hash_names(names), np.uint32(0))
        except UnicodeEncodeError as error:
            bad = next(at for at, text in enumerate(names) if text == error.object)
            rows = np.flatnonzero(codes == bad)
            told = f"{texts[bad]!r} is no text: it has half of a character"
            raise CellError(int(rows[0]), name, told, rows) from None
        there = np.array([*map(bool, texts), False])[codes]
        return Cells(hashes[codes], 1.0, None if there.all() else there, (hashes[:-1], names))

    def object_cells(self, slot: int, values: Sequence[Any]) -> Cells:
        """A column of Python's own objects: None where there is no cell."""
        name, kind = self.each[slot]
        there = np.array([value is not None for value in values], np.bool_)
        if kind == NUMBER:
            numbers = _plain_numbers(values)
            if numbers is None:
                each = ((row, value) for row, value in enumerate(values))
                numbers = np.array([0.0 if value is None else as_number(value, row, name) for row, value in each])
            return self.number_cells(slot, numbers, None if there.all() else there)
        place: dict[str, int] = {}
        if set(map(type, values)) == {str}:
            codes = [place.setdefault(v, len(place)) for v in values]
        else:
            codes = [-1 if v is None else place.setdefault(as_text(v), len(place)) for v in values]
        return self.text_cells(slot, list(place), np.array(codes, np.intp))

    def rows(self, cells: Sequence[Cells], count: int, settler: Settler) -> Rows:
        """Rows of the cells of all columns, in the order of the columns."""
        missing = sum(count - np.count_nonzero(each.there) for each in cells if each.there is not None)
        values = np.empty((count, len(cells)))
        there = np.ones((count, len(cells)), np.bool_)
        for at, each in enumerate(cells):
            values[:, at] = each.values
            if each.there is not None:
                there[:, at] = each.there
        if self.bits is None:
            values[~there] = 0.0
            ends = np.arange(count + 1, dtype=np.uint64) * np.uint64(len(cells))
            return Rows(ends, np.empty(0, np.uint32), values.reshape(-1), int(missing))
        hashes = np.empty((count, len(cells)), np.uint32)
        for at, each in enumerate(cells):
            hashes[:, at] = each.hashes
        slots = np.broadcast_to(np.arange(len(cells), dtype=np.uint16), there.shape)
        starts = np.append(0, np.cumsum(np.count_nonzero(there, axis=1)))
        return self.settled(
            settler.settle(hashes[there], values[there], slots[there], starts, self.bits, self.meetings), int(missing)
        )

    def settled(self, found: Settled, missing: int) -> Rows:
        """Hashed rows."""
        return Rows(found.indptr.view(np.uint64), found.indices, found.values, missing)


def _plain_numbers(values: Sequence[Any]) -> Array | None:
    """Python's numbers, 0 for None, if nothing has to be looked at one by one."""
    kinds = set(map(type, values))
    if not kinds <= {float, int, type(None)}:
        return None
    with suppress(OverflowError):
        numbers = np.array([0.0 if value is None else value for value in values] if type(None) in kinds else values)
        found = numbers.astype(np.float64)
        if int not in kinds or not (np.abs(found) >= MOST_NUMBER).any():
            return found
    return None


def joined_bytes(names: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names as kernels take them: one after another, and where each begins and ends."""
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    ends = np.append(0, np.cumsum([len(each) for each in encoded])).astype(np.int64)
    return np.frombuffer(b"".join(encoded) + b"\0", np.uint8), ends


def as_number(value: Any, row: int, column: str) -> float:
    """A number or a truth value as a float."""
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise CellError(
            row,
            column,
            f"the column has numbers in the first rows, and here {str(value)[:40]!r}; if it is text say "
            f"--text {column} (text=)",
        )
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isinstance(value, (float, np.floating)) and (abs(number) == float("inf") or int(number) != int(value)):
        raise CellError(row, column, refused_integer(value))
    if not np.isfinite(number):
        raise CellError(row, column, not_finite(number))
    return number


def as_text(value: Any) -> str:
    """A value in a column of text."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def refused_integer(word: Any) -> str:
    """What to say of a whole number that a float cannot hold."""
    return (
        f"the whole number {word} is too large to be held exactly: is it a name? Then make the column text, or drop it"
    )


def not_finite(value: float) -> str:
    """What to say of a number that is none."""
    what = "NaN" if value != value else "inf"
    return f"{what} is no value to learn from: leave the cell empty where nothing is known, or leave the row out"


def refuse_repeats(names: Sequence[str]) -> None:
    """Refuse two columns with one name."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"two columns are called {twice!r}: give one of them another name")


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown + (f", … ({len(names)} in all)" if len(names) > _SHOWN else "") if names else "none"
