"""Ways through the code, walked and counted: functions, files, changes of file and of layer between successive calls.

    python benchmarks/journeys.py

Only functions of the package count, each pair of caller and callee once: loops over blocks do not add up.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

import steelyard

SOURCE = Path(steelyard.__file__).parent
LAYERS = {
    "what people see": "cli experiments estimators fitting sweeps certify paper claims plots report",
    "learners": "learner bank mixture online ftrl snapshot modelfile certificate comparator comparators",
    "data": "data blocks ordering text files datasets",
    "kernels": "kernels _library _compile _kernels _mixture",
    "words": "losses updates regularizers schedules",
}


def layer_of(file: str) -> str:
    """The layer of a file of this house, or of an earlier one."""
    name = file.split("/")[0].removesuffix(".py")
    return next((layer for layer, names in LAYERS.items() if name in names.split()), name)


class Walk:
    """The calls of a run, in order, as (file, function)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.all_calls: list[tuple[str, str]] = []
        self.pairs: set[tuple[tuple[str, str], tuple[str, str]]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(SOURCE)) or code.co_name.startswith("<"):
            return
        call = (str(Path(code.co_filename).relative_to(SOURCE)), code.co_name)
        self.all_calls.append(call)
        caller = frame.f_back.f_code if frame.f_back else code
        pair = ((caller.co_filename, caller.co_name), call)
        if pair not in self.pairs:
            self.pairs.add(pair)
            self.calls.append(call)

    def row(self, name: str) -> str:
        files = [file for file, _ in self.calls]
        hops = sum(one != other for one, other in itertools.pairwise(files))
        layers = sum(layer_of(one) != layer_of(other) for one, other in itertools.pairwise(files))
        parsed = sum(function in ("_parse_in", "_parse_stretch") for _, function in self.all_calls)
        return f"{name:32s} {len(set(self.calls)):10d} {len(set(files)):6d} {hops:6d} {layers:7d} {parsed:7d}"


def walk(name: str, run: Callable[[], Any]) -> None:
    run()  # everything is compiled and imported
    steps = Walk()
    threading.setprofile(steps)
    sys.setprofile(steps)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    print(steps.row(name), flush=True)


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    signs = 2.0 * y - 1.0
    sparse = sp.csr_matrix(X)
    from steelyard.cli import main as shell

    def quiet(*arguments: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert shell(arguments) == 0

    print(f"{'':32s} {'functions':>10s} {'files':>6s} {'hops':>6s} {'layers':>7s} {'parses':>7s}")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = str(Path(folder, "cancer"))
        dump_svmlight_file(X, y, data, zero_based=False)
        walk("OnlineClassifier().fit", lambda: steelyard.OnlineClassifier(random_state=0).fit(X, y))
        walk("Learner().learn on CSR", lambda: steelyard.Learner().learn(sparse, signs))
        walk("steelyard learn --no-shuffle", lambda: quiet("learn", data, "--no-shuffle"))
        walk("steelyard learn", lambda: quiet("learn", data))
        paper = ("paper", "--sets", "wine_first", "--repeats", "1", "--jobs", "1", "--rates", "3", "--output")
        walk("steelyard paper", lambda: quiet(*paper, tempfile.mkdtemp(dir=folder)))


if __name__ == "__main__":
    main()
