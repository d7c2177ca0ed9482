"""``processing.guarantee = exactly_once_v2``: whatever dies, each input has one output."""

from __future__ import annotations

import json

import pytest

from ksql.spark.spec import State
from ksql.topics.producer import DeliveryFailed
from ksql.topics.transactions import TaskTransactions, begin_batch, keep
from tests.spark.test_failures import await_state


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


def test_what_a_dead_worker_left_open_is_aborted(desk):
    topic = desk.topic(1)
    dead = TaskTransactions(config(desk), f"{topic}-0", topic)
    assert dead.begin(0)
    write(dead, topic, b"lost")
    dead._producer.flush()
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
    found = desk.read(sink)
    assert len(found) == total
    if kind == "count":
        for key in {record.key for record in found}:
            seen = [json.loads(record.value)["n"] for record in found if record.key == key]
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
