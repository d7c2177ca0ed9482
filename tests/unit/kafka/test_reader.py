"""A reader's client is connected before it is given partitions: else it looks once a second."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.kafka import reader
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings


class Consumer:
    """Notes what is asked of it; the topics are known after so many tries."""

    def __init__(self, tries):
        self.tries, self.calls = tries, []

    def list_topics(self, topic, _timeout):
        self.calls.append(topic)
        if len(self.calls) < self.tries:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "nobody is there"))

    def assign(self, places):
        self.calls.append([place.offset for place in places])

    def close(self):
        """Nothing is open."""


class Scripted:
    """Makes readers whose topics are known after so many tries."""

    def __init__(self, monkeypatch):
        self.readers = []
        monkeypatch.setattr(reader, "Consumer", lambda _config, **_more: self.consumer)

    def __call__(self, tries):
        self.consumer = Consumer(tries)
        self.readers.append(Reader(KafkaSettings("127.0.0.1:1")))
        return self.readers[-1]


@pytest.fixture
def scripted(monkeypatch):
    scripted_ = Scripted(monkeypatch)
    yield scripted_
    for each in scripted_.readers:
        each.close()


def test_it_connects_once_before_the_first_partitions(scripted):
    reader = scripted(tries=1)
    reader.assign({})
    for offset in (3, 4):
        reader.assign({("t", 0): offset})
    assert scripted.consumer.calls == [[], "t", [3], [4]]


def test_partitions_are_given_although_nobody_answers_and_the_reason_is_kept(scripted):
    reader = scripted(tries=2)
    reader.assign({("t", 0): 3})
    assert scripted.consumer.calls == ["t", [3]]
    assert reader._last_error.text == "nobody is there"
    reader.assign({("t", 0): 4})
    reader.assign({("t", 0): 5})
    assert scripted.consumer.calls == ["t", [3], "t", [4], [5]]
