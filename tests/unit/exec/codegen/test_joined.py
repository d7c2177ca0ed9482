"""The loop of a join with a table and the road step by step: the same records, log and state."""

from __future__ import annotations

import random

import pytest

from ksql.core.errors import QueryFailed
from ksql.exec.dataflow import exits
from ksql.exec.dataflow.compiled import writing
from ksql.exec.operators.memory import MemoryStore
from ksql.formats.schema_registry import MemoryRegistry
from ksql.functions.registry import BUILTINS
from tests.examples import examples
from tests.unit.exec.dataflow.paths import (
    exchanged,
    has_loop,
    keyed,
    raw,
    refuse_nulls,
    stepwise,
)
from tests.unit.exec.operators.support import Log, contents
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, V INT, W STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM N (K INT KEY, V INT, W STRING)
  WITH (KAFKA_TOPIC='n', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE TABLE T (ID STRING PRIMARY KEY, A INT, B STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE I (ID INT PRIMARY KEY, A INT, B STRING)
  WITH (KAFKA_TOPIC='i', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE TABLE U (ID STRING PRIMARY KEY, C INT) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
"""
PLANS = [
    "SELECT S.K AS K, V, A FROM S JOIN T ON S.K = T.ID",
    "SELECT * FROM S LEFT JOIN T ON S.K = T.ID",
    "SELECT S.K AS K, V / A AS Q, CAST(B AS INT) AS N, CAST(W AS INT) AS M "
    "FROM S LEFT JOIN T ON S.K = T.ID",
    "SELECT S.W AS W, A, S.ROWTIME AS RT, T.ROWTIME AS TT FROM S JOIN T ON S.W = T.ID WHERE V > 1",
    "SELECT T.ID, V, B FROM S JOIN T ON LCASE(S.W) = T.ID",
    "SELECT UCASE(T.ID) AS U, V FROM S JOIN T ON S.K = T.ID PARTITION BY UCASE(T.ID)",
    "SELECT N.K AS K, N.V AS V, I.A AS A FROM N LEFT JOIN I ON N.K = I.ID",
    "SELECT N.V AS V, W, B FROM N LEFT JOIN I ON N.V = I.ID WHERE V / A > 0",
]
OTHERS = [
    "SELECT S.K AS K, A, C FROM S JOIN T ON S.K = T.ID JOIN U ON S.K = U.ID",
    "SELECT S.K AS K, EXPLODE(ARRAY[V, A]) AS E FROM S JOIN T ON S.K = T.ID",
]
TIMED = """CREATE STREAM O WITH (TIMESTAMP='TS') AS
  SELECT S.K AS K, A, CAST(V AS BIGINT) AS TS FROM S JOIN T ON S.K = T.ID;"""


def program_of(query):
    world = World(SETUP)
    world.run(query if query.startswith("CREATE") else f"CREATE STREAM O AS {query};")
    return writing(world.plan("O"), BUILTINS, MemoryRegistry())


def outcome(program, given, store):
    log = Log()
    try:
        result = repr(list(program.last_step(given, store, log)))
    except QueryFailed as error:
        result = repr((str(error), error.detail, error.entry))
    rows = [id(row) for _, _, row in log]
    repeated = [rows.index(each) for each in rows]  # which entries are of one row
    return (
        result,
        list(map(repr, log)),
        repeated,
        repr(sorted(contents(store).get(b"t", {}).items())),
    )


def some(chance, topic, size):
    """Records of a topic with all that is odd."""
    keys = [b"a", b"b", b"c", None] if topic in "st" else [b"1", b"2", b"3", b"null"]
    names = ("A", "B") if topic in "ti" else ("V", "W")
    numbers, texts = ("0", "1", "2", "null"), ('"7"', '"x"', '"a"', '"b"', "null", '"\\ud800"')
    for _ in range(size):
        value = f'{{"{names[0]}":{chance.choice(numbers)},"{names[1]}":{chance.choice(texts)}}}'
        gone = chance.random() < 0.15
        headers = [("h", b"1")] if chance.random() < 0.02 else None
        time = chance.randrange(9)
        yield chance.choice(keys), None if gone else value.encode(), time, headers


@pytest.mark.parametrize("query", PLANS)
def test_both_paths_agree(query):
    program = program_of(query)
    assert has_loop(program)
    chance, other = random.Random(query), stepwise(program)
    for _ in range(examples(40)):
        stores = MemoryStore(), MemoryStore()
        for _ in range(3):
            batches = [
                raw(t, list(some(chance, t, chance.randrange(1, 9)))) for t in program.topics
            ]
            given = keyed(program, batches)
            assert outcome(program, given, stores[0]) == outcome(other, given, stores[1])


def plain(chance, topic, size, first):
    """Records of a topic as most are; a table's may be deletions."""
    for n in range(size):
        key, value, time, _ = next(some(chance, topic, 1))
        kept = topic in "sn" or chance.random() < 0.8
        value = value or b'{"V":1,"W":"a"}'
        yield key or b"1", value if kept else None, time + first + n // 2, None


@pytest.mark.parametrize("query", PLANS)
def test_by_column_as_step_by_step(query, monkeypatch):
    """Several partitions of the stream, and changes of the table between its records."""
    program, seen = program_of(query), []
    by_column = type(program._fast).by_column

    def counted(*given):
        seen.append(by_column(*given))
        return seen[-1]

    monkeypatch.setattr(type(program._fast), "by_column", counted)
    chance, other = random.Random(query), stepwise(program)
    stream, table = program.topics
    for _ in range(examples(40)):
        stores = MemoryStore(), MemoryStore()
        for first in (0, 20, 40):
            batches = [
                raw(stream, list(plain(chance, stream, 40, first)), partition)
                for partition in range(chance.choice((1, 3)))
            ]
            if changes := list(plain(chance, table, chance.choice((0, 3, 5)), first)):
                batches.append(raw(table, changes))
            given = exchanged(program, batches)
            expected = outcome(other, keyed(program, batches), stores[1])
            assert outcome(program, given, stores[0]) == expected
    assert sum(each is not None for each in seen) > len(seen) / 2


def test_many_changes_of_the_table_go_record_by_record():
    program = program_of(PLANS[0])
    stream = raw("s", [(b"a", b'{"V":1}', 5, None)])
    table = raw("t", [(b"a", b'{"A":1}', 1, None), (b"a", b'{"A":2}', 9, None)])
    given = exchanged(program, [stream, table])
    assert program._fast.by_column(given, MemoryStore(), Log()) is None
    assert program.last_step(given, MemoryStore(), Log()) == [(b"a", b'{"V":1,"A":1}', 5, None)]


def test_unwritable_result_by_column_is_refused_as_step_by_step(monkeypatch):
    refuse_nulls(monkeypatch)
    program = program_of(PLANS[0])
    batches = [raw("s", [(b"a", b'{"V":1}', 2, None), (b"a", b"{}", 3, None)] * 8)]
    batches.append(raw("t", [(b"a", b'{"A":1}', 1, None)]))
    given = exchanged(program, batches)
    assert program._fast.by_column(given, MemoryStore(), Log()) is None
    outcomes = [
        outcome(road, some, MemoryStore())[:2]
        for road, some in ((program, given), (stepwise(program), keyed(program, batches)))
    ]
    assert "Unable to serialize record" in outcomes[0][0]
    assert outcomes[0] == outcomes[1]


def test_ordinary_records_take_one_loop(monkeypatch):
    program = program_of(PLANS[0])
    table = raw("t", [(b"a", b'{"A":1,"B":"x"}', 1, None)])
    stream = raw("s", [(b"a", b'{"V":2}', 2, None)])
    monkeypatch.setattr(exits, "of_stage", None)
    given = keyed(program, [stream, table])
    assert program.last_step(given, MemoryStore(), Log()) == [(b"a", b'{"V":2,"A":1}', 2, None)]


@pytest.mark.parametrize("query", [*OTHERS, TIMED])
def test_other_plans_go_step_by_step(query):
    assert not has_loop(program_of(query))


def test_unwritable_result_is_refused_as_step_by_step(monkeypatch):
    """That one finds the table as it was before the batch."""
    refuse_nulls(monkeypatch)
    program = program_of(PLANS[0])
    before = keyed(program, [raw("t", [(b"a", b'{"B":"x"}', 1, None)])])
    stream = raw("s", [(b"a", b'{"V":1}', 2, None)])
    given = keyed(program, [stream, raw("t", [(b"a", b'{"A":1}', 3, None)])])
    outcomes = []
    for road in (program, stepwise(program)):
        store = MemoryStore()
        assert road.last_step(before, store, Log()) == []
        outcomes.append(outcome(road, given, store)[:2])
    assert "Unable to serialize record" in outcomes[0][0]
    assert outcomes[0] == outcomes[1]
