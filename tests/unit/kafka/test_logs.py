"""All of librdkafka's lines go through our log, and nothing to the console."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

import ksql
from ksql.kafka.logs import CLIENT_LOG

CLIENTS = ("Producer", "Consumer", "AdminClient")


def clients():
    """Every place where a client is made."""
    root = Path(ksql.__file__).parent
    for file in sorted(root.rglob("*.py")):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if any(map(text.__contains__, CLIENTS)) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLIENTS:
                yield f"{file.relative_to(root)}:{node.lineno}", node


def test_every_client_has_our_logger():
    loggers = dict(clients())
    assert len(loggers) > 5
    without = [
        place
        for place, call in loggers.items()
        if not any(
            each.arg == "logger" and ast.unparse(each.value) == "CLIENT_LOG"
            for each in call.keywords
        )
    ]
    assert without == []


@pytest.mark.parametrize("client", [Producer, Consumer, AdminClient])
def test_the_library_calls_it(client, caplog, capfd):
    config = {"bootstrap.servers": "127.0.0.1:1", "log_level": 7, "debug": "conf,broker"}
    more = {"group.id": "g"} if client is Consumer else {}
    with caplog.at_level(logging.DEBUG, "ksql.kafka.logs"):
        instance = client({**config, **more}, logger=CLIENT_LOG)
        for _ in range(100):
            instance.poll(0.05)
            if caplog.records:
                break
    assert {record.message for record in caplog.records} == {"librdkafka"}
    assert "rdkafka#" in caplog.records[0].said
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("facility", "level"), [("FATAL", "INFO"), ("FAIL", "ERROR")])
def test_fatal_error_of_a_client_is_left_to_its_caller(caplog, facility, level):
    with caplog.at_level(logging.DEBUG, "ksql.kafka.logs"):
        CLIENT_LOG.log(logging.ERROR, "%s [%s] %s", facility, "rdkafka#producer-1", "fenced")
    (record,) = caplog.records
    assert (record.levelname, record.said) == (level, f"{facility} [rdkafka#producer-1] fenced")
