"""The tables of the paper's page: data sets, claims, the largest rate, schedules, every best loss."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

from steelyard.experiments import formulas
from steelyard.experiments.claims import Claim
from steelyard.experiments.curves import NAMES, changes, curve, rates_below, width
from steelyard.experiments.findings import GOOD, rate
from steelyard.experiments.sets import Facts
from steelyard.experiments.sweep import SweepResult

NO_BETTER = 0.95
"""A loss that is at least this part of the best constant prediction's is called no better than it."""


def ordered(claims: Iterable[Claim]) -> list[Claim]:
    """Failures first: the smaller the share of the data sets on which it holds, the further up."""
    return sorted(claims, key=lambda claim: len(claim.held) / len(claim.findings))


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int, name: str) -> str:
    """A table whose columns from ``numbers`` on are numbers; cells are HTML."""
    kind = [' class="n"' if i >= numbers else "" for i in range(len(heads))]
    head = "".join(f"<th{k}>{h}</th>" for k, h in zip(kind, heads, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{k}>{cell}</td>' for k, cell in zip(kind, row, strict=True))}</tr>" for row in rows
    )
    return (
        f'<p class="caption" id="{name}-caption">{caption}</p><div class="scroll" tabindex="0">'
        f'<table id="{name}" aria-labelledby="{name}-caption"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def data_sets(facts: dict[str, Facts], losses: dict[str, str]) -> str:
    """Table 1."""
    rows = [
        (
            html.escape(name),
            html.escape(f.source),
            losses[f.task],
            f"{f.rows:,}",
            f"{f.columns:,}",
            f"{100 * f.nonzeros / (f.rows * f.columns):.3g} %",
            f"{f.constant:.4g}",
        )
        for name, f in facts.items()
    ]
    heads = ("data set", "what it is", "loss", "rows T", "columns", "not zero", "loss of the best constant prediction")
    caption = (
        "<b>Table 1.</b> The data sets. Columns do not count the constant feature. The last column is what predicting "
        "the mean loses (squared loss), or giving each label its share (logistic loss)."
    )
    return _table(caption, heads, rows, numbers=3, name="table1")


def verdict(claim: Claim) -> str:
    """On how many sets it holds, coloured and in words."""
    mark = "yes" if claim.holds else "part" if claim.held else "fail"
    return f'<span class="{mark}">{len(claim.held)} of {len(claim.findings)}</span>'


def said(claim: Claim) -> str:
    """The whole sentence, with the words that are measured set off."""
    sentence, quote = html.escape(claim.sentence.sentence), html.escape(claim.sentence.quote)
    return f"<q>{sentence.replace(quote, f'<b class=said>{quote}</b>')}</q>"


def claims(checked: Sequence[Claim]) -> str:
    """Table 2: failures first, in the rows and in each row."""
    rows = []
    for claim in ordered(checked):
        s = claim.sentence
        sets = [(name, claim.findings[name]) for name in (*claim.failed, *claim.held)]
        items = []
        for name, finding in sets:
            word = '<span class="yes">yes</span>' if finding.holds else '<span class="fail">no</span>'
            why = f'<br><span class="soft">Why: {html.escape(finding.why)}.</span>' if finding.why else ""
            items.append(f"<li>{word}, {html.escape(name)}: {html.escape(finding.measured)}{why}</li>")
        rows.append(
            f"<tr><td><p>{said(claim)}</p><p class=soft>{html.escape(s.place)}</p>"
            f"<p>Taken as: {html.escape(s.taken_as)}.</p><p class=soft>{html.escape(s.caution)}</p></td>"
            f"<td>{verdict(claim)}</td><td><ul>{''.join(items)}</ul></td></tr>"
        )
    return (
        '<p class="caption" id="table2-caption"><b>Table 2.</b> What the paper says and what comes out, failures '
        "first. The words in bold are measured, for the loss and the updates that they speak of. × is the worst loss "
        'over the best.</p><table class="claims" id="table2" aria-labelledby="table2-caption"><thead><tr>'
        "<th>The paper's sentence</th><th>Holds on</th><th>Measured, data set by data set</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def number(value: float) -> str:
    """A loss in a table."""
    return "diverges" if np.isinf(value) else f"{value:.4g}"


def largest_rate(results: dict[str, SweepResult], facts: dict[str, Facts]) -> str:
    """Table 3: where IWA is not the best."""
    rows = []
    for name, result in results.items():
        constant, best = facts[name].constant, result.best()["iwa"]
        last = {update: float(curve(result, update)[-1]) for update in NAMES}
        start, within = changes(result, "aprox", "iwa"), rates_below(result, "iwa", NO_BETTER * constant)
        least = min(last.values())
        cells = [f'<span class="best">{number(v)}</span>' if v == least else number(v) for v in last.values()]
        share = last["iwa"] / constant
        part = f'<span class="fail">{100 * share:.1f} %</span>' if share >= NO_BETTER else f"{100 * share:.1f} %"
        rows.append(
            (
                html.escape(name),
                f"{constant:.4g}",
                f"{best[1]:.4g} at {rate(best[0])}",
                *cells,
                part,
                "never" if start is None else rate(start),
                "never" if within is None else f"{rate(within[0])} to {rate(within[1])}",
            )
        )
    top = rate(next(iter(results.values())).eta0[-1])
    heads = ("data set", "best constant", "IWA, at its best η₀", *(f"{NAMES[u]}, η₀ = {top}" for u in NAMES))
    heads += ("IWA ÷ constant there", "aProx below IWA from η₀ =", "IWA better than a constant for η₀ from")
    caption = (
        f"<b>Table 3.</b> Averaged loss at the largest rate, η₀ = {top}; the smallest of each row is coloured. The "
        f"last column is the range of rates around IWA's best where its loss is below {NO_BETTER:g} times that of the "
        "best constant prediction."
    )
    return _table(caption, heads, rows, numbers=1, name="table3")


def schedules(by_schedule: dict[str, list[Claim]], shuffles: dict[str, int]) -> str:
    """Table 4: on how many data sets each claim holds under each schedule of λ_t."""
    first = next(iter(by_schedule.values()))
    rows = [
        (html.escape(claim.sentence.name), *(verdict(theirs[i]) for theirs in by_schedule.values()))
        for i, claim in enumerate(first)
    ]
    total = (f"{sum(c.holds for c in theirs)} of {len(theirs)}" for theirs in by_schedule.values())
    heads = ("claim", *(f'{s}<br><span class="soft">{shuffles[s]} shuffles</span>' for s in by_schedule))
    caption = (
        "<b>Table 4.</b> On how many data sets each claim holds, for each reading of λ_t. Where curves leave a range "
        "at nearly the same rate, fewer shuffles can move a cell by one."
    ).replace("λ_t", formulas.inline(formulas.LAM))
    return _table(caption, heads, [*rows, ("<b>hold on every data set</b>", *total)], numbers=1, name="table4")


def numbers(results: dict[str, SweepResult]) -> str:
    """Table 5: the best loss of every update, and how far one can go from its rate."""
    rows = []
    for name, result in results.items():
        best = result.best()
        least = min(value for _, value in best.values())
        for i, update in enumerate(result.updates):
            at, value = best[update]
            error = result.standard_error[i, int(result.mean[i].argmin())]
            loss = f'<span class="best">{value:.4g}</span>' if value == least else f"{value:.4g}"
            spread = "–" if np.isnan(error) else f"{error:.2g}"
            decades = (f"{width(result, update, tolerance):.3g}" for tolerance in GOOD)
            ends = (number(float(result.mean[i, j])) for j in (0, -1))
            first = html.escape(name) if i == 0 else ""
            rows.append((first, NAMES[update], rate(at), loss, spread, *decades, *ends))
    one = next(iter(results.values()))
    heads = (
        "data set",
        "update",
        "best η₀",
        "loss there",
        "± s.e.",
        *(f"decades {close} the best" for close in GOOD.values()),
    )
    heads += tuple(f"loss at η₀ = {rate(one.eta0[j])}" for j in (0, -1))
    caption = (
        "<b>Table 5.</b> Averaged loss of every update: the mean over the shuffles and its standard error (s.e.), at "
        "the best rate of the grid, and how many decades of rates around it are good. The smallest loss of each set "
        "is coloured."
    )
    return _table(caption, heads, rows, numbers=2, name="table5")
