"""How the predictions of the experts become one, with a bound on what that costs.

``evidence`` is each expert's cumulated loss, infinite where it is retired, and ``pi`` their shares. ``experts`` are
vectors: the step lengths, the results of the steps (value, slope, ratio = c/slope), and room to work in (the last one
is zeros for ``_log_mean``; for the squared loss it holds losses). The eight of
first order come first; where there is ``extra``, two of second order follow, who get half of the shares to begin with,
and whose steps are not made here.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from steelyard.kernels.compile import inline_jit, jit
from steelyard.kernels.intrinsics import call_step
from steelyard.kernels.layout import EXPERTS, SECOND, TOTAL
from steelyard.kernels.steps.lanes import array_data, decay_lanes, dot_eight, exp_lanes, load, spread, store, total_of
from steelyard.kernels.steps.logistic import logistic_lanes, probability_lanes
from steelyard.kernels.steps.scalar import log_complement

FAVOUR = EXPERTS / SECOND  # of one of second order over one of first: half of the shares for either kind
MOVED = 0.25  # how much of the shares is moved among the experts; see share_out


@jit
def _leading(evidence, rate, pi):
    """pi_k in proportion to e^(-rate * evidence_k); an infinite rate takes the leaders, a retired expert gets none."""
    least = math.inf
    total = 0.0
    for k in range(EXPERTS):
        least = min(least, evidence[k])
    if least == math.inf:
        for k in range(EXPERTS):
            pi[k] = 1.0
    elif rate == math.inf:
        for k in range(EXPERTS):
            pi[k] = 1.0 if evidence[k] == least else 0.0
    else:
        for k in range(EXPERTS):
            pi[k] = -rate * (evidence[k] - least)
        exp_lanes(pi, 0)
        for k in range(EXPERTS):
            if evidence[k] == math.inf:
                pi[k] = 0.0
    for k in range(EXPERTS):
        total += pi[k]
    for k in range(EXPERTS):
        pi[k] /= total


@jit
def drop_retired(evidence, pi):
    """Experts that were retired have no share; where all of them are, those of first order share evenly."""
    dropped = False
    for k in range(TOTAL):
        dropped |= evidence[k] == math.inf and pi[k] > 0.0
    if not dropped:
        return
    total = 0.0
    for k in range(TOTAL):
        if evidence[k] == math.inf:
            pi[k] = 0.0
        total += pi[k]
    for k in range(TOTAL):
        if total == 0.0:
            pi[k] = 1.0 / EXPERTS if k < EXPERTS else 0.0
        else:
            pi[k] /= total


@jit
def flatten(pi, power):
    """The shares for a rate that is smaller by the factor ``power``: nearer to those of the beginning."""
    total = 0.0
    for k in range(TOTAL):
        if pi[k] > 0.0:
            begin = 1.0 if k < EXPERTS else FAVOUR
            pi[k] = begin * (pi[k] / begin) ** power
        total += pi[k]
    for k in range(TOTAL):
        pi[k] /= total


@intrinsic
def _take_in(typingctx: Any, evidence: Any, pi: Any, likelihood: Any) -> Any:
    """pi *= likelihood for the eight of first order; returns the sum, and how many of them are not retired."""
    signature = types.UniTuple(types.float64, 2)(evidence, pi, likelihood)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = [array_data(context, builder, sig.args[i], args[i]) for i in range(3)]
        zero = ir.Constant(ir.IntType(64), 0)
        evidence, pi, likelihood = (load(builder, place, zero) for place in places)
        product = pi * likelihood
        store(builder, places[1], zero, product)
        values = [total_of(numbers) for numbers in (product, evidence.where("<", math.inf, 1.0, 0.0))]
        return context.make_tuple(builder, sig.return_type, values)

    return signature, codegen


@intrinsic
def _give_back(typingctx: Any, evidence: Any, pi: Any, kept: Any, each: Any) -> Any:
    """pi *= kept for the eight of first order, and ``each`` more where an expert is not retired."""
    signature = types.void(evidence, pi, types.float64, types.float64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = [array_data(context, builder, sig.args[i], args[i]) for i in range(2)]
        zero = ir.Constant(ir.IntType(64), 0)
        evidence, pi = (load(builder, place, zero) for place in places)
        more = evidence.where("<", math.inf, spread(builder, args[3]), 0.0)
        store(builder, places[1], zero, pi.times_plus(spread(builder, args[2]), more))
        return context.get_dummy_value()

    return signature, codegen


@inline_jit
def share_out(evidence, pi, likelihood, rows):
    """The shares after a round: in proportion to pi_k likelihood_k, and a part moved to where the shares began.

    The part is MOVED / (t ln^2 t), t = 3 in the first round, 4 in the second, …, of which the sum is finite: an expert
    who is best for all rounds pays at most a constant for it, and a switch to another expert costs about ln t.
    """
    total, alive = _take_in(evidence, pi, likelihood)
    for k in range(EXPERTS, TOTAL):
        pi[k] *= likelihood[k]
        total += pi[k]
        alive += FAVOUR if evidence[k] < math.inf else 0.0
    if not total > 1e-290:  # beyond floats: none is better than another
        total = 0.0
        for k in range(TOTAL):
            pi[k] = 1.0 if evidence[k] < math.inf else 0.0
            total += pi[k]
        if not total > 0.0:
            return
    t = rows + 3.0
    moved = MOVED / (t * math.log(t) * math.log(t))
    kept, each = (1.0 - moved) / total, moved / alive
    _give_back(evidence, pi, kept, each)
    for k in range(EXPERTS, TOTAL):
        pi[k] = kept * pi[k] + (FAVOUR * each if evidence[k] < math.inf else 0.0)


@jit
def _log_mean(pi, x, shift, scratch):
    """-ln sum pi_k e^(-x_k - shift_k), without underflow."""
    least = math.inf
    for k in range(TOTAL):
        scratch[k] = x[k] + shift[k]
        if pi[k] > 0.0:
            least = min(least, scratch[k])
    total = 0.0
    for k in range(TOTAL):
        if pi[k] > 0.0:
            total += pi[k] * math.exp(least - scratch[k])
    return least - math.log(total)


@jit
def _steps(step, params, p, y, a, value, slope, ratio):
    """Eight steps of any loss; ratio = c/slope."""
    for k in range(EXPERTS):
        value[k], slope[k], c, _ = call_step(step, p[k], y, a[k], params, 0)
        ratio[k] = min(max(c / slope[k], 0.0), 1.0) if slope[k] != 0.0 else 1.0


@jit
def clip(x, low, high):
    """x, kept within [low, high]."""
    return min(max(x, low), high)


@jit
def _aggregate(pi, p, low, high, rate, scratch, extra):
    """The aggregating algorithm's prediction for the squared loss and labels in [low, high]."""
    width = high - low
    if not width > 0.0:
        return low
    if rate * width * width < 1e-9:  # the limit, which is the mean
        mean = 0.0
        for k in range(TOTAL):
            mean += pi[k] * p[k]
        return clip(mean, low, high)
    ends = 0.0
    for label in (low, high):
        for k in range(EXPERTS):
            scratch[k] = -0.5 * rate * (p[k] - label) * (p[k] - label)
        exp_lanes(scratch, 0)
        total = 0.0
        for k in range(EXPERTS):
            total += pi[k] * scratch[k]
        if extra:
            for k in range(EXPERTS, TOTAL):
                total += pi[k] * math.exp(-0.5 * rate * (p[k] - label) * (p[k] - label))
        ends = -math.log(total) / rate - ends
    # ends = g(high) - g(low), where g(label) bounds the loss that a label may cost
    return clip(0.5 * (low + high) - ends / width, low, high)


