"""Drives one REST case on a shared server and real Kafka: waits, reads topics, imports schemas."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from ksql.app import KsqlService
from ksql.core import QueryFailed, Settings
from ksql.formats import Reference, subject_name
from ksql.kafka import KafkaTopics, Reader
from ksql.registry import TOPIC as REGISTRY_TOPIC
from qtt.compare import Actual
from qtt.driver import SERVED, RawInput
from qtt.memory import ANYWHERE_FREE
from server.app import behind_http
from server.listeners import bind, parse_listeners, url_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ksql.formats import Registered, Registry, Schema, Side
    from ksql.kafka import Admin, KafkaSettings
    from ksql.spark.query import QuerySupervisor, SparkRunner
    from ksql.sql.catalog import Catalog, PersistentQuery, Topic
    from qtt.spark import SparkDrivers


_SETTINGS: Final = {
    **SERVED,
    "ksql.query.trigger.interval.ms": "10",
    "ksql.logging.processing.topic.auto.create": "false",
}


class HttpDriver:
    """The requirements of a REST case besides the server's own interface."""

    patience_s = 90.0
    timeout_s = 180.0

    def __init__(self, shared: SparkDrivers, service: KsqlService, url: str) -> None:
        self.url = url
        self._shared = shared
        self._service = service
        self._created: set[str] = set()

    @property
    def catalog(self) -> Catalog:
        return self._service.node.engine.catalog

    @property
    def registry(self) -> Registry:
        """The server's own registry."""
        return self._service.node.registry

    def refer(self, name: str, schema: Schema) -> Reference:
        return register_import(self.registry, name, name, schema)

    def register(self, topic: str, side: Side, schema: Schema, schema_id: int) -> None:
        """Register a schema; a registry gives the ids itself."""
        del schema_id
        self.registry.register(subject_name(topic, side), schema)

    def latest(self, topic: str, side: Side) -> Registered | None:
        return self.registry.latest(subject_name(topic, side))

    def create_topic(self, topic: Topic) -> None:
        self._created.add(topic.name)
        KafkaTopics(self._shared.admin).create(topic)

    def feed(self, records: Sequence[RawInput]) -> None:
        """Write the records and let every query process them."""
        self._shared.write(records)
        await_queries(self.catalog.queries.values(), self._service.node.runner, self._shared.admin)

    def records(self, topic: str) -> list[Actual]:
        return read_topic(self._shared.kafka, topic)

    def topics(self) -> set[str]:
        """All that the case has made."""
        sources = self.catalog.sources.values()
        names = {source.topic for source in sources} | self._created
        names |= {s.materialization.topic for s in sources if s.materialization is not None}
        return names | {self._service.node.log.topic}


@contextmanager
def served(shared: SparkDrivers, number: int, directory: Path) -> Iterator[HttpDriver]:
    """A fresh server behind HTTP; gone with all that it made at the end."""
    registry_topic = f"_schemas_case{number}"  # a server that writes to one shuts others out
    settings = {
        **_SETTINGS,
        "ksql.state.dir": str(directory),
        "ksql.service.id": f"case{number}_",
        REGISTRY_TOPIC: registry_topic,
    }
    created = {registry_topic}
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        sockets = bind(parse_listeners(ANYWHERE_FREE))
        for sock in sockets:
            stack.callback(sock.close)
        service = KsqlService(
            Settings(settings), broker=shared.kafka.bootstrap, runtime=shared.runtime
        )
        stack.callback(lambda: KafkaTopics(shared.admin).delete(sorted(created)))
        stack.callback(service.stop)  # a query whose topics are gone does not stop at once
        service.start()
        driver = HttpDriver(shared, service, url_of(sockets[0]))
        stack.callback(lambda: created.update(driver.topics()))
        stack.enter_context(behind_http(service, sockets))
        yield driver


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
