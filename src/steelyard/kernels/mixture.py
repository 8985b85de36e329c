"""The loop of the self-tuning learner: eight experts over one read of the data, and their mixture.

The experts share two metrics and differ in their rate. For a feature with values q, seen with cumulated weight n:

    z = q - mean      for a column that is hardly ever zero: in the first row, and varying by less than its mean
                      whenever it is zero; q itself for others
    v                 the mean of z^2, over the rows that have the feature; and u, the mean of q^2
    r_1 = 1 / sqrt(u (u/10 + G))   G adds h g^2 q^2: the rate falls like 1/sqrt(n)   (four experts, who read q)
    r_2 = 1 / (v + H)              H adds h g' z^2, g' the loss's curvature: like 1/n   (the other four, who read z)

An expert of rate eta plays p = <x, z>, takes a = eta h sum z^2 r, c = update(p, y, a), and moves x by -eta h c z r
(with q in place of z for the first four). The slope g is the mixture's. What a row adds to G and H shrinks with c/g, so
that a large weight, of which the flow needs only the first part, does not use up the rates.

Where columns are few, two experts of second order join them: ``second``. ``features`` has the records of the features,
``statistics`` how they come into vectors and back, ``vectors`` what is done to them there, ``experts`` what a round
does to the experts, ``mixing`` the three ways of mixing. The last record is the intercept's, whose z is 1.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.experts import (
    add_to_certificate,
    certify_round,
    count_losses,
    count_row,
    counted_weight,
    label_scales,
    mixing_rate,
    retire_and_clip,
    set_changes,
    set_lengths,
)
from steelyard.kernels.features import WEIGHTS, grown_weight, predict_centered
from steelyard.kernels.layout import (
    EVIDENCE,
    EXPERT_VECTORS,
    EXPERTS,
    HIGHEST,
    LABEL_MEAN,
    LARGEST,
    LOWEST,
    MATRICES,
    MIX_CLASSES,
    MIX_CONVEX,
    MIX_DELTA,
    MIX_DENSE,
    MIX_INTERCEPT,
    MIX_KIND,
    MIX_LABELS,
    MIX_LOGISTIC,
    MIX_RESIDENT,
    MIX_ROWS,
    MIX_SEEN,
    MIX_SQUARED,
    MIX_STRONG,
    MIX_WEAK,
    MIX_WIDTH,
    MIXING_COST,
    MIXING_RATE,
    PLAIN,
    ROW_VECTORS,
    SECOND_COLUMNS,
    SECOND_ROWS,
    SECOND_SEEN,
    SHARES,
    SLOTS,
    TOTAL,
)
from steelyard.kernels.mixing import drop_retired, flatten, mix_convex, mix_logistic, mix_squared, share_out
from steelyard.kernels.rows import fetch_ahead
from steelyard.kernels.second import leave_rest, predict_second, read_row, step_second, write_row
from steelyard.kernels.statistics import observe_row, put_all_back, put_sums_back, rows_ahead, take_all, take_sums
from steelyard.kernels.vectors import move_lanes, predict_lanes


def learn_mixture(
    step,
    params,
    data,
    indices,
    indptr,
    order,
    y,
    weight,
    table,
    doubles,
    sums,
    clocks,
    centered,
    dual,
    second_state,
    config,
    rates,
    powers,
    offsets,
    work,
    singles,
    stamps,
    copies,
    copied,
    predictions,
    losses,
):
    """Learn the rows in ``order``: like ``single.learn``, for the mixture.

    ``doubles`` is the memory of ``table`` seen in double precision, ``dual`` the sum of h c q for each feature and
    output, ``second_state`` what the experts of second order know (see ``second``), empty where there are none;
    ``rates`` are those of the others, ``powers`` has 2^-k; ``offsets``, ``work`` and ``singles`` have room for the
    longest row, or for all features where they are resident.

    Where ``stamps`` is not empty, the first change of a feature's record is preceded by a copy of it: the copies go to
    ``copies``, the features to ``copied[1:]`` and their number to ``copied[0]``. A stamp is 1 where a feature has been
    copied.
    """
    kind, labels = int(config[MIX_KIND]), int(config[MIX_LABELS])
    intercept, dense, classes = config[MIX_INTERCEPT] != 0.0, config[MIX_DENSE] != 0.0, config[MIX_CLASSES] != 0.0
    resident = config[MIX_RESIDENT] != 0.0
    size = np.uint64(sums.shape[0])
    width = np.uint64(config[MIX_WIDTH])
    last = np.uint64(table.size) - width
    n_features = np.int64(last // width)
    room = offsets.size
    v = singles[:room]
    vectors = (  # slices, since a kernel cannot return arrays from a function
        offsets,
        work[:room],
        work[room : 2 * room],
        work[2 * room : 3 * room],
        v,
        work[3 * room : 4 * room],
        work[4 * room : 5 * room],
        work[5 * room : 6 * room],
        work[6 * room : 7 * room],
        work[7 * room : 8 * room],
    )
    rest = work[ROW_VECTORS * room :]
    rest[:] = 0.0
    experts = (
        rest[:SLOTS],
        rest[SLOTS : 2 * SLOTS],
        rest[2 * SLOTS : 3 * SLOTS],
        rest[3 * SLOTS : 4 * SLOTS],
        rest[4 * SLOTS : 5 * SLOTS],
        rest[5 * SLOTS : 6 * SLOTS],
        rest[6 * SLOTS : 7 * SLOTS],
    )
    whole, z, first, second = vectors[6], vectors[7], vectors[8], vectors[9]
    a, change, p = experts[0], experts[4], rest[8 * SLOTS : 9 * SLOTS]
    found, out = rest[7 * SLOTS : 8 * SLOTS], rest[9 * SLOTS : 10 * SLOTS]
    variances, raw = rest[11 * SLOTS : 11 * SLOTS + 2], rest[11 * SLOTS + 2 : 11 * SLOTS + 4]
    grown_by = rest[11 * SLOTS + 4 : 11 * SLOTS + 6]
    rest = rest[EXPERT_VECTORS * SLOTS :]
    slopes = rest[rest.size - sums.shape[0] :]
    p_all, free = rest[: EXPERTS * sums.shape[0]], rest[EXPERTS * sums.shape[0] :]
    journal = (stamps, copies, copied, dual)
    records = (table, doubles, width, size, powers)
    extra = clocks[MATRICES] > 0.0
    wide = (n_features + EXPERTS) // EXPERTS * EXPERTS if extra else 0  # layout.second_width
    own, start = wide * (wide + 1), SECOND_COLUMNS * wide
    second_order = (
        second_state[:wide],
        second_state[wide : 2 * wide],
        second_state[2 * wide : 3 * wide],
        second_state[3 * wide : start],
        free[:wide],
        second_state[start : start + wide * wide],
        free[wide : 2 * wide],
        second_state[start + wide * wide : start + own],
        second_state[start + own : start + own + wide * wide],
        free[2 * wide : 3 * wide],
        second_state[start + own + wide * wide : start + 2 * own],
        second_state[start + 2 * own :],
    )
    values = vectors[1] if resident else free[3 * wide : 4 * wide]
    priors = (config[MIX_STRONG], config[MIX_WEAK])
    if resident:
        take_all(records, vectors, singles, last, n_features)
    for i in range(order.size):
        row = order[i]
        h = weight[row]
        lo, hi = indptr[row], indptr[row + 1]
        seen = clocks[MIX_SEEN]
        after = grown_weight(seen, h)
        fetch_ahead(data, indices, indptr, order, y, weight, i)
        count = observe_row(
            (data, indices, lo, hi, dense, h),
            rows_ahead(indptr, order, i, dense),
            clocks,
            centered,
            last,
            seen,
            after,
            intercept,
            resident,
            records,
            vectors,
            singles,
            journal,
        )
        if count < 0:
            return i
        p_all[:] = 0.0
        if h == 0.0:
            predict_centered(table, doubles, centered, clocks, size, p_all, powers)
        relative, counted, logarithm = counted_weight(clocks, h)
        largest = max(clocks[LARGEST], counted)
        low, high = clocks[LOWEST], clocks[HIGHEST]
        first_label = intercept and clocks[MIX_ROWS] == 0.0
        rate = mixing_rate(kind, low, high, largest)
        last_rate = clocks[MIXING_RATE] if clocks[MIXING_RATE] > 0.0 else rate
        both = clocks[MATRICES] > 1.0
        if extra:
            if not resident:
                write_row(data, indices, lo, hi, dense, values, n_features)
            read_row(
                second_order,
                values,
                size,
                n_features,
                counted if h > 0.0 else 0.0,
                clocks[SECOND_SEEN],
                intercept,
                both,
                priors,
                variances,
            )
            grown_by[:] = 0.0
        for c in range(size):
            label = y[row]
            if classes:
                label = 1.0 if label == c else -1.0
            shift = c * WEIGHTS
            held_at = room * (1 + 2 * int(c)) if resident else room
            grown, curve = singles[held_at : held_at + room], singles[held_at + room : held_at + 2 * room]
            if not resident:
                take_sums(records, vectors, singles, c, count)
            features = (v, grown, curve, whole, z, first, second, offsets)
            predict_lanes(features, count, table, shift, out)
            norm1, norm2 = out[EXPERTS], out[EXPERTS + 1]
            evidence = sums[c, EVIDENCE : EVIDENCE + TOTAL]
            retire_and_clip(clocks, kind, labels, h, evidence, p_all, c * WEIGHTS, out, p)
            logistic, clipping = kind == MIX_LOGISTIC, labels == PLAIN or clocks[MIX_ROWS] > 0.0
            if extra:
                offset = clocks[LABEL_MEAN]
                predict_second(
                    second_order, c, both, logistic, h, offset, low, high, clipping, variances, raw, p, evidence
                )
            moved, scale, speed = label_scales(
                clocks, kind, labels, config[MIX_DELTA], label, h, seen, intercept, first_label
            )
            set_lengths(rates, speed * relative, norm1, norm2, a)

            # every expert's step, the mixture's prediction and its loss
            if kind == MIX_CONVEX:
                pi = found
            else:
                pi = sums[c, SHARES : SHARES + TOTAL]
                drop_retired(evidence, pi)
                if rate < last_rate and h > 0.0:
                    flatten(pi, rate / last_rate)
            if kind == MIX_LOGISTIC:
                mixed, loss, slope, steepness, curvature = mix_logistic(
                    step, params, label, counted * rate, extra, p, pi, experts
                )
            elif kind == MIX_SQUARED:
                first_row = labels != PLAIN and not clocks[MIX_ROWS] > 0.0
                mixed, loss, slope, steepness, curvature = mix_squared(
                    label, low, high, first_row, moved, scale, counted * rate, extra, p, pi, experts
                )
            else:
                mixed, loss, slope, steepness, curvature, cost = mix_convex(
                    step, params, label, scale, counted, sums[c, MIXING_COST], evidence, p, pi, experts
                )
                if h > 0.0:
                    sums[c, MIXING_COST] += cost
            predictions[np.uint64(i) * size + c] = mixed
            losses[np.uint64(i) * size + c] = loss
            if h == 0.0:
                continue
            slopes[c] = certify_round(sums, c, h, mixed, slope)
            shrink = count_losses(sums, c, kind, h, counted, loss, extra, evidence, pi, experts)
            if kind != MIX_CONVEX:
                share_out(evidence, pi, change, clocks[MIX_ROWS])
            held = labels != PLAIN and kind != MIX_SQUARED and first_label  # the offset takes it
            set_changes(norm1, norm2, held, evidence, experts)
            features = (grown, curve, whole, z, first, second, offsets)
            amounts = (steepness * (relative * shrink), curvature * (relative * shrink))
            move_lanes(features, count, table, shift, change, amounts)
            if not resident:
                put_sums_back(records, vectors, singles, c, count)
            if extra:
                below = min(low, label) if clipping else label
                above = max(high, label) if clipping else label
                step_second(
                    second_order,
                    c,
                    both,
                    logistic,
                    label,
                    clocks[LABEL_MEAN],
                    below,
                    above,
                    relative,
                    counted,
                    clocks[MIX_ROWS],
                    variances,
                    raw,
                    evidence,
                    experts,
                    grown_by,
                )
        if h == 0.0:
            continue
        add_to_certificate(data, indices, lo, hi, dense, intercept, slopes, vectors[1], resident, dual)
        if extra:
            leave_rest(second_order, both, size, variances, grown_by)
            clocks[SECOND_SEEN] += counted
            if clocks[MIX_ROWS] >= SECOND_ROWS * (n_features + 1):
                clocks[MATRICES] = 1.0
        clocks[MIX_SEEN] = after
        clocks[LARGEST], clocks[MIXING_RATE] = largest, rate
        count_row(clocks, labels, logarithm, y[row])
    if resident:
        put_all_back(records, vectors, singles, n_features)
    return -1
