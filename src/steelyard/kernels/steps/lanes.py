"""Vectors of numbers: arithmetic, exponential and logarithm, and rows of eight weights.

The compiler turns no loop that calls ``exp`` into vectors, so the few loops that need it are written as vectors.
:class:`Lanes` lets LLVM code read like arithmetic; where the machine's own vectors are shorter, LLVM splits it. A
mixture has eight lanes. Several outputs take sixteen, two vectors side by side: one goes on where the other waits.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from steelyard.kernels.layout import EXPERTS, OUTPUT_LANES

LANES = EXPERTS
SIXTEEN = OUTPUT_LANES
_double = ir.DoubleType()
_word = ir.IntType(64)
_doubles = ir.VectorType(_double, LANES)
_singles = ir.VectorType(ir.FloatType(), LANES)

_MAGIC = 1.5 * 2.0**52  # adding it leaves the nearest integer in the low bits
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_EXP = [1.0 / math.factorial(n) for n in range(2, 15)]  # e^r = 1 + r + r^2 (1/2 + r/6 + ...)
_LOG = [2.0 / (2 * n + 1) for n in range(12)]  # ln((1+f)/(1-f)) = f (2 + 2 f^2/3 + 2 f^4/5 + ...)


class Lanes:
    """Some numbers in the making: arithmetic on it writes LLVM code."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def like(self, other: Any) -> Any:
        """The LLVM value of ``other``: a vector, or a number in every lane."""
        return other.value if isinstance(other, Lanes) else ir.Constant(self.type, [float(other)] * self.type.count)

    @property
    def type(self) -> Any:
        return self.value.type

    def integers(self, number: int) -> Any:
        """An integer in every lane."""
        return ir.Constant(ir.VectorType(_word, self.type.count), [number] * self.type.count)

    def _new(self, value: Any) -> Lanes:
        return Lanes(self.builder, value)

    def _call(self, name: str, *others: Any) -> Lanes:
        arguments = [self.value, *map(self.like, others)]
        kind = ir.FunctionType(self.type, [self.type] * len(arguments))
        bits = 32 if self.type.element == ir.FloatType() else 64
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"{name}.v{self.type.count}f{bits}")
        return self._new(self.builder.call(function, arguments))

    def __add__(self, other: Any) -> Lanes:
        return self._new(self.builder.fadd(self.value, self.like(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Lanes:
        return self._new(self.builder.fsub(self.value, self.like(other)))

    def __rsub__(self, other: Any) -> Lanes:
        return self._new(self.builder.fsub(self.like(other), self.value))

    def __mul__(self, other: Any) -> Lanes:
        return self._new(self.builder.fmul(self.value, self.like(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Lanes:
        return self._new(self.builder.fdiv(self.value, self.like(other)))

    def __rtruediv__(self, other: Any) -> Lanes:
        return self._new(self.builder.fdiv(self.like(other), self.value))

    def __neg__(self) -> Lanes:
        return self._new(self.builder.fneg(self.value))

    def __abs__(self) -> Lanes:
        return self._call("llvm.fabs")

    def times_plus(self, factor: Any, term: Any) -> Lanes:
        """self * factor + term, in one operation where the machine has it."""
        return self._call("llvm.fmuladd", factor, term)

    def where(self, sign: str, bound: Any, yes: Any, no: Any) -> Lanes:
        """``yes`` in the lanes where ``self <sign> bound``, and ``no`` in the others."""
        chosen = self.builder.fcmp_ordered(sign, self.value, self.like(bound))
        return self._new(self.builder.select(chosen, self.like(yes), self.like(no)))

    def root(self) -> Lanes:
        return self._call("llvm.sqrt")

    def at_most(self, bound: Any) -> Lanes:
        return self.where("<", bound, self, bound)

    def at_least(self, bound: Any) -> Lanes:
        return self.where(">", bound, self, bound)

    @property
    def bits(self) -> Any:
        return self.builder.bitcast(self.value, ir.VectorType(_word, self.type.count))

    def from_bits(self, bits: Any) -> Lanes:
        return self._new(self.builder.bitcast(bits, self.type))


def _double_bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def series(x: Lanes, coefficients: list[float]) -> Lanes:
    """A polynomial in x: neighbours are joined two by two, so that few of them wait for others."""
    terms = [Lanes(x.builder, x.like(coefficient)) for coefficient in coefficients]
    power = x
    while len(terms) > 1:
        single = terms[len(terms) // 2 * 2 :]
        terms = [high.times_plus(power, low) for low, high in zip(terms[0::2], terms[1::2], strict=False)] + single
        power = power * power
    return terms[0]


def _exponential(x: Lanes) -> tuple[Lanes, Lanes]:
    """(q, scale) with e^x = scale * (1 + q), for x in [-708, 709]; q is e^x - 1 itself where |x| < 0.34."""
    shifted = x.times_plus(1.0 / math.log(2.0), _MAGIC)
    n = shifted - _MAGIC
    r = n.times_plus(-_LN2_LOW, n.times_plus(-_LN2_HIGH, x))
    q = (r * r).times_plus(series(r, _EXP), r)
    b = x.builder
    scale = x.from_bits(b.shl(b.add(shifted.bits, x.integers(1023)), x.integers(52)))
    return q, scale


def exp(x: Lanes) -> Lanes:
    """e^x; below -708 it is e^-708."""
    q, scale = _exponential(x.at_least(-708.0).at_most(709.0))
    return scale.times_plus(q, scale)


def expm1(x: Lanes) -> Lanes:
    """e^x - 1 for x in [-708, 709]."""
    q, scale = _exponential(x)
    return scale.times_plus(q, scale - 1.0)


def _split(x: Lanes) -> tuple[Lanes, Lanes]:
    """(n, m) with x = 2^n m and m between sqrt(1/2) and sqrt(2)."""
    b = x.builder
    exponent = b.ashr(b.sub(x.bits, x.integers(_double_bits(math.sqrt(0.5)))), x.integers(52))
    mantissa = x.from_bits(b.sub(x.bits, b.shl(exponent, x.integers(52))))
    return x.from_bits(b.add(exponent, x.integers(_double_bits(_MAGIC)))) - _MAGIC, mantissa


def log(x: Lanes) -> Lanes:
    """ln x for a normal x > 0."""
    n, mantissa = _split(x)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    return n.times_plus(_LN2_HIGH, n.times_plus(_LN2_LOW, f * series(f * f, _LOG)))


def rough_log(x: Lanes) -> Lanes:
    """ln x to a few thousandths, without a division."""
    n, mantissa = _split(x)
    return n.times_plus(math.log(2.0), series(mantissa - 1.0, [0.0, 1.0, -0.5, 1 / 3, -0.25, 0.2]))


def log1p(x: Lanes, inverse: Lanes) -> Lanes:
    """ln(1 + x) for x >= 0 and inverse = 1/(1 + x), with the rounding of 1 + x made good."""
    u = 1.0 + x
    return (x - (u - 1.0)).times_plus(inverse, log(u))


def array_data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Where the numbers of an array are."""
    return context.make_array(kind)(context, builder, array).data


def load(builder: Any, data: Any, index: Any, lanes: int = LANES) -> Lanes:
    """Several numbers of an array, from ``index`` on."""
    place = builder.bitcast(builder.gep(data, [index]), ir.VectorType(_double, lanes).as_pointer())
    return Lanes(builder, builder.load(place, align=8))


def store(builder: Any, data: Any, index: Any, what: Lanes) -> None:
    """Write them to an array, from ``index`` on."""
    builder.store(what.value, builder.bitcast(builder.gep(data, [index]), what.type.as_pointer()), align=8)


def spread(builder: Any, number: Any) -> Lanes:
    """A number in every lane."""
    first = builder.insert_element(ir.Constant(_doubles, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return Lanes(builder, builder.shuffle_vector(first, ir.Constant(_doubles, ir.Undefined), zeros))


def total_of(numbers: Lanes) -> Any:
    """The sum over the lanes, by halves."""
    builder, value = numbers.builder, numbers.value
    count = numbers.type.count
    while count > 1:
        count //= 2
        kind = ir.VectorType(ir.IntType(32), count)
        low, high = (ir.Constant(kind, list(range(start, start + count))) for start in (0, count))
        value = builder.fadd(builder.shuffle_vector(value, value, low), builder.shuffle_vector(value, value, high))
    return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))


def spread_pair(builder: Any, first: Any, second: Any) -> Lanes:
    """A number in the first half of the lanes, another one in the other half."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    halves = ir.Constant(kind, [0] * (LANES // 2) + [LANES] * (LANES // 2))
    left, right = spread(builder, first), spread(builder, second)
    return Lanes(builder, builder.shuffle_vector(left.value, right.value, halves))


def in_all(builder: Any, *conditions: Any) -> Any:
    """Whether conditions hold in every one of eight lanes."""
    total = conditions[0]
    for condition in conditions[1:]:
        total = builder.and_(total, condition)
    mask = ir.IntType(LANES)
    return builder.icmp_unsigned("==", builder.bitcast(total, mask), ir.Constant(mask, (1 << LANES) - 1))


@intrinsic
def dot_eight(typingctx: Any, x: Any, y: Any) -> Any:
    """The sum of x y over the first eight numbers of both."""
    signature = types.float64(x, y)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right = (array_data(context, builder, sig.args[i], args[i]) for i in range(2))
        zero = ir.Constant(_word, 0)
        return total_of(load(builder, left, zero) * load(builder, right, zero))

    return signature, codegen


@intrinsic
def means_eight(typingctx: Any, pi: Any, x: Any) -> Any:
    """Over the first eight numbers: the sum of pi x, that of pi, and the mean of x."""
    signature = types.UniTuple(types.float64, 3)(pi, x)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = (array_data(context, builder, sig.args[i], args[i]) for i in range(2))
        pi, x = (load(builder, place, ir.Constant(_word, 0)) for place in places)
        values = [total_of(numbers) for numbers in (pi * x, pi, x * (1.0 / LANES))]
        return context.make_tuple(builder, sig.return_type, values)

    return signature, codegen


@intrinsic
def exp_lanes(typingctx: Any, x: Any, at: Any) -> Any:
    """``x[at : at+8] = e^x``, in place."""
    signature = types.void(x, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = array_data(context, builder, sig.args[0], args[0])
        store(builder, data, args[1], exp(load(builder, data, args[1])))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def decay_lanes(typingctx: Any, a: Any, at: Any, ratio: Any) -> Any:
    """``ratio = (1 - e^-a) / a`` in eight lanes, for a >= 0."""
    signature = types.void(a, types.intp, ratio)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, target = (array_data(context, builder, sig.args[i], args[i]) for i in (0, 2))
        a = load(builder, source, args[1])
        tiny = 1e-290
        safe = a.at_least(tiny)
        ratio = (0.0 - expm1((0.0 - safe).at_least(-708.0))) / safe
        store(builder, target, args[1], a.where("<", tiny, 1.0, ratio))
        return context.get_dummy_value()

    return signature, codegen


def load_singles(builder: Any, data: Any, index: Any) -> Lanes:
    """Eight numbers of an array of single precision."""
    place = builder.bitcast(builder.gep(data, [index]), _singles.as_pointer())
    return Lanes(builder, builder.fpext(builder.load(place, align=4), _doubles))


def store_singles(builder: Any, data: Any, index: Any, what: Lanes) -> None:
    """Write them to an array of single precision."""
    place = builder.bitcast(builder.gep(data, [index]), _singles.as_pointer())
    builder.store(builder.fptrunc(what.value, _singles), place, align=4)
