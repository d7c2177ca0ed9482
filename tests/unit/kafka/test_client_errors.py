"""Clients of Kafka are freed with their owners: nothing waits for Python's search for cycles."""

from __future__ import annotations

import gc
import weakref

import pytest

from ksql.kafka.admin import Admin
from ksql.kafka.errors import KafkaUnreachable
from ksql.kafka.producers.sender import Sender, SenderClosed, TransactionalSender
from ksql.kafka.producers.shared_sender import SharedSender
from ksql.kafka.ranges import RangeReader
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings

NOWHERE = KafkaSettings("127.0.0.1:1", timeout_s=0.5)


@pytest.fixture
def no_search():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def sender():
    sender_ = Sender(NOWHERE)
    sender_.send("t", None, b"{}")
    with pytest.raises(KafkaUnreachable):
        sender_.flush(0.1)
    return sender_


def shared_sender():
    sender_ = SharedSender(NOWHERE)
    sender_._line(())
    return sender_


def reader():
    reader_ = Reader(NOWHERE)
    with pytest.raises(KafkaUnreachable):
        reader_.assign_topics(["t"])
    return reader_


def admin():
    admin_ = Admin(NOWHERE)
    with pytest.raises(KafkaUnreachable):
        admin_.topics()
    return admin_


MAKERS = {
    "sender": sender,
    "transactional sender": lambda: TransactionalSender(NOWHERE, "t"),
    "shared sender": shared_sender,
    "reader": reader,
    "range reader": lambda: RangeReader(NOWHERE.consumer()),
    "admin": admin,
}


@pytest.mark.slow
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_closed_client_is_freed_at_once(maker, no_search):
    client = maker()
    client.close()
    gone = weakref.ref(client)
    del client
    assert gone() is None


@pytest.mark.slow
def test_an_administration_lets_go_of_its_connections_and_opens_others(no_search):
    closed = admin()
    first = closed._client
    closed.close()
    assert closed._client is not first


@pytest.mark.slow
def test_a_closed_sender_refuses_records(no_search):
    closed = Sender(NOWHERE)
    closed.close()
    closed.close()
    with pytest.raises(SenderClosed):
        closed.send("t", None, b"{}")
