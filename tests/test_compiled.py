"""Objects: the same numbers as through Numba, and never any code that is not ours."""

from __future__ import annotations

import compileall
import contextlib
import ctypes
import inspect
import os
import runpy
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest

from steelyard import cli
from steelyard.compiled import call, door, everything, folder, machine, objects, plain
from steelyard.compiled.elf import undefined_symbols
from steelyard.kernels import digest, plan, signatures
from steelyard.losses import LOSSES

TESTS = Path(__file__).parent
STEP = """
import steelyard, sys
from steelyard.compiled import door, objects
objects.PACKAGED = objects.PACKAGED / "none"
print(steelyard.step(0.5, 1.0, 0.3, loss="logistic"))
"""
REPORT = "print(*sorted(door.compiled_here))"


def start(code, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def run(code, **environment):
    process = start(code, **environment)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out, err


# ------------------------------------------------------------------------------------------------- the same numbers


@pytest.mark.parametrize("indices", signatures.INDICES)
@pytest.mark.parametrize("data", signatures.DATA)
def test_objects_and_numba_learn_the_same_to_the_bit(data, indices):
    command = [sys.executable, str(TESTS / "both_ways.py"), data, indices]
    found = {}
    for way in ("objects", "numba"):
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "STEELYARD_KERNELS": way}, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.endswith(f"{way == 'numba'}\n")
        found[way] = done.stdout.splitlines()
    assert found["objects"] == found["numba"]
    assert len(found["numba"]) > 200


def test_a_way_that_is_not_known_is_refused():
    process = start(STEP, STEELYARD_KERNELS="fast")
    assert "STEELYARD_KERNELS must be objects or numba, got 'fast'" in process.communicate()[1]


BY_LLVM = "from steelyard.compiled import plain; plain.works_here = lambda: False\n"


def test_both_loaders_load_the_same():
    assert run(BY_LLVM + STEP)[0] == run(STEP)[0]


@pytest.mark.skipif(not plain.works_here(), reason="elsewhere LLVM's loader loads everything")
def test_every_object_is_loaded_without_llvm():
    for name in ("learn_plain-f8-u4", "learn_mixture-f4-u8", "parse_vw", "step-logistic", "hand_over"):
        door._address(name)
        code = objects.find(name)
        assert code is not None
        assert plain.load(code, objects.SYMBOL)
        assert plain.load(code, "another") is None


@pytest.mark.skipif(not plain.works_here(), reason="elsewhere LLVM's loader loads everything")
def test_what_our_loader_does_not_know_is_left_to_llvm(code):
    assert plain.load(make_object("define i64 @steelyard_function() { ret i64 7 }"), objects.SYMBOL)
    for text in (
        "declare i64 @nowhere_at_all()\ndefine i64 @steelyard_function() {\n"
        "  %a = call i64 @nowhere_at_all()\n  ret i64 %a\n}",  # also a relocation of another kind
        "@here = external thread_local global i64\ndefine i64* @steelyard_function() { ret i64* @here }",
    ):
        assert plain.load(make_object(text), objects.SYMBOL) is None
    rng = np.random.default_rng(0)
    for _ in range(300):  # whatever it makes of a damaged one, it writes to no place outside
        changed = bytearray(code)
        for place in rng.integers(0, len(code), 5):
            changed[place] = rng.integers(256)
        plain.load(bytes(changed), objects.SYMBOL)


@pytest.mark.skipif(not plain.works_here(), reason="elsewhere LLVM is asked for the processor")
def test_the_processor_is_what_llvm_says_it_is():
    known = {feature for target in machine.TARGETS if target.machine == "x86_64" for feature in target.features.split()}
    by_llvm = {part[1:] for part in machine._llvm_features().split(",") if part.startswith("+")}
    assert machine.host_features() & known == by_llvm & known


def test_a_kernel_may_run_when_the_interpreter_ends():
    """In a thread that nobody waits for."""
    code = """
import threading, time, numpy as np
from steelyard import Learner
X, learner = np.ones((1000, 5)), Learner()
learner.learn(X[:10], np.ones(10))
order = np.tile(np.arange(1000), 5000)
threading.Thread(target=lambda: learner.learn(X, np.ones(1000), order=order), daemon=True).start()
time.sleep(0.1)
"""
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False).returncode == 0


def test_what_cannot_be_loaded_runs_through_numba(tmp_path):
    """An llvmlite without the loader, a system of other objects, and an object that needs what is not there."""
    expected = run(STEP)[0]
    for change in (
        f"{BY_LLVM}import llvmlite.binding; del llvmlite.binding.ObjectFileRef\n",
        "from steelyard.compiled import door; door.can_load = lambda: False\n",
        "from steelyard.compiled import objects; objects.KNOWN = frozenset()\n",
        f"{BY_LLVM}from llvmlite import binding; binding.address_of_symbol = lambda name: None\n",
    ):
        assert run(change + STEP, STEELYARD_CACHE=str(tmp_path))[0] == expected
    assert list(tmp_path.rglob("*.nbi"))  # Numba keeps it, in the same folder


# ------------------------------------------------------------------------------------------------------ signatures


