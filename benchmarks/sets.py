"""What several benchmarks share: the sets they run on, and tables for people and for programs."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from steelyard.data.datasets import EMBEDDED, load_embedded, load_file
from steelyard.data.files import SUFFIXES, atomic_write

WIDE = 1000  # sets with more features than this stay sparse and are not scaled


def read_sets(
    folder: str | None, skip: list[str], only: list[str] | None = None
) -> Iterator[tuple[str, str, Any, np.ndarray]]:
    """Name, task, features and targets of every set, or of some only."""
    if folder is None:
        wanted = EMBEDDED if only is None else {name: EMBEDDED[name] for name in only}
        yield from ((name, task, *load_embedded(name)) for name, task in wanted.items())
        return
    for path in sorted(Path(folder).iterdir()):
        name = path.stem if path.suffix in SUFFIXES[1:] else path.name
        if only is not None and not {name, name.removesuffix("_scale")} & set(only):
            continue
        if path.is_file() and name not in skip and not re.search(r"^\.|^README|\.(md|bin|t|vw.*)$", name):
            try:
                yield name, *load_file(path)
            except ValueError as error:
                print(f"{path.name} is left out: {error}", file=sys.stderr)


def dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) and X.shape[1] <= WIDE else X


def table(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows]) + "\n"


def write(folder: Path, name: str, head: list[str], rows: Iterable[list[Any]], text: str) -> None:
    """NAME.csv with the rows and NAME.md with the text, each whole or not at all."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, content in (("csv", lines.getvalue()), ("md", text)):
        with atomic_write(folder / f"{name}.{suffix}") as file:
            file.write(content.encode())
