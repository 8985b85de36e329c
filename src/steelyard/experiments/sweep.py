"""Loss against learning rate: every update with every initial rate, over several shuffles of a data set.

All rates and updates of a shuffle share one pass (a :class:`~steelyard.Bank`). Shuffles are independent jobs for
joblib, so its backends (processes, Dask, Ray, Spark) carry them anywhere, and the numbers do not depend on how many
run at a time.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.bank import Bank
from steelyard.data.files import atomic_write
from steelyard.losses import Array, Loss, get_loss
from steelyard.updates import UPDATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEFAULT_RATES = np.logspace(-3, 3, 25)


@dataclass(frozen=True)
class SweepResult:
    """Progressive average losses of a sweep.

    Attributes
    ----------
    average_loss : (updates, rates, repeats); inf where a learner diverged
    updates, eta0 : the grid
    loss, schedule, seed : what was run
    """

    average_loss: Array
    updates: tuple[str, ...]
    eta0: Array
    loss: str
    schedule: str
    seed: int

    @property
    def mean(self) -> Array:
        """Mean over the shuffles, (updates, rates); inf where one of them diverged."""
        return np.asarray(self.average_loss.mean(axis=2))

    @property
    def standard_error(self) -> Array:
        """Standard error of the mean, (updates, rates); NaN where a shuffle diverged or there is only one."""
        repeats = self.average_loss.shape[2]
        if repeats < 2:
            return np.full(self.average_loss.shape[:2], np.nan)
        whole = np.isfinite(self.average_loss).all(axis=2, keepdims=True)
        with np.errstate(over="ignore"):  # losses near the largest number: an infinite error is one
            spread = np.where(whole, self.average_loss, 0.0).std(axis=2, ddof=1, keepdims=True)
        return np.asarray(np.where(whole, spread / np.sqrt(repeats), np.nan)[:, :, 0])

    def best(self) -> dict[str, tuple[float, float]]:
        """For each update, the rate with the smallest mean loss, and that loss."""
        mean = self.mean
        at = mean.argmin(axis=1)
        return {
            u: (float(self.eta0[j]), float(mean[i, j])) for i, (u, j) in enumerate(zip(self.updates, at, strict=True))
        }

    def rows(self) -> list[dict[str, Any]]:
        """One record for each update, rate and repeat."""
        return [
            {
                "loss": self.loss,
                "update": update,
                "schedule": self.schedule,
                "eta0": float(rate),
                "repeat": repeat,
                "average_loss": float(self.average_loss[i, j, repeat]),
            }
            for i, update in enumerate(self.updates)
            for j, rate in enumerate(self.eta0)
            for repeat in range(self.average_loss.shape[2])
        ]

    def to_frame(self) -> Any:
        """:meth:`rows` as a pandas frame; needs pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame() needs the package pandas: pip install pandas") from None
        return pandas.DataFrame(self.rows())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`rows` to a CSV file."""
        write_csv(path, self.rows())

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw loss against rate, a curve an update; needs matplotlib."""
        from steelyard.experiments.plots import plot_sweep

        return plot_sweep(self, ax=ax, **options)


def write_csv(path: str | os.PathLike[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write records with the same keys as a CSV file, whole or not at all."""
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def one_shuffle(X: Any, y: Array, weight: Any, bank_options: dict[str, Any], seed: int, repeat: int) -> Array:
    """The average losses (updates, rates) of one pass, in an order that ``seed`` and ``repeat`` decide."""
    bank = Bank(**bank_options)
    order = np.random.default_rng([seed, repeat]).permutation(len(y))
    bank.learn(X, y, weight, order=order)
    return bank.average_loss


def sweep(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "logistic",
    updates: Sequence[str] = tuple(UPDATES),
    eta0: ArrayLike = DEFAULT_RATES,
    schedule: str = "gap",
    metric: str = "scalar",
    center: str = "origin",
    fit_intercept: bool = True,
    repeats: int = 10,
    seed: int = 0,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> SweepResult:
    """Run every update with every initial rate over ``repeats`` shuffles of the data.

    Parameters
    ----------
    X, y, sample_weight : data, as for :meth:`Learner.learn`
    loss, schedule, metric, center, fit_intercept : as for :class:`Learner`
    updates : update names
    eta0 : initial rates
    repeats : number of shuffles
    seed : decides the shuffles; the same seed gives the same numbers to the bit, whatever ``n_jobs``
    n_jobs : as in joblib; a ``joblib.parallel_config`` around the call chooses the backend
    progress : called with the number of finished shuffles

    Returns
    -------
    SweepResult

    Examples
    --------
    >>> import numpy as np, steelyard
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> result = steelyard.sweep(X, X @ [1, 2, 3, 4], loss="squared", eta0=[0.1, 1, 10, 100], repeats=2)
    >>> result.average_loss.shape
    (4, 4, 2)
    >>> bool(result.best()["iwa"][1] < result.mean[result.updates.index("linearized")].max())
    True
    """
    import joblib

    if isinstance(updates, str):
        raise ValueError(f"updates must be a list of update names, got {updates!r}")
    if len(y) == 0:
        raise ValueError("there are no rows to sweep over")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    chosen = get_loss(loss)
    rates = np.atleast_1d(np.asarray(eta0, dtype=np.float64))
    options: dict[str, Any] = {
        "loss": chosen,
        "updates": tuple(updates),
        "eta0": rates,
        "schedule": schedule,
        "metric": metric,
    }
    options |= {"center": center, "fit_intercept": fit_intercept}
    Bank(**options)  # refuses wrong options here, and not in a worker
    y = np.asarray(y, dtype=np.float64)
    jobs = (joblib.delayed(one_shuffle)(X, y, sample_weight, options, seed, r) for r in range(repeats))
    finished = []
    for result in joblib.Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        finished.append(result)
        if progress is not None:
            progress(len(finished))
    return SweepResult(np.stack(finished, axis=2), tuple(updates), rates, chosen.name, schedule, seed)
