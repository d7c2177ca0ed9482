"""Steps of all cases on real Kafka: wait for queries, read topics, register imports."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ksql.core.errors import QueryFailed
from ksql.formats.schema_registry import Reference
from ksql.kafka.reader import Reader
from qtt.compare import Actual

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.formats.schema_registry import Registry, Schema
    from ksql.kafka.admin import Admin
    from ksql.kafka.settings import KafkaSettings
    from ksql.spark.query.query_supervisor import QuerySupervisor
    from ksql.spark.query.runner import SparkRunner
    from ksql.sql.catalog.model import PersistentQuery

_TIMEOUT_S = 120.0
_FAILURES = 3  # a worker that starts too slowly on a busy machine is started again
_REST_S = 0.1


def await_queries(queries: Iterable[PersistentQuery], runner: SparkRunner, admin: Admin) -> None:
    """Wait until each has processed what its topics hold, the oldest first.

    Raises: QueryFailed.
    """
    for query in queries:
        running = runner.running.get(query.version)
        if running is not None:
            _await(query.id, running, admin)


def _await(query_id: str, running: QuerySupervisor, admin: Admin) -> None:
    goal: dict[str, dict[int, int]] = {}
    for (topic, partition), end in admin.end_offsets(sorted(running.topics)).items():
        goal.setdefault(topic, {})[partition] = end
    deadline = time.monotonic() + _TIMEOUT_S
    while not running.await_idle(goal, _TIMEOUT_S):
        status = running.status()
        if len(status.failures) > _FAILURES or time.monotonic() > deadline:
            reason = status.last_error or status.state.value
            raise QueryFailed(f"{query_id} did not finish: {reason}")
        time.sleep(_REST_S)


def read_topic(kafka: KafkaSettings, topic: str) -> list[Actual]:
    """The log of a topic, partition by partition."""
    records: list[Actual] = []
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        for batch in reader.read_to_end():
            records += [
                Actual(r.key, r.value, r.timestamp, tuple(r.headers or ()), r.partition)
                for r in batch
            ]
    return records


def register_import(registry: Registry, name: str, subject: str, schema: Schema) -> Reference:
    """Register a schema that others import under that name."""
    registry.register(subject, schema)
    registered = registry.latest(subject)
    return Reference(name, subject, registered.version if registered else 1)
