"""The paper's empirical sentences, in our words, each with its measurement and whether it holds here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from steelyard.losses import Array
from steelyard.sweeps import SweepResult

IMPLICIT = ("aprox", "iwa", "proximal")


class Claim(NamedTuple):
    """A sentence of the paper, checked."""

    source: str
    statement: str
    measurement: str
    holds: bool
    remark: str = ""


def sensitivity(result: SweepResult, update: str) -> float:
    """Worst over best mean loss across the grid; inf where a rate diverges."""
    mean = result.mean[result.updates.index(update)]
    return float(mean.max() / mean.min())


def large_rate_sensitivity(result: SweepResult, update: str) -> float:
    """The same over the rates from the best one upwards: the price of a rate that is too large."""
    mean = result.mean[result.updates.index(update)]
    return float(mean[mean.argmin() :].max() / mean.min())


def width(result: SweepResult, update: str, tolerance: float, reference: float | None = None) -> float:
    """Decades of eta0 around the best rate whose mean loss is within ``tolerance`` of the reference (its own best)."""
    mean = result.mean[result.updates.index(update)]
    good = mean <= (mean.min() if reference is None else reference) * (1.0 + tolerance)
    best = int(mean.argmin())
    if not good[best]:
        return 0.0
    low = high = best
    while low > 0 and good[low - 1]:
        low -= 1
    while high < mean.size - 1 and good[high + 1]:
        high += 1
    return float(np.log10(result.eta0[high] / result.eta0[low]))


def distance(result: SweepResult, one: str, other: str) -> float:
    """The median relative difference of the mean loss of ``one`` from that of ``other``, over the rates from the best
    of ``other`` upwards: with small rates all updates are the same."""
    a, b = (result.mean[result.updates.index(update)] for update in (one, other))
    upwards = slice(int(b.argmin()), None)
    with np.errstate(invalid="ignore"):
        relative: Array = np.abs(a[upwards] - b[upwards]) / b[upwards]
    return float(np.median(np.nan_to_num(relative, nan=np.inf, posinf=np.inf)))


def _each(results: dict[str, SweepResult], values: Iterable[str]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in zip(results, values, strict=True))


def _percent(value: float) -> str:
    return "diverges" if np.isinf(value) else f"{100 * value:,.3g} %" if value < 10 else f"×{1 + value:,.0f}"


def _times(value: float) -> str:
    return "diverges" if np.isinf(value) else f"×{value:,.0f}" if value >= 100 else f"×{value:.3g}"


def check(results: dict[str, SweepResult]) -> list[Claim]:
    """Every claim that the results can speak to."""
    claims: list[Claim] = []
    for loss, figure in (("squared", "figure 1"), ("logistic", "figure 2")):
        some = {name: result for name, result in results.items() if result.loss == loss}
        if some:
            claims += _check_loss(some, loss, figure)
    return claims


def _check_loss(some: dict[str, SweepResult], loss: str, figure: str) -> list[Claim]:
    source = f"section 5, {figure}"
    plain = [sensitivity(r, "linearized") for r in some.values()]
    robust = {u: [large_rate_sensitivity(r, u) for r in some.values()] for u in IMPLICIT}
    plain_large = [large_rate_sensitivity(r, "linearized") for r in some.values()]
    worst = {u: [sensitivity(r, u) for r in some.values()] for u in IMPLICIT}
    claims = [
        Claim(
            source,
            f"With the {loss} loss, the linearized update is very sensitive to η₀ (taken as: worst over best across "
            "the grid above 10 on every set).",
            _each(some, map(_times, plain)),
            all(v > 10 for v in plain),
        ),
        Claim(
            source,
            f"With the {loss} loss, the implicit updates are robust to a large η₀ (taken as: from the best rate "
            "upwards each loses at most a tenth of what the linearized one loses).",
            "; ".join(f"{u}: {', '.join(map(_times, v))}" for u, v in robust.items())
            + f"; linearized: {', '.join(map(_times, plain_large))}",
            all(
                v - 1 <= 0.1 * (p - 1) or v < 1.1 for u in IMPLICIT for v, p in zip(robust[u], plain_large, strict=True)
            ),
            "Robust is not flat: over the whole grid, with rates that are too small, worst over best is "
            + "; ".join(f"{u} {', '.join(map(_times, v))}" for u, v in worst.items())
            + ".",
        ),
    ]
    for tolerance in (0.10, 0.25):
        spans = {u: [width(r, u, tolerance) for r in some.values()] for u in ("linearized", *IMPLICIT)}
        wider = {u: [a - b for a, b in zip(spans[u], spans["linearized"], strict=True)] for u in IMPLICIT}
        holds = all(min(w) >= 0.0 and np.median(w) > 0.0 for w in wider.values())
        claims.append(
            Claim(
                source,
                f"With the {loss} loss, the range of good rates is broader for the implicit updates (taken as: decades "
                f"of η₀ within {100 * tolerance:.0f} % of the update's own best loss: more on most sets, fewer on "
                "none).",
                "; ".join(f"{u}: {', '.join(f'{v:.3g}' for v in values)} decades" for u, values in spans.items()),
                holds,
            )
        )
    best = {u: [r.best()[u][1] for r in some.values()] for u in ("linearized", *IMPLICIT)}
    claims.append(
        Claim(
            source,
            f"With the {loss} loss, IWA improves on the linearized update (taken as: its best loss is no worse, to "
            "1 %, and its loss at the largest rate is smaller, on every set).",
            "; ".join(f"best of {u}: {', '.join(f'{v:.4g}' for v in values)}" for u, values in best.items()),
            all(i <= 1.01 * p for i, p in zip(best["iwa"], best["linearized"], strict=True))
            and all(
                r.mean[r.updates.index("iwa"), -1] < r.mean[r.updates.index("linearized"), -1] for r in some.values()
            ),
            "At the best rate the updates differ by little: what the implicit ones buy is safety more than a lower "
            "best loss.",
        )
    )
    far = [distance(r, "iwa", "proximal") for r in some.values()]
    plain_far = [distance(r, "linearized", "proximal") for r in some.values()]
    claims.append(
        Claim(
            "abstract and section 5",
            f"With the {loss} loss, IWA is close to the proximal update (taken as: from the best rate upwards its loss "
            "is off by at most 10 % in the median over the rates, on every set, and by less than the linearized one's "
            "on most).",
            _each(
                some,
                (f"{_percent(near)}, linearized {_percent(off)}" for near, off in zip(far, plain_far, strict=True)),
            ),
            max(far) <= 0.1 and float(np.mean([near < off for near, off in zip(far, plain_far, strict=True)])) > 0.5,
        )
    )
    return claims
