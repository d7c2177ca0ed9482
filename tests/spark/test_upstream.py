"""A query goes no further than those whose results it reads; it waits for them, not for ever."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from ksql.spark.spec import Link
from tests.kafka.wires import await_true

FOR_EVER_MS = 86_400_000


def chain(desk, wait_ms):
    """Two queries, of which the second one reads what the first one writes; and that topic."""
    source, between, sink = (desk.topic() for _ in range(3))
    first = desk.spec("copy", source, between, name="first", sink_topic=between)
    second = desk.spec("copy", between, sink, name="second", sink_topic=sink)
    links = {first.name: Link(between, (source,)), second.name: Link(sink, (between,))}
    desk.send(between, ("k", "of the past"))
    desk.send(source, *[(f"k{n}", f"{n}") for n in range(50)])
    return [replace(each, chain=links, upstream_wait_ms=wait_ms) for each in (first, second)], sink


def test_it_waits_for_one_that_has_not_begun(desk, start):
    (first, second), sink = chain(desk, FOR_EVER_MS)
    reading = start(second)
    await_true("it has looked at its source", reading.has_started)
    assert desk.read(sink) == []
    writing = start(replace(first, trigger_ms=3_600_000))  # its batch counts when it has ended
    assert writing.await_idle(desk.ends(*first.topics))
    assert reading.await_idle(desk.ends(*second.topics))
    assert len(desk.read(sink)) == 51


def test_it_waits_only_for_a_time(desk, start):
    (_, second), sink = chain(desk, 0)
    reading = start(second)
    assert reading.await_idle(desk.ends(*second.topics))
    assert len(desk.read(sink)) == 1


def test_one_that_stops_is_waited_for_no_longer_than_that(desk, start):
    (first, second), sink = chain(desk, 0)
    writing = start(first)
    assert writing.await_idle(desk.ends(*first.topics))
    writing.stop()
    reading = start(second)
    assert reading.await_idle(desk.ends(*second.topics))
    desk.send(next(iter(second.topics)), ("k", "of another producer"))
    assert reading.await_idle(desk.ends(*second.topics))
    assert len(desk.read(sink)) == 52


def test_what_a_transaction_hides_is_waited_for(desk, start):
    """Kafka marks the end of a transaction after its writer has the answer; so does this one."""
    (first, second), sink = chain(desk, FOR_EVER_MS)
    between = next(iter(second.topics))
    pending = producer(desk)
    pending.produce(between, b"pending", partition=1)
    pending.flush()
    writing = start(replace(first, exactly_once=True))
    assert writing.await_idle(desk.ends(*first.topics))
    reading = start(second)
    await_true("it has looked at its source", reading.has_started)
    assert desk.read_beside(sink) == []
    pending.commit_transaction()
    desk.settle(between)
    assert reading.await_idle(desk.ends(between))
    assert len(desk.read(sink)) == 52


@pytest.mark.xfail(
    strict=True,
    reason="Kafka's index by time knows the marks of transactions, with the commit's time",
)
def test_a_backlog_that_was_written_in_transactions_is_cut_by_time(desk, start):
    """Two partitions have the same times; the second one was committed after the first."""
    source, sink = desk.topic(), desk.topic(1)
    written = producer(desk)
    for partition in (0, 1):
        for second in range(60):
            written.produce(source, b"v", b"k", partition, timestamp=1_000_000 + second * 1000)
            if second % 20 == 19:
                written.commit_transaction()
                written.begin_transaction()
    written.abort_transaction()
    desk.settle(source)
    spec = desk.spec("copy", source, sink, max_records=30)
    reading = start(spec)
    assert reading.await_idle(desk.ends(source))
    batches = [file for file in (spec.checkpoint / "offsets").iterdir() if file.name.isdigit()]
    for batch in batches:
        ends = json.loads(batch.read_text().splitlines()[-1])[source]
        assert abs(ends["0"] - ends["1"]) <= 5  # times differ by a second, marks take an offset


def producer(desk):
    """A producer in an open transaction."""
    made = Producer({**desk.kafka.producer(), "transactional.id": uuid.uuid4().hex})
    made.init_transactions()
    made.begin_transaction()
    return made


def test_what_it_reads_itself_is_not_waited_for(desk, start):
    """Two queries that read each other's results, and nothing moves them but the first record."""
    one, other = desk.topic(), desk.topic()
    first = desk.spec("copy", one, other, name="first", sink_topic=other)
    second = desk.spec("tell", other, None, name="second")
    links = {first.name: Link(other, (one,)), second.name: Link(one, (other,))}
    specs = [replace(each, chain=links, upstream_wait_ms=FOR_EVER_MS) for each in (first, second)]
    desk.send(one, ("k", "v"))
    for spec in specs:
        assert start(spec).await_idle(desk.ends(*spec.topics))
