"""What kernels need and Numba does not offer: calls by address, prefetches, a few vector operations."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from steelyard.kernels.compile import f8


@intrinsic
def call_step(typingctx: Any, address: Any, p: Any, y: Any, a: Any, params: Any, row: Any) -> Any:
    """``(value, slope, c, gap)`` of the step function at ``address``, with the parameters in a row of ``params``."""
    signature = types.UniTuple(f8, 4)(types.intp, f8, f8, f8, params, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        double = ir.DoubleType()
        pointer = double.as_pointer()
        target = ir.FunctionType(ir.VoidType(), [double, double, double, pointer, pointer])
        function = builder.inttoptr(args[0], target.as_pointer())
        array = context.make_array(sig.args[4])(context, builder, args[4])
        width = builder.extract_value(array.shape, 1)
        data = builder.gep(array.data, [builder.mul(args[5], width)])
        out = cgutils.alloca_once(builder, double, size=4)
        builder.call(function, [*args[1:4], data, out])
        index = ir.IntType(32)
        values = [builder.load(builder.gep(out, [ir.Constant(index, i)])) for i in range(4)]
        return context.make_tuple(builder, sig.return_type, values)

    return signature, codegen


@intrinsic
def call_conjugate(typingctx: Any, address: Any, s: Any, y: Any, params: Any) -> Any:
    """The conjugate at ``address``: ``f(s, y, params*)``."""
    signature = f8(types.intp, f8, f8, params)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        double = ir.DoubleType()
        target = ir.FunctionType(double, [double, double, double.as_pointer()])
        function = builder.inttoptr(args[0], target.as_pointer())
        data = context.make_array(sig.args[3])(context, builder, args[3]).data
        return builder.call(function, [args[1], args[2], data])

    return signature, codegen


@intrinsic
def call_scalar(typingctx: Any, address_bits: Any, p: Any, y: Any) -> Any:
    """A user's ``f(p, y)``, whose address travels as the bits of a float among a loss's parameters."""
    signature = f8(f8, f8, f8)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        double = ir.DoubleType()
        target = ir.FunctionType(double, [double, double])
        address = builder.bitcast(args[0], ir.IntType(64))
        return builder.call(builder.inttoptr(address, target.as_pointer()), args[1:])

    return signature, codegen


def _prefetch(locality: int) -> Any:
    def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
        signature = types.void(array, types.uint64)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            data = context.make_array(sig.args[0])(context, builder, args[0]).data
            byte = ir.IntType(8).as_pointer()
            word = ir.IntType(32)
            target = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            function = builder.module.declare_intrinsic("llvm.prefetch", [byte], target)
            options = [ir.Constant(word, number) for number in (0, locality, 1)]  # to read; how long; data
            builder.call(function, [builder.bitcast(builder.gep(data, [args[1]]), byte), *options])
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(prefetch)


prefetch_once = _prefetch(1)
"""Fetch the cache line of ``array[index]`` from memory, but not into the nearest cache, which is full of weights.

