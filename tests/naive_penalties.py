"""A slow, obvious twin of learners with penalties, and of averaged ones: dense, nothing is lazy, plain Python."""

from __future__ import annotations

import math

from naive import slope, step


def soft(z, k):
    return math.copysign(max(0.0, abs(z) - k), z)


def shrink(x, d, l1, l2):
    """x' = -(l1 sign x + l2 x) for the time d."""
    if l2 == 0.0:
        return soft(x, l1 * d)
    return math.copysign(max(0.0, (abs(x) + l1 / l2) * math.exp(-l2 * d) - l1 / l2), x)


def learn(rows, labels, weights, *, loss, update, schedule, metric, center, eta0, l1=0.0, l2=0.0):
    """(predictions, x at the end, the average of the x that rows were predicted with).

    The last entry of a row is the constant feature, which is not penalised.
    """
    d = len(rows[0])
    x, theta, scale, squares = [0.0] * d, [0.0] * d, [0.0] * d, [0.0] * d
    total, clock, predictions, mean = 0.0, 0.0, [], [0.0] * d
    adaptive = schedule == "adagrad-norm" and metric == "diagonal"

    def lam():
        if schedule == "power":
            return math.sqrt(1.0 + clock) / eta0
        return (math.sqrt(1.0 + total) if schedule == "adagrad-norm" and not adaptive else 1.0) / eta0

    def metric_of(j):
        return 1.0 if metric == "scalar" else scale[j] * math.sqrt(scale[j] ** 2 + squares[j])

    def bend(j):
        """A_j + l2 t, without l2 for center "trajectory" and the intercept."""
        return lam() * metric_of(j) + (l2 * clock if center == "origin" and j < d - 1 else 0.0)

    def play():
        if center == "trajectory":
            return list(x)
        return [soft(theta[j], l1 * clock if j < d - 1 else 0.0) / bend(j) if theta[j] else 0.0 for j in range(d)]

    for q, y, h in zip(rows, labels, weights, strict=True):
        for j in range(d):
            if metric == "diagonal" and h > 0.0 and abs(q[j]) > scale[j]:
                x[j] *= scale[j] / abs(q[j])
                scale[j] = abs(q[j])
        point = play()
        p = sum(v * w for v, w in zip(q, point, strict=True))
        predictions.append(p)
        if h == 0.0:
            continue
        mean = [m + h * v for m, v in zip(mean, point, strict=True)]
        rate = h / lam()
        if schedule == "power" and center == "trajectory":
            rate = 2.0 * eta0 * (math.sqrt(1.0 + clock + h) - math.sqrt(1.0 + clock))
        length = sum(v * v * lam() / bend(j) for j, v in enumerate(q) if v)
        c = step(loss, update, p, y, rate * length)
        for j in range(d):
            theta[j] -= h * c * q[j]
            if q[j]:
                x[j] -= rate * c * q[j] / metric_of(j)
        g = slope(loss, p, y)
        total += h * g * g * length
        if schedule == "adagrad-norm":
            squares = [squares[j] + h * (g * q[j]) ** 2 for j in range(d)]
        if center == "trajectory":
            for j in range(d - 1):
                if x[j]:
                    x[j] = shrink(x[j], rate / metric_of(j), l1, l2)
        clock += h
    return predictions, play(), [m / clock if clock else 0.0 for m in mean]
