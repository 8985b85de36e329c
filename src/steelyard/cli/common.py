"""What several commands need: checks of options."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from typing import Any

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
    if os.path.isdir(path):
        raise UsageError(f"{option} {path} is a folder: name a file")
    if os.path.exists(path) and not is_replaced(path):  # a pipe, a device, a stream: written to as it is
        return
    if not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        raise UsageError(f"{option} {path}: its folder is not there, or may not be written to")
    if os.path.exists(path) and os.path.getsize(path) and not (is_ours or _is_model)(path):
        raise UsageError(
            f"{option} {path} is there, and is not what this command writes: it would be lost. Name another "
            "file, or remove it first"
        )


def check_is_file(option: str, path: str) -> None:
    """Refuse what cannot be read again: a pipe, a device, a stream of this process."""
    if os.path.exists(path) and not is_replaced(path):
        raise UsageError(f"{option} {path} must be a file, which can be read again: not a pipe or a device")


_OPTIONS = ("update", "schedule", "power_t", "metric", "center", "radius", "eta0", "l1", "l2", "average")
_SAID = re.compile(rf"\b({'|'.join(_OPTIONS)})=(?:'([^']*)'|(True)|([\w.]+))")
_NAMED = re.compile(r"(?<![-\w/])(power_t|radius|eta0|l1|l2)(?![\w=])")


def in_shell_words(message: str) -> str:
    """A sentence about a learner's parameters with the words of the shell: ``metric='full'`` is ``--metric full``.

    Examples
    --------
    >>> from steelyard.cli.common import in_shell_words
    >>> in_shell_words("average=True and power_t=0.1 need metric='scalar', and l1 = 0")
    '--average and --power-t 0.1 need --metric scalar, and --l1 = 0'
    """

    def said(found: re.Match[str]) -> str:
        name, text, _, number = found.groups()
        return " ".join(filter(None, (option_word(name), text or number)))

    return _NAMED.sub(lambda found: option_word(found[0]), _SAID.sub(said, message))


def option_word(name: str) -> str:
    """What a parameter is called at the shell."""
    return f"--{name.replace('_', '-')}"


def _is_model(path: str) -> bool:
    from steelyard.modelfile import may_replace

    return may_replace(path)


def one_line(text: str) -> str:
    """A name as it is shown: with ends of lines, and what else commands a terminal, in letters."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def class_name(label: Any) -> str:
    """The label of a class as it is printed: text as it is, numbers with all their digits."""
    if isinstance(label, str):
        return one_line(label)
    if isinstance(label, float) and abs(label) < 1e16 and label == int(label):
        label = int(label)
    return str(label)
