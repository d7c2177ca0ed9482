"""The records of a command topic that is brought back: dense, at their offsets, with other ids."""

from __future__ import annotations

from ksql.app.backup.restore import dense, known_versions
from ksql.control.engine.changes import EndQuery, IdsFrom, PutType
from ksql.control.engine.ports import Command
from ksql.control.log.record import decode, encode
from ksql.core.records import RawRecord
from ksql.core.types.model import STRING
from tests.unit.world import World

NOW_MS = 1_790_000_000_000


def record(offset, *changes):
    key, value = encode(Command(f"type/T{offset}/create", "CREATE TYPE ..", changes))
    return RawRecord("t", 0, offset, 1_000 + offset, key, value)


def commands(records):
    return [decode(each.offset, each.key, each.value) for each in records]


def test_each_offset_has_a_record_and_those_of_commands_the_same():
    saved = [record(1, PutType("A", STRING)), record(5, PutType("B", STRING))]
    records = dense("t", saved, 9, NOW_MS)
    assert [each.offset for each in records] == list(range(10))
    assert [records[1], records[5]] == saved
    filled = [each for each in commands(records) if not each.changes]
    assert [each.id for each in filled] == [f"command/{n}/fill" for n in (0, 2, 3, 4, 6, 7, 8)]
    assert commands(records)[-1].changes == (IdsFrom(9, NOW_MS),)


def test_an_empty_topic_gets_the_count_of_ids_alone():
    (only,) = commands(dense("t", [], 0, NOW_MS))
    assert only.changes == (IdsFrom(0, NOW_MS),)


def test_a_clock_that_went_back_does_not_take_ids_back():
    saved = [record(4, IdsFrom(4, NOW_MS))]
    (moved,) = commands(dense("t", saved, 20, 5))[-1].changes
    assert moved == IdsFrom(20, NOW_MS + 16)
    assert moved.number_of(20) > IdsFrom(4, NOW_MS).number_of(19)


def test_ids_of_earlier_offsets_are_what_they_were():
    moved = IdsFrom(9, NOW_MS)
    assert [moved.number_of(offset) for offset in (8, 9, 11)] == [8, NOW_MS, NOW_MS + 2]


def test_damaged_commands_are_brought_back_as_they_are():
    saved = [RawRecord("t", 0, 0, 1, b"?", b"?"), record(2, PutType("A", STRING))]
    assert dense("t", saved, 4, NOW_MS)[0] == saved[0]
    assert known_versions(saved) == frozenset()


SCRIPT = (
    "CREATE STREAM S (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    "CREATE STREAM A AS SELECT * FROM S; CREATE STREAM B AS SELECT * FROM S;"
)


def saved_of(world):
    return [
        RawRecord("t", 0, offset, 1, *encode(command))
        for offset, command in enumerate(world.log.commands)
    ]


def test_the_queries_that_are_left_are_known():
    world = World(SCRIPT)
    first, second = world.engine.catalog.queries
    saved = [*saved_of(world), record(9, EndQuery(first))]
    assert known_versions(saved) == {second}


def test_all_versions_of_a_query_are_known():
    """The restore says of no checkpoint that it came after the backup if its version is in it."""
    world = World(SCRIPT)
    _, second = world.engine.catalog.queries
    again = "CREATE OR REPLACE STREAM B WITH (REPLACE_MODE='rebuild') AS SELECT K, A FROM S;"
    world.run(again)
    candidate = world.catalog.rebuilds[second].candidate.version
    assert candidate.name in known_versions(saved_of(world))
    world.engine.cut_over(second, world.settings)
    assert known_versions(saved_of(world)) >= {second, candidate.name}


def test_a_service_that_replays_them_gives_other_ids_and_shows_no_filling():
    world = World(SCRIPT)
    restored = dense("t", saved_of(world), 3, NOW_MS)
    again = World()
    for each, command in zip(restored, commands(restored), strict=True):
        again.engine.replay(each.offset, command)
        again.log.commands.append(command)
    assert again.engine.catalog == world.engine.catalog
    assert not any("fill" in each for each in again.engine.statuses)
    again.topic("s", 1)
    again.run("CREATE STREAM C AS SELECT * FROM S; INSERT INTO A SELECT * FROM S;")
    new = again.engine.catalog.queries.keys() - world.engine.catalog.queries.keys()
    assert new == {f"CSAS_C_{NOW_MS + 1}", f"INSERTQUERY_{NOW_MS + 2}"}
