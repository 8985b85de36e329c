"""``{commands}``: what each command of the shell says of itself with ``--help``, so that it cannot be out of date."""

import os
import subprocess
import sys
import textwrap

from docutils import nodes
from docutils.parsers.rst import Directive

WIDTH = "88"


def _help(*command):
    environment = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1"}
    said = subprocess.run(
        [sys.executable, "-m", "steelyard", *command, "--help"], env=environment, capture_output=True, text=True
    )
    if said.returncode:
        raise RuntimeError(f"steelyard {' '.join(command)} --help failed: {said.stderr}")
    return "\n\n".join(map(_filled, said.stdout.rstrip().split("\n\n")))


def _filled(paragraph):
    """A paragraph of sentences in lines of one length; options stay as they are."""
    if paragraph.startswith("usage:") or any(line.startswith(" ") for line in paragraph.splitlines()):
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), int(WIDTH), break_on_hyphens=False)


class Commands(Directive):
    """A section for each command that is named: its help, as it is printed."""

    has_content = True

    def run(self):
        return [self._section(name) for name in self.content]

    def _section(self, name):
        section = nodes.section(ids=[f"steelyard-{name}"], names=[name])
        text = _help(name)
        section += [nodes.title(text=f"steelyard {name}"), nodes.literal_block(text, text, language="none")]
        return section


def setup(app):
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
