"""What is judged where results may be written again: after a crash, at least once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.chains.cases import Chain
from tests.chains.judge import Contents, is_table


def again(expected: Contents, contents: Contents) -> bool:
    """Whether a stream has records more often than it should."""
    return any(
        count > expected[sink].get(record, count)
        for sink, rows in contents.items()
        if isinstance(rows, Counter)
        for record, count in rows.items()
    )


def worse(chain: Chain, expected: Contents, contents: Contents) -> Iterator[str]:
    """What is lost or invented, though results may be there again and be counted again."""
    for link in chain.links:
        mine, theirs = expected[link.sink], contents[link.sink]
        if link.shape == "regrouped":  # it goes by counts
            continue
        if mine.keys() != theirs.keys():
            yield f"{link.sink}: {len(mine.keys() ^ theirs.keys())} rows are lost or invented"
        if is_table(link.text) and link.shape != "table":
            yield from fewer(link.sink, mine, theirs)


def fewer(sink: str, mine: Mapping[Any, Any], theirs: Mapping[Any, Any]) -> Iterator[str]:
    """The rows that count less than they should."""
    for key in mine.keys() & theirs.keys():
        if counted(theirs[key]) < counted(mine[key]):
            yield f"{sink}: {key!r} is {theirs[key]!r}, should be {mine[key]!r}"


def counted(value: bytes) -> int:
    """The count in a row of an aggregate."""
    count: int = json.loads(value)["C"]
    return count
