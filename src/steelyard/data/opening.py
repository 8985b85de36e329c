"""A file of any known format → the source of its rows."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from steelyard.data.cache import CacheSource, is_cache
from steelyard.data.checks import OptionError
from steelyard.data.files import STDIN, SUFFIXES, shown_name
from steelyard.data.source import Source
from steelyard.data.text import TextSource
from steelyard.data.weights import WeightedSource

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
    paths = find_files(path)
    chosen = _format_of(paths, format, schema)
    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error must be 'stop' or 'skip', got {on_error!r}")
    known = schema or {}
    cached = chosen == "arrow" and any(os.path.isfile(path) and is_cache(path) for path in paths)
    if known and not cached and _family(chosen) != _family(known["format"]):
        raise ValueError(
            f"{shown_name(paths[0])} is read as {chosen}, but the model was learned from {known['format']}, whose "
            "features have other names: give a file of that format" + (", or say --format" if format is None else "")
        )
    if chosen not in ("parquet", "arrow"):
        for folder in filter(os.path.isdir, paths):
            shown = folder.rstrip("/")
            raise ValueError(f"{folder} is a folder: name its files, with a pattern for example, {shown}/*")
    elif STDIN in paths:
        raise ValueError(
            f"{chosen} cannot be read from {shown_name(STDIN)}: keep what comes in a file, and name that file"
        )
    _check_options(
        shown_name(paths[0]),
        chosen,
        {
            **{"label": label, "drop": drop, "text": text, "weight": weight, "interactions": interactions},
            **{"zero_based": zero_based != "auto", "n_features": n_features != "auto", "header": not header},
            **{"ignore_base": ignore_base, "hash_all": hash_all},
        },
    )
    source = (_open_cache if cached else _open)(
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
    if not isinstance(words, (str, Iterable)):
        raise ValueError(f"columns are a name or a list of names, got {words!r}")
    return [words] if isinstance(words, str) else list(words)


def find_files(path: PathLike | Sequence[PathLike]) -> list[str]:
    """The files that are meant, patterns spelled out."""
    if not isinstance(path, (str, os.PathLike)):
        if hasattr(path, "shape"):
            raise ValueError(f"a {type(path).__name__} is no file: give it to fit or partial_fit as it is")
        if not isinstance(path, Iterable):
            raise ValueError(f"path must be the name of a file or a list of names, got {path!r}")
        found = [file for each in path for file in find_files(each)]
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
        each = ", ".join(f"{shown_name(path)} is {_extension(path) or 'of no known format'}" for path in paths[:4])
        raise ValueError(
            f"files of several formats are not one stream ({each}): give them one, or say --format (format=)"
        )
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
    if chosen in ("parquet", "arrow"):
        from steelyard.data.arrow import open_arrow

        wanted = ("label", "weight", "drop", "text", "bits", "interactions", "schema", "optional_label")
        return open_arrow(paths, skips=said["on_error"] == "skip", **{name: said[name] for name in wanted})
    if chosen == "libsvm":
        return _open_libsvm(paths, said)
    return TextSource(paths, _text_format(chosen, said), on_error=said["on_error"])


def _family(format: str) -> str:
    """Formats of one family have the same features."""
    return "columns" if format in COLUMNS else format


def _open_cache(paths: list[str], chosen: str, said: dict[str, Any]) -> Source:
    from steelyard.data.columns import TEXT

    if len(paths) > 1:
        raise ValueError(f"{paths[0]} is a cache, which is a stream of its own: convert all files into one")
    source = CacheSource(paths[0])
    source.skips = said["on_error"] == "skip"
    model, here = said["schema"] or {}, source.schema()
    if model:
        _check_same_features(source.name, here, model)
    asked = {name: said[name] for name in ("bits", "interactions", "hash_all", "drop")}
    if not said["optional_label"]:
        asked |= {"label": said["label"], "weight": said["weight"]}
    if not all((here.get("columns") or {}).get(name) == TEXT for name in said["text"]):
        asked["text"] = said["text"]
    for name, wanted in asked.items():
        if wanted and _plain(wanted) != _plain(here.get(name)):
            whose = "the model was learned" if model.get(name) == wanted else "it is asked for"
            raise ValueError(
                f"{source.name} is a cache that was made with {name} {here.get(name)!r}, and {whose} with {wanted!r}: "
                f"say --{name.replace('_', '-')} where it is made, with steelyard convert"
            )
    return source


def _check_same_features(cache: str, here: dict[str, Any], model: dict[str, Any]) -> None:
    """Refuse a cache in which an index is another feature than in the model."""
    made, learned = here["format"], model["format"]
    if _family(made) != _family(learned):
        raise ValueError(
            f"{cache} is a cache that was made of {made}, but the model was learned from {learned}, whose features "
            "have other names"
        )
    there = here.get("columns") or {}
    known = model.get("columns") or there
    for name in {**known, **there}:
        if there.get(name) != known.get(name):
            raise ValueError(
                f"{cache} is a cache in which the column {name!r} is {there.get(name, 'not there')}, but "
                f"{known.get(name, 'not there')} in the data that the model was learned from: convert again, with "
                "--drop or --text"
            )
    ordered = model.get("interactions") or not model.get("bits")
    if ordered and list(there) != list(known):
        raise ValueError(f"{cache} is a cache whose columns stand in another order than the model's: convert again")
    for name in ("bits", "interactions", "hash_all", "zero_based"):
        if _plain(here.get(name)) != _plain(model.get(name)):
            raise ValueError(
                f"{cache} is a cache that was made with {name} {here.get(name)!r}, and the model was learned with "
                f"{model.get(name)!r}: say --{name.replace('_', '-')} where it is made, with steelyard convert"
            )


def _plain(value: Any) -> Any:
    """An option to be compared: what says nothing is None, and one word is a list of one."""
    return [value] if isinstance(value, str) else value or None


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