def test_every_function_has_its_signature():
    from steelyard.kernels import library

    assert set(library._KERNELS) == set(signatures.KERNELS)
    assert set(library._LOSSES) == set(signatures.LOSSES) == {*LOSSES, "custom"}
    for name, function in library._KERNELS.items():
        assert len(inspect.signature(function).parameters) == len(signatures.KERNELS[name].arguments), name
    assert len(set(signatures.every_name())) == len(signatures.every_name())


def test_types_that_no_kernel_is_made_for_are_refused():
    with pytest.raises(ValueError, match="no kernel is made for values 'f2'"):
        door.get_kernel("predict", "f2", "u4")


# ------------------------------------------------------------------------------------------------------------ calls


def predict_arguments():
    data, indices, indptr = np.ones(3), np.zeros(1, np.uint32), np.array([0, 3], np.uint64)
    return [data, indices, indptr, np.arange(4.0), True, np.zeros(1)]


def predict_ways():
    quick = door.get_kernel("predict")
    address = door._address("predict-f8-u4")
    return quick, call.python_function("predict", signatures.signature("predict-f8-u4"), address, None)


def test_the_layout_of_this_python_is_known():
    """Where this fails, calls still work, but take some ten microseconds more: see compiled/call.py."""
    assert call.layout_is_known()


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, np.ones(3, np.float32)),
        (0, np.ones(3, np.int64)),
        (0, np.ones(3, ">f8")),
        (0, np.ones((1, 3))),
        (0, np.ones(6)[::2]),
        (0, [1.0, 1.0, 1.0]),
        (0, None),
        (0, 5),
        (1, np.zeros(1, np.uint64)),
        (4, np.ones(3)),
        (4, None),
        (4, "1"),
        (5, np.broadcast_to(0.0, 1)),
    ],
)
def test_what_a_kernel_cannot_take_is_a_type_error(way, place, value):
    arguments = predict_arguments()
    arguments[place] = value
    with pytest.raises(TypeError):
        predict_ways()[way](*arguments)


@pytest.mark.parametrize("way", [0, 1])
def test_arrays_that_begin_anywhere_are_read_and_written(way):
    """As they come out of a pipe from another process."""
    arguments = predict_arguments()
    expected = predict_arguments()
    predict_ways()[way](*expected)
    for place in (0, 3, 5):
        room = np.zeros(arguments[place].nbytes + 1, np.uint8)[1:].view(arguments[place].dtype)
        room[:] = arguments[place]
        assert not room.flags.aligned
        arguments[place] = room
    predict_ways()[way](*arguments)
    np.testing.assert_array_equal(arguments[5], expected[5])


def test_only_results_are_written_back():
    """Another thread may write to what a kernel only reads."""
    given = np.arange(9, dtype=np.uint8)[1:].view(np.float64)
    before = given.copy()

    def change(words):
        given[:] = 7.0
        return -1

    inside = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(change)
    address = ctypes.cast(inside, ctypes.c_void_p).value
    for word, expected in (("const f8[]", 7.0), ("f8[]", before[0])):
        given[:] = before
        call.python_function("reads", signatures.Signature((word,)), address, None)(given)
        assert given[0] == expected


def test_the_same_memory_twice_stays_the_same():
    given = np.zeros(17, np.uint8)[1:].view(np.float64)
    seen = []

    def look(words):
        one, _, _, other, *_ = ctypes.cast(words, ctypes.POINTER(ctypes.c_int64))[:6]
        seen.append(one == other)
        ctypes.c_double.from_address(one).value = 42.0
        return -1

    inside = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(look)
    address = ctypes.cast(inside, ctypes.c_void_p).value
    call.python_function("both", signatures.Signature(("f8[]", "const f8[]")), address, None)(given, given)
    assert seen == [True]
    assert given[0] == 42.0


@pytest.mark.parametrize("way", [0, 1])
def test_a_wrong_number_of_arguments_is_a_type_error(way):
    for arguments in (predict_arguments()[:-1], [*predict_arguments(), 1], []):
        with pytest.raises(TypeError, match="takes 6 arguments"):
            predict_ways()[way](*arguments)


@pytest.mark.parametrize("way", [0, 1])
def test_unusual_arguments_that_are_right_are_taken(way, tmp_path):
    mapped = np.memmap(tmp_path / "file", np.float64, "w+", shape=3)
    mapped[:] = 1.0
    constant = np.ones(3)
    constant.flags.writeable = False
    for place, value in (
        (0, mapped),
        (0, constant),
        (0, np.ones(3, np.dtype(np.float64, metadata={"unit": "m"}))),
        (2, np.array([0, 3], np.ulonglong)),
        (4, np.True_),
        (4, 1),
    ):
        arguments = predict_arguments()
        arguments[place] = value
        predict_ways()[way](*arguments)
        assert arguments[-1] == 0.0 + 1.0 + 2.0 + 3.0


def test_whole_numbers_of_all_sizes_arrive():
    """An index below ``n_features`` is in order."""
    indptr = np.array([0, 1], np.uint64)
    kernel = door.get_kernel("inspect", "f8", "u8")
    for bits in (1, 29, 30, 31, 32, 59, 60, 61, 62, 63, 64):
        for number in (2**bits - 1, 2 ** (bits - 1)):
            for shift in (0, 1):
                index = np.array([number - shift], np.uint64)
                assert kernel(index, indptr, number) == (-1 if shift else 0)
                assert kernel(index, indptr, np.uint64(number)) == (-1 if shift else 0)


