"""ASSERT TOPIC and ASSERT SCHEMA."""

from __future__ import annotations

import pytest

from ksql.control.statements import entities as e
from ksql.control.statements.asserts import WaitsTooLong
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import AssertionFailed, RegistryMissing, StatementError
from ksql.formats.schema_registry import MemoryRegistry, RegistryUnreachable, Schema
from tests.unit.world import StillMonitor, World

AVRO = Schema("AVRO", '"string"')
SOON = " TIMEOUT 1 MILLISECONDS;"


@pytest.fixture
def world():
    registry = MemoryRegistry()
    registry.register("s-value", AVRO)
    return World(registry=registry)


def failed(world, text):
    with pytest.raises(RequestFailed) as caught:
        world.run(text)
    return caught.value.error


@pytest.mark.parametrize(
    ("text", "subject", "id_", "exists"),
    [
        ("ASSERT SCHEMA SUBJECT 's-value';", "s-value", None, True),
        ("ASSERT SCHEMA SUBJECT 's-value' ID 1;", "s-value", 1, True),
        ("ASSERT SCHEMA ID 1;", None, 1, True),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT 'other';", "other", None, False),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT 's-value' ID 2;", "s-value", 2, False),
        ("ASSERT NOT EXISTS SCHEMA ID 2;", None, 2, False),
    ],
)
def test_true_assertion_is_answered(world, text, subject, id_, exists):
    (answer,) = world.run(text)
    assert answer == e.AssertSchema(statement_text=text, subject=subject, id=id_, exists=exists)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ASSERT SCHEMA SUBJECT 'other'", "Schema with subject name other does not exist"),
        ("ASSERT SCHEMA SUBJECT 's-value' ID 7", "Schema with subject name s-value id 7 does not"),
        ("ASSERT SCHEMA ID 7", "Schema with id 7 does not exist"),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT 's-value'", "Schema with subject name s-value exists"),
        ("ASSERT NOT EXISTS SCHEMA ID 1", "Schema with id 1 exists"),
        ("ASSERT TOPIC nowhere", "Topic nowhere does not exist"),
    ],
)
def test_assertion_that_times_out_is_reported(world, text, message):
    error = failed(world, text + SOON)
    assert isinstance(error, AssertionFailed)
    assert message in error.message


class OneTopic(StillMonitor):
    """Knows a topic of two partitions with one replica each."""

    def topics(self):
        return {"t": [1, 1]}


def test_all_that_is_not_as_asserted_of_a_topic_is_reported(world):
    world.services.monitor = OneTopic()
    assert world.run("ASSERT TOPIC t WITH (partitions=2, 'replicas'=1);")[0].exists
    error = failed(world, "ASSERT TOPIC t WITH (PARTITIONS=3, 'replicas'=5, color='red')" + SOON)
    assert error.message.split("\n") == [
        "Mismatched configuration for topic t: For config PARTITIONS, expected 3 got 2",
        "Mismatched configuration for topic t: For config REPLICAS, expected 5 got 1",
        "Cannot assert unknown topic property: COLOR",
    ]
    assert "whole number" in failed(world, "ASSERT TOPIC t WITH (PARTITIONS='2');").message
    assert failed(world, "ASSERT NOT EXISTS TOPIC t" + SOON).message == "Topic t exists"


def test_it_waits_until_it_holds(world, monkeypatch):
    registry = world.engine.registry
    monkeypatch.setattr(
        "ksql.control.statements.execute.time.sleep",
        lambda _s: registry.register("late-value", AVRO),
    )
    (answer,) = world.run("ASSERT SCHEMA SUBJECT 'late-value' TIMEOUT 1 MINUTE;")
    assert answer.exists


def test_a_request_that_waits_gives_its_thread_back(world):
    """What was done before is not done again, and what comes behind waits too."""
    registry = world.engine.registry
    text = "SHOW TYPES; ASSERT SCHEMA SUBJECT 'late-value' TIMEOUT 1 MINUTE; SHOW STREAMS;"
    running = world.running(text)
    assert running.proceed() is None
    assert running.proceed() is None
    registry.register("late-value", AVRO)
    assert [type(each) for each in running.proceed()] == [e.TypeList, e.AssertSchema, e.Streams]


def test_the_time_of_each_assertion_is_its_own(world, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("ksql.control.statements.execute.time.monotonic", lambda: now[0])
    one = "ASSERT NOT EXISTS SCHEMA SUBJECT 's-value' TIMEOUT 10 SECONDS;"
    running = world.running(one + one)
    assert running.proceed() is None
    now[0] += 9
    assert running.proceed() is None
    now[0] += 1
    with pytest.raises(RequestFailed) as caught:
        running.proceed()
    assert isinstance(caught.value.error, AssertionFailed)


def test_an_assertion_waits_no_longer_than_the_server_allows(world):
    error = failed(world, "ASSERT TOPIC nowhere TIMEOUT 1 HOURS;")
    assert isinstance(error, WaitsTooLong)
    assert "3600000 ms is longer" in error.message
    assert "ksql.assert.timeout.max.ms is 600000" in error.text()


def test_a_subject_or_an_id_is_needed(world):
    assert isinstance(failed(world, "ASSERT SCHEMA;"), StatementError)


def test_without_a_registry_it_says_so():
    assert isinstance(failed(World(), "ASSERT SCHEMA ID 1;"), RegistryMissing)


def test_a_registry_that_is_down_is_reported(world, monkeypatch):
    def down(*_args):
        raise RegistryUnreachable("http://there", "no answer")

    monkeypatch.setattr(world.engine.registry, "ids", down)
    error = failed(world, "ASSERT SCHEMA SUBJECT 's-value';")
    assert error.code == StatementError.code
    assert "http://there" in error.text()
