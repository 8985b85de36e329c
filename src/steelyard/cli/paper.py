"""``steelyard paper``: the paper's experiments, with figures and a page."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from steelyard.cli.common import UsageError, check_folder, check_least
from steelyard.progress import progress_bar
from steelyard.regularizers import SCHEDULES

_PATIENCE = 10.0  # seconds to wait for a scheduler


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "paper",
        help="run the paper's experiments and write figures and a page",
        description="Run the paper's experiments (section 4): loss against initial learning rate for four updates.",
    )
    parser.add_argument(
        "--sets", nargs="+", metavar="DATA", help="data sets by name (`steelyard data list`), or LIBSVM files"
    )
    parser.add_argument("--data", metavar="DIR", help="folder with LIBSVM files; then the default is six LIBSVM sets")
    parser.add_argument(
        "--schedule",
        default="gap",
        choices=tuple(SCHEDULES),
        help="of the rates (default gap, a reading of the paper's, which it does not print)",
    )
    parser.add_argument(
        "--readings",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also run a few shuffles under the other schedules, to see which verdicts depend on it (default: yes)",
    )
    parser.add_argument("--rates", type=int, default=25, metavar="N", help="rates between 1e-3 and 1e3 (default 25)")
    parser.add_argument("--repeats", type=int, default=10, metavar="N", help="shuffles (default 10)")
    parser.add_argument(
        "--jobs", type=int, default=-1, metavar="N", help="processes (default: one a core; not with --cluster)"
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on the Dask cluster whose scheduler has this address, such as tcp://host:8786, on all of its cores",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the shuffles (default 0)")
    parser.add_argument("--output", default="paper", metavar="DIR", help="where the results go (default: paper)")
    parser.set_defaults(
        run=run_paper,
        defaults=parser.get_default,
        interrupted="what was finished is kept, and the same command goes on from there",
    )


def run_paper(options: argparse.Namespace) -> int:
    """Run the experiments and write the page."""
    import numpy as np

    from steelyard.data import datasets
    from steelyard.experiments import paper

    check_least(options, rates=2, repeats=1, seed=0)
    if options.jobs == 0:
        raise UsageError("--jobs must be a number of processes, or -1 for one a core, got 0")
    check_folder(options.data)
    if os.path.exists(options.output) and not os.path.isdir(options.output):
        raise UsageError(f"--output {options.output} is a file: name a folder")
    names = options.sets or list(datasets.EMBEDDED if options.data is None else paper.LIBSVM_DEFAULT)
    rates = tuple(float(rate) for rate in np.logspace(-3, 3, options.rates))
    settings = paper.Settings(rates, schedule=options.schedule, repeats=options.repeats, seed=options.seed)
    from steelyard.experiments import report  # before the work: it needs matplotlib, which may be missing

    runs = [settings, *(paper.readings(settings) if options.readings else ())]
    with _cluster(options.cluster), progress_bar() as progress:
        facts, (results, *others) = paper.run_all(
            names, runs, options.output, data=options.data, n_jobs=options.jobs, progress=progress
        )
    run = report.Run(settings, facts, results, others, _command(options))
    claims = report.write(options.output, run, options.jobs)
    print(f"{options.schedule} schedule: {report.summary(claims)}. The page: {options.output}/index.html")
    return 0


def _command(options: argparse.Namespace) -> str:
    """The command that was given, as far as its options are not the defaults."""
    words = ["steelyard", "paper"]
    for name in ("sets", "data", "schedule", "rates", "repeats", "seed", "jobs", "cluster", "output"):
        value = getattr(options, name)
        if value != options.defaults(name):
            words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    return shlex.join(words if options.readings else [*words, "--no-readings"])


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Let joblib run its jobs on a Dask cluster, if there is one."""
    if address is None:
        yield
        return
    import joblib

    try:
        from distributed import Client
    except ImportError:
        raise ImportError("--cluster needs Dask: pip install 'steelyard[distributed]'") from None
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(f"--cluster {address}: there is no Dask scheduler ({error})") from None
    with client, joblib.parallel_config("dask"):
        yield
