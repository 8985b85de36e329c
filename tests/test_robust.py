"""What must not break a learner: interrupts, errors, odd inputs, and small inputs that ask for much memory."""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import steelyard
from steelyard import Bank, CustomLoss, Learner, Mixture, OnlineClassifier, cli
from steelyard.cli import report
from steelyard.cli.report import LearnReport
from steelyard.data.block import as_block
from steelyard.data.memory import lazy_zeros
from steelyard.kernels import layout
from steelyard.snapshot import Journal

rng = np.random.default_rng(0)
DENSE = rng.normal(size=(300, 4)) + np.array([3.0, 0.0, 0.0, 0.0])
SPARSE = sp.random(300, 2000, 0.01, "csr", random_state=0)
LEARNERS = {
    "learner": lambda: Learner("logistic"),
    "origin": lambda: Learner("logistic", center="origin", metric="scalar"),
    "adagrad": lambda: Learner("logistic", schedule="adagrad-norm", certificate=True),
    "classes": lambda: Learner("logistic", n_outputs=3, certificate=True),
    "bank": lambda: Bank("logistic", eta0=[0.1, 1.0]),
    "ball": lambda: Learner("logistic", metric="scalar", radius=0.2),
    "mixture": lambda: Mixture("logistic"),
    "mixture of classes": lambda: Mixture("logistic", n_outputs=3),
}


def labels(learner, n):
    return np.arange(float(n)) % 3 if learner.one_vs_rest else np.where(np.arange(n) % 3, 1.0, -1.0)


def views(learner, X):
    """Everything that a user can see of a learner."""
    state = [array.copy() for array in learner.state]
    return [*state, learner.coef_, learner.intercept_, learner.predict(X)]


# -------------------------------------------------------------------------------------------------- all or nothing


