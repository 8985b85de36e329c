"""Data sets by name: those inside scikit-learn, and the LIBSVM ones from a folder or from the LIBSVM site."""

from __future__ import annotations

import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.data.files import SUFFIXES, atomic_write, sha256
from steelyard.data.libsvm import read_libsvm, stream_libsvm
from steelyard.losses import Array

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
SIZE_LIMIT = 2**30
"""No download goes on beyond this many bytes, compressed or decompressed."""


class DataSet(NamedTuple):
    """What is known of a LIBSVM set before it is read."""

    name: str
    task: str
    rows: int
    features: int
    path: str
    """Where it is on the site."""
    sha256: str | None = None
    """Of the decompressed text, where it is known."""


# of copies of the site's files
_SHA256 = {
    "a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    "abalone_scale": "7f1f6ca7f636e684949fc3f6388fc4f7503083717f776876bbdd11098fc5378b",
    "breast-cancer": "445505b580a88e9e19b533b4f126d3dda1883bc7551e46907041ca263aa3c5d9",
    "diabetes_scale": "0c07eb4c49e7a8ffb9c9f25095ac3022df2ca85b0dcb7d294c3ddea69f392cba",
    "german.numer_scale": "97637cc6b994bd3fa78999c771bc044bea7a0cdf91d43b6ecfd10f7e7c4ebc82",
    "heart_scale": "5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",
    "housing_scale": "bbacd2f526a038499717d5dc4b8895e6baf1e2351895b9360a84bcb31e104476",
    "ijcnn1": "7fe291672c3fefe6a7e3c51529becd23f0e985ba05ffb8d53c9c648c1e91cc19",
    "mushrooms": "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
    "svmguide1": "2b9ab55b6236f62cee6b7739b52f9e7cb033771f39b9c22c1f1790d80ef14d7f",
}


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
    table = [DataSet(n, "regression", r, f, f"regression/{p}", _SHA256.get(n)) for n, r, f, p in regression]
    table += [DataSet(n, "classification", r, f, f"binary/{p}", _SHA256.get(n)) for n, r, f, p in binary]
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
    _check_shape(known, X.shape[0], np.unique(y).size, str(path))
    return known.task, X, _signs(y) if known.task == "classification" else y


def load_file(path: str | os.PathLike[str]) -> tuple[str, Any, Array]:
    """The same of any LIBSVM file; with two different labels it is classification, with more regression."""
    X, y = read_libsvm(path)
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"{os.fspath(path)}, row {row + 1}: the label is {y[row]}, and must be a finite number")
    two = np.unique(y).size == 2
    return ("classification", X, _signs(y)) if two else ("regression", X, y)


def _check_shape(known: DataSet, rows: int, labels: int, where: str) -> None:
    if rows != known.rows:
        raise ValueError(
            f"{where} has {rows} rows, but {known.name} has {known.rows}: the file is cut off or another one"
        )
    if known.task == "classification" and labels != 2:
        raise ValueError(f"{where} has {labels} different labels, but {known.name} has 2")


def _signs(y: Array) -> Array:
    return np.where(y == y.max(), 1.0, -1.0)


def _known(name: str) -> DataSet:
    if name not in SETS:
        raise ValueError(f"unknown data set {name!r}; `steelyard data list` shows the names")
    return SETS[name]


def fetch(name: str, folder: str | os.PathLike[str] | None = None, *, site: str = SITE, force: bool = False) -> Path:
    """Download a set from the LIBSVM site, check it and keep it; what is there already is not fetched again.

    The SHA-256 of the text is checked where it is known (``SETS[name].sha256``), unless ``force`` is set; the number of
    rows, columns and classes is checked always. What is refused is not kept.
    """
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
    with tempfile.TemporaryDirectory() as unchecked:
        copy = Path(unchecked) / path.name
        copy.write_bytes(content)
        try:
            _check_download(copy, known, force)
        except ValueError as error:
            raise ValueError(f"{str(error).replace(str(copy), address)}: not kept") from error
    with atomic_write(path) as file:
        file.write(content)
    return path


def _check_download(path: Path, known: DataSet, force: bool) -> None:
    """Refuse a file that is not the set, in constant memory: the file may decompress to anything."""
    found = sha256(path, SIZE_LIMIT)
    if known.sha256 not in (None, found) and not force:
        raise ValueError(
            f"{path} has the SHA-256 {found}, but {known.name} has {known.sha256}. It is damaged or another version; "
            "to have it all the same, say --force (in Python, force=True)"
        )
    rows, labels = 0, np.empty(0)
    for _, y in stream_libsvm(path, n_features=known.features, zero_based=False):
        rows += y.size
        labels = np.union1d(labels, y)
        if rows > known.rows:
            raise ValueError(f"{path} has more than the {known.rows} rows of {known.name}")
    _check_shape(known, rows, labels.size, str(path))
