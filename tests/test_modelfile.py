"""Model files: round trips, files of earlier formats, and files that were damaged or made to do harm."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as arrays_of

from steelyard import Bank, Learner, Mixture, OnlineClassifier, cli, sparsearrays
from steelyard.kernels import layout
from steelyard.sparsearrays import SparseArray, sparse_array

MODELS = Path(__file__).parent / "models"
KINDS = {
    "learner": lambda: Learner("logistic", schedule="adagrad-norm", certificate=True),
    "bank": lambda: Bank("squared", updates=("iwa", "linearized"), eta0=[0.1, 1.0]),
    "full": lambda: Learner("squared", metric="full", n_outputs=1, certificate=True),
    "mixture": lambda: Mixture("squared"),
    "classes": lambda: Mixture("logistic", n_outputs=3),
    "wide": lambda: Mixture("hinge"),
    "wide learner": lambda: Learner("logistic", certificate=True),
}


def trained(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) + np.array([0.0, 5.0, 0.0])
    if kind.startswith("wide"):  # hashed: its file has records and their places
        wide = sp.lil_matrix((40, 2000))
        wide[:, [7, 100, 1999]] = X
        X = wide.tocsr()
        y = np.sign(X[:, 7].toarray().ravel())
        learner = KINDS[kind]()
        learner.learn(X, y)
        return learner, X, y
    y = {"learner": np.sign(X[:, 0]), "classes": np.arange(40.0) % 3}.get(kind, X[:, 0] * 100.0 + 7.0)
    learner = KINDS[kind]()
    learner.learn(X, y)
    return learner, X, y


def rewrite(path, *, header=None, **changes):
    """A model file with some of its arrays changed, and a checksum that fits."""
    from steelyard import modelfile

    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "checksum"}
    if header is not None:
        arrays["header"] = np.array(json.dumps(json.loads(str(arrays["header"])) | header))
    arrays |= changes
    digest = modelfile.hashlib.sha256()
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            modelfile._digest(digest, name, np.asarray(array))
            modelfile._write(archive, name, np.asarray(array))
        modelfile._write(archive, "checksum", np.frombuffer(digest.digest(), np.uint8))


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_learner_of_any_kind_goes_on_to_the_bit(tmp_path, kind):
    learner, X, y = trained(kind)
    learner.notes = {"names": ["a", "b"]}
    learner.save(tmp_path / "m")
    for loader in (Learner, Bank, Mixture):
        other = loader.load(tmp_path / "m")
        assert type(other) is type(learner)
    assert other.notes == learner.notes
    learner.learn(X, y)
    other.learn(X, y)
    for name, array in learner.state._asdict().items():
        np.testing.assert_array_equal(getattr(other.state, name), array)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_files_of_earlier_formats_still_load(number, tmp_path):
    for name, expected in json.loads((MODELS / f"format-{number}.json").read_text()).items():
        learner = Learner.load(MODELS / f"format-{number}-{name}")
        np.testing.assert_allclose(learner.predict(np.array(expected["rows"])), expected["predict"], rtol=1e-13)
        if "fenchel" in expected:
            assert learner.certify().fenchel == expected["fenchel"]
        before = learner.coef_.copy()
        learner.learn(np.array(expected["rows"]), [1.0, 1.0, 1.0])
        assert not np.array_equal(learner.coef_, before)
        learner.save(tmp_path / name)
        np.testing.assert_array_equal(Learner.load(tmp_path / name).coef_, learner.coef_)
        if isinstance(learner, Mixture) and number < 3:
            assert len(learner.bank()) == 8
            with pytest.raises(ValueError, match="saved by an older version, which kept no certificate"):
                learner.certify()
    assert Learner.load(MODELS / "format-1-empty").state is None


def test_numpy_numbers_are_saved(tmp_path):
    learner = Learner("quantile", eta0=np.float32(0.5), power_t=np.float64(0.25))
    learner.notes = {"count": np.int64(3), "values": np.arange(2), "flag": np.True_}
    learner.learn([[1.0]], [1.0])
    learner.save(tmp_path / "m")
    other = Learner.load(tmp_path / "m")
    assert other.regularizer == learner.regularizer
    assert other.notes == {"count": 3, "values": [0, 1], "flag": True}
    learner.notes = {"what": object()}
    with pytest.raises(TypeError, match="a model file holds what JSON can hold, not object"):
        learner.save(tmp_path / "m")
    model = OnlineClassifier(eta0=np.float64(0.5), passes=np.int64(2)).fit([[0.0], [1.0]], [0, 1])
    model.learner_.save(tmp_path / "m")
    assert Learner.load(tmp_path / "m").coef_ == model.coef_[0]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_anywhere_is_a_sentence(tmp_path, kind):
    """A file with bytes changed, cut off, doubled or put in: equal to what it was, or refused with its name."""
    learner, X, _ = trained(kind)
    path = tmp_path / "m"
    learner.save(path)
    whole, expected = path.read_bytes(), learner.predict(X)
    rng = np.random.default_rng(1)
    refused = 0
    for i in range(600):
        content = bytearray(whole)
        at = int(rng.integers(len(content)))
        match i % 4:
            case 0:
                content[at] ^= 1 << int(rng.integers(8))
            case 1:
                content = content[:at]
            case 2:
                content[at:at] = content[at : at + 40]
            case 3:
                content[at : at + 8] = rng.bytes(8)
        path.write_bytes(content)
        try:
            loaded = Learner.load(path)
        except ValueError as error:
            named = str(path) in str(error)
            refused += 1
        else:
            named = np.array_equal(loaded.predict(X), expected)
        assert named
    assert refused > 500


@pytest.mark.parametrize("kind", KINDS)
def test_a_bit_that_flips_is_found(tmp_path, kind):
    """Of the 10,000 flips in files of all kinds each is refused, with the file's name, or changes nothing."""
    learner, X, _ = trained(kind)
    path = tmp_path / "m"
    learner.notes = {"names": {"0": "a", "1": "b"}}
    learner.save(path)
    size, expected = path.stat().st_size, learner.predict(X)
    rng = np.random.default_rng(2)
    refused = 0
    with open(path, "r+b", buffering=0) as file:
        for at in rng.integers(size, size=-(-10_000 // len(KINDS))).tolist():
            before = os.pread(file.fileno(), 1, at)
            os.pwrite(file.fileno(), bytes([before[0] ^ 1 << int(rng.integers(8))]), at)
            try:
                loaded = Learner.load(path)
            except ValueError as error:
                named = str(path) in str(error)
                refused += 1
            else:
                named = True
                np.testing.assert_array_equal(loaded.predict(X), expected)
                assert (loaded.notes, loaded._options()) == (learner.notes, learner._options())
            assert named
            os.pwrite(file.fileno(), before, at)
    assert refused > 500
    np.testing.assert_array_equal(Learner.load(path).predict(X), expected)


# ------------------------------------------------------------------------------------------------------ sparse arrays


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 5), st.sampled_from([np.float64, np.float32, np.uint64]))
def test_a_sparse_array_is_the_array_to_the_bit(data, width, kind):
    rows = data.draw(st.integers(2000, 70_000))
    table = np.zeros(rows * width, kind)
    if kind is not np.uint64:
        table[data.draw(st.integers(0, table.size - 1))] = -0.0
    at = data.draw(arrays_of(np.int64, st.integers(0, 20), elements=st.integers(0, table.size - 1)))
    table[at] = data.draw(st.sampled_from([1.0, 3.0] if kind is np.uint64 else [1.0, np.nan, np.inf, 5e-324, -0.0]))
    found = sparse_array(table, rows)
    assert found.fits
    assert found.places.size <= 21
    assert found.whole().tobytes() == table.tobytes()


