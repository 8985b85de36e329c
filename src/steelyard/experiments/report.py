"""Sweeps and claims → an output folder: CSV, figures, claims, and one self-contained HTML page."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import __version__
from steelyard.data import datasets
from steelyard.data.files import atomic_write
from steelyard.experiments import paper, plots
from steelyard.experiments.claims import GOOD, NAMES, Claim, check, width
from steelyard.experiments.sweep import SweepResult, write_csv

_CSS = """
:root { --ink: #1d2733; --soft: #5b6776; --line: #d9dee5; --good: #1b7f5c; --bad: #b3413c; }
:root { --part: #9a6700; --accent: #00798c; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0; } h2 { margin-top: 2.6rem; font-size: 1.3rem; }
p.lead { color: var(--soft); font-size: 1.08rem; } figure { margin: 1.4rem 0; }
figure img { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; background: #fff; }
figcaption { color: var(--soft); font-size: 0.92rem; margin-top: 0.4rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.4rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; }
th.n { min-width: 4.5rem; }
.claim { border: 1px solid var(--line); border-left: 5px solid var(--good); border-radius: 6px; }
.claim { padding: 0.7rem 1rem; margin: 0.8rem 0; }
.claim.no { border-left-color: var(--bad); } .claim.some { border-left-color: var(--part); }
.claim p { margin: 0.3rem 0; } .claim table { margin-top: 0.5rem; } .claim tr:last-child td { border-bottom: 0; }
.claim td:first-child { width: 11rem; overflow-wrap: anywhere; } .claim td:nth-child(2) { width: 3.5rem; }
blockquote { margin: 0.4rem 0; font-size: 1.05rem; }
blockquote::before { content: "“"; } blockquote::after { content: "”"; }
.yes { color: var(--good); font-weight: 650; } .part { color: var(--part); font-weight: 650; }
.fail { color: var(--bad); font-weight: 650; }
.source, .remark { color: var(--soft); font-size: 0.9rem; } .best { color: var(--accent); font-weight: 650; }
@media (max-width: 640px) { figure { overflow-x: auto; } figure img { width: 52rem; max-width: none; }
  .claim table, .claim tbody, .claim tr, .claim td { display: block; width: auto !important; }
  .claim td { border: 0; padding: 0 0 0.1rem; } .claim tr { padding: 0.4rem 0; border-top: 1px solid var(--line); } }
code { background: #f2f4f7; padding: 0.1rem 0.3rem; border-radius: 4px; }
"""

_CAPTIONS = {
    "figure1": "Averaged squared loss against the initial rate, as in the paper's figure 1. Bands: one standard "
    "deviation over the shuffles. Arrows: the curve goes on above the axis; the note says to where.",
    "figure2": "Averaged logistic loss against the initial rate, as in the paper's figure 2. Bands: one standard "
    "deviation over the shuffles. Arrows: the curve goes on above the axis; the note says to where.",
    "figure3": "One example, one step, from a prediction of 0. The dots are plain gradient descent on the same example "
    "cut into 10,000 pieces: IWA lies on them, whatever the weight. The linearized rule overshoots, aProx stops where "
    "the tangent reaches zero, the proximal step stays short of the flow.",
    "figure4": "A pass in which a few examples are heavy. Bands: smallest and largest over five shuffles; losses are "
    "cut at 10. The linearized update and scikit-learn's SGD are the same rule, and their curves coincide.",
    "figure5": "How well IWA approximates the proximal step: the ratio is 1 for short steps, and grows slowly.",
}


def write(
    output: str | os.PathLike[str],
    results: dict[str, SweepResult],
    settings: paper.Settings,
    source: str,
    readings: Sequence[dict[str, SweepResult]] = (),
) -> list[Claim]:
    """Write everything about a run into ``output`` and return the checked claims.

    ``source`` says where the data is from; ``readings`` are the results of :func:`paper.readings`.
    """
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "results.csv", _rows(results))
    (folder / "readings.csv").unlink(missing_ok=True)  # of an earlier run
    if readings:
        write_csv(folder / "readings.csv", [row for reading in readings for row in _rows(reading)])
    claims = check(results)
    by_schedule = {settings.schedule: claims}
    by_schedule |= {next(iter(reading.values())).schedule: check(reading) for reading in readings}
    with atomic_write(folder / "claims.json") as file:
        file.write(json.dumps(_records(claims, by_schedule), indent=1, ensure_ascii=False).encode())
    figures = {}
    for name, loss in (("figure1", "squared"), ("figure2", "logistic")):
        some = {n: result for n, result in results.items() if result.loss == loss}
        if some:
            title = f"{loss} loss: averaged loss against η₀ ({settings.schedule} schedule, {settings.repeats} shuffles)"
            figures[name] = plots.figure_sweeps(some, title)
    figures["figure3"] = plots.figure_one_example()
    figures["figure4"] = plots.figure_weighted_stream(*paper.weighted_stream(seed=settings.seed))
    figures["figure5"] = plots.figure_ratio()
    for name, figure in figures.items():
        plots.save(figure, folder, name)
    with atomic_write(folder / "index.html") as file:
        file.write(_page(folder, list(figures), results, by_schedule, settings, source).encode())
    return claims


def _rows(results: dict[str, SweepResult]) -> list[dict[str, Any]]:
    tasks = {loss: task for task, loss in paper.LOSS.items()}
    return [{"dataset": name, "task": tasks[r.loss], **row} for name, r in results.items() for row in r.rows()]


def _records(claims: list[Claim], by_schedule: dict[str, list[Claim]]) -> list[dict[str, Any]]:
    """The claims for a file, each with the sets on which it holds under every schedule that was run."""
    return [
        {
            "source": claim.source,
            "quote": claim.quote,
            "taken_as": claim.taken_as,
            "holds": claim.holds,
            "sets": {name: finding._asdict() for name, finding in claim.findings.items()},
            "held_by_schedule": {schedule: theirs[i].held for schedule, theirs in by_schedule.items()},
        }
        for i, claim in enumerate(claims)
    ]


def summary(claims: Sequence[Claim]) -> str:
    """How many claims hold, in words."""
    held = sum(claim.holds for claim in claims)
    some = sum(bool(claim.held) and not claim.holds for claim in claims)
    return f"{held} of {len(claims)} claims hold on every data set, {some} on some, {len(claims) - held - some} on none"


def _page(
    folder: Path,
    figures: list[str],
    results: dict[str, SweepResult],
    by_schedule: dict[str, list[Claim]],
    settings: paper.Settings,
    source: str,
) -> str:
    claims = by_schedule[settings.schedule]
    sentences = len({claim.quote for claim in claims})
    first, last = settings.rates[0], settings.rates[-1]
    sections = [
        "<h1>Importance-weight-aware updates, measured</h1>",
        "<p class=lead>The empirical section of Chen &amp; Orabona (2023), <em>Implicit Interpretation of Importance "
        f"Weight Aware Updates</em>, run by Steelyard {__version__}. {sentences} statements of it can be measured, "
        f"here in {len(claims)} ways: {summary(claims)}.</p>",
        f"<p>{len(results)} data set{'' if len(results) == 1 else 's'} ({html.escape(source)}); "
        f"{len(settings.rates)} rates from {first:g} to {last:g}; "
        f"{len(settings.updates)} updates; {settings.repeats} shuffles; seed {settings.seed}. Shown is the progressive "
        "average loss: every example is predicted before it is learned.</p>",
        "<h2>Loss against the learning rate</h2>",
        *(_figure(folder, name) for name in figures if name in ("figure1", "figure2")),
        "<h2>What the paper says, and what comes out</h2>",
        "<p>Each statement is the paper's, word for word, measured for the loss and the updates that it speaks of. "
        "What counts as very sensitive, much broader or close is our choice, made with such curves in view. The paper "
        "does not say what a good rate is: ranges of rates are measured with two meanings of it, and the second was "
        "added after the first had failed. So read the numbers rather than the count.</p>",
        *map(_claim, claims),
        *([] if len(by_schedule) == 1 else [_readings(by_schedule, settings)]),
        "<h2>The numbers</h2>",
        _table(results),
        "<h2>Three pictures the paper has no room for</h2>",
        *(_figure(folder, name) for name in figures if name in ("figure3", "figure4", "figure5")),
        "<h2>How it was done</h2>",
        f"<p><strong>Normalisation.</strong> {html.escape(paper.NORMALISATION)}</p>",
        f"<p><strong>Schedule.</strong> {html.escape(_schedule(settings.schedule))}</p>",
        "<p><strong>Files.</strong> <code>results.csv</code> holds every average loss"
        f"{', <code>readings.csv</code> those under the other schedules' if len(by_schedule) > 1 else ''}, "
        "<code>claims.json</code> the claims; the figures are beside this page as PNG, SVG and PDF.</p>",
    ]
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>IWA updates, measured</title><link rel="icon" href="data:,"><style>{_CSS}</style></head>'
        f"<body>\n{body}\n</body></html>\n"
    )


def _schedule(name: str) -> str:
    return (
        "The paper sets λ_t “as in Corollary 4.3” of an earlier paper and does not print it, so every λ_t here is a "
        f"reading of it. This page's: {_LAMBDA[name]}."
    )


_LAMBDA = {
    "gap": "“gap”, derived from the regret identity: λ₁ = 1/η₀ and λ_(t+1) = λ_t + γ_t/η₀², where γ_t is the round's "
    "own term in the bound, ℓ(p) + ℓ*(c) − cp + ac²/2",
    "adagrad-norm": "“adagrad-norm”: λ_t = √(1 + Σ‖g‖²)/η₀ over the rounds before t",
    "power": "“power”: λ_t = √(1 + t)/η₀",
    "constant": "“constant”: λ = 1/η₀, the setting of the paper's Theorem 3.2",
}


def _readings(by_schedule: dict[str, list[Claim]], settings: paper.Settings) -> str:
    """A table of claims × schedules: on how many data sets each claim holds."""
    few = paper.readings(settings)[0].repeats
    heads = "".join(
        f"<th>{s}<br><span class=source>{settings.repeats if s == settings.schedule else few} shuffles</span></th>"
        for s in by_schedule
    )
    rows = []
    for i, claim in enumerate(by_schedule[settings.schedule]):
        cells = "".join(f"<td>{_count(theirs[i])}</td>" for theirs in by_schedule.values())
        rows.append(f"<tr><td>{html.escape(claim.name)}</td>{cells}</tr>")
    totals = "".join(f"<td>{sum(c.holds for c in theirs)} of {len(theirs)}</td>" for theirs in by_schedule.values())
    return (
        "<h2>How the verdicts depend on λ_t</h2><p>The paper does not print its λ_t. The same protocol under other "
        "schedules; a cell says on how many data sets the claim holds. Where curves leave a range at nearly the same "
        "rate, fewer shuffles can move a cell by one; <code>--schedule</code> runs another schedule in full.</p>"
        f"<div class=scroll><table id=readings><thead><tr><th>claim</th>{heads}</tr></thead><tbody>{''.join(rows)}"
        f"<tr><td><strong>hold on every set</strong></td>{totals}</tr></tbody></table></div>"
    )


def _count(claim: Claim) -> str:
    mark = "yes" if claim.holds else "part" if claim.held else "fail"
    return f"<span class={mark}>{len(claim.held)} of {len(claim.findings)}</span>"


def _figure(folder: Path, name: str) -> str:
    data = base64.b64encode((folder / f"{name}.svg").read_bytes()).decode()
    caption = html.escape(_CAPTIONS[name])
    return (
        f'<figure id="{name}"><img alt="{caption}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _claim(claim: Claim) -> str:
    held, total = len(claim.held), len(claim.findings)
    verdict = f"holds on {'every set' if claim.holds else f'{held} of {total} sets' if held else 'no set'}"
    kind, mark = ("", "yes") if claim.holds else (" some", "part") if held else (" no", "fail")
    rows = []
    for name, finding in claim.findings.items():
        word = "<td class=yes>yes</td>" if finding.holds else "<td class=fail>no</td>"
        why = f"<br><span class=remark>Why: {html.escape(finding.why)}.</span>" if finding.why else ""
        rows.append(f"<tr><td>{html.escape(name)}</td>{word}<td>{html.escape(finding.measured)}{why}</td></tr>")
    return (
        f'<div class="claim{kind}"><p><span class={mark}>{verdict}</span> '
        f"<span class=source>· {html.escape(claim.source)}</span></p>"
        f"<blockquote>{html.escape(claim.quote)}</blockquote>"
        f"<p class=source>Taken as: {html.escape(claim.taken_as)}.</p>"
        f"<div class=scroll><table><tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def _number(value: float) -> str:
    return "diverges" if np.isinf(value) else f"{value:.4g}"


def _table(results: dict[str, SweepResult]) -> str:
    heads = (
        "data set",
        "update",
        "best η₀",
        "loss there",
        "± s.e.",
        *(f"decades {close} the best" for close in GOOD.values()),
        "loss at the largest η₀",
    )
    cells: list[str] = []
    for name, result in results.items():
        best = result.best()
        top = min(value for _, value in best.values())
        for i, update in enumerate(result.updates):
            rate, value = best[update]
            error = result.standard_error[i, int(result.mean[i].argmin())]
            numbers: list[Any] = [f"{rate:.3g}", f"{value:.4g}", f"{error:.2g}"]
            numbers += [f"{width(result, update, t):.3g}" for t in GOOD] + [_number(float(result.mean[i, -1]))]
            mark = ' class="n best"' if value == top else " class=n"
            columns = "".join(f"<td{mark if j == 1 else ' class=n'}>{v}</td>" for j, v in enumerate(numbers))
            cells.append(f"<tr><td>{html.escape(name) if i == 0 else ''}</td><td>{NAMES[update]}</td>{columns}</tr>")
    head = "".join(f"<th{' class=n' if i > 1 else ''}>{h}</th>" for i, h in enumerate(heads))
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table></div>"


def source_of(names: list[str]) -> str:
    """Where the data of a run come from, in words."""
    files = [name for name in names if os.path.isfile(name)]
    embedded = [name for name in names if name in datasets.EMBEDDED and name not in files]
    sources = {
        "LIBSVM sets": len(names) > len(files) + len(embedded),
        "LIBSVM files": bool(files),
        "real sets that come with scikit-learn": bool(embedded),
    }
    return " and ".join(source for source, some in sources.items() if some)
