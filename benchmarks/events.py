"""One event at a time, in microseconds: Steelyard's events and rows, and River's LogisticRegression, in one run.

python benchmarks/events.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from record import Results, parser
from river.linear_model import LogisticRegression

from steelyard import Learner, OnlineClassifier

EVENTS, FEATURES, ROUNDS = 2000, 20, 5
PEER = "River's learn_one"


def per_event(work: Callable[[int], Any], events: int) -> float:
    """The best of a few rounds, in seconds an event."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for i in range(events):
            work(i)
        best = min(best, time.perf_counter() - start)
    return best / events


def main() -> None:
    options = parser(__doc__).parse_args()
    rng = np.random.default_rng(0)
    events = [{f"f{j}": float(v) for j, v in enumerate(row)} for row in rng.normal(size=(EVENTS, FEATURES))]
    texts = [{f"c{j}": f"v{v}" for j, v in enumerate(row)} for row in rng.integers(0, 50, (EVENTS, FEATURES))]
    y = (rng.random(EVENTS) < 0.5).tolist()
    signs = [np.array([1.0 if label else -1.0]) for label in y]
    rows = [sp.csr_matrix(rng.normal(size=(1, FEATURES))) for _ in range(EVENTS)]
    for row in rows:
        row.resize((1, 2**18))
    rate, mixture, words = OnlineClassifier(eta0=0.5), OnlineClassifier(), OnlineClassifier(eta0=0.5)
    learner, fitted, river = Learner(eta0=0.5), OnlineClassifier(eta0=0.5), LogisticRegression()
    fitted.partial_fit(rows[0], [True], classes=[False, True])
    measured: dict[str, Callable[[int], Any]] = {
        "learn_one, one rate": lambda i: rate.learn_one(events[i], y[i]),
        "learn_one, mixture": lambda i: mixture.learn_one(events[i], y[i]),
        "learn_one, one rate, text": lambda i: words.learn_one(texts[i], y[i]),
        "predict_one, one rate": lambda i: rate.predict_one(events[i]),
        "predict_one, mixture": lambda i: mixture.predict_one(events[i]),
        "predict_proba_one, mixture": lambda i: mixture.predict_proba_one(events[i]),
        "Learner.learn of one row": lambda i: learner.learn(rows[i], signs[i]),
        "partial_fit of one row": lambda i: fitted.partial_fit(rows[i], [y[i]]),
        PEER: lambda i: river.learn_one(events[i], y[i]),
        "River's predict_one": lambda i: river.predict_one(events[i]),
    }
    count = 20 if options.quick else EVENTS
    times = {name: per_event(work, count) for name, work in measured.items()}
    results = Results("events", options)
    results.compare(f"one event of {FEATURES} features", times, PEER)
    results.save()


if __name__ == "__main__":
    main()
