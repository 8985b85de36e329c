"""Fit on a Dask cluster of two processes: the same model as the plan run by hand, whatever happens on the way."""

from __future__ import annotations

import copy
import gzip
import os
import signal
import subprocess
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st

import steelyard
from steelyard import OnlineClassifier, OnlineRegressor
from steelyard.data.block import as_block
from steelyard.distributed import fit, plan, tasks
from steelyard.distributed.merge import merge
from steelyard.distributed.plan import plan_pass
from steelyard.fitting import learn_passes
from steelyard.online import Progress

SIZES = [1500, 0, 700, 1800]  # one partition is empty


@pytest.fixture(scope="module")
def client():
    options = dict(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0")
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sum(SIZES), 4)).round(3)
    X[rng.random(X.shape) < 0.5] = 0.0
    score = X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.normal(size=len(X))
    return X, np.where(score > 0, 1.0, -1.0), rng.integers(0, 4, len(X)).astype(float)


def cut(values):
    return np.split(values, np.cumsum(SIZES)[:-1])


def array(values, kind=np.asarray):
    return da.from_array(values, chunks=(tuple(SIZES), *values.shape[1:])).map_blocks(kind, dtype=values.dtype)


def lazily(blocks, width=None):
    """A Dask array of blocks which may differ in width, although it says that they do not."""
    shape = (np.nan,) if width is None else (np.nan, width)
    return da.concatenate([da.from_delayed(dask.delayed(each), shape, dtype=blocks[0].dtype) for each in blocks])


@pytest.fixture(autouse=True)
def small_data_in_shards(monkeypatch):
    """Data of tests are small: by default they would be learned in one place."""
    monkeypatch.setattr(plan, "LEAST_ROWS", 1)
    monkeypatch.setattr(plan, "FIRST_ROWS", 1000)


def by_hand(model, X, y, weight=None, *, learner, form=np.asarray, factor=None, sizes=SIZES, shards=None):
    """The plan in this process, with NumPy's own cuts; labels are the learner's."""
    starts = np.append(0, np.cumsum(sizes))
    weight = np.ones(len(y)) if weight is None else weight
    losses = []
    for first, seed in enumerate(model._pass_seeds()):
        seen = Progress()
        for number, slices in plan_pass(sizes, shards, first=first == 0):
            learned = []
            for shard, pieces in slices:
                rows = np.concatenate([np.arange(starts[p] + lo, starts[p] + hi) for p, lo, hi in pieces])
                each = copy.deepcopy(learner)
                options = dict(seeds=[[seed, number, shard]], shuffle=model.shuffle)
                factors = None if factor is None else factor[rows]
                (trace,) = learn_passes(each, as_block(form(X[rows])), y[rows], weight[rows], factor=factors, **options)
                learned.append((each, Progress().add(trace)))
            while len(learned) > 1:
                pairs = [learned[i : i + 2] for i in range(0, len(learned), 2)]
                learned = [
                    (merge([a[0] for a in pair], learner), pair[0][1].join(pair[1][1])) if len(pair) == 2 else pair[0]
                    for pair in pairs
                ]
            learner, new = learned[0]
            seen = seen.join(new)
        losses.append(seen.average)
    return learner, losses


def assert_same(model, expected, losses):
    for name, found in model.learner_.state._asdict().items():
        np.testing.assert_array_equal(found, getattr(expected.state, name), err_msg=name)
    assert model.pass_losses_ == losses
    assert model.progressive_loss_ == losses[0]


# ------------------------------------------------------------------------------------------------------------ the plan


@given(st.lists(st.integers(0, 9000), min_size=1, max_size=12).filter(any), st.integers(1, 20), st.booleans())
def test_every_row_is_learned_once_and_in_order(rows, shards, first):
    rounds = plan_pass(rows, shards, first=first)
    seen = [[] for _ in rows]
    for each in rounds:
        assert all(one.pieces and one.rows for one in each.slices)
        assert len({one.shard for one in each.slices}) == len(each.slices) <= shards
        for one in each.slices:
            for p, lo, hi in one.pieces:
                seen[p].append((lo, hi))
    for count, pieces in zip(rows, seen, strict=True):
        ends = [0, *(hi for _, hi in pieces)]
        assert [lo for lo, _ in pieces] == ends[:-1]
        assert ends[-1] == count
    if first:
        assert len(rounds[0].slices) == 1
        assert sum(one.rows for one in rounds[0].slices) >= min(sum(rows), 1000)


