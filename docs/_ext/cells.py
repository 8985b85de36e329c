"""Tables of text fold on a phone: each cell becomes a line of its own, with the head of its column before it.

Numbers are compared down a column, so a table that has a column of numbers (aligned to the right) stays as it is,
and scrolls.
"""

from docutils import nodes


def _fold(app, document):
    for table in document.findall(nodes.table):
        group = next(iter(table.findall(nodes.tgroup)))
        heads = [[entry.astext() for entry in row] for part in group.findall(nodes.thead) for row in part]
        numbers = any("text-right" in entry.get("classes", []) for entry in table.findall(nodes.entry))
        if not heads or group["cols"] < 3 or numbers or "autosummary" in table.get("classes", []):
            continue
        table["classes"].append("folds")
        for body in group.findall(nodes.tbody):
            for row in body:
                for head, entry in list(zip(heads[0], row, strict=True))[1:]:
                    first = next(iter(entry.findall(nodes.paragraph)), None)
                    if head and entry.astext().strip() and first is not None:
                        first.insert(0, nodes.inline(f"{head}: ", f"{head}: ", classes=["head-of-cell"]))


def setup(app):
    """Register it."""
    app.connect("doctree-read", _fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
