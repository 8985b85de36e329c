"""Files: blocks of lines, and writes that leave nothing half done behind."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from steelyard import Learner
from steelyard.data import files
from steelyard.data.files import atomic_write, read_blocks

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes of POSIX")
HOLD = """
import sys
from steelyard.data.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
"""


def save(path, content=b"new"):
    with atomic_write(path) as file:
        file.write(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def writer(path):
    """A process that is in the middle of writing."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    return process


# --------------------------------------------------------------------------------------------- blocks of lines


@pytest.mark.parametrize("text", [b"", b"\n", b"a\nbb\nccc", b"a" * 100 + b"\n" + b"b\n" * 50, b"x" * 99])
@pytest.mark.parametrize("size", [1, 2, 7, np.int64(64), 1000])
def test_blocks_are_whole_lines(tmp_path, text, size):
    (tmp_path / "data").write_bytes(text)
    blocks = list(read_blocks(tmp_path / "data", size))
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert b"" not in blocks


@pytest.mark.parametrize("size", [0, -1, 1.5, "16", None, True])
def test_a_size_is_a_number_of_bytes(tmp_path, size):
    with pytest.raises(ValueError, match=r"size must be a whole number of bytes, at least 1, got "):
        read_blocks(tmp_path / "data", size)


def test_a_line_longer_than_a_block_is_copied_once(tmp_path, monkeypatch):
    """A line in a thousand pieces: what is put together must not grow with the square of the pieces."""
    handed = []

    class Counted(bytes):
        def __add__(self, other):
            handed.append(len(self) + len(other))
            return Counted(bytes(self) + other)

    class Slow(io.BytesIO):
        def read(self, size=-1):
            return Counted(super().read(size))

        def readline(self, size=-1):
            return Counted(super().readline(size))

    line = b"1" * 100_000 + b"\n"
    monkeypatch.setattr(files, "open", lambda *_: Slow(line), raising=False)
    assert list(read_blocks(tmp_path / "data", 100)) == [line]
    assert sum(handed) <= 2 * len(line)


# --------------------------------------------------------------------------------------------------- writing


def test_a_write_is_all_or_nothing(tmp_path):
    save(tmp_path / "model", b"old")

    def fail():
        with atomic_write(tmp_path / "model") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / "model").read_bytes() == b"old"
    save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == b"new"
    assert names(tmp_path) == ["model"]


@posix
def test_what_a_killed_process_left_is_swept(tmp_path):
    process = writer(tmp_path / "model")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (left,) = names(tmp_path)
    assert left.startswith(".model.")
    assert left.endswith(".tmp")
    others = [".model.tmp", ".model.x.0123456789abcdef.tmp", ".models.0123456789abcdef.tmp", ".model.mine.tmp"]
    for name in others:
        (tmp_path / name).touch()
    save(tmp_path / "other")  # leaves the files of other targets alone
    assert left in names(tmp_path)
    save(tmp_path / "model")
    assert names(tmp_path) == sorted([*others, "model", "other"])


@posix
def test_two_processes_write_to_one_file(tmp_path):
    process = writer(tmp_path / "model")
    save(tmp_path / "model", b"mine")  # does not sweep what the other one is writing
    assert (tmp_path / "model").read_bytes() == b"mine"
    process.communicate(b"\n")
    assert process.returncode == 0
    assert (tmp_path / "model").read_bytes() == b"half"
    assert names(tmp_path) == ["model"]


@posix
def test_a_file_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    lock, calls = files._locked, []

    def late(file, *, wait):
        calls.append(wait)
        if wait and calls.count(True) == 1:
            os.unlink(file.name)  # as another process does that was quicker
        return lock(file, wait=wait)

    monkeypatch.setattr(files, "_locked", late)
    save(tmp_path / "model")
    assert calls == [True, True]
    assert (tmp_path / "model").read_bytes() == b"new"


