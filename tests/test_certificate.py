"""Certificates: never violated, whatever the data; equal to what a second look at the data gives."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import steelyard
from steelyard import Bank, Learner, OnlineClassifier, OnlineRegressor, cli
from steelyard.certificate import Certificate
from steelyard.regularizers import CENTERS, METRICS, SCHEDULES
from steelyard.updates import UPDATES, evaluate
from strategies import CUSTOM, VARIANTS, random_labels

SLACK = 1e-9  # relative to the sums that are compared


def stream(loss, seed, rows=60, features=4):
    """Rows of mixed scales, repeated directions and weights, some labels against the rest."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * 10.0 ** rng.integers(-1, 1, features)
    X[rng.random(rows) < 0.2] = X[0]
    y = random_labels(loss, rng, rows)
    if loss.labels == "real":
        y /= 10.0
    if loss.labels == "count":
        y = np.minimum(y, 3.0)
    weight = np.where(rng.random(rows) < 0.1, 0.0, rng.exponential(size=rows) * 10.0 ** rng.integers(-1, 2, rows))
    return X, y, weight


def total_loss(loss, X, y, weight, u, intercept):
    p = X @ u + intercept
    return float(weight @ evaluate(loss, "linearized", p, y, 0.0)[0])


@pytest.mark.parametrize("loss", [*VARIANTS, *CUSTOM.values()], ids=lambda loss: f"{type(loss).__name__}-{loss.name}")
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_bound_is_never_violated(loss, data):
    rules = [u for u in UPDATES if u != "aprox" or getattr(loss, "infimum", 0.0) is not None]
    metric = data.draw(st.sampled_from([metric for metric in METRICS if metric != "full" or loss.curvature]))
    learner = Learner(
        loss,
        update=data.draw(st.sampled_from(rules)),
        schedule=None if metric == "full" else data.draw(st.sampled_from(list(SCHEDULES))),
        metric=metric,
        center="trajectory" if metric == "full" else data.draw(st.sampled_from(CENTERS)),
        eta0=data.draw(st.sampled_from([1e-2, 0.3, 1.0])),
        fit_intercept=data.draw(st.booleans()),
        certificate=True,
    )
    seed = data.draw(st.integers(0, 10**6))
    X, y, weight = stream(loss, seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*diverges", category=RuntimeWarning)
        trace = learner.learn(X, y, weight)
    if not np.isfinite(trace.loss).all():
        return  # a diverged learner has an infinite loss, and an infinite bound
    certificate = learner.certify()
    rng = np.random.default_rng(seed)
    played = float(weight @ trace.loss)
    assert certificate.total_loss == pytest.approx(played, rel=1e-12)
    for scale in (0.0, 0.1, 1.0, 10.0):
        u, intercept = scale * rng.normal(size=4), scale * rng.normal() * learner.fit_intercept
        theirs = total_loss(loss, X, y, weight, u, intercept)
        size = np.abs(certificate.dual).sum() * scale
        slack = SLACK * (played + abs(theirs) + abs(certificate.fenchel) + size)
        assert played - theirs <= certificate.regret_bound(u, intercept) + slack
        norm = np.hypot(np.linalg.norm(u), intercept)
        assert certificate.regret_bound(u, intercept) <= certificate.regret_bound(radius=norm) + slack
        assert certificate.best_loss_lower_bound(norm) <= theirs + slack


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(
    ("schedule", "metric", "center"),
    [*itertools.product(SCHEDULES, ("scalar", "diagonal"), CENTERS), ("constant", "full", "trajectory")],
)
def test_the_sums_are_those_of_a_second_look(schedule, metric, center, outputs):
    X, y, weight = stream(VARIANTS[1], 3)
    assert VARIANTS[1].name == "logistic"
    options = dict(schedule=schedule, metric=metric, center=center, eta0=0.5)
    learner = Learner("logistic", n_outputs=outputs, certificate=True, **options)
    classes = np.arange(len(y)) % 3
    learner.learn(X, y if outputs == 1 else classes, weight)
    for k in range(outputs):
        labels = y if outputs == 1 else np.where(classes == k, 1.0, -1.0)
        fenchel, dual = second_look(X, labels, weight, **options)
        certificate = learner.certify(k)
        assert certificate.fenchel == pytest.approx(fenchel, rel=1e-9)
        np.testing.assert_allclose(certificate.dual, dual, rtol=1e-9, atol=1e-9 * np.abs(dual).max())


def second_look(X, y, weight, **options):
    """C_T and Z_T from the naive learner, whose surrogate slopes are told by the moves of theta."""
    rows = np.column_stack([X, np.ones(len(X))]).tolist()
    slopes: list[float] = []
    original = naive.step

    def spy(*arguments):
        slopes.append(original(*arguments))
        return slopes[-1]

    naive.step = spy
    try:
        predictions, _ = naive.learn(rows, y.tolist(), weight.tolist(), loss="logistic", update="iwa", **options)
    finally:
        naive.step = original
    learned = np.flatnonzero(weight > 0)
    fenchel, dual = 0.0, np.zeros(X.shape[1] + 1)
    for c, i in zip(slopes, learned, strict=True):
        fenchel += weight[i] * (naive.value("logistic", predictions[i], y[i]) + naive.conjugate("logistic", c, y[i]))
        dual += weight[i] * c * np.array(rows[i])
    return fenchel, dual


def test_delta_is_what_the_paper_defines():
    """delta_t = H_t(g_t) - H_t(z_t), H_t(z) = ||theta_t - z||^2 / (2 lam_(t+1)) + conjugate of h*loss at z."""
    X, y, weight = stream(VARIANTS[1], 5, rows=25)
    for schedule, update in itertools.product(SCHEDULES, UPDATES):
        learner = Learner("logistic", update=update, schedule=schedule, metric="scalar", center="origin", eta0=2.0)
        total, negative = 0.0, 0
        for i in range(len(y)):
            theta = learner.state.table.copy() if learner.state else np.zeros(5)
            trace = learner.learn(X[i : i + 1], y[i : i + 1], weight[i : i + 1])
            if weight[i] == 0.0:
                continue
            q, h, after = np.append(X[i], 1.0), weight[i], learner.lam()[0]
            g = naive.slope("logistic", trace.prediction[0], y[i])
            z = theta - learner.state.table
            c = (z @ q) / (h * (q @ q))

            def H(s, theta=theta, q=q, h=h, after=after, y=y[i]):
                return np.sum((theta - h * s * q) ** 2) / (2 * after) + h * naive.conjugate("logistic", s, y)

            total += H(g) - H(c)
            negative += H(g) - H(c) < -1e-9
        certificate = learner.certify()
        assert certificate.delta == pytest.approx(total, rel=1e-7, abs=1e-9)
        if update == "linearized":
            assert certificate.delta == pytest.approx(0.0, abs=1e-9)
        elif schedule == "constant":
            assert certificate.delta >= 0.0
            assert negative == 0


@pytest.mark.parametrize("update", ["iwa", "proximal"])
@pytest.mark.parametrize("loss", VARIANTS, ids=str)
def test_in_a_ball_no_step_breaks_algorithm_1s_condition_at_a_constant_lam(loss, update):
    X, y, weight = stream(loss, 3, rows=40)
    weight = np.where(weight > 0.0, weight + 1.0, 0.0)
    for radius, eta0 in itertools.product((0.1, 1.0), (0.1, 10.0)):
        options = dict(loss=loss, update=update, schedule="constant", eta0=eta0, radius=radius)
        bound, certificate = steelyard.paper_bound(X, y, np.zeros(X.shape[1]), sample_weight=weight, **options)
        scale = 1e-9 * (1.0 + abs(certificate.fenchel) + abs(certificate.total_loss) + np.abs(bound.terms).max())
        assert bound.delta.min() >= -scale


def test_rounding_is_no_negative_delta():
    """At a constant lam, IWA and proximal have delta_t >= 0; what rounding makes of a tiny one is not counted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = np.sign(X @ rng.normal(size=4))
    losses = ("logistic", "squared", "exponential", "squared_hinge", "logarithmic", "hellinger")
    for loss, update, eta0 in itertools.product(losses, ("iwa", "proximal"), (1e-8, 0.1, 10.0, 1e4)):
        learner = Learner(loss, update=update, schedule="constant", metric="scalar", center="origin", eta0=eta0)
        learner.learn(X, y)
        assert learner.certify().negative_deltas == 0, (loss, update, eta0)


def test_certificates_survive_files_and_add_up(tmp_path):
    X, y, weight = stream(VARIANTS[1], 6)
    whole, part = (Learner("logistic", certificate=True) for _ in range(2))
    whole.learn(X, y, weight)
    part.learn(X[:30], y[:30], weight[:30])
    part.save(tmp_path / "m")
    part = Learner.load(tmp_path / "m")
    first = part.certify()
    part.learn(X[30:], y[30:], weight[30:])
    assert part.certify().fenchel == whole.certify().fenchel
    np.testing.assert_array_equal(part.certify().dual, whole.certify().dual)
    other = Learner("logistic", eta0=3.0, certificate=True)
    other.learn(X[30:], y[30:], weight[30:])
    both = first + other.certify()
    assert both.rounds == first.rounds + other.certify().rounds
    u = np.ones(4)
    assert both.regret_bound(u) == pytest.approx(first.regret_bound(u) + other.certify().regret_bound(u))


def test_certificates_say_what_they_cannot_do():
    with pytest.raises(ValueError, match="make it with certificate=True"):
        Learner("logistic").certify()
    learner = Learner("logistic", center="origin", fit_intercept=False)
    with pytest.raises(ValueError, match="has not learned anything yet"):
        learner.certify()
    learner.learn(np.eye(2), [1.0, -1.0])
    certificate = learner.certify()
    for arguments, options, message in [
        ((), {}, "give a comparator u, or a radius"),
        ((np.ones(2),), {"radius": 1.0}, "and not both"),
        ((np.ones(3),), {}, "u has 3 entries, but the learner has 2 features"),
        ((np.ones(2), 1.0), {}, "has no intercept"),
        ((), {"radius": -1.0}, "radius must be a finite number"),
        ((), {"radius": np.nan}, "radius must be a finite number"),
        (([1.0, np.nan],), {}, "u and its intercept must be finite"),
        ((np.ones(2), [1.0, 2.0]), {}, "intercept must be one number, got 2"),
        ((np.ones(2),), {"scaled": True}, "scaled=True belongs to a radius"),
    ]:
        with pytest.raises(ValueError, match=message):
            certificate.regret_bound(*arguments, **options)
    assert "within" in repr(certificate)
    with pytest.raises(ValueError, match="different features"):
        certificate + Certificate(0, 0.0, 0.0, 0.0, np.zeros(5))


# ------------------------------------------------------------------------------------ best in hindsight


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson", "squared_hinge", "exponential"])
def test_the_best_in_hindsight_is_known_to_a_tiny_gap(loss):
    chosen = next(each for each in VARIANTS if each.name == loss)
    X, y, weight = stream(chosen, 8, rows=200)
    for options in ({"radius": 0.5}, {"l2": 3.0}):
        best = steelyard.hindsight(X, y, loss=loss, sample_weight=weight, **options)
        assert best.total_loss == pytest.approx(total_loss(chosen, X, y, weight, best.coef, best.intercept))
        assert best.gap <= 1e-6 * abs(best.total_loss)
    ball = steelyard.hindsight(X, y, loss=loss, sample_weight=weight, radius=0.5)
    assert np.hypot(np.linalg.norm(ball.coef), ball.intercept) <= 0.5 * (1 + 1e-9)
    rng = np.random.default_rng(0)
    for _ in range(50):
        u = rng.normal(size=5)
        u *= 0.5 / np.linalg.norm(u)
        assert ball.total_loss - ball.gap <= total_loss(chosen, X, y, weight, u[:-1], u[-1]) + 1e-9


def test_ridge_in_hindsight_is_scikit_learns():
    from sklearn.linear_model import Ridge

    X, y, weight = stream(VARIANTS[0], 9, rows=200)
    best = steelyard.hindsight(X, y, loss="squared", l2=2.0, sample_weight=weight, fit_intercept=False)
    theirs = Ridge(alpha=2.0, fit_intercept=False).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(best.coef, theirs.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "absolute"])
def test_true_regret_is_below_the_certified_bound(loss):
    chosen = next(each for each in VARIANTS if each.name == loss)
    X, y, weight = stream(chosen, 10, rows=400)
    best = steelyard.hindsight(X, y, loss=loss, sample_weight=weight, radius=1.0)
    for update, schedule in itertools.product(UPDATES, SCHEDULES):
        learner = Learner(loss, update=update, schedule=schedule, metric="scalar", center="origin", eta0=0.05)
        learner.learn(X, y, weight)
        certificate = learner.certify()
        regret = certificate.total_loss - best.total_loss
        slack = SLACK * (certificate.total_loss + abs(certificate.fenchel))
        assert regret <= certificate.regret_bound(best.coef, best.intercept) + slack
        assert certificate.best_loss_lower_bound(1.0) <= best.total_loss + slack


def test_hindsight_refuses_what_has_no_answer():
    for options, message in [
        ({}, "give radius= or l2="),
        ({"radius": 1, "l2": 1}, "not both"),
        ({"l2": 0.0}, "l2 must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            steelyard.hindsight(np.eye(2), [1.0, -1.0], **options)


def test_estimators_have_certificates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    binary = OnlineClassifier(center="origin", eta0=1.0).fit(X, X[:, 0] > 0)
    assert binary.certificate_.rounds == 200
    assert binary.certificate_.average_loss == pytest.approx(binary.progressive_loss_)
    many = OnlineClassifier(certificate=True, eta0=1.0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert [certificate.rounds for certificate in many.certificate_] == [200, 200, 200]
    regressor = OnlineRegressor(certificate=True, eta0=1.0)
    regressor.partial_fit(X[:100], X[:100, 0]).partial_fit(X[100:], X[100:, 0])
    assert regressor.certificate_.rounds == 200
    with pytest.raises(AttributeError, match="certificate=True keeps one"):
        OnlineClassifier(eta0=1.0).fit(X, X[:, 0] > 0).certificate_  # noqa: B018


@pytest.mark.parametrize("asked", [None, True, False])
def test_models_without_a_rate_always_have_one(asked):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = OnlineClassifier(certificate=asked, random_state=0, passes=2).fit(X, X[:, 0] > 0)
    assert model.certificate_.rounds == 400
    assert model.certificate_.average_loss == pytest.approx(np.mean(model.pass_losses_))
    assert model.certificate_.norm(model.coef_, model.intercept_, scaled=True) > 0.0
    many = OnlineClassifier("hinge", certificate=asked).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert [certificate.rounds for certificate in many.certificate_] == [200, 200, 200]
    regressor = OnlineRegressor(certificate=asked)
    regressor.partial_fit(X[:100], X[:100, 0]).partial_fit(X[100:], X[100:, 0])
    assert regressor.certificate_.rounds == 200
    assert regressor.certificate_.average_loss == pytest.approx(regressor.progressive_loss_)


@pytest.mark.parametrize("display", ["diagram", "text"])
def test_a_model_without_one_has_no_such_attribute(display):
    import sklearn

    X = np.random.default_rng(0).normal(size=(50, 2))
    for options, has in [({}, True), ({"eta0": 1.0}, False), ({"eta0": 1.0, "certificate": True}, True)]:
        model = OnlineClassifier(**options).fit(X, X[:, 0] > 0)
        with sklearn.config_context(display=display):
            shown = model._repr_mimebundle_()
        assert ("text/html" in shown) == (display == "diagram")
        assert hasattr(model, "certificate_") == has
        assert all(isinstance(name, str) for name in dir(model))


# ------------------------------------------------------------------- the paper's own form, and the guard


@pytest.mark.parametrize("radius", [None, 0.3])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "huber"])
def test_the_papers_bound_term_by_term_is_the_telescoped_one(loss, schedule, radius):
    chosen = next(each for each in VARIANTS if each.name == loss)
    X, y, weight = stream(chosen, 11)
    rng = np.random.default_rng(0)
    for update in UPDATES:
        u, intercept = 0.1 * rng.normal(size=4), 0.1 * float(rng.normal())
        bound, certificate = steelyard.paper_bound(
            X,
            y,
            u,
            intercept,
            sample_weight=weight,
            loss=loss,
            update=update,
            schedule=schedule,
            eta0=0.3,
            radius=radius,
        )
        scale = abs(certificate.fenchel) + np.abs(bound.terms).sum() + bound.regularizer
        assert abs(bound.total - certificate.regret_bound(u, intercept)) <= 1e-9 * scale
        assert bound.terms.size == bound.delta.size == (weight > 0).sum()
        if radius is None:
            assert certificate.delta == pytest.approx(bound.delta.sum(), rel=1e-6, abs=1e-8 * scale)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("update", ["aprox", "iwa", "proximal"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_guard_keeps_algorithm_1s_condition(schedule, update, outputs):
    X, y, weight = stream(VARIANTS[1], 12, rows=300)
    y = y if outputs == 1 else np.arange(300) % 3
    options = dict(update=update, schedule=schedule, metric="scalar", center="origin", eta0=3.0, n_outputs=outputs)
    free = Learner("logistic", certificate=True, **options)
    guarded = Learner("logistic", certificate=True, guard=True, **options)
    free.learn(X, y, weight)
    guarded.learn(X, y, weight)
    for k in range(outputs):
        certificate = guarded.certify(k)
        slack = 1e-12 * abs(certificate.fenchel)
        assert certificate.delta >= -slack
        if free.certify(k).negative_deltas:
            assert certificate.guarded > 0
        else:
            assert certificate.guarded == 0
            assert certificate.fenchel == free.certify(k).fenchel
    if schedule == "constant" and update != "aprox":
        assert guarded.certify().guarded == 0


def test_a_bank_has_a_certificate_for_each_learner():
    X, y, weight = stream(VARIANTS[0], 13)
    bank = Bank("squared", updates=("linearized", "iwa"), eta0=[0.01, 0.1], metric="scalar", certificate=True)
    bank.learn(X, y, weight)
    for k, (update, rate) in enumerate(itertools.product(("linearized", "iwa"), (0.01, 0.1))):
        alone = Learner("squared", update=update, eta0=rate, metric="scalar", certificate=True)
        alone.learn(X, y, weight)
        assert bank.certify(k).fenchel == pytest.approx(alone.certify().fenchel, rel=1e-9)
        np.testing.assert_allclose(bank.certify(k).dual, alone.certify().dual, rtol=1e-9)


# -------------------------------------------------------------------------------------- the command line


def test_the_certify_command(tmp_path, capsys):
    arguments = ["certify", "iris_petal", "breast_cancer", "--eta0", "1", "10", "--output", str(tmp_path / "figures")]
    assert cli.main(arguments) == 0
    text = capsys.readouterr().out
    assert text.count("best in hindsight") == 4
    rows = [
        line.split("|") for line in text.splitlines() if re.match(r"\| +(linearized|aprox|iwa|proximal|auto) ", line)
    ]
    assert len(rows) == 20
    for row in rows:
        assert float(row[3]) <= float(row[4])  # true regret and certified bound
    for block in range(4):
        bounds = {row[1].strip(): float(row[4]) for row in rows[5 * block : 5 * block + 5]}
        assert bounds["proximal"] <= bounds["linearized"]
        assert "auto" in bounds
    assert (tmp_path / "figures" / "regret-breast_cancer-10.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("labels", "options", "expected"),
    [
        (
            "1 2",
            [],
            r"certified: the average loss is within \d\.\d+ of .* norm <= \d\.\d+ in scaled columns \(as large as",
        ),
        ("1 2 3", ["--task", "classification"], r"certified: the average loss is within .* no class's weights have a"),
        ("1 2", ["--passes", "2"], r"certified: the average loss over all passes is within"),
        ("1 2", ["--eta0", "1"], None),
        (
            "1 2",
            ["--eta0", "1", "--metric", "scalar", "--center", "origin"],
            r"certified: the average loss is within .* norm <= \d\S+ \(as large as",
        ),
    ],
)
def test_learn_prints_what_is_certified(labels, options, expected, tmp_path, capsys):
    rng = np.random.default_rng(0)
    names = labels.split()
    lines = [f"{names[int(abs(v) * 1.5) % len(names)]} 1:{v:.4f} 2:{rng.normal():.4f}\n" for v in rng.normal(size=500)]
    (tmp_path / "mine").write_text("".join(lines))
    assert cli.main(["learn", str(tmp_path / "mine"), *options, "--model", str(tmp_path / "m")]) == 0
    found = re.findall("^certified.*$", capsys.readouterr().out, re.MULTILINE)
    assert len(found) == (expected is not None)
    if expected:
        assert re.match(expected, found[0])
    assert cli.main(["inspect", str(tmp_path / "m")]) == 0
    shown = capsys.readouterr().out
    assert ("\ncertificate" in shown) == (expected is not None)
    assert "scaled columns" in shown or "scaled columns" not in "".join(found)


def test_certify_takes_files_and_the_guard(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{1 + (v > 0)} 1:{v:.4f} 2:{rng.normal():.4f}\n" for v in rng.normal(size=200)]
    (tmp_path / "mine").write_text("".join(lines))
    assert cli.main(["certify", str(tmp_path / "mine"), "--guard", "--loss", "hinge", "--schedule", "power"]) == 0
    assert "mine: hinge loss" in capsys.readouterr().out
    assert cli.main(["certify", "nothing"]) == 1
    assert "unknown data set 'nothing'" in capsys.readouterr().err


def test_figures_of_files_of_any_name(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = "".join(f"{1 + (v > 0)} 1:{v:.4f} 2:{rng.normal():.4f}\n" for v in rng.normal(size=40))
    names = ["a/mine", "b/mine", ".hidden", "-dash", "two words", "50%$x$", "é" * 100, "l" * 250]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(lines)
    files = [str(tmp_path / name) for name in names]
    assert cli.main(["certify", *files, "--output", str(tmp_path / "figures")]) == 0
    drawn = sorted(path.name for path in (tmp_path / "figures").glob("*.png"))
    assert len(drawn) == len(names)
    assert all(re.fullmatch(r"regret-[A-Za-z0-9._-]+-1\.png", name) for name in drawn)
    text = capsys.readouterr().out
    assert "a/mine: logistic loss" in text
    assert "b/mine: logistic loss" in text


def test_a_scale_that_grows_by_many_orders_keeps_the_dual():
    learner = steelyard.Learner("hinge", center="origin", schedule="constant", fit_intercept=False)
    learner.learn(np.array([[1e-150, 0.0], [0.0, 1.0], [1e10, 1.0]]), np.ones(3))
    certificate = learner.certify()
    np.testing.assert_allclose(certificate.dual[:2], [-1e-150, -1.0], rtol=1e-12)
    assert certificate.regret_bound([1e150, 1.0]) >= 2.0 * (1 - 1e-9)
