"""Everything compiled beforehand, in several processes: for this machine into the cache folder, or for a wheel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from steelyard.compiled import door, folder, objects
from steelyard.compiled.machine import TARGETS, Target, settings_are_known
from steelyard.kernels import signatures
from steelyard.processes import end_with

Report = Callable[[str, int, int], None]
"""Called with the name of what is done, how many are, and of how many."""


def compile_here(jobs: int, report: Report) -> int:
    """Have every function in the package or in the cache folder; returns how many had to be compiled.

    Where objects cannot be loaded Numba keeps all of them itself, and only it knows which it has.
    """
    loads = door.can_load()
    missing = [name for name in signatures.every_name() if not loads or objects.find(name) is None]
    if missing:
        folder.make(objects.cache_folder())
    _run(_keep if loads else _keep_by_numba, [(name,) for name in missing], jobs, report)
    return len(missing)


def compile_for(target: Target, output: Path, jobs: int, report: Report) -> int:
    """Have every function in a folder, for any processor that has the features of ``target``; counts as the other.

    What a run that was stopped has left there is kept, where it is whole and of these sources.
    """
    place = output / target.name
    place.mkdir(parents=True, exist_ok=True)
    wanted = {objects.file_name(name) for name in signatures.every_name()}
    for file in place.iterdir():
        if file.name not in wanted:  # a function that is no more
            file.unlink()
    missing = objects.missing(output, target)
    with _compiling_for(target):
        _run(_write, [(name, target.name, place) for name in missing], jobs, report)
    return len(missing)


@contextmanager
def _compiling_for(target: Target) -> Iterator[None]:
    """Processes that start here compile for another processor: Numba reads these when it is imported."""
    chosen = {"NUMBA_CPU_NAME": target.name, "NUMBA_CPU_FEATURES": target.llvm_features}
    before = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(function: Callable[..., str], work: list[tuple[object, ...]], jobs: int, report: Report) -> None:
    if not work:
        return
    size, spawn = min(jobs, len(work)), get_context("spawn")
    with ProcessPoolExecutor(size, spawn, initializer=end_with, initargs=(os.getpid(),)) as pool:
        futures = [pool.submit(function, *each) for each in work]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                report(future.result(), done, len(work))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _build(name: str) -> bytes:
    code = door.build(name)
    if not settings_are_known():
        raise ValueError(
            f"{name} cannot be kept: Numba is told to compile in another way than by variables, for example by a file "
            ".numba_config.yaml in this folder"
        )
    if not objects.is_closed(code):
        raise ValueError(f"{name} cannot be kept: it refers to what is not in every process")
    return code


def _keep(name: str) -> str:
    objects.keep(name, _build(name))
    return name


def _keep_by_numba(name: str) -> str:
    door.through_numba(name)
    return name


def _write(name: str, target_name: str, place: Path) -> str:
    target = next(target for target in TARGETS if target.name == target_name)
    (place / objects.file_name(name)).write_bytes(objects.pack(objects.key_of_target(name, target), _build(name)))
    return name
