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
def order_sixteen(typingctx: Any, hashes: Any, at: Any, count: Any, mask: Any, keys: Any) -> Any:
    """Where each of ``hashes[at : at + count]`` belongs by the bits of ``mask``, at most 27, equal ones as they stand.

    ``keys[i]`` becomes these bits of one with i in four bits below them, ``keys[16 + i]`` how many keys are smaller.
    All of ``hashes[at : at + 16]`` is read.
    """
    signature = types.void(hashes, types.uint64, types.uint32, types.uint32, keys)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word, wide = ir.IntType(32), ir.IntType(64)
        vector = ir.VectorType(word, 16)

        def spread(number: Any) -> Any:
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(word, 0))
            return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), ir.Constant(vector, [0] * 16))

        start = builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])
        found = builder.load(builder.bitcast(start, vector.as_pointer()), align=4)
        places = ir.Constant(vector, list(range(16)))
        each = builder.shl(builder.and_(found, spread(args[3])), ir.Constant(vector, [4] * 16))
        there = builder.icmp_signed("<", places, spread(args[2]))
        each = builder.select(there, builder.or_(each, places), ir.Constant(vector, [2**31 - 1] * 16))
        ranks = ir.Constant(vector, [0] * 16)
        for i in range(16):
            one = builder.shuffle_vector(each, ir.Constant(vector, ir.Undefined), ir.Constant(vector, [i] * 16))
            ranks = builder.sub(ranks, builder.sext(builder.icmp_signed("<", one, each), vector))
        data = context.make_array(sig.args[4])(context, builder, args[4]).data
        for first, numbers in ((0, each), (16, ranks)):
            place = builder.bitcast(builder.gep(data, [ir.Constant(wide, first)]), vector.as_pointer())
            builder.store(numbers, place, align=4)
        return context.get_dummy_value()

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
