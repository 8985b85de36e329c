"""Progressive loss of one pass, without tuning, side by side with the peers at their defaults and at their best.

    make quality [DATA=folder]        # or: python benchmarks/quality.py [--data folder] [--rows 2000 --repeats 2]

The sets are the LIBSVM files of a folder, or those inside scikit-learn. Every contender learns the same rows in the
same order and predicts each row before it learns it; losses are means over the shuffles. "Best" is the best rate of
the grid in hindsight, one for all shuffles of a set. The table goes to quality.csv, quality.md and the standard output.
With ``--sets`` some of the sets only; the results of the others stay, if machine and versions are the same.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import vowpalwabbit
from joblib import Parallel, delayed
from record import Results, parser
from river import linear_model, optim
from sets import WIDE, dense, read_sets, table, write
from sklearn.linear_model import SGDClassifier, SGDRegressor

from steelyard import Bank, Mixture, hindsight
from steelyard.progress import progress_bar

OURS, OURS_SHORT = "steelyard", "steelyard on River's rows"
VW, SGD, RIVER = "Vowpal Wabbit", "scikit-learn SGD", "River"
UPDATES = ("iwa", "proximal", "aprox", "linearized")
BEST, PENALTY = "best linear model", 1e-3
SEPARABLE = 0.01  # with less loss than this in hindsight, a ratio says how few rows there were
FLOOR = 0.01  # smaller ratios say that the contender diverged, and not by how much we are better
CAPTION = f"""\
Progressive average loss of one pass over at most {{rows}} rows, mean of {{repeats}} shuffles: logistic loss for two
labels, squared loss of standardised targets otherwise. The first number is the loss of our untuned default; the others
are ratios, ours over the contender's, so below 1 we are better. "Best" is the best of {{rates}} rates in hindsight (of
the peers: and of the default). River learns the first {{river_rows}} rows only, and its ratios compare it with our
default on those rows. Ratios below {FLOOR} (the contender diverged) count as {FLOOR} in the geometric mean. The
"{BEST}" is no contender: it knows all the rows beforehand, and minimises their cumulated loss plus {PENALTY:g}/2 times
its squared norm (columns standardised first; of sparse sets with more than {WIDE} features, divided by their root mean
square). Ours can be below it, as predictions are kept within the targets seen. Where its loss is below {SEPARABLE}, the
classes are nearly separable and the ratio has no limit: it is in parentheses, and left out of the last three rows."""


def variants(
    folder: str | None, skip: list[str], only: list[str] | None = None
) -> dict[str, tuple[str, Any, np.ndarray]]:
    """Loss, features and targets by name: the set as given and, where its columns are raw, the set scaled."""
    found = {}
    for name, task, X, y in read_sets(folder, skip, only):
        loss = "logistic" if task == "classification" else "squared"
        if loss == "squared":
            y = (y - y.mean()) / y.std()
        found[name] = loss, X, y
        if X.shape[1] <= WIDE and abs(X).max() > 10:
            found[f"{name}/scaled"] = loss, scaled(dense(X)), y
    for name in [name for name in found if f"{name}_scale" in found]:
        found[f"{name}/scaled"] = found.pop(f"{name}_scale")  # the same set, scaled by others
    return found


def scaled(X: np.ndarray) -> np.ndarray:
    """Every column from -1 to 1, and constant ones 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(high > low, 2 * (X - low) / np.where(high > low, high - low, 1.0) - 1, 0.0)


def as_rows(X: Any, y: np.ndarray) -> list[tuple[dict[int, float], float]]:
    X = sp.csr_matrix(X)
    parts = zip(np.split(X.indices, X.indptr[1:-1]), np.split(X.data, X.indptr[1:-1]), y.tolist(), strict=True)
    return [(dict(zip(indices.tolist(), values.tolist(), strict=True)), label) for indices, values, label in parts]


def vw_loss(path: Path, loss: str, options: str = "") -> float:
    run = vowpalwabbit.Workspace(f"-d {path} --quiet -b 18 --holdout_off --loss_function {loss} {options}")
    average = run.get_sum_loss() / run.get_weighted_examples()
    run.finish()
    return average


def sklearn_loss(X: Any, y: np.ndarray, loss: str, **options: Any) -> float:
    """What scikit-learn prints after one pass: the average of the losses, each before its update."""
    options.update(max_iter=1, tol=None, shuffle=False, verbose=1)
    model = SGDClassifier(loss="log_loss", **options) if loss == "logistic" else SGDRegressor(**options)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            model.fit(X, y)
    except ValueError as error:
        if "overflow" not in str(error):
            raise
        return math.inf
    return float(re.search(r"Avg\. loss: ([^\s,]+)", printed.getvalue())[1])


def river_loss(rows: list[tuple[dict[int, float], float]], loss: str, **options: Any) -> float:
    total = 0.0
    try:
        if loss == "logistic":
            model = linear_model.LogisticRegression(**options)
            for x, label in rows:
                total -= math.log(min(max(model.predict_proba_one(x)[label > 0], 1e-15), 1 - 1e-15))
                model.learn_one(x, label > 0)
        else:
            model = linear_model.LinearRegression(**options)
            for x, label in rows:
                total += (model.predict_one(x) - label) ** 2
                model.learn_one(x, label)
    except OverflowError:
        return math.inf
    return total / len(rows)


