"""What the pages show: the README's code gives what its comments say, and the API page has every name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import steelyard

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def shown(block: str):
    """Each statement of a block as (code, what the comment behind or below it says that it gives, or None)."""
    lines = block.splitlines()
    for node in ast.parse(block).body:
        end = node.end_lineno or node.lineno
        behind = re.search(r"  # (.+)$", lines[end - 1])
        below = re.match(r"# (.+)$", lines[end]) if end < len(lines) else None
        comment = behind or below
        yield "\n".join(lines[node.lineno - 1 : end]), comment[1] if comment else None


def test_the_code_of_the_readme_gives_what_its_comments_say(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where it saves its model
    names: dict[str, object] = {}
    checked = 0
    for block in re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE):
        for code, comment in shown(block):
            if comment is None:
                exec(code, names)
                continue
            given = eval(code.split("  # ")[0], names)
            assert (capsys.readouterr().out.strip() or str(given)) == comment, code
            checked += 1
    assert checked >= 5


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_a_page_links_to_is_there(page):
    """Of the pages that are also read on their own; the site checks its own links."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text):
        if "://" not in link and not link.startswith("{") and "generated/" not in link:
            assert (page.parent / link).exists(), link


def test_the_api_page_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", page, flags=re.MULTILINE))
    modules = {"distributed", "losses", "__version__"}
    assert set(dir(steelyard)) - modules <= listed
    assert {f"losses.{cls.__name__}" for cls in steelyard.losses.LOSSES.values()} <= listed


def test_an_update_has_one_colour_everywhere():
    pytest.importorskip("matplotlib")
    from steelyard.experiments import pagestyle
    from steelyard.experiments.plots import COLORS

    order = ("iwa", "linearized", "aprox", "proximal")
    style = (ROOT / "docs" / "_ext" / "steelyard.mplstyle").read_text(encoding="utf-8")
    cycle = re.findall(r'"([0-9a-f]{6})"', style)
    assert [f"#{color}" for color in cycle[:4]] == [COLORS[update] for update in order]
    assert f"#{cycle[5]}" == COLORS["sgd"]
    source = ast.parse((ROOT / "examples" / "picture.py").read_text(encoding="utf-8"))
    drawn = next(
        ast.literal_eval(n.value) for n in source.body if isinstance(n, ast.Assign) and n.targets[0].id == "COLORS"
    )
    assert drawn["light"] == {name: COLORS[name] for name in (*order, "auto")}
    assert {update: drawn["dark"][update] for update in order} == {update: pagestyle._DARK[update] for update in order}
