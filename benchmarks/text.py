"""Text → model in one pass, against Vowpal Wabbit on the same rows and loss, in one run; whole processes.

    python benchmarks/text.py [ROWS] [--parts PART …]          # 500,000 by default; the full size is 2,000,000

The parts, all of them by default:

    vw          Vowpal Wabbit's text at 18 bits
    fwumious    the same with Fwumious Wabbit's options: the interaction AB, 25 bits
    cache       the same from a cache: of `steelyard convert`, and Vowpal Wabbit's own
    libsvm      the same rows as LIBSVM text, with the indices of the hashed words; VW on its own text
    start       the first 10 MB of the text
    columns     the same rows as CSV of text columns, as CSV of numbers, as JSON lines and as Parquet, beside the time
                in which pandas or pyarrow only reads the file
    reader      read_libsvm beside scikit-learn's reader, on 100 MB, called again and again

The rows are those of Fwumious Wabbit's own benchmark: a label, and twelve namespaces of one word each; the label says
whether the animal (A) eats the food (B), so that it takes the interaction of the two. Python's own compiled files are
kept on the way, as an installed package has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from record import Results, parser
from sklearn.datasets import load_svmlight_file

from steelyard import read_libsvm
from steelyard.data.opening import open as open_rows

REPEATS = 5
PARTS = ("vw", "fwumious", "cache", "libsvm", "start", "columns", "reader")
READER = "scikit-learn's load_svmlight_file"
VW = "import sys, vowpalwabbit; vowpalwabbit.Workspace(sys.argv[1]).finish()"
ONE_RATE = ("--eta0", "0.1", "--metric", "diagonal", "--no-certificate")
FWUMIOUS = ("--interactions", "AB", "--bits", 25, "--no-intercept")
VW_FWUMIOUS = "--adaptive -l 0.1 --power_t 0.5 --interactions AB -b 25 --noconstant"
PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1])"
ARROW = "import sys, pyarrow.{0} as reader; reader.read_{1}(sys.argv[1])"


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


def make_columns(source, folder):
    """The same rows as columns: as text in CSV, JSON lines and Parquet, and numbers in CSV."""
    import pandas as pd

    names = ["label", *"ABCDEFGHIJKL"]
    text = pd.read_csv(source, sep=r" ?\|. | \|. ", engine="python", header=None, names=names)
    numbers = text.apply(lambda column: column if column.name == "label" else pd.factorize(column)[0] * 0.25)
    text.to_csv(folder / "words.csv", index=False)
    text.to_json(folder / "words.jsonl", orient="records", lines=True)
    text.to_parquet(folder / "words.parquet", index=False)
    numbers.to_csv(folder / "numbers.csv", index=False)


def steelyard(*arguments):
    return [sys.executable, "-m", "steelyard", "learn", *map(str, arguments), "--no-shuffle", "--quiet"]


def with_and_without_rate(*arguments):
    return {"default (no rate)": steelyard(*arguments), "one rate": steelyard(*arguments, *ONE_RATE)}


def vw(path, options):
    return [sys.executable, "-c", VW, f"-d {path} --quiet --loss_function logistic {options}"]


def seconds(command, folder):
    """A process, with Python's compiled files as an installed package has them, wherever the sources are."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(
        command, check=True, capture_output=True, env={**environment, "PYTHONPYCACHEPREFIX": str(folder / "pyc")}
    )
    return time.perf_counter() - start


def fastest(commands, folder, repeats):
    """The least time of each; they take turns, so that a noisy moment does not hit one alone."""
    times = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            times[name].append(seconds(command, folder))
    return {name: min(each) for name, each in times.items()}


def compare(results, title, peer, ours, folder, name="VW"):
    repeats = 1 if results.options.quick else REPEATS
    results.compare(title, fastest({name: peer, **ours}, folder, repeats), name)


