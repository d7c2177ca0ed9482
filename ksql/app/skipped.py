"""Queries that leave out what they read: all of it, or more than a little of the last minutes'."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ksql.spark.tally import Totals

_log = logging.getLogger(__name__)
_SPAN_MS: Final = 300_000
_LEAST_RECORDS: Final = 100
_SHARE: Final = 0.01


class Skipping:
    """Compares what a query has read and could not handle between two looks."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int, int]] = {}
        self._since: dict[str, tuple[int, int]] = {}
        self._lately: dict[str, deque[tuple[int, int, int]]] = {}
        self._losing: dict[str, int] = {}

    def look(self, query_id: str, totals: Totals, now_ms: int) -> None:
        """See how far it has come; a look at which nothing has come changes nothing."""
        now = (totals.rows_in, totals.errors, totals.rows_out)
        before = self._seen.get(query_id, (0, 0, 0))
        if now[0] < before[0]:  # counted anew
            before = (0, 0, 0)
        self._seen[query_id] = now
        read, skipped, written = (after - b for after, b in zip(now, before, strict=True))
        self._look_lately(query_id, now_ms, read, skipped)
        if not read:
            return
        if skipped >= read and not written:
            since, count = self._since.get(query_id, (now_ms, 0))
            self._since[query_id] = (since, count + read)
        else:
            self._since.pop(query_id, None)

    def _look_lately(self, query_id: str, now_ms: int, read: int, skipped: int) -> None:
        lately = self._lately.setdefault(query_id, deque())
        if read or skipped:
            lately.append((now_ms, read, skipped))
        while lately and now_ms - lately[0][0] > _SPAN_MS:
            lately.popleft()
        read, skipped = self._shares(query_id)
        if read < _LEAST_RECORDS or skipped <= read * _SHARE:
            self._losing.pop(query_id, None)
        elif query_id not in self._losing:
            self._losing[query_id] = now_ms
            _log.warning(
                "records_left_out",
                extra={"query_id": query_id, "records": read, "left_out": skipped},
            )

    def _shares(self, query_id: str) -> tuple[int, int]:
        lately = self._lately.get(query_id, ())
        return sum(read for _, read, _ in lately), sum(skipped for *_, skipped in lately)

    def warnings(self, query_id: str) -> tuple[tuple[int, str], ...]:
        """Return since when (ms), and what there is to say; nothing as a rule."""
        nothing_handled = self._since.get(query_id)
        if nothing_handled is not None:
            since, count = nothing_handled
            text = f"none of the last {count} records could be handled; see the processing log"
            return ((since, text),)
        losing = self._losing.get(query_id)
        if losing is None:
            return ()
        read, skipped = self._shares(query_id)
        text = (
            f"{100 * skipped / read:.1f} % of the last minutes' records were left out "
            f"({skipped} entries for {read} records), as late or faulty; the processing log names "
            "them. A longer GRACE PERIOD takes late records"
        )
        return ((losing, text),)
