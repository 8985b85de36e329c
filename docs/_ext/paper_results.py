"""The paper's experiments for the site: run by the command, so that no number on the page is typed.

Puts the command's page under ``paper/`` of the site, and its verdicts into ``generated/paper-*.md``, which ``paper.md``
includes. Runs only if the sources of the experiments are newer than what is there.
"""

import json
import subprocess
import sys
from pathlib import Path

import steelyard

BACK = '\n<p class="soft"><a href="../paper.html">← The paper, in Steelyard’s documentation</a></p>'


def _run(app):
    folder = Path(app.srcdir) / "generated" / "site" / "paper"
    page, sources = folder / "index.html", Path(steelyard.__file__).parent / "experiments"
    if not page.exists() or any(path.stat().st_mtime > page.stat().st_mtime for path in sources.glob("*.py")):
        folder.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "steelyard", "paper", "--output", folder.name]  # the page shows the command
        subprocess.run(command, cwd=folder.parent, check=True, stdout=subprocess.DEVNULL)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("<body>", f"<body>{BACK}", 1), encoding="utf-8")
    claims, run = (json.loads((folder / name).read_text(encoding="utf-8")) for name in ("claims.json", "run.json"))
    for name, lines in (("claims", _claims(claims)), ("run", _about(run, claims))):
        target = Path(app.srcdir) / "generated" / f"paper-{name}.md"
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    app.config.html_extra_path.append("generated/site")
    app.config.exclude_patterns += ["generated/site/paper/shuffles", "generated/paper-*.md"]


def _claims(claims):
    """A table, failures first, with the numbers of every set."""
    yield "| the paper says | place | holds on | measured |"
    yield "|---|---|---|---|"
    for claim in sorted(claims, key=lambda claim: sum(_held(claim)) / len(_held(claim))):
        held = _held(claim)
        ordered = sorted(claim["sets"].items(), key=lambda each: each[1]["holds"])
        measured = "<br>".join(f"{'yes' if f['holds'] else '**no**'}, {name}: {f['measured']}" for name, f in ordered)
        quote = f"“{claim['quote']}”, taken as: {claim['taken_as']}"
        yield f"| {quote} | {claim['place']} | {sum(held)} of {len(held)} | {measured} |".replace("_", r"\_")


def _held(claim):
    return [finding["holds"] for finding in claim["sets"].values()]


def _about(run, claims):
    settings, everywhere = run["settings"], sum(claim["holds"] for claim in claims)
    sets = ", ".join(f"{name} ({s['rows']:,} × {s['columns']})" for name, s in run["sets"].items()).replace("_", r"\_")
    yield (
        f"{everywhere} of {len(claims)} measurements hold on every data set. Steelyard {run['steelyard']}, "
        f"{len(settings['rates'])} rates from {settings['rates'][0]:g} to {settings['rates'][-1]:g}, "
        f"{settings['repeats']} shuffles, schedule `{settings['schedule']}`; rows × columns: {sets}."
    )


def setup(app):
    """Register the run."""
    app.connect("builder-inited", _run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
