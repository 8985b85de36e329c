"""Which compiled function belongs to which loss and which kernel: the only door from Python to compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from steelyard.kernels import evaluate, full, mixture, order, outputs, parse, single
from steelyard.kernels.compile import (
    CONJUGATE_SIGNATURE,
    SCALAR_SIGNATURE,
    STEP_SIGNATURE,
    c_function,
    f8,
    jit_user,
    kernel,
    readonly,
)
from steelyard.kernels.layout import OWN
from steelyard.kernels.steps import logistic, margin, numeric, probability, residual
from steelyard.losses import Array, CustomLoss, Loss

_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "squared": (residual.squared, residual.squared_conjugate),
    "absolute": (residual.pinball, residual.pinball_conjugate),
    "quantile": (residual.pinball, residual.pinball_conjugate),
    "huber": (residual.huber, residual.huber_conjugate),
    "poisson": (residual.poisson, residual.poisson_conjugate),
    "logistic": (logistic.logistic, logistic.logistic_conjugate),
    "exponential": (margin.exponential, margin.exponential_conjugate),
    "hinge": (margin.hinge, margin.hinge_conjugate),
    "squared_hinge": (margin.squared_hinge, margin.squared_hinge_conjugate),
    "logarithmic": (probability.logarithmic, probability.logarithmic_conjugate),
    "hellinger": (probability.hellinger, probability.hellinger_conjugate),
    "custom": (numeric.numeric, numeric.numeric_conjugate),
}


class Compiled(NamedTuple):
    """A loss as kernels see it: an address, and parameters; those before ``layout.OWN`` are to be filled in."""

    step: int
    parameters: Array
    keep_alive: tuple[Any, ...]


@cache
def _c_function(function: Callable[..., Any], signature: Any) -> Any:
    return c_function(function, signature)


@cache
def _user_function(function: Callable[..., Any], part: str) -> Any:
    try:
        return c_function(jit_user(function), SCALAR_SIGNATURE, cached=False)
    except Exception as error:
        raise TypeError(
            f"the {part} of a CustomLoss could not be compiled. It must be a function of two numbers (p, y) that uses "
            f"numbers, math and numpy scalars only; functions it calls must be written inside it. Numba said: {error}"
        ) from error


def _address_as_float(function: Any) -> float:
    return float(np.array([function.address], dtype=np.int64).view(np.float64)[0])


@cache
def compiled_loss(loss: Loss) -> Compiled:
    """The compiled step function of a loss, from the disk cache unless it is a user's own."""
    parameters: tuple[float, ...] = loss.parameters
    users: tuple[Any, ...] = ()
    if isinstance(loss, CustomLoss):
        users = (_user_function(loss.value, "value"), _user_function(loss.slope, "slope"))
        infimum = np.nan if loss.infimum is None else loss.infimum
        parameters = (*map(_address_as_float, users), infimum)
    step = _c_function(_FUNCTIONS[loss.name][0], STEP_SIGNATURE)
    return Compiled(step.address, np.array([*(OWN * [0.0]), *parameters]), (step, *users))


def compiled_conjugate(loss: Loss) -> int:
    """The address of a loss's conjugate."""
    return int(_c_function(_FUNCTIONS[loss.name][1], CONJUGATE_SIGNATURE).address)


_vector, _matrix = f8[::1], f8[:, ::1]
_unsigned = readonly(types.uint64)
_reals = readonly(f8)
_targets = (readonly(types.int64), _reals, _reals)  # order, y, weight
_KERNELS: dict[str, Callable[..., Any]] = {
    "learn_mixture": mixture.learn_mixture,
    "learn": single.learn,
    "learn_plain": single.learn_plain,
    "learn_outputs": outputs.learn_outputs,
    "learn_full": full.learn_full,
    "predict": evaluate.predict,
    "inspect": order.inspect,
    "row_keys": order.row_keys,
    "same_rows": order.same_rows,
    "visit_places": order.visit_places,
    "sort_keys": order.sort_keys,
    "evaluate": evaluate.evaluate,
    "conjugates": evaluate.conjugates,
}


@cache
def get_kernel(name: str, data: str = "f8", indices: str = "u4") -> Any:
    """The kernel ``name`` for rows of the given value and index types; where it is written, its arguments are named."""
    values = readonly(types.float32 if data == "f4" else f8)
    positions = readonly(types.uint32 if indices == "u4" else types.uint64)
    rows = (values, positions, _unsigned)
    loss = (types.intp, types.intp, _matrix, _reals)  # step, conjugate, params, eta0
    state = (_vector, _matrix, _matrix, _vector)  # table, clocks, sums, dual
    learner = (*loss, *rows, *_targets, *state, _reals, _vector, _vector, _vector)
    with_factor = (*loss, *rows, *_targets, *state, _vector, _reals, _vector, _vector, _vector)
    singles = types.float32[::1]
    # table twice, sums, clocks, centered, dual, second
    tables = (singles, _vector, _matrix, _vector, types.uint64[::1], _vector, _vector)
    room = (types.uint64[::1], _vector, singles)
    journal = (types.uint8[::1], _vector, types.uint64[::1])
    signatures = {
        "learn_mixture": types.intp(
            types.intp,
            _matrix,
            *rows,
            *_targets,
            *tables,
            _reals,
            _reals,
            _reals,
            *room,
            *journal,
            _vector,
            _vector,
        ),
        "learn": types.intp(*learner),
        "learn_plain": types.intp(*learner),
        "learn_outputs": types.intp(*learner),
        "learn_full": types.intp(*with_factor),
        "predict": types.void(*rows, _reals, types.boolean, _vector),
        "inspect": types.intp(positions, _unsigned, types.uint64),
        "row_keys": types.void(*rows, _unsigned, types.boolean, _vector, types.uint64[::1], types.int64[::1]),
        "same_rows": types.void(*rows, _reals, readonly(types.int64), types.boolean, types.uint8[::1]),
        "visit_places": types.void(
            _unsigned, readonly(types.int64), readonly(types.int64), types.uint64, types.uint64[::1], types.int64[::1]
        ),
        "sort_keys": types.void(
            types.uint64[::1], types.int64[::1], types.uint64[::1], types.int64[::1], types.int64[:, ::1]
        ),
        "evaluate": types.void(types.intp, _matrix, _reals, _reals, _reals, _vector),
        "conjugates": types.void(types.intp, _vector, _reals, _reals, _vector),
    }
    return kernel(_KERNELS[name], signatures[name])


@cache
def get_parser() -> Any:
    """The LIBSVM parser, whose arguments are described where it is written."""
    longs = types.int64[::1]
    return kernel(
        parse.parse,
        types.void(readonly(types.uint8), longs, _vector, longs, longs, longs, _vector, types.int64[:, ::1]),
    )
