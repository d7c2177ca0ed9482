"""Some records of a topic from an offset or a time on, decoded as PRINT decodes them.

Source: docs/rest.md#topics.
"""

from __future__ import annotations

from collections import Counter, deque
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
    from ksql.serving.feed import Feeds, Offsets
    from ksql.views import TopicExtents

Place = tuple[str, int]
"""A topic and the number of a partition."""

MOST_RECORDS: Final = 1_000
_MOST_BYTES: Final = 8_388_608
_RECORD_BYTES: Final = 100  # of one without key, value and headers
_IDLE_POLLS: Final = 8  # polls without progress after which an answer has what there is
_STEP_OFFSETS: Final = 10_000  # of all partitions, that one look back reads at most
_FURTHEST_OFFSETS: Final = 100_000  # of a partition, in which its last records are looked for


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

    ``offset`` holds for each partition; a negative one is so many records before the end.
    ``partition`` limits them to one, and ``limit`` is their number. ``offsets`` are by partition,
    of an answer before.
    """

    topic: str
    partition: int | None = None
    offset: int | None = None
    time_ms: int | None = None
    offsets: Mapping[int, int] | None = None
    limit: int = 100

    @property
    def last(self) -> int:
        """How many of the last records of each partition are wanted; 0: others, or too many."""
        stronger = self.offsets is not None or self.time_ms is not None
        count = 0 if stronger else -(self.offset or 0)
        return count if 0 < count <= MOST_RECORDS else 0


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


def spans(ask: BrowseRequest, extents: TopicExtents) -> dict[Place, BrowseSpan]:
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
    place: Place,
    begin: int,
    end: int,
    at_time: Offsets,
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
    feeds: Feeds,
    registered: RegisteredReader | None,
) -> BrowsedRecords:
    """Read the records; it waits for none that is still to come.

    Raises: UnknownPartition for a partition that the topic does not have; what reading raises.
    """
    chosen = spans(ask, extents)
    if ask.last:
        chosen = _with_last(chosen, ask.last, feeds)
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


def _first(read: Mapping[Place, _ReadPartition], limit: int) -> list[RawRecord]:
    """Return the first records by their times; none before those of its partition before it.

    Times need not grow with offsets: what is left out of a partition is always its end.
    """
    ways = (part.records for part in read.values())
    return list(islice(merge(*ways, key=lambda record: record.timestamp), limit))


def _next(
    read: Mapping[Place, _ReadPartition],
    place: Place,
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
    waiting: Offsets, chosen: Mapping[Place, BrowseSpan], feeds: Feeds, limit: int
) -> dict[Place, _ReadPartition]:
    """Read up to ``limit`` records of each partition, up to the ends; bounded in bytes, too."""
    parts = {place: _ReadPartition([], start) for place, start in waiting.items()}
    size = 0

    def take(place: Place, record: RawRecord) -> bool:
        nonlocal size
        records = parts[place].records
        if len(records) == limit or size >= _MOST_BYTES:
            return False
        records.append(record)
        size += _size(record)
        return True

    for place, reached in _walk(waiting, {p: chosen[p].end for p in waiting}, feeds, take).items():
        parts[place].reached = reached
    return parts


def _walk(
    start: Offsets, ends: Offsets, feeds: Feeds, take: Callable[[Place, RawRecord], bool]
) -> dict[Place, int]:
    """Give the records up to the ends to ``take``, of each partition until it wants no more.

    Returns: where the next record of each partition is, its end if there is none. Marks of
    transactions, and what they have aborted, are passed over.
    """
    reached, left = dict(start), set(start)
    idle = 0
    positions: Offsets = dict(start)
    feed = feeds(start, lambda: None)
    try:
        while left and idle < _IDLE_POLLS and feed.open:
            for record in feed.poll():
                place = (record.topic, record.partition)
                if place not in left or record.offset >= ends[place]:
                    continue
                if take(place, record):
                    reached[place] = record.offset + 1
                else:
                    reached[place] = record.offset
                    left.discard(place)
            before, positions = positions, dict(feed.positions)
            idle = 0 if positions != before else idle + 1
            for place in [p for p in left if positions.get(p, 0) >= ends[p]]:
                reached[place] = ends[place]
                left.discard(place)
            feed.pause(start.keys() - left)
    finally:
        feed.close()
    return reached


def _with_last(
    chosen: Mapping[Place, BrowseSpan], count: int, feeds: Feeds
) -> dict[Place, BrowseSpan]:
    """Let each span begin so far before the end that it has ``count`` records.

    Not every offset has a record that is shown: transactions have marks, and what was aborted or
    compacted is missing. So each look goes further back, and reads what is new of it.
    """
    starts = {place: span.start for place, span in chosen.items()}
    ends = {place: span.end for place, span in chosen.items()}
    last: dict[Place, list[int]] = {place: [] for place in chosen}
    width = count
    while ends:
        offsets = _last_offsets({place: starts[place] for place in ends}, ends, count, feeds)
        width = min(4 * width, max(1, _STEP_OFFSETS // len(ends)))
        for place in list(ends):
            last[place] = [*offsets[place], *last[place]][-count:]
            begin = max(chosen[place].begin, chosen[place].end - _FURTHEST_OFFSETS)
            if len(last[place]) == count or starts[place] <= begin:
                del ends[place]
            else:
                ends[place] = starts[place]
                starts[place] = max(begin, starts[place] - width)
    return {
        place: span._replace(start=last[place][0] if last[place] else starts[place])
        for place, span in chosen.items()
    }


def _last_offsets(
    starts: Offsets, ends: Offsets, count: int, feeds: Feeds
) -> dict[Place, deque[int]]:
    """Return the offsets of the last records before each end, ``count`` at most."""
    offsets: dict[Place, deque[int]] = {place: deque(maxlen=count) for place in starts}

    def take(place: Place, record: RawRecord) -> bool:
        offsets[place].append(record.offset)
        return True

    if there := {place: start for place, start in starts.items() if start < ends[place]}:
        _walk(there, ends, feeds, take)
    return offsets


def _size(record: RawRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers or ())
    return _RECORD_BYTES + len(record.key or b"") + len(record.value or b"") + headers