@posix
def test_many_writers_at_once(tmp_path):
    problems = []

    def work(content):
        try:
            for _ in range(30):
                save(tmp_path / "model", content)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(bytes([65 + i]) * 100,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(set((tmp_path / "model").read_bytes())) == 1
    assert names(tmp_path) == ["model"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_permissions_stay(tmp_path, mode):
    save(tmp_path / "model", b"old")
    (tmp_path / "model").chmod(mode)
    save(tmp_path / "model")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == mode
    assert (tmp_path / "model").read_bytes() == b"new"


@posix
def test_a_new_file_has_the_usual_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        save(tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o640


@posix
def test_the_owner_stays(tmp_path, monkeypatch):
    save(tmp_path / "model", b"old")
    given = []
    monkeypatch.setattr(os, "chown", lambda path, user, group: given.append((user, group)))
    save(tmp_path / "model")
    there = (tmp_path / "model").stat()
    assert given == [(-1, there.st_gid), (there.st_uid, -1)]


@posix
def test_a_link_stays(tmp_path):
    (tmp_path / "deep").mkdir()
    save(tmp_path / "deep" / "real", b"old")
    (tmp_path / "link").symlink_to("deep/real")
    (tmp_path / "dangling").symlink_to("deep/absent")
    for link, real in (("link", "real"), ("dangling", "absent")):
        save(tmp_path / link)
        assert (tmp_path / link).is_symlink()
        assert (tmp_path / "deep" / real).read_bytes() == b"new"
    assert names(tmp_path) == ["dangling", "deep", "link"]
    assert names(tmp_path / "deep") == ["absent", "real"]


@posix
def test_pipes_and_devices_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    thread = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    thread.start()
    save(tmp_path / "pipe")
    thread.join()
    assert got == [b"new"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert names(tmp_path) == ["pipe"]
    (tmp_path / "null").symlink_to(os.devnull)
    learner = Learner("squared")
    learner.save(tmp_path / "null")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@posix
@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no /dev/stdout here")
def test_standard_output(tmp_path):
    """A pipe, and a file of the shell that is written to before and after."""
    code = "print('before', flush=True)\nfrom steelyard import Learner\nLearner('squared').save('/dev/stdout')"
    code += "\nprint('after')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    with open(tmp_path / "out", "wb") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    for content in (done.stdout, (tmp_path / "out").read_bytes()):
        assert content.startswith(b"before\nPK")
        assert content.endswith(b"after\n")
        (tmp_path / "model").write_bytes(content[len(b"before\n") : -len(b"after\n")])
        assert Learner.load(tmp_path / "model").state is None


def test_failures_name_the_file_that_was_asked_for(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match="is a folder") as caught:
        save(tmp_path)
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        save(tmp_path / "absent" / "model")
    assert caught.value.filename == str(tmp_path / "absent" / "model")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(source, target):
        raise PermissionError(errno.EACCES, "Permission denied", str(source), None, str(target))

    for function, instead, kind in (("fsync", full, OSError), ("replace", refuse, PermissionError)):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, instead)
            with pytest.raises(kind, match=r"No space left|Permission denied") as caught:
                save(tmp_path / "model")
        assert caught.value.filename == str(tmp_path / "model")
        assert ".tmp" not in str(caught.value)
    assert names(tmp_path) == []


def test_an_error_of_another_file_keeps_its_name(tmp_path):
    def copy():
        with atomic_write(tmp_path / "model") as file:
            file.write((tmp_path / "absent").read_bytes())

    with pytest.raises(FileNotFoundError) as caught:
        copy()
    assert caught.value.filename == str(tmp_path / "absent")
    assert names(tmp_path) == []


def test_without_locks_and_owners(tmp_path, monkeypatch):
    """As on systems that have neither: everything but sweeping works."""
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.delattr(os, "chown", raising=False)
    (tmp_path / ".model.0123456789abcdef.tmp").touch()
    save(tmp_path / "model", b"old")
    save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == b"new"
    assert names(tmp_path) == [".model.0123456789abcdef.tmp", "model"]
