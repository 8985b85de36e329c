"""What several commands need: checks of options."""

from __future__ import annotations

import argparse
import os


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