def test_a_failure_inside_is_not_silent():
    always = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(lambda words: plan.FAILED)
    address = ctypes.cast(always, ctypes.c_void_p).value
    for hand_over in (None, door._address("hand_over")):
        function = call.python_function("broken", signatures.Signature(("f8[]",)), address, hand_over)
        with pytest.raises(RuntimeError, match="broken failed inside"):
            function(np.zeros(1))


def test_calls_release_the_lock_of_the_interpreter():
    """The function waits until another thread of Python has run."""
    met = threading.Event()
    inside = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(lambda words: -1 if met.wait(60) else plan.FAILED)
    address = ctypes.cast(inside, ctypes.c_void_p).value
    function = call.python_function("waits", signatures.Signature(("f8[]",)), address, door._address("hand_over"))
    other = threading.Thread(target=met.set)
    other.start()
    assert function(np.zeros(1)) == -1
    other.join()
    assert not call._Enter._flags_ & 4  # FUNCFLAG_PYTHONAPI: with the lock held


def test_many_threads_call_at_once():
    kernel, failed = door.get_kernel("predict"), []

    def work(number):
        for _ in range(2000):
            arguments = predict_arguments()
            arguments[3] = np.full(4, float(number))
            kernel(*arguments)
            if arguments[-1] != 4.0 * number:
                failed.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_and_workers_and_pickles():
    out, _ = run("""
import os, pickle, sys
import joblib, numpy as np, steelyard
X, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 2
def fit(seed):
    model = pickle.loads(pickle.dumps(steelyard.OnlineClassifier(random_state=seed))).fit(X, y)
    return model.coef_, "numba" in sys.modules
here = [fit(seed)[0] for seed in range(4)]
there = joblib.Parallel(n_jobs=2)(joblib.delayed(fit)(seed) for seed in range(4))
assert not any(imported for _, imported in there)
np.testing.assert_array_equal(here, [coef for coef, _ in there])
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(fit(0)[0], here[0]) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
import threading
from steelyard.compiled import door
held, free = threading.Event(), threading.Event()
def hold():
    with door._lock:
        held.set()
        free.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
threading.Timer(0.5, free.set).start()
child = os.fork()  # while another thread is compiling: it waits for that
if child == 0:
    os._exit(0 if door._address("step-hinge") else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
thread.join()
print("done")
""")
    assert out == "done\n"


@pytest.mark.parametrize("first", [True, False])
def test_numba_and_objects_live_together(first):
    numba = """
import numba
@numba.njit
def work(n):
    if n < 0:
        raise ValueError("negative")
    return [float(i) for i in range(n)]
assert work(3) == [0.0, 1.0, 2.0]
try:
    work(-1)
    raise SystemExit("nothing was raised")
except ValueError:
    pass
"""
    run(numba + STEP + numba if first else STEP + numba + STEP)


# ------------------------------------------------------------------------------------------------------ object files


@pytest.fixture(scope="module")
def code():
    """An object that refers to something."""
    door._address("step-logistic")
    found = objects.find("step-logistic")
    assert found is not None
    return found


def make_object(text):
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    return machine.emit_object(binding.parse_assembly(text))


def test_what_an_object_refers_to_is_found():
    text = """
declare double @log1p(double)
declare double @unknown(double)
@here = global i64 3
define internal double @inner(double %x) { ret double %x }
define double @steelyard_function(double %x) {
  %a = call double @log1p(double %x)
  %b = call double @unknown(double %a)
  ret double %b
}
"""
    assert undefined_symbols(make_object(text)) == {"log1p", "unknown"}
    assert not objects.is_closed(make_object(text))
    assert objects.is_closed(make_object(text.replace("@unknown", "@expm1")))


def test_damaged_objects_are_read_as_such(code):
    assert undefined_symbols(code) <= objects.KNOWN
    for end in range(0, len(code), 7):
        undefined_symbols(code[:end])  # whatever it finds, it does not raise
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(code)
        for place in rng.integers(0, len(code), 20):
            changed[place] = rng.integers(256)
        undefined_symbols(bytes(changed))
    for other in (b"", b"\x7fELF", b"MZ", bytes(1000)):
        assert undefined_symbols(other) is None


def test_every_changed_byte_is_noticed(code):
    key = objects.key_here("step-logistic")
    content = objects.pack(key, code)
    assert objects.unpack(content, key) == code
    for place in [*range(0, 700), *range(700, len(content), 97), len(content) - 1]:
        changed = bytearray(content)
        changed[place] ^= 1
        assert objects.unpack(bytes(changed), key) is None
    assert objects.unpack(content[:-1], key) is None
    assert objects.unpack(content + b"\0", key) is None
    assert objects.unpack(b"[]\n" + code, key) is None


def test_an_object_of_another_key_is_not_taken(code):
    key = objects.key_here("step-logistic")
    content = objects.pack(key, code)
    for name in key:
        assert objects.unpack(content, {**key, name: key[name] + "x"}) is None
    assert set(key) >= {"name", "arguments", "sources", "llvmlite", "numba", "cpu", "features"}
    assert objects.unpack(content, objects.key_here("step-hinge")) is None


