"""Schemas of a ledger's database move to the log: once, whole, with their numbers."""

from __future__ import annotations

import pytest

from ksql.core.error_table import SCHEMAS_OF_ANOTHER, SCHEMAS_OUT_OF_REACH
from ksql.formats.schema_registry import Reference
from ksql.history.database import Database, default_url, parse_url
from ksql.history.migrate import migrate
from ksql.history.model import SchemaReferenceRow, SchemaRow, SubjectRow, SubjectVersionRow
from ksql.registry import records as r
from ksql.registry.kinds import Level
from ksql.registry.ledger_import import SchemasCollide, move_in
from ksql.registry.steps import Config
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.registry.contract import avro
from tests.unit.registry.memorylog import MemoryLog, Topic


def fill_ledger(url):
    """A ledger's database as the version before left it."""
    database = Database(parse_url(url), 5000)
    migrate(database)
    database.remember_file()
    rows = [
        SubjectRow(subject="", last_version=0, compatibility="NONE"),
        SubjectRow(subject="a", last_version=7, mode="READONLY"),
        SubjectRow(subject="b", last_version=1, compatibility="FULL", normalize=True),
        *(
            SchemaRow(id=n, guid=f"guid-{n}", kind="AVRO", text=avro(f"f{n}").text)
            for n in (1, 2, 5, 9)
        ),
    ]
    with database.writing() as session:
        session.add_all(rows)
        session.flush()
        session.add_all(
            [
                SchemaReferenceRow(schema_id=5, position=0, name="R", subject="a", version=2),
                SubjectVersionRow(subject="a", version=2, schema_id=1, deleted=True),
                SubjectVersionRow(subject="a", version=3, schema_id=2),
                SubjectVersionRow(subject="b", version=1, schema_id=5),
            ]
        )
    database.close()
    return url


@pytest.fixture
def url(tmp_path):
    return fill_ledger(default_url(tmp_path))


def opened(topic):
    return SchemaStore(MemoryLog(topic))


def test_all_of_it_moves_once(url):
    topic = Topic()
    assert move_in(opened(topic), url) == 3
    length = len(topic.records)
    assert move_in(opened(topic), url) == 0
    assert len(topic.records) == length
    subjects = Subjects(opened(topic))
    found = [(e.subject, e.version, e.id, e.deleted) for e in subjects.entries(deleted=True)]
    assert found == [("a", 2, 1, True), ("a", 3, 2, False), ("b", 1, 5, False)]
    assert subjects.version("b", 1).schema.references == (Reference("R", "a", 2),)
    assert subjects.config() == Config(Level.NONE, normalize=False)
    assert subjects.config("b") == Config(Level.FULL, normalize=True)
    assert subjects.mode("a") == "READONLY"
    assert subjects.last_id() == 9  # a schema without a version had been given it
    subjects.reset_mode("a")
    made = subjects.register("a", avro("new"))
    assert (made.version, made.id) == (8, 10)


def test_what_was_deleted_since_does_not_come_back(url):
    topic = Topic()
    move_in(opened(topic), url)
    subjects = Subjects(opened(topic))
    subjects.delete_subject("b")
    subjects.delete_subject("b", permanent=True)
    move_in(opened(topic), url)
    assert Subjects(opened(topic)).subjects(deleted=True) == ["a"]


def test_without_a_database_there_is_nothing_to_move_then_or_later(tmp_path, url):
    topic = Topic()
    assert move_in(opened(topic), default_url(tmp_path / "none")) == 0
    assert not (tmp_path / "none").exists()
    (tmp_path / "ledger.db").write_bytes(b"damaged" * 1000)
    assert move_in(opened(topic), url) == 0  # the topic is the truth now


def test_a_database_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path, url):
    (tmp_path / "ledger.db").write_bytes(b"damaged" * 1000)
    topic = Topic()
    with pytest.raises(SCHEMAS_OUT_OF_REACH.base, match=r"ledger\.db"):
        move_in(opened(topic), url)
    assert topic.records == []


@pytest.mark.parametrize(
    ("theirs", "what"),
    [
        (
            r.VersionSet(subject="a", version=3, id=77, schema=avro("other")),
            'version 3 of subject "a"',
        ),
        (r.VersionSet(subject="other", version=1, id=5, schema=avro("other")), "id 5"),
    ],
)
def test_schemas_that_collide_are_not_mixed(url, theirs, what):
    topic = Topic([r.encode(theirs)])
    with pytest.raises(SchemasCollide) as refused:
        move_in(opened(topic), url, take_over=True)
    assert what in refused.value.detail
    assert len(topic.records) == 1


def test_the_topic_of_another_registry_is_taken_over_only_on_purpose(tmp_path):
    theirs = r.encode(r.VersionSet(subject="s", version=1, id=3, schema=avro("a")))
    topic, nothing = Topic([theirs]), default_url(tmp_path / "none")
    with pytest.raises(SCHEMAS_OF_ANOTHER.base, match="memory"):
        move_in(opened(topic), nothing)
    assert topic.records == [theirs]
    move_in(opened(topic), nothing, take_over=True)
    move_in(opened(topic), nothing)  # it is ours now
    assert Subjects(opened(topic)).register("t", avro("b")).id == 4