# Each of these takes a label and what the experts predict, writes every expert's loss, slope and c/slope, and returns
# the mixture's prediction, its loss and slope there, and what the row adds to G and H.


@inline_jit
def mix_logistic(step, params, label, power, extra, p, pi, experts):
    """Probabilities are mixed: the loss of the mixture is that of the experts' average probability.

    ``power`` is the row's count over the largest so far. The likelihoods for ``share_out`` go to ``change``.
    """
    a, value, slope, ratio, change, scratch, zeros = experts
    usual = logistic_lanes(p, label, a, value, slope, change, ratio)
    right, wrong = dot_eight(pi, change), -label * dot_eight(pi, slope)
    if extra:
        probability_lanes(p, label, EXPERTS, value, slope, change)
        for k in range(EXPERTS, TOTAL):
            ratio[k] = change[k]  # slope and ratio have the probabilities, for the steps of second order
            right += pi[k] * change[k]
            wrong += pi[k] * slope[k]
    if not usual:
        _steps(step, params, p, label, a, value, slope, ratio)
    if usual and right > 1e-250 and wrong > 1e-250:
        loss = -math.log(right) if right < 0.5 else -log_complement(wrong)
        mixed = -label * (loss + math.log(wrong))
        sigma, kappa = wrong, right
    else:
        loss = _log_mean(pi, value, zeros, scratch)
        for k in range(TOTAL):
            change[k] = label * p[k]
        margin = _log_mean(pi, value, change, scratch) - loss
        e = math.exp(-abs(margin))
        sigma, kappa = (e / (1.0 + e), 1.0 / (1.0 + e)) if margin > 0.0 else (1.0 / (1.0 + e), e / (1.0 + e))
        loss = math.log1p(e) + max(-margin, 0.0)  # with the digits that a small loss has
        mixed = label * margin
        _likelihoods(value, 1.0, pi, change)
    if power != 1.0:
        _likelihoods(value, power, pi, change)
    return mixed, loss, -label * sigma, sigma * sigma, sigma * kappa


