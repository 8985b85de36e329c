"""Start-up in fresh processes: what is imported, what is compiled, and what happens without a cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("numba", "sklearn", "matplotlib", "scipy", "rich", "llvmlite", "dask", "distributed")
LEARN = """
import numpy as np, steelyard
X, y = np.eye(3), np.array([1.0, -1.0, 1.0])
for loss in steelyard.losses.LOSSES:
    steelyard.Learner(loss).learn(X, y if loss != "poisson" else np.abs(y))
steelyard.Learner("logistic", n_outputs=3).learn(X, [0, 1, 2])
"""
# what is compiled in a second or two
STEP = """
import steelyard
from steelyard.compiled import door, objects
objects.PACKAGED = objects.PACKAGED / "none"
print(steelyard.step(0.5, 1.0, 0.3, loss="squared"))
"""
COUNT = "import sys; print(len(door.compiled_here), 'numba' in sys.modules)"


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done


def test_importing_and_asking_for_help_load_nothing_heavy():
    report = f"; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    assert run("import sys, steelyard" + report).stdout == "[]\n"
    assert run("import sys, steelyard.distributed" + report).stdout == "[]\n"
    assert run("import sys, steelyard.cli" + report).stdout == "[]\n"


def test_the_learner_imports_neither_scikit_learn_nor_matplotlib_nor_what_compiles():
    run(LEARN)  # whatever is not compiled yet is compiled here
    run(LEARN + "import sys\nassert not {'sklearn', 'matplotlib', 'scipy', 'numba'} & set(sys.modules)")


def test_built_in_losses_need_no_numba_anywhere():
    """Estimators, the shell, sweeps and certificates, for all types of rows."""
    for _ in range(2):  # the first compiles what is not compiled yet
        done = subprocess.run([sys.executable, str(Path(__file__).with_name("without_numba.py"))], capture_output=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout == b"compiled: nothing\nNumba: not imported\n"


def test_every_public_name_exists():
    run("import steelyard\nfor name in dir(steelyard): getattr(steelyard, name)")


def test_a_second_process_compiles_nothing_and_says_nothing(tmp_path):
    first = run(STEP + COUNT, STEELYARD_CACHE=str(tmp_path))
    second = run(STEP + COUNT, STEELYARD_CACHE=str(tmp_path))
    assert first.stdout.split()[1:] == ["3", "True"]
    assert first.stderr.count("steelyard: compiling for this machine, once") == 1
    assert second.stdout.split() == [first.stdout.split()[0], "0", "False"]
    assert second.stderr == ""


def test_it_compiles_without_anybody_to_tell(tmp_path):
    for gone in ("sys.stderr = None", "sys.stderr.close()"):
        done = run(f"import sys; {gone}" + STEP, STEELYARD_CACHE=str(tmp_path / gone[:12]))
        assert float(done.stdout) < 0.0


def test_a_users_loss_compiles_nothing_but_itself(tmp_path):
    mine = """
import steelyard, numpy as np
from steelyard.compiled import door, objects
objects.PACKAGED = objects.PACKAGED / "none"
loss = steelyard.CustomLoss(lambda p, y: (p - y) ** {power} / {power}, lambda p, y: (p - y) ** ({power} - 1))
steelyard.step(0.5, 1.0, 0.3, loss=loss)
print(len(door.compiled_here))
"""
    assert run(mine.format(power=2), STEELYARD_CACHE=str(tmp_path)).stdout == "3\n"
    assert run(mine.format(power=4), STEELYARD_CACHE=str(tmp_path)).stdout == "0\n"


def test_without_a_cache_folder_it_works_and_warns_once(tmp_path):
    (tmp_path / "file").touch()
    done = run(STEP + COUNT, STEELYARD_CACHE=str(tmp_path / "file"))
    assert done.stdout.split()[1:] == ["3", "True"]
    assert done.stderr.count("RuntimeWarning: compiled kernels cannot be kept") == 1
    assert "STEELYARD_CACHE" in done.stderr


def test_a_folder_that_depends_on_where_one_is_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", STEP], capture_output=True, text=True, env={**os.environ, "STEELYARD_CACHE": "here"}
    )
    assert "STEELYARD_CACHE must be an absolute path, got 'here'" in done.stderr
