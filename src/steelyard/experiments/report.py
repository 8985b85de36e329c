"""Sweeps and claims → an output folder: CSV, JSON, figures, and one self-contained HTML page."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import __version__
from steelyard.data.files import atomic_write
from steelyard.experiments import page, paper, pictures, plots
from steelyard.experiments.claims import Claim, check
from steelyard.experiments.sets import Facts
from steelyard.experiments.sweep import SweepResult, write_csv


def _versions() -> dict[str, str]:
    return {"steelyard": __version__, "python": platform.python_version()} | {p: version(p) for p in ("numpy", "numba")}


@dataclass(frozen=True)
class Run:
    """All that was run, and how to run it again."""

    settings: paper.Settings
    facts: dict[str, Facts]
    results: dict[str, SweepResult]
    readings: Sequence[dict[str, SweepResult]] = ()
    """The same under the other schedules: results of :func:`paper.readings`."""
    command: str = "steelyard paper"
    date: str = field(default_factory=lambda: datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))
    versions: dict[str, str] = field(default_factory=_versions)

    def claims(self) -> dict[str, list[Claim]]:
        """The checked claims under every schedule, this run's first."""
        others = {next(iter(reading.values())).schedule: check(reading) for reading in self.readings}
        return {self.settings.schedule: check(self.results)} | others

    def alternative(self) -> dict[str, SweepResult]:
        """The results under the one other schedule that is drawn; nothing if none was run."""
        other = "gap" if self.settings.schedule == "adagrad-norm" else "adagrad-norm"
        return next((r for r in self.readings if next(iter(r.values())).schedule == other), {})


def write(output: str | os.PathLike[str], run: Run, n_jobs: int = 1) -> list[Claim]:
    """Write everything about a run into ``output`` and return the checked claims."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    for old in (folder / "readings.csv", *folder.glob("figure?.*")):  # of an earlier run, which may have had more
        old.unlink(missing_ok=True)
    write_csv(folder / "results.csv", _rows(run.results))
    if run.readings:
        write_csv(folder / "readings.csv", [row for reading in run.readings for row in _rows(reading)])
    claims = run.claims()
    _write_json(folder / "claims.json", _records(claims, run.settings.schedule))
    _write_json(folder / "run.json", _about(run))
    panels = _draw(folder, run, n_jobs)
    with atomic_write(folder / "index.html") as file:
        file.write(page.make(run, claims, panels).encode())
    return claims[run.settings.schedule]


def _write_json(path: Path, content: Any) -> None:
    with atomic_write(path) as file:
        file.write((json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _rows(results: dict[str, SweepResult]) -> list[dict[str, Any]]:
    tasks = {loss: task for task, loss in paper.LOSS.items()}
    return [{"dataset": name, "task": tasks[r.loss], **row} for name, r in results.items() for row in r.rows()]


def _stream_rows(weights: Any, losses: dict[str, Any]) -> list[dict[str, Any]]:
    """The losses of figure 6: one of every contender, weight and shuffle."""
    return [
        {"contender": name, "weight": float(weights[i]), "shuffle": r, "loss": float(values[i, r])}
        for name, values in losses.items()
        for i, r in np.ndindex(values.shape)
    ]


def _about(run: Run) -> dict[str, Any]:
    sets = {name: facts._asdict() for name, facts in run.facts.items()}
    return {"command": run.command, "date": run.date, **run.versions, "settings": asdict(run.settings), "sets": sets}


def _records(by_schedule: dict[str, list[Claim]], schedule: str) -> list[dict[str, Any]]:
    """The claims for a file, each with the sets on which it holds under every schedule that was run."""
    return [
        {
            "name": claim.sentence.name,
            "place": claim.sentence.place,
            "sentence": claim.sentence.sentence,
            "quote": claim.sentence.quote,
            "taken_as": claim.sentence.taken_as,
            "caution": claim.sentence.caution,
            "holds": claim.holds,
            "sets": {name: finding._asdict() for name, finding in claim.findings.items()},
            "held_by_schedule": {other: theirs[i].held for other, theirs in by_schedule.items()},
        }
        for i, claim in enumerate(by_schedule[schedule])
    ]


def _draw(folder: Path, run: Run, n_jobs: int) -> dict[str, list[tuple[str, str]]]:
    """Save every figure, and return the panels that the page shows of it: alternative text and SVG."""
    import joblib

    s = run.settings
    constants = {name: facts.constant for name, facts in run.facts.items()}
    whole: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = []
    parts: list[tuple[str, str, Callable[..., Any], tuple[Any, ...]]] = []

    def add(name: str, draw: plots.Draw, results: dict[str, SweepResult], title: str) -> None:
        if results:
            whole.append((name, plots.figure_panels, (draw, results, constants, title)))
        for set_name, result in results.items():
            alt = f"{title}: {set_name}"
            parts.append((name, alt, plots.panel, (draw, set_name, result, constants.get(set_name))))

    def add_alone(name: str, alt: str, draw: Callable[..., Any], *arguments: Any) -> None:
        whole.append((name, draw, arguments))
        parts.append((name, alt, draw, arguments))

    for name, loss in (("figure1", "squared"), ("figure2", "logistic")):
        some = {n: result for n, result in run.results.items() if result.loss == loss}
        add(
            name,
            plots.draw_sweep,
            some,
            f"averaged {loss} loss against η₀, {s.schedule} schedule, {s.repeats} shuffles",
        )
    add("figure3", plots.draw_widths, run.results, "decades of good rates against what counts as good")
    other = run.alternative()
    if other:
        like = next(iter(other.values()))
        title = f"averaged loss against η₀, {like.schedule} schedule, {like.average_loss.shape[2]} shuffles"
        add("figure4", plots.draw_sweep, other, title)
    whole.append(("figure5", pictures.figure_one_example, ()))
    for loss in ("squared", "logistic"):
        alt = f"prediction after one step against the importance weight, {loss} loss"
        parts.append(("figure5", alt, pictures.figure_one_example, ((loss,),)))
    stream = paper.weighted_stream(seed=s.seed)
    write_csv(folder / "weights.csv", _stream_rows(*stream))
    add_alone("figure6", "final loss against the weight of a few examples", pictures.figure_weighted_stream, *stream)
    add_alone("figure7", "IWA step over proximal step, logistic loss", pictures.figure_ratio)
    with joblib.Parallel(n_jobs=n_jobs) as parallel:
        parallel(joblib.delayed(_save)(folder, *each) for each in whole)
        drawn = parallel(joblib.delayed(_svg)(draw, arguments) for _, _, draw, arguments in parts)
    panels: dict[str, list[tuple[str, str]]] = {}
    for (name, alt, _, _), svg in zip(parts, drawn, strict=True):
        panels.setdefault(name, []).append((alt, svg))
    return panels


def _save(folder: Path, name: str, draw: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    plots.save(draw(*arguments), folder, name)


def _svg(draw: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    return plots.as_svg(draw(*arguments))


def summary(claims: Sequence[Claim]) -> str:
    """How many claims hold, in words."""
    return page.summary(claims)
