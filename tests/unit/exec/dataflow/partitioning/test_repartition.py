"""How a table's changes get to the groups of an aggregate: KIP-904, and the way before it.

The programs run stage by stage with the bytes of Spark's exchange between them.
"""

from __future__ import annotations

import json

import pytest

from ksql.exec.dataflow.load import program_of
from ksql.exec.dataflow.program import RawBatch
from ksql.exec.operators.memory import MemoryStore
from ksql.functions.registry import BUILTINS, Functions
from ksql.functions.user.load import load_sources
from ksql.spark.task.chunk import ChunkWriter, unpack_chunks
from ksql.sql.plan import codec
from tests.unit.world import World

UPGRADE = "ksql.upgrade.from"
EVERY = {"cache.max.bytes.buffering": "0"}
OLD_WAY = {**EVERY, UPGRADE: "3.4"}
ZOO = """
CREATE TABLE ZOO (ID STRING PRIMARY KEY, PLACE STRING, ANIMAL STRING) WITH (
  KAFKA_TOPIC='zoo', PARTITIONS=1);
"""
SETS = '''
from ksql.functions.udf import udaf


@udaf(params=("STRING v",), returns="ARRAY<STRING>")
class Animals:
    """The set of KIP-904: what is taken away does not come back by itself."""

    def init(self):
        return []

    def step(self, state, value):
        return state if value in state else [*state, value]

    def undo(self, state, value):
        return [each for each in state if each != value]

    def merge(self, first, second):
        return [*first, *(each for each in second if each not in first)]
'''


def functions():
    library, problems = load_sources({"sets.py": SETS})
    assert not problems
    return Functions([*BUILTINS.all(), *library])


class Query:
    """The program of a statement and its stores; what a stage sends is chunks of bytes."""

    def __init__(self, statement, settings, known=BUILTINS):
        world = World(ZOO, functions=known, **settings)
        world.run(statement)
        self.plan = codec.loads(world.query("X").plan, known)
        self.program = program_of(self.plan, known)
        self.stores = [MemoryStore() for _ in range(self.program.stages)]
        self.errors = []

    def log(self, *entry):
        self.errors.append(entry)

    def sent(self, *records, offset=0):
        """The chunks that reach the aggregate for ``(key, value, time)``."""
        batch = RawBatch(
            ["zoo"] * len(records),
            [0] * len(records),
            range(offset, offset + len(records)),
            [time for _, _, time in records],
            [key.encode() for key, _, _ in records],
            [None if value is None else json.dumps(value).encode() for _, value, _ in records],
        )
        ingested = exchanged(self.program, self.program.ingest().add(batch, self.log))
        results = self.program.step(0, ingested, self.stores[0], self.log)
        writer = ChunkWriter(1, 0, self.program.changes)
        return [chunk for _, chunk in (*writer.add(results), *writer.finish())]

    def given(self, chunks):
        """What the aggregate makes of them: ``(key, value, time)``."""
        results = self.program.last_step(unpack_chunks(chunks), self.stores[-1], self.log)
        return [
            (key.decode(), None if value is None else json.loads(value), time)
            for key, value, time, _ in results
        ]

    def run(self, *records):
        return self.given(self.sent(*records))


def exchanged(program, records):
    writer = ChunkWriter(1, 0, program.changes)
    return unpack_chunks(chunk for _, chunk in (*writer.add(records), *writer.finish()))


def flags(chunks):
    """The flags of all changes in chunks."""
    values = []
    for chunk in chunks:
        assert chunk[0] == 3
        for record in unpack_chunks([chunk]):
            both = record.row is not None and record.old is not None
            values.append(2 if both else int(record.row is not None))
    return values


COUNT = "CREATE TABLE X AS SELECT ID, COUNT(PLACE) AS C FROM ZOO GROUP BY ID;"
COUNTED = [("1", {"PLACE": ""}, 8), ("1", {"PLACE": ""}, 9)]


def test_a_count_has_no_state_in_between():
    assert Query(COUNT, EVERY).run(*COUNTED) == [("1", {"C": 1}, 8), ("1", {"C": 1}, 9)]


def test_before_the_kip_it_had_one():
    assert Query(COUNT, OLD_WAY).run(*COUNTED) == [
        ("1", {"C": 1}, 8),
        ("1", {"C": 0}, 9),
        ("1", {"C": 1}, 9),
    ]


def test_queries_in_memory_go_the_same_two_ways():
    new, old = (World(ZOO, COUNT, **settings) for settings in (EVERY, OLD_WAY))
    for world in (new, old):
        world.feed("zoo", *COUNTED)
    assert [value["C"] for _, value, _ in new.out("X")] == [1, 1]
    assert [value["C"] for _, value, _ in old.out("X")] == [1, 0, 1]


SET = "CREATE TABLE X AS SELECT PLACE, ANIMALS(ANIMAL) AS ALL_OF FROM ZOO GROUP BY PLACE;"
TIGER = {"PLACE": "zoo1", "ANIMAL": "tiger"}


@pytest.mark.parametrize("settings", [EVERY, OLD_WAY, {}, {UPGRADE: "0.10.0"}])
def test_an_aggregate_that_does_not_commute_subtracts_before_it_adds(settings):
    query = Query(SET, settings, functions())
    results = query.run(("a", TIGER, 8), ("a", TIGER, 9))
    assert results[-1] == ("zoo1", {"ALL_OF": ["tiger"]}, 9)
    between = [value["ALL_OF"] for _, value, _ in results[1:-1]]
    assert between == ([[]] if settings is OLD_WAY else [])