def test_an_object_that_refers_to_something_unknown_is_not_run():
    bad = make_object(
        "declare i32 @system(i8*)\ndefine i32 @steelyard_function(i8* %x) {\n"
        "  %a = call i32 @system(i8* %x)\n  ret i32 %a\n}\n"
    )
    assert not objects.is_closed(bad)
    assert door._load(bad) is None


def test_what_cannot_be_run_is_compiled_once_all_the_same(tmp_path):
    """As with a Numba that uses other libraries: it keeps what it made, and the next process finds it."""
    code = STEP.replace("print", "objects.KNOWN = frozenset()\nprint") + REPORT
    first, _ = run(code, STEELYARD_CACHE=str(tmp_path))
    again, said = run(code, STEELYARD_CACHE=str(tmp_path))
    assert first.split()[1:] != []
    assert again.split() == first.split()[:1]
    assert said == ""


def test_numba_s_own_files_are_made_again_where_they_are_damaged(tmp_path):
    """As on systems whose objects cannot be loaded."""
    code = STEP.replace("print", "door.can_load = lambda: False\nprint")
    first, said = run(code, STEELYARD_CACHE=str(tmp_path))
    assert said.startswith("steelyard: compiling for this machine, once")
    assert run(code, STEELYARD_CACHE=str(tmp_path)) == (first, "")
    for index in tmp_path.rglob("*.nbi"):
        index.write_bytes(index.read_bytes()[:30])
    assert run(code, STEELYARD_CACHE=str(tmp_path))[0] == first
    assert run(code, STEELYARD_CACHE=str(tmp_path)) == (first, "")


# ------------------------------------------------------------------------------------------------- the cache folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of its own, with one object in it."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    monkeypatch.setattr(objects, "PACKAGED", tmp_path / "none")
    where = objects.cache_folder()
    folder.make(where)
    content = make_object("define double @steelyard_function(double %x) { ret double %x }")
    objects.keep("step-squared", content)
    assert objects.find("step-squared") == content
    return where


def test_the_folder_is_the_users_alone(cache):
    for place in (cache, cache.parent):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    for file in cache.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_or_a_file_that_others_may_write_to_is_not_used(cache, mode):
    file = cache / objects.file_name("step-squared")
    file.chmod(mode & 0o666)
    assert objects.find("step-squared") is None
    file.chmod(0o600)
    assert objects.find("step-squared") is not None
    cache.chmod(mode)
    assert objects.find("step-squared") is None
    with pytest.raises(folder.Unsafe, match="others may write to"):
        objects.keep("step-squared", b"")
    with pytest.raises(folder.Unsafe, match="others may write to"):
        folder.make(cache)


def test_what_another_user_owns_is_not_used(cache, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(cache).st_uid + 1)
    assert objects.find("step-squared") is None
    with pytest.raises(folder.Unsafe, match="belongs to another user"):
        folder.make(cache)


def test_the_folder_above_must_be_safe_too(cache):
    cache.parent.chmod(0o777)
    assert objects.find("step-squared") is None
    cache.parent.chmod(0o700)
    assert objects.find("step-squared") is not None


def test_without_a_home_folder_it_works(tmp_path):
    homeless = "import pathlib\ndef none(): raise RuntimeError('no home')\npathlib.Path.home = none\n"
    out, err = run(homeless + STEP + REPORT, STEELYARD_CACHE="", XDG_CACHE_HOME="")
    assert out.split()[1:] == ["evaluate", "hand_over", "step-logistic"]
    assert "compiled kernels cannot be kept (there is no home folder)" in err
    assert "once" not in err
    shell = "from steelyard import cli; sys.exit(cli.main(['compile', '--jobs', '1']))"
    process = start(homeless + "import sys\n" + shell, STEELYARD_CACHE="", XDG_CACHE_HOME="")
    assert process.communicate() == ("", "steelyard: there is no home folder\n")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs a file that is no folder")
def test_a_cache_folder_that_cannot_be_is_named(cache, monkeypatch):
    monkeypatch.setenv("STEELYARD_CACHE", "/dev/null")
    with pytest.raises(folder.Unsafe, match="/dev/null is no folder"):
        folder.make(objects.cache_folder())


