"""How learning goes, on a terminal, and how it went: progressive loss, experts, the certificate."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.cli.figures import figures
from steelyard.cli.inputs import tell_of_rows
from steelyard.export.describe import Certified, certified, plain
from steelyard.mixture import Mixture
from steelyard.online import Progress, Trace
from steelyard.progress import progress_bar, told_to_people
from steelyard.scores import Scores

if TYPE_CHECKING:
    from steelyard.online import OnlineLearner
    from steelyard.streaming import Position, Run, Step

_HEAD = """   average      since       example         weight       label  prediction
      loss       last       counter                               """


class LearnReport:
    """Told of every step: adds up the first pass, and shows a line at every power of two to people at a terminal."""

    def __init__(self, options: argparse.Namespace, job: Run) -> None:
        self._options, self._job = options, job
        goal = job.goal
        classes = None if goal.classes is None else goal.classes.size
        self._scores = Scores(goal.loss, classes, exact_rows=0)
        self._passes: list[Progress] = []
        self._shows = told_to_people() and not options.quiet and not options.json
        self._next, self._since = 1, (0.0, 0.0)
        self._bar: Any = None
        self._stack = ExitStack()
        self._began = time.monotonic()
        self._here = 0
        if options.json or options.checkpoint or not options.quiet:  # else nobody asks how it went
            job.on_step = self.add

    def __enter__(self) -> LearnReport:
        if self._shows:
            self._bar = self._stack.enter_context(progress_bar())
            print(_HEAD, file=sys.stderr)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    # ---------------------------------------------------------------------------------------------------- on the way

    def add(self, step: Step) -> None:
        """Some rows were learned."""
        number = step.position.passes
        self._here += step.y.size
        while len(self._passes) <= number:
            self._passes.append(Progress())
        if self._bar:
            self._move_bar(step)
        if number == 0:
            step = _first_visits(step)
            if self._shows:
                self._show_powers(step)
            self._scores.add(step.trace.prediction, step.trace.loss, step.y, step.trace.weight)
        self._passes[number] = self._passes[number].add(step.trace)

    def _show_powers(self, step: Step) -> None:
        """The lines of those rows of a step whose number is a power of two."""
        trace = step.trace
        loss = trace.loss if trace.loss.ndim == 1 else trace.loss.mean(axis=1)
        lost, weight = np.cumsum(trace.weight * np.where(trace.weight > 0.0, loss, 0.0)), np.cumsum(trace.weight)
        before_loss, before_weight = self._scores.average_loss, self._scores.weight
        total = before_loss * before_weight if before_weight else 0.0
        while self._next <= self._scores.rows + step.y.size:
            at = self._next - self._scores.rows - 1
            now, seen = total + float(lost[at]), before_weight + float(weight[at])
            last, seen_last = now - self._since[0], seen - self._since[1]
            self._since = now, seen
            shown = f"{now / seen if seen else 0.0:10.6g} {last / seen_last if seen_last else 0.0:10.6g}"
            print(f"{shown} {self._next:13d} {seen:14.6g} {self._label(step, at)}", file=sys.stderr)
            self._next *= 2

    def _label(self, step: Step, at: int) -> str:
        """The label of a row, and what was predicted for it."""
        goal, prediction, y = self._job.goal, step.trace.prediction[at], float(step.y[at])
        if goal.classes is None:
            return f"{y:11.5g} {float(goal.loss.inverse_link(np.array(prediction))):11.5g}"
        if goal.classes.size > 2:
            return f"{goal.classes[int(y)]!s:>11.11s} {goal.classes[int(np.argmax(prediction))]!s:>11.11s}"
        probability = goal.loss.inverse_link(np.array(prediction)) if self._scores.is_probabilistic else prediction
        return f"{goal.classes[int(y > 0.0)]!s:>11.11s} {float(probability):11.5g}"

    def _move_bar(self, step: Step) -> None:
        speed = self._here / max(time.monotonic() - self._began, 1e-9)
        name = f"{speed:,.0f} rows/s"
        passes, source = self._job.passes, self._job.source
        if self._job.shuffle and self._job.rows:
            self._bar(name, step.position.passes * self._job.rows + step.position.rows, passes * self._job.rows)
        elif source.total_bytes:
            self._bar(name, step.position.passes * source.total_bytes + source.bytes_read, passes * source.total_bytes)
        else:
            self._bar(name, step.position.rows, None)

    def how_far(self, position: Position | None = None) -> str:
        """How much was learned, in words: up to a position, or to where the run has come."""
        passes, rows, *_ = self._job.position if position is None else position
        return f"{rows} rows of pass {passes + 1}"

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def state(self) -> dict[str, Any]:
        """What was added up, as JSON can hold it."""
        return {"scores": self._scores.state(), "passes": [list(each) for each in self._passes]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._scores.restore(state["scores"])
        self._passes = [Progress(*each) for each in state["passes"]]
        while self._next <= self._scores.rows:
            self._next *= 2
        if not (self._options.quiet or self._options.json):
            print(f"steelyard: going on after {self.how_far()}, from {self._options.checkpoint}", file=sys.stderr)

    # --------------------------------------------------------------------------------------------------- at the end

    def result(self, learner: OnlineLearner) -> dict[str, Any]:
        """How it went, as JSON can hold it, for :func:`show`."""
        left_out = tell_of_rows(self._job.source, self._job.feed.unlabelled)
        proved = certified(learner) if learner.certificate else None
        return {"figures": self._figures(learner, proved), "left_out": left_out, "lines": self._lines(learner, proved)}

    @property
    def _visits_again(self) -> bool:
        """Whether rows of more weight than 1 were visited more than once in a pass."""
        return self._job.examples is not None and self._job.rows != self._job.examples

    @property
    def _over(self) -> str:
        """What the learner's own sums are over, where it is not each row once."""
        return " over all passes" if len(self._passes) > 1 else " over all visits" if self._visits_again else ""

    @property
    def _examples(self) -> int:
        return self._scores.rows if self._job.examples is None else self._job.examples

    def _figures(self, learner: OnlineLearner, proved: Certified | None) -> dict[str, Any]:
        return {
            **figures(self._job.goal, self._scores, learner, self._job.source, self._job.feed.unlabelled),
            "examples": self._examples,
            "passes": len(self._passes),
            "pass_losses": plain([each.average for each in self._passes]),
            "certified_gap": None if proved is None else plain(proved.gap),
        }

    def _lines(self, learner: OnlineLearner, proved: Certified | None) -> list[str]:
        goal, scores, source = self._job.goal, self._scores, self._job.source
        size = f"{self._examples} rows, {learner.n_features} features"
        lines = [f"{source.name}: {goal.task}, {size}, {goal.loss.name} loss"]
        if self._options.task is None and goal.task == "regression":
            lines.append("(real targets; if its labels are classes, say --task classification)")
        if learner.n_outputs > 1:
            lines.append(f"{learner.n_outputs} classes, each against the rest")
        elif isinstance(learner, Mixture):
            over = "loss, all passes" if len(self._passes) > 1 else "loss, all visits" if self._visits_again else "loss"
            lines.append(f"\n      rate  falls like  {over:>16s}  share")
            for each in learner.bank():
                shown = "retired" if each.retired else f"{each.loss:.4g}"
                lines.append(f"{each.eta0:10.4g}  {each.decay:>10s}  {shown:>16s}  {each.weight:5.3f}")
        mixed = " of the mixture" if isinstance(learner, Mixture) else ""
        half = ", ½ (p − y)²" if goal.loss.name == "squared" else ""
        first = " in the first pass" if len(self._passes) > 1 else ""
        what = f"each row's before it was learned, averaged{half}"
        lines.append(f"\nprogressive loss{mixed}{first}: {scores.average_loss:.6g} ({what})")
        if scores.accuracy is not None:
            auc = "" if scores.auc is None else f", AUC {scores.auc:.4f}"
            lines.append(f"progressive accuracy: {scores.accuracy:.4f}{auc}")
        elif scores.r2 is not None:
            lines.append(f"progressive R²: {scores.r2:.4f}")
        if len(self._passes) > 1:
            last = self._passes[-1].average
            lines.append(f"average loss in pass {len(self._passes)}: {last:.6g} (of rows that were learned before)")
        if proved is not None:
            lines.append(_certified_sentence(learner, proved, self._over))
        return lines


