"""The service as its clients see it: statements, queries, rows, health."""

from __future__ import annotations

import secrets
import time
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from ksql.app.headless import carry_out, queries_file, read
from ksql.app.metrics import Metrics, Observer, take_snapshot
from ksql.app.node import Node
from ksql.app.readiness import NodeState, Readiness
from ksql.app.statements import StatementService
from ksql.app.tracing import open_tracing, untraced
from ksql.cluster.replicas import (
    Caller,
    Processed,
    ReadRequest,
    ReadResult,
    ReplicaStatus,
    own_scheme,
)
from ksql.control.statements import Health, RequestFailed, ServerInfo, StatementsOfCatalog, reports
from ksql.core import NotReady, TokenScope

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ksql.cluster import ClusterStatus, HostStoreLags
    from ksql.control.engine import CommandStatus
    from ksql.control.statements import QueryHistory
    from ksql.core import Counts, ServerSecret, Settings
    from ksql.serving import BrowsedRecords, BrowseRequest, ResultStream, TextStream
    from ksql.spark.session import SparkRuntime


def version() -> str:
    """Return the version of this service."""
    return metadata.version("ksql-spark")


class KsqlService:
    """One server: ``node`` starts and stops its parts, ``statements`` what changes something.

    ``server.service`` describes the methods. Every method may block and may be called from several
    threads at once. Every method raises ``KsqlError`` for a user's error; anything else is a defect
    and reported as a 50000.
    """

    headless = ""
    """What was done with the file that the server runs, in words; empty if clients send statements.

    Followers leave it to the leader.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        broker: str | None = None,
        runtime: SparkRuntime | None = None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        random_name: Callable[[], str] = lambda: secrets.token_hex(6),
        progress: Callable[[str], None] = lambda _what: None,
    ) -> None:
        """Take what ``Node`` takes."""
        self._stated = StatementsOfCatalog()
        self.node = Node(
            settings,
            broker=broker,
            runtime=runtime,
            now_ms=now_ms,
            random_name=random_name,
            progress=progress,
            on_replay=self._stated.note,
        )
        self.statements = statements = StatementService(self.node)
        # what the protocol of the server has of statements
        self.begin, self.dry_run = statements.begin, statements.dry_run
        self.awaiting, self.terminate = statements.awaiting, statements.terminate
        self.inserts = statements.inserts
        self.forward_target = statements.forward_target
        self.leader, self.is_leader = statements.leader, statements.is_leader
        self._now_ms = now_ms
        self._metrics = Metrics()
        self._end_tracing: Callable[[], None] = untraced
        self._observer, self._readiness = self._observers()

    def _observers(self) -> tuple[Observer, Readiness]:
        """Return what watches the node from one start to its stop."""
        return Observer(self.node, self._now_ms), Readiness(NodeState(self.node))

    # start and stop

    def start(self) -> None:
        """Bring everything up, then run the file of ``ksql.queries.file`` if there is one.

        A service that was stopped may be started again.

        Raises: as ``Node.start`` does; BadQueriesFile.
        """
        file = queries_file(self.node.settings)
        if file is not None:
            read(file)  # before what takes long
        self._observer, self._readiness = self._observers()
        self._end_tracing = open_tracing(self.node.settings)
        self.node.start()
        self.node.monitor.stalled = self._observer.stalled.warnings
        self._observer.start()
        if file is None:
            return
        try:
            self.headless = self._run_file(file)
        except BaseException:
            self.stop()
            raise

    def _run_file(self, file: Path) -> str:
        node = self.node
        if node.is_follower:
            return f"{file} is left to the leader"
        return carry_out(file, node.services, node.settings, self._stated, node.log_topic)

    def leave(self) -> None:
        self.node.leave()

    def stop(self) -> None:
        """End everything, the last started first; a second call does nothing."""
        self._observer.close()
        self.node.stop()
        self._end_tracing()
        self._end_tracing = untraced

    @property
    def again(self) -> bool:
        return self.node.again

    @property
    def on_lost(self) -> Callable[[], object]:
        """The callback of a server, one of several, that must restart to rejoin."""
        return self.node.on_lost

    @on_lost.setter
    def on_lost(self, call: Callable[[], object]) -> None:
        self.node.on_lost = call

    def addresses(self) -> Mapping[str, str]:
        return self.node.addresses

    # statements

    def statuses(self) -> Mapping[str, CommandStatus]:
        return dict(self.node.engine.statuses)

    def status(self, command_id: str) -> CommandStatus | None:
        return self.statuses().get(command_id)

    def check_property(self, name: str) -> None:
        self.node.settings.settable(name)

    # queries

    def query(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        tombstones: bool = True,
        caller: Caller | None = None,
    ) -> ResultStream | TextStream:
        node = self.node
        if not node.ready.is_set():
            raise RequestFailed(NotReady("The service is starting."), text)
        return node.reads.open(
            text,
            node.services,
            node.settings,
            properties,
            variables,
            tombstones=tombstones,
            caller=caller,
        )

    def at_once(
        self, text: str, properties: Mapping[str, str], caller: Caller
    ) -> ResultStream | None:
        if not self.node.ready.is_set():
            return None
        return self.node.reads.at_once(text, self.node.settings, properties, caller)

    def close_query(self, query_id: str) -> bool:
        return self.node.reads.close(query_id)

    def browse(self, ask: BrowseRequest) -> BrowsedRecords:
        return self.node.reads.browse(ask)

    # the server

    def info(self) -> ServerInfo:
        service_id = self.node.settings.text("ksql.service.id")
        status: Literal["RUNNING", "DEGRADED"] = "RUNNING" if self.node.log.sound else "DEGRADED"
        return ServerInfo(version(), self.node.cluster_id, service_id, status)

    @property
    def scope(self) -> TokenScope:
        return TokenScope(self.node.cluster_id, self.node.settings.text("ksql.service.id"))

    @property
    def terminated(self) -> bool:
        return self.node.terminated

    def health(self) -> Health:
        node = self.node
        reasons = {
            "kafka": node.health_loop.kafka,
            "spark": node.runtime.problem(),
            "stores": node.views.hindrance(),
            "inCharge": node.lost or node.leadership.problem,
        }
        problem = None if node.replaying else node.log.problem
        runner = not node.replaying and problem is None
        if problem is not None:
            reasons["commandRunner"] = problem.text()
        details = {"metastore": True, "kafka": not reasons["kafka"], "commandRunner": runner}
        if lost := node.durable_topics.schemas():
            details["schemaRegistry"], reasons["schemaRegistry"] = False, lost
        if node.connect.addresses:
            reasons["connect"] = node.connect.problem
            details["connect"] = not reasons["connect"]
        details |= {part: not reasons[part] for part in ("spark", "stores", "inCharge")}
        reasons["stores"] = reasons["stores"] or node.views.upgrading()  # which is no fault
        ready = node.ready.is_set()
        state: Literal["READY", "INITIALIZING"] = "READY" if ready else "INITIALIZING"
        return Health(details, reasons, state)

    def unready(self) -> Mapping[str, str]:
        return self._readiness.reasons()

    def metrics(self, accept: str, unready: Sequence[str], requests: Counts) -> tuple[bytes, str]:
        """Return the metrics and their media type; reads memory only."""
        snapshot = take_snapshot(
            self.node, self._observer, version(), self._now_ms(), unready, requests
        )
        return self._metrics.exposition(snapshot, accept)

    def history(self, query_id: str) -> QueryHistory:
        return self._observer.histories.of(query_id)

    # several servers

    @property
    def host(self) -> str:
        return self.node.replicas.host

    @property
    def is_follower(self) -> bool:
        return self.node.is_follower

    @property
    def scheme(self) -> str:
        return own_scheme(self.node.settings)

    @property
    def secret(self) -> ServerSecret | None:
        return self.node.replicas.secret

    @property
    def tls(self) -> ssl.SSLContext | None:
        return self.node.replicas.tls if hasattr(self.node, "replicas") else None

    def cluster_status(self) -> ClusterStatus:
        return self.node.replicas.cluster.status()

    def note_alive(self, host: str) -> None:
        self.node.replicas.cluster.note_alive(host)

    def reported(self, host: str, lags: HostStoreLags) -> None:
        self.node.replicas.cluster.reported(host, lags)

    def read_replica(self, ask: ReadRequest) -> ReadResult:
        return self.node.replicas.read(ask)

    def report(self, queries: Sequence[str]) -> bytes:
        return reports.form(reports.report(self.node.services, queries))

    def replica_statuses(self) -> dict[tuple[str, int], ReplicaStatus]:
        return self.node.replicas.replica_statuses()

    def processed(self, query_id: str) -> Processed:
        return self.node.monitor.processed(query_id)

    def holders(self, table: str, key: list[Any] | None) -> list[dict[str, Any]]:
        return self.node.replicas.hosts(self.node.engine.catalog, table, key, self.node.registry)
