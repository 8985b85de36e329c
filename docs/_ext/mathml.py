"""Formulas as MathML, which every browser typesets by itself: no script, no font, no network.

Docutils, which Sphinx stands on, translates LaTeX; this file hands it over. On the page of theory, what sentences write
as x_t and e^(−t) becomes an index and a power.
"""

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _mathml(text, **options):
    """Brackets and bars of a norm as high as a letter: they would grow to the highest part of the formula."""
    return re.sub("<mo>([⟨⟩‖])</mo>", r'<mo stretchy="false">\1</mo>', tex2mathml(text, **options))


def _inline(writer, node):
    writer.body.append(_mathml(node.astext()))
    raise nodes.SkipNode


def _display(writer, node):
    writer.body.append(f'<div class="formula">{_mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


# A letter, perhaps with a star; then an index, or a power, which is a word or stands in parentheses.
_INDEX = re.compile(r"(?:(?<![A-Za-z0-9_])((?:Regret|[^\W\d_])\*?)_|(?<=[\w)])\^)(?:([A-Za-z0-9]+)|\(([^()]*)\))")


def _indices(app, document):
    if app.env.docname != "theory":
        return
    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.paragraph, nodes.entry, nodes.emphasis, nodes.strong)):
            text.parent.replace(text, list(_parts(text.astext())))


def _parts(text):
    end = 0
    for found in _INDEX.finditer(text):
        base, inner = found[1], found[2] or found[3]
        yield nodes.Text(text[end : found.start()] + (base or ""))
        yield (nodes.subscript if base else nodes.superscript)(inner, inner)
        end = found.end()
    yield nodes.Text(text[end:])


def setup(app):
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.config.html_math_renderer = "mathml"
    app.connect("doctree-read", _indices)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