def _first_visits(step: Step) -> Step:
    """What was seen of rows that were visited for the first time, with all their weight."""
    if step.first is None:
        return step
    new = step.first > 0.0
    trace = Trace(step.trace.prediction[new], step.trace.loss[new], step.first[new])
    return step._replace(trace=trace, y=step.y[new])


def show(result: dict[str, Any], options: argparse.Namespace) -> None:
    """Print how it went, as the options want it."""
    if options.json:
        print(json.dumps({**result["figures"], "model": options.model}))
        return
    if options.quiet:
        return
    for each in result["left_out"]:
        print(f"steelyard: {each}", file=sys.stderr)
    for line in [*result["lines"], *([f"the model: {options.model}"] if options.model else [])]:
        print(line)


def _certified_sentence(learner: OnlineLearner, proved: Certified, over: str) -> str:
    """What is proved of the loss."""
    gap, largest, lost, scaled = proved
    if not gap < np.inf:
        return "certified: nothing, since labels, weights or values are too large for its sums"
    columns = " in scaled columns" if scaled else ""
    which = f"whose weights have norm <= {largest:.3g}{columns} (as large as the learned model's)"
    if learner.n_outputs > 1:
        columns = ", in scaled columns," if scaled else ""
        which = f"in which no class's weights have a larger norm{columns} than in the learned one"
    loss = f"the average loss{over}"
    how = f"within {gap:.3g} of" if gap >= 0.0 else f"better by {-gap:.3g}, or more, than"
    little = "" if gap < lost else ": more than the loss itself, so it says little"
    return f"certified: {loss} is {how} that of every linear model {which}{little}"
