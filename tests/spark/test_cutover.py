"""A version is rebuilt next to the one that runs, and takes its place; and back again."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ksql.control.engine.ports import MemoryLog
from ksql.core import ROWS_LOST
from ksql.core.config import Settings
from ksql.core.files import Trash
from ksql.kafka.groups import Groups
from ksql.kafka.topic_difference import TopicDifference
from ksql.spark.checkpoint import checkpoint, cut_over_mark
from ksql.spark.query.cut_over import CutOverCompletion
from ksql.spark.query.preflight import Preflight
from ksql.spark.query.runner import SparkRunner
from ksql.spark.query.spec import RunnerContext, State
from ksql.sql.catalog.model import CutOver, Topic
from ksql.sql.plan import codec
from tests.unit.world import World
from tests.waits import PATIENCE_S, await_true

SERVICE = "default_"
SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='{source}', PARTITIONS=2);"
COUNTED = "CREATE TABLE N WITH (KAFKA_TOPIC='{sink}') AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
GROUP = "CASE WHEN A % 7 < 5 THEN K ELSE 'odd' END"
REGROUPED = (
    f"CREATE TABLE N WITH (KAFKA_TOPIC='{{sink}}') AS SELECT {GROUP} AS K, COUNT(*) AS C "
    f"FROM S WHERE A <> 3 GROUP BY {GROUP};"
)
COPIED = "CREATE STREAM N WITH (KAFKA_TOPIC='{sink}') AS SELECT K, A FROM S;"
RAISED = "CREATE STREAM N WITH (KAFKA_TOPIC='{sink}') AS SELECT K, A + 1000000 AS A FROM S;"
STOPS = "ksql.fail.on.deserialization.error"
GUARANTEES = ["exactly_once_v2", pytest.param("at_least_once", marks=pytest.mark.proof)]


def counted(sent):
    return Counter(key for key, _ in sent)


def regrouped(sent):
    return Counter(key if a % 7 < 5 else "odd" for key, a in sent if a != 3)


class Site:
    """A runner whose queries are planned in memory, over topics in Kafka."""

    def __init__(self, desk, runtime, kafka):
        self.desk, self.kafka, self.runtime = desk, kafka, runtime
        self.groups = Groups(kafka)
        self.source, self.sink = desk.topic(), desk.topic()
        self.directory = desk.folder / "queries"
        self.difference = TopicDifference(kafka, desk.admin)
        self.runner = self.new_runner()
        self.sent: list[tuple[str, int]] = []
        self.stopped = threading.Event()
        self.sending: threading.Thread | None = None

    def new_runner(self, topics=None, **settings):
        client = {name: str(value) for name, value in self.kafka.producer().items()}
        context = RunnerContext(
            settings=Settings({"ksql.query.trigger.interval.ms": "10", **settings}),
            directory=self.directory,
            consumer={"bootstrap.servers": self.kafka.bootstrap},
            producer=client,
            log_topic=None,
            reader=self.desk.by_workers,
            space=f"{self.source}.",
        )
        admin = self.desk.admin
        return SparkRunner(
            self.runtime,
            context,
            admin.end_offsets,
            admin.begin_offsets,
            trash=Trash(self.desk.folder / "aside", lambda: 0),
            new_incarnation=lambda: secrets.token_hex(6),
            end_groups=self.groups.delete,
            preflight=Preflight(self.groups.highest, admin.topic_ids, admin.begin_offsets),
            completion=CutOverCompletion(topics or self.difference, lambda: 1_700_000_000_000),
        )

    def query(self, text, guarantee, number=0, cut_over=None, **settings):
        script = (SOURCE + text).format(source=self.source, sink=self.sink)
        settings |= {"processing.guarantee": guarantee}
        world = World(script, log=MemoryLog(), **settings)
        (query,) = world.catalog.queries.values()
        return replace(query, version_number=number, cut_over=cut_over)

    def candidate(self, query):
        """The query as it is before its cut-over, and after another one's."""
        plan = codec.loads(query.plan)
        hidden = query.version.results_topic(SERVICE)
        self.desk.admin.create(Topic(hidden, 2, 1, {"cleanup.policy": "compact"}))
        return replace(
            query, plan=codec.dumps(replace(plan, sink=replace(plan.sink, topic=hidden)))
        )

    def send(self, count=60):
        rows = [(f"k{n % 7}", n) for n in range(len(self.sent), len(self.sent) + count)]
        self.desk.send(self.source, *((key, json.dumps({"A": a})) for key, a in rows))
        self.sent += rows

    def send_on(self):
        def send():
            while not self.stopped.wait(0.02):
                self.send(20)

        self.stopped.clear()
        self.sending = threading.Thread(target=send)
        self.sending.start()

    def send_no_more(self):
        self.stopped.set()
        if self.sending is not None:
            self.sending.join()
            self.sending = None

    def settle(self, query, runner=None):
        running = (runner or self.runner).running[query.version]
        ends = self.desk.ends(self.source)
        idle = running.await_idle(ends, PATIENCE_S)
        assert idle, (running.status(), running.committed_offsets(), ends)

    def place(self, query):
        return query.version.checkpoint(self.directory)

    def position(self, query):
        position = checkpoint.committed(self.place(query))
        assert position is not None
        assert not checkpoint.half_done(self.place(query))
        return position.offsets

    def last(self, topic):
        """The last records of its keys, by partition."""
        last = {(record.partition, record.key): record.value for record in self.desk.read(topic)}
        return {place: value for place, value in last.items() if value is not None}

    def counts(self, topic):
        return {
            key.decode(): json.loads(value)["C"] for (_, key), value in self.last(topic).items()
        }

    def weight(self, query):
        """The weight of its pool in Spark."""
        name = query.version.spark_name(f"{self.source}.")
        scheduler = self.runtime.session.sparkContext._jsc.sc().taskScheduler()
        return scheduler.rootPool().getSchedulableByName(name).weight()

    def stop_both(self, old, candidate):
        """Bring both together while records arrive."""
        self.send_on()
        try:
            switch = self.runner.stop_at_same_offsets(old, candidate)
        finally:
            self.send_no_more()
        assert self.position(old) == self.position(candidate) == switch.offsets
        return switch

    def check_difference(self, before, rows, there):
        """Check that the first records are the difference of those rows; return it."""
        expected = {place: there.get(place) for place in rows.keys() | there.keys()}
        expected = {place: v for place, v in expected.items() if rows.get(place) != v}
        for partition in range(2):
            differing = {key: v for (p, key), v in expected.items() if p == partition}
            records = [
                (record.key, record.value)
                for record in self.desk.read(self.sink)
                if record.partition == partition and record.offset >= before[partition]
            ]
            assert dict(records[: len(differing)]) == differing
        return expected

    def cut_over(self, old, candidate, new):
        """Cut over, and look at what is written."""
        self.desk.settle(self.sink)  # else it ends where the last transaction begins
        before, rows = self.desk.ends(self.sink)[self.sink], self.last(self.sink)
        there = self.last(candidate.version.results_topic(SERVICE))
        first = self.runner.cut_over(old, new)(PATIENCE_S)
        assert first.problem == ""
        self.settle(new)
        differing = self.check_difference(before, rows, there)
        mark = cut_over_mark.read(self.place(new))
        assert mark is not None
        assert (mark.number, mark.done) == (new.cut_over.number, True)
        assert mark.changed + mark.added + mark.removed == len(differing)
        self.await_deleted(candidate)
        assert self.last(old.version.results_topic(SERVICE)) == rows

    def await_deleted(self, candidate):
        hidden = candidate.version.results_topic(SERVICE)
        await_true("its own topic is gone", lambda: not self.difference.exists(hidden))

    def end(self):
        self.send_no_more()
        self.runner.stop_soon(list(self.runner.running))
        self.groups.close()


