"""Maps: made of arrays, taken apart, joined; and of text."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from ksql.core.types import entries
from ksql.functions.build import family
from ksql.functions.spec import Scalar

Map = dict[Any, Any]


def as_map(keys: list[str], values: list[Any]) -> Map:
    """Map keys to the values of the same places; missing values are NULL, extra ones left out."""
    return dict(zip_longest(keys, values[: len(keys)]))


def union(first: Map | None, second: Map | None) -> Map | None:
    """Return the entries of both; the second map's win."""
    if first is None and second is None:
        return None
    return {**(first or {}), **(second or {})}


def split_to_map(text: str, entry_delimiter: str, value_delimiter: str) -> Map | None:
    """Return the map that a text such as ``a=1&b=2`` spells.

    Entries without a value are left out.
    """
    if not entry_delimiter or not value_delimiter or entry_delimiter == value_delimiter:
        return None
    pairs = (entry.split(value_delimiter) for entry in text.split(entry_delimiter) if entry)
    return {pair[0]: pair[1] for pair in pairs if len(pair) > 1}


def keys(value: Map) -> list[Any]:
    """Return the keys, in Java's order."""
    return [key for key, _ in entries(value)]


def values(value: Map) -> list[Any]:
    """Return the values, in Java's order of their keys."""
    return [entry for _, entry in entries(value)]


MAPS = family(
    "MAP",
    {
        "as_map": (
            "A map of an array of keys and an array of values.",
            Scalar(("ARRAY<STRING> keys", "ARRAY<T> values"), "MAP<STRING, T>", as_map),
        ),
        "map_keys": (
            "The keys of a map.",
            Scalar(("MAP<STRING, T> input",), "ARRAY<STRING>", keys),
        ),
        "map_values": (
            "The values of a map.",
            Scalar(("MAP<STRING, T> input",), "ARRAY<T>", values),
        ),
        "map_union": (
            "The entries of two maps in one; those of the second win.",
            Scalar(
                ("MAP<STRING, T> map1", "MAP<STRING, T> map2"),
                "MAP<STRING, T>",
                union,
                nulls="pass",
            ),
        ),
        "split_to_map": (
            "The map that a text spells, given the text between entries and before values.",
            Scalar(
                ("STRING input", "STRING entryDelimiter", "STRING kvDelimiter"),
                "MAP<STRING, STRING>",
                split_to_map,
            ),
        ),
    },
)
