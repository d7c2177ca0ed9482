from __future__ import annotations

import time

import orjson

from ksql.app.processing_log import FailureLog
from ksql.core.errors import ServerError
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.spark.query.spec import Failure

FAILURE = Failure(5, "no such topic", "a trace")


class Wire:
    """A sender; one of which Kafka is away says so after a while."""

    def __init__(self, *, away=False):
        self.away = away
        self.entries = []
        self.flushes = 0

    def send(self, topic, key, value, *, timestamp):
        self.entries.append((topic, key, orjson.loads(value), timestamp))

    def flush(self, _timeout_s):
        self.flushes += 1
        if self.away:
            time.sleep(0.1)
            raise ServerError("Kafka is away")

    def close(self, _timeout_s):
        self.closed = True


def test_a_failure_is_an_entry_about_the_query():
    wire = Wire()
    log = FailureLog(wire, "log")
    log.note(QueryVersion(QueryId("Q_1"), 7), FAILURE)
    log.close()
    [(topic, key, entry, timestamp)] = wire.entries
    assert (topic, key, timestamp) == ("log", None, 5)
    assert entry["logger"] == "processing.Q_1"
    assert entry["message"]["kafkaStreamsThreadError"]["cause"] == ["no such topic"]
    assert entry["message"]["kafkaStreamsThreadError"]["threadName"] == "Q_1.v7"


def test_closing_does_not_wait_for_each_entry_where_kafka_is_away(caplog):
    wire = Wire(away=True)
    log = FailureLog(wire, "log")
    for number in range(20):
        log.note(QueryVersion(QueryId(f"Q_{number}")), FAILURE)
    log.close()
    assert (len(wire.entries), wire.closed) == (20, True)
    assert wire.flushes < 10
    assert "failure_not_logged" in caplog.text