@pytest.fixture
def site(desk, runtime, kafka):
    site = Site(desk, runtime, kafka)
    yield site
    site.end()


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_an_aggregate_is_rebuilt_with_other_groups_and_rolled_back(site, guarantee):
    old = site.query(COUNTED, guarantee)
    new = site.query(REGROUPED, guarantee, 17, CutOver(17, 0))
    candidate = site.candidate(replace(new, cut_over=None))
    site.send()
    site.runner.start(old)
    site.settle(old)
    site.runner.start(candidate)
    site.settle(candidate)
    progress = site.runner.progress(candidate.version)
    assert progress is not None
    assert progress.position == progress.ends == site.desk.ends(site.source)
    assert progress.begin == {site.source: {0: 0, 1: 0}}
    assert progress.problem == ""
    await_true(
        "its state is counted", lambda: site.runner.progress(candidate.version).state_bytes > 0
    )

    assert (site.weight(old), site.weight(candidate)) == (4, 1)

    site.stop_both(old, candidate)
    site.cut_over(old, candidate, new)
    assert site.weight(new) == 4
    site.send()
    site.settle(new)
    assert site.counts(site.sink) == regrouped(site.sent)
    assert list(site.runner.running) == [new.version]

    restored = site.candidate(old)
    site.runner.resume([restored])
    site.settle(restored)
    site.stop_both(new, restored)
    site.cut_over(new, restored, replace(old, cut_over=CutOver(33, 17)))
    site.send()
    site.settle(old)
    assert site.counts(site.sink) == counted(site.sent)
    assert site.runner.running[old.version].status().state is State.RUNNING


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_stream_continues_in_its_new_form_without_a_gap(site, guarantee):
    old = site.query(COPIED, guarantee)
    new = site.query(RAISED, guarantee, 17, CutOver(17, 0))
    candidate = site.candidate(replace(new, cut_over=None))
    site.send()
    for query in (old, candidate):
        site.runner.start(query)
        site.settle(query)
    switch = site.stop_both(old, candidate)
    first = site.runner.cut_over(old, new)
    site.send()
    assert first(PATIENCE_S).problem == ""
    site.settle(new)
    before = {
        json.loads(record.value)["A"]
        for record in site.desk.read(site.source)
        if record.offset < switch.offsets[site.source][record.partition]
    }
    expected = sorted(a if a in before else a + 1_000_000 for _, a in site.sent)
    assert sorted(row["A"] for row in site.desk.values(site.sink)) == expected
    site.await_deleted(candidate)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_table_whose_query_fails_is_cut_over_without_it(site, guarantee):
    old = site.query(COUNTED, guarantee, **{STOPS: "true"})
    new = site.query(REGROUPED, guarantee, 17, CutOver(17, 0))
    candidate = site.candidate(replace(new, cut_over=None))
    site.send()
    site.runner.start(old)
    site.settle(old)
    site.desk.send(site.source, ("k1", "no record of the stream"))
    failing = site.runner.running[old.version]
    await_true("the query fails", lambda: failing.status().state is State.ERROR)
    site.send()
    site.runner.start(candidate)
    site.settle(candidate)
    switch = site.runner.stop_at_same_offsets(old, candidate)
    assert "it did not come to the position of the new one" in switch.left
    assert switch.offsets == site.position(candidate) == site.desk.ends(site.source)
    site.cut_over(old, candidate, new)
    site.send()
    site.settle(new)
    assert site.counts(site.sink) == regrouped(site.sent)
    assert list(site.runner.running) == [new.version]


