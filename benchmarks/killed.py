"""Kill `steelyard learn --checkpoint` at random moments, and see that the same command ends in the same model.

    python benchmarks/killed.py [TIMES] [SIGNAL …]       # 50 times each of SIGKILL SIGINT SIGTERM by default

A run without checkpoints is what is compared with, byte by byte. Each trial starts from nothing, is stopped at a moment
that is drawn from the time that a whole run takes, and is then run to its end. At last one run is stopped again and
again, wherever it has come to. No file may be left but the model, the checkpoint and the data.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 60_000
SIGNALS = ("SIGKILL", "SIGINT", "SIGTERM")
WAYS = {"a pass as rows stand": ["--no-shuffle"], "two shuffled passes": ["--passes", "2"]}


def make(path):
    draw = random.Random(0)
    with path.open("w") as file:
        for _ in range(ROWS):
            a, b = draw.randrange(400), draw.randrange(400)
            file.write(f"{1 if (a + b) % 2 else -1} {draw.choice((1, 2, 0.5))} |A x{a} |B y{b}:{draw.random():.3f}\n")


def command(data, model, checkpoint=None, *options):
    words = [sys.executable, "-m", "steelyard", "learn", data, "--bits", "12", "-q", "AB", "--quiet", *options]
    words += ["--model", model]
    return [str(word) for word in words + ([] if checkpoint is None else ["--checkpoint", checkpoint, "--every", 1000])]


def stop(words, seconds, kind):
    """Start, wait, stop; whether it was still running."""
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(kind)
    return process.wait() != 0


def trial(folder, data, options, plain, whole, kind, draw):
    """One run that is stopped once; whether it was, whether there was a checkpoint, whether the model is the same."""
    model, checkpoint = folder / "m", folder / "c"
    words = command(data, model, checkpoint, *options)
    stopped = stop(words, draw.uniform(0.1, whole), kind)
    kept = checkpoint.exists()
    subprocess.run(words, check=True)
    same = model.read_bytes() == plain.read_bytes()
    left = {path.name for path in folder.iterdir()} - {"m", "c"}
    for path in folder.iterdir():
        path.unlink()
    return stopped, stopped and kept, same and not left


def again_and_again(folder, data, options, plain, whole, draw):
    """One run that is stopped until it comes to its end; how often, and whether the model is the same."""
    words, times = command(data, folder / "m", folder / "c", *options), 0
    while times < 100 and stop(words, draw.uniform(0.5, 1.2) * whole, signal.SIGKILL):
        times += 1
    subprocess.run(words, check=True)
    return times, (folder / "m").read_bytes() == plain.read_bytes()


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    signals = [signal.Signals[name] for name in sys.argv[2:] or SIGNALS]
    draw, failed = random.Random(0), 0
    with tempfile.TemporaryDirectory() as place:
        data, folder = Path(place, "rows.vw"), Path(place, "kept")
        make(data)
        for way, options in WAYS.items():
            plain = Path(place, "plain")
            subprocess.run(command(data, plain, None, *options), check=True)
            start = time.monotonic()
            folder.mkdir(exist_ok=True)
            subprocess.run(command(data, folder / "m", folder / "c", *options), check=True)
            whole = time.monotonic() - start
            for path in folder.iterdir():
                path.unlink()
            for kind in signals:
                found = []
                while sum(stopped for stopped, _, _ in found) < times:
                    found.append(trial(folder, data, options, plain, whole, kind, draw))
                    whole *= 1.0 if found[-1][0] else 0.8  # it was at its end already: the machine is faster now
                stopped, kept, same = (sum(each) for each in zip(*found, strict=True))
                failed += len(found) - same
                print(
                    f"{way}, {kind.name}: {len(found)} runs, {stopped} stopped before the end, {kept} of them with a "
                    f"checkpoint; {same} models the same to the bit",
                    flush=True,
                )
            often, right = again_and_again(folder, data, options, plain, whole, draw)
            failed += not right
            print(
                f"{way}, one run stopped {often} times: the model is {'the same' if right else 'ANOTHER'}", flush=True
            )
            for path in folder.iterdir():
                path.unlink()
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
