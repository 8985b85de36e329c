"""Benchmarks: each runs, at tiny sizes; what is kept is whole and says where it comes from; the page is made of it."""

from __future__ import annotations

import argparse
import getpass
import json
import math
import os
import platform
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if "from record import Results" in path.read_text())
pytestmark = pytest.mark.filterwarnings("default")  # peers warn of what they like


@pytest.fixture(autouse=True)
def _on_path(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@pytest.fixture
def record():
    import record

    return record


def results_of(record, folder, name="one", quick=False):
    return record.Results(name, argparse.Namespace(quick=quick, results=folder))


# --------------------------------------------------------------------------------------------------------- the scripts


def test_what_is_run_here_is_what_the_page_shows():
    import page

    assert {*SCRIPTS, "rates"} == set(page.BLOCKS)  # quality.py keeps the rates too


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_runs_and_keeps_what_it_measured(name, tmp_path, monkeypatch):
    words = [f"{name}.py", "--quick", "--results", str(tmp_path)]
    if name in ("quality", "scores", "shards"):
        words += ["--output", str(tmp_path / "tables")]
    monkeypatch.setattr(sys, "argv", words)
    environment = settings()
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert settings() == environment  # other tests run in this process
    found = json.loads((tmp_path / f"{name}.json").read_text())
    assert found["quick"]
    assert found["command"] == f"python benchmarks/{name}.py --quick"
    check(found)


def settings():
    return {name: value for name, value in os.environ.items() if name.startswith(("STEELYARD_", "NUMBA_"))}


def check(found):
    """An entry has a value and a unit; a ratio is that of its value to the value of the contender it names."""
    values = {(entry["case"], entry["contender"]): entry["value"] for entry in found["entries"]}
    assert len(values) == len(found["entries"]) > 1
    for entry in found["entries"]:
        if "head" in entry:  # a table as it was printed
            assert entry["value"]
            assert all(len(row) == len(entry["head"]) for row in entry["value"])
            continue
        assert isinstance(entry["unit"], str)
        numbers = entry["value"] if isinstance(entry["value"], list) else [entry["value"]]
        assert numbers
        assert all(number is None or math.isfinite(number) for number in numbers)
        if "ratio" in entry and found["name"] not in ("quality", "rates"):  # where ours is over theirs
            assert entry["ratio"] == pytest.approx(entry["value"] / values[entry["case"], entry["of"]], rel=2e-3)
        elif entry["value"] is None:
            assert not entry.get("ratio")  # it diverged
        elif entry.get("ratio") is not None:
            assert entry["ratio"] == pytest.approx(values[entry["case"], entry["of"]] / entry["value"], rel=2e-3)


@pytest.mark.parametrize("path", sorted((FOLDER / "results").glob("*.json")), ids=lambda path: path.stem)
def test_a_result_that_is_kept_here_is_whole_and_tells_nothing_of_whose_machine_it_was(path):
    text = path.read_text()
    found = json.loads(text)
    check(found)
    assert found["name"] == path.stem
    assert not found["quick"]
    assert (FOLDER / f"{path.stem}.py").exists() or path.stem == "rates"
    assert not re.search(r'[\s"=]/\w|\\\\|home|/tmp|@', text)
    assert len(text) < 120_000


# -------------------------------------------------------------------------------------------------------------- record


def test_what_is_kept_names_no_place_and_no_host(record, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["one.py", "--data", str(tmp_path), f"--more={tmp_path / 'file'}", "--rows", "3"])
    results = results_of(record, tmp_path)
    results.compare("case", {"theirs": 2.0, "ours": 1.0}, "theirs")
    results.save()
    text = (tmp_path / "one.json").read_text()
    assert json.loads(text)["command"] == "python benchmarks/one.py --data FOLDER --more=FILE --rows 3"
    assert str(tmp_path) not in text
    assert not re.search(rf"\b({re.escape(platform.node())}|{re.escape(getpass.getuser())})\b", text)


def test_options_that_change_no_figure_are_not_in_the_command(record):
    words = ["--results", "here", "--jobs=2", "--output", "there", "--rows", "5"]
    assert record.command("x", words) == "python benchmarks/x.py --rows 5"


def test_a_quick_run_keeps_nothing_unless_it_is_told_where(record, tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    results = results_of(record, None, quick=True)
    results.add("case", "ours", 1.0, "s")
    results.save()
    assert not list(tmp_path.iterdir())


def test_figures_are_short_and_what_is_not_finite_is_null(record):
    assert record.short({"a": [1.23456789, math.inf, np.float64(np.nan)], "b": np.arange(2)}) == {
        "a": [1.235, None, None],
        "b": [0, 1],
    }
    assert record.short(123456) == 123456


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.5, "s", "1.5 s"), (0.0125, "s", "12.5 ms"), (3e-6, "s", "3 µs"), (4e-9, "s", "4 ns"), (0.25, "", "0.25")],
)
def test_values_for_people(record, value, unit, text):
    assert record.shown(value, unit) == text


