"""Measures how far queries are behind their sources, in records and in time, apart from any scrape.

A look asks Kafka where the sources begin and end, in two requests for all queries. The lag of a
partition in records is its end less the offset that the query has committed. Where it is not 0, the
record at that offset is read for its timestamp: ``now`` less this is the lag in time.

A look reads the records of so many partitions at most, those first that have waited longest. A
timestamp is kept as long as its offset is the committed one. A partition that was not read keeps
the timestamp of an earlier record. Its lag in time is then at most the one that is shown.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.core import KsqlError, PartitionId, QueryVersion
from ksql.core.process import RepeatedFailure

if TYPE_CHECKING:
    from ksql.control.statements import Records

_log = logging.getLogger(__name__)
MOST_READ: Final = 50
"""The partitions of which a look reads a record."""

Place = tuple[PartitionId, int]
"""An offset of a partition."""


class Lag(NamedTuple):
    """How far a query is behind one partition: unread records, and the time of the oldest (ms).

    The time is None if it is not known.
    """

    records: int
    oldest_ms: int | None = None


class SourceExtent(NamedTuple):
    """A partition as a version sees it: the next offset that it has not committed, and the end."""

    position: int
    end: int


SourceExtents = Mapping[QueryVersion, Mapping[PartitionId, SourceExtent]]
Lags = Mapping[QueryVersion, Mapping[PartitionId, Lag]]


class LagWatch:
    """The lags of the queries that run here; one thread looks, any number may read ``lags``."""

    def __init__(self, records: Records) -> None:
        """Take ``records``, those of the sources' topics."""
        self._records = records
        self._oldest: dict[Place, int | None] = {}
        self._failure = RepeatedFailure(_log, "oldest_records_not_read")
        self.lags: Lags = {}

    def observe(self, sources: SourceExtents) -> None:
        """Measure the lags of these, and forget all others."""
        behind = {
            (place, source.position): source.end
            for partitions in sources.values()
            for place, source in partitions.items()
            if source.position < source.end
        }
        known = {at: time for at, time in self._oldest.items() if at in behind}
        missing = [at for at in self._waiting_first(behind) if at not in known]
        self._oldest = known | self._read({at: behind[at] for at in missing[:MOST_READ]})
        self.lags = {
            version: {
                place: self._lag(version, place, source) for place, source in partitions.items()
            }
            for version, partitions in sources.items()
        }

    def _waiting_first(self, behind: Mapping[Place, int]) -> list[Place]:
        """Return those that lag, first those of whose partition no time is known."""
        timed = {
            place
            for lags in self.lags.values()
            for place, lag in lags.items()
            if lag.oldest_ms is not None
        }
        return sorted(behind, key=lambda at: (at[0] in timed, at))

    def _lag(self, version: QueryVersion, place: PartitionId, source: SourceExtent) -> Lag:
        records = max(source.end - source.position, 0)
        at = place, source.position
        if not records:
            return Lag(0)
        if at in self._oldest:
            return Lag(records, self._oldest[at])
        before = self.lags.get(version, {}).get(place, Lag(0))
        return Lag(records, before.oldest_ms)

    def _read(self, behind: Mapping[Place, int]) -> dict[Place, int | None]:
        """Return the time of the first record at each place; those that do not come are left out.

        Of two places in one partition the second has its turn at the next look.
        """
        places: dict[PartitionId, int] = dict(reversed([*behind]))
        spans = {place: (at, behind[place, at]) for place, at in places.items()}
        if not spans:
            return {}
        try:
            records = self._records.read(spans, most=1)
        except KsqlError as error:
            self._failure.note(error)
            return {}
        self._failure.clear()
        times = {(record.topic, record.partition): record.timestamp for record in records}
        return {(place, places[place]): time for place, time in times.items()}
