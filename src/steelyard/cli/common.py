"""What several commands need: checks of options, a progress bar, and mistakes told of a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.data.source import Source


def input_path(path: str) -> str:
    """A file; - is standard input."""
    return "/dev/stdin" if path == "-" else path


def check_least(options: argparse.Namespace, **least: int) -> None:
    """Refuse options that are smaller than they may be."""
    for name, value in least.items():
        if getattr(options, name) < value:
            raise ValueError(f"--{name} must be at least {value}, got {getattr(options, name)}")


def check_folder(folder: str | None) -> None:
    """Refuse a folder of data that is not there."""
    if folder is not None and not os.path.isdir(folder):
        raise ValueError(f"--data {folder}: there is no such folder")


@contextmanager
def told_of(source: Source, before: int = 0) -> Iterator[None]:
    """What is wrong with a row of a block, told of the file; ``before`` of its rows were before the block."""
    from steelyard.data.checks import DataError

    try:
        yield
    except DataError as error:
        place = source.place(before + error.row, error.column)
        what = {"feature": "the value", "label": "the label", "weight": "the weight"}[error.part]
        joined = "it is " if error.part == "label" else ""
        raise ValueError(f"{source.name}, {place} has {what} {error.value:g}: {joined}{error.reason}") from None


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar with the time left on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>28}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda name, done, total: bar.update(task, description=name, completed=done, total=total)