@pytest.mark.parametrize(("apart", "huge"), [(2, True), (1000, False)])
def test_zeros_that_nobody_needs_are_not_filled(monkeypatch, apart, huge):
    asked = []
    zeros = sparsearrays.lazy_zeros
    monkeypatch.setattr(sparsearrays, "lazy_zeros", lambda *each, **more: asked.append(more) or zeros(*each, **more))
    table = np.zeros(1_600_000, np.float32)
    table[:: 16 * apart] = 1.0
    found = sparse_array(table, 100_000)
    assert (found.whole() == table).all()
    assert asked == [{"beside": 0, "huge": huge}]


def test_an_array_is_sparse_only_where_that_is_smaller():
    assert sparse_array(np.ones(10_000), 10_000) is None
    assert sparse_array(np.zeros(100), 100) is None
    half = np.zeros(10_000)
    half[::2] = 1.0
    assert sparse_array(half, 10_000).records.nbytes == half.nbytes / 2
    half[1::4] = 1.0
    assert sparse_array(half, 10_000) is None
    assert sparse_array(half.reshape(10, 1000), 10) is None


@pytest.mark.parametrize(("make", "bits"), [(Learner, 24), (Mixture, 22)])
def test_a_hashed_model_takes_the_room_of_what_it_has_seen(tmp_path, make, bits):
    """100,000 features of millions: the dense table has 268 MB. ``benchmarks/modelsize.py`` takes larger ones."""
    rng = np.random.default_rng(0)
    indices = rng.choice(2**bits, 100_000, replace=False)
    X = sp.csr_matrix((np.ones(100_000), indices, np.arange(0, 100_001, 50)), shape=(2000, 2**bits))
    X.sort_indices()
    learner = make("hinge")
    learner.learn(X, rng.choice([-1.0, 1.0], 2000))
    learner.save(tmp_path / "m")
    record = learner.state.table.itemsize * learner._record
    assert (tmp_path / "m").stat().st_size < 1.1 * 100_000 * (record + 8 + 4 + 4) + 10_000
    other = Learner.load(tmp_path / "m")
    for name, array in learner.state._asdict().items():
        if name == "centered":  # what comes after those that are centered was left behind
            array = np.append(array[: int(learner.state.clocks[layout.CENTERED])], np.zeros(1, np.uint64))
        places = np.flatnonzero(array.view(np.uint32))
        same = getattr(other.state, name).view(np.uint32)
        assert np.array_equal(np.flatnonzero(same), places)
        assert np.array_equal(same.reshape(-1)[places], array.view(np.uint32).reshape(-1)[places])


