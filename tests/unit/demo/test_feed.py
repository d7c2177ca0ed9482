from __future__ import annotations

import contextlib
import itertools

import pytest

from ksql.core.errors import KsqlError
from server.demo.data import KafkaRecord
from server.demo.feed import Feed


class Producer:
    def __init__(self, fails_at=None, failure=None):
        self.sent = []
        self.flushed = 0
        self._fails_at = fails_at
        self._failure = failure

    def send(self, topic, key, value, *, timestamp=None):
        if len(self.sent) == self._fails_at:
            raise self._failure
        self.sent.append((topic, key, value, timestamp))

    def flush(self):
        self.flushed = len(self.sent)


def records():
    return (KafkaRecord(b"%d" % n, b"v", n) for n in itertools.count())


def test_it_goes_as_far_as_it_may():
    producer = Producer()
    with contextlib.closing(Feed(producer, "t", records(), 1e6)) as feed:
        feed.start(30)
        feed.await_sent(30)
        assert feed.sent == producer.flushed == 30
        feed.allow(50)
        feed.await_sent(50)
    assert len(producer.sent) == 50
    assert producer.sent[49] == ("t", b"49", b"v", 49)


@pytest.mark.parametrize("failure", [KsqlError("the broker is gone"), BufferError("it is gone")])
def test_a_failure_reaches_the_one_who_waits(failure):
    with contextlib.closing(Feed(Producer(5, failure), "t", records(), 1e6)) as feed:
        feed.start(30)
        with pytest.raises(type(failure), match="gone"):
            feed.await_sent(30)


def test_it_can_be_ended_before_it_begins():
    feed = Feed(Producer(), "t", records(), 10)
    feed.close()
    assert feed.sent == 0
