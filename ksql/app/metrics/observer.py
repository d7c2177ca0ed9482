"""Looks now and then at what a scrape may not wait for: lags, replicas of tables, memory."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ksql.app.health_loop import impatient
from ksql.app.metrics.history import Histories
from ksql.app.metrics.lag_watch import Lag, LagWatch, SourceExtent, SourceExtents
from ksql.app.metrics.node_snapshot import query_snapshots
from ksql.app.metrics.snapshot import Disk
from ksql.app.metrics.stalled import StalledQueries
from ksql.core import KsqlError, resident_bytes
from ksql.core.process import PeriodicWorker, RepeatedFailure
from ksql.kafka import TopicRecords
from ksql.spark.query import first_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ksql.app.node import Node
    from ksql.cluster.replicas import ReplicaStatus
    from ksql.core import PartitionId, QueryVersion
    from ksql.kafka import Admin
    from ksql.spark.query import QuerySupervisor
    from ksql.views import StoreSize

Role = Literal["server", "spark", "kafka", "worker", "other"]
_PROC: Final = Path("/proc")
_BROKER: Final = b"kafka.Kafka"


def memory_by_role(pid: int | None = None, proc: Path = _PROC) -> Mapping[str, int]:
    """Return the resident bytes of a process (this one, if None) and of all below it, by role.

    Nothing where there is no such file system. A process that ends meanwhile is left out.
    """
    sizes: dict[str, int] = {}
    for role, process in _roles(pid or os.getpid(), "server", proc):
        size = resident_bytes(proc / str(process))
        if size:
            sizes[role] = sizes.get(role, 0) + size
    return sizes


def _roles(pid: int, role: Role, proc: Path) -> Iterator[tuple[Role, int]]:
    yield role, pid
    for child in _children(proc / str(pid)):
        yield from _roles(child, _role(proc / str(child), role), proc)


def _role(process: Path, parent: Role) -> Role:
    """Return what a process is: workers are Spark's children, and run Python."""
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return "other"
    program = command.split(b"\0")[0].rsplit(b"/")[-1]
    if program == b"java":
        return "kafka" if _BROKER in command else "spark"
    if parent in ("spark", "worker"):
        return "worker"
    return "other"


def _children(process: Path) -> list[int]:
    children: list[int] = []
    try:
        for thread in (process / "task").iterdir():
            children += map(int, (thread / "children").read_bytes().split())
    except OSError:  # it ends, or the kernel does not show them
        return children
    return children


_log = logging.getLogger(__name__)
PERIOD: Final = "ksql.metrics.interval.ms"
STALLED_AFTER: Final = "ksql.query.stalled.warn.ms"

Offsets = dict[str, dict[int, int]]


class Observer:
    """The looks of one server, in a thread of its own; its results are read by any thread.

    Kafka is asked without patience. A look that fails leaves what the one before has seen.
    """

    def __init__(self, node: Node, now_ms: Callable[[], int]) -> None:
        self._node = node
        self._now_ms = now_ms
        self._admin: Admin | None = None
        self._lags: LagWatch | None = None
        self.stalled = StalledQueries(node.settings.number(STALLED_AFTER))
        self.histories = Histories()
        self.memory: Mapping[str, int] = {}
        self.disk: Disk | None = None
        self.copies: Mapping[tuple[str, int], ReplicaStatus] = {}
        self.table_sizes: Mapping[str, StoreSize] = {}
        self.command_lag = 0
        self.looked_ms = 0
        """When the last look that was complete has ended; 0 before it."""
        period_s = node.settings.number(PERIOD) / 1000
        failure = RepeatedFailure(_log, "lags_not_seen")
        self._worker = PeriodicWorker("observer", period_s, self.poll, failure, at_once=True)

    def start(self) -> None:
        """Begin; the node has started."""
        self._admin = impatient(self._node.kafka)
        self._lags = LagWatch(TopicRecords(self._node.kafka, self._admin))
        self._worker.start()

    def close(self) -> None:
        """Look no more; a look that is under way is not waited for."""
        self._worker.end()
        if self._admin is not None:
            self._admin.close()

    def lags_of(self, version: QueryVersion) -> Mapping[PartitionId, Lag]:
        """Return the lags of a version by partition, as of the last look."""
        return {} if self._lags is None else self._lags.lags.get(version, {})

    def poll(self) -> None:
        """Look once.

        Raises: KsqlError, OSError.
        """
        node = self._node
        self.memory = memory_by_role()
        if node.state_dir is not None:
            room = shutil.disk_usage(node.state_dir.own)
            self.disk = Disk(room.total, room.free)
        if self._lags is None or self._admin is None or not node.ready.is_set():
            return
        sources = {} if node.is_follower or node.lost else self._sources(self._admin)
        troubled = node.monitor.troubled
        self._lags.observe(sources)
        self.stalled.observe(sources, lambda v: v.query_id not in troubled, self._now_ms())
        self.command_lag = self._command_lag(self._admin)
        self.copies = node.replicas.replica_statuses()
        self.table_sizes = dict(_table_sizes(node))
        self.looked_ms = self._now_ms()
        leads = not node.is_follower and not node.lost
        self.histories.note(self.looked_ms, query_snapshots(node, self) if leads else ())

    def _command_lag(self, admin: Admin) -> int:
        log = self._node.log
        if not self._node.is_follower:
            return 0
        return max(max(admin.end_offsets([log.topic]).values(), default=0) - log.known, 0)

    def _sources(self, admin: Admin) -> SourceExtents:
        """Return the partitions of all queries that users see and that were started here."""
        running = self._node.runner.running
        versions = [query.version for query in self._node.engine.catalog.queries.values()]
        queries = {v: query for v in versions if (query := running.get(v)) is not None}
        there = admin.topics().keys()
        topics = sorted({t for query in queries.values() for t in query.topics} & there)
        if not topics:
            return {}
        begins, ends = admin.begin_offsets(topics), admin.end_offsets(topics)
        return {
            version: sources
            for version, query in queries.items()
            if (sources := sources_of(query, begins, ends))
        }


def _table_sizes(node: Node) -> Iterator[tuple[str, StoreSize]]:
    """Yield the sizes of tables; one whose stores are being closed is left out."""
    for table in node.views.tables():
        try:
            yield table.source.name, table.size()
        except KsqlError as closed:
            _log.debug("table_not_measured", extra={"table": table.source.name, "why": str(closed)})


def sources_of(
    query: QuerySupervisor, begins: Mapping[PartitionId, int], ends: Mapping[PartitionId, int]
) -> dict[PartitionId, SourceExtent]:
    """Return how far a version has read; nothing if its checkpoint cannot be read.

    What retention has taken unread is passed over.
    """
    topics: Collection[str] = query.topics
    first: Offsets = {topic: {} for topic in topics}
    for (topic, partition), offset in begins.items():
        if topic in first:
            first[topic][partition] = offset
    try:
        first = {**first, **first_offsets(query, first)}
    except (KsqlError, OSError):  # its next launch says it
        return {}
    committed = query.committed_offsets()
    return {
        place: SourceExtent(
            max(
                committed.get(place[0], {}).get(place[1], first[place[0]].get(place[1], 0)),
                begins.get(place, 0),
            ),
            end,
        )
        for place, end in ends.items()
        if place[0] in first
    }
