"""Whether what is published works where there is nothing else: each file in a new environment, far from the sources.

    python tests/smoke.py dist/*

Installs each wheel or source archive with its dependencies, then learns, predicts and certifies, in Python and at the
shell. A wheel that says which system it is for has to do so without compiling anything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

USE = """
import sys
import numpy as np
from sklearn.datasets import load_breast_cancer
import steelyard
from steelyard import OnlineClassifier
from steelyard.compiled import door

X, y = load_breast_cancer(return_X_y=True)
model = OnlineClassifier(random_state=0).fit(X, y)
assert model.score(X, y) > 0.9
assert "within" in model.certificate_.summary(radius=2)
assert steelyard.step(p=0.0, y=3.0, a=1000.0, loss="squared", update="iwa") == -0.003
assert {compiled} or (not door.compiled_here and "numba" not in sys.modules), door.compiled_here
print("steelyard", steelyard.__version__, steelyard.__file__)
"""
SHELL = (["learn", "data", "--model", "model"], ["predict", "model", "data"], ["inspect", "model"], ["--version"])


def try_out(file: Path, folder: Path) -> None:
    """In a new environment and an empty home."""
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "STEELYARD_KERNELS")}
    environment["STEELYARD_CACHE"] = str(folder / "cache")

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)

    python = programs / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file)
    run(python, "-m", "pip", "check")
    run(python, "-c", USE.format(compiled=not has_objects(file)))
    (folder / "data").write_text("".join(f"{'+1' if i % 3 else '-1'} {i % 5 + 1}:1 7:{i % 4}\n" for i in range(200)))
    for arguments in SHELL:
        run(programs / "steelyard", *arguments)
    if has_objects(file) and (folder / "cache").exists():
        raise SystemExit(f"{file.name}: something was compiled")


def has_objects(file: Path) -> bool:
    return file.suffix == ".whl" and not file.name.endswith("-any.whl")


def main() -> None:
    if not sys.argv[1:]:
        raise SystemExit(__doc__)
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            try_out(Path(name).resolve(), Path(folder))
        print(f"{Path(name).name}: installs and works{', nothing compiled' if has_objects(Path(name)) else ''}")


if __name__ == "__main__":
    main()
