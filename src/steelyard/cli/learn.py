"""``steelyard learn``: one shell command from a file to a model."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from steelyard.cli.common import check_least, input_path
from steelyard.progress import progress_bar

if TYPE_CHECKING:
    from steelyard.data.source import Extent, Source
    from steelyard.losses import Array
    from steelyard.online import OnlineLearner


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "learn",
        help="learn a model from a LIBSVM file",
        description="Learn a linear model from a LIBSVM file (plain, .gz, .bz2 or .xz): no learning rate needed.",
    )
    parser.add_argument("data", type=input_path, metavar="DATA", help="LIBSVM file; - is standard input")
    parser.add_argument("--model", metavar="FILE", help="where to keep the model, for `steelyard predict`")
    parser.add_argument(
        "--task", choices=("classification", "regression"), help="default: classification for two labels"
    )
    parser.add_argument("--loss", help="default: logistic for classification, squared for regression")
    parser.add_argument(
        "--eta0", default="auto", metavar="RATE", help="initial learning rate (default: auto, none needed)"
    )
    parser.add_argument("--passes", type=int, default=1, metavar="N", help="passes over the data (default 1)")
    parser.add_argument(
        "--no-shuffle",
        dest="shuffle",
        action="store_false",
        help="take the rows as they stand, block by block: in constant memory, however large the file",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order of rows (default 0)")
    parser.set_defaults(run=run, interrupted="nothing was learned, and no model was written")


def run(options: argparse.Namespace) -> int:
    """Learn, keep the model, and say how it went."""
    from steelyard.data.libsvm import LibsvmSource
    from steelyard.fitting import new_learner

    eta0 = _check_options(options)
    source = LibsvmSource(options.data)
    rows = source.whole() if options.shuffle else None
    extent = source.extent()
    if not extent.rows:
        raise ValueError(f"{source.name} has no rows")
    classes = extent.labels
    task = options.task or ("classification" if classes is not None and classes.size == 2 else "regression")
    loss = options.loss or ("logistic" if task == "classification" else "squared")
    if task == "regression":
        classes = None
    elif classes is None:
        raise ValueError(f"{options.data} has too many different labels for a classification")
    elif classes.size < 2:
        raise ValueError(f"{options.data} has one label only, {classes[0]:g}: a classifier needs at least two")
    learner = new_learner(loss, eta0, classes=None if classes is None else classes.size)
    try:
        losses = (
            _learn_whole(learner, source, rows, classes, options)
            if rows
            else _learn_stream(learner, source, extent, classes, options)
        )
    except MemoryError as error:
        raise MemoryError(
            f"{error}. {options.data} has {extent.n_features} features; is the largest index, in line "
            f"{extent.largest_line}, a mistake?"
        ) from None
    if options.model:  # before anything is printed: the reader of a pipe may go
        learner.notes = {"classes": None if classes is None else classes.tolist(), "zero_based": extent.zero_based}
        learner.save(options.model)
    _report(options, source.name, learner, extent, task, loss, losses)
    return 0


def _check_options(options: argparse.Namespace) -> float | str:
    """The learning rate; the rest is refused here or is right."""
    try:
        eta0 = options.eta0 if options.eta0 == "auto" else float(options.eta0)
    except ValueError:
        raise ValueError(f"--eta0 must be auto or a number, got {options.eta0!r}") from None
    check_least(options, passes=1, seed=0)
    if options.model and not os.access(os.path.dirname(os.path.abspath(options.model)), os.W_OK):
        raise ValueError(f"--model {options.model}: its folder is not there, or may not be written to")
    if options.model and os.path.isdir(options.model):
        raise ValueError(f"--model {options.model} is a folder: name a file")
    if options.model and os.path.isfile(options.model) and os.path.getsize(options.model):
        with open(options.model, "rb") as file:
            if file.read(4) != b"PK\x03\x04":  # as every model file starts
                raise ValueError(
                    f"--model {options.model} is there, and is not a model: it would be lost. Name another file, or "
                    "remove it first"
                )
    return eta0


def _learn_whole(
    learner: OnlineLearner, source: Source, rows: Any, classes: Array | None, options: argparse.Namespace
) -> list[float]:
    """All the passes over rows in memory, shuffled; returns the average loss of each."""
    import numpy as np

    from steelyard.data.source import told_of
    from steelyard.fitting import learn_passes, pass_seeds, targets

    with told_of(source):
        traces = learn_passes(
            learner,
            rows.block,
            targets(rows.y, classes, learner.loss),
            rows.weight,
            seeds=pass_seeds(np.random.RandomState(options.seed), options.passes),
        )
        return [trace.average_loss for trace in traces]


def _learn_stream(
    learner: OnlineLearner, source: Source, extent: Extent, classes: Array | None, options: argparse.Namespace
) -> list[float]:
    """All the passes over a file, block by block."""
    from steelyard.data.source import told_of
    from steelyard.fitting import targets
    from steelyard.online import Progress

    losses: list[float] = []
    total = extent.rows * options.passes
    with progress_bar() as bar:
        for _ in range(options.passes):
            progress = Progress()
            for block, y, weight, before in source.blocks():
                with told_of(source, before):
                    trace = learner.learn_block(block, targets(y, classes, learner.loss), weight, keep=False)
                progress = progress.add(trace)
                if bar:
                    bar("rows", len(losses) * extent.rows + before + y.size, total)
            losses.append(progress.average)
    return losses


def _report(
    options: argparse.Namespace,
    name: str,
    learner: OnlineLearner,
    extent: Extent,
    task: str,
    loss: str,
    losses: list[float],
) -> None:
    from steelyard.mixture import Mixture

    print(f"{name}: {task}, {extent.rows} rows, {extent.n_features} features, {loss} loss")
    labels = extent.labels
    if labels is not None and labels.size == 1:
        print(f"(all its labels are {labels[0]:g}: there is nothing to tell apart)")
    guessed = options.task is None and task == "regression"
    if guessed and labels is not None and labels.size > 1 and (labels == labels.round()).all():
        print(f"(its {labels.size} labels are whole numbers: if they are classes, say --task classification)")
    if learner.n_outputs > 1:
        print(f"{learner.n_outputs} classes, each against the rest")
    elif isinstance(learner, Mixture):
        over = "loss, all passes" if len(losses) > 1 else "loss"
        print(f"\n      rate  falls like  {over:>16s}  share")
        for each in learner.bank():
            shown = "retired" if each.retired else f"{each.loss:.4g}"
            print(f"{each.eta0:10.4g}  {each.decay:>10s}  {shown:>16s}  {each.weight:5.3f}")
    mixed = " of the mixture" if isinstance(learner, Mixture) else ""
    half = ", (p - y)^2 / 2" if loss == "squared" else ""
    print(f"\nprogressive loss{mixed}: {losses[0]:.6g} (each row's before it was learned, averaged{half})")
    if len(losses) > 1:
        print(f"average loss in pass {len(losses)}: {losses[-1]:.6g} (of rows that were learned before)")
    if learner.certificate:
        print(_certified(learner, len(losses)))
    if options.model:
        print(f"the model: {options.model}")


def _certified(learner: OnlineLearner, passes: int) -> str:
    """What is proved of the loss, against all models as large as the learned one; of classes, the mean of all."""
    import numpy as np

    coef, intercept = np.atleast_2d(learner.coef_), np.atleast_1d(learner.intercept_)
    gap = largest = lost = 0.0
    for k in range(learner.n_outputs):
        certificate = learner.certify(k)
        radius = certificate.norm(coef[k], float(intercept[k]), scaled=True)
        bound = certificate.regret_bound(radius=radius, scaled=True) if radius < np.inf else np.inf
        gap += bound / certificate.weight / learner.n_outputs if certificate.rounds else np.inf
        largest, lost = max(largest, radius), lost + certificate.average_loss / learner.n_outputs
    if not gap < np.inf:
        return "certified: nothing, since labels, weights or values are too large for its sums"
    which = f"whose weights have norm <= {largest:.3g} in scaled columns (as large as the learned model's)"
    if learner.n_outputs > 1:
        which = "in which no class's weights have a larger norm, in scaled columns, than in the learned one"
    loss = "the average loss" if passes == 1 else "the average loss over all passes"
    how = f"within {gap:.3g} of" if gap >= 0.0 else f"better by {-gap:.3g}, or more, than"
    little = "" if gap < lost else ": more than the loss itself, so it says little"
    return f"certified: {loss} is {how} that of every linear model {which}{little}"
