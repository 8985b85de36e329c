"""Peak memory of `steelyard learn -` on a short and on a long stream through a pipe, made on the fly.

    python benchmarks/memory.py [MEGABYTES] [FORMAT …]       # of the long stream, 4,000; the short one has 40

Rows are drawn again and again from 5,000 different ones, so that the text costs nothing to make.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading

from record import Results, parser

SHORT = 40
FORMATS = ("vw", "libsvm", "csv", "json")


def make(kind, rows=5_000):
    """Some rows as text, and the line before them."""
    draw = random.Random(0)
    lines = []
    for _ in range(rows):
        a, b, x = draw.randrange(1000), draw.randrange(1000), draw.random()
        label = 1 if (a + b) % 2 else -1
        if kind == "vw":
            lines.append(f"{label} |A a{a}:{x:.4f} |B b{b} |C c{draw.randrange(10_000)} d{draw.randrange(10_000)}")
        elif kind == "libsvm":
            more = sorted(draw.sample(range(1, 50_000), 12))
            lines.append(f"{label} " + " ".join(f"{i}:{draw.random():.4f}" for i in more))
        elif kind == "csv":
            lines.append(f"{x:.4f},a{a},b{b},{label}")
        else:
            lines.append(f'{{"x": {x:.4f}, "a": "a{a}", "b": "b{b}", "y": {label}}}')
    return ("x,a,b,y\n" if kind == "csv" else "").encode(), ("\n".join(lines) + "\n").encode()


def peak(kind, megabytes, *options):
    """The most memory that the process had, in MB, as the system counts it."""
    first, rows = make(kind)
    command = [sys.executable, "-m", "steelyard", "learn", "-", "--format", kind, "--no-shuffle", "--quiet", *options]
    command += ["--label", "y"] if kind in ("csv", "json") else []
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None

    def write(pipe=process.stdin):
        with pipe:
            pipe.write(first)
            for _ in range(int(megabytes * 1e6 / len(rows))):
                pipe.write(rows)

    writer = threading.Thread(target=write)
    writer.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    writer.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main():
    options = parser(__doc__)
    options.add_argument("megabytes", nargs="?", type=int, default=4000, metavar="MEGABYTES")
    options.add_argument("formats", nargs="*", metavar="FORMAT", help="default all")
    options = options.parse_args()
    smallest, long = (1, 2) if options.quick else (SHORT, options.megabytes)
    results = Results("memory", options)
    for kind in options.formats or FORMATS:
        peaks = {f"{each:,} MB of text": peak(kind, each) for each in (smallest, long)}
        results.compare(kind, peaks, next(iter(peaks)), unit="MB")
    results.save()


if __name__ == "__main__":
    main()
