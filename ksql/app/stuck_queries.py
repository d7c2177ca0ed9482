"""Queries that handle none of the records that they read: they run, and yet all is lost on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ksql.core.query_version import QueryVersion
    from ksql.spark.query.query_metrics import Totals


class StuckQueries:
    """Compares what a query has read and could not handle between two looks."""

    def __init__(self) -> None:
        self._seen: dict[QueryVersion, tuple[int, int, int]] = {}
        self._since: dict[QueryVersion, tuple[int, int]] = {}

    def look(self, version: QueryVersion, totals: Totals, now_ms: int) -> None:
        """See how far it has come; a look at which nothing has come changes nothing."""
        now = (totals.rows_in, totals.errors, totals.rows_out)
        before = self._seen.get(version, (0, 0, 0))
        if now[0] < before[0]:  # counted again
            before = (0, 0, 0)
        self._seen[version] = now
        read, skipped, written = (after - b for after, b in zip(now, before, strict=True))
        if not read:
            return
        if skipped >= read and not written:
            since, count = self._since.get(version, (now_ms, 0))
            self._since[version] = (since, count + read)
        else:
            self._since.pop(version, None)

    def warnings(self, version: QueryVersion) -> tuple[tuple[int, str], ...]:
        """Return the warning and since when it holds (ms); usually nothing."""
        stuck = self._since.get(version)
        if stuck is None:
            return ()
        since, count = stuck
        text = f"none of the last {count} records could be handled; see the processing log"
        return ((since, text),)
