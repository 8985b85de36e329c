"""Positions in the arrays that Python and the kernels share, each named once. Needs no Numba.

Plain integers freeze into kernels when these are compiled.
"""

from __future__ import annotations

from steelyard.regularizers import SCHEDULES
from steelyard.updates import UPDATES

# Update rules and schedules, as kernels know them.
LINEARIZED, APROX, IWA, PROXIMAL = (UPDATES[name] for name in ("linearized", "aprox", "iwa", "proximal"))
CONSTANT, POWER, ADAGRAD, GAP_SCHEDULE = (SCHEDULES[name] for name in ("constant", "power", "adagrad-norm", "gap"))

# A row of ``params``: what a step function takes. The loss's own parameters come last.
RULE = 0  # the update rule
WANTS_GAP = 1  # whether the Fenchel-Young gap is wanted, where it is expensive
OWN = 2

# ------------------------------------------------------------------------------- Learner and Bank, one row an output

# ``config``: the same for all outputs of a call.
(
    SCHEDULE,
    POWER_T,
    ORIGIN,  # center "origin"
    DIAGONAL,  # metric "diagonal"
    ADAPTIVE,  # each feature keeps its own sum of squared gradients
    RADIUS,  # of the ball, inf without one
    INTERCEPT,
    DENSE,  # the block is dense
    CLASSES,  # labels are classes, one an output
    CERTIFY,
    GUARD,
    VECTOR,  # which losses have a step in vectors: VECTOR_NONE, …
    CURVATURE,  # how fast the matrix of metric "full" grows
    L1,  # penalties
    L2,
    INSPECTED,  # indices of sparse rows are known to be in range, and none to be twice in a row
    CONFIG_SIZE,
) = range(17)
VECTOR_NONE, VECTOR_LOGISTIC, VECTOR_SQUARED = range(3)

# ``clocks``: what sets lam_t and the scale of the weights.
(
    WEIGHT,  # cumulated importance weight
    LAM,  # lam_t of the schedule "gap"
    SUM_SQ_GRAD,  # sum of h ||g||^2 of "adagrad-norm"
    SCALE,  # x = SCALE * w, center "trajectory" in a ball
    NORM2,  # ||w||^2, kept while there is a ball
    CLOCKS_SIZE,
) = range(6)

# ``sums``: what adds up over the rows.
(
    ROWS,  # rows learned
    LOSS,  # h * loss, before learning
    FENCHEL,  # h * (loss(p) + conjugate(c)), for the certificate
    DELTA,  # delta_t = H_t(g_t) - H_t(z_t), scalar metric and center "origin"
    NEGATIVE,  # how many of them are negative
    GUARDED,  # how often the guard took another slope
    SUMS_SIZE,
) = range(7)

# ``work`` of several outputs: vectors of K numbers, filled up to a multiple of OUTPUT_LANES.
OUTPUT_LANES = 16
(
    WORK_P,
    WORK_A,
    WORK_LABEL,
    WORK_VALUE,
    WORK_SLOPE,
    WORK_C,
    WORK_GAP,
    WORK_NORM2,
    WORK_CHANGE,
    WORK_SQUARE,
    WORK_PUSH,
    WORK_RATE,
    WORK_LAM,
    WORK_LOST,
    WORK_SIZE,
) = range(15)

FULL_VECTORS = 3  # of K numbers, in ``work`` of metric "full"

# -------------------------------------------------------------------------------------------------------- Mixture

EXPERTS = 8
HALF = EXPERTS // 2  # experts of each of the two metrics
SECOND = 2  # experts of second order, for data of few columns
TOTAL = EXPERTS + SECOND
SLOTS = 16  # room for them, in whole vectors
SHARING_COST = 0.271  # above the sum of -ln(1 - moved) over all rounds, 0.27072, moved as in ``mixing.share_out``

# A feature's record, of single precision: for each output EXPERTS weights; for each output (G, H); then its statistics.
SUMS_OF_OUTPUT = 2  # G, H
OUTPUT_WIDTH = EXPERTS + SUMS_OF_OUTPUT
VARIANCE, EXPONENT = 0, 1  # v and k
STATISTICS_WIDTH = 6  # v, k, and in double precision n and the mean
RECORD_LINE = 16  # numbers of a cache line, of which a record takes whole ones

