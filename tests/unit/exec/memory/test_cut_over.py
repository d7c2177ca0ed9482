"""A version rebuilt next to the one that runs takes its place, hosted in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.exec.memory.driver import MemoryRunner
from ksql.sql.catalog.model import CutOver
from ksql.sql.plan import codec
from tests.unit.world import World

SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COUNTED = "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
REGROUPED = (
    "CREATE TABLE N AS SELECT CASE WHEN A < 3 THEN K ELSE 'late' END AS K, COUNT(*) AS C FROM S "
    "GROUP BY CASE WHEN A < 3 THEN K ELSE 'late' END;"
)
HIDDEN = "_confluent-ksql-default_query_CTAS_N_1-v{}-changelog"


class Scene:
    def __init__(self, old, new):
        self.now_ms = 99
        self.world = World(
            SOURCE, old, runner=lambda topics: MemoryRunner(topics, now_ms=lambda: self.now_ms)
        )
        self.runner, self.topics = self.world.runner, self.world.topics
        [self.old] = self.world.catalog.queries.values()
        [planned] = World(SOURCE, new).catalog.queries.values()
        self.new = replace(planned, version_number=7, cut_over=CutOver(7, 0))

    def feed(self, *rows):
        for key, a, at in rows:
            self.topics.append("s", key, b'{"A":%d}' % a, at)

    @staticmethod
    def candidate(query):
        plan = codec.loads(query.plan)
        sink = replace(plan.sink, topic=HIDDEN.format(query.version_number))
        return replace(query, plan=codec.dumps(replace(plan, sink=sink)), cut_over=None)

    def written(self, topic, since=0):
        return [record[:3] for record in self.topics.records.get(topic, [])[since:]]

    def rows(self, topic):
        return {key: record.value for key, record in self.topics.rows(topic).items()}

    def drain(self):
        self.runner.drain(list(self.runner.running))


@pytest.fixture
def room():
    room = Scene(COUNTED, REGROUPED)
    room.feed((b"a", 1, 1), (b"a", 2, 2), (b"b", 1, 3), (b"b", 4, 4), (b"c", 5, 5))
    room.drain()
    return room


@pytest.mark.parametrize(("now_ms", "deleted_ms"), [(99, 6), (4, 4)])
def test_only_the_difference_is_written_with_its_times(room, now_ms, deleted_ms):
    """Deletions have the latest time of all records that is not in the future."""
    room.now_ms = now_ms
    candidate = room.candidate(room.new)
    room.runner.start(candidate)
    room.feed((b"d", 1, 6))
    switch = room.runner.stop_at_same_offsets(room.old, candidate)
    assert switch.offsets == {"s": {0: 6}}
    before, since = room.rows("N"), len(room.written("N"))
    room.runner.cut_over(room.old, room.new)
    assert room.written("N", since) == [
        (b"b", b'{"C":1}', 3),
        (b"late", b'{"C":2}', 5),
        (b"c", None, deleted_ms),
    ]
    assert room.rows(HIDDEN.format(0)) == before
    assert HIDDEN.format(7) not in room.topics.records
    room.feed((b"a", 9, 7))
    room.drain()
    assert room.rows("N")[b"late"] == b'{"C":3}'
    assert list(room.runner.running) == [room.new.version]


def test_the_former_version_takes_over_again(room):
    candidate = room.candidate(room.new)
    room.runner.start(candidate)
    room.runner.stop_at_same_offsets(room.old, candidate)
    room.runner.cut_over(room.old, room.new)
    room.feed((b"a", 9, 7))
    restored = room.candidate(room.old)
    room.runner.resume([restored])
    room.runner.stop_at_same_offsets(room.new, restored)
    room.runner.cut_over(room.new, replace(room.old, cut_over=CutOver(20, 7)))
    assert room.rows("N") == {b"a": b'{"C":3}', b"b": b'{"C":2}', b"c": b'{"C":1}'}
    room.feed((b"c", 9, 8))
    room.drain()
    assert room.rows("N")[b"c"] == b'{"C":2}'


def test_a_restart_writes_nothing_again(room):
    candidate = room.candidate(room.new)
    room.runner.start(candidate)
    room.runner.stop_at_same_offsets(room.old, candidate)
    room.runner.cut_over(room.old, room.new)
    written = room.written("N")
    room.runner.stop(room.new.version)
    room.runner.resume([room.new])
    room.drain()
    assert room.written("N") == written


def test_they_part_and_both_continue(room):
    candidate = room.candidate(room.new)
    room.runner.start(candidate)
    room.runner.stop_at_same_offsets(room.old, candidate)
    room.runner.resume_both(room.old, candidate)
    room.feed((b"a", 1, 6))
    room.drain()
    assert room.rows("N")[b"a"] == room.rows(HIDDEN.format(7))[b"a"] == b'{"C":3}'


def test_one_that_was_given_up_does_not_continue(room):
    candidate = room.candidate(room.new)
    room.runner.start(candidate)
    room.runner.stop_at_same_offsets(room.old, candidate)
    room.runner.stop_soon([candidate.version])
    room.runner.forget(candidate.version)
    room.runner.resume_both(room.old, candidate)
    assert list(room.runner.running) == [room.old.version]


def test_a_stream_has_its_results_already():
    room = Scene(
        "CREATE STREAM N AS SELECT K, A FROM S;", "CREATE STREAM N AS SELECT K, A + 10 AS A FROM S;"
    )
    room.feed((b"a", 1, 1))
    candidate = room.candidate(room.new)
    room.runner.start(candidate)
    room.runner.stop_at_same_offsets(room.old, candidate)
    room.runner.cut_over(room.old, room.new)
    room.feed((b"a", 2, 2))
    room.drain()
    assert room.written("N") == [(b"a", b'{"A":1}', 1), (b"a", b'{"A":12}', 2)]


def test_the_progress_of_a_version(room):
    candidate = room.candidate(room.new)
    assert room.runner.progress(candidate.version) is None
    room.runner.start(candidate)
    begin, position, ends, *_ = room.runner.progress(candidate.version)
    assert (begin, position, ends) == ({"s": {0: 0}}, {"s": {0: 0}}, {"s": {0: 5}})
    room.drain()
    assert room.runner.progress(candidate.version).position == {"s": {0: 5}}
