"""What every compiled function takes, in plain words: read by Numba when it compiles, by Python when it calls.

Needs no Numba. A word is a NumPy type code for a number (``i8``, ``u8``, ``b1``), with ``[]`` after it for a contiguous
vector and ``[,]`` for a contiguous matrix; ``const`` before it says that it is read only. In ``{data}`` and
``{indices}`` kernels differ by the types of the rows that they read: each combination is a function of its own.
"""

from __future__ import annotations

from typing import NamedTuple

DATA = ("f8", "f4")
INDICES = ("u4", "u8")


class Signature(NamedTuple):
    """The types of the arguments, and whether a number is returned."""

    arguments: tuple[str, ...]
    returns: bool = False


_VECTOR, _MATRIX, _REALS = "f8[]", "f8[,]", "const f8[]"
_UNSIGNED, _PLACES = "const u8[]", "const i8[]"
_POSITIONS = "const {indices}[]"
_ROWS = ("const {data}[]", _POSITIONS, _UNSIGNED)
_TARGETS = (_PLACES, _REALS, _REALS)  # order, y, weight
_LOSS = ("i8", "i8", _MATRIX, _REALS)  # step, conjugate, params, eta0
_STATE = (_VECTOR, _MATRIX, _MATRIX, _VECTOR)  # table, clocks, sums, dual
_END = (_REALS, _VECTOR, _VECTOR, _VECTOR)  # config, work, predictions, losses
_LEARNER = (*_LOSS, *_ROWS, *_TARGETS, *_STATE, *_END)
_LAZY = (*_LOSS, *_ROWS, *_TARGETS, *_STATE, _VECTOR, _VECTOR, *_END)  # stamps or drift, and paths
_TABLES = ("f4[]", _VECTOR, _MATRIX, _VECTOR, "u8[]", _VECTOR, _VECTOR)
# table twice, sums, clocks, centered, dual, second
_ROOM = ("u8[]", _VECTOR, "f4[]")
_JOURNAL = ("u1[]", _VECTOR, "u8[]")

