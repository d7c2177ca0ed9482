"""The registry's topic becomes the service's own; schemas that a ledger kept are not forgotten."""

from __future__ import annotations

import pytest

from ksql.history.database import Database, default_url, migrate, parse_url
from ksql.history.model import SchemaRow
from ksql.registry import records as r
from ksql.registry.registry import (
    SchemasLeftInLedger,
    SchemasOfAnother,
    SchemasOutOfReach,
    claim,
)
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.registry.contract import avro
from tests.unit.registry.memorylog import MemoryLog, Topic


def ledger(folder, *schemas):
    """A ledger's database with these schemas."""
    url = default_url(folder)
    database = Database(parse_url(url), 5000)
    migrate(database)
    database.remember_file()
    with database.writing() as session:
        session.add_all(
            SchemaRow(id=n, guid=f"guid-{n}", kind="AVRO", text=schema.text)
            for n, schema in enumerate(schemas, 1)
        )
    database.close()
    return url


def opened(topic):
    return SchemaStore(MemoryLog(topic))


def test_a_topic_is_claimed_once(tmp_path):
    topic, url = Topic(), ledger(tmp_path)
    claim(opened(topic), url)
    length = len(topic.records)
    assert length > 0
    claim(opened(topic), url)
    assert len(topic.records) == length
    assert Subjects(opened(topic)).register("t", avro("b")).id == 1


def test_schemas_of_before_format_zero_are_not_passed_over(tmp_path):
    topic, url = Topic(), ledger(tmp_path, avro("a"))
    with pytest.raises(SchemasLeftInLedger, match="older than format zero") as caught:
        claim(opened(topic), url)
    assert "ledger.db" in caught.value.message
    assert "the last build of version 0.1.0" in caught.value.hint
    assert topic.records == []


def test_those_that_were_moved_may_stay_there(tmp_path):
    topic = Topic()
    claim(opened(topic), default_url(tmp_path / "none"))
    claim(opened(topic), ledger(tmp_path, avro("a")))


def test_without_a_database_there_is_nothing_to_look_for_then_or_later(tmp_path):
    topic = Topic()
    claim(opened(topic), default_url(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    (tmp_path / "ledger.db").write_bytes(b"damaged" * 1000)
    claim(opened(topic), default_url(tmp_path))  # the topic is the truth now


def test_a_database_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path):
    (tmp_path / "ledger.db").write_bytes(b"damaged" * 1000)
    topic = Topic()
    with pytest.raises(SchemasOutOfReach, match=r"ledger\.db"):
        claim(opened(topic), default_url(tmp_path))
    assert topic.records == []


def test_the_topic_of_another_registry_is_taken_over_only_on_purpose(tmp_path):
    theirs = r.encode(r.VersionSet(subject="s", version=1, id=3, schema=avro("a")))
    topic, nothing = Topic([theirs]), default_url(tmp_path / "none")
    with pytest.raises(SchemasOfAnother, match="memory"):
        claim(opened(topic), nothing)
    assert topic.records == [theirs]
    claim(opened(topic), nothing, take_over=True)
    claim(opened(topic), nothing)  # it is ours now
    assert Subjects(opened(topic)).register("t", avro("b")).id == 4
