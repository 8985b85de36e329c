"""Sweeps, data sets, the paper's protocol, its report and the command line."""

from __future__ import annotations

import bz2
import csv
import functools
import hashlib
import html
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import naive
import steelyard
from steelyard import cli
from steelyard.data import datasets
from steelyard.experiments import paper, pictures, plots, report, sets
from steelyard.experiments.claims import NOT_MEASURED, SENTENCES, check
from steelyard.experiments.curves import changes, distance, good_rates, rates_below, sensitivity, width
from steelyard.experiments.sweep import SweepResult
from steelyard.regularizers import SCHEDULES
from steelyard.updates import UPDATES

RATES = np.logspace(-2, 2, 5)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_sweeps_agree_with_algorithm_1_in_plain_python(small, loss, schedule):
    X, y = small
    y = np.sign(y) if loss == "logistic" else y
    rates = [0.05, 1.0, 8.0]
    result = steelyard.sweep(X, y, loss=loss, eta0=rates, schedule=schedule, repeats=2, seed=5)
    for repeat in range(2):
        order = np.random.default_rng([5, repeat]).permutation(60)
        rows = np.column_stack([X, np.ones(60)])[order].tolist()
        for i, update in enumerate(UPDATES):
            for j, rate in enumerate(rates):
                predictions, _ = naive.learn(
                    rows,
                    y[order].tolist(),
                    [1.0] * 60,
                    loss=loss,
                    update=update,
                    schedule=schedule,
                    metric="scalar",
                    center="origin",
                    eta0=rate,
                )
                expected = np.mean([naive.value(loss, p, t) for p, t in zip(predictions, y[order], strict=True)])
                assert result.average_loss[i, j, repeat] == pytest.approx(expected, rel=1e-10)