LIST = "CREATE TABLE X AS SELECT PLACE, COLLECT_LIST(ANIMAL) AS ALL_OF FROM ZOO GROUP BY PLACE;"


def test_a_list_keeps_its_order_under_changes_of_one_group():
    query = Query(LIST, EVERY)
    rows = [("a", TIGER, 1), ("b", {"PLACE": "zoo1", "ANIMAL": "ape"}, 2), ("a", TIGER, 3)]
    assert [value["ALL_OF"] for _, value, _ in query.run(*rows)] == [
        ["tiger"],
        ["tiger", "ape"],
        ["ape", "tiger"],
    ]


@pytest.mark.parametrize("settings", [EVERY, OLD_WAY])
def test_another_group_means_two_results(settings):
    query = Query(LIST, settings)
    query.run(("a", TIGER, 1))
    chunks = query.sent(("a", {"PLACE": "zoo2", "ANIMAL": "tiger"}, 2), offset=1)
    assert flags(chunks) == [0, 1]
    assert query.given(chunks) == [
        ("zoo1", {"ALL_OF": []}, 2),
        ("zoo2", {"ALL_OF": ["tiger"]}, 2),
    ]


CHANGES = [
    ("a", TIGER, 1),
    ("a", {"PLACE": "zoo1", "ANIMAL": "ape"}, 2),
    ("a", {"PLACE": "zoo2", "ANIMAL": "ape"}, 3),
    ("a", None, 4),
    ("never", None, 5),
]


def test_each_mode_writes_its_flags():
    assert flags(Query(LIST, EVERY).sent(*CHANGES)) == [1, 2, 0, 1, 0]
    assert flags(Query(LIST, OLD_WAY).sent(*CHANGES)) == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(("before", "after"), [(EVERY, OLD_WAY), (OLD_WAY, EVERY)])
def test_an_exchange_and_a_state_of_one_mode_are_read_by_the_other(before, after):
    """A rolling upgrade, and back: records in flight and states are those of the other mode."""
    writer, reader, alone = Query(LIST, before), Query(LIST, after), Query(LIST, after)
    first, second = CHANGES[:2], CHANGES[2:]
    in_flight = writer.sent(*first)
    reader.stores = writer.stores
    results = reader.given(in_flight) + reader.given(reader.sent(*second, offset=2))
    last = {key: value for key, value, _ in results}
    expected = alone.run(*first) + alone.given(alone.sent(*second, offset=2))
    assert last == {key: value for key, value, _ in expected}
    assert last == {"zoo1": {"ALL_OF": []}, "zoo2": {"ALL_OF": []}}
    assert writer.errors + reader.errors == []


def test_a_downgrade_in_two_bounces_leaves_nothing_with_both_rows():
    newest, between = Query(LIST, EVERY), Query(LIST, OLD_WAY)
    in_flight = newest.sent(*CHANGES[:2])
    assert 2 in flags(in_flight)
    between.stores = newest.stores
    between.given(in_flight)
    assert set(flags(between.sent(*CHANGES[2:], offset=2))) <= {0, 1}


def test_a_group_of_doubles_is_the_same_if_its_bytes_are():
    statement = (
        "CREATE TABLE X WITH (KEY_FORMAT='JSON') AS SELECT CAST(ANIMAL AS DOUBLE) AS D, "
        "COUNT(*) AS C FROM ZOO GROUP BY CAST(ANIMAL AS DOUBLE);"
    )
    query = Query(statement, EVERY)
    chunks = query.sent(*(("a", {"ANIMAL": text}, n) for n, text in enumerate(("0", "-0", "-0.0"))))
    assert flags(chunks) == [1, 0, 1, 2]


def test_rows_that_a_condition_drops_come_or_go():
    query = Query(LIST.replace("GROUP", "WHERE ANIMAL <> 'ape' GROUP"), EVERY)
    assert flags(query.sent(*CHANGES)) == [1, 0]
    again = [("a", CHANGES[1][1], 6), ("a", TIGER, 7), ("a", TIGER, 8)]
    assert flags(query.sent(*again, offset=5)) == [1, 2]


# --- what shows it


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "old and new row of a group in one record (KIP-904)"),
        ({UPGRADE: "2.8"}, "old and new row in records of their own (ksql.upgrade.from = 2.8)"),
    ],
)
def test_the_mode_is_shown(settings, expected):
    world = World(ZOO, COUNT, **settings)
    [explained] = world.run(f"EXPLAIN {world.query('X').id};")
    assert expected in explained.query_description.topology
    [described] = world.run("DESCRIBE X EXTENDED;")
    assert expected in described.source_description.statistics


def test_a_table_without_groups_shows_no_mode():
    world = World(ZOO, "CREATE TABLE X AS SELECT * FROM ZOO;")
    [explained] = world.run(f"EXPLAIN {world.query('X').id};")
    assert "KIP-904" not in explained.query_description.topology
    [described] = world.run("DESCRIBE X EXTENDED;")
    assert "changes" not in described.source_description.statistics