# ``powers``: 2^-k stands k places after 2^0.
ZERO_POWER = 1100
POWERS_SIZE = 2201
MOST_EXPONENT = 1040  # of a feature's unit; with what a step may add, ``powers`` has it
MOST_VARIANCE = 1e6  # in that unit, where it is at most 4 and a little more

# ``work``: vectors of the features of a row, then vectors of SLOTS numbers, then the predictions of every output.
ROW_VECTORS = 8  # q, n, mean, inverse, whole, z, first, second
EXPERT_VECTORS = 12  # a, value, slope, ratio, change, room, zeros, found, p, out, room, and one of second order

# ``MixtureState.second``: what the experts of second order have learned, in vectors as wide as columns and the
# intercept are many, filled up to a multiple of EXPERTS. After x of each output and expert come GAMMA and INFO.
SECOND_COLUMNS = 4  # mean, variance, one over the unit, the weight of rows that are not zero there
SECOND_VECTORS = 4  # in ``work``: z, u of both, and q
GAMMA, INFO = range(2)
SECOND_EXTRA = EXPERTS
SECOND_MOST = 100  # columns
SECOND_ROWS = 64  # for each column: after so many rows the two priors make no difference


def second_width(features: int) -> int:
    """Numbers of a vector of the second-order experts."""
    return (features + EXPERTS) // EXPERTS * EXPERTS


def second_priors(features: int) -> tuple[float, float]:
    """The strength of the prior of each, in squared units of the columns: the weak one is stronger for more columns."""
    return 3.0, min(max((features / 60.0) ** 2, 0.03), 1.0)


# ``config``.
(
    MIX_KIND,  # how predictions are mixed: MIX_CONVEX, …
    MIX_LABELS,  # how slopes grow with the labels' scale: PLAIN, …
    MIX_INTERCEPT,
    MIX_DENSE,
    MIX_CLASSES,
    MIX_DELTA,  # where the Huber loss is cut, in the labels' unit
    MIX_WIDTH,  # numbers of a record
    MIX_STRONG,  # the priors of the two experts of second order
    MIX_WEAK,
    MIX_RESIDENT,  # whether the features of dense rows stay in the vectors for the whole block
    MIX_CONFIG_SIZE,
) = range(11)
MIX_CONVEX, MIX_LOGISTIC, MIX_SQUARED = range(3)
PLAIN, PROPORTIONAL, UNIT, CUT = range(4)

# ``clocks``: what all outputs share.
(
    MIX_SEEN,  # cumulated weight
    MIX_ROWS,
    CENTERED,  # how many features are centered
    LOG_WEIGHT,  # sum of ln h over the rows of positive weight
    LARGEST,  # the largest counted weight
    LABEL_MEAN,
    LABEL_VARIANCE,
    LOWEST,
    HIGHEST,
    LABEL_UNIT,  # the power of two that labels are measured in, 0 before one is known (Python's business)
    RESIDENT,  # 1 where dense rows are worked on with all their features, -1 where not, 0 before the first row
    MATRICES,  # how many matrices the experts of second order have: 2, later 1, and 0 where there are no such experts
    MIXING_RATE,  # of the shares, for the squared loss; 0 before there is one
    SECOND_SEEN,  # the counted weight of the rows that they have seen
    SHARDS,  # how many learners were merged to make this one, over all merges (Python's business)
    MIX_CLOCKS_SIZE,
) = range(16)

