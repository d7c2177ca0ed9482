from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from ksql.core.records import OutRecord
from ksql.kafka.producers import record_writer, worker_producer
from ksql.kafka.producers.worker_producer import DeliveryFailed, RecordRefused, WorkerProducer


class Refusal:
    """An error of Kafka's client."""

    def __init__(self, code):
        self._code = code

    def code(self):
        return self._code

    def str(self):
        return "refused"


class Message:
    """A record that was sent."""

    def topic(self):
        return "t"


class Client:
    """Kafka's client with reports that come at the next flush."""

    def __init__(self, config):
        self.reports = []
        self.produce = None
        self.ending = None
        self._report = config["on_delivery"]

    def flush(self, _timeout_s):
        if self.ending is not None:
            raise self.ending
        while self.reports:
            self._report(Refusal(self.reports.pop()), Message())
        return 0

    def poll(self, _timeout_s):
        return 0


@pytest.fixture
def client(monkeypatch):
    """The client of the producer that is made next."""
    clients = []

    def make(config, logger):
        clients.append(Client(config))
        return clients[0]

    monkeypatch.setattr(record_writer, "Producer", make)
    return clients


def refuse(message):
    raise RecordRefused("t", message)


def test_a_producer_that_can_never_write_again_is_replaced_for_the_next_task(client):
    config = {"client.id": "replaced"}
    first = worker_producer.worker_producer(config)
    assert worker_producer.worker_producer(config) is first
    first.send("t", [], refuse)
    client[0].ending = SystemError("returned NULL without setting an exception")
    with pytest.raises(DeliveryFailed, match='cannot write to topic "t"'):
        first.flush(refuse)
    assert worker_producer.worker_producer(config) is not first


def test_failure_of_a_task_does_not_end_the_next(client):
    shared = WorkerProducer({})
    client[0].reports = [
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ]
    with pytest.raises(RecordRefused):
        shared.flush(refuse)
    shared.flush(refuse)


def test_records_that_are_not_acknowledged(client):
    shared = WorkerProducer({})
    client[0].reports = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(DeliveryFailed, match='cannot write to topic "t"'):
        shared.flush(refuse)
    shared.flush(refuse)


@pytest.fixture
def address():
    """A broker in this process; its topics have four partitions."""
    broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker_address,) = [
        f"{b.host}:{b.port}" for b in broker.list_topics(timeout=10).brokers.values()
    ]
    yield broker_address
    broker.flush()


def test_a_record_arrives_with_its_time_and_headers(address):
    """Of the client itself: parts of a record are given to it by position."""
    sender = WorkerProducer({"bootstrap.servers": address})
    plain: OutRecord = (b"k1", b"v", 1_700_000_000_123, None)
    headed: OutRecord = (b"k2", None, 1_700_000_000_124, [("h", b"1")])
    assert sender.send("t", [plain, headed], refuse) == 2
    sender.flush(refuse)
    reader = Consumer({"bootstrap.servers": address, "group.id": "g"})
    reader.assign([TopicPartition("t", number, 0) for number in range(4)])
    messages = [(m.key(), m.value(), m.timestamp()[1], m.headers()) for m in reader.consume(2, 30)]
    reader.close()
    assert sorted(messages, key=str) == [plain, headed]


def test_records_go_to_the_partition_that_is_given(address):
    sender = WorkerProducer({"bootstrap.servers": address})
    assert sender.partitions("t") == 4
    for place in range(4):
        plain: OutRecord = (b"k", b"%d" % place, 1_700_000_000_123, None)
        headed: OutRecord = (b"k", b"%d" % place, 1_700_000_000_124, [("h", b"1")])
        assert sender.send("t", [plain, headed], refuse, place) == 2
    sender.flush(refuse)
    reader = Consumer({"bootstrap.servers": address, "group.id": "g"})
    reader.assign([TopicPartition("t", number, 0) for number in range(4)])
    partitions = [(m.value(), m.partition()) for m in reader.consume(8, 30)]
    reader.close()
    assert sorted(partitions) == sorted((b"%d" % n, n) for n in range(4) for _ in range(2))


class Described:
    """A topic as Kafka's client describes it."""

    def __init__(self, count):
        self.partitions = dict.fromkeys(range(count))
        self.error = None if count else Refusal(KafkaError.UNKNOWN_TOPIC_OR_PART)


def test_a_topic_is_requested_again_when_what_is_known_is_old(client, monkeypatch):
    now, counts = [1000.0], iter([3, 5])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    sender = WorkerProducer({})
    client[0].list_topics = lambda topic, timeout: SimpleNamespace(
        topics={topic: Described(next(counts))}
    )
    assert [sender.partitions("t") for _ in range(2)] == [3, 3]
    now[0] += worker_producer._COUNT_S
    assert sender.partitions("t") == 5


def test_a_topic_that_is_not_there_has_no_partitions(client):
    sender = WorkerProducer({})
    client[0].list_topics = lambda topic, timeout: SimpleNamespace(topics={topic: Described(0)})
    with pytest.raises(DeliveryFailed, match='cannot write to topic "t"'):
        sender.partitions("t")
