"""Each line of the audit is a record in its topic; no line waits, and none is lost unnoticed."""

from __future__ import annotations

import logging
import threading

import orjson
import pytest

from ksql.app import audit_topic as module
from ksql.app.audit_topic import NAME, AuditTopic, BadAuditTopic, audit_topic, check_audit
from ksql.app.compose import audit
from ksql.core import Settings
from ksql.core.log_context import trace_of, traced
from ksql.exec.dataflow.topic_acl import ReadOnlyTopic, check_delete, check_read, check_write
from ksql.kafka.errors import KafkaUnreachable, UnknownTopic, WriteFailed
from ksql.sql.catalog import Topic
from tests.waits import await_true

AUDIT = logging.getLogger("ksql.audit")
LINE = {"user": "ada", "address": "10.0.0.3", "path": "/ksql", "outcome": "admitted"}


class Kafka:
    """Topics and a writer: ``gate`` lets records through, ``fails`` says why one is not taken."""

    def __init__(self):
        self.names, self.created, self.records = {"other"}, [], []
        self.gate = threading.Event()
        self.gate.set()
        self.fails = lambda _value: None
        self.begun = 0

    def topics(self):
        return self.names

    def create(self, topic):
        self.created.append(topic)
        self.names.add(topic.name)

    def begin(self, topic, key, value, timestamp):
        self.begun += 1
        kafka = self

        class Delivery:
            def wait(self):
                kafka.gate.wait()
                error = kafka.fails(value)
                if error is not None:
                    raise error
                kafka.records.append((topic, key, orjson.loads(value), timestamp))

        return Delivery()


@pytest.fixture
def kafka():
    return Kafka()


@pytest.fixture
def topic(kafka, monkeypatch):
    monkeypatch.setattr(module, "_PAUSE_S", 0.01)
    level = AUDIT.level
    AUDIT.setLevel(logging.INFO)
    copied = AuditTopic(Topic("audit", 3), kafka, kafka, "default_", "h:8088")
    yield copied
    kafka.gate.set()
    copied.close()
    AUDIT.setLevel(level)


def say(count=1, **more):
    for _ in range(count):
        AUDIT.info("statement", extra=LINE | more)


def counts(topic):
    return {labels[0]: count for labels, count in topic.outcomes.counts().items()}


def test_a_line_is_a_record_with_all_that_the_line_has(kafka, topic):
    with traced(trace_of("00-" + "a" * 32 + "-" + "b" * 16 + "-01")):
        say(unseen=3)
    await_true("it is written", lambda: kafka.records)
    [(name, key, value, timestamp)] = kafka.records
    assert (name, key) == ("audit", None)
    assert value == LINE | {
        "time": timestamp,
        "event": "statement",
        "unseen": 3,
        "service": "default_",
        "host": "h:8088",
        "request_id": "a" * 32,
    }


def test_a_record_has_no_more_secrets_than_its_line(kafka, topic):
    say(path="/http://ada:m4rk3r@there", token="m4rk3r")
    await_true("it is written", lambda: kafka.records)
    [(_, _, value, _)] = kafka.records
    assert (value["path"], value["token"]) == ("/http://***@there", "***")


def test_a_missing_topic_is_created_once_and_again_when_it_was_deleted(kafka, topic):
    say(2)
    await_true("both are written", lambda: counts(topic) == {"written": 2})
    assert kafka.created == [Topic("audit", 3)]
    kafka.names.remove("audit")
    kafka.fails = lambda _value: None if "audit" in kafka.names else UnknownTopic("audit")
    say()
    await_true("the third is written, too", lambda: counts(topic) == {"written": 3})
    assert len(kafka.created) == 2


def test_a_line_waits_for_nothing_and_those_beyond_the_queue_are_counted(
    kafka, topic, monkeypatch, caplog
):
    monkeypatch.setattr(module, "MOST", 5)
    kafka.gate.clear()
    say(9)  # returns although nothing is taken
    assert counts(topic) == {"lost": 4}
    kafka.gate.set()
    await_true("the others are written", lambda: counts(topic) == {"lost": 4, "written": 5})
    await_true("the loss is logged", lambda: "audit_topic_written" in caplog.text)
    [line] = [each for each in caplog.records if each.message == "audit_topic_written"]
    assert line.lost == 4


def test_without_kafka_records_wait_and_it_is_said_once(kafka, topic, caplog):
    kafka.fails = lambda _value: KafkaUnreachable("k:9092", "no answer")
    say(3)
    await_true("it was tried again", lambda: kafka.begun > 9)
    assert counts(topic) == {}
    kafka.fails = lambda _value: None
    await_true("they are written", lambda: counts(topic) == {"written": 3})
    await_true("the end is logged", lambda: "audit_topic_written" in caplog.text)
    failures = [each for each in caplog.records if each.message == "audit_topic_not_written"]
    assert len(failures) == 1
    assert "no answer" in failures[0].reason


def test_a_record_that_the_topic_never_takes_stops_no_other(kafka, topic):
    kafka.fails = lambda value: WriteFailed("audit", "too large") if b"evil" in value else None
    say()
    say(path="/evil")
    say()
    await_true("two are written", lambda: counts(topic) == {"written": 2, "lost": 1})


def test_a_record_that_cannot_be_handed_over_stops_no_other(kafka, topic):
    begin = kafka.begin

    def picky(topic, key, value, timestamp):
        if b"evil" in value:
            raise WriteFailed("audit", "no key")
        return begin(topic, key, value, timestamp)

    kafka.begin = picky
    say()
    say(2, path="/evil")
    say()
    await_true("two are written", lambda: counts(topic) == {"written": 2, "lost": 2})


def test_closing_writes_what_waits_and_ends_the_copies(kafka, topic):
    say(3)
    topic.close()
    assert counts(topic) == {"written": 3}
    say()
    assert kafka.begun == 3


def test_closing_without_kafka_counts_what_is_left(kafka, topic, monkeypatch, caplog):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.05)
    kafka.gate.clear()
    say(3)
    topic.close()
    assert counts(topic) == {"lost": 3}
    assert "audit_records_lost" in caplog.text


def test_there_is_no_topic_unless_it_is_named(kafka):
    closers: list[object] = []
    assert audit(Settings({}), kafka, kafka, "h", closers) is None
    given = Settings({NAME: "a", "ksql.audit.topic.partitions": "2"})
    assert audit_topic(given) == Topic("a", 2, 1)
    copied = audit(given, kafka, kafka, "h", closers)
    assert closers == [copied.close]
    copied.close()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a b", "letters"),
        ("..", "letters"),
        ("x" * 250, "letters"),
        ("_schemas", "internal"),
        ("_confluent-ksql-default__command_topic", "internal"),
        ("default_ksql_processing_log", "processing log"),
    ],
)
def test_a_name_that_is_no_topic_of_its_own_is_refused_at_the_start(name, says):
    with pytest.raises(BadAuditTopic, match=says):
        check_audit(Settings({NAME: name}))
    check_audit(Settings({NAME: "ksql_audit"}))
    check_audit(Settings({}))


def test_statements_read_the_topic_and_neither_write_nor_delete_it():
    settings = Settings({NAME: "ksql_audit"})
    check_read("ksql_audit")
    with pytest.raises(ReadOnlyTopic, match="write to"):
        check_write("ksql_audit", settings)
    with pytest.raises(ReadOnlyTopic, match="delete"):
        check_delete("ksql_audit", settings)
    check_write("ksql_audit", Settings({}))
