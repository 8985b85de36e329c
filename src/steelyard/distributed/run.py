"""One fit on a Dask cluster: tasks that are sent, results that are waited for, what workers hold until it ends."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from steelyard.distributed import tasks
from steelyard.distributed.plan import Piece, Round
from steelyard.online import OnlineLearner
from steelyard.progress import Report


class Data(Protocol):
    """Where the rows of a fit are."""

    rows: list[int]
    """How many each partition has."""

    def source(self, piece: Piece) -> Any:
        """A source of some of them, or a call that makes one."""


class Run:
    """Tasks of one fit on a cluster, and what is held there until it ends."""

    def __init__(self, client: Any, report: Report | None) -> None:
        self._client, self._report = client, report
        self._held: list[Any] = []
        self._begun, self._done, self._total = time.monotonic(), 0, 0

    @staticmethod
    def literal(value: Any) -> Any:
        """A value as a part of the graph, which can be computed again when a worker is lost."""
        import dask

        return dask.delayed(value, pure=False, traverse=False)

    @staticmethod
    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        """A call that a worker is to make."""
        import dask

        return dask.delayed(function, pure=False)(*arguments)

    def submit(self, calls: Sequence[Any]) -> list[Any]:
        """Have calls made; their results stay with the workers until they are released."""
        with warnings.catch_warnings():  # a model of many features is large, and goes with every round
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            futures = list(self._client.compute(list(calls)))
        self._held += futures
        return futures

    def collect(self, name: str, calls: Sequence[Any]) -> list[Any]:
        """Have calls made, and wait for the results."""
        self.begin(len(calls))
        futures = self.submit(calls)
        self._watch(name, futures, [1] * len(futures))
        return list(self._client.gather(futures))

    def round(
        self, name: str, plan: Round, start: OnlineLearner, setup: tuple[Any, Any], data: Data, seed: int
    ) -> tasks.Learned:
        """Learn the slices of a round, merge and fetch the result.

        The next round starts from that, and not from the tasks that made it: of these, nothing is needed any more.
        """
        begin = self.literal(start)
        learned = [
            self.call(tasks.learn, begin, list(map(data.source, pieces)), *setup, [seed, plan.number, shard])
            for shard, pieces in plan.slices
        ]
        merged = tasks.merge_tree(learned, lambda left, right: self.call(tasks.merge_two, left, right, begin))
        signs = [self.call(_sign, each) for each in learned] if self._report else []
        futures = self.submit([merged, *signs])
        self._watch(name, futures[1:], [each.rows for each in plan.slices])
        result: tasks.Learned = futures[0].result()
        self.release(len(futures))
        return result

    def release(self, number: int | None = None) -> None:
        """Let go of the last results, or of all: the workers stop what nobody waits for, and free their memory."""
        while self._held and number != 0:
            self._held.pop().release()
            number = None if number is None else number - 1

    def begin(self, total: int) -> None:
        """Count from 0 to a new total."""
        self._begun, self._done, self._total = time.monotonic(), 0, total

    def _watch(self, name: str, futures: Sequence[Any], sizes: Sequence[int]) -> None:
        """Report results as they come, until one is an error."""
        if self._report is None or not futures:
            return
        from distributed import as_completed

        size = {future.key: size for future, size in zip(futures, sizes, strict=True)}
        for future in as_completed(futures):
            if future.status != "finished":
                return
            self._done += size[future.key]
            speed = self._done / max(time.monotonic() - self._begun, 1e-9)
            self._report(f"{name}, {speed:,.0f}/s", self._done, self._total)


def _sign(learned: tasks.Learned) -> None:
    """That something is learned, for the bar."""
