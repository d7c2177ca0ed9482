from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.core.records import Written
from ksql.kafka.admin import Identity
from ksql.kafka.errors import KafkaUnreachable, UnknownTopic, WriteFailed
from ksql.kafka.producers import record_writer, shared_sender
from ksql.kafka.producers.limits import TopicLimits
from ksql.kafka.producers.shared_sender import SharedSender
from ksql.kafka.settings import KafkaSettings
from ksql.kafka.topic_watch import TopicWatch

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)
FATAL = KafkaError(KafkaError._FATAL)


class Report:
    """A record that was delivered."""

    def __init__(self, offset):
        self._offset = offset

    def topic(self):
        return "t"

    def partition(self):
        return 2

    def offset(self):
        return self._offset


class Client:
    """Kafka's client: what became of a record stands in its value, and is told by ``poll``."""

    def __init__(self, config):
        self.config = config
        self.waiting = []
        self.known = {"t"}
        self.refuses = None
        self.looked_up = []
        self.lost = None
        self.ending = None
        self._more = threading.Condition()

    def produce(self, topic, value, key, _partition, *, on_delivery, **_):
        if self.refuses is not None:
            raise KafkaException(self.refuses)
        with self._more:
            self.waiting.append((value, on_delivery))
            self._more.notify()

    def poll(self, timeout_s):
        with self._more:
            self._more.wait_for(lambda: self.waiting, timeout_s)
            ending, self.ending = self.ending, None
            if ending is not None:
                raise ending
            delivered, self.waiting = self.waiting, []
        for value, on_delivery in delivered:
            error = {b"large": TOO_LARGE, b"late": TIMED_OUT, b"lost": self.lost}.get(value)
            self.lost = None
            on_delivery(error, None if error else Report(-1001 if value == b"again" else 41))

    def flush(self, _timeout_s):
        return 0

    def purge(self):
        pass

    def list_topics(self, topic=None, timeout=0.0):
        self.looked_up += [topic] if topic else []
        return SimpleNamespace(topics=self.known)

    def __len__(self):
        return len(self.waiting)


@pytest.fixture
def limit():
    """The topic's largest batch."""
    return [None]


@pytest.fixture
def ids():
    """The topic's identity."""
    return {"t": Identity("first", 1)}


@pytest.fixture
def clients(monkeypatch, limit, ids):
    clients_ = []

    def make(config, logger):
        clients_.append(Client(config))
        return clients_[-1]

    monkeypatch.setattr(record_writer, "Producer", make)
    monkeypatch.setattr("ksql.kafka.admin.Admin.limits", lambda *_: TopicLimits(limit[0]))
    monkeypatch.setattr("ksql.kafka.admin.Admin.identities", lambda *_: dict(ids))
    return clients_


@pytest.fixture
def sender(clients):
    opened = SharedSender(KafkaSettings("broker:9092", timeout_s=5.0))
    yield opened
    opened.close()


def look_at(sender, identities):
    TopicWatch(identities, [sender.watched]).poll()


def test_everyone_gets_the_answer_for_their_own_record(sender):
    """Sixteen threads, one of them with records that are refused: only that one hears of it."""

    def write(number):
        value = b"large" if number % 16 == 3 else b"fine"
        try:
            sender.begin("t", None, value, 1).wait()
        except WriteFailed:
            return "refused"
        return "written"

    with ThreadPoolExecutor(16) as pool:
        offsets = list(pool.map(write, range(800)))
    assert offsets == ["refused" if n % 16 == 3 else "written" for n in range(800)]


def test_a_record_that_was_refused_for_its_company_is_sent_again(sender, clients, limit):
    sender.begin("t", None, b"fine", 1).wait()
    limit[0] = 2000
    refused = sender.begin("t", None, b"large", 1)
    with pytest.raises(WriteFailed, match='cannot write to topic "t"'):
        refused.wait()
    assert [client.config.get("batch.size") for client in clients] == [None, "1488"]
    with pytest.raises(WriteFailed):
        sender.begin("t", None, b"large", 1).wait()
    assert len(clients) == 2  # nothing is different now: it is too large by itself


def test_a_topic_that_is_gone_is_not_a_kafka_that_is_gone(sender, clients):
    sender.begin("t", None, b"fine", 1).wait()
    clients[0].known = set()
    with pytest.raises(UnknownTopic, match="Kafka topic does not exist: t"):
        sender.begin("t", None, b"late", 1).wait()
    clients[0].known = {"t"}
    with pytest.raises(KafkaUnreachable):
        sender.begin("t", None, b"late", 1).wait()


