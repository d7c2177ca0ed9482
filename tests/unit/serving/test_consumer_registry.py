"""Topics that are deleted or made again while clients' queries read them."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from ksql.core import ServerError
from ksql.kafka import OffsetsGone, Reader
from ksql.kafka.admin import Identity
from ksql.kafka.settings import KafkaSettings
from ksql.kafka.topic_watch import GONE_S, TopicWatch
from ksql.serving.consumer_registry import ConsumerRegistry, ReadTopicGone, ReadTopicRecreated


class Topics:
    """Ids of topics, asked once a second; every request is counted."""

    def __init__(self, **ids):
        self.ids = ids
        self.lookups = []
        self.now = 0.0

    def identities(self, topics):
        self.lookups.append(tuple(topics))
        return {name: Identity(self.ids[name], 1) for name in topics if name in self.ids}


@pytest.fixture(scope="module")
def kafka():
    """The client's own stand-in for a broker."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = [f"{b.host}:{b.port}" for b in producer.list_topics(timeout=10).brokers.values()]
    yield KafkaSettings(address)
    producer.flush(1)


@pytest.fixture
def open_feeds(kafka):
    """Opens feeds of topics; they are closed at the end."""
    opened = []

    def open_(feeds, *topics):
        feed = feeds.open({(topic, 0): 0 for topic in topics}, lambda: None)
        opened.append(feed)
        return feed

    yield open_
    for feed in opened:
        feed.close()


def watched(kafka, topics):
    return ConsumerRegistry(kafka, topics.ids.get, lambda: topics.now)


def looked(feeds, topics, count=2, apart_s=1.0):
    topic_watch = TopicWatch(topics.identities, [feeds.watched])
    for _ in range(count):
        topics.now += apart_s
        topic_watch.poll()


def test_all_feeds_are_requested_in_one_request_and_closed_ones_not_at_all(kafka, open_feeds):
    topics = Topics(a="1", b="2")
    feeds = watched(kafka, topics)
    first, second = open_feeds(feeds, "a", "b"), open_feeds(feeds, "b")
    looked(feeds, topics)
    first.close()
    second.close()
    looked(feeds, topics)
    assert topics.lookups == [("a", "b"), ("a", "b")]


def test_a_topic_that_was_recreated_ends_its_readers_and_no_others(kafka, open_feeds):
    topics = Topics(a="1", b="2")
    feeds = watched(kafka, topics)
    reader, other = open_feeds(feeds, "a", "b"), open_feeds(feeds, "b")
    looked(feeds, topics)
    topics.ids["a"] = "3"
    looked(feeds, topics)
    with pytest.raises(ReadTopicRecreated, match='topic "a" was deleted and recreated'):
        reader.poll()
    assert other.poll() == []
    later = open_feeds(feeds, "a")
    looked(feeds, topics)
    assert later.poll() == []


@pytest.mark.parametrize(
    ("now", "words"),
    [("3", 'topic "a" was deleted and recreated'), ("1", "are gone"), (None, "are gone")],
)
def test_offsets_that_do_not_exist_are_of_a_new_topic_if_its_id_is_new(
    kafka, open_feeds, monkeypatch, now, words
):
    """The new one may still be empty, and the look that would see it has not come."""
    topics = Topics(a="1")
    feeds = watched(kafka, topics)
    reader = open_feeds(feeds, "a")
    looked(feeds, topics)
    topics.ids["a"] = now

    def poll(_reader, timeout_s, most_bytes):
        raise OffsetsGone("a", 0, "offset out of range")

    monkeypatch.setattr(Reader, "poll", poll)
    with pytest.raises(ServerError, match=words):
        reader.poll()


def test_a_topic_that_was_deleted_ends_its_readers_after_a_while(kafka, open_feeds):
    topics = Topics(a="1")
    feeds = watched(kafka, topics)
    reader = open_feeds(feeds, "a")
    looked(feeds, topics)
    topics.ids.clear()
    looked(feeds, topics)
    assert reader.poll() == []
    looked(feeds, topics, apart_s=GONE_S)
    with pytest.raises(ReadTopicGone, match='topic "a" was deleted'):
        reader.poll()


def test_topic_missing_at_the_first_look_is_gone(kafka, open_feeds):
    topics = Topics()
    feeds = watched(kafka, topics)
    reader = open_feeds(feeds, "a")
    looked(feeds, topics, apart_s=GONE_S)
    with pytest.raises(ReadTopicGone):
        reader.poll()
