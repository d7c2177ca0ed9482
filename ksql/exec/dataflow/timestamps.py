"""A record's time from one of its columns, and records whose time is far ahead of the clock.

As in Kafka Streams, stream time follows such a record: windows close, and what comes after it at
its proper time is late. They are counted, and the farthest is named; no results depend on that.
Source: docs/sql/windows.md#time.
"""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING, Final

from ksql.core import LATEST_MS, QueryFailed
from ksql.core.types import STRING, SqlType
from ksql.java.timeformat import timestamp_parser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core import Row
    from ksql.exec.dataflow.program import RawBatch
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


_PAUSE_MS: Final = 60_000


class FutureTimestamps:
    """Looks at the times of batches; ``bound_ms`` is the latest time that is not worth a word."""

    def __init__(self, bound_ms: int) -> None:
        self._bound = bound_ms
        self.place = ("", 0, 0)
        self.count = 0
        self.latest_ms: int | None = None

    def is_far(self, times: Sequence[int]) -> bool:
        """Return whether one of the times is worth a word."""
        return max(times, default=0) > self._bound

    def see(self, batch: RawBatch, times: Sequence[int], places: Sequence[int]) -> None:
        """Look at the times of the records at those places of a batch."""
        if not self.is_far(times):
            return
        far = [pair for pair in zip(times, places, strict=True) if pair[0] > self._bound]
        self.count += len(far)
        latest, index = max(far)
        if self.latest_ms is None or latest > self.latest_ms:
            self.latest_ms = latest
            self.place = batch.topics[index], batch.partitions[index], batch.offsets[index]

    def text(self) -> str:
        """Return the warning for the processing log; empty if there was no such record."""
        if not self.count:
            return ""
        topic, partition, offset = self.place
        return (
            f"records with a timestamp far ahead of the clock: {self.count}, the latest "
            f'{self.latest_ms} (topic "{topic}", partition {partition}, offset {offset}). '
            "Stream time follows it: windows close, and records of an earlier time may be late"
        )


class WarningsWritten:
    """The warnings that a process has written lately, by version of a query and partition.

    A source whose times are always ahead, perhaps rightly, would have a warning with each batch.
    So one follows another a minute later, or when a time is a minute later than the last one's.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, int], tuple[int, int]] = {}

    def due(self, application_id: str, ahead: FutureTimestamps, now_ms: int) -> bool:
        """Return whether to warn now of the records seen; if so, note that it was done."""
        if ahead.latest_ms is None:
            return False
        topic, partition, _ = ahead.place
        clocks = now_ms, ahead.latest_ms
        last = self._last.get((application_id, topic, partition))
        if last is not None and max(map(sub, clocks, last)) < _PAUSE_MS:
            return False
        self._last[application_id, topic, partition] = clocks
        return True
