"""Vowpal Wabbit's lines → rows: ``label importance 'tag |namespace:scale feature:value … |namespace …``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel
from steelyard.data.hashing import DEFAULT_BITS, Interactions, Meetings, Settler, check_bits, hash_names
from steelyard.data.memory import Recycled
from steelyard.data.stretch import Format, Mistake, Part
from steelyard.data.text import STRETCH
from steelyard.kernels import layout

_TWO_WORDS = re.compile(rb"[^|\n]*?[^ |\n]+ +[^ |\n]+ +")
_NAMES = 1 << 14  # that are noted in one stretch, at most
_COMPLAINTS = {
    layout.BAD_LABEL: "the label is not a number",
    layout.BAD_WEIGHT: "the importance after the label is not a number",
    layout.BAD_BASE: "the initial prediction after the importance is not a number",
    layout.BAD_SCALE: "the scale of a namespace is not a number",
    layout.BAD_VALUE: "the feature's value is not a number",
    layout.HAS_BASE: "a third number before the bar is an initial prediction, which is not learned from here: leave it "
    "out, or say --ignore-base (ignore_base=True)",
    layout.TOO_MANY_WORDS: "before the bar there are at most a label, an importance, an initial prediction and a tag",
    layout.NO_BAR: "expected a bar (|), after which features stand",
    layout.NO_NAMESPACE: "a namespace has a name before its scale",
    layout.TAB_IN_LABEL: "before the bar words are separated by blanks, not by tabs",
    layout.LONE_RETURN: "a carriage return may stand only at the end of a line",
}
_ODD_COMPLAINTS = {
    layout.ODD_LABEL: layout.BAD_LABEL,
    layout.ODD_WEIGHT: layout.BAD_WEIGHT,
    layout.ODD_BASE: layout.BAD_BASE,
    layout.ODD_SCALE: layout.BAD_SCALE,
    layout.ODD_VALUE: layout.BAD_VALUE,
}


class _Room:
    """Where a thread works, on one stretch after another."""

    def __init__(self) -> None:
        self.pairs = -1
        self.odd = np.empty((1024, layout.ODD_SIZE), np.int64)
        self.names, self.lately = np.empty((_NAMES, 5), np.int64), np.empty(1 << 16, np.uint32)
        self.work = np.empty(layout.NAMES_SIZE, np.uint64)
        self.settler = Settler()
        self.meetings: dict[bytes, Meetings] = {}
        self._memory = Recycled()

    def fit(self, content: bytes) -> None:
        """Have room for all of a stretch. What becomes part of its rows is new, or not in use any more."""
        rows = pairs = len(content) // 2 + 1  # bounds: memory that is never touched costs nothing
        if len(content) > 4 * STRETCH:  # a very long line
            rows, pairs = content.count(b"\n") + 1, content.count(b" ") + content.count(b"\t") + 1
        self.y, self.weight, self.lines, self.starts = self._memory.take(
            [(rows, np.float64), (rows, np.float64), (rows, np.int32), (rows + 1, np.int64)]
        )
        if pairs > self.pairs:
            self.pairs = pairs = pairs + pairs // 8
            self.hashes, self.values = np.empty(pairs + 16, np.uint32), np.empty(pairs)
            self.slots = np.empty(pairs + 16, np.uint16)

    def leave(self) -> None:
        """The rows are made: their memory is theirs."""
        del self.y, self.weight, self.lines, self.starts


class VwFormat(Format):
    """Vowpal Wabbit's lines, hashed as Vowpal Wabbit does; its constant is no feature here, but the intercept.

    Parameters
    ----------
    bits : int
        Of the indices.
    interactions : str, a list of them, or None
        Products of features by the first letters of their namespaces: ``"ab"``, ``"abc"``, ``"::"``.
    ignore_base : bool
        Whether initial predictions are passed over; else they are refused.
    hash_all : bool
        Whether names that are numbers are hashed, too: Vowpal Wabbit's ``--hash all``.

    Examples
    --------
    >>> from steelyard.data.vw import VwFormat
    >>> form = VwFormat(interactions="AB")
    >>> part = form.parse(b"1 2 'tag |A:2 Herb x:2 |B y\\n", form.new_room())
    >>> part.y, part.weight
    (array([1.]), array([2.]))
    >>> [(index, part.names().get(index)) for index in part.indices.tolist()]
    [(74201, 'A^Herb'), (104178, None), (122473, 'B^y'), (157305, 'A^x'), (167442, None)]
    >>> part.values
    array([2., 2., 1., 4., 4.])
    """

    name = "vw"
    first_decides = False

    def __init__(
        self,
        *,
        bits: int = DEFAULT_BITS,
        interactions: str | Sequence[str] | None = None,
        ignore_base: bool = False,
        hash_all: bool = False,
    ) -> None:
        self.bits = check_bits(bits)
        self.n_features = 1 << self.bits
        self.known = np.zeros(self.n_features, np.uint8)
        self._interactions = Interactions(interactions)
        for spec in self._interactions.specs:
            if "*" in spec or not spec.isascii():
                raise ValueError(
                    f"interactions of Vowpal Wabbit's text are first letters of namespaces, as in 'ab', got {spec!r}"
                )
        self._ignore_base, self._hash_all = ignore_base, hash_all
        self._letters = hash_names([bytes([byte]) for byte in range(256)])
        if not hash_all:
            self._letters[48:58] = np.arange(10)  # digits
            self._letters[:33] = 0  # control characters do not count

    def schema(self) -> dict[str, Any]:
        return {
            "format": self.name,
            "bits": self.bits,
            "interactions": self._interactions.specs,
            "hash_all": self._hash_all,
        }

    def new_room(self) -> Any:
        for kernel in ("parse_vw", "settle"):  # before there are threads: they are loaded once
            get_kernel(kernel)
        return _Room()

    def hint(self, line: bytes, number: int) -> str:
        if b":" in line and b"|" in line and b"\t" not in line:
            return ""
        return "a line is: label importance 'tag |namespace feature feature:value" if b"|" not in line else ""

    def parse(self, content: bytes, room: Any) -> Part:
        room.fit(content)
        text, state = np.frombuffer(content, np.uint8), np.zeros(layout.PARSE_SIZE, np.int64)
        seen = np.zeros(256, np.uint8)
        parser = get_kernel("parse_vw")
        known = self.known
        while True:
            rows = (state, room.y, room.weight, room.lines, room.starts, room.hashes, room.values, room.slots)
            names = (room.odd, room.names, room.lately, room.work)
            parser(text, self._letters, known, *rows, seen, *names, self.bits, self._hash_all, self._ignore_base)
            odd = int(state[layout.PARSE_ODD])
            if odd <= len(room.odd):
                break
            room.odd = np.empty((odd, layout.ODD_SIZE), np.int64)
        for kind, index, start, end in room.odd[:odd].tolist():
            _patch(room, content, kind, index, start, end)
        if state[layout.PARSE_RESULT] != layout.DONE:
            at, result = int(state[layout.PARSE_STOPPED]), int(state[layout.PARSE_RESULT])
            words = _TWO_WORDS.match(content, at) if result == layout.HAS_BASE else None
            raise Mistake(content, at if words is None else words.end(), _COMPLAINTS[result])
        count, found = int(state[layout.PARSE_ROWS]), int(state[layout.PARSE_NAMES])
        pairs = int(state[layout.PARSE_PAIRS])
        settled = room.settler.settle(
            *(room.hashes[:pairs], room.values[:pairs], room.slots[:pairs], room.starts[: count + 1]),
            *(self.bits, self._meetings(room, seen)),
        )
        part = Part(
            y=room.y[:count],
            indptr=settled.indptr,
            indices=settled.indices,
            values=settled.values,
            lines=room.lines[:count].copy(),  # which are remembered for long
            line_count=int(state[layout.PARSE_LINES]),
            size=len(content),
            weight=room.weight[: count if state[layout.PARSE_WEIGHTED] else 0],
            names=partial(_named, content, room.names[:found].copy()) if found else None,
        )
        room.leave()
        return part

    def _meetings(self, room: _Room, seen: NDArray[np.uint8]) -> Meetings:
        """Which of the namespaces that there are meet; those that no letter can name meet none, as in Vowpal Wabbit."""
        there = seen.tobytes() if self._interactions else b""
        if there not in room.meetings:
            names = {byte: chr(byte) for byte in np.flatnonzero(seen).tolist()}
            slots = {byte: name if name.isascii() and name.isprintable() else "" for byte, name in names.items()}
            room.meetings[there] = self._interactions.meetings(slots, seen.size)
        return room.meetings[there]


def _patch(room: _Room, content: bytes, kind: int, index: int, start: int, end: int) -> None:
    """Read what the parser could not read exactly, and put it where it belongs."""
    value = _float(content, start, end, kind)
    if kind in (layout.ODD_VALUE, layout.ODD_SCALE):
        if index >= 0:
            room.values[index] = float(room.values[index]) * value  # NumPy warns of 0 times inf
    elif kind != layout.ODD_BASE:
        (room.y if kind == layout.ODD_LABEL else room.weight)[index] = value


def _float(content: bytes, start: int, end: int, kind: int) -> float:
    token = content[start:end]
    try:
        if b"_" in token or min(token) <= 32:  # Python's float takes 1_000 and blanks around it, the format does not
            raise ValueError
        value = float(token)
        if kind == layout.ODD_LABEL and np.isnan(value):  # that would be a row without a label
            raise ValueError
        return value
    except ValueError:
        raise Mistake(content, start, _COMPLAINTS[_ODD_COMPLAINTS[kind]]) from None


def _named(content: bytes, places: NDArray[np.int64]) -> dict[int, str]:
    """Indices and names, ``namespace^feature`` as Vowpal Wabbit's audit writes them; each index is noted once."""
    found: dict[int, str] = {}
    for index, space, space_end, name, name_end in places.tolist():
        prefix = content[space:space_end] + b"^" if space_end > space else b""
        found[index] = (prefix + content[name:name_end]).decode("utf-8", "replace")
    return found
