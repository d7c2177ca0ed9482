"""Records whose time is far ahead of the clock: counted, and the farthest of them named.

As in Kafka Streams, stream time follows such a record: windows close, and what comes after it at
its proper time is late. Nothing in a query's results depends on what is noted here.
"""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.exec.dataflow.program import RawBatch


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
        """Return whether to warn now of what was found; if so, note that it was done."""
        if ahead.latest_ms is None:
            return False
        topic, partition, _ = ahead.place
        clocks = now_ms, ahead.latest_ms
        last = self._last.get((application_id, topic, partition))
        if last is not None and max(map(sub, clocks, last)) < _PAUSE_MS:
            return False
        self._last[application_id, topic, partition] = clocks
        return True
