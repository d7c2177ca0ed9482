"""Compares the results of a case, and makes a case that differs as small as it can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.streams.cases import Case
from tests.streams.oracle import Result

Differs = Callable[[Case], bool]


def plain(results: Sequence[Result]) -> list[Result]:
    """Results as they are compared: a column that is NULL and one that is missing are the same.

    All else counts, and so does the order: each record passes the whole query before the next one
    is read, in a test driver of Kafka Streams and in ours, so there is one order of the results,
    over all keys.
    """
    return [
        (key, None if row is None else {n: v for n, v in row.items() if v is not None}, *more)
        for key, row, *more in results
    ]


def shrunk(case: Case, differs: Differs) -> Case:
    """The case with as few records as still differ."""
    size = len(case.records) // 2
    while size:
        start = 0
        while start < len(case.records):
            fewer = case.with_records(case.records[:start] + case.records[start + size :])
            if differs(fewer):
                case = fewer
            else:
                start += size
        size //= 2
    return case


def shown(case: Case, theirs: Sequence[Result], ours: Sequence[Result]) -> str:
    """Both results side by side."""
    lines = [str(case.given), *(f"  {record}" for record in case.records), "Kafka Streams:"]
    lines += [f"  {each}" for each in plain(theirs)]
    return "\n".join([*lines, "here:", *(f"  {each}" for each in plain(ours))])
