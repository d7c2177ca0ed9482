"""How a table's rows are kept: the statement's word, then the session's, then the server's."""

from __future__ import annotations

import pytest

from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.views.store_config import store_config_of
from tests.unit.world import World

STREAM = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COUNT = "CREATE TABLE T%s AS SELECT K, COUNT(*) N FROM S GROUP BY K;"
SERVER = Settings({"ksql.streams.default.dsl.store": "rocksDB", "commit.interval.ms": "70"})


def kept(world, name="T", server=SERVER):
    source = world.catalog.sources[name].queryable()
    return store_config_of(world.catalog, source, server)


def world(with_="", **settings):
    world_ = World(STREAM)
    world_.run(COUNT % with_, **settings)
    return world_


def test_a_table_that_states_nothing_follows_the_server():
    config = kept(world())
    assert (config.kind, config.commit_ms, config.retention_ms) == ("rocksdb", 70, None)
    assert kept(world(), server=Settings()).kind == "txn_rocksdb"


def test_session_properties_are_kept_with_the_query():
    session = {"ksql.streams.default.dsl.store": "IN_MEMORY", "commit.interval.ms": "5"}
    config = kept(world(**session))
    assert (config.kind, config.commit_ms) == ("in_memory", 5)


def test_the_statement_comes_before_the_session():
    world_ = world(" WITH (STORE_TYPE='txn_rocksDB')", **{"default.dsl.store": "in_memory"})
    assert kept(world_).kind == "txn_rocksdb"
    assert dict(world_.query("T").properties)["default.dsl.store"] == "txn_rocksdb"


def test_a_replacement_keeps_the_type_or_states_another():
    world_ = world(" WITH (STORE_TYPE='in_memory')")
    wider = "CREATE OR REPLACE TABLE T%s AS SELECT K, COUNT(*) N, SUM(A) A FROM S GROUP BY K;"
    world_.run(wider % "")
    assert kept(world_).kind == "in_memory"
    world_.run(wider % " WITH (STORE_TYPE='rocksdb')")
    assert kept(world_).kind == "rocksdb"


@pytest.mark.parametrize(
    ("first", "then", "session", "notice"),
    [
        ("", "txn_rocksdb", {}, []),
        ("", "in_memory", {}, ["txn_rocksdb became in_memory; its rows are moved"]),
        ("in_memory", "rocksdb", {}, ["in_memory became rocksdb; its rows are moved"]),
        ("in_memory", "", {}, []),
        (
            "",
            "",
            {"ksql.streams.default.dsl.store": "IN_MEMORY"},
            ["txn_rocksdb became in_memory; its rows are moved"],
        ),
    ],
)
def test_another_type_is_named_and_changes_no_result(first, then, session, notice):
    def stating(kind):
        return f" WITH (STORE_TYPE='{kind}')" if kind else ""

    world_ = world(stating(first))
    text = f"CREATE OR REPLACE TABLE T{stating(then)} AS SELECT K, COUNT(*) N FROM S GROUP BY K;"
    [entity] = world_.run(text, **session)
    assert entity.upgrade.classes == (("configuration",) if notice else ("transparent",))
    assert [change.text for change in entity.upgrade.changes] == notice
    assert entity.upgrade.guarantees[0].note == "results before the switch are the same ones"


def test_a_source_table_has_a_type_too():
    world_ = World()
    world_.topic("t")
    world_.run(
        "CREATE SOURCE TABLE T (K STRING PRIMARY KEY, V INT)"
        " WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', STORE_TYPE='in_memory');"
    )
    assert kept(world_).kind == "in_memory"


def test_windows_are_kept_for_their_retention():
    world_ = World(STREAM)
    world_.run(
        "CREATE TABLE W AS SELECT K, COUNT(*) N FROM S WINDOW TUMBLING"
        " (SIZE 1 MINUTE, RETENTION 2 HOURS, GRACE PERIOD 0 SECONDS) GROUP BY K;"
    )
    assert kept(world_, "W").retention_ms == 2 * 3_600_000


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            COUNT % " WITH (STORE_TYPE='papyrus')",
            "Invalid value papyrus for configuration STORE_TYPE: "
            "String must be one of: ROCKSDB, TXN_ROCKSDB, IN_MEMORY, null",
        ),
        (
            "CREATE STREAM X WITH (STORE_TYPE='rocksdb') AS SELECT * FROM S;",
            "STORE_TYPE is for tables that keep their rows",
        ),
        (
            "CREATE TABLE X (K STRING PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='s',"
            " VALUE_FORMAT='JSON', STORE_TYPE='rocksdb');",
            "STORE_TYPE is for tables that keep their rows",
        ),
    ],
)
def test_unknown_store_type_is_refused(statement, message):
    world_ = World(STREAM)
    with pytest.raises(KsqlError) as refusal:
        world_.execute(statement)
    assert message in refusal.value.message
