"""What follows the tables: it says what it lacks, and goes on whatever happens."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from ksql.base.aside import Aside
from ksql.query import materialize
from ksql.query.materialize import Materializer
from ksql.query.retention import retention_ms
from tests.unit.world import World

PATIENCE_S = 30.0
SQL = (
    "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);"
    "CREATE TABLE T AS SELECT K, COUNT(*) N FROM S GROUP BY K;"
    "CREATE TABLE W AS SELECT K, COUNT(*) N FROM S"
    " WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 2 HOURS, GRACE PERIOD 0 SECONDS) GROUP BY K;"
)


class Kafka:
    """Topics with records that a test releases one by one; reads may be made to fail."""

    def __init__(self) -> None:
        self.ends = {("T", 0): 0, ("T", 1): 0, ("W", 0): 0, ("W", 1): 0}
        self.readable = threading.Semaphore(0)
        self.failures: list[Exception] = []
        self.failed = threading.Event()

    # admin

    def topics(self):
        counts: dict[str, int] = {}
        for topic, partition in self.ends:
            counts[topic] = max(counts.get(topic, 0), partition + 1)
        return {name: SimpleNamespace(partitions=count) for name, count in counts.items()}

    def begin_offsets(self, topics):
        return {place: 0 for place in self.ends if place[0] in topics}

    def end_offsets(self, topics):
        return {place: end for place, end in self.ends.items() if place[0] in topics}

    # reader

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def assign(self, offsets):
        self.positions = dict(offsets)

    def poll(self, timeout_s):
        if self.failures:
            raise self.failures.pop()
        if not self.readable.acquire(timeout=0.01):
            return []
        behind = [place for place, at in self.positions.items() if at < self.ends[place]]
        if not behind:
            return []
        topic, partition = place = min(behind)
        at = self.positions[place]
        self.positions[place] = at + 1
        key = b"%d" % at + (b"\x00" * 8 if topic == "W" else b"")
        return [SimpleNamespace(topic=topic, partition=partition, key=key, value=b"v", timestamp=0)]


@pytest.fixture
def kafka(monkeypatch):
    found = Kafka()
    monkeypatch.setattr(materialize, "Reader", lambda _settings: found)
    monkeypatch.setattr(materialize, "Admin", lambda _settings: found)
    monkeypatch.setattr(materialize, "_REST_S", 0.01)
    return found


@pytest.fixture
def world():
    return World(SQL)


@pytest.fixture
def follower(kafka, world, tmp_path):
    running = Materializer(None, tmp_path / "stores", Aside(tmp_path / "aside", lambda: 0))
    running.follow(world.engine.catalog)
    yield running
    running.close()


def table(world, name):
    return world.engine.catalog.sources[name].queryable()


def test_a_table_that_is_being_filled_says_how_much_it_lacks(kafka, follower, world):
    kafka.ends["T", 1] = 3
    follower.start()
    source = table(world, "T")
    while follower.table(source) is None:
        time.sleep(0.01)
    assert follower.filled(source) is None
    assert follower.missing(source) == 3
    for _ in range(3):
        kafka.readable.release()
    found = follower.await_table(source, {}, PATIENCE_S)
    assert found is not None
    assert sum(1 for store in found.stores.values() for _ in store.scan()) == 3
    assert follower.missing(source) == 0
    kafka.ends["T", 1] = 9  # what comes later is news, not a lack
    assert follower.filled(source) is not None


@pytest.mark.parametrize("error", [KeyError(("T", 1)), RuntimeError("x"), OSError(28, "full")])
def test_whatever_fails_is_shown_and_tried_again(kafka, follower, world, error, caplog):
    kafka.ends["T", 0] = 2
    kafka.failures = [error] * 3
    follower.start()
    kafka.readable.release()
    kafka.readable.release()
    found = follower.await_table(table(world, "T"), {}, PATIENCE_S)
    assert found is not None
    assert follower.problem == ""
    assert [r.message for r in caplog.records] == ["materializer_rests"]


def test_a_topic_with_fewer_partitions_than_before(kafka, follower, world):
    follower.start()
    source = table(world, "T")
    found = follower.await_table(source, {}, PATIENCE_S)
    assert len(found.stores) == 2
    del kafka.ends["T", 1]
    kafka.failures = [KeyError(("T", 1))]
    while len(found.stores) == 2:
        found = follower.await_table(source, {}, PATIENCE_S)
        assert found is not None


def test_a_topic_that_is_gone_keeps_no_other_table_from_being_read(kafka, follower, world):
    del kafka.ends["T", 0], kafka.ends["T", 1]
    follower.start()
    assert follower.await_table(table(world, "W"), {}, PATIENCE_S) is not None
    assert follower.filled(table(world, "T")) is None


def test_the_retention_is_that_of_the_windows(world, kafka, follower):
    catalog = world.engine.catalog
    assert retention_ms(catalog, table(world, "W")) == 2 * 3_600_000
    assert retention_ms(catalog, table(world, "T")) is None
    follower.start()
    found = follower.await_table(table(world, "W"), {}, PATIENCE_S)
    assert {type(store).__name__ for store in found.stores.values()} == {"Retained"}
