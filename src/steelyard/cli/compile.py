"""``steelyard compile``: everything compiled beforehand, so that nothing has to wait for it later."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from steelyard.cli.common import UsageError, check_least
from steelyard.progress import told_to_people


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "compile",
        help="compile everything beforehand",
        description="Compile every kernel for this machine into the cache folder. A wheel has them already; from a "
        "source checkout each is compiled when it is first used, or all of them by this command.",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: all)")
    parser.add_argument("--output", metavar="DIR", help="compile for a wheel, for other processors too, into a folder")
    parser.add_argument("--target", action="append", metavar="NAME", help="with --output: such processors only")
    parser.set_defaults(run=run, interrupted="what was compiled is kept")


def run(options: argparse.Namespace) -> int:
    """Compile, and say what for and how it goes."""
    from steelyard.compiled import everything, objects
    from steelyard.compiled.machine import wheel_targets

    check_least(options, jobs=1)
    known = {target.name: target for target in wheel_targets()}
    if options.target and not options.output:
        raise UsageError("--target needs --output")
    if options.output and not known:
        raise UsageError("wheels for this kind of system carry no compiled kernels: leave --output out")
    if set(options.target or ()) - set(known):
        raise UsageError(f"--target must be one of {', '.join(known)}")
    start = time.monotonic()
    if not options.output:
        count = everything.compile_here(options.jobs, _report)
        where = "the cache folder" if not count else str(objects.cache_folder())
    else:
        where = options.output
        count = sum(
            everything.compile_for(known[name], Path(where), options.jobs, _report) for name in options.target or known
        )
    if count:
        print(f"{count} functions compiled in {time.monotonic() - start:.0f} s: {where}")
    else:
        print(f"nothing to compile: everything came with the package or is in {where}")
    return 0


def _report(name: str, done: int, total: int) -> None:
    """One line that changes on a terminal, one line each in a pipe."""
    if told_to_people():
        print(f"\r\033[K{done}/{total} {name}", end="" if done < total else "\n", file=sys.stderr, flush=True)
    else:
        print(f"{done}/{total} {name}", file=sys.stderr, flush=True)