def test_rounds_double_what_is_learned():
    rounds = plan_pass([1024] * 128)
    sizes = [sum(one.rows for one in each.slices) for each in rounds]
    assert len(rounds) == 8
    assert sizes == [1024, *(1024 << k for k in range(7))]
    assert all(len(each.slices) == 64 for each in rounds[1:])
    assert [each.number for each in plan_pass([10**6])] == [0]  # one shard has nobody to wait for


def test_neighbours_are_in_different_shards():
    assert plan.groups_of([5] * 7, 3) == [[0, 3, 6], [1, 4], [2, 5]]
    assert plan.groups_of([9, 0, 1, 1, 1], 2) == [[0], [2, 3, 4]]


def test_shards_have_rows_enough_to_be_worth_it(monkeypatch):
    monkeypatch.undo()
    shards = [max(len(each.slices) for each in plan_pass(rows)) for rows in ([1000] * 100, [19_999], [10_000] * 300)]
    assert shards == [10, 1, 64]
    assert [one.rows for one in plan_pass([20_000] * 2)[0].slices] == [5_000]
    assert [one.rows for one in plan_pass([1_000] * 8, shards=8)[0].slices] == [2_000]


# ------------------------------------------------------------------------------------------------------ the same model


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("eta0", ["auto", 0.5])
def test_an_array_gives_the_model_of_the_plan(client, data, form, eta0):
    X, y, weight = data
    model = OnlineClassifier(eta0=eta0, random_state=3, certificate=True)
    assert fit(model, array(X, form), array(y), array(weight)) is model
    assert_same(model, *by_hand(model, X, y, weight, learner=model._new_learner(), form=form))
    assert model.classes_.tolist() == [-1.0, 1.0]
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    assert model.learner_.progress.weight == weight.sum()
    assert model.certificate_.weight == weight.sum()
    assert model.score(X, y) > 0.8


def test_a_frame_with_columns_of_labels_and_weights(client, data):
    X, y, weight = data
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=np.where(y > 0, "yes", "no"), weight=weight)
    lazy = dd.from_pandas(frame, npartitions=3)
    model = fit(OnlineClassifier(random_state=3), lazy, "label", "weight")
    sizes = lazy.map_partitions(len).compute().tolist()
    assert_same(model, *by_hand(model, X, y, weight, learner=model._new_learner(), sizes=sizes))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(frame[list("abcd")])) == {"no", "yes"}
    again = fit(OnlineClassifier(random_state=3), lazy[list("abcd")], lazy["label"], lazy["weight"])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    refit = fit(model, lazy[list("abcd")].to_dask_array(), lazy["label"], lazy["weight"])  # of unknown lengths
    np.testing.assert_array_equal(refit.coef_, again.coef_)
    assert not hasattr(refit, "feature_names_in_")


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    folder, paths = tmp_path_factory.mktemp("files"), []
    for number, (X, y) in enumerate(zip(*map(cut, data[:2]), strict=True)):
        text = "".join(
            f"{label:g} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v) + "\n"
            for row, label in zip(X.tolist(), y.tolist(), strict=True)
        )
        paths.append(folder / f"{number}.libsvm{'.gz' if number == 2 else ''}")
        paths[-1].write_bytes(gzip.compress(text.encode()) if number == 2 else text.encode())
    return paths


def test_files_give_the_model_of_the_plan(client, data, files):
    X, y, _ = data
    model = fit(OnlineClassifier(random_state=3), files)
    assert_same(model, *by_hand(model, X, y, learner=model._new_learner(), form=sp.csr_matrix))
    wide = fit(OnlineClassifier(random_state=3), files, n_features=9, zero_based=True)
    assert wide.coef_.shape == (1, 9)
    assert wide.coef_[0, 0] == 0.0


