"""The loop of an aggregate against the road step by step: the same results, log and state."""

from __future__ import annotations

import json
import random
from copy import copy

import pytest

from ksql.core.errors import QueryFailed
from ksql.core.records import OutRecord
from ksql.exec.dataflow.compiled import writing
from ksql.exec.operators.base import LateRecord, Record
from ksql.exec.operators.keys import pack
from ksql.formats.schema_registry import MemoryRegistry
from ksql.functions.registry import BUILTINS
from ksql.spark.task.pages import PagedStore
from tests.examples import examples
from tests.unit.exec.codegen.test_keying import batch
from tests.unit.exec.dataflow.paths import exchanged, has_loop, stepwise
from tests.unit.exec.operators.support import Log
from tests.unit.spark.task.test_pages import DictBackend
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, I INT, L BIGINT, D DOUBLE, S STRING, N DECIMAL(8, 3))
  WITH (KAFKA_TOPIC='s', PARTITIONS=3);
CREATE TABLE T (K STRING PRIMARY KEY, W INT, X STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""
PLANS = [
    "SELECT K, COUNT(*) AS C, SUM(L) AS S FROM S GROUP BY K",
    "SELECT K, K + 'x' AS KX, COUNT(*) AS C FROM S GROUP BY K",
    "SELECT K, AS_VALUE(K) AS V, AVG(L) AS A, ROWTIME AS R FROM S GROUP BY K",
    "SELECT I, S, MAX(D) AS M, SUM(N) AS N FROM S GROUP BY I, S",
    "SELECT I, SUM(L) / (COUNT(L) - 2) AS Q, MIN(S) AS S FROM S GROUP BY I",
    "SELECT K, SUM(CAST(N AS DECIMAL(4, 3))) AS N, COUNT(*) AS C FROM S GROUP BY K",
    "SELECT N, LATEST_BY_OFFSET(S) AS S, EARLIEST_BY_OFFSET(L) AS L FROM S GROUP BY N",
    "SELECT K, COUNT(*) AS C, SUM(L) AS S FROM S WINDOW TUMBLING (SIZE 5 MILLISECONDS) GROUP BY K",
    """SELECT K, AS_VALUE(K) AS V, COUNT(*) AS C, WINDOWSTART AS A, WINDOWEND AS E, ROWTIME AS R
       FROM S WINDOW TUMBLING (SIZE 5 MILLISECONDS, GRACE PERIOD 3 MILLISECONDS) GROUP BY K""",
    """SELECT I, AVG(L) AS A, SUM(L) / (COUNT(L) - 2) AS Q FROM S
       WINDOW HOPPING (SIZE 6 MILLISECONDS, ADVANCE BY 4 MILLISECONDS, GRACE PERIOD 0 SECONDS)
       GROUP BY I""",
    """SELECT I, S, MAX(D) AS M, SUM(CAST(N AS DECIMAL(4, 3))) AS N FROM S
       WINDOW HOPPING (SIZE 6 MILLISECONDS, ADVANCE BY 2 MILLISECONDS) GROUP BY I, S""",
]
SESSIONS = [
    "SELECT K, COUNT(*) AS C, SUM(L) AS S FROM S WINDOW SESSION (2 MILLISECONDS) GROUP BY K",
    """SELECT I, AVG(L) AS A, SUM(L) / (COUNT(L) - 2) AS Q, WINDOWSTART AS B, WINDOWEND AS E,
         ROWTIME AS R
       FROM S WINDOW SESSION (1 MILLISECONDS, GRACE PERIOD 2 MILLISECONDS) GROUP BY I""",
    """SELECT I, S, MAX(D) AS M, SUM(CAST(N AS DECIMAL(4, 3))) AS N FROM S
       WINDOW SESSION (3 MILLISECONDS, RETENTION 8 MILLISECONDS, GRACE PERIOD 1 MILLISECONDS)
       GROUP BY I, S""",
    """SELECT K, LATEST_BY_OFFSET(L) AS L, MIN(S) AS S FROM S
       WINDOW SESSION (2 MILLISECONDS, GRACE PERIOD 0 SECONDS) GROUP BY K""",
]
OTHERS = [
    "SELECT K, COLLECT_LIST(L) AS C FROM S GROUP BY K",
    "SELECT K, COUNT(*) AS C FROM S GROUP BY K HAVING COUNT(*) > 1",
    "SELECT K, COUNT(*) AS C FROM S WINDOW SESSION (1 SECOND) GROUP BY K HAVING COUNT(*) > 1",
    "SELECT K, COUNT(*) AS C FROM S WINDOW SESSION (1 SECOND) GROUP BY K EMIT FINAL",
    "SELECT K, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K EMIT FINAL",
    "SELECT W, COUNT(*) AS C FROM T GROUP BY W",
]
INTERVAL = {"commit.interval.ms": "6"}
"""A batch has several of them, and records that are older than the one that they belong to."""
TEXTS = [None, "", "a", "12", "7.5", "\u00e9", "\U0001f600", "x" * 40, "y" * 300]


def program_of(query, **settings):
    world = World(SETUP, **settings)
    format_ = ", KEY_FORMAT='JSON'" if "I, S" in query or "SELECT N" in query else ""
    world.run(f"CREATE TABLE O WITH (VALUE_FORMAT='JSON'{format_}) AS {query};")
    return writing(world.plan("O"), BUILTINS, MemoryRegistry())


@pytest.fixture(
    scope="module",
    params=[
        *((plan, cache) for cache in ("0", "1000000") for plan in PLANS),
        *((plan, "0") for plan in SESSIONS),
    ],
)
def program(request):
    plan, cache = request.param
    return program_of(plan, **{"cache.max.bytes.buffering": cache, **INTERVAL})


def some(chance):
    """A few records of the stream."""
    return [
        (
            chance.choice(TEXTS[1:]).encode(),
            json.dumps(
                {
                    "I": chance.choice((None, 0, 1, 2)),
                    "L": chance.choice((None, 0, 1, 5, (1 << 63) - 1)),
                    "D": chance.choice((None, 0.0, 1.5, 1e300, -0.001)),
                    "S": chance.choice(TEXTS),
                    "N": chance.choice((None, 0, 1.25, 99999, 12345.678)),
                }
            ).encode(),
            chance.randrange(20),
        )
        for _ in range(chance.randrange(1, 12))
    ]


def lateness(message):
    """What a message says beside its text, if it is about a late record."""
    return (message.behind_ms, message.origin) if isinstance(message, LateRecord) else None


class Run:
    """A program with its state, micro-batch by micro-batch."""

    def __init__(self, program) -> None:
        self._program = program
        self._backend = DictBackend()
        self.log = Log()
        self.results: list[OutRecord] = []

    def feed(self, batches) -> None:
        self.last(self.ingested(batches))

    def ingested(self, batches):
        ingest = self._program.ingest()
        records = [record for each in batches for record in ingest.add(each, self.log)]
        return [*records, *ingest.finish()]

    def last(self, records) -> None:
        store = PagedStore(self._backend)
        if records:
            self.results += self._program.last_step(records, store, self.log)
        store.flush()

    def seen(self):
        log = sorted(f"{entry} {lateness(entry[1])}" for entry in self.log)
        return list(map(repr, self.results)), log, self.state()

    def state(self):
        store = PagedStore(self._backend)
        return {space: dict(store.scan(space)) for space in store._spaces}

    def ends(self, batches, records=()):
        """What ends the query, if anything does."""
        try:
            self.last([*self.ingested(batches), *records] if batches else records)
        except QueryFailed as error:
            return str(error), error.detail, error.entry
        return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_same_results_log_and_state(program, seed):
    assert has_loop(program)
    chance = random.Random(seed)
    for _ in range(examples(30)):
        fast, slow = Run(program), Run(stepwise(program))
        offset = 0
        for _ in range(chance.randrange(1, 4)):
            batches = [batch("s", some(chance), offset, n) for n in chance.sample(range(3), 2)]
            offset += 20
            ended = fast.ends(batches)
            assert ended == slow.ends(batches)
            if ended:
                break
            assert fast.seen() == slow.seen()


def record_by_record(program):
    plain = copy(program)
    plain._fast = copy(program._fast)
    plain._fast.by_column = lambda *_given: None
    return plain


@pytest.mark.parametrize(
    ("cache", "other"), [("0", stepwise), ("1000000", stepwise), ("1000000", record_by_record)]
)
@pytest.mark.parametrize("query", PLANS)
def test_by_column_as_step_by_step(query, cache, other):
    """Records as an exchange brings them, of one partition and of several."""
    program = program_of(query, **{"cache.max.bytes.buffering": cache, **INTERVAL})
    chance = random.Random(query)
    for _ in range(examples(20)):
        fast, slow = Run(program), Run(other(program))
        for offset in (0, 20, 40):
            partitions = chance.sample(range(3), chance.choice((1, 2)))
            batches = [batch("s", some(chance), offset, n) for n in partitions]
            given = exchanged(program, batches)
            ended = fast.ends([], given)
            assert ended == slow.ends([], list(given))
            if ended:
                break
            assert fast.seen() == slow.seen()


@pytest.mark.parametrize("cache", ["0", "1000000"])
@pytest.mark.parametrize("query", [PLANS[0], PLANS[7], PLANS[8].replace("3 MILLI", "30 MILLI")])
def test_records_of_an_exchange_are_taken_by_column(query, cache, monkeypatch):
    program = program_of(query, **{"cache.max.bytes.buffering": cache})
    if program._operators[0].combined and not program.combined_windows:
        return  # the states of groups are taken one by one
    monkeypatch.setattr(type(program._fast), "records", None)
    run = Run(program)
    run.last(exchanged(program, [batch("s", some(random.Random(1)), 0, n) for n in (0, 1)]))
    assert run.results


@pytest.mark.parametrize("query", OTHERS)
def test_other_plans_go_step_by_step(query):
    assert not has_loop(program_of(query, **{"cache.max.bytes.buffering": "0"}))


def test_ordinary_records_take_the_loop(program, monkeypatch):
    monkeypatch.setattr(type(program), "_last_stepwise", None)
    chance, run = random.Random(1), Run(program)
    for first in (0, 20):
        run.feed([batch("s", some(chance), first)])
    assert run.state()


def test_headers_go_along():
    program = program_of(PLANS[0], **{"cache.max.bytes.buffering": "0"})
    record = Record(0, pack(("a",)), (1,), 5, headers=[("h", b"1")])
    fast, slow = Run(program), Run(stepwise(program))
    for run in (fast, slow):
        run.last([record, record._replace(headers=None, offset=1)])
    assert fast.seen() == slow.seen()
    assert [result[3] for result in fast.results] == [[("h", b"1")], None]


def test_a_group_whose_records_all_fail_has_no_state():
    program = program_of(
        "SELECT K, SUM(N) AS N FROM S GROUP BY K",
        **{"cache.max.bytes.buffering": "0"},
    )
    record = Record(0, pack(("a",)), (object(),), 5)
    for each in (program, stepwise(program)):
        run = Run(each)
        run.last([record])
        assert (run.results, run.state(), len(run.log)) == ([], {}, 1)
        run.last([record, record._replace(row=(None,), offset=1)])
        assert (len(run.results), len(run.log)) == (1, 2)


@pytest.mark.parametrize(("key", "value"), [(2**40, 1), (1, 2**40), (1, 1)])
def test_a_result_that_cannot_be_written_ends_both_paths_alike(key, value):
    world = World(SETUP, **{"cache.max.bytes.buffering": "0"})
    world.run("CREATE TABLE O WITH (FORMAT='KAFKA') AS SELECT I, MAX(I) AS M FROM S GROUP BY I;")
    program = writing(world.plan("O"), BUILTINS, MemoryRegistry())
    fast, slow = Run(program), Run(stepwise(program))
    record = Record(0, pack((key,)), (value,), 5)
    ended = fast.ends([], [record])
    assert ended == slow.ends([], [record])
    assert (ended is None) == (key == value)
    if ended is None:
        assert fast.seen() == slow.seen()


@pytest.mark.parametrize(
    "window", ["TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 0 SECONDS)", "SESSION (1 SECOND)"]
)
def test_dropped_record_is_logged_once_though_its_key_cannot_be_written(window):
    world = World(SETUP, **{"cache.max.bytes.buffering": "0"})
    query = f"SELECT I, SUM(I) AS M FROM S WINDOW {window} GROUP BY I"
    world.run(f"CREATE TABLE O WITH (FORMAT='KAFKA') AS {query};")
    program = writing(world.plan("O"), BUILTINS, MemoryRegistry())
    record = Record(0, pack((1,)), (1,), 10**9, sequence_key=10**9)
    late = record._replace(timestamp=0, offset=1)
    # the other partition's only record has a key that cannot be written, and fails
    bad = record._replace(key=pack((2**40,)), row=("x",), partition=1, lane=1)
    fast, slow = Run(program), Run(stepwise(program))
    for run in (fast, slow):
        assert run.ends([], [record, late, bad]) is None
    assert fast.seen() == slow.seen()
    assert (len(fast.results), len(fast.log)) == (1, 2)
