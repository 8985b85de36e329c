"""The paper's experiments (section 4) as data, and a run that can be interrupted and goes on where it stopped."""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.data.files import atomic_write
from steelyard.experiments.sets import Facts, describe, file_stem, load, normalise, titles
from steelyard.experiments.sweep import DEFAULT_RATES, SweepResult, one_shuffle
from steelyard.losses import Array
from steelyard.processes import end_with
from steelyard.regularizers import SCHEDULES
from steelyard.updates import UPDATES

LOSS = {"regression": "squared", "classification": "logistic"}
LIBSVM_DEFAULT = ("abalone_scale", "cpusmall_scale", "cadata", "a9a", "ijcnn1", "mushrooms")


@dataclass(frozen=True)
class Settings:
    """What a run of the paper's protocol depends on, beside the data."""

    rates: tuple[float, ...] = tuple(float(r) for r in DEFAULT_RATES)
    updates: tuple[str, ...] = tuple(UPDATES)
    schedule: str = "gap"
    repeats: int = 10
    seed: int = 0

    def bank_options(self, task: str) -> dict[str, Any]:
        """Arguments of the bank for a task: FTRL, ψ_t = λ_t/2 ‖x‖²."""
        options = {"loss": LOSS[task], "updates": self.updates, "eta0": np.array(self.rates), "schedule": self.schedule}
        return options | {"metric": "scalar", "center": "origin", "fit_intercept": True}


READING_REPEATS = 3
"""Shuffles of a run that asks only whether another reading of λ_t changes a verdict."""


def readings(settings: Settings) -> list[Settings]:
    """The same protocol under the other schedules of λ_t, with a few shuffles."""
    repeats = min(settings.repeats, READING_REPEATS)
    return [replace(settings, schedule=s, repeats=repeats) for s in SCHEDULES if s != settings.schedule]


def run(
    names: Sequence[str], settings: Settings, output: str | os.PathLike[str], **options: Any
) -> dict[str, SweepResult]:
    """Run the protocol on data sets by name, or LIBSVM files, and return a sweep for each, by title (:func:`titles`).

    ``options`` are those of :func:`run_all`, which runs it under several settings.
    """
    return run_all(names, [settings], output, **options)[1][0]


def run_all(
    names: Sequence[str],
    runs: Sequence[Settings],
    output: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[dict[str, Facts], list[dict[str, SweepResult]]]:
    """Run the protocol under several settings: what a reader must know of each set, and a sweep for each, by title.

    Every set is read once before any work, so that nothing is written where one of them is refused. Every finished
    shuffle is kept in ``output/shuffles`` under a name that depends on the settings and on the data, so an interrupted
    run goes on where it stopped, with the same final numbers. ``progress`` is called with the name of the set in hand
    and the shuffles done and to do over all sets. A ``joblib.parallel_config`` around the call chooses where shuffles
    run, a Dask cluster for example.
    """
    import joblib

    names = list(dict.fromkeys(names))
    facts = describe(names, data)
    folder = Path(output) / "shuffles"
    total, done = len(names) * sum(settings.repeats for settings in runs), 0
    results: list[dict[str, SweepResult]] = [{} for _ in runs]
    with joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered") as parallel:
        for name, title in titles(names).items():
            if progress is not None:
                progress(title, done, total)
            task, X, y = load(name, data)
            X, y = normalise(task, X, y)
            folder.mkdir(parents=True, exist_ok=True)
            files = []
            jobs = []
            for settings in runs:
                start, options = f"{file_stem(name)}-{_digest(settings, X, y)}", settings.bank_options(task)
                files.append([folder / f"{start}-{r}.npy" for r in range(settings.repeats)])
                missing = [r for r in range(settings.repeats) if not _is_whole(files[-1][r], settings)]
                done += settings.repeats - len(missing)
                jobs += [(X, y, options, settings.seed, r, files[-1][r], os.getpid()) for r in missing]
            for path, losses in parallel(joblib.delayed(_one_of_many)(*job) for job in jobs):
                _keep(path, losses)
                done += 1
                if progress is not None:
                    progress(title, done, total)
            for settings, kept, result in zip(runs, files, results, strict=True):
                losses = np.stack([np.load(file) for file in kept], axis=2)
                rates = np.array(settings.rates)
                result[title] = SweepResult(
                    losses, settings.updates, rates, LOSS[task], settings.schedule, settings.seed
                )
    return facts, results


def _is_whole(path: Path, settings: Settings) -> bool:
    """Whether a finished shuffle is there and can be read; a damaged one is run again."""
    try:
        return bool(np.load(path, allow_pickle=False).shape == (len(settings.updates), len(settings.rates)))
    except (OSError, ValueError, EOFError):
        return False


def _one_of_many(
    X: Any, y: Array, options: dict[str, Any], seed: int, repeat: int, path: Path, parent: int
) -> tuple[Path, Array]:
    """A shuffle, in whatever process or machine, and the file to keep it in, which only the asking one may have."""
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        end_with(parent)  # others are the process that asked, or a worker whose parent is not that process
    return path, one_shuffle(X, y, None, options, seed, repeat)


def _keep(path: Path, losses: Array) -> None:
    content = io.BytesIO()
    np.save(content, losses)
    with atomic_write(path) as file:
        file.write(content.getvalue())


def _digest(settings: Settings, X: Any, y: Array) -> str:
    """What names the shuffles of a run. The number of repeats is not in it: more of them build on those there are."""
    kept = {k: v for k, v in vars(settings).items() if k != "repeats"}
    state = hashlib.sha256(json.dumps(kept, sort_keys=True).encode())
    for array in (X, y) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr, y):
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()[:12]


def weighted_stream(repeats: int = 5, seed: int = 0) -> tuple[Array, dict[str, Array]]:
    """One pass over breast_cancer with one example in fifty of weight w: the final loss for w from 1 to 10⁴.

    The four updates and scikit-learn's SGD run at the same constant rate of 1. Returns the weights, and for each
    contender the weighted average loss of its final model, (weights, repeats).
    """
    from sklearn.linear_model import SGDClassifier

    from steelyard.data.datasets import load_embedded
    from steelyard.learner import Learner
    from steelyard.losses import get_loss

    loss = get_loss("logistic")
    X, y = normalise("classification", *load_embedded("breast_cancer"))
    weights = np.logspace(0, 4, 9)
    final = {name: np.empty((weights.size, repeats)) for name in (*UPDATES, "sgd")}
    for i, heavy in enumerate(weights):
        for r in range(repeats):
            rng = np.random.default_rng([seed, r])
            order = rng.permutation(len(y))
            h = np.where(rng.permutation(len(y)) < len(y) // 50, heavy, 1.0)
            for name in final:
                if name == "sgd":
                    model = SGDClassifier(
                        loss="log_loss",
                        penalty=None,
                        learning_rate="constant",
                        eta0=1.0,
                        max_iter=1,
                        tol=None,
                        shuffle=False,
                    )
                    model.fit(X[order], y[order], sample_weight=h[order])
                    scores = model.decision_function(X)
                else:
                    learner = Learner(loss, update=name, schedule="constant", metric="scalar", eta0=1.0)
                    learner.learn(X, y, h, order=order)
                    scores = learner.predict(X)
                final[name][i, r] = np.average(loss.value(scores, y), weights=h)
    return weights, final