def test_a_slice_of_a_file_is_read_from_the_middle(files, monkeypatch):
    """With stretches of a few lines, and files cut into several partitions."""
    from steelyard.distributed import files as module

    for name, size in (("STRETCH", 100), ("SPLIT_BYTES", 3000)):
        monkeypatch.setattr(module, name, size)
    paths = [str(path) for path in files]
    found = [module.scan_file(n, OnlineClassifier(), path) for n, path in enumerate(paths)]
    assert len(found[0].marks) > 100
    parts = module.parts_of(found)
    assert [sum(part.rows for part in parts if part.file == file) for file in range(4)] == SIZES
    assert [part.file for part in parts].count(2) == 1  # a compressed file has no middle
    for file, lo, hi in ((0, 700, 760), (2, 650, 700), (3, 0, 1)):
        whole = steelyard.read_libsvm(paths[file], n_features=4)
        source = module.FileSlice(found[file], paths[file], 4, False, lo, hi)
        rows = list(source.blocks())
        assert rows[0].before == lo
        np.testing.assert_array_equal(np.concatenate([each.y for each in rows]), whole[1][lo:hi])
        values = np.concatenate([each.block.data for each in rows])
        np.testing.assert_array_equal(values, whole[0][lo:hi].data)
        assert source.place(lo) == f"line {lo + 1}"


def test_rows_beyond_a_batch_are_shuffled_batch_by_batch(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(tasks, "BATCH_BYTES", 1)
    model = OnlineClassifier(random_state=3)
    model.classes_ = np.array([-1.0, 1.0])
    sources = [tasks.load(p, model, *each, None).source for p, each in enumerate(zip(cut(X), cut(y), strict=True))]
    learned = tasks.learn(model._new_learner(), [s for s in sources if s.whole().y.size], model, None, [5, 0, 0])
    learner, progress = model._new_learner(), Progress()
    for number, p in enumerate((0, 2, 3)):
        (trace,) = learn_passes(learner, as_block(cut(X)[p]), cut(y)[p], np.ones(SIZES[p]), seeds=[[5, 0, 0, number]])
        progress = progress.add(trace)
    np.testing.assert_array_equal(learned.learner.state.table, learner.state.table)
    assert learned.progress == progress


def test_one_shard_is_fit_itself(client, data):
    X, y, weight = data
    for model in (OnlineClassifier(random_state=3, passes=2, class_weight="balanced"), OnlineClassifier(eta0=1.0)):
        model.set_params(random_state=1)
        ours = fit(copy.deepcopy(model), array(X), array(y), array(weight), shards=1)
        model.fit(X, y, weight)
        np.testing.assert_array_equal(ours.coef_, model.coef_)
        assert ours.pass_losses_ == model.pass_losses_
        assert ours.progressive_loss_ == model.progressive_loss_


@pytest.mark.parametrize(
    "options", [dict(passes=2), dict(shuffle=False), dict(loss="hinge"), dict(fit_intercept=False)]
)
def test_parameters_hold(client, data, options):
    X, y, weight = data
    model = fit(OnlineClassifier(random_state=3, **options), array(X), array(y), array(weight), shards=2)
    assert_same(model, *by_hand(model, X, y, weight, learner=model._new_learner(), shards=2))
    assert len(model.pass_losses_) == options.get("passes", 1)


@pytest.mark.parametrize("class_weight", ["balanced", {-1.0: 2.0}, {1.0: 0.5}])
def test_class_weights(client, data, class_weight):
    X, y, weight = data
    model = OnlineClassifier(random_state=3, class_weight=class_weight)
    fit(model, array(X), array(y), array(weight))
    mass = np.array([weight[y < 0].sum(), weight[y > 0].sum()])
    factors = mass.sum() / (2 * mass) if class_weight == "balanced" else [class_weight.get(c, 1.0) for c in (-1.0, 1.0)]
    factor = np.where(y < 0, *factors)
    if class_weight == {-1.0: 2.0}:
        weight, factor = weight * factor, None
    assert_same(model, *by_hand(model, X, y, weight, learner=model._new_learner(), factor=factor))


def test_a_regression(client, data):
    X, _, weight = data
    y = X @ [1.0, 2.0, 3.0, 4.0] + 5.0
    model = fit(OnlineRegressor(random_state=3), array(X), array(y), array(weight))
    assert_same(model, *by_hand(model, X, y, weight, learner=model._new_learner()))


def test_least_squares_with_a_full_matrix_are_those_of_one_pass(client, data):
    X, _, weight = data
    y = X @ [1.0, 2.0, 3.0, 4.0] + np.sin(np.arange(len(X)))
    model = fit(OnlineRegressor(metric="full", eta0=10.0), array(X), array(y), array(weight))
    alone = OnlineRegressor(metric="full", eta0=10.0).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, alone.intercept_, rtol=1e-9)


