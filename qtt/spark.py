"""Cases on real Kafka and Spark: one broker and one session for all, cases side by side.

Every case has topics of its own: their names get a prefix on the way in, and lose it in messages on
the way out.
"""

from __future__ import annotations

import itertools
import secrets
import shutil
import tempfile
import threading
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ksql.control import RebuildSupervisor
from ksql.control.engine import Engine, MemoryLog
from ksql.control.statements import HANDLERS, Request, Services
from ksql.core import KsqlError, QueryFailed, Settings, Trash
from ksql.core.process import jar_files
from ksql.formats import Reference, subject_name
from ksql.kafka import Admin, KafkaSettings, KafkaTopics, TopicDifference
from ksql.kafka.embedded import EmbeddedBroker
from ksql.kafka.producers import SharedSender
from ksql.registry import ReferenceExists, kafka_log, open_registry
from ksql.spark.query import CutOverCompletion, RunnerContext, SparkRunner
from ksql.spark.session import SparkRuntime, SparkSettings
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from qtt import rest
from qtt.driver import FUNCTIONS, NOW_MS, SOURCES, Driver, RawInput, awaiting_rebuilds, in_runs
from qtt.http_driver import await_queries, read_topic, register_import, served
from qtt.local import NoMonitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ksql.control.statements import Delivery
    from ksql.core import Headers, QueryVersion
    from ksql.formats import Registered, Registry, Schema, Side
    from ksql.sql.catalog import Catalog, PersistentQuery, Topic
    from qtt.compare import Actual
    from qtt.model import QueryTestCase

_IDS = frozenset({"KEY_SCHEMA_ID", "VALUE_SCHEMA_ID"})
_ANSWER_S = 30.0
_SETTINGS = {"ksql.query.trigger.interval.ms": "10"}


class SparkDrivers:
    """The broker and the session; started at once, stopped by ``close``."""

    default_partitions = 1

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="qtt-"))
        self._broker = EmbeddedBroker(self._directory / "broker")
        self._numbers = itertools.count()
        self._serving = threading.Lock()
        try:
            self.kafka = KafkaSettings.from_properties({"bootstrap.servers": self._broker.start()})
            self.registry = open_registry(
                Settings(), self._directory, lambda: kafka_log(Settings(), self.kafka)
            )
            _compare_nothing(self.registry.settings.url)
            self.admin = Admin(self.kafka)
            self.runtime = SparkRuntime(
                SparkSettings(state_dir=self._directory, jars=jar_files("spark")),
                lambda: self.admin,
            )
            self.runtime.open()
        except BaseException:
            self.close()
            raise
        self.sender = SharedSender(self.kafka)

    def fresh(self, case_id: str) -> Driver:
        """A driver with topics and checkpoints of its own."""
        del case_id
        number = next(self._numbers)
        return SparkDriver(self, f"q{number}.", self._directory / "cases" / str(number))

    def serve(self, case: QueryTestCase) -> None:
        """One at a time: their topics have the names that the cases give."""
        number = next(self._numbers)
        self.sender.renew()
        with self._serving, served(self, number, self._directory / "cases" / str(number)) as driver:
            rest.play(case, driver)

    def write(self, records: Iterable[RawInput]) -> None:
        """Write the records in their order, and wait until all are there."""
        deliveries: list[Delivery] = []
        for topic, key, value, timestamp, headers in records:
            if timestamp == 0:  # goes by a producer of its own, which overtakes
                _wait(deliveries)
            deliveries.append(self.sender.begin(topic, key, value, timestamp, headers))
        _wait(deliveries)

    def close(self) -> None:
        """End the session and the broker, remove the directory."""
        if hasattr(self, "sender"):
            self.sender.close()
        if hasattr(self, "runtime"):
            self.runtime.close(graceful=False)
        if hasattr(self, "registry"):
            self.registry.close()
        self._broker.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _wait(deliveries: list[Delivery]) -> None:
    for delivery in deliveries:
        delivery.wait()
    deliveries.clear()


