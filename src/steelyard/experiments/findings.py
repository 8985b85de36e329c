"""One measurement a sentence of the paper, on one data set: whether it holds, by what numbers, and if not, why."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from steelyard.experiments.curves import NAMES, curve, distance, good_rates, large_rate_sensitivity, sensitivity, width
from steelyard.experiments.sweep import SweepResult

IMPLICIT = ("aprox", "iwa", "proximal")

SENSITIVE = 10.0
"""Worst over best loss across the grid: above it an update is called very sensitive, up to it robust."""
GOOD = {0.25: "within 25\u00a0% of", 1.0: "at most twice"}
"""A good rate is one whose loss is at most this fraction above the update's own best loss. The paper does not say what
a good rate is, and the answer depends on it: so the sentences on ranges are measured both ways."""
MUCH = 1.0
"""Much broader is this many decades more."""
NEAR = 0.10
"""The largest relative difference of two losses that are called close."""


class Finding(NamedTuple):
    """A sentence on one data set: whether it holds, the numbers, and where it does not hold, why."""

    holds: bool
    measured: str
    why: str = ""


def _times(value: float) -> str:
    return "diverges" if np.isinf(value) else f"×{value:,.0f}" if value >= 100 else f"×{value:.3g}"


def rate(value: float) -> str:
    """A rate in a sentence."""
    return f"{float(f'{value:.3g}'):g}"


def _percent(value: float) -> str:
    return "infinite" if np.isinf(value) else f"{100 * value:,.0f} %" if value >= 1 else f"{100 * value:.3g} %"


def _at(result: SweepResult, update: str, j: int) -> str:
    value = curve(result, update)[j]
    return f"{'infinite' if np.isinf(value) else f'{value:.4g}'} at η₀ = {rate(result.eta0[j])}"


def _worst(result: SweepResult, update: str) -> int:
    return int(curve(result, update).argmax())


def _best(result: SweepResult, update: str) -> int:
    return int(curve(result, update).argmin())


def very_sensitive(result: SweepResult) -> Finding:
    """The linearized update's worst loss is far above its best."""
    ratio = sensitivity(result, "linearized")
    best, worst = (_at(result, "linearized", j(result, "linearized")) for j in (_best, _worst))
    why = f"its loss stays between {best} and {worst}"
    return Finding(ratio > SENSITIVE, f"{_times(ratio)}: from {best} to {worst}", "" if ratio > SENSITIVE else why)


def robust(result: SweepResult) -> Finding:
    """The implicit updates' worst losses are not."""
    ratios = {update: sensitivity(result, update) for update in IMPLICIT}
    reasons = []
    for update, ratio in ratios.items():
        if ratio > SENSITIVE:
            worst = _worst(result, update)
            plain = curve(result, "linearized")[worst]
            small = worst < _best(result, update)
            reasons.append(
                f"{NAMES[update]}: {_at(result, update, worst)}, {_at(result, update, _best(result, update))}"
                + (f"; the worst rate is too small for every update (linearized: {plain:.4g} there)" if small else "")
            )
    numbers = ", ".join(f"{NAMES[update]} {_times(ratio)}" for update, ratio in ratios.items())
    plain_ratio = _times(sensitivity(result, "linearized"))
    return Finding(not reasons, f"{numbers}; linearized {plain_ratio}", "; ".join(reasons))


def broader(result: SweepResult, updates: tuple[str, ...], tolerance: float, more: float) -> Finding:
    """``more`` decades of good rates than the linearized update has; 0 stands for any more."""
    plain = width(result, "linearized", tolerance)
    tiny = 1e-9  # decades are differences of logarithms
    widths = {update: width(result, update, tolerance) for update in updates}
    short = [u for u, w in widths.items() if (w < plain + more - tiny if more else w <= plain + tiny)]
    numbers = ", ".join(f"{NAMES[update]} {w:.3g}" for update, w in widths.items())
    why = ""
    if short:
        ends = {u: good_rates(result, u, tolerance) for u in (*short, "linearized")}
        ranges = ", ".join(f"{NAMES[u]} {rate(low)} to {rate(high)}" for u, (low, high) in ends.items())
        last = {u: curve(result, u)[-1] / curve(result, u).min() for u in ends}
        above = ", ".join(f"{NAMES[u]} {_times(ratio)}" for u, ratio in last.items())
        flatter = all(last[u] < last["linearized"] for u in short)
        further = "the curves part only further up" if flatter else "further up they are no flatter"
        why = f"the good rates are {ranges}; {further}, loss at the largest rate over the best: {above}"
    return Finding(not short, f"{numbers} decades; linearized {plain:.3g}", why)


def improves(result: SweepResult) -> Finding:
    """IWA loses no more than linearized at the best rate of each, and less at the largest rate."""
    iwa, plain = curve(result, "iwa"), curve(result, "linearized")
    reasons = []
    if iwa.min() > 1.01 * plain.min():
        reasons.append(f"at its best rate IWA loses {_percent(iwa.min() / plain.min() - 1.0)} more")
    if not iwa[-1] < plain[-1]:
        reasons.append("at the largest rate IWA does not lose less")
    last = f"{'infinite' if np.isinf(plain[-1]) else f'{plain[-1]:.4g}'}"
    at_best, at_last = f"IWA {iwa.min():.4g}, linearized {plain.min():.4g}", f"IWA {iwa[-1]:.4g}, linearized {last}"
    more = iwa.min() / plain.min() - 1.0
    if 0.0 < more <= 0.01:
        at_best += f" (IWA loses {_percent(more)} more, which the tolerance of 1 % lets pass)"
    measured = f"at the best rate: {at_best}; at the largest: {at_last}"
    return Finding(not reasons, measured, "; ".join(reasons))


def close(result: SweepResult) -> Finding:
    """IWA's curve is near the proximal update's."""
    near, plain = distance(result, "iwa", "proximal"), distance(result, "linearized", "proximal")
    reasons = []
    if near > NEAR:
        side = "above" if curve(result, "iwa")[-1] > curve(result, "proximal")[-1] else "below"
        iwa, proximal = (_at(result, update, -1) for update in ("iwa", "proximal"))
        reasons.append(f"for large rates IWA's loss is {side} the proximal one's: {iwa}, against {proximal}")
    if near >= plain:
        reasons.append("the linearized update is as close: closeness says little here")
    return Finding(not reasons, f"off by: IWA {_percent(near)}, linearized {_percent(plain)}", "; ".join(reasons))


def stable(result: SweepResult) -> Finding:
    """What too large a rate costs with IWA is nearer to what it costs with the proximal update than with linearized."""
    ratio = {update: large_rate_sensitivity(result, update) for update in ("iwa", "proximal", "linearized")}
    steps = {update: math.log(value) for update, value in ratio.items()}
    with np.errstate(invalid="ignore"):
        to_proximal = abs(np.float64(steps["iwa"]) - steps["proximal"])
        to_plain = abs(np.float64(steps["iwa"]) - steps["linearized"])
    holds = bool(to_proximal < to_plain)
    numbers = ", ".join(f"{NAMES[update]} {_times(value)}" for update, value in ratio.items())
    return Finding(holds, numbers, "" if holds else "IWA's price is no nearer to the proximal update's")