@pytest.mark.parametrize("eta0", ["auto", 0.5])
def test_a_partition_without_weight(client, data, eta0):
    X, y, weight = data
    weight = np.where(np.repeat(np.arange(4), SIZES) == 2, 0.0, weight)
    model = fit(OnlineClassifier(eta0=eta0, random_state=3), array(X), array(y), array(weight))
    assert_same(model, *by_hand(model, X, y, weight, learner=model._new_learner()))
    before = model.coef_
    model.partial_fit(X[:50], y[:50])  # it can go on
    assert (model.coef_ != before).any()


def test_a_users_loss(client, data):
    X, y, _ = data
    squared = steelyard.CustomLoss(value=lambda p, y: 0.5 * (p - y) ** 2, slope=lambda p, y: p - y)
    model = fit(OnlineRegressor(squared, eta0=0.1, random_state=3), array(X), array(y))
    assert_same(model, *by_hand(model, X, y, learner=model._new_learner()))


def test_classes_that_are_not_everywhere(client, data):
    """Each partition has one class, and the one that classes= adds is nowhere."""
    X, _, _ = data
    y = np.repeat(["a", "b", "c", "d"], SIZES)
    with pytest.warns(UserWarning, match="the shards hold different labels: 67 % of a shard's rows"):
        model = fit(OnlineClassifier(random_state=3), array(X), array(y))
    assert model.classes_.tolist() == ["a", "c", "d"]
    codes = np.searchsorted(model.classes_, y).astype(float)
    assert_same(model, *by_hand(model, X, codes, learner=model._new_learner(3)))
    with pytest.warns(UserWarning, match="Mix the rows of the partitions first"):
        model = fit(OnlineClassifier(random_state=3), array(X), array(y), classes=["d", "c", "b", "a"])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]


# -------------------------------------------------------------------------------------------------------- what may fail


def test_a_killed_worker_changes_nothing(client, data):
    X, y, weight = data
    pids = sorted(client.run(os.getpid).values())
    killed = []

    def kill(name, done, total):
        if "round 2" in name and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    model = fit(OnlineClassifier(random_state=3), array(X), array(y), array(weight), progress=kill)
    assert killed
    assert_same(model, *by_hand(model, X, y, weight, learner=model._new_learner()))
    client.wait_for_workers(2, timeout=60)


def nan_in(X, y, w):
    X[2][5, 3] = np.nan
    return X, y, w, "partition 2, row 5, column 3 has the value nan: features must be finite"


def wide(X, y, w):
    X[3] = np.hstack([X[3], X[3]])
    return X, y, w, "partition 3 has 8 columns, but partition 0 has 4"


def sparse(X, y, w):
    X[2] = sp.csr_matrix(X[2])
    return X, y, w, "partition 2 is sparse, but partition 0 is not"


def shorter(X, y, w):
    y[2] = y[2][:-1]
    return X, y, w, "partition 2: X has 700 rows, but y has 699"


def unknown(X, y, w):
    y[3][7] = 5.0
    return X, y, w, r"partition 3, row 7 has the label 5: it is not one of the classes \[-1.0, 1.0\]"


def missing(X, y, w):
    y[3][9] = np.nan
    return X, y, w, "partition 3: Input y contains NaN. The first is in row 9"


def part_of_a_class(X, y, w):
    y[3][9] = 0.5
    return X, y, w, "partition 3: Unknown label type: continuous"


def text(X, y, w):
    y[2] = np.where(y[2] > 0, "yes", "no")
    return X, y, w, "partition 2 has labels like 'no', but partition 0 has labels like -1"


def negative(X, y, w):
    w[2][11] = -2.0
    return X, y, w, "partition 2, row 11 has the weight -2: weights must be finite and not negative"


def no_weight(X, y, w):
    return X, y, [0.0 * each for each in w], "sample_weight is zero in every row"


def one_class(X, y, w):
    return X, [np.ones_like(each) for each in y], w, "y holds one class only, 1.0"


def one_class_of_weight(X, y, w):
    return X, y, [each * (labels > 0) for each, labels in zip(w, y, strict=True)], "positive weight are of one class"


def no_rows(X, y, w):
    return [each[:0] for each in X], [each[:0] for each in y], [each[:0] for each in w], "all 4 partitions are empty"


