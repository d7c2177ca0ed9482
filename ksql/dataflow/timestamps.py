"""WITH (TIMESTAMP): a record's time from one of its columns.

Source: reference, statements, section 14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.functions.timeformat import timestamp_parser
from ksql.types.model import STRING, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.processors.base import LogError, Row


def extractor(
    index: int, type_: SqlType, pattern: str | None
) -> Callable[[Row, LogError], int | None]:
    """A function that gives the time in column ``index``, or logs why not and gives None."""
    parse = timestamp_parser(pattern) if type_ == STRING and pattern else None

    def extract(row: Row, log: LogError) -> int | None:
        value = row[index]
        if value is None:
            log("timestamp", "the timestamp column is null", row)
            return None
        try:
            time = int(value) if parse is None else parse(value)
        except ValueError as error:
            log("timestamp", str(error), row)
            return None
        if time < 0:
            log("timestamp", f"negative timestamp {time}", row)
            return None
        return time

    return extract