def best_loss(X: Any, y: np.ndarray, loss: str) -> float:
    """The average loss of the best linear model in hindsight: scales do not matter to it, but to how it is found."""
    X = dense(X)
    if sp.issparse(X):
        scale = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel())
        X = X @ sp.diags(1.0 / np.where(scale > 0, scale, 1.0))
    else:
        scale = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    best = hindsight(X, y, loss=loss, l2=PENALTY)
    if best.gap > 1e-3 * best.total_loss + 1e-6 * len(y):
        print(f"the best linear model is known to {best.gap / len(y):.2g} a row only", file=sys.stderr)
    return best.total_loss / len(y)


def contend(loss: str, X: Any, y: np.ndarray, rates: list[float], river_rows: int) -> dict[str, np.ndarray]:
    """Average losses of every contender on one sequence of rows, one for each of its settings."""
    warnings.simplefilter("ignore")
    full = 2.0 if loss == "squared" else 1.0  # for those whose squared loss has a half
    found: dict[str, Any] = {OURS: [full * Mixture(loss).learn(X, y).average_loss]}

    rows = as_rows(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.vw"
        lines = (f"{label:.9g} | {' '.join(f'{i}:{v:.9g}' for i, v in x.items())}\n" for x, label in rows)
        path.write_text("".join(lines))
        found["VW default"] = [vw_loss(path, loss)]
        found["VW best"] = found["VW default"] + [vw_loss(path, loss, f"-l {rate}") for rate in rates]
        found.update({f"VW {kind}": [vw_loss(path, loss, f"--{kind}")] for kind in ("coin", "ftrl")})

    given = dense(X)  # in sparse matrices scikit-learn slows the intercept down a hundredfold
    grid = [{"learning_rate": kind, "eta0": rate} for kind in ("constant", "invscaling") for rate in rates]
    found["scikit-learn default"] = [full * sklearn_loss(given, y, loss)]
    tuned = [full * sklearn_loss(given, y, loss, **options) for options in grid]
    found["scikit-learn best"] = found["scikit-learn default"] + tuned

    found[OURS_SHORT] = [full * Mixture(loss).learn(X[:river_rows], y[:river_rows]).average_loss]
    found["River default"] = [river_loss(rows[:river_rows], loss)]
    tuned = [river_loss(rows[:river_rows], loss, optimizer=optim.SGD(rate)) for rate in rates]
    found["River best"] = found["River default"] + tuned

    bank = Bank(loss, updates=UPDATES, eta0=rates)
    bank.learn(X, y)
    found.update({f"{update} best": full * row for update, row in zip(UPDATES, bank.average_loss, strict=True)})
    found[BEST] = [full * best_loss(X, y, loss)]
    return {name: np.where(np.isnan(losses), np.inf, losses) for name, losses in found.items()}


def run(sets: dict, options: argparse.Namespace) -> dict[str, dict[str, np.ndarray]]:
    """The losses of every contender on every set: means over shuffles, one for each of its settings."""

    def work() -> Iterator[Any]:
        for loss, X, y in sets.values():
            for seed in range(options.repeats):
                order = np.random.default_rng(seed).permutation(len(y))[: options.rows]
                yield delayed(contend)(loss, X[order], y[order], options.rates, options.river_rows)

    names = [name for name in sets for _ in range(options.repeats)]
    gathered: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in sets}
    with progress_bar() as progress:
        results = Parallel(n_jobs=options.jobs, return_as="generator", max_nbytes=None)(work())
        for done, (name, result) in enumerate(zip(names, results, strict=True), 1):
            gathered[name].append(result)
            if progress is not None:
                progress(name, done, len(names))
    return {
        name: {each: np.mean([run[each] for run in runs], axis=0) for each in runs[0]}
        for name, runs in gathered.items()
    }


