"""Draw the pictures of the benchmarks' page from benchmarks/results before the pages are read."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def _draw(app):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import figures
        import record
    finally:
        sys.path.pop(0)
    figures.draw(record.read(), Path(app.srcdir) / "generated" / "benchmarks")


def setup(app):
    """Register it."""
    app.connect("builder-inited", _draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
