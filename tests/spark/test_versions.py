"""Two versions of one query side by side: own checkpoint, state, transactions and groups."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from dataclasses import replace

import pytest

from ksql.control.engine.ports import MemoryLog
from ksql.core.config import Settings
from ksql.core.files import Trash
from ksql.kafka.groups import Groups
from ksql.spark.checkpoint import incarnations
from ksql.spark.checkpoint.checkpoint import committed
from ksql.spark.query.preflight import Preflight
from ksql.spark.query.runner import SparkRunner
from ksql.spark.query.spec import RunnerContext, State
from tests.unit.world import World
from tests.waits import PATIENCE_S, await_true

SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='{source}', PARTITIONS=2);"
COUNTED = "CREATE TABLE N WITH (KAFKA_TOPIC='{sink}') AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
SUMMED = (
    "CREATE TABLE N WITH (KAFKA_TOPIC='{sink}') AS SELECT A % 3 AS G, SUM(A) AS T, COUNT(*) AS C "
    "FROM S GROUP BY A % 3;"
)
NUMBER = 17
EACH = 60


class Site:
    """A runner whose queries are planned in memory, over topics in Kafka."""

    def __init__(self, desk, runtime, kafka):
        self.desk = desk
        self.groups = Groups(kafka)
        self.source, self.sinks = desk.topic(), [desk.topic(), desk.topic()]
        self.directory = desk.folder / "queries"
        client = {name: str(value) for name, value in kafka.producer().items()}
        context = RunnerContext(
            settings=Settings({"ksql.query.trigger.interval.ms": "10"}),
            directory=self.directory,
            consumer={"bootstrap.servers": kafka.bootstrap},
            producer=client,
            log_topic=None,
            reader=desk.by_workers,
            space=f"{self.source}.",
        )
        self.runner = SparkRunner(
            runtime,
            context,
            desk.admin.end_offsets,
            desk.admin.begin_offsets,
            trash=Trash(desk.folder / "aside", lambda: 0),
            new_incarnation=lambda: secrets.token_hex(6),
            end_groups=self.groups.delete,
            preflight=Preflight(
                self.groups.highest, desk.admin.topic_ids, desk.admin.begin_offsets
            ),
        )
        self.first = self._query(COUNTED, self.sinks[0])
        self.second = replace(self._query(SUMMED, self.sinks[1]), version_number=NUMBER)
        self.sent: list[tuple[str, int]] = []

    def _query(self, text, sink):
        script = (SOURCE + text).format(source=self.source, sink=sink)
        settings = {"processing.guarantee": "exactly_once_v2", "cache.max.bytes.buffering": "0"}
        world = World(script, log=MemoryLog(), **settings)
        (query,) = world.catalog.queries.values()
        return query

    def send(self):
        rows = [(f"k{n % 7}", n) for n in range(len(self.sent), len(self.sent) + EACH)]
        self.sent += rows
        self.desk.send(self.source, *((key, json.dumps({"A": a})) for key, a in rows))

    def settle(self, query):
        running = self.runner.running[query.version]
        ends = self.desk.ends(self.source)
        idle = running.await_idle(ends, PATIENCE_S)
        assert idle, (running.status(), running.committed_offsets(), ends, running.totals())

    def incarnation(self, query):
        incarnation = incarnations.incarnation_of(query.version.checkpoint(self.directory))
        assert incarnation is not None
        return incarnation.name

    def names(self, query):
        """The pattern of its groups, which are its transactional ids."""
        return query.version.groups("default_", self.incarnation(query))

    def counts(self, sink):
        """All counts of each key, in their order."""
        counts = defaultdict(list)
        for record in self.desk.read(sink):
            counts[record.key].append(json.loads(record.value)["C"])
        return counts

    def check_counts(self):
        """Each record is counted once: no count is missing and none comes twice."""
        keys = {key for key, _ in self.sent}
        assert self.counts(self.sinks[0]) == {
            key.encode(): list(range(1, sum(k == key for k, _ in self.sent) + 1)) for key in keys
        }

    def check_sums(self, sent):
        counts = self.counts(self.sinks[1])
        groups = [sum(a % 3 == group for _, a in sent) for group in range(3)]
        assert sorted(counts.values()) == sorted(list(range(1, n + 1)) for n in groups)
        totals = {}
        for record in self.desk.read(self.sinks[1]):
            totals[record.key] = json.loads(record.value)["T"]
        sums = [sum(a for _, a in sent if a % 3 == group) for group in range(3)]
        assert sorted(totals.values()) == sorted(sums)


@pytest.fixture
def site(desk, runtime, kafka):
    site = Site(desk, runtime, kafka)
    yield site
    site.runner.stop_soon(list(site.runner.running))
    site.groups.close()


def test_two_versions_of_a_query_run_side_by_side_each_exactly_once(site):
    first, second = site.first, site.second
    assert first.id == second.id
    assert first.plan != second.plan
    for query in (first, second):
        site.runner.start(query)
    for restarted in (second, first, second):
        site.send()
        site.runner.running[restarted.version].stop(graceful=False)  # within a batch, perhaps
        site.runner.stop(restarted.version)
        site.runner.resume([restarted])
    for query in (first, second):
        site.settle(query)
        assert site.runner.running[query.version].status().state is State.RUNNING
    site.check_counts()
    site.check_sums(site.sent)

    places = [query.version.checkpoint(site.directory) for query in (first, second)]
    assert sorted(site.directory.iterdir()) == sorted(places)
    assert [place.name for place in places] == [first.id, f"{first.id}.v{NUMBER}"]
    assert all((place / "state").is_dir() for place in places)
    assert site.incarnation(first) != site.incarnation(second)
    for query, place in zip((first, second), places, strict=True):
        position = committed(place)
        assert position is not None
        assert site.groups.highest(site.names(query)) == position.batch + 1
    assert site.runner.application(first.version) != site.runner.application(second.version)


def test_a_version_that_ends_leaves_the_other_one_untouched(site):
    first, second = site.first, site.second
    for query in (first, second):
        site.runner.start(query)
    site.send()
    for query in (first, second):
        site.settle(query)
    kept, groups = site.incarnation(first), site.names(second)
    running = site.runner.running[first.version]
    sent = list(site.sent)
    site.runner.stop_soon([second.version])
    site.send()
    site.settle(first)
    site.runner.forget(second.version)
    await_true("its groups are gone", lambda: site.groups.highest(groups) == 0)
    assert list(site.directory.iterdir()) == [first.version.checkpoint(site.directory)]
    assert site.runner.running == {first.version: running}
    assert site.groups.highest(site.names(first)) > 0
    site.runner.stop(first.version)
    site.send()
    site.runner.resume([first])  # its checkpoint fits to Kafka still
    site.settle(first)
    assert site.incarnation(first) == kept
    site.check_counts()
    site.check_sums(sent)
