"""
What is lost when many machines learn at once?
==============================================

The rows are dealt out to shards, each learns its own, and :func:`steelyard.merge` makes one model of them:
all in one process here, and on many machines with :func:`steelyard.distributed.fit`.

The columns move together, which is the hard case for an average of models. Shards of one round do not see
each other's rows. "One round": after a common start of 1,000 rows, every shard learns all of its rows, and
they are merged once. "Rounds that grow": they are merged again and again, each time when the number of rows
has doubled.
"""

import copy
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from steelyard import Mixture, merge

rng = np.random.default_rng(0)
n, columns, first = 40_000, 150, 1_000
factor = rng.normal(size=(n + 10_000, 1))  # every column is moved by it: hard for an average of models
X = 0.7 * factor + rng.normal(size=(n + 10_000, columns))
u = rng.normal(size=columns) * 2 / np.sqrt(columns)
y = np.where(rng.random(len(X)) < 1 / (1 + np.exp(-(X @ u))), 1.0, -1.0)
X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]


def loss(model):
    return np.logaddexp(0, -y_test * model.predict(X_test)).mean()


def learn(shards, stops):
    """Rows up to each of ``stops`` are dealt out to the shards, learned, and merged."""
    model = Mixture("logistic")
    model.learn(X[: stops[0]], y[: stops[0]])
    for start, stop in pairwise(stops):
        parts = [copy.deepcopy(model) for _ in range(shards)]
        for k, part in enumerate(parts):
            part.learn(X[start + k : stop : shards], y[start + k : stop : shards])
        model = merge(parts, start=model)
    return loss(model)


alone = Mixture("logistic")
alone.learn(X, y)
shards = [1, 2, 4, 8, 16, 32, 64]
doubling = [*[first * 2**k for k in range(6) if first * 2**k < n], n]
figure, ax = plt.subplots(layout="constrained")
ax.plot(shards, [learn(k, [first, n]) / loss(alone) for k in shards], "s-", color="C1", label="one round")
ax.plot(shards, [learn(k, doubling) / loss(alone) for k in shards], "o-", color="C0", label="rounds that grow")
ax.axhline(1.0, color="k", lw=0.8, ls=":")
ax.set(xscale="log", xlabel="shards", ylabel="held-out log loss / that of one learner")
ax.set_xticks(shards, [str(k) for k in shards])
ax.minorticks_off()
ax.set_title("40,000 rows in one place, or dealt out to shards")
ax.legend()
plt.show()
