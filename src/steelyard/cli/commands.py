"""``steelyard``: its commands, and what it says when something is wrong."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from steelyard import __version__
from steelyard.cli import certify, compile, completion, convert, data, evaluate, inspect, learn, paper, predict
from steelyard.cli.common import UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``steelyard`` with the given arguments and return its exit code."""
    parser = make_parser()
    options = parser.parse_args(_with_classes(sys.argv[1:] if arguments is None else arguments))
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the reader of our output has gone, as in `steelyard data list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UsageError as error:
        return _complain(str(error), 2)
    except MemoryError as error:
        return _complain(f"not enough memory: {error}")
    except OSError as error:
        known = error.filename is not None and error.strerror is not None
        return _complain(f"{error.filename}: {error.strerror}" if known else str(error))
    except (ValueError, ImportError) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print(f"steelyard: interrupted; {options.interrupted}", file=sys.stderr)
        return 130


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
    """Say what is wrong; returns the exit status: 1 for data, 2 for how the command was used."""
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
