"""Predictions of a model, and scalar functions over arrays."""

from __future__ import annotations

from steelyard.kernels.intrinsics import call_conjugate, call_step
from steelyard.kernels.rows import ZERO, dense_dot, dot_outputs, sparse_dot


def predict(data, indices, indptr, coef, dense, predictions):
    """<q, x_k> for every row and output; ``coef`` is features x outputs, with the intercept as its last row."""
    size = predictions.size // (indptr.size - 1)
    last = coef[coef.size - size :]
    for i in range(indptr.size - 1):
        lo, hi = indptr[i], indptr[i + 1]
        p = predictions[i * size : (i + 1) * size]
        if size == 1:
            p[0] = dense_dot(data, lo, hi, coef)[0] if dense else sparse_dot(data, indices, lo, hi, coef, ZERO, ZERO)[0]
        else:
            dot_outputs(data, indices, lo, hi, coef, p, dense)
        for k in range(size):
            p[k] += last[k]


def evaluate(step, params, p, y, a, out):
    """The four results of a step function, for every (p, y, a)."""
    for i in range(p.size):
        out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3] = call_step(step, p[i], y[i], a[i], params, 0)


def conjugates(conjugate, params, s, y, out):
    """The conjugate, for every (s, y)."""
    for i in range(s.size):
        out[i] = call_conjugate(conjugate, s[i], y[i], params)
