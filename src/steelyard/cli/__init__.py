"""The command line, a file a command. Each imports what it needs, so that ``--help`` answers at once."""

import os

# NumPy reads it when it is imported, and would start threads that wait, busily, for 60 ms: for nothing
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from steelyard.cli.main import main

__all__ = ["main"]
