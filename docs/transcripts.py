"""The transcripts of shell commands in the documentation: run them, and compare or write what they print.

    python docs/transcripts.py [--write] [--data FOLDER]

Every ```` ```console ```` block of the pages below is run, line by line, in a folder of its own in which
:func:`make_data` has put files. Those that read LIBSVM's a9a need a FOLDER that has it (`steelyard data fetch a9a a9a.t
--data FOLDER`), and are left as they are without one. Numbers may differ in their last digits from processor to
processor: they are compared to three.
"""

from __future__ import annotations

import argparse
import lzma
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = [Path(__file__).parent / "guide" / "streams.md"]
_FIRST_USE = "steelyard: compiling for this machine, once"
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def make_data(folder):
    """Clicks as Vowpal Wabbit's text, people as CSV, visits as a folder of Parquet files."""
    draw = random.Random(0)
    with (folder / "clicks.vw").open("w") as file:
        for _ in range(20_000):
            user, ad, hour = draw.randrange(30), draw.randrange(30), draw.randrange(24)
            label = 1 if (user % 3 == ad % 3) != (draw.random() < 0.1) else -1
            file.write(f"{label} {draw.choice([1, 2])} |user u{user} |ad a{ad} |time hour:{hour / 24:.3f}\n")
    jobs = {"clerk": -0.5, "nurse": 0.0, "engineer": 1.0, "farmer": -1.0}
    for name, rows in (("people.csv", 5000), ("later.csv", 1000)):
        with (folder / name).open("w") as file:
            file.write("age,job,hours,income,copies\n")
            for _ in range(rows):
                age, job, hours = draw.randrange(18, 70), draw.choice(list(jobs)), draw.randrange(10, 60)
                rich = jobs[job] + (hours - 35) / 10 + draw.gauss(0, 1) > 0
                shown = job if draw.random() > 0.02 else ""
                file.write(f"{age},{shown},{hours},{'high' if rich else 'low'},{draw.randrange(1, 4)}\n")
    try:
        import pandas as pd
    except ImportError:
        return
    (folder / "visits").mkdir()
    for day in range(3):
        rows = [(draw.choice("abc"), draw.randrange(100), round(draw.gauss(0, 1), 3)) for _ in range(2000)]
        frame = pd.DataFrame(rows, columns=["page", "seconds", "score"])
        frame["spent"] = (frame["seconds"] * 0.3 + frame["page"].eq("a") * 10 + frame["score"]).round(3)
        frame.to_parquet(folder / "visits" / f"day-{day}.parquet")


def take_a9a(folder, data):
    """Whether LIBSVM's a9a is there now."""
    for name in ("a9a", "a9a.t"):
        plain, packed = Path(data, name), Path(data, name + ".xz")
        if plain.exists():
            (folder / name).write_bytes(plain.read_bytes())
        elif packed.exists():
            (folder / name).write_bytes(lzma.decompress(packed.read_bytes()))
        else:
            return False
    return True


def run(block, folder, has_a9a):
    """A block with what its commands print now."""
    lines, commands = [], [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    if not has_a9a and any("a9a" in command for command in commands):
        return block
    shell = f'steelyard() {{ "{sys.executable}" -m steelyard "$@"; }}; '
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", f"{{ {shell} {command}\n }} 2>&1"], cwd=folder, capture_output=True, text=True, check=False
        )
        printed = done.stdout.rstrip("\n").splitlines()
        lines += [f"$ {command}", *(line for line in printed if not line.startswith(_FIRST_USE))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def alike(one, other):
    """Whether texts are the same but for the last digits of numbers."""
    if [NUMBER.sub("#", line).split() for line in one.splitlines()] != [
        NUMBER.sub("#", line).split() for line in other.splitlines()
    ]:
        return False
    each = [[float(found.replace(",", "")) for found in NUMBER.findall(text)] for text in (one, other)]
    return all(math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-6) for a, b in zip(*each, strict=True))


def check(page, data, *, write=False):
    """The blocks of a page that print something else now, as (before, now)."""
    text, different = page.read_text(), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_data(folder)
        has_a9a = bool(data) and take_a9a(folder, data)

        def renewed(match):
            now = run(match[1], folder, has_a9a)
            if not alike(match[1], now):
                different.append((match[1], now))
            return f"```console\n{now}```"

        text = re.sub(r"```console\n(.*?)```", renewed, text, flags=re.DOTALL)
    if write:
        page.write_text(text)
    return different


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write what is printed now into the pages")
    parser.add_argument("--data", default=os.environ.get("STEELYARD_DATA"), help="folder with a9a and a9a.t")
    options = parser.parse_args()
    failed = False
    for page in PAGES:
        for before, now in check(page, options.data, write=options.write):
            failed = not options.write
            print(f"{page.name} has\n{before}and now there is\n{now}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
