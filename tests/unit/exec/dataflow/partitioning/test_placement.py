"""How results get to the partitions of their topic: who writes each of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.moved_records import OFFSET
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.exec.dataflow.program import RawBatch
from ksql.exec.dataflow.topology import topology
from ksql.exec.operators.base import Record
from ksql.exec.operators.keys import pack
from ksql.exec.operators.order import SequenceKeys
from ksql.functions.registry import BUILTINS
from ksql.spark.task.chunk import by_bucket
from ksql.sql.plan import codec
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, G STRING, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=4);
CREATE STREAM ONE (K STRING KEY, G STRING) WITH (KAFKA_TOPIC='one', PARTITIONS=1);
CREATE TABLE T (I STRING PRIMARY KEY, V STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=4);
"""
WINDOW = "WINDOW TUMBLING (SIZE 10 SECONDS)"
PLACEMENTS = {
    "STREAM X AS SELECT * FROM S WHERE N > 1": "kept",
    "STREAM X AS SELECT K, EXPLODE(ARRAY[N, N]) AS E FROM S": "kept",
    "STREAM X WITH (KEY_FORMAT='JSON') AS SELECT * FROM S": "moved",
    "STREAM X WITH (PARTITIONS=3) AS SELECT * FROM S": "moved",
    "STREAM X AS SELECT G, N FROM S PARTITION BY G": "moved",
    "STREAM X AS SELECT * FROM S PARTITION BY K": "kept",
    "STREAM X AS SELECT G, K FROM ONE PARTITION BY G": "keyed",
    "STREAM X AS SELECT S.K, V FROM S JOIN T ON S.K = T.I": "keyed",
    "STREAM X AS SELECT S.G, V FROM S LEFT JOIN T ON S.G = T.I": "keyed",
    "STREAM X WITH (PARTITIONS=3) AS SELECT S.G, V FROM S JOIN T ON S.G = T.I": "keyed",
    "STREAM X AS SELECT V, G FROM S JOIN T ON S.G = T.I PARTITION BY V": "moved",
    "TABLE X AS SELECT G, COUNT(*) AS C FROM S GROUP BY G": "keyed",
    "TABLE X WITH (KEY_FORMAT='JSON') AS SELECT G, COUNT(*) AS C FROM S GROUP BY G": "keyed",
    "TABLE X AS SELECT V, COUNT(*) AS C FROM T GROUP BY V": "keyed",
    f"TABLE X AS SELECT G, COUNT(*) AS C FROM S {WINDOW} GROUP BY G": "keyed",
    f"TABLE X WITH (PARTITIONS=3) AS SELECT G, COUNT(*) AS C FROM S {WINDOW} GROUP BY G": "moved",
    f"TABLE X WITH (KEY_FORMAT='JSON') AS SELECT G, COUNT(*) AS C FROM S {WINDOW} GROUP BY G": (
        "moved"
    ),
}


@pytest.mark.parametrize("statement", PLACEMENTS)
def test_placement_of_a_plan(statement):
    world = World(SETUP, f"CREATE {statement};")
    plan = codec.loads(world.query("X").plan)
    assert plan.placement == PLACEMENTS[statement]
    assert plan.partitions == world.catalog.source("X").partitions


@pytest.mark.parametrize("key_format", ["KAFKA", "JSON"])
def test_a_bucket_has_all_keys_of_a_partition(key_format):
    world = World(
        SETUP,
        f"CREATE TABLE X WITH (KEY_FORMAT='{key_format}') AS "
        "SELECT G, COUNT(*) AS C FROM S GROUP BY G;",
    )
    program = load(world.query("X").plan)
    keys = ["x" * length + "ü" for length in (0, 1, 29, 30, 31, 200, 253, 254, 300, 70_000)]
    keys += [f"key {number}" for number in range(100)]
    records = [Record(0, pack((key,)), (), 0) for key in keys]
    grouped = by_bucket(records, 3, keyed=program.buckets_of(3))
    buckets = {record.key: bucket for bucket, some in grouped for record in some}
    quote = '"' if key_format == "JSON" else ""
    partitions = partitions_of([f"{quote}{key}{quote}".encode() for key in keys], 4)
    assert [buckets[pack((key,))] for key in keys] == [number % 3 for number in partitions]


def test_a_result_without_key_has_a_bucket():
    world = World(SETUP, "CREATE STREAM X AS SELECT S.G, V FROM S LEFT JOIN T ON S.G = T.I;")
    keyed = load(world.query("X").plan).buckets_of(3)
    assert keyed.of(0, [pack((None,))])[0] in range(3)


def test_explain_says_that_an_earlier_versions_results_have_no_order():
    world = World(SETUP, "CREATE STREAM X AS SELECT G, N FROM S PARTITION BY G;")
    plan = codec.loads(world.query("X").plan)
    assert "exchanged by the partition of the result" in topology(plan, BUILTINS)
    earlier = topology(replace(plan, placement="", partitions=0), BUILTINS)
    assert "may be out of order; rebuild the query, or DROP and CREATE" in earlier


@pytest.mark.parametrize("fast", [True, False])
def test_results_that_move_bring_their_place(fast):
    world = World(SETUP, "CREATE STREAM X AS SELECT G, N FROM S WHERE N > 0 PARTITION BY G;")
    program = load(world.query("X").plan)
    values = [b'{"G":"a","N":1}', b'{"G":"b","N":0}', b'{"G":"c","N":2}', b"{", b'{"G":"d","N":3}']
    times = [100, 900, 50, 70, 1000]
    batch = RawBatch(["s"] * 5, [2] * 5, [7, 8, 9, 10, 11], times, [b"k"] * 5, values)
    if not fast:
        batch = batch._replace(headers=[[("h", b"1")], *[None] * 4])
    errors = []
    moved = program.straight_moved(batch, SequenceKeys(), lambda *error: errors.append(error))
    assert list(moved.keys) == [b"a", b"c", b"d"]
    assert moved.places.T.tolist() == [
        [100, 100, 0, 2, 7],
        [50, 900, 0, 2, 9],
        [1000, 1000, 0, 2, 11],
    ]
    assert moved.headers_of_each()[0] == (None if fast else [("h", b"1")])
    assert len(errors) == 1


@pytest.mark.parametrize(("numbers", "passing"), [([0, 0], []), ([1, 2], [7, 8]), ([], [])])
def test_a_batch_of_which_nothing_or_everything_moves(numbers, passing):
    world = World(SETUP, "CREATE STREAM X AS SELECT G, N FROM S WHERE N > 0 PARTITION BY G;")
    program, count = load(world.query("X").plan), len(numbers)
    values = [b'{"G":"a","N":%d}' % number for number in numbers]
    offsets = [7, 8][:count]
    batch = RawBatch(["s"] * count, [2] * count, offsets, [5] * count, [b"k"] * count, values)
    moved = program.straight_moved(batch, SequenceKeys(), lambda *error: pytest.fail(str(error)))
    assert len(moved.keys) == len(moved.values) == len(passing)
    assert moved.places[OFFSET].tolist() == passing