def test_the_number_of_jobs_does_not_change_a_bit(small):
    X, y = small
    one, two = (steelyard.sweep(X, y, loss="squared", eta0=RATES, repeats=3, n_jobs=n).average_loss for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    other = steelyard.sweep(X, y, loss="squared", eta0=RATES, repeats=3, seed=1).average_loss
    assert not np.array_equal(one, other)


def test_diverging_learners_are_results(small, tmp_path):
    X, y = small
    X, y = np.repeat(X, 20, axis=0) * 3, np.repeat(y, 20)
    done = []
    result = steelyard.sweep(
        X,
        y,
        loss="squared",
        eta0=[0.01, 1e3],
        schedule="constant",
        repeats=2,
        updates=("linearized", "iwa"),
        progress=done.append,
    )
    assert done == [1, 2]
    assert np.isinf(result.average_loss[0, 1]).all()
    assert np.isfinite(result.average_loss[1]).all()
    assert np.isinf(result.mean[0, 1])
    assert np.isnan(result.standard_error[0, 1])
    assert result.standard_error[1, 1] == pytest.approx(result.average_loss[1, 1].std(ddof=1) / np.sqrt(2))
    assert result.best()["linearized"] == (0.01, result.mean[0, 0])
    result.to_csv(tmp_path / "sweep.csv")
    with open(tmp_path / "sweep.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert {row["average_loss"] for row in rows if row["update"] == "linearized" and row["eta0"] == "1000.0"} == {"inf"}
    ax = result.plot()
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_title()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["linearized", "IWA"]
    assert "diverges" in [text.get_text().split(": ")[1].split(" at")[0] for text in ax.texts]


def test_losses_near_the_largest_number_have_an_infinite_error_and_are_drawn():
    losses = np.array([[[0.5, 0.6], [1e200, 3e200]], [[0.5, 0.6], [0.7, 0.8]]])
    result = SweepResult(losses, ("linearized", "iwa"), np.array([1.0, 1e3]), "squared", "power", 0)
    assert result.standard_error[0].tolist() == [pytest.approx(0.05), np.inf]
    assert "linearized: 2e+200 at η₀ = 1000" in [text.get_text() for text in result.plot().texts]


def test_wrong_sweeps_are_refused(small):
    for options, message in [
        (dict(repeats=0), "repeats must be at least 1"),
        (dict(updates=()), "updates must be a list"),
        (dict(updates="iwa"), "updates must be a list of update names, got 'iwa'"),
        (dict(updates=("sgd",)), "unknown update 'sgd'"),
        (dict(eta0=[1.0, -1.0]), "eta0 must be a finite number > 0, got -1.0"),
        (dict(schedule="x"), "unknown schedule"),
    ]:
        with pytest.raises(ValueError, match=message):
            steelyard.sweep(*small, loss="squared", **options)


def test_claim_measures():
    mean = np.array([[1.0, 0.5, 0.52, np.inf], [1.0, 0.5, 0.54, 0.6]])
    result = SweepResult(
        mean[:, :, None], ("linearized", "iwa"), np.array([0.1, 1.0, 10.0, 100.0]), "squared", "gap", 0
    )
    assert sensitivity(result, "linearized") == np.inf
    assert sensitivity(result, "iwa") == 2.0
    assert width(result, "linearized", 0.10) == pytest.approx(1.0)
    assert width(result, "iwa", 0.25) == pytest.approx(2.0)
    assert good_rates(result, "iwa", 0.05) == (1.0, 1.0)
    assert good_rates(result, "iwa", 1.0) == (0.1, 100.0)
    assert distance(result, "iwa", "linearized") == pytest.approx(0.02 / 0.52)  # over the last three rates
    assert distance(result, "linearized", "iwa") == pytest.approx(0.02 / 0.54)
    assert distance(result, "iwa", "iwa") == 0.0
    assert changes(result, "iwa", "linearized") == 100.0
    assert changes(result, "linearized", "iwa") is None
    assert rates_below(result, "iwa", 0.55) == (1.0, 10.0)
    assert rates_below(result, "linearized", 2.0) == (0.1, 10.0)
    assert rates_below(result, "iwa", 0.5) is None


# ------------------------------------------------------------------------------------------- data sets


@pytest.mark.parametrize("name", datasets.EMBEDDED)
def test_embedded_sets(name):
    task, X, y = datasets.load(name)
    assert task == datasets.EMBEDDED[name]
    assert X.shape[0] == y.size > 100
    assert (set(y) == {-1.0, 1.0}) == (task == "classification")
    X, y = sets.normalise(task, X, y)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)


def test_normalising_sparse_and_dense_data():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = sp.random(50, 20, density=0.1, random_state=rng, format="csr")
    Z, _ = sets.normalise("classification", X, np.ones(50))
    assert sp.issparse(Z)
    norms = np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
    np.testing.assert_allclose(norms[np.diff(X.indptr) > 0], 1.0)
    dense, y = sets.normalise(
        "regression", np.column_stack([rng.normal(size=(50, 3)), np.ones(50)]), rng.normal(size=50) + 9
    )
    assert (dense[:, 3] == 0.0).all()  # a constant column says nothing
    assert y.mean() == pytest.approx(0.0, abs=1e-12)
    assert y.std() == pytest.approx(1.0)


@pytest.fixture
def site(tmp_path):
    """The LIBSVM site on loopback, with two sets, one of them cut off."""
    folder = tmp_path / "site"
    (folder / "regression").mkdir(parents=True)
    (folder / "binary").mkdir()
    rows = "".join(f"{i % 9} 1:{i} 7:1\n" for i in range(392))
    (folder / "regression" / "mpg_scale").write_text(rows)
    (folder / "binary" / "heart_scale").write_text("+1 1:1\n-1 2:1\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_fetching(site, tmp_path, monkeypatch, capsys):
    cache = tmp_path / "cache"
    path = datasets.fetch("mpg_scale", cache, site=site)
    assert path == cache / "mpg_scale"
    task, X, y = datasets.load("mpg_scale", cache)
    assert (task, X.shape, y.size) == ("regression", (392, 7), 392)
    assert datasets.fetch("mpg_scale", cache, site="http://127.0.0.1:1") == path  # not fetched again
    with pytest.raises(ValueError, match="has 2 rows, but heart_scale has 270: the file is cut off"):
        datasets.fetch("heart_scale", cache, site=site, force=True)
    with pytest.raises(ConnectionError, match=r"could not download abalone_scale from .*put the file into a folder"):
        datasets.fetch("abalone_scale", cache, site=site)
    with pytest.raises(ConnectionError, match="Without a network"):
        datasets.fetch("abalone_scale", cache, site="http://127.0.0.1:1")
    with pytest.raises(ValueError, match="unknown data set 'nothing'"):
        datasets.fetch("nothing", cache)
    # the hash of the text, where it is known
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    for known, other in ((datasets.SETS["heart_scale"].sha256, "heart_scale"), ("0" * 64, "mpg_scale")):
        monkeypatch.setitem(datasets.SETS, other, datasets.SETS[other]._replace(sha256=known))
        found = right if other == "mpg_scale" else "[0-9a-f]{64}"
        with pytest.raises(ValueError, match=f"SHA-256 {found}, but {other} has {known}.*--force.*not kept"):
            datasets.fetch(other, tmp_path / "new", site=site)
    assert [p.name for p in cache.iterdir()] == ["mpg_scale"]
    assert not list((tmp_path / "new").iterdir())
    # and the command says what was checked
    monkeypatch.setattr(datasets.fetch, "__kwdefaults__", {"site": site, "force": False})
    command = ["data", "fetch", "mpg_scale", "--data", str(tmp_path / "new")]
    assert cli.main(command) == 1
    assert right in capsys.readouterr().err
    for known, more, said in (
        ("0" * 64, ["--force"], "its hash was not asked for"),
        (right, [], "its hash is right"),
        (None, [], "no hash of it is known"),
    ):
        monkeypatch.setitem(datasets.SETS, "mpg_scale", datasets.SETS["mpg_scale"]._replace(sha256=known))
        assert cli.main([*command, *more]) == 0
        assert said in capsys.readouterr().out
        assert cli.main(command) == 0
        assert "was there already" in capsys.readouterr().out
        (tmp_path / "new" / "mpg_scale").unlink()


def test_downloads_have_a_limit(site, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "SIZE_LIMIT", 5000)
    packed = tmp_path / "site" / "binary" / "ijcnn1.bz2"
    for text in (b"1 1:1\n" * 1000, b"1" * 5001):
        packed.write_bytes(bz2.compress(text))
        assert packed.stat().st_size < 200
        with pytest.raises(ValueError, match=r"ijcnn1\.bz2 decompresses to more than 5000 bytes: not kept"):
            datasets.fetch("ijcnn1", tmp_path / "cache", site=site)
    monkeypatch.setattr(datasets, "SIZE_LIMIT", 100)
    with pytest.raises(ValueError, match="larger than 100 bytes: not kept"):
        datasets.fetch("mpg_scale", tmp_path / "cache", site=site)
    assert not list((tmp_path / "cache").iterdir())


def test_absent_sets_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="steelyard data fetch a9a"):
        datasets.load("a9a")


# ------------------------------------------------------------------------------------ the whole command

ARGUMENTS = ["--sets", "iris_petal", "wine_first", "--rates", "5", "--repeats", "3", "--jobs", "1"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    assert cli.main(["paper", *ARGUMENTS, "--output", str(folder)]) == 0
    return folder


def test_the_output_folder(page):
    expected = {"results.csv", "readings.csv", "weights.csv", "claims.json", "run.json", "index.html", "shuffles"}
    expected |= {f"figure{i}.{kind}" for i in range(1, 8) for kind in ("png", "svg", "pdf")}
    assert {path.name for path in page.iterdir()} == expected
    with open(page / "results.csv") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["dataset", "task", "loss", "update", "schedule", "eta0", "repeat", "average_loss"]
    assert len(rows) == 2 * 4 * 5 * 3
    claims = json.loads((page / "claims.json").read_text())
    assert [claim["quote"] for claim in claims] == [sentence.quote for sentence in SENTENCES]
    for claim in claims:
        names = {"iris_petal", "wine_first"} if "abstract" in claim["place"] else None
        names = names or ({"iris_petal"} if "squared" in claim["place"] else {"wine_first"})
        assert set(claim["sets"]) == names  # no loss that the sentence does not speak of
        assert set(claim["held_by_schedule"]) == set(SCHEDULES)
        assert claim["held_by_schedule"]["gap"] == [name for name, finding in claim["sets"].items() if finding["holds"]]
        for finding in claim["sets"].values():
            assert finding["measured"]
            assert bool(finding["why"]) != finding["holds"]
    with open(page / "readings.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["schedule"] for row in rows} == set(SCHEDULES) - {"gap"}
    assert len(rows) == 3 * 2 * 4 * 5 * 3


def test_the_page_stands_alone(page):
    text = (page / "index.html").read_text().replace("\u00a0", " ")
    assert re.findall(r"<b>Figure (\d)", text) == list("1234567")
    assert re.findall(r"<b>Table (\d)", text) == list("12345")
    places = set(re.findall(r'id="([^"]+)"', text))
    for link in re.findall(r'(?:src|href)="(?!data:)([^"]*)"', text):  # files beside it, and places on it
        assert link[1:] in places if link.startswith("#") else (page / link).is_file()
    assert not re.search(r"<script|<link(?! rel=\"icon\" href=\"data:,\")|@import|url\(", text)
    for claim in json.loads((page / "claims.json").read_text()):
        claim = json.loads(json.dumps(claim, ensure_ascii=False).replace("\u00a0", " "))
        quote, sentence = html.escape(claim["quote"]), html.escape(claim["sentence"])
        assert sentence.replace(quote, f"<b class=said>{quote}</b>") in text
        assert html.escape(claim["place"]) in text
        assert html.escape(claim["taken_as"]) in text
        for finding in claim["sets"].values():
            assert html.escape(finding["measured"]) in text
            assert html.escape(finding["why"]) in text
    for sentence in NOT_MEASURED:
        assert html.escape(sentence) in text
    cells = re.findall(
        r'<td class="n"><span class="\w+">(\d of \d)</span></td>', text[text.index('<table id="table4"') :]
    )
    assert len(cells) == len(SENTENCES) * len(SCHEDULES)


def test_the_page_says_what_was_run(page):
    text, about = (page / "index.html").read_text(), json.loads((page / "run.json").read_text())
    output = f"--output {page}"
    assert about["command"] == f"steelyard paper {' '.join(ARGUMENTS[:-2])} --jobs 1 {output}"
    for said in (about["date"], about["steelyard"], about["numba"]):
        assert html.escape(said) in text
    assert html.escape(about["command"]) in re.sub("</?span>", "", text)
    assert about["settings"]["schedule"] == "gap"
    for name, (_, X, y) in ((name, datasets.load(name)) for name in about["sets"]):
        facts = about["sets"][name]
        assert (facts["rows"], facts["columns"], facts["nonzeros"]) == (*X.shape, np.count_nonzero(X))
        _, targets = sets.normalise(facts["task"], X, y)
        loss = steelyard.losses.get_loss(paper.LOSS[facts["task"]])
        constants = np.linspace(-3, 3, 6001)  # the best one, by search
        losses = [float(np.mean(loss.value(np.full(y.size, c), targets))) for c in constants]
        assert facts["constant"] == pytest.approx(min(losses), abs=1e-6)
    assert "they are not LIBSVM's, so not the paper's" in text


def test_failures_come_first(page):
    text = (page / "index.html").read_text()
    table = text[text.index('<table class="claims"') :]
    table = table[: table.index("</table>")]
    held = [tuple(map(int, found)) for found in re.findall(r'<td><span class="\w+">(\d) of (\d)</span></td>', table)]
    shares = [some / all_ for some, all_ in held]
    assert len(shares) == len(SENTENCES)
    assert shares == sorted(shares)
    for row in table.split("<tr>")[2:]:
        words = re.findall(r'<li><span class="(\w+)">', row)
        assert words == sorted(words, key=["fail", "yes"].index)


def test_sentences_are_the_papers_words():
    folder = Path(__file__).parents[2] / "shared" / "paper"
    if not folder.is_dir():
        pytest.skip("the text of the paper is not on this machine")
    source = "".join(path.read_text() for path in sorted(folder.glob("*.txt")))
    written = {"$\\eta_0$": "η₀", "\\citet{AsiD19}": "Asi & Duchi (2019)", "\\emph{better}": "better"}
    for tex, plain in written.items():
        source = source.replace(tex, plain)
    source = " ".join(source.split())
    for sentence in (*(s.sentence for s in SENTENCES), *NOT_MEASURED):
        assert sentence in source


def test_the_bound_that_the_page_states_for_the_schedule_gap():
    """Regret(u) <= lam_(T+1) (|u|^2/2 + eta0^2) - eta0, for every update, on the certificate's own terms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    for loss, y in (
        ("squared", X @ [1.0, -2.0, 0.5, 3.0]),
        ("logistic", np.sign(X[:, 0] + 0.3 * rng.normal(size=200))),
    ):
        for update in UPDATES:
            for eta0 in (0.1, 1.0, 10.0):
                options = dict(schedule="gap", metric="scalar", center="origin", fit_intercept=False)
                learner = steelyard.Learner(loss, update=update, eta0=eta0, **options)
                learner.learn(X, y)
                certificate = learner.certify()
                for u in rng.normal(size=(5, 4)):
                    lam = float(learner.lam()[0])
                    stated = lam * (u @ u / 2 + eta0**2) - eta0
                    regret = certificate.total_loss - steelyard.losses.get_loss(loss).value(X @ u, y).sum()
                    assert regret <= stated * (1 + 1e-9) + 1e-9
                    assert certificate.regret_bound(u) <= stated * (1 + 1e-9) + 1e-9


def test_embedded_figures_follow_the_theme_and_files_do_not(page):
    import base64

    text = (page / "index.html").read_text()
    shown = [base64.b64decode(d).decode() for d in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)]
    assert len(shown) == 2 + 2 + 2 + 2 + 1 + 1
    for svg in shown:
        assert "prefers-color-scheme: dark" in svg
        assert "fill: #ffffff" not in svg
        assert not [color for color in plots.COLORS.values() if f": {color}" in svg and color != plots.COLORS["auto"]]
    assert "prefers-color-scheme" not in (page / "figure1.svg").read_text()


def test_notes_of_a_panel_do_not_overlap():
    """All updates leave the axis: each note has a line of its own between axis and title, and the title is in view."""
    losses = np.array([[1.0, 0.5, 9e3], [1.0, 0.4, np.inf], [1.0, 0.5, 9e9], [1.0, 0.5, 7e7]])[:, :, None]
    result = SweepResult(losses, tuple(UPDATES), np.array([0.1, 1.0, 10.0]), "squared", "gap", 0)
    figure = plots.panel(plots.draw_sweep, "name", result, 0.5)
    figure.canvas.draw()
    ax = figure.axes[0]
    boxes = [text.get_window_extent() for text in (*ax.texts, ax.title)]
    assert len(boxes) == 5
    for i, one in enumerate(boxes):
        assert one.y1 <= figure.bbox.y1
        assert one.y0 >= ax.get_window_extent().y1
        assert not any(one.overlaps(other) for other in boxes[:i])


def test_every_axis_has_a_label_and_a_title(page):
    result = SweepResult(np.ones((4, 5, 2)), tuple(UPDATES), RATES, "squared", "gap", 0)
    figures = [plots.panel(draw, "one", result, 0.5) for draw in (plots.draw_sweep, plots.draw_widths)]
    figures += [pictures.figure_one_example(), pictures.figure_ratio()]
    figures.append(
        pictures.figure_weighted_stream(np.array([1.0, 10.0]), {u: np.ones((2, 3)) for u in (*UPDATES, "sgd")})
    )
    for figure in figures:
        assert any(ax.get_title() for ax in figure.axes)
        for ax in figure.axes:
            shared = ax.get_shared_x_axes().get_siblings(ax)
            assert ax.get_ylabel() or ax.get_xlabel()
            assert any(other.get_xlabel() for other in shared) or ax.get_label() == "<colorbar>"


def test_a_second_run_starts_from_what_is_there(page, tmp_path, monkeypatch):
    shutil.copytree(page, tmp_path / "again")
    before = (tmp_path / "again" / "results.csv").read_bytes()
    for victim in sorted((tmp_path / "again" / "shuffles").iterdir())[::2]:
        victim.unlink()
    learned = []
    original = paper.one_shuffle
    monkeypatch.setattr(paper, "one_shuffle", lambda *a: (learned.append(a[-1]), original(*a))[1])
    assert cli.main(["paper", *ARGUMENTS, "--output", str(tmp_path / "again")]) == 0
    assert len(learned) == 12  # half of two sets, four schedules, three shuffles
    assert (tmp_path / "again" / "results.csv").read_bytes() == before


def test_damaged_shuffles_are_run_again(page, tmp_path):
    shutil.copytree(page, tmp_path / "again")
    first, second = sorted((tmp_path / "again" / "shuffles").iterdir())[:2]
    first.write_bytes(b"junk")
    second.write_bytes(b"")
    assert cli.main(["paper", *ARGUMENTS, "--output", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "results.csv").read_bytes() == (page / "results.csv").read_bytes()


def test_an_interrupted_run_goes_on(tmp_path, page):
    sets = ["--sets", "digits_odd", "--rates", "25", "--repeats", "40", "--jobs", "1"]
    command = [sys.executable, "-m", "steelyard", "paper", *sets, "--output", str(tmp_path / "cut")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for _ in range(600):
        time.sleep(0.05)
        if (tmp_path / "cut" / "shuffles").exists() and list((tmp_path / "cut" / "shuffles").glob("*.npy")):
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    kept = len(list((tmp_path / "cut" / "shuffles").glob("*.npy")))
    if process.returncode == 0:
        pytest.skip("this machine finished before it was interrupted")
    assert "what was finished is kept" in errors
    assert 0 < kept < 40
    assert not list((tmp_path / "cut").glob("*.html"))
    settings = paper.Settings(repeats=40)
    resumed = paper.run(["digits_odd"], settings, tmp_path / "cut", n_jobs=1)
    whole = paper.run(["digits_odd"], settings, tmp_path / "whole", n_jobs=2)
    np.testing.assert_array_equal(resumed["digits_odd"].average_loss, whole["digits_odd"].average_loss)


def made_up(loss, **curves):
    """A sweep at four rates with these mean losses; what is not given is as the linearized update."""
    mean = [curves.get(update, curves["linearized"]) for update in UPDATES]
    losses = np.array(mean, dtype=float)[:, :, None]
    return SweepResult(losses, tuple(UPDATES), np.array([0.1, 1.0, 10.0, 100.0]), loss, "gap", 0)


def verdicts(*results):
    return {
        claim.sentence.name: claim.held for claim in check({f"set {i}": result for i, result in enumerate(results)})
    }


def test_claims_can_fail():
    for loss in ("squared", "logistic"):  # all updates do the same
        for claim in check({"one": made_up(loss, linearized=[1.0, 0.5, 0.6, 0.7])}):
            finding = claim.findings["one"]
            if claim.sentence.name == "implicit updates are robust":
                assert claim.holds  # and so is the linearized one, which is another claim
                continue
            assert not claim.holds
            assert not claim.held
            assert finding.why
    steep = verdicts(made_up("squared", linearized=[0.5, 0.1, 2.0, np.inf], iwa=[0.5, 0.1, 0.5, 1.1]))
    assert steep["linearized is very sensitive"] == ["set 0"]
    assert not steep["implicit updates are robust"]


def test_claims_can_hold_and_say_on_which_sets():
    tame, wild = [0.5, 0.1, 0.12, 0.15], [0.5, 0.1, 5.0, np.inf]
    good = made_up("squared", linearized=wild, aprox=tame, iwa=tame, proximal=tame)
    assert all(held == ["set 0"] for held in verdicts(good).values())
    assert len(verdicts(good)) == 5
    good = made_up("logistic", linearized=wild, aprox=tame, iwa=tame, proximal=tame)
    assert all(held == ["set 0"] for held in verdicts(good).values())
    bad = made_up("logistic", linearized=[0.5, 0.1, 0.12, 0.2])
    both = verdicts(good, bad)
    assert both["IWA approximates proximal"] == ["set 0"]
    assert report.summary(check({"good": good, "bad": bad})) == (
        "0 of 6 claims hold on every data set, 6 on some, 0 on none"
    )


def test_sentences_are_measured_for_their_own_loss():
    for sentence in SENTENCES:
        expected = {"section 4, paragraph 3, on its figure 1 (squared loss)": ("squared",)}
        expected |= {"section 4, paragraph 4, on its figure 2 (logistic loss)": ("logistic",)}
        assert sentence.losses == expected.get(sentence.place, ("squared", "logistic"))
        assert sentence.quote in sentence.sentence
    assert not any("proximal" in s.updates for s in SENTENCES if "broader" in s.name and s.losses == ("logistic",))


def test_readings_can_be_left_out(tmp_path, capsys):
    arguments = ["--sets", "iris_petal", "--rates", "4", "--repeats", "1", "--jobs", "1", "--output", str(tmp_path)]
    assert cli.main(["paper", *arguments]) == 0
    assert (tmp_path / "readings.csv").exists()
    assert cli.main(["paper", *arguments, "--no-readings"]) == 0
    assert not (tmp_path / "readings.csv").exists()
    assert "table4" not in (tmp_path / "index.html").read_text()
    last = capsys.readouterr().out.splitlines()[-1]
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert last.startswith(f"gap schedule: {sum(c['holds'] for c in claims)} of {len(claims)} claims hold on every")


def libsvm_file(path, labels=(1, 2), rows=60):
    rng = np.random.default_rng(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    values = rng.normal(size=(rows, 2))
    path.write_text("".join(f"{labels[int(a > 0)]} 1:{a:.4f} 2:{b:.4f}\n" for a, b in values))
    return str(path)


def test_the_paper_takes_files(tmp_path):
    one, two = libsvm_file(tmp_path / "a" / "my $set$ 100%"), libsvm_file(tmp_path / "b" / "my $set$ 100%", (0, 9), 70)
    command = ["paper", "--sets", one, "iris_petal", two, "--rates", "3", "--repeats", "1", "--jobs", "1"]
    assert cli.main([*command, "--output", str(tmp_path / "o")]) == 0
    with open(tmp_path / "o" / "results.csv") as file:
        names = {row["dataset"]: row["loss"] for row in csv.DictReader(file)}
    assert names == {
        "a/my $set$ 100%": "logistic",
        "iris_petal": "squared",
        "b/my $set$ 100%": "logistic",
    }
    text = (tmp_path / "o" / "index.html").read_text()
    assert "a/my $set$ 100% and b/my $set$ 100%: the user's own" in text
    assert "iris_petal come with scikit-learn" in text


def test_a_refused_run_leaves_no_folder(tmp_path, capsys):
    def written(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    one_label = libsvm_file(tmp_path / "same", (3, 3))
    good = libsvm_file(tmp_path / "good")
    for names, message in [
        (["nothing"], "unknown data set 'nothing', and no file of that name is here"),
        (["iris_petal", "nothing"], "unknown data set 'nothing'"),
        ([str(tmp_path / "absent")], "there is no such file"),
        ([str(tmp_path)], "is a folder: name a file in it"),
        (["iris_petal", one_label], "has one label only, 3"),
        ([good, written("empty", "")], "empty has no rows"),
        ([good, written("bare", "1\n2\n")], "bare has no features"),
        ([good, written("nan", "1 1:2\n2 1:3 2:nan\n")], "nan, row 2: a feature is nan"),
        ([good, written("label", "1 1:2\nnan 1:3\n")], "label, row 2: the label is nan"),
        ([good, written("a.csv", "a,b\n1,2\n")], "looks like CSV, and this command reads LIBSVM text only"),
        ([good, written("a.vw", "1 |f a b\n")], "looks like Vowpal Wabbit's format, and this command reads LIBSVM"),
    ]:
        assert cli.main(["paper", "--sets", *names, "--jobs", "1", "--output", str(tmp_path / "o")]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert "--format" not in error
        assert not (tmp_path / "o").exists()
    for arguments, message in [
        (["--output", good], "is a file: name a folder"),
        (["--jobs", "0", "--output", str(tmp_path / "o")], "--jobs must be"),
        (["--data", str(tmp_path / "absent"), "--output", str(tmp_path / "o")], "there is no such folder"),
    ]:
        assert cli.main(["paper", "--sets", good, *arguments]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "o").exists()


def test_titles_and_file_names_tell_files_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["a/x", "b/x", "c/b/x", "iris_petal", "-x", ".x", "y\n", "y\t", "z" * 200]
    for name in names:
        if name != "iris_petal":
            libsvm_file(tmp_path / name)
    titles = sets.titles(names)
    root = tmp_path.name
    assert [titles[name] for name in names[:4]] == ["a/x", f"{root}/b/x", "c/b/x", "iris_petal"]
    assert titles["y\n"] == "y?"
    assert len(set(titles.values())) == len(names)
    stems = [sets.file_stem(name) for name in names]
    assert len(set(stems)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{,80}", stem) for stem in stems)


def children(pid):
    """The processes that a process has started, from /proc."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry))
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc on this machine")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_a_killed_run(tmp_path, number):
    sets = ["--sets", "digits_odd", "--rates", "200", "--repeats", "400", "--jobs", "2", "--no-readings"]
    command = [sys.executable, "-m", "steelyard", "paper", *sets, "--output", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    workers = []
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(tmp_path.glob("shuffles/*.npy")):
            time.sleep(0.1)
        workers = children(process.pid)
        assert len(workers) >= 2
        process.send_signal(number)
        process.wait(timeout=30)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and any(map(alive, workers)):
            time.sleep(0.1)
        assert not [pid for pid in workers if alive(pid)]
        kept = len(list(tmp_path.glob("shuffles/*.npy")))
        assert 0 < kept < 400
    finally:
        for pid in (process.pid, *workers):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def test_the_command_line_is_kind(capsys, tmp_path):
    assert cli.main([]) == 0
    assert "paper" in capsys.readouterr().out
    assert cli.main(["data", "list", "--data", str(tmp_path)]) == 0
    listing = capsys.readouterr().out
    assert "breast_cancer" in listing
    assert "w8a" in listing
    assert cli.main(["paper", "--sets", "a9a", "--data", str(tmp_path), "--output", str(tmp_path / "o")]) == 1
    assert "steelyard data fetch a9a" in capsys.readouterr().err
    assert cli.main(["paper", "--sets", "nothing", "--output", str(tmp_path / "o")]) == 1
    assert "unknown data set 'nothing'" in capsys.readouterr().err
    assert cli.main(["paper", "--rates", "1", "--output", str(tmp_path / "o")]) == 2


def test_output_into_a_pipe_that_closes():
    command = f"{sys.executable} -m steelyard data list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("name")
    assert "Broken pipe" not in done.stderr


# ------------------------------------------------------------------------------------- a real browser

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width_px", [1200, 390])
def test_the_page_in_a_real_browser(page, tmp_path, width_px):
    """All figures are drawn, nothing is wider than the window, and the console stays empty."""
    probe = (
        "<script>addEventListener('error', e => document.title = 'ERROR ' + e.message);"
        "addEventListener('load', () => { const images = [...document.images];"
        "document.body.dataset.drawn = images.filter(i => i.complete && i.naturalWidth > 0).length;"
        "document.body.dataset.overflow = document.documentElement.scrollWidth - innerWidth; });</script></body>"
    )
    copy = tmp_path / "page.html"
    copy.write_text((page / "index.html").read_text().replace("</body>", probe))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width_px},2000", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=5000", "--dump-dom", copy.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ})
    assert 'data-drawn="10"' in done.stdout
    overflow = int(re.search(r'data-overflow="(-?\d+)"', done.stdout).group(1))
    assert overflow <= 0
    assert "CONSOLE" not in done.stderr
    assert "<title>ERROR" not in done.stdout
