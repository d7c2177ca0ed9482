"""Detects queries that run and do nothing: input waits, and no batch is finished for a time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.app.metrics.lag_watch import SourceExtents
    from ksql.core import PartitionId, QueryVersion

_log = logging.getLogger(__name__)


class _Wait(NamedTuple):
    """Where a query with waiting input is, since when, and whether that was logged."""

    at: Mapping[PartitionId, int]
    since_ms: int
    logged: bool = False


class StalledQueries:
    """Compares how far queries have committed between two looks.

    Each look forgets the queries that are gone, that rest, or that have nothing to read.
    """

    def __init__(self, after_ms: int) -> None:
        """Take ``after_ms``: for how long nothing may be finished; 0: however long."""
        self._after_ms = after_ms
        self._waits: dict[QueryVersion, _Wait] = {}
        self._now_ms = 0

    def observe(
        self, sources: SourceExtents, runs: Callable[[QueryVersion], bool], now_ms: int
    ) -> None:
        """See how far the queries have come; the log has one line when a query becomes stalled."""
        before, self._now_ms = self._waits, now_ms
        waits: dict[QueryVersion, _Wait] = {}
        for version, partitions in sources.items():
            records = sum(max(source.end - source.position, 0) for source in partitions.values())
            if not records or not runs(version):
                continue
            at = {place: source.position for place, source in partitions.items()}
            wait = before.get(version)
            if wait is None or wait.at != at:
                wait = _Wait(at, now_ms)
            if self._is_long(wait) and not wait.logged:
                minutes = (now_ms - wait.since_ms) // 60_000
                extra = {"query_id": version.name, "records": records, "minutes": minutes}
                _log.warning("query_stalled", extra=extra)
                wait = wait._replace(logged=True)
            waits[version] = wait
        self._waits = waits

    def _is_long(self, wait: _Wait) -> bool:
        return bool(self._after_ms) and self._now_ms - wait.since_ms >= self._after_ms

    def is_stalled(self, version: QueryVersion) -> bool:
        """Return whether a version is, as of the last look."""
        wait = self._waits.get(version)
        return wait is not None and self._is_long(wait)

    def warnings(self, version: QueryVersion) -> tuple[tuple[int, str], ...]:
        """Return the warning of a version, with the time in ms since when; usually nothing."""
        wait = self._waits.get(version)
        if wait is None or not self._is_long(wait):
            return ()
        minutes = (self._now_ms - wait.since_ms) // 60_000
        text = (
            f"input waits, and no batch was finished for {minutes} minutes, although the query "
            "runs: its batch hangs, or takes that long; PAUSE and RESUME begin the batch again"
        )
        return ((wait.since_ms, text),)
