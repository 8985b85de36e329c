"""The command line, a file a command. Each imports what it needs, so that ``--help`` answers at once."""

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# NumPy reads it when it is imported, and would start threads that wait, busily, for 60 ms: for nothing
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``steelyard`` with the given arguments and return its exit status; with those of the process, end it."""
    status = _run(arguments)
    if arguments is None:
        _leave(status)
    return status


def _leave(status: int) -> None:
    """End the process here: to take every object apart, one by one, would take a good part of a short run, and the
    system takes all memory back at once. Where there are other processes, it is left to Python."""
    if "multiprocessing.process" in sys.modules:
        return
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        atexit._run_exitfuncs()  # also those that a tool that looks on has left
        os._exit(status)


def _run(arguments: Sequence[str] | None) -> int:
    if arguments is None:
        gc.set_threshold(100_000)  # imports make many objects and no garbage, and to look for it takes time
        warnings.showwarning = _show_warning
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError):  # a character that a terminal does not know must not end a command
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        from steelyard.cli.interrupts import noticed  # here, since imports can be interrupted, too

        with noticed() as interrupts:
            try:
                from steelyard.cli.commands import run

                return run(sys.argv[1:] if arguments is None else arguments, interrupts)
            except Exception:
                if not interrupts:
                    raise
                raise KeyboardInterrupt from None
    except KeyboardInterrupt:  # before a command has begun, or while it said that it was interrupted
        with suppress(OSError):
            print("steelyard: interrupted", file=sys.stderr)
        return 130


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """As everything else is said at the shell: which line of the program it comes from helps nobody there."""
    with suppress(OSError):
        print(f"steelyard: {message}", file=sys.stderr)


__all__ = ["main"]
