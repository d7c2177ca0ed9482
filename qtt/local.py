"""The driver that runs a case in memory."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Final

from ksql.control import RebuildSupervisor
from ksql.control.engine import Engine, MemoryLog
from ksql.control.statements import HANDLERS, QueryHealth, Request, Services
from ksql.core import Settings
from ksql.exec.memory import MemoryRecords, MemoryRunner, MemoryTopics
from ksql.formats import MemoryRegistry, Reference, subject_name
from qtt import rest
from qtt.compare import Actual
from qtt.driver import (
    FUNCTIONS,
    NOW_MS,
    SERVED,
    DeliveredRecord,
    Driver,
    RawInput,
    awaiting_rebuilds,
)
from qtt.memory import MemoryService, hosted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core import QueryVersion
    from ksql.formats import Registered, Registry, Schema, Side
    from ksql.sql.catalog import Catalog, Topic
    from ksql.sql.syntax import ast
    from qtt.model import QueryTestCase

_REFERENCES: Final = 1_000_000  # their ids begin here


class LocalDriver:
    """A fresh engine whose topics and queries live in memory.

    Each query runs to its end in its turn.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._topics = MemoryTopics()
        self._registry = MemoryRegistry()
        self._runner = MemoryRunner(self._topics, FUNCTIONS, self._registry)
        self._engine = Engine(
            functions=FUNCTIONS,
            topics=self._topics,
            log=MemoryLog(),
            runner=self._runner,
            registry=self._registry,
            now_ms=lambda: NOW_MS,
        )
        self._references = itertools.count(_REFERENCES)
        self._rebuilds = RebuildSupervisor(self._engine, Settings())
        self._services = Services(
            engine=self._engine,
            monitor=NoMonitor(),
            writer=self,
            now_ms=now_ms,
            await_rebuild=self._await_rebuild,
            records=MemoryRecords(self._topics),
        )

    @property
    def catalog(self) -> Catalog:
        """The catalog of this moment."""
        return self._engine.catalog

    @property
    def registry(self) -> Registry:
        """The registry of this case alone."""
        return self._registry

    def refer(self, name: str, schema: Schema) -> Reference:
        """Register a schema that others import; its id is out of the way of the others."""
        self._registry.register(name, schema, next(self._references))
        return Reference(name, name, 1)

    def register(self, topic: str, side: Side, schema: Schema, schema_id: int) -> None:
        self._registry.register(subject_name(topic, side), schema, schema_id)

    def latest(self, topic: str, side: Side) -> Registered | None:
        return self._registry.latest(subject_name(topic, side))

    def create_topic(self, topic: Topic) -> None:
        self._topics.create(topic)

    def execute(self, statement: ast.Statement, text: str, settings: Settings) -> None:
        request = Request(self._services, awaiting_rebuilds(settings), text=text)
        HANDLERS[type(statement)](statement, request)

    def begin(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None,
        headers: object = None,
    ) -> DeliveredRecord:
        """INSERT VALUES' record."""
        del headers
        self._topics.append(topic, key, value, timestamp or 0)
        return DeliveredRecord()

    def feed(self, records: Sequence[RawInput]) -> None:
        for topic, key, value, timestamp, headers in records:
            self._topics.append(topic, key, value, timestamp, headers)
        self._runner.drain(self._engine.catalog.versions)

    def _await_rebuild(self, version: QueryVersion, timeout_s: float) -> str:
        """Let the candidate read what is there, and cut over."""
        self._runner.drain(self._engine.catalog.versions)
        return self._rebuilds.wait(version, timeout_s)

    def records(self, topic: str) -> list[Actual]:
        return [
            Actual(r.key, r.value, r.timestamp, tuple(r.headers or ()))
            for r in self._topics.records.get(topic, [])
        ]

    def close(self) -> None:
        """Nothing outlives the object."""


class LocalServed(LocalDriver):
    """The same behind HTTP: what INSERT VALUES writes passes through the queries at once."""

    patience_s = 0.0
    timeout_s = 120.0

    def __init__(self) -> None:
        super().__init__(now_ms=lambda: int(time.time() * 1000))
        self.url = ""
        self.service = MemoryService(self._engine, self._topics, self._services, Settings(SERVED))

    def begin(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None,
        headers: object = None,
    ) -> DeliveredRecord:
        """Write a record of INSERT VALUES, and let every query process it."""
        arrived = super().begin(topic, key, value, timestamp, headers)
        self.feed([])
        return arrived


class NoMonitor:
    """A monitor of a service that has no running parts."""

    def health(self, query_id: str) -> QueryHealth:
        """Running."""
        del query_id
        return QueryHealth(state="RUNNING")

    def spark_plan(self, query_id: str) -> str:
        del query_id
        return ""

    def skipped(self, query_id: str) -> int:
        del query_id
        return 0

    def application(self, query_id: str) -> str:
        """Nothing."""
        del query_id
        return ""

    def committed(self, query_id: str) -> dict[str, dict[int, int]]:
        """Nothing."""
        del query_id
        return {}

    def topics(self) -> dict[str, list[int]]:
        """Nothing."""
        return {}

    def ends(self, topics: Sequence[str]) -> dict[tuple[str, int], tuple[int, int]]:
        """Nothing."""
        del topics
        return {}


class LocalDrivers:
    """Makes local drivers."""

    default_partitions = 4

    def fresh(self, case_id: str) -> Driver:
        """One per case."""
        del case_id
        return LocalDriver()

    def serve(self, case: QueryTestCase) -> None:
        driver = LocalServed()
        with hosted(driver.service) as driver.url:
            rest.play(case, driver)

    def close(self) -> None:
        """Nothing is shared."""
