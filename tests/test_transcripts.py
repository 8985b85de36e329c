"""What the documentation shows of the shell is what the shell prints."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
TRANSCRIPTS = runpy.run_path(str(ROOT / "docs" / "transcripts.py"))


@pytest.mark.parametrize("page", TRANSCRIPTS["PAGES"], ids=lambda page: page.stem)
def test_transcripts_are_what_is_printed(page):
    """Blocks that read a9a are passed over where it is not there."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    assert TRANSCRIPTS["check"](page, DATA if DATA.is_dir() else None) == []


def test_another_text_is_seen():
    alike = TRANSCRIPTS["alike"]
    assert alike("loss 0.50001\n", "loss   0.50002\n")
    assert not alike("loss 0.51\n", "loss 0.52\n")
    assert not alike("loss 0.5\n", "lost 0.5\n")
    assert not alike("a\nb\n", "a\n")