class Failing:
    """The topics of results, which fail once at one of the steps."""

    def __init__(self, topics, step):
        self.topics, self.step, self.failed = topics, step, False

    def __getattr__(self, name):
        return getattr(self.topics, name)

    def equalize(self, origin, target, writing, check, **how):
        equalized = self.topics.equalize(origin, target, writing, check, **how)
        done = "difference" if origin.endswith("-changelog") else "snapshot"
        if done == self.step and not self.failed:
            self.failed = True
            raise ConnectionResetError("the server dies")
        return equalized


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("snapshot", marks=pytest.mark.proof),
        "difference",
        pytest.param("mark", marks=pytest.mark.proof),
    ],
)
def test_a_cut_over_that_is_interrupted_is_completed_by_the_next_launch(site, step):
    guarantee = "exactly_once_v2"
    old = site.query(COUNTED, guarantee)
    new = site.query(REGROUPED, guarantee, 17, CutOver(17, 0))
    candidate = site.candidate(replace(new, cut_over=None))
    site.send()
    for query in (old, candidate):
        site.runner.start(query)
        site.settle(query)
    site.stop_both(old, candidate)
    rows = site.last(site.sink)
    topics = Failing(site.difference, step)
    if step == "mark":  # between mark and launch
        spec = site.runner._spec(new)
        CutOverCompletion(topics).complete(new, spec, SERVICE, {new.version})
        assert site.last(site.sink) != rows
    site.runner.stop_soon([old.version, candidate.version])
    another = site.new_runner(topics)  # on another server
    another.resume([new])
    await_true("it runs", lambda: another.running[new.version].status().state is State.RUNNING)
    site.settle(new, another)
    assert topics.failed is (step != "mark")
    assert site.last(old.version.results_topic(SERVICE)) == rows
    assert site.counts(site.sink) == regrouped(site.sent)
    another.stop_soon([new.version])
    ends = site.desk.ends(site.sink)
    another.resume([new])
    site.settle(new, another)
    assert site.desk.ends(site.sink) == ends
    another.stop_soon([new.version])


