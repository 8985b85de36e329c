"""What a round adds to the certificate, and the guard that keeps Algorithm 1's condition H_t(z_t) <= H_t(g_t).

Arguments: h, p, value, slope, c, gap, a of the round, and ratio = lam_t / lam_(t+1): x_t was played with lam_t, and H_t
measures with lam_(t+1).
"""

from __future__ import annotations

import math

from steelyard.kernels.compile import jit
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import DELTA, FENCHEL, GUARDED, NEGATIVE


@jit
def delta_of_round(h, p, value, slope, c, gap, a, ratio):
    """delta_t = H_t(g_t) - H_t(z_t), by how much c beats the slope in the round's term of the bound; is it negative?

    x_t was played with lam_t, H_t measures with lam_(t+1), and ratio = lam_t / lam_(t+1). What is negative by less than
    a part in 1e12 of the loss and its own terms is rounding.
    """
    bend = (slope - c) * p * (1.0 - ratio)
    half = 0.5 * a * ratio
    delta = h * (bend - gap + half * (slope - c) * (slope + c))
    return delta, delta < -1e-12 * h * (abs(value) + abs(bend) + gap + half * slope * slope)


@jit
def certify_round(sums, k, h, p, value, slope, c, gap, a, ratio, capped):
    """Add a round to the certificate: h (loss(p) + conjugate(c)), and delta_t."""
    sums[k, FENCHEL] += math.inf if capped else h * (gap + c * p)
    delta, negative = delta_of_round(h, p, value, slope, c, gap, a, ratio)
    sums[k, DELTA] += delta
    if negative:
        sums[k, NEGATIVE] += 1.0


@jit
def guarded_step(sums, k, step, params, h, p, y, a, ratio, value, slope, c, gap):
    """(c, gap) that satisfy H_t(z_t) <= H_t(g_t): c itself, the rule from theta_t/lam_(t+1), or the slope."""
    if not delta_of_round(h, p, value, slope, c, gap, a, ratio)[1]:
        return c, gap
    sums[k, GUARDED] += 1.0
    there, _, other, other_gap = call_step(step, p * ratio, y, a * ratio, params, k)
    other_gap = max(0.0, value - there + other_gap - other * p * (1.0 - ratio))  # seen from p
    if delta_of_round(h, p, value, slope, other, other_gap, a, ratio)[0] > 0.0:
        return other, other_gap
    return slope, 0.0
