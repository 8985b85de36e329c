"""The options that say what data is and how it is read, the same words for every command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from steelyard.cli.common import UsageError

if TYPE_CHECKING:
    from steelyard.data.source import Source

_FORMATS = ("libsvm", "vw", "csv", "tsv", "json", "parquet", "arrow")


def add_data_options(parser: argparse.ArgumentParser, *, files: str = "DATA") -> None:
    """The files, and how they are read."""
    parser.add_argument(
        "data",
        nargs="+",
        metavar=files,
        help="files, plain or .gz .bz2 .xz .zst; several are one stream; - is standard input",
    )
    group = parser.add_argument_group("data")
    group.add_argument(
        "--format", choices=_FORMATS, help="default: what the name's extension says, else the model's, else libsvm"
    )
    group.add_argument("--label", metavar="COLUMN", help="the labels (csv, tsv, json, parquet, arrow)")
    group.add_argument(
        "--weight", metavar="COLUMN", help="the importance weights; for libsvm, `label` reads label:weight"
    )
    group.add_argument("--weights", metavar="FILE", help="importance weights in a file of their own, one a line")
    group.add_argument(
        "--drop", action="append", default=[], metavar="COLUMN", help="a column to leave out (repeat it)"
    )
    group.add_argument(
        "--text", action="append", default=[], metavar="COLUMN", help="a column that is text, even if it holds numbers"
    )
    group.add_argument(
        "-b", "--bits", type=int, metavar="N", help="hash features into 2^N indices (default 18 where there are names)"
    )
    group.add_argument(
        "-q",
        "--interactions",
        action="append",
        metavar="AB",
        help="products of namespaces or columns by first letters (ab, abc, :: for all pairs), or by names (age*job)",
    )
    group.add_argument("--zero-based", action="store_true", help="libsvm: indices start at 0 (default: found out)")
    group.add_argument("--no-header", dest="header", action="store_false", help="csv: columns are called 1, 2, …")
    group.add_argument("--ignore-base", action="store_true", help="vw: leave initial predictions out")
    group.add_argument("--hash-all", action="store_true", help="vw: hash names that are numbers, too")
    group.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="what cannot be read or learned ends the run (default), or is left out and counted",
    )


def add_no_shuffle(parser: argparse.ArgumentParser) -> None:
    """For commands that never shuffle, so that the words for data are those of ``learn``."""
    parser.add_argument("--no-shuffle", action="store_true", help="changes nothing: rows are taken as they stand")


def open_data(options: argparse.Namespace, schema: dict[str, Any] | None = None, *, predict: bool = False) -> Source:
    """The source that the options mean; with a model's ``schema``, read as the model's data was."""
    from steelyard.data.checks import OptionError
    from steelyard.data.opening import open

    if schema is not None:
        _check_same(options, schema)
    try:
        return _open(open, options, schema, predict)
    except OptionError as error:
        raise UsageError(str(error)) from None


def _open(
    open: Callable[..., Source], options: argparse.Namespace, schema: dict[str, Any] | None, predict: bool
) -> Source:
    return open(
        options.data,
        options.format,
        label=options.label,
        weight=options.weight,
        drop=options.drop,
        text=options.text,
        bits=options.bits,
        interactions=options.interactions,
        weights=options.weights,
        zero_based=True if options.zero_based else "auto",
        header=options.header,
        ignore_base=options.ignore_base,
        hash_all=options.hash_all,
        on_error=options.on_error,
        schema=schema,
        optional_label=predict,
    )


def _check_same(options: argparse.Namespace, schema: dict[str, Any]) -> None:
    """Refuse options by which rows would be read in another way than those that the model was learned from."""
    bits, products = schema.get("bits"), schema.get("interactions") or []
    columns = {**(schema.get("columns") or {}), schema.get("label"): schema.get("label_kind")}
    given = " ".join(options.interactions or ())
    wrong = {
        f"--bits {options.bits}": options.bits not in (None, bits) and _without("--bits", bits),
        f"--interactions {given}": given
        and sorted(options.interactions) != sorted(products)
        and _without("--interactions", " ".join(products)),
        "--hash-all": options.hash_all and not schema.get("hash_all") and "without --hash-all",
        "--zero-based": options.zero_based and schema.get("zero_based") is False and "from indices that start at 1",
    }
    for name in options.drop:
        dropped = _without("--drop", " ".join(schema.get("drop") or ()))
        wrong[f"--drop {name}"] = name in columns and f"{dropped}, from the column {name} among others"
    for name in options.text:
        wrong[f"--text {name}"] = columns.get(name, "text") != "text" and f"from numbers in the column {name}"
    for said, learned in wrong.items():
        if learned:
            raise UsageError(f"{said} contradicts the model, which was learned {learned}: leave it out")


def _without(option: str, value: Any) -> str:
    return f"with {option} {value}" if value else f"without {option}"


def check_data_options(options: argparse.Namespace) -> None:
    """Refuse what is wrong whatever the data."""
    from steelyard.data.hashing import Interactions, check_bits

    try:
        if options.bits is not None:
            check_bits(options.bits)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    try:
        Interactions(options.interactions)
    except ValueError as error:
        raise UsageError(f"--interactions: {error}") from None
    if [*options.data, options.weights].count("-") > 1:
        raise UsageError("- is standard input, which can be read only once")


def tell_of_rows(source: Source, unlabelled: int = 0) -> list[str]:
    """What was left out, in sentences."""
    found = []
    if unlabelled:
        found.append(f"{counted(unlabelled, 'row')} without a label, not learned or scored")
    if source.missing:
        found.append(f"{counted(source.missing, 'empty cell')}: a feature that is not there")
    if source.skipped.count:
        found.append(f"{counted(source.skipped.count, 'row')} left out; the first of what was wrong:")
        found += [f"  {each}" for each in source.skipped.shown]
    return found


def counted(number: int, noun: str) -> str:
    """A number and what is counted."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
