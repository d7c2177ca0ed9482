from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from ksql.core.errors import QueryFailed
from ksql.core.process import lease
from ksql.core.types.windowed import window_key
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.exec.operators.base import BadResult, Record
from ksql.kafka.producers.worker_producer import DeliveryFailed
from ksql.kafka.settings import KafkaSettings
from ksql.spark.task import sink
from ksql.spark.task.chunk import pack_records
from ksql.spark.task.host import StageHost
from ksql.spark.task.partitioner import ANYWHERE
from ksql.spark.task.task_environment import TaskEnvironment
from ksql.spark.task.tasklog import TaskLog

LARGE = b"x" * 100


class SmallTopics:
    """A producer whose topics take no large records; it learns so when it flushes."""

    def __init__(self):
        self.records = []
        self._large = 0

    def expect(self, topic, topic_id):
        pass

    def send(self, topic, records, rejected, partition=ANYWHERE):
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


def task_environment(**differences):
    return TaskEnvironment(
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
    environment = task_environment(log_topic="l", strict=strict)
    task = sink.open_sink(environment, "t", TaskLog(), "task")
    task.write([(None, LARGE, 1, None), (None, b"y", 2, None)])
    return task, producer, environment


def entries(producer):
    return [json.loads(value)["message"] for topic, value in producer.records if topic == "l"]


def test_a_record_that_is_too_large_ends_the_task(monkeypatch):
    task, producer, environment = written(monkeypatch, strict=True)
    refused = pytest.raises(DeliveryFailed, match='cannot write to topic "t"')
    with refused as caught, sink.last_words(environment):
        task.close()
    assert caught.value.detail == "Message size too large"
    assert "ksql.fail.on.production.error" in caught.value.hint
    [entry] = entries(producer)
    assert entry["type"] == 2
    assert entry["productionError"] == {"errorMessage": "Message size too large"}


class Failing:
    """A program of one stage whose sink takes no key."""

    stages = 1
    sink_topic = "t"
    window_bytes = None
    placement = ""

    def last_step(self, records, store, log):
        del records, store, log
        entry = ("serializer", "no such key", BadResult("key", (1,)))
        raise QueryFailed("Exception caught in process", entry=entry)


def load(_plan):
    return Failing()


def test_a_stage_that_fails_reports_why(monkeypatch):
    producer = SmallTopics()
    monkeypatch.setattr(sink, "worker_producer", lambda _config: producer)
    environment = task_environment(buckets=(7,), log_topic="l", log_rows=True, loader=load)
    tester = TwsTester(StageHost(environment, 0))
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

    def expect(self, topic, topic_id):
        pass

    def send(self, topic, records, rejected, partition=ANYWHERE):
        del topic, rejected
        self.done.append("sent")
        return len(records)

    def commit(self, rejected):
        del rejected
        self.done.append("committed")


@pytest.fixture
def leased(tmp_path, monkeypatch):
    """A environment of a leader; and how that ends."""
    file = tmp_path / "lease.json"
    monkeypatch.setattr(lease, "_known", {})
    lease.write(file, "me", lease.now_s() + 60)
    environment = task_environment(lease=lease.Lease(str(file), "me"))

    def lose():
        lease._known.clear()
        lease.write(file, "me", lease.now_s(), lost=True)

    return environment, lose


RECORD = [(None, b"y", 2, None)]


@pytest.mark.parametrize("point", ["write", "close"])
def test_a_task_of_a_server_that_is_not_the_leader_writes_nothing(monkeypatch, leased, point):
    environment, lose = leased
    producer = SmallTopics()
    flushed: list[Any] = []
    producer.flush = flushed.append  # type: ignore[method-assign]  # a stand-in
    monkeypatch.setattr(sink, "worker_producer", lambda _config: producer)
    task = sink.open_sink(environment, "t", TaskLog(), "task")
    if point == "close":
        task.write(RECORD)
    lose()
    with pytest.raises(lease.NotLeader):
        task.write(RECORD) if point == "write" else task.close()
    assert len(producer.records) == (point == "close")
    assert flushed == []


@pytest.mark.parametrize("point", ["write", "close"])
def test_exactly_once_task_of_a_former_leader_writes_nothing(monkeypatch, leased, point):
    environment, lose = leased
    transaction = Transaction()
    monkeypatch.setattr(sink, "begin_batch", lambda *_: transaction)
    task = sink.TransactionSink(environment, "t", TaskLog(), "task", 3)
    if point == "close":
        task.write(RECORD)
    lose()
    with pytest.raises(lease.NotLeader):
        task.write(RECORD) if point == "write" else task.close()
    assert transaction.done == (["sent"] if point == "close" else [])


class Kept:
    """A producer, or a transaction, that keeps what it was given."""

    moved = 0

    def __init__(self):
        self.sent = []
        self.places = []
        self.lookups = []
        self.expected = []

    def expect(self, topic, topic_id):
        self.expected.append((topic, topic_id))

    def partitions(self, topic):
        self.lookups.append(topic)
        return 3

    def send(self, topic, records, rejected, partition=ANYWHERE):
        del rejected
        some = [(topic, record) for record in records]
        self.sent += some
        self.places += [partition] * len(some)
        return len(some)


@pytest.fixture
def kept(monkeypatch):
    """Where all sinks of a test write."""
    sink_ = Kept()
    monkeypatch.setattr(sink, "worker_producer", lambda _config: sink_)
    monkeypatch.setattr(sink, "begin_batch", lambda *_: sink_)
    monkeypatch.setattr(sink, "batch_id", lambda: 1)
    return sink_


CHANGELOG = "_confluent-ksql-default_query_CST_T_1-t-changelog"


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("topic", "headers"),
    [("t", None), (CHANGELOG, [("ksql-changelog-version", b"\x01")])],
)
def test_the_records_of_a_changelog_state_their_version(monkeypatch, exact, topic, headers):
    kept = Kept()
    monkeypatch.setattr(sink, "worker_producer", lambda _config: kept)
    monkeypatch.setattr(sink, "begin_batch", lambda *_: kept)
    environment = task_environment()
    task = (
        sink.TransactionSink(environment, topic, TaskLog(), "task", 1)
        if exact
        else sink.TaskSink(environment, topic, TaskLog())
    )
    task.write([(b"k", b"v", 1, None)])
    assert kept.sent == [(topic, (b"k", b"v", 1, headers))]


