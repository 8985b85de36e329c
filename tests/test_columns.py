"""Formats with named columns against readers written apart, and against each other."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

import steelyard
from steelyard import OnlineClassifier
from steelyard.cli import main
from steelyard.data.opening import open as open_data
from steelyard.learner import Learner
from steelyard.streaming import Run

CELLS = st.text(st.sampled_from('ab ,;"\n1é'), max_size=5)


def a_frame(rows=800, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.normal(size=rows).round(3),
            "job": random.choice(["a", "b c", 'q"x', "é,f", "two\nlines"], rows),
            "ok": random.random(rows) < 0.5,
            "k": random.integers(0, 9, rows),
            "cat": pd.Categorical(random.choice(["u", "v"], rows)),
            "y": random.choice(["no", "yes"], rows),
            "w": random.integers(1, 4, rows),
        }
    )
    frame.loc[::7, "job"] = None
    frame.loc[::11, "age"] = np.nan
    return frame


def write(frame, folder):
    names = {ending: folder / f"rows.{ending}" for ending in ("csv", "tsv", "csv.gz", "jsonl", "parquet", "feather")}
    frame.to_csv(names["csv"], index=False)
    frame.to_csv(names["csv.gz"], index=False)
    frame.to_csv(names["tsv"], index=False, sep="\t")
    frame.to_json(names["jsonl"], orient="records", lines=True, double_precision=15)
    frame.to_parquet(names["parquet"])
    frame.to_feather(names["feather"])
    return names


def slow_row(features, bits=18):
    """Features of a row by index, with scikit-learn's MurmurHash3."""
    found = {}
    for name, value in features:
        index = murmurhash3_32(name.encode(), 0, positive=True) % 2**bits
        found[index] = found.get(index, 0.0) + value
    return {index: value for index, value in found.items() if value}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELLS, st.integers(-99, 99) | st.none(), CELLS), min_size=1, max_size=12),
    st.sampled_from(",;\t|"),
)
def test_csv_is_what_the_csv_module_reads(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(["name", "size", "y"])
    writer.writerows([name, "" if size is None else size, label] for name, size, label in rows)
    path.write_bytes(out.getvalue().encode())
    source = open_data(path, "tsv" if delimiter == "\t" else "csv", label="y", text=["name", "y"])
    block, y, _, _ = source.whole()
    assert block.n_rows == len(rows)
    for r, (name, size, label) in enumerate(rows):
        features = [(f"name={name}", 1.0)] if name else []
        features += [] if size is None else [("size", float(size))]
        span = slice(int(block.indptr[r]), int(block.indptr[r + 1]))
        assert dict(zip(block.indices[span].tolist(), block.data[span].tolist(), strict=True)) == slow_row(features)
        assert (np.isnan(y[r]) and not label) or source.label_names[int(y[r])] == label
    assert source.missing == sum((not name) + (size is None) for name, size, _ in rows)


@pytest.mark.parametrize("options", [{"interactions": "age*job"}, {"drop": ["job", "cat"]}, {"bits": 5}])
def test_every_format_has_the_same_rows(tmp_path, options):
    first = None
    for path in write(a_frame(), tmp_path).values():
        source = open_data(path, label="y", weight="w", **options)
        block, y, weight, _ = source.whole()
        labels = np.array(source.label_names)[y.astype(int)]
        found = (block.data, block.indices, block.indptr, weight, labels, np.array([source.missing]))
        first = first or found
        assert all(np.array_equal(a, b) for a, b in zip(first, found, strict=True)), path


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_frame_and_its_files_give_the_same_model(tmp_path, shuffle):
    frame = a_frame()
    X, y, w = frame.drop(columns=["y", "w"]), frame["y"], frame["w"]
    model = OnlineClassifier(eta0=0.5, shuffle=shuffle, random_state=0).fit(X, y, sample_weight=w)
    again = OnlineClassifier(eta0=0.5, shuffle=shuffle, random_state=0).fit(pl.from_pandas(X), y, sample_weight=w)
    assert np.array_equal(model.coef_, again.coef_)
    assert list(model.feature_names_in_) == list(X.columns)
    for path in write(frame, tmp_path).values():
        job = Run(
            open_data(path, label="y", weight="w"),
            lambda goal: Learner(goal.loss, eta0=0.5),
            shuffle=shuffle,
            seed=np.random.RandomState(0),
        )
        list(job.steps())
        assert np.array_equal(job.finish().coef_, model.coef_[0]), path


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("way", ["csv", "parquet", "events", "file of the shell"])
def test_models_of_files_and_of_events_take_frames(tmp_path, way, text):
    """And files, once more after they were saved: what each cell means is known."""
    frame = a_frame(60)
    frame = frame if text else frame[["age", "k", "y"]].fillna(0.0)
    X, y = frame.drop(columns="y"), frame["y"]
    files, cut = write(frame, tmp_path), ["a", "b"] * 30
    events = [{k: v for k, v in row.items() if v == v} for row in X.to_dict("records")]
    model = OnlineClassifier(eta0=0.5, shuffle=False, bits=None if text or way != "events" else 18)
    if way == "events":
        for x, label in zip(events, y, strict=True):
            model.learn_one(x, label, classes=["no", "yes"] if x is events[0] else None)
    elif way == "file of the shell":
        main(["learn", str(files["csv"]), "--label", "y", "--eta0", "0.5", "--no-shuffle", "--model", f"{tmp_path}/m"])
    else:
        model.fit_stream(open_data(files[way], label="y"))
    if way != "file of the shell":
        model.save(tmp_path / "m")
    hashed = text or way == "events"
    told = OnlineClassifier(eta0=0.5, shuffle=False, bits=18 if hashed else None).fit(X, y)
    expected = told.decision_function(X)
    again = told.partial_fit(X[:9], y[:9]).coef_
    for each in [steelyard.load(tmp_path / "m"), *([model] if way != "file of the shell" else [])]:
        for rows in (X, X[X.columns[::-1]], pl.from_pandas(X)):
            assert np.array_equal(each.decision_function(rows), expected)
        for path in files.values():
            source = open_data(path, schema=each.schema_, label="y", optional_label=True)
            assert np.array_equal(np.concatenate([each.decision_function(rows) for rows, _, _ in source]), expected)
        if hashed:
            assert [each.predict_one(x) for x in events] == each.predict(X).tolist()
        assert np.array_equal(each.partial_fit(X[:9], y[:9]).coef_, again)
        if way != "events":
            with pytest.raises(ValueError, match="'z' was not there before"):
                each.predict(X.assign(z=cut))
            with pytest.raises(ValueError, match="no column 'age'"):
                each.predict(X.drop(columns="age"))
        assert not hasattr(each.fit(np.eye(4), ["no", "yes"] * 2), "schema_")


def test_interactions_are_those_of_the_files(tmp_path):
    frame = a_frame(60)
    path = write(frame, tmp_path)["csv"]
    model = OnlineClassifier().fit_stream(open_data(path, label="y", weight="w", interactions="age*job"))
    expected = np.concatenate([model.decision_function(X) for X, _, _ in open_data(path, schema=model.schema_)])
    assert np.array_equal(model.decision_function(frame), expected)
    with pytest.raises(ValueError, match=r"interactions .* events do not have"):
        model.learn_one({"age": 1.0}, "no")


def test_columns_are_known_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,y\n1,x,0\n2,z,1\n")
    schema = open_data(path, label="y")
    rows = schema.whole()
    path.write_text("y,b,a\n0,x,1\n1,z,2\n")
    again = open_data(path, schema=schema.schema()).whole()
    assert np.array_equal(rows.block.data, again.block.data)
    assert np.array_equal(rows.block.indices, again.block.indices)
    path.write_text("b,a,c\nx,1,2\n")
    with pytest.raises(ValueError, match="'c' was not there before"):
        open_data(path, schema=schema.schema(), optional_label=True).whole()
    path.write_text("b\nx\n")
    with pytest.raises(ValueError, match="no column 'a'"):
        open_data(path, schema=schema.schema(), optional_label=True).whole()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("31,clerk,yes,1,5", "has more"),
        ("31,clerk,yes", "has 3"),
        ("x,clerk,yes,1", "--text age"),
        ("nan,clerk,yes,1", "NaN"),
        ("inf,clerk,yes,1", "inf"),
        ('3,"clerk,yes,1', "do not end"),
        ('3,"cl"e,yes,1', "after a cell in quotes"),
        ("3,a,b,", "weight"),
        ("12345678901234567,a,b,1", "too large"),
    ],
)
def test_csv_that_is_wrong_is_refused_by_line_or_skipped(tmp_path, line, told):
    path = tmp_path / "a.csv"
    before = 100_000
    path.write_text("age,job,paid,copies\n" + '31,"two\nlines",yes,1\n' * before + line + "\n4,z,no,1\n")
    with pytest.raises(ValueError, match=told) as error:
        open_data(path, label="paid", weight="copies").whole()
    assert f"line {2 * before + 2}" in str(error.value)
    source = open_data(path, label="paid", weight="copies", on_error="skip")
    assert source.whole().y.size == before + 1
    assert source.skipped.count == 1


