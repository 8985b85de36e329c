"""The self-tuning mixture as its formulas read, in double precision: slow, and without any code of the library."""

from __future__ import annotations

import math

import numpy as np

from naive import bisect


class SecondOrder:
    """An expert with a full matrix A, which is solved with afresh for every row."""

    def __init__(self, logistic: bool, columns: int, prior: float) -> None:
        self.logistic, self.prior = logistic, prior
        self.A, self.x = prior * np.eye(columns + 1), np.zeros(columns + 1)
        self.unit = np.zeros(columns)
        self.mean, self.v, self.present, self.seen = np.zeros(columns), np.zeros(columns), np.zeros(columns), 0.0

    def read(self, q: np.ndarray, counted: float) -> None:
        """Let the columns take in a row, and measure it in their units."""
        self.seen += counted
        away = q - self.mean
        self.mean = self.mean + counted / self.seen * away
        self.v = self.v + counted / self.seen * (away * (q - self.mean) - self.v)
        self.present = self.present + counted * (q != 0.0)
        with np.errstate(invalid="ignore"):
            units = np.sqrt(self.v * self.seen / self.present)
        for j, spread in enumerate(units):
            if self.unit[j] == 0.0 and self.v[j] > 1e-24 * self.mean[j] ** 2:
                self.unit[j] = spread
            elif self.unit[j] > 0.0 and spread > 1.1 * self.unit[j]:
                # the same model and the same A in the new unit; then the prior is as strong as before
                ratio = spread / self.unit[j]
                change = np.ones(len(self.x))
                change[j] = ratio
                A = self.A / np.outer(change, change)
                told = A @ (self.x * change)
                A[j, j] += self.prior * (1.0 - 1.0 / ratio**2)
                self.A, self.x, self.unit[j] = A, np.linalg.solve(A, told), spread
        scaled = np.divide(q - self.mean, self.unit, out=np.zeros_like(q), where=self.unit > 0.0)
        self.z = np.append(scaled, 1.0)
        self.u = np.linalg.solve(self.A, self.z)
        self.b, self.p = self.u @ self.z, self.x @ self.z
        self.s = np.sqrt(1.0 + np.pi * self.b / 8.0)

    def step(self, y: float, offset: float, low: float, high: float, relative: float, counted: float) -> None:
        """Learn the label."""
        if self.logistic:

            def flow(h: float) -> tuple[float, float]:
                right = 1.0 / (1.0 + np.exp(-y * self.p / self.s))
                wrong = 1.0 - right
                push = h * self.b / self.s * wrong

                def too_far(d: float) -> float:
                    way = wrong**2 * d + 2 * right * wrong * math.expm1(d) + right**2 * math.expm1(2 * d) / 2
                    return way - push

                d = bisect(too_far, 0.0, push)
                return d, right * math.expm1(d)

            self.x = self.x + y * self.s * flow(relative)[0] / self.b * self.u
            grown = flow(min(relative, counted))[1] / self.b
        else:
            residual = self.p + offset - y
            inside = np.clip(self.p + offset, low, high)
            weight = 1.0 if inside == self.p + offset else (inside - y) / residual
            gain = weight * relative * self.b
            self.x = self.x - residual * gain / (1.0 + gain) / self.b * self.u
            grown = weight * counted
        self.A = self.A + grown * np.outer(self.z, self.z)


