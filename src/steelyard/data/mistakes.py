"""What is wrong with a text, told of the file: line, column, token, and what it looks like instead."""

from __future__ import annotations

import re

_CONVERT = (
    "but only LIBSVM text (label index:value …) is read here: convert it, for example with "
    "sklearn.datasets.dump_svmlight_file"
)
_MAGIC = {  # how files of other kinds start
    b"\x1f\x8b": "a gzip file: decompress it first, or give it a name that ends in .gz",
    b"BZh": "a bzip2 file: decompress it first, or give it a name that ends in .bz2",
    b"\xfd7zXZ\0": "an xz file: decompress it first, or give it a name that ends in .xz",
    b"\x28\xb5\x2f\xfd": "a zstd file: decompress it first",
    b"PK\x03\x04": "a zip file (or .npz, .xlsx): unpack it first",
    b"PAR1": f"a Parquet file, {_CONVERT}",
    b"ARROW1": f"an Arrow file, {_CONVERT}",
    b"\x93NUMPY": f"a NumPy file, {_CONVERT}",
    b"\x89HDF": f"an HDF5 file, {_CONVERT}",
    b"\xef\xbb\xbf": "text with a byte order mark: save it as UTF-8 without one",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


class Mistake(Exception):
    """What is wrong, and where in a stretch."""

    def __init__(self, content: bytes, at: int, complaint: str) -> None:
        self.content, self.at, self.complaint = content, at, complaint


def error_of(mistake: Mistake, name: str, lines: int) -> ValueError:
    """A mistake as the user is told of it; ``lines`` of the file are before its stretch."""
    content, at, complaint = mistake.content, mistake.at, mistake.complaint
    line = lines + content.count(b"\n", 0, at) + 1
    start = content.rfind(b"\n", 0, at) + 1
    token = content[at : at + 60].split(b"\n")[0].split()
    shown = token[0].decode("utf-8", "replace") if token else "the end of the line"
    if not shown.isprintable():
        shown = "bytes that are no text"
    if shown.startswith("|"):
        complaint = "expected index:value; this looks like Vowpal Wabbit's format, which is not read here"
    hint = "" if shown.startswith("|") else _looks_like(content, start, line)
    return ValueError(f"{name}, line {line}, column {at - start + 1}: {complaint}, got {shown!r}{hint}")


def _looks_like(content: bytes, start: int, line: int) -> str:
    """What a line that cannot be read seems to be, if not LIBSVM text."""
    if line == 1:
        for magic, kind in _MAGIC.items():
            if content.startswith(magic):
                return f"; this looks like {kind}"
    text = content[start : start + 1000].split(b"\n")[0].split(b"#")[0].strip()
    tokens = text.split()
    if b"\0" in text:
        return f"; this looks like a binary file, {_CONVERT}"
    if text.startswith((b"{", b"[")):
        return f"; this looks like JSON, {_CONVERT}"
    if tokens and re.search(rb"[,;]", tokens[0]) and any(re.match(rb"\d+:", token) for token in tokens[1:]):
        return "; a line has one label here, not several"
    if b":" not in text or (tokens and re.search(rb"[,;]", tokens[0])):
        if re.search(rb"[,;]", text):
            return f"; this looks like CSV, {_CONVERT}"
        if b"\t" in text:
            return f"; this looks like a table with tabs, {_CONVERT}"
        if line == 1 and tokens and re.match(rb'"?[A-Za-z_]', tokens[0]):
            return f"; this looks like the header of a table, {_CONVERT}"
    if tokens and re.fullmatch(rb"\d+:[^,;]*", tokens[0]):
        return "; a line starts with a label, any number where it is not known"
    return ""
