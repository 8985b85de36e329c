"""A slow, obvious learner: the paper's Algorithm 1 in plain Python, for the squared and the logistic loss.

It shares no code with the library. Vectors are lists, roots are found by bisection, formulas are those on paper.
"""

from __future__ import annotations

import math

from scipy.integrate import solve_ivp


def bisect(f, low, high):
    """A root of an increasing function."""
    for _ in range(2000):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if f(middle) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def value(loss, p, y):
    if loss == "squared":
        return 0.5 * (p - y) ** 2
    return math.log1p(math.exp(-y * p)) if y * p > 0 else -y * p + math.log1p(math.exp(y * p))


def slope(loss, p, y):
    if loss == "squared":
        return p - y
    return -y / (1.0 + math.exp(y * p)) if y * p < 700 else 0.0


def conjugate(loss, s, y):
    if loss == "squared":
        return 0.5 * s * s + s * y
    v = -y * s
    return sum(w * math.log(w) for w in (v, 1.0 - v) if w > 0.0)


def step(loss, update, p, y, a):
    g = slope(loss, p, y)
    if update == "linearized" or a == 0.0 or g == 0.0:
        return g
    if update == "aprox":
        return g * min(1.0, value(loss, p, y) / (a * g * g))
    if loss == "squared":
        return g * (1.0 - math.exp(-a)) / a if update == "iwa" else g / (1.0 + a)
    m = y * p
    if update == "iwa":  # the flow's travel, from its invariant

        def excess(d):
            return d + math.exp(m) * math.expm1(d) - a
    else:

        def excess(d):
            return d * (1.0 + math.exp(m + d)) - a

    return -y * bisect(excess, 0.0, min(a * abs(g), 700.0 - m)) / a


def step_in_ball(loss, update, p, y, rate, x, q, radius):
    """The same where the model must stay in a ball: the prediction answers by P(v), and nothing is in closed form."""

    def answer(v):
        moved = [a - v * b for a, b in zip(x, q, strict=True)]
        norm = math.sqrt(sum(a * a for a in moved))
        return sum(a * b for a, b in zip(moved, q, strict=True)) * min(1.0, radius / norm if norm > 0.0 else 1.0)

    g = slope(loss, p, y)
    if update == "linearized" or g == 0.0:
        return g
    far = rate * g
    if update == "iwa":
        flow = solve_ivp(
            lambda _, v: [slope(loss, answer(v[0]), y)], (0.0, rate), [0.0], "DOP853", rtol=1e-12, atol=1e-14
        )
        return flow.y[0, -1] / rate
    if update == "proximal":
        return g * bisect(lambda part: part * g * g - slope(loss, answer(part * far), y) * g, 0.0, 1.0)
    goal = p - value(loss, p, y) / g  # where the tangent reaches 0
    if (answer(far) - goal) * g >= 0.0:
        return g
    return g * bisect(lambda part: (goal - answer(part * far)) * g, 0.0, 1.0)


CURVATURE = {"squared": 1.0, "logistic": 1.0 / 16.0}


def learn_full(rows, labels, weights, *, loss, update, eta0):
    """The same under the full metric, with the inverse of the matrix kept by the Sherman-Morrison formula."""
    d, kappa = len(rows[0]), CURVATURE[loss]
    x = [0.0] * d
    inverse = [[eta0 * (i == j) for j in range(d)] for i in range(d)]
    predictions = []
    for q, y, h in zip(rows, labels, weights, strict=True):
        p = sum(v * w for v, w in zip(q, x, strict=True))
        predictions.append(p)
        if h == 0.0:
            continue
        direction = [sum(v * w for v, w in zip(row, q, strict=True)) for row in inverse]
        b = sum(v * w for v, w in zip(q, direction, strict=True))
        a = math.log(1.0 + kappa * h * b) / kappa
        c = step(loss, update, p, y, a)
        x = [x[j] - a * c / b * direction[j] for j in range(d)]
        gain = kappa * h / (1.0 + kappa * h * b)
        inverse = [[inverse[i][j] - gain * direction[i] * direction[j] for j in range(d)] for i in range(d)]
    return predictions, x


def learn(rows, labels, weights, *, loss, update, schedule, metric, center, eta0, power_t=0.5, radius=None):
    """Predictions before each row, and the final x. Rows are lists and include the constant feature, if any."""
    if metric == "full":
        return learn_full(rows, labels, weights, loss=loss, update=update, eta0=eta0)
    d = len(rows[0])
    x = [0.0] * d
    theta = [0.0] * d
    scale = [0.0] * d
    energies = [0.0] * d
    lam_gap, energy, clock = 1.0 / eta0, 0.0, 0.0
    predictions = []

    def lam():
        adaptive = schedule == "adagrad-norm" and metric == "diagonal"
        growth = {"constant": 1.0, "power": (1.0 + clock) ** power_t, "gap": lam_gap * eta0}
        growth["adagrad-norm"] = 1.0 if adaptive else math.sqrt(1.0 + energy)
        return growth[schedule] / eta0

    def metric_of(j):
        if metric == "scalar":
            return 1.0
        return scale[j] * math.sqrt(scale[j] ** 2 + energies[j])

    def play():
        """x_t from theta_t: the minimizer of psi_t(x) - <theta, x> over the feasible set."""
        if center == "trajectory":
            return x
        point = [theta[j] / (lam() * metric_of(j)) if theta[j] else 0.0 for j in range(d)]
        norm = math.sqrt(sum(v * v for v in point))
        return [v * radius / norm for v in point] if radius is not None and norm > radius else point

    for q, y, h in zip(rows, labels, weights, strict=True):
        for j in range(d):
            if metric == "diagonal" and h > 0.0 and abs(q[j]) > scale[j]:
                x[j] *= scale[j] / abs(q[j])
                scale[j] = abs(q[j])
        p = sum(v * w for v, w in zip(q, play(), strict=True))
        predictions.append(p)
        if h == 0.0:
            continue
        norm2 = sum(v * v / metric_of(j) for j, v in enumerate(q) if v)
        rate = h / lam()
        if schedule == "power" and center == "trajectory":
            rate = eta0 * ((1.0 + clock + h) ** (1.0 - power_t) - (1.0 + clock) ** (1.0 - power_t)) / (1.0 - power_t)
        a = rate * norm2
        if radius is None:
            c = step(loss, update, p, y, a)
        else:
            point = x if center == "trajectory" else [v / lam() for v in theta]
            c = step_in_ball(loss, update, p, y, rate, point, q, radius)
        g = slope(loss, p, y)
        x = [x[j] - (rate * c * q[j] / metric_of(j) if q[j] else 0.0) for j in range(d)]
        theta = [theta[j] - h * c * q[j] for j in range(d)]
        norm = math.sqrt(sum(v * v for v in x))
        if radius is not None and norm > radius:
            x = [v * radius / norm for v in x]
        gamma = h * (value(loss, p, y) + conjugate(loss, c, y) - c * p + 0.5 * a * c * c)
        lam_gap += gamma / eta0**2
        energy += h * g * g * sum(v * v for v in q)
        if schedule == "adagrad-norm":
            energies = [energies[j] + h * (g * q[j]) ** 2 for j in range(d)]
        clock += h
    return predictions, list(play())
