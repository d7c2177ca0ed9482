"""Results that cross an exchange on their way to the sink: with what puts them in order there.

The order travels with a result in the place of its headers, which all steps hand on as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.core.records import Headers, OutRecord
    from ksql.exec.operators.base import Record

MovedRecord = tuple["bytes | None", "bytes | None", int, "Headers | None", int, int, int, int]
"""A record to be written; then its cause's sequence key, number of topic, partition and offset."""

Place = tuple[int, int, int, int]
"""Turn, number of the topic, partition and offset of a record."""


def with_place(headers: Headers | None, origin: Place) -> Headers:
    """Return what travels in the place of headers."""
    return cast("Headers", (headers, origin))


def placed_records(records: Iterable[Record]) -> list[Record]:
    """Return a stage's results, each with its place in the place of its headers."""
    return [
        record._replace(
            headers=with_place(
                record.headers, (record.sequence_key, record.topic, record.partition, record.offset)
            )
        )
        for record in records
    ]


def moved(results: Sequence[OutRecord]) -> list[MovedRecord]:
    """Return encoded results whose headers hold their places."""
    return [(key, value, time, *_opened(carried)) for key, value, time, carried in results]


def _opened(carried: Any) -> tuple[Headers | None, int, int, int, int]:
    headers, origin = carried
    return (headers, *origin)
