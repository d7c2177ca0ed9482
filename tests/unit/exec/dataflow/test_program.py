"""Compiled plans: one batch gives what its records give one by one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.program import RawBatch, through
from ksql.exec.dataflow.query_start import plan_of, read_topics
from ksql.exec.operators.base import Record
from ksql.exec.operators.memory import MemoryStore
from ksql.functions.registry import BUILTINS
from tests.unit.exec.operators.support import Log
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE STREAM R (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE TABLE U (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
"""
WITHIN = "WITHIN 3 MILLISECONDS"
QUERIES = [
    "STREAM|SELECT * FROM S",
    "STREAM|SELECT K, A * 2 AS D, UCASE(B) AS U FROM S WHERE A > 1",
    "STREAM|SELECT * FROM S PARTITION BY B",
    "STREAM|SELECT * FROM S PARTITION BY NULL",
    "TABLE|SELECT * FROM T",
    "TABLE|SELECT * FROM T WHERE N > 'm'",
    "TABLE|SELECT K, COUNT(*) AS C, SUM(A) AS A, COLLECT_LIST(B) AS L FROM S GROUP BY K",
    "TABLE|SELECT B, COUNT(*) AS C FROM S WHERE A > 0 GROUP BY B HAVING COUNT(*) > 1",
    "TABLE|SELECT N, COUNT(*) AS C FROM T GROUP BY N",
    "TABLE|SELECT N, COUNT(*) AS C FROM T GROUP BY N HAVING COUNT(*) > 1",
    "TABLE|SELECT K, COUNT(*) AS C FROM S WINDOW HOPPING (SIZE 4 MILLISECONDS, "
    "ADVANCE BY 2 MILLISECONDS, GRACE PERIOD 2 MILLISECONDS) GROUP BY K",
    "TABLE|SELECT K, COUNT(*) AS C, COLLECT_LIST(B) AS L FROM S "
    "WINDOW SESSION (2 MILLISECONDS, GRACE PERIOD 2 MILLISECONDS) GROUP BY K",
    "TABLE|SELECT B, COUNT(*) AS C, MAX(A) AS M FROM S "
    "WINDOW SESSION (1 MILLISECONDS) GROUP BY B HAVING COUNT(*) > 1",
    "TABLE|SELECT K, COUNT(*) AS C FROM S WINDOW HOPPING (SIZE 4 MILLISECONDS, "
    "ADVANCE BY 2 MILLISECONDS) GROUP BY K HAVING COUNT(*) > 1 EMIT FINAL",
    "TABLE|SELECT K, COUNT(*) AS C, COLLECT_LIST(B) AS L FROM S "
    "WINDOW SESSION (1 MILLISECONDS) GROUP BY K EMIT FINAL",
    "STREAM|SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID",
    "STREAM|SELECT S.K, A, N FROM S LEFT JOIN T ON S.K = T.ID WHERE A > 0",
    "STREAM|SELECT K, EXPLODE(ARRAY[A, 7]) AS E, B FROM S WHERE A > 1",
    "STREAM|SELECT B, A, EXPLODE(GENERATE_SERIES(1, A)) + A AS E, EXPLODE(SPLIT(B, '')) AS C "
    "FROM S PARTITION BY B",
    "STREAM|SELECT S.K, EXPLODE(ARRAY[N, B]) AS E FROM S LEFT JOIN T ON S.K = T.ID",
    "TABLE|SELECT N, SUM(A) AS A FROM S JOIN T ON S.K = T.ID GROUP BY N",
    "STREAM|SELECT S.K, A, T.N, U.N FROM S JOIN T ON S.K = T.ID LEFT JOIN U ON T.ID = U.ID",
    "STREAM|SELECT S.K, A, T.N, U.N FROM S LEFT JOIN T ON S.K = T.ID JOIN U ON S.K = U.ID",
    f"STREAM|SELECT S.K, S.A, R.B FROM S JOIN R {WITHIN} ON S.K = R.K",
    f"STREAM|SELECT ROWKEY, S.A, R.B FROM S FULL JOIN R {WITHIN} GRACE PERIOD 2 MILLISECONDS "
    "ON S.K = R.K",
    f"STREAM|SELECT S.K, R.A FROM S RIGHT JOIN R {WITHIN} ON S.K = R.K JOIN T ON R.K = T.ID",
    f"STREAM|SELECT S.K, R.A, N FROM S LEFT JOIN T ON S.K = T.ID LEFT JOIN R {WITHIN} "
    "GRACE PERIOD 1 MILLISECOND ON S.K = R.K",
    "STREAM|SELECT T.N, U.N AS M FROM S LEFT JOIN T ON S.K = T.ID LEFT JOIN U ON T.N = U.ID",
]