class NaiveMixture:
    """The self-tuning mixture in double precision: one dictionary a feature, one expert after the other."""

    RATES = (*np.logspace(-1.5, 1.0, 4), *np.logspace(-1.0, 1.5, 4))

    def __init__(self, loss: str, columns: int) -> None:
        self.loss = loss
        priors = (3.0, min(max((columns / 60.0) ** 2, 0.03), 1.0))
        self.second = [SecondOrder(loss == "logistic", columns, prior) for prior in priors] if columns <= 100 else []
        self.begin = np.array([0.5 / 8] * 8 + [0.25] * 2) if self.second else np.full(8, 1.0 / 8)
        self.pi, self.rate = self.begin, 0.0
        self.features: dict[int, dict] = {}
        self.bias = {"x": np.zeros(8), "G": 0.0, "H": 0.0}
        self.seen = self.rows = self.logs = self.mean = self.variance = 0.0
        self.largest, self.low, self.high = 0.0, 0.0, 0.0

    def _meet(self, q: np.ndarray, h: float) -> dict[int, float]:
        """z of every feature in the row."""
        z = {}
        for j in np.flatnonzero(q):
            if j not in self.features:
                self.features[j] = {"n": 0.0, "mean": None if self.seen else 0.0, "v": 0.0, "unit": None}
                self.features[j].update({"x": np.zeros(8), "G": 0.0, "H": 0.0})
            f = self.features[j]
            f["n"] += h
            share = h / f["n"]
            if f["mean"] is None:
                z[j], square = q[j], q[j] ** 2
            else:
                away = q[j] - f["mean"]
                f["mean"] += share * away
                z[j] = q[j] - f["mean"]
                square = away * z[j]
            if f["unit"] is None and z[j] != 0.0:
                f["unit"] = 2.0 ** np.floor(np.log2(abs(z[j])))
            f["v"] += share * (square - f["v"])
            if f["unit"] is not None and f["v"] > 4.0 * f["unit"] ** 2:
                new = 2.0 ** np.floor(np.log2(np.sqrt(f["v"])))
                f["x"] *= f["unit"] / new
                f["unit"] = new
        for j, f in self.features.items():
            if j not in z and f["mean"] is not None:  # a centered column that is zero here
                share = h / (f["n"] + h)
                f["n"] += h
                away = -f["mean"]
                f["mean"] += share * away
                if f["unit"] is None:
                    f["unit"] = 2.0 ** np.floor(np.log2(abs(f["mean"])))
                f["v"] += share * (-away * f["mean"] - f["v"])
                if f["v"] > 4.0 * f["unit"] ** 2:
                    new = 2.0 ** np.floor(np.log2(np.sqrt(f["v"])))
                    f["x"] *= f["unit"] / new
                    f["unit"] = new
                if f["v"] < f["mean"] ** 2:
                    z[j] = -f["mean"]
                    continue
                f["v"] += f["mean"] ** 2
                top = 2.0 ** np.floor(np.log2(np.sqrt(f["v"])))
                if f["v"] > 4.0 * f["unit"] ** 2:
                    f["x"][4:] *= f["unit"] / top
                    f["unit"] = top
                self.bias["x"][4:] -= f["mean"] * f["x"][4:]
                f["mean"] = None
        return z

    @staticmethod
    def _flow(m: float, a: float) -> float:
        """The mean slope along the logistic flow: its travel D solves D + e^m (e^D - 1) = a."""
        return bisect(lambda d: d + math.exp(m) * math.expm1(d) - a, 0.0, min(a, 600.0)) / a

    def learn(self, q: np.ndarray, y: float, h: float = 1.0) -> tuple[float, float]:
        """(prediction, loss) of the mixture."""
        z = self._meet(q, h)
        logistic = self.loss == "logistic"
        bias = {**self.bias, "v": 1.0, "mean": None}
        known = {j: self.features[j] for j in z}
        # a column that was constant so far has no scale, and nobody reads it
        parts = [(f, q[j] if f["v"] > 0.0 else 0.0, z[j]) for j, f in known.items()] + [(bias, 1.0, 1.0)]
        p = sum(f["x"] * np.repeat([whole, value], 4) for f, whole, value in parts)
        self.logs += np.log(h)
        relative = h / np.exp(self.logs / (self.rows + 1))
        counted = min(relative, 10.0)
        self.largest = max(self.largest, counted)
        moved, unit = 0.0, 1.0
        if not logistic:
            p = np.clip(p + self.mean, self.low, self.high) if self.rows else np.zeros(8)
            old_mean = self.mean
            away = y - self.mean
            moved = away * h / (self.seen + h)
            self.mean += moved
            self.variance += h / (self.seen + h) * (away * (away - moved) - self.variance)
            unit = np.sqrt(self.variance)
        first, second = [], []
        for f, whole, value in parts:
            positive = f["v"] > 0.0
            u = f["v"] + (f["mean"] or 0.0) ** 2
            first.append(whole / np.sqrt(u * (0.1 * u + f["G"])) if positive else 0.0)
            second.append(value / (f["v"] + f["H"]) if positive else 0.0)
        wholes, values = [whole for _, whole, _ in parts], [value for _, _, value in parts]
        norms = np.repeat([np.dot(wholes, first), np.dot(values, second)], 4)
        a = np.array(self.RATES) * relative * norms * (unit > 0.0)  # no step while all labels are equal
        for expert in self.second:
            expert.read(q, counted)
        if logistic:
            every = np.append(p, [expert.p / expert.s for expert in self.second])
            rate = 1.0 / self.largest
        else:
            rest = [expert.p + old_mean for expert in self.second]
            every = np.append(p, np.clip(rest, self.low, self.high) if self.rows else np.zeros(len(rest)))
            width = self.high - self.low
            rate = 4.0 / (width**2 * self.largest) if width > 0.0 else 0.0
        if 0.0 < rate < self.rate:  # the shares of a smaller rate
            self.pi = self.begin * (self.pi / self.begin) ** (rate / self.rate)
            self.pi = self.pi / self.pi.sum()
        self.rate = rate
        pi = self.pi
        if logistic:
            values_k = np.logaddexp(0.0, -y * every)
            loss = -np.log(pi @ np.exp(-values_k))
            mixed = y * (-np.log(pi @ np.exp(-values_k - y * every)) - loss)
            slope = -y / (1.0 + np.exp(y * p))
            c = np.array([self._flow(y * pk, ak) * -y for pk, ak in zip(p, a, strict=True)])
            sigma = -np.expm1(-loss)
            steep, curve = sigma**2, sigma * (1.0 - sigma)
            ratio = c / slope
        else:
            mixed = 0.0 if not self.rows else self.low
            if width > 0.0:
                ends = [
                    -np.log(pi @ np.exp(-counted * rate * 0.5 * (every - end) ** 2)) / (counted * rate)
                    for end in (self.low, self.high)
                ]
                mixed = 0.5 * (self.low + self.high) + (ends[0] - ends[1]) / width
            loss = 0.5 * (mixed - y) ** 2
            values_k = 0.5 * (every - np.clip(y, self.low, self.high)) ** 2
            ratio = np.where(a > 0.0, -np.expm1(-a) / np.where(a > 0.0, a, 1.0), 1.0)
            c = (p + moved - y) * ratio
            steep, curve = ((mixed - y) / unit) ** 2 if unit > 0.0 else 0.0, 1.0
        shrink = relative * float(pi[:8] @ ratio) / pi[:8].sum()
        pi = pi * np.exp(-counted * rate * values_k)
        t = self.rows + 3.0
        part = 0.25 / (t * np.log(t) ** 2)
        self.pi = (1.0 - part) * pi / pi.sum() + part * self.begin
        low, high = (min(self.low, y), max(self.high, y)) if self.rows else (y, y)
        for expert in self.second:
            expert.step(y, self.mean, low, high, relative, counted)
        rates = np.array(self.RATES)
        for (f, whole, value), r1, r2 in zip(parts, first, second, strict=True):
            target = self.bias if f is bias else f
            target["x"] = target["x"] - rates * relative * c * np.repeat([r1, r2], 4)
            target["G"] += shrink * steep * whole**2
            target["H"] += shrink * curve * value**2
        self.seen += h
        self.rows += 1.0
        if not logistic:
            self.low = min(self.low, y) if self.rows > 1 else y
            self.high = max(self.high, y) if self.rows > 1 else y
        return mixed, loss
