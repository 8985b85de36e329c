"""Vectors of numbers, for banks: exponential, logarithm, the logistic step, and rows of eight weights.

The compiler turns no loop that calls ``exp`` into vectors, so the few loops that a bank lives in are written as vectors
here. :class:`Lanes` lets LLVM code read like arithmetic; where the machine's own vectors are shorter, LLVM splits it.
A mixture has eight lanes. A bank takes sixteen, two vectors side by side, of which one goes on where the other waits.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from steelyard._compile import f8

LANES = 8
BANK = 16
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
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"{name}.v{self.type.count}f64")
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

    def __abs__(self) -> Lanes:
        return self._call("llvm.fabs")

    def times_plus(self, factor: Any, term: Any) -> Lanes:
        """self * factor + term, in one operation where the machine has it."""
        return self._call("llvm.fmuladd", factor, term)

    def where(self, sign: str, bound: Any, yes: Any, no: Any) -> Lanes:
        """``yes`` in the lanes where ``self <sign> bound``, and ``no`` in the others."""
        chosen = self.builder.fcmp_ordered(sign, self.value, self.like(bound))
        return self._new(self.builder.select(chosen, self.like(yes), self.like(no)))

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


def _series(x: Lanes, coefficients: list[float]) -> Lanes:
    """A polynomial in x, even and odd powers side by side."""
    square = x * x
    halves = []
    for part in (coefficients[0::2], coefficients[1::2]):
        total = Lanes(x.builder, x.like(part[-1]))
        for coefficient in reversed(part[:-1]):
            total = total.times_plus(square, coefficient)
        halves.append(total)
    return halves[1].times_plus(x, halves[0])


def _exponential(x: Lanes) -> tuple[Lanes, Lanes]:
    """(q, scale) with e^x = scale * (1 + q), for x in [-708, 709]; q is e^x - 1 itself where |x| < 0.34."""
    shifted = x.times_plus(1.0 / math.log(2.0), _MAGIC)
    n = shifted - _MAGIC
    r = n.times_plus(-_LN2_LOW, n.times_plus(-_LN2_HIGH, x))
    q = (r * r).times_plus(_series(r, _EXP), r)
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
    return n.times_plus(_LN2_HIGH, n.times_plus(_LN2_LOW, f * _series(f * f, _LOG)))


def _rough_log(x: Lanes) -> Lanes:
    """ln x to a few thousandths, without a division."""
    n, mantissa = _split(x)
    return n.times_plus(math.log(2.0), _series(mantissa - 1.0, [0.0, 1.0, -0.5, 1 / 3, -0.25, 0.2]))


def log1p(x: Lanes) -> Lanes:
    """ln(1 + x) for x >= 0, with the rounding of 1 + x made good."""
    u = 1.0 + x
    return log(u) + (x - (u - 1.0)) / u


def logistic(p: Lanes, y: Lanes, a: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """(value, sigma, kappa, v) of the logistic loss: sigma = -y*slope, and v = -y*c of the IWA update.

    For |p| <= 30 and a in [1e-100, 1e8]. The travel D solves sigma*D + kappa*(e^D - 1) = a*sigma; its two upper bounds
    are within two fifths of it, from there two steps of Halley's are within 4e-4, and one of fifth order to 1e-13.
    """
    m = y * p
    e = exp(0.0 - abs(m))
    value = log1p(e) + (0.0 - m).at_least(0.0)
    more = 1.0 / (1.0 + e)
    less = e * more
    sigma, kappa = m.where(">", 0.0, less, more), m.where(">", 0.0, more, less)
    tau = a * sigma
    d = _rough_log(1.0 + tau / kappa).at_most(tau)
    for order in (3, 3, 5):
        x = expm1(d)
        f = sigma.times_plus(d, kappa.times_plus(x, 0.0 - tau))
        slope = kappa.times_plus(x, 1.0)
        curve = kappa.times_plus(x, kappa)
        if order == 3:
            d = d - f * slope / slope.times_plus(slope, -0.5 * curve * f)
        else:
            inverse = 1.0 / slope
            r, q = f * inverse, curve * inverse
            fourth = q * q.times_plus(q * 0.625 - 5 / 12, 1 / 24)
            d = d - r * r.times_plus(0.5 * q + r * (q * (0.5 * q - 1 / 6) + r * fourth), 1.0)
    return value, sigma, kappa, (d / a).at_most(sigma)


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _load(builder: Any, data: Any, index: Any, lanes: int = LANES) -> Lanes:
    place = builder.bitcast(builder.gep(data, [index]), ir.VectorType(_double, lanes).as_pointer())
    return Lanes(builder, builder.load(place, align=8))


def _store(builder: Any, data: Any, index: Any, what: Lanes) -> None:
    builder.store(what.value, builder.bitcast(builder.gep(data, [index]), what.type.as_pointer()), align=8)


def _spread(builder: Any, number: Any) -> Lanes:
    """A number in every lane."""
    first = builder.insert_element(ir.Constant(_doubles, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return Lanes(builder, builder.shuffle_vector(first, ir.Constant(_doubles, ir.Undefined), zeros))


@intrinsic
def exp_lanes(typingctx: Any, x: Any, at: Any) -> Any:
    """``x[at : at+8] = e^x``, in place."""
    signature = types.void(x, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = _data(context, builder, sig.args[0], args[0])
        _store(builder, data, args[1], exp(_load(builder, data, args[1])))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def decay_lanes(typingctx: Any, a: Any, at: Any, ratio: Any) -> Any:
    """``ratio = (1 - e^-a) / a`` in eight lanes, for a >= 0."""
    signature = types.void(a, types.intp, ratio)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, target = (_data(context, builder, sig.args[i], args[i]) for i in (0, 2))
        a = _load(builder, source, args[1])
        tiny = 1e-290
        safe = a.at_least(tiny)
        ratio = (0.0 - expm1((0.0 - safe).at_least(-708.0))) / safe
        _store(builder, target, args[1], a.where("<", tiny, 1.0, ratio))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def logistic_lanes(typingctx: Any, p: Any, y: Any, a: Any, at: Any, value: Any, sigma: Any, ratio: Any) -> Any:
    """Eight logistic steps with one label: the values, ``sigma = -y*slope`` and ``ratio = c/slope``."""
    signature = types.void(p, f8, a, types.intp, value, sigma, ratio)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = {i: _data(context, builder, sig.args[i], args[i]) for i in (0, 2, 4, 5, 6)}
        at = args[3]
        p, a = _load(builder, places[0], at), _load(builder, places[2], at)
        value, sigma, _, v = logistic(p, _spread(builder, args[1]), a)
        _store(builder, places[4], at, value)
        _store(builder, places[5], at, sigma)
        _store(builder, places[6], at, v / sigma)
        return context.get_dummy_value()

    return signature, codegen


def _load_singles(builder: Any, data: Any, index: Any) -> Lanes:
    place = builder.bitcast(builder.gep(data, [index]), _singles.as_pointer())
    return Lanes(builder, builder.fpext(builder.load(place, align=4), _doubles))


def _entropy(v: Lanes) -> Lanes:
    """v ln v + (1-v) ln(1-v) for v in (0, 1); 1-v is kept normal, where its logarithm does not matter any more."""
    rest = (1.0 - v).at_least(1e-300)
    return v * log(v.at_least(1e-300)) + rest * (log(rest) + ((1.0 - rest) - v) / rest)


def _logistic_gap(value: Lanes, m: Lanes, sigma: Lanes, kappa: Lanes, v: Lanes) -> Lanes:
    """value + v*m + entropy(v), and its series where v is near sigma."""
    short = sigma - v

    def series(t: Lanes) -> Lanes:
        u = t * t
        return u * (_series(u, [0.5, 1 / 12, 1 / 30, 1 / 56]) - t * _series(u, [1 / 6, 0.05, 1 / 42]))

    near = sigma * series(0.0 - short / sigma) + kappa * series(short / kappa)
    far = value + v * m + _entropy(v)
    return short.where("<", 0.02 * sigma.at_most(kappa), near, far).at_least(0.0)


def _logistic_bank(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    places = {i: _data(context, builder, sig.args[i], args[i]) for i in range(len(args)) if i != 3}
    at = args[3]
    p, y, a = (_load(builder, places[i], at, BANK) for i in range(3))
    value, sigma, kappa, v = logistic(p, y, a)
    away = 0.0 - y
    _store(builder, places[4], at, value)
    _store(builder, places[5], at, away * sigma)
    _store(builder, places[6], at, away * v)
    if len(args) > 7:
        _store(builder, places[7], at, _logistic_gap(value, y * p, sigma, kappa, v))
    return context.get_dummy_value()


@intrinsic
def logistic_bank(typingctx: Any, p: Any, y: Any, a: Any, at: Any, value: Any, slope: Any, c: Any) -> Any:
    """Sixteen logistic IWA steps, each with its label: values, slopes and c."""
    return types.void(p, y, a, types.intp, value, slope, c), _logistic_bank


@intrinsic
def logistic_bank_gap(typingctx: Any, p: Any, y: Any, a: Any, at: Any, value: Any, slope: Any, c: Any, gap: Any) -> Any:
    """The same, and the gaps."""
    return types.void(p, y, a, types.intp, value, slope, c, gap), _logistic_bank


@intrinsic
def squared_bank(typingctx: Any, p: Any, y: Any, a: Any, at: Any, value: Any, slope: Any, c: Any, gap: Any) -> Any:
    """Sixteen squared IWA steps."""
    signature = types.void(p, y, a, types.intp, value, slope, c, gap)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = {i: _data(context, builder, sig.args[i], args[i]) for i in (0, 1, 2, 4, 5, 6, 7)}
        at = args[3]
        p, y, a = (_load(builder, places[i], at, BANK) for i in range(3))
        slope = p - y
        c = slope * ((0.0 - expm1((0.0 - a).at_least(-708.0))) / a)
        _store(builder, places[4], at, 0.5 * slope * slope)
        _store(builder, places[5], at, slope)
        _store(builder, places[6], at, c)
        _store(builder, places[7], at, 0.5 * (slope - c) * (slope - c))
        return context.get_dummy_value()

    return signature, codegen


def _halves(builder: Any, first: Any, second: Any) -> Lanes:
    """The one number in four lanes, the other in four."""
    pattern = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * (LANES // 2) + [LANES] * (LANES // 2))
    return Lanes(
        builder, builder.shuffle_vector(_spread(builder, first).value, _spread(builder, second).value, pattern)
    )


@intrinsic
def dot_lanes(typingctx: Any, table: Any, offsets: Any, shift: Any, q: Any, z: Any, size: Any, out: Any) -> Any:
    """``out[:8] += sum over e < size of factor * table[offsets[e] + shift :][:8]``; the table is of single precision.

    The factor is ``q[e]`` in four lanes and ``z[e]`` in four.
    """
    signature = types.void(table, offsets, types.uint64, q, z, types.intp, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, places, firsts, seconds, target = (_data(context, builder, sig.args[i], args[i]) for i in (0, 1, 3, 4, 6))
        start = ir.Constant(_word, 0)
        total = cgutils.alloca_once_value(builder, _load(builder, target, start).value)
        with cgutils.for_range(builder, args[5]) as loop:
            factor = _halves(builder, *(builder.load(builder.gep(each, [loop.index])) for each in (firsts, seconds)))
            at = builder.add(builder.load(builder.gep(places, [loop.index])), args[2])
            weights = _load_singles(builder, data, at)
            builder.store(weights.times_plus(factor, Lanes(builder, builder.load(total))).value, total)
        _store(builder, target, start, Lanes(builder, builder.load(total)))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_lanes(typingctx: Any, table: Any, at: Any, change: Any, first: Any, second: Any) -> Any:
    """``table[at:][:8] += change[:8] * factor``, where the factor is ``first`` in four lanes and ``second`` in four.

    Kept within 1e30 of zero, so that single precision does not overflow.
    """
    signature = types.void(table, types.uint64, change, f8, f8)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, changes = (_data(context, builder, sig.args[i], args[i]) for i in (0, 2))
        change = _load(builder, changes, ir.Constant(_word, 0))
        moved = change.times_plus(_halves(builder, *args[3:]), _load_singles(builder, data, args[1]))
        place = builder.bitcast(builder.gep(data, [args[1]]), _singles.as_pointer())
        builder.store(builder.fptrunc(moved.at_most(1e30).at_least(-1e30).value, _singles), place, align=4)
        return context.get_dummy_value()

    return signature, codegen
