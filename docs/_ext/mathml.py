"""Formulas as MathML, which every browser typesets by itself: no script, no font, no network.

Docutils, which Sphinx stands on, translates LaTeX; this file hands it over.
"""

from docutils.utils.math.latex2mathml import tex2mathml


def _inline(writer, node):
    writer.body.append(tex2mathml(node.astext()))
    raise _done()


def _display(writer, node):
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise _done()


def _done():
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app):
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
