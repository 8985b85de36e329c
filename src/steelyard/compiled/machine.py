"""The processor and the compiler that objects are made for. Needs no Numba.

A wheel carries objects for the levels of x86-64 (https://gitlab.com/x86-psABIs/x86-64-ABI): the highest whose features
this processor has is taken. What is compiled here is for this very processor.
"""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import NamedTuple

_V2 = "cmov cx8 cx16 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 crc32 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"


class Target(NamedTuple):
    """A processor to compile for, as LLVM knows it."""

    name: str
    machine: str
    features: str
    """What it must have, separated by blanks."""
    tuning: str = ""
    """More for LLVM: features that are no instructions."""

    @property
    def llvm_features(self) -> str:
        """As ``NUMBA_CPU_FEATURES`` takes them."""
        return ",".join([*(f"+{name}" for name in self.features.split()), *self.tuning.split()])


TARGETS = (
    # the kernels' vectors are eight doubles wide; for this level LLVM would cut them in two, unless it is told not to
    Target("x86-64-v4", "x86_64", _V4, "-prefer-256-bit"),
    Target("x86-64-v3", "x86_64", _V3),
    Target("x86-64-v2", "x86_64", _V2),
    Target("generic", "aarch64", "neon fp-armv8"),
)
"""What wheels carry objects for, the best first."""

_CHOICES = (
    "NUMBA_CPU_NAME",
    "NUMBA_CPU_FEATURES",
    "NUMBA_ENABLE_AVX",
    "NUMBA_OPT",
    "NUMBA_BOUNDSCHECK",
    "NUMBA_LOOP_VECTORIZE",
    "NUMBA_SLP_VECTORIZE",
    "NUMBA_DISABLE_INTEL_SVML",
)
"""Variables that change what Numba makes of a function."""


_PLAIN = {
    "CPU_NAME": (None, ""),
    "CPU_FEATURES": (None, ""),
    "BOUNDSCHECK": (None, 0, False),
    "OPT": (3,),
    "LOOP_VECTORIZE": (1, True),
    "SLP_VECTORIZE": (0, 1, False, True),
    "DEBUGINFO_DEFAULT": (0, False),
    "ENABLE_PROFILING": (0, False),
    "DEBUG_NRT": (0, False),
    "DISABLE_JIT": (0, False),
}
"""Numba's settings where no variable sets them."""


def settings_are_known() -> bool:
    """Whether Numba compiles as the key of an object says: a file in the working folder, or a program, may have told it
    otherwise, and what it makes then is not to be kept."""
    from numba import config

    for name, plain in _PLAIN.items():
        live, given = getattr(config, name, plain[0]), os.environ.get(f"NUMBA_{name}")
        if given and f"NUMBA_{name}" in _CHOICES:
            if str(live) != given:
                return False
        elif live not in plain:
            return False
    return True


_LINUX_NAMES = {
    "abm": "lzcnt",
    "bmi1": "bmi",
    "lahf_lm": "sahf",
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2 crc32",
}
"""Features of x86-64 that Linux calls otherwise than LLVM does."""


@cache
def host_features() -> frozenset[str]:
    """The names of the features that this processor has, as LLVM calls them."""
    _, flags = _processor()
    if not flags:
        return frozenset(part[1:] for part in _llvm_features().split(",") if part.startswith("+"))
    return frozenset(" ".join(_LINUX_NAMES.get(flag, flag) for flag in flags.split()).split())


@cache
def _processor() -> tuple[str, str]:
    """Which processor this is, and what it can, as Linux says on x86-64; nothing elsewhere. (To ask LLVM takes longer
    than everything else here: llvmlite has to be imported.)"""
    facts: dict[str, str] = {}
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, colon, value = line.partition(":")
            if not colon:  # the end of the first one
                break
            facts[name.strip()] = value.strip()
    known = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
    if not all(facts.get(name) for name in known) or os.uname().machine != "x86_64":
        return "", ""
    return " ".join(facts[name] for name in known[:-1]), facts["flags"]


def _llvm_features() -> str:
    """What LLVM knows of this processor, as ``+have,-lack``."""
    from llvmlite import binding

    try:
        return str(binding.get_host_cpu_features().flatten())
    except RuntimeError:  # it may know nothing
        return ""


def objects_are_elf() -> bool:
    """Whether the system's object files are what ``elf`` reads: not on macOS, nor on Windows, nor with 32 bits."""
    return sys.platform not in ("darwin", "win32", "cygwin") and sys.maxsize > 2**32


def wheel_targets() -> list[Target]:
    """The targets of a wheel for this kind of machine, the best first; none where objects cannot be loaded."""
    if not objects_are_elf():
        return []
    here = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
    return [target for target in TARGETS if target.machine == here]


def usable_targets() -> list[Target]:
    """Those of them whose objects may run on this processor."""
    return [target for target in wheel_targets() if host_features().issuperset(target.features.split())]


@cache
def compiler_here() -> dict[str, str]:
    """What decides the code that is compiled here: a part of the key of every object in the cache."""
    chosen = {name: os.environ[name] for name in _CHOICES if os.environ.get(name)}
    return {
        "llvmlite": _version("llvmlite"),
        "numba": _version("numba"),
        **_target_here(),
        "settings": " ".join(f"{name}={value}" for name, value in sorted(chosen.items())),
    }


def _target_here() -> dict[str, str]:
    cpu, flags = _processor()
    if flags:
        try:
            library = os.confstr("CS_GNU_LIBC_VERSION") or ""
        except (ValueError, OSError):
            library = ""
        return {"triple": f"x86_64 {sys.platform} {library}", "cpu": cpu, "features": flags}
    from llvmlite import binding

    return {
        "triple": binding.get_process_triple(),
        "cpu": binding.get_host_cpu_name(),
        "features": _llvm_features(),
    }


def _version(package: str) -> str:
    """A package's version, by the name of the folder beside it: importing it, or ``importlib.metadata``, is slow."""
    loaded = getattr(sys.modules.get(package), "__version__", None)
    if loaded is not None:
        return str(loaded)
    spec = util.find_spec(package)
    if spec is None or spec.origin is None:
        return "none"
    found = sorted(Path(spec.origin).parent.parent.glob(f"{package}-*.dist-info"))
    if len(found) == 1:
        return found[0].name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return str(import_module(package).__version__)  # several of them, or none
