"""``steelyard``: its commands, and what it says when something is wrong."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from steelyard import __version__
from steelyard.cli import certify, compile, completion, convert, data, evaluate, inspect, learn, paper, predict
from steelyard.cli.common import UsageError


def run(arguments: Sequence[str], interrupts: Sequence[int]) -> int:
    """Run a command; what goes wrong becomes a sentence and an exit status.

    ``interrupts`` is no longer empty when there was one: see :mod:`steelyard.cli.interrupts`.
    """
    parser = make_parser()
    try:
        options = parser.parse_args(_with_classes(arguments))
    except SystemExit:  # help and versions are printed there
        try:
            _flush()
        except OSError as error:
            return _complain(_of_system(error))
        raise
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    if sys.stdout is None and options.run in (predict.run, evaluate.run, inspect.run):
        return _complain("standard output is closed, and there is nothing else that this command does")
    try:
        status = int(options.run(options))
        _flush()  # while it can still be told that nobody takes what was printed
        return status
    except BrokenPipeError:  # the reader of our output has gone, as in `steelyard data list | head`
        _print_no_more()
        return 141
    except UsageError as error:
        return _complain(str(error), 2)
    except MemoryError as error:
        return _complain(f"not enough memory: {error}")
    except OSError as error:
        return _complain(_of_system(error))
    except KeyboardInterrupt:
        return _interrupted(options)
    except Exception as error:
        if interrupts:
            return _interrupted(options)
        if not isinstance(error, (ValueError, ImportError)):
            raise
        return _complain(str(error))


def _interrupted(options: argparse.Namespace) -> int:
    """Say what is true then."""
    told = options.interrupted() if callable(options.interrupted) else options.interrupted
    return _complain(f"interrupted; {told}", 130)


def _of_system(error: OSError) -> str:
    """What the system refused, and for which file. What has no name is a standard stream."""
    if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        _print_no_more()
        return f"standard output: {error.strerror}"
    if error.filename is None and error.errno == errno.EBADF:
        return "standard input is closed"
    known = error.filename is not None and error.strerror is not None
    return f"{error.filename}: {error.strerror}" if known else str(error)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _print_no_more() -> None:
    """What is still to be printed goes nowhere, so that the interpreter does not try it again at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _with_classes(arguments: Sequence[str]) -> list[str]:
    """``--classes -1,1`` as ``--classes=-1,1``: argparse takes -1,1 for an option."""
    found: list[str] = []
    for word in arguments:
        if found and found[-1] == "--classes" and word[:1] == "-" and word[1:2].isdigit():
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _complain(message: str, status: int = 1) -> int:
    """Say what is wrong; returns the exit status: 1 for data, 2 for how the command was used, 130 for Ctrl-C."""
    try:
        _flush()
    except OSError:
        _print_no_more()
    with suppress(OSError):
        print(f"steelyard: {message}", file=sys.stderr)
    return status


def make_parser() -> argparse.ArgumentParser:
    """All the commands and their options."""
    parser = argparse.ArgumentParser(
        prog="steelyard", description="Online linear learning with exact importance weights."
    )
    parser.add_argument("--version", action="version", version=f"steelyard {__version__}")
    parser.set_defaults(interrupted="nothing was written")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in (learn, predict, evaluate, inspect, convert, paper, certify, data, compile, completion):
        command.add_parser(commands)
    return parser
