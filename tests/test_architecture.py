"""The house: imports that go down only, one layout, guards of the compiled code."""

from __future__ import annotations

import ast
import importlib
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import steelyard
from steelyard import Bank
from steelyard.compiled.door import compiled_loss, get_kernel
from steelyard.kernels import layout
from steelyard.kernels.digest import source_digest
from steelyard.losses import LOSSES, CustomLoss, Loss

SOURCE = Path(steelyard.__file__).parent

# From the top down: a module may import from its own floor and from those below it.
FLOORS = [
    ["cli", "__main__"],
    ["experiments", "distributed", "river"],
    ["estimators"],
    ["fitting", "streaming", "scores", "events", "export"],
    ["compact"],
    ["modelfile", "certificate", "paperbound", "comparator"],
    ["learner", "bank", "mixture"],
    ["ftrl"],
    ["online", "fullmatrix", "lazystate", "secondorder"],
    ["snapshot", "sparsearrays"],
    ["data"],
    ["compiled"],
    ["kernels"],
    ["losses", "updates", "regularizers", "progress", "processes"],
]
UPWARDS = {
    ("updates", "kernels"): "a loss is evaluated by its compiled step",
    ("updates", "compiled"): "which is loaded on request",
    ("online", "modelfile"): "save and load are methods of what they save",
    ("online", "certificate"): "for type checkers",
    ("ftrl", "certificate"): "certify makes one",
    ("mixture", "certificate"): "certify makes one",
}


def floor_of(module: str) -> int:
    return next(i for i, names in enumerate(FLOORS) if module in names)


