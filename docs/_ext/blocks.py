"""Blocks of code end where their text ends: the empty line that a doctest needs at its end is not shown."""

from docutils import nodes


def _strip(app, document):
    for block in document.findall(nodes.literal_block):
        text = block.astext().rstrip()
        if block.rawsource == block.astext():  # nothing in it but text
            block.rawsource = text
            block.children = [nodes.Text(text)]


def setup(app):
    """Register it."""
    app.connect("doctree-read", _strip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