SPARSE_HARM = {
    "places that fall": lambda a: {"table.places": a["table.places"][::-1].copy()},
    "a place twice": lambda a: {"table.places": np.repeat(a["table.places"][:1], a["table.places"].size)},
    "a place outside": lambda a: {"table.places": _put(a["table.places"], -1, 2001)},
    "too few places": lambda a: {"table.places": a["table.places"][:-1]},
    "places that are floats": lambda a: {"table.places": a["table.places"].astype(np.float64)},
    "records of another width": lambda a: {"table": a["table"].reshape(-1, 8), "header": {"sparse": {"table": 4002}}},
    "another number of rows": lambda a: {"header": {"sparse": {"table": 2003}}},
    "more rows than memory": lambda a: {"header": {"sparse": {"table": 1 << 47}}},
    "rows that are none": lambda a: {"header": {"sparse": {"table": -1}}},
    "rows that are no number": lambda a: {"header": {"sparse": {"table": True}}},
    "places of nothing": lambda a: {"clocks.places": a["table.places"]},
    "no places": lambda a: {"header": {"sparse": {}}},
    "a count": lambda a: {"clocks": _put(a["clocks"], layout.CENTERED, 1e9)},
    "a variance": lambda a: {"table": _put(a["table"], layout.OUTPUT_WIDTH + layout.VARIANCE, 3e38)},
}


@pytest.mark.parametrize("harm", SPARSE_HARM)
def test_sparse_arrays_made_to_do_harm_are_refused(tmp_path, harm):
    learner, _, _ = trained("wide")
    path = tmp_path / "m"
    learner.save(path)
    rewrite(path)
    np.testing.assert_array_equal(Learner.load(path).coef_, learner.coef_)
    with np.load(path) as file:
        arrays = dict(file)
    changes = SPARSE_HARM[harm](arrays)
    if "header" in changes:
        told = json.loads(str(arrays["header"]))["sparse"]
        changes["header"] = {"sparse": told | changes["header"]["sparse"] if changes["header"]["sparse"] else {}}
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=str(path)):
        Learner.load(path)