def imports(path: Path) -> set[str]:
    """The parts of the package that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            parts = (node.module or "").split(".")
            if parts[0] == "steelyard":
                names = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("steelyard.")]
        found |= {name for name in names if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()}
    return found


def test_imports_go_down_only():
    for path in SOURCE.rglob("*.py"):
        relative = path.relative_to(SOURCE)
        module = relative.parts[0].removesuffix(".py")
        if module == "__init__":
            continue  # its names are loaded when they are used
        for other in imports(path):
            down = floor_of(other) >= floor_of(module)
            assert down or (module, other) in UPWARDS, f"{relative} imports steelyard.{other}: a new way up"


def test_every_exception_is_in_use():
    used = {
        (path.relative_to(SOURCE).parts[0].removesuffix(".py"), other)
        for path in SOURCE.rglob("*.py")
        for other in imports(path)
    }
    assert set(UPWARDS) <= used
    for module, other in UPWARDS:
        assert floor_of(other) < floor_of(module)


def test_every_module_has_a_floor():
    for path in SOURCE.iterdir():
        if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists()):
            name = path.name.removesuffix(".py")
            assert name == "__init__" or floor_of(name) >= 0


def test_the_core_and_the_shell_import_nothing_heavy_at_the_top():
    """Only these may import scikit-learn or matplotlib when they are loaded, and only kernels Numba."""
    for path in SOURCE.rglob("*.py"):
        relative = path.relative_to(SOURCE).as_posix()
        tops = {
            alias.name.split(".")[0] if isinstance(node, ast.Import) else (node.module or "").split(".")[0]
            for node in ast.parse(path.read_text()).body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        assert "sklearn" not in tops or relative.startswith("estimators/")
        assert "matplotlib" not in tops or relative == "experiments/plots.py"
        assert not tops & {"scipy", "joblib", "rich", "dask", "distributed"}
        assert "numba" not in tops or relative.startswith("kernels/")
        assert "llvmlite" not in tops or relative.startswith("kernels/") or relative == "compiled/loader.py"


@pytest.mark.parametrize("name", ["layout", "signatures", "plan", "digest"])
def test_what_callers_need_of_the_kernels_imports_no_numba(name):
    code = f"import sys, steelyard.kernels.{name}; assert not {{'numba', 'llvmlite'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numba_is_imported_by_the_kernels_only():
    """And those are imported where something must be compiled: by ``compiled.door``, inside of functions."""
    free = {"layout", "signatures", "plan", "digest"}
    for path in SOURCE.rglob("*.py"):
        relative = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("steelyard.kernels"):
                parts = (node.module or "").split(".")
                used = {parts[2]} if len(parts) > 2 else {alias.name for alias in node.names}
                allowed = relative.startswith("kernels/") or relative == "compiled/door.py"
                assert allowed or used <= free, f"{relative} imports {used - free}"


# ------------------------------------------------------------------------------------------------------ one layout


@pytest.mark.parametrize("loss", [*LOSSES, "custom"])
def test_a_rule_that_is_not_known_is_not_run_as_another(loss):
    chosen = (
        steelyard.get_loss(loss)
        if loss != "custom"
        else CustomLoss(lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y))
    )
    step, parameters, _ = compiled_loss(chosen)
    params, out = parameters.copy()[None], np.empty(4)
    params[0, layout.RULE] = max(steelyard.updates.UPDATES.values()) + 1.0
    p, y, a = np.array([0.4]), np.array([1.0]), np.array([0.3])
    get_kernel("evaluate")(step, params, p, y, a, out)
    assert math.isnan(out[2])


def test_a_schedule_that_is_not_known_is_not_run_as_another(monkeypatch):
    from steelyard.regularizers import SCHEDULES

    monkeypatch.setitem(SCHEDULES, "new", max(SCHEDULES.values()) + 1)
    learner = steelyard.Learner("squared", schedule="new")
    with pytest.warns(RuntimeWarning, match="diverges"):
        learner.learn(np.ones((3, 1)), np.ones(3))
    assert np.isnan(learner.state.table).any()
    bank = Bank("squared", schedule="new", eta0=[0.1, 1.0])
    bank.learn(np.ones((3, 1)), np.ones(3))
    assert np.isinf(bank.average_loss).all()


def test_a_loss_must_say_how_its_slopes_grow():
    for kind in (*LOSSES.values(), CustomLoss):
        assert kind.label_scale in ("none", "proportional", "constant", "cut")
        assert (kind.label_scale == "none") == (kind.labels != "real") or kind is CustomLoss

    class Unsaid(Loss):
        name, labels = "unsaid", "real"

    with pytest.raises(AttributeError, match="label_scale"):
        steelyard.Mixture(Unsaid())


def test_a_bank_has_no_classes():
    with pytest.raises(TypeError, match="n_outputs"):
        Bank("logistic", n_outputs=3)


def test_a_bank_and_a_mixture_are_no_learners():
    assert not issubclass(steelyard.Mixture, steelyard.Learner)
    assert not issubclass(Bank, steelyard.Learner)


# -------------------------------------------------------------------------------------------------------- compiled


def test_the_digest_covers_every_kernel_file(tmp_path, monkeypatch):
    """A copy of the package, in which one kernel file after another gets a comment."""
    import shutil

    copy = tmp_path / "steelyard"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("steelyard.kernels.digest.__file__", str(copy / "kernels" / "digest.py"))
    seen = {source_digest.__wrapped__()}
    files = [*sorted((copy / "kernels").rglob("*.py")), copy / "updates.py", copy / "regularizers.py"]
    for file in files:
        file.write_text(file.read_text() + "# more\n")
        seen.add(source_digest.__wrapped__())
    assert len(seen) == len(files) + 1


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numba", "config.CACHE_DIR"),
        ("numba.core.cpu", "CPUContext.call_conv"),
        ("numba.core.cgutils", "get_or_insert_function"),
        ("numba.core.codegen", "JITCodeLibrary._get_compiled_object"),
        ("numba.core.codegen", "JITCodeLibrary.add_ir_module"),
        ("numba.core.codegen", "JITCodeLibrary.finalize"),
        ("numba.core.codegen", "JITCodeLibrary.has_dynamic_globals"),
        ("numba.core.compiler", "Compiler"),
        ("numba.core.compiler_lock", "global_compiler_lock"),
        ("numba.core.dispatcher", "Dispatcher.disable_compile"),
        ("numba.core.dispatcher", "_FunctionCompiler._customize_flags"),
        ("numba.core.registry", "cpu_target"),
        ("numba.np.arrayobj", "populate_array"),
    ],
)
def test_private_names_of_numba_are_there(module, name):
    """Numba's version is capped because of them: where this fails, look at kernels/entry.py first."""
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)


