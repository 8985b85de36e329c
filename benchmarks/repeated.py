"""Data with equal rows: a shuffled ``fit`` beside ``partial_fit`` on the same rows in a random order.

    python benchmarks/repeated.py [--data FOLDER]    # a folder with mushrooms, a9a, ijcnn1, svmguide1, diabetes_scale

Progressive loss and accuracy on a held-out quarter, means over three splits; without a rate, and with eta0=1.
"""

from __future__ import annotations

import numpy as np
from record import Results, parser
from sklearn.datasets import load_breast_cancer

from steelyard import OnlineClassifier, read_libsvm
from steelyard.data.datasets import find


def one_hot(seed, columns=4, values=5, rows=10_000):
    rng = np.random.default_rng(seed)
    X = np.eye(values)[rng.integers(0, values, (rows, columns))].reshape(rows, -1)
    return X, (rng.random(rows) < 1.0 / (1.0 + np.exp(-X @ rng.normal(size=X.shape[1])))).astype(int)


def data_sets(folder, quick):
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer, X > 1", (X > 1).astype(float), y
    yield "breast cancer", X, y
    if quick:
        return
    for seed in range(3):
        yield f"4 x 5 one-hot columns, draw {seed}", *one_hot(seed)
    yield "4 x 2 one-hot columns", *one_hot(7, values=2)
    for name in ("mushrooms", "a9a", "ijcnn1", "svmguide1", "diabetes_scale") if folder else ():
        path = find(name, folder)
        if path is None:
            print(f"{name} is not in {folder}")
        else:
            yield name, *read_libsvm(path)


def main():
    options = parser(__doc__)
    options.add_argument("--data", help="folder with LIBSVM files")
    options = options.parse_args()
    results = Results("repeated", options)
    for name, X, y in data_sets(options.data, options.quick):
        for rate in ("auto", 1.0):
            found = []
            for seed in range(1 if options.quick else 3):
                order = np.random.default_rng(seed).permutation(len(y))
                test, train = order[: len(y) // 4], order[len(y) // 4 :]
                fitted = OnlineClassifier(eta0=rate, random_state=seed).fit(X[train], y[train])
                streamed = OnlineClassifier(eta0=rate).partial_fit(X[train], y[train], classes=np.unique(y))
                for model in (fitted, streamed):
                    found += [model.progressive_loss_, model.score(X[test], y[test])]
            loss, accuracy, other, others = np.array(found).reshape(-1, 4).mean(axis=0)
            for what, ours, theirs in (("progressive loss", loss, other), ("accuracy", accuracy, others)):
                case = f"{name}, eta0={rate!r}, {what}"
                results.compare(case, {"fit": ours, "partial_fit": theirs}, "partial_fit", unit="")
    results.save()


if __name__ == "__main__":
    main()
