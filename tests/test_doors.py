"""Files → models: at the shell and in Python, through a cache, through checkpoints, with the same bits everywhere."""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import steelyard
from steelyard import OnlineClassifier, OnlineRegressor
from steelyard.cli import learn, main
from steelyard.data.cache import CacheSource, write_cache
from steelyard.data.text import STRETCH


def libsvm_text(rows, seed=0, columns=30, classes=(-1, 1)):
    draw = np.random.default_rng(seed)
    lines = []
    for _ in range(rows):
        places = np.sort(draw.choice(columns, 6, replace=False)) + 1
        values = draw.normal(size=6).round(3)
        label = classes[int(draw.integers(len(classes)))] if len(classes) > 1 else round(float(values.sum()), 3)
        lines.append(f"{label} " + " ".join(f"{i}:{v}" for i, v in zip(places, values, strict=True)))
    return "\n".join(lines) + "\n"


def vw_text(rows, seed=0):
    draw = random.Random(seed)
    lines = []
    for _ in range(rows):
        animal, food = draw.randrange(40), draw.randrange(40)
        label = 1 if (animal + food) % 2 else -1
        lines.append(
            f"{label} {draw.choice([1, 2, 0.5])} |A x{animal} |B y{food}:{draw.random():.3f} |C z{draw.randrange(99)}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture
def vw_file(tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text(vw_text(3000))
    return path


def shell(*arguments, status=0):
    assert main([str(each) for each in arguments]) == status


def same_state(one, other):
    for name, array in one.state._asdict().items():
        np.testing.assert_array_equal(array, getattr(other.state, name), err_msg=name)


# ------------------------------------------------------------------------------------------------------------ in Python


@pytest.mark.parametrize("eta0", ["auto", 0.5])
def test_a_stream_is_learned_as_blocks_are(tmp_path, eta0):
    path = tmp_path / "rows.libsvm"
    path.write_text(libsvm_text(500))
    streamed = OnlineClassifier(eta0=eta0).fit_stream(path)
    blocks = OnlineClassifier(eta0=eta0)
    for X, y, w in steelyard.open(path):
        blocks.partial_fit(X, y, classes=[-1.0, 1.0], sample_weight=w)
    same_state(streamed.learner_, blocks.learner_)
    assert streamed.progressive_loss_ == pytest.approx(blocks.progressive_loss_, rel=1e-12)
    assert streamed.classes_.tolist() == [-1.0, 1.0]
    assert streamed.n_features_in_ == 30


def test_a_stream_of_targets_and_of_several_passes(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text(libsvm_text(300, classes=(0,)))
    model = OnlineRegressor(eta0=0.5, passes=3).fit_stream(path)
    assert len(model.pass_losses_) == 3
    assert model.pass_losses_[2] < model.pass_losses_[0] == model.progressive_loss_


def test_a_later_label_is_refused_by_its_line(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text("1 1:1\n-1 1:2\n2 1:3\n")
    with pytest.raises(ValueError, match=r"rows.libsvm, line 3 has the label 2.*classes"):
        OnlineClassifier().fit_stream(path, classes=[-1, 1])
    model = OnlineClassifier()
    with pytest.raises(ValueError, match="balanced"):
        model.set_params(class_weight="balanced").fit_stream(path)
    assert not hasattr(model, "learner_")


def test_labels_that_are_text_come_as_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("size,kind\n1,cat\n2,dog\n3,cat\n")
    source = steelyard.open(path, label="kind")
    assert [y.tolist() for _, y, _ in source] == [["cat", "dog", "cat"]]
    model = OnlineClassifier().fit_stream(steelyard.open(path, label="kind"))
    assert model.classes_.tolist() == ["cat", "dog"]
    other = tmp_path / "other.csv"
    other.write_text("size\n1\n9\n")
    rows = steelyard.open(other, schema=model.schema_, optional_label=True)
    assert [model.predict(X).shape for X, _, _ in rows] == [(2,)]


# ------------------------------------------------------------------------------------------------------------ the cache


@pytest.mark.parametrize("eta0", ["auto", "0.5"])
def test_a_cache_gives_the_same_model(tmp_path, vw_file, eta0):
    cache = tmp_path / "rows.arrow"
    shell("convert", vw_file, "-q", "AB", "--bits", 12, "--output", cache)
    for name, file, more in (("a", vw_file, ["-q", "AB", "--bits", 12]), ("b", cache, [])):
        shell("learn", file, *more, "--eta0", eta0, "--no-shuffle", "--model", tmp_path / name)
    one, other = (steelyard.Learner.load(tmp_path / name) for name in "ab")
    same_state(one, other)
    assert one.notes == other.notes


TABLE = "n,t,y\n" + "".join(f"{i / 7:.3f},{'abc'[i % 3]},{i % 2}\n" for i in range(40))
TEXTS = {  # name: text, options of the reader
    "x.vw": (vw_text(60), ["-q", "AB", "--bits", 9, "--hash-all"]),
    "x.libsvm": (libsvm_text(60), []),
    "z.libsvm": (libsvm_text(60).replace(" 1:", " 0:"), ["--bits", 4]),
    "x.csv": (TABLE, ["--label", "y"]),
    "d.csv": (TABLE, ["--label", "y", "--drop", "t"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_models_take_a_text_and_its_cache_alike(tmp_path, capsys, name):
    text, options = TEXTS[name]
    files = [tmp_path / name, tmp_path / "cache.arrow"]
    files[0].write_text(text)
    shell("convert", files[0], *options, "--output", files[1])
    told = set()
    for file, more in zip(files, (options, []), strict=True):
        shell("learn", file, *more, "--model", tmp_path / "m", "--quiet")
        capsys.readouterr()
        for other in files:
            shell("predict", tmp_path / "m", other, "--scores")
            shell("evaluate", tmp_path / "m", other)
            told.add(capsys.readouterr().out)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("x.vw", ["-q", "AB", "--bits", 9], "with hash_all False, .*learned with True: say --hash-all"),
        ("x.vw", ["-q", "AC", "--bits", 9, "--hash-all"], r"interactions \['AC'\], .*learned with \['AB'\]"),
        ("x.vw", ["-q", "AB", "--hash-all"], "bits 18, .* with 9"),
        ("x.libsvm", [], "made of libsvm, but the model was learned from vw"),
        ("x.csv", ["--label", "y"], "made of csv, but the model was learned from vw"),
    ],
)
def test_a_cache_of_other_features_is_refused(tmp_path, capsys, name, options, told):
    text, learned = TEXTS["x.vw"]
    (tmp_path / "x.vw").write_text(text)
    shell("learn", tmp_path / "x.vw", *learned, "--model", tmp_path / "m", "--quiet")
    (tmp_path / name).write_text(TEXTS[name][0])
    shell("convert", tmp_path / name, *options, "--output", tmp_path / "cache.arrow")
    shell("predict", tmp_path / "m", tmp_path / "cache.arrow", status=1)
    assert re.search(told, capsys.readouterr().err)
    if name != "x.vw":
        shell("predict", tmp_path / "m", tmp_path / name, status=1)
        assert "have other names" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.vw", "1 1 |a x\n1 -1 |a y\n", "x.vw, line 2 has the weight -1"),
        ("x.vw", "1 1 |a x\n1 nan |a y\n", "x.vw, line 2 has the weight nan"),
        ("x.vw", "1 |a x\n1 |a y:nan\n", "x.vw, line 2, feature a^y has the value nan"),
        ("x.libsvm", "1 1:1\nnan 1:1\n", "x.libsvm, line 2 has the label nan: it is not finite"),
    ],
)
def test_a_cache_has_no_row_that_cannot_be_learned(tmp_path, capsys, name, text, told):
    (tmp_path / name).write_text(text)
    shell("convert", tmp_path / name, "--output", tmp_path / "x.arrow", status=1)
    assert told in capsys.readouterr().err
    shell("convert", tmp_path / name, "--output", tmp_path / "x.arrow", "--on-error", "skip")
    out, err = capsys.readouterr()
    assert out.startswith("1 rows")
    assert told in err
    shell("convert", tmp_path / name, "--output", tmp_path / "x.arrow", "--on-error", "skip", "--no-shuffle", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["examples"], found["skipped"]) == (1, 1)
    assert found["bytes"] == (tmp_path / "x.arrow").stat().st_size


def test_a_file_that_is_no_cache_is_not_written_over(tmp_path, capsys, vw_file):
    table, cache = tmp_path / "table.arrow", tmp_path / "cache.arrow"
    pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}).to_feather(table)
    before = table.read_bytes()
    shell("convert", vw_file, "--output", table, status=2)
    assert "is not what this command writes: it would be lost" in capsys.readouterr().err
    assert table.read_bytes() == before
    for _ in range(2):
        shell("convert", table, "--label", "y", "--output", cache)
    capsys.readouterr()
    shell("convert", tmp_path / "c*.arrow", "--output", cache, status=2)
    assert "is among the files that are read" in capsys.readouterr().err


def test_a_cache_of_dense_rows_and_of_text_labels(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,kind,w\n1,2,x,1\n3,,y,2\n5,6,x,0.5\n")
    source = steelyard.open(path, label="kind", weight="w")
    write_cache(source, tmp_path / "rows.arrow")
    cached = steelyard.open(tmp_path / "rows.arrow")
    for (X, y, w), (X2, y2, w2) in zip(steelyard.open(path, label="kind", weight="w"), cached, strict=True):
        np.testing.assert_array_equal(X.toarray(), X2.toarray())
        assert y.tolist() == y2.tolist()
        assert w.tolist() == w2.tolist()


def test_a_damaged_cache_is_refused_or_the_same(tmp_path, vw_file):
    cache = tmp_path / "rows.arrow"
    write_cache(steelyard.open(vw_file, bits=10), cache)
    whole = cache.read_bytes()
    draw = random.Random(1)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        cache.write_bytes(damaged[: draw.choice([len(damaged), draw.randrange(len(damaged))])])
        with suppress(ValueError, OSError):  # refused; what must not happen is a crash, or an error of another kind
            OnlineClassifier(eta0=0.5).fit_stream(steelyard.open(cache, format="arrow"))


def test_what_is_wrong_with_a_cache_is_said_of_it(tmp_path, vw_file, capsys):
    """Whatever the damage, also in what stands at the end of the file, and in heads of blocks."""
    cache = tmp_path / "rows.arrow"
    write_cache(steelyard.open(vw_file, bits=10), cache)
    whole = cache.read_bytes()
    for word in (b'"labels_may_lack"', b'"columns"', b'"schema"', b'"names"', b'"missing"', b'"rows"'):
        assert word in whole
        cache.write_bytes(whole.replace(word, b'"x' + word[2:]))
        shell("learn", cache, status=1)
        assert f"{cache} is a damaged cache" in capsys.readouterr().err
    draw, told = random.Random(2), 0
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(4):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        cache.write_bytes(damaged)
        with suppress(ValueError):
            list(CacheSource(cache).blocks())
            continue
        told += 1
        with pytest.raises(ValueError, match=f"^{re.escape(str(cache))} is "):
            list(CacheSource(cache).blocks())
    assert told > 10


def test_a_cache_is_no_place_for_other_options(tmp_path, vw_file, capsys):
    cache = tmp_path / "rows.arrow"
    shell("convert", vw_file, "--bits", 12, "--output", cache)
    shell("learn", cache, "--bits", 14, status=1)
    assert "made with bits 12" in capsys.readouterr().err
    shell("convert", vw_file, "--output", tmp_path / "rows.bin", status=2)
    shell("convert", vw_file, "--output", vw_file, status=2)
    assert vw_file.read_text() == vw_text(3000)


# ------------------------------------------------------------------------------------------------------------ the shell


def test_learn_evaluate_predict_inspect(tmp_path, vw_file, capsys):
    model = tmp_path / "m"
    shell("learn", vw_file, "-q", "AB", "--model", model, "--json")
    learned = json.loads(capsys.readouterr().out)
    shell("evaluate", model, vw_file, "--json")
    evaluated = json.loads(capsys.readouterr().out)
    assert learned["examples"] == evaluated["examples"] == 3000
    assert learned["weighted_examples"] == evaluated["weighted_examples"]
    assert list(evaluated) == list(learned)
    assert evaluated["average_loss"] < learned["average_loss"] < np.log(2.0)
    shell("predict", model, vw_file, "--probabilities")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3000
    labels = np.array([line.split()[0] == "1" for line in vw_text(3000).splitlines()])
    weight = np.array([float(line.split()[1]) for line in vw_text(3000).splitlines()])
    right = (np.array(lines, dtype=float) > 0.5) == labels
    assert evaluated["accuracy"] == pytest.approx(weight @ right / weight.sum())
    shell("inspect", model, "--json", "--top", 3)
    found = json.loads(capsys.readouterr().out)
    assert found["visits"] >= 3000  # a row of weight 2 is visited twice
    assert len(found["coefficients"]) == 3
    assert all("^" in each["name"] for each in found["coefficients"] if each["name"])
    shell("inspect", model)
    assert "certificate" in capsys.readouterr().out


def test_exit_status(tmp_path, capsys):
    path = tmp_path / "rows.libsvm"
    path.write_text("1 1:1\n-1 x\n")
    shell("learn", path, status=1)
    assert "rows.libsvm, line 2, column 4" in capsys.readouterr().err
    shell("learn", path, "--bits", 99, status=2)
    with pytest.raises(SystemExit) as stopped:
        main(["learn"])
    assert stopped.value.code == 2
    path.write_text("a,b\n1,2\n")
    shell("learn", path, status=1)
    assert "--format csv --label" in capsys.readouterr().err


def test_skipped_rows_are_counted(tmp_path, capsys):
    path = tmp_path / "rows.libsvm"
    path.write_text("1 1:1\n-1 x\n-1 1:2\n1 1:nan\n")
    shell("learn", path, "--on-error", "skip", "--no-shuffle", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["examples"], found["skipped"]) == (2, 2)


def test_the_completion_is_a_script(capsys):
    for name in ("bash", "zsh", "fish"):
        shell("completion", name)
        script = capsys.readouterr().out
        assert "learn" in script
        assert "interactions" in script
    shell("completion", "bash")
    subprocess.run(["bash", "-n"], input=capsys.readouterr().out, text=True, check=True)


# ---------------------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("options", [["--no-shuffle"], ["--passes", "2"], ["--no-shuffle", "--eta0", "0.5"]])
@pytest.mark.parametrize("every", [1, 700, 10**9])
def test_checkpoints_change_no_bit(tmp_path, vw_file, options, every):
    if every == 1:
        vw_file.write_text(vw_text(40))
    common = ["learn", vw_file, "--bits", "10", *options]
    shell(*common, "--model", tmp_path / "plain")
    shell(*common, "--model", tmp_path / "kept", "--checkpoint", tmp_path / "c", "--every", every)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "kept").read_bytes()
    (tmp_path / "kept").unlink()
    shell(*common, "--model", tmp_path / "kept", "--checkpoint", tmp_path / "c", "--every", every)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "kept").read_bytes()


