"""The paper's page: everything about a run as one HTML file that needs no other and no network."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.experiments import formulas, pagestyle, paper, tables
from steelyard.experiments.claims import NOT_MEASURED, Claim
from steelyard.experiments.curves import NAMES, changes, curve
from steelyard.experiments.findings import rate
from steelyard.experiments.protocol import protocol, reading

if TYPE_CHECKING:
    from steelyard.experiments.report import Run

_SWEEP = (
    "Curves are means over the shuffles, bands one standard deviation. Arrows: the curve goes on above the axis; the "
    "line above it says to where. Below each panel every loss is divided by the proximal update's, so that curves that "
    "coincide above can be told apart. Each update's markers stand at rates of their own."
)
CAPTIONS = {
    "figure1": f"Averaged squared loss against the initial learning rate η₀, as in the paper's figure 1. {_SWEEP}",
    "figure2": f"Averaged logistic loss against the initial learning rate η₀, as in the paper's figure 2. {_SWEEP}",
    "figure3": "How many decades of η₀ around an update's best rate are good, against what good means: a loss above "
    "the update's own best by at most so much. The dotted lines are the two meanings of table 2.",
    "figure4": "The same as figures 1 and 2 with another λ_t, the alternative above.",
    "figure5": "One example, one step, from a prediction of 0. The dots are plain gradient descent on the same "
    "example cut into 10,000 pieces: IWA lies on them, whatever the weight. The linearized update overshoots, aProx "
    "stops where the tangent reaches zero, and the proximal step stays short of the flow.",
    "figure6": "A pass in which one example in fifty has weight h. Lines are means over five shuffles, bars reach "
    "from the smallest to the largest, and losses are cut at 10; the five stand beside one another at each of nine "
    "weights. The linearized update and scikit-learn's SGD are the same rule.",
    "figure7": "How well IWA approximates the proximal step of the logistic loss: the ratio is near 1 for short steps, "
    "and its title has the largest on this map.",
}
_LAM = formulas.inline(formulas.LAM)
_LEGEND = {"figure1": True, "figure2": True, "figure3": False, "figure4": True}
"""Figures with the updates' common legend, and whether the best constant prediction is in it."""


def summary(claims: Sequence[Claim]) -> str:
    """How many claims hold, in words."""
    held = sum(claim.holds for claim in claims)
    some = sum(bool(claim.held) and not claim.holds for claim in claims)
    return f"{held} of {len(claims)} claims hold on every data set, {some} on some, {len(claims) - held - some} on none"


def typeset(text: str) -> str:
    """A sentence for the page: λ_t as a formula, and what stands between backquotes as code."""
    pieces = text.split("`")
    return "".join(code(p) if i % 2 else html.escape(p).replace("λ_t", _LAM) for i, p in enumerate(pieces))


def make(run: Run, by_schedule: dict[str, list[Claim]], panels: dict[str, list[tuple[str, str]]]) -> str:
    """The whole page. ``panels`` are what is shown of each figure: alternative texts and SVG."""
    claims = by_schedule[run.settings.schedule]
    numbered = {name: _figure(name, panels[name]) for name in CAPTIONS if name in panels}
    sections = [
        _opening(run, claims),
        '<h2 id="data">The data</h2>',
        _sources(run),
        tables.data_sets(run.facts, paper.LOSS),
        '<h2 id="figures">Loss against the learning rate</h2>',
        numbered.get("figure1", ""),
        numbered.get("figure2", ""),
        '<h2 id="claims">What the paper says, and what comes out</h2>',
        "<p>What counts as very sensitive, much broader or close is our choice, made with such curves in view. The "
        "paper does not say what a good rate is: ranges of rates are measured with two meanings of it, and the second "
        "was added after the first had failed. So read the numbers rather than the count.</p>",
        tables.claims(claims),
        numbered["figure3"],
        _not_measured(),
        '<h2 id="limits">Where IWA is not the best</h2>',
        _limits(run),
        tables.largest_rate(run.results, run.facts),
        '<h2 id="lambda">How it depends on ' + _LAM + "</h2>",
        reading(run),
        *([tables.schedules(by_schedule, _shuffles(run))] if run.readings else []),
        numbered.get("figure4", ""),
        '<h2 id="numbers">The numbers</h2>',
        tables.numbers(run.results),
        '<h2 id="pictures">Three figures the paper has no room for</h2>',
        *(numbered[name] for name in ("figure5", "figure6", "figure7")),
        '<h2 id="protocol">How it was done, and every symbol</h2>',
        protocol(run),
        '<h2 id="again">Run it again</h2>',
        _again(run),
    ]
    body = _unbroken("\n".join(sections))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>IWA updates, measured</title><link rel="icon" href="data:,"><style>{pagestyle.CSS}</style></head>'
        f"<body>\n{body}\n</body></html>\n"
    )


