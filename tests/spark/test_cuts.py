"""Random queries on Spark, fed step by step: the results of one micro-batch in memory."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

import pytest

from ksql.kafka.producers.sender import TransactionalSender
from ksql.spark.query.spec import Link
from tests.chains.cases import disorder
from tests.cuts.cases import Case, Event, Source, merged, pieces
from tests.cuts.chance import cases
from tests.cuts.run import planned, run
from tests.spark.cuts import difference, ready, write

RUNS, FIRST = 50, 30_000
BEHIND = range(60_000, 60_040)
HOUR_MS = 3_600_000


def case_of(seed):
    """A query over topics of its own; its records are of the last hour but one."""
    tag, start_ms = uuid.uuid4().hex[:8].upper(), int(time.time() * 1000) // HOUR_MS * HOUR_MS
    (case,) = cases(seed, 1, tag=tag, start_ms=start_ms - HOUR_MS, densities=(0.05, 0.1))
    return case


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(FIRST, FIRST + RUNS))
def test_steps_on_spark_give_the_results_of_one_batch(desk, start, seed):
    """The query rests while a step is written, so that each batch is all of a step."""
    case = case_of(seed)
    query, program = planned(case)
    spec = ready(desk, case, query, program)
    events = merged(case.events, program.topics)
    for piece in pieces(events):
        write(desk, piece)
        running = start(spec)
        assert running.await_idle(desk.ends(*program.topics)), running.status()
        running.stop(graceful=True)
    expected = run(program, [events], case.buckets).records
    assert difference(desk, case, expected, events) is None


def behind(desk, start, case, most):
    """Write all its records, then run the query in batches of at most so many."""
    plain = [e for e in case.events if e.written is None and not (e.broken or e.timeless)]
    query, program = planned(case)
    spec = ready(desk, case, query, program, max_records=most)
    events = merged(plain, program.topics)
    write(desk, events)
    running = start(spec)
    assert running.await_idle(desk.ends(*program.topics)), running.status()
    running.stop(graceful=True)
    expected = run(program, [events], case.buckets).records
    assert difference(desk, case, expected, events) is None
    return spec


@pytest.mark.parametrize(
    "seed", [*BEHIND[:6], *(pytest.param(seed, marks=pytest.mark.proof) for seed in BEHIND[6:])]
)
def test_small_batches_give_the_results_of_one(desk, start, seed):
    behind(desk, start, case_of(seed), (3, 10, 25)[seed % 3])


@pytest.mark.parametrize("apart_ms", [1, 0])
def test_a_stream_that_is_behind_meets_all_rows_that_are_older(desk, start, apart_ms):
    """The table's are read first, also if all records of a topic have one time."""
    tag, start_ms = uuid.uuid4().hex[:8].upper(), int(time.time() * 1000) - HOUR_MS
    left = Source(f"L{tag}", "STREAM", "K", "BIGINT", {"V": "INT"})
    right = Source(f"R{tag}", "TABLE", "K", "BIGINT", {"W": "INT"})
    query = (
        f"CREATE STREAM OUT{tag} AS SELECT L.K, V, W "
        f"FROM {left.name} L JOIN {right.name} R ON L.K = R.K;"
    )
    rows = [(left.name, "V", n % 20, 100 + n * apart_ms) for n in range(400)]
    rows += [(right.name, "W", n % 20, n * apart_ms) for n in range(40)]
    events = tuple(
        Event(topic, key % 2, key, {column: n}, start_ms + time_ms)
        for n, (topic, column, key, time_ms) in enumerate(rows)
    )
    case = Case("catching-up", (left, right), query, events, partitions=2, tag=tag)
    spec = behind(desk, start, case, 30)
    assert len(desk.read(case.sink)) == 400
    last = max(int(file.name) for file in (spec.checkpoint / "commits").glob("[0-9]*"))
    assert last >= 440 // 30


@pytest.mark.parametrize("known", [True, False])
def test_a_backlog_that_was_written_in_transactions_is_cut_by_time(desk, start, known):
    """Their marks lie between the records and have the time of the writing, an hour later.

    Of a query that was terminated, as of other producers, it is not ``known`` that it wrote so.
    """
    source, sink = desk.topic(), desk.topic(partitions=1)
    start_ms = int(time.time() * 1000) - HOUR_MS
    sender = TransactionalSender(desk.kafka, f"tx-{source}")
    sender.start()
    for first, place in ((0, 0), (0, 1), (100, 0), (100, 1)):
        with sender.transaction():
            for n in range(first + place, first + 100, 2):
                sender.send(source, b"k", b"v", timestamp=start_ms + n * 100, partition=place)
    desk.settle(source)
    spec = desk.spec("copy", source, sink, sink_topic=sink, max_records=30)
    links = {spec.name: Link(sink, (source,))}
    if known:
        links["writer"] = Link(source, (), exactly_once=True)
    running = start(replace(spec, chain=links))
    assert running.await_idle(desk.ends(source)), running.status()
    times = [record.timestamp for record in desk.read(sink)]
    assert len(times) == 200
    assert (
        disorder(times)[0] <= 3_000
    )  # of one micro-batch; all 100 records of a transaction: 9,800
