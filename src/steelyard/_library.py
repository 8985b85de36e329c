"""Which compiled function belongs to which loss and which kernel: the only door from Python to compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from steelyard import _kernels, _margin, _mixture, _numeric, _parse, _residual
from steelyard._compile import (
    CONJUGATE_SIGNATURE,
    SCALAR_SIGNATURE,
    STEP_SIGNATURE,
    c_function,
    f8,
    kernel,
    readonly,
)
from steelyard.losses import Array, CustomLoss, Loss

_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "squared": (_residual.squared, _residual.squared_conjugate),
    "absolute": (_residual.pinball, _residual.pinball_conjugate),
    "quantile": (_residual.pinball, _residual.pinball_conjugate),
    "huber": (_residual.huber, _residual.huber_conjugate),
    "poisson": (_residual.poisson, _residual.poisson_conjugate),
    "logistic": (_margin.logistic, _margin.logistic_conjugate),
    "exponential": (_margin.exponential, _margin.exponential_conjugate),
    "hinge": (_margin.hinge, _margin.hinge_conjugate),
    "squared_hinge": (_margin.squared_hinge, _margin.squared_hinge_conjugate),
    "logarithmic": (_margin.logarithmic, _margin.logarithmic_conjugate),
    "hellinger": (_margin.hellinger, _margin.hellinger_conjugate),
    "custom": (_numeric.numeric, _numeric.numeric_conjugate),
}


class Compiled(NamedTuple):
    """A loss as kernels see it: an address, and parameters that start with the update rule and the wish for a gap."""

    step: int
    parameters: Array
    keep_alive: tuple[Any, ...]


@cache
def _c_function(function: Callable[..., Any], signature: Any) -> Any:
    return c_function(function, signature)


@cache
def _user_function(function: Callable[..., Any], part: str) -> Any:
    try:
        return c_function(function, SCALAR_SIGNATURE, cached=False)
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
    return Compiled(step.address, np.array([0.0, 0.0, *parameters]), (step, *users))


def compiled_conjugate(loss: Loss) -> int:
    """The address of a loss's conjugate."""
    return int(_c_function(_FUNCTIONS[loss.name][1], CONJUGATE_SIGNATURE).address)


_vector = f8[::1]
_unsigned = readonly(types.uint64)
_reals = readonly(f8)


@cache
def get_kernel(name: str, data: str = "f8", indices: str = "u4") -> Any:
    """The kernel ``name`` for rows of the given value and index types."""
    values = readonly(types.float32 if data == "f4" else f8)
    positions = readonly(types.uint32 if indices == "u4" else types.uint64)
    rows = (values, positions, _unsigned)
    targets = (readonly(types.int64), _reals, _reals)
    learner = (
        types.intp,
        types.intp,
        f8[:, ::1],
        *rows,
        *targets,
        _vector,
        f8[:, ::1],
        _vector,
        _vector,
        _vector,
        _vector,
        _vector,
    )
    tables = (types.float32[::1], _vector)
    mixture = (types.intp, f8[:, ::1], *rows, *targets, *tables, f8[:, ::1], _vector, _vector, _vector, _reals)
    signatures = {
        "learn_mixture": types.intp(*mixture, types.uint64[::1], _vector, _vector, _vector),
        "learn": types.intp(*learner),
        "learn_plain": types.intp(*learner),
        "learn_many": types.intp(*learner),
        "predict": types.void(*rows, _reals, types.boolean, _vector),
        "inspect": types.intp(positions, _unsigned, types.uint64),
        "row_keys": types.void(*rows, _unsigned, types.boolean, _vector, types.uint64[::1], types.int64[::1]),
        "same_rows": types.void(*rows, _reals, readonly(types.int64), types.boolean, types.uint8[::1]),
        "evaluate": types.void(types.intp, f8[:, ::1], _reals, _reals, _reals, _vector),
        "conjugates": types.void(types.intp, _vector, _reals, _reals, _vector),
    }
    home = _mixture if name == "learn_mixture" else _kernels
    return kernel(getattr(home, name), signatures[name])


@cache
def get_parser() -> Any:
    """The LIBSVM parser, whose arguments are described where it is written."""
    longs = types.int64[::1]
    return kernel(
        _parse.parse,
        types.void(readonly(types.uint8), longs, _vector, longs, longs, longs, _vector, types.int64[:, ::1]),
    )
