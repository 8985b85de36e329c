"""Vowpal Wabbit's text: against VW itself, against a slow reader written apart, and fuzzed."""

from __future__ import annotations

import lzma
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naive_vw import Refused, read
from steelyard import Learner
from steelyard.data.opening import open as open_rows
from steelyard.data.stretch import Mistake
from steelyard.data.vw import VwFormat

SHARED = Path(__file__).parents[2] / "shared" / "data" / "vw"
FILES = ("0001.dat.xz", "0002.dat.xz", "houses", "interact.dat", "xxor.dat")
CONSTANT = "Constant"
FUZZED = int(os.environ.get("STEELYARD_FUZZED", "20000"))


def content_of(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not there: Vowpal Wabbit's own test files")
    raw = path.read_bytes()
    return lzma.decompress(raw) if name.endswith(".xz") else raw


def parsed(text, **options):
    """(label, importance, {index: value}) of every row."""
    form = VwFormat(**options)
    part = form.parse(text, form.new_room())
    weight = part.weight if part.weight.size else np.ones(part.y.size)
    rows = []
    for r in range(part.y.size):
        row = slice(part.indptr[r], part.indptr[r + 1])
        assert (np.diff(part.indices[row].astype(np.int64)) > 0).all()
        rows.append(
            (part.y[r], weight[r], dict(zip(part.indices[row].tolist(), part.values[row].tolist(), strict=True)))
        )
    return rows


def run_vw(arguments, folder):
    code = "import sys, vowpalwabbit; vowpalwabbit.Workspace(sys.argv[1]).finish()"
    command = [sys.executable, "-c", code, f"--quiet {arguments}"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout


def audited(text, folder, options=""):
    """{index: values} and {index: names} of every line, as VW has them, without its constant."""
    pytest.importorskip("vowpalwabbit")
    (folder / "audited").write_bytes(text)
    rows, names = [], []
    for line in run_vw(f"-d audited --audit {options}", folder).split(b"\n"):
        if not line.startswith(b"\t"):
            continue
        row, named = {}, {}
        for token in line.strip(b"\t\r\n").split(b"\t"):
            name, index, value, _ = token.rsplit(b":", 3)
            if name.decode("utf-8", "replace") != CONSTANT:
                row.setdefault(int(index), []).append(float(value))
                named.setdefault(int(index), set()).add(name.decode("utf-8", "replace"))
        rows.append(row)
        names.append(named)
    return rows, names


def assert_same_rows(ours, theirs):
    assert len(ours) == len(theirs)
    for (_, _, mine), other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for index, values in other.items():  # which are printed with six digits, and may cancel
            assert mine[index] == pytest.approx(sum(values), rel=0.0, abs=1e-5 * sum(map(abs, values)) + 1e-30)


@pytest.mark.parametrize("bits", [10, 18, 24])
@pytest.mark.parametrize("name", FILES)
def test_vws_own_files_have_vws_indices(tmp_path, name, bits):
    text = content_of(name)
    rows, _ = audited(text, tmp_path, f"-b {bits}")
    assert_same_rows(parsed(text, bits=bits, ignore_base=True), rows)


@pytest.mark.parametrize(
    "specs",
    [
        *(["ab"], ["aa"], ["ba"], ["ba", "ab"], ["abc"], ["aab"], ["aba"], ["caa"], ["abab"], ["cab", "bca"], ["::"]),
        *([":::"], ["::::"], ["b:"], [":b"], ["b:", ":b"], ["a::"], ["::a"], [":a:"], ["c:b"], ["cab", ":::"], [" a"]),
    ],
)
def test_interactions_are_vws(tmp_path, specs):
    if any(" " in spec for spec in specs):
        text = b"1 | p r:2 |a q\n"
        return assert_same_rows(parsed(text, interactions="::"), audited(text, tmp_path, "--interactions ::")[0])
    text = b"1 |a x y:2 |b z |c u\n1 |b w:3 |a x x:2 v:0\n1 |aa x |ab y |b z |aa x:3\n1 |b z |a x |d t |c u\n"
    options = " ".join(f"--interactions {spec}" for spec in specs)
    assert_same_rows(parsed(text, interactions=specs), audited(text, tmp_path, options)[0])


@pytest.mark.parametrize("name", ["interact.dat", "xxor.dat"])
def test_interactions_of_vws_own_files(tmp_path, name):
    text = content_of(name)
    for spec in ("ab", "aa", "abc", "::"):
        rows, _ = audited(text, tmp_path, f"--interactions {spec}")
        assert_same_rows(parsed(text, interactions=spec), rows)


@pytest.mark.parametrize("hash_all", [False, True])
def test_what_the_format_allows(tmp_path, hash_all):
    text = (
        b"1 |A:2 Herb x:2 5:3 |B y |c z:0.5 | d 7\n1 |a :1 :2 x:0 :3 :0 :4\n|a x\n0.5|a x\n1 2 'tag |a x|b y||c z\n"
        b"1 |aa x |ab x |aa 007 0x |12 a |12b a |7 8 |7 8\n\n-1 |a \xc3\xa9 |\xc3\xa9 x\r\n"
        b"1 |a \x01z\x02 z \x017 \x01 \x01a\x01b ab a\x01b\n1 |a\tx\ty:2\t\n1 'a'b|a:.5 x:+.5 99999999999999999999999\n"
    )
    ours = parsed(text, hash_all=hash_all)
    assert_same_rows(ours, audited(text, tmp_path, "--hash all" if hash_all else "")[0])
    np.testing.assert_array_equal([row[0] for row in ours], [1, 1, math.nan, math.nan, 1, 1, -1, 1, 1, 1])
    assert [row[1] for row in ours] == [1, 1, 1, 1, 2, 1, 1, 1, 1, 1]


def test_names_are_as_the_audit_shows_them(tmp_path):
    text = b"1 |A:2 Herb x:2 5:3 |B y |c z:0.5 | d 7\n" * 3
    form = VwFormat()
    names = form.parse(text, form.new_room()).names()
    assert {index: {name} for index, name in names.items()} == audited(text, tmp_path)[1][0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 |a x\nx |a x\n", "line 2, column 1: the label is not a number, got 'x"),
        ("nan |a x\n", "line 1, column 1: the label is not a number"),
        ("1 x |a x\n", "line 1, column 3: the importance after the label is not a number, got 'x'"),
        (
            "1 2 3 |a x\n",
            "line 1, .*initial prediction, which is not learned from here: leave it out, or .*ignore-base",
        ),
        ("1 2 3 4 |a x\n", "line 1, column 7: before the bar there are at most"),
        ("1 2\n", "line 1, column 4: expected a bar"),
        ("1\t|a x\n", "line 1, column 2: before the bar words are separated by blanks"),
        ("1 |a x:\n", "line 1, column 8: the feature's value is not a number, got the end of the line"),
        ("1 |a x:y\n", "line 1, column 8: the feature's value is not a number, got 'y'"),
        ("1 |a x:1:2\n", "line 1, column 8: the feature's value is not a number, got '1:2'"),
        ("1 |a x:1_0\n", "line 1, column 8: the feature's value is not a number, got '1_0'"),
        ("1 |a:x y\n", "line 1, column 6: the scale of a namespace is not a number, got 'x'"),
        ("1 |:2 y\n", "line 1, column 4: a namespace has a name before its scale"),
        ("1 |a x\ry\n", "line 1, column 7: a carriage return may stand only at the end of a line"),
        ("1 1:2 2:3\n", "line 1, column 3: the importance .*; this looks like LIBSVM text"),
        ("a,b\n1,2\n", "line 1, column 1: .*; this looks like CSV"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    (tmp_path / "data.vw").write_text(text, newline="")
    with pytest.raises(ValueError, match=message) as caught:
        list(open_rows(tmp_path / "data.vw"))
    assert str(caught.value).startswith(str(tmp_path / "data.vw"))


def test_a_very_long_line():
    names = [f"f{i}" for i in range(1_000_000)]
    text = b"1 |a " + " ".join(names).encode() + b"\n"
    assert parsed(text, bits=24) == read(text, bits=24)


# ------------------------------------------------------------------------------------------------------------ fuzzed

PIECES = [
    *(b"1", b"-1", b"0.5", b"1e-3", b"+.5", b"1e30", b"0.1234567890123456789", b"nan", b"x", b"yy", b"a", b"bcd", b"7"),
    *(
        b"|",
        b"|",
        b"|a ",
        b"|b ",
        b"|a:2 ",
        b"|cc ",
        b" ",
        b" ",
        b" ",
        b"\t",
        b":",
        b":",
        b":1 ",
        b"'tag",
        b"\n",
        b"\r\n",
    ),
    *(b"\r", b"\0", b"\xff", b"#", b"_", b"\x01", b"\xc3\xa9", b"123456789", b"a_rather_long_name", b"1 |a x y:2\n"),
]


def fuzzed_text(rng):
    """Lines that are valid, valid but for one byte, or anything."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.bytes(rng.integers(1, 40))
    if kind == 1:
        return b"".join(PIECES[i] for i in rng.integers(0, len(PIECES), rng.integers(1, 25)))
    text = bytearray(valid_line(rng))
    if kind == 2:
        text[rng.integers(len(text))] = rng.integers(256)
    return bytes(text)


def valid_line(rng):
    def word():
        return ("", "x", "age", "job=clerk", "17", "0", "é", "C8117", "longer-name-12")[rng.integers(9)]

    def value():
        return ("", ":1", ":0", ":-2.5", ":1e-3", ":.25", ":12345678901234567890", ":1e-30")[rng.integers(8)]

    head = ("", "1 ", "-1 2 ", "0.5 3e-1 'tag", "tag", "1 'x ")[rng.integers(6)]
    spaces = []
    for _ in range(rng.integers(1, 4)):
        name = ("", "a", "b", "ab", "b:2", "12", "a:1e-40")[rng.integers(7)]
        features = [word() + value() for _ in range(rng.integers(0, 5))]
        spaces.append(" ".join([f"|{name}", *features]))
    return (head + " ".join(spaces) + ("\n", "\r\n")[rng.integers(2)]).encode()


def assert_read_alike(text, **options):
    letters = [spec.encode() for spec in options.get("interactions", ())]
    others = {name: value for name, value in options.items() if name != "interactions"}
    try:
        expected = read(text, pairs=[(pair[:1], pair[1:]) for pair in letters], **others)
    except Refused:
        with pytest.raises(Mistake):
            parsed(text, **options)
        return
    ours = parsed(text, **options)
    assert len(ours) == len(expected)
    for (y, weight, row), (label, importance, features) in zip(ours, expected, strict=True):
        np.testing.assert_array_equal([y, weight], [label, importance])
        assert row.keys() == features.keys()
        np.testing.assert_allclose([row[i] for i in features], list(features.values()), rtol=1e-12, atol=0)


def test_fuzzed_lines_are_read_as_a_slow_reader_does():
    """``STEELYARD_FUZZED=1000000 pytest -o faulthandler_timeout=0 tests/test_vw.py -k fuzzed`` tries a million."""
    rng = np.random.default_rng(int(os.environ.get("STEELYARD_SEED", "0")))
    choices = [{}, {"hash_all": True}, {"ignore_base": True, "bits": 5}, {"interactions": ["ab", "aa"], "bits": 22}]
    for i in range(FUZZED):
        assert_read_alike(fuzzed_text(rng), **choices[i % 4])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))
def test_any_text_is_read_as_a_slow_reader_does(text):
    assert_read_alike(text)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_generated_lines_have_vws_indices(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    text = b"".join(valid_line(rng) for _ in range(200))
    for token in (b"1e-40", b"1e-30", b"12345678901234567890"):  # beyond single precision, once multiplied
        text = text.replace(token, b"1.25")
    rows, _ = audited(text, tmp_path_factory.mktemp("vw"), "-q ab -q bb")
    assert_same_rows(parsed(text, interactions=["ab", "bb"]), rows)


# ------------------------------------------------------------------------------------------------------- predictions


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("name", "loss"), [("0001.dat.xz", "squared"), ("0002.dat.xz", "squared"), ("0001.dat.xz", "logistic")]
)
def test_predictions_are_vws(tmp_path, name, loss, constant):
    """``--invariant`` is IWA; VW's squared loss is (p - y)^2, ours half of it, so its rate counts twice."""
    pytest.importorskip("vowpalwabbit")
    text, rate = content_of(name), 0.25
    if loss == "logistic":
        text = b"".join(b"-" + b"1" + line[1:] if line.startswith(b"0") else line for line in text.splitlines(True))
    (tmp_path / "data.vw").write_bytes(text)
    options = f"-d data.vw --invariant -l {rate} --power_t 0 --initial_t 0 --loss_function {loss} -r raw"
    run_vw(options + ("" if constant else " --noconstant") + " --min_prediction -1000 --max_prediction 1000", tmp_path)
    theirs = np.array([float(line.split()[0]) for line in (tmp_path / "raw").read_text().splitlines()])
    eta0 = 2.0 * rate if loss == "squared" else rate
    learner = Learner(
        loss, eta0=eta0, schedule="constant", metric="scalar", center="trajectory", fit_intercept=constant
    )
    ours = [learner.learn(X, y, w).prediction for X, y, w in open_rows(tmp_path / "data.vw")]
    np.testing.assert_allclose(np.concatenate(ours), theirs, atol=1e-4)


@pytest.mark.parametrize("spec", ["::", ":::", "a:", ":a"])
def test_namespaces_that_no_letter_can_name_meet_none(tmp_path, spec):
    text = b"1 |a x |\xc3\xa9 y:-1 |b z\n1 |\x7fa x |a y\n-1 |\xc3\xa9 y |\xc3\xa8 z\n"
    assert_same_rows(parsed(text, interactions=spec), audited(text, tmp_path, f"--interactions {spec}")[0])


@pytest.mark.parametrize("hash_all", [False, True])
def test_names_of_every_length_at_every_place(hash_all):
    """Short names are hashed sixteen at a time, and where names end is found for 4096 bytes at once: lengths around
    eight and sixteen bytes, numbers of names around 16 and 64, and lines around the end of such a window."""
    rng = np.random.default_rng(0)
    letters = np.frombuffer(b"abyzAZ0189_-=.\xc3\xa9\xff/\\'\"", np.uint8)
    lines = []
    for size in [*range(1, 40), 63, 64, 65, 130, 1500]:
        names = [
            rng.choice(letters, rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 14, 15, 16, 17, 33])).tobytes() for _ in range(size)
        ]
        spaces = [b"|a ", b"|b ", b"|ab ", b"|7 ", b"|77 ", b"| ", b"|c:0.5 ", b"|\xff "]
        words = [
            (spaces[rng.integers(len(spaces))] if rng.random() < 0.2 else b"")
            + name
            + (b":%.3g" % rng.normal() if rng.random() < 0.2 else b"")
            for name in names
        ]
        lines.append(b"1 | " + b" ".join(words) + b"\n")
    for start in range(0, len(lines), 7):
        for text in (b"".join(lines[start:]), b"".join(lines[start : start + 3]).rstrip(b"\n")):
            ours = parsed(text, bits=30, hash_all=hash_all)
            theirs = read(text, bits=30, hash_all=hash_all)
            assert len(ours) == len(theirs)
            for mine, other in zip(ours, theirs, strict=True):
                assert mine[2] == pytest.approx(other[2], rel=1e-12)


def test_names_are_noted_once_however_their_indices_collide():
    """Two names whose indices agree in their low bits came again and again, and left no room for others."""
    form = VwFormat()
    indices = {}
    for i in range(5000):
        row = parsed(f"1 |a f{i}\n".encode())[0][2]
        indices.setdefault(next(iter(row)) & 0xFFFF, []).append(f"f{i}")
    first, second = next(each for each in indices.values() if len(each) == 2)
    part = form.parse(f"1 |a {first} {second}\n".encode() * 9000 + b"1 |a late\n", form.new_room())
    assert sorted(part.names().values()) == sorted([f"a^{first}", f"a^{second}", "a^late"])
