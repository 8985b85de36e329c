"""Functions of object files: by our own loader where it can (:mod:`steelyard.compiled.plain`), else by LLVM's."""

from __future__ import annotations

import threading
from typing import Any

from steelyard.compiled import plain
from steelyard.compiled.elf import undefined_symbols
from steelyard.compiled.objects import SYMBOL

_lock = threading.Lock()
_engines: list[Any] = []  # each owns the code of one object, to the end of the process


class CannotLoad(Exception):
    """Something that an object needs is not in this process."""


def load(code: bytes) -> int:
    """The address of the function in an object that was checked (``objects.unpack``)."""
    with _lock:
        address = plain.load(code, SYMBOL)
        return _load_by_llvm(code) if address is None else address


def can_load() -> bool:
    """Whether there is a loader: our own, or llvmlite has what LLVM's takes."""
    if plain.works_here():
        return True
    from llvmlite import binding

    return all(hasattr(binding, name) for name in ("create_mcjit_compiler", "ObjectFileRef", "address_of_symbol"))


def _load_by_llvm(code: bytes) -> int:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target.create_target_machine(jit=True))
    for name in undefined_symbols(code) or ():  # only now: the first engine opens this process to such questions
        if binding.address_of_symbol(name) is None:
            raise CannotLoad(name)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = int(engine.get_function_address(SYMBOL))
    if not address:
        raise CannotLoad(SYMBOL)
    _engines.append(engine)
    return address
