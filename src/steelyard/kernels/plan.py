"""A call of a kernel in words of 64 bits: what its C function takes, and how Python's arguments become that. No Numba.

The C function takes WORDS an argument: the address of an array and two dimensions, or a number. A *plan* is what
``handover.hand_over`` knows of a kernel: the positions below, then PLAN_ARGUMENT words an argument: the address of
the dtype that it must have, flags, and the number of dimensions. For a whole number, 0 or more, they are zeros.
"""

from __future__ import annotations

WORDS = 3
MOST_WORDS = 128  # of one call

(
    PLAN_COUNT,  # arguments
    PLAN_TUPLE_SIZE,  # where a tuple has its size, in bytes from where it starts
    PLAN_TUPLE_ITEMS,  # where it has its items
    PLAN_TYPE,  # where an object has its type
    PLAN_NDARRAY,  # the address of the type of arrays
    PLAN_FIELDS,  # where the fields of an array start
    PLAN_INT,  # the address of the type of whole numbers
    PLAN_BOOL,  # and of truth values
    PLAN_SHIFT,  # a number's size is in the word after its head, this many bits up; its digits come next
    PLAN_HEAD,
) = range(10)
PLAN_ARGUMENT = 3
DIGIT = 30  # bits of a digit, of which each takes 32

# Fields of an array (``PyArrayObject``), in bytes after PLAN_FIELDS, and two of its flags.
FIELD_DATA, FIELD_DIMENSION_COUNT, FIELD_DIMENSIONS, FIELD_DTYPE, FIELD_FLAGS = 0, 8, 16, 40, 48
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

# What comes back, beside what kernels return, which is -1 or more.
REFUSED = -(2**62)  # and the place of an argument that is not as it must be: nothing was done
FAILED = -(2**63)  # the function raised, which none does
