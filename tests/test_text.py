"""The LIBSVM reader: against scikit-learn's, on odd and malformed files, and fuzzed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from steelyard import Learner, read_libsvm, scan_libsvm, stream_libsvm
from steelyard.data.libsvm import LibsvmSource


def read_with_extent(path):
    source = LibsvmSource(path)
    rows = source.whole()
    block = rows.block
    signed = block.indices.view(block.indices.dtype.str.replace("u", "i"))
    X = sp.csr_matrix((block.data, signed, block.indptr), shape=(block.n_rows, block.n_features))
    return X, rows.y, source.extent()


def written(folder, text, name="data"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("zero_based", [False, True])
def test_agrees_with_scikit_learn_to_the_bit(tmp_path, zero_based):
    rng = np.random.default_rng(0)
    X = sp.random(
        300,
        50,
        density=0.2,
        random_state=0,
        format="csr",
        data_rvs=lambda n: rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n),
    )
    y = rng.normal(size=300)
    dump_svmlight_file(X, y, str(tmp_path / "data"), zero_based=zero_based)
    ours, labels = read_libsvm(tmp_path / "data", n_features=50, zero_based=zero_based)
    theirs, expected = load_svmlight_file(str(tmp_path / "data"), n_features=50, zero_based=zero_based)
    np.testing.assert_array_equal(labels, expected)
    for a, b in ((ours.data, theirs.data), (ours.indices, theirs.indices), (ours.indptr, theirs.indptr)):
        np.testing.assert_array_equal(a, b)
    assert ours.dtype == np.float64
    assert ours.indices.dtype == np.int32


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_compressed_files(tmp_path, suffix, pack):
    X, y = read_libsvm(written(tmp_path, pack(b"1 1:2 3:4\n-1 2:.5\n"), "data" + suffix))
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 4], [0, 0.5, 0]])
    np.testing.assert_array_equal(y, [1, -1])


def test_damaged_compression_is_named(tmp_path):
    whole = gzip.compress(b"1 1:2\n" * 1000)
    with pytest.raises(ValueError, match=r"data\.gz: the compressed file is damaged or cut off"):
        read_libsvm(written(tmp_path, whole[: len(whole) // 2], "data.gz"))
    for suffix in (".xz", ".bz2", ".gz", ".GZ"):
        with pytest.raises(ValueError, match=f"data{suffix}: the compressed file is damaged"):
            read_libsvm(written(tmp_path, b"not compressed", "data" + suffix))


@pytest.mark.parametrize(
    ("text", "rows", "labels"),
    [
        ("", [], []),
        ("\n\n", [], []),
        ("1 1:1", [[1]], [1]),
        ("1 1:1\r\n2 1:2\r\n", [[1], [2]], [1, 2]),
        ("# a comment\n1 1:1 # another 7:7\n\n  \t\n+2 1:2#glued\n", [[1], [2]], [1, 2]),
        ("1 3:3 1:1 2:2\n", [[1, 2, 3]], [1]),
        ("1\t1:1\t2:2 \n", [[1, 2]], [1]),
        ("1\n-1 2:1\n", [[0, 0], [0, 1]], [1, -1]),
        ("1 qid:3 1:1\n", [[1]], [1]),
        ("1 0:5 2:6\n", [[5, 0, 6]], [1]),
        ("-1.5e3 1:1E2 2:-2.5e-1 3:+.5 4:5.\n", [[100, -0.25, 0.5, 5]], [-1500]),
        (
            "1 1:0.1234567890123456789 2:123456789012345678901234567890\n",
            [[0.1234567890123456789, 1.2345678901234568e29]],
            [1],
        ),
        ("1 1:1e-320 2:1e308 3:4.9e-324\n", [[1e-320, 1e308, 4.9e-324]], [1]),
        ("1 1:9.86899159742946E-02 2:9007199254740993\n", [[9.86899159742946e-02, 9007199254740993.0]], [1]),
        ("1 1:inf 2:-Infinity\n", [[np.inf, -np.inf]], [1]),
        ("1 1:00000000000000000000001.5\n", [[1.5]], [1]),
    ],
)
def test_what_the_format_allows(tmp_path, text, rows, labels):
    X, y = read_libsvm(written(tmp_path, text))
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(X.toarray(), np.array(rows, float).reshape(X.shape))
    assert X.shape[0] == len(labels)


def test_queries_and_huge_indices(tmp_path):
    X, _, query = read_libsvm(written(tmp_path, "1 qid:7 1:1\n2 4294967297:3\n"), query_id=True)
    np.testing.assert_array_equal(query, [7, -1])
    assert X.shape == (2, 2**32 + 1)
    assert X.indices.dtype == np.int64
    assert X[1, 2**32] == 3.0


def test_many_odd_numbers(tmp_path):
    values = [repr(v) for v in (np.random.default_rng(0).random(5000) * 1e-30).tolist()]
    X, _ = read_libsvm(written(tmp_path, "".join(f"{v} 1:{v}\n" for v in values)))
    np.testing.assert_array_equal(X.toarray().ravel(), [float(v) for v in values])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\nx 1:1\n", "line 2, column 1: the label is not a number, got 'x'"),
        ("1:1 2:2\n", "line 1, column 1: the label is not a number, got '1:1'"),
        ("1,2 1:1\n", "line 1, column 1: the label is not a number, got '1,2'; a line has one label here, not several"),
        ("1 1:1\n\n1 2:2 a:3\n", "line 3, column 7: a feature index must be a whole number .*, got 'a:3'"),
        ("1 -1:3\n", "line 1, column 3: a feature index .*, got '-1:3'"),
        ("1 99999999999999999999:3\n", "line 1, column 3: a feature index must be a whole number of at most 18 digits"),
        ("1 7\n", "line 1, column 3: expected index:value, got '7'"),
        ("1 7 :3\n", "line 1, column 3: expected index:value, got '7'"),
        ("1 7:\n", "line 1, column 5: the feature's value is not a number, got the end of the line"),
        ("1 7:abc\n", "line 1, column 5: the feature's value is not a number, got 'abc'"),
        ("1 7:1.5.2\n", "line 1, column 5: the feature's value is not a number, got '1.5.2'"),
        ("1 7:1_000\n", "line 1, column 5: the feature's value is not a number, got '1_000'"),
        ("1 7:1e\n", "line 1, column 5: the feature's value is not a number, got '1e'"),
        ("1 1:2:3\n", "line 1, column 5: the feature's value is not a number, got '2:3'"),
        ("1 qid:x 1:1\n", "line 1, column 3: qid must be a whole number"),
        ("1 2:1 2:3\n", "line 1, column 7: an index may stand only once in a line, got '2:3'"),
        (
            "1 1:1\n# 5:1\n\n1 5:1 2:3 05:1 # 5:2\n",
            "line 4, column 11: an index may stand only once in a line, got '05:1'",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_libsvm(written(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "data"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "mean,std,target\n1,2,3\n",
            "got 'mean,std,target'; this looks like CSV: say --format csv --label COLUMN",
        ),
        ("mean, std, target\n1, 2, 3\n", "this looks like CSV"),
        ("0.5,1.5,2\n", "this looks like CSV"),
        ("0.5;1.5;2\n", "this looks like CSV"),
        ("12:30,5,2\n", "this looks like CSV"),
        ('"a b",2\n', "this looks like CSV"),
        ("1 2, 3\n", "line 1, column 3: expected index:value, got '2,'; this looks like CSV"),
        ("1\t2\t3\n", "line 1, column 3: expected index:value, got '2'; this looks like a table with tabs"),
        ("mean\tstd\n", "this looks like a table with tabs"),
        ("mean\n1\n", "got 'mean'; this looks like the header of a table"),
        ('{"y": 1, "x": {"a": 2}}\n', "this looks like JSON"),
        ("[1, 2]\n", "this looks like JSON"),
        (b"PAR1\x15\x04\x15\0", "this looks like a Parquet file"),
        (b"\x01\x02\0\0\x07", "this looks like a binary file"),
        (b"1 1:1\n1 \0\0\n", "line 2, .*this looks like a binary file"),
        (gzip.compress(b"1 1:1\n", mtime=0), "this looks like a gzip file: decompress it first, or .* a name .* .gz"),
        (bz2.compress(b"1 1:1\n"), "this looks like a bzip2 file: .* .bz2"),
        (lzma.compress(b"1 1:1\n"), "this looks like an xz file: .* .xz"),
        (b"PK\x03\x04rest", "this looks like a zip file"),
        (b"\xef\xbb\xbf1 x\n", "line 1, column 3: .*, got 'x'"),
        ("1 1:1\n".encode("utf-16"), "UTF-16"),
        ("1 |f a:1\n", "got '|f'; this looks like Vowpal Wabbit's format: say --format vw$"),
        ("1 1:1\nx 1:1\n", "got 'x'$"),
        ("x 1:1\n", "got 'x'$"),
        ("1 7 3:1\n", "got '7'$"),
    ],
)
def test_files_of_other_kinds_are_named(tmp_path, text, kind):
    path = written(tmp_path, text)
    for read in (read_libsvm, scan_libsvm, lambda path: list(stream_libsvm(path))):
        with pytest.raises(ValueError, match=kind.replace("|f", "[|]f")):
            read(path)


def test_shapes_are_checked(tmp_path):
    path = written(tmp_path, "# a comment\n1 3:1\n\n1 0:1 5:1\n1 5:1 0:1\n")
    with pytest.raises(ValueError, match="data, line 4: index 5 needs 6 columns, but n_features=3; give a larger"):
        read_libsvm(path, n_features=3)
    with pytest.raises(ValueError, match=r"data, line 4: an index is 0, but with zero_based=False .*zero_based=True"):
        read_libsvm(path, zero_based=False)
    for wrong in (-1, 2.5, "3", True):
        for read in (read_libsvm, stream_libsvm):
            with pytest.raises(ValueError, match="n_features must be a whole number of columns, at least 0, got"):
                read(path, n_features=wrong)
    assert read_libsvm(path, n_features=np.int32(9))[0].shape == (3, 9)
    with pytest.raises(FileNotFoundError):
        read_libsvm(tmp_path / "absent")


@pytest.mark.parametrize("zero_based", [True, np.True_, 1, np.int64(1), False, np.False_, 0, "auto"])
def test_where_indices_start_is_said_in_any_way(tmp_path, zero_based):
    path = written(tmp_path, "1 1:1 5:2\n2 2:1\n")
    expected = [[1, 0, 0, 0, 2], [0, 1, 0, 0, 0]]
    if zero_based != "auto" and zero_based:
        expected = [[0, *row] for row in expected]
    for X, _ in (
        read_libsvm(path, zero_based=zero_based),
        *stream_libsvm(path, zero_based=zero_based),
        *stream_libsvm(path, zero_based=zero_based, n_features=len(expected[0])),
        *stream_libsvm(path, zero_based=zero_based, n_features=None),
    ):
        np.testing.assert_array_equal(X.toarray(), expected)


@pytest.mark.parametrize("zero_based", ["yes", "True", 2, -1, 1.0, None, [True], np.array([True, False])])
def test_anything_else_is_refused(tmp_path, zero_based):
    path = written(tmp_path, "1 1:1\n")
    for read in (read_libsvm, stream_libsvm):
        with pytest.raises(ValueError, match="zero_based must be True, False or 'auto', got"):
            read(path, zero_based=zero_based)


@pytest.mark.parametrize("index", [2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 10**18 - 1])
@pytest.mark.parametrize("first", [0, 1])
def test_indices_at_the_edge_of_32_bits(tmp_path, index, first):
    path = written(tmp_path, f"1 {first}:1\n\n2 {index}:2 {first}:3\n3 {index}:2\n")
    X, _ = read_libsvm(path)
    assert X.shape == (3, index + 1 - first)
    assert X.indices.dtype == X.indptr.dtype == (np.int32 if X.shape[1] < 2**31 else np.int64)
    np.testing.assert_array_equal(X.indices, [0, 0, index - first, index - first])
    np.testing.assert_array_equal(X.data, [1, 3, 2, 2])
    assert scan_libsvm(path, block_bytes=1)[:3] == (3, index + 1 - first, first == 0)
    assert scan_libsvm(path, block_bytes=1).largest_line == 3


def test_places_count_lines_as_the_parser_does(tmp_path):
    source = LibsvmSource(written(tmp_path, b"1 \r 1:1\n-1 1:nan\n.5 \r # hi 2:3\n -1\t10:1e400\n"))
    source.whole()
    assert [source.place(row) for row in range(4)] == ["line 1", "line 2", "line 3", "line 4"]
    assert source.place(1, 0) == "line 2, column 4, index 1"
    assert source.place(3, 9) == "line 4, column 5, index 10"


def test_a_file_that_shrinks_ends_in_rows_or_in_a_sentence(tmp_path):
    """In a process of its own: a mapped file would end it with a signal."""
    code = (
        "import os, sys, steelyard.data.libsvm as libsvm, steelyard.data.libsvm_format as text\n"
        "path, cut = sys.argv[1], []\n"
        "inner = text._parse_in\n"
        "def shrink(*more):\n"
        "    cut or os.truncate(path, 60)\n"
        "    cut.append(1)\n"
        "    return inner(*more)\n"
        "text._parse_in, libsvm.STRETCH = shrink, 6\n"
        "print(libsvm.read_libsvm(path)[1].size)\n"
    )
    path = written(tmp_path, "1 1:1\n" * 100_000)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    if done.returncode:  # the cut may go through a line
        assert done.returncode == 1
        assert f"ValueError: {path}, line" in done.stderr
    else:
        assert 10 <= int(done.stdout) < 100_000


def test_large_files_are_read_in_stretches(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [f"{i} " + " ".join(f"{j}:{rng.random():.5g}" for j in range(1, 1 + i % 7)) for i in range(500)]
    path = written(tmp_path, "\n".join(lines))
    whole, y = read_libsvm(path)
    monkeypatch.setattr("steelyard.data.libsvm.STRETCH", 64)
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    cut, labels = read_libsvm(path)
    np.testing.assert_array_equal(labels, y)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(cut, part), getattr(whole, part))
    lines[300] += " 9:x"
    lines[450] += " 9:y"
    with pytest.raises(ValueError, match=r"line 301, column .*, got 'x'"):
        read_libsvm(written(tmp_path, "\n".join(lines)))
    one_line = "1 " + " ".join(f"{j}:1" for j in range(1, 200))
    assert read_libsvm(written(tmp_path, one_line))[0].shape == (1, 199)


tokens = st.sampled_from(
    [
        "1",
        "-1",
        "+2.5",
        "1:1",
        "2:0.5",
        "7:-3e-2",
        "qid:4",
        "#",
        "# x",
        ":",
        "1:",
        ":1",
        "a",
        "nan",
        "3:inf",
        "1:1:1",
        "1e5",
        "0:2",
        "9" * 25,
        "2:" + "3" * 25,
        "é",
        "\0",
        "2:1e400",
    ]
)
lines = st.lists(tokens, max_size=5).map(" ".join)
files = st.one_of(
    st.lists(lines, max_size=5).map("\n".join), st.lists(lines, max_size=5).map("\r\n".join), st.text(max_size=30)
).map(str.encode)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(files, st.binary(max_size=40)))
@example(text=b"1 1:1 \xff")
@example(text=b"1 qid")
def test_fuzzed_files_are_read_as_scikit_learn_does_or_refused(tmp_path, text):
    """Never a crash; and what scikit-learn also reads, it reads the same."""
    path = written(tmp_path, text)
    try:
        X, y = read_libsvm(path)
    except ValueError as error:
        if str(path) not in str(error):
            raise
        return
    assert X.shape[0] == y.size
    try:
        theirs, labels = load_svmlight_file(io.BytesIO(text), n_features=X.shape[1] or None)
    except (ValueError, OverflowError, UnicodeDecodeError):
        return  # it refuses unsorted indices and some more
    if theirs.shape == X.shape:
        np.testing.assert_array_equal(y, labels)
        np.testing.assert_array_equal(X.toarray(), theirs.toarray())


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=8),
    form=st.sampled_from(["r", ".3e", ".17g", ".25f", "g"]),
)
def test_every_number_is_pythons_float(tmp_path, values, form):
    shown = [repr(v) if form == "r" else format(v, form) for v in values]
    X, _ = read_libsvm(written(tmp_path, "0 " + " ".join(f"{j}:{v}" for j, v in enumerate(shown, 1))))
    np.testing.assert_array_equal(X.toarray()[0], [float(v) for v in shown])


# ------------------------------------------------------------------------------------------ block by block


@pytest.mark.parametrize("block_bytes", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_a_stream_has_the_rows_of_the_whole(tmp_path, suffix, pack, block_bytes):
    text = b"# a comment\n1 2:0.5 7:1e400\n\n-1 3:4 1:2 # out of order\n2.5\n" * 20 + b"1 9:3"  # no last newline
    path = written(tmp_path, pack(text), "data" + suffix)
    X, y = read_libsvm(path)
    extent = scan_libsvm(path, block_bytes=block_bytes)
    assert extent[:3] == (61, 9, False)
    np.testing.assert_array_equal(extent.labels, [-1.0, 1.0, 2.5])
    blocks = list(stream_libsvm(path, n_features=9, block_bytes=block_bytes))
    assert len(blocks) > 1 or block_bytes > len(text)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in blocks]), y)
    np.testing.assert_array_equal(sp.vstack([rows for rows, _ in blocks]).toarray(), X.toarray())


def test_a_stream_names_the_line_in_the_file(tmp_path):
    path = written(tmp_path, "1 1:2\n" * 30 + "1 1:2 2:x\n" + "1 1:2\n" * 30)
    for read in (scan_libsvm, lambda path, **more: list(stream_libsvm(path, n_features=2, **more))):
        with pytest.raises(ValueError, match=r"line 31, column 9: the feature's value is not a number, got 'x'"):
            read(path, block_bytes=20)
    path = written(tmp_path, "1 1:2\n" * 30 + "1 2:2 2:1\n")
    with pytest.raises(ValueError, match="line 31, column 7: an index may stand only once"):
        list(stream_libsvm(path, n_features=2, block_bytes=20))
    path = written(tmp_path, "1 1:2\n" * 30 + "1 0:2\n")
    assert scan_libsvm(path, block_bytes=20).zero_based
    with pytest.raises(ValueError, match="line 31: an index is 0"):
        list(stream_libsvm(path, n_features=2, block_bytes=20))
    with pytest.raises(ValueError, match="line 1: index 1 needs 2 columns, but n_features=1"):
        list(stream_libsvm(path, n_features=1, zero_based=True))


@pytest.mark.parametrize("block_bytes", [1, 50, 1 << 20])
def test_a_stream_finds_the_columns_itself(tmp_path, block_bytes):
    for first in (0, 1):
        path = written(tmp_path, "1 1:1 2:1\n" * 20 + f"-1 {first}:1 7:2\n" + "1 3:1\n" * 20)
        X, y = read_libsvm(path)
        learner = Learner("logistic")
        blocks = []
        for rows, labels in stream_libsvm(path, block_bytes=block_bytes):
            learner.learn(rows, labels)
            blocks.append((rows, labels))
        assert {rows.shape[1] for rows, _ in blocks} == {8 - first}
        np.testing.assert_array_equal(sp.vstack([rows for rows, _ in blocks]).toarray(), X.toarray())
        np.testing.assert_array_equal(np.concatenate([labels for _, labels in blocks]), y)
    widths = [X.shape[1] for X, _ in stream_libsvm(path, n_features=None, block_bytes=1)]
    assert widths == [2] * 20 + [7] + [3] * 20
    assert list(stream_libsvm(written(tmp_path, ""))) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_must_be_told_its_columns(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"pipe is a pipe or a device, which can be read only once: .* n_features="):
        stream_libsvm(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        stream_libsvm(tmp_path / "absent")
    for read in (
        lambda path: next(stream_libsvm(path, n_features=3)),
        lambda path: next(stream_libsvm(path, n_features=None)),
        read_libsvm,
        read_with_extent,
    ):
        thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"1 1:2 3:4\n",))
        thread.start()
        X = read(tmp_path / "pipe")[0]
        thread.join()
        np.testing.assert_array_equal(X.toarray(), [[2, 0, 4]])


def test_the_line_of_the_largest_index(tmp_path, monkeypatch):
    text = "# 99:1\n" + "1 1:2\n\n" * 30 + "1 7:1 100000000:2 # 100000001:1\n" + "1 1:2\n" * 30 + "2 100000000:1\n"
    path = written(tmp_path, text)
    for block_bytes in (1, 20, 100, 1 << 20):
        assert scan_libsvm(path, block_bytes=block_bytes).largest_line == 62
    monkeypatch.setattr("steelyard.data.libsvm.STRETCH", 30)
    X, y, extent = read_with_extent(path)
    assert extent.largest_line == 62
    assert (X.shape, y.size) == ((62, 10**8), 62)
    assert scan_libsvm(written(tmp_path, "1\n2\n")).largest_line == 0


@pytest.mark.parametrize("block_bytes", [0, -5, 1.5, "1", None])
def test_the_size_of_a_block_is_checked(tmp_path, block_bytes):
    path = written(tmp_path, "1 1:1\n")
    for read in (scan_libsvm, stream_libsvm):
        with pytest.raises(ValueError, match="block_bytes must be a whole number of bytes, at least 1, got"):
            read(path, block_bytes=block_bytes)


def test_a_small_file_takes_memory_for_what_is_in_it(tmp_path):
    """A little compressed file of many rows: its text is never there as a whole, nor are queries that nobody wants."""
    path = written(tmp_path, gzip.compress(b"1\n" * 4_000_000), "ones.gz")
    read_libsvm(written(tmp_path, "1 1:1\n"))  # the parser is loaded once
    tracemalloc.start()
    try:
        X, y = read_libsvm(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.shape == (4_000_000, 0)
    room = 20 * 2**20 * (os.cpu_count() or 1)  # where threads put what they parse
    assert peak < 2.1 * (y.nbytes + X.indptr.nbytes) + room


def test_a_stream_takes_constant_memory(tmp_path):
    def peak(rows):
        path = written(tmp_path, b"1 1:0.25 17:3.5 400:-1\n-1 2:1 3:1 5:1\n" * (rows // 2))
        tracemalloc.start()
        try:
            assert scan_libsvm(path, block_bytes=10_000).rows == rows
            assert sum(len(y) for _, y in stream_libsvm(path, n_features=400, block_bytes=10_000)) == rows
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1000)  # the parser is loaded once
    # ten times the rows; how many stretches are in flight at a time is up to the threads, within a factor
    assert peak(80_000) < 2.0 * peak(8000)


# ------------------------------------------------------------------------- against a slow reader of the same format


def slow_line(line):
    """Label, query and {index: value} of a line as the format is described; None for an empty one."""
    tokens = [token for token in re.split(rb"[ \t\r]+", line.split(b"#")[0]) if token]
    if not tokens:
        return None
    if any(b"_" in token for token in tokens):
        raise ValueError
    query, pairs = -1, {}
    for token in tokens[1:]:
        if re.fullmatch(rb"qid:[0-9]{1,18}", token):
            query = int(token[4:])
            continue
        index, colon, value = token.partition(b":")
        if not colon or not re.fullmatch(rb"[0-9]{1,18}", index) or int(index) in pairs:
            raise ValueError
        pairs[int(index)] = float(value)
    return float(tokens[0]), query, pairs


def slow_read(text):
    """What is in a file, and the numbers of the lines that are wrong."""
    rows, wrong, largest, largest_line = [], [], -1, 0
    for number, line in enumerate(text.split(b"\n"), 1):
        try:
            row = slow_line(line)
        except ValueError:
            wrong.append(number)
            continue
        if row is not None:
            rows.append(row)
            if max(row[2], default=-1) > largest:
                largest, largest_line = max(row[2]), number
    return rows, wrong, largest_line


pieces = st.sampled_from(
    [
        *(
            b" ",
            b"  ",
            b"\t",
            b"\r\n",
            b"\n",
            b"\n\n",
            b"#",
            b"# 5:5",
            b":",
            b" qid:3",
            b" qid:",
            b"\0",
            b"_",
            b"\xff",
            b",",
        ),
        *(b"+", b"1", b"-1", b" 0:3", b" 4:1e400", b" 5:0x1", b" 6:1e", b" 08:2", b" 9:" + b"1" * 90, b" " * 90),
        *(b" %d:1" % (10**18 + i) for i in (-1, 0)),
    ]
)
indices = st.one_of(st.integers(0, 40), st.integers(2**31 - 3, 2**31 + 2))
values = st.sampled_from([b"1", b"-.5", b"7e-3", b"inf"])
pairs = st.builds(lambda index, value: b" %d:%s" % (index, value), indices, values)
good_lines = st.builds(
    lambda label, pairs, end: label + b"".join(pairs) + end,
    st.sampled_from([b"1", b"-1", b"+2.5", b"", b"# nothing", b"1 qid:7"]),
    st.lists(pairs, max_size=6, unique_by=lambda pair: pair.split(b":")[0]),
    st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b" # 3:x\n", b""]),
).map(lambda line: b"\n" if line.startswith(b" ") else line)  # pairs need a label


@st.composite
def mutated(draw):
    text = b"".join(draw(st.lists(good_lines, max_size=8)))
    for piece in draw(st.lists(pieces, max_size=2)):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + piece + text[at:]
    return text


def assert_rows(X, y, rows, first):
    np.testing.assert_array_equal(y, [label for label, _, _ in rows])
    assert X.indptr[0] == 0
    for i, (_, _, pairs) in enumerate(rows):
        here = slice(X.indptr[i], X.indptr[i + 1])
        np.testing.assert_array_equal(X.indices[here], [index - first for index in sorted(pairs)])
        np.testing.assert_array_equal(X.data[here], [pairs[index] for index in sorted(pairs)])


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(pieces, max_size=25).map(b"".join),
    size=st.integers(1, 64),
    pack=st.sampled_from(
        [("", bytes), ("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
    ),
    threads=st.integers(1, 5),
)
def test_all_readers_agree_with_a_slow_one(tmp_path, text, size, pack, threads):
    path = written(tmp_path, pack[1](text), "data" + pack[0])
    rows, wrong, largest_line = slow_read(text)
    first = 0 if any(0 in pairs for _, _, pairs in rows) else 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("steelyard.data.libsvm.STRETCH", size)
        patch.setattr("os.cpu_count", lambda: threads)
        if wrong:
            for read in (read_libsvm, read_with_extent, lambda path: list(stream_libsvm(path, block_bytes=size))):
                with pytest.raises(ValueError, match=rf"{path.name}, line \d+, column \d+: ") as caught:
                    read(path)
                assert int(re.search(r", line (\d+), column", str(caught.value))[1]) in wrong
            return
        X, y, query = read_libsvm(path, query_id=True)
        assert_rows(X, y, rows, first)
        np.testing.assert_array_equal(query, [each for _, each, _ in rows])
        again, labels, extent = read_with_extent(path)
        assert_rows(again, labels, rows, first)
        scanned = scan_libsvm(path, block_bytes=size)
        assert scanned[:3] == extent[:3] == (len(rows), X.shape[1], first == 0)
        assert scanned.largest_line == extent.largest_line == largest_line
        blocks = list(stream_libsvm(path, block_bytes=size))
        assert {block.shape[1] for block, _ in blocks} <= {X.shape[1]}
        start = 0
        for block, labels in blocks:
            assert_rows(block, labels, rows[start : start + labels.size], first)
            start += labels.size
        assert start == len(rows)
