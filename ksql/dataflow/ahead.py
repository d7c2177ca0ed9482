"""Records whose time is far ahead of the clock: counted, and the farthest of them named.

As in Kafka Streams, stream time follows such a record: windows close, and what comes after it at
its proper time is late. Nothing in a query's results depends on what is noted here.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.dataflow.program import RawBatch


class Ahead:
    """Looks at the times of batches; ``bound_ms`` is the latest time that is not worth a word."""

    def __init__(self, bound_ms: int) -> None:
        self._bound = bound_ms
        self._where = ""
        self.count = 0
        self.latest_ms: int | None = None

    def concerns(self, times: Sequence[int]) -> bool:
        """Whether one of the times is far ahead."""
        return max(times, default=0) > self._bound

    def see(
        self,
        batch: RawBatch,
        times: Sequence[int],
        places: Sequence[int],
        rows: Sequence[object] | None = None,
    ) -> None:
        """Look at the times of the records that stand at those places of a batch.

        Those without a row were left out by WHERE: they move no stream time.
        """
        if not self.concerns(times):
            return
        far = [
            (time, place)
            for time, place, row in zip(times, places, rows or repeat(True), strict=False)
            if time > self._bound and row
        ]
        if not far:
            return
        self.count += len(far)
        latest, place = max(far)
        if self.latest_ms is None or latest > self.latest_ms:
            self.latest_ms = latest
            self._where = (
                f'topic "{batch.topics[place]}", partition {batch.partitions[place]}, '
                f"offset {batch.offsets[place]}"
            )

    def text(self) -> str:
        """Return the warning for the processing log; empty if there was no such record."""
        if not self.count:
            return ""
        return (
            f"records with a timestamp far ahead of the clock: {self.count}, the latest "
            f"{self.latest_ms} ({self._where}). Stream time follows it: windows close, and records "
            "of an earlier time may be late"
        )