KERNELS: dict[str, Signature] = {
    "learn_mixture": Signature(
        (
            *("i8", _MATRIX, *_ROWS, *_TARGETS, *_TABLES),
            *(_REALS, _REALS, _REALS),  # config, rates, powers
            *(*_ROOM, *_JOURNAL, _VECTOR, _VECTOR),
        ),
        returns=True,
    ),
    "learn": Signature(_LEARNER, returns=True),
    "learn_plain": Signature(_LEARNER, returns=True),
    "learn_outputs": Signature(_LEARNER, returns=True),
    "learn_composite": Signature(_LAZY, returns=True),
    "learn_penalised": Signature(_LAZY, returns=True),
    "learn_shrinking": Signature(_LAZY, returns=True),
    "learn_averaged": Signature(_LAZY, returns=True),
    "learn_full": Signature((*_LOSS, *_ROWS, *_TARGETS, *_STATE, _VECTOR, *_END), returns=True),
    "predict": Signature((*_ROWS, _REALS, "b1", _VECTOR)),
    "inspect": Signature((_POSITIONS, _UNSIGNED, "u8"), returns=True),
    "number_columns": Signature((_POSITIONS, "u4[]", "u4[]", "i8", "u4[]"), returns=True),
    "row_keys": Signature((*_ROWS, _UNSIGNED, "b1", _VECTOR, "u8[]", "i8[]")),
    "same_rows": Signature((*_ROWS, _REALS, _PLACES, "b1", "u1[]")),
    "visit_places": Signature((_UNSIGNED, _PLACES, _PLACES, "u8", "u8[]", "i8[]")),
    "sort_keys": Signature(("u8[]", "i8[]", "u8[]", "i8[]", "i8[,]")),
    "evaluate": Signature(("i8", _MATRIX, _REALS, _REALS, _REALS, _VECTOR)),
    "conjugates": Signature(("i8", _VECTOR, _REALS, _REALS, _VECTOR)),
    "keep_event": Signature(
        (
            *("const u4[]", _UNSIGNED, _VECTOR, "u8", _VECTOR, "u8"),  # the row, table and dual
            *(_VECTOR, _VECTOR, "u8[]", "u8", _VECTOR, "b1"),
        ),
        returns=True,
    ),
    "predict_event": Signature(
        (
            *(_REALS, "const u4[]", _UNSIGNED, "const f4[]", _REALS, _MATRIX, _REALS),  # the row, and up to clocks
            *(_UNSIGNED, "i8", "i8", "u8", _REALS, _VECTOR, _VECTOR),
        ),
    ),
    "hash_names": Signature(("const u1[]", _PLACES, "const u4[]", "u4[]")),
    "settle": Signature(
        (
            *("const u4[]", _REALS, "const u2[]", _PLACES),  # hashes, values, slots, starts
            *(_PLACES, "const i8[,]", "i8"),  # meets, terms, bits
            *("u4[]", _VECTOR, "u8[,]", "u4[]", "i8[]", "i8[]"),  # room to work in
            *("i8[]", "u4[]", _VECTOR),
        ),
        returns=True,
    ),
    "parse": Signature(
        ("const u1[]", "i8[]", _VECTOR, _VECTOR, "i4[]", "i8[]", "i8[]", "i8[]", _VECTOR, "i8[,]", "u8[]", "b1")
    ),
    "parse_csv": Signature(
        (
            *("const u1[]", "i8[]", _PLACES, _PLACES),  # text, state, roles, slots
            *("const u1[]", _PLACES, "u8[]"),  # names, their ends, heads
            *("i8", "b1", "i8", "u1[]"),  # delimiter, dense, bits, known
            *(_VECTOR, _VECTOR, "i4[]", "i8[]"),  # y, weight, lines, starts
            *("u4[]", _VECTOR, "u2[]"),  # hashes, values, features
            *("u1[]", "u1[]", "i8[]", "i8[]", "i8[,]"),  # scratch, labels, their ends, table, odd
        )
    ),
    "ends_quoted": Signature(("const u1[]", "i8"), returns=True),
    "parse_json": Signature(
        (
            *("const u1[]", "i8[]", "const u1[]", _PLACES),  # text, state, keys and their ends
            *(_PLACES, _PLACES, "i8[]", "i8[]"),  # roles, slots, follows, stamps
            *("const u1[]", _PLACES, "u8[]"),  # names, their ends, heads
            *("b1", "i8", "u1[]"),  # dense, bits, known
            *(_VECTOR, _VECTOR, "i4[]", "i8[]"),  # y, weight, lines, starts
            *("u4[]", _VECTOR, "u2[]"),  # hashes, values, features
            *("i8[]", "u8[]", _VECTOR),  # there, cells, amounts
            *("u1[]", "u1[]", "i8[]", "i8[]", "i8[,]"),  # scratch, labels, their ends, table, odd
        )
    ),
    "parse_vw": Signature(
        (
            *("const u1[]", "const u4[]", "const u1[]"),  # text, letters, known
            *("i8[]", _VECTOR, _VECTOR, "i4[]", "i8[]"),  # state, y, weight, lines, starts
            *("u4[]", _VECTOR, "u2[]", "u1[]"),  # hashes, values, slots, seen
            *(
                "i8[,]",
                "i8[,]",
                "u4[]",
                "u8[]",
                "i8",
                "b1",
                "b1",
            ),  # odd, names, lately, work, bits, hash_all, with_base
        )
    ),
}

HAND_OVER = "hand_over"
"""From a Python call to a kernel: see ``kernels.handover``."""
LOSSES = (
    *("squared", "absolute", "quantile", "huber", "poisson", "logistic", "exponential", "hinge", "squared_hinge"),
    *("logarithmic", "hellinger", "custom"),
)
"""Losses with a step and a conjugate of their own."""


def variant(kernel: str, data: str, indices: str) -> str:
    """The name of a kernel for rows of these types, such as ``predict-f8-u4``."""
    if data not in DATA or indices not in INDICES:
        raise ValueError(f"no kernel is made for values {data!r} and indices {indices!r}")
    words = " ".join(KERNELS[kernel].arguments)
    chosen = [name for field, name in (("{data}", data), ("{indices}", indices)) if field in words]
    return "-".join([kernel, *chosen])


def signature(name: str) -> Signature:
    """What the function of such a name takes."""
    kernel, *chosen = name.split("-")
    data = next((c for c in chosen if c in DATA), "")
    indices = next((c for c in chosen if c in INDICES), "")
    plain = KERNELS[kernel]
    return plain._replace(arguments=tuple(word.format(data=data, indices=indices) for word in plain.arguments))


def every_name() -> list[str]:
    """All the functions there are to compile; those that take longest come first."""
    kernels = [variant(name, data, indices) for name in KERNELS for data in DATA for indices in INDICES]
    losses = [f"{part}-{loss}" for part in ("step", "conjugate") for loss in LOSSES]
    return [*dict.fromkeys(kernels), *losses, HAND_OVER]
