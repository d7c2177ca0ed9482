"""The loop from a source to a stage against the road step by step: the same records and log."""

from __future__ import annotations

import random

import pytest

from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.ingest import KeyedIngest
from ksql.exec.dataflow.program import RawBatch
from ksql.exec.dataflow.timestamps import FutureTimestamps
from ksql.exec.operators.keyed_batches import KeyedBatch
from ksql.exec.operators.order import SequenceKeys
from ksql.formats.schema_registry import MemoryRegistry
from ksql.functions.registry import BUILTINS
from tests.examples import examples
from tests.unit.exec.codegen.test_fused import FIT, KEYS, SETUP, WHOLE, any_value, good_value
from tests.unit.exec.operators.support import Log
from tests.unit.world import World

MORE = """
CREATE TABLE T (K STRING PRIMARY KEY, W INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE STREAM L (K STRING KEY, G INT) WITH (KAFKA_TOPIC='l', PARTITIONS=1);
CREATE STREAM S2 (K STRING KEY, G INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
"""
TABLES = [
    "SELECT K, COUNT(*) AS C, SUM(L) AS S FROM S GROUP BY K",
    "SELECT K, COUNT(*) AS C FROM S WHERE I > 1 AND K <> 'b' GROUP BY K",
    "SELECT I, COUNT(*) AS C, COUNT(K) AS D FROM S GROUP BY I",
    "SELECT K, S, MAX(D) AS D FROM S WHERE I > 1 GROUP BY K, S",
    "SELECT N, COUNT(*) AS C FROM S GROUP BY N",
    "SELECT CAST(S AS INT) AS N, COUNT(K) AS C, SUM(CAST(S AS BIGINT)) AS U FROM S "
    "WHERE B OR L / I > 1 GROUP BY CAST(S AS INT)",
    "SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K",
    "SELECT S, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY S",
    "SELECT K, COUNT(*) AS C FROM S WINDOW SESSION (1 SECOND) WHERE I > 1 GROUP BY K",
    "SELECT K, COUNT(*) AS C FROM RAW GROUP BY K",
    "SELECT K, SUM(V) AS V FROM LONG GROUP BY K",
    "SELECT V, COUNT(*) AS C FROM OBJECT GROUP BY V",
    "SELECT V, COUNT(*) AS C FROM NOKEY GROUP BY V",
    "SELECT W, SUM(V) AS V FROM LINES GROUP BY W",
]
STREAMS = [
    "SELECT S.K AS K, I, W FROM S JOIN T ON S.K = T.K",
    "SELECT S.K AS K, I, W FROM S LEFT JOIN T ON S.K = T.K",
    "SELECT S.S AS S, I, W FROM S LEFT JOIN T ON S.S = T.K",
    "SELECT S.K AS K, I, G FROM S JOIN L WITHIN 1 SECOND ON S.K = L.K",
    "SELECT S.K AS K, I, G FROM S LEFT JOIN L WITHIN 1 SECOND GRACE PERIOD 1 SECOND ON S.K = L.K",
    "SELECT S.S AS S, I, G FROM S LEFT JOIN L WITHIN 1 SECOND GRACE PERIOD 1 SECOND ON S.S = L.K",
    "SELECT X.K AS K, X.I AS I, Y.G AS G FROM S X JOIN S2 Y WITHIN 1 SECOND ON X.K = Y.K",
    "SELECT O.G AS G, O.V AS V, W FROM OBJECT O JOIN LINES L WITHIN 1 SECOND ON O.G = L.K",
    "SELECT S.S AS S, I, G FROM S JOIN L WITHIN 1 SECOND ON S.S = L.K",
]
PLANS = [*(("TABLE", query) for query in TABLES), *(("STREAM", query) for query in STREAMS)]


def program_of(kind, query):
    world = World(SETUP + MORE, **{"cache.max.bytes.buffering": "0"})
    format_ = ", KEY_FORMAT='JSON'" if kind == "TABLE" else ""
    world.run(f"CREATE {kind} O WITH (VALUE_FORMAT='JSON'{format_}) AS {query};")
    return writing(world.plan("O"), BUILTINS, MemoryRegistry())


@pytest.fixture(scope="module", params=PLANS, ids=lambda plan: plan[1])
def program(request):
    return program_of(*request.param)


def batch(topic, records, first=0, partition=3):
    count = len(records)
    keys, values, times = zip(*records, strict=True)
    offsets = list(range(first, first + count))
    places = [topic] * count, [partition] * count, offsets
    return RawBatch(*places, [*times], [*keys], [*values], None)


def sources(program):
    ingest = program.ingest()
    assert isinstance(ingest, KeyedIngest)
    return [source for topic in program.topics for source in ingest.sources[topic]]


