"""The loop of a join of streams and the road step by step: the same records, log and state."""

from __future__ import annotations

import random
from operator import itemgetter

import pytest

from ksql.core.errors import QueryFailed
from ksql.exec.dataflow import exits
from ksql.exec.dataflow.compiled import writing
from ksql.exec.operators.memory import MemoryStore
from ksql.formats.schema_registry import MemoryRegistry
from ksql.functions.registry import BUILTINS
from tests.examples import examples
from tests.unit.exec.dataflow.paths import has_loop, keyed, raw, refuse_nulls, stepwise
from tests.unit.exec.operators.support import Log, contents
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, V INT, W STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=2);
CREATE STREAM R (ID STRING KEY, A INT, B STRING) WITH (KAFKA_TOPIC='r', PARTITIONS=2);
CREATE TABLE T (ID STRING PRIMARY KEY, C INT) WITH (KAFKA_TOPIC='t', PARTITIONS=2);
"""
NEAR = "WITHIN 3 SECONDS"
PLANS = [
    f"SELECT S.K AS K, V, A FROM S JOIN R {NEAR} GRACE PERIOD 1 SECOND ON S.K = R.ID",
    f"SELECT * FROM S JOIN R {NEAR} GRACE PERIOD 9 SECONDS ON S.K = R.ID WHERE V > A",
    f"SELECT * FROM S LEFT JOIN R {NEAR} ON S.K = R.ID",
    f"SELECT R.ID AS ID, V / A AS Q, CAST(B AS INT) AS N, CAST(W AS INT) AS M "
    f"FROM S JOIN R {NEAR} GRACE PERIOD 1 SECOND ON S.K = R.ID",
    f"SELECT ROWKEY, V, S.ROWTIME AS X, R.ROWTIME AS Y "
    f"FROM S FULL OUTER JOIN R {NEAR} ON S.K = R.ID",
    f"SELECT S.W AS W, B FROM S LEFT JOIN R {NEAR} ON S.W = R.B WHERE V > 0 OR A IS NULL",
    f"SELECT R.B AS B, V FROM S RIGHT OUTER JOIN R {NEAR} ON S.W = R.B",
    f"SELECT UCASE(S.K) AS U, A FROM S JOIN R {NEAR} GRACE PERIOD 1 SECOND ON S.K = R.ID "
    "PARTITION BY UCASE(S.K)",
]
OTHERS = [
    f"SELECT S.K AS K, A FROM S LEFT JOIN R {NEAR} GRACE PERIOD 1 SECOND ON S.K = R.ID",
    f"SELECT S.K AS K, A, C FROM S JOIN R {NEAR} GRACE PERIOD 1 SECOND ON S.K = R.ID "
    "JOIN T ON S.K = T.ID",
    f"SELECT S.K AS K, EXPLODE(ARRAY[V, A]) AS E FROM S JOIN R {NEAR} GRACE PERIOD 1 SECOND "
    "ON S.K = R.ID",
]


def program_of(query):
    world = World(SETUP)
    world.run(f"CREATE STREAM O AS {query};")
    return writing(world.plan("O"), BUILTINS, MemoryRegistry())


def outcome(program, given, store):
    log = Log()
    try:
        result = repr(list(program.last_step(given, store, log)))
    except QueryFailed as error:
        result = repr((str(error), error.detail, error.entry))
    # on one road the join's own entries stand between those of the results, on the other before
    log.sort(key=itemgetter(0))
    rows = [id(row) for _, _, row in log]
    repeated = [rows.index(each) for each in rows]  # which entries are of one row
    spaces = {space: sorted(entries.items()) for space, entries in contents(store).items()}
    return result, list(map(repr, log)), repeated, repr(sorted(spaces.items()))


def some(chance, topic, now):
    """Records of a topic with all that is odd."""
    names = ("A", "B") if topic == "r" else ("V", "W")
    numbers, texts = ("0", "1", "2", "null"), ('"7"', '"x"', '"a"', '"b"', "null", '"\\ud800"')
    for _ in range(chance.randrange(1, 9)):
        value = f'{{"{names[0]}":{chance.choice(numbers)},"{names[1]}":{chance.choice(texts)}}}'
        gone = chance.random() < 0.1
        headers = [("h", b"1")] if chance.random() < 0.02 else None
        time = max(0, now + chance.randrange(-6_000, 6_000))
        key = chance.choice([b"a", b"b", b"c", None])
        yield key, None if gone else value.encode(), time, headers


@pytest.mark.slow
@pytest.mark.parametrize("query", PLANS)
def test_both_paths_agree(query):
    program = program_of(query)
    assert program.laned
    assert has_loop(program)
    chance, other = random.Random(query), stepwise(program)
    for _ in range(examples(40)):
        stores = MemoryStore(), MemoryStore()
        for now in (0, 4_000, 100_000, 230_000):
            batches = [raw(t, list(some(chance, t, now)), p) for t in "sr" for p in (0, 1)]
            given = keyed(program, batches)
            assert outcome(program, given, stores[0]) == outcome(other, given, stores[1])


def test_ordinary_records_take_one_loop(monkeypatch):
    program = program_of(PLANS[0])
    monkeypatch.setattr(exits, "of_stage", None)
    left = raw("s", [(b"a", b'{"V":2}', 2, None)])
    right = raw("r", [(b"a", b'{"A":1}', 1, None), (b"b", b'{"A":1}', 3, None)])
    given = keyed(program, [left, right])
    assert program.last_step(given, MemoryStore(), Log()) == [(b"a", b'{"V":2,"A":1}', 2, None)]


@pytest.mark.parametrize("query", OTHERS)
def test_other_plans_go_step_by_step(query):
    assert not has_loop(program_of(query))


def test_unwritable_result_is_refused_as_step_by_step(monkeypatch):
    refuse_nulls(monkeypatch)
    program = program_of(PLANS[0])
    left = raw("s", [(b"a", b'{"V":2}', 2, None)])
    right = raw("r", [(b"a", b'{"A":1}', 1, None), (b"a", b'{"B":"x"}', 3, None)])
    given = keyed(program, [left, right])
    outcomes = [outcome(road, given, MemoryStore())[:2] for road in (program, stepwise(program))]
    assert "Unable to serialize record" in outcomes[0][0]
    assert outcomes[0] == outcomes[1]
