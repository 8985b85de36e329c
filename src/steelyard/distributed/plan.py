"""Who learns which rows when: a pure function of how many rows the partitions have, and of nothing else.

Partitions are dealt out to K shards of about as many rows. A first stretch, the first rows of all partitions, is
learned in one place: it fixes what all shards need in common, such as units and scales. Then come rounds. In each,
every shard learns the next rows of all its partitions, from the common model on, and the results are merged. A round
learns as many rows as all before it together: it begins with a model that has seen half of the rows up to its end, and
the number of rounds grows like log K.

Further passes are rounds in which every shard learns all of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    >>> for number, slices in plan_pass([4000, 4000], shards=2):
    ...     print(number, [each.pieces for each in slices])
    0 [(Piece(partition=0, start=0, stop=1000), Piece(partition=1, start=0, stop=1000))]
    1 [(Piece(partition=0, start=1000, stop=2000),), (Piece(partition=1, start=1000, stop=2000),)]
    2 [(Piece(partition=0, start=2000, stop=4000),), (Piece(partition=1, start=2000, stop=4000),)]
    """
    groups = groups_of(rows, shards)
    total, done = sum(rows), [0] * len(rows)
    rounds: list[Round] = []
    for learned in _learned(total, len(groups)) if first else [total]:
        until = [-(-count * learned // total) for count in rows]  # rounded up: no partition is left out
        pieces = [tuple(Piece(p, done[p], until[p]) for p in group if done[p] < until[p]) for group in groups]
        slices = [Slice(shard, each) for shard, each in enumerate(pieces) if each]
        if first and not rounds:  # in one place
            slices = [Slice(0, tuple(sorted(piece for each in pieces for piece in each)))]
        rounds.append(Round(len(rounds), tuple(slices)))
        done = until
    return rounds


def groups_of(rows: Sequence[int], shards: int | None) -> list[list[int]]:
    """The partitions of every shard: each partition in its turn goes to the shard that has the fewest rows.

    So partitions that stand together, and may be alike, are in different shards.
    """
    filled = [p for p, count in enumerate(rows) if count]
    number = min(len(filled), max(min(MOST_SHARDS, sum(rows) // LEAST_ROWS), 1) if shards is None else shards)
    groups: list[list[int]] = [[] for _ in range(number)]
    sizes = [0] * number
    for p in filled:
        shard = sizes.index(min(sizes))
        groups[shard].append(p)
        sizes[shard] += rows[p]
    return groups


def _learned(total: int, shards: int) -> list[int]:
    """How many rows are learned after each round."""
    least = max(total // (FIRST_SHARE * shards), min(total, FIRST_ROWS)) if shards > 1 else total
    after = [total]
    while after[0] // GROWTH >= max(least, 1):
        after.insert(0, after[0] // GROWTH)
    return after
