"""Every Loss x Update against an independent oracle of 60 digits, which knows definitions and no closed form."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import oracle
import steelyard
from steelyard.losses import CustomLoss, Loss
from steelyard.updates import UPDATES, evaluate
from strategies import CUSTOM, VARIANTS, random_labels


def parameters(loss: Loss) -> dict[str, float]:
    return {} if isinstance(loss, CustomLoss) else dict(vars(loss))


def points(loss: Loss, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p in [-50, 50] and a in [1e-12, 1e12], half of them where most of the action is."""
    rng = np.random.default_rng(seed)
    half = rng.random(size) < 0.5
    near = rng.random(size) if loss.labels == "binary" else rng.normal(size=size) * 2.0
    p = np.where(half, rng.uniform(-50.0, 50.0, size), near)
    a = 10.0 ** np.where(rng.random(size) < 0.5, rng.uniform(-12.0, 12.0, size), rng.uniform(-2.0, 2.0, size))
    return p, random_labels(loss, rng, size), a


def relative_error(got: float, expected: mpmath.mpf) -> float:
    if expected == 0:
        return 0.0 if got == 0.0 else np.inf
    return float(abs(mpmath.mpf(float(got)) - expected) / abs(expected))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", VARIANTS, ids=str)
def test_steps_agree_with_the_oracle_to_1e_11(loss, update):
    p, y, a = points(loss, 120, seed=1)
    c = steelyard.step(p, y, a, loss=loss, update=update)
    for i in range(p.size):
        expected = oracle.step(loss.name, update, p[i], y[i], a[i], **parameters(loss))
        assert relative_error(c[i], expected) < 1e-11, (p[i], y[i], a[i], c[i], expected)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("name", CUSTOM)
def test_a_users_own_loss_agrees_with_the_oracle_to_1e_8(name, update):
    loss = CUSTOM[name]
    if update == "aprox" and loss.infimum is None:
        with pytest.raises(ValueError, match="infimum"):
            steelyard.step(0.0, 1.0, 1.0, loss=loss, update=update)
        return
    p, y, a = points(loss, 80, seed=2)
    c = steelyard.step(p, y, a, loss=loss, update=update)
    for i in range(p.size):
        expected = oracle.step(name, update, p[i], y[i], a[i])
        assert relative_error(c[i], expected) < 1e-8, (p[i], y[i], a[i], c[i], expected)


@pytest.mark.parametrize("loss", VARIANTS, ids=str)
def test_values_and_slopes_agree_with_the_oracle(loss):
    p, y, _ = points(loss, 60, seed=3)
    for i in range(p.size):
        given = parameters(loss)
        value, slope = oracle.value(loss.name, p[i], y[i], **given), oracle.slope(loss.name, p[i], y[i], **given)
        # near the minimum of the Poisson loss e^p - y*p, both terms are of the size of e^p
        scale = mpmath.exp(p[i]) + abs(y[i]) if loss.name == "poisson" else 0
        assert abs(loss.value(p[i], y[i]) - value) <= 1e-14 * max(abs(value), scale * 60)
        assert abs(loss.slope(p[i], y[i]) - slope) <= 1e-14 * max(abs(slope), scale)


def slopes_in_domain(loss: Loss, rng: np.random.Generator, y: float) -> np.ndarray:
    p = rng.normal(size=6) * 2.0 if loss.labels != "binary" else rng.random(6)
    return evaluate(loss, "linearized", p, y, 0.0)[1] * rng.uniform(0.2, 1.0, 6)


@pytest.mark.parametrize("loss", VARIANTS, ids=str)
def test_conjugates_agree_with_numerical_suprema(loss):
    rng = np.random.default_rng(4)
    for y in random_labels(loss, rng, 4):
        for s in slopes_in_domain(loss, rng, y):
            expected = oracle.conjugate(loss.name, s, y, **parameters(loss))
            assert abs(loss.conjugate(s, y) - expected) <= 1e-12 * (1 + abs(expected) + abs(s * y))


