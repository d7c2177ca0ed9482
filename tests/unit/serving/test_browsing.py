"""Records of a topic from a place on."""

from __future__ import annotations

import pytest

from ksql.core.records import RawRecord
from ksql.serving.browsing import BrowseRequest, HeaderText, UnknownPartition, browse


class Topic:
    """A topic of two partitions, whose records are a feed and whose extents are known."""

    def __init__(self, *records, begins=(0, 0), ends=None):
        self.records = records
        self.begins = begins
        counts = [sum(r.partition == p for r in records) for p in (0, 1)]
        self.ends = ends or tuple(b + c for b, c in zip(begins, counts, strict=True))

    def begin_offsets(self, topics):
        return {(topic, p): begin for topic in topics for p, begin in enumerate(self.begins)}

    def end_offsets(self, topics):
        return {(topic, p): end for topic in topics for p, end in enumerate(self.ends)}

    def offsets_at(self, topics, time_ms):
        [topic] = topics
        later = {}
        for place, end in self.end_offsets([topic]).items():
            offsets = [r.offset for r in self.records if r.partition == place[1]]
            times = {r.offset: r.timestamp for r in self.records if r.partition == place[1]}
            later[place] = next((o for o in offsets if times[o] >= time_ms), end)
        return later


class Feed:
    """Gives a record per poll, then nothing."""

    open = True

    def __init__(self, topic, start):
        self.positions = dict(start)
        self._left = [
            r for r in topic.records if r.offset >= start.get((r.topic, r.partition), 1 << 60)
        ]

    def poll(self):
        if not self._left:
            return []
        record = self._left.pop(0)
        self.positions[record.topic, record.partition] = record.offset + 1
        return [record]

    def pause(self, places):
        self._left = [r for r in self._left if (r.topic, r.partition) not in places]

    def close(self):
        self._left = []


def record(partition, offset, time, value=b'{"A":1}', headers=None):
    return RawRecord("t", partition, offset, time, b"k", value, headers)


TOPIC = Topic(
    record(0, 0, 10), record(1, 0, 5), record(0, 1, 20), record(1, 1, 30), record(0, 2, 40)
)


def places(answer):
    return [(r.partition, r.offset) for r in answer.records]


def browsed(topic=TOPIC, reader=Feed, **ask):
    return browse(BrowseRequest("t", **ask), topic, lambda start, _: reader(topic, start), None)


def test_records_are_in_the_order_of_their_times():
    assert places(browsed()) == [(1, 0), (0, 0), (0, 1), (1, 1), (0, 2)]


@pytest.mark.parametrize(
    ("ask", "there"),
    [
        ({"offset": 1}, [(0, 1), (1, 1), (0, 2)]),
        ({"offset": -1}, [(1, 1), (0, 2)]),
        ({"offset": 99}, []),
        ({"offset": -99, "limit": 1}, [(1, 0)]),
        ({"time_ms": 30}, [(1, 1), (0, 2)]),
        ({"partition": 1}, [(1, 0), (1, 1)]),
        ({"offsets": {0: 2, 1: 2}}, [(0, 2)]),
    ],
)
def test_they_begin_where_it_is_wanted(ask, there):
    assert places(browsed(**ask)) == there


def test_an_answer_says_where_to_read_on():
    first = browsed(limit=2)
    offsets = {extent.partition: extent.next for extent in first.partitions}
    assert offsets == {0: 1, 1: 1}
    assert places(browsed(offsets=offsets)) == [(0, 1), (1, 1), (0, 2)]


