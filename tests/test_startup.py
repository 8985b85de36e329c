"""Start-up in fresh processes: what is imported, what is compiled, and what happens without a cache folder."""

from __future__ import annotations

import os
import subprocess
import sys

HEAVY = ("numba", "sklearn", "matplotlib", "scipy", "rich", "llvmlite", "dask", "distributed")
LEARN = """
import numpy as np, steelyard
X, y = np.eye(3), np.array([1.0, -1.0, 1.0])
for loss in steelyard.losses.LOSSES:
    steelyard.Learner(loss).learn(X, y if loss != "poisson" else np.abs(y))
steelyard.Learner("logistic", n_outputs=3).learn(X, [0, 1, 2])
"""


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


def test_the_learner_imports_neither_scikit_learn_nor_matplotlib():
    report = "import sys\nassert not {'sklearn', 'matplotlib'} & set(sys.modules)"
    run(LEARN + report)


def test_every_public_name_exists():
    run("import steelyard\nfor name in dir(steelyard): getattr(steelyard, name)")


def test_a_second_process_compiles_nothing_for_built_in_losses(tmp_path):
    code = LEARN + "from steelyard.kernels.compile import cache_counts; print(*cache_counts())"
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split()
    second = run(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split()
    assert int(first[0]) == 0
    assert int(first[1]) > 0
    assert second == [first[1], "0"]


def test_a_users_loss_recompiles_no_kernel(tmp_path):
    mine = """
import steelyard, numpy as np
from steelyard.kernels.compile import cache_counts
loss = steelyard.CustomLoss(lambda p, y: (p - y) ** {power} / {power}, lambda p, y: (p - y) ** ({power} - 1))
steelyard.Learner(loss).learn(np.eye(3), np.ones(3))
print(*cache_counts())
"""
    first = run(mine.format(power=2), NUMBA_CACHE_DIR=str(tmp_path)).stdout.split()
    other = run(mine.format(power=4), NUMBA_CACHE_DIR=str(tmp_path)).stdout.split()
    assert other == [first[1], "0"]


def test_without_a_cache_folder_it_works_and_warns_once():
    # the way Numba says that neither the package's folder nor the user's can be written to
    code = (
        "import numba.core.caching as caching\n"
        "def refuse(*_): raise RuntimeError('cannot cache function: no locator available')\n"
        "caching.FunctionCache.__init__ = refuse\n" + LEARN
    )
    errors = run(code).stderr
    assert errors.count("no writable folder for compiled kernels") == 1
    assert "NUMBA_CACHE_DIR" in errors
