"""Sweeps and claims → an output folder: CSV, figures, claims, and one self-contained HTML page."""

from __future__ import annotations

import base64
import html
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import __version__, datasets, paper, plots
from steelyard.claims import Claim, check, width
from steelyard.files import atomic_write
from steelyard.sweeps import SweepResult, write_csv

_CSS = """
:root { --ink: #1d2733; --soft: #5b6776; --line: #d9dee5; --good: #1b7f5c; --bad: #b3413c; --accent: #00798c; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0; } h2 { margin-top: 2.6rem; font-size: 1.3rem; }
p.lead { color: var(--soft); font-size: 1.08rem; } figure { margin: 1.4rem 0; }
figure img { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; background: #fff; }
figcaption { color: var(--soft); font-size: 0.92rem; margin-top: 0.4rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.4rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.claim { border: 1px solid var(--line); border-left: 5px solid var(--good); border-radius: 6px; }
.claim { padding: 0.7rem 1rem; margin: 0.8rem 0; }
.claim.no { border-left-color: var(--bad); } .claim p { margin: 0.3rem 0; }
.badge { font-weight: 650; color: var(--good); } .no .badge { color: var(--bad); }
.source, .remark { color: var(--soft); font-size: 0.9rem; } .best { color: var(--accent); font-weight: 650; }
@media (max-width: 640px) { figure { overflow-x: auto; } figure img { width: 52rem; max-width: none; } }
code { background: #f2f4f7; padding: 0.1rem 0.3rem; border-radius: 4px; }
"""

_CAPTIONS = {
    "figure1": "Averaged squared loss against the initial rate, as in the paper's figure 1. Bands: one standard "
    "deviation over the shuffles. Arrows: the curve goes on above the axis; the note says to where.",
    "figure2": "The same for the logistic loss, as in the paper's figure 2.",
    "figure3": "One example, one step, from a prediction of 0. The dots are plain gradient descent on the same example "
    "cut into 10,000 pieces: IWA lies on them, whatever the weight. The linearized rule overshoots, aProx stops where "
    "the tangent reaches zero, the proximal step stays short of the flow.",
    "figure4": "A pass in which a few examples are heavy. Bands: smallest and largest over five shuffles; losses are "
    "cut at 10. The linearized update and scikit-learn's SGD are the same rule, and their curves coincide.",
    "figure5": "How well IWA approximates the proximal step: the ratio is 1 for short steps, and grows slowly.",
}


def write(
    output: str | os.PathLike[str], results: dict[str, SweepResult], settings: paper.Settings, source: str
) -> list[Claim]:
    """Write everything about a run into ``output`` and return the checked claims.

    ``source`` says where the data is from.
    """
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    tasks = {name: "regression" if result.loss == "squared" else "classification" for name, result in results.items()}
    rows = [{"dataset": n, "task": tasks[n], **row} for n, result in results.items() for row in result.rows()]
    write_csv(folder / "results.csv", rows)
    claims = check(results)
    with atomic_write(folder / "claims.json") as file:
        file.write(json.dumps([claim._asdict() for claim in claims], indent=1, ensure_ascii=False).encode())
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
        file.write(_page(folder, list(figures), results, claims, settings, source).encode())
    return claims


def _page(
    folder: Path,
    figures: list[str],
    results: dict[str, SweepResult],
    claims: list[Claim],
    settings: paper.Settings,
    source: str,
) -> str:
    held = sum(claim.holds for claim in claims)
    first, last = settings.rates[0], settings.rates[-1]
    sections = [
        "<h1>Importance-weight-aware updates, measured</h1>",
        "<p class=lead>The empirical section of Chen &amp; Orabona (2023), <em>Implicit Interpretation of Importance "
        f"Weight Aware Updates</em>, run by Steelyard {__version__}. Of {len(claims)} sentences that can be measured, "
        f"{held} hold here.</p>",
        f"<p>{len(results)} data sets ({html.escape(source)}); {len(settings.rates)} rates from {first:g} to {last:g}; "
        f"{len(settings.updates)} updates; {settings.repeats} shuffles; seed {settings.seed}. Shown is the progressive "
        "average loss: every example is predicted before it is learned.</p>",
        "<h2>Loss against the learning rate</h2>",
        *(_figure(folder, name) for name in figures if name in ("figure1", "figure2")),
        "<h2>What the paper says, and what comes out</h2>",
        *map(_claim, claims),
        "<h2>The numbers</h2>",
        _table(results),
        "<h2>Three pictures the paper has no room for</h2>",
        *(_figure(folder, name) for name in figures if name in ("figure3", "figure4", "figure5")),
        "<h2>How it was done</h2>",
        f"<p><strong>Normalisation.</strong> {html.escape(paper.NORMALISATION)}</p>",
        f"<p><strong>Schedule.</strong> {html.escape(_schedule(settings.schedule))}</p>",
        "<p><strong>Files.</strong> <code>results.csv</code> holds every average loss, <code>claims.json</code> the "
        "claims; the figures are beside this page as PNG, SVG and PDF.</p>",
    ]
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>IWA updates, measured</title><link rel="icon" href="data:,"><style>{_CSS}</style></head>'
        f"<body>\n{body}\n</body></html>\n"
    )


def _schedule(name: str) -> str:
    if name == "gap":
        return (
            "The paper sets λ_t “as in Corollary 4.3” of an earlier paper and does not print it. Ours is a reading of "
            "it, derived from the regret identity: λ₁ = 1/η₀ and λ_(t+1) = λ_t + γ_t/η₀², where γ_t is the round's own "
            "term in the bound, ℓ(p) + ℓ*(c) − cp + ac²/2."
        )
    return f"λ_t follows the schedule “{name}”, not the paper's."


def _figure(folder: Path, name: str) -> str:
    data = base64.b64encode((folder / f"{name}.svg").read_bytes()).decode()
    caption = html.escape(_CAPTIONS[name])
    return (
        f'<figure id="{name}"><img alt="{caption}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _claim(claim: Claim) -> str:
    verdict = "holds" if claim.holds else "does not hold"
    remark = f"<p class=remark>{html.escape(claim.remark)}</p>" if claim.remark else ""
    return (
        f'<div class="claim{"" if claim.holds else " no"}"><p><span class=badge>{verdict}</span> '
        f"<span class=source>· {html.escape(claim.source)}</span></p><p>{html.escape(claim.statement)}</p>"
        f"<p class=source>{html.escape(claim.measurement)}</p>{remark}</div>"
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
        "decades within 10 %",
        "25 %",
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
            numbers += [f"{width(result, update, t):.2g}" for t in (0.10, 0.25)] + [_number(float(result.mean[i, -1]))]
            mark = ' class="n best"' if value == top else " class=n"
            columns = "".join(f"<td{mark if j == 1 else ' class=n'}>{v}</td>" for j, v in enumerate(numbers))
            cells.append(f"<tr><td>{html.escape(name) if i == 0 else ''}</td><td>{update}</td>{columns}</tr>")
    head = "".join(f"<th{' class=n' if i > 1 else ''}>{h}</th>" for i, h in enumerate(heads))
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table></div>"


def source_of(names: list[str]) -> str:
    """Where the data of a run come from, in words."""
    embedded = [name for name in names if name in datasets.EMBEDDED]
    if len(embedded) == len(names):
        return "real sets that come with scikit-learn"
    return "LIBSVM sets" if not embedded else "LIBSVM sets and sets that come with scikit-learn"