MISTAKES = [nan_in, wide, sparse, shorter, missing, part_of_a_class, text, negative, no_weight, one_class]
MISTAKES += [one_class_of_weight, no_rows, unknown]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_of_partition_and_row_and_leave_the_model(client, data, mistake):
    X, y, weight, message = mistake(*([each.copy() for each in cut(values)] for values in data))
    model = OnlineClassifier(random_state=0).fit(data[0], data[1])
    before = dict(vars(model))
    classes = [-1.0, 1.0] if mistake is unknown else None
    with pytest.raises(ValueError, match=message):
        fit(model, lazily(X, 4), lazily(y), lazily(weight), classes=classes)
    assert vars(model) == before


def test_what_only_learning_finds_is_told_of_its_row(client, data):
    X, y, _ = data
    X = X.copy()
    X[:, 0] = 0.0
    X[-7, 0] = 1e-160
    model = OnlineClassifier(eta0=1.0)
    with pytest.raises(ValueError, match="partition 3, row 1793, column 0 has the value 1e-160: too large or"):
        fit(model, array(X), array(y))
    assert not hasattr(model, "learner_")


def test_text_as_the_target_of_a_regression(client, data):
    X, y = map(cut, data[:2])
    y = [each.astype(object) for each in y]
    y[2][3] = "five"
    with pytest.raises(ValueError, match="partition 2: y has the text 'five' in row 3"):
        fit(OnlineRegressor(), lazily(X, 4), lazily(y))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n-1 1:nan\n", "line 2, column 4, index 1 has the value nan: features must be finite"),
        ("1 1:1\n\nnan 1:1\n", "line 3 has the label nan: it is not finite"),
        ("1 1:1\n-1 1:x\n", "line 2, column 6: the feature's value is not a number, got 'x'"),
        ("1 1:1\n7 1:1\n", r"line 2 has the label 7: it is not one of the classes"),
        ("1 1:1\n1 5:1\n", "line 2: index 5 needs 5 columns, but n_features=4"),
    ],
)
def test_mistakes_in_files_are_told_of_file_and_line(client, files, tmp_path, text, message):
    path = tmp_path / "wrong.libsvm"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{path}, {message}"):
        fit(OnlineClassifier(), [*files, path], classes=[-1, 1], n_features=4)
    empty = tmp_path / "empty"
    empty.write_text("# nothing\n")
    with pytest.raises(ValueError, match="there are no rows"):
        fit(OnlineClassifier(), [empty])


def test_arguments_that_cannot_be(client, data, files):
    X, y, _ = data
    lazy, labels = array(X), array(y)
    frame = dd.from_pandas(pd.DataFrame(X[:10], columns=list("abcd")), npartitions=2)
    model = OnlineClassifier()
    for kind, message, call in [
        (TypeError, "numpy.ndarray.*model.fit", lambda: fit(model, X, y)),
        (TypeError, "pandas.DataFrame.*model.fit", lambda: fit(model, pd.DataFrame(X), y)),
        (TypeError, "scipy.csr_matrix.*model.fit", lambda: fit(model, sp.csr_matrix(X), y)),
        (TypeError, "from_array", lambda: fit(model, lazy, y)),
        (TypeError, "OnlineClassifier or an OnlineRegressor, got Learner", lambda: fit(steelyard.Learner(), lazy)),
        (ValueError, "y is missing", lambda: fit(model, lazy)),
        (ValueError, "one dimension", lambda: fit(model, lazy, lazy)),
        (ValueError, "two dimensions", lambda: fit(model, labels, labels)),
        (ValueError, "X has 4000 rows, but y has 3990", lambda: fit(model, lazy, labels[10:])),
        (ValueError, "only a frame", lambda: fit(model, lazy, "a")),
        (ValueError, "no column of X", lambda: fit(model, frame, "label")),
        (ValueError, "X has 2 partitions, but y has 4", lambda: fit(model, frame, labels)),
        (ValueError, "labels themselves", lambda: fit(model, files, labels)),
        (ValueError, "n_features must be", lambda: fit(model, files, n_features=-1)),
        (ValueError, "zero_based must be", lambda: fit(model, files, zero_based="x")),
        (ValueError, "are for files", lambda: fit(model, lazy, labels, n_features=4)),
        (ValueError, "list of files is empty", lambda: fit(model, [])),
        (ValueError, "a regression has none", lambda: fit(OnlineRegressor(), lazy, labels, classes=[1, 2])),
        (ValueError, "at least two classes", lambda: fit(model, lazy, labels, classes=[1])),
        (ValueError, "shards must be", lambda: fit(model, lazy, labels, shards=0)),
        (ValueError, "eta0 must be", lambda: fit(OnlineClassifier(eta0="x"), lazy, labels)),
        (ValueError, "passes must be", lambda: fit(OnlineClassifier(passes=0), lazy, labels)),
    ]:
        with pytest.raises(kind, match=message):
            call()
    with pytest.raises(FileNotFoundError):
        fit(model, ["/there/is/no/such/file"])
    rechunked = fit(
        OnlineClassifier(random_state=0), lazy.rechunk((-1, 3)).rechunk((tuple(SIZES), 3)), da.from_array(y)
    )
    np.testing.assert_array_equal(rechunked.coef_, fit(OnlineClassifier(random_state=0), lazy, labels).coef_)


