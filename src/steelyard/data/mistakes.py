"""What is wrong with a text, told of the file: line, column, token, and what it looks like instead."""

from __future__ import annotations

import re

from steelyard.data.stretch import Format, Mistake

_NOT_READ = "which is not read here: convert it"
_MAGIC = {  # how files of other kinds start
    b"\x1f\x8b": "a gzip file: decompress it first, or give it a name that ends in .gz",
    b"BZh": "a bzip2 file: decompress it first, or give it a name that ends in .bz2",
    b"\xfd7zXZ\0": "an xz file: decompress it first, or give it a name that ends in .xz",
    b"\x28\xb5\x2f\xfd": "a zstd file: decompress it first, or give it a name that ends in .zst",
    b"PK\x03\x04": "a zip file (or .npz, .xlsx): unpack it first",
    b"PAR1": "a Parquet file: say --format parquet --label COLUMN",
    b"ARROW1": "an Arrow file: say --format arrow --label COLUMN",
    b"\x93NUMPY": f"a NumPy file, {_NOT_READ}",
    b"\x89HDF": f"an HDF5 file, {_NOT_READ}",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


def error_of(mistake: Mistake, form: Format, name: str, lines: int) -> ValueError:
    """A mistake as the user is told of it; ``lines`` of the file are before its stretch."""
    content, at, complaint = mistake.content, mistake.at, mistake.complaint
    line = lines + content.count(b"\n", 0, at) + 1
    start = content.rfind(b"\n", 0, at) + 1
    token = content[at : at + 60].split(b"\n")[0].split()
    if mistake.end is not None:
        token = [content[at : min(mistake.end, at + 60)]]
    shown = token[0].decode("utf-8", "replace") if token else "the end of the line"
    got = f"got {shown!r}" if token and shown.isprintable() else f"got {'bytes that are no text' if token else shown}"
    text = content[start : start + 1000].split(b"\n")[0]
    hint = looks_like(content, text, line, form.name) or form.hint(text, line)
    return ValueError(f"{name}, line {line}, column {at - start + 1}: {complaint}, {got}{'; ' if hint else ''}{hint}")


def looks_like(content: bytes, text: bytes, line: int, form: str) -> str:
    """What a line that cannot be read in one format seems to be, if it seems to be of another."""
    if line == 1 and content.startswith(b"PK\x03\x04") and b"header.npy" in content[:200]:
        return "this is a model or a checkpoint of Steelyard, and no data"
    if line == 1:
        for magic, kind in _MAGIC.items():
            if content.startswith(magic):
                return f"this looks like {kind}"
    if re.search(rb"[\x00-\x08\x0e-\x1a]", text):
        return f"this looks like a binary file, {_NOT_READ}"
    if form != "csv" and b"\r" in text.rstrip(b"\r"):
        return r"lines seem to end in \r alone: let them end in \n"
    if form == "json":
        return "this looks like one array: write each of its objects as a line" if text.startswith(b"[") else ""
    if text.lstrip().startswith((b"{", b"[")):
        return "this looks like JSON: say --format json --label NAME"
    if form != "vw" and re.match(rb"[^|,;]*\|\S*\s", text):
        return "this looks like Vowpal Wabbit's format: say --format vw"
    if form != "libsvm" and re.fullmatch(rb"\s*[-+.\deE]+(\s+\d+:[-+.\deE]+)+\s*", text):
        return "this looks like LIBSVM text: say --format libsvm"
    return _looks_like_a_table(text, line) if form != "csv" else ""


def _looks_like_a_table(text: bytes, line: int) -> str:
    text = text.split(b"#")[0].strip()
    tokens = text.split()
    if tokens and re.search(rb"[,;]", tokens[0]) and any(re.match(rb"\d+:", token) for token in tokens[1:]):
        return "a line has one label here, not several"
    if b":" not in text or (tokens and re.search(rb"[,;]", tokens[0])):
        if re.search(rb"[,;]", text):
            return "this looks like CSV: say --format csv --label COLUMN"
        if b"\t" in text:
            return "this looks like a table with tabs: say --format tsv --label COLUMN"
        if line == 1 and tokens and re.match(rb'"?[A-Za-z_]', tokens[0]):
            return "this looks like the header of a table: say --format csv --label COLUMN"
    return ""