def outcomes(source, batches, ahead_ms=None):
    """The records and the log of both roads, which keep their turns from batch to batch."""
    results = []
    for road in (source.keyed, source.keyed_stepwise):
        sequence_keys, log, records = SequenceKeys(), Log(), []
        ahead = None if ahead_ms is None else FutureTimestamps(ahead_ms)
        for each in batches:
            records += road(each, sequence_keys, log, ahead)
        seen = ahead and (ahead.count, ahead.place, ahead.latest_ms)
        results.append((repr(records), list(map(repr, log)), seen))
    return results


def agree(source, batches, ahead_ms=None):
    fast, slow = outcomes(source, batches, ahead_ms)
    assert fast == slow


def streams(program):
    return [source for source in sources(program) if not source.stage_input.table]


def topic_of(source):
    return source.reader.source.topic


def good(topic, chance, time):
    return FIT.get(topic, b"a"), good_value(topic, chance), time


def some(topic, chance):
    """A few records; half of the lists are ordinary."""
    odd, fit = chance.random() < 0.5, FIT.get(topic, b"a")
    return [
        (
            chance.choice(KEYS) if odd and chance.random() < 0.1 else fit,
            any_value(topic, chance) if odd else good_value(topic, chance),
            -1 if odd and chance.random() < 0.03 else chance.choice((0, 1, 5_000, 1 << 41)),
        )
        for _ in range(chance.randrange(1, 8))
    ]


@pytest.mark.slow
def test_odd_keys_and_values_alone(program):
    for source in streams(program):
        topic = topic_of(source)
        for key in KEYS:
            agree(source, [batch(topic, [(key, good_value(topic, random.Random(1)), 5)])])
        for value in WHOLE:
            agree(source, [batch(topic, [(FIT.get(topic, b"a"), value, 5)])])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_lists_that_fuzzers_make(program, seed):
    chance = random.Random(seed)
    for source in streams(program):
        topic = topic_of(source)
        for _ in range(examples(40)):
            batches = []
            for first in (0, 10, 20):
                odd = chance.random() < 0.6
                records = [
                    (
                        chance.choice(KEYS)
                        if odd and chance.random() < 0.1
                        else FIT.get(topic, b"a"),
                        any_value(topic, chance) if odd else good_value(topic, chance),
                        chance.choice((0, 1, 5_000, 1 << 41)) if chance.random() < 0.97 else -1,
                    )
                    for _ in range(chance.randrange(1, 8))
                ]
                batches.append(batch(topic, records, first))
            agree(source, batches, chance.choice((None, 1_000, 1 << 42)))


def test_ordinary_batches_take_one_loop(program, monkeypatch):
    for source in streams(program):
        if source.keying is None:
            continue
        monkeypatch.setattr(source, "keyed_stepwise", None)
        topic, chance = topic_of(source), random.Random(1)
        records = [good(topic, chance, time) for time in (5, 9, 7)]
        keyed = source.keyed(batch(topic, records), SequenceKeys(), Log(), None)
        assert isinstance(keyed, KeyedBatch)
        assert {(each.timestamp, each.sequence_key) for each in keyed} <= {(5, 5), (9, 9), (7, 9)}
        assert len(keyed) > 0


def test_only_moved_rows_that_may_lack_their_key_have_no_loop():
    without = {
        query
        for kind, query in PLANS
        for source in streams(program_of(kind, query))
        if source.keying is None
    }
    assert without == {STREAMS[5]}


def test_of_a_record_without_the_key_of_a_join_the_time_passes():
    source = streams(program_of("STREAM", STREAMS[-1]))[0]
    records = [(b"a", b'{"S":"x"}', 5), (b"a", b'{"I":1}', 9), (b"a", None, 11)]
    for some in (records[:2], records):  # one without value goes step by step
        agree(source, [batch("s", some)])
        keyed = [*source.keyed(batch("s", some), SequenceKeys(), Log(), None)]
        ticks = [
            (each.timestamp, each.sequence_key, each.offset) for each in keyed if each.row is None
        ]
        assert ticks == [(time, time, place) for place, (*_, time) in enumerate(some)][1:]


def test_several_partitions_at_once_go_step_by_step():
    (source,) = streams(program_of("TABLE", TABLES[0]))
    records = [good("s", random.Random(1), 5)] * 2
    given = batch("s", records)._replace(partitions=[0, 1])
    agree(source, [given])
    assert not isinstance(source.keyed(given, SequenceKeys(), Log(), None), KeyedBatch)


@pytest.mark.parametrize("length", [0, 1, 31, 32, 254, 255, 256, 300])
def test_keys_of_every_length_are_packed_alike(length):
    (source,) = streams(program_of("TABLE", TABLES[0]))
    key = "\u00e9".encode() * (length // 2) + b"x" * (length % 2)
    agree(source, [batch("s", [(key, good_value("s", random.Random(1)), 5)])])
