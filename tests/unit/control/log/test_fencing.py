"""The server that leads writes the command topic, and it alone."""

from __future__ import annotations

import pytest

from ksql.control.engine.ports import Command, CommandInDoubt
from ksql.control.log import log as module
from ksql.control.log.log import KafkaCommandLog
from ksql.control.log.record import decode
from ksql.core.process.lease import NotLeader
from ksql.core.records import RawRecord
from ksql.kafka.errors import KafkaUnreachable, ProducerFenced
from ksql.kafka.producers import CommitInDoubt
from ksql.kafka.settings import KafkaSettings


class Topic:
    """The brokers keep the records, and the epoch of the transactional id."""

    def __init__(self):
        self.records = []
        self.epoch = 0
        self.away = False


class Writer:
    """One server's right to write, and its journal."""

    writing = True
    admin = None

    def __init__(self, topic):
        self._topic = topic
        self._epoch = 0
        self.position = 0
        self.usable = True
        self.sender = self

    def seek(self, offset):
        self.position = offset

    def ensure_topic(self):
        return None

    def acquire(self):
        self.reopen()

    def reopen(self):
        if self._topic.away:
            raise KafkaUnreachable("kafka:9092", "it is away")
        self._topic.epoch += 1
        self._epoch = self._topic.epoch
        self.usable = True

    def settled_end(self):
        return len(self._topic.records)

    def append(self, entries):
        if self._topic.away:
            self.usable = False
            raise CommitInDoubt("id", "no answer")
        if self._epoch != self._topic.epoch:
            raise ProducerFenced("id")
        for key, value in entries:
            self._topic.records += [(key, value), None]

    def read_to_end(self):
        there = list(enumerate(self._topic.records))[self.position :]
        self.position = len(self._topic.records)
        yield [RawRecord("c", 0, at, 0, *record) for at, record in there if record is not None]

    def has(self, offset, entries):
        return self._topic.records[offset : offset + 1] == entries


class Whole:
    """Finds no damage."""

    problem = ""

    def know(self, span):
        del span

    def damage(self, span):
        del span
        return ""


@pytest.fixture
def topic(monkeypatch):
    monkeypatch.setattr(module, "span_of", lambda *_: None)
    return Topic()


def server(topic, leads):
    """The log of a server that has just taken the topic over."""

    def confirm():
        if not leads["now"]:
            raise NotLeader("Another server has taken over.")

    writer = Writer(topic)
    log = KafkaCommandLog(
        KafkaSettings("kafka:9092", {}), "svc", 1, lambda *_: None, confirm=confirm
    )
    log._journal = writer  # type: ignore[assignment] # it has what the log asks for
    log.wholeness = Whole()  # type: ignore[assignment] # the same
    log.open()
    return log


def write(log, name):
    with log.begin() as transaction:
        transaction.append(Command(f"stream/{name}/create", "", ()))


def names(topic):
    """Return the ids of the commands in the topic."""
    there = [record for record in enumerate(topic.records) if record[1] is not None]
    return [decode(offset, *record).id for offset, record in there]


def test_server_that_was_cut_off_does_not_shut_the_new_leader_out(topic):
    leads = {"now": True}
    old = server(topic, leads)
    topic.away = True
    with pytest.raises(CommandInDoubt):
        write(old, "A")
    leads["now"], topic.away = False, False
    new = server(topic, {"now": True})
    with pytest.raises(NotLeader):
        old.settle()  # as it does in the background
    with pytest.raises(CommandInDoubt):
        write(old, "B")
    write(new, "C")
    assert names(topic) == ["stream/C/create"]


def test_a_broken_transaction_is_begun_again_by_the_leader_alone(topic):
    leads = {"now": True}
    old = server(topic, leads)
    old._journal.usable = False  # its last transaction could not be ended
    leads["now"] = False
    new = server(topic, {"now": True})
    with pytest.raises(NotLeader):
        write(old, "A")
    write(new, "B")
    assert names(topic) == ["stream/B/create"]


def test_leader_that_was_fenced_by_mistake_writes_again(topic):
    leader = server(topic, {"now": True})
    topic.epoch += 1
    with pytest.raises(ProducerFenced):
        write(leader, "A")
    write(leader, "A")
    write(leader, "B")
    assert names(topic) == ["stream/A/create", "stream/B/create"]


def test_leader_settles_its_doubt(topic):
    leader = server(topic, {"now": True})
    topic.away = True
    with pytest.raises(CommandInDoubt):
        write(leader, "A")
    topic.away = False
    assert leader.settle() is False
    write(leader, "B")
    assert names(topic) == ["stream/B/create"]
