"""Names of products: which features' product an index stands for, found out when it is asked for."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.data.hashing import Interactions

_PRIME = 16777619
_MOST_TRIED = 1 << 22


def name_products(indices: Iterable[int], names: Mapping[int, str], schema: Mapping[str, Any]) -> dict[int, str]:
    """The names of those of some indices that are products of features with known names: ``first*second``.

    A product of features i and j has the index (16777619 i) xor j, in so many bits: so for an index and i there is one
    j, which is looked up. Products of four and more are not looked for, nor of three where there are too many.

    Examples
    --------
    >>> from steelyard.data.naming import name_products
    >>> names = {74201: "A^Herb", 122473: "B^y"}
    >>> name_products([104178, 5], names, {"format": "vw", "bits": 18, "interactions": ["AB"]})
    {104178: 'A^Herb*B^y'}
    """
    wanted = [index for index in indices if index not in names]
    if not wanted or not schema.get("interactions") or not schema.get("bits"):
        return {}
    mask, found = (1 << int(schema["bits"])) - 1, {}
    spaces = _by_space(names, schema)
    for term in _terms(schema, list(spaces)):
        members = [spaces[space] for space in term]
        tried = 1
        for each in members[:-1]:
            tried *= len(each)
        if len(term) > 3 or tried * len(wanted) > _MOST_TRIED:
            continue
        for chosen in itertools.product(*members[:-1]):
            head = 0
            for index in chosen:
                head = ((head ^ index) * _PRIME) & mask
            for index in wanted:
                last = members[-1].get(index ^ head)
                if last is not None and index not in found:
                    found[index] = "*".join([*(names[i] for i in chosen), last])
    return found


def _by_space(names: Mapping[int, str], schema: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    """Features by namespace (its first letter) or by column."""
    kinds = schema.get("columns")
    spaces: dict[str, dict[int, str]] = {} if kinds is None else {name: {} for name in kinds}
    found = defaultdict(dict, spaces)
    for index, name in names.items():
        if kinds is None:
            found[name[0] if "^" in name and name[0] != "^" else " "][index] = name
            continue
        column = name if kinds.get(name) == "number" else name.partition("=")[0]
        while column not in kinds and "=" in name[len(column) + 1 :]:  # names of columns may hold the sign
            column = name[: name.index("=", len(column) + 1)]
        if column in kinds:
            found[column][index] = name
    return dict(found)


def _terms(schema: Mapping[str, Any], spaces: list[str]) -> list[list[str]]:
    """Which spaces meet, in the order in which they are multiplied."""
    ordered = sorted(spaces) if schema.get("columns") is None else spaces
    meetings = Interactions(schema["interactions"]).meetings(dict(enumerate(ordered)), max(len(ordered), 1))
    of_number = {int(number): ordered[slot] for slot, number in enumerate(meetings.meets.tolist()) if number}
    return [[of_number[int(number)] for number in row[1 : 1 + row[0]]] for row in meetings.terms.tolist()]
