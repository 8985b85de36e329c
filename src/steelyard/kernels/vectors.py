"""The features of a row side by side: what a mixture does to them, eight at a time.

The statistics of a row's features are read from their records (``features``) into vectors, change there, and are
written back: with every row, or once a block where all features stay in them (see ``statistics``). What happens to a
feature once in a while (its first value, a change of its unit, the end of its center) is left to ``features``, one
feature at a time.

The vectors: ``q``, the values; ``n``, ``mean`` and ``v``, the statistics; ``inverse``, 2^-k; and what comes out of
them, ``whole`` and ``z``, the value and the centered value in the feature's unit, and ``first`` and ``second``, these
times the inverse metrics r_1 and r_2. ``v``, ``grown`` (G) and ``curve`` (H) are of single precision, as in a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from steelyard.kernels.compile import f8
from steelyard.kernels.features import EPSILON, LARGE, RANGE, TINY
from steelyard.kernels.layout import EXPERTS
from steelyard.kernels.steps.lanes import Lanes, array_data, load, load_singles, spread, store, store_singles, total_of

_word = ir.IntType(64)
_MASK = ir.IntType(EXPERTS)


class _Mask:
    """Eight yes or no in the making."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def __and__(self, other: _Mask) -> _Mask:
        return _Mask(self.builder, self.builder.and_(self.value, other.value))

    def __or__(self, other: _Mask) -> _Mask:
        return _Mask(self.builder, self.builder.or_(self.value, other.value))

    def __invert__(self) -> _Mask:
        return _Mask(self.builder, self.builder.not_(self.value))

    def choose(self, yes: Any, no: Any) -> Lanes:
        """``yes`` in the lanes that are set, and ``no`` in the others; one of them is a vector."""
        like = (yes if isinstance(yes, Lanes) else no).like
        return Lanes(self.builder, self.builder.select(self.value, like(yes), like(no)))

    @property
    def bits(self) -> Any:
        return self.builder.zext(self.builder.bitcast(self.value, _MASK), _word)


def compare(left: Lanes, sign: str, right: Any) -> _Mask:
    """Lane by lane; false where one of them is not a number, but for ``!=`` ("is not")."""
    ordered = left.builder.fcmp_unordered if sign == "!=" else left.builder.fcmp_ordered
    return _Mask(left.builder, ordered(sign, left.value, left.like(right)))


def _all(builder: Any, flag: Any) -> _Mask:
    """A flag in every lane."""
    kind = ir.VectorType(ir.IntType(1), EXPERTS)
    return _Mask(builder, builder.select(flag, ir.Constant(kind, [1] * EXPERTS), ir.Constant(kind, [0] * EXPERTS)))


