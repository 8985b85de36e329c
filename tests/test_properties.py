"""The five properties of the updates, over every loss, with p to ±1e9 and a from 1e-300 to 1e300."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import steelyard
from steelyard.losses import CustomLoss
from steelyard.updates import UPDATES, evaluate
from strategies import CUSTOM, VARIANTS, labels, lengths, predictions

ALL = [*VARIANTS, *CUSTOM.values()]
SLACK = 1e-9  # relative, for comparisons between results that are each right to rounding
TINY = 1e-300  # absolute: below it numbers lose digits


def steps(loss, p, y, a):
    rules = [u for u in UPDATES if not (u == "aprox" and isinstance(loss, CustomLoss) and loss.infimum is None)]
    return {update: evaluate(loss, update, p, y, a) for update in rules}


def close(x, y, scale=0.0):
    return x == y or abs(x - y) <= SLACK * max(abs(x), abs(y), scale) + TINY


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: f"{type(loss).__name__}-{loss.name}")
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_updates_at_all_scales(loss, data):
    """No NaN and no sign slip; and property 1, the sandwich |c_prox| <= |c_iwa| <= min(|slope|, 2 |c_prox|)."""
    p, y, a = data.draw(predictions), data.draw(labels(loss)), data.draw(lengths)
    results = steps(loss, p, y, a)
    slope = results["linearized"][1]
    size = {update: abs(result[2]) for update, result in results.items()}
    for value, same_slope, c, gap in results.values():
        assert not np.isnan([value, same_slope, c, gap]).any()
        assert same_slope == slope
        assert c * np.sign(slope) >= 0.0
        assert gap >= 0.0
    assert size["proximal"] <= size["iwa"] * (1 + SLACK) + TINY
    assert size["iwa"] <= 2.0 * size["proximal"] * (1 + SLACK) + TINY
    assert size["iwa"] <= size["linearized"] == abs(slope)
    assert size.get("aprox", 0.0) <= size["linearized"]


@pytest.mark.parametrize("loss", VARIANTS, ids=str)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_iwa_is_closer_to_proximal_than_twice(loss, data):
    """|c_iwa| <= |c_prox| (2 - |c_prox|/g), g = |slope|.

    Each c is right to 1e-11 of itself (test_oracle), and c (2 - c/g) changes by no larger a part than c does: so both
    sides are right to 1e-11 of themselves, and the comparison to 3e-11.
    """
    p, y, a = data.draw(predictions), data.draw(labels(loss)), data.draw(lengths)
    results = steps(loss, p, y, a)
    g, iwa, proximal = (abs(results[update][2]) for update in ("linearized", "iwa", "proximal"))
    share = proximal / g if 0.0 < g < np.inf else 0.0
    assert iwa <= proximal * (2.0 - share) * (1.0 + 3e-11) + TINY


@pytest.mark.parametrize("loss", VARIANTS, ids=str)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_iwa_has_its_part_of_what_proximal_gains(loss, data):
    """delta_iwa >= (1 - |c_prox|/g) delta_prox, delta = H(slope) - H(c); and 3/4 of it for the squared loss.

    A delta is a difference of terms of the size of the loss and of H(slope), each right to 1e-11 or better.
    """
    p, y = data.draw(st.floats(-20.0, 20.0)), data.draw(labels(loss).filter(lambda v: abs(v) <= 1e3))
    a = data.draw(st.floats(1e-4, 1e4))
    results = steps(loss, p, y, a)
    g = abs(results["linearized"][1])
    assume(g > 0.0)
    h = {update: result[3] + 0.5 * a * result[2] ** 2 for update, result in results.items()}
    iwa, proximal = (h["linearized"] - h[update] for update in ("iwa", "proximal"))
    slack = 1e-10 * (abs(results["linearized"][0]) + h["linearized"]) + TINY
    assert iwa >= (1.0 - abs(results["proximal"][2]) / g) * proximal - slack
    if loss.name == "squared":
        assert iwa >= 0.75 * proximal - slack


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: f"{type(loss).__name__}-{loss.name}")
def test_a_step_too_short_to_matter_keeps_the_slope(loss):
    """Where a and the slope are both so small that their product is none."""
    p = np.concatenate([np.linspace(-1.0, 1.0, 9), np.logspace(0.0, 9.0, 60), -np.logspace(0.0, 9.0, 60)])
    for y in (0.0, 3.0) if loss.labels in ("count", "real") else (1.0, -1.0):
        for a in (1e-300, 1e-250, 1e-100, 1e-60):
            for _, slope, c, _ in (np.array(result) for result in steps(loss, p, y, a).values()):
                short = (a * np.abs(slope) < 1e-30) & np.isfinite(slope)
                np.testing.assert_allclose(c[short], slope[short], rtol=1e-9)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: f"{type(loss).__name__}-{loss.name}")
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_dual_objective_is_ordered_as_the_sandwich_says(loss, data):
    """H(c) = gap(c) + a c^2/2 up to a constant: H(prox) <= H(iwa) <= H(slope)."""
    p, y = data.draw(st.floats(-20.0, 20.0)), data.draw(labels(loss).filter(lambda v: abs(v) <= 1e3))
    a = data.draw(st.floats(1e-4, 1e4))
    results = steps(loss, p, y, a)
    h = {update: result[3] + 0.5 * a * result[2] ** 2 for update, result in results.items()}
    slack = 1e-9 * (abs(results["linearized"][0]) + h["linearized"]) + TINY
    assert h["proximal"] <= h["iwa"] + slack
    assert h["iwa"] <= h["linearized"] + slack


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: f"{type(loss).__name__}-{loss.name}")
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_flow_does_not_see_how_a_weight_is_cut(loss, data):
    """Property 2: flowing for a1 and then for a2 is flowing for a1 + a2."""
    p, y = data.draw(st.floats(-50.0, 50.0)), data.draw(labels(loss).filter(lambda v: abs(v) <= 50.0))
    a1, a2 = data.draw(st.floats(1e-3, 1e3)), data.draw(st.floats(1e-3, 1e3))
    halfway = loss.flow(p, y, a1)
    # the second leg starts from a rounded point: its rounding is of the size of p, and steep losses magnify it less
    scale = abs(p) + abs(y) + 1.0
    assert abs(loss.flow(halfway, y, a2) - loss.flow(p, y, a1 + a2)) <= 1e-8 * scale


def minimizer(loss, y):
    """The nearest minimizer from below and from above; infinite where the loss has none."""
    if loss.name in ("squared", "absolute", "quantile", "huber"):
        return y
    if loss.name == "poisson":
        return np.log(y) if y > 0.0 else -np.inf
    if loss.name in ("hinge", "squared_hinge"):
        return y
    if loss.name in ("logarithmic", "hellinger"):
        return 1.0 if y > 0.0 else 0.0
    return np.inf * y


@pytest.mark.parametrize("loss", VARIANTS, ids=str)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_overshoot(loss, data):
    """Property 3: no implicit step passes the minimizer, whatever the weight and the rate."""
    p, y, a = data.draw(predictions), data.draw(labels(loss)), data.draw(lengths)
    goal = minimizer(loss, y)
    for update in ("aprox", "iwa", "proximal"):
        c = steelyard.step(p, y, a, loss=loss, update=update)
        if np.isinf(c):  # the travel is finite, but travel/a is more than a float can hold
            assert (abs(p) + 1e3) / a > 1e308
            continue
        after = p - a * c
        rounding = 1e-12 * (abs(p) + (abs(goal) if np.isfinite(goal) else 0.0)) + TINY
        rounding += a * 5e-324  # c is a multiple of the smallest number
        if loss.labels == "binary":
            rounding += 1e-15  # of 1 - p
        assert not np.isnan(after)
        if p <= goal:
            assert p - rounding <= after <= goal + rounding
        if p >= goal:
            assert goal - rounding <= after <= p + rounding


@pytest.mark.parametrize("loss", [loss for loss in VARIANTS if loss.name in ("hinge", "absolute", "quantile")], ids=str)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_piecewise_linear_losses_have_one_implicit_rule(loss, data):
    """Property 4: hinge, absolute and quantile: IWA = proximal = aProx."""
    p, y, a = data.draw(predictions), data.draw(labels(loss)), data.draw(lengths)
    results = steps(loss, p, y, a)
    assert results["iwa"][2] == results["proximal"][2] == results["aprox"][2]


@pytest.mark.parametrize("loss", VARIANTS, ids=str)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_limits_of_the_step_length(loss, data):
    """Property 5: a -> 0 gives the slope; a -> infinity goes to the minimizer, or off along the flow."""
    p, y = data.draw(st.floats(-30.0, 30.0)), data.draw(labels(loss).filter(lambda v: abs(v) < 1e3))
    goals = (y, 0.0) if loss.labels == "binary" else (y,)
    assume(all(p == goal or abs(p - goal) > 1e-200 for goal in goals))  # else a = 1e-250 is not small
    for update in UPDATES:
        slope = loss.slope(p, y)
        assert steelyard.step(p, y, 0.0, loss=loss, update=update) == slope
        assert close(steelyard.step(p, y, 1e-250, loss=loss, update=update), slope)
    goal = minimizer(loss, y)
    for update in ("iwa", "proximal"):
        after = p - 1e300 * steelyard.step(p, y, 1e300, loss=loss, update=update)
        if np.isfinite(goal):
            beyond = loss.slope(p, y) == 0.0  # already on the flat part of the loss
            assert beyond or abs(after - goal) <= 1e-9 * (1.0 + abs(goal))
        else:
            assert 600.0 < after * np.sign(goal) < 800.0  # about ln(1e300), and finite


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", VARIANTS, ids=str)
def test_kinks_do_not_move(loss, update):
    """The side taken at a kink is the flat one: a satisfied margin or a hit label stays."""
    kink = {"hinge": 1.0, "squared_hinge": 1.0, "absolute": 1.0, "quantile": 1.0, "logarithmic": 1.0, "hellinger": 1.0}
    if loss.name in kink:
        assert steelyard.step(1.0, 1.0, 0.7, loss=loss, update=update) == 0.0
    assert loss.slope(np.nextafter(1.0, 0.0), 1.0) <= 0.0 or loss.name == "poisson"
