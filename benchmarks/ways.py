"""What it costs to call kernels as objects: the same learning through Numba's own dispatch beside it, in one process.

    python benchmarks/ways.py

Each case runs in turn as objects, as objects once more (how much two runs of the same differ), and through Numba.
Ratios are to the first, of the least times. Through Numba everything is compiled anew for this processor, so the first
lines take a minute. The objects are those that this installation uses: of its wheel, or compiled here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from record import Results, parser
from speed import dense_data, fastest, sparse_data

from steelyard import Learner, Mixture, OnlineClassifier
from steelyard.compiled import door, objects
from steelyard.compiled.machine import usable_targets

WAYS = ("objects", "objects again", "numba")


def choose(way: str | None) -> None:
    """Tell the door which way to take; None is what is chosen where nobody says anything."""
    os.environ.pop("STEELYARD_KERNELS", None)
    if way is not None:
        os.environ["STEELYARD_KERNELS"] = way
    for remembered in (door._through_numba, door.get_kernel, door.compiled_loss, door._scalar):
        remembered.cache_clear()


def by_way(way: str, work: Callable[[], Any]) -> Callable[[], Any]:
    """The work, by one of the ways."""

    def run() -> None:
        choose(way.split()[0])
        work()

    return run


def row_by_row(learner: Callable[[], Any], rows: int) -> None:
    model, x, y = learner(), np.random.default_rng(0).normal(size=(1, 20)), np.ones(1)
    for _ in range(rows):
        model.learn(x, y)


def calls(count: int) -> None:
    """Of a kernel that has nothing to do: six arguments, no row."""
    kernel = door.get_kernel("predict")
    arguments = (np.zeros(0), np.zeros(0, np.uint32), np.zeros(1, np.uint64), np.zeros(1), False, np.zeros(0))
    for _ in range(count):
        kernel(*arguments)


def cases(scale: int) -> dict[str, tuple[Callable[[], Any], int, int]]:
    """Name: the work, how many units there are in it, and how often it is repeated."""
    sparse, dense = sparse_data(200_000 // scale), dense_data(500_000 // scale, 50)
    wide, few = dense_data(100_000 // scale, 200), 20_000 // scale
    row, y = np.random.default_rng(0).normal(size=(1, 20)), np.ones(1)

    def partial_fits() -> None:
        model = OnlineClassifier()
        for _ in range(few):
            model.partial_fit(row, y, classes=[-1.0, 1.0])

    def learn(make: Callable[[], Any], data: Any) -> None:
        make().learn(*data)

    scalar, mixture = partial(Learner, "logistic", metric="scalar"), partial(Mixture, "logistic")
    return {
        "Learner, scalar metric, CSR": (partial(learn, scalar, sparse), sparse[0].nnz, 15),
        "Learner, diagonal metric, CSR": (partial(learn, partial(Learner, "logistic"), sparse), sparse[0].nnz, 15),
        "Mixture, CSR": (partial(learn, mixture, sparse), sparse[0].nnz, 15),
        "Learner, scalar metric, 50 dense columns": (partial(learn, scalar, dense), len(dense[1]), 15),
        "Mixture, 200 dense columns": (partial(learn, mixture, wide), len(wide[1]), 9),
        "Learner.learn, one row a call": (partial(row_by_row, partial(Learner, "logistic"), few), few, 9),
        "Mixture.learn, one row a call": (partial(row_by_row, mixture, few), few, 9),
        "partial_fit, one row a call": (partial_fits, few, 9),
        "an empty call of a kernel": (partial(calls, 10 * few), 10 * few, 15),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", default="", metavar="TEXT", help="cases whose names have this in them")
    options = options.parse_args()
    results = Results("ways", options)
    warnings.simplefilter("ignore")
    target = next((t.name for t in usable_targets() if (objects.PACKAGED / t.name).is_dir()), "this processor")
    print(f"objects for {target}")
    before = os.environ.get("STEELYARD_KERNELS")
    for name, (work, units, repeats) in cases(200 if options.quick else 1).items():
        if options.only not in name:
            continue
        times = fastest({way: by_way(way, work) for way in WAYS}, repeats)
        results.compare(name, {way: taken / units for way, taken in times.items()}, WAYS[0])
    choose(before)
    results.save(keep=True)


if __name__ == "__main__":
    main()
