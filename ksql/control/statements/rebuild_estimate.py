"""The records that a rebuild would read, and the time and room that it would need.

Kafka's client does not ask brokers for the sizes of logs, so bytes are estimated from records.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.control.statements.upgradereport import RateFrom, RebuildEstimate, SourceExtent
from ksql.core import KsqlError
from ksql.exec.dataflow import plan_of, read_topics, start_ms
from ksql.sql.plan import codec, sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ksql.control.engine.context import Prepared
    from ksql.control.statements.services import Partition, Request
    from ksql.core import RawRecord
    from ksql.sql.catalog import PersistentQuery

_log = logging.getLogger(__name__)

RATE_LIMIT: Final = "ksql.upgrade.rebuild.max.records.per.second"

ASSUMED_PER_S: Final = 50_000.0
"""The speed of a rebuild whose query has read no large batch here; docs/benchmarks.md has more."""

_SAMPLED: Final = 50
"""So many records at the beginning of each partition are looked at, and as many at its end."""

Spans = dict["Partition", tuple[int, int]]


def extents(prepared: Prepared, request: Request) -> tuple[SourceExtent, ...]:
    """Return what the candidate of a rebuild would read of each source.

    Raises: KsqlError if Kafka cannot be asked.
    """
    plan = codec.loads(prepared.plans["new"])
    starts = read_topics(plan)
    held = dict(request.services.monitor.ends(list(starts)))
    firsts = request.services.records.read(held, _SAMPLED)
    sample = _Sample(
        held, _spans_read(held, starts, request), firsts, _lasts(held, firsts, request)
    )
    return tuple(
        _extent(source.name, source.topic, sample, request) for source in sources(plan.sink)
    )


class _Sample(NamedTuple):
    """The offsets that topics have and a candidate reads, and records of both ends of topics."""

    held: Mapping[Partition, tuple[int, int]]
    read: Spans
    firsts: Sequence[RawRecord]
    lasts: Sequence[RawRecord]


def _extent(name: str, topic: str, sample: _Sample, request: Request) -> SourceExtent:
    records = sum(end - start for (of, _), (start, end) in sample.read.items() if of == topic)
    looked_at = (*sample.firsts, *sample.lasts)
    sizes = [_size(record) for record in looked_at if record.topic == topic]
    described = request.engine.topics.describe(topic)
    return SourceExtent(
        source=name,
        topic=topic,
        records=records,
        lost=sum(begin for (of, _), (begin, _) in sample.held.items() if of == topic),
        bytes=round(sum(sizes) / len(sizes) * records) if sizes else None,
        sampled=len(sizes),
        begins=_first_ms(record for record in sample.firsts if record.topic == topic),
        compacted=described is not None
        and "compact" in described.configs.get("cleanup.policy", ""),
    )


def _lasts(
    held: Mapping[Partition, tuple[int, int]], firsts: Iterable[RawRecord], request: Request
) -> Sequence[RawRecord]:
    """Return records of the end of each partition, none that is among the first."""
    nexts = {(r.topic, r.partition): r.offset + 1 for r in firsts}
    spans = {at: (max(nexts.get(at, 0), end - _SAMPLED), end) for at, (_, end) in held.items()}
    return request.services.records.read(spans)


def _spans_read(
    held: Mapping[Partition, tuple[int, int]], starts: Mapping[str, str], request: Request
) -> Spans:
    """Return from where to where the candidate reads each partition."""
    later: dict[Partition, int] = {}
    for topic, start in starts.items():
        if (time_ms := start_ms(start)) is not None:
            later.update(request.services.records.offsets_at([topic], time_ms))
        elif start == "latest":
            later.update({at: end for at, (_, end) in held.items() if at[0] == topic})
    return {at: (max(begin, later.get(at, 0)), end) for at, (begin, end) in held.items()}


def _first_ms(records: Iterable[RawRecord]) -> int | None:
    """Return the earliest time of the first record of each partition; None if there is none."""
    times: dict[Partition, int] = {}
    for record in records:
        times.setdefault((record.topic, record.partition), record.timestamp)
    return min(times.values(), default=None)


def _size(record: RawRecord) -> int:
    more = sum(len(name) + len(value or b"") for name, value in record.headers or ())
    return len(record.key or b"") + len(record.value or b"") + more


def estimated(
    prepared: Prepared, reads: Iterable[SourceExtent], request: Request
) -> RebuildEstimate:
    """Return how long a rebuild would take at the running query's speed, and its room."""
    engine = request.engine
    query = engine.catalog.query(prepared.query_id or "")
    progress = None if query is None else engine.runner.progress(query.version)
    measured = 0.0 if progress is None else progress.batch_rate
    rate = measured or ASSUMED_PER_S
    rate_from: RateFrom = "measured" if measured else "assumed"
    limit = request.settings.number(RATE_LIMIT)
    if 0 < limit < rate:
        rate, rate_from = float(limit), "limit"
    records = sum({read.topic: read.records for read in reads}.values())
    return RebuildEstimate(
        rate,
        rate_from,
        math.ceil(records / rate),
        None if progress is None else progress.state_bytes,
        None if progress is None else progress.free_bytes,
        _results_since(query, request),
    )


def _results_since(query: PersistentQuery | None, request: Request) -> int | None:
    """Return the time of the first record of a query's result, of all its partitions."""
    topic = None if query is None else plan_of(query).sink.topic
    if topic is None:
        return None
    try:
        return _first_ms(request.services.records.read(request.services.monitor.ends([topic]), 1))
    except KsqlError as problem:  # who writes a topic may perhaps not read it
        _log.info("result_not_read", extra={"topic": topic, "why": problem.text()})
        return None
