"""WITH (TIMESTAMP): a record's time from one of its columns.

Source: docs/sql/windows.md#time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import LATEST_MS, QueryFailed
from ksql.core.types import STRING, SqlType
from ksql.java.timeformat import timestamp_parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core import Row
    from ksql.exec.operators.base import LogError


class BadTimestamp(QueryFailed):
    """A record without a time, where the settings do not want it skipped."""

    def __init__(self, why: str, row: Row) -> None:
        super().__init__(
            "Fatal user code error in TimestampExtractor callback for record",
            detail=why,
            entry=("timestamp", why, row),
        )


def extractor(
    index: int, type_: SqlType, pattern: str | None, *, fatal: bool = False
) -> Callable[[Row, LogError], int | None]:
    """Return a function that gives the time in column ``index``, or logs why not and gives None.

    If ``fatal`` it raises BadTimestamp instead.
    """
    parse = timestamp_parser(pattern) if type_ == STRING and pattern else None

    def extract(row: Row, log: LogError) -> int | None:
        value = row[index]
        why = "the timestamp column is null"
        if value is not None:
            try:
                time = int(value) if parse is None else parse(value)
            except ValueError as error:
                why = str(error)
            else:
                if 0 <= time <= LATEST_MS:
                    return time
                why = f"negative timestamp {time}"
                if time > 0:
                    why = f"timestamp {time} is later than {LATEST_MS} ms"
        if fatal:
            raise BadTimestamp(why, row)
        log("timestamp", why, row)
        return None

    return extract
