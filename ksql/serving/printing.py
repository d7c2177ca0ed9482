"""PRINT: raw records of a topic with their guessed formats.

Source: docs/sql/reading.md#print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ksql.core.types import times
from ksql.formats.written import Written
from ksql.serving.format_detection import DetectedFormats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.core.records import RawRecord
    from ksql.formats.schema_registry import Registry
    from ksql.serving.feed import Feed


class PrintQuery:
    """PRINT's lines; see ``TextStream``."""

    kind: Literal["print"] = "print"
    query_id: str | None = None

    def __init__(
        self,
        feed: Feed,
        *,
        interval: int,
        limit: int | None,
        registry: Registry | None = None,
    ) -> None:
        self._feed = feed
        self._interval = interval
        self._limit = limit
        self._formats: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        written = None if registry is None else Written(registry)
        self._keys, self._values = DetectedFormats(written, keys=True), DetectedFormats(written)

    def lines(self) -> Iterator[list[str]]:
        """Yield lines as records come; first the guessed formats."""
        seen = sent = 0
        try:
            while self._feed.open and (self._limit is None or sent < self._limit):
                out: list[str] = []
                records = self._feed.poll()
                if records and self._formats is None:
                    self._formats = (
                        self._keys.fitting([r.key for r in records]),
                        self._values.fitting([r.value for r in records]),
                    )
                    keys, values = map(" or ".join, self._formats)
                    out += [f"Key format: {keys}", f"Value format: {values}"]
                for record in records:
                    seen += 1
                    if (seen - 1) % self._interval == 0 and (
                        self._limit is None or sent < self._limit
                    ):
                        out.append(self._line(record))
                        sent += 1
                yield out
        finally:
            self._feed.close()

    def _line(self, record: RawRecord) -> str:
        keys, values = self._formats or ((), ())
        time = _time(record.timestamp)
        key, value = self._keys.shown(record.key, keys), self._values.shown(record.value, values)
        return f"rowtime: {time}, key: {key}, value: {value}, partition: {record.partition}"

    def close(self) -> None:
        """End it."""
        self._feed.close()


def _time(millis: int) -> str:
    """Print a record's time, which its writer chose: it may lie beyond every calendar."""
    days, clock = divmod(millis, times.DAY_MS)
    seconds, fraction = divmod(clock, 1000)
    date = times.format_date(days)
    date = date[0] + date[1:].replace("-", "/")
    return (
        f"{date} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d} Z"
    )
