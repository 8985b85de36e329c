"""``fit`` on a Dask cluster: the same estimator, the rows where they are, and the same model on any cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from steelyard.data.libsvm import LibsvmSource
from steelyard.distributed import tasks
from steelyard.distributed.files import FileSlice, common_columns, parts_of, scan_file
from steelyard.distributed.found import Found, add_up, check_agreement, warn_of_unmixed
from steelyard.distributed.inputs import file_paths, partitions
from steelyard.distributed.merge import check_merges
from steelyard.distributed.plan import Piece, groups_of, plan_pass
from steelyard.distributed.run import Run
from steelyard.online import OnlineLearner, Progress
from steelyard.progress import Report, progress_bar

if TYPE_CHECKING:
    from steelyard.estimators.base import OnlineEstimator

_Model = TypeVar("_Model", bound="OnlineEstimator")


def fit(
    model: _Model,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    client: Any = None,
    shards: int | None = None,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    progress: Report | bool | None = None,
) -> _Model:
    """Fit an estimator on the workers of a Dask cluster, from scratch; see ``docs/guide/many-machines.md``.

    Shards learn side by side and are merged again and again, so the model is not that of ``model.fit``. It depends on
    the data, on their partitions, on ``shards`` and on ``random_state``, and not on the cluster: workers that are lost
    on the way are replaced, and the result is the same to the bit. Where this raises, the model is as it was.

    Every shard should hold rows of all kinds. Where labels differ between shards, as in data that are sorted by them,
    the model is poor, and a warning says so.

    Parameters
    ----------
    model : OnlineClassifier or OnlineRegressor
        All of its parameters hold. ``shuffle`` shuffles the rows of a slice, about 64 MB of them at a time.
    X : Dask array, Dask DataFrame, or list of files
        An array is cut along its rows, in blocks of NumPy arrays or of sparse CSR matrices. Checked partitions are kept
        in the memory of the workers until the end. LIBSVM files, compressed or not, are read by the workers, each time
        anew and in constant memory: every worker must have them at the same path.
    y : Dask array or series with the partitions of X, or the name of a column; None for files, which have labels
    sample_weight : the same, or None
    classes : all classes, where the data may not have them all, or to refuse others
    client : dask.distributed.Client, default: the current one
    shards : int, default: one for every 10,000 rows, and at most 64
        Into how many shards the partitions are put, and so how many tasks run side by side. At most one a partition;
        a plain file counts as one for every 64 MB.
    n_features, zero_based : of files, as for :func:`~steelyard.read_libsvm`; by default what is found in all of them
    progress : bool or callable
        By default a bar on a terminal, and nothing in a pipe. A callable is told what is done, and how
        much of how much.

    Returns
    -------
    model

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_breast_cancer
    >>> import steelyard
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as client:
    ...     rows = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    ...     model = steelyard.distributed.fit(steelyard.OnlineClassifier(random_state=0), *rows)
    >>> model.score(X, y) > 0.9
    True
    """
    from sklearn.base import clone

    _check_model(model, classes, shards)
    model._refuse_early_stopping("distributed.fit")
    seeds = model._pass_seeds()
    with ExitStack() as stack:
        run = Run(_client_of(client), _reporter(progress, stack))
        stack.callback(run.release)
        fitted = clone(model)
        if classes is not None:
            fitted._name_classes(classes)
        data = _data(run, fitted, X, y, sample_weight, n_features, zero_based)
        fitted.learner_ = _learn(run, fitted, data, shards, seeds)
    for name in ("feature_names_in_", "validation_losses_", "_curve"):  # of an earlier fit
        model.__dict__.pop(name, None)
    model.__dict__.update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
    return model


def _learn(run: Run, fitted: Any, data: _Arrays | _Files, shards: int | None, seeds: Sequence[int]) -> OnlineLearner:
    """All the rounds of all the passes."""
    learner, factors = fitted._begin(*add_up([(each.labels, each.mass) for each in data.found if each.rows]))
    warn_of_unmixed(data.found, [[data.place(p) for p in group] for group in groups_of(data.rows, shards)])
    setup = run.literal(fitted), run.literal(factors)
    run.begin(sum(data.rows) * len(seeds))
    fitted._begin_passes()
    first = Progress()
    for done, seed in enumerate(seeds):
        seen = Progress()
        rounds = plan_pass(data.rows, shards, first=done == 0)
        for each in rounds:
            name = f"pass {done + 1}, round {each.number + 1} of {len(rounds)}"
            learner, new = run.round(name, each, learner, setup, data, seed)
            seen = seen.join(new)
        fitted._end_pass(seen.average)
        first = seen if done == 0 else first  # later passes do not count
    learner.progress = first
    learner._check_results(learner.state, np.empty(0), np.empty(0, np.int64))  # it may have diverged
    return cast(OnlineLearner, learner)


# --------------------------------------------------------------------------------------------------------- arguments


def _check_model(model: Any, classes: Any, shards: Any) -> None:
    from steelyard.estimators.base import OnlineEstimator
    from steelyard.estimators.classifier import OnlineClassifier

    if not isinstance(model, OnlineEstimator):
        got = (
            f"the class {model.__name__}: write {model.__name__}()" if isinstance(model, type) else type(model).__name__
        )
        raise TypeError(f"model must be an OnlineClassifier or an OnlineRegressor, got {got}")
    if classes is not None and not isinstance(model, OnlineClassifier):
        raise ValueError("classes are for an OnlineClassifier: a regression has none")
    whole = isinstance(shards, (int, np.integer)) and not isinstance(shards, bool)
    if shards is not None and (not whole or shards < 1):
        raise ValueError(f"shards must be an integer of at least 1, got {shards!r}")
    check_merges(model._new_learner(), "the model")  # refuses wrong options here, and not in a worker


def _client_of(client: Any) -> Any:
    try:
        import distributed
    except ImportError:
        raise ImportError("fit on many machines needs Dask: pip install 'steelyard[distributed]'") from None
    try:
        found = distributed.get_client() if client is None else client
    except ValueError:
        raise ValueError(
            "there is no Dask client: start one with dask.distributed.Client() for the cores of this machine, or "
            "Client('tcp://address:8786') for a cluster that runs, or give one as client="
        ) from None
    if not hasattr(found, "asynchronous"):
        raise TypeError(f"client must be a dask.distributed.Client, got {client!r}: write Client({client!r})")
    if found.asynchronous:
        raise ValueError("the Dask client is asynchronous, but fit waits for results: give one that is not")
    return found


def _reporter(progress: Report | bool | None, stack: ExitStack) -> Report | None:
    if callable(progress):
        return progress
    return None if progress is False else stack.enter_context(progress_bar())


# -------------------------------------------------------------------------------------------------------------- data


def _data(
    run: Run, fitted: Any, X: Any, y: Any, weight: Any, n_features: int | None, zero_based: bool | Literal["auto"]
) -> _Arrays | _Files:
    paths = file_paths(X)
    if paths is None:
        if n_features is not None or zero_based != "auto":
            raise ValueError("n_features and zero_based are for files: arrays and frames have their columns")
        return _Arrays(run, fitted, X, y, weight)
    if y is not None or weight is not None:
        raise ValueError("X is a list of files, which have labels themselves: leave y and sample_weight out")
    return _Files(run, fitted, paths, n_features, zero_based)


class _Arrays:
    """Dask collections: every partition is checked where it is, and kept there."""

    def __init__(self, run: Run, fitted: Any, X: Any, y: Any, weight: Any) -> None:
        model = run.literal(fitted)
        parts = partitions(X, y, weight)
        self._held = run.submit([run.call(tasks.load, number, model, *part) for number, part in enumerate(parts)])
        self.found: list[Found] = run.collect("checking partitions", [run.call(tasks.found_in, h) for h in self._held])
        first = check_agreement(self.found)
        self._run, self.rows = run, [each.rows for each in self.found]
        fitted.n_features_in_ = first.n_features
        if first.feature_names is not None:
            fitted.feature_names_in_ = np.array(first.feature_names, dtype=object)

    @staticmethod
    def place(partition: int) -> int:
        """Where a partition stands in ``found``."""
        return partition

    def source(self, piece: Piece) -> Any:
        return self._run.call(tasks.cut, self._held[piece.partition], piece.start, piece.stop)


class _Files:
    """Files: they are read once to see what is in them, and then slice by slice."""

    def __init__(
        self, run: Run, fitted: Any, paths: Sequence[str], n_features: int | None, zero_based: bool | Literal["auto"]
    ) -> None:
        LibsvmSource(paths[0], n_features=n_features, zero_based=zero_based, kept_bytes=0)  # refuses wrong options
        model = run.literal(fitted)
        scans = [run.call(scan_file, number, model, path) for number, path in enumerate(paths)]
        self.found: list[Found] = run.collect("scanning files", scans)
        check_agreement(self.found)
        self._columns = common_columns(self.found, paths, n_features, zero_based)
        self._paths, self._parts = paths, parts_of(self.found)
        self.rows = [part.rows for part in self._parts]
        fitted.n_features_in_ = self._columns[0]

    def place(self, partition: int) -> int:
        """Where a partition's file stands in ``found``."""
        return self._parts[partition].file

    def source(self, piece: Piece) -> FileSlice:
        part = self._parts[piece.partition]
        ends = part.start + piece.start, part.start + piece.stop
        return FileSlice(self.found[part.file], self._paths[part.file], *self._columns, *ends)
