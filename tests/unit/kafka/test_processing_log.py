from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest

from ksql.core.records import BadRecord
from ksql.core.types.format import Format
from ksql.formats.table import DecodeError, EncodeError, serde_for
from ksql.kafka import processing_log as log

NOT_READ = DecodeError("bad", "$.A", ("why",))
NOT_WRITTEN = EncodeError("no room")
ROW = (1, b"x", Decimal("1.50"), {"A": [None]})

CASES = [
    (
        log.deserialization_error(BadRecord("value", "t", b"\x01", "AVRO"), NOT_READ, rows=True),
        "deserializationError",
        {
            "target": "value",
            "errorMessage": "Error deserializing message from topic: t",
            "recordB64": "AQ==",
            "cause": ["bad, path: $.A", "why"],
            "topic": "t",
        },
    ),
    (
        log.record_processing_error("boom", ROW, ("because",), rows=True),
        "recordProcessingError",
        {
            "errorMessage": "boom",
            "record": '[1,"eA==",1.50,{"A":[null]}]',
            "cause": ["because"],
        },
    ),
    (log.production_error("too large"), "productionError", {"errorMessage": "too large"}),
    (
        log.serialization_error("key", NOT_WRITTEN, "t", (1,), rows=True),
        "serializationError",
        {
            "target": "key",
            "errorMessage": "Error serializing message to topic: t",
            "record": "[1]",
            "cause": ["no room"],
            "topic": "t",
        },
    ),
    (
        log.thread_error("died", "query-1"),
        "kafkaStreamsThreadError",
        {"errorMessage": "died", "threadName": "query-1", "cause": []},
    ),
]


@pytest.mark.parametrize(("message", "kind", "fields"), CASES)
def test_messages(message, kind, fields):
    entry = orjson.loads(log.entry("processing.Q_1.op", 5, message))
    assert (entry["logger"], entry["level"], entry["time"]) == ("processing.Q_1.op", "ERROR", 5)
    body = entry["message"]
    assert body["type"] == [case[1] for case in CASES].index(kind)
    assert body.pop(kind) == fields
    del body["type"]
    assert len(body) == 4
    assert set(body.values()) == {None}


@pytest.mark.parametrize(("message", "kind", "_"), CASES)
def test_the_stream_reads_the_log(message, kind, _):
    serde = serde_for(Format("JSON"), log.COLUMNS, "value")
    logger, level, time, entry = serde.decode(log.entry("x", 7, message)) or ()
    assert (logger, level, time) == ("x", "ERROR", 7)
    assert entry["TYPE"] == message["type"]
    expected = {name.upper(): value for name, value in message[kind].items()}
    assert entry[kind.upper()] == expected
    assert [name for name, value in entry.items() if value is not None] == ["TYPE", kind.upper()]


def test_rows_are_left_out_unless_requested():
    for message in (
        log.deserialization_error(BadRecord("key", "t", b"secret", "JSON"), NOT_READ),
        log.record_processing_error("boom", ("secret",)),
        log.serialization_error("key", NOT_WRITTEN, "t", ("secret",)),
    ):
        text = log.entry("x", 0, message).decode()
        assert "secret" not in text
        assert "c2VjcmV0" not in text


@pytest.mark.parametrize(
    ("error", "causes"),
    [
        (DecodeError("bad", "$.A.B[1].C"), ["$.A.B[1].C", ".A.B[1].C", ".B[1].C", "[1].C", ".C"]),
        (DecodeError("bad", "$"), ["$"]),
        (DecodeError("bad"), []),
    ],
)
def test_json_is_reported_with_what_is_wrong(error, causes):
    message = log.deserialization_error(BadRecord("key", "t", b"{", "JSON"), error)
    detail: Any = message["deserializationError"]
    assert detail["errorMessage"] == f"Failed to deserialize key from topic: t. {error.message}"
    assert detail["cause"] == [*(f"bad, path: {path}" for path in causes), "bad"]


def test_names():
    assert log.topic_name("default_") == "default_ksql_processing_log"
    assert log.topic_name("default_", "mine") == "mine"
    assert log.logger_name("CSAS_X_1", "Source", "deserializer") == (
        "processing.CSAS_X_1.Source.deserializer"
    )


def test_the_statement_for_the_stream():
    text = log.stream_statement("it's")
    assert text.startswith("CREATE STREAM KSQL_PROCESSING_LOG (`LOGGER` STRING, ")
    assert text.endswith("WITH (KAFKA_TOPIC='it''s', VALUE_FORMAT='JSON', KEY_FORMAT='KAFKA');")
