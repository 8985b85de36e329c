"""The paper's empirical sentences, word for word, each with how it is measured and on which data sets it holds here.

The paper shows squared losses in its figure 1 and logistic losses in its figure 2, and says different things of the
two. A sentence is measured for the loss and the updates that it speaks of, and for no others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from steelyard.experiments.sweep import SweepResult
from steelyard.losses import Array

IMPLICIT = ("aprox", "iwa", "proximal")
NAMES = {"linearized": "linearized", "aprox": "aProx", "iwa": "IWA", "proximal": "proximal"}

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


class Claim(NamedTuple):
    """A sentence of the paper, checked on every data set that it speaks of."""

    name: str
    source: str
    quote: str
    taken_as: str
    findings: dict[str, Finding]

    @property
    def held(self) -> list[str]:
        """The data sets on which it holds."""
        return [name for name, finding in self.findings.items() if finding.holds]

    @property
    def holds(self) -> bool:
        """Whether it holds on every one of them."""
        return len(self.held) == len(self.findings)


class Sentence(NamedTuple):
    """A sentence of the paper and its measurement on one sweep."""

    name: str
    source: str
    quote: str
    taken_as: str
    losses: tuple[str, ...]
    updates: tuple[str, ...]
    measure: Callable[[SweepResult], Finding]


def check(results: dict[str, SweepResult]) -> list[Claim]:
    """Every sentence that the results can speak to."""
    claims = []
    for sentence in SENTENCES:
        findings = {
            name: sentence.measure(result)
            for name, result in results.items()
            if result.loss in sentence.losses and {"linearized", *sentence.updates} <= set(result.updates)
        }
        if findings:
            claims.append(Claim(sentence.name, sentence.source, sentence.quote, sentence.taken_as, findings))
    return claims


# ------------------------------------------------------------------------------------------- measures of a curve


def curve(result: SweepResult, update: str) -> Array:
    """The mean loss of an update, a number for each rate."""
    return np.asarray(result.mean[result.updates.index(update)])


def sensitivity(result: SweepResult, update: str) -> float:
    """Worst over best mean loss across the grid; inf where a rate diverges."""
    mean = curve(result, update)
    return float(mean.max() / mean.min())


def large_rate_sensitivity(result: SweepResult, update: str) -> float:
    """The same over the rates from the best one upwards: the price of a rate that is too large."""
    mean = curve(result, update)
    return float(mean[mean.argmin() :].max() / mean.min())


def good_rates(result: SweepResult, update: str, tolerance: float) -> tuple[float, float]:
    """The ends of the range of rates around the best one whose mean loss is within ``tolerance`` of the best."""
    mean = curve(result, update)
    good = mean <= mean.min() * (1.0 + tolerance)
    low = high = int(mean.argmin())
    while low > 0 and good[low - 1]:
        low -= 1
    while high < mean.size - 1 and good[high + 1]:
        high += 1
    return float(result.eta0[low]), float(result.eta0[high])


def width(result: SweepResult, update: str, tolerance: float) -> float:
    """How many decades that range spans."""
    low, high = good_rates(result, update, tolerance)
    return math.log10(high / low)


def distance(result: SweepResult, one: str, other: str) -> float:
    """The median relative difference of the mean loss of ``one`` from that of ``other``, over the rates from the best
    of ``other`` upwards: with small rates all updates are the same."""
    a, b = curve(result, one), curve(result, other)
    upwards = slice(int(b.argmin()), None)
    with np.errstate(invalid="ignore"):
        relative: Array = np.abs(a[upwards] - b[upwards]) / b[upwards]
    return float(np.median(np.nan_to_num(relative, nan=np.inf, posinf=np.inf)))


# ------------------------------------------------------------------------------- the sentences, on one data set


def _times(value: float) -> str:
    return "diverges" if np.isinf(value) else f"×{value:,.0f}" if value >= 100 else f"×{value:.3g}"


def _rate(value: float) -> str:
    return f"{float(f'{value:.3g}'):g}"


def _percent(value: float) -> str:
    return "infinite" if np.isinf(value) else f"{100 * value:,.0f} %" if value >= 1 else f"{100 * value:.3g} %"


def _at(result: SweepResult, update: str, j: int) -> str:
    value = curve(result, update)[j]
    return f"{'infinite' if np.isinf(value) else f'{value:.4g}'} at η₀ = {_rate(result.eta0[j])}"


def _worst(result: SweepResult, update: str) -> int:
    return int(curve(result, update).argmax())


def _best(result: SweepResult, update: str) -> int:
    return int(curve(result, update).argmin())


def _very_sensitive(result: SweepResult) -> Finding:
    ratio = sensitivity(result, "linearized")
    best, worst = (_at(result, "linearized", j(result, "linearized")) for j in (_best, _worst))
    why = f"its loss stays between {best} and {worst}"
    return Finding(ratio > SENSITIVE, f"{_times(ratio)}: from {best} to {worst}", "" if ratio > SENSITIVE else why)


def _robust(result: SweepResult) -> Finding:
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


def _broader(result: SweepResult, updates: tuple[str, ...], tolerance: float, more: float) -> Finding:
    """``more`` decades of good rates than the linearized update has; 0 stands for any more."""
    plain = width(result, "linearized", tolerance)
    tiny = 1e-9  # decades are differences of logarithms
    widths = {update: width(result, update, tolerance) for update in updates}
    short = [u for u, w in widths.items() if (w < plain + more - tiny if more else w <= plain + tiny)]
    numbers = ", ".join(f"{NAMES[update]} {w:.3g}" for update, w in widths.items())
    why = ""
    if short:
        ends = {u: good_rates(result, u, tolerance) for u in (*short, "linearized")}
        ranges = ", ".join(f"{NAMES[u]} {_rate(low)} to {_rate(high)}" for u, (low, high) in ends.items())
        last = {u: curve(result, u)[-1] / curve(result, u).min() for u in ends}
        above = ", ".join(f"{NAMES[u]} {_times(ratio)}" for u, ratio in last.items())
        flatter = all(last[u] < last["linearized"] for u in short)
        further = "the curves part only further up" if flatter else "further up they are no flatter"
        why = f"the good rates are {ranges}; {further}, loss at the largest rate over the best: {above}"
    return Finding(not short, f"{numbers} decades; linearized {plain:.3g}", why)


def _improves(result: SweepResult) -> Finding:
    iwa, plain = curve(result, "iwa"), curve(result, "linearized")
    reasons = []
    if iwa.min() > 1.01 * plain.min():
        reasons.append(f"at its best rate IWA loses {_percent(iwa.min() / plain.min() - 1.0)} more")
    if not iwa[-1] < plain[-1]:
        reasons.append("at the largest rate IWA does not lose less")
    last = f"{'infinite' if np.isinf(plain[-1]) else f'{plain[-1]:.4g}'}"
    measured = f"best: IWA {iwa.min():.4g}, linearized {plain.min():.4g}; at the largest rate: {iwa[-1]:.4g}, {last}"
    return Finding(not reasons, measured, "; ".join(reasons))


def _close(result: SweepResult) -> Finding:
    near, plain = distance(result, "iwa", "proximal"), distance(result, "linearized", "proximal")
    reasons = []
    if near > NEAR:
        side = "above" if curve(result, "iwa")[-1] > curve(result, "proximal")[-1] else "below"
        iwa, proximal = (_at(result, update, -1) for update in ("iwa", "proximal"))
        reasons.append(f"for large rates IWA's loss is {side} the proximal one's: {iwa}, against {proximal}")
    if near >= plain:
        reasons.append("the linearized update is as close: closeness says little here")
    return Finding(not reasons, f"IWA {_percent(near)}, linearized {_percent(plain)}", "; ".join(reasons))


def _stable(result: SweepResult) -> Finding:
    ratio = {update: large_rate_sensitivity(result, update) for update in ("iwa", "proximal", "linearized")}
    steps = {update: math.log(value) for update, value in ratio.items()}
    with np.errstate(invalid="ignore"):
        to_proximal = abs(np.float64(steps["iwa"]) - steps["proximal"])
        to_plain = abs(np.float64(steps["iwa"]) - steps["linearized"])
    holds = bool(to_proximal < to_plain)
    numbers = ", ".join(f"{NAMES[update]} {_times(value)}" for update, value in ratio.items())
    return Finding(holds, numbers, "" if holds else "IWA's price is no nearer to the proximal update's")


_FIGURE_1, _FIGURE_2 = "section 4, of figure 1 (squared loss)", "section 4, of figure 2 (logistic loss)"
_CLOSE = (
    f"from the proximal update's best rate upwards, IWA's loss is off by at most {NEAR:.0%} in the median over the "
    "rates, and by less than the linearized update's"
).replace("%", " %")

SENTENCES = (
    Sentence(
        "linearized is very sensitive",
        _FIGURE_1,
        "FTRL with linearized updates is very sensitive to the choice of the hyperparameter η₀",
        f"its worst loss across the grid is more than {SENSITIVE:g} times its best",
        ("squared",),
        ("linearized",),
        _very_sensitive,
    ),
    Sentence(
        "implicit updates are robust",
        _FIGURE_1,
        "while the implicit FTRL updates are robust to different setting of hyperparameters.",
        "by the same measure: for aProx, IWA and proximal alike, the worst loss across the grid is at most "
        f"{SENSITIVE:g} times the best",
        ("squared",),
        IMPLICIT,
        _robust,
    ),
    *(
        Sentence(
            f"implicit updates: much broader range ({close} the best)",
            _FIGURE_1,
            "The range of learning rate selection is much broader than that of FTRL with linear models.",
            f"decades of η₀ whose loss is {close} the update's own best: aProx, IWA and proximal each have at least "
            f"{MUCH:g} more than linearized",
            ("squared",),
            IMPLICIT,
            partial(_broader, updates=IMPLICIT, tolerance=tolerance, more=MUCH),
        )
        for tolerance, close in GOOD.items()
    ),
    Sentence(
        "IWA improves on linearized",
        _FIGURE_2,
        "implicit FTRL with IWA updates improves upon FTRL with linearized models.",
        "IWA's best loss is no larger, to 1 %, and its loss at the largest rate is smaller",
        ("logistic",),
        ("iwa",),
        _improves,
    ),
    *(
        Sentence(
            f"IWA and aProx: broader range ({close} the best)",
            _FIGURE_2,
            "Both IWA updates and aProx updates allow broader learning rate selection.",
            f"decades of η₀ whose loss is {close} the update's own best: IWA and aProx each have more than linearized",
            ("logistic",),
            ("iwa", "aprox"),
            partial(_broader, updates=("iwa", "aprox"), tolerance=tolerance, more=0.0),
        )
        for tolerance, close in GOOD.items()
    ),
    Sentence(
        "IWA approximates proximal",
        _FIGURE_2,
        "Yet, IWA provided a way to approximate proximal updates efficiently",
        f"{_CLOSE} (how fast it is, is not measured here)",
        ("logistic",),
        ("iwa", "proximal"),
        _close,
    ),
    Sentence(
        "IWA shares the stability of proximal",
        _FIGURE_2,
        "and, in some sense, to enjoy the stability of proximal updates.",
        "from the best rate upwards, worst over best: IWA's is nearer to proximal's than to linearized's (as ratios)",
        ("logistic",),
        ("iwa", "proximal"),
        _stable,
    ),
    Sentence(
        "IWA is approximately proximal",
        "abstract (any loss)",
        "IWA updates can be considered as approximate implicit/proximal updates.",
        _CLOSE,
        ("squared", "logistic"),
        ("iwa", "proximal"),
        _close,
    ),
)
"""What the paper says of its experiments, and can be measured."""
