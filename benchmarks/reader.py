"""Our LIBSVM reader against scikit-learn's, on the same large file, in one run.

python benchmarks/reader.py [FILE]            # makes a file of 300,000 lines if none is given
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from record import Results, parser
from sklearn.datasets import load_svmlight_file

from steelyard import read_libsvm


def make(path, rows):
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        for _ in range(rows):
            count = rng.integers(5, 30)
            indices = np.sort(rng.choice(np.arange(1, 1000), count, replace=False))
            values = rng.random(count)
            file.write(
                f"{rng.integers(2)} " + " ".join(f"{j}:{v:.6g}" for j, v in zip(indices, values, strict=True)) + "\n"
            )


def main():
    options = parser(__doc__)
    options.add_argument("file", nargs="?", type=Path, metavar="FILE")
    options = options.parse_args()
    results = Results("reader", options)
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "made"
        if options.file is None:
            make(path, 3000 if options.quick else 300_000)
        X, y = read_libsvm(path)
        Z, t = load_svmlight_file(str(path))
        if (X != Z).nnz or not np.array_equal(y, t):
            raise SystemExit("the two readers differ")
        times = {
            "scikit-learn's load_svmlight_file": min(timed(lambda: load_svmlight_file(str(path))) for _ in range(2)),
            "read_libsvm": min(timed(lambda: read_libsvm(path)) for _ in range(5)),
        }
        size = path.stat().st_size / 1e6
        results.compare(
            f"LIBSVM text of {size:.3g} MB, read to the same bits", times, next(iter(times)), megabytes=size
        )
    results.save()


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