# ``sums``, one row an output; those of experts have TOTAL columns.
EVIDENCE = 0  # of each expert: counted weight times loss; inf where it is retired
EXPERT_LOSS = EVIDENCE + TOTAL  # of each expert: weight times loss
MIXED_LOSS = EXPERT_LOSS + TOTAL  # the same of the mixture
COUNTED_LOSS = MIXED_LOSS + 1  # counted weight times the mixture's loss
MIXING_COST = COUNTED_LOSS + 1  # of AdaHedge: what the mixture lost to mixing
COUNTED_EXPERT_LOSS = MIXING_COST + 1  # of each expert: counted weight times loss; evidence keeps labels in their range
MIX_FENCHEL = COUNTED_EXPERT_LOSS + TOTAL  # weight times slope times prediction of the mixture: C of its certificate
MERGED = MIX_FENCHEL + 1  # what a merge has added to the bound on the regret against the best expert
SHARES = MERGED + 1  # of each expert
MIX_SUMS_SIZE = SHARES + TOTAL

# -------------------------------------------------------------------------------------- the parsers of LIBSVM and VW

# ``state``: what a stretch of text was found to be.
(
    PARSE_RESULT,  # DONE, or what the parser stopped at
    PARSE_STOPPED,  # where
    PARSE_ROWS,
    PARSE_PAIRS,
    PARSE_ODD,  # tokens that are left to Python's float
    PARSE_DISORDER,  # indices that are not larger than the one before them in their row
    PARSE_LINES,
    PARSE_SMALLEST,  # the smallest index and its line, the largest and its line
    PARSE_SMALLEST_LINE,
    PARSE_LARGEST,
    PARSE_LARGEST_LINE,
    PARSE_NAMES,  # how many names of features are noted
    PARSE_WEIGHTED,  # how many rows say their weight
    PARSE_SIZE,
) = range(14)
DONE, BAD_LABEL, BAD_INDEX, BAD_VALUE, NO_COLON, BAD_QUERY, BAD_WEIGHT = range(7)
BAD_BASE, BAD_SCALE, HAS_BASE, TOO_MANY_WORDS, NO_BAR, NO_NAMESPACE, TAB_IN_LABEL, LONE_RETURN = range(7, 15)

# ``odd``: a row for each such token.
ODD_KIND, ODD_INDEX, ODD_START, ODD_END, ODD_SIZE = range(5)
ODD_LABEL, ODD_VALUE, ODD_WEIGHT, ODD_SCALE, ODD_BASE = range(5)

# ---------------------------------------------------------------------------------------------- the parser of tables

# What a column of a table is.
CELL_DROPPED, CELL_NUMBER, CELL_TEXT, CELL_LABEL, CELL_LABEL_TEXT, CELL_WEIGHT = range(6)

# ``state`` of a stretch of CSV, and of JSON lines.
(
    CSV_RESULT,  # CSV_DONE, or what the parser stopped at
    CSV_STOPPED,  # where
    CSV_BEGIN,  # where the row begins that it stopped in
    CSV_COLUMN,  # in which column
    CSV_ROWS,
    CSV_FEATURES,
    CSV_ODD,  # tokens that are left to Python
    CSV_LINES,
    CSV_MISSING,  # empty cells
    CSV_LABELS,  # different labels that are text
    CSV_WEIGHTED,  # how many rows of JSON say their weight
    CSV_SIZE,
) = range(12)
CSV_DONE, CSV_TOO_FEW, CSV_TOO_MANY, CSV_OPEN_QUOTE, CSV_AFTER_QUOTE, CSV_MANY_LABELS, CSV_NO_WEIGHT = range(7)
JSON_OTHER = 7  # there is something in it that is left to Python
BATCH = 64
"""Names that are hashed together: stores and loads of so many do not meet, as those of sixteen would."""
STOPS_OF = 4096
"""Bytes of which it is found at once where names may end."""
NAMES_STOPS = 4 * BATCH
"""Where these places begin in the words that a parser of names works in, and how many words there are in all: see
``kernels.short_names``."""
NAMES_SIZE = NAMES_STOPS + STOPS_OF + 8
CSV_TABLE = 4096  # places for labels that are text, of which half are used

# ``odd``: kind (CELL_…), column, index, start, end of a token for Python: a number, or the text of a new feature.
CSV_ODD_SIZE = 5
SHRUNK_FAR = 200.0
"""l2 times the sum of all rates from which it is counted anew, where weights keep a factor e to the power of it."""
