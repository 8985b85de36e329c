"""What benchmarks measured, kept as JSON in benchmarks/results: figures, command, kind of machine, versions, date.

A script makes ``Results``, adds what it measures, which is printed too, and saves it at the end. Every entry says the
case, the contender, a value and its unit, and, where there is a peer, the ratio to it. ``python benchmarks/page.py``
makes the page of benchmarks of these files, so that no figure of it is written by hand.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import platform
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from sets import table

import steelyard
from steelyard.data.files import atomic_write
from steelyard.kernels.digest import source_digest

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "vowpalwabbit", "river")
DIGITS = 4
DROPPED = ("--results", "--output", "--jobs")


def parser(doc: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    found = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs; nothing is kept")
    found.add_argument("--results", type=Path, metavar="FOLDER", help="where to keep the results (benchmarks/results)")
    return found


class Results:
    """The figures of one run of one benchmark. ``script`` is what wrote them, where it has not the result's name."""

    def __init__(self, name: str, options: argparse.Namespace, script: str | None = None) -> None:
        self.name, self.options, self.script = name, options, script or name
        self.entries: list[dict[str, Any]] = []

    def add(self, case: str, contender: str, value: Any, unit: str, **more: Any) -> None:
        """Keep one figure, or a curve: ``value`` may be a list."""
        entry = {"case": case, "contender": contender, "value": value, "unit": unit, **more}
        self.entries.append({key: short(each) for key, each in entry.items()})

    def compare(self, case: str, values: Mapping[str, float], of: str, unit: str = "s", **more: Any) -> None:
        """Print and keep values by contender, with their ratios to those of the contender ``of``."""
        print(f"\n{case}")
        for name, value in values.items():
            ratio = value / values[of]
            print(f"  {name:48s} {shown(value, unit):>12s}   {ratio:7.3f} of {of}", flush=True)
            self.add(case, name, value, unit, ratio=ratio, of=of, **more)

    def table(self, case: str, head: list[str], rows: list[list[str]]) -> None:
        """Print and keep a table as it is, where figures are of several kinds and none is a ratio to another."""
        print(f"\n{case}\n\n{table(head, rows)}", flush=True)
        self.entries.append({"case": case, "contender": "all", "value": rows, "unit": "", "head": head})

    def save(self, keep: bool = False) -> None:
        """Write NAME.json, whole or not at all. With ``keep``, cases that were not measured now stay as they were,
        if they come from the same machine and versions.
        """
        if self.options.quick and self.options.results is None:
            print("\nnot kept: sizes were those of --quick", file=sys.stderr)
            return
        folder = self.options.results or RESULTS
        path = folder / f"{self.name}.json"
        content = {
            "name": self.name,
            "command": command(self.script, sys.argv[1:], DROPPED + (("--sets", "--only") if keep else ())),
            "date": date.today().isoformat(),
            "quick": self.options.quick,
            "machine": machine(),
            "versions": versions(),
            "entries": self.entries,
        }
        if keep and path.exists():
            content["entries"] = older(json.loads(path.read_text()), content) + self.entries
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(as_text(content).encode())


def older(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of an earlier run whose cases were not measured again."""
    if any(before[key] != now[key] for key in ("quick", "machine", "versions")):
        return []
    again = {entry["case"] for entry in now["entries"]}
    return [entry for entry in before["entries"] if entry["case"] not in again]


def as_text(content: dict[str, Any]) -> str:
    """JSON with an entry a line: small, and a change can be read in a diff."""
    head = {key: value for key, value in content.items() if key != "entries"}
    lines = ",\n".join("  " + json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in content["entries"])
    start = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    return f'{start},\n "entries": [\n{lines}\n ]\n}}\n'


def short(value: Any) -> Any:
    """Four digits are more than a measurement has; what is not finite (diverged, failed) is null."""
    if isinstance(value, Mapping):
        return {key: short(each) for key, each in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [short(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def shown(value: float, unit: str) -> str:
    """A value for people; seconds also as milli-, micro- and nanoseconds."""
    if unit == "s":
        for name, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
            if value >= size:
                return f"{value / size:.3g} {name}"
        return f"{value * 1e9:.3g} ns"
    return f"{value:.4g} {unit}".strip()


def command(name: str, words: list[str], dropped: tuple[str, ...] = DROPPED) -> str:
    """What was called, without the places of this machine, and without options that change no figure."""
    found = ["python", f"benchmarks/{name}.py"]
    skip = False
    for word in words:
        option, _, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
        if skip or option in dropped:
            skip = False
        elif word in dropped:
            skip = True
        elif os.sep in value or Path(value).is_dir():
            found.append((f"{option}=" if option else "") + ("FOLDER" if Path(value).is_dir() else "FILE"))
        else:
            found.append(word)
    return " ".join(found)


def machine() -> dict[str, Any]:
    """What kind of machine this is: nothing that tells which one."""
    found: dict[str, Any] = {"processor": platform.machine(), "cores": os.cpu_count(), "system": platform.system()}
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        found["processor"] = " ".join([*models[:1], platform.machine()])
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory"] = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    for level in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (level / "type").read_text().strip() != "Instruction":
            found[f"L{(level / 'level').read_text().strip()} cache"] = (level / "size").read_text().strip()
    return found


def versions() -> dict[str, str]:
    """Ours, Python's, those of peers, and a digest of the sources of our kernels."""
    found = {
        "steelyard": steelyard.__version__,
        "kernels": (source_digest() or "unknown")[:12],
        "Python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def read(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """All results of a folder, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
