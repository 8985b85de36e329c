"""Benchmarks and examples: a module that moves must not leave behind a script that nobody runs every day."""

from __future__ import annotations

import ast
import importlib
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = [path for folder in ("benchmarks", "examples") for path in sorted((ROOT / folder).glob("*.py"))]


def test_there_are_scripts():
    assert {path.parent.name for path in SCRIPTS} == {"benchmarks", "examples"}


@pytest.mark.filterwarnings("default")  # peers import what they like
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_loads_and_does_nothing_until_it_is_run(path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(path.parent)  # where scripts find each other
    runpy.run_path(str(path), run_name="loaded")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_all_that_a_script_takes_from_the_package_is_there(path):
    """Imports inside functions too, which loading does not reach."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "steelyard":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