def test_fitting_places_are_told_from_others():
    places, records = np.array([1, 4], np.uint32), np.ones((2, 3))
    assert SparseArray(5, places, records).fits
    for wrong in (
        SparseArray(4, places, records),
        SparseArray(5, places[::-1], records),
        SparseArray(5, places, records[:1]),
        SparseArray(5, places.astype(np.int64), records),
        SparseArray(5, places, np.ones((2, 0))),
    ):
        assert not wrong.fits


# ---------------------------------------------------------------------------------------------------- what is replaced


@pytest.mark.parametrize("content", [b"my notes", b"PK\x03\x04 an archive of something else"])
def test_what_is_no_model_is_not_replaced(tmp_path, content, capsys):
    learner, _, _ = trained("learner")
    path = tmp_path / "m"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="m is there, and is no model: it would be lost"):
        learner.save(path)
    assert path.read_bytes() == content
    (tmp_path / "data").write_text("1 1:1\n0 1:2\n")
    assert cli.main(["learn", str(tmp_path / "data"), "--model", str(path)]) == 2
    assert "it would be lost" in capsys.readouterr().err
    path.write_bytes(b"")
    learner.save(path)
    learner.save(path)
    assert Learner.load(path).coef_.shape == (3,)


HARM = {
    "an exponent": lambda a: {"table": _put(a["table"], layout.OUTPUT_WIDTH + layout.EXPONENT, 5000.0)},
    "no features": lambda a: {"table": a["table"][:0], "centered": a["centered"][:0]},
    "a negative weight": lambda a: {"table": _put(a["table"].view(np.float64), 6, -1.0).view(np.float32)},
    "a count of rows": lambda a: {"clocks": _put(a["clocks"], layout.MIX_ROWS, np.nan)},
    "a variance": lambda a: {"table": _put(a["table"], layout.OUTPUT_WIDTH + layout.VARIANCE, 3e38)},
    "an exponent that is none": lambda a: {"table": _put(a["table"], layout.OUTPUT_WIDTH + layout.EXPONENT, np.nan)},
    "a count": lambda a: {"clocks": _put(a["clocks"], layout.CENTERED, 1e9)},
    "a negative count": lambda a: {"clocks": _put(a["clocks"], layout.CENTERED, -1.0)},
    "a count before the first row": lambda a: {
        "clocks": _put(_put(a["clocks"], layout.MIX_SEEN, 0.0), layout.CENTERED, 1.0)
    },
    "a matrix": lambda a: {"second": _put(a["second"], -1, np.nan)},
    "a count that is none": lambda a: {"clocks": _put(a["clocks"], layout.CENTERED, np.nan)},
    "an offset": lambda a: {
        "centered": np.full(3, 2**40, np.uint64),
        "clocks": _put(a["clocks"], layout.CENTERED, 3.0),
    },
    "the same offset twice": lambda a: {
        "centered": np.zeros(3, np.uint64),
        "clocks": _put(a["clocks"], layout.CENTERED, 3.0),
    },
    "another type": lambda a: {"table": a["table"].astype(np.float64)},
    "another shape": lambda a: {"sums": a["sums"].reshape(-1)},
    "a long array": lambda a: {"centered": np.zeros(1000, np.uint64)},
    "no array": lambda a: {"sums": np.zeros((0, layout.MIX_SUMS_SIZE))},
    "objects": lambda a: {"sums": np.array(["x"])},
    "many outputs": lambda a: {"header": {"options": {"fit_intercept": True, "n_outputs": 200_000_000}}},
    "outputs that are none": lambda a: {"header": {"options": {"fit_intercept": True, "n_outputs": "3"}}},
    "an option": lambda a: {"header": {"options": {"fit_intercept": True, "n_outputs": 1, "other": 1}}},
    "a loss": lambda a: {"header": {"loss": "smooth"}},
    "a parameter": lambda a: {"header": {"loss_parameters": {"delta": 1}}},
    "an old format": lambda a: {"header": {"format": 0}},
    "a kind": lambda a: {"header": {"kind": "Certificate"}},
    "notes": lambda a: {"header": {"notes": 3}},
}


def _put(array, at, value):
    array = array.copy()
    array.reshape(-1)[at] = value
    return array


