"""The memory of a push query's reader: little, however slowly its client reads."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ksql.kafka import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.serving.feed import TopicFeed
from tests.waits import await_true

WIDE = 10_000
COUNT = 400
"""In each of four partitions: the mock broker keeps no more."""
START = {("s", partition): 0 for partition in range(4)}
FEEDS = 10
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def kafka():
    """The client's mock broker, with a topic of 16 MB."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = [f"{b.host}:{b.port}" for b in producer.list_topics(timeout=10).brokers.values()]
    for number in range(COUNT):
        for _, partition in START:
            producer.produce("s", b"%0*d" % (WIDE, number), partition=partition)
    assert producer.flush(30) == 0
    yield KafkaSettings(address)
    del producer


def read(poll, count=COUNT):
    """The numbers of the records by poll, until all have come."""
    batches = []

    def whole():
        batches.append([int(record.value[-8:]) for record in poll()])
        return sum(map(len, batches)) >= count

    await_true("all have come", whole)
    return [batch for batch in batches if batch]


def joined(batches):
    return list(itertools.chain.from_iterable(batches))


def test_a_poll_ends_with_so_many_bytes(kafka):
    with Reader(kafka) as reader:
        reader.assign({("s", 0): 0})
        batches = read(lambda: reader.poll(most_bytes=20 * WIDE))
    assert joined(batches) == list(range(COUNT))
    assert max(map(len, batches)) <= 22


def test_a_poll_without_a_bound_takes_what_is_there(kafka):
    with Reader(kafka) as reader:
        reader.assign({("s", 0): 0})
        batches = read(reader.poll)
    assert joined(batches) == list(range(COUNT))


def resident():
    """How many bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def test_feeds_that_nobody_reads_take_little(kafka):
    with Reader(kafka) as reader:  # what the mock broker takes for reading
        reader.assign(START)
        read(reader.poll, COUNT * len(START))
    before = resident()
    feeds = [TopicFeed(kafka, START) for _ in range(FEEDS)]
    try:
        for _ in range(3):  # the others have as much time for it
            feed = TopicFeed(kafka, START)
            read(feed.poll, COUNT * len(START))
            feed.close()
        assert resident() - before < FEEDS * 8 * MEGABYTE
    finally:
        for each in feeds:
            each.close()


def test_what_is_read_slowly_comes_whole(kafka):
    feed = TopicFeed(kafka, {("s", 0): 0})
    try:
        batches = read(feed.poll)
    finally:
        feed.close()
    assert joined(batches) == list(range(COUNT))
    assert max(map(len, batches)) * WIDE < 2 * MEGABYTE
