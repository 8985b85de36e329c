"""Lines that are right, wrong in one byte, or anything, against slow readers written apart.

``STEELYARD_FUZZED=1000000 pytest -o faulthandler_timeout=0 tests/test_fuzz.py`` tries a million lines of each format;
``STEELYARD_SEED`` draws others. Vowpal Wabbit's text has a test like these in ``tests/test_vw.py``.
"""

from __future__ import annotations

import itertools
import os
import re

import numpy as np
import pytest

from naive_text import read_csv, read_json
from steelyard.data.jsonl import JsonFormat
from steelyard.data.opening import open as open_rows
from test_text import slow_line

FUZZED = int(os.environ.get("STEELYARD_FUZZED", "6000"))
SEED = int(os.environ.get("STEELYARD_SEED", "0"))
LINES = 60  # of one file
BITS = 14

CSV_NAMES = ["n", "t", "m", "u=v", "y", "w", "z"]
CSV_ROLES = ["number", "text", "number", "text", "label", "weight", "drop"]
JSON_ROLES = {"n": "number", "t": "text", "a.b": "number", "a.c": "text", "y": "label", "w": "weight"}
NUMBERS = (
    "1",
    "-2.5",
    "0",
    "",
    "1e-3",
    " 7 ",
    "+.5",
    "5.",
    "true",
    "FALSE",
    "0.1234567890123456789",
    "1e300",
    "12",
    "3",
)
WRONG = (
    "nan",
    "inf",
    "1e999",
    "x",
    "1_0",
    "99999999999999999",
    "9007199254740993",
    "0x1",
    "1 2",
    "\t1",
    "é",
    "--1",
    ".",
)
TEXTS = ("a", "b c", "", "é", "long-text-of-many-letters", "7", "true", "a=b", " ", "-", "d'e", "\t")
PIECES = (
    b",",
    b'"',
    b'""',
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\xff",
    b"_",
    b" ",
    b":",
    b"{",
    b"}",
    b"[",
    b"\\",
    b"#",
    b"1",
)


def one_of(rng, choices):
    return choices[rng.integers(len(choices))]


def with_mistakes(rng, line):
    """Most lines as they are; some with a byte changed, a piece put in, a part cut out."""
    kind, line = rng.integers(12), bytearray(line)
    at = int(rng.integers(len(line) + 1))
    if kind == 0 and line:
        line[at % len(line)] = rng.integers(256)
    elif kind == 1:
        line[at:at] = one_of(rng, PIECES)
    elif kind == 2:
        del line[at : at + int(rng.integers(4))]
    elif kind == 3 and rng.integers(6) == 0:
        line = bytearray(rng.bytes(rng.integers(1, 30)) + b"\n")
    return bytes(line)


def number(rng):
    return one_of(rng, WRONG) if rng.integers(40) == 0 else one_of(rng, NUMBERS)


def csv_line(rng):
    cells = []
    for role in CSV_ROLES:
        cell = one_of(rng, TEXTS) if role in ("text", "drop") else number(rng) if rng.integers(3) else "1"
        quoted = rng.integers(4) == 0
        if quoted and role == "text" and rng.integers(3) == 0:
            cell += one_of(rng, ('""', ",", "\n", "\r\n", '"",""'))
        cells.append(f'"{cell}"' if quoted else cell)
    return (",".join(cells) + one_of(rng, ("\n", "\n", "\r\n", "\n\n"))).encode()


def json_line(rng):
    def cell(role):
        if role == "text" or rng.integers(30) == 0:
            value = one_of(rng, ('"a"', '"b c"', '""', "null", '"é"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"'))
            return (
                one_of(rng, ("1", "2.50", "1e3", "true", "-0", '"x\\"y"', '"\\n"')) if rng.integers(8) == 0 else value
            )
        some = ("1", "-2.5", "0", "1e-3", "12", "true", "null", "1E5", "0.1234567890123456789", "1e300")
        return (
            one_of(rng, ("NaN", "1e999", "99999999999999999", "01", "[1]"))
            if not rng.integers(40)
            else one_of(rng, some)
        )

    weight = "1" if rng.integers(3) else "2.5"
    inner = ", ".join(f'"{name}": {cell(role)}' for name, role in (("b", "number"), ("c", "text")) if rng.integers(6))
    pairs = [f'"n":{cell("number")}', f'"t" : {cell("text")}', f'"a":{{{inner}}}', f'"y":{cell("label")}']
    pairs.append(f'"w":{weight}')
    rng.shuffle(pairs)
    kept = [pair for pair in pairs if rng.integers(15)]
    return ("{" + ",".join(kept) + "}" + one_of(rng, ("\n", "\r\n", " \n", "\n\n"))).encode()


