"""Short streams that try to break a certificate, and a judge that shares no code with it.

Losses and slopes are written down again, in extended precision where the machine has it, so that nothing overflows on
the judge's side. The hardest comparator is the one that predicts what the mixture predicted: there, the bound is met
with equality.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from steelyard import Mixture
from steelyard.certificate import LEAST_SCALE, LEAST_SPREAD, Certificate

Wide = np.longdouble
SLACK = 1e-9  # of the sum of the magnitudes of all terms
REAL = ("squared", "absolute", "quantile", "huber")
SIGN = ("logistic", "hinge", "squared_hinge", "exponential", "logarithmic", "hellinger")
LOSSES = (*REAL, *SIGN, "poisson")
EPS = Wide(1e-6)
UNDERFLOW = Wide(1e-307)  # what products of tiny numbers lose, in units of the labels


def definition(loss: str, p: Any, y: Any) -> tuple[Any, Any]:
    """The loss and its slope, as a textbook has them."""
    p, y = np.asarray(p, Wide), np.asarray(y, Wide)
    r, m = p - y, y * p
    if loss == "squared":
        return r * r / 2, r
    if loss == "absolute":
        return abs(r), np.sign(r)
    if loss == "quantile":
        return abs(r) / 2, np.sign(r) / 2
    if loss == "huber":
        return np.where(abs(r) <= 1, r * r / 2, abs(r) - Wide(0.5)), np.clip(r, -1, 1)
    if loss == "poisson":
        return np.exp(p) - y * p, np.exp(p) - y
    if loss == "logistic":
        return np.maximum(-m, 0) + np.log1p(np.exp(-abs(m))), -y * np.exp(-np.logaddexp(Wide(0), m))
    if loss == "exponential":
        return np.exp(-m), -y * np.exp(-m)
    short = np.maximum(1 - m, 0)
    if loss == "hinge":
        return short, -y * (short > 0)
    if loss == "squared_hinge":
        return short * short / 2, -y * short
    short = np.clip(np.where(y > 0, 1 - p, p), 0, 1 - EPS)  # 1 - w, w the probability of the label
    below = np.maximum(np.where(y > 0, 1 - p, p) - (1 - EPS), 0)
    if loss == "logarithmic":
        return -np.log1p(-short) + below / EPS, -y * (short > 0) / (1 - short)
    root = np.sqrt(1 - short)
    return 2 * short / (1 + root) + below / np.sqrt(EPS), -y * (short > 0) / root


class Stream(NamedTuple):
    """A few rows, and where they are cut into blocks."""

    loss: str
    X: Any
    y: Any
    weight: Any
    outputs: int
    intercept: bool
    sparse: bool
    cut: int


def draw(rng: np.random.Generator) -> Stream:
    """One to eight rows of one to three features, most of them hostile in some way."""
    loss = str(rng.choice(LOSSES))
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    kind = rng.integers(6)
    if kind == 1:  # columns of any scale
        X *= 10.0 ** rng.uniform(-145, 145, d)
    elif kind == 2:  # values of any scale
        X *= 10.0 ** rng.uniform(-8, 8, (n, d))
    elif kind == 3:  # offsets, and a constant column
        X = X * 10.0 ** rng.uniform(-6, 0, d) + 10.0 ** rng.uniform(-3, 9, d)
        X[:, 0] = X[0, 0]
    elif kind == 4:  # small whole numbers, often the same row
        X = rng.integers(-1, 3, (n, d)).astype(float)
    if rng.random() < 0.3:
        X[rng.random((n, d)) < 0.5] = 0.0
    weight = np.ones(n)
    kind = rng.integers(5)
    if kind == 1:
        weight = 10.0 ** rng.uniform(-3, 3, n)
    elif kind == 2:
        weight = 10.0 ** rng.uniform(-300, 300, n)
    elif kind == 3:
        weight = rng.integers(0, 3, n) * 10.0 ** rng.uniform(-300, 290)
    outputs = int(rng.choice([1, 1, 3])) if loss != "poisson" else 1
    if outputs == 3:
        y = rng.integers(0, 3, n).astype(float)
    elif loss in SIGN:
        y = rng.choice([-1.0, 1.0], n)
    elif loss == "poisson":
        y = rng.poisson(3.0, n) * rng.choice([1.0, 1e6], n, p=[0.8, 0.2])
    else:
        y = rng.normal(size=n) * 10.0 ** rng.choice([0.0, 0.0, 6.0, -6.0, 100.0, -100.0])
        y = y * np.where(rng.random(n) < 0.3, 1e6, 1.0) + rng.choice([0.0, 1e9])  # labels that jump
        if rng.random() < 0.1:
            y = rng.normal(size=n) * 10.0 ** rng.uniform(-60, 60, n)  # experts are retired
    return Stream(loss, X, y, weight, outputs, rng.random() < 0.8, rng.random() < 0.5, int(rng.integers(0, n + 1)))


class Verdict(NamedTuple):
    """How many bounds were compared, how many were finite, how many retired experts there were, and what failed."""

    bounds: int
    finite: int
    retired: int
    failures: list[str]

    def add(self, other: Verdict) -> Verdict:
        return Verdict(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def attack(stream: Stream, rng: np.random.Generator, search: bool = False) -> Verdict:
    """Learn a stream in two blocks and compare bounds with the true regret, of all rows and of the second block."""
    s, mixture = stream, Mixture(stream.loss, n_outputs=stream.outputs, fit_intercept=stream.intercept)
    form = sp.csr_matrix(s.X) if s.sparse else s.X
    played = np.empty((len(s.y), s.outputs))
    parts = [slice(0, s.cut), slice(s.cut, None)] if 0 < s.cut < len(s.y) else [slice(0, None)]
    certificates = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the labels or weights span", category=RuntimeWarning)
        for part in parts:
            trace = mixture.learn(form[part], s.y[part], s.weight[part])
            played[part] = trace.prediction.reshape(-1, s.outputs)
            certificates.append([mixture.certify(k) for k in range(s.outputs)])
    verdict = Verdict(0, 0, 0, [])
    for k in range(s.outputs):
        labels = s.y if s.outputs == 1 else np.where(s.y == k, 1.0, -1.0)
        coef = np.append(np.atleast_2d(mixture.coef_)[k], np.atleast_1d(mixture.intercept_)[k])
        models = comparators(s, labels, played[:, k], coef, rng, search)
        whole = certificates[-1][k]
        verdict = verdict.add(judge(s, whole, labels, played[:, k], models, slice(0, None)))
        if len(parts) > 1:
            window = whole - certificates[0][k]
            verdict = verdict.add(judge(s, window, labels, played[:, k], models, parts[1]))
        verdict = verdict.add(Verdict(0, 0, sum(expert.retired for expert in mixture.bank(k)), []))
    return verdict


def comparators(s: Stream, labels: Any, played: Any, coef: Any, rng: np.random.Generator, search: bool) -> list[Any]:
    """Models to compare with, the intercept last: none, the learned one, random ones, the played one, the best."""
    size = np.append(1.0 / np.maximum(abs(s.X).max(axis=0), 1e-150), 1.0)
    models = [np.zeros(size.size), coef]
    unit = max(float(abs(labels).max()), 1e-150)
    models += [rng.normal(size=size.size) * size * unit * 10.0 ** rng.uniform(-3, 3) for _ in range(2)]
    rows = np.column_stack([s.X, np.full(len(s.y), float(s.intercept))]) * size  # columns of size one
    models.append(np.linalg.lstsq(rows, played, rcond=None)[0] * size)
    if search and unit < 1e12:
        counts = s.weight / max(s.weight.max(), 1e-300)

        def total(v: Any) -> tuple[float, Any]:
            value, slope = definition(s.loss, rows @ v, labels)
            return float(np.minimum(counts @ value, 1e300)), np.clip(rows.T @ (counts * slope), -1e300, 1e300).astype(
                float
            )

        start = np.zeros(size.size)
        found = scipy.optimize.minimize(total, start, jac=True, method="L-BFGS-B", options={"maxiter": 20}).x
        models.append(found * size)
    for model in models:
        model[-1] *= s.intercept
    return [model for model in models if np.isfinite(model).all()]


def judge(s: Stream, certificate: Certificate, labels: Any, played: Any, models: list[Any], part: slice) -> Verdict:
    """Compare the true regret with the bound for the model itself and for balls as large as it, in both norms."""
    q = np.column_stack([s.X, np.full(len(s.y), float(s.intercept))]).astype(Wide)
    h, u = s.weight.astype(Wide), np.array(models, Wide)
    value, slope = definition(s.loss, played, labels)
    theirs, _ = definition(s.loss, q @ u.T, labels[:, None])
    regret = (h[part] @ value[part]) - (h[part] @ theirs[part])
    # what all terms add up to, over everything learned: a window has the rounding of the sums that it comes from
    terms = abs(value) + abs(slope * played)
    reach = abs(q) @ abs(u).T
    size = h @ terms + h @ abs(theirs) + (h * abs(slope)) @ reach
    least = UNDERFLOW * len(h) * (1 + abs(u).sum(axis=1)) * max(1, float(abs(labels).max())) ** 2
    assert certificate.scale is not None
    assert certificate.center is not None
    center = abs(certificate.center[:-1]) * s.intercept
    scale = np.maximum(certificate.scale[:-1], np.maximum(LEAST_SCALE, LEAST_SPREAD * center))
    lost = (h * abs(slope)) @ ((abs(q[:, :-1]) + center) / scale).sum(axis=1)  # what may cancel in a scaled dual norm
    failures, finite, bounds = [], 0, 0
    for i, model in enumerate(models):
        coef, intercept = model[:-1], float(model[-1])
        found = {"u": (certificate.regret_bound(coef, intercept), Wide(0))}
        for name, scaled in (("ball", False), ("scaled ball", True)):
            norm = certificate.norm(coef, intercept, scaled=scaled)
            if norm < np.inf:
                steep = certificate.dual_norm(scaled=scaled)
                rounding = SLACK * norm * Wide(steep) + (Wide(1e-14) * norm * lost if scaled else 0)
                found[name] = certificate.regret_bound(radius=norm, scaled=scaled), rounding
        for name, (bound, rounding) in found.items():
            bounds, finite = bounds + 1, finite + bool(bound < np.inf)
            if np.isnan(bound) or not (
                bound == np.inf or not regret[i] > bound + SLACK * size[i] + rounding + least[i]
            ):
                failures.append(f"{s.loss}, {name}, model {i}: regret {regret[i]:g} > {bound:g}, of {size[i]:g}")
    return Verdict(bounds, finite, 0, failures)


def run(count: int, seed: int = 1) -> Verdict:
    """Attack with so many streams; stream i depends on the seed and i alone."""
    verdict = Verdict(0, 0, 0, [])
    with np.errstate(all="ignore"):
        for i in range(count):
            rng = np.random.default_rng([seed, i])
            outcome = attack(draw(rng), rng, search=i % 10 == 0)
            verdict = verdict.add(outcome._replace(failures=[f"stream {i}: {text}" for text in outcome.failures]))
    return verdict
