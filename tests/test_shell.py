"""The shell as a user meets it: what is wrong is named, figures are those of scikit-learn, names are shown."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics

import steelyard
from steelyard.cli import main
from steelyard.data.naming import name_products

GOOD = "1 1:1 2:3\n-1 1:2\n" * 50
TABLE = "a,b,y\n1,2,0\n3,4,1\n"


def shell(*arguments, status=0):
    assert main([str(each) for each in arguments]) == status


WRONG = [  # name, content, options, what is told
    ("x.libsvm", TABLE, "", "line 1, column 1: .*got 'a,b,y'; this looks like CSV: say --format csv --label COLUMN"),
    ("x.csv", GOOD, "--label y", "no column 'y'.*this looks like LIBSVM text"),
    ("x.csv", "1 |a x\n-1 |a y\n", "--label y", "this looks like Vowpal Wabbit's format: say --format vw"),
    ("x.csv", "", "--label y", "x.csv has no rows"),
    ("x.csv", "a,b,y\n", "--label y", "x.csv has no rows"),
    ("x.csv", "\n\n", "--label y", "only empty lines"),
    ("x.csv", TABLE, "", "say which column holds the labels, with --label .*'a', 'b', 'y'"),
    ("x.csv", TABLE, "--label z", "there is no column 'z': there are 'a', 'b', 'y'"),
    ("x.csv", TABLE, "--label y --drop z", "there is no column 'z'"),
    ("x.csv", "a,a,y\n1,2,0\n", "--label y", "two columns are called 'a'"),
    ("x.csv", 'a,b,y\n1,"x,0\n2,z,1\n', "--label y", "line 2, column 3: the quotes of a cell do not end"),
    ("x.csv", "a,b,y\n1,2,0\n1,2\n", "--label y", "line 3, column 4: a row has 3 cells.*this one has 2"),
    ("x.csv", "a,y\n1,0\nNA,1\n", "--label y", "line 3, column 1: the column 'a' .*--text a .*got 'NA'$"),
    ("x.csv", "a,y\n1,0\nnan,1\n", "--label y", "line 3, column 1: in the column 'a' NaN"),
    ("x.csv", "a,y\n1,0\n2,inf\n", "--label y", "line 3, column 3: the label in the column 'y' must be a finite"),
    ("x.csv", "a,y,w\n1,0,1\n2,1,-1\n", "--label y --weight w", "line 3 has the weight -1: weights must be"),
    ("x.csv", "a,y,w\n1,0,1\n2,1,nan\n", "--label y --weight w", "line 3, column 5: the weight .*, got 'nan'"),
    ("x.csv", "a,y,w\n1,0,1\n2,1,\n", "--label y --weight w", "line 3, column 5: the weight.*is empty"),
    ("x.csv", b"a,y\n1,0\n2\0,1\n", "--label y", "line 3, column 2: there is a byte of zero"),
    ("x.csv", TABLE.encode("utf-16"), "--label y", "line 1.*UTF-16 text: save it as UTF-8"),
    ("x.csv", TABLE.replace("\n", "\r"), "--label y", r"lines must end in \\n or \\r\\n"),
    ("x.jsonl", '{"a":1,"y":0}\n{"a":1,"y":\n', "--label y", "line 2, column 12: a line must be one JSON object"),
    ("x.jsonl", '[{"a":1,"y":0}]\n', "--label y", "this looks like one array: write each of its objects as a line"),
    ("x.jsonl", '{"a":1,"a":2,"y":0}\n', "--label y", "line 1.*the key 'a' stands twice"),
    ("x.jsonl", '{"a":[1],"y":0}\n', "--label y", "line 1.*the key 'a' holds a list.*y\":0}'$"),
    ("x.jsonl", '{"a":"\\ud800","y":0}\n{"a":"b","y":1}\n', "--label y", "line 1.*column 'a'.*half of a character"),
    ("x.libsvm", "1 1:1\n-1 1:nan\n", "", "line 2, column 4, index 1 has the value nan"),
    ("x.libsvm", "1 1:1\n-1 99999999999:1\n", "", "largest index, in line 2, a mistake.*--bits"),
    ("x.libsvm", "1 1:1\nnan 1:2\n", "", "line 2 has the label nan"),
    ("x.libsvm", GOOD + "2 1:1\n", "--classes -1,1", "line 101 has the label 2: .*none of the classes"),
    ("x.libsvm", b"\xef\xbb\xbf1 x\n" + GOOD.encode(), "", "line 1, column 3: .*got 'x'"),
    ("x.libsvm", b"\xef\xbb\xbf1 1:nan\n" + GOOD.encode(), "", "line 1, column 3, index 1 has the value nan"),
    ("x.libsvm", b"\x01\xfe\x93,\x07;\n", "", "line 1, column 1.*this looks like a binary file"),
    ("x.libsvm", "1 " + " ".join(f"{i}:1" for i in range(1, 99_999)) + " x\n", "", r"line 1, column \d{6}: .*got 'x'"),
    ("x.libsvm", GOOD, "--label y", "read as libsvm, where --label .* means nothing"),
    ("x.libsvm", GOOD, "--hash-all", "read as libsvm, where --hash-all .* means nothing"),
    ("x.libsvm.gz", gzip.compress(GOOD.encode() * 9, mtime=0)[:60], "", "damaged or cut off"),
    ("x.libsvm.xz", lzma.compress(GOOD.encode() * 9)[:60], "", "damaged or cut off"),
    ("x.vw", "1 1 |a x\n-1 -2 |a y\n", "", "line 2 has the weight -2"),
    ("x.vw", "1 1 |a x\n1  1 0.5 |a x\n", "", "line 2, column 6: .*initial prediction.*--ignore-base.*got '0.5'"),
    ("x.csv", "a,y\n1,x\n2,z\n", "--label y --task regression", "labels that are text, 'x' for example"),
    ("x.csv", "a,y\n1,1\n2,0\n", "--label y --classes u,v", r"so classes must be, too, got \['u', 'v'\]"),
    ("x.csv", "a,y\n1,1.5\n2,0\n3,2\n", "--label y --task classification", "3 .*1.5 .*looks like a regression.*--task"),
    ("x.vw", "1 |a x\n-1 |a x:y\n", "", "line 2, column 9: the feature's value is not a number, got 'y'"),
    ("x.parquet", b"PAR1 nothing", "--label y", "x.parquet: it cannot be read as Parquet or Arrow"),
    ("x.arrow", b"nothing that is known", "--label y", "x.arrow: it cannot be read as Parquet or Arrow"),
]


@pytest.mark.parametrize("shuffle", [[], ["--no-shuffle"]])
@pytest.mark.parametrize(("name", "content", "options", "told"), WRONG, ids=range(len(WRONG)))
def test_wrong_input_is_named(tmp_path, capsys, name, content, options, told, shuffle):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    wrong_options = "means nothing" in told or "--classes u" in options or "--task regression" in options
    status = 2 if wrong_options else 1
    shell("learn", path, *options.split(), *shuffle, "--model", tmp_path / "m", status=status)
    out, message = capsys.readouterr()
    assert not out
    message = re.sub(
        r"steelyard: compiling for this machine.*\n", "", message
    )  # where the kernel was used by nobody yet
    assert message.startswith(f"steelyard: {tmp_path}") or "not enough memory" in message
    assert message.count("\n") == 1
    assert re.search(told, message), message
    assert {each.name for each in tmp_path.iterdir()} == {name}


def test_places_that_are_not_there(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "x.libsvm").write_text(GOOD)
    for words, told in (
        ([tmp_path / "absent"], "absent: No such file"),
        ([tmp_path / "absent*"], "no file matches the pattern"),
        ([tmp_path / "folder"], "is a folder"),
        ([tmp_path / "folder", "--label", "y"], "is a folder"),
        ([tmp_path / "x.libsvm", "--weights", tmp_path / "absent"], "absent: No such file"),
    ):
        shell("learn", *words, status=1)
        assert told in capsys.readouterr().err
    shell("learn", "-", "--weights", "-", status=2)


WRONG_OPTIONS = [  # for the file x with labels -1 and 1, what is told
    ("learn x --classes 1", "at least two classes, got ['1']"),
    ("learn x --classes yes,no", "labels that are numbers, so classes must be, too"),
    ("learn x --seed 4294967296", "--seed must be less than"),
    ("learn x --bits 99", "^steelyard: --bits must be a whole number"),
    ("learn x -q a", "^steelyard: --interactions: an interaction is two"),
    ("learn x --weight w", "no weight 'w'"),
    ("learn x --loss poisson", "the poisson loss takes .* cannot classify"),
    ("learn x --task regression --loss logistic", "use OnlineClassifier, or --task classification"),
    ("learn t.csv --label y --task regression", "has labels that are text"),
    ("learn x --weights x --on-error skip", "no row may be skipped"),
    ("learn x --metric full --center origin", "^steelyard: --metric full needs --center trajectory: with --center"),
    ("learn x --eta0 1 --radius 2", "^steelyard: --radius needs --metric scalar:"),
    ("learn x --l1 0.1", "^steelyard: --l1 0.1 needs a learning rate, --eta0 1.0 for example: --eta0 auto mixes"),
    ("learn x --eta0 1 --average --l2 1", "^steelyard: --average takes no --l1 and --l2:"),
    ("learn x --checkpoint /dev/full", "--checkpoint /dev/full must be a file"),
    ("learn x --checkpoint PIPE", "PIPE must be a file"),
    ("learn x --checkpoint FOLDER", "FOLDER is a folder"),
    ("learn x --checkpoint m", "m is a model, and not a checkpoint"),
    ("learn x --every 0", "--every must be at least 1"),
    ("evaluate m x --classes 1,2", "unrecognized arguments: --classes"),
    ("predict m x.vw --bits 12", "--bits 12 contradicts the model, which was learned with --bits 10: leave it out"),
    ("predict m x.vw -q ab -q cd", "--interactions ab cd contradicts .* with --interactions ab: "),
    ("evaluate m x.vw --hash-all", "--hash-all contradicts .* without --hash-all"),
    ("evaluate c t.csv --drop b", "--drop b contradicts .* with --drop c, from the column b among others"),
    ("evaluate c t.csv --text b", "--text b contradicts .* from numbers in the column b"),
    ("evaluate c t.csv --bits 18", "--bits 18 contradicts .* without --bits"),
    ("predict l x --zero-based", "--zero-based contradicts .* from indices that start at 1"),
]


@pytest.fixture(scope="module")
def options_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    (folder / "x").write_text(GOOD)
    (folder / "x.vw").write_text("1 |a x |b y\n-1 |a y\n" * 9)
    (folder / "t.csv").write_text("b,c,y\n" + "1,2,u\n3,4,v\n" * 9)
    (folder / "bad.vw").write_text("1 |a x:nan\n")
    (folder / "FOLDER").mkdir()
    os.mkfifo(folder / "PIPE")
    shell("learn", folder / "x", "--quiet", "--model", folder / "l")
    shell("learn", folder / "x.vw", "--quiet", "--bits", 10, "-q", "ab", "--model", folder / "m")
    shell("learn", folder / "t.csv", "--label", "y", "--drop", "c", "--quiet", "--model", folder / "c")
    return folder


@pytest.mark.parametrize(("words", "told"), WRONG_OPTIONS, ids=range(len(WRONG_OPTIONS)))
def test_wrong_options_are_named(options_folder, monkeypatch, capsys, words, told):
    monkeypatch.chdir(options_folder)
    if "unrecognized" in told:
        with pytest.raises(SystemExit, match="2"):
            main(words.split())
    else:
        shell(*words.split(), status=2)
    out, err = capsys.readouterr()
    assert not out
    assert re.search(told.replace("['1']", r"\['1'\]"), err), err


def test_a_label_that_the_model_does_not_know(options_folder, monkeypatch, capsys):
    monkeypatch.chdir(options_folder)
    (options_folder / "other.vw").write_text("7 |a x\n")
    shell("evaluate", "m", "other.vw", status=1)
    assert capsys.readouterr().err.endswith("the label 7: it is none of the classes -1, 1, which the model knows\n")


def test_the_same_options_as_the_model_has_change_nothing(options_folder, monkeypatch, capsys):
    monkeypatch.chdir(options_folder)
    shown = []
    for more in ([], ["--bits", "10", "-q", "ab", "--no-shuffle", "--format", "vw"]):
        shell("predict", "m", "x.vw", "--scores", *more)
        shell("evaluate", "m", "x.vw", "--json", *more)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    for words, value in (("predict c t.csv --drop c", "u"), ("predict m x.vw", 1.0)):
        shell(*words.split(), "--json")
        assert json.loads(capsys.readouterr().out.splitlines()[0]) == value


@pytest.mark.parametrize("name", ["/dev/full", "/dev/zero", "PIPE", "FOLDER"])
def test_a_model_is_read_from_files_only(options_folder, monkeypatch, capsys, name):
    monkeypatch.chdir(options_folder)
    for command in (["predict", name, "x"], ["evaluate", name, "x"], ["inspect", name]):
        shell(*command, status=1)
        assert re.match(rf"steelyard: {name} is a (folder|pipe or a device): name", capsys.readouterr().err)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("place", ["full", "gone", "closed"])
@pytest.mark.parametrize(
    "words", ["predict m x.vw", "learn x.vw", "inspect m --json", "evaluate m x.vw", "predict m x.vw bad.vw"]
)
def test_output_that_nobody_takes(options_folder, words, place):
    """One line, or silence, and never a traceback."""
    command = [sys.executable, "-m", "steelyard", *words.split()]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    if place == "gone":
        reader, writer = os.pipe()
        os.close(reader)
    if place == "closed":
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    with open("/dev/full" if place == "full" else os.devnull, "w") as file:
        output = writer if place == "gone" else file
        done = subprocess.run(
            command, cwd=options_folder, env=buffered, stdout=output, stderr=subprocess.PIPE, text=True
        )
    if place == "gone":
        os.close(writer)
    if "bad" in words and place != "closed":
        assert done.returncode == 1
        assert re.fullmatch("steelyard: .* has the value nan.*\n", done.stderr)
    elif place == "gone":
        assert (done.returncode, done.stderr) == (141, "")
    elif place == "full":
        assert (done.returncode, done.stderr) == (1, "steelyard: standard output: No space left on device\n")
    elif words.startswith("learn"):  # which has learned, whether anybody reads of it or not
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        assert done.stderr.startswith("steelyard: standard output is closed")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", ["--version", "learn --help"])
def test_help_that_finds_no_room(words):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "steelyard", *words.split()]
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(command, env=buffered, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "steelyard: standard output: No space left on device\n")


def test_standard_error_may_be_closed(options_folder):
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "steelyard", "learn", "x.vw", "--model", "new"]
    done = subprocess.run(command, cwd=options_folder, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    assert done.stdout
    assert (options_folder / "new").exists()


def test_a_stream_has_one_format_and_files_may_begin_with_a_mark(tmp_path, capsys):
    (tmp_path / "x.libsvm").write_text(GOOD)
    (tmp_path / "y.vw").write_bytes(b"\xef\xbb\xbf" + GOOD.replace(" 1:", " | 1:").encode())
    (tmp_path / "rows").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    shell("learn", tmp_path / "x.libsvm", tmp_path / "y.vw", tmp_path / "rows", status=1)
    told = capsys.readouterr().err
    assert re.search("several formats.*x.libsvm is libsvm, .*y.vw is vw, .*rows is of no known format.*--format", told)
    for name in ("parquet", "arrow"):
        shell("learn", "-", "--format", name, "--label", "y", status=1)
        assert "keep what comes in a file" in capsys.readouterr().err
    (tmp_path / "x.vw").write_text(GOOD.replace(" 1:", " | 1:"))
    for one, other in (("x.libsvm", "rows"), ("x.vw", "y.vw")):
        shell("learn", tmp_path / one, "--json")
        found = capsys.readouterr().out
        shell("learn", tmp_path / other, "--json")
        assert capsys.readouterr().out == found


@pytest.mark.parametrize(
    "words",
    [{"interactions": 5}, {"interactions": [5]}, {"interactions": b"ab"}, {"drop": 5}, {"text": 5}, {"path": 5}],
)
def test_words_are_words(words):
    with pytest.raises(ValueError, match=r"(interactions|columns|path) .* got .*(5|b'ab')"):
        steelyard.open(**{"path": "x.csv", "label": "y", **words})


def test_truth_values_are_numbers_among_classes_too(tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n1,True\n2,False\n")
    source = steelyard.open(tmp_path / "x.csv", label="y")
    for classes in ([True, False], ["False", "True"], [0, 1]):
        assert steelyard.OnlineClassifier().fit_stream(source, classes=classes).classes_.tolist() == [0.0, 1.0]


def test_weights_in_a_file_are_those_of_a_column(tmp_path):
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"x": draw.normal(size=99).round(3), "y": draw.integers(0, 2, 99), "w": draw.random(99)})
    frame.loc[7, "y"] = None  # a row without a label
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[["x", "y"]].to_csv(tmp_path / "b.csv", index=False)
    frame["w"].to_csv(tmp_path / "w", index=False, header=False)
    for name, words in (("a", ["--weight", "w"]), ("b", ["--weights", tmp_path / "w"])):
        more = ["--label", "y", "--no-shuffle", "--passes", 2, "--quiet", "--model", tmp_path / name]
        shell("learn", tmp_path / f"{name}.csv", *words, *more)
    a, b = (steelyard.Learner.load(tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(a.coef_, b.coef_)


@pytest.mark.parametrize("task", ["two classes", "three classes", "regression"])
def test_evaluate_has_scikit_learns_figures(tmp_path, capsys, task):
    draw = np.random.default_rng(1)
    X, w = draw.normal(size=(700, 3)).round(4), draw.integers(0, 4, 700)
    score = X @ [1.0, -2.0, 0.5] + draw.normal(size=700)
    y = {"two classes": score > 0.0, "three classes": np.digitize(score, [-1, 1]), "regression": score.round(4)}[task]
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.asarray(y, float), w=w)
    frame.to_csv(tmp_path / "x.csv", index=False)
    words = [tmp_path / "x.csv", "--label", "y", "--weight", "w"]
    classes = ["--task", "classification"] if task != "regression" else []
    shell("learn", *words, *classes, "--model", tmp_path / "m", "--json")
    learned = json.loads(capsys.readouterr().out)
    shell("evaluate", tmp_path / "m", *words, "--json")
    found = json.loads(capsys.readouterr().out)
    assert list(found) == list(learned)
    assert (found["examples"], found["weighted_examples"]) == (700, w.sum())
    shell("predict", tmp_path / "m", tmp_path / "x.csv")
    labels = np.array(capsys.readouterr().out.split(), float)
    if task == "regression":
        assert found["r2"] == pytest.approx(metrics.r2_score(y, labels, sample_weight=w), rel=1e-9)
        squared = metrics.mean_squared_error(y, labels, sample_weight=w)
        assert found["rmse"] == pytest.approx(np.sqrt(squared), rel=1e-9)
        assert found["average_loss"] == pytest.approx(squared / 2.0, rel=1e-9)  # ½ (p − y)²
        return
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, labels, sample_weight=w), rel=1e-12)
    shell("predict", tmp_path / "m", tmp_path / "x.csv", "--probabilities")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {len(line) for line in lines} == {1 if task == "two classes" else 3}
    p = np.array(lines, float)
    if task == "three classes":
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-8)
        return
    assert found["average_loss"] == pytest.approx(metrics.log_loss(y, p[:, 0], sample_weight=w), rel=1e-7)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, p[:, 0], sample_weight=w), rel=1e-6)
    assert sum(each["weight"] for each in found["calibration"]) == pytest.approx(w.sum())
    gaps = 0.0
    for each in found["calibration"]:
        inside = (p[:, 0] >= each["low"]) & ((p[:, 0] < each["high"]) | (each["high"] == 1.0))
        assert each["weight"] == pytest.approx(w[inside].sum())
        assert each["predicted"] == pytest.approx(np.average(p[inside, 0], weights=w[inside]), rel=1e-7)
        assert each["observed"] == pytest.approx(np.average(np.asarray(y, float)[inside], weights=w[inside]))
        gaps += w[inside].sum() * abs(each["predicted"] - each["observed"])
    assert found["calibration_error"] == pytest.approx(gaps / w.sum())


WITH_MISTAKES = {  # the rows 1, 3, 4 and 6 of seven are wrong
    "x.vw": (
        "1 |a q:z\n-1 |a y\n1 |a x:nan\n1 |a x:z\n1 |a x\n-1 -3 |a y\n-1 |a y\n",
        "line 1, column 8.*line 4.*line 3, feature a\\^x has the value nan",
    ),
    "x.libsvm": (
        "1 x\n-1 2:1\n1 1:nan\n1 :\n1 1:1\n-1 1:1e300\n-1 2:1\n",
        "line 1, column 3.*line 4.*line 3, column 3, index 1 has the value nan",
    ),
    "x.csv": (
        'a,b,y\n1,"2"3,1\n0,1,0\nnan,1,1\n1,1\n1,0,1\n0,inf,0\n0,1,0\n',
        "line 2, column 6.*line 4, column 1.*line 5",
    ),
    "x.jsonl": (
        '{"a":\n{"a":0,"b":1,"y":0}\n{"a":NaN,"y":1}\n[1]\n{"a":1,"y":1}\n{"a":0,"b":"x","y":0}\n'.replace('"x"', "[]")
        + '{"a":0,"b":1,"y":0}\n',
        "line 1, column 6.*line 3.*line 4",
    ),
    "x.parquet": (
        {"a": [np.nan, 0.0, np.inf, np.nan, 1.0, np.nan, 0.0], "b": [1.0] * 7, "y": [1, 0, 1, 1, 1, 0, 0]},
        "row 1, column 'a': NaN.*row 4.*row 6",
    ),
}


@pytest.mark.parametrize("name", WITH_MISTAKES)
def test_rows_that_are_left_out_are_counted_shown_and_have_their_line(tmp_path, capsys, name):
    text, told = WITH_MISTAKES[name]
    path, label = tmp_path / name, [] if name in ("x.vw", "x.libsvm") else ["--label", "y"]
    if isinstance(text, str):
        path.write_text(text)
    else:
        pl.DataFrame(text).write_parquet(path)
    for shuffle in ([], ["--no-shuffle", "--passes", 2]):
        shell("learn", path, *label, *shuffle, "--on-error", "skip", "--model", tmp_path / "m", "--json")
        found = json.loads(capsys.readouterr().out)
        assert (found["examples"], found["skipped"]) == (3, 4)
    shell("evaluate", tmp_path / "m", path, "--on-error", "skip")
    out, err = capsys.readouterr()
    assert re.search(r"examples +3\n", out)
    assert re.search(f"(?s)4 rows left out.*{told}", err)
    shell("predict", tmp_path / "m", path, "--on-error", "skip", "--quiet")
    out, err = capsys.readouterr()
    lines = out.split("\n")
    there = [bool(line) for line in lines]
    weightless = name == "x.vw"  # a weight that is wrong does not matter
    assert there == [False, True, False, False, True, weightless, True, False]
    assert lines[1] == lines[6] != lines[4]
    assert f"{3 if weightless else 4} rows left out" in err
    source = steelyard.open(path, label="y" if label else None, on_error="skip")
    model = steelyard.OnlineClassifier().fit_stream(source)
    assert source.skipped.count == 4
    np.testing.assert_array_equal(model.learner_.progress.weight, 3.0)
    shell("learn", path, *label, "--no-shuffle", status=1)
    assert re.search(told.split(".*")[0], capsys.readouterr().err)


def test_names_are_noted_in_every_format(tmp_path):
    frame = pd.DataFrame({"n": [1.0, 2.0, 0.5], "t": ["a", "b", ""], "y": [0, 1, 1]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_json(tmp_path / "x.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "x.parquet")
    found = []
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        source = steelyard.open(tmp_path / name, label="y")
        for _ in source:
            pass
        found.append(source.names)
    assert found[0] == found[1] == found[2]
    assert sorted(found[0].values()) == ["n", "t=a", "t=b"]


@pytest.mark.parametrize("specs", [["ab"], ["aa"], ["abc"], ["ba"], ["::"]])
def test_products_are_named(tmp_path, specs):
    (tmp_path / "x.vw").write_text("1 |a x y:2 |b z |c u\n")
    source = steelyard.open(tmp_path / "x.vw", interactions=specs, bits=22)
    (row,) = [X.indices.tolist() for X, _, _ in source]
    found = {**source.names, **name_products(row, source.names, source.schema())}
    assert set(found) == set(row)
    letters = {"ab": 2, "ba": 2, "aa": 3, "abc": 2, "::": 10}[specs[0]]
    assert sum("*" in name for name in found.values()) == letters


def test_products_of_columns_are_named(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("age,job=x,y\n1,a,0\n2,b=c,1\n3,a,1\n4,b=c,0\n")
    shell("learn", tmp_path / "x.csv", "--label", "y", "-q", "age*job=x", "--model", tmp_path / "m", "--quiet")
    shell("inspect", tmp_path / "m", "--json")
    names = {each["name"] for each in json.loads(capsys.readouterr().out)["coefficients"]}
    assert names == {"age", "job=x=a", "job=x=b=c", "age*job=x=a", "age*job=x=b=c"}


def test_bash_completes(capsys):
    shell("completion", "bash")
    script = capsys.readouterr().out

    def completed(*words):
        tell = 'COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _steelyard; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "-c", f"{script}\n{tell}", "bash", *words], capture_output=True, text=True, check=True
        )
        return set(done.stdout.split())

    assert completed("steelyard", "ev") == {"evaluate"}
    assert completed("steelyard", "learn", "x", "--inter") == {"--interactions"}
    assert {"csv", "vw", "parquet"} <= completed("steelyard", "learn", "x", "--format", "")
    assert "--probabilities" in completed("steelyard", "predict", "m", "--")


def test_figures_are_of_rows_that_were_not_learned_before(tmp_path, capsys):
    """A row of weight 3 is visited three times: the second time it is known."""
    random = np.random.default_rng(0)
    path = tmp_path / "coin.csv"
    rows = [f"u{i},3,{'ab'[random.integers(2)]}" for i in range(2000)]
    path.write_text("\n".join(["id,copies,y", *rows]) + "\n")
    shell("learn", path, "--label", "y", "--weight", "copies", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["examples"], found["weighted_examples"]) == (2000, 6000.0)
    assert found["average_loss"] == found["pass_losses"][0] > 0.68  # nobody knows a coin's next side
    assert 0.45 < found["accuracy"] < 0.55
    shell("learn", path, "--label", "y", "--weight", "copies")
    told = capsys.readouterr().out
    assert "loss, all visits" in told
    assert "certified: the average loss over all visits" in told


def test_classes_are_printed_with_all_their_digits_and_on_one_line(tmp_path, capsys):
    path, model = tmp_path / "rows", tmp_path / "m"
    path.write_text("7 1:1\n12345678901 1:-1\n12345678902 1:3\n" * 40)
    shell("learn", path, "--task", "classification", "--model", model, "--quiet")
    shell("predict", model, path)
    assert set(capsys.readouterr().out.split()) <= {"7", "12345678901", "12345678902"}
    many = np.array([2**62 + 1, 2**62 + 3])
    steelyard.OnlineClassifier(eta0=1.0).fit([[1.0], [-1.0]], many).save(model)
    path.write_text("0 1:1\n0 1:-1\n")
    shell("predict", model, path)
    assert capsys.readouterr().out.split() == [str(each) for each in many.tolist()]
    path.write_text('a,y\n1,"x\ny"\n2,"z"\n')
    shell("learn", path, "--format", "csv", "--label", "y", "--model", model, "--quiet")
    shell("predict", model, path, "--format", "csv")
    assert len(capsys.readouterr().out.splitlines()) == 2
    shell("inspect", model)
    assert r"x\ny, z" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["evaluate"], ["learn", "--help"], ["predict"]])
def test_a_terminal_that_does_not_know_a_character_is_no_mistake(tmp_path, words):
    path, model = tmp_path / "a.csv", tmp_path / "m"
    path.write_text("x,y\n1,é\n2,ü\n3,é\n")
    shell("learn", path, "--label", "y", "--model", model, "--quiet")
    arguments = words if "--help" in words else [*words, str(model), str(path)]
    told = subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert told.stdout
    assert not told.stderr


def test_rows_that_are_left_out_do_not_decide_what_columns_hold(tmp_path):
    lines = ["age,job,paid,copies", *(f"{20 + i},{'ab'[i % 2]},{i % 2},1" for i in range(20))]
    (tmp_path / "once.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "twice.csv").write_text("\n".join(lines + lines) + "\n")
    said = {"label": "paid", "weight": "copies"}
    with pytest.raises(ValueError, match=r"line 22, column 1: .* is this the header once more"):
        steelyard.open(tmp_path / "twice.csv", **said).whole()
    twice = steelyard.open(tmp_path / "twice.csv", on_error="skip", **said)
    assert twice.whole().y.size == 40
    assert twice.skipped.count == 1
    assert twice.schema()["columns"] == {"age": "number", "job": "text"}
    objects = [{"age": "abc", "paid": 0, "copies": -1}, *({"age": i, "paid": i % 2, "copies": 1} for i in range(9))]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in objects))
    source = steelyard.open(tmp_path / "a.jsonl", on_error="skip", **said)
    assert source.whole().y.size == 9
    assert source.schema()["columns"] == {"age": "number"}


def test_texts_of_parquet_that_are_no_texts_have_their_row(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    binary = pa.array([b"x", b"\xff\xfe", b"z"])
    table = pa.table({"a": pa.Array.from_buffers(pa.string(), 3, binary.buffers()), "y": [1, 0, 1]})
    pq.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b.parquet, row 2, column 'a': .* no UTF-8"):
        steelyard.open(tmp_path / "b.parquet", label="y").whole()
    source = steelyard.open(tmp_path / "b.parquet", label="y", on_error="skip")
    assert source.whole().y.tolist() == [1.0, 1.0]


def test_a_model_remembers_where_weights_stand(tmp_path, capsys):
    path = tmp_path / "rows"
    path.write_text("1:3 1:1\n-1:2 1:-1\n" * 5)
    shell("learn", path, status=1)
    assert "label:weight needs --weight label" in capsys.readouterr().err
    path.write_text("-1:2 1:-1\n1:3 1:1\n" * 5)
    shell("learn", path, status=1)
    assert "label:weight needs --weight label" in capsys.readouterr().err
    shell("learn", path, "--weight", "label", "--model", tmp_path / "m", "--json")
    learned = json.loads(capsys.readouterr().out)
    shell("evaluate", tmp_path / "m", path, "--json")
    assert json.loads(capsys.readouterr().out)["weighted_examples"] == learned["weighted_examples"] == 25.0
    shell("learn", tmp_path / "m", status=1)
    assert "this is a model or a checkpoint of Steelyard, and no data" in capsys.readouterr().err
    (tmp_path / "c").write_bytes(b"")
    shell("learn", path, "--weight", "label", "--checkpoint", tmp_path / "c", status=1)
    assert "remove it to start anew" in capsys.readouterr().err
    path.write_text("1 1:1 900:1\n-1 1:2\n")
    shell("evaluate", tmp_path / "m", path)
    assert "1 values of features beyond the 1 that the model has learned" in capsys.readouterr().err
