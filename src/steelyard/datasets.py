"""Data sets by name: those inside scikit-learn, and the LIBSVM ones from a folder or from the LIBSVM site."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.files import SUFFIXES, atomic_write
from steelyard.losses import Array
from steelyard.text import read_libsvm

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
SIZE_LIMIT = 2**30
"""No download goes on beyond this many bytes."""


class DataSet(NamedTuple):
    """What is known of a LIBSVM set before it is read."""

    name: str
    task: str
    rows: int
    features: int
    path: str
    """Where it is on the site."""


def _sets() -> dict[str, DataSet]:
    regression = [
        ("abalone_scale", 4177, 8, "abalone_scale"),
        ("bodyfat_scale", 252, 14, "bodyfat_scale"),
        ("cadata", 20640, 8, "cadata"),
        ("cpusmall", 8192, 12, "cpusmall"),
        ("cpusmall_scale", 8192, 12, "cpusmall_scale"),
        ("eunite2001", 336, 16, "eunite2001"),
        ("housing_scale", 506, 13, "housing_scale"),
        ("mg_scale", 1385, 6, "mg_scale"),
        ("mpg_scale", 392, 7, "mpg_scale"),
        ("space_ga_scale", 3107, 6, "space_ga_scale"),
    ]
    binary = [
        ("australian_scale", 690, 14, "australian_scale"),
        ("breast-cancer", 683, 10, "breast-cancer"),
        ("covtype.libsvm.binary.scale", 581012, 54, "covtype.libsvm.binary.scale.bz2"),
        ("diabetes_scale", 768, 8, "diabetes_scale"),
        ("german.numer_scale", 1000, 24, "german.numer_scale"),
        ("heart_scale", 270, 13, "heart_scale"),
        ("ijcnn1", 49990, 22, "ijcnn1.bz2"),
        ("mushrooms", 8124, 112, "mushrooms"),
        ("phishing", 11055, 68, "phishing"),
        ("svmguide1", 3089, 4, "svmguide1"),
    ]
    adult = (1605, 2265, 3185, 4781, 6414, 11220, 16100, 22696, 32561)
    web = (2477, 3470, 4912, 7366, 9888, 17188, 24692, 49749)
    binary += [(f"a{i}a", rows, 123, f"a{i}a") for i, rows in enumerate(adult, 1)]
    binary += [(f"w{i}a", rows, 300, f"w{i}a") for i, rows in enumerate(web, 1)]
    table = [DataSet(n, "regression", r, f, f"regression/{p}") for n, r, f, p in regression]
    table += [DataSet(n, "classification", r, f, f"binary/{p}") for n, r, f, p in binary]
    return {each.name: each for each in table}


SETS = _sets()
"""LIBSVM sets by name, with the shapes that the site states."""

EMBEDDED = {
    "diabetes": "regression",
    "wine_alcohol": "regression",
    "iris_petal": "regression",
    "breast_cancer": "classification",
    "digits_odd": "classification",
    "wine_first": "classification",
}
"""Real sets that come with scikit-learn, and their tasks."""


def load_embedded(name: str) -> tuple[Array, Array]:
    """A set that needs no download: features and targets, ±1 for classification."""
    from sklearn import datasets

    if name == "diabetes":
        X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
        return X, y
    if name == "breast_cancer":
        X, y = datasets.load_breast_cancer(return_X_y=True)
        return X, np.where(y == 1, 1.0, -1.0)
    if name == "digits_odd":
        X, y = datasets.load_digits(return_X_y=True)
        return X, np.where(y % 2 == 1, 1.0, -1.0)
    if name in ("wine_alcohol", "wine_first"):
        X, y = datasets.load_wine(return_X_y=True)
        # the alcohol of a wine from its other measurements; or whether it is of the first cultivar
        return (X[:, 1:], X[:, 0]) if name == "wine_alcohol" else (X, np.where(y == 0, 1.0, -1.0))
    if name == "iris_petal":
        X, _ = datasets.load_iris(return_X_y=True)
        return X[:, :3], X[:, 3]  # the width of a petal from the other measures of the flower
    raise ValueError(f"unknown embedded set {name!r}; choose one of {', '.join(EMBEDDED)}")


def cache_folder() -> Path:
    """Where downloads go: ``STEELYARD_DATA``, or the user's cache folder."""
    if "STEELYARD_DATA" in os.environ:
        return Path(os.environ["STEELYARD_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "steelyard"


def find(name: str, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of a set in a folder (the cache folder by default), compressed or not."""
    base = Path(folder) if folder is not None else cache_folder()
    for suffix in SUFFIXES:
        if (base / (name + suffix)).is_file():
            return base / (name + suffix)
    return None


def load(name: str, folder: str | os.PathLike[str] | None = None) -> tuple[str, Any, Array]:
    """Task, features (CSR, or an array for an embedded set) and targets of a set by name.

    Two labels of any kind become -1 and +1, the smaller one first.
    """
    if name in EMBEDDED:
        return (EMBEDDED[name], *load_embedded(name))
    known = _known(name)
    path = find(name, folder)
    if path is None:
        where = Path(folder) if folder is not None else cache_folder()
        there = f" --data {folder}" if folder is not None else ""
        raise FileNotFoundError(
            f"{name} is not in {where}: fetch it with `steelyard data fetch {name}{there}`, or give a folder that has "
            "it with --data or STEELYARD_DATA"
        )
    X, y = read_libsvm(path, n_features=known.features, zero_based=False)
    if X.shape[0] != known.rows:
        raise ValueError(
            f"{path} has {X.shape[0]} rows, but {name} has {known.rows}: the file is cut off or another one"
        )
    if known.task == "classification" and np.unique(y).size != 2:
        raise ValueError(f"{path} has {np.unique(y).size} different labels, but {name} has 2")
    return known.task, X, _signs(y) if known.task == "classification" else y


def load_file(path: str | os.PathLike[str]) -> tuple[str, Any, Array]:
    """The same of any LIBSVM file; with two different labels it is classification, with more regression."""
    X, y = read_libsvm(path)
    two = np.unique(y).size == 2
    return ("classification", X, _signs(y)) if two else ("regression", X, y)


def _signs(y: Array) -> Array:
    return np.where(y == y.max(), 1.0, -1.0)


def _known(name: str) -> DataSet:
    if name not in SETS:
        raise ValueError(f"unknown data set {name!r}; `steelyard data list` shows the names")
    return SETS[name]


def fetch(name: str, folder: str | os.PathLike[str] | None = None, *, site: str = SITE) -> Path:
    """Download a set from the LIBSVM site, check its shape and keep it; what is there already is not fetched again."""
    known = _known(name)
    target = Path(folder) if folder is not None else cache_folder()
    present = find(name, target)
    if present is not None:
        return present
    target.mkdir(parents=True, exist_ok=True)
    path = target / (name + Path(known.path).suffix if known.path.endswith(SUFFIXES[1:]) else name)
    address = f"{site}/{known.path}"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content = answer.read(SIZE_LIMIT + 1)
    except (urllib.error.URLError, OSError) as error:
        raise ConnectionError(
            f"could not download {name} from {address}: {error}. Without a network, put the file into a folder and "
            "name the folder with --data or STEELYARD_DATA"
        ) from error
    if len(content) > SIZE_LIMIT:
        raise ValueError(f"{address} is larger than {SIZE_LIMIT} bytes: not kept")
    with atomic_write(path) as file:
        file.write(content)
    try:
        load(name, target)
    except BaseException:
        path.unlink()
        raise
    return path