def test_a_producer_that_can_write_no_more_is_replaced(sender, clients):
    sender.begin("t", None, b"fine", 1).wait()
    clients[0].refuses = FATAL
    sender.begin("t", None, b"fine", 1).wait()
    assert len(clients) == 2
    clients[1].refuses = TOO_LARGE
    with pytest.raises(WriteFailed):
        sender.begin("t", None, b"fine", 1)
    assert len(clients) == 2


def test_a_record_has_as_long_as_kafka_may_be_away(clients):
    for properties, timeout_ms in (({}, 5000), ({"delivery.timeout.ms": "7000"}, "7000")):
        opened = SharedSender(KafkaSettings("broker:9092", properties, timeout_s=5.0))
        opened.begin("t", None, b"fine", 1).wait()
        opened.close()
        assert clients[-1].config["delivery.timeout.ms"] == timeout_ms


def test_everyone_learns_where_the_record_is(sender, monkeypatch):
    assert sender.begin("t", None, b"fine", 1).wait() == ("t", 2, 42)
    calls = []

    def ends(_admin, topics, *, committed):
        calls.append((topics, committed))
        return {("t", 2): 99}

    monkeypatch.setattr("ksql.kafka.admin.Admin.end_offsets", ends)
    # one that was there already when it was sent again has no offset: it is before the end
    assert sender.begin("t", None, b"again", 1).wait() == ("t", 2, 99)
    assert calls == [(["t"], False)]


def test_where_a_record_of_the_epoch_is(sender, monkeypatch):
    monkeypatch.setattr(shared_sender, "send_at_epoch", lambda *_: Written("t", 1, 8))
    assert sender.begin("t", None, b"fine", 0).wait() == ("t", 1, 8)


def test_a_topic_is_requested_once_until_it_may_be_another(sender, clients, ids):
    for _ in range(3):
        sender.begin("t", None, b"fine", 1).wait()
    assert clients[0].looked_up == []  # the producer was opened after it
    look_at(sender, lambda names: {name: ids[name] for name in names})
    sender.begin("t", None, b"fine", 1).wait()
    assert clients[0].looked_up == []
    sender.renew()
    for _ in range(3):
        sender.begin("t", None, b"fine", 1).wait()
    assert clients[0].looked_up == ["t"]
    ids["t"] = Identity("second", 4)
    look_at(sender, lambda names: {name: ids[name] for name in names})
    for _ in range(3):
        sender.begin("t", None, b"fine", 1).wait()
    assert clients[0].looked_up == ["t", "t"]


def test_looks_are_only_at_topics_that_are_written_to(sender, ids):
    looked = []

    def identities(names):
        looked.append(list(names))
        return ids

    look_at(sender, identities)
    sender.begin("t", None, b"fine", 1).wait()
    for _ in range(100):
        look_at(sender, identities)
    assert looked == [["t"]] * 59


def test_a_look_without_an_answer_changes_nothing(sender, clients):
    def unreachable(_names):
        raise KafkaUnreachable("broker:9092", "gone")

    sender.begin("t", None, b"fine", 1).wait()
    look_at(sender, unreachable)
    sender.begin("t", None, b"fine", 1).wait()
    assert clients[0].looked_up == []


@pytest.mark.parametrize(
    "code",
    [KafkaError._UNKNOWN_PARTITION, KafkaError._DESTROY, KafkaError.UNKNOWN_TOPIC_OR_PART],
)
def test_a_record_for_a_partition_that_is_gone_is_sent_again(sender, clients, code):
    sender.begin("t", None, b"fine", 1).wait()
    clients[0].lost = KafkaError(code)
    assert sender.begin("t", None, b"lost", 1).wait() == ("t", 2, 42)
    assert clients[0].looked_up == ["t"]


def test_a_fatal_error_fails_what_is_under_way_and_the_next_goes_to_a_new_producer(sender, clients):
    sender.begin("t", None, b"fine", 1).wait()
    clients[0].lost = FATAL
    clients[0].ending = SystemError("returned NULL without setting an exception")
    with pytest.raises(WriteFailed):
        sender.begin("t", None, b"lost", 1).wait()
    sender.begin("t", None, b"fine", 1).wait()
    assert len(clients) == 2
