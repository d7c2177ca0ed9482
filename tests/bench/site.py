"""A real service in a directory of its own, and what the workloads need of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import psutil
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from ksql.app.service import KsqlService
from ksql.control.statements.execute import run
from ksql.core.config import Settings
from ksql.core.records import QueryId
from ksql.formats.schemas import topic_serde
from ksql.formats.table import Serde

EARLIEST = {"auto.offset.reset": "earliest"}
EVERY_CHANGE = {**EARLIEST, "cache.max.bytes.buffering": "0"}
PATIENCE_S = 600.0


class Stuck(RuntimeError):
    """A query that failed, or did not come to the end of its input."""


@dataclass(frozen=True)
class Usage:
    """CPU seconds of the processes so far: Spark's Python workers apart from its JVM."""

    jvm: float = 0.0
    workers: float = 0.0
    broker: float = 0.0
    own: float = 0.0

    def since(self, before: Usage) -> Usage:
        """What was used from then to now."""
        return Usage(
            self.jvm - before.jvm,
            self.workers - before.workers,
            self.broker - before.broker,
            self.own - before.own,
        )


class Site:
    """A running service; queries are made by statements and awaited by their offsets."""

    def __init__(self, service: KsqlService) -> None:
        self.service = service
        self.strangers: set[int] = set()
        """Child processes that are not the service's."""

    @property
    def bootstrap(self) -> str:
        """The embedded broker's address."""
        return self.service.node.kafka.bootstrap

    def execute(self, text: str, properties: dict[str, str] = EARLIEST) -> None:
        """Run statements."""
        run(text, self.service.node.services, self.service.node.settings, properties, {})

    def query_of(self, sink: str) -> QueryId:
        """The id of the query that writes a source."""
        queries = self.service.node.engine.catalog.queries.values()
        return next(query.id for query in queries if query.sink == sink.upper())

    def await_end(self, sink: str, topic: str) -> None:
        """Wait until the query has processed all that its topic holds now.

        Raises: Stuck.
        """
        goal: dict[str, dict[int, int]] = {topic: {}}
        for (_, partition), offset in self.service.node.admin.end_offsets([topic]).items():
            goal[topic][partition] = offset
        version = self.service.node.engine.catalog.version_of(self.query_of(sink))
        running = self.service.node.runner.running[version]
        if not running.await_idle(goal, PATIENCE_S):
            raise Stuck(f"{sink}: {running.status()}")

    def drop(self, kind: str, name: str) -> None:
        """End a query and delete what it has made."""
        self.execute(f"DROP {kind} {name} DELETE TOPIC;")

    def serde(self, name: str) -> Serde:
        """How the values of a source are read and written."""
        source = self.service.node.engine.catalog.sources[name.upper()]
        return topic_serde(
            source.value_format,
            source.schema.value,
            "value",
            source.topic,
            self.service.node.engine.registry,
        )

    def records(self, topic: str) -> Iterator[Message]:
        """All that a topic holds, each partition in order."""
        ends = self.service.node.admin.end_offsets([topic])
        left = {partition: end for (_, partition), end in ends.items() if end > 0}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "bench"})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        try:
            while left:
                for message in consumer.consume(10_000, 10.0):
                    yield message
                    if message.offset() + 1 >= left.get(message.partition(), 0):  # type: ignore[operator]  # a record has an offset
                        left.pop(message.partition(), None)
        finally:
            consumer.close()

    def producer(self, **config: int | str) -> Producer:
        """A producer that places keys as a Java client does."""
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                **config,
            }
        )

    def usage(self) -> Usage:
        """The CPU time of all processes until now."""
        times = {"jvm": 0.0, "workers": 0.0, "broker": 0.0}
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                used = process.cpu_times()
                # children that have ended count with the daemon that had started them
                times[_part(process)] += used.user + used.system
                if _part(process) == "workers":
                    times["workers"] += used.children_user + used.children_system
        own = psutil.Process().cpu_times()
        return Usage(**times, own=own.user + own.system)

    def family(self) -> list[psutil.Process]:
        """The broker, Spark's JVM and its workers."""
        children = psutil.Process().children(recursive=True)
        return [child for child in children if child.pid not in self.strangers]

    def rss_mb(self, *, broker: bool = True) -> int:
        """The memory of all processes, or of all but the broker."""
        family = self.family()
        if not broker:
            family = [process for process in family if not _is_broker(process)]
        return resident_mb([psutil.Process(), *family])


def resident_mb(processes: Sequence[psutil.Process]) -> int:
    """The memory of processes, pages that several share counted once."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            total += _resident(process)
    return total >> 20


def _is_broker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return _part(process) == "broker"
    return False


def _part(process: psutil.Process) -> str:
    if process.name() != "java":
        return "workers"
    return "broker" if "kafka.Kafka" in process.cmdline() else "jvm"


def _resident(process: psutil.Process) -> int:
    full = process.memory_full_info()
    return int(getattr(full, "pss", 0) or full.rss)


def environment() -> dict[str, str]:
    """The server's properties that the environment asks for: ``BENCH_SETTINGS="name=value .."``."""
    pairs = os.environ.get("BENCH_SETTINGS", "").split()
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


@contextlib.contextmanager
def site(
    state: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Site]:
    """A service for the length of a block; its directory is removed unless it is given."""
    with contextlib.ExitStack() as stack:
        if state is None:
            state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ksql-bench-")))
        service = KsqlService(Settings({**environment(), **settings, "ksql.state.dir": str(state)}))
        stack.callback(service.stop)
        service.start()
        yield Site(service)


def await_quiet(seconds: float) -> None:
    """Let what came before end."""
    time.sleep(seconds)
