"""Scores on rows held out: the default `fit` on raw columns, beside scikit-learn's models with a scaler before them.

    make scores [DATA=folder]         # or: python benchmarks/scores.py [--data folder] [--rows 2000 --repeats 2]

The sets are the LIBSVM files of a folder, or those inside scikit-learn. A set is tested on its own test file (NAME.t)
where there is one, and on a quarter of its rows otherwise, the same for all models; scores are means over the splits
or, with a test file, over the orders of the rows. The tables go to scores.csv, scores.md and the standard output.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from record import Results, parser
from sets import WIDE, dense, read_sets, table, write
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from steelyard import OnlineClassifier, OnlineRegressor
from steelyard.data.datasets import find, load_file
from steelyard.progress import progress_bar

OURS, SGD, OFFLINE = "steelyard", "SGD", "offline"
CLOSE = 0.01
SCORES = {"classification": "accuracy", "regression": "R²"}
CAPTION = f"""\
Scores on held-out rows, mean of {{repeats}} splits, of at most {{rows}} rows of a set. "{OURS}" is `OnlineClassifier()`
or `OnlineRegressor()`, one pass over the columns as they are. "{SGD}" is `StandardScaler` and `SGDRegressor()` or
`SGDClassifier(loss="log_loss")`, "{OFFLINE}" is `StandardScaler` and `Ridge()` or `LogisticRegression()`, all at their
defaults (beyond {WIDE} features, rows stay sparse and columns are not centered). The difference is our score less
the offline model's, with its standard error over the splits, bold where it is below -{CLOSE}. Times are the processor's
in `fit`, one thread, scaler included, the fastest of all splits: ours in milliseconds, the others as multiples of it,
above 1 where we are faster. Sets in *italics* have a test file of their own, and all their splits are the same rows in
another order."""


class Set(NamedTuple):
    """Rows to learn and, where the set has a file for it, rows to test with."""

    task: str
    X: Any
    y: np.ndarray
    test: tuple[Any, np.ndarray] | None = None

    def split(self, seed: int, rows: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        order = np.random.default_rng(seed).permutation(len(self.y))[:rows]
        if self.test is not None:
            return self.X[order], self.y[order], *self.test
        held, rest = np.split(order, [len(order) // 4])
        return self.X[rest], self.y[rest], self.X[held], self.y[held]


def gather(folder: str | None, skip: list[str], classes: list[str]) -> Iterator[tuple[str, Set]]:
    for name, task, X, y in read_sets(folder, skip):
        if folder is not None and name.endswith("_scale") and find(name.removesuffix("_scale"), folder):
            continue  # raw columns are the point here
        if name in classes:
            task = "classification"
        path = find(f"{name}.t", folder) if folder is not None else None
        if path is None:
            yield name, Set(task, dense(X), y)
            continue
        _, Z, t = load_file(path)
        width = max(X.shape[1], Z.shape[1])
        for each in (X, Z):
            each.resize(each.shape[0], width)
        yield name, Set(task, dense(X), y, (dense(Z), t))
    if folder is None:
        for name, load in (("digits", load_digits), ("iris", load_iris), ("wine", load_wine)):
            yield name, Set("classification", *load(return_X_y=True))


def models(task: str, wide: bool, seed: int) -> dict[str, Any]:
    def after_scaler(model: Any) -> Any:
        return make_pipeline(StandardScaler(with_mean=not wide), model)

    if task == "classification":
        return {
            OURS: OnlineClassifier(random_state=seed),
            SGD: after_scaler(SGDClassifier(loss="log_loss", random_state=seed)),
            OFFLINE: after_scaler(LogisticRegression()),
        }
    return {
        OURS: OnlineRegressor(random_state=seed),
        SGD: after_scaler(SGDRegressor(random_state=seed)),
        OFFLINE: after_scaler(Ridge()),
    }


def probabilities(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Of all classes, also of those that were not among the rows learned."""
    found = np.zeros((X.shape[0], classes.size))
    found[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return found


def measure(given: Set, seed: int, rows: int) -> dict[str, dict[str, float]]:
    """By model: the score, the log loss of classes, and the processor's seconds in ``fit``, as machines are shared."""
    X, y, Z, t = given.split(seed, rows)
    wide = X.shape[1] > WIDE
    if seed == 0:
        models(given.task, wide, seed)[OURS].fit(X, y)  # compiled, or loaded, before the clock runs
    found = {}
    for name, model in models(given.task, wide, seed).items():
        start = time.process_time()
        model.fit(X, y)
        found[name] = {"seconds": time.process_time() - start}
        if given.task == "classification":
            classes = np.union1d(y, t)
            found[name]["accuracy"] = accuracy_score(t, model.predict(Z))
            found[name]["log loss"] = log_loss(t, probabilities(model, Z, classes), labels=classes)
        else:
            found[name]["R²"] = r2_score(t, model.predict(Z))
    return found


class Result(NamedTuple):
    """What came out of a set, an entry a split."""

    task: str
    rows: int
    outputs: int
    own_test: bool
    runs: list[dict[str, dict[str, float]]]

    def values(self, model: str, what: str) -> np.ndarray:
        return np.array([run[model][what] for run in self.runs])

    def mean(self, model: str, what: str) -> float:
        values = self.values(model, what)
        return float(values.min() if what == "seconds" else values.mean())

    def gain(self) -> np.ndarray:
        """Our score less the offline model's, in every split."""
        return self.values(OURS, SCORES[self.task]) - self.values(OFFLINE, SCORES[self.task])

    def slower(self, model: str) -> float:
        return self.mean(model, "seconds") / self.mean(OURS, "seconds")


def run(sets: dict[str, Set], options: argparse.Namespace) -> dict[str, Result]:
    warnings.simplefilter("ignore")
    found, done = {}, 0
    with progress_bar() as progress, threadpool_limits(1):
        for name, each in sets.items():
            runs = []
            for seed in range(options.repeats):
                runs.append(measure(each, seed, options.rows))
                done += 1
                if progress is not None:
                    progress(name, done, len(sets) * options.repeats)
            rows = each.split(0, options.rows)[0].shape[0]
            outputs = np.unique(each.y).size if each.task == "classification" else 1
            found[name] = Result(each.task, rows, outputs, each.test is not None, runs)
    return found


def difference(values: np.ndarray) -> str:
    error = f" ± {values.std(ddof=1) / np.sqrt(values.size):.3f}" if values.size > 1 else ""
    shown = f"{values.mean():+.3f}{error}"
    return f"**{shown}**" if values.mean() < -CLOSE else shown


def task_table(results: dict[str, Result], task: str) -> str:
    score, trio = SCORES[task], (OURS, SGD, OFFLINE)
    losses = trio if task == "classification" else ()
    head = [
        "set",
        "rows learned",
        *(["classes"] if losses else []),
        *(f"{score}: {each}" for each in trio),
        "difference",
    ]
    head += [*(f"log loss: {each}" for each in losses), "fit, ms", *(f"fit: {each}" for each in (SGD, OFFLINE))]
    rows = []
    for name, each in results.items():
        row = [f"*{name}*" if each.own_test else name, f"{each.rows:,}", *([str(each.outputs)] if losses else [])]
        row += [*(number(each.mean(model, score)) for model in trio), difference(each.gain())]
        row += [number(each.mean(model, "log loss"), 4) for model in losses]
        row += [f"{each.mean(OURS, 'seconds') * 1e3:.1f}", *(f"{each.slower(model):.1f}" for model in (SGD, OFFLINE))]
        rows.append(row)
    return table(head, rows)


def number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{value:.0e}"


def summary(results: dict[str, Result]) -> str:
    lines = []
    for task, score in SCORES.items():
        those = [each for each in results.values() if each.task == task]
        if not those:
            continue
        gaps = np.array([each.gain().mean() for each in those])
        lines.append(
            f"{score} no more than {CLOSE} below the offline model's: {(gaps >= -CLOSE).sum()} of {len(those)} sets"
        )
        better = sum(each.mean(OURS, score) >= each.mean(SGD, score) - CLOSE for each in those)
        lines.append(f"{score} no more than {CLOSE} below scaled SGD's: {better} of {len(those)} sets")
        if task == "classification":
            for model, called in ((SGD, "scaled SGD's"), (OFFLINE, "the offline model's")):
                lower = sum(each.mean(OURS, "log loss") < each.mean(model, "log loss") for each in those)
                lines.append(f"log loss lower than {called}: {lower} of {len(those)} sets")
    for model, called in ((SGD, "scaled SGD"), (OFFLINE, "the offline model")):
        ratio = np.exp(np.mean([np.log(each.slower(model)) for each in results.values()]))
        lines.append(f"time of {called} as a multiple of ours, geometric mean: {ratio:.1f}")
    return "".join(f"- {line}\n" for line in lines)


def markdown(results: dict[str, Result], caption: str) -> str:
    parts = [f"{caption}\n", summary(results)]
    for task in SCORES:
        those = {name: each for name, each in results.items() if each.task == task}
        if those:
            parts.append(task_table(those, task))
    return "\n".join(parts)


def csv_rows(results: dict[str, Result]) -> Iterator[list[Any]]:
    for name, each in results.items():
        for model, measures in each.runs[0].items():
            yield from ([name, each.task, each.rows, model, what, repr(each.mean(model, what))] for what in measures)


def main():
    options = parser(__doc__)
    options.add_argument(
        "--data", help="a folder of LIBSVM files, compressed or not (default: scikit-learn's own sets)"
    )
    options.add_argument("--skip", nargs="*", default=[], metavar="NAME", help="sets to leave out")
    why = "sets whose labels are classes: more than two look like targets of regression (default: news20)"
    options.add_argument("--classes", nargs="*", default=["news20"], metavar="NAME", help=why)
    options.add_argument("--rows", type=int, default=30_000, help="of each set and split, at most (default: 30000)")
    options.add_argument("--repeats", type=int, default=5, help="splits (default: 5)")
    options.add_argument("--output", type=Path, default=Path("scores"), help="folder of scores.csv and scores.md")
    options = options.parse_args()
    if options.quick:
        options.rows, options.repeats = 100, 2
    sets = dict(gather(options.data, options.skip, options.classes))
    if not sets:
        raise SystemExit(f"no set in {options.data}")
    results = run(sets, options)
    text = markdown(results, CAPTION.format(**vars(options)))
    write(options.output, "scores", ["set", "task", "rows", "model", "measure", "value"], csv_rows(results), text)
    print(text)
    kept = Results("scores", options)
    for name, each in results.items():
        for model, what in ((model, what) for model, measures in each.runs[0].items() for what in measures):
            shape = {"rows": each.rows, "classes": each.outputs, "own test": each.own_test}
            kept.add(f"{name}, {what}", model, each.mean(model, what), "s" if what == "seconds" else "", **shape)
    kept.save()


if __name__ == "__main__":
    main()
