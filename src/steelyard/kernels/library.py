"""Which function has which name, and what Numba makes of it: an object file, or a call through Numba itself.

Imported where something is to be compiled, and only there: ``steelyard.compiled`` is the door from Python to kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types

from steelyard.kernels import (
    averaged,
    columns,
    composite,
    evaluate,
    event,
    full,
    handover,
    hashing,
    mixture,
    order,
    outputs,
    parse,
    parse_csv,
    parse_json,
    parse_vw,
    penalised,
    settle,
    shrinking,
    single,
)
from steelyard.kernels.compile import (
    CONJUGATE_SIGNATURE,
    SCALAR_SIGNATURE,
    STEP_SIGNATURE,
    c_function,
    dispatched,
    jit_user,
    numba_type,
)
from steelyard.kernels.entry import compile_kernel, compile_object
from steelyard.kernels.signatures import HAND_OVER, signature
from steelyard.kernels.steps import logistic, margin, numeric, probability, residual

_LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
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
_KERNELS: dict[str, Callable[..., Any]] = {
    "learn_mixture": mixture.learn_mixture,
    "learn": single.learn,
    "learn_plain": single.learn_plain,
    "learn_outputs": outputs.learn_outputs,
    "learn_composite": composite.learn_composite,
    "learn_penalised": penalised.learn_penalised,
    "learn_shrinking": shrinking.learn_shrinking,
    "learn_averaged": averaged.learn_averaged,
    "learn_full": full.learn_full,
    "predict": evaluate.predict,
    "inspect": order.inspect,
    "row_keys": order.row_keys,
    "same_rows": order.same_rows,
    "number_columns": columns.number_columns,
    "visit_places": order.visit_places,
    "sort_keys": order.sort_keys,
    "evaluate": evaluate.evaluate,
    "conjugates": evaluate.conjugates,
    "keep_event": event.keep_event,
    "predict_event": event.predict_event,
    "hash_names": hashing.hash_names,
    "settle": settle.settle,
    "parse": parse.parse,
    "parse_csv": parse_csv.parse_csv,
    "ends_quoted": parse_csv.ends_quoted,
    "parse_json": parse_json.parse_json,
    "parse_vw": parse_vw.parse_vw,
}


def _scalar(name: str) -> tuple[Callable[..., Any], Any] | None:
    """The function of a step or a conjugate, and its signature."""
    part, _, loss = name.partition("-")
    if part == "step":
        return _LOSSES[loss][0], STEP_SIGNATURE
    return (_LOSSES[loss][1], CONJUGATE_SIGNATURE) if part == "conjugate" else None


def object_file(name: str, symbol: str) -> bytes | None:
    """The object file of the function of that name (see ``signatures.every_name``); None where there cannot be one."""
    scalar = _scalar(name)
    if scalar is not None:
        return compile_object(*scalar, symbol)
    if name == HAND_OVER:
        return compile_object(handover.hand_over, types.intp(types.intp, types.intp, types.intp), symbol)
    return compile_kernel(_KERNELS[name.partition("-")[0]], signature(name), symbol)


@cache
def numba_kernel(name: str, folder: str | None) -> Any:
    """The kernel of that name, called through Numba, which keeps it in a folder if there is one."""
    words = signature(name)
    kinds = map(numba_type, words.arguments)
    result = types.intp if words.returns else types.void
    return dispatched(_KERNELS[name.partition("-")[0]], result(*kinds), folder)


@cache
def numba_scalar(name: str, folder: str | None) -> Any:
    """The step or the conjugate of that name as a C function of this process, with an ``.address``."""
    scalar = _scalar(name)
    if scalar is None:
        raise KeyError(name)
    return c_function(*scalar, folder)


@cache
def user_function(function: Callable[..., Any], part: str) -> Any:
    """A user's ``value`` or ``slope`` as a C function of this process."""
    try:
        return c_function(jit_user(function), SCALAR_SIGNATURE)
    except Exception as error:
        raise TypeError(
            f"the {part} of a CustomLoss could not be compiled. It must be a function of two numbers (p, y) that uses "
            f"numbers, math and numpy scalars only; functions it calls must be written inside it. Numba said: {error}"
        ) from error
