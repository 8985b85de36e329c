"""The command line. Each command imports what it needs, so that ``--help`` answers at once."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steelyard import __version__
from steelyard.schedules import SCHEDULES

if TYPE_CHECKING:
    from steelyard.text import Extent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``steelyard`` with the given arguments and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the reader of our output has gone, as in `steelyard data list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except MemoryError as error:
        print(f"steelyard: not enough memory; is a feature index too large by mistake? ({error})", file=sys.stderr)
        return 2
    except OSError as error:
        known = error.filename is not None and error.strerror is not None
        print(f"steelyard: {error.filename}: {error.strerror}" if known else f"steelyard: {error}", file=sys.stderr)
        return 2
    except (ValueError, ImportError) as error:
        print(f"steelyard: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "steelyard: interrupted; what was finished is kept, and the same command goes on from there",
            file=sys.stderr,
        )
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="steelyard", description="Online linear learning with exact importance weights."
    )
    parser.add_argument("--version", action="version", version=f"steelyard {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    learn = commands.add_parser(
        "learn",
        help="learn a model from a LIBSVM file",
        description="Learn a linear model from a LIBSVM file (plain, .gz, .bz2 or .xz): no learning rate needed.",
    )
    learn.add_argument("data", type=_input, metavar="DATA", help="LIBSVM file; - is standard input")
    learn.add_argument("--model", metavar="FILE", help="where to keep the model, for `steelyard predict`")
    learn.add_argument(
        "--task", choices=("classification", "regression"), help="default: classification for two labels"
    )
    learn.add_argument("--loss", help="default: logistic for classification, squared for regression")
    learn.add_argument(
        "--eta0", default="auto", metavar="RATE", help="initial learning rate (default: auto, none needed)"
    )
    learn.add_argument("--passes", type=int, default=1, metavar="N", help="passes over the data (default 1)")
    learn.add_argument(
        "--no-shuffle",
        dest="shuffle",
        action="store_false",
        help="take the rows as they stand, block by block: in constant memory, however large the file",
    )
    learn.add_argument("--seed", type=int, default=0, help="of the order of rows (default 0)")
    learn.set_defaults(run=_learn)

    predict = commands.add_parser(
        "predict",
        help="predict with a model, one line a row",
        description="Predict the rows of a LIBSVM file with a model that `steelyard learn --model` wrote.",
    )
    predict.add_argument("model", metavar="MODEL")
    predict.add_argument("data", type=_input, metavar="DATA", help="LIBSVM file; - is standard input")
    predict.add_argument("--scores", action="store_true", help="scores instead of classes")
    predict.set_defaults(run=_predict)

    paper = commands.add_parser(
        "paper",
        help="run the paper's experiments and write figures and a page",
        description="Run the paper's experiments (section 4): loss against initial learning rate for four updates.",
    )
    paper.add_argument(
        "--sets", nargs="+", metavar="DATA", help="data sets by name (`steelyard data list`), or LIBSVM files"
    )
    paper.add_argument("--data", metavar="DIR", help="folder with LIBSVM files; then the default is six LIBSVM sets")
    paper.add_argument(
        "--schedule",
        default="gap",
        choices=tuple(SCHEDULES),
        help="of the rates (default gap, a reading of the paper's, which it does not print)",
    )
    paper.add_argument(
        "--readings",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also run a few shuffles under the other schedules, to see which verdicts depend on it (default: yes)",
    )
    paper.add_argument("--rates", type=int, default=25, metavar="N", help="rates between 1e-3 and 1e3 (default 25)")
    paper.add_argument("--repeats", type=int, default=10, metavar="N", help="shuffles (default 10)")
    paper.add_argument("--jobs", type=int, default=-1, metavar="N", help="processes (default: one a core)")
    paper.add_argument("--seed", type=int, default=0, help="of the shuffles (default 0)")
    paper.add_argument("--output", default="paper", metavar="DIR", help="where the results go (default: paper)")
    paper.set_defaults(run=_paper)

    certify = commands.add_parser(
        "certify",
        help="regret and its certified bounds on data sets",
        description="Run every update on a data set and compare its true regret with the bound that it certifies. As "
        "in the paper's experiments, columns and real targets are standardised first, and rows scaled to norm 1.",
    )
    certify.add_argument("sets", nargs="+", metavar="DATA", help="data sets by name, or LIBSVM files")
    certify.add_argument("--data", metavar="DIR", help="folder with LIBSVM files (default: the cache folder)")
    certify.add_argument("--loss", help="default: squared for regression, logistic for two classes")
    certify.add_argument(
        "--eta0", type=float, nargs="+", default=[1.0], metavar="RATE", help="initial rates (default 1)"
    )
    certify.add_argument(
        "--schedule",
        default="gap",
        choices=tuple(SCHEDULES),
        help="of the rates (default gap, a reading of the paper's, which it does not print)",
    )
    certify.add_argument(
        "--guard", action="store_true", help="keep Algorithm 1's condition where the regularizer grows"
    )
    certify.add_argument("--seed", type=int, default=0, help="of the shuffle (default 0)")
    certify.add_argument("--output", metavar="DIR", help="also draw regret against rounds into this folder")
    certify.set_defaults(run=_certify)

    data = commands.add_parser("data", help="list or fetch data sets").add_subparsers(
        title="commands", metavar="COMMAND", required=True
    )
    listing = data.add_parser("list", help="the data sets by name, and which are at hand")
    listing.add_argument("--data", metavar="DIR", help="folder to look in (default: the cache folder)")
    listing.set_defaults(run=_list)
    fetching = data.add_parser("fetch", help="download LIBSVM sets into the cache folder")
    fetching.add_argument("names", nargs="+", metavar="NAME")
    fetching.add_argument("--data", metavar="DIR", help="folder to keep them in (default: the cache folder)")
    fetching.add_argument("--force", action="store_true", help="keep a set even if its hash is not the known one")
    fetching.set_defaults(run=_fetch)
    return parser


def _input(path: str) -> str:
    return "/dev/stdin" if path == "-" else path


def _check(options: argparse.Namespace, **least: int) -> None:
    for name, value in least.items():
        if getattr(options, name) < value:
            raise ValueError(f"--{name} must be at least {value}, got {getattr(options, name)}")


def _check_folder(folder: str | None) -> None:
    if folder is not None and not os.path.isdir(folder):
        raise ValueError(f"--data {folder}: there is no such folder")


def _paper(options: argparse.Namespace) -> int:
    import numpy as np

    from steelyard import datasets, paper

    _check(options, rates=2, repeats=1, seed=0)
    if options.jobs == 0:
        raise ValueError("--jobs must be a number of processes, or -1 for one a core, got 0")
    _check_folder(options.data)
    names = options.sets or list(datasets.EMBEDDED if options.data is None else paper.LIBSVM_DEFAULT)
    rates = tuple(float(rate) for rate in np.logspace(-3, 3, options.rates))
    settings = paper.Settings(rates, schedule=options.schedule, repeats=options.repeats, seed=options.seed)
    from steelyard import report  # before the work: it needs matplotlib, which may be missing

    runs = [settings, *(paper.readings(settings) if options.readings else ())]
    with _progress() as progress:
        results, *others = paper.run_all(
            names, runs, options.output, data=options.data, n_jobs=options.jobs, progress=progress
        )
    claims = report.write(options.output, results, settings, report.source_of(names), others)
    print(f"{options.schedule} schedule: {report.summary(claims)}. The page: {options.output}/index.html")
    return 0


def _certify(options: argparse.Namespace) -> int:
    from steelyard import certify, paper

    if options.output:
        from steelyard import plots
    _check_folder(options.data)
    for name, title in paper.titles(options.sets).items():
        task, X, y = paper.load(name, options.data)
        X, y = paper.normalise(task, X, y)
        for eta0 in options.eta0:
            loss = options.loss or paper.LOSS[task]
            best, runs = certify.courses(
                X, y, loss=loss, eta0=eta0, schedule=options.schedule, seed=options.seed, guard=options.guard
            )
            print(f"\n{title}: {loss} loss, η₀ = {eta0:g}, {options.schedule} schedule, {len(y)} rounds")
            print(f"best in hindsight: average loss {best.total_loss / len(y):.6g}, to {best.gap / len(y):.1g}\n")
            rows = [
                certify.HEADS,
                tuple("---:" if i else "---" for i in range(len(certify.HEADS))),
                *certify.table(runs),
            ]
            widths = [max(len(row[i]) for row in rows) for i in range(len(certify.HEADS))]
            for row in rows:
                print("| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |")
            print("\n" + certify.LEGEND)
            if options.output:
                os.makedirs(options.output, exist_ok=True)
                plots.save(
                    plots.figure_regret(title, eta0, runs), options.output, f"regret-{paper.file_stem(name)}-{eta0:g}"
                )
    return 0


def _learn(options: argparse.Namespace) -> int:
    from steelyard.estimators import OnlineClassifier, OnlineRegressor
    from steelyard.text import read_with_extent, scan_libsvm

    try:
        eta0 = options.eta0 if options.eta0 == "auto" else float(options.eta0)
    except ValueError:
        raise ValueError(f"--eta0 must be auto or a number, got {options.eta0!r}") from None
    _check(options, passes=1, seed=0)
    if options.model and not os.access(os.path.dirname(os.path.abspath(options.model)), os.W_OK):
        raise ValueError(f"--model {options.model}: its folder is not there, or may not be written to")
    if options.model and os.path.isdir(options.model):
        raise ValueError(f"--model {options.model} is a folder: name a file")
    streamed = not options.shuffle and os.path.isfile(options.data)  # a pipe cannot be read twice
    X, y, extent = (None, None, scan_libsvm(options.data)) if streamed else read_with_extent(options.data)
    if not extent.rows:
        raise ValueError(f"{options.data} has no rows")
    classes = extent.labels
    task = options.task or ("classification" if classes is not None and classes.size == 2 else "regression")
    if task == "classification" and classes is None:
        raise ValueError(f"{options.data} has too many different labels for a classification")
    kind = OnlineClassifier if task == "classification" else OnlineRegressor
    loss = options.loss or ("logistic" if task == "classification" else "squared")
    model = kind(loss, eta0=eta0, passes=options.passes, shuffle=options.shuffle, random_state=options.seed)
    if streamed:
        _learn_stream(model, options, extent, {"classes": classes} if task == "classification" else {})
    else:
        with _told_of_file(options.data, 0, extent.zero_based):
            model.fit(X, y)
    if options.model:  # before anything is printed: the reader of a pipe may go
        labels = classes.tolist() if classes is not None and task == "classification" else None
        model.learner_.notes = {"classes": labels, "zero_based": extent.zero_based}
        model.learner_.save(options.model)
    print(f"{options.data}: {task}, {extent.rows} rows, {extent.n_features} features, {loss} loss")
    guessed = options.task is None and task == "regression"
    if guessed and classes is not None and classes.size > 1 and (classes == classes.round()).all():
        print(f"(its {classes.size} labels are whole numbers: if they are classes, say --task classification)")
    if model.learner_.n_outputs > 1:
        print(f"{model.learner_.n_outputs} classes, each against the rest")
    elif eta0 == "auto":
        print("\n      rate  falls like       loss  share")
        for each in model.bank_:
            shown = "retired" if each.retired else f"{each.loss:.4g}"
            print(f"{each.eta0:10.4g}  {each.decay:>10s}  {shown:>9s}  {each.weight:5.3f}")
    mixed = " of the mixture" if eta0 == "auto" else ""
    print(f"\nprogressive loss{mixed}: {model.progressive_loss_:.6g} (each row's before it was learned, averaged)")
    if options.model:
        print(f"the model: {options.model}")
    return 0


def _learn_stream(model: Any, options: argparse.Namespace, extent: Extent, known: dict[str, Any]) -> None:
    """All the passes over a file, block by block."""
    from steelyard.text import stream_libsvm

    done, total = 0, extent.rows * options.passes
    with _progress() as progress:
        for _ in range(options.passes):
            for X, y in stream_libsvm(options.data, n_features=extent.n_features, zero_based=extent.zero_based):
                with _told_of_file(options.data, done % extent.rows, extent.zero_based):
                    model.partial_fit(X, y, **known)
                done += len(y)
                if progress:
                    progress("rows", done, total)


def _predict(options: argparse.Namespace) -> int:
    import numpy as np

    from steelyard.learner import Learner
    from steelyard.text import stream_libsvm

    learner = Learner.load(options.model)
    classes = learner.notes.get("classes")
    unknown = done = 0
    zero_based = bool(learner.notes.get("zero_based", False))
    for X, _ in stream_libsvm(options.data, n_features=None, zero_based=zero_based):
        unknown += int(np.count_nonzero(X.indices >= learner.n_features))
        X = X[:, : learner.n_features]
        X.resize(X.shape[0], learner.n_features)
        with _told_of_file(options.data, done, zero_based):
            scores = learner.predict(X)
        done += X.shape[0]
        if classes is not None and not options.scores:
            labels = np.array(classes)
            above = (scores > learner.loss.threshold).astype(int)
            scores = labels[above if scores.ndim == 1 else scores.argmax(axis=1)]
        elif learner.loss.link == "exp" and not options.scores:
            scores = np.exp(scores)
        np.savetxt(sys.stdout, scores, fmt="%.10g")
    if unknown:
        print(
            f"steelyard: {unknown} values of features beyond the {learner.n_features} that the model has learned were "
            "left out",
            file=sys.stderr,
        )
    return 0


@contextmanager
def _told_of_file(path: str, before: int, zero_based: bool) -> Iterator[None]:
    """What is wrong with a row of a block, told of the file; ``before`` of its examples were before the block."""
    try:
        yield
    except ValueError as error:
        found = re.match(r"X holds (\S+) in row (\d+), column (\d+): (.*)", str(error))
        if found is None:
            raise
        value, row, column, why = found.groups()
        index = int(column) + (not zero_based)
        raise ValueError(
            f"{path}, example {before + int(row) + 1}, index {index} has the value {value}: {why}"
        ) from None


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar with the time left on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>28}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda name, done, total: bar.update(task, description=name, completed=done, total=total)


def _list(options: argparse.Namespace) -> int:
    from steelyard import datasets

    _check_folder(options.data)
    print(f"{'name':30s} {'task':15s} {'rows':>8s} {'features':>9s}  where")
    for name, task in datasets.EMBEDDED.items():
        X, _ = datasets.load_embedded(name)
        print(f"{name:30s} {task:15s} {X.shape[0]:8d} {X.shape[1]:9d}  with scikit-learn")
    for known in datasets.SETS.values():
        path = datasets.find(known.name, options.data)
        where = str(path) if path is not None else "not here (steelyard data fetch)"
        print(f"{known.name:30s} {known.task:15s} {known.rows:8d} {known.features:9d}  {where}")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from steelyard import datasets

    for name in options.names:
        present = datasets.find(name, options.data) is not None
        path = datasets.fetch(name, options.data, force=options.force)
        if present:
            checked = "was there already"
        elif datasets.SETS[name].sha256 is None:
            checked = "its shape is right; no hash of it is known"
        else:
            checked = "its shape is right; its hash was not asked for" if options.force else "its hash is right"
        print(f"{name}: {path} ({checked})")
    return 0
