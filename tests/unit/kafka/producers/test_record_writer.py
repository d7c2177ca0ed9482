"""The one producer of the client library; the library is a stand-in here."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

import ksql
from ksql.kafka.errors import (
    KafkaNotReady,
    KafkaUnreachable,
    ProducerFenced,
    UnknownTopic,
    WriteFailed,
)
from ksql.kafka.producers import record_writer
from ksql.kafka.producers.record_writer import RecordWriter, TransactionalWriter, not_written
from ksql.kafka.producers.sender import Sender, SenderClosed
from ksql.kafka.settings import KafkaSettings

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
DENIED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


class Client:
    """Kafka's client, whose queue is full for as many records as ``full`` says."""

    def __init__(self, config):
        self.config = config
        self.full = 0
        self.sent = []
        self.waits = []
        self.problem = None
        self.ending = None

    def produce(self, *record, **more):
        if self.full:
            self.full -= 1
            raise BufferError
        self.sent.append((record, more))

    def poll(self, limit_s):
        self.waits.append(limit_s)
        if self.ending is not None:
            raise self.ending
        return 0

    flush = poll

    def _end(self, *_):
        if self.problem is not None:
            raise KafkaException(self.problem)

    init_transactions = begin_transaction = commit_transaction = abort_transaction = _end


@pytest.fixture
def clients(monkeypatch):
    opened = []

    def open_(config, logger):
        opened.append(Client(config))
        return opened[-1]

    monkeypatch.setattr(record_writer, "Producer", open_)
    return opened


def test_no_other_module_imports_a_producer_of_the_library():
    root = Path(ksql.__file__).parent
    importers = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "confluent_kafka"
        if any(alias.name == "Producer" for alias in node.names)
    }
    assert importers == {"kafka/producers/record_writer.py"}


def test_what_a_writer_is_given_stands_over_what_all_have(clients):
    RecordWriter({"linger.ms": 3, "partitioner": "random"})
    config = clients[0].config
    assert config["linger.ms"] == 3
    assert config["partitioner"] == "random"
    assert config["enable.idempotence"] is True


def test_a_record_waits_for_room_in_the_queue(clients):
    writer = RecordWriter({})
    clients[0].full = 3
    writer.hand_over("t", b"v", b"k", 2, 5, [("h", b"1")])
    assert clients[0].sent == [(("t", b"v", b"k", 2), {"timestamp": 5, "headers": [("h", b"1")]})]
    assert len(clients[0].waits) == 3


def test_a_queue_that_stays_full_is_a_kafka_that_cannot_be_reached(clients):
    writer = RecordWriter({"bootstrap.servers": "b:1"})
    writer.errors.note(KafkaError(KafkaError._TRANSPORT, "refused"))
    clients[0].full = 1_000_000
    with pytest.raises(KafkaUnreachable, match="b:1") as raised:
        writer.hand_over("t", b"v", b"k", wait_s=0.0)
    assert raised.value.detail == "refused"


def test_a_fatal_error_is_remembered(clients):
    writer = RecordWriter({})
    writer.errors.note(KafkaError(KafkaError._TRANSPORT))
    assert not writer.errors.fatal
    writer.errors.note(KafkaError(KafkaError._FATAL))
    writer.errors.note(KafkaError(KafkaError._TRANSPORT))
    assert writer.errors.fatal


def test_failures_are_handed_out_once(clients):
    failures = RecordWriter({}).undelivered
    topic = SimpleNamespace(topic=lambda: "t")
    failures.report(None, topic)
    failures.report(TOO_LARGE, topic)
    assert not failures.any_but_large()
    failures.report(DENIED, topic)
    assert failures.any_but_large()
    assert failures.taken() == [("t", TOO_LARGE), ("t", DENIED)]
    assert failures.taken() == []


@pytest.mark.parametrize("call", ["init_transactions", "commit", "abort"])
def test_a_fenced_producer_is_named_in_each_step(clients, call):
    writer = TransactionalWriter({}, "one")
    clients[0].problem = KafkaError(KafkaError._FENCED)
    with pytest.raises(ProducerFenced, match='another server writes as "one" now'):
        getattr(writer, call)(1.0)
    with pytest.raises(ProducerFenced):
        writer.begin()
    clients[0].problem = DENIED
    with pytest.raises(KafkaException):
        getattr(writer, call)(1.0)


def test_a_transaction_that_is_given_up_leaves_no_failures(clients):
    writer = TransactionalWriter({}, "one")
    writer.undelivered.report(DENIED, SimpleNamespace(topic=lambda: "t"))
    writer.abort(1.0)
    assert writer.undelivered.taken() == []


def wrapped(error):
    """An error of the client as it comes with other answers."""
    problem = SystemError("returned a result with an exception set")
    problem.__cause__ = KafkaException(error)
    return problem


def test_why_a_record_can_never_be_sent(clients):
    plain, transactional = RecordWriter({}), TransactionalWriter({}, "one")
    fenced = KafkaException(KafkaError(KafkaError._FENCED))
    assert isinstance(plain.failure("t", KafkaException(DENIED)), WriteFailed)
    assert isinstance(transactional.failure("t", fenced), ProducerFenced)


ENDINGS = {
    "as it is": KafkaException(DENIED),
    "wrapped": wrapped(DENIED),
    "lost": SystemError("returned NULL without setting an exception"),
}


@pytest.mark.parametrize("call", ["serve", "flush"])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_fatal_error_comes_with_answers_in_three_shapes(clients, call, ending):
    writer = RecordWriter({})
    clients[0].ending = ending
    with pytest.raises(KafkaException):
        getattr(writer, call)(1.0)
    assert writer.errors.fatal


def test_a_transactions_step_that_loses_its_error_is_fatal_too(clients):
    writer = TransactionalWriter({}, "one")
    clients[0].ending = ENDINGS["lost"]
    clients[0].commit_transaction = clients[0].poll
    with pytest.raises(KafkaException):
        writer.commit(1.0)
    assert writer.errors.fatal


def test_a_sender_that_can_never_write_again_opens_another(clients):
    sender = Sender(KafkaSettings("b:1"))
    clients[0].ending = ENDINGS["lost"]
    with pytest.raises(WriteFailed):
        sender.flush()
    sender.flush()
    assert len(clients) == 2


def test_a_sender_that_can_never_write_again_can_be_closed(clients):
    sender = Sender(KafkaSettings("b:1"))
    clients[0].ending = ENDINGS["lost"]
    sender.close()
    with pytest.raises(SenderClosed):
        sender.flush()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (KafkaError._MSG_TIMED_OUT, KafkaUnreachable),
        (KafkaError.NOT_ENOUGH_REPLICAS, KafkaNotReady),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, UnknownTopic),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, WriteFailed),
    ],
)
def test_why_a_record_was_not_acknowledged(code, error):
    assert type(not_written("b:1", "t", KafkaError(code))) is error