def libsvm_line(rng):
    pairs = []
    for _ in range(rng.integers(0, 7)):
        index = one_of(rng, (str(rng.integers(0, 30)), "2147483648", "007", "x", "-1")[: 3 if rng.integers(20) else 5])
        value = number(rng).strip() if rng.integers(3) else "0.25"
        pairs.append(f"{index}:{value}" if value not in ("true", "FALSE", "") else "qid:3")
    label = one_of(rng, ("1", "-1", "+2.5", "0.5", "", "# all", "1 qid:7"))
    end = one_of(rng, ("\n", "\n", "\r\n", " \n", " # 3:x\n", "\n\n"))
    return (" ".join([label, *pairs]) + end).encode()


def found_rows(source):
    """(label, weight, {index: value}) of every row."""
    rows = []
    for block, y, weight, _ in source.blocks():
        for r in range(y.size):
            row = slice(int(block.indptr[r]), int(block.indptr[r + 1]))
            indices = block.indices[row].tolist()
            assert all(a < b for a, b in itertools.pairwise(indices))
            rows.append((y[r], weight[r], dict(zip(indices, block.data[row].tolist(), strict=True))))
    return rows


def assert_read_alike(make, expected, refused, sizes):
    """Skipping leaves the same rows; without, the first that is refused is the one that is named."""
    for size in sizes:
        source = make("skip")
        source._stretch = size
        rows = found_rows(source)
        assert source.skipped.count == len(refused)
        assert len(rows) == len(expected)
        for (y, weight, row), (label, importance, features, *_) in zip(rows, expected, strict=True):
            np.testing.assert_array_equal([y, weight], [label, importance])
            assert row.keys() == features.keys()
            np.testing.assert_allclose([row[i] for i in features], list(features.values()), rtol=1e-15, atol=0)
        if expected and len(expected[0]) == 4:
            assert source.missing == sum(each[3] for each in expected)
    source = make("stop")
    if not refused:
        assert len(found_rows(source)) == len(expected)
        return
    with pytest.raises(ValueError, match=r", line \d+, column \d+: ") as caught:
        found_rows(source)
    line = int(re.search(r", line (\d+), column", str(caught.value))[1])
    assert refused[0][0] <= line <= refused[0][1], str(caught.value)