@pytest.mark.parametrize("X", [DENSE, SPARSE, SPARSE[:3]], ids=["dense", "sparse", "few rows"])
@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, FloatingPointError, MemoryError])
def test_whatever_interrupts_learning_leaves_the_learner_as_it_was(kind, X, error, monkeypatch):
    learner = LEARNERS[kind]()
    y = labels(learner, X.shape[0])
    inner = type(learner)._run_kernel

    def interrupted(self, *arguments):
        inner(self, *arguments)
        raise error

    monkeypatch.setattr(type(learner), "_run_kernel", interrupted)
    with pytest.raises(error):
        learner.learn(X, y)
    assert learner.state is None
    monkeypatch.undo()
    learner.learn(X, y)
    before = views(learner, X)
    monkeypatch.setattr(type(learner), "_run_kernel", interrupted)
    with pytest.raises(error):
        learner.learn(X, y)
    for was, now in zip(before, views(learner, X), strict=True):
        np.testing.assert_array_equal(now, was)
    monkeypatch.undo()
    again = LEARNERS[kind]()
    again.learn(X, y)
    again.learn(X, y)
    learner.learn(X, y)
    for one, other in zip(views(learner, X), views(again, X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["learner", "mixture"])
def test_an_interrupt_in_the_kernel_leaves_the_learner_as_it_was(kind):
    """A real signal, which arrives while compiled code runs."""
    X = np.random.default_rng(0).normal(size=(1_000_000, 8))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    learner = LEARNERS[kind]()
    learner.learn(X[:1000], y[:1000])
    before = views(learner, X[:5])
    interrupted = 0
    for _ in range(5):
        timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
        learned = False
        timer.start()
        try:
            learner.learn(X, y)
            learned = True  # it was faster than the timer
            time.sleep(1.0)
        except KeyboardInterrupt:
            if not learned:
                interrupted += 1
                for was, now in zip(before, views(learner, X[:5]), strict=True):
                    np.testing.assert_array_equal(now, was)
        timer.join()
        before = views(learner, X[:5])
    assert interrupted


def test_a_warning_made_an_error_leaves_a_mixture_as_it_was():
    learner = Mixture("squared")
    X = np.random.default_rng(0).normal(size=(20, 2))
    learner.learn(X, X[:, 0] * 1e-40)
    before = views(learner, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="all experts"):
            learner.learn(X, X[:, 0] * 1e40)
    for was, now in zip(before, views(learner, X), strict=True):
        np.testing.assert_array_equal(now, was)


def test_an_interrupted_partial_fit_leaves_no_trace(monkeypatch):
    model = OnlineClassifier().partial_fit(DENSE, np.arange(300) % 2, classes=[0, 1])
    before = (model.progressive_loss_, model.coef_.copy())
    monkeypatch.setattr(Mixture, "_check_results", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(DENSE, np.arange(300) % 2)
    assert model.progressive_loss_ == before[0]
    np.testing.assert_array_equal(model.coef_, before[1])


def test_a_users_loss_that_raises_stops_with_one_message(capfd):
    def value(p, y):
        if p > 3.0:
            raise ValueError("too far")
        return 0.5 * (p - y) ** 2

    loss = CustomLoss(value, lambda p, y: p - y)
    learner = Learner(loss, update="linearized", eta0=1.0, schedule="constant", metric="scalar")
    X, y = np.ones((50, 1)), np.full(50, 2.0)
    with pytest.raises(ValueError, match=r"CustomLoss: value raises, or is not a number, at p=4.0, y=2, in row 1"):
        learner.learn(X, y)
    assert learner.state is None
    assert capfd.readouterr() == ("", "")
    sloped = CustomLoss(lambda p, y: 0.5 * (p - y) ** 2, lambda p, y: p - y if p < 3.0 else math.nan)
    learner = Learner(sloped, update="linearized", eta0=1.0, schedule="constant", metric="scalar")
    with pytest.raises(ValueError, match="CustomLoss: slope raises, or is not a number"):
        learner.learn(X, y)


def test_a_ball_that_rescales_all_weights_can_be_undone():
    """Where the common factor gets tiny, a row changes the weights of features that it does not have."""
    X = sp.csr_matrix(np.eye(60))
    learner = Learner("squared", metric="scalar", radius=0.5, schedule="constant", update="linearized", eta0=0.01)
    learner.learn(X, np.linspace(1, 2, 60))
    factor = learner.state.clocks[0, layout.SCALE] / 1.1e-100  # as after very many rows
    learner.state.table[:] *= factor
    learner.state.clocks[0, [layout.SCALE, layout.NORM2]] *= [1.0 / factor, factor * factor]
    before = views(learner, X)
    bad = sp.csr_matrix(np.array([[5.0] + [0.0] * 59, [np.nan] + [0.0] * 59]))
    with pytest.raises(ValueError, match="nan in row 1"):
        learner.learn(bad, [1e3, 1.0])
    for was, now in zip(before, views(learner, X), strict=True):
        np.testing.assert_array_equal(now, was)


def test_an_interrupt_after_the_last_line_that_counts_breaks_nothing(monkeypatch):
    """What comes after the state is set is not undone by halves."""
    X, y = SPARSE, np.where(np.arange(300) % 3, 1.0, -1.0)
    learner, other = Mixture("logistic"), Mixture("logistic")
    for each in (learner, other):
        each.learn(X, y)
        each.learn(X, y)
    monkeypatch.setattr(Journal, "release", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        learner.learn(X, y)
    monkeypatch.undo()
    other.learn(X, y)
    for one, two in zip(views(learner, X), views(other, X), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", ["learner", "mixture"])
def test_an_interrupt_while_a_refused_block_is_undone(kind, monkeypatch):
    X, y = SPARSE.copy(), np.where(np.arange(300) % 3, 1.0, -1.0)
    learner = LEARNERS[kind]()
    learner.learn(X, y)
    before = views(learner, X)
    X.data[-1] = np.nan
    restore, times = type(learner)._restore, []

    def interrupted(self, *arguments):
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt
        restore(self, *arguments)

    monkeypatch.setattr(type(learner), "_restore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(X, y)
    for was, now in zip(before, views(learner, SPARSE), strict=True):
        np.testing.assert_array_equal(now, was)


def test_a_second_interrupt_while_undoing_is_undone_too(monkeypatch):
    X, y = SPARSE, np.where(np.arange(300) % 3, 1.0, -1.0)
    learner = Mixture("logistic")
    learner.learn(X, y)
    before = views(learner, X)
    restore, times = Journal.restore, []

    def interrupted(self):
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt
        restore(self)

    monkeypatch.setattr(Mixture, "_check_results", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.setattr(Journal, "restore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(X, y)
    monkeypatch.undo()
    for was, now in zip(before, views(learner, X), strict=True):
        np.testing.assert_array_equal(now, was)
    other = Mixture("logistic")
    for each in (other, other, learner):
        each.learn(X, y)
    for one, two in zip(views(learner, X), views(other, X), strict=True):
        np.testing.assert_array_equal(one, two)


def test_random_interrupts_of_partial_fit_leave_model_and_loss_in_step():
    """Signals at any moment, in Python code too: the learner and its progressive loss agree on what was learned."""
    X, y = SPARSE[:50], np.arange(50) % 2

    def stop(*_):
        raise KeyboardInterrupt

    model = OnlineClassifier().partial_fit(X, y, classes=[0, 1])
    old = signal.signal(signal.SIGALRM, stop)
    try:
        for i in range(1500):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 + (i % 30) * 1e-5)
                model.partial_fit(X, y)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            learned = model.learner_.state.clocks[layout.MIX_SEEN]
            assert model.learner_.progress.weight == pytest.approx(learned)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    rounds = round(float(learned) / 50)
    again = OnlineClassifier().partial_fit(X, y, classes=[0, 1])
    for _ in range(rounds - 1):
        again.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("center", ["origin", "trajectory"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_a_ball_survives_weights_beyond_reason(loss, center):
    learner = Learner(loss, radius=0.5, metric="scalar", schedule="constant", eta0=1.0, center=center)
    for weight in (1e160, 1.0, 1e300, 1e-300, 1e155):
        learner.learn(np.ones((20, 1)), np.ones(20), np.full(20, weight))
        norm = np.linalg.norm([*learner.coef_, learner.intercept_])
        assert norm <= 0.5 * (1.0 + 1e-9)
        assert learner.predict([[1.0]])[0] > 0.1  # still on the side of the labels


def test_a_ball_keeps_its_norm_where_weights_come_and_go():
    rng = np.random.default_rng(0)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], 60)
        learner = Learner("logistic", radius=1.0, metric="scalar", schedule="constant", center="trajectory")
        learner.learn(X, y, 10.0 ** rng.uniform(-50, 50, 60))
        assert np.linalg.norm([*learner.coef_, learner.intercept_]) <= 1.0 + 1e-9


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_indices_in_disorder_give_the_same_model_in_every_pass(passes):
    X = sp.csr_matrix(DENSE)
    mixed = X.copy()
    lo, hi = X.indptr[100], X.indptr[101]
    mixed.indices[lo:hi] = X.indices[lo:hi][::-1]
    mixed.data[lo:hi] = X.data[lo:hi][::-1]
    mixed.has_sorted_indices = False
    options = dict(eta0=1.0, shuffle=False, passes=passes)
    y = np.arange(300) % 2
    np.testing.assert_array_equal(
        OnlineClassifier(**options).fit(mixed, y).coef_, OnlineClassifier(**options).fit(X, y).coef_
    )


def test_a_weight_below_rounding_does_not_count_a_feature_twice():
    """A centered column is in the row or it is not, however small the row's weight is beside the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 10.0
    y = X @ np.array([1.0, 2.0, 3.0])
    heavy, light = Mixture("squared"), Mixture("squared")
    heavy.learn(X, y, np.full(50, 1e20))
    light.learn(X, y, np.full(50, 1.0))
    row = np.array([[10.0, 0.0, 11.0]])
    expected = light.learn(row, [50.0], [1e-30]).prediction
    np.testing.assert_allclose(heavy.learn(row, [50.0], [1e-3]).prediction, expected, rtol=0.2)


def test_labels_near_the_largest_float():
    learner = Mixture("squared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.learn(np.array([[1.0], [2.0], [3.0]]), [1.5e308, 1e308, 1.2e308])
    assert np.isfinite(learner.coef_).all()


# ------------------------------------------------------------------------------------------------------ odd inputs


class Csr:
    """A CSR matrix whose parts SciPy would not take."""

    format = "csr"

    def __init__(self, data, indices, indptr, shape):
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, shape


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (Csr(np.ones(2), np.array([0, 1]), np.array([0.0, 1.0, 2.0]), (2, 2)), "its indptr are float64"),
        (Csr(np.ones(2), np.array([0, 1]), np.array([0.0, np.nan, 2.0]), (2, 2)), "its indptr are float64"),
        (Csr(np.ones(2), np.array([0.0, 1.0]), np.array([0, 1, 2]), (2, 2)), "its indices are float64"),
        (np.ma.masked_array(np.ones((2, 2)), mask=np.eye(2)), "X is a masked array"),
        (np.ones((2, 2)) * 1j, "X holds complex numbers"),
        ([[1j, 2.0], [1.0, 2.0]], "X holds complex numbers"),
        (sp.csr_matrix(np.eye(2) * 1j), "X holds complex numbers"),
        (np.array([["2020-01-01"] * 2] * 2, dtype="datetime64[D]"), "X holds dates"),
        (np.array([[1, 2], [3, 4]], dtype="timedelta64[s]"), "X holds dates or durations"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused_in_words(X, message):
    learner = Learner("logistic")
    with pytest.raises(ValueError, match=message):
        learner.learn(X, [1.0, -1.0])
    assert learner.state is None


def test_a_negative_index_is_out_of_range_however_many_columns_there_are():
    X = Csr(np.ones(2), np.array([0, -1], np.int32), np.array([0, 1, 2]), (2, 2**32))
    with pytest.raises(ValueError, match="column index -1 in row 1 is outside"):
        as_block(X)


@pytest.mark.parametrize("part", ["y", "sample_weight"])
def test_labels_and_weights_that_are_no_numbers_are_refused(part):
    targets = {"y": [1.0, -1.0], "sample_weight": [1.0, 1.0]}
    for odd, message in [
        (np.ma.masked_array([1.0, 1.0], mask=[0, 1]), "masked array"),
        (np.array([1.0 + 0j, 1.0]), "complex numbers"),
        (np.array(["2020-01-01"] * 2, dtype="datetime64[D]"), "dates"),
    ]:
        with pytest.raises(ValueError, match=f"{part} (is a|holds) {message}"):
            Learner("logistic").learn(np.eye(2), **(targets | {part: odd}))


def test_errors_carry_facts():
    X = np.eye(3)
    X[1, 2] = np.inf
    with pytest.raises(steelyard.DataError) as caught:
        Learner("logistic").learn(X, [1.0, 1.0, -1.0])
    error = caught.value
    assert (error.part, error.row, error.column, error.value) == ("feature", 1, 2, np.inf)
    with pytest.raises(steelyard.DataError) as caught:
        Learner("logistic").learn(np.eye(3), [1.0, 1.0, 5.0])
    assert (caught.value.part, caught.value.row, caught.value.value) == ("label", 2, 5.0)
    with pytest.raises(steelyard.DataError) as caught:
        Learner("logistic").learn(np.eye(3), [1.0, 1.0, 1.0], [1.0, -2.0, 1.0])
    assert (caught.value.part, caught.value.row, caught.value.value) == ("weight", 1, -2.0)


# ------------------------------------------------------------------------------------------- small input, large memory


def peak_memory(code, *arguments):
    """The largest memory of a process that runs some code, in bytes above one that does next to nothing."""

    def run(code):
        code += "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return 1024 * int(done.stdout.split()[-1])

    small = "import sys; from steelyard import Learner, Mixture; Mixture().learn([[1.0], [2.0]], [1.0, -1.0])"
    return run(code) - run(small)


@pytest.mark.skipif(not hasattr(resource, "RUSAGE_SELF"), reason="needs the system's count of memory")
@pytest.mark.parametrize("kind", ["Learner()", "Mixture()"])
def test_an_index_of_10_8_takes_memory_where_it_is_touched(kind):
    code = (
        "import numpy as np, scipy.sparse as sp; from steelyard import Learner, Mixture\n"
        "X = sp.csr_matrix((np.ones(4), [0, 5, 10**8 - 1, 7], [0, 2, 4]), shape=(2, 10**8))\n"
        f"learner = {kind}; learner.learn(X, [1.0, -1.0]); learner.learn(X, [1.0, -1.0])"
    )
    assert peak_memory(code) < 300e6


def test_many_indices_far_apart_do_not_take_a_huge_page_each():
    code = (
        "import numpy as np, scipy.sparse as sp; from steelyard import Mixture\n"
        "indices = np.sort(np.random.default_rng(0).integers(0, 10**8, 2000))\n"
        "X = sp.csr_matrix((np.ones(2000), indices, [0, 1000, 2000]), shape=(2, 10**8))\n"
        "Mixture().learn(X, [1.0, -1.0])"
    )
    assert peak_memory(code) < 300e6


def test_an_index_of_10_18_is_named_by_file_and_line(tmp_path, capsys):
    (tmp_path / "data").write_text("1 1:1\n-1 1:2 999999999999999999:1\n1 1:3\n")
    for more in ([], ["--no-shuffle"], ["--eta0", "1"]):
        assert cli.main(["learn", str(tmp_path / "data"), *more]) == 1
        err = capsys.readouterr().err
        assert "not enough memory" in err
        assert "largest index, in line 2, a mistake?" in err
    with pytest.raises(MemoryError, match=r"a table of \d+ numbers takes"):
        Learner().learn(sp.csr_matrix((np.ones(1), [5], [0, 1]), shape=(1, 10**15)), [1.0])


def test_lazy_zeros_are_zeros_on_a_cache_line():
    for size in (0, 1, 1000, 3 << 20):
        for dtype in (np.float32, np.float64, np.uint64):
            array = lazy_zeros(size, dtype)
            assert array.size == size
            assert array.dtype == dtype
            assert not array.any()
            assert not size or array.ctypes.data % 64 == 0
            array[:] = 1


# ------------------------------------------------------------------------------------------------------- the shell


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ((Mixture, "_check_results"), "nothing was learned, and no model was written"),
        (
            (LearnReport, "add"),
            "no model was written: 20 rows of pass 1 were learned, and this is lost; with --checkpoint",
        ),
        ((report, "show"), "the model is written: "),
    ],
)
def test_an_interrupted_command_says_what_is_true(tmp_path, monkeypatch, capsys, where, told):
    (tmp_path / "data").write_text("1 1:1\n-1 1:2\n" * 10)
    monkeypatch.setattr(*where, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert cli.main(["learn", str(tmp_path / "data"), "--model", str(tmp_path / "model")]) == 130
    assert f"interrupted; {told}" in capsys.readouterr().err
    assert (tmp_path / "model").exists() == ("is written" in told)


@pytest.mark.parametrize("makes", ["pass", "raise RuntimeError('a broken installation') from None"])
def test_an_interrupt_of_imports_is_no_traceback(makes):
    """Also where the library that is imported makes another error of it."""
    code = f"""
import os, runpy, signal, sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == "steelyard.cli.learn":
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(10000): pass
            except KeyboardInterrupt:
                {makes}
                raise
sys.meta_path.insert(0, Interrupts())
sys.argv = ["steelyard"]
runpy.run_module("steelyard", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "steelyard: interrupted\n")


def test_a_bad_label_far_into_a_stream_is_named_by_its_line(tmp_path, monkeypatch, capsys):
    from steelyard.data.libsvm import LibsvmSource

    monkeypatch.setitem(LibsvmSource.__init__.__kwdefaults__, "block_bytes", 200)
    (tmp_path / "data").write_text("# head\n" + "3 1:1\n\n" * 400 + "-5 1:1\n" + "2 1:1\n" * 50)
    for more in ([], ["--no-shuffle"]):
        assert cli.main(["learn", str(tmp_path / "data"), "--loss", "poisson", *more]) == 1
        assert (
            f"{tmp_path / 'data'}, line 802 has the label -5: it is outside the poisson loss" in capsys.readouterr().err
        )


def test_a_matrix_cannot_grow_in_a_stream(tmp_path, monkeypatch, capsys):
    from steelyard.data.libsvm import LibsvmSource

    monkeypatch.setitem(LibsvmSource.__init__.__kwdefaults__, "block_bytes", 200)
    (tmp_path / "data").write_text("1 1:1\n-1 1:2\n" * 400 + "1 3:1\n")
    words = ["learn", str(tmp_path / "data"), "--task", "classification", "--metric", "full", "--eta0", "1"]
    assert cli.main([*words, "--no-shuffle", "--classes", "-1,1"]) == 2
    told = (
        "data has 3 columns, its first rows had 1, and the matrix of metric full cannot grow: hash features with --bits"
    )
    assert told in capsys.readouterr().err


def test_labels_that_are_no_numbers_are_no_class(tmp_path, capsys):
    (tmp_path / "data").write_text("1 1:1\n" * 30 + "nan 1:2\n")
    for more in ([], ["--no-shuffle"], ["--task", "classification"]):
        assert cli.main(["learn", str(tmp_path / "data"), *more]) == 1
        assert "line 31 has the label nan: it is not finite" in capsys.readouterr().err


def test_several_passes_name_their_losses(tmp_path, capsys):
    (tmp_path / "data").write_text("".join(f"{i % 7} 1:{i} 2:1\n" for i in range(200)))
    for more in ([], ["--no-shuffle"]):
        assert cli.main(["learn", str(tmp_path / "data"), "--passes", "3", *more]) == 0
        out = capsys.readouterr().out
        assert "(each row's before it was learned, averaged, ½ (p − y)²)" in out
        assert "average loss in pass 3: " in out
        assert "(of rows that were learned before)" in out


def test_the_shell_learns_and_predicts_without_scikit_learn_and_sparse_matrices(tmp_path):
    (tmp_path / "data").write_text("1 1:1\n-1 1:2 2:3\n" * 50)
    data, model = str(tmp_path / "data"), str(tmp_path / "model")
    for arguments in (["learn", data, "--model", model], ["learn", data, "--no-shuffle"], ["predict", model, data]):
        code = (
            f"import sys; from steelyard.cli import main; assert main({arguments!r}) == 0\n"
            "assert not {'sklearn', 'scipy.sparse'} & set(sys.modules), sorted(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        code = code.replace("'scipy.sparse'", "'scipy', 'numba'")  # now that nothing is left to be compiled
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
