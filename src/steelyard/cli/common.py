"""What several commands need: checks of options."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from steelyard.data.files import is_replaced


class UsageError(ValueError):
    """An option that is wrong, whatever the data: exit status 2, where bad data has 1."""


def check_least(options: argparse.Namespace, **least: int) -> None:
    """Refuse options that are smaller than they may be."""
    for name, value in least.items():
        if getattr(options, name) < value:
            raise UsageError(f"--{name} must be at least {value}, got {getattr(options, name)}")


def check_folder(folder: str | None) -> None:
    """Refuse a folder of data that is not there."""
    if folder is not None and not os.path.isdir(folder):
        raise UsageError(f"--data {folder}: there is no such folder")


def check_output(option: str, path: str | None, is_ours: Callable[[str], bool] | None = None) -> None:
    """Refuse a file that cannot be written, or that would be lost: one of another kind than we write.

    ``is_ours`` says whether a file is of our kind; without it, ours are models.
    """
    if not path:
        return
    if not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        raise UsageError(f"{option} {path}: its folder is not there, or may not be written to")
    if os.path.isdir(path):
        raise UsageError(f"{option} {path} is a folder: name a file")
    if is_replaced(path) and os.path.getsize(path) and not (is_ours or _is_model)(path):
        raise UsageError(
            f"{option} {path} is there, and is not what this command writes: it would be lost. Name another "
            "file, or remove it first"
        )


def _is_model(path: str) -> bool:
    from steelyard.modelfile import may_replace

    return may_replace(path)
