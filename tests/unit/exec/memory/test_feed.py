"""Records in memory as a client's query reads them."""

from __future__ import annotations

import threading

import pytest

from ksql.core.records import RawRecord
from ksql.exec.memory.driver import MemoryExtents, MemoryFeed, MemoryTopics
from tests.waits import await_true

BOTH = {("a", 0): 0, ("b", 0): 1}


@pytest.fixture
def topics():
    topics_ = MemoryTopics()
    for topic, value in (("a", b"1"), ("b", b"2"), ("a", b"3"), ("b", b"4"), ("c", b"5")):
        topics_.append(topic, None, value, 7, [("h", None)])
    return topics_


def values(records):
    return [record.value for record in records]


def test_records_come_in_the_order_of_all_topics_from_their_offsets(topics):
    feed = MemoryFeed(topics, BOTH)
    records = feed.poll()
    assert [(r.topic, r.offset, r.value) for r in records] == [
        ("a", 0, b"1"),
        ("a", 1, b"3"),
        ("b", 1, b"4"),
    ]
    assert {(r.partition, r.timestamp, tuple(r.headers)) for r in records} == {
        (0, 7, (("h", None),))
    }
    assert feed.positions == {("a", 0): 2, ("b", 0): 2}
    topics.append("a", None, b"6", 0)
    assert values(feed.poll()) == [b"6"]


def test_a_topic_that_is_held_is_read_later(topics):
    feed = MemoryFeed(topics, BOTH)
    feed.pause([("a", 0)])
    assert values(feed.poll()) == [b"4"]
    feed.pause(())
    assert values(feed.poll()) == [b"1", b"3"]


def test_following_feed_is_woken_by_the_next_record(topics):
    feed = MemoryFeed(topics, {("d", 0): 0})
    writer = threading.Thread(target=topics.append, args=("d", b"k", b"6", 0))
    writer.start()
    records: list[RawRecord] = await_true("a record comes", feed.poll)
    assert feed.open
    writer.join()
    assert values(records) == [b"6"]


def test_bounded_feed_ends_with_the_last_record(topics):
    ended = []
    feed = MemoryFeed(topics, BOTH, lambda: ended.append(1), follow=False)
    polls = [(len(feed.poll()), feed.open) for _ in range(2)]
    assert polls == [(3, True), (0, False)]
    feed.close()
    feed.close()
    assert ended == [1]


def test_where_topics_begin_and_end(topics):
    extents = MemoryExtents(topics)
    assert extents.begin_offsets(["a"]) == {("a", 0): 0}
    assert extents.end_offsets(["a", "d"]) == {("a", 0): 2, ("d", 0): 0}
    assert extents.topics() == []
