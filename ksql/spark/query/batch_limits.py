"""Computes how many records a batch may take to stay below a size in bytes.

Spark's Kafka source bounds a batch by the number of its records only. So the size of a record is
found out: before a launch from some of those that wait, later from those that the batches had.
Source: Spark's Structured Streaming + Kafka Integration Guide (``maxOffsetsPerTrigger``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ksql.core import KsqlError
from ksql.spark.checkpoint import checkpoint

if TYPE_CHECKING:
    from ksql.spark.checkpoint.checkpoint import Offsets, Position
    from ksql.spark.query.spec import QuerySpec, StartAt

TopicOffsets = Callable[[Iterable[str]], Mapping[tuple[str, int], int]]
Places = Mapping[tuple[str, int], int]

_LEAST_SHARE: Final = 1
_FITS: Final = 1.5  # by what factor a bound may be off before it is set again
_SECOND_MS: Final = 1_000
_LARGE_BYTES: Final = 1 << 20
_LOOKS: Final = (0.0, 0.5, 0.75)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchLimits:
    """Looks at the records that wait for a query.

    ``begins`` and ``ends`` are the first and the last offsets of topics. ``sizes`` are the bytes of
    some records from each of the given offsets on. Without these nothing is looked at.
    """

    begins: TopicOffsets = lambda _topics: {}
    ends: TopicOffsets = lambda _topics: {}
    sizes: Callable[[Places], list[int]] = lambda _places: []

    def bounded(self, spec: QuerySpec) -> QuerySpec:
        """Return the launch with the number of records that its first batches may have.

        Queries without an exchange take records as they come and hold none.
        """
        if not (spec.stages or spec.moved) or not spec.max_bytes:
            return spec
        try:
            record_bytes = self._record_bytes(spec)
        except KsqlError as problem:  # the launch itself reports what is wrong
            _log.info(
                "records_not_looked_at",
                extra={"query_id": spec.query_id, "reason": problem.text()},
            )
            return spec
        return (
            replace(spec, first_records=records_within(spec, record_bytes))
            if record_bytes
            else spec
        )

    def _record_bytes(self, spec: QuerySpec) -> float:
        """Return the mean of the largest part of what waits; 0 if that cannot be much."""
        waiting = self.waiting(spec, checkpoint.planned(spec.checkpoint))
        if sum(end - start for start, end in waiting.values()) * _LARGE_BYTES <= spec.max_bytes:
            return 0.0
        means = [0.0]
        for look in _LOOKS:
            places = {at: start + int((end - start) * look) for at, (start, end) in waiting.items()}
            if sizes := self.sizes(places):
                means.append(sum(sizes) / len(sizes))
        return max(means)

    def waiting(
        self, spec: QuerySpec, behind: Position | None
    ) -> dict[tuple[str, int], tuple[int, int]]:
        """Return from where to where records of each partition wait after that batch."""
        starts: Mapping[str, StartAt] = spec.topics if behind is None else behind.offsets
        begins, ends = self.begins(spec.topics), self.ends(spec.topics)
        spans = {}
        for (topic, partition), end in ends.items():
            start = starts.get(topic, "earliest")
            if start == "latest":
                continue
            first = -1 if isinstance(start, str) else start.get(partition, -1)
            first = max(first, begins.get((topic, partition), 0))
            if first < end:
                spans[topic, partition] = (first, end)
        return spans


def rebound(spec: QuerySpec, record_bytes: float, bound: Callable[[int], object]) -> QuerySpec:
    """Have a query's next batches as many records as fit; return what its next launch begins with.

    Nothing changes if the present bound is near enough, or no size is known.
    """
    if not record_bytes:
        return spec
    records, present = records_within(spec, record_bytes), spec.first_records or spec.max_records
    if records <= present * _FITS <= records * _FITS**2:
        return spec
    bound(records)
    return replace(spec, first_records=records)


def records_within(spec: QuerySpec, record_bytes: float) -> int:
    """Return how many records of a size a batch may have; at least one."""
    return max(1, min(spec.max_records, int(spec.max_bytes / record_bytes)))


def as_candidate(spec: QuerySpec, rate: int) -> QuerySpec:
    """Return the launch of a candidate, which has the least share of the machine.

    It reads at most ``rate`` records a second; 0: as many as it can.
    """
    spec = replace(spec, weight=_LEAST_SHARE)
    if not rate:
        return spec
    return replace(spec, trigger_ms=_SECOND_MS, max_records=min(spec.max_records, rate))


def by_topic(offsets: Mapping[tuple[str, int], int]) -> Offsets:
    """Return the offsets of partitions by topic."""
    grouped: Offsets = {}
    for (topic, partition), offset in offsets.items():
        grouped.setdefault(topic, {})[partition] = offset
    return grouped