def test_a_file_that_cannot_be_written_names_the_folder(cache, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", ".x.tmp")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=str(cache)):
        objects.keep("step-squared", b"")


def test_links_are_not_followed(cache, tmp_path):
    file = cache / objects.file_name("step-squared")
    moved = tmp_path / "moved"
    file.rename(moved)
    file.symlink_to(moved)
    assert objects.find("step-squared") is None
    file.unlink()
    moved.rename(file)
    assert objects.find("step-squared") is not None
    cache.rename(tmp_path / "folder")
    cache.symlink_to(tmp_path / "folder")
    assert objects.find("step-squared") is None
    with pytest.raises(OSError):  # noqa: PT011
        folder.make(cache)


def test_a_link_is_replaced_not_written_through(cache, tmp_path):
    file, other = cache / objects.file_name("step-squared"), tmp_path / "other"
    other.write_text("mine")
    content = objects.find("step-squared")
    file.unlink()
    file.symlink_to(other)
    objects.keep("step-squared", content)
    assert other.read_text() == "mine"
    assert objects.find("step-squared") == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_what_is_no_file_is_not_waited_for(cache):
    file = cache / objects.file_name("step-squared")
    file.unlink()
    os.mkfifo(file, 0o600)
    assert objects.find("step-squared") is None
    file.unlink()
    file.mkdir()
    assert objects.find("step-squared") is None


def test_files_that_were_left_behind_go_and_old_folders_too(cache):
    left = cache / ".step.0123456789abcdef.tmp"
    left.write_bytes(b"")
    new = cache / ".step.fedcba9876543210.tmp"
    new.write_bytes(b"")
    os.utime(left, (0, 0))
    for i in range(20):
        old = cache.parent / f"{i:020x}"
        old.mkdir()
        (old / "step.object").write_bytes(b"")
        os.utime(old, (i, i))
    os.utime(cache, (0, 0))
    assert objects.find("step-squared") is not None  # it is in use, so it is not the oldest any more
    folder.make(cache.parent / f"{99:020x}")
    assert not left.exists()
    assert new.exists()
    kept = sorted(path.name for path in cache.parent.iterdir())
    assert len(kept) == folder._KEPT + 1
    assert {cache.name, f"{99:020x}", f"{19:020x}"} <= set(kept)


def test_a_damaged_object_is_compiled_anew_and_replaced(tmp_path):
    out, _ = run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))
    (file,) = tmp_path.glob("kernels/*/step-logistic.object")
    content = file.read_bytes()
    for damaged in (b"", content[:5000], content[:-1] + b"\1", content.replace(b"logistic", b"squared!", 1)):
        file.write_bytes(damaged)
        assert run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split() == [out.split()[0], "step-logistic"]
        assert objects.unpack(file.read_bytes(), objects.key_here("step-logistic")) is not None
    assert run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split() == out.split()[:1]


def test_cold_processes_at_once_compile_each_function_once(tmp_path):
    started = [start(STEP + REPORT, STEELYARD_CACHE=str(tmp_path)) for _ in range(4)]
    results = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 4, results
    lines = [out.split() for out, _ in results]
    assert len({line[0] for line in lines}) == 1
    assert sorted(name for line in lines for name in line[1:]) == ["evaluate", "hand_over", "step-logistic"]