BOUNDS = """
import numpy as np, scipy.sparse as sp, steelyard, warnings
warnings.simplefilter("ignore")
from steelyard import Learner, Bank, Mixture
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5)); X[rng.random(X.shape) < 0.3] = 0.0
y, classes = np.sign(rng.normal(size=40)), np.arange(40.0) % 3
for form in (X, sp.csr_matrix(X), X.astype(np.float32), sp.csr_matrix((40, 0)), np.empty((40, 0)), X[:0]):
    n = form.shape[0]
    for schedule in ("power", "adagrad-norm", "gap"):
        for metric in ("scalar", "diagonal"):
            for center in ("origin", "trajectory"):
                options = dict(schedule=schedule, metric=metric, center=center, certificate=True)
                Learner("logistic", **options).learn(form, y[:n])
    Learner("logistic", metric="scalar", radius=0.3, eta0=5.0).learn(form, y[:n])
    Learner("logistic", n_outputs=3, certificate=True).learn(form, classes[:n])
    Learner("logistic", metric="full", certificate=True).learn(form, y[:n])
    Learner("logistic", metric="full", n_outputs=3, certificate=True).learn(form, classes[:n])
    Bank("logistic", eta0=np.ones(17), updates=("iwa", "aprox")).learn(form, y[:n])
    for loss in ("logistic", "squared", "hinge"):
        Mixture(loss).learn(form, y[:n])
        Mixture(loss, n_outputs=3).learn(form, classes[:n], rng.integers(0, 3, n))
        mixture = Mixture(loss)
        mixture.learn(form, y[:n])
        mixture.predict(form)
for d in (1, 7, 8, 9, 99, 100, 101):
    X = rng.normal(size=(12, d)).astype(np.float32 if d == 9 else np.float64) + 3.0
    X[4] = 0.0  # rows without features, and centered columns that are missing
    X[6, rng.random(d) < 0.5] = 0.0
    labels, weight = np.arange(12.0) % 3, np.arange(12.0) % 4
    for form in (X, sp.csr_matrix(X)):
        for outputs, intercept in ((1, True), (1, False), (3, True)):
            mixture = Mixture("logistic", n_outputs=outputs, fit_intercept=intercept)
            for part in (slice(0, 5), slice(5, 12)):
                mixture.learn(form[part], labels[part] if outputs == 3 else y[:12][part], weight[part])
            mixture.predict(form)
steelyard.OnlineClassifier(random_state=0).fit(X > 0, y[:12])
open("data", "w").write("1 1:0.5 3:2e-1 # c\\n-1 2:4\\n+1e3 qid:1 7:1\\n")
steelyard.read_libsvm("data", query_id=True)
print("done")
"""


def test_no_kernel_reads_or_writes_out_of_bounds(tmp_path):
    """Everything through Numba, with its bounds checks, on small inputs."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "STEELYARD_KERNELS": "numba"}
    done = subprocess.run([sys.executable, "-c", BOUNDS], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_no_parser_reads_or_writes_out_of_bounds():
    """The fuzzed texts of all formats, a few of them, through Numba with its bounds checks."""
    few = {"NUMBA_BOUNDSCHECK": "1", "STEELYARD_KERNELS": "numba", "STEELYARD_FUZZED": "400"}
    tests = [str(Path(__file__).parent / name) for name in ("test_fuzz.py", "test_vw.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", "fuzz or dense_objects"]
    done = subprocess.run(command, env={**os.environ, **few}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