def pages(topic, limit):
    """All records, page by page, as a client reads on."""
    shown: list[tuple[int, int]] = []
    offsets: dict[int, int] = {}
    for _ in range(20):
        answer = browsed(topic, offsets=offsets, limit=limit)
        shown += places(answer)
        offsets = {extent.partition: extent.next for extent in answer.partitions}
        if all(offsets[extent.partition] == extent.end for extent in answer.partitions):
            return shown
    raise AssertionError(f"no end: {offsets}")


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_no_page_leaves_out_a_record_whose_time_is_late(limit):
    """The times of a partition need not grow with its offsets."""
    late = Topic(
        record(0, 0, 90), record(0, 1, 10), record(0, 2, 20), record(1, 0, 50), record(1, 1, 5)
    )
    assert sorted(pages(late, limit)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_markers_that_were_passed_are_not_offered_again():
    """The reader's position is behind the markers of transactions at the end."""
    topic = Topic(record(0, 0, 1), ends=(3, 0))

    class Passing(Feed):
        def poll(self):
            records = super().poll()
            if not records:
                self.positions["t", 0] = 3
            return records

    [first, _] = browsed(topic, reader=Passing).partitions
    assert (first.next, first.end) == (3, 3)


def test_empty_polls_that_pass_markers_do_not_count_as_waiting():
    """Each partition's end comes as a poll without a record: many are no reason to stop."""
    topic = Topic(record(0, 20, 1), ends=(21, 0))

    class Slow(Feed):
        def poll(self):
            position = self.positions["t", 0]
            if position < 20:
                self.positions["t", 0] = position + 1
                return []
            return super().poll()

    assert places(browsed(topic, reader=Slow)) == [(0, 20)]


class MarkedFeed(Feed):
    """A feed of a topic some of whose offsets have no records; the end is passed after them."""

    def __init__(self, topic, start):
        super().__init__(topic, start)
        self._ends = topic.end_offsets(["t"])

    def poll(self):
        if records := super().poll():
            return records
        self.positions.update({place: self._ends[place] for place in self.positions})
        return []


@pytest.fixture
def marked():
    """Each record is a transaction with a mark; of partition 1 all but two were aborted."""
    ones = [record(0, 2 * n, n) for n in range(100)]
    others = [record(1, 0, 500), record(1, 1, 501)]
    return Topic(*ones, *others, ends=(200, 30_000))


def test_the_last_records_are_counted_without_marks_and_what_was_aborted(marked):
    answer = browsed(marked, reader=MarkedFeed, offset=-50)
    assert places(answer) == [*((0, 2 * n) for n in range(50, 100)), (1, 0), (1, 1)]
    assert [(each.next, each.end) for each in answer.partitions] == [(200, 200), (30_000, 30_000)]


def test_the_last_records_are_not_looked_for_far_back():
    gone = Topic(record(0, 0, 1), ends=(1_000_000, 0))
    starts = []

    def reader(topic, start):
        starts.append(start["t", 0])
        return MarkedFeed(topic, start)

    assert places(browsed(gone, reader=reader, offset=-50, partition=0)) == []
    assert min(starts) == 900_000
    assert len(starts) < 30


@pytest.mark.parametrize("limit", [1, 2, 4, 50, 100])
def test_no_page_has_nothing_but_marks(marked, limit):
    shown, offsets = [], {0: 0, 1: 30_000}
    while offsets[0] != 200:
        answer = browsed(marked, reader=MarkedFeed, offsets=offsets, limit=limit)
        assert len(answer.records) == limit
        shown += answer.records
        offsets = {extent.partition: extent.next for extent in answer.partitions}
    assert len(shown) == 100


def test_headers_count_as_bytes_of_an_answer():
    mebibyte = bytes(1 << 20)
    topic = Topic(*(record(0, n, n, headers=[("h", mebibyte)]) for n in range(20)))
    answer = browsed(topic)
    assert len(answer.records) == 8
    assert answer.partitions[0].next == 8


def test_what_retention_has_taken_is_passed_over():
    topic = Topic(record(0, 7, 1), begins=(7, 0))
    assert places(browsed(topic, offset=3)) == [(0, 7)]
    assert [(e.begin, e.end) for e in browsed(topic).partitions] == [(7, 8), (0, 0)]


def test_markers_at_the_end_are_not_waited_for():
    assert places(browsed(Topic(record(0, 0, 1), ends=(2, 0)))) == [(0, 0)]


def test_keys_values_and_headers_are_text():
    topic = Topic(record(0, 0, 1, None, [("h\n", b"\x00v"), ("none", None)]))
    [shown] = browsed(topic).records
    assert (shown.key, shown.value) == ("k", None)
    assert shown.headers == (HeaderText("h\n", "\\x00v"), HeaderText("none", None))
    assert browsed().value_formats == ("JSON", "KAFKA_STRING")


def test_a_partition_that_is_not_there_is_refused():
    with pytest.raises(UnknownPartition, match="no partition 2"):
        browsed(partition=2)
