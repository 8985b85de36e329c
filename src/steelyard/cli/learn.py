"""``steelyard learn``: one shell command from files to a model."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steelyard.cli import checkpoint
from steelyard.cli.common import UsageError, check_is_file, check_least, check_output, in_shell_words
from steelyard.cli.inputs import add_data_options, check_data_options, open_data
from steelyard.regularizers import CENTERS, METRICS, SCHEDULES
from steelyard.updates import UPDATES

if TYPE_CHECKING:
    from steelyard.cli.report import LearnReport
    from steelyard.data.source import Source
    from steelyard.losses import Loss
    from steelyard.online import OnlineLearner
    from steelyard.streaming import Position, Run

_DESCRIPTION = """\
Learn a linear model: no learning rate needed. LIBSVM, Vowpal Wabbit's text, CSV, TSV, JSON lines, Parquet, Arrow.

The first rows decide what is learned, a classification or a regression: with --no-shuffle, learning begins when 16 MB
of them are there, or all. Where they come slowly, through a pipe, say --classes or --task regression: it then begins
with the first rows of Vowpal Wabbit's text, and with the first MB of CSV, TSV and JSON lines. LIBSVM text needs its
first 16 MB in any case, to tell where indices start.
"""
_EXAMPLES = """examples:
  steelyard learn a9a --model m
  steelyard learn clicks.vw --no-shuffle -q ab --bits 22 --model m
  steelyard learn people.csv --label income --weight copies --model m
  zcat days/*.gz | steelyard learn - --format vw --no-shuffle --model m --checkpoint c --every 1000000
"""
_FORGOTTEN = ("run", "interrupted", "quiet", "json", "model", "checkpoint", "every")
"""Options that do not change what is learned."""


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "learn",
        help="learn a model from files or a pipe",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_data_options(parser)
    parser.add_argument("--model", metavar="FILE", help="where to keep the model, for `steelyard predict`")
    parser.add_argument(
        "--task", choices=("classification", "regression"), help="default: classification for two labels, or text"
    )
    parser.add_argument(
        "--classes", metavar="A,B,…", help="all labels of a classification (default: those of the first rows)"
    )
    _add_learner_options(parser.add_argument_group("learner"))
    passes = parser.add_argument_group("passes")
    passes.add_argument("--passes", type=int, default=1, metavar="N", help="passes over the data (default 1)")
    passes.add_argument(
        "--no-shuffle",
        dest="shuffle",
        action="store_false",
        help="take the rows as they stand, block by block: in constant memory, however many they are",
    )
    passes.add_argument("--seed", type=int, default=0, help="of the order of rows (default 0)")
    passes.add_argument("--checkpoint", metavar="FILE", help="the same command goes on from here after it was stopped")
    passes.add_argument(
        "--every", type=int, default=1_000_000, metavar="ROWS", help="rows between checkpoints (default 1,000,000)"
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing but what is wrong")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of sentences")
    parser.set_defaults(run=run, interrupted="nothing was learned, and no model was written")


def _add_learner_options(group: Any) -> None:
    group.add_argument("--loss", help="default: logistic or squared; with a parameter: quantile:0.9, huber:1.5")
    group.add_argument(
        "--eta0", default="auto", metavar="RATE", help="initial learning rate (default: auto, none needed)"
    )
    group.add_argument("--update", choices=tuple(UPDATES), default="iwa", help="default iwa")
    group.add_argument("--schedule", choices=tuple(SCHEDULES), help="of the rate (default power)")
    group.add_argument("--power-t", type=float, default=0.5, metavar="T", help="of --schedule power (default 0.5)")
    group.add_argument("--metric", choices=METRICS, default="diagonal", help="default diagonal")
    group.add_argument("--center", choices=CENTERS, default="trajectory", help="default trajectory")
    group.add_argument("--radius", type=float, metavar="R", help="keep the model in a ball (needs --metric scalar)")
    group.add_argument(
        "--l1", type=float, default=0.0, metavar="L", help="penalty l1 |x| (needs a rate; zeros: origin)"
    )
    group.add_argument("--l2", type=float, default=0.0, metavar="L", help="penalty l2/2 |x|^2 (needs a rate)")
    group.add_argument(
        "--average",
        action="store_true",
        help="predict with the average of all models (needs a rate; not with penalties, --radius or --metric full)",
    )
    group.add_argument("--no-intercept", dest="fit_intercept", action="store_false", help="no constant feature")
    group.add_argument(
        "--certificate",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="keep a regret bound (auto always does)",
    )


def run(options: argparse.Namespace) -> int:
    """Learn, keep the model, and say how it went."""
    from steelyard.cli.report import LearnReport, show
    from steelyard.data.checks import OptionError
    from steelyard.streaming import OtherRows

    loss = _check_options(options)
    source = open_data(options)
    command = {name: value for name, value in vars(options).items() if name not in _FORGOTTEN}
    command["bytes"] = source.total_bytes
    saved = checkpoint.load(options.checkpoint, command) if options.checkpoint else None
    if saved is not None and saved.state["finished"]:
        return _write_again(options, saved)
    try:
        job = _new_run(options, source, loss)
        keeper = _Keeper(options, job, LearnReport(options, job), command)
        options.interrupted = keeper.interrupted
        start = keeper.go_on(saved)
        with keeper.report, _interruptible(keeper):
            _learn(keeper, start)
        learner = job.finish()
    except OtherRows as error:
        raise UsageError(f"--checkpoint {options.checkpoint}: {error}: give the same data, or another file") from None
    except OptionError as error:
        raise UsageError(str(error)) from None
    learner.notes = _notes(job, options)
    result = keeper.report.result(learner)
    if options.checkpoint:
        keeper.keep(result)
    if options.model:  # before anything is printed: the reader of a pipe may go
        learner.save(options.model)
        keeper.written = True
    show(result, options)
    return 0


def _new_run(options: argparse.Namespace, source: Source, loss: Loss | None) -> Run:
    from steelyard.streaming import Run

    job = Run(
        source,
        lambda goal: _new_learner(options, goal.loss, goal.n_outputs),
        task=options.task,
        classes=None if options.classes is None else [name.strip() for name in options.classes.split(",")],
        loss=loss,
        passes=options.passes,
        shuffle=options.shuffle,
        seed=options.seed,
        skip=options.on_error == "skip",
        compact=True,
    )
    job.tells_rows = bool(options.checkpoint)
    return job


def _write_again(options: argparse.Namespace, saved: checkpoint.Checkpoint) -> int:
    """The model of a run that is finished, without a look at the data."""
    from steelyard.cli.report import show

    if not options.quiet:
        what = "the same model is written again" if options.model else "name a --model, and it is written again"
        print(f"steelyard: {options.checkpoint} says that this run is finished: {what}", file=sys.stderr)
    if options.model:
        saved.learner.save(options.model)
    show(saved.state["finished"], options)
    return 0


def _check_options(options: argparse.Namespace) -> Loss | None:
    """The loss, if one is named; everything that is wrong whatever the data is refused here."""
    check_least(options, passes=1, seed=0, every=1)
    if options.seed >= 1 << 32:
        raise UsageError(f"--seed must be less than 2^32, got {options.seed}")
    check_data_options(options)
    check_output("--model", options.model)
    check_output("--checkpoint", options.checkpoint)
    if options.checkpoint:
        check_is_file("--checkpoint", options.checkpoint)
    if options.model and options.model == options.checkpoint:
        raise UsageError("--model and --checkpoint must be two files")
    if options.eta0 != "auto":
        try:
            options.eta0 = float(options.eta0)
        except ValueError:
            raise UsageError(f"--eta0 must be auto or a number, got {options.eta0!r}") from None
    if options.classes is not None and options.task == "regression":
        raise UsageError("--classes belong to a classification")
    loss = None if options.loss is None else _parsed_loss(options.loss)
    try:
        _new_learner(options, loss or "logistic", 1)
    except ValueError as error:
        raise UsageError(in_shell_words(str(error))) from None
    return loss


def _parsed_loss(text: str) -> Loss:
    """A loss by name, with its parameter after a colon."""
    from steelyard.losses import Huber, Quantile, get_loss

    name, colon, number = text.partition(":")
    try:
        if not colon:
            return get_loss(name)
        if name not in ("quantile", "huber"):
            raise ValueError(f"the loss {name!r} has no parameter: quantile:TAU and huber:DELTA have")
        return Quantile(float(number)) if name == "quantile" else Huber(float(number))
    except ValueError as error:
        raise UsageError(f"--loss {text}: {error}") from None


def _new_learner(options: argparse.Namespace, loss: str | Loss, n_outputs: int) -> OnlineLearner:
    from steelyard.fitting import new_learner

    return new_learner(
        loss,
        options.eta0,
        update=options.update,
        schedule=options.schedule,
        power_t=options.power_t,
        metric=options.metric,
        center=options.center,
        radius=options.radius,
        fit_intercept=options.fit_intercept,
        certificate=options.certificate,
        n_outputs=n_outputs,
        l1=options.l1,
        l2=options.l2,
        average=options.average,
    )


class _Keeper:
    """Keeps what a run has learned in its checkpoint, if it has one, and knows what would be lost with the process."""

    def __init__(self, options: argparse.Namespace, job: Run, report: LearnReport, command: dict[str, Any]) -> None:
        self.options, self.job, self.report = options, job, report
        self._command = command
        classes = job.goal.classes
        self._goal = {"task_found": job.goal.task, "classes_found": None if classes is None else classes.tolist()}
        self._kept: Position | None = None
        self.written = False
        """Whether the model is."""

    def go_on(self, saved: checkpoint.Checkpoint | None) -> Position:
        """Where the run begins: after what was kept."""
        from steelyard.streaming import Position, Seen

        if saved is None:
            return Position()
        job, state = self.job, saved.state
        checkpoint.check_same(self.options.checkpoint, state["goal"], self._goal)
        passes, rows, *seen = state["position"]
        job.learner, job.position = saved.learner, Position(passes, rows, *(each and Seen(*each) for each in seen))
        self._kept = job.position
        self.report.restore(state["report"])
        return job.position

    def keep(self, finished: dict[str, Any] | None = None) -> None:
        """Write the checkpoint; where the run is ``finished``, with what there was to say."""
        position = self.job.position
        state = {
            "command": self._command,
            "goal": self._goal,
            "position": list(position),
            "report": self.report.state(),
            "finished": finished,
        }
        with self.job.whole_learner() as learner:
            checkpoint.save(self.options.checkpoint, learner, state)
        self._kept = position

    def interrupted(self) -> str:
        """What is true when the run was interrupted."""
        if self.written:
            return f"the model is written: {self.options.model}"
        if self._kept is not None:
            kept = f"{self.report.how_far(self._kept)} are saved in {self.options.checkpoint}"
            return f"{kept}; the same command goes on from there"
        if self.job.learner.state is None:
            return "nothing was learned, and no model was written"
        kept = "" if self.options.checkpoint else "; with --checkpoint FILE it is kept"
        return f"no model was written: {self.report.how_far()} were learned, and this is lost{kept}"


def _learn(keeper: _Keeper, start: Position) -> None:
    """All the steps, with a checkpoint now and then."""
    options, job = keeper.options, keeper.job
    most = options.every if options.checkpoint else None
    since = 0
    for step in job.steps(start, most):
        if job.asked_to_stop:
            raise KeyboardInterrupt
        since += step.y.size
        if options.checkpoint and since >= options.every:
            keeper.keep()
            since = 0


@contextmanager
def _interruptible(keeper: _Keeper) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop between two steps, where the learner is whole, and save it if there is a place for it."""
    options, job = keeper.options, keeper.job

    def stop(number: int, frame: Any) -> None:
        if not job.busy:
            raise KeyboardInterrupt
        job.asked_to_stop = True

    signals = (signal.SIGINT, signal.SIGTERM) if options.checkpoint else ()
    before = {kind: signal.signal(kind, stop) for kind in signals}
    try:
        yield
    except KeyboardInterrupt:
        if options.checkpoint and job.learner.state is not None:
            keeper.keep()
        raise
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _notes(job: Run, options: argparse.Namespace) -> dict[str, Any]:
    """What a model file says beside the learner: what it predicts, how rows are read, and how it was learned."""
    return {
        **job.notes(),
        "learned": {"passes": options.passes, "shuffle": options.shuffle, "seed": options.seed},
    }
