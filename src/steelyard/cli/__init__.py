"""The command line, a file a command. Each imports what it needs, so that ``--help`` answers at once."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

# NumPy reads it when it is imported, and would start threads that wait, busily, for 60 ms: for nothing
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``steelyard`` with the given arguments and return its exit status."""
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


__all__ = ["main"]