def _compare_nothing(url: str) -> None:
    """Make the registry accept every schema, as the cases' own registry did."""
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{url}/config",
        b'{"compatibility":"NONE"}',
        {"Content-Type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=_ANSWER_S):  # noqa: S310 - our own server
        pass


class SparkDriver:
    """A fresh engine whose queries run on the shared session."""

    def __init__(self, shared: SparkDrivers, prefix: str, directory: Path) -> None:
        self._shared = shared
        self._prefix = prefix
        self._directory = directory
        self._settings = {**_SETTINGS, "ksql.service.id": prefix}  # its name in hidden topics
        context = RunnerContext(
            settings=Settings(self._settings),
            directory=directory,
            consumer={"bootstrap.servers": shared.kafka.bootstrap},
            producer={"bootstrap.servers": shared.kafka.bootstrap},
            log_topic=None,
            space=prefix,
            functions=SOURCES,
            registry=shared.registry.settings,
        )
        self._runner = SparkRunner(
            shared.runtime,
            context,
            shared.admin.end_offsets,
            trash=Trash(directory.with_name(f"{directory.name}-aside"), lambda: 0),
            new_incarnation=lambda: secrets.token_hex(6),
            begins=shared.admin.begin_offsets,
            at=shared.admin.offsets_at,
            completion=CutOverCompletion(
                TopicDifference(shared.kafka, shared.admin), clock=lambda: 0
            ),
        )
        self._topics = KafkaTopics(shared.admin)
        self._registry = shared.registry.registry
        self._engine = Engine(
            functions=FUNCTIONS,
            topics=self._topics,
            log=MemoryLog(),
            runner=self._runner,
            registry=self._registry,
            now_ms=lambda: NOW_MS,
        )
        self._rebuilds = RebuildSupervisor(self._engine, Settings(self._settings))
        self._services = Services(
            engine=self._engine,
            monitor=NoMonitor(),
            writer=self,
            now_ms=lambda: 0,
            await_rebuild=self._await_rebuild,
        )
        self._created: set[str] = set()
        self._ids: dict[int, int] = {}

    @property
    def catalog(self) -> Catalog:
        """The catalog with the topics' names as the case knows them."""
        catalog = self._engine.catalog
        sources = {
            name: replace(source, topic=source.topic.removeprefix(self._prefix))
            for name, source in catalog.sources.items()
        }
        return replace(catalog, sources=sources)

    @property
    def registry(self) -> Registry:
        """The registry of all cases."""
        return self._registry

    def refer(self, name: str, schema: Schema) -> Reference:
        return register_import(self._registry, name, self._prefix + name, schema)

    def register(self, topic: str, side: Side, schema: Schema, schema_id: int) -> None:
        """Register a schema; in statements its id takes the place of the case's."""
        subject = subject_name(self._prefix + topic, side)
        self._ids[schema_id] = self._registry.register(subject, schema)

    def latest(self, topic: str, side: Side) -> Registered | None:
        return self._registry.latest(subject_name(self._prefix + topic, side))

    def create_topic(self, topic: Topic) -> None:
        self._created.add(self._prefix + topic.name)
        self._topics.create(replace(topic, name=self._prefix + topic.name, replicas=1))

    def execute(self, statement: ast.Statement, text: str, settings: Settings) -> None:
        sinks = settings.text("ksql.output.topic.name.prefix")
        own = with_ids(prefixed(statement, self._prefix, sinks), self._ids)
        own_settings = awaiting_rebuilds(Settings(self._settings, settings.overrides))
        request = Request(self._services, own_settings, text=text)
        try:
            HANDLERS[type(statement)](own, request)
        except KsqlError as error:
            error.message = error.message.replace(self._prefix, "")
            error.detail = error.detail.replace(self._prefix, "")
            raise

    def begin(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None,
        headers: Headers | None = None,
    ) -> Delivery:
        """INSERT VALUES' record."""
        return self._shared.sender.begin(topic, key, value, timestamp, headers)

    def feed(self, records: Sequence[RawInput]) -> None:
        """Write the records, topic by topic.

        After each run wait until all queries have processed it. Where several queries write to one
        topic, they take turns, as its rows come query by query.
        """
        later = self._later_writers()
        for run in in_runs(records) or [[]]:
            for query in later:
                self._runner.stop(query.version)
            self._shared.write([(self._prefix + record[0], *record[1:]) for record in run])
            self._settle()
            for query in later:
                self._runner.resume([query])
                self._settle()

    def _later_writers(self) -> list[PersistentQuery]:
        """The queries whose sink an older one writes to."""
        written: set[str] = set()
        later = []
        for query in self._engine.catalog.queries.values():
            if query.sink in written and query.version in self._runner.running:
                later.append(query)
            written.add(query.sink)
        return later

    def _await_rebuild(self, version: QueryVersion, timeout_s: float) -> str:
        """Wait for the cut-over, and until the new plan runs: then the difference is written."""
        trouble = self._rebuilds.wait(version, timeout_s)
        running = self._runner.running.get(version)
        if not trouble and running is not None:
            running.await_first_attempt(timeout_s)
            running.await_started(timeout_s)
        return trouble

    def _settle(self) -> None:
        await_queries(self._engine.catalog.queries.values(), self._runner, self._shared.admin)

    def records(self, topic: str) -> list[Actual]:
        """The log of a topic, partition by partition."""
        return read_topic(self._shared.kafka, self._prefix + topic)

    def close(self) -> None:
        """Stop the queries, delete topics and checkpoints."""
        for version in list(self._runner.running):
            self._runner.running.pop(version).stop(graceful=False)
        sources = self._engine.catalog.sources.values()
        names = {source.topic for source in sources} | self._created
        names |= {s.materialization.topic for s in sources if s.materialization is not None}
        self._topics.delete(sorted(names))
        self._delete_subjects([s for s in self._registry.subjects() if s.startswith(self._prefix)])
        shutil.rmtree(self._directory, ignore_errors=True)

    def _delete_subjects(self, subjects: list[str]) -> None:
        """Delete them, those that others import last."""
        while subjects:
            imported = []
            for subject in subjects:
                try:
                    self._registry.delete(subject)
                except ReferenceExists:
                    imported.append(subject)
            if imported == subjects:
                raise QueryFailed(f"the subjects {', '.join(subjects)} cannot be deleted")
            subjects = imported


def prefixed(statement: ast.Statement, prefix: str, sinks: str = "") -> ast.Statement:
    """The statement with its topic's name prefixed; CREATE .. AS SELECT always names it.

    ``sinks`` is what the session puts before the names of sink topics.
    """
    match statement:
        case ast.CreateSource():
            return replace(statement, properties=_prefixed(statement.properties, prefix, None))
        case ast.CreateAsSelect(name=name):
            return replace(
                statement, properties=_prefixed(statement.properties, prefix, sinks + name)
            )
        case ast.Explain(target=target) if not isinstance(target, str):
            return replace(statement, target=prefixed(target, prefix, sinks))
        case _:
            return statement


def with_ids(statement: ast.Statement, ids: Mapping[int, int]) -> ast.Statement:
    """The statement with the registry's ids in the place of the case's."""
    match statement:
        case ast.CreateSource() | ast.CreateAsSelect():
            properties = tuple(
                replace(
                    property_,
                    value=ex.IntLit(ids.get(property_.value.value, property_.value.value)),
                )
                if property_.name.upper() in _IDS and isinstance(property_.value, ex.IntLit)
                else property_
                for property_ in statement.properties
            )
            return replace(statement, properties=properties)
        case _:
            return statement


def _prefixed(
    properties: tuple[ast.Property, ...], prefix: str, default: str | None
) -> tuple[ast.Property, ...]:
    with_prefix, named = [], False
    for property_ in properties:
        if property_.name.upper() == "KAFKA_TOPIC" and isinstance(property_.value, ex.StringLit):
            named = True
            with_prefix.append(
                replace(property_, value=ex.StringLit(prefix + property_.value.value))
            )
        else:
            with_prefix.append(property_)
    if not named and default is not None:
        with_prefix.append(ast.Property("KAFKA_TOPIC", ex.StringLit(prefix + default)))
    return tuple(with_prefix)
