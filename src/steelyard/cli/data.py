"""``steelyard data``: LIBSVM sets by name."""

from __future__ import annotations

import argparse
from typing import Any

from steelyard.cli.common import check_folder


def add_parser(commands: Any) -> None:
    """The options of both commands."""
    data = commands.add_parser("data", help="list or fetch data sets").add_subparsers(
        title="commands", metavar="COMMAND", required=True
    )
    listing = data.add_parser("list", help="the data sets by name, and which are at hand")
    listing.add_argument("--data", metavar="DIR", help="folder to look in (default: the cache folder)")
    listing.set_defaults(run=run_list)
    fetching = data.add_parser("fetch", help="download LIBSVM sets into the cache folder")
    fetching.add_argument("names", nargs="+", metavar="NAME")
    fetching.add_argument("--data", metavar="DIR", help="folder to keep them in (default: the cache folder)")
    fetching.add_argument("--force", action="store_true", help="keep a set even if its hash is not the known one")
    fetching.set_defaults(run=run_fetch, interrupted="sets that were named before are kept")


def run_list(options: argparse.Namespace) -> int:
    """Print the sets by name, and where they are."""
    from steelyard.data import datasets

    check_folder(options.data)
    print(f"{'name':30s} {'task':15s} {'rows':>8s} {'features':>9s}  where")
    for name, task in datasets.EMBEDDED.items():
        X, _ = datasets.load_embedded(name)
        print(f"{name:30s} {task:15s} {X.shape[0]:8d} {X.shape[1]:9d}  with scikit-learn")
    for known in datasets.SETS.values():
        path = datasets.find(known.name, options.data)
        where = str(path) if path is not None else "not here (steelyard data fetch)"
        print(f"{known.name:30s} {known.task:15s} {known.rows:8d} {known.features:9d}  {where}")
    return 0


def run_fetch(options: argparse.Namespace) -> int:
    """Download sets by name."""
    from steelyard.data import datasets

    for name in options.names:
        present = datasets.find(name, options.data) is not None
        path = datasets.fetch(name, options.data, force=options.force)
        if present:
            checked = "was there already"
        elif datasets.SETS[name].sha256 is None:
            checked = "its shape is right; no hash of it is known"
        else:
            checked = "its shape is right; its hash was not asked for" if options.force else "its hash is right"
        print(f"{name}: {path} ({checked})")
    return 0