def _unbroken(text: str) -> str:
    """Numbers stay with their per cent signs, and η₀ with its value, at the end of a line."""
    return re.sub(r"(?<=[\dA-Za-z]) %", "\u00a0%", text).replace("η₀ = ", "η₀\u00a0=\u00a0")


def code(text: str) -> str:
    """What is typed: lines break between words, and not at the hyphens of options."""
    words = "".join(f"<span>{html.escape(word)}</span> " for word in text.split(" ")).rstrip()
    return f"<code>{words}</code>"


def _opening(run: Run, claims: list[Claim]) -> str:
    failed = [claim for claim in tables.ordered(claims) if not claim.holds]
    items = "".join(
        f"<li>{tables.verdict(claim)} data sets: <q>{html.escape(claim.sentence.quote)}</q>, taken as: "
        f"{html.escape(claim.sentence.taken_as)}. Not on {html.escape(_names(claim.failed))}.</li>"
        for claim in failed
    )
    first = (
        f"<p>What does not hold everywhere:</p><ul>{items}</ul>" if failed else "<p>All of them hold everywhere.</p>"
    )
    count = len({claim.sentence.quote for claim in claims})
    links = {
        "data": "Data",
        "figures": "Figures",
        "claims": "Claims",
        "limits": "Where IWA is not the best",
        "lambda": f"How it depends on {_LAM}",
        "numbers": "Numbers",
        "protocol": "Protocol and symbols",
        "again": "Run it again",
    }
    return (
        "<h1>Importance-weight-aware updates, measured</h1>"
        "<p class=lead>The experiments of Chen &amp; Orabona (2023), <em>Implicit Interpretation of Importance Weight "
        f"Aware Updates</em>, section 4, run again. {count} of its statements can be measured, here in {len(claims)} "
        f"ways: {summary(claims)}.</p>"
        f'<nav aria-label="Sections">{"".join(f"""<a href="#{i}">{t}</a> """ for i, t in links.items())}</nav>{first}'
        f'<p class="soft">Steelyard {html.escape(run.versions["steelyard"])}, {html.escape(run.date)}, '
        f"{code(run.command)}. {len(run.facts)} data set{'s' if len(run.facts) > 1 else ''}, "
        f"{len(run.settings.rates)} rates from {rate(run.settings.rates[0])} to {rate(run.settings.rates[-1])}, "
        f"{len(run.settings.updates)} updates, {run.settings.repeats} shuffles.</p>"
    )


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _sources(run: Run) -> str:
    kinds: dict[str, list[str]] = {"scikit-learn": [], "LIBSVM": [], "file": []}
    for name, facts in run.facts.items():
        kinds[facts.kind].append(name)
    said = [
        "<p>The paper took its data sets from the LIBSVM site, and its text does not name them.",
    ]
    if kinds["scikit-learn"]:
        said.append(
            f"{html.escape(_names(kinds['scikit-learn']))} come with scikit-learn and need no download: they are not "
            f"LIBSVM's, so not the paper's. {code('steelyard paper --data FOLDER')} runs on six LIBSVM sets."
        )
    if kinds["LIBSVM"]:
        said.append(
            f"{html.escape(_names(kinds['LIBSVM']))}: LIBSVM sets, read from files at hand. Which of them are the "
            "paper's cannot be said."
        )
    if kinds["file"]:
        said.append(f"{html.escape(_names(kinds['file']))}: the user's own, so not the paper's as far as can be known.")
    return " ".join(said) + "</p>"