def test_a_process_that_is_killed_leaves_nothing_in_the_way(tmp_path):
    killed = start(STEP, STEELYARD_CACHE=str(tmp_path))
    while not list(tmp_path.glob("kernels/*/*.lock")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split()[1:] == [
        "evaluate",
        "hand_over",
        "step-logistic",
    ]
    assert run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split()[1:] == []


def test_nothing_is_read_from_the_working_folder(tmp_path, monkeypatch):
    """A folder full of objects in the right places, but the wrong one."""
    monkeypatch.chdir(tmp_path)
    code = STEP + "print([p for p in sys.path if 'kernels' in p], objects.cache_folder().is_absolute())"
    environment = {**os.environ, "XDG_CACHE_HOME": "cache", "STEELYARD_CACHE": ""}
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[1] == "[] True"
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------- objects of a package


def test_a_target_is_used_where_the_processor_has_all_of_it(monkeypatch):
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    by_name = {target.name: target for target in machine.TARGETS}
    v3 = set(by_name["x86-64-v3"].features.split())
    for features, expected in (
        (v3, ["x86-64-v3", "x86-64-v2"]),
        (v3 - {"fma"}, ["x86-64-v2"]),
        (v3 | {"avx512f"}, ["x86-64-v3", "x86-64-v2"]),
        (set(by_name["x86-64-v4"].features.split()) | {"more"}, ["x86-64-v4", "x86-64-v3", "x86-64-v2"]),
        (set(), []),
    ):
        monkeypatch.setattr(machine, "host_features", lambda features=features: frozenset(features))
        assert [target.name for target in machine.usable_targets()] == expected
    monkeypatch.setattr(machine.platform, "machine", lambda: "riscv64")
    assert machine.usable_targets() == []


def test_everything_can_be_compiled_beforehand(tmp_path, monkeypatch, capsys):
    """A few functions stand for all of them."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    monkeypatch.setattr(objects, "PACKAGED", tmp_path / "none")
    monkeypatch.setattr(signatures, "every_name", lambda: ["step-logistic", "evaluate", "hand_over"])
    assert cli.main(["compile", "--jobs", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("3 functions compiled in ")
    assert sorted(line.split()[0] for line in captured.err.splitlines()) == ["1/3", "2/3", "3/3"]
    assert run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split()[1:] == []
    assert cli.main(["compile"]) == 0
    assert capsys.readouterr().out.startswith("nothing to compile")
    assert cli.main(["compile", "--jobs", "0"]) == 2
    assert cli.main(["compile", "--target", "x86-64-v3"]) == 2
    assert cli.main(["compile", "--output", str(tmp_path / "out"), "--target", "6502"]) == 2


@pytest.mark.skipif(not machine.usable_targets(), reason="wheels for such machines carry no objects")
def test_objects_of_a_package_are_used_before_those_of_the_cache(tmp_path, monkeypatch, capsys):
    target = machine.usable_targets()[-1]
    monkeypatch.setattr(signatures, "every_name", lambda: ["step-logistic", "evaluate", "hand_over"])
    assert cli.main(["compile", "--output", str(tmp_path / "objects"), "--target", target.name, "--jobs", "1"]) == 0
    code = STEP.replace('objects.PACKAGED / "none"', f"type(objects.PACKAGED)({str(tmp_path / 'objects')!r})")
    out, err = run(code + "assert 'numba' not in sys.modules", STEELYARD_CACHE=str(tmp_path / "cache"))
    assert float(out) == pytest.approx(float(run(STEP)[0]), rel=1e-14)
    assert err == ""
    assert not (tmp_path / "cache").exists()
    for file in (tmp_path / "objects").glob("*/*"):  # of another version
        file.write_bytes(file.read_bytes().replace(b'"sources": "', b'"sources": "f', 1))
    assert run(code + REPORT, STEELYARD_CACHE=str(tmp_path / "cache"))[0].split()[1:] != []


def test_variables_of_the_build_do_not_stay():
    before = dict(os.environ)
    with everything._compiling_for(machine.TARGETS[0]):
        assert os.environ["NUMBA_CPU_NAME"] == machine.TARGETS[0].name
    assert dict(os.environ) == before


def test_folders_of_others_in_the_cache_are_left_alone(tmp_path):
    """A cache may be in a folder that has been there before."""
    root = tmp_path / "cache"
    (root / "kernels").mkdir(parents=True, mode=0o700)
    for i in range(20):
        (root / "kernels" / f"mine-{i}").mkdir()
        (root / "kernels" / f"{i:020x}").mkdir()
    folder.make(root / "kernels" / f"{99:020x}")
    left = sorted(path.name for path in (root / "kernels").iterdir())
    assert sum(name.startswith("mine") for name in left) == 20
    assert len(left) == 20 + 12 + 1


FORKS = """
import os, sys, threading, time
from steelyard.compiled import door
thread = threading.Thread(target=door.get_kernel, args=("conjugates",))
thread.start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if child == 0:
    door.get_kernel("evaluate")
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""


@pytest.mark.parametrize("after", [0.02, 0.3, 1.0])  # seconds: while llvmlite or Numba are imported, or later
def test_a_fork_while_another_thread_compiles(tmp_path, after):
    tmp_path.chmod(0o700)
    environment = {**os.environ, "STEELYARD_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, str(after)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.stdout == "7\n", done.stderr


@pytest.mark.parametrize("told", ["numba.config.BOUNDSCHECK = 1", "numba.config.CPU_NAME = 'generic'"])
def test_what_numba_was_told_otherwise_is_not_kept(tmp_path, told):
    tmp_path.chmod(0o700)
    code = f"import numba\n{told}\nfrom steelyard.compiled import door\ndoor.get_kernel('inspect')"
    environment = {**os.environ, "STEELYARD_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)
    assert not list(tmp_path.rglob("*.object"))


def test_numba_without_optimization_still_runs(tmp_path):
    tmp_path.chmod(0o700)
    code = "import steelyard; steelyard.Learner('logistic').learn([[1.0]], [1.0])"
    environment = {**os.environ, "STEELYARD_CACHE": str(tmp_path), "NUMBA_OPT": "0"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)


@pytest.mark.parametrize("way", ["objects", "numba"])
def test_numba_that_may_not_compile_is_named(tmp_path, way):
    process = start(STEP, STEELYARD_CACHE=str(tmp_path), STEELYARD_KERNELS=way, NUMBA_DISABLE_JIT="1")
    assert "ValueError: NUMBA_DISABLE_JIT is set, and a kernel must be compiled" in process.communicate()[1]
    assert process.returncode == 1


def test_an_array_that_says_otherwise_of_itself():
    class Liar(np.ndarray):
        @property
        def shape(self):
            return (10**12,)

    arguments = predict_arguments()
    arguments[0] = arguments[0].view(Liar)
    expected = predict_arguments()
    for way in predict_ways():
        way(*arguments)
        way(*expected)
        np.testing.assert_array_equal(arguments[-1], expected[-1])


def test_an_array_that_says_to_be_of_another_type():
    class Liar(np.ndarray):
        dtype = np.dtype(np.float64)
        ndim = 1
        flags = np.ones(1).flags

    arguments = predict_arguments()
    for place, value in ((0, np.ones(3, np.float32)), (5, np.ones(1, np.float32)), (5, np.broadcast_to(0.0, 1))):
        given = [*arguments[:place], value.view(Liar), *arguments[place + 1 :]]
        for way in predict_ways():
            with pytest.raises(TypeError):
                way(*given)
        with pytest.raises(TypeError):
            door.bind_kernel("predict", tuple(given))


# ------------------------------------------------------------------------------- installations without source files


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    """The package as files of bytecode, and in an archive; with a wheel's record and a few objects, or without."""
    top = tmp_path_factory.mktemp("stripped")
    package = top / "bytecode" / "steelyard"
    shutil.copytree(Path(door.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__", "objects"))
    compileall.compile_dir(package, quiet=1, legacy=True)
    for file in package.rglob("*.py"):
        file.unlink()
    bare = Path(shutil.make_archive(str(top / "bare"), "zip", package.parent))
    shutil.copytree(package.parent, top / "recorded bytecode é")
    package = top / "recorded bytecode é" / "steelyard"
    (package / "kernels" / digest.RECORD).write_text(digest.source_digest())
    target = machine.usable_targets()[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signatures, "every_name", lambda: ["step-logistic", "evaluate", "hand_over"])
        everything.compile_for(target, package / "compiled" / "objects", 1, lambda *_: None)
    archive = Path(shutil.make_archive(str(top / "recorded"), "zip", package.parent))
    return {"recorded": (package.parent, archive), "bare": (top / "bytecode", bare)}


ASKED = STEP.replace('objects.PACKAGED = objects.PACKAGED / "none"\n', "") + REPORT
SOURCES = "\nfrom steelyard.kernels.digest import source_digest; print(source_digest())"


@pytest.mark.skipif(not machine.usable_targets(), reason="wheels for such machines carry no objects")
@pytest.mark.parametrize("form", [0, 1], ids=["bytecode", "archive"])
def test_without_sources_the_objects_of_the_wheel_are_used(stripped, tmp_path, form):
    path = str(stripped["recorded"][form])
    out, err = run(
        ASKED + SOURCES + "\nassert 'numba' not in sys.modules", PYTHONPATH=path, STEELYARD_CACHE=str(tmp_path)
    )
    assert out.split()[1:] == [digest.source_digest()]
    assert err == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not machine.usable_targets(), reason="wheels for such machines carry no objects")
@pytest.mark.parametrize("form", [0, 1], ids=["bytecode", "archive"])
def test_without_sources_and_without_a_record_it_is_compiled_and_kept(stripped, tmp_path, form):
    path = str(stripped["bare"][form])
    first = run(ASKED + SOURCES, PYTHONPATH=path, STEELYARD_CACHE=str(tmp_path))[0].split()
    second = run(ASKED + SOURCES, PYTHONPATH=path, STEELYARD_CACHE=str(tmp_path))[0].split()
    assert first[1:-1] == ["evaluate", "hand_over", "step-logistic"]
    assert second == [first[0], first[-1]]
    assert first[-1] != digest.source_digest()


# --------------------------------------------------------------------------------------- others who hold a lock


@pytest.mark.skipif(folder.fcntl is None, reason="needs locks on files")
def test_a_process_that_was_stopped_is_not_waited_for(cache, tmp_path):
    hurry = STEP.replace("print", "from steelyard.compiled import folder; folder.PATIENCE = 0.5; print", 1)
    with folder.locked(cache, "step-logistic") as alone:
        assert alone
        out, err = run(hurry + REPORT, STEELYARD_CACHE=str(tmp_path))
        assert out.split()[1:] == ["evaluate", "hand_over", "step-logistic"]
        assert err.count("another process compiles step-logistic and does not come to an end") == 1
    assert run(hurry + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split() == out.split()[:1]


USERS_FORK = """
import os, sys, threading
from numba.core.compiler_lock import global_compiler_lock
from steelyard.compiled import door
held, free = threading.Event(), threading.Event()
def users_own():
    with global_compiler_lock:  # as Numba does while it compiles
        held.set()
        free.wait()
thread = threading.Thread(target=users_own)
thread.start()
held.wait()
threading.Timer(0.5, free.set).start()
child = os.fork()
if child == 0:
    door.get_kernel("evaluate")
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
assert not global_compiler_lock.is_locked()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_a_users_own_function_compiles(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", USERS_FORK],
        capture_output=True,
        text=True,
        env={**os.environ, "STEELYARD_CACHE": str(tmp_path)},
        timeout=120,
    )
    assert done.stdout == "7\n", done.stderr


# ------------------------------------------------------------------------------------------- a run that is stopped

KILLED = """
import os, signal
from steelyard.compiled import folder
def end(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
class Half:
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()
    def write(self, content):
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        end()
"""
MOMENTS = {
    "compiling": "from steelyard.compiled import door; door.build = end\n",
    "writing": "folder.open = lambda number, mode: Half(open(number, mode)) if mode == 'wb' else open(number, mode)\n"
    "folder.locked = lambda *_: __import__('contextlib').nullcontext(True)\n",
    "renaming": "os.replace = end\n",
    "kept": "done = os.replace\ndef after(*a, **k):\n    done(*a, **k)\n    end()\nos.replace = after\n",
}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_any_moment_leaves_whole_objects_or_none(tmp_path, moment):
    process = start(KILLED + MOMENTS[moment] + STEP, STEELYARD_CACHE=str(tmp_path))
    assert process.communicate()[0] == ""
    assert process.returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*.tmp"))) == (moment in ("writing", "renaming"))
    expected = ["evaluate", "hand_over", "step-logistic"][: 2 if moment == "kept" else 3]
    first = run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split()
    assert len(first[1:]) == len(expected)
    assert run(STEP + REPORT, STEELYARD_CACHE=str(tmp_path))[0].split() == first[:1]


@pytest.mark.skipif(not machine.usable_targets(), reason="wheels for such machines carry no objects")
def test_objects_for_a_wheel_are_made_once_and_only_what_is_wrong_is_made_again(tmp_path, monkeypatch):
    names = ["evaluate", "hand_over"]
    monkeypatch.setattr(signatures, "every_name", lambda: names)
    target = machine.usable_targets()[-1]
    made = []

    def compile_for():
        made.clear()
        return everything.compile_for(target, tmp_path, 1, lambda name, *_: made.append(name))

    assert compile_for() == 2
    assert compile_for() == 0
    file = tmp_path / target.name / "evaluate.object"
    content = file.read_bytes()
    for wrong in (content[:-1], content.replace(b'"sources": "', b'"sources": "f', 1), b""):
        file.write_bytes(wrong)
        assert objects.missing(tmp_path, target) == ["evaluate"]
        assert compile_for() == 1
        assert made == ["evaluate"]
    names.remove("evaluate")
    assert compile_for() == 0
    assert not file.exists()


# ------------------------------------------------------------------------------------------------ wheels, and builds


class Hook:
    """The little that ``hatch_build`` needs of Hatchling, which is there only while something is built."""

    def __init__(self, root):
        self.root, self.app, self.said = root, self, []

    def display_warning(self, text):
        self.said.append(text)


@pytest.fixture
def built(tmp_path, monkeypatch):
    """What the hook of the build adds to a wheel from the objects in a folder, and what it says."""
    interface = types.ModuleType("interface")
    interface.BuildHookInterface = Hook
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    hook_class = runpy.run_path(str(TESTS.parent / "hatch_build.py"))["CustomBuildHook"]

    def build():
        hook = hook_class(str(tmp_path))
        data = {"force_include": {}}
        hook.initialize("standard", data)
        hook.finalize("standard", data, "")
        return data, hook.said

    return build


@pytest.mark.skipif(not machine.usable_targets(), reason="wheels for such machines carry no objects")
def test_a_wheel_has_all_objects_or_none(built, tmp_path, monkeypatch):
    monkeypatch.setattr(signatures, "every_name", lambda: ["evaluate", "hand_over"])
    data, said = built()
    assert "tag" not in data
    assert said == []
    monkeypatch.setenv("STEELYARD_OBJECTS", "required")
    with pytest.raises(RuntimeError, match="there are no compiled kernels: run `make wheel`"):
        built()
    target = machine.usable_targets()[-1]
    place = tmp_path / "src" / "steelyard" / "compiled" / "objects"
    everything.compile_for(target, place, 1, lambda *_: None)
    data, said = built()
    assert data["tag"].startswith("py3-none-")
    assert f"steelyard/compiled/objects/{target.name}" in data["force_include"].values()
    (place / target.name / "evaluate.object").unlink()
    with pytest.raises(RuntimeError, match=r"1 compiled kernels are missing, .*\(evaluate for one\)"):
        built()
    monkeypatch.delenv("STEELYARD_OBJECTS")
    data, said = built()
    assert "tag" not in data
    assert "built without any" in said[0]


def test_systems_whose_objects_cannot_be_read_get_none(monkeypatch, capsys, tmp_path):
    for system in ("darwin", "win32"):
        monkeypatch.setattr(machine.sys, "platform", system)
        assert machine.wheel_targets() == machine.usable_targets() == []
        assert not door.can_load()
        assert cli.main(["compile", "--output", str(tmp_path)]) == 2
        assert "carry no compiled kernels" in capsys.readouterr().err


def test_what_the_package_brings_is_not_compiled_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    monkeypatch.setattr(objects, "find", lambda name: b"code")
    assert cli.main(["compile"]) == 0
    assert "everything came with the package" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files to another user")
@pytest.mark.parametrize("place", ["file", "folder", "kernels"])
def test_what_belongs_to_another_user_is_not_used(cache, place):
    path = {"file": cache / objects.file_name("step-squared"), "folder": cache, "kernels": cache.parent}[place]
    os.chown(path, 65534, -1)
    if place != "kernels":
        assert objects.find("step-squared") is None
    if place != "file":
        with pytest.raises(folder.Unsafe, match="belongs to another user"):
            folder.make(cache)


@pytest.mark.skipif(os.name == "nt", reason="needs limits on files")
def test_a_full_disk_is_said_and_nothing_half_is_kept(tmp_path):
    code = (
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    )
    out, err = run(code + STEP + REPORT, STEELYARD_CACHE=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    assert out.split()[1:] == ["evaluate", "hand_over", "step-logistic"]
    assert err.count("RuntimeWarning: compiled kernels cannot be kept") == 1
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size] == []
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc on this machine")
def test_workers_end_with_a_killed_compilation():
    code = "import time; from steelyard.compiled.everything import _run; _run(time.sleep, [(60,)] * 2, 2, print)"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and len(workers_of(process.pid)) < 2:
            time.sleep(0.1)
        workers = workers_of(process.pid)
        assert len(workers) == 2
        time.sleep(1.0)  # until they watch
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(os.path.isdir(f"/proc/{pid}") for pid in workers):
        time.sleep(0.1)
    assert not [pid for pid in workers if os.path.isdir(f"/proc/{pid}")]


def workers_of(parent):
    """Processes that were spawned to work for another one."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            status, command = Path("/proc", name, "stat").read_text(), Path("/proc", name, "cmdline").read_bytes()
            if int(status.rsplit(")", 1)[1].split()[1]) == parent and b"spawn_main" in command:
                found.append(int(name))
    return found