def some_files(make_line):
    rng = np.random.default_rng(SEED)
    for _ in range(max(FUZZED // LINES, 1)):
        sizes = (1 << 20,) if rng.integers(3) else (1 << 20, int(rng.integers(40, 400)))  # bytes of a stretch
        yield b"".join(with_mistakes(rng, make_line(rng)) for _ in range(LINES)), sizes


def test_fuzzed_csv_is_read_as_a_slow_reader_does(tmp_path):
    path, header = tmp_path / "rows.csv", ",".join(CSV_NAMES).encode() + b"\n"
    kinds = {n: r for n, r in zip(CSV_NAMES, CSV_ROLES, strict=True) if r in ("number", "text")}
    schema = {"format": "csv", "label": "y", "weight": "w", "columns": kinds, "drop": ["z"], "bits": BITS}
    for text, sizes in some_files(csv_line):
        path.write_bytes(header + text)
        rows, refused = read_csv(text, CSV_ROLES, [name.encode() for name in CSV_NAMES], BITS)
        refused = [(first + 1, last + 1) for first, last in refused]
        assert_read_alike(lambda way: open_rows(path, schema=schema, on_error=way), rows, refused, sizes)


def test_fuzzed_json_is_read_as_a_slow_reader_does(tmp_path):
    path = tmp_path / "rows.jsonl"
    kinds = {name: role for name, role in JSON_ROLES.items() if role in ("number", "text")}
    schema = {"format": "json", "label": "y", "weight": "w", "columns": kinds, "bits": BITS}
    for text, sizes in some_files(json_line):
        path.write_bytes(text)
        rows, refused = read_json(text, JSON_ROLES, BITS)
        assert_read_alike(lambda way: open_rows(path, schema=schema, on_error=way), rows, refused, sizes)


def test_fuzzed_libsvm_is_read_as_a_slow_reader_does(tmp_path):
    path = tmp_path / "rows.libsvm"
    for text, sizes in some_files(libsvm_line):
        path.write_bytes(text)
        rows, refused = [], []
        for line, content in enumerate(text.split(b"\n"), 1):
            try:
                found = slow_line(content)
            except ValueError:
                refused.append((line, line))
                continue
            if found is not None:
                rows.append((found[0], 1.0, found[2]))
        assert_read_alike(lambda way: open_rows(path, zero_based=True, on_error=way), rows, refused, sizes)


def flat_line(rng, label):
    """Objects without objects in them, which the compiled parser reads, and sometimes what it leaves to Python."""
    odd = (
        "1e999",
        "99999999999999999",
        "01",
        "[1]",
        '"\\ud800"',
        '"\\x"',
        "2.50",
        "-0",
        "1.",
        "tRue",
        "9007199254740993",
    )
    texts = ('"a"', '"b c"', '""', '"é"', '"\\u00e9\\ud83d\\ude00"', '"\\"\\/\\b\\n"', "17", "-5", "false", "null")
    numbers = ("1", "-2.5", "0", "-0.0", "1e-3", "true", "null", "1E5", "0.1234567890123456789", "12345678901234567e-3")

    def cell(some):
        return one_of(rng, odd) if rng.integers(100) == 0 else one_of(rng, some)

    label = texts if label == "text" else numbers
    pairs = [f'"n": {cell(numbers)}', f'"t" :{cell(texts)}', f'"é":{cell(texts)}', f'"y":{cell(label)}', '"w":2.5']
    pairs += [f'"z":{cell(texts)}']
    if rng.integers(2):
        rng.shuffle(pairs)
    kept = [pair for pair in pairs if rng.integers(25)] + ['"n":1'] * int(rng.integers(80) == 0)
    return (one_of(rng, ("{", " {\t")) + " , ".join(kept) + "}" + one_of(rng, ("\n", "\r\n", " \n", "\n\n"))).encode()


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("label", ["number", "text"])
def test_the_compiled_parser_of_json_agrees_with_python(words, label):
    kinds = {"n": "number", "t": "text", "é": "text"} if words else {"n": "number"}
    drop = ["z"] if words else ["z", "t", "é"]
    said = {"label_kind": label, "drop": drop, "columns": kinds, "bits": 6 if words else None}
    form = JsonFormat(label="y", weight="w", schema={"label": "y", "weight": "w", **said})
    rng, room, compiled = np.random.default_rng(SEED), form.new_room(), 0
    tries = max(FUZZED // 10, 1)
    for number in range(tries):
        text = b"".join(flat_line(rng, label) for _ in range(rng.integers(1, 6)))
        text = with_mistakes(rng, text) if number % 4 == 0 else text
        found = form._compiled(text, room)
        if found is None:
            continue
        compiled += 1
        expected = form._interpreted(text, room)
        for part in ("y", "weight", "indptr", "indices", "values", "lines"):
            ours, theirs = getattr(found, part), getattr(expected, part)
            assert ours.tobytes() == theirs.astype(ours.dtype).tobytes(), (text, part)
        for part in ("line_count", "size", "missing", "labels"):
            assert getattr(found, part) == getattr(expected, part), (text, part)
        assert found.names().items() <= expected.names().items(), text
    assert compiled > tries // 3


@pytest.mark.parametrize("columns", [1, 40, 3000])
def test_dense_objects_without_most_of_their_keys(columns):
    """What a row leaves out takes no bytes of text, and a number in the row all the same."""
    schema = {"label": "y", "columns": {f"a{i}": "number" for i in range(columns)}, "label_kind": "number"}
    form, rng = JsonFormat(label="y", drop=["d"], schema=schema), np.random.default_rng(SEED)
    room = form.new_room()
    for rows in (1, 7, 500):
        some = ["{}", '{"y":1}', f'{{"a{columns - 1}":12345678901234567.5,"y":0}}']
        text = "".join(one_of(rng, some) + "\n" for _ in range(rows)).encode()
        found, expected = form._compiled(text, room), form._interpreted(text, room)
        assert found is not None
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.indptr.tobytes() == expected.indptr.tobytes()
        assert (found.y.tobytes(), found.missing) == (expected.y.tobytes(), expected.missing)
    for text in (b'{"y":1,"d":"x\\', b'{"y":1,"d":' + b"7" * 5000 + b"}"):
        assert form._compiled(text, room) is None
    many = b'{"y":0}\n' * (1 + (1 << 27) // columns)
    if len(many) < 1 << 19:  # so many that memory for them is not asked for: it is Python's business
        assert form._compiled(many, room) is None
