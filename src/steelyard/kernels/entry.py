"""Object files: a function of a kernel file, behind a C function that needs nothing of Numba or Python.

The C function of a kernel is ``int64 kernel(int64* words)``, with three words an argument (``kernels.plan``): the
address of an array and its dimensions, or a number. That of a step or a conjugate takes numbers and pointers.

Numba's own ``cfunc`` would do, but for its wrapper: it reports exceptions, and so refers to Python and to Numba's
helpers, which a process without them cannot load. Nothing here raises, so the wrapper below only says that it failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import dispatcher, registry
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from steelyard.kernels.compile import _FASTMATH, _FLAGS, jit, numba_type
from steelyard.kernels.plan import FAILED, WORDS
from steelyard.kernels.signatures import Signature

_WORD = ir.IntType(64)


class _BareCompiler(dispatcher._FunctionCompiler):  # type: ignore[misc, name-defined]
    """Compiles a function without any wrapper, and leaves it open for ours."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = True
        flags.no_compile = True
        flags.enable_pyobject = False
        return flags


def compile_object(function: Callable[..., Any], signature: Any, symbol: str) -> bytes | None:
    """The object file of ``function``, in which it is the C function ``symbol``; None where it would hold an address of
    this process, as it does without optimization."""
    options = {"fastmath": _FASTMATH, "nopython": True, **_FLAGS}
    with global_compiler_lock:
        compiler = _BareCompiler(function, registry.cpu_target, options, {}, Compiler)
        result = compiler.compile(signature.args, signature.return_type)
        library = result.library
        library.add_ir_module(_wrapper(result.target_context, result.fndesc, symbol))
        library.finalize()
        if library.has_dynamic_globals:
            return None
        return bytes(library._get_compiled_object())


def _wrapper(context: Any, description: Any, symbol: str) -> Any:
    """A module with the C function: it calls the compiled one, whose results are a status and a number."""
    module = context.create_module(symbol)
    kinds = description.argtypes
    inner_type = context.call_conv.get_function_type(description.restype, kinds)
    inner = ir.Function(module, inner_type, description.llvm_func_name)
    void = description.restype == types.none
    result = ir.VoidType() if void else context.get_value_type(description.restype)
    outer = ir.Function(module, ir.FunctionType(result, [context.get_value_type(kind) for kind in kinds]), symbol)
    builder = ir.IRBuilder(outer.append_basic_block("entry"))
    status, out = context.call_conv.call_function(builder, inner, description.restype, kinds, outer.args)
    if void:
        builder.ret_void()
    else:
        failed = ir.Constant(result, FAILED if isinstance(result, ir.IntType) else float("nan"))
        builder.ret(builder.select(status.is_error, failed, out))
    return module


def compile_kernel(function: Callable[..., Any], signature: Signature, symbol: str) -> bytes | None:
    """The object file of a kernel, whose C function takes words."""
    enter = _enter(jit(function), tuple(map(numba_type, signature.arguments)), signature.returns)

    def entry(words):  # type: ignore[no-untyped-def]
        return enter(words)

    return compile_object(entry, types.intp(types.intp), symbol)


def _enter(kernel: Any, kinds: tuple[Any, ...], returns: bool) -> Any:
    """An intrinsic that makes a kernel's arguments of words, and calls it."""

    def enter(typingctx: Any, words: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            callee = types.Dispatcher(kernel)
            inner = typingctx.resolve_function_type(callee, kinds, {})
            start = builder.inttoptr(args[0], _WORD.as_pointer())
            values = [_argument(context, builder, start, WORDS * i, kind) for i, kind in enumerate(kinds)]
            result = context.get_function(callee, inner)(builder, values)
            return context.cast(builder, result, inner.return_type, types.intp) if returns else ir.Constant(_WORD, 0)

        return types.intp(types.intp), codegen

    return intrinsic(enter)


def _argument(context: Any, builder: Any, words: Any, at: int, kind: Any) -> Any:
    """An array, or a number, from the words ``at`` a place."""

    def load(offset: int) -> Any:
        return builder.load(builder.gep(words, [ir.Constant(_WORD, at + offset)]))

    if not isinstance(kind, types.Array):
        return context.cast(builder, load(0), types.intp, kind)
    array = context.make_array(kind)(context, builder)
    number = context.get_data_type(kind.dtype)
    size = ir.Constant(_WORD, context.get_abi_sizeof(number))
    shape = [load(1 + d) for d in range(kind.ndim)]
    strides = [size] if kind.ndim == 1 else [builder.mul(shape[1], size), size]
    data = builder.inttoptr(load(0), number.as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()
