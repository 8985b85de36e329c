"""Names → indices: features hashed into so many bits, and their interactions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from steelyard.compiled.door import get_kernel
from steelyard.data.memory import Recycled
from steelyard.losses import Array

DEFAULT_BITS = 18
MOST_BITS = 30
_MOST_SLOTS = 7  # that meet in one interaction


def check_bits(bits: Any) -> int:
    """How many bits an index has."""
    whole = isinstance(bits, (int, np.integer)) and not isinstance(bits, bool)
    if not whole or not 1 <= bits <= MOST_BITS:
        raise ValueError(f"bits must be a whole number from 1 to {MOST_BITS}, got {bits!r}")
    return int(bits)


def hash_names(names: Iterable[str | bytes], seed: int | NDArray[np.uint32] = 0) -> NDArray[np.uint32]:
    """The 32-bit MurmurHash3 of every name, as UTF-8.

    Examples
    --------
    >>> from steelyard.data.hashing import hash_names
    >>> hash_names(["age", "job=clerk"])
    array([ 717653329, 3570694911], dtype=uint32)
    """
    text, sizes = _joined(list(names))
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    hashes = np.empty(len(sizes), np.uint32)
    seeds = np.ascontiguousarray(np.broadcast_to(np.asarray(seed, np.uint32), hashes.shape))
    get_kernel("hash_names")(np.frombuffer(text, np.uint8), ends, seeds, hashes)
    return hashes


def _joined(names: list[str | bytes]) -> tuple[bytes, list[int]]:
    """All the bytes of some names, and how many each has."""
    with suppress(TypeError):  # not all of them are text
        text = "".join(cast("list[str]", names))
        if text.isascii():  # as most are: then characters are bytes
            return text.encode(), list(map(len, names))
    each = [name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape") for name in names]
    return b"".join(each), list(map(len, each))


class Meetings(NamedTuple):
    """Which slots meet, as the kernel ``settle`` takes it."""

    meets: NDArray[np.int64]
    terms: NDArray[np.int64]

    @property
    def slots(self) -> int:
        """How many slots meet any."""
        return int(self.meets.max(initial=0))


class Interactions:
    """Products of features, of every feature in one slot (namespace or column) with every one in another.

    Parameters
    ----------
    specs : str, a list of them, or None
        Each is a word of letters, ``"ab"`` or ``"abc"``, that stand for all slots whose names start with them, with
        ``:`` for any slot; or names joined by ``*``, ``"age*job"``.
    """

    def __init__(self, specs: str | Sequence[str] | None = None) -> None:
        words: Any = [specs] if isinstance(specs, str) or not isinstance(specs, Iterable) else list(specs)
        self.specs = [] if specs is None else words
        if not all(isinstance(spec, str) for spec in self.specs):
            raise ValueError(f"interactions must be words, as in 'ab' or ['ab', 'age*job'], got {specs!r}")
        self._terms = [spec.split("*") if "*" in spec else list(spec) for spec in self.specs]
        self._letters = ["*" not in spec for spec in self.specs]
        for spec, term in zip(self.specs, self._terms, strict=True):
            if not 2 <= len(term) <= _MOST_SLOTS or not all(term):
                raise ValueError(
                    f"an interaction is two to {_MOST_SLOTS} letters of namespaces or columns, as in 'ab', or names "
                    f"joined by *, as in 'age*job', got {spec!r}"
                )

    def __bool__(self) -> bool:
        return bool(self.specs)

    def meetings(self, slots: Mapping[int, str], size: int) -> Meetings:
        """The terms among the slots that there are, by number and name; numbers are below ``size``."""
        slots = {slot: name for slot, name in slots.items() if name}  # others meet none
        found: dict[tuple[int, ...], tuple[int, ...]] = {}
        for term, letters in sorted(zip(self._terms, self._letters, strict=True), key=_plain_first):
            for chosen in _chosen(slots, term, letters):
                key = tuple(sorted(chosen))
                found.setdefault(key, chosen if len(set(chosen)) == len(chosen) else key)
        chosen_terms = sorted(found.values())
        numbers = {slot: number for number, slot in enumerate(sorted({s for each in chosen_terms for s in each}), 1)}
        meets = np.zeros(size, np.int64)
        for slot, number in numbers.items():
            meets[slot] = number
        table = np.zeros((len(chosen_terms), 1 + _MOST_SLOTS), np.int64)
        for row, each in zip(table, chosen_terms, strict=True):
            row[0], row[1 : 1 + len(each)] = len(each), [numbers[slot] for slot in each]
        return Meetings(meets, table)


def _plain_first(term: tuple[list[str], bool]) -> tuple[bool, list[str]]:
    """In which order Vowpal Wabbit takes interactions, of which two may mean the same slots in different orders."""
    words, letters = term
    return letters and ":" in words, words


def _chosen(slots: Mapping[int, str], term: list[str], letters: bool) -> Iterable[tuple[int, ...]]:
    """The slots that a term means, each time in the order in which Vowpal Wabbit multiplies them."""
    wild = term.count(":") if letters else 0
    if wild == len(term) > 2:
        return (each[::-1] for each in itertools.combinations_with_replacement(sorted(slots), wild))
    if wild > 1:
        term = sorted(term)
    return itertools.product(*(_matching(slots, word, letters) for word in term))


def _matching(slots: Mapping[int, str], word: str, letters: bool) -> list[int]:
    """The slots that a letter or a name means, in order."""
    if not letters:
        return [slot for slot, name in sorted(slots.items()) if name == word]
    return [slot for slot, name in sorted(slots.items()) if word == ":" or name[:1] == word]


class Settled(NamedTuple):
    """Rows in CSR form with indices that ascend."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: Array


class Settler:
    """Room for :meth:`settle` to work in, the same for one stretch of rows after another. Not for two threads."""

    def __init__(self) -> None:
        self._few = np.empty(32, np.uint32)
        self._memory = Recycled()
        self._make(1 << 12)

    def _make(self, size: int) -> None:
        self._size = size
        self._raw, self._product, self._members = np.empty(size, np.uint32), np.empty(size), np.empty(size, np.int64)
        self._keys = np.empty((2, size), np.uint64)

    def settle(
        self,
        hashes: NDArray[np.uint32],
        values: Array,
        slots: NDArray[np.uint16],
        starts: NDArray[np.int64],
        bits: int,
        meetings: Meetings,
    ) -> Settled:
        """Hashed features of rows → indices of ``bits`` bits with interactions; row r is ``starts[r]:starts[r+1]``.

        What is returned is used again when nobody refers to it any more: see :class:`Recycled`.
        """
        kernel = get_kernel("settle")
        if self._size < hashes.size:
            self._make(hashes.size + hashes.size // 8)
        counts = np.empty(266 + meetings.slots, np.int64)
        while True:
            indptr, indices, out = self._memory.take(
                [(starts.size, np.int64), (self._size, np.uint32), (self._size, np.float64)]
            )
            room = (self._raw, self._product, self._keys, self._few, counts, self._members)
            needed = kernel(*(hashes, values, slots, starts, *meetings, bits), *room, indptr, indices, out)
            if needed <= self._size:
                break
            self._make(needed + needed // 8)
        end = int(indptr[-1])
        return Settled(indptr, indices[:end], out[:end])
