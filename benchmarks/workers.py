"""Two workers against one, on the cores of this machine: ``python benchmarks/workers.py [--rows 3000000]``.

Twenty classes over 50 dense columns, made on the workers; Dask's processes, one thread each. Both fits have the same
plan and give the same model, to the bit. A first fit of few rows has everything compiled and imported.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np
from record import Results, parser

from steelyard import OnlineClassifier
from steelyard.distributed import fit

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
CLASSES, COLUMNS = 20, 50


def rows_of(partition: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([7, partition])
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    centers = np.random.default_rng(0).normal(size=(COLUMNS, CLASSES)).astype(np.float32)
    return X, (X @ centers).argmax(axis=1)


def collections(rows: int, partitions: int) -> tuple[Any, Any]:
    import dask
    import dask.array as da

    size = rows // partitions
    parts = [dask.delayed(rows_of, nout=2)(p, size) for p in range(partitions)]
    X = da.concatenate([da.from_delayed(x, (size, COLUMNS), np.float32) for x, _ in parts])
    y = da.concatenate([da.from_delayed(label, (size,), np.int64) for _, label in parts])
    return X, y


def timed(workers: int, rows: int, partitions: int, processes: bool) -> tuple[float, Any]:
    from dask.distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=processes, dashboard_address=None)
    with cluster, Client(cluster):
        fit(OnlineClassifier(random_state=0), *collections(40 * partitions, partitions), shards=partitions)
        X, y = collections(rows, partitions)
        start = time.perf_counter()
        model = fit(OnlineClassifier(random_state=0), X, y, shards=partitions)
        return time.perf_counter() - start, model


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=3_000_000)
    options.add_argument("--partitions", type=int, default=8)
    options.add_argument("--repeats", type=int, default=1, help="the fastest of so many counts")
    options = options.parse_args()
    if options.quick:
        options.rows, options.partitions = 800, 2
    warnings.simplefilter("ignore")
    times, models = {1: np.inf, 2: np.inf}, {}
    for _ in range(options.repeats):
        for workers in times:
            seconds, models[workers] = timed(workers, options.rows, options.partitions, not options.quick)
            times[workers] = min(times[workers], seconds)
    if not np.array_equal(models[1].coef_, models[2].coef_):
        raise SystemExit("one worker and two came to different models")
    results = Results("workers", options)
    case = f"{options.rows:,} rows, {COLUMNS} columns, {CLASSES} classes; the models are the same to the bit"
    results.compare(case, {f"{k} worker{'s' * (k > 1)}": taken for k, taken in times.items()}, "1 worker")
    results.save()


if __name__ == "__main__":
    main()
