"""Some records of a topic from an offset or a time on, decoded as PRINT decodes them.

Source: docs/rest.md#topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.core import KsqlError, RawRecord
from ksql.serving.printing import DetectedFormats, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.formats import RegisteredReader
    from ksql.serving.feed import Feed, Offsets
    from ksql.views import TopicExtents

MOST_RECORDS: Final = 1_000
_MOST_BYTES: Final = 8_388_608
_RECORD_BYTES: Final = 100  # of one without key, value and headers
_IDLE_POLLS: Final = 8  # polls without progress after which an answer has what there is


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
    read = _read(waiting, chosen, feeds, ask.limit) if waiting else {}
    records = _first(read, ask.limit)
    counts = Counter(record.partition for record in records)
    partitions = tuple(
        PartitionExtent(place[1], span.begin, span.end, _next(read, place, counts, span.start))
        for place, span in chosen.items()
    )
    records.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
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
    return BrowsedRecords(ask.topic, key_formats, value_formats, shown, partitions)


def _header(name: str, value: bytes | None) -> HeaderText:
    return HeaderText(name, None if value is None else one_line(value))


def _first(read: Mapping[tuple[str, int], _ReadPartition], limit: int) -> list[RawRecord]:
    """Return the first records by their times; none before those of its partition before it.

    Times need not grow with offsets: what is left out of a partition is always its end.
    """
    ways = (part.records for part in read.values())
    return list(islice(merge(*ways, key=lambda record: record.timestamp), limit))


def _next(
    read: Mapping[tuple[str, int], _ReadPartition],
    place: tuple[str, int],
    shown: Mapping[int, int],
    start: int,
) -> int:
    """Return the offset to read on from; ``shown`` is how many records of a partition are shown."""
    part = read.get(place)
    if part is None:
        return start
    left = part.records[shown.get(place[1], 0) :]
    return left[0].offset if left else part.reached


@dataclass(slots=True)
class _ReadPartition:
    """The records of a partition in the order of their offsets, and where the next one begins."""

    records: list[RawRecord]
    reached: int


def _read(
    waiting: Offsets,
    chosen: Mapping[tuple[str, int], BrowseSpan],
    feeds: Callable[[Offsets, Callable[[], None]], Feed],
    limit: int,
) -> dict[tuple[str, int], _ReadPartition]:
    """Read up to ``limit`` records of each partition, up to the ends; bounded in bytes, too."""
    parts = {place: _ReadPartition([], start) for place, start in waiting.items()}
    left = set(waiting)
    size = idle = 0
    positions: Offsets = dict(waiting)
    feed = feeds(waiting, lambda: None)
    try:
        while left and size < _MOST_BYTES and idle < _IDLE_POLLS and feed.open:
            for record in feed.poll():
                place = (record.topic, record.partition)
                if place in left and record.offset < chosen[place].end:
                    parts[place].records.append(record)
                    parts[place].reached = record.offset + 1
                    size += _size(record)
                    if len(parts[place].records) >= limit:
                        left.discard(place)
            before, positions = positions, dict(feed.positions)
            idle = 0 if positions != before else idle + 1
            for place in [p for p in left if positions.get(p, 0) >= chosen[p].end]:
                parts[place].reached = chosen[place].end  # what follows its records are markers
                left.discard(place)
            feed.pause(waiting.keys() - left)
    finally:
        feed.close()
    return parts


def _size(record: RawRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers or ())
    return _RECORD_BYTES + len(record.key or b"") + len(record.value or b"") + headers
