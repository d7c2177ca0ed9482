from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from ksql.base import lease
from ksql.base.errors import QueryFailed
from ksql.kafka.producer import DeliveryFailed
from ksql.processors.base import BadResult, Record
from ksql.spark import sink
from ksql.spark.chunk import pack_records
from ksql.spark.host import StageHost
from ksql.spark.shipment import Shipment
from ksql.spark.tasklog import TaskLog

LARGE = b"x" * 100


class SmallTopics:
    """A producer whose topics take no large records; it learns so when it flushes."""

    def __init__(self):
        self.records = []
        self._large = 0

    def send(self, topic, records, rejected):
        del rejected
        records = list(records)
        fitting = [record for record in records if record[1] != LARGE]
        self._large += len(records) - len(fitting)
        self.records += [(topic, record[1]) for record in fitting]
        return len(fitting)

    def flush(self, rejected):
        large, self._large = self._large, 0
        for _ in range(large):
            rejected("Message size too large")


def shipment(**differences):
    return Shipment(
        query_id="Q_1",
        application_id="app",
        plan_json="",
        topics=(),
        producer=(),
        **differences,
    )


def written(monkeypatch, *, strict):
    producer = SmallTopics()
    monkeypatch.setattr(sink, "worker_producer", lambda _config: producer)
    ship = shipment(log_topic="l", strict=strict)
    task = sink.open_sink(ship, "t", TaskLog(), "task")
    task.write([(None, LARGE, 1, None), (None, b"y", 2, None)])
    return task, producer, ship


def entries(producer):
    return [json.loads(value)["message"] for topic, value in producer.records if topic == "l"]


def test_a_record_that_is_too_large_ends_the_task(monkeypatch):
    task, producer, ship = written(monkeypatch, strict=True)
    refused = pytest.raises(DeliveryFailed, match='cannot write to topic "t"')
    with refused as found, sink.last_words(ship):
        task.close()
    assert found.value.detail == "Message size too large"
    assert "ksql.fail.on.production.error" in found.value.hint
    [entry] = entries(producer)
    assert entry["type"] == 2
    assert entry["productionError"] == {"errorMessage": "Message size too large"}


class Failing:
    """A program of one stage whose sink takes no key."""

    stages = 1
    sink_topic = "t"

    def last_step(self, records, store, log):
        del records, store, log
        entry = ("serializer", "no such key", BadResult("key", (1,)))
        raise QueryFailed("Exception caught in process", entry=entry)


def load(_plan):
    return Failing()


def test_a_stage_that_fails_tells_why(monkeypatch):
    producer = SmallTopics()
    monkeypatch.setattr(sink, "worker_producer", lambda _config: producer)
    ship = shipment(buckets=(7,), log_topic="l", log_rows=True, loader=load)
    tester = TwsTester(StageHost(ship, 0))
    chunk = pack_records([Record(0, b"k", (1,), 0, offset=0)], 0, 1)
    with pytest.raises(QueryFailed):
        tester.test(7, [Row(B=7, ERRORS=0, BLOB=chunk)])
    [entry] = entries(producer)
    assert entry["serializationError"] == {
        "target": "key",
        "errorMessage": "Error serializing message to topic: t",
        "record": "[1]",
        "cause": ["no such key"],
        "topic": "t",
    }


def test_it_is_left_out_if_the_settings_say_so(monkeypatch):
    task, producer, _ = written(monkeypatch, strict=False)
    task.close()
    assert ("t", b"y") in producer.records
    assert [entry["type"] for entry in entries(producer)] == [2]


class Transaction:
    """A task's transaction that notes what becomes of it."""

    def __init__(self):
        self.done = []

    def send(self, topic, records, rejected):
        del topic, rejected
        self.done.append("sent")
        return len(records)

    def commit(self, rejected):
        del rejected
        self.done.append("committed")


@pytest.fixture
def leased(tmp_path, monkeypatch):
    """A ship of a server in charge; and how that ends."""
    file = tmp_path / "lease.json"
    monkeypatch.setattr(lease, "_known", {})
    lease.write(file, "me", lease.now_s() + 60)
    ship = shipment(lease=lease.Lease(str(file), "me"))

    def lose():
        lease._known.clear()
        lease.write(file, "me", lease.now_s(), lost=True)

    return ship, lose


RECORD = [(None, b"y", 2, None)]


@pytest.mark.parametrize("point", ["write", "close"])
def test_a_task_of_a_server_that_is_not_in_charge_writes_nothing(monkeypatch, leased, point):
    ship, lose = leased
    producer = SmallTopics()
    flushed: list[Any] = []
    producer.flush = flushed.append  # type: ignore[method-assign]  # a stand-in
    monkeypatch.setattr(sink, "worker_producer", lambda _config: producer)
    task = sink.open_sink(ship, "t", TaskLog(), "task")
    if point == "close":
        task.write(RECORD)
    lose()
    with pytest.raises(lease.NotInCharge):
        task.write(RECORD) if point == "write" else task.close()
    assert len(producer.records) == (point == "close")
    assert flushed == []


@pytest.mark.parametrize("point", ["write", "close"])
def test_so_does_one_that_writes_exactly_once(monkeypatch, leased, point):
    ship, lose = leased
    transaction = Transaction()
    monkeypatch.setattr(sink, "begin_batch", lambda *_: transaction)
    task = sink.TransactionSink(ship, "t", TaskLog(), "task", 3)
    if point == "close":
        task.write(RECORD)
    lose()
    with pytest.raises(lease.NotInCharge):
        task.write(RECORD) if point == "write" else task.close()
    assert transaction.done == (["sent"] if point == "close" else [])