@pytest.mark.parametrize("line", ["garbage", "1,2,3,4", '1,"2"3,0', '1,"2,0', '"x"y,z,1'])
def test_a_row_that_is_left_out_does_not_say_what_columns_hold(tmp_path, line):
    path = tmp_path / "a.csv"
    path.write_text(f"a,t,y\n{line}\n1,u,0\n\n2,v,1\n")
    source = open_data(path, label="y", on_error="skip")
    assert (source.whole().y.size, source.skipped.count) == (2, 1)
    assert source.schema()["columns"] == {"a": "number", "t": "text"}
    path.write_text('a,"t,y\n1,u,0\n2,v,1\n')
    with pytest.raises(ValueError, match="line 1, column 1: the first line must be one of cells"):
        open_data(path, label="y", on_error="skip").whole()


def test_frames_are_refused_where_their_columns_differ():
    frame = a_frame(50)
    with pytest.raises(ValueError, match="two columns are called 'age'"):
        OnlineClassifier().fit(frame[["age", "age"]], frame["y"])
    model = OnlineClassifier().fit(frame[["age", "job"]], frame["y"])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["job", "age"]])
    with pytest.raises(ValueError, match="frame"):
        model.predict(np.ones((2, 2)))


def test_a_frames_features_keep_their_names(tmp_path):
    frame = pd.DataFrame({"job": ["clerk", "nurse", "farmer"] * 4, "age": np.arange(12.0)})
    y = ["a", "b", "b"] * 4
    OnlineClassifier().fit(frame, y).save(tmp_path / "m")
    model = steelyard.load(tmp_path / "m").partial_fit(frame.assign(job="king"), y)
    names = {each["name"] for each in json.loads(model.to_json())["coefficients"]}
    assert names == {"age", "job=clerk", "job=nurse", "job=farmer", "job=king"}


@pytest.mark.parametrize("bad", ["1,2", "nan,2,1"])
def test_many_rows_that_are_left_out_are_all_counted(tmp_path, bad):
    path = tmp_path / "a.csv"
    rows = ["a,b,y", *(bad if i % 2 else f"{i},{i % 7},{i % 3}" for i in range(20_000))]
    path.write_text("\n".join(rows) + "\n")
    source = open_data(path, label="y", on_error="skip")
    steelyard.OnlineRegressor(eta0=0.1).fit_stream(source)
    assert source.skipped.count == 10_000
    assert len(source.skipped.shown) == 3
