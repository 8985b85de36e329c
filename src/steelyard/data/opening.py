"""A file of any known format → the source of its rows."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steelyard.data.cache import CacheSource, is_cache
from steelyard.data.checks import MOST_WEIGHT, OptionError
from steelyard.data.files import STDIN, SUFFIXES, read_blocks, shown_name
from steelyard.data.source import Extent, Rows, Source
from steelyard.data.text import STRETCH, TextSource

FORMATS = ("libsvm", "vw", "csv", "tsv", "json", "parquet", "arrow")
"""What ``format`` may be."""
COLUMNS = ("csv", "tsv", "json", "parquet", "arrow")
"""Formats whose features are columns with names: a model that was learned from one can read all others."""
_EXTENSIONS = {
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".vw": "vw",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
PathLike = str | os.PathLike[str]


def open(
    path: PathLike | Sequence[PathLike],
    format: str | None = None,
    *,
    label: str | None = None,
    weight: str | None = None,
    drop: str | Sequence[str] = (),
    text: str | Sequence[str] = (),
    bits: int | None = None,
    interactions: str | Sequence[str] | None = None,
    weights: PathLike | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | Literal["auto"] = "auto",
    header: bool = True,
    ignore_base: bool = False,
    hash_all: bool = False,
    on_error: Literal["stop", "skip"] = "stop",
    schema: dict[str, Any] | None = None,
    optional_label: bool = False,
) -> Source:
    """Open files of rows: LIBSVM, Vowpal Wabbit's text, CSV, TSV, JSON lines, Parquet, Arrow; .gz, .bz2, .xz, .zst.

    Parameters
    ----------
    path : a file, a pattern with ``*``, or a list of them: several are one stream. ``-`` is standard input.
    format : {"libsvm", "vw", "csv", "tsv", "json", "parquet", "arrow"}, optional
        By default the name's extension says it, and it is ``libsvm`` where there is none that is known.
    label, weight, drop : the columns of labels and of weights, and those to leave out
        For formats with named columns. In LIBSVM, ``weight="label"`` reads ``label:weight``.
    text : columns that are text, whatever they hold
    bits : int, optional
        Features are hashed into ``2**bits`` indices, 18 by default. Without, columns that are all numbers, and LIBSVM's
        indices, are taken as they are.
    interactions : str or list of str, optional
        Products of features: ``"ab"`` of all namespaces or columns whose names start with a and b, ``"::"`` of all
        pairs, ``"age*job"`` of two by their names.
    weights : a file with one weight a line, for all the rows
    zero_based, n_features : of LIBSVM, see :func:`steelyard.stream_libsvm`
    header : of CSV: whether the first line has the names; without, they are 1, 2, …
    ignore_base, hash_all : of Vowpal Wabbit: leave initial predictions out; hash names that are numbers, too
    on_error : {"stop", "skip"}
        Whether what cannot be read ends it all, or is left out and counted.
    schema : dict, optional
        What ``Source.schema`` of another source said: read columns as that one did.
    optional_label : bool
        Whether columns of labels and weights may be absent.

    Returns
    -------
    Source
        ``for X, y, w in source`` gives blocks of rows, X a CSR matrix.

    Examples
    --------
    >>> import tempfile, pathlib, steelyard
    >>> path = pathlib.Path(tempfile.mkdtemp(), "jobs.csv")
    >>> _ = path.write_text("age,job,paid,copies\\n31,clerk,yes,1\\n45,,no,2\\n")
    >>> source = steelyard.open(path, label="paid", weight="copies")
    >>> for X, y, w in source:
    ...     print(X.shape, X.nnz, y, w)
    (2, 262144) 3 ['yes' 'no'] [1. 2.]
    """
    if weights is not None and on_error == "skip":
        raise OptionError("weights in a file of their own belong to rows by their order, so no row may be skipped")
    paths = _find(path)
    chosen = _format_of(paths, format, schema)
    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error must be 'stop' or 'skip', got {on_error!r}")
    known = schema or {}
    if known and (chosen in COLUMNS) != (known["format"] in COLUMNS):
        raise OptionError(
            f"{shown_name(paths[0])} is read as {chosen}, but the model was learned from {known['format']}, whose "
            "features have other names: give a file of that format, or say --format"
        )
    if chosen not in ("parquet", "arrow"):
        for folder in filter(os.path.isdir, paths):
            shown = folder.rstrip("/")
            raise ValueError(f"{folder} is a folder: name its files, with a pattern for example, {shown}/*")
    _check_options(
        shown_name(paths[0]),
        chosen,
        {
            **{"label": label, "drop": drop, "text": text, "weight": weight, "interactions": interactions},
            **{"zero_based": zero_based != "auto", "n_features": n_features != "auto", "header": not header},
            **{"ignore_base": ignore_base, "hash_all": hash_all},
        },
    )
    source = _open(
        paths,
        chosen,
        {
            "label": label or known.get("label"),
            "weight": weight or known.get("weight"),
            "drop": _words(drop),
            "text": _words(text),
            "bits": bits if bits is not None else known.get("bits"),
            "interactions": interactions if interactions is not None else known.get("interactions"),
            "zero_based": known.get("zero_based", zero_based) if zero_based == "auto" else zero_based,
            "n_features": n_features,
            "header": header,
            "ignore_base": ignore_base,
            "hash_all": hash_all or bool(known.get("hash_all")),
            "on_error": on_error,
            "schema": schema,
            "optional_label": optional_label,
        },
    )
    return source if weights is None else WeightedSource(source, weights)


_TAKES = {
    **dict.fromkeys(("label", "drop", "text"), COLUMNS),
    "weight": (*COLUMNS, "libsvm"),
    "interactions": (*COLUMNS, "vw"),
    "zero_based": ("libsvm",),
    "n_features": ("libsvm",),
    "header": ("csv", "tsv"),
    "ignore_base": ("vw",),
    "hash_all": ("vw",),
}
"""The formats for which an option means something."""
_HAVE_NO_COLUMNS = {
    "libsvm": ": LIBSVM text has no columns with names, but numbers",
    "vw": ": in Vowpal Wabbit's text each line has its label, its importance and the names of its features",
}


def _check_options(name: str, chosen: str, given: dict[str, Any]) -> None:
    """Refuse options that would change nothing."""
    for option, value in given.items():
        if value and chosen not in _TAKES[option]:
            why = "" if option in ("header", "ignore_base", "hash_all") else _HAVE_NO_COLUMNS.get(chosen, "")
            shell = "no-header" if option == "header" else option.replace("_", "-")
            raise OptionError(
                f"{name} is read as {chosen}, where --{shell} ({option}=) means nothing{why}; for another format say "
                "--format (format=)"
            )


def _words(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _find(path: PathLike | Sequence[PathLike]) -> list[str]:
    """The files that are meant, patterns spelled out."""
    if not isinstance(path, (str, os.PathLike)):
        found = [file for each in path for file in _find(each)]
        if not found:
            raise ValueError("no files are named")
        return found
    name = os.fspath(path)
    if name == STDIN or os.path.exists(name) or not glob.has_magic(name):
        return [name]
    matching = sorted(glob.glob(name, recursive=True))
    if not matching:
        raise FileNotFoundError(2, "no file matches the pattern", name)
    return matching


def _format_of(paths: list[str], format: str | None, schema: dict[str, Any] | None) -> str:
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
        return format
    found = {_extension(path) for path in paths}
    if len(found) > 1:
        raise ValueError(f"files of several formats ({', '.join(sorted(map(str, found)))}) are not one stream")
    return found.pop() or (schema or {}).get("format") or "libsvm"


def _extension(path: str) -> str | None:
    name = Path(path)
    if os.path.isdir(path):
        inside = sorted(p for p in name.rglob("*") if p.suffix in (".parquet", ".pq", ".arrow", ".feather", ".ipc"))
        return _EXTENSIONS[inside[0].suffix] if inside else None
    if name.suffix.lower() in SUFFIXES[1:]:
        name = name.with_suffix("")
    return _EXTENSIONS.get(name.suffix.lower())


def _open(paths: list[str], chosen: str, said: dict[str, Any]) -> Source:
    if chosen == "arrow" and any(os.path.isfile(path) and is_cache(path) for path in paths):
        return _open_cache(paths, said)
    if chosen in ("parquet", "arrow"):
        from steelyard.data.arrow import open_arrow

        wanted = ("label", "weight", "drop", "text", "bits", "interactions", "schema", "optional_label")
        return open_arrow(paths, **{name: said[name] for name in wanted})
    if chosen == "libsvm":
        return _open_libsvm(paths, said)
    return TextSource(paths, _text_format(chosen, said), on_error=said["on_error"])


def _open_cache(paths: list[str], said: dict[str, Any]) -> Source:
    if len(paths) > 1:
        raise ValueError(f"{paths[0]} is a cache, which is a stream of its own: convert all files into one")
    source = CacheSource(paths[0])
    of_model, here = said["schema"] or {}, source.schema()
    for name in ("label", "weight", "drop", "text", "bits", "interactions", "hash_all"):
        wanted = said[name] or None
        if wanted is not None and wanted != (here.get(name) or None):
            whose = "the model was learned" if of_model.get(name) == wanted else "it is asked for"
            raise ValueError(
                f"{paths[0]} is a cache that was made with {name} {here.get(name)!r}, and {whose} with {wanted!r}: "
                f"say --{name.replace('_', '-')} where it is made, with steelyard convert"
            )
    return source


def _open_libsvm(paths: list[str], said: dict[str, Any]) -> Source:
    from steelyard.data.libsvm import LibsvmSource

    if said["weight"] not in (None, "label"):
        raise OptionError(
            f"LIBSVM text has no columns with names, and no weight {said['weight']!r}: weights stand in a file of "
            "their own (weights=FILE), or beside the labels, as label:weight (weight='label')"
        )
    options = {name: said[name] for name in ("n_features", "zero_based", "bits", "on_error")}
    return LibsvmSource(paths, weighted=said["weight"] == "label", **options)


def _text_format(chosen: str, said: dict[str, Any]) -> Any:
    if chosen == "vw":
        from steelyard.data.hashing import DEFAULT_BITS
        from steelyard.data.vw import VwFormat

        bits = DEFAULT_BITS if said["bits"] is None else said["bits"]
        options = {name: said[name] for name in ("interactions", "ignore_base", "hash_all")}
        return VwFormat(bits=bits, **options)
    wanted = ["label", "weight", "drop", "text", "bits", "interactions", "schema", "optional_label"]
    if chosen == "json":
        from steelyard.data.jsonl import JsonFormat

        return JsonFormat(**{name: said[name] for name in wanted})
    from steelyard.data.csv import CsvFormat

    options = {name: said[name] for name in [*wanted, "header"]}
    return CsvFormat(delimiter="\t" if chosen == "tsv" else None, **options)


class WeightedSource(Source):
    """A source with the weights of its rows in a file of their own, one a line."""

    def __init__(self, source: Source, weights: PathLike) -> None:
        super().__init__()
        self._source, self._path, self._shown = source, os.fspath(weights), shown_name(weights)
        self.name, self.read_again, self.total_bytes = source.name, source.read_again, source.total_bytes
        self.names, self.labels_may_lack = source.names, source.labels_may_lack

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def schema(self) -> dict[str, Any]:
        return self._source.schema()

    def extent(self) -> Extent:
        return self._source.extent()

    def place(self, row: int, column: int | None = None) -> str:
        return self._source.place(row, column)

    def whole(self) -> Rows:
        rows = self._source.whole()
        return next(self._weighted(iter([rows])), rows)

    def blocks(self) -> Iterator[Rows]:
        return self._weighted(self._source.blocks())

    def stream(self) -> Iterator[Rows]:
        return self._weighted(self._source.stream())

    def _weighted(self, blocks: Iterator[Rows]) -> Iterator[Rows]:
        numbers, at = _numbers(self._path), 0
        kept = np.empty(0)
        for rows in blocks:
            while kept.size < rows.y.size:
                more = next(numbers, None)
                if more is None:
                    raise ValueError(f"{self._shown} has {at + kept.size} weights, and {self.name} has more rows")
                kept = np.concatenate([kept, more])
            self.bytes_read, self.missing, self.label_names = (
                self._source.bytes_read,
                self._source.missing,
                self._source.label_names,
            )
            yield rows._replace(weight=rows.weight * kept[: rows.y.size])
            at, kept = at + rows.y.size, kept[rows.y.size :]
        left = kept.size + sum(more.size for more in numbers)
        if left:
            raise ValueError(f"{self._shown} has {at + left} weights, and {self.name} has {at} rows")


def _numbers(path: str) -> Iterator[Any]:
    """The numbers of a file, one a line."""
    line = 0
    for content in read_blocks(path, STRETCH):
        tokens = content.splitlines()
        try:
            found = np.array([float(token) for token in tokens])
        except ValueError:
            place = next(i for i, token in enumerate(tokens) if not _is_number(token))
            shown = tokens[place][:60].decode("utf-8", "replace")
            raise ValueError(
                f"{shown_name(path)}, line {line + place + 1}: a weight is one number a line, got {shown!r}"
            ) from None
        bad = np.flatnonzero(~((found >= 0.0) & (found <= MOST_WEIGHT)))
        if bad.size:
            raise ValueError(
                f"{shown_name(path)}, line {line + bad[0] + 1} has the weight {found[bad[0]]:g}: weights must be "
                "finite and not negative"
            )
        line += len(tokens)
        yield found


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token