@pytest.mark.parametrize("name", CUSTOM)
def test_numerical_conjugates_agree_with_the_oracle(name):
    rng = np.random.default_rng(5)
    loss = CUSTOM[name]
    for y in random_labels(loss, rng, 4):
        for s in slopes_in_domain(loss, rng, y):
            expected = oracle.conjugate(name, s, y)
            assert abs(loss.conjugate(s, y) - expected) <= 1e-8 * (1 + abs(expected) + abs(s * y))


@pytest.mark.parametrize("loss", VARIANTS, ids=str)
def test_conjugates_are_infinite_outside_their_domain(loss):
    for y in (1.0, -1.0 if loss.labels != "count" else 2.0):
        for s in (-1e9, -1.5, -1e-3, 1e-3, 1.5, 1e9):
            assert np.isinf(loss.conjugate(s, y)) == mpmath.isinf(oracle.conjugate(loss.name, s, y, **parameters(loss)))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", [*VARIANTS, *CUSTOM.values()], ids=lambda loss: loss.name)
def test_the_gap_is_value_plus_conjugate_minus_product(loss, update):
    if isinstance(loss, CustomLoss) and loss.infimum is None and update == "aprox":
        pytest.skip("aprox needs an infimum, which this user's loss does not give")
    rng = np.random.default_rng(6)
    size = 60
    p = rng.random(size) if loss.labels == "binary" else rng.normal(size=size) * 2.0
    y, a = random_labels(loss, rng, size), 10.0 ** rng.uniform(-3, 3, size)
    value, slope, c, gap = evaluate(loss, update, p, y, a)
    direct = value + loss.conjugate(c, y) - c * p
    np.testing.assert_allclose(gap, direct, atol=1e-8, rtol=1e-8)
    np.testing.assert_allclose(gap[c == slope], 0.0, atol=1e-12)
    assert (gap >= 0.0).all()


@pytest.mark.parametrize("update", ["iwa", "proximal"])
def test_the_logistic_gap_keeps_its_digits(update):
    """It may be a difference of numbers 1e20 times as large, so it is not computed as one."""
    rng = np.random.default_rng(7)
    m = rng.uniform(-40.0, 20.0, 100)
    a = 10.0 ** rng.uniform(-6.0, 3.0, 100) * (1.0 + np.exp(m))
    gap = evaluate(steelyard.losses.get_loss("logistic"), update, m, 1.0, a)[3]
    with mpmath.workdps(60):
        for i in range(m.size):
            v = -oracle.step("logistic", update, m[i], 1.0, a[i])
            entropy = v * mpmath.log(v) + (1 - v) * mpmath.log(1 - v)
            expected = oracle.value("logistic", m[i], 1.0) + entropy + v * mpmath.mpf(float(m[i]))
            assert relative_error(gap[i], expected) < 1e-12, (m[i], a[i])


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", [steelyard.losses.Logarithmic(), steelyard.losses.Hellinger()], ids=str)
def test_labels_that_are_nearly_certain_keep_their_digits(loss, update):
    """For the labels 0 and -1 the probability w = 1 - p is near 1 where p is tiny, and 1 - w is p itself."""
    rng = np.random.default_rng(8)
    p, a = 10.0 ** rng.uniform(-30.0, -1.0, 60), 10.0 ** rng.uniform(-30.0, 3.0, 60)
    for y in (0.0, -1.0):
        value, _, c, gap = evaluate(loss, update, p, y, a)
        for i in range(p.size):
            given = parameters(loss)
            expected = oracle.step(loss.name, update, p[i], y, a[i], **given)
            assert relative_error(c[i], expected) < 1e-11, (p[i], a[i], c[i], expected)
            assert relative_error(value[i], oracle.value(loss.name, p[i], y, **given)) < 1e-14
            if c[i] < 1.0 and c[i] != 0.0:  # the step goes to certainty, and the conjugate is 0
                assert gap[i] == pytest.approx(value[i] - c[i] * p[i], rel=1e-14)


def test_a_flow_whose_end_is_beyond_floats():
    expected = oracle.step("logistic", "iwa", 709.0, 1.0, 1e308)
    assert relative_error(steelyard.step(709.0, 1.0, 1e308), expected) < 1e-11
