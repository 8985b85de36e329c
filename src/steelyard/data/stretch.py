"""A stretch of text and the rows in it: what every text format is made of.

A format says how the lines of a stretch are read; :mod:`steelyard.data.text` cuts files into stretches, has several of
them parsed side by side, and makes a stream of blocks of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.losses import Array

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which a file may begin."""
_NOTHING = np.empty(0)


class Range(NamedTuple):
    """The smallest and the largest index of some lines, and where they are for the first time."""

    smallest: int = 2**62
    smallest_line: int = 0
    largest: int = -1
    largest_line: int = 0


@dataclass
class Part:
    """The rows of one stretch. Its arrays are its own: the room that they were parsed in is used again."""

    y: Array
    """Labels, NaN where a row has none; where labels are text, which of ``labels``."""
    indptr: NDArray[Any]
    indices: NDArray[Any]
    """They ascend in every row; empty where rows are dense."""
    values: Array
    lines: NDArray[np.int32]
    """Where each row starts: how many lines of the stretch are before it."""
    line_count: int
    """Lines of the stretch, ends of lines counted."""
    size: int
    """Bytes of the stretch."""
    weight: Array = field(default_factory=lambda: _NOTHING)
    """Empty where all are 1."""
    labels: list[str] | None = None
    """The text labels of the stretch, in the order in which they come."""
    names: Callable[[], dict[int, str]] | None = None
    """Makes the names of features that were met here for the first time: that is slow, and few are wanted."""
    missing: int = 0
    """How many cells were empty."""
    lost: bool = False
    """Whether it stands for a row that could not be read."""
    range: Range = field(default_factory=Range)
    """Of LIBSVM's indices."""
    query: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    file: str = ""
    first_line: int = 0
    """Lines of the file before the stretch."""

    @classmethod
    def empty(cls, line_count: int, size: int) -> Part:
        """Of a stretch in which there are no rows."""
        nothing = np.empty(0, np.uint32)
        return cls(_NOTHING, np.zeros(1, np.int64), nothing, _NOTHING, np.empty(0, np.int32), line_count, size)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        arrays = (self.y, self.indptr, self.indices, self.values, self.lines, self.weight, self.query)
        return sum(array.nbytes for array in arrays)


class Mistake(Exception):
    """What is wrong, and where in a stretch: ``at``, as far as ``end`` or the next blank.

    ``row`` is where the row begins and ends, where it is not one line.
    """

    def __init__(
        self,
        content: bytes,
        at: int,
        complaint: str,
        *,
        row: tuple[int, int] | None = None,
        end: int | None = None,
    ) -> None:
        self.content, self.at, self.complaint, self.row, self.end = content, at, complaint, row, end


class Format:
    """How lines are read. One object reads all files of a source, in several threads, so parsing changes nothing in it.

    Subclasses say what follows; before :meth:`start` was called nothing but ``name`` is known.
    """

    name: str
    """As ``--format`` has it."""
    dense = False
    """Whether rows are dense, with ``n_features`` values each."""
    n_features: int | None = None
    """How many columns there are; None where indices decide."""
    first_decides = True
    """Whether the first stretch of a file says how others are read: then it must not be short by chance."""
    labels_may_lack = True
    """Whether a row may have no label, and NaN for it."""
    bits: int | None = None
    """Of hashed indices."""
    known: NDArray[np.uint8] = np.empty(0, np.uint8)
    """Which indices have a name already: those of others are noted. Where it is empty, none are."""

    def column_name(self, column: int) -> str | None:
        """The name of a column, where columns have names of their own."""
        return None

    def schema(self) -> dict[str, Any]:
        """What tells others how to read such rows in the same way: anything that JSON can hold."""
        return {"format": self.name}

    def start(self, content: bytes) -> int:
        """Look at the first stretch of a file: returns how many of its bytes are no rows, but a header.

        Of the first file it says what columns there are and of which kind; those of others must have the same.
        """
        return len(BOM) if content.startswith(BOM) else 0

    def cut(self, content: bytes) -> bool:
        """Whether a stretch that ends with a line may end here: not inside of quotes."""
        return True

    def new_room(self) -> Any:
        """Something that :meth:`parse` of one thread works in, and that is used again for the next stretch."""
        raise NotImplementedError

    def parse(self, content: bytes, room: Any) -> Part:
        """The rows of a stretch of whole lines; raises :class:`Mistake` at the first thing that is wrong."""
        raise NotImplementedError

    def hint(self, line: bytes, number: int) -> str:
        """What a line that cannot be read seems to be instead, as the end of a sentence; empty where nobody knows."""
        return ""