def _figure(name: str, shown: list[tuple[str, str]]) -> str:
    images = "".join(
        f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{_base64(svg)}">' for alt, svg in shown
    )
    kind = " one" if len(shown) == 1 else " few" if len(shown) == 2 else ""
    legend = pagestyle.key(NAMES, _LEGEND[name]) if name in _LEGEND else ""
    files = " · ".join(f'<a href="{name}.{kind}">{kind.upper()}</a>' for kind in ("png", "svg", "pdf"))
    source = {"figure1": "results", "figure2": "results", "figure3": "results"}.get(name)
    source = {"figure4": "readings", "figure6": "weights"}.get(name, source)
    files += f' · <a href="{source}.csv">numbers</a>' if source else ""
    return (
        f'<figure id="{name}">{legend}<div class="panels{kind}">{images}</div>'
        f"<figcaption><b>Figure {name[-1]}.</b> {typeset(CAPTIONS[name])} {files}</figcaption></figure>"
    )


def _base64(svg: str) -> str:
    return base64.b64encode(pagestyle.for_both_themes(svg).encode()).decode()


def _not_measured() -> str:
    items = "".join(
        f"<li><q>{html.escape(sentence)}</q> <span class=soft>({html.escape(place)})</span> {typeset(why)}</li>"
        for sentence, (place, why) in NOT_MEASURED.items()
    )
    return f"<h3>Sentences that are not measured, and why</h3><ul>{items}</ul>"


def _limits(run: Run) -> str:
    """In words what tables 3 and 5 say: each sentence only as far as the numbers carry it."""
    results, top = run.results, rate(run.settings.rates[-1])
    below = [n for n, r in results.items() if changes(r, "aprox", "iwa") is not None]
    useless = [n for n, r in results.items() if curve(r, "iwa")[-1] >= tables.NO_BETTER * run.facts[n].constant]
    apart = max(float(abs(curve(r, u)[0] / curve(r, "iwa")[0] - 1)) for r in results.values() for u in NAMES)
    bests = {name: result.best() for name, result in results.items()}
    first: dict[str, list[str]] = {}
    for name, best in bests.items():
        first.setdefault(min(best, key=lambda update: best[update][1]), []).append(name)
    behind = max(best["iwa"][1] / min(loss for _, loss in best.values()) - 1.0 for best in bests.values())
    each = "; ".join(f"{NAMES[u]} on {_names(first[u])}" for u in NAMES if u in first)
    said = [
        f"Each at its own best rate of the grid, IWA loses least on {len(first.get('iwa', []))} of {len(results)} data "
        f"sets. The smallest loss is that of {each}. IWA's is above the smallest by at most {100 * behind:.2g} %.",
        f"At the largest rate, η₀ = {top}, aProx loses less than IWA on {len(below)} of {len(results)} data sets"
        f"{': ' + _names(below) if below else ''}. With a long step, IWA takes the prediction of each example all the "
        "way to its label (squared loss), and aProx half of the way: figure 5.",
        f"On {_names(useless)} IWA's loss there is no better than the best constant prediction's "
        f"({100 * tables.NO_BETTER:.0f} % of it, or more): robust then means no more than that."
        if useless
        else f"On every data set IWA's loss there is below {100 * tables.NO_BETTER:.0f} % of the best constant "
        "prediction's.",
        f"At the smallest rate, η₀ = {rate(run.settings.rates[0])}, the losses of all updates differ from IWA's by at "
        f"most {100 * max(apart, 1e-4):.2g} %.",
    ]
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in said)


def _shuffles(run: Run) -> dict[str, int]:
    sweeps = [next(iter(results.values())) for results in (run.results, *run.readings)]
    return {sweep.schedule: sweep.average_loss.shape[2] for sweep in sweeps}


def _again(run: Run) -> str:
    v = {name: html.escape(text) for name, text in run.versions.items()}
    more = '<a href="readings.csv">readings.csv</a> those under the other schedules, ' if run.readings else ""
    return (
        f"<p>{code(run.command)}</p><p>Steelyard {v['steelyard']}, Python {v['python']}, NumPy "
        f"{v['numpy']}, Numba {v['numba']}; {html.escape(run.date)}; seed {run.settings.seed}. The same command gives "
        "the same numbers on the same machine, with any number of processes, also if it was interrupted and started "
        'again.</p><p>Beside this page: <a href="results.csv">results.csv</a> has every averaged loss, '
        '<a href="weights.csv">weights.csv</a> the losses of figure 6, '
        f'{more}<a href="claims.json">claims.json</a> the claims, <a href="run.json">run.json</a> what was run.</p>'
    )
