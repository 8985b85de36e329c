"""Puts compiled kernels into a wheel, if ``make wheel`` has made them; without them a wheel is pure Python."""

from __future__ import annotations

import json
import platform
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the objects, and says in the wheel's name which systems they are for. They fit every version of Python.

    It also records the digest of the kernel sources, for installations from which the sources are taken away.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        digest, record = self._digest()
        self.made = tempfile.TemporaryDirectory()
        Path(self.made.name, record).write_text(digest)
        build_data["force_include"][str(Path(self.made.name, record))] = f"steelyard/kernels/{record}"
        objects = Path(self.root, "src", "steelyard", "compiled", "objects")
        files = sorted(objects.glob("*/*.object"))
        if not files:
            return
        if any(self._sources(file) != digest for file in files):
            self.app.display_warning("the compiled kernels are of other sources, and left out: run `make wheel`")
            return
        build_data["force_include"][str(objects)] = "steelyard/compiled/objects"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.made.cleanup()

    def _digest(self) -> tuple[str, str]:
        """The digest of the sources here, and the name of the file that records it."""
        sys.path.insert(0, str(Path(self.root, "src")))
        try:
            from steelyard.kernels.digest import RECORD, source_digest
        finally:
            del sys.path[0]
        return source_digest(), RECORD

    @staticmethod
    def _sources(file: Path) -> str:
        with file.open("rb") as content:
            return str(json.loads(content.readline())["key"]["sources"])


def _platform() -> str:
    """The tag of the system. An object asks for nothing but mathematics that every C library has: any glibc will do."""
    if sys.platform == "linux":
        return f"manylinux_2_17_{platform.machine()}.manylinux2014_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
