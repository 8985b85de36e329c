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

from steelyard import Learner, Mixture

BITS, SEEN, ROWS = 24, 100_000, 5_000


def best_time(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    indices = rng.choice(2**BITS, SEEN, replace=False).astype(np.int64)
    X = sp.csr_matrix((np.ones(SEEN), indices, np.arange(0, SEEN + 1, SEEN // ROWS)), shape=(ROWS, 2**BITS))
    X.sort_indices()
    y = rng.choice([-1.0, 1.0], ROWS)
    print(
        f"{'':10s} {'file':>10s} {'dense table':>12s} {'save':>8s} {'load':>8s} {'np.load':>8s} {'load / np.load':>15s}"
    )
    with tempfile.TemporaryDirectory() as folder:
        path, dense = Path(folder, "m"), Path(folder, "dense.npy")
        for learner in (Learner("logistic"), Mixture("logistic")):
            learner.learn(X, y)
            saving = best_time(lambda learner=learner: learner.save(path))
            loading = best_time(lambda: Learner.load(path))
            np.save(dense, learner.state.table)
            reading = best_time(lambda: np.load(dense))
            sizes = f"{os.path.getsize(path) / 1e6:7.2f} MB {os.path.getsize(dense) / 1e6:9.1f} MB"
            print(
                f"{type(learner).__name__:10s} {sizes} {saving:6.3f} s {loading:6.3f} s {reading:6.3f} s "
                f"{loading / reading:15.3f}"
            )


if __name__ == "__main__":
    main()
