"""The warnings of SHOW QUERIES: records dropped, records not handled, times ahead of the clock.

Three conditions give one. The query's stream time is ahead of the clock. It handles none of the
records that it reads. It drops more of them than a few, because they are late or cannot be handled.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ksql.core.types import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.core import QueryVersion
    from ksql.spark.query import DropCounts, QueryMetrics, Totals


_log = logging.getLogger(__name__)

Warnings = tuple[tuple[int, str], ...]
"""Since when each holds (ms), and what is wrong."""


def ahead_warnings(totals: Totals, now_ms: int) -> Warnings:
    """Return a warning about stream time; nothing once the clock has come that far."""
    latest = totals.ahead_ms
    if latest is None or latest <= now_ms:
        return ()
    warning = (
        f"a record has the timestamp {latest} ({format_timestamp(latest)}), far ahead of the "
        "clock: stream time follows it, so that windows close and records of an earlier time may "
        "be late; the processing log names the record"
    )
    return ((totals.ahead_since_ms, warning),)


class QueryWarnings:
    """The warnings about what queries have done since they run here.

    Each look forgets the queries that are gone, and what those of the same name did before their
    counts restarted.
    """

    def __init__(self) -> None:
        self._observed: dict[QueryVersion, _ObservedQuery] = {}

    def observe(self, running: Mapping[QueryVersion, QueryMetrics], now_ms: int) -> None:
        """See what the queries that run have done since the look before."""
        before = self._observed
        self._observed = {
            version: self._continued(before.get(version), version, metrics)
            for version, metrics in running.items()
        }
        for version, observed in self._observed.items():
            observed.observe(running[version].totals, now_ms)

    def of(self, version: QueryVersion) -> Warnings:
        """Return the warnings about one query; usually nothing."""
        observed = self._observed.get(version)
        return () if observed is None else observed.warnings()

    @staticmethod
    def _continued(
        known: _ObservedQuery | None, version: QueryVersion, metrics: QueryMetrics
    ) -> _ObservedQuery:
        if known is not None and known.counts_id is metrics.counts_id:
            return known
        return _ObservedQuery(version.name, metrics.counts_id)


class _ObservedQuery:
    """One query, as long as its counts continue."""

    def __init__(self, name: str, counts_id: object) -> None:
        self.counts_id = counts_id
        self._unhandled = UnhandledRecords()
        self._dropped = DroppedRecords(name)

    def observe(self, totals: Totals, now_ms: int) -> None:
        """See how far it has come."""
        self._unhandled.observe(totals, now_ms)
        self._dropped.observe(totals, now_ms)

    def warnings(self) -> Warnings:
        return (*self._unhandled.warnings(), *self._dropped.warnings())


class UnhandledRecords:
    """Compares what a query has read and could not handle between two looks."""

    def __init__(self) -> None:
        self._seen = (0, 0, 0)
        self._since: tuple[int, int] | None = None

    def observe(self, totals: Totals, now_ms: int) -> None:
        """See how far it has come; a look at which nothing has come changes nothing."""
        before, self._seen = self._seen, (totals.rows_in, totals.errors, totals.rows_out)
        read, skipped, written = (now - b for now, b in zip(self._seen, before, strict=True))
        if not read:
            return
        if skipped >= read and not written:
            since, count = self._since or (now_ms, 0)
            self._since = since, count + read
        else:
            self._since = None

    def warnings(self) -> Warnings:
        """Return the warning; usually nothing."""
        if self._since is None:
            return ()
        since, count = self._since
        text = f"none of the last {count} records could be handled; see the processing log"
        return ((since, text),)


_ONE_IN: Final = 100
"""A query may drop one record of so many without a warning."""


class DroppedRecords:
    """Looks at what a query has dropped of the last minutes' records."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._since: tuple[int, str] | None = None

    def observe(self, totals: Totals, now_ms: int) -> None:
        """See how much it is; the log has a warning when it becomes too much."""
        recent = totals.recent
        if recent.dropped * _ONE_IN <= recent.read:
            self._since = None
            return
        ahead = totals.ahead_ms is not None and totals.ahead_ms > now_ms
        text, begun = _text(recent, ahead=ahead), self._since is None
        self._since = now_ms if self._since is None else self._since[0], text
        if begun:
            _log.warning("records_dropped", extra={"query_id": self._name, "reason": text})

    def warnings(self) -> Warnings:
        """Return the warning; usually nothing."""
        return () if self._since is None else (self._since,)


def _text(recent: DropCounts, *, ahead: bool) -> str:
    """Return the warning: the share, the reasons, and what to do.

    Where stream time is ``ahead`` of the clock no GRACE PERIOD is of use. No record is dropped by
    a RETENTION: that is never shorter than size and grace, so its window has closed before.
    """
    failed = recent.dropped - recent.late
    what = "were dropped, or have a NULL where an expression failed" if failed else "were dropped"
    share = f"{_percent(recent)} of the last minutes' records {what}"
    said = [f"{share}: {recent.dropped} of {recent.read}"]
    if (worst := recent.worst) is not None:
        said += [
            f"{recent.late} came late for stream time, the worst {worst.behind_ms} ms behind it "
            f'(topic "{worst.topic}", partition {worst.partition})',
            "stream time follows a record far ahead of the clock"
            if ahead
            else f"a GRACE PERIOD of {worst.behind_ms} MILLISECONDS takes such records "
            "(the RETENTION of a window must be at least that and its SIZE); for rows of a table "
            "without windows, a RETENTION_MS of as much does",
        ]
    if failed > 0:
        said.append(f"{failed} could not be handled")
    return "; ".join([*said, "the processing log names them"])


def _percent(recent: DropCounts) -> str:
    """Return the share; records that several steps have dropped may make it more than all."""
    if not recent.read:
        return "100%"
    share = min(100 * recent.dropped / recent.read, 100)
    return f"{share:.1f}".removesuffix(".0") + "%"
