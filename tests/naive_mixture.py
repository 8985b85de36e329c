"""The self-tuning mixture as its formulas read, in double precision: slow, and without any code of the library."""

from __future__ import annotations

import math

import numpy as np

from naive import bisect


class NaiveMixture:
    """The self-tuning mixture in double precision: one dictionary a feature, one expert after the other."""

    RATES = (*np.logspace(-1.5, 1.0, 4), *np.logspace(-1.0, 1.5, 4))

    def __init__(self, loss: str) -> None:
        self.loss = loss
        self.features: dict[int, dict] = {}
        self.bias = {"x": np.zeros(8), "G": 0.0, "H": 0.0}
        self.seen = self.rows = self.logs = self.mean = self.variance = 0.0
        self.largest, self.low, self.high = 0.0, 0.0, 0.0
        self.evidence = np.zeros(8)

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
        return bisect(lambda d: d + math.exp(m) * math.expm1(d) - a, 0.0, a) / a

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
        counted = min(h / np.exp(self.logs / (self.rows + 1)), 10.0)
        self.largest = max(self.largest, counted)
        moved, unit = 0.0, 1.0
        if not logistic:
            p = np.clip(p + self.mean, self.low, self.high) if self.rows else np.zeros(8)
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
        a = np.array(self.RATES) * h * norms * (unit > 0.0)  # no step while all labels are equal
        if logistic:
            values_k = np.logaddexp(0.0, -y * p)
            pi = np.exp(-(self.evidence - self.evidence.min()) / self.largest)
            pi /= pi.sum()
            loss = -np.log(pi @ np.exp(-values_k))
            mixed = y * (-np.log(pi @ np.exp(-values_k - y * p)) - loss)
            slope = -y / (1.0 + np.exp(y * p))
            c = np.array([self._flow(y * pk, ak) * -y for pk, ak in zip(p, a, strict=True)])
            sigma = -np.expm1(-loss)
            steep, curve = sigma**2, sigma * (1.0 - sigma)
        else:
            width = self.high - self.low
            rate = 4.0 / (width**2 * self.largest) if width > 0.0 else 1.0
            pi = np.exp(-rate * (self.evidence - self.evidence.min()))
            pi /= pi.sum()
            ends = [
                -np.log(pi @ np.exp(-counted * rate * 0.5 * (p - end) ** 2)) / (counted * rate)
                for end in (self.low, self.high)
            ]
            mixed = 0.0 if not self.rows else self.low
            if width > 0.0:
                mixed = 0.5 * (self.low + self.high) + (ends[0] - ends[1]) / width
            loss = 0.5 * (mixed - y) ** 2
            values_k = 0.5 * (p - np.clip(y, self.low, self.high)) ** 2
            slope = p + moved - y
            c = slope * np.where(a > 0.0, -np.expm1(-a) / np.where(a > 0.0, a, 1.0), 1.0)
            steep, curve = ((mixed - y) / unit) ** 2 if unit > 0.0 else 0.0, 1.0
        ratio = c / slope if logistic else np.where(a > 0.0, -np.expm1(-a) / np.where(a > 0.0, a, 1.0), 1.0)
        shrink = h * float(pi @ ratio)
        self.evidence = self.evidence + counted * values_k
        rates = np.array(self.RATES)
        for (f, whole, value), r1, r2 in zip(parts, first, second, strict=True):
            target = self.bias if f is bias else f
            target["x"] = target["x"] - rates * h * c * np.repeat([r1, r2], 4)
            target["G"] += shrink * steep * whole**2
            target["H"] += shrink * curve * value**2
        self.seen += h
        self.rows += 1.0
        if not logistic:
            self.low = min(self.low, y) if self.rows > 1 else y
            self.high = max(self.high, y) if self.rows > 1 else y
        return mixed, loss
