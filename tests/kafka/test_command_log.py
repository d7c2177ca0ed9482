"""The command topic alone: whoever appends knows where."""

from __future__ import annotations

import uuid

import pytest

from ksql.commands.log import KafkaCommandLog
from ksql.engine.changes import PutType
from ksql.engine.ports import Command
from ksql.topics.kafka_errors import ProducerFenced
from ksql.topics.settings import KafkaSettings
from ksql.types.model import STRING


@pytest.fixture
def opened(broker):
    """Opens a log and what it has been told of other servers' commands."""
    settings, service = KafkaSettings(broker.bootstrap, timeout_s=30), uuid.uuid4().hex
    logs = []

    def open_log():
        told = []
        log = KafkaCommandLog(settings, service, 1, lambda *command: told.append(command))
        logs.append(log)
        log.open()
        return log, told

    yield open_log
    for log in logs:
        log.close()


def command(number):
    return Command(f"type/T{number}/create", "CREATE TYPE ..", (PutType(f"T{number}", STRING),))


def test_commands_in_quick_succession_get_the_offsets_they_were_promised(opened):
    log, told = opened()
    promised = []
    for number in range(40):
        with log.begin() as pen:
            promised.append((pen.offset, command(number)))
            pen.append(command(number))
    assert told == []  # its own are not told
    _, replayed = opened()
    assert replayed == promised


def test_another_servers_commands_are_told_before_the_pen_is_given(opened):
    first, told = opened()
    second, replayed = opened()
    with second.begin() as pen:
        pen.append(command(1))
        where = pen.offset
    with first.begin() as pen:
        assert told == [(where, command(1))]
        with pytest.raises(ProducerFenced, match="another server"):
            pen.append(command(2))
    assert replayed == []
