"""What an importance weight does: where one step lands, how near IWA is to the flow, and weights against copies.

    python benchmarks/weights.py

*Lands*: the prediction after one example of weight h, from 0 at rate 1, for each update. *Flow*: the largest relative
error of the IWA step against the gradient flow solved in 50 digits (closed forms: an exponential for the squared loss,
Lambert's W for the logistic one). *Copies*: every row once with weight h, or h times with weight 1, side by side; the
largest difference of the predictions made by the two models, over the largest prediction. Each tool has the rate 0.1
and nothing else of its own. Vowpal Wabbit, in single precision, has the IWA update too: by default together with
adaptive rates, which see a row's weight once, and alone with ``--invariant --power_t 0``.
"""

from __future__ import annotations

import mpmath
import numpy as np
import vowpalwabbit
from record import Results, parser
from river import linear_model, optim
from sklearn.linear_model import SGDClassifier

from steelyard import Learner, step

UPDATES = ("iwa", "proximal", "aprox", "linearized")
LABELS = {"squared": 3.0, "logistic": 1.0}
RATE, ROWS, COLUMNS = 0.1, 100, 5
COPIES = (1, 2, 5, 10, 30, 100, 300)


def flow(loss, p, y, a):
    """How far the gradient flow takes the prediction p in time a, over -a: the step of IWA, in 50 digits."""
    with mpmath.workdps(50):
        p, y, a = mpmath.mpf(p), mpmath.mpf(y), mpmath.mpf(a)
        if loss == "squared":
            return (p - y) * -mpmath.expm1(-a) / a
        margin = y * p  # m' = 1 / (1 + exp(m)), so m + exp(m) grows like time
        total = margin + mpmath.exp(margin) + a
        # total - W(exp(total)), by Newton on m + exp(m) = total: W overflows long before it is wrong
        m = total if total < 1 else mpmath.log(total)
        for _ in range(200):
            change = (m + mpmath.exp(m) - total) / (1 + mpmath.exp(m))
            m -= change
            if abs(change) < mpmath.mpf(10) ** -45 * max(1, abs(m)):
                break
        return -y * (m - margin) / a


def lands(results, count):
    weights = np.logspace(-2, 3, count)
    for loss, label in LABELS.items():
        for update in UPDATES:
            after = -weights * np.asarray(step(0.0, label, weights, loss=loss, update=update))
            results.add(f"lands, {loss} loss", update, after, "prediction", weights=weights, label=label)
        exact = [float(-h * flow(loss, 0.0, label, h)) for h in weights]
        results.add(f"lands, {loss} loss", "flow", exact, "prediction", weights=weights, label=label)


def errors(results, count):
    for loss, label in LABELS.items():
        p, a = (each.ravel() for each in np.meshgrid(np.linspace(-30, 30, count), np.logspace(-8, 8, count)))
        ours = np.asarray(step(p, label, a, loss=loss, update="iwa"))
        exact = [flow(loss, *each) for each in zip(p, np.full(p.size, label), a, strict=True)]
        apart = [abs(mine - truth) / abs(truth) for mine, truth in zip(ours, exact, strict=True) if truth]
        worst = float(max(apart))
        print(f"{loss}: at most {worst:.2g} from the flow, relatively, in {len(apart):,} steps")
        results.add(f"flow, {loss} loss", "iwa", worst, "relative error", steps=len(apart))


def with_learner(update):
    def predictions(X, y, weight, copies):
        learner = Learner("logistic", update=update, metric="scalar", schedule="constant", eta0=RATE)
        learner.learn(np.repeat(X, copies, axis=0), np.repeat(y, copies), np.repeat(weight, copies))
        return learner.predict(X)

    return predictions


def with_sklearn(X, y, weight, copies):
    model = SGDClassifier(loss="log_loss", alpha=0.0, learning_rate="constant", eta0=RATE, shuffle=False)
    repeated = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    model.partial_fit(*repeated, classes=[-1.0, 1.0], sample_weight=np.repeat(weight, copies))
    return model.decision_function(X)


def with_river(X, y, weight, copies):
    model = linear_model.LogisticRegression(optimizer=optim.SGD(RATE), intercept_lr=RATE)
    rows = [dict(enumerate(row)) for row in X.tolist()]
    for row, label, h in zip(rows, y > 0, weight.tolist(), strict=True):
        for _ in range(copies):
            model.learn_one(row, bool(label), w=h)
    return X @ [model.weights.get(j, 0.0) for j in range(COLUMNS)] + model.intercept


def with_vw(options):
    def predictions(X, y, weight, copies):
        model = vowpalwabbit.Workspace(f"--quiet --loss_function logistic -l {RATE} {options}")
        texts = [" ".join(f"{j}:{v:.9g}" for j, v in enumerate(row)) for row in X.tolist()]
        for text, label, h in zip(texts, y, weight, strict=True):
            for _ in range(copies):
                model.learn(f"{label:g} {h:g} | {text}")
        found = np.array([model.predict(f"| {text}") for text in texts])
        model.finish()
        return found

    return predictions


def copies(results, counts):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = np.where(X @ rng.normal(size=COLUMNS) + rng.logistic(size=ROWS) > 0, 1.0, -1.0)
    tools = {f"Learner, {update}": with_learner(update) for update in UPDATES}
    tools |= {"scikit-learn SGDClassifier": with_sklearn, "River": with_river}
    plain = "--invariant --power_t 0"
    tools |= {"Vowpal Wabbit": with_vw(""), f"Vowpal Wabbit {plain}": with_vw(plain)}
    for name, predictions in tools.items():
        found = []
        for h in counts:
            once = predictions(X, y, np.full(ROWS, float(h)), 1)
            again = predictions(X, y, np.ones(ROWS), h)
            found.append(float(np.abs(once - again).max() / np.abs(again).max()))
        print(f"{name:30s} weight {counts[-1]} and {counts[-1]} copies differ by {found[-1]:.2g}")
        results.add("copies", name, found, "relative difference", weights=counts)


def main():
    options = parser(__doc__).parse_args()
    results = Results("weights", options)
    points, grid, counts = (5, 5, COPIES[:3]) if options.quick else (41, 41, COPIES)
    lands(results, points)
    errors(results, grid)
    copies(results, counts)
    results.save()


if __name__ == "__main__":
    main()
