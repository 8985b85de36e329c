"""Who learns which rows when: a pure function of how many rows the partitions have, and of nothing else.

Partitions in order are put together to K shards of about as many rows. A first stretch, the first rows of all shards,
is learned in one place: it fixes what all shards need in common, such as units and scales. Then come rounds. In each,
every shard learns the next slice of its own rows, starting from the common model, and the results are merged. A round
learns as many rows as all before it together: it begins with a model that has seen half of the rows up to its end, and
the number of rounds grows like log K.

Further passes are rounds in which every shard learns all of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

MOST_SHARDS = 64
"""Shards, where the caller does not say how many: fixed, so that the model does not depend on the cluster."""
LEAST_ROWS = 10_000
"""Rows of a shard, where the caller does not say how many shards: fewer are learned faster than sent around."""
FIRST_ROWS = 2000
"""The least that is learned in one place, where there are so many rows."""
FIRST_SHARE = 4
"""The first stretch is at least one part in so many of a shard."""
GROWTH = 2
"""By how much a round multiplies the number of rows that are learned."""


class Piece(NamedTuple):
    """Some rows of a partition."""

    partition: int
    start: int
    stop: int


class Slice(NamedTuple):
    """What one task learns: pieces, one after the other."""

    shard: int
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """How many rows they are."""
        return sum(piece.stop - piece.start for piece in self.pieces)


class Round(NamedTuple):
    """Slices that are learned from the same model, and then merged."""

    number: int
    slices: tuple[Slice, ...]


def plan_pass(rows: Sequence[int], shards: int | None = None, *, first: bool = True) -> list[Round]:
    """The rounds of a pass over partitions of so many rows, in which each row is learned once.

    Examples
    --------
    >>> from steelyard.distributed.plan import plan_pass
    >>> for number, slices in plan_pass([4000, 2000, 2000], shards=2):
    ...     print(number, [each.pieces for each in slices])
    0 [(Piece(partition=0, start=0, stop=1000), Piece(partition=1, start=0, stop=1000))]
    1 [(Piece(partition=0, start=1000, stop=2000),), (Piece(partition=1, start=1000, stop=2000),)]
    2 [(Piece(partition=0, start=2000, stop=4000),), (Piece(partition=2, start=0, stop=2000),)]
    """
    groups = _groups(rows, shards)
    sizes = [sum(rows[p] for p in group) for group in groups]
    total, done = sum(sizes), [0] * len(groups)
    rounds: list[Round] = []
    for learned in _learned(total, len(groups)) if first else [total]:
        until = [-(-size * learned // total) for size in sizes]  # rounded up: no shard is left out
        pieces = [_pieces(rows, group, *ends) for group, *ends in zip(groups, done, until, strict=True)]
        slices = [Slice(shard, each) for shard, each in enumerate(pieces) if each]
        if first and not rounds:  # in one place
            slices = [Slice(0, tuple(piece for each in pieces for piece in each))]
        rounds.append(Round(len(rounds), tuple(slices)))
        done = until
    return rounds


def _groups(rows: Sequence[int], shards: int | None) -> list[list[int]]:
    """The partitions that have rows, in groups of neighbours whose ends are nearest to those of equal parts."""
    filled = [p for p, count in enumerate(rows) if count]
    ends = [0, *accumulate(rows[p] for p in filled)]
    number = min(len(filled), max(min(MOST_SHARDS, ends[-1] // LEAST_ROWS), 1) if shards is None else shards)
    cuts = [0]
    for k in range(1, number):
        possible = range(cuts[-1] + 1, len(filled) - (number - k) + 1)
        cuts.append(min(possible, key=lambda at: abs(ends[at] * number - k * ends[-1])))
    return [filled[lo:hi] for lo, hi in zip(cuts, [*cuts[1:], len(filled)], strict=True)] if filled else []


def _learned(total: int, shards: int) -> list[int]:
    """How many rows are learned after each round."""
    least = max(total // (FIRST_SHARE * shards), min(total, FIRST_ROWS)) if shards > 1 else total
    after = [total]
    while after[0] // GROWTH >= max(least, 1):
        after.insert(0, after[0] // GROWTH)
    return after


def _pieces(rows: Sequence[int], group: Sequence[int], start: int, stop: int) -> tuple[Piece, ...]:
    """Rows ``start`` … ``stop`` of a group of partitions, by partition."""
    found, before = [], 0
    for partition in group:
        lo, hi = max(start - before, 0), min(stop - before, rows[partition])
        if lo < hi:
            found.append(Piece(partition, lo, hi))
        before += rows[partition]
    return tuple(found)
