"""What the classifier and the regressor share: parameters, passes, and a fit that fails without a trace."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, _check_y, check_is_fitted, validate_data

from steelyard.data.block import Block, as_block, inspected
from steelyard.data.columns import TEXT, Columns
from steelyard.data.frame import frame_kinds, frame_rows, is_frame
from steelyard.estimators.curve import Curve, LossCurve
from steelyard.estimators.events import EventEstimator
from steelyard.estimators.exports import Exports
from steelyard.estimators.stopping import EarlyStopping
from steelyard.fitting import learn_passes, new_learner, pass_seeds
from steelyard.losses import Array, Loss
from steelyard.mixture import Mixture
from steelyard.online import OnlineLearner, Progress
from steelyard.regularizers import check_flag


class OnlineEstimator(EventEstimator, Exports, BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share: parameters, passes, and a fit that fails without a trace."""

    learner_: OnlineLearner
    _curve = Curve()
    _label_checks: ClassVar[dict[str, Any]] = {}
    """What scikit-learn is to check of labels."""

    def __init__(
        self,
        loss: str | Loss,
        *,
        update: str,
        eta0: float | str,
        schedule: str | None,
        power_t: float,
        metric: str,
        center: str,
        radius: float | None,
        passes: int,
        early_stopping: bool,
        validation_fraction: float,
        n_iter_no_change: int,
        tol: float | None,
        fit_intercept: bool,
        shuffle: bool,
        random_state: Any,
        verbose: int,
        certificate: bool | None,
        bits: int | None,
        l1: float,
        l2: float,
        average: bool,
    ) -> None:
        self.loss = loss
        self.update = update
        self.eta0 = eta0
        self.schedule = schedule
        self.power_t = power_t
        self.metric = metric
        self.center = center
        self.radius = radius
        self.passes = passes
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.certificate = certificate
        self.bits = bits
        self.l1 = l1
        self.l2 = l2
        self.average = average

    def _new_learner(self, n_outputs: int = 1) -> OnlineLearner:
        for name in ("shuffle", "early_stopping", "average"):
            check_flag(name, getattr(self, name))
        return new_learner(
            self.loss,
            self.eta0,
            update=self.update,
            schedule=self.schedule,
            power_t=self.power_t,
            metric=self.metric,
            center=self.center,
            radius=self.radius,
            fit_intercept=self.fit_intercept,
            certificate=self.certificate,
            n_outputs=n_outputs,
            l1=self.l1,
            l2=self.l2,
            average=self.average,
        )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put every attribute back if the body raises, so that a failed call leaves no trace."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """scikit-learn's checks, but the one for finite features: the learner makes it, and names the row."""
        if reset:
            self._events = self._targets = None
        self._refuse_one_class_so_far()
        checks = {} if isinstance(y, str) else self._label_checks
        if checks.get("y_numeric"):
            values: Any = np.ravel(y) if np.asarray(y).dtype.kind in "OUS" else []
            for row, value in enumerate(values):
                if isinstance(value, str):
                    raise ValueError(
                        f"y has the text {str(value)!r} in row {row}: targets of a regression must be numbers. For "
                        "classes, use OnlineClassifier"
                    )
        refuse_missing(y)
        if self._hashes(X, reset):
            return self._validate_frame(X, y, checks, reset=reset)
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C", "ensure_all_finite": False}
        try:
            return validate_data(self, X, y, reset=reset, **options, **checks)
        except ValueError as error:
            if "could not convert string to float" in str(error):
                raise ValueError(
                    f"{error}: columns must be numbers. Encode text columns first, for example with scikit-learn's "
                    "OneHotEncoder in a ColumnTransformer"
                ) from error
            if not str(error).startswith("Input y contains"):
                raise
            nan = "NaN" in str(error)
            row = next(i for i, v in enumerate(np.ravel(y)) if (v != v if nan else v in (np.inf, -np.inf)))
            raise ValueError(f"{error} The first is in row {row}.") from None

    def _hashes(self, X: Any, reset: bool) -> bool:
        """Whether X is a frame that is read as columns: as the model's data was, or because it holds text."""
        if not reset:
            return getattr(self, "columns_", None) is not None or (is_frame(X) and "columns" in self._schema())
        self.columns_: dict[str, Any] | None = None
        self.__dict__.pop("schema_", None)
        if not is_frame(X) or not all(isinstance(name, str) for name in X.columns):
            return False
        kinds = frame_kinds(X)
        return self.bits is not None or TEXT in kinds.values()

    def _schema(self) -> dict[str, Any]:
        """How rows are read for this model, where it knows."""
        return getattr(self, "columns_", None) or getattr(self, "schema_", None) or {}

    def _validate_frame(self, X: Any, y: Any, checks: dict[str, Any], *, reset: bool) -> Any:
        """A frame of text, or to be hashed, as a matrix."""
        if not is_frame(X):
            raise ValueError("this model was fitted on a frame with columns of text: give it such a frame")
        if reset or getattr(self, "columns_", None) is not None:  # others take columns in any order
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
        columns = Columns(bits=self.bits, optional_label=True) if reset else Columns.of_schema(self._schema())
        if not columns.decided:
            columns.decide(list(X.columns), frame_kinds(X).__getitem__)
        columns.places(list(X.columns))
        if reset:
            self.columns_ = columns.schema()
        learns = not isinstance(y, str)
        if reset or not hasattr(self, "_names"):
            self._names: dict[int, str] = {}
        found = frame_rows(X, columns, self._names if learns else None)
        matrix: Any
        if columns.bits is None:
            matrix = found.values.reshape(len(X), len(columns.kinds))
        else:
            from scipy.sparse import csr_matrix

            parts = (found.values, found.indices.astype(np.int64), found.indptr.astype(np.int64))
            matrix = csr_matrix(parts, shape=(len(X), columns.n_features))
        if not learns:
            return matrix
        y = _check_y(y, estimator=self, **checks)
        check_consistent_length(matrix, y)
        return matrix, y

    def _run(self, learner: OnlineLearner, X: Any, y: Array, weight: Array, factor: Array | None = None) -> None:
        """All the passes of ``fit``; ``factor`` multiplies the weights, see :func:`learn_passes`."""
        seeds = self._pass_seeds()
        self._begin_passes()
        block, watch = as_block(X, inspect=False), None
        if self.early_stopping:
            block = inspected(block)
            watch = self._stopping(block, y, weight, factor)
            if len(seeds) == 1:
                warnings.warn(
                    "early_stopping=True with passes=1 stops nothing: rows are held out, and not learned. Allow more "
                    "passes, passes=50 for example, or set early_stopping to False",
                    stacklevel=3,
                )
            weight = np.where(watch.held, 0.0, weight)  # which is as if these rows were not there
        learner.progress = first = Progress()  # later passes do not count
        traces = learn_passes(
            learner,
            block,
            y,
            weight,
            seeds=seeds,
            shuffle=self.shuffle,
            factor=factor,
        )
        for done, trace in enumerate(traces):
            if done == 0:
                self._curve = self._curve.add(trace)
            learner.progress = first = learner.progress if done == 0 else first
            self._end_pass(trace.average_loss)
            if watch is not None and watch.enough(learner):
                break
        if watch is not None:
            watch.put_back(learner)
            self.validation_losses_ = watch.losses

    def _stopping(self, block: Block, y: Array, weight: Array, factor: Array | None) -> EarlyStopping:
        return EarlyStopping(
            block,
            y,
            weight,
            factor,
            fraction=self.validation_fraction,
            strata=y if hasattr(self, "classes_") else None,
            patience=self.n_iter_no_change,
            tol=self.tol,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
        )

    def _refuse_early_stopping(self, what: str) -> None:
        """Refuse to make passes that would not be watched."""
        if self.early_stopping:
            raise ValueError(f"early_stopping=True is for fit: {what} has no rows to hold out. Set it to False")

    def _begin_passes(self) -> None:
        """Forget what is known of the passes of an earlier fit."""
        self.pass_losses_: list[float] = []
        self.__dict__.pop("validation_losses_", None)
        self._curve = Curve()

    def _pass_seeds(self) -> list[int]:
        """One for each pass of ``fit``; they count where rows are shuffled."""
        if not isinstance(self.passes, Integral) or self.passes < 1:
            raise ValueError(f"passes must be an integer of at least 1, got {self.passes!r}")
        random = check_random_state(self.random_state)
        return pass_seeds(random, int(self.passes)) if self.shuffle else [0] * int(self.passes)

    def _end_pass(self, loss: float) -> None:
        """Note the average loss of a pass."""
        self.pass_losses_.append(loss)
        if self.verbose:
            done = len(self.pass_losses_)
            what = "progressive loss" if done == 1 else "average loss, of rows already learned,"
            print(f"pass {done} of {self.passes}: {what} {loss:.6g}")

    # ------------------------------------------------------------- the parts of ``fit``, for data in several places

    def _weigh_labels(self, y: Any, weight: Array) -> tuple[NDArray[Any], Array]:
        """The different labels of some rows, and how much the rows of each weigh; wrong ones are refused."""
        raise NotImplementedError

    def _begin(self, labels: NDArray[Any], mass: Array) -> tuple[OnlineLearner, Array | None]:
        """A learner for all labels that there are, and what multiplies the weights of each: see :meth:`_examples`."""
        raise NotImplementedError

    def _examples(self, y: Any, weight: Array, factors: Array | None) -> tuple[Array, Array, Array | None]:
        """Labels, weights and factors of rows as :func:`learn_passes` takes them."""
        raise NotImplementedError

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.learner_.predict(self._validate(X, reset=False))

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "learner_", None) is not None

    @property
    def progressive_loss_(self) -> float:
        """The weighted average loss of every example *before* it was learned.

        That is every visit in the first pass of ``fit`` (``pass_losses_`` has all passes) and every row of a later
        ``partial_fit``.
        """
        check_is_fitted(self)
        return self.learner_.progress.average if self.learner_.progress else float("nan")

    @property
    def loss_curve_(self) -> LossCurve:
        """How :attr:`progressive_loss_` came about: ``weight`` and ``loss`` at about a hundred points at most.

        There is a point after 1, 2, 3, 4, 5, 6, 8, 10, … visits, three in each doubling, and one at the end. Events
        that came one at a time are in the last point only.
        """
        check_is_fitted(self)
        progress = self.learner_.progress or Progress()
        return self._curve.ending_with(progress.weight, progress.average)

    @property
    def bank_(self) -> Any:
        """With ``eta0="auto"``, every expert of the mixture: its rate, its loss so far, its share.

        A list of :class:`~steelyard.Expert`, or one list for each class where there are more than two.
        """
        check_is_fitted(self)
        if not isinstance(self.learner_, Mixture):
            raise AttributeError(f"there is a bank_ only with eta0='auto', not with eta0={self.eta0!r}")
        each = [self.learner_.bank(k) for k in range(self.learner_.n_outputs)]
        return each[0] if len(each) == 1 else each

    @property
    def certificate_(self) -> Any:
        """What the model can prove about its progressive loss, over every visit of every pass since the first call.

        A :class:`~steelyard.Certificate`, or a list with one for each class where there are more than two. With
        ``eta0="auto"`` there is always one.
        """
        check_is_fitted(self)
        if not self.learner_.certificate:
            raise AttributeError(
                "this model has no certificate_: with eta0='auto' there is always one, and with a learning rate "
                "certificate=True keeps one (the default for two classes or a regression with center='origin')"
            )
        each = [self.learner_.certify(k) for k in range(self.learner_.n_outputs)]
        return each[0] if len(each) == 1 else each

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def refuse_missing(y: Any) -> None:
    """Labels that are not there, as None or pandas' NA, have no order among the others."""
    values = np.asarray(y) if getattr(y, "dtype", None) is not None else None
    if values is None or values.dtype.kind != "O":
        return
    for row, value in enumerate(values.ravel()):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            raise ValueError(
                f"y has no label in row {row}, but {value!r}: leave such rows out, for example with dropna"
            )


def refuse_no_weight(weight: Array) -> Array:
    """The weights, unless there is none above zero."""
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: there is nothing to learn")
    return weight
