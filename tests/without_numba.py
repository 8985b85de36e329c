"""Everything that people do with built-in losses, in one process; says at the end whether Numba was needed for it.

STEELYARD_CACHE=$(mktemp -d) python tests/without_numba.py          # in an environment with the wheel
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import steelyard
from steelyard import Bank, Learner, Mixture, OnlineClassifier, OnlineRegressor
from steelyard.cli import main
from steelyard.compiled import door
from steelyard.losses import LOSSES

ROWS, COLUMNS = 120, 6


def forms(X):
    """Dense and sparse rows, of single and double precision, with indices of 32 and 64 bits."""
    for data in (np.float32, np.float64):
        yield X.astype(data)
        for index in (np.int32, np.int64):
            sparse = sp.csr_matrix(X.astype(data))
            sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
            yield sparse


def library(X, labels):
    for form, loss in itertools.product(forms(X), LOSSES):
        y = labels[steelyard.get_loss(loss).labels]
        ball = Learner(loss, metric="scalar", radius=1.0)
        learners = (Learner(loss, certificate=True), ball, Learner(loss, schedule="gap"), Mixture(loss))
        for learner in (*learners, Bank(loss, eta0=[0.1, 1.0])):
            learner.learn(form, y)
            learner.predict(form)
            if learner.certificate:
                learner.certify().regret_bound(radius=1.0)
    for form in forms(X):
        for options in ({}, {"eta0": 1.0}, {"eta0": 1.0, "metric": "full"}, {"passes": 2, "shuffle": False}):
            OnlineClassifier(**options).fit(form, np.arange(ROWS) % 2).predict(form)
            OnlineClassifier(**options).fit(form, np.arange(ROWS) % 3).predict(form)
            OnlineRegressor(**options).fit(form, labels["real"]).predict(form)
        steelyard.sweep(form, labels["sign"], eta0=[0.1, 1.0], repeats=2)


def shell(folder, X, labels):
    path, model = Path(folder) / "data", Path(folder) / "model"
    lines = [
        f"{y:g} " + " ".join(f"{j + 1}:{v:.5g}" for j, v in enumerate(row)) + "\n"
        for row, y in zip(X, labels["sign"], strict=True)
    ]
    path.write_text("".join(lines))
    for command in (
        ["learn", str(path), "--model", str(model)],
        ["learn", str(path), "--no-shuffle", "--eta0", "1"],
        ["predict", str(model), str(path)],
        ["certify", str(path)],
    ):
        assert main(command) == 0, command


def run():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    X[rng.random(X.shape) < 0.3] = 0.0
    sign = np.sign(rng.normal(size=ROWS))
    labels = {"real": rng.normal(size=ROWS), "count": rng.poisson(2.0, ROWS) + 0.0, "sign": sign, "binary": sign}
    library(X, labels)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        shell(folder, X, labels)
    print("compiled:", *door.compiled_here or ["nothing"])
    print("Numba:", "imported" if "numba" in sys.modules else "not imported")


if __name__ == "__main__":
    run()
