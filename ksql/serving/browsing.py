"""Some records of a topic from an offset or a time on, decoded as PRINT decodes them.

Source: docs/rest.md#topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.core import KsqlError
from ksql.serving.printing import DetectedFormats, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ksql.core import RawRecord
    from ksql.formats import RegisteredReader
    from ksql.serving.feed import Feed, Offsets
    from ksql.views import TopicExtents

MOST_RECORDS: Final = 1_000
_MOST_BYTES: Final = 8_388_608
_IDLE_POLLS: Final = 8  # polls without a record after which the rest is taken for markers


class UnknownPartition(KsqlError):
    """A partition that a topic does not have."""

    def __init__(self, topic: str, partition: int | None) -> None:
        super().__init__(
            f"the topic {topic} has no partition {partition}",
            hint="Partitions are numbered from 0; SHOW TOPICS shows how many there are.",
        )


@dataclass(frozen=True, slots=True)
class BrowseRequest:
    """Which records: from ``offsets``, else ``time_ms``, else ``offset``, else the beginning.

    ``offset`` holds for each partition; a negative one counts from the end. ``partition`` limits
    them to one, and ``limit`` is their number. ``offsets`` are by partition, of an answer before.
    """

    topic: str
    partition: int | None = None
    offset: int | None = None
    time_ms: int | None = None
    offsets: Mapping[int, int] | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class HeaderText:
    """A header of a record, as text; ``value`` is None if it has none."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class BrowsedRecord:
    """A record as text; a key or value that is not there is None. ``timestamp`` is in ms."""

    partition: int
    offset: int
    timestamp: int
    key: str | None
    value: str | None
    headers: tuple[HeaderText, ...]


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """The first offset of a partition, the one after its last, and where to read on."""

    partition: int
    begin: int
    end: int
    next: int


@dataclass(frozen=True, slots=True)
class BrowsedRecords:
    """Records in the order of their times, the formats that fit them, and the partitions."""

    topic: str
    key_formats: tuple[str, ...]
    value_formats: tuple[str, ...]
    records: tuple[BrowsedRecord, ...]
    partitions: tuple[PartitionExtent, ...]


class BrowseSpan(NamedTuple):
    """The offsets of a partition at present: its first, the one to read from, and its end."""

    begin: int
    start: int
    end: int


def spans(ask: BrowseRequest, extents: TopicExtents) -> dict[tuple[str, int], BrowseSpan]:
    """Return what is to be read of each partition.

    Raises: UnknownPartition for a partition that the topic does not have.
    """
    begins, ends = extents.begin_offsets([ask.topic]), extents.end_offsets([ask.topic])
    at_time = {} if ask.time_ms is None else extents.offsets_at([ask.topic], ask.time_ms)
    chosen = {
        place: BrowseSpan(begin, _start(ask, place, begin, ends[place], at_time), ends[place])
        for place, begin in sorted(begins.items())
        if ask.partition in (None, place[1]) and place in ends
    }
    if not chosen:
        raise UnknownPartition(ask.topic, ask.partition)
    return chosen


def _start(
    ask: BrowseRequest,
    place: tuple[str, int],
    begin: int,
    end: int,
    at_time: Mapping[tuple[str, int], int],
) -> int:
    first = begin
    if ask.offsets is not None:
        first = ask.offsets.get(place[1], begin)
    elif ask.time_ms is not None:
        first = at_time.get(place, end)
    elif ask.offset is not None:
        first = end + ask.offset if ask.offset < 0 else ask.offset
    return min(max(first, begin), end)


def browse(
    ask: BrowseRequest,
    extents: TopicExtents,
    feeds: Callable[[Offsets, Callable[[], None]], Feed],
    registered: RegisteredReader | None,
) -> BrowsedRecords:
    """Read the records; it waits for none that is still to come.

    Raises: UnknownPartition for a partition that the topic does not have; what reading raises.
    """
    chosen = spans(ask, extents)
    waiting = {place: span.start for place, span in chosen.items() if span.start < span.end}
    records = _read(waiting, chosen, feeds, ask.limit) if waiting else []
    records.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
    del records[ask.limit :]
    keys, values = DetectedFormats(registered, keys=True), DetectedFormats(registered)
    key_formats = keys.fitting([record.key for record in records])
    value_formats = values.fitting([record.value for record in records])
    shown = tuple(
        BrowsedRecord(
            record.partition,
            record.offset,
            record.timestamp,
            None if record.key is None else keys.shown(record.key, key_formats),
            None if record.value is None else values.shown(record.value, value_formats),
            tuple(_header(name, value) for name, value in record.headers or ()),
        )
        for record in records
    )
    partitions = tuple(
        PartitionExtent(place[1], span.begin, span.end, _next(records, place[1], span.start))
        for place, span in chosen.items()
    )
    return BrowsedRecords(ask.topic, key_formats, value_formats, shown, partitions)


def _header(name: str, value: bytes | None) -> HeaderText:
    return HeaderText(name, None if value is None else one_line(value))


def _next(records: Iterable[RawRecord], partition: int, start: int) -> int:
    return max((r.offset + 1 for r in records if r.partition == partition), default=start)


def _read(
    waiting: Offsets,
    chosen: Mapping[tuple[str, int], BrowseSpan],
    feeds: Callable[[Offsets, Callable[[], None]], Feed],
    limit: int,
) -> list[RawRecord]:
    """Read up to ``limit`` records of each partition, up to the ends; bounded in bytes, too."""
    counts = dict.fromkeys(waiting, 0)
    read: list[RawRecord] = []
    size = idle = 0
    feed = feeds(waiting, lambda: None)
    try:
        while counts and size < _MOST_BYTES and idle < _IDLE_POLLS and feed.open:
            batch = feed.poll()
            idle = 0 if batch else idle + 1
            for record in batch:
                place = (record.topic, record.partition)
                if place not in counts or record.offset >= chosen[place].end:
                    continue
                read.append(record)
                counts[place] += 1
                size += len(record.key or b"") + len(record.value or b"")
                if counts[place] >= limit:
                    del counts[place]
            positions = feed.positions
            for place in [p for p in counts if positions.get(p, 0) >= chosen[p].end]:
                del counts[place]
            feed.pause(waiting.keys() - counts.keys())
    finally:
        feed.close()
    return read
