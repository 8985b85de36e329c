"""How the page looks: light or dark as the reader's system is, from a phone's width up."""

from __future__ import annotations

import re

from steelyard.experiments.plots import COLORS, INK

_DARK = {"linearized": "#ff7d8c", "aprox": "#f2b84b", "iwa": "#3fc1d3", "proximal": "#bd93ea", "sgd": "#a4afbb"}
"""The curves' colours where the page is dark."""
_INK_DARK = "#e2e7ed"

CSS = """
:root { color-scheme: light dark; --ink: #1b2430; --soft: #55616f; --line: #d7dde4; --paper: #fff; --wash: #f4f6f8; }
:root { --good: #1b7f5c; --part: #8f5f00; --bad: #b3362f; --accent: #00707f; --shade: rgb(20 30 40 / 28%); }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e2e7ed; --soft: #a3aebb; --line: #333d49; --paper: #12171d; --wash: #1b222b; }
  :root { --good: #5fd0a5; --part: #e8b860; --bad: #ff8b82; --accent: #4cc3d2; --shade: rgb(0 0 0 / 75%); }
}
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; }
body { max-width: 78rem; padding: 1.5rem clamp(0.9rem, 3vw, 2.5rem) 4rem; overflow-wrap: break-word; }
p, ul, ol, figcaption { max-width: 46rem; } a { color: var(--accent); }
h1 { font-size: clamp(1.6rem, 4vw, 2.3rem); line-height: 1.2; margin: 0.5rem 0; max-width: 46rem; }
h2 { margin: 3rem 0 0.6rem; font-size: 1.35rem; line-height: 1.25; } h3 { margin: 1.6rem 0 0.3rem; font-size: 1.05rem; }
p.lead { font-size: 1.12rem; } .soft, figcaption, .caption { color: var(--soft); } .soft { font-size: 0.92rem; }
nav { font-size: 0.95rem; margin: 1rem 0; } nav a { margin-right: 1.1rem; white-space: nowrap; }
code { background: var(--wash); padding: 0.1rem 0.3rem; border-radius: 4px; overflow-wrap: anywhere; }
code span { display: inline-block; max-width: 100%; }
figure { margin: 1.6rem 0 2rem; } figcaption { font-size: 0.94rem; margin-top: 0.5rem; }
.panels { display: grid; gap: 0.4rem 1.2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.panels.few { max-width: 44rem; } .panels.one { max-width: 36rem; } .panels img { width: 100%; height: auto; }
.key { display: flex; flex-wrap: wrap; gap: 0.2rem 1.3rem; font-size: 0.94rem; margin: 0.3rem 0; }
.key span { display: inline-flex; align-items: center; gap: 0.45rem; }
.scroll { overflow-x: auto; background-repeat: no-repeat; background-attachment: local, local, scroll, scroll; }
.scroll { background-size: 3rem 100%, 3rem 100%, 0.9rem 100%, 0.9rem 100%; }
.scroll { background-position: 0 0, 100% 0, 0 0, 100% 0; }
.scroll { background-image: linear-gradient(90deg, var(--paper) 40%, transparent),
  linear-gradient(270deg, var(--paper) 40%, transparent), linear-gradient(90deg, var(--shade), transparent),
  linear-gradient(270deg, var(--shade), transparent); }
table { border-collapse: collapse; font-size: 0.92rem; margin: 0.6rem 0; }
.caption { margin: 1.4rem 0 0; font-size: 0.94rem; }
th, td { text-align: left; padding: 0.4rem 0.7rem 0.4rem 0; border-bottom: 1px solid var(--line); }
th, td { vertical-align: top; } thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
thead th { min-width: 5.5rem; } .claims thead th { min-width: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; padding-right: 1rem; } td.n { white-space: nowrap; }
.yes { color: var(--good); font-weight: 650; } .part { color: var(--part); font-weight: 650; }
.fail { color: var(--bad); font-weight: 650; } .best { color: var(--accent); font-weight: 650; }
b.said { font-weight: 650; } q { quotes: "“" "”"; }
table.claims { width: 100%; table-layout: fixed; } .claims th:nth-child(1) { width: 42%; }
.claims th:nth-child(2) { width: 7rem; } .claims p { margin: 0 0 0.35rem; }
.claims td { padding: 0.8rem 1.2rem 0.8rem 0; }
.claims ul { list-style: none; margin: 0; padding: 0; } .claims li { margin-bottom: 0.45rem; }
.formula { overflow-x: auto; margin: 0.7rem 0; } .formula math { width: max-content; } math { font-size: 1.06em; }
math { font-family: "STIX Two Math", "Latin Modern Math", "Cambria Math", "DejaVu Math TeX Gyre", math; }
@media (max-width: 700px) {
  thead th { vertical-align: top; } th.n { min-width: 8.5rem; }
  .claims thead { display: none; } .claims, .claims tbody, .claims tr, .claims td { display: block; width: auto; }
  .claims td { border: 0; padding: 0.2rem 0; } .claims tr { padding: 0.9rem 0; border-bottom: 1px solid var(--line); }
}
@media print { body { max-width: none; } figure, tr { break-inside: avoid; } }
""" + "".join(
    f":root {{ --{name}: {COLORS[name]}; }} @media (prefers-color-scheme: dark) {{ :root {{ --{name}: {dark}; }} }}\n"
    for name, dark in _DARK.items()
)


def for_both_themes(svg: str) -> str:
    """An SVG figure for the page: without a ground of its own, and with colours that follow the reader's theme.

    Only the embedded copy is changed; the files keep their white ground.
    """
    for name in _DARK:
        svg = svg.replace(COLORS[name], f"var(--{name})")
    svg = svg.replace(INK, "var(--ink)").replace("fill: #ffffff", "fill: none")
    light = f"--ink:{INK};" + "".join(f"--{name}:{COLORS[name]};" for name in _DARK)
    dark = f"--ink:{_INK_DARK};" + "".join(f"--{name}:{color};" for name, color in _DARK.items())
    rules = f"svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}"
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"(<svg\b[^>]*>)", rf"\1<style>{rules}</style>", svg, count=1)


_SHAPES = {
    "linearized": '<circle cx="18" cy="7" r="4"/>',
    "aprox": '<path d="M14 3h8v8h-8z"/>',
    "iwa": '<path d="M18 2l4.6 8h-9.2z"/>',
    "proximal": '<path d="M18 2l5 5-5 5-5-5z"/>',
}
_STROKE = 'stroke-width="2"'
_STROKES = {
    "aprox": 'stroke-width="2" stroke-dasharray="6 3"',
    "proximal": 'stroke-width="5" stroke-opacity="0.6"',
}


def key(names: dict[str, str], constant: bool) -> str:
    """The legend of all sweeps, in the page's own text."""
    entries = []
    for update, name in names.items():
        line = f'<path d="M0 7h36" stroke="var(--{update})" {_STROKES.get(update, _STROKE)}/>'
        entries.append((f'{line}<g fill="var(--{update})">{_SHAPES.get(update, "")}</g>', name))
    if constant:
        line = '<path d="M0 7h36" stroke="var(--ink)" stroke-dasharray="1.5 3"/>'
        entries.append((line, "best constant prediction"))
    drawn = "".join(
        f'<span><svg width="36" height="14" aria-hidden="true">{line}</svg>{name}</span>' for line, name in entries
    )
    return f'<div class="key">{drawn}</div>'
