"""``steelyard convert``: files of any format → one binary file that is mapped into memory."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from steelyard.cli.common import UsageError, check_output
from steelyard.cli.inputs import add_data_options, add_no_shuffle, check_data_options, open_data, tell_of_rows

_EXAMPLES = """examples:
  steelyard convert clicks.vw.gz -q ab --bits 22 --output clicks.arrow
  steelyard learn clicks.arrow --no-shuffle --model m
"""


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "convert",
        help="read files once, into a binary cache that is learned from much faster",
        description="Parse and hash rows once, and keep them in an Arrow file that is mapped into memory. All commands "
        "read it as they would read the files that it was made of. Needs pyarrow.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_data_options(parser)
    parser.add_argument("--output", required=True, metavar="FILE", help="where to write it; the name ends in .arrow")
    add_no_shuffle(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of sentences")
    parser.add_argument("--quiet", action="store_true", help="say nothing but what is wrong")
    parser.set_defaults(run=run, interrupted="nothing was written")


def run(options: argparse.Namespace) -> int:
    """Convert block by block."""
    from steelyard.data.cache import is_cache, write_cache
    from steelyard.data.opening import find_files
    from steelyard.progress import progress_bar

    check_data_options(options)
    if not options.output.endswith(".arrow"):
        raise UsageError(f"--output {options.output}: the name of the file must end in .arrow, which says what it is")
    check_output("--output", options.output, is_cache)
    read = [path for path in find_files([*options.data, *filter(None, [options.weights])]) if os.path.exists(path)]
    if os.path.exists(options.output) and any(os.path.samefile(path, options.output) for path in read):
        raise UsageError(f"--output {options.output} is among the files that are read")
    source = open_data(options)
    with progress_bar() as bar:
        report = None
        if bar is not None and not options.quiet and not options.json:
            shown = bar
            report = lambda rows: shown(f"{rows:,} rows", source.bytes_read, source.total_bytes)  # noqa: E731
        rows = write_cache(source, options.output, report)
    if options.json:
        found = {"examples": rows, "missing": source.missing, "skipped": source.skipped.count}
        print(json.dumps({**found, "bytes": os.path.getsize(options.output), "output": options.output}))
    elif not options.quiet:
        for each in tell_of_rows(source):
            print(f"steelyard: {each}", file=sys.stderr)
        print(f"{rows} rows, {os.path.getsize(options.output):,} bytes: {options.output}")
    return 0