def curves(found: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """Loss at each rate of the grid, by contender; the peers' lists begin with their default."""
    grids = {
        VW: found["VW best"][1:],
        f"{SGD}, constant": found["scikit-learn best"][1 : 1 + count],
        f"{SGD}, invscaling": found["scikit-learn best"][1 + count :],
        RIVER: found["River best"][1:],
    }
    return {**grids, **{update: found[f"{update} best"] for update in UPDATES}}


def keep(sets: dict, found: dict[str, dict[str, np.ndarray]], options: argparse.Namespace) -> None:
    """quality.json, the best setting of each contender, and rates.json, all of them."""
    quality, rates = Results("quality", options), Results("rates", options, script="quality")
    for name, rows in found.items():
        loss, X, y = sets[name]
        shape = {"loss": loss, "rows": min(options.rows, len(y)), "columns": X.shape[1], "shuffles": options.repeats}
        best = {each: float(values.min()) for each, values in rows.items()}
        for each, value in best.items():
            if each in (OURS, OURS_SHORT):
                quality.add(name, each, value, "loss", **shape)
                continue
            ours = OURS_SHORT if each.startswith(RIVER) else OURS
            counted = each != BEST or value >= SEPARABLE
            quality.add(name, each, value, "loss", ratio=best[ours] / value, of=ours, counted=counted)
        rates.add(name, OURS, best[OURS], "loss", **shape)
        rates.add(name, OURS_SHORT, best[OURS_SHORT], "loss", **shape)
        for each, values in curves(rows, len(options.rates)).items():
            rates.add(name, each, values, "loss", rates=options.rates)
    for results in (quality, rates):
        results.save(keep=True)


def shown(ratio: float, counted: bool) -> str:
    if not counted:
        return f"({ratio:.3g})" if ratio < 1000 else "(>1000)"
    return f"{ratio:.3f}" if ratio >= FLOOR else f"<{FLOOR}"


def markdown(losses: dict[str, dict[str, float]], caption: str) -> str:
    contenders = [each for each in next(iter(losses.values())) if each not in (OURS, OURS_SHORT)]
    against = {each: OURS_SHORT if each.startswith("River") else OURS for each in contenders}
    ratios = np.array([[row[ours] / row[peer] for peer, ours in against.items()] for row in losses.values()])
    counts = np.array([[peer != BEST or row[BEST] >= SEPARABLE for peer in against] for row in losses.values()])
    rows = [
        [name, f"{row[OURS]:.4f}", *(shown(*each) for each in zip(line, counted, strict=True))]
        for (name, row), line, counted in zip(losses.items(), ratios, counts, strict=True)
    ]
    columns = [ratio[counted] for ratio, counted in zip(ratios.T, counts.T, strict=True)]
    for title, summary in (
        ("geometric mean", lambda ratio: f"{np.exp(np.log(np.maximum(ratio, FLOOR)).mean()):.3f}"),
        ("worst", lambda ratio: f"{ratio.max():.3f}"),
        ("no worse", lambda ratio: f"{(ratio <= 1.0).mean():.0%}"),
    ):
        rows.append([title, "", *(summary(ratio) if ratio.size else "" for ratio in columns)])
    text = f"{caption}\n\n{table(['set', OURS, *contenders], rows)}"
    both = {name: (losses[name][OURS], losses[f"{name}/scaled"][OURS]) for name in losses if f"{name}/scaled" in losses}
    if both:
        lines = [[name, f"{raw:.4f}", f"{small:.4f}", f"{raw / small:.3f}"] for name, (raw, small) in both.items()]
        text += "\nOur default on raw columns, and on the same columns scaled to [-1, 1]:\n\n"
        text += table(["set", "raw", "scaled", "raw / scaled"], lines)
    return text


def csv_rows(losses: dict, sets: dict, options: argparse.Namespace) -> Iterator[list[Any]]:
    for name, row in losses.items():
        rows = min(options.rows, len(sets[name][2]))
        short = min(options.river_rows, rows)
        yield from ([name, short if "River" in each else rows, each, repr(loss)] for each, loss in row.items())


def main():
    options = parser(__doc__)
    options.add_argument(
        "--data", help="a folder of LIBSVM files, compressed or not (default: scikit-learn's own sets)"
    )
    why = "sets to leave out, because multiclass labels look like targets of regression (default: news20)"
    options.add_argument("--sets", type=lambda names: names.split(","), metavar="NAME,NAME", help="some sets only")
    options.add_argument("--skip", nargs="*", default=["news20"], metavar="NAME", help=why)
    options.add_argument("--rows", type=int, default=30_000, help="of each set and shuffle, at most (default: 30000)")
    options.add_argument("--river-rows", type=int, default=2000, help="the same for River, a slow one (default: 2000)")
    options.add_argument("--repeats", type=int, default=5, help="shuffles (default: 5)")
    options.add_argument("--rates", type=float, nargs="+", default=np.logspace(-3, 3, 13).tolist(), metavar="RATE")
    options.add_argument("--jobs", type=int, default=-1, help="processes (default: one for each core)")
    options.add_argument("--output", type=Path, default=Path("quality"), help="folder of quality.csv and quality.md")
    options = options.parse_args()
    if options.quick:
        options.rows, options.river_rows, options.repeats, options.jobs = 100, 20, 2, 1
        options.rates, options.sets = options.rates[::4], options.sets or ["breast_cancer", "diabetes"]
    sets = variants(options.data, options.skip, options.sets)
    if not sets:
        raise SystemExit(f"no set in {options.data}")
    found = run(sets, options)
    losses = {name: {each: float(values.min()) for each, values in rows.items()} for name, rows in found.items()}
    text = markdown(losses, CAPTION.format(**{**vars(options), "rates": len(options.rates)}))
    head = ["set", "rows", "contender", "loss"]
    write(options.output, "quality", head, csv_rows(losses, sets, options), text)
    print(text)
    keep(sets, found, options)


if __name__ == "__main__":
    main()