# ----------------------------------------------------------------------------------------------------- the surroundings


def test_without_a_client_or_without_dask(data, monkeypatch):
    lazy, labels = array(data[0]), array(data[1])
    monkeypatch.setattr("distributed.get_client", lambda: (_ for _ in ()).throw(ValueError("No global client found")))
    with pytest.raises(ValueError, match=r"no Dask client: start one with dask.distributed.Client\(\)"):
        fit(OnlineClassifier(), lazy, labels)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'steelyard\[distributed\]'"):
        fit(OnlineClassifier(), lazy, labels)


def test_progress_is_silent_in_a_pipe_and_told_to_a_callable(client, data, capsys):
    lazy, labels = array(data[0]), array(data[1])
    told = []
    fit(OnlineClassifier(verbose=1), lazy, labels, progress=lambda *what: told.append(what))
    assert told[-1][1:] == (sum(SIZES), sum(SIZES))
    assert "pass 1, round" in told[-1][0]
    assert "progressive loss" in capsys.readouterr().out
    fit(OnlineClassifier(), lazy, labels)
    assert capsys.readouterr() == ("", "")


def test_nothing_stays_on_the_cluster(client, data):
    fit(OnlineClassifier(), array(data[0]), array(data[1]))
    with pytest.raises(ValueError, match="partition"):
        fit(OnlineClassifier(), array(data[0] + np.nan), array(data[1]))
    for _ in range(100):
        if not any(client.has_what().values()):
            break
        client.run(lambda: None)
    assert not any(client.has_what().values())


def test_a_sweep_on_the_cluster_gives_the_same_numbers(client, data):
    import joblib

    X, y, _ = data
    options = dict(eta0=[0.1, 1.0], repeats=3, seed=5)
    here = steelyard.sweep(X[:300], y[:300], **options)
    with joblib.parallel_config("dask"):
        there = steelyard.sweep(X[:300], y[:300], **options)
    np.testing.assert_array_equal(here.average_loss, there.average_loss)


def test_the_paper_on_the_cluster_gives_the_same_numbers(client, tmp_path, capsys, monkeypatch):
    from steelyard.cli import main, paper
    from steelyard.experiments import report

    for name in ("write", "summary"):  # the page takes most of the time
        monkeypatch.setattr(report, name, lambda *_: "")
    command = ["paper", "--sets", "diabetes", "--rates", "3", "--repeats", "2", "--no-readings", "--jobs", "1"]
    address = client.scheduler_info()["address"]
    assert main([*command, "--output", str(tmp_path / "here")]) == 0
    assert main([*command, "--output", str(tmp_path / "there"), "--cluster", address]) == 0
    here, there = (sorted((tmp_path / where / "shuffles").iterdir()) for where in ("here", "there"))
    assert [path.name for path in here] == [path.name for path in there]
    assert [path.read_bytes() for path in here] == [path.read_bytes() for path in there]
    assert len(here) == 2
    monkeypatch.setattr(paper, "_PATIENCE", 0.2)
    assert main([*command, "--cluster", "tcp://127.0.0.1:1", "--output", str(tmp_path / "nowhere")]) == 1
    assert "there is no Dask scheduler" in capsys.readouterr().err


def test_nothing_is_imported_before_it_is_needed():
    code = "import sys, steelyard; steelyard.distributed; from steelyard.distributed import plan; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"dask", "distributed", "sklearn", "numba", "pandas"} & set(done.stdout.split())
