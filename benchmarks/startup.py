"""From the start of a process to a model: the first time on a machine, the second time, and peers beside it.

    python benchmarks/startup.py                             # this interpreter
    python benchmarks/startup.py --python fresh/bin/python   # one with the wheel, for example

The first time has an empty cache folder; a wheel has its kernels with it, a source checkout compiles them then. Times
are the least of several runs, process start included. Vowpal Wabbit's Python package is left out where it is not there.
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
PLAIN = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    "import sklearn.linear_model, numba": "import sklearn.linear_model, numba",
}
OURS = {"OnlineClassifier().fit on breast cancer": CANCER, "steelyard learn on 2 MB": SHELL}
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


def run(python: str, code: str, cache: str | None) -> tuple[float, str]:
    """Seconds, and what was imported."""
    environment = {**os.environ, **({"STEELYARD_CACHE": cache} if cache else {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    done = subprocess.run([python, "-c", code + REPORT], capture_output=True, text=True, env=environment, cwd=cache)
    seconds = time.perf_counter() - start
    return (seconds, done.stderr.splitlines()[-1]) if done.returncode == 0 else (np.nan, "failed")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--python", default=sys.executable, metavar="FILE", help="the interpreter to start")
    options.add_argument("--repeats", type=int, default=5, metavar="N")
    options = options.parse_args()
    repeats = 1 if options.quick else options.repeats
    python, results = os.path.abspath(options.python), Results("startup", options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        make(path)
        kept = None if options.quick else tempfile.mkdtemp(dir=folder)  # quick: kernels that are there already
        for name, code in {**OURS, **({} if options.quick else PLAIN | PEERS)}.items():
            ready = code.replace("{path!r}", repr(str(path))).replace("{path}", str(path))
            first = np.nan
            for _ in range(min(repeats, 3) if name in OURS and not options.quick else 0):
                with tempfile.TemporaryDirectory(dir=folder) as new:
                    first = np.fmin(first, run(python, ready, new)[0])
            run(python, ready, kept)
            found = [run(python, ready, kept) for _ in range(repeats)]
            later, imported = min(seconds for seconds, _ in found), found[-1][1]
            if not np.isnan(first):
                results.add(name, "first time", first, "s")
            results.add(name, "later", later, "s", imported=imported)
            before = "" if np.isnan(first) else f"{shown(first, 's')} the first time"
            print(f"{name:40s} {before:>24s} {shown(later, 's'):>10s} later   {imported}", flush=True)
    results.save()


if __name__ == "__main__":
    main()