@pytest.mark.parametrize("harm", HARM)
def test_a_file_made_to_do_harm_is_refused(tmp_path, harm):
    learner, X, _ = trained("mixture")
    path = tmp_path / "m"
    learner.save(path)
    rewrite(path)
    np.testing.assert_array_equal(Learner.load(path).predict(X), learner.predict(X))  # the checksum is right
    rewrite(path, **HARM[harm](learner.state._asdict()))
    with pytest.raises(ValueError, match=str(path)):
        Learner.load(path)


def test_sizes_are_known_before_anything_is_allocated(tmp_path):
    """An array of 10^12 numbers in a small file, and one that is compressed."""
    learner, _, _ = trained("mixture")
    learner.save(tmp_path / "m")
    with np.load(tmp_path / "m") as file:
        arrays = dict(file)
    np.savez_compressed(tmp_path / "deflated", **arrays)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(tmp_path / "m") as old, zipfile.ZipFile(tmp_path / "huge.npz", "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, head.getvalue() if info.filename == "table.npy" else old.read(info))
    for name in ("deflated.npz", "huge.npz"):
        with pytest.raises(ValueError, match=f"{name} is (refused|damaged)"):
            Learner.load(tmp_path / name)


def test_the_shell_shows_a_sentence_for_a_bad_model(tmp_path, capsys):
    learner, _, _ = trained("mixture")
    learner.save(tmp_path / "m")
    (tmp_path / "data").write_text("1 1:1\n")
    content = (tmp_path / "m").read_bytes()
    for damaged in (b"", content[:300], content[:-50], content[:900] + b"?" + content[901:]):
        (tmp_path / "m").write_bytes(damaged)
        assert cli.main(["predict", str(tmp_path / "m"), str(tmp_path / "data")]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert str(tmp_path / "m") in err
        assert "Traceback" not in err


def test_a_future_format_is_named(tmp_path):
    learner, _, _ = trained("learner")
    learner.save(tmp_path / "m")
    rewrite(tmp_path / "m", header={"format": 99})
    with pytest.raises(ValueError, match="was written by a newer Steelyard \\(format 99\\)"):
        Learner.load(tmp_path / "m")


def test_a_table_without_a_record_is_refused(tmp_path):
    learner = Learner("squared", metric="scalar")
    learner.learn(np.eye(3), [1.0, 2.0, 3.0])
    learner.save(tmp_path / "m")
    for changes in ({"table": np.zeros(0)}, {"sums": _put(learner.state.sums, layout.ROWS, np.nan)}):
        rewrite(tmp_path / "m", **(learner.state._asdict() | changes))
        with pytest.raises(ValueError, match="m is damaged"):
            Learner.load(tmp_path / "m")


def test_tables_and_options_that_disagree_are_refused(tmp_path):
    learner, _, _ = trained("learner")
    path = tmp_path / "m"
    learner.save(path)
    options, table = learner._options(), learner.state.table
    for changes, message in (
        ({"header": {"options": options | {"fit_intercept": False}}}, "it has an intercept, and its options say"),
        ({"header": {"options": options | {"average": "False"}}}, "m is (damaged|not a)"),
        ({"table": _put(table, 0, np.nan)}, "the scale of a column is out of range"),
        ({"table": _put(table, 0, -1.0)}, "the scale of a column is out of range"),
    ):
        learner.save(path)
        rewrite(path, **changes)
        with pytest.raises(ValueError, match=message):
            Learner.load(path)
    trained("mixture")[0].save(path)
    rewrite(path, header={"options": {"fit_intercept": False, "n_outputs": 1}})
    with pytest.raises(ValueError, match="it has an intercept, and its options say"):
        Learner.load(path)


def test_a_mixture_whose_labels_overflowed_can_be_loaded(tmp_path):
    mixture = Mixture("squared")
    with pytest.warns(RuntimeWarning, match="all experts"):
        mixture.learn([[1.0], [2.0], [3.0]], [1e-80, 1e80, 3.0])
    mixture.save(tmp_path / "m")
    np.testing.assert_array_equal(Learner.load(tmp_path / "m").predict([[1.0]]), mixture.predict([[1.0]]))
    mixture = Mixture("squared")
    with pytest.warns(RuntimeWarning, match="all experts"):
        mixture.learn([[1.0], [2.0], [3.0], [5.0], [7.0]], [1e-150, 1e290, 3.0, -1e290, 1.0])
    assert not np.isfinite(mixture.state.second).all()
    mixture.save(tmp_path / "m")
    np.testing.assert_array_equal(Learner.load(tmp_path / "m").state.second, mixture.state.second)


@pytest.mark.parametrize("weight", [1e17, 1e20, 1e300])
def test_a_row_that_outweighs_all_before_it_can_be_saved(tmp_path, weight):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mixture = Mixture("logistic")
        mixture.learn(rng.normal(size=(4, 1)), rng.choice([-1.0, 1.0], 4), [1.0, 1.0, weight, 1.0])
        assert mixture.state.table[layout.OUTPUT_WIDTH + layout.VARIANCE] >= 0.0
        mixture.save(tmp_path / "m")
        np.testing.assert_array_equal(Mixture.load(tmp_path / "m").coef_, mixture.coef_)
    with pytest.raises(ValueError, match=r"sample_weight is 1e\+305 in row 0: weights must be at most 1e\+300"):
        mixture.learn([[1.0]], [1.0], [1e305])


@pytest.mark.parametrize(
    "classes", [3, "x", [], [1.0], {}, True, [None, None], [10**400, 1], [[1, 2], [3, 4]], [1, "a"]]
)
def test_notes_that_are_no_classes_are_refused(tmp_path, capsys, classes):
    learner, _, _ = trained("learner")
    learner.notes = {"classes": classes}
    learner.save(tmp_path / "m")
    (tmp_path / "data").write_text("1 1:1\n")
    assert cli.main(["predict", str(tmp_path / "m"), str(tmp_path / "data")]) == 1
    assert "is not a list of 2 labels" in capsys.readouterr().err


def test_classes_may_be_words(tmp_path, capsys):
    learner, _, _ = trained("learner")
    learner.notes = {"classes": ["cat", "dog"]}
    learner.save(tmp_path / "m")
    (tmp_path / "data").write_text("1 1:1\n0 1:-1\n")
    assert cli.main(["predict", str(tmp_path / "m"), str(tmp_path / "data")]) == 0
    assert sorted(capsys.readouterr().out.split()) == ["cat", "dog"]


def test_only_what_can_be_loaded_is_saved(tmp_path):
    class Mine(Learner):
        pass

    with pytest.raises(TypeError, match="holds a Learner, Bank or Mixture, not a Mine"):
        Mine("squared").save(tmp_path / "m")


def test_loading_imports_neither_scikit_learn_nor_scipy(tmp_path):
    learner, _, _ = trained("mixture")
    learner.save(tmp_path / "m")
    code = (
        "import sys; from steelyard.modelfile import load; load(sys.argv[1])\n"
        "assert not {'sklearn', 'scipy', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, os.fspath(tmp_path / "m")], check=True)


def test_a_model_that_has_stamps_goes_on_with_them():
    """Files of format 5 have a stamp for each weight also where weights have one common factor now."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) * [1.0, 2.0, 0.5] + [0.0, 5.0, 0.0]
    y = np.sign(X[:, 0])
    new = Learner("logistic", metric="scalar", l1=0.001, l2=0.1, certificate=True)
    new.learn(X, y)
    old = Learner.load(MODELS / "format-5-l2-scalar")
    assert old.state.stamps.size
    assert not new.state.stamps.size
    for form in (X, sp.csr_matrix(X)):
        assert np.allclose(old.learn(form, y).prediction, new.learn(form, y).prediction, rtol=1e-9)
        assert np.allclose(old.coef_, new.coef_, rtol=1e-9)
    assert old.certify().fenchel == pytest.approx(new.certify().fenchel, rel=1e-9)


@pytest.mark.parametrize("options", [{}, {"l1": 1e-3}, {"n_outputs": 3}, {"metric": "scalar"}])
def test_a_learner_without_intercept_that_diverged_is_loaded(tmp_path, options):
    learner = Learner("hinge", update="linearized", schedule="constant", eta0=1e300, fit_intercept=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.learn(np.ones((400, 1)), np.ones(400), np.full(400, 1e9))
    learner.save(tmp_path / "m")
    assert Learner.load(tmp_path / "m").fit_intercept is False
