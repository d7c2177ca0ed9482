"""The end of a cluster, in memory."""

from __future__ import annotations

from typing import Any

from ksql.control.statements.teardown import end_cluster
from tests.unit.world import World

SCRIPT = """
CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM C1 AS SELECT * FROM S;
CREATE STREAM C2 AS SELECT * FROM S;
CREATE SOURCE TABLE T (K STRING PRIMARY KEY, A INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""


def test_every_query_ends_and_what_it_kept_goes_with_it():
    world = World(SCRIPT)
    kept = world.catalog.source("T").materialization.topic
    assert kept in world.topics.known
    end_cluster(
        world.services, world.settings, world.topics, "commands", ["C1", "s", "t"], lambda: None
    )
    assert world.catalog.queries == {}
    assert set(world.topics.known) == {"s", "t", "C2"}


def test_terminate_all_leaves_source_tables_alone():
    world = World(SCRIPT)
    world.run("TERMINATE ALL;")
    assert [query.kind for query in world.catalog.queries.values()] == ["CST"]
    assert world.catalog.source("T").materialization.topic in world.topics.known


def test_a_pattern_reaches_no_topic_of_the_service():
    world = World(SCRIPT, "CREATE STREAM C3 AS SELECT * FROM S;")
    world.settings = world.settings.__class__(
        {**world.settings.server, "ksql.readonly.topics": "C3"}
    )
    end_cluster(world.services, world.settings, world.topics, "commands", [".*"], lambda: None)
    assert set(world.topics.known) == {"s", "t", "C3"}


def test_the_end_is_remembered_once_nothing_runs_and_before_anything_is_deleted():
    world = World(SCRIPT)
    seen: list[Any] = []
    delete = world.topics.delete

    def delete_seen(names):
        seen.append("deleted")
        delete(names)

    world.topics.delete = delete_seen  # type: ignore[method-assign]  # to see when

    def ended():
        seen.append(("ended", sorted(world.engine.catalog.queries)))

    end_cluster(world.services, world.settings, world.topics, "commands", [], ended)
    assert ("ended", []) in seen
    assert seen[-1] == "deleted"
