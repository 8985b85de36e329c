"""The LIBSVM reader: against scikit-learn's, on odd and malformed files, and fuzzed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from steelyard import read_libsvm, scan_libsvm, stream_libsvm


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
        ("1,2 1:1\n", "line 1, column 1: the label is not a number, got '1,2'"),
        ("1 1:1\n\n1 2:2 a:3\n", "line 3, column 7: a feature index must be a whole number .*, got 'a:3'"),
        ("1 -1:3\n", "line 1, column 3: a feature index .*, got '-1:3'"),
        ("1 99999999999999999999:3\n", "line 1, column 3: a feature index must be a whole number of at most 18 digits"),
        ("1 7\n", "line 1, column 3: expected index:value, got '7'"),
        ("1 7 :3\n", "line 1, column 3: expected index:value, got '7'"),
        ("1 7:\n", "line 1, column 5: the feature's value is not a number, got 'the end of the line'"),
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


def test_shapes_are_checked(tmp_path):
    path = written(tmp_path, "1 0:1 5:1\n")
    with pytest.raises(ValueError, match="needs 6 columns, but n_features=3"):
        read_libsvm(path, n_features=3)
    with pytest.raises(ValueError, match="an index is 0, but with zero_based=False"):
        read_libsvm(path, zero_based=False)
    with pytest.raises(ValueError, match="zero_based must be"):
        read_libsvm(path, zero_based="yes")
    with pytest.raises(FileNotFoundError):
        read_libsvm(tmp_path / "absent")


def test_large_files_are_read_in_stretches(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [f"{i} " + " ".join(f"{j}:{rng.random():.5g}" for j in range(1, 1 + i % 7)) for i in range(500)]
    path = written(tmp_path, "\n".join(lines))
    whole, y = read_libsvm(path)
    monkeypatch.setattr("steelyard.text._STRETCH", 64)
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
    with pytest.raises(ValueError, match="an index is 0"):
        list(stream_libsvm(path, n_features=2, block_bytes=20))
    with pytest.raises(ValueError, match="needs 2 columns, but n_features=1"):
        list(stream_libsvm(path, n_features=1, zero_based=True))


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
    assert peak(80_000) < 1.1 * peak(8000)