The index may lie past the end: a prefetch never faults.
"""
prefetch = _prefetch(3)
"""Fetch the cache line of ``array[index]``, to keep."""


@intrinsic
def sixteen_rise(typingctx: Any, indices: Any, at: Any) -> Any:
    """Whether each of ``indices[at : at+16]`` is above the one before it."""
    signature = types.boolean(indices, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        vector = ir.VectorType(data.type.pointee, 16).as_pointer()

        def load(at: Any) -> Any:
            return builder.load(builder.bitcast(builder.gep(data, [at]), vector), align=data.type.pointee.width // 8)

        before = builder.sub(args[1], ir.Constant(ir.IntType(64), 1))
        above = builder.icmp_unsigned(">", load(args[1]), load(before))
        mask = ir.IntType(16)
        return builder.icmp_unsigned("==", builder.bitcast(above, mask), ir.Constant(mask, 0xFFFF))

    return signature, codegen


@intrinsic
def eight_outgrow(typingctx: Any, data: Any, at: Any, inverse: Any, start: Any, most: Any) -> Any:
    """A bit for each of eight numbers q, ``data[at : at+8]``: whether q^2 r is above ``most``, or r is 0. The r are
    ``inverse[start : start+8]``; the first number has the lowest bit."""
    signature = types.uint64(data, types.uint64, inverse, types.uint64, f8)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        wide = ir.VectorType(ir.DoubleType(), 8)

        def load(kind: Any, array: Any, index: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            vector = ir.VectorType(data.type.pointee, 8)
            place = builder.bitcast(builder.gep(data, [index]), vector.as_pointer())
            found = builder.load(place, align=4 if data.type.pointee == ir.FloatType() else 8)
            return found if vector == wide else builder.fpext(found, wide)

        q, r = load(sig.args[0], args[0], args[1]), load(sig.args[2], args[2], args[3])
        one = builder.insert_element(ir.Constant(wide, ir.Undefined), args[4], ir.Constant(ir.IntType(32), 0))
        limit = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8))
        above = builder.fcmp_ordered(">", builder.fmul(builder.fmul(q, q), r), limit)
        none = builder.fcmp_ordered("==", r, ir.Constant(wide, [0.0] * 8))
        return builder.zext(builder.bitcast(builder.or_(above, none), ir.IntType(8)), ir.IntType(64))

    return signature, codegen


@intrinsic
def sort_sixteen(typingctx: Any, numbers: Any, at: Any, count: Any, mask: Any, out: Any, where: Any, keys: Any) -> Any:
    """Sort ``numbers[at : at + count]`` by the bits of ``mask``, at most 27; returns whether all of them differ there.

    ``out[where : where + count]`` becomes these bits, ascending, and ``keys`` where each of them stood. All of
    ``numbers[at : at + 16]`` is read, ``out[where : where + 16]`` and ``keys[:16]`` are written.
    """
    signature = types.boolean(numbers, types.uint64, types.uint32, types.uint32, out, types.uint64, keys)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = ir.IntType(32)
        vector = ir.VectorType(word, 16)
        nothing = ir.Constant(vector, ir.Undefined)

        def constant(values: Any) -> Any:
            return ir.Constant(vector, list(values))

        def spread(number: Any) -> Any:
            one = builder.insert_element(nothing, number, ir.Constant(word, 0))
            return builder.shuffle_vector(one, nothing, constant([0] * 16))

        def place(kind: Any, array: Any, index: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        found = builder.load(place(sig.args[0], args[0], args[1]), align=4)
        places = constant(range(16))
        keys = builder.shl(builder.and_(found, spread(args[3])), constant([4] * 16))
        there = builder.icmp_signed("<", places, spread(args[2]))
        keys = builder.select(there, builder.or_(keys, places), constant([2**31 - 1] * 16))
        size = 2
        while size <= 16:  # Batcher's bitonic network: ten steps, of which none waits for a comparison's outcome
            step = size // 2
            while step:
                other = builder.shuffle_vector(keys, nothing, constant(i ^ step for i in range(16)))
                less = builder.icmp_signed("<", keys, other)
                low, high = builder.select(less, keys, other), builder.select(less, other, keys)
                first = [bool(i & step) == bool(i & size) for i in range(16)]  # whether the lower one goes here
                lanes = [i if low_here else 16 + i for i, low_here in enumerate(first)]
                keys = builder.shuffle_vector(low, high, constant(lanes))
                step //= 2
            size *= 2
        sorted_ = builder.lshr(keys, constant([4] * 16))
        builder.store(sorted_, place(sig.args[4], args[4], args[5]), align=4)
        builder.store(
            builder.and_(keys, constant([15] * 16)),
            place(sig.args[6], args[6], ir.Constant(ir.IntType(64), 0)),
            align=4,
        )
        before = builder.shuffle_vector(sorted_, nothing, constant([0, *range(15)]))
        later = builder.and_(there, ir.Constant(ir.VectorType(ir.IntType(1), 16), [0] + [1] * 15))
        same = builder.and_(builder.icmp_unsigned("==", sorted_, before), later)
        bits = builder.bitcast(same, ir.IntType(16))
        return builder.icmp_unsigned("==", bits, ir.Constant(ir.IntType(16), 0))

    return signature, codegen


@intrinsic
def sixteen_are(typingctx: Any, numbers: Any, at: Any, count: Any, value: Any) -> Any:
    """Whether ``numbers[at : at + count]`` are all this value, of at most sixteen; sixteen are read."""
    signature = types.boolean(numbers, types.uint64, types.uint32, f8)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.DoubleType(), 16)
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        found = builder.load(builder.bitcast(builder.gep(data, [args[1]]), vector.as_pointer()), align=8)
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[3], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 16), [0] * 16)
        other = builder.fcmp_unordered("!=", found, builder.shuffle_vector(one, one, zeros))
        bits = builder.zext(builder.bitcast(other, ir.IntType(16)), ir.IntType(32))
        behind = builder.shl(ir.Constant(ir.IntType(32), -1), args[2])
        bits = builder.and_(bits, builder.not_(behind))
        return builder.icmp_unsigned("==", bits, ir.Constant(ir.IntType(32), 0))

    return signature, codegen


@intrinsic
def load_eight(typingctx: Any, text: Any, at: Any) -> Any:
    """Eight bytes from ``text[at]`` on as one number, the first byte lowest (on a little-endian machine)."""
    signature = types.uint64(text, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        word = ir.IntType(64)
        return builder.load(builder.bitcast(builder.gep(data, [args[1]]), word.as_pointer()), align=1)

    return signature, codegen


@intrinsic
def load_four(typingctx: Any, text: Any, at: Any) -> Any:
    """Four bytes from ``text[at]`` on as one number, the first byte lowest (on a little-endian machine)."""
    signature = types.uint32(text, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        word = ir.IntType(32)
        return builder.load(builder.bitcast(builder.gep(data, [args[1]]), word.as_pointer()), align=1)

    return signature, codegen


@intrinsic
def trailing_zeros(typingctx: Any, number: Any) -> Any:
    """How many zero bits a number ends in; 64 for zero."""
    signature = types.uint64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return signature, codegen


@intrinsic
def ones(typingctx: Any, number: Any) -> Any:
    """How many bits of a number are set."""
    signature = types.uint64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return signature, codegen


@intrinsic
def bits_of(typingctx: Any, number: Any) -> Any:
    """The 64 bits of a number in double precision."""
    signature = types.uint64(f8)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return signature, codegen


@intrinsic
def from_bits(typingctx: Any, bits: Any) -> Any:
    """The number in double precision that has these 64 bits."""
    signature = f8(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return signature, codegen


# ------------------------------------------------------------------------------------- memory by address, in words


@intrinsic
def load_word(typingctx: Any, address: Any) -> Any:
    """The 64 bits at an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))

    return types.intp(types.intp), codegen


@intrinsic
def load_half(typingctx: Any, address: Any) -> Any:
    """The 32 bits at an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        half = builder.load(builder.inttoptr(args[0], ir.IntType(32).as_pointer()))
        return builder.zext(half, ir.IntType(64))

    return types.intp(types.intp), codegen


@intrinsic
def store_word(typingctx: Any, address: Any, word: Any) -> Any:
    """Write 64 bits to an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), codegen


@intrinsic
def add_eight(typingctx: Any, target: Any, at: Any, source: Any, start: Any, factor: Any) -> Any:
    """``target[at : at+8] += factor * source[start : start+8]`` as one vector operation."""
    signature = types.void(target, types.uint64, source, types.uint64, f8)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.DoubleType(), 8)

        def place(kind: Any, array: Any, index: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        there, here = place(sig.args[0], args[0], args[1]), place(sig.args[2], args[2], args[3])
        spread = ir.Constant(vector, ir.Undefined)
        for i in range(8):
            spread = builder.insert_element(spread, args[4], ir.Constant(ir.IntType(32), i))
        product = builder.fmul(spread, builder.load(here, align=8))
        builder.store(builder.fadd(builder.load(there, align=8), product), there, align=8)
        return context.get_dummy_value()

    return signature, codegen
