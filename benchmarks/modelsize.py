"""A hashed model of 2^24 features, of which 100,000 were seen: bytes of its file, and how long loading takes.

The dense table, as ``np.save`` writes it, stands beside it; both were read just before, so the disk plays no part.

    python benchmarks/modelsize.py
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from record import Results, parser

from steelyard import Learner, Mixture

BITS, SEEN = 24, 100_000


def best_time(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    options = parser(__doc__).parse_args()
    bits = 16 if options.quick else BITS
    seen = 1000 if options.quick else SEEN
    rows, results = seen // 20, Results("modelsize", options)
    rng = np.random.default_rng(0)
    indices = rng.choice(2**bits, seen, replace=False).astype(np.int64)
    X = sp.csr_matrix((np.ones(seen), indices, np.arange(0, seen + 1, 20)), shape=(rows, 2**bits))
    X.sort_indices()
    y = rng.choice([-1.0, 1.0], rows)
    with tempfile.TemporaryDirectory() as folder:
        path, dense = Path(folder, "m"), Path(folder, "dense.npy")
        for learner in (Learner("logistic"), Mixture("logistic")):
            learner.learn(X, y)
            saving = best_time(lambda learner=learner: learner.save(path))
            loading = best_time(lambda: Learner.load(path))
            np.save(dense, learner.state.table)
            reading = best_time(lambda: np.load(dense))
            name = f"{type(learner).__name__}, 2^{bits} features, {seen:,} seen"
            times = {"np.load of the dense table": reading, "load": loading, "save": saving}
            results.compare(f"{name}: time", times, "np.load of the dense table")
            sizes = {"dense table": os.path.getsize(dense) / 1e6, "model file": os.path.getsize(path) / 1e6}
            results.compare(f"{name}: size", sizes, "dense table", unit="MB")
    results.save()


if __name__ == "__main__":
    main()
