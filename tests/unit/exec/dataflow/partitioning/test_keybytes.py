"""Groups whose windows close together leave in the order of their keys' bytes."""

from __future__ import annotations

import json

import pytest

from ksql.exec.dataflow.partitioning.keybytes import key_order
from ksql.exec.operators.keys import pack
from ksql.formats.schema_registry import MemoryRegistry
from ksql.sql.plan.nodes import Aggregate
from ksql.sql.plan.walk import nodes
from tests.unit.world import World


@pytest.mark.parametrize(
    ("key_format", "expected"), [("KAFKA", [2, 10, -1]), ("JSON", [-1, 10, 2])]
)
def test_groups_leave_in_the_order_of_their_keys(key_format, expected):
    world = World(
        "CREATE STREAM S (N BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');",
        f"CREATE TABLE X WITH (KEY_FORMAT='{key_format}') AS "
        "SELECT N, AS_VALUE(N) AS M, COUNT(*) AS C FROM S "
        "WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY N EMIT FINAL;",
    )
    world.feed("s", *((None, {"N": n}, time) for time, n in enumerate((10, -1, 2))))
    world.feed("s", (None, {"N": 0}, 10))
    assert [json.loads(r.value)["M"] for r in world.topics.records["X"]] == expected


def test_keys_with_a_registered_schema_are_ordered_as_they_are_packed():
    world = World(
        "CREATE STREAM S (N BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');",
        "CREATE TABLE X WITH (KEY_FORMAT='AVRO') AS SELECT N, AS_VALUE(N) AS M, COUNT(*) AS C "
        "FROM S WINDOW SESSION (1 MILLISECONDS) GROUP BY N EMIT FINAL;",
        registry=MemoryRegistry(),
    )
    (aggregate,) = (n for n in nodes(world.plan("X").sink) if isinstance(n, Aggregate))
    order = key_order(aggregate, world.plan("X").sink)
    assert order(pack((3,))) == pack((3,))
    feed = [(None, {"N": n}, 0) for n in (3, 1)]
    world.feed("s", *feed, (None, {"N": 0}, 10))
    assert [json.loads(r.value)["M"] for r in world.topics.records["X"]] == [1, 3]