@jit
def _likelihoods(value, rate, pi, likelihood):
    """e^(-rate * value), in units in which the largest is 1."""
    least = math.inf
    for k in range(TOTAL):
        if pi[k] > 0.0:
            least = min(least, value[k])
    for k in range(TOTAL):
        likelihood[k] = math.exp(-rate * (value[k] - least)) if pi[k] > 0.0 else 0.0


@jit
def mix_squared(label, low, high, first_row, moved, scale, rate, extra, p, pi, experts):
    """The aggregating algorithm, on the range of labels seen before. ``value`` receives the losses at the label itself,
    ``inner`` those at the label within the range, and ``change`` the likelihoods for ``share_out``, of ``inner``."""
    a, value, slope, ratio, change, scratch, inner = experts
    mixed = 0.0 if first_row else _aggregate(pi, p, low, high, rate, scratch, extra)
    loss = 0.5 * (mixed - label) * (mixed - label)
    inside = clip(label, low, high)
    least = math.inf
    for k in range(TOTAL if extra else EXPERTS):
        inner[k] = 0.5 * (p[k] - inside) * (p[k] - inside)
        value[k] = 0.5 * (p[k] - label) * (p[k] - label)
        slope[k] = p[k] + moved - label
        if pi[k] > 0.0:
            least = min(least, inner[k])
    for k in range(EXPERTS):
        change[k] = -rate * (inner[k] - least)
    exp_lanes(change, 0)
    if extra:
        for k in range(EXPERTS, TOTAL):
            change[k] = math.exp(-rate * (inner[k] - least))
    decay_lanes(a, 0, ratio)
    steepness = (mixed - label) / scale if scale > 0.0 else 0.0
    return mixed, loss, mixed - label, steepness * steepness, 1.0


@jit
def mix_convex(step, params, label, scale, counted, cost, evidence, p, pi, experts):
    """AdaHedge, for any other loss. ``cost``, what mixing has cost so far, sets its rate; also returns what it adds."""
    a, value, slope, ratio, change, scratch, zeros = experts
    rate = math.log(EXPERTS) / cost if cost > 1e-300 else math.inf
    _leading(evidence, rate, pi)
    _steps(step, params, p, label, a, value, slope, ratio)
    mixed = 0.0
    for k in range(EXPERTS):
        if pi[k] > 0.0:
            mixed += pi[k] * p[k]
    loss, gradient, _, _ = call_step(step, mixed, label, 0.0, params, 0)
    steepness = (gradient / scale) * (gradient / scale) if scale > 0.0 else 0.0
    if loss == math.inf:
        return mixed, loss, gradient, steepness, steepness, math.inf
    least = math.inf
    for k in range(EXPERTS):
        if pi[k] > 0.0:
            least = min(least, value[k])
    soft = counted * least
    if least < math.inf and rate < math.inf:
        for k in range(EXPERTS):  # the smallest first comes off, so that no product overflows for all of them
            change[k] = counted * rate * (value[k] - least) if pi[k] > 0.0 else math.inf
        soft += _log_mean(pi, change, zeros, scratch) / rate
    elif least < math.inf:
        first, second = math.inf, math.inf
        for k in range(EXPERTS):
            first = min(first, evidence[k])
            second = min(second, evidence[k] + counted * value[k])
        soft = second - first if second < math.inf else 0.0
    return mixed, loss, gradient, steepness, steepness, max(0.0, counted * loss - soft)