def plan(query, **settings):
    kind, _, select = query.partition("|")
    world = World(SETUP, **settings)
    world.run(f"CREATE {kind} X AS {select};")
    return world.plan("X")


KEYS = st.sampled_from([b"a", b"b", None])
STREAM_VALUES = st.sampled_from(
    [b'{"A": 0, "B": "x"}', b'{"A": 2, "B": null}', b'{"A": 3, "B": "y"}', None, b"{", b"[1]"]
)
TABLE_VALUES = st.sampled_from([b'{"N": "a"}', b'{"N": "z"}', b'{"N": null}', None, b"no"])
RECORDS = st.lists(
    st.tuples(st.sampled_from(["r", "s"]), KEYS, STREAM_VALUES, st.integers(0, 12))
    | st.tuples(st.sampled_from(["t", "u"]), KEYS, TABLE_VALUES, st.integers(0, 12)),
    max_size=14,
)


def batch_of(records, first=0):
    return RawBatch(
        [r[0] for r in records],
        [0] * len(records),
        list(range(first, first + len(records))),
        [r[3] for r in records],
        [r[1] for r in records],
        [r[2] for r in records],
    )


def run(program, batches):
    stores = [MemoryStore() for _ in range(program.stages)]
    log = Log()
    return [list(through(program, batch, stores, log)) for batch in batches], log


def last(outputs):
    return {key: (value, time) for batch in outputs for key, value, time, _ in batch}


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
@given(records=RECORDS)
def test_a_batch_is_as_its_records(query, records):
    compiled = EVERY[query]
    # in the order in which a batch is processed, so that both ways agree
    numbers = compiled.topic_numbers
    records = sorted((r for r in records if r[0] in numbers), key=lambda r: (r[3], numbers[r[0]]))
    whole, log = run(compiled, [batch_of(records)] if records else [])
    single, single_log = run(compiled, [batch_of([r], i) for i, r in enumerate(records)])
    flat = [each for batch in whole for each in batch]
    one_by_one = [each for batch in single for each in batch]
    assert flat == one_by_one
    assert sorted(map(repr, log)) == sorted(map(repr, single_log))


@pytest.mark.parametrize("query", [q for q in QUERIES if "GROUP BY" in q and "S.K" not in q])
@given(records=RECORDS, cut=st.integers(0, 14))
def test_change_per_batch_ends_where_every_change_ends(query, records, cut):
    every, once = EVERY[query], ONCE[query]
    records = sorted((r for r in records if r[0] in every.topics), key=lambda r: r[3])
    parts = [part for part in (records[:cut], records[cut:]) if part]
    batches = [batch_of(part, 100 * i) for i, part in enumerate(parts)]
    everything, log = run(every, batches)
    coalesced, coalesced_log = run(once, batches)
    assert {k: v for k, v in last(coalesced).items() if v[0]} == {
        k: v for k, v in last(everything).items() if v[0]
    }
    assert sorted(map(repr, log)) == sorted(map(repr, coalesced_log))
    assert all(len(a) <= len(b) for a, b in zip(coalesced, everything, strict=True))


EVERY = {
    query: writing(plan(query, **{"cache.max.bytes.buffering": "0"}), BUILTINS) for query in QUERIES
}
ONCE = {query: writing(plan(query), BUILTINS) for query in QUERIES if "GROUP BY" in query}