def test_another_command_does_not_go_on(tmp_path, vw_file, capsys):
    shell("learn", vw_file, "--no-shuffle", "--bits", "10", "--checkpoint", tmp_path / "c")
    shell("learn", vw_file, "--no-shuffle", "--bits", "11", "--checkpoint", tmp_path / "c", status=2)
    told = "was written with --bits 10, and now it is --bits 11: give the same command"
    assert told in capsys.readouterr().err
    shell("learn", vw_file, "--bits", "10", "--checkpoint", tmp_path / "c", status=2)
    assert "was written with --no-shuffle, and now it is no --no-shuffle" in capsys.readouterr().err
    whole = (tmp_path / "c").read_bytes()
    for part, damaged in (
        ("goal", None),
        ("position", [0, 5]),
        ("position", [0, -5, [0] * 5, None]),
        ("position", [0, 5, [0] * 4, None]),
        ("report", {"scores": []}),
    ):
        (tmp_path / "c").write_bytes(whole)
        old = steelyard.Learner.load(tmp_path / "c")
        old.notes["checkpoint"][part] = damaged
        old.save(tmp_path / "c")
        shell("learn", vw_file, "--no-shuffle", "--bits", "10", "--checkpoint", tmp_path / "c", status=2)
        assert "was written by another version" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--no-shuffle"], ["--passes", "2"]])
