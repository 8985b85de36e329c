"""The command line, a file a command. Each imports what it needs, so that ``--help`` answers at once."""

from steelyard.cli.main import main

__all__ = ["main"]