@pytest.mark.slow
@pytest.mark.parametrize("query", [q for q in QUERIES if EVERY[q].stages])
@given(records=RECORDS, randoms=st.randoms())
def test_the_order_that_an_exchange_loses_is_restored(query, records, randoms):
    program = EVERY[query]
    batch = batch_of([r for r in records if r[0] in program.topics])
    assert run(Shuffled(program, randoms), [batch]) == run(program, [batch])


class Shuffled:
    """A program whose exchanges shuffle; what follows from one record stays together."""

    def __init__(self, program, randoms):
        self.stages = program.stages
        self.ingest = program.ingest
        self._program = program
        self._randoms = randoms

    def step(self, stage, records, store, log):
        return self._program.step(stage, self._mixed(records), store, log)

    def last_step(self, records, store, log):
        return self._program.last_step(self._mixed(records), store, log)

    def _mixed(self, records):
        parts: dict[tuple[int, int, int], list[Record]] = {}
        for record in records:
            parts.setdefault((record.topic, record.partition, record.offset), []).append(record)
        mixed = self._randoms.sample(list(parts.values()), len(parts))
        return [record for part in mixed for record in part]


def test_program_describes_itself():
    program = load(World(SETUP, "CREATE STREAM X AS SELECT * FROM S;").query("X").plan)
    assert (program.query_id, program.topics, program.stages, program.sink_topic) == (
        "CSAS_X_4",
        ("s",),
        0,
        "X",
    )
    join = EVERY[QUERIES[-1]]
    assert (set(join.topics), join.stages) == ({"s", "t", "u"}, 2)


def test_tables_are_read_from_their_beginning():
    world = World(
        SETUP,
        "CREATE STREAM X AS SELECT S.K, A, N FROM S JOIN T ON S.K = T.ID;",
        **{"auto.offset.reset": "latest"},
    )
    assert read_topics(plan_of(world.query("X"))) == {"s": "latest", "t": "earliest"}


def test_records_that_do_not_decode_are_skipped_and_reported():
    world = World(SETUP, "CREATE STREAM X AS SELECT * FROM S;")
    program = writing(world.plan("X"), BUILTINS)
    [out], log = run(
        program, [batch_of([("s", b"a", b"{", 1), ("s", b"b", b'{"A": 1, "B": "x"}', 2)])]
    )
    assert [(key, json.loads(value)) for key, value, _, _ in out] == [(b"b", {"A": 1, "B": "x"})]
    [(operator, message, bad)] = log
    assert operator == "KsqlTopic.Source.deserializer"
    assert message
    assert bad == ("value", "s", b"{", "JSON")


def test_a_record_of_which_nothing_decodes_is_reported_once():
    world = World(
        "CREATE STREAM I (K INT KEY, A INT) WITH (KAFKA_TOPIC='i', PARTITIONS=1);",
        "CREATE STREAM X AS SELECT * FROM I;",
    )
    program = writing(world.plan("X"), BUILTINS)
    [out], log = run(program, [batch_of([("i", b"{}", b"\0\0\0\1", 1)])])
    assert out == []
    assert [(operator, bad.target) for operator, _, bad in log] == [
        ("KsqlTopic.Source.deserializer", "key")
    ]


def test_headers_travel():
    world = World(
        "CREATE STREAM H (A INT, HD BYTES HEADER('h')) WITH (KAFKA_TOPIC='h', PARTITIONS=1);",
        "CREATE STREAM X AS SELECT A, FROM_BYTES(HD, 'utf8') AS HD FROM H;",
    )
    program = writing(world.plan("X"), BUILTINS)
    batch = RawBatch(
        ["h", "h"], [0, 0], [0, 1], [1, 2], [None, None], [b'{"A":1}', b'{"A":2}'],
        [[("g", b"no"), ("h", b"yes")], None],
    )  # fmt: skip
    [[first, second]], log = run(program, [batch])
    assert json.loads(first[1]) == {"A": 1, "HD": "yes"}
    assert first[3] == [("g", b"no"), ("h", b"yes")]
    assert json.loads(second[1]) == {"A": 2, "HD": None}
    assert not second[3]
    assert log == []
