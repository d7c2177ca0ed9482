"""``processing.guarantee = exactly_once_v2``: whatever dies, each input has one output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ksql.core.records import OutRecord
from ksql.kafka.producers.limits import fitting
from ksql.kafka.producers.task_transactions import TaskTransactions, begin_batch, keep
from ksql.kafka.producers.worker_producer import DeliveryFailed
from ksql.spark.query.spec import State
from tests.spark.test_failures import await_failure, await_state


def config(desk):
    return {k: str(v) for k, v in desk.kafka.producer().items()}


def refuse(message):
    pytest.fail(message)


def write(transactions, topic, *values):
    transactions.send(topic, [(None, value, 1, None) for value in values], refuse)


def values_of(desk, topic):
    return sorted(record.value for record in desk.read(topic))


def test_a_batch_counts_once_however_often_it_is_run(desk):
    topic = desk.topic(1)
    for _ in range(2):
        opened = begin_batch(config(desk), f"{topic}-0", topic, 4)
        if opened is not None:
            write(opened, topic, b"a", b"b")
            opened.commit(refuse)
    assert values_of(desk, topic) == [b"a", b"b"]


def test_records_at_the_epoch_are_part_of_the_transaction_a_millisecond_later(desk):
    topic = desk.topic(1)
    opened = TaskTransactions(config(desk), f"{topic}-0", topic)
    assert opened.begin(0)
    records: list[OutRecord] = [(None, b"%d" % n, n % 3, None) for n in range(9)]
    assert opened.send(topic, records, refuse) == 9
    opened.commit(refuse)
    written = [(record.value, record.timestamp) for record in desk.read(topic)]
    assert written == [(value, time or 1) for _, value, time, _ in records]
    assert opened.moved == 3


def test_transactions_of_a_dead_worker_are_aborted(desk):
    topic = desk.topic(1)
    dead = TaskTransactions(config(desk), f"{topic}-0", topic)
    assert dead.begin(0)
    write(dead, topic, b"lost")
    dead._writer.flush(30)
    again = begin_batch(config(desk), f"{topic}-0", topic, 0)
    assert again is not None
    write(again, topic, b"kept")
    again.commit(refuse)
    with pytest.raises(DeliveryFailed):
        dead.commit(refuse)
    assert values_of(desk, topic) == [b"kept"]


def test_a_kept_producer_notices_that_another_worker_took_over(desk):
    topic = desk.topic(1)
    task = f"{topic}-0"
    first = begin_batch(config(desk), task, topic, 0)
    write(first, topic, b"0")
    first.commit(refuse)
    keep(task, first)
    other = TaskTransactions(config(desk), task, topic)  # a worker of its own
    assert other.begin(1)
    write(other, topic, b"1")
    other.commit(refuse)
    assert begin_batch(config(desk), task, topic, 1) is None
    third = begin_batch(config(desk), task, topic, 2)
    write(third, topic, b"2")
    third.commit(refuse)
    assert values_of(desk, topic) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("kind", ["copy", "count"])
def test_each_input_has_one_output_though_workers_die(desk, start, tmp_path, kind):
    source, sink = desk.topic(), desk.topic()
    marks = {"raise_mark": str(tmp_path / "raise"), "die_mark": str(tmp_path / "die")}
    query = start(desk.spec(kind, source, sink, exactly_once=True, **marks))
    total = 0
    for round_ in range(6):
        rows = [(f"k{n % 5}", "CRASH" if n == 7 and round_ % 2 else "x") for n in range(40)]
        desk.send(source, *rows)
        total += len(rows)
        while not query.await_idle(desk.ends(source)):
            await_state(query, State.RUNNING)
    records = desk.read(sink)
    assert len(records) == total
    if kind == "count":
        for key in {record.key for record in records}:
            seen = [json.loads(record.value)["n"] for record in records if record.key == key]
            assert seen == list(range(1, len(seen) + 1))


def test_a_switch_keeps_the_transactions_going(desk, start):
    source, sink = desk.topic(), desk.topic()
    for tag in ("old", "new"):
        desk.send(source, *((f"k{n}", "x") for n in range(10)))
        query = start(desk.spec("copy", source, sink, tag=tag, exactly_once=True))
        assert query.await_idle(desk.ends(source))
        query.stop()
    tags = [value["tag"] for value in desk.values(sink)]
    assert sorted(tags) == ["new"] * 10 + ["old"] * 10


def read_bytes(desk, topic):
    return [(r.value, r.timestamp, list(r.headers or ())) for r in desk.read(topic)]


def test_the_time_zero_stays_inside_the_transaction(desk):
    topic = desk.topic(1)
    opened = TaskTransactions(config(desk), f"{topic}-0", topic)
    for batch, counts in ((0, False), (0, True)):
        opened = TaskTransactions(config(desk), f"{topic}-0", topic)
        assert opened.begin(batch)
        records = [(None, b"x", 0, None), (b"k", b"y", 0, [("h", None)]), (b"k", b"z", 5, None)]
        assert opened.send(topic, records, refuse) == 3
        opened._writer.flush(30)
        assert desk.read_beside(topic) == []  # not before the commit
        assert opened.moved == 2
        if counts:
            opened.commit(refuse)
    assert read_bytes(desk, topic) == [(b"x", 1, []), (b"y", 1, [("h", None)]), (b"z", 5, [])]


def test_a_topic_that_takes_less_than_before_ends_no_query_that_may_leave_records_out(desk, start):
    source, sink = desk.topic(1), desk.topic(1)
    query = start(desk.spec("copy", source, sink, exactly_once=True, strict=False, sink_topic=sink))
    desk.send(source, ("a", "first"))
    assert query.await_idle(desk.ends(source))
    desk.admin.alter_configs(sink, {"max.message.bytes": "2000"})
    desk.send(source, ("a", "second"), ("b", "x" * 5000), ("c", "third"))
    assert await_failure(query).last_error is not None
    while not query.await_idle(desk.ends(source)):
        await_state(query, State.RUNNING)
    assert [record.key for record in desk.read(sink)] == [b"a", b"a", b"c"]


def test_a_client_refuses_whatever_the_broker_would_refuse_in_a_transaction(desk):
    topic = desk.topic(1)
    desk.admin.alter_configs(topic, {"max.message.bytes": "2000"})
    opened = TaskTransactions(config(desk) | fitting(2000, surely=True), f"{topic}-0", topic)
    assert opened.begin(0)
    notes: list[str] = []
    accepted = 0
    for size in range(1800, 2010):
        some: list[tuple[bytes | None, Any]] = [(None, None), (b"k" * 50, [("name", b"v" * 50)])]
        for key, headers in some:
            record: OutRecord = (key, b"x" * (size - (100 if key else 0)), 1, headers)
            accepted += opened.send(topic, [record], notes.append)
    assert notes
    opened.commit(refuse)
    assert len(desk.read(topic)) == accepted > 0


def test_the_log_of_a_healthy_run_has_no_word_of_fencing(desk, start, spark_settings):
    """Two workers take turns at four tasks, so that most batches find the other's producer."""
    source, sink = desk.topic(4), desk.topic(1)
    log = spark_settings.log_file
    before = log.stat().st_size
    query = start(desk.spec("copy", source, sink, exactly_once=True))
    for round_ in range(30):
        for partition in range(4):
            value = str(round_).encode()
            desk.sender.send(source, b"k%d" % partition, value, partition=partition)
        desk.sender.flush()
        assert query.await_idle(desk.ends(source))
    assert len(desk.read(sink)) == 120
    said = log.read_bytes()[before:].decode()
    assert "FATAL" not in said
    assert "ERROR" not in said
