"""From the start of a process to a model: the first time on a machine, the second time, and peers beside it.

    python benchmarks/startup.py                             # this interpreter
    python benchmarks/startup.py --python fresh/bin/python   # one with the wheel, for example

The first time has an empty cache folder; a wheel has its kernels with it, a source checkout compiles them then. Times
are the least of several runs, process start included. Peers are those of the interpreter that runs this; one that is
not there is left out. `make startup` does all of it with a wheel in an environment of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from record import Results, parser, shown

CANCER = """
from sklearn.datasets import load_breast_cancer
from steelyard import OnlineClassifier
OnlineClassifier().fit(*load_breast_cancer(return_X_y=True))
"""
SHELL = "from steelyard.cli import main; main(['learn', {path!r}])"
VOWPAL = "from vowpalwabbit import Workspace; Workspace('-d {path}.vw --loss_function logistic --quiet').finish()"
SGD = """
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file({path!r})
X.indices, X.indptr = X.indices.astype("i4"), X.indptr.astype("i4")
SGDClassifier(loss="log_loss", max_iter=1, tol=None).fit(X, y)
"""
FIT, LEARN, ONE_ROW = "OnlineClassifier().fit on breast cancer", "steelyard learn on 2 MB", "steelyard learn on one row"
OURS = {FIT: CANCER, LEARN: SHELL, ONE_ROW: SHELL}
IMPORTS = "import sklearn.linear_model, numba"
PLAIN = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    IMPORTS: IMPORTS,
}
PEERS = {"SGDClassifier on 2 MB": SGD, "Vowpal Wabbit on 2 MB": VOWPAL}
REPORT = "\nimport sys; print(*sorted({'numba', 'sklearn', 'scipy'} & set(sys.modules)), file=sys.stderr)"


def make(path: Path) -> None:
    """Two megabytes of two classes, for us and in Vowpal Wabbit's format."""
    rng = np.random.default_rng(0)
    truth, lines = rng.normal(size=1000), []
    while len(lines) < 8000:
        indices = np.sort(rng.choice(1000, 20, replace=False))
        values = rng.normal(size=20)
        label = "1" if values @ truth[indices] + rng.normal() > 0 else "-1"
        lines.append((label, " ".join(f"{j + 1}:{v:.6g}" for j, v in zip(indices, values, strict=True))))
    path.write_text("".join(f"{label} {row}\n" for label, row in lines))
    path.with_name(path.name + ".vw").write_text("".join(f"{label} | {row}\n" for label, row in lines))
    path.with_name("one").write_text("1 1:1\n")


def run(python: str, code: str, cache: Path | None) -> tuple[float, str]:
    """Seconds, and what was imported; infinitely many where it failed. Without ``cache``, the user's own is used."""
    environment = dict(os.environ)
    if cache is not None:
        cache.mkdir(exist_ok=True)
        environment["STEELYARD_CACHE"] = str(cache)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    done = subprocess.run([python, "-c", code + REPORT], capture_output=True, text=True, env=environment, cwd=cache)
    seconds = time.perf_counter() - start
    said = done.stderr.splitlines()[-1:] or [""]
    return (seconds, said[0]) if done.returncode == 0 else (np.inf, f"failed: {said[0]}")


def measure(python: str, code: str, kept: Path | None, repeats: int, cold: bool) -> tuple[float, float, str]:
    """The least time with nothing kept from before, if that is asked for, the least later, and what was imported."""
    first = np.nan
    for _ in range(min(repeats, 3) if cold and kept is not None else 0):
        first = np.fmin(first, run(python, code, Path(tempfile.mkdtemp(dir=kept.parent)))[0])
    run(python, code, kept)
    found = [run(python, code, kept) for _ in range(repeats)]
    return first, min(seconds for seconds, _ in found), found[-1][1]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--python", default=sys.executable, metavar="FILE", help="the interpreter to start")
    options.add_argument("--repeats", type=int, default=5, metavar="N")
    options = options.parse_args()
    results, times = Results("startup", options), {}
    repeats = 1 if options.quick else options.repeats
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        make(path)
        kept = None if options.quick else Path(folder) / "kept"  # quick: kernels that are there already
        for name, code in {**OURS, **PLAIN, **({} if options.quick else PEERS)}.items():
            data = path.with_name("one") if name == ONE_ROW else path
            ready = code.replace("{path!r}", repr(str(data))).replace("{path}", str(data))
            python = sys.executable if name in PEERS else os.path.abspath(options.python)
            first, later, imported = measure(python, ready, kept, repeats, name in OURS)
            times[name] = first, later
            if not np.isnan(first):
                results.add(name, "first time", first, "s")
            results.add(name, "later", later, "s", imported=imported)
            before = "" if np.isnan(first) else f"{shown(first, 's')} the first time"
            print(f"{name:40s} {before:>24s} {shown(later, 's'):>10s} later   {imported}", flush=True)
    itself = times[LEARN][1] - times[ONE_ROW][1]
    if not options.quick:
        print(f"the fit's first time is {times[FIT][0] / times[FIT][1]:.2f} of a later one")
    print(
        f"the learning itself takes {itself:.2f} s, and `steelyard learn` "
        f"{times[LEARN][1] / (times[IMPORTS][1] + itself):.2f} of the two imports and that"
    )
    results.save()


if __name__ == "__main__":
    main()
