from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined] # names it only passes on

from ksql.core.process.jars import jar_files
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.kafka.admin import Admin
from ksql.kafka.producers.sender import Sender
from ksql.kafka.ranges import READING
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.spark.query.spec import QuerySpec, RetryPolicy
from ksql.spark.session.jvm import SparkSettings
from ksql.spark.session.runtime import SparkRuntime
from ksql.sql.catalog.model import Topic
from tests.spark import programs
from tests.waits import PATIENCE_S, await_true

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def kafka(broker):
    return KafkaSettings(broker.bootstrap, timeout_s=PATIENCE_S)


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory):
    return SparkSettings(
        state_dir=tmp_path_factory.mktemp("state"), jars=jar_files("spark"), master="local[2]"
    )


@pytest.fixture(scope="session")
def runtime(kafka, spark_settings):
    """One Spark session for all tests."""
    admin = Admin(kafka)
    runtime = SparkRuntime(spark_settings, lambda: admin, RetryPolicy(initial_ms=200, max_ms=400))
    runtime.open()
    yield runtime
    runtime.close(graceful=False)


class Desk:
    """What a test does with Kafka and the runtime."""

    def __init__(self, kafka: KafkaSettings, folder: Path) -> None:
        self.kafka = kafka
        self.admin = Admin(kafka)
        self.sender = Sender(kafka)
        self.folder = folder

    def topic(self, partitions: int = 2) -> str:
        name = f"t-{uuid.uuid4().hex[:8]}"
        self.admin.create(Topic(name, partitions))
        return name

    def send(self, topic, *pairs, **more):
        for key, value in pairs:
            self.sender.send(topic, key.encode(), value.encode(), **more)
        self.sender.flush()

    def ends(self, *topics):
        offsets: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in self.admin.end_offsets(topics).items():
            offsets.setdefault(topic, {})[partition] = offset
        return offsets

    def settle(self, topic):
        """Wait for the marks of transactions: Kafka writes them after it has answered."""
        await_true(
            f"no transaction on {topic} is open",
            lambda: (
                self.admin.end_offsets([topic]) == self.admin.end_offsets([topic], committed=False)
            ),
        )

    def read(self, topic):
        """All that is committed; nothing may be open."""
        self.settle(topic)
        return self.read_beside(topic)

    def read_beside(self, topic):
        """All that is committed by now, whatever is open."""
        with Reader(self.kafka) as reader:
            reader.assign_topics([topic])
            return [record for batch in reader.read_to_end() for record in batch]

    def grow(self, topic, partitions):
        admin = AdminClient(self.kafka.admin())
        for future in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result()
        await_true("they are there", lambda: self.admin.partitions(topic) >= partitions)

    def values(self, topic):
        return [json.loads(record.value) for record in self.read(topic)]

    @property
    def by_workers(self):
        """The configuration with which the workers read, as they do by default."""
        return {name: str(value) for name, value in self.kafka.consumer(**READING).items()}

    def spec(self, kind, source, sink, *, name="q", **plan_and_spec):
        fields = {k: plan_and_spec.pop(k) for k in list(plan_and_spec) if k in SPEC_FIELDS}
        plan = {"kind": kind, "sink": sink, "id": name, **plan_and_spec}
        sources = [source] if isinstance(source, str) else list(source)
        java = {"bootstrap.servers": self.kafka.bootstrap}
        fields.setdefault("reader", self.by_workers)
        return QuerySpec(
            version=QueryVersion(QueryId(f"{name}_{self.folder.name}")),
            plan_json=json.dumps(plan),
            topics=fields.pop("topics", dict.fromkeys(sources, "earliest")),
            checkpoint=self.folder / name,
            stages={"count": 1, "count2": 2}.get(kind, 0),
            partitions=2,
            consumer=fields.pop("consumer", java),
            producer={k: str(v) for k, v in self.kafka.producer().items()},
            loader=programs.load,
            **fields,
        )


SPEC_FIELDS = set(QuerySpec.__dataclass_fields__)


@pytest.fixture
def desk(kafka, tmp_path):
    return Desk(kafka, tmp_path)


@pytest.fixture
def start(runtime):
    """Start queries that are stopped with the test."""
    started = []

    def run(spec):
        query = runtime.host(spec.place, lambda: spec)
        runtime.begin(query)
        started.append(query)
        return query

    yield run
    for query in started:
        query.stop(graceful=False)
