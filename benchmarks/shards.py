"""What merging costs in quality, and what many machines gain in time: ``python benchmarks/shards.py --data FOLDER``.

Shards are simulated in one process, by the plan of ``steelyard.distributed.fit``: a first stretch in one place, then
rounds that double what is learned, each merged. Every set is shuffled and a quarter held out; losses are those of the
default learner after one pass, over that of one mixture that has seen the same rows one after the other. The bound is
the certificate's, against all models as large as the learned one in scaled columns, summed over the shuffles; it has no
ratio where it is below zero: the learner is then better than all of them.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from record import Results, parser
from sets import dense, read_sets, table, write

from steelyard import Mixture, merge
from steelyard.distributed import merge_mixture
from steelyard.distributed.plan import plan_pass
from steelyard.distributed.tasks import merge_tree

SETS = ("a9a", "ijcnn1", "cadata", "covtype.libsvm.binary.scale", "reuters")
SHARDS = (2, 8, 32, 128)


def simulated() -> tuple[str, str, Any, np.ndarray]:
    """Many dense columns that go together: nothing is harder to learn apart."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40_000, 1)) + 0.5 * rng.normal(size=(40_000, 200))
    margin = X @ rng.normal(size=200)
    chance = 1.0 / (1.0 + np.exp(-2.0 * margin / margin.std()))
    return "one factor, simulated", "classification", X, np.where(rng.random(40_000) < chance, 1.0, -1.0)


def learn_in_shards(X: Any, y: np.ndarray, loss: str, shards: int) -> Mixture:
    """A mixture of as many shards, each with a partition of its own."""
    ends = np.linspace(0, len(y), shards + 1).astype(int)
    model = Mixture(loss)
    for _, slices in plan_pass(np.diff(ends).tolist(), shards):
        learned = []
        for _, pieces in slices:
            learner = copy.deepcopy(model)
            for partition, start, stop in pieces:
                rows = slice(ends[partition] + start, ends[partition] + stop)
                learner.learn(X[rows], y[rows])
            learned.append(learner)
        start = model
        model = merge_tree(learned, lambda left, right, start=start: merge([left, right], start))
    return model


def test_loss(model: Mixture, X: Any, y: np.ndarray) -> float:
    p = model.predict(X)
    return float(model.loss.value(p, y).mean())


def bound_of(model: Mixture) -> float:
    certificate = model.certify()
    radius = certificate.norm(model.coef_, model.intercept_, scaled=True)
    return certificate.regret_bound(radius=radius, scaled=True)