@pytest.mark.parametrize("exact", [False, True])
def test_the_partition_of_a_windowed_key_is_that_of_the_key(kept, exact, monkeypatch):
    monkeypatch.setattr(sink, "_AT_ONCE", 100)
    records = [(window_key(b"k%d" % (n % 7), n * 1000), b"v", 1, None) for n in range(109)]
    task = sink.open_sink(task_environment(exactly_once=exact), "t", TaskLog(), "task", 8)
    task.write(iter(records))
    assert task.written == len(kept.sent) == len(records)
    assert {record for _, record in kept.sent} == set(records)
    keys = [record[0][:-8] for _, record in kept.sent]
    assert kept.places == partitions_of(keys, 3)
    assert set(kept.places) == {0, 1, 2}
    assert kept.lookups == ["t"]


@pytest.mark.parametrize("exact", [False, True])
def test_keys_that_are_sorted_out_go_where_the_client_would_send_them(kept, exact, monkeypatch):
    monkeypatch.setattr(sink, "_AT_ONCE", 100)
    records = [(b"k%d" % (n % 7), b"%d" % n, n + 1, None) for n in range(400)]
    task = sink.open_sink(task_environment(exactly_once=exact), "t", TaskLog(), "task", 0)
    task.write(iter(records))
    sent = [record for _, record in kept.sent]
    assert task.written == len(records)
    assert kept.places == partitions_of([record[0] for record in sent], 3)
    assert kept.places == sorted(kept.places, key=kept.places.index)  # one after the other
    for key in {record[0] for record in records}:
        assert [r for r in sent if r[0] == key] == [r for r in records if r[0] == key]


@pytest.mark.parametrize("exact", [False, True])
def test_keys_stay_where_they_are_if_the_topic_has_been_given_partitions(kept, exact):
    """Other tasks write those that would be theirs, which have another part of the state."""
    records = [(b"k%d" % n, b"v", 1, None) for n in range(40)]
    environment = replace(task_environment(exactly_once=exact), partitions=2)
    sink.open_sink(environment, "t", TaskLog(), "task", 0).write(records)
    assert kept.places == partitions_of([record[0] for _, record in kept.sent], 2)
    assert kept.lookups == []


def test_setting_of_the_server_is_no_request(kept):
    own = KafkaSettings("a:1").producer()
    environment = replace(
        task_environment(), producer=tuple((n, str(value)) for n, value in own.items())
    )
    sink.open_sink(environment, "t", TaskLog(), "task", 0).write([(b"k", b"v", 1, None)])
    assert kept.places == partitions_of([b"k"], 3)


def test_a_partitioner_that_a_user_wants_places_all(kept):
    environment = replace(task_environment(), producer=(("partitioner", "consistent"),))
    task = sink.open_sink(environment, "t", TaskLog(), "task", 0)
    task.write([(b"k", b"v", 1, None)])
    assert (kept.places, kept.lookups) == ([ANYWHERE], [])


@pytest.mark.parametrize("exact", [False, True])
def test_of_other_keys_the_client_chooses_it(kept, exact):
    task = sink.open_sink(task_environment(exactly_once=exact), "t", TaskLog(), "task")
    task.write([(b"k", b"v", 1, None)])
    assert (kept.places, kept.lookups) == ([ANYWHERE], [])


@pytest.mark.parametrize(("partition", "placed"), [(2, 2), (3, ANYWHERE)])
def test_a_partition_is_kept_if_the_result_has_it(kept, partition, placed):
    """A source may have been given more partitions than the result has."""
    task = sink.open_sink(task_environment(), "t", TaskLog(), "task")
    task.kept = partition
    task.write([(b"k", b"v", 1, None)])
    assert kept.places == [placed]


@pytest.mark.parametrize("exact", [False, True])
def test_a_producer_is_reported_which_topic_of_that_name_is_meant(kept, exact):
    environment = replace(task_environment(exactly_once=exact), sink_id="id")
    sink.open_sink(environment, "t", TaskLog(), "task").write([(b"k", b"v", 1, None)])
    assert kept.expected == [("t", "id")]
