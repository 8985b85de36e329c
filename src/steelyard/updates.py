"""The update rules: scalar functions ``c = update(p, y, a)`` of a prediction, a label and a step length.

===========  =======================================================================================
linearized   c = slope(p): plain FTRL, or gradient descent
aprox        c = slope(p) * min(1, (value(p) - infimum) / (a * slope(p)^2)): never past the tangent's zero
iwa          c = (p - u(a)) / a, where u follows the gradient flow du/ds = -slope(u) from p
proximal     the root of c = slope(p - a*c): the implicit step
===========  =======================================================================================

After a step the prediction on the same example is ``p - a*c``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.losses import CustomLoss, Loss, get_loss

UPDATES = {"linearized": 0.0, "aprox": 1.0, "iwa": 2.0, "proximal": 3.0}


def check_update(update: str, loss: Loss) -> float:
    """The code of an update rule, refused where the loss lacks what the rule needs."""
    if update not in UPDATES:
        raise ValueError(f"unknown update {update!r}; choose one of {', '.join(UPDATES)}")
    if update == "aprox" and isinstance(loss, CustomLoss) and loss.infimum is None:
        raise ValueError(
            "update='aprox' needs the smallest value of the loss, which cannot be derived from its value and slope: "
            "pass infimum= to CustomLoss (0.0 for a loss that can be zero)"
        )
    return UPDATES[update]


def evaluate(loss: Loss, update: str, p: ArrayLike, y: ArrayLike, a: ArrayLike) -> tuple[Any, Any, Any, Any]:
    """(value, slope, c, gap), broadcast; the gap is value(p) + conjugate(c) - c*p."""
    from steelyard.compiled.door import compiled_loss, get_kernel
    from steelyard.kernels import layout

    rule = check_update(update, loss)
    p, y, a = np.broadcast_arrays(np.asarray(p, float), np.asarray(y, float), np.asarray(a, float))
    _refuse(np.isnan(p), p, "p", "a number")
    bad = loss.invalid_labels(y.ravel())
    if bad.size:
        where = f" at position {bad[0]}" if y.ndim else ""
        raise ValueError(f"label {y.ravel()[bad[0]]:g}{where} is outside the {loss.name} loss: use {loss.domain}")
    _refuse(~((a >= 0.0) & (a < np.inf)), a, "a", "a finite number >= 0")
    step, parameters, _ = compiled_loss(loss)
    params = parameters.copy()
    params[[layout.RULE, layout.WANTS_GAP]] = rule, 1.0
    out = np.empty((p.size, 4))
    flat = (np.ascontiguousarray(v).reshape(-1) for v in (p, y, a))
    get_kernel("evaluate")(step, params[None], *flat, out.reshape(-1))
    value, slope, c, gap = (out[:, i].reshape(p.shape)[()] for i in range(4))
    if p.ndim == 0:
        return float(value), float(slope), float(c), float(gap)
    return value, slope, c, gap


def _refuse(bad: Any, values: Any, name: str, wanted: str) -> None:
    if np.any(bad):
        first = int(np.flatnonzero(bad)[0])
        where = f" at position {first}" if np.ndim(values) else ""
        raise ValueError(f"{name} must be {wanted}, got {values.reshape(-1)[first]}{where}")


def conjugate(loss: Loss, s: ArrayLike, y: ArrayLike) -> Any:
    """The convex conjugate of a loss, broadcast."""
    from steelyard.compiled.door import compiled_conjugate, compiled_loss, get_kernel

    s, y = np.broadcast_arrays(np.asarray(s, float), np.asarray(y, float))
    out = np.empty(s.size)
    flat = (np.ascontiguousarray(v).reshape(-1) for v in (s, y))
    get_kernel("conjugates")(compiled_conjugate(loss), compiled_loss(loss).parameters, *flat, out)
    return out.reshape(s.shape) if s.ndim else float(out[0])


def step(
    p: ArrayLike, y: ArrayLike, a: ArrayLike, loss: str | Loss = "logistic", update: str = "iwa"
) -> float | np.ndarray[Any, np.dtype[np.float64]]:
    """The surrogate slope ``c`` of one round, broadcasting over arrays.

    Parameters
    ----------
    p : prediction, <q, x>
    y : label
    a : step length, h * ||q||^2 / lam; zero gives the slope itself
    loss : name, Loss object or CustomLoss
    update : {"linearized", "aprox", "iwa", "proximal"}

    Returns
    -------
    c : the model moves by -(h/lam) * c * q, and the prediction becomes p - a*c

    Examples
    --------
    A huge weight ends at the label, and does not pass it:

    >>> import steelyard
    >>> p, y, a = 0.0, 3.0, 1e6
    >>> p - a * steelyard.step(p, y, a, loss="squared", update="iwa")
    3.0
    >>> p - a * steelyard.step(p, y, a, loss="squared", update="linearized")
    3000000.0
    """
    return evaluate(get_loss(loss), update, p, y, a)[2]  # type: ignore[no-any-return]