def quality(sets: Any, counts: tuple[int, ...], repeats: int) -> list[list[Any]]:
    rows = []
    for name, task, X, y in sets:
        X, loss = dense(X), "squared" if task == "regression" else "logistic"
        if task != "regression":
            classes = np.unique(y)
            if classes.size > 2:
                continue
            y = np.where(y == classes[0], -1.0, 1.0)
        losses, bounds = np.zeros((repeats, 1 + len(counts))), np.zeros((repeats, 1 + len(counts)))
        for seed in range(repeats):
            order = np.random.default_rng(seed).permutation(len(y))
            test, train = order[: len(y) // 4], order[len(y) // 4 :]
            one = Mixture(loss)
            one.learn(X[train], y[train])
            models = [one, *(learn_in_shards(X[train], y[train], loss, count) for count in counts)]
            losses[seed] = [test_loss(model, X[test], y[test]) for model in models]
            bounds[seed] = [bound_of(model) for model in models]
        ratios = np.exp(np.log(losses[:, 1:] / losses[:, :1]).mean(axis=0))
        totals = bounds.sum(axis=0)
        proofs = np.where(totals[1:] > 0.0, totals[1:] / totals[0], np.nan) if totals[0] > 0.0 else totals[1:] * np.nan
        rows.append([name, *X.shape, *ratios, *proofs])
        print(f"{name}: {', '.join(f'{k} shards {r:.4f}' for k, r in zip(counts, ratios, strict=True))}", flush=True)
    return rows


# ---------------------------------------------------------------------------------------------------------- the time


def measured(features: int, nonzeros: int) -> tuple[float, float]:
    """Seconds a row and seconds a merge of two models, of which every feature has changed."""
    rng = np.random.default_rng(0)
    rows = 20_000
    indices = rng.integers(features, size=rows * nonzeros).astype(np.int32)
    X = sp.csr_matrix((np.ones(rows * nonzeros), indices, np.arange(0, indices.size + 1, nonzeros)), (rows, features))
    X.sum_duplicates()
    y = np.sign(rng.normal(size=rows))
    start = Mixture("logistic")
    start.learn(X[:1000], y[:1000])
    pair, seconds = [], []
    for k in range(2):
        learner = copy.deepcopy(start)
        begin = time.perf_counter()
        learner.learn(X[1000 + k :: 2], y[1000 + k :: 2])
        seconds.append((time.perf_counter() - begin) / (rows // 2))
        pair.append(learner)
    begin = time.perf_counter()
    merge(pair, start=start)
    return min(seconds), time.perf_counter() - begin


def expected(rows: float, workers: int, seconds: float, merging: float, megabytes: float, network: float) -> float:
    """Seconds of a fit: the first stretch, the rounds' shares of a worker, and every round's tree of merges."""
    if workers == 1:
        return rows * seconds
    first = max(rows / (4.0 * workers), min(rows, 2000.0))
    rounds = math.ceil(math.log2(rows / first)) if rows > first else 0
    tree = math.ceil(math.log2(workers)) * (megabytes / network + merging) + 2.0 * megabytes / network
    return first * seconds + (rows - first) * seconds / workers + rounds * tree


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", help="folder of LIBSVM files; without one, the sets inside scikit-learn")
    options.add_argument("--sets", nargs="+", default=None, help=f"names (default, with --data: {' '.join(SETS)})")
    options.add_argument("--shards", nargs="+", type=int, default=SHARDS)
    options.add_argument("--repeats", type=int, default=3, help="shuffles of every set")
    options.add_argument("--average", action="store_true", help="merge by plain averages of the experts of first order")
    options.add_argument("--output", type=Path, default=Path("shards"))
    options = options.parse_args()
    if options.quick:
        options.sets, options.shards, options.repeats = ["breast_cancer"], (2, 4), 1
    if options.average:
        merge_mixture._ALONE = 1e-300
    wanted = options.sets or (SETS if options.data else None)
    sets = itertools.chain(
        (each for each in read_sets(options.data, []) if wanted is None or each[0] in wanted),
        [] if options.sets else [simulated()],
    )
    counts = tuple(options.shards)
    found = quality(sets, counts, options.repeats)
    head = ["set", "rows x columns", *(f"{k} shards" for k in counts), *(f"bound, {k} shards" for k in counts)]
    lines = [
        [name, f"{n:,} x {d:,}", *("" if np.isnan(r) else f"{r:.3f}" for r in rest)] for name, n, d, *rest in found
    ]
    text = "Loss on held-out rows, and the certificate's bound, over those of one pass in one place:\n\n"
    text += table(head, lines)

    features, nonzeros, network = 1 << (12 if options.quick else 20), 75, 1000.0
    seconds, merging = measured(features, nonzeros)
    model = features * (64 + 8) / 1e6
    workers = (1, 10, 100, 1000)
    times = [
        [f"10^{power}", *(_clock(expected(10.0**power, w, seconds, merging, model, network)) for w in workers)]
        for power in (6, 8, 10, 12)
    ]
    text += (
        f"\nExpected time of one pass, {nonzeros} non-zeros a row, {features:,} features: {1e9 * seconds:.0f} ns a row "
        f"and {merging:.2g} s a merge of two models, measured here; a model of {model:.0f} MB, at {network:.0f} MB/s:\n"
    )
    text += "\n" + table(["rows", *(f"{w:,} worker{'s' if w > 1 else ''}" for w in workers)], times)
    print("\n" + text)
    results = Results("shards", options)
    for name, n, d, *rest in found:
        for count, loss, bound in zip(counts, rest[: len(counts)], rest[len(counts) :], strict=True):
            results.add(f"{name}, {n:,} × {d:,}", f"{count} shards", loss, "of one pass in one place", bound=bound)
    results.add("a row of the mixture", "one core", seconds, "s", nonzeros=nonzeros, features=features)
    results.add("a merge of two models", "one core", merging, "s", nonzeros=nonzeros, features=features)
    results.save()
    write(options.output, "shards", [*head[:1], "rows", "columns", *head[2:]], found, text)


def _clock(seconds: float) -> str:
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


if __name__ == "__main__":
    main()