def test_a_run_goes_on_with_the_same_rows_only(tmp_path, monkeypatch, capsys, options):
    path, kept, lines = tmp_path / "rows.vw.gz", tmp_path / "c", vw_text(300).splitlines(keepends=True)
    command = ["learn", path, "--bits", "10", *options, "--checkpoint", kept, "--every", "100"]

    def write(rows):
        with gzip.open(path, "wt") as file:
            file.writelines(rows)

    write(lines)
    shell("learn", path, "--bits", "10", *options, "--quiet", "--model", tmp_path / "plain")
    whole, times = learn._Keeper.keep, []

    def keep(keeper, finished=None):
        whole(keeper, finished)
        times.append(finished)
        if len(times) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(learn._Keeper, "keep", keep)
    shell(*command, status=130)
    said = re.search(
        r"interrupted; (\d+) rows of pass 1 are saved in .*c; the same command goes on", capsys.readouterr().err
    )
    assert said
    assert int(said[1]) >= 200
    for others, told in (
        (lines[:150], r"has 150 rows, and \d+ of its rows were learned before|are not those that were learned"),
        (lines[1:] + lines[:1], "are not those that were learned before"),
        ([*lines[:9], lines[10], lines[9], *lines[11:]], "are not those that were learned before"),
        ([lines[0].replace("x", "z"), *lines[1:]], "are not those that were learned before"),
        ([line.replace("1", "2", 1) for line in lines], "written with the classes -1.0 1.0, and now it is the classes"),
    ):
        write(others)
        shell(*command, status=2)
        assert re.search(f"--checkpoint .*{told}", capsys.readouterr().err)
    write(lines)
    shell(*command, "--model", tmp_path / "m")
    first = capsys.readouterr()
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "m").read_bytes()
    path.write_bytes(b"it is not read again")
    shell(*command, "--model", tmp_path / "n")
    again = capsys.readouterr()
    assert again.out == first.out.replace(str(tmp_path / "m"), str(tmp_path / "n"))
    assert "says that this run is finished: the same model is written again" in again.err
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "n").read_bytes()


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_killed_at_any_moment_it_goes_on(tmp_path, kind):
    """A pipe can be stopped in the middle; with the whole text again, the same command goes on."""
    text = vw_text(20_000).encode()
    path = tmp_path / "rows.vw"
    path.write_bytes(text)
    common = ["learn", "-", "--format", "vw", "--bits", "10", "--classes", "-1,1", "--no-shuffle", "--quiet"]
    command = [sys.executable, "-m", "steelyard", *common, "--model", str(tmp_path / "m"), "--checkpoint"]
    command += [str(tmp_path / "c"), "--every", "500"]
    with path.open("rb") as file:
        subprocess.run(
            [sys.executable, "-m", "steelyard", *common, "--model", str(tmp_path / "plain")], stdin=file, check=True
        )
    draw = random.Random(0)
    for _ in range(3):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        process.stdin.write(text[: draw.randrange(len(text) // 5, len(text))])
        process.stdin.flush()
        while not (tmp_path / "c").exists() and process.poll() is None:  # what is there is learned, and kept
            time.sleep(0.02)
        time.sleep(draw.random() * 0.3)
        process.send_signal(kind)
        assert process.wait() != 0
        with suppress(BrokenPipeError):
            process.stdin.close()
    with path.open("rb") as file:
        subprocess.run(command, stdin=file, check=True)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        ["--no-shuffle"],
        [],
        ["--no-shuffle", "--passes", "2"],
        ["--no-shuffle", "--checkpoint", "c", "--every", "700"],
        ["--no-shuffle", "--eta0", "0.5"],
        ["--no-shuffle", "--eta0", "0.5", "--no-certificate"],
        ["--no-shuffle", "--eta0", "0.5", "--metric", "scalar", "--schedule", "gap"],
        ["--no-shuffle", "--eta0", "0.5", "--l1", "1e-3", "--center", "origin"],
        ["--no-shuffle", "--eta0", "0.5", "--l2", "1e-3", "--checkpoint", "c", "--every", "700"],
        ["--eta0", "0.5", "--average", "--schedule", "adagrad-norm"],
    ],
)
@pytest.mark.parametrize("kind", ["vw", "libsvm", "classes"])
def test_a_table_of_the_columns_that_are_met_gives_the_same_model(tmp_path, monkeypatch, capsys, options, kind):
    rng = np.random.default_rng(0)
    path, given = tmp_path / ("rows.vw" if kind == "vw" else "rows.libsvm"), []
    for i in range(3000):
        age, label = 40 + i % 7, rng.integers(3) if kind == "classes" else 1 - 2 * (i % 3 == 0)
        words = sorted({0, *rng.integers(1, 3 + i, 4).tolist()})  # columns become more from block to block
        if kind == "vw":
            given.append(f"{label} {1 + i % 2} |n age:{age} x:{i % 2} |w " + " ".join(f"w{word}" for word in words))
        else:
            given.append(f"{label} " + " ".join(f"{word + 1}:{age if word == 0 else 0.5}" for word in words))
    path.write_text("\n".join(given) + "\n")
    command = ["learn", path, *(tmp_path / word if word == "c" else word for word in options), "--json"]
    command += ["--bits", "12", "-q", "nw"] if kind == "vw" else []
    found = []
    for start in (0, 1 << 30):
        monkeypatch.setattr("steelyard.compact.FROM", start)
        with suppress(FileNotFoundError):
            (tmp_path / "c").unlink()
        shell(*command, "--model", tmp_path / "m")
        kept = (tmp_path / "c").read_bytes() if "--checkpoint" in options else b""
        found.append((capsys.readouterr().out, (tmp_path / "m").read_bytes(), len(kept)))
    assert found[0] == found[1]


def test_few_columns_in_a_large_table_are_many(tmp_path, monkeypatch):
    """With few columns others learn with a matrix of all pairs: few are those that there can be, not those met."""
    path, found = tmp_path / "rows.vw", []
    path.write_text("".join(f"{1 if i % 3 else -1} |a x:{i % 5} y z:{i % 7}\n" for i in range(300)))
    for start in (0, 1 << 30):
        monkeypatch.setattr("steelyard.compact.FROM", start)
        shell("learn", path, "--no-shuffle", "--bits", "12", "--model", tmp_path / "m")
        found.append((tmp_path / "m").read_bytes())
    assert found[0] == found[1]
    shell("predict", tmp_path / "m", path)


def test_mistakes_are_told_of_the_columns_that_are_meant(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.vw"
    path.write_text("1 |a x:1 y:2\n-1 |a z:3\n1 |a x:1 u:1e200\n")
    told = []
    for start in (0, 1 << 30):
        monkeypatch.setattr("steelyard.compact.FROM", start)
        shell("learn", path, "--no-shuffle", status=1)
        told.append(capsys.readouterr().err)
    assert told[0] == told[1]
    assert "line 3, feature a^u has the value 1e+200" in told[0]


def test_killed_with_a_small_table_it_goes_on_with_a_whole_one(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.vw"
    path.write_text(vw_text(3000))
    monkeypatch.setattr("steelyard.compact.FROM", 0)
    command = ["learn", path, "--no-shuffle", "--bits", "12", "--checkpoint", tmp_path / "c", "--every", "1000"]
    shell("learn", path, "--no-shuffle", "--bits", "12", "--model", tmp_path / "plain")
    whole = learn._Keeper.keep

    def keep(keeper, finished=None):
        whole(keeper, finished)
        raise KeyboardInterrupt

    monkeypatch.setattr(learn._Keeper, "keep", keep)
    shell(*command, status=130)
    monkeypatch.undo()
    shell(*command, "--model", tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "plain").read_bytes()


def test_a_reader_that_nobody_reads_on_ends(tmp_path):
    """Where it waits for its rows to be taken, at the end of a file, too."""
    row = b"1 |a abc def ghi jkl\n"
    (tmp_path / "b.vw").write_bytes(row)
    for stretches in range(4, 9):
        (tmp_path / "a.vw").write_bytes(row * int((stretches - 0.1) * STRETCH / len(row)))
        before = set(threading.enumerate())
        rows = steelyard.open([tmp_path / "a.vw", tmp_path / "b.vw"], format="vw").blocks()
        next(rows)
        time.sleep(0.1)
        rows.close()
        for thread in set(threading.enumerate()) - before:
            thread.join(10.0)
            assert not thread.is_alive()
