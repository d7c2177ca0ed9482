"""A journal over a topic in memory; ``tests/kafka`` has the logs that are journals on a broker."""

from __future__ import annotations

import contextlib

import pytest

from ksql.core.errors import ServerError
from ksql.core.records import RawRecord
from ksql.kafka import journal as module
from ksql.kafka.admin import TopicInfo
from ksql.kafka.errors import KafkaUnreachable
from ksql.kafka.journal import Journal, OpenTransaction
from ksql.kafka.settings import KafkaSettings

A, B, C = (b"a", b"1"), (b"b", None), (b"c", b"3")


class Topic:
    """What brokers have: records, and an open transaction after them if there is one."""

    def __init__(self):
        self.info = None
        self.created = []
        self.records = []
        self.unsettled = [0]
        self.readers = []
        self.writers = []
        self.start_error = None

    def add(self, *entries):
        for key, value in entries:
            offset = len(self.records)
            self.records.append(RawRecord("log", 0, offset, 0, key, value, None))


class Admin:
    def __init__(self, topic):
        self.topic = topic

    def topics(self):
        return {} if self.topic.info is None else {"log": self.topic.info}

    def create(self, new):
        self.topic.created.append((new.name, new.partitions, new.replicas, dict(new.configs)))
        return self.topic.info is None

    def end_offsets(self, topics, *, committed=True):
        unsettled = self.topic.unsettled
        hidden = unsettled.pop(0) if len(unsettled) > 1 else unsettled[0]
        return {("log", 0): len(self.topic.records) + (0 if committed else hidden)}

    def close(self):
        pass


class Reader:
    def __init__(self, topic):
        self.topic = topic
        self.at = None
        self.closed = False
        topic.readers.append(self)

    @property
    def positions(self):
        return {("log", 0): self.at}

    def assign(self, offsets):
        self.at = offsets["log", 0]

    def poll(self, timeout_s):
        batch = [one for one in self.topic.records if one.offset >= self.at][:2]
        self.at = batch[-1].offset + 1 if batch else self.at
        return batch

    def read_to_end(self):
        return iter(lambda: self.poll(0), [])

    def close(self):
        self.closed = True


class Sender:
    def __init__(self, topic, writer_id):
        self.topic = topic
        self.writer_id = writer_id
        self.closed = False
        self.sent: list[tuple[bytes, bytes | None]] = []
        topic.writers.append(self)

    def start(self):
        if self.topic.start_error is not None:
            raise self.topic.start_error

    @contextlib.contextmanager
    def transaction(self):
        self.sent = []
        yield self
        self.topic.add(*self.sent)

    def send(self, name, key, value, partition):
        assert (name, partition) == ("log", 0)
        self.sent.append((key, value))

    def close(self):
        self.closed = True


@pytest.fixture
def topic(monkeypatch):
    topic = Topic()
    monkeypatch.setattr(module, "Admin", lambda _settings: Admin(topic))
    monkeypatch.setattr(module, "Reader", lambda _settings: Reader(topic))
    monkeypatch.setattr(module, "TransactionalSender", lambda _, name: Sender(topic, name))
    return topic


def opened(writer_id=""):
    settings = KafkaSettings("nowhere:1", timeout_s=0.05)
    return Journal(settings, "log", 3, {"cleanup.policy": "delete"}, writer_id)


def read(journal):
    return [(one.key, one.value) for batch in journal.read_to_end() for one in batch]


def test_a_topic_that_is_missing_is_made_with_one_partition(topic):
    assert opened().ensure_topic() is None
    assert topic.created == [("log", 1, 3, {"cleanup.policy": "delete"})]


def test_a_topic_that_is_there_is_shown(topic):
    topic.info = TopicInfo("log", 2, (1, 1), {})
    assert opened().ensure_topic() is topic.info
    assert topic.created == []


def test_one_that_another_server_makes_meanwhile_is_shown_too(topic, monkeypatch):
    journal = opened()
    info = TopicInfo("log", 1, (1,), {})

    def late(_new):
        topic.info = info
        return False

    monkeypatch.setattr(journal.admin, "create", late)
    assert journal.ensure_topic() is info


def test_what_is_appended_is_read_in_order(topic):
    journal = opened()
    assert not journal.reading
    journal.seek(0)
    assert journal.reading
    assert not journal.writing
    journal.acquire()
    assert journal.writing
    journal.append([A, B])
    journal.append([C])
    assert read(journal) == [A, B, C]
    assert (journal.position, journal.end(), journal.settled_end()) == (3, 3, 3)
    journal.append([A])
    assert [one.key for batch in journal.read_so_far() for one in batch] == [b"a"]


def test_who_takes_over_writes_under_the_same_id(topic):
    opened().acquire()
    opened("other").acquire()
    assert [writer.writer_id for writer in topic.writers] == ["log", "other"]


def test_taking_over_again_and_releasing_close_the_writer(topic):
    journal = opened()
    journal.acquire()
    journal.acquire()
    assert [writer.closed for writer in topic.writers] == [True, False]
    journal.release()
    journal.release()
    assert not journal.writing
    assert all(writer.closed for writer in topic.writers)


def test_an_acquisition_that_fails_leaves_no_writer(topic):
    topic.start_error = KafkaUnreachable("nowhere:1", "no answer")
    journal = opened()
    with pytest.raises(KafkaUnreachable):
        journal.acquire()
    assert not journal.writing
    assert topic.writers[0].closed


def test_what_could_not_be_taken_in_is_read_again(topic):
    topic.add(A, B, C)
    journal = opened()
    journal.seek(1)

    def refuse():
        with journal.all_or_nothing():
            assert read(journal) == [B, C]
            raise ServerError("unreadable")

    for _ in range(2):
        with pytest.raises(ServerError, match="unreadable"):
            refuse()
    with journal.all_or_nothing():
        assert read(journal) == [B, C]
    assert read(journal) == []


@pytest.mark.parametrize(
    ("offset", "entries", "there"),
    [
        (1, [B], True),
        (1, [B, C], True),
        (1, [C], False),
        (1, [B, A], False),
        (2, [C, A], False),
        (3, [A], False),
    ],
)
def test_records_in_doubt_are_looked_for_at_their_offset(topic, offset, entries, there):
    topic.add(A, B, C)
    journal = opened()
    assert journal.has(offset, entries) == there
    assert journal.position == offset


def test_records_after_a_gap_are_none_of_those_in_doubt(topic):
    topic.add(A, B, B)
    del topic.records[1]  # an aborted transaction
    assert not opened().has(1, [B])


def test_the_end_is_settled_when_no_transaction_is_open(topic):
    topic.add(A)
    topic.unsettled = [0, 1, 0, 1, 0, 0]  # the first look of each pair counts what is committed
    assert opened().settled_end() == 1
    assert topic.unsettled == [0]


def test_a_transaction_that_stays_open_is_an_error(topic):
    topic.unsettled = [1]
    with pytest.raises(OpenTransaction, match="a transaction on the topic log stays open"):
        opened().settled_end(0.0)


def test_closing_releases_what_was_opened(topic):
    journal = opened()
    journal.close()
    journal.seek(0)
    journal.acquire()
    journal.stop_reading()
    journal.stop_reading()
    assert not journal.reading
    journal.seek(0)
    journal.close()
    assert [one.closed for one in (*topic.readers, *topic.writers)] == [True, True, True]
