"""A progress bar for people at a terminal, and nothing for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str, int, int | None], None]
"""Told of what is being done, how much of it is done, and how much there is."""


def told_to_people() -> bool:
    """Whether what is said on standard error is read on a terminal; it may be closed."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def progress_bar() -> Iterator[Report | None]:
    """A bar with the time left on a terminal, nothing in a pipe."""
    if not told_to_people():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>28}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda name, done, total: bar.update(task, description=name, completed=done, total=total)