def from_cache(results, text, folder):
    """A pass over each tool's own cache, which is made before."""
    ours, theirs = folder / "rows.arrow", folder / "rows.cache"
    convert = [sys.executable, "-m", "steelyard", "convert", str(text), "--quiet", "--output", str(ours)]
    made = seconds([*convert, "--interactions", "AB", "--bits", "25"], folder)
    seconds(vw(text, f"{VW_FWUMIOUS} --cache_file {theirs} -k"), folder)
    print(f"\nconvert: {made:.2f} s, {ours.stat().st_size / 1e6:.0f} MB")
    title = "Fwumious Wabbit's benchmark, from a cache"
    peer = vw(text, f"{VW_FWUMIOUS} --cache_file {theirs}")  # VW takes the cache where there is one
    compare(results, title, peer, with_and_without_rate(ours, "--no-intercept"), folder)


def start(results, text, folder):
    """A small file, on which the start of the process weighs."""
    small = folder / "small.vw"
    with text.open("rb") as file:
        content = file.read(10_000_000)
    small.write_bytes(content[: content.rfind(b"\n") + 1])
    compare(results, "10 MB of VW's text, 18 bits", vw(small, ""), with_and_without_rate(small), folder)


def columns(results, text, folder):
    """Files of columns → a model, beside the time of reading them into memory alone."""
    make_columns(text, folder)
    readers = {
        "numbers.csv": ("pandas.read_csv", [sys.executable, "-c", PANDAS]),
        "words.csv": ("pandas.read_csv", [sys.executable, "-c", PANDAS]),
        "words.jsonl": ("pyarrow.json", [sys.executable, "-c", ARROW.format("json", "json")]),
        "words.parquet": ("pyarrow.parquet", [sys.executable, "-c", ARROW.format("parquet", "table")]),
    }
    for name, (peer, command) in readers.items():
        path = folder / name
        title = f"{name}, a file of columns"
        compare(results, title, [*command, str(path)], with_and_without_rate(path, "--label", "label"), folder, peer)


def readers(results, path, copies):
    large = path.with_suffix(".large")
    large.write_bytes(path.read_bytes() * copies)
    size = large.stat().st_size / 1e6
    ours = [timed(read_libsvm, large) for _ in range(5)]
    theirs = timed(load_svmlight_file, str(large))
    times = {READER: theirs, "read_libsvm, first": ours[0], "read_libsvm, slowest of four more": max(ours[1:])}
    results.compare(f"LIBSVM text of {size:.0f} MB into a matrix", times, READER)


def timed(read, path):
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def main():
    options = parser(__doc__)
    options.add_argument("rows", nargs="?", type=int, default=500_000, metavar="ROWS")
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help="default: all")
    options = options.parse_args()
    rows = 500 if options.quick else options.rows
    results, parts = Results("text", options), options.parts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, numbers = folder / "rows.vw", folder / "rows.libsvm"
        make(text, rows)
        print(f"{rows} rows, {text.stat().st_size / 1e6:.0f} MB of VW's text; whole processes, least of {REPEATS}")
        if "vw" in parts:
            compare(results, "VW's text, 18 bits", vw(text, ""), with_and_without_rate(text), folder)
        if "fwumious" in parts:
            title = "Fwumious Wabbit's benchmark: interaction AB, 25 bits"
            compare(results, title, vw(text, VW_FWUMIOUS), with_and_without_rate(text, *FWUMIOUS), folder)
        if "cache" in parts:
            from_cache(results, text, folder)
        if {"libsvm", "reader"} & set(parts):
            make_libsvm(text, numbers)
        if "libsvm" in parts:
            compare(results, "LIBSVM text, VW on its own text", vw(text, ""), with_and_without_rate(numbers), folder)
        if "start" in parts:
            start(results, text, folder)
        if "columns" in parts:
            columns(results, text, folder)
        if "reader" in parts:
            readers(results, numbers, max(1, round((1e5 if options.quick else 1e8) / numbers.stat().st_size)))
    results.save(keep=set(parts) != set(PARTS))


if __name__ == "__main__":
    main()
