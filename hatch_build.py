"""Puts compiled kernels into a wheel, if ``make wheel`` has made them; without them a wheel is pure Python."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the objects, and says in the wheel's name which systems they are for. They fit every version of Python.

    It also records the digest of the kernel sources, for installations from which the sources are taken away. Objects
    that are not all there, damaged, or of other sources are left out; with STEELYARD_OBJECTS=required that is an error.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "src")))
        try:  # these need nothing but the standard library
            from steelyard.compiled import objects
            from steelyard.compiled.machine import wheel_targets
            from steelyard.kernels.digest import RECORD, source_digest
        finally:
            del sys.path[0]
        place = Path(self.root, "src", "steelyard", "compiled", "objects")
        targets = [target.name for target in wheel_targets() if (place / target.name).is_dir()]
        wrong = [
            name for target in wheel_targets() if target.name in targets for name in objects.missing(place, target)
        ]
        complete = bool(targets) and not wrong
        if not complete:
            self._say_why(wrong)
        self.made = tempfile.TemporaryDirectory()
        Path(self.made.name, RECORD).write_text(source_digest())
        build_data["force_include"][str(Path(self.made.name, RECORD))] = f"steelyard/kernels/{RECORD}"
        if not complete:
            return
        for target in targets:
            build_data["force_include"][str(place / target)] = f"steelyard/compiled/objects/{target}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"

    def _say_why(self, wrong: list[str]) -> None:
        reason = "there are no compiled kernels"
        if wrong:
            reason = f"{len(wrong)} compiled kernels are missing, damaged or of other sources ({wrong[0]} for one)"
        if os.environ.get("STEELYARD_OBJECTS") == "required":
            raise RuntimeError(f"{reason}: run `make wheel`")
        if wrong:
            self.app.display_warning(f"{reason}: the wheel is built without any. `make wheel` compiles them")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.made.cleanup()


def _platform() -> str:
    """The tag of the system. An object asks for nothing but mathematics that every C library has: any glibc will do."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        return f"manylinux_2_17_{platform.machine()}.manylinux2014_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
