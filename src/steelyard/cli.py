"""The command line. Each command imports what it needs, so that ``--help`` answers at once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from steelyard import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``steelyard`` with the given arguments and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="steelyard", description="Online linear learning with exact importance weights."
    )
    parser.add_argument("--version", action="version", version=f"steelyard {__version__}")
    parser.parse_args(arguments)
    parser.print_help()
    return 0
