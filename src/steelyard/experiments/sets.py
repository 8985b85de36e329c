"""The data sets of the paper's protocol: by name or from a file, normalised, and what a reader must know of each."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.data import datasets
from steelyard.losses import Array

NORMALISATION = (
    "Each column is divided by its standard deviation, after its mean was taken off where the set is dense (taking it "
    "off a sparse set would fill it). Then each row is divided by its Euclidean norm, so that the step length a = "
    "‖q‖²/λ, and with it the meaning of η₀, is the same for every example and every set. A constant feature 1 is "
    "added. Regression targets are standardised, so that predicting the mean has an averaged loss of one half; "
    "classification labels are −1 and +1."
)

EMBEDDED = {
    "diabetes": "load_diabetes: how far the disease went within a year, from 10 measurements",
    "wine_alcohol": "load_wine: a wine's alcohol, from its 12 other measurements",
    "iris_petal": "load_iris: the width of a petal, from the flower's 3 other measurements",
    "breast_cancer": "load_breast_cancer: benign or malignant, from 30 measurements",
    "digits_odd": "load_digits: an odd or an even digit, from 64 pixels",
    "wine_first": "load_wine: of the first cultivar or not, from 13 measurements",
}
"""What each set inside scikit-learn asks, and scikit-learn's name for it."""


class Facts(NamedTuple):
    """What a reader must know of a data set."""

    task: str
    rows: int
    columns: int
    nonzeros: int
    source: str
    kind: str
    """Where it is from: "scikit-learn", "LIBSVM" or "file"."""
    constant: float
    """The averaged loss of the best constant prediction in hindsight, after :func:`normalise`: of predicting the mean
    for the squared loss, and of giving each label its share for the logistic loss."""


def normalise(task: str, X: Any, y: Array) -> tuple[Any, Array]:
    """The paper's "we normalize the datasets", as :data:`NORMALISATION` says precisely."""
    import scipy.sparse as sp

    sparse = sp.issparse(X)
    if sparse and X.nnz > 0.5 * X.shape[0] * X.shape[1]:
        X, sparse = X.toarray(), False
    if sparse:
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
        X = X @ sp.diags(_inverse(np.sqrt(np.maximum(square, 0.0))))
        X = (sp.diags(_inverse(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()))) @ X).tocsr()
    else:
        X = (X - X.mean(axis=0)) * _inverse(X.std(axis=0))
        X = X * _inverse(np.linalg.norm(X, axis=1))[:, None]
    if task == "regression":
        y = (y - y.mean()) / y.std()
    return X, y


def _inverse(values: Array) -> Array:
    """1/v, and 0 for what is 0 to rounding: a constant column, an empty row."""
    small = values <= 1e-12 * values.max(initial=0.0)
    return np.where(small, 0.0, 1.0 / np.where(small, 1.0, values))


def load(name: str, data: str | os.PathLike[str] | None = None) -> tuple[str, Any, Array]:
    """Task, features and targets of a LIBSVM file, or of a set by name; what cannot be learned from is refused."""
    if os.path.isdir(name):
        raise ValueError(f"{name} is a folder: name a file in it, or name sets and give their folder with --data")
    if os.path.isfile(name):
        task, X, y = _load_file(name)
    elif os.path.basename(name) != name:
        raise FileNotFoundError(f"{name}: there is no such file")
    elif name not in datasets.EMBEDDED and name not in datasets.SETS:
        raise ValueError(
            f"unknown data set {name!r}, and no file of that name is here; `steelyard data list` shows the sets"
        )
    else:
        task, X, y = datasets.load(name, data)
    _check(name, X, y)
    return task, X, y


def _load_file(path: str) -> tuple[str, Any, Array]:
    try:
        return datasets.load_file(path)
    except ValueError as error:  # other commands have --format, and messages that name it
        message, other, _ = str(error).partition(": say --format")
        raise ValueError(f"{message}, and this command reads LIBSVM text only" if other else message) from None


def _check(name: str, X: Any, y: Array) -> None:
    """Refuse what nothing can be learned from, before anything is written."""
    if y.size == 0:
        raise ValueError(f"{name} has no rows")
    values = X.data if hasattr(X, "indptr") else X.ravel()
    if not values.any():
        raise ValueError(f"{name} has no features: every row is a label alone, or zeros")
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        row = int(np.searchsorted(X.indptr, at, "right")) if hasattr(X, "indptr") else at // X.shape[1] + 1
        raise ValueError(f"{name}, row {row}: a feature is {values[at]}, and must be a finite number; leave it out")
    if (y == y[0]).all():
        raise ValueError(f"{name} has one label only, {y[0]:g}: there is nothing to learn")


def titles(names: Sequence[str]) -> dict[str, str]:
    """A title for each name, all different: a set's name, or as much of the end of a file's path as tells it apart."""
    parts = {n: Path(os.path.abspath(n)).parts if os.path.isfile(n) else (n,) for n in names}
    result: dict[str, str] = {}
    for name, mine in parts.items():
        others = [theirs for other, theirs in parts.items() if other != name]
        depth = 1
        while depth < len(mine) and any(theirs[-depth:] == mine[-depth:] for theirs in others):
            depth += 1
        title = "".join(c if c.isprintable() else "?" for c in "/".join(mine[-depth:]))
        same = sum(title == other for other in result.values())
        result[name] = f"{title} ({same + 1})" if same else title
    return result


def file_stem(name: str) -> str:
    """How files about a set begin: its name, or for a LIBSVM file what any system takes of its name and a digest of
    its path, so that files of the same name in two folders stay apart."""
    if not os.path.isfile(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(name)).strip("._-")
    return f"{plain[:60] or 'file'}-{hashlib.sha256(os.fsencode(os.path.abspath(name))).hexdigest()[:8]}"


def describe(names: Sequence[str], data: str | os.PathLike[str] | None = None) -> dict[str, Facts]:
    """The facts of each set, by title. Reads every set, so whatever is wrong with one is said before any work."""
    return {title: _facts(name, *load(name, data)) for name, title in titles(names).items()}


def _facts(name: str, task: str, X: Any, y: Array) -> Facts:
    if os.path.isfile(name):
        kind, source = "file", "a LIBSVM file"
        source += (
            ", taken for classification: it has two labels"
            if task == "classification"
            else (f", taken for regression: it has {np.unique(y).size:,} different labels")
        )
    elif name in EMBEDDED:
        kind, source = "scikit-learn", EMBEDDED[name]
    else:
        kind, source = "LIBSVM", "the LIBSVM site"
    nonzeros = int(np.count_nonzero(X.data if hasattr(X, "indptr") else X))
    if task == "regression":
        constant = 0.5  # half the variance of standardised targets
    else:
        share = float((y > 0).mean())
        constant = -share * np.log(share) - (1.0 - share) * np.log1p(-share)
    return Facts(task, X.shape[0], X.shape[1], nonzeros, source, kind, float(constant))