def test_a_part_of_the_cases_keeps_the_others_of_the_same_versions_only(record, tmp_path, monkeypatch):
    def run(case, value):
        results = results_of(record, tmp_path)
        results.add(case, "ours", value, "s")
        results.save(keep=True)
        found = json.loads((tmp_path / "one.json").read_text())
        return {entry["case"]: entry["value"] for entry in found["entries"]}

    assert run("a", 1.0) == {"a": 1.0}
    assert run("b", 2.0) == {"a": 1.0, "b": 2.0}
    assert run("a", 3.0) == {"b": 2.0, "a": 3.0}
    monkeypatch.setattr(record, "versions", lambda: {"steelyard": "another"})
    assert run("c", 4.0) == {"c": 4.0}


def test_a_result_that_cannot_be_written_leaves_the_old_one(record, tmp_path):
    for value in (1.0, {"not": object()}):
        results = results_of(record, tmp_path)
        results.add("case", "ours", value, "s")
        if value == 1.0:
            results.save()
        else:
            with pytest.raises(TypeError):
                results.save()
    assert json.loads((tmp_path / "one.json").read_text())["entries"][0]["value"] == 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["one.json"]


# ------------------------------------------------------------------------------------------------------------ the page


def test_the_page_is_what_the_results_say(record):
    import page

    for path in page.PAGES:
        text = path.read_text(encoding="utf-8")
        assert page.MARK.search(text)
        assert page.fill(text, record.read()) == text, "run: python benchmarks/page.py"


def test_every_result_is_on_the_page():
    import page

    marks = set(page.MARK.findall(page.PAGE.read_text(encoding="utf-8")))
    assert {path.stem for path in (FOLDER / "results").glob("*.json")} <= marks
    assert marks == {"machine", *page.BLOCKS}


def test_no_figure_of_the_page_stands_outside_of_its_blocks():
    import page

    outside = page.MARK.sub("", page.PAGE.read_text(encoding="utf-8"))
    assert not re.search(r"\d\.\d|\d\s*(%|ms|s\b|MB|times)", outside)


def test_another_figure_is_another_page(record):
    import page

    results = record.read()
    assert results
    for name, result in results.items():
        before = page.block(name, results)
        for entry in result["entries"]:
            if "head" in entry:
                entry["value"] = [["another"] * len(entry["head"])]
                continue
            for key in ("value", "ratio", "slope"):
                entry[key] = [3.0 * each for each in entry[key] if each] if isinstance(entry.get(key), list) else 3.25
        assert page.block(name, results) != before, name


def test_what_was_not_measured_is_said():
    import page

    assert page.block("speed", {}) == "*Not measured yet: `python benchmarks/speed.py`.*"


def test_a_result_of_other_versions_says_so(record):
    import page

    results = {name: json.loads(json.dumps(each)) for name, each in record.read().items()}
    name = next(iter(results))
    results[name]["versions"]["Python"] = "2.7.18"
    assert "Python 2.7.18" in page.source(results[name], results)
    assert "2.7.18" not in page.machine(results)


# ------------------------------------------------------------------------------------------------------------ pictures


def test_every_picture_has_its_axes_labelled_and_a_title(record):
    import figures

    results = record.read()
    for name, draw in figures.FIGURES.items():
        if name in results:
            figure = draw(results[name])
            seen = [ax for ax in figure.axes if ax.get_visible()]
            assert seen
            assert any(ax.get_ylabel() for ax in seen), name
            assert all(ax.get_xlabel() and ax.get_title() for ax in seen), name


def test_a_picture_shows_the_figures_of_its_result(record):
    import figures

    results = record.read()
    weights = [entry for entry in results["weights"]["entries"] if entry["case"] == "lands, squared loss"]
    curves = [line.get_ydata().tolist() for line in figures.weights(results["weights"]).axes[0].get_lines()]
    assert curves == [entry["value"] for entry in weights]
    drawn = {tuple(line.get_xdata()) for line in figures.quality(results["quality"]).axes[0].get_lines()}
    for name in figures.DOTS:
        those = [each for each in results["quality"]["entries"] if each["contender"] == name and each["counted"]]
        assert tuple(max(each["ratio"] or 0.0, figures.LOWEST) for each in those) in drawn


def test_pictures_are_drawn_where_there_are_results(record, tmp_path):
    import figures

    results = record.read()
    paths = figures.draw(results, tmp_path / "new")
    assert {path.stem for path in paths} == set(results) & set(figures.FIGURES)
    assert all(path.read_text().startswith("<?xml") for path in paths)


def test_the_guide_has_the_figures_of_the_results(record):
    import summary

    results = record.read()
    values = [e["ratio"] for e in results["quality"]["entries"] if e["contender"] == "VW best" and e["counted"]]
    mean, worst, share = summary.overall(values)
    assert mean == f"{np.exp(np.mean(np.log(np.maximum(values, 0.01)))):.2f}"
    assert worst == f"{max(values):.2f}"
    assert share == f"{np.mean(np.array(values) <= 1.0):.0%}"
    assert f"| {mean} | {worst} | {share} |" in summary.quality(results)
