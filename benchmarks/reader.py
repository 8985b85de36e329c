"""Our LIBSVM reader against scikit-learn's, on the same large file, in one run.

python benchmarks/reader.py [FILE]            # makes a file of 300,000 lines if none is given
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from steelyard import read_libsvm


def make(path):
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        for _ in range(300_000):
            count = rng.integers(5, 30)
            indices = np.sort(rng.choice(np.arange(1, 1000), count, replace=False))
            values = rng.random(count)
            file.write(
                f"{rng.integers(2)} " + " ".join(f"{j}:{v:.6g}" for j, v in zip(indices, values, strict=True)) + "\n"
            )


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "made"
        if len(sys.argv) == 1:
            make(path)
        read_libsvm(path)
        ours = min(timed(lambda: read_libsvm(path)) for _ in range(5))
        theirs = min(timed(lambda: load_svmlight_file(str(path))) for _ in range(2))
        X, y = read_libsvm(path)
        Z, t = load_svmlight_file(str(path))
        size = path.stat().st_size / 1e6
        print(f"{size:.0f} MB: ours {ours:.3f} s ({size / ours:.0f} MB/s), scikit-learn {theirs:.3f} s")
        print(f"{theirs / ours:.1f} times as fast")
        print("identical:", bool((X != Z).nnz == 0 and np.array_equal(y, t)))


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