@intrinsic
def copy_lanes(typingctx: Any, data: Any, start: Any, q: Any, count: Any) -> Any:
    """``count`` values of ``data`` from ``start`` on go to q, by eights; returns the sum of their squares."""
    signature = f8(data, types.uint64, q, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, q = (array_data(context, builder, sig.args[i], args[i]) for i in (0, 2))
        read = load if sig.args[0].dtype == f8 else load_singles
        zero = ir.Constant(ir.VectorType(ir.DoubleType(), EXPERTS), [0.0] * EXPERTS)
        squares = cgutils.alloca_once_value(builder, zero)
        eight = ir.Constant(_word, EXPERTS)
        with cgutils.for_range(builder, builder.udiv(args[3], eight)) as loop:
            at = builder.mul(loop.index, eight)
            values = read(builder, data, builder.add(args[1], at))
            store(builder, q, at, values)
            builder.store(values.times_plus(values, Lanes(builder, builder.load(squares))).value, squares)
        return total_of(Lanes(builder, builder.load(squares)))

    return signature, codegen


@intrinsic
def add_lanes(typingctx: Any, x: Any, u: Any, factor: Any, count: Any) -> Any:
    """x += factor * u, for the first ``count`` numbers, by eights."""
    signature = types.void(x, u, f8, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        there, here = (array_data(context, builder, sig.args[i], args[i]) for i in range(2))
        by, eight = spread(builder, args[2]), ir.Constant(_word, EXPERTS)
        with cgutils.for_range(builder, builder.udiv(args[3], eight)) as loop:
            at = builder.mul(loop.index, eight)
            store(builder, there, at, by.times_plus(load(builder, here, at), load(builder, there, at)))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def observe_lanes(
    typingctx: Any,
    q: Any,
    n: Any,
    mean: Any,
    v: Any,
    inverse: Any,
    whole: Any,
    z: Any,
    at: Any,
    h: Any,
    seen: Any,
    after: Any,
    centering: Any,
) -> Any:
    """``features.observe`` for eight features from ``at`` on; a value that is zero is not there.

    A centered feature that is not there is zero. Returns, in the lowest eight bits, which features must be left to
    ``features``, and have not changed; and above them how many of those that are there are centered.
    """
    signature = types.uint64(q, n, mean, v, inverse, whole, z, types.uint64, f8, f8, f8, types.boolean)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = [array_data(context, builder, sig.args[i], args[i]) for i in range(7)]
        at = args[7]
        q, n, mean = (load(builder, places[i], at) for i in range(3))
        v = load_singles(builder, places[3], at)
        inverse = load(builder, places[4], at)
        h, seen, after = (spread(builder, number) for number in args[8:11])
        centering = context.get_value_as_argument(builder, types.boolean, args[11])
        flag = builder.icmp_unsigned("!=", centering, ir.Constant(centering.type, 0))

        every = _all(builder, flag)
        there = ~compare(abs(q), "<=", TINY)
        steady = every & compare(n, "==", seen)
        unknown, all_eight = ir.Constant(_word, -1), ir.Constant(_word, 255)
        result = cgutils.alloca_once_value(builder, unknown)

        with builder.if_then(builder.icmp_unsigned("==", steady.bits, all_eight)):
            # What nearly all rows of dense columns do: all eight are there and centered, and nothing special happens.
            share = spread(builder, builder.fdiv(args[8], args[10]))
            away = q - mean
            moved = share.times_plus(away, mean)
            z = q - moved
            scaled = z * inverse
            variance = share.times_plus((away * inverse) * scaled - v, v)
            usual = there & compare(z * away, ">", 0.0) & compare(v, ">", 0.0)
            usual &= compare(abs(scaled), "<", 1e15) & compare(variance, "<=", 4.0)
            with builder.if_then(builder.icmp_unsigned("==", usual.bits, all_eight)):
                store(builder, places[1], at, after)
                store(builder, places[2], at, moved)
                store_singles(builder, places[3], at, variance)
                store(builder, places[5], at, q * inverse)
                store(builder, places[6], at, scaled)
                builder.store(ir.Constant(_word, EXPERTS << EXPERTS), result)
        with builder.if_then(builder.icmp_unsigned("==", builder.load(result), unknown)):
            # What nearly all sparse rows do: none of the eight is centered, and those that are there are known.
            full = steady & compare(mean, "==", mean) & (there | compare(seen, ">", 0.0))
            grown = (n + h).at_most(LARGE)
            whole = there.choose(q * inverse, 0.0)
            variance = (h / grown).times_plus(whole * whole - v, v)
            known = compare(v, ">", 0.0) & compare(abs(whole), "<", 1e15) & compare(variance, "<=", 4.0)
            plain = ~full & (~there | known)
            with builder.if_else(builder.icmp_unsigned("==", plain.bits, all_eight)) as (then, rest):
                with then:
                    store(builder, places[1], at, there.choose(grown, n))
                    store_singles(builder, places[3], at, there.choose(variance, v))
                    store(builder, places[5], at, whole)
                    store(builder, places[6], at, whole)
                    builder.store(ir.Constant(_word, 0), result)
                with rest:
                    columns, weights = (q, n, mean, v, inverse), (h, seen, after)
                    builder.store(_observe_any(builder, places, at, columns, weights, every), result)
        return builder.load(result)

    return signature, codegen


def _observe_any(builder: Any, places: Any, at: Any, columns: Any, weights: Any, every: _Mask) -> Any:
    """``observe_lanes`` for features of which some are not there, or not centered."""
    (q, n, mean, v, inverse), (h, seen, after) = columns, weights
    there = ~compare(abs(q), "<=", TINY)
    full = every & compare(n, "==", seen) & compare(mean, "==", mean)
    full &= there | compare(seen, ">", 0.0)  # only what the first row has can be centered
    q = there.choose(q, 0.0)
    grown = full.choose(after, (n + h).at_most(LARGE))
    share = h / grown
    away = full.choose(q - mean, q)
    moved = share.times_plus(away, mean)
    z = full.choose(q - moved, q)
    # where the row outweighs all before it, z is but rounding
    still = full & (compare(z, "==", 0.0) | ~compare(z * away, ">", 0.0))
    z = still.choose(0.0, z * inverse)
    variance = share.times_plus((away * inverse) * z - v, v)
    center = moved * inverse
    rare = there & ~still & (compare(v, "==", 0.0) | ~compare(abs(z), "<", 1e15) | ~compare(variance, "<=", 4.0))
    absent = full & ~there
    rare |= absent & (compare(v, "==", 0.0) | ~compare(variance, "<", center * center))
    rare |= absent & ~compare(variance, "<=", 4.0)
    changes = (there | full) & ~rare
    narrow = _widen(_narrow(variance))
    store(builder, places[1], at, changes.choose(grown, n))
    store(builder, places[2], at, (changes & full).choose(moved, mean))
    store_singles(builder, places[3], at, changes.choose(narrow, v))
    known = compare(narrow, ">", 0.0)
    store(builder, places[5], at, (changes & known).choose(q * inverse, 0.0))
    store(builder, places[6], at, changes.choose(z, 0.0))
    number = builder.ctpop((full & there).bits)
    return builder.or_(rare.bits, builder.shl(number, ir.Constant(_word, EXPERTS)))


def _singles(count: int = EXPERTS) -> Any:
    return ir.VectorType(ir.FloatType(), count)


def _places(context: Any, builder: Any, kinds: Any, arrays: Any) -> list[Any]:
    """Where the numbers of the arrays of a tuple are."""
    parts = cgutils.unpack_tuple(builder, arrays)
    return [array_data(context, builder, kind, array) for kind, array in zip(kinds, parts, strict=True)]


def _narrow(numbers: Lanes) -> Lanes:
    """To single precision."""
    return Lanes(numbers.builder, numbers.builder.fptrunc(numbers.value, _singles()))


def _widen(numbers: Lanes) -> Lanes:
    """To double precision."""
    wide = ir.VectorType(ir.DoubleType(), EXPERTS)
    return Lanes(numbers.builder, numbers.builder.fpext(numbers.value, wide))


def _pair(first: Lanes, second: Lanes, i: int) -> Lanes:
    """Lane i of the one in four lanes, and of the other in four."""
    half = EXPERTS // 2
    pattern = ir.Constant(ir.VectorType(ir.IntType(32), EXPERTS), [i] * half + [EXPERTS + i] * half)
    return Lanes(first.builder, first.builder.shuffle_vector(first.value, second.value, pattern))


@contextmanager
def _eights(builder: Any, size: Any) -> Iterator[Any]:
    """Code for eight features at a time, from the index that it gives, until ``size`` of them are done."""
    eight = ir.Constant(_word, EXPERTS)
    groups = builder.udiv(builder.add(size, ir.Constant(_word, EXPERTS - 1)), eight)
    with cgutils.for_range(builder, groups) as loop:
        yield builder.mul(loop.index, eight)


def _shuffle(builder: Any, first: Any, second: Any, lanes: list[int]) -> Any:
    """Some lanes of two vectors, those of the second counted after those of the first."""
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes))


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Four vectors of eight numbers, of eight vectors of four: by halves, then by pairs, as the machine can."""
    wide = [_shuffle(builder, rows[i], rows[i + 4], list(range(EXPERTS))) for i in range(4)]
    pairs = [
        _shuffle(builder, wide[i], wide[i + 1], [k + j for k in (0, 8, 2, 10, 4, 12, 6, 14)])
        for j in (0, 1)
        for i in (0, 2)
    ]
    ends = ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15])
    return [_shuffle(builder, pairs[2 * (i % 2)], pairs[2 * (i % 2) + 1], ends[i // 2]) for i in range(4)]


def _transposed_back(builder: Any, columns: list[Any]) -> list[Any]:
    """Eight vectors of four numbers, of four vectors of eight."""
    ends = ([0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15])
    pairs = [[_shuffle(builder, columns[i], columns[i + 1], end) for end in ends] for i in (0, 2)]
    places = range(EXPERTS)
    starts = [4 * (i // 4) + 2 * (i % 4 // 2) for i in places]
    return [
        _shuffle(builder, pairs[0][i % 2], pairs[1][i % 2], [k + starts[i] for k in (0, 1, EXPERTS, EXPERTS + 1)])
        for i in places
    ]


def _statistics_of(builder: Any, offsets: Any, at: Any, table: Any, shift: Any) -> list[Any]:
    """Where eight records have G and H of their last output, v and k, n, and the mean."""
    places = [builder.load(builder.gep(offsets, [builder.add(at, ir.Constant(_word, i))])) for i in range(EXPERTS)]
    kind = _singles().as_pointer()
    return [builder.bitcast(builder.gep(table, [builder.add(place, shift)]), kind) for place in places]


def _power(builder: Any, k: Any) -> Lanes:
    """2^-k, but no more than 2^1023; as a product of two, since it may be smaller than what has all digits."""
    kind = ir.VectorType(ir.IntType(32), EXPERTS)
    words = ir.VectorType(_word, EXPERTS)

    def integers(number: int, kind: Any = kind) -> Any:
        return ir.Constant(kind, [number] * EXPERTS)

    k = builder.select(builder.icmp_signed(">", k, integers(-1023)), k, integers(-1023))
    half = builder.ashr(k, integers(1))
    factors = []
    for part in (half, builder.sub(k, half)):
        bits = builder.shl(builder.zext(builder.sub(integers(1023), part), words), integers(52, words))
        factors.append(Lanes(builder, builder.bitcast(bits, ir.VectorType(ir.DoubleType(), EXPERTS))))
    return factors[0] * factors[1]


@intrinsic
def take_lanes(typingctx: Any, vectors: Any, at: Any, table: Any, shift: Any) -> Any:
    """Read the statistics of eight features, from ``at`` on, from their records; and G and H of the last output.

    ``vectors`` is (offsets, n, mean, v, inverse, grown, curve). G stands ``shift`` after the start of a record.
    """
    signature = types.void(vectors, types.uint64, table, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        offsets, n, mean, v, inverse, grown, curve = _places(context, builder, sig.args[0], args[0])
        at = args[1]
        table = array_data(context, builder, sig.args[2], args[2])
        doubles = ir.VectorType(ir.DoubleType(), EXPERTS // 2)
        rows = [builder.load(place, align=8) for place in _statistics_of(builder, offsets, at, table, args[3])]
        columns = _transposed(builder, [builder.bitcast(row, doubles) for row in rows])
        store(builder, n, at, Lanes(builder, columns[2]))
        store(builder, mean, at, Lanes(builder, columns[3]))
        halves = []
        for column in columns[:2]:
            pairs = builder.bitcast(column, _singles(2 * EXPERTS))
            halves += [_shuffle(builder, pairs, pairs, list(range(i, 2 * EXPERTS, 2))) for i in (0, 1)]
        for target, numbers in zip((grown, curve, v), halves[:3], strict=True):
            builder.store(numbers, builder.bitcast(builder.gep(target, [at]), _singles().as_pointer()), align=4)
        k = builder.fptosi(halves[3], ir.VectorType(ir.IntType(32), EXPERTS))
        store(builder, inverse, at, _power(builder, k))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def put_lanes(typingctx: Any, vectors: Any, size: Any, table: Any, shift: Any) -> Any:
    """Write what ``take_lanes`` has read back to the records of ``size`` features, but for the exponents.

    From the last of eight to the first: those that fill up the last eight hold the intercept's record as it was, and
    the intercept, where there is one, stands before them.
    """
    signature = types.void(vectors, types.intp, table, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        offsets, n, mean, v, grown, curve = _places(context, builder, sig.args[0], args[0])
        table = array_data(context, builder, sig.args[2], args[2])
        wide = ir.VectorType(ir.DoubleType(), EXPERTS)
        with _eights(builder, args[1]) as at:
            singles = [
                builder.load(builder.bitcast(builder.gep(source, [at]), _singles().as_pointer()), align=4)
                for source in (grown, curve, v)
            ]
            mixed = [i // 2 + EXPERTS * (i % 2) for i in range(2 * EXPERTS)]
            pairs = [_shuffle(builder, singles[i], singles[1], mixed) for i in (0, 2)]
            columns = [builder.bitcast(pair, wide) for pair in pairs]
            rows = _transposed_back(builder, [*columns, *(load(builder, place, at).value for place in (n, mean))])
            places = _statistics_of(builder, offsets, at, table, args[3])
            old = [builder.load(place, align=8) for place in places]
            for i in reversed(range(EXPERTS)):
                row = builder.bitcast(rows[i], _singles())
                builder.store(_shuffle(builder, row, old[i], [0, 1, 2, EXPERTS + 3, 4, 5, 6, 7]), places[i], align=8)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def predict_lanes(typingctx: Any, vectors: Any, size: Any, table: Any, shift: Any, out: Any) -> Any:
    """The predictions of eight experts, and the norms of a row of ``size`` features in the two metrics.

    ``vectors`` is (v, grown, curve, whole, z, first, second, offsets); ``first = q r_1`` and ``second = z r_2`` are
    filled in. ``out`` receives the predictions, and then the norms: the sums of q*first and of z*second.
    """
    signature = types.void(vectors, types.intp, table, types.uint64, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = _places(context, builder, sig.args[0], args[0])
        data, target = (array_data(context, builder, sig.args[i], args[i]) for i in (2, 4))
        shift = args[3]
        zero = ir.Constant(ir.VectorType(ir.DoubleType(), EXPERTS), [0.0] * EXPERTS)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(4)]
        with _eights(builder, args[1]) as at:
            totals = [Lanes(builder, builder.load(place)) for place in sums]
            v, grown, curve = (load_singles(builder, place, at) for place in places[:3])
            whole, z = (load(builder, place, at) for place in places[3:5])
            for i in range(EXPERTS):
                place = builder.load(builder.gep(places[7], [builder.add(at, ir.Constant(_word, i))]))
                weights = load_singles(builder, data, builder.add(place, shift))
                # two sums, of which one need not wait for the other
                totals[i % 2] = weights.times_plus(_pair(whole, z, i), totals[i % 2])
            offset = whole - z
            u = offset.times_plus(offset, v)
            known = compare(v, ">", 0.0)
            square = (u * u.times_plus(EPSILON, grown)).at_least(1e-36).at_most(1e36)
            # in single precision: root and divisions are what this waits for, and weights have no more digits
            first = known.choose(_widen(_narrow(whole) / _narrow(square).root()), 0.0)
            second = known.choose(_widen(_narrow(z) / _narrow((v + curve).at_least(1e-36))), 0.0)
            store(builder, places[5], at, first)
            store(builder, places[6], at, second)
            totals[2] = whole.times_plus(first, totals[2])
            totals[3] = z.times_plus(second, totals[3])
            for place, total in zip(sums, totals, strict=True):
                builder.store(total.value, place)
        even, odd, *norms = (Lanes(builder, builder.load(place)) for place in sums)
        store(builder, target, ir.Constant(_word, 0), even + odd)
        for i, norm in enumerate(norms):
            builder.store(total_of(norm), builder.gep(target, [ir.Constant(_word, EXPERTS + i)]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def move_lanes(typingctx: Any, vectors: Any, size: Any, table: Any, shift: Any, change: Any, amounts: Any) -> Any:
    """Move the weights of a row of ``size`` features by ``change`` times (q r_1, z r_2), and add its share to G and H.

    ``vectors`` is (grown, curve, whole, z, first, second, offsets), and ``amounts`` is what is added to G and H for
    each unit of q^2 and z^2; a sum that would pass 1e30 stays as it is. Weights are kept within 1e30 of zero.
    """
    signature = types.void(vectors, types.intp, table, types.uint64, change, amounts)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = _places(context, builder, sig.args[0], args[0])
        data, changes = (array_data(context, builder, sig.args[i], args[i]) for i in (2, 4))
        shift = args[3]
        adds = [spread(builder, amount) for amount in cgutils.unpack_tuple(builder, args[5])]
        change = _narrow(load(builder, changes, ir.Constant(_word, 0)).at_most(1e30).at_least(-1e30))
        with _eights(builder, args[1]) as at:
            for place, values, amount in zip(places[:2], places[2:4], adds, strict=True):
                old, value = load_singles(builder, place, at), load(builder, values, at)
                new = (value * value).times_plus(amount, old)
                store_singles(builder, place, at, compare(new, "<", RANGE).choose(new, old))
            first, second = (_narrow(load(builder, place, at)) for place in places[4:6])
            for i in range(EXPERTS):
                place = builder.load(builder.gep(places[6], [builder.add(at, ir.Constant(_word, i))]))
                weights = builder.bitcast(builder.gep(data, [builder.add(place, shift)]), _singles().as_pointer())
                moved = change.times_plus(_pair(first, second, i), Lanes(builder, builder.load(weights, align=4)))
                builder.store(moved.at_most(1e30).at_least(-1e30).value, weights, align=4)
        return context.get_dummy_value()

    return signature, codegen
