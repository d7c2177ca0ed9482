"""Queries that handle none of the records that they read: they run, and yet all is lost on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ksql.spark.query.query_metrics import Totals


class StuckQueries:
    """Compares what a query has read and could not handle between two looks."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int, int]] = {}
        self._since: dict[str, tuple[int, int]] = {}

    def look(self, query_id: str, totals: Totals, now_ms: int) -> None:
        """See how far it has come; a look at which nothing has come changes nothing."""
        now = (totals.rows_in, totals.errors, totals.rows_out)
        before = self._seen.get(query_id, (0, 0, 0))
        if now[0] < before[0]:  # counted again
            before = (0, 0, 0)
        self._seen[query_id] = now
        read, skipped, written = (after - b for after, b in zip(now, before, strict=True))
        if not read:
            return
        if skipped >= read and not written:
            since, count = self._since.get(query_id, (now_ms, 0))
            self._since[query_id] = (since, count + read)
        else:
            self._since.pop(query_id, None)

    def warnings(self, query_id: str) -> tuple[tuple[int, str], ...]:
        """Return since when (ms), and what there is to say; nothing as a rule."""
        stuck = self._since.get(query_id)
        if stuck is None:
            return ()
        since, count = stuck
        text = f"none of the last {count} records could be handled; see the processing log"
        return ((since, text),)
