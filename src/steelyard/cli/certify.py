"""``steelyard certify``: true regret beside the bound that each update certifies."""

from __future__ import annotations

import argparse
import os
from typing import Any

from steelyard.cli.common import check_folder
from steelyard.regularizers import SCHEDULES


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "certify",
        help="regret and its certified bounds on data sets",
        description="Run every update, and the mixture that needs no rate, on a data set and compare its true regret "
        "with the bound that it certifies. As in the paper's experiments, columns and real targets are standardised "
        "first, and rows scaled to norm 1.",
    )
    parser.add_argument("sets", nargs="+", metavar="DATA", help="data sets by name, or LIBSVM files")
    parser.add_argument("--data", metavar="DIR", help="folder with LIBSVM files (default: the cache folder)")
    parser.add_argument("--loss", help="default: squared for regression, logistic for two classes")
    parser.add_argument(
        "--eta0", type=float, nargs="+", default=[1.0], metavar="RATE", help="initial rates (default 1)"
    )
    parser.add_argument(
        "--schedule",
        default="gap",
        choices=tuple(SCHEDULES),
        help="of the rates (default gap, a reading of the paper's, which it does not print)",
    )
    parser.add_argument("--guard", action="store_true", help="keep Algorithm 1's condition where the regularizer grows")
    parser.add_argument("--seed", type=int, default=0, help="of the shuffle (default 0)")
    parser.add_argument("--output", metavar="DIR", help="also draw regret against rounds into this folder")
    parser.set_defaults(run=run, interrupted="the tables that are printed are whole")


def run(options: argparse.Namespace) -> int:
    """Print a table for each data set and rate, and draw it if asked to."""
    from steelyard.experiments import paper, regret, sets

    if options.output:
        from steelyard.experiments import plots
    check_folder(options.data)
    for name, title in sets.titles(options.sets).items():
        task, X, y = sets.load(name, options.data)
        X, y = sets.normalise(task, X, y)
        for eta0 in options.eta0:
            loss = options.loss or paper.LOSS[task]
            best, runs = regret.regret_curves(
                X, y, loss=loss, eta0=eta0, schedule=options.schedule, seed=options.seed, guard=options.guard
            )
            print(f"\n{title}: {loss} loss, η₀ = {eta0:g}, {options.schedule} schedule, {len(y)} rounds")
            print(f"best in hindsight: average loss {best.total_loss / len(y):.6g}, to {best.gap / len(y):.1g}\n")
            print(regret.markdown(runs))
            print("\n" + regret.LEGEND)
            if options.output:
                os.makedirs(options.output, exist_ok=True)
                figure = plots.figure_regret(title, eta0, runs)
                plots.save(figure, options.output, f"regret-{sets.file_stem(name)}-{eta0:g}")
    return 0