def test_rows_that_a_candidates_topic_lacks_are_not_deleted_from_the_result(site):
    """Somebody deletes its first records, and then the topic, which is made again."""
    old = site.query(COUNTED, "exactly_once_v2")
    candidate = site.candidate(site.query(REGROUPED, "exactly_once_v2", 17))
    site.send()
    for query in (old, candidate):
        site.runner.start(query)
        site.settle(query)
    hidden = candidate.version.results_topic(SERVICE)
    site.desk.admin.alter_configs(hidden, {"cleanup.policy": "compact,delete"})  # else it keeps all
    client, first = AdminClient(site.kafka.admin()), TopicPartition(hidden, 0, 1)
    client.delete_records([first])[first].result(PATIENCE_S)
    with pytest.raises(ROWS_LOST.base, match="has lost its first records"):
        site.runner.stop_at_same_offsets(old, candidate)
    site.desk.admin.delete(hidden)
    site.await_deleted(candidate)
    site.candidate(candidate)
    with pytest.raises(ROWS_LOST.base, match="was deleted and recreated"):
        site.runner.stop_at_same_offsets(old, candidate)
    site.send()
    site.settle(old)
    assert site.counts(site.sink) == counted(site.sent)


def test_a_query_that_was_ended_within_its_batch_writes_no_more(site):
    """Its tasks' processes would write for seconds, next to whatever writes to the topic then."""
    query = site.query(COPIED, "at_least_once")
    for _ in range(10):
        site.send(60_000)
    site.runner.start(query)

    def written():
        return sum(site.desk.ends(site.sink).get(site.sink, {}).values())

    running = site.runner.running[query.version]
    assert running.await_first_attempt(60)  # its first records may come before its start is over
    await_true("it writes", lambda: written() > 0)
    running.lock_start()
    assert running.interrupt()
    time.sleep(1.0)  # a look at the right, and what was sent before
    there = written()
    assert there < len(site.sent)
    time.sleep(2.0)
    assert written() == there
    running.resume()
    site.settle(query)
    assert {row["A"] for row in site.desk.values(site.sink)} == {a for _, a in site.sent}


def test_versions_that_have_ended_at_the_same_offsets_may_continue(site):
    old = site.query(COUNTED, "at_least_once")
    candidate = site.candidate(site.query(REGROUPED, "at_least_once", 17))
    site.send()
    for query in (old, candidate):
        site.runner.start(query)
        site.settle(query)
    site.stop_both(old, candidate)
    site.runner.resume_both(old, candidate)
    site.send()
    for query in (old, candidate):
        site.settle(query)
    assert site.counts(site.sink) == counted(site.sent)
    assert site.counts(candidate.version.results_topic(SERVICE)) == regrouped(site.sent)
    site.stop_both(old, candidate)
    site.runner.stop_soon([candidate.version])
    site.runner.forget(candidate.version)
    site.send()
    site.settle(old)
    assert site.counts(site.sink) == counted(site.sent)
