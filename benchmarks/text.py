"""Text → model in one pass, against Vowpal Wabbit on the same rows and loss, in one run; whole processes.

    python benchmarks/text.py [ROWS]          # 500,000 by default; the full size is 2,000,000

The rows are those of Fwumious Wabbit's own benchmark: a label, and twelve namespaces of one word each; the label says
whether the animal (A) eats the food (B), so that it takes the interaction of the two. The same rows as LIBSVM text
have the indices of the hashed words. Last, ``read_libsvm`` beside scikit-learn's reader, called again and again.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from steelyard import read_libsvm
from steelyard.data.opening import open as open_rows

REPEATS = 2
VW = "import sys, vowpalwabbit; vowpalwabbit.Workspace(sys.argv[1]).finish()"
ONE_RATE = ("--eta0", "0.1", "--metric", "diagonal", "--no-certificate")


def make(path, rows):
    """Animals and food, and ten words that mean nothing."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(rows):
            animal, food = rng.integers(0, 1000, 2).tolist()
            diet, kind = rng.integers(0, 2, 2).tolist()
            words = zip("CDEFGHIJKL", rng.integers(0, 10_000, 10).tolist(), strict=True)
            rest = " ".join(f"|{letter} {letter}{word}" for letter, word in words)
            eater, dish = ("Herbivore", "Carnivore")[diet], ("Plant", "Meat")[kind]
            file.write(f"{1 if diet == kind else -1} |A {eater}-{animal} |B {dish}-{food} {rest}\n")


def make_libsvm(source, path):
    """The same rows with their indices of 18 bits."""
    with path.open("w") as file:
        for X, y, _ in open_rows(source, "vw", bits=18):
            for i, label in enumerate(y):
                row = slice(X.indptr[i], X.indptr[i + 1])
                pairs = zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)
                file.write(f"{label:g} " + " ".join(f"{index + 1}:{value:g}" for index, value in pairs) + "\n")


def steelyard(*arguments):
    return [sys.executable, "-m", "steelyard", "learn", *map(str, arguments), "--no-shuffle", "--quiet"]


def vw(path, options):
    return [sys.executable, "-c", VW, f"-d {path} --quiet --loss_function logistic {options}"]


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def fastest(commands):
    """The least time of each; they take turns, so that a noisy moment does not hit one alone."""
    times = {name: [] for name in commands}
    for _ in range(REPEATS):
        for name, command in commands.items():
            times[name].append(seconds(command))
    return {name: min(each) for name, each in times.items()}


def compare(title, peer, ours):
    print(title)
    times = fastest({"VW": peer, **ours})
    for name, taken in times.items():
        print(f"  {name:30s} {taken:7.2f} s   {taken / times['VW']:.2f} of VW", flush=True)


def readers(path, copies):
    large = path.with_suffix(".large")
    large.write_bytes(path.read_bytes() * copies)
    size = large.stat().st_size / 1e6
    ours = [timed(read_libsvm, large) for _ in range(5)]
    theirs = timed(load_svmlight_file, str(large))
    print(f"read_libsvm, {size:.0f} MB, five times: {', '.join(f'{each:.2f}' for each in ours)} s")
    print(f"scikit-learn: {theirs:.2f} s, {theirs / max(ours[1:]):.1f} times the slowest of ours after the first")


def timed(read, path):
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    with tempfile.TemporaryDirectory() as folder:
        text, numbers = Path(folder, "rows.vw"), Path(folder, "rows.libsvm")
        make(text, rows)
        make_libsvm(text, numbers)
        print(f"{rows} rows, {text.stat().st_size / 1e6:.0f} MB of VW's text; whole processes, least of {REPEATS}")
        plain = {"default (no rate)": steelyard(text), "one rate": steelyard(text, *ONE_RATE)}
        compare("VW's text, 18 bits", vw(text, ""), plain)
        fwumious = ("--interactions", "AB", "--bits", 25, "--no-intercept")
        adaptive = "--adaptive -l 0.1 --power_t 0.5 --interactions AB -b 25 --noconstant"
        wide = {
            "default (no rate)": steelyard(text, *fwumious),
            "one rate": steelyard(text, *fwumious, *ONE_RATE),
        }
        compare("Fwumious Wabbit's benchmark: interaction AB, 25 bits", vw(text, adaptive), wide)
        both = {"default (no rate)": steelyard(numbers), "one rate": steelyard(numbers, *ONE_RATE)}
        compare("LIBSVM text, VW on its own text", vw(text, ""), both)
        readers(numbers, max(1, round(100e6 / numbers.stat().st_size)))


if __name__ == "__main__":
    main()
