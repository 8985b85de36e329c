"""Digests of what is learned on fixed data: run it before and after a change that must not change a bit, and compare.

python benchmarks/digests.py > before.txt
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import steelyard
from steelyard import Bank, Learner, Mixture, OnlineClassifier, OnlineRegressor
from steelyard.losses import LOSSES
from steelyard.updates import UPDATES

SCHEDULES, METRICS, CENTERS = (
    ("constant", "power", "adagrad-norm", "gap"),
    ("scalar", "diagonal"),
    ("origin", "trajectory"),
)


def digest(*arrays: Any) -> str:
    state = hashlib.sha256()
    for array in arrays:
        state.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return state.hexdigest()[:16]


def rows(loss: str, n: int = 400) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)) * [1.0, 10.0, 0.1, 1.0, 1.0, 1.0]
    X[rng.random(X.shape) < 0.3] = 0.0
    score = X @ rng.normal(size=6) + rng.normal(size=n)
    y = {"sign": np.sign(score), "binary": np.sign(score), "count": rng.poisson(2.0, n).astype(float), "real": score}
    return X, y[steelyard.get_loss(loss).labels], 10.0 ** rng.uniform(-1, 1, n)


def learned(learner: Any, X: Any, y: Any, h: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = learner.learn(X, y, h)
        parts = [trace.prediction, trace.loss, learner.coef_, learner.intercept_, learner.predict(X)]
        if getattr(learner, "certificate", False):
            certificates = [learner.certify(k) for k in range(learner.n_outputs)]
            parts += [np.append(c.dual, [c.fenchel, c.total_loss, c.weight]) for c in certificates]
    return digest(*parts)


def learners() -> None:
    for loss, schedule, metric, center in itertools.product(LOSSES, SCHEDULES, METRICS, CENTERS):
        X, y, h = rows(loss)
        for update, certificate in itertools.product(UPDATES, (False, True)):
            options = {"update": update, "schedule": schedule, "metric": metric, "center": center}
            found = [
                learned(Learner(loss, certificate=certificate, **options), form, y, h)
                for form in (X, sp.csr_matrix(X), X.astype(np.float32))
            ]
            print(loss, schedule, metric, center, update, certificate, *found)
        bank = Bank(
            loss, updates=tuple(UPDATES), eta0=[0.1, 1.0, 10.0], schedule=schedule, metric=metric, center=center
        )
        print("bank", loss, schedule, metric, center, learned(bank, X, y, h))
        if steelyard.get_loss(loss).labels != "count":
            many = Learner(loss, n_outputs=3, schedule=schedule, metric=metric, center=center, certificate=True)
            print("outputs", loss, schedule, metric, center, learned(many, X, np.arange(400.0) % 3, h))
    for loss, schedule, center, update in itertools.product(("logistic", "squared"), SCHEDULES, CENTERS, UPDATES):
        ball = Learner(loss, update=update, schedule=schedule, metric="scalar", center=center, radius=0.3)
        print("ball", loss, schedule, center, update, learned(ball, *rows(loss)))
    for schedule, update in itertools.product(SCHEDULES, UPDATES):
        guard = Learner("logistic", update=update, schedule=schedule, metric="scalar", center="origin", guard=True)
        print("guard", schedule, update, learned(guard, *rows("logistic")))


def mixtures() -> None:
    for loss, intercept in itertools.product(LOSSES, (False, True)):
        X, y, h = rows(loss)
        for shift in (0.0, 50.0):
            mixture = Mixture(loss, fit_intercept=intercept)
            found = [learned(mixture, X + shift, y, h), learned(Mixture(loss), sp.csr_matrix(X), y, h)]
            shares = [mixture.weights(), mixture.regret(), mixture.regret_bound(), mixture.progressive_loss_]
            print("mixture", loss, intercept, shift, *found, digest(*shares))
        if steelyard.get_loss(loss).labels != "count":
            many = Mixture(loss, n_outputs=3, fit_intercept=intercept)
            print("mixture", loss, intercept, 3, learned(many, X, np.arange(400.0) % 3, h))


def estimators() -> None:
    for data, kind in (
        (load_breast_cancer, OnlineClassifier),
        (load_iris, OnlineClassifier),
        (load_diabetes, OnlineRegressor),
    ):
        X, y = data(return_X_y=True)
        for options in ({}, {"eta0": 1.0}, {"passes": 3}, {"shuffle": False}, {"eta0": 1.0, "metric": "scalar"}):
            model = kind(random_state=0, **options).fit(X, y)
            print(data.__name__, options, digest(model.coef_, model.intercept_, model.progressive_loss_))


def paper() -> None:
    from steelyard.__main__ import main

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):  # it names the folder, another one every time
            main(["paper", "--output", folder, "--repeats", "2", "--jobs", "1", "--no-readings"])
        print("results.csv", hashlib.sha256(Path(folder, "results.csv").read_bytes()).hexdigest()[:16])


if __name__ == "__main__":
    learners()
    mixtures()
    estimators()
    paper()
