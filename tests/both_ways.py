"""Digests of everything that is learned, for rows of given types: run as a program, by objects and through Numba.

python tests/both_ways.py f8 u4
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import steelyard
from steelyard import Bank, Learner, Mixture
from steelyard.compiled import door, objects
from steelyard.data.block import as_block, inspected
from steelyard.data.order import group_equal_rows, shuffled_visits
from steelyard.losses import LOSSES, CustomLoss
from steelyard.updates import UPDATES

ROWS, COLUMNS = 60, 9


def digest(*arrays):
    state = hashlib.sha256()
    for array in arrays:
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()[:16]


def forms(data, indices):
    """Dense and sparse rows of the types."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(ROWS, COLUMNS)) * 10.0 ** rng.integers(-2, 3, COLUMNS)).astype(data)
    X[rng.random(X.shape) < 0.4] = 0.0
    sparse = sp.csr_matrix(X)
    sparse.indices = sparse.indices.astype("i" + indices[1])
    sparse.indptr = sparse.indptr.astype("i" + indices[1])
    return X, sparse


def labels(kind):
    rng = np.random.default_rng(1)
    return {"count": rng.poisson(2.0, ROWS).astype(float), "real": rng.normal(size=ROWS)}.get(
        kind, np.sign(rng.normal(size=ROWS))
    )


def everything(data, indices):
    """Name and digest of every learner's state and predictions."""
    weight = 10.0 ** np.random.default_rng(2).uniform(-1, 1, ROWS)
    mine = CustomLoss(lambda p, y: (p - y) ** 2 / 2, lambda p, y: p - y, curvature=1.0)
    both = list(zip(("dense", "sparse"), forms(data, indices), strict=True))

    def learned(learner, X, y):
        trace = learner.learn(X[:40], y[:40], weight[:40])
        learner.learn(X[40:], y[40:], weight[40:])
        return digest(trace.prediction, trace.loss, *learner.state, learner.predict(X))

    for (form, X), loss in itertools.product(both, [*map(steelyard.get_loss, LOSSES), mine]):
        y, name = labels(loss.labels), (form, loss.name)
        for update in UPDATES:
            if update != "aprox" or loss is not mine:
                yield *name, update, learned(Learner(loss, update=update), X, y)
        yield *name, "gap", learned(Learner(loss, schedule="gap", certificate=True), X, y)
        yield *name, "ball", learned(Learner(loss, metric="scalar", radius=0.3), X, y)
        yield *name, "bank", learned(Bank(loss, eta0=[0.1, 1.0, 10.0], updates=("iwa", "proximal")), X, y)
        yield *name, "mixture", learned(Mixture(loss), X, y)
        if loss.curvature:
            yield *name, "full", learned(Learner(loss, metric="full", certificate=True), X, y)
        points = np.linspace(-2.0, 2.0, ROWS)
        yield *name, "conjugate", digest(loss.conjugate(points, y))
    for form, X in both:
        yield form, "classes", learned(Learner("logistic", n_outputs=3), X, np.arange(ROWS) % 3)
        yield form, "mixed classes", learned(Mixture("logistic", n_outputs=3), X, np.arange(ROWS) % 3)
        twice = np.append(np.arange(ROWS), np.arange(ROWS))
        block = inspected(as_block(X[twice]))
        groups = group_equal_rows(block, labels("sign")[twice], weight[twice])
        yield form, "order", digest(*shuffled_visits(groups, twice.size, 7))


def main():
    objects.PACKAGED = Path("/nowhere")  # what is compiled here, for the same processor as Numba compiles for
    warnings.simplefilter("ignore")
    for line in everything(*sys.argv[1:]):
        print(*line)
    print(door._through_numba(), file=sys.stderr)


if __name__ == "__main__":
    main()
