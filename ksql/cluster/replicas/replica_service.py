"""Wires a server's replicas to the other servers; answers which server holds a key."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ksql.cluster.replicas.cluster_status import Cluster, own_tls
from ksql.cluster.replicas.lag_reporter import LagReporter
from ksql.cluster.replicas.local_replicas import LagTracker, LocalReplicas
from ksql.cluster.replicas.replica_client import Peers
from ksql.cluster.replicas.replicated import Replicas
from ksql.core import KsqlError, ServerSecret, StartError, UnknownName, boot_s
from ksql.exec.dataflow.partitioning import partitions_of
from ksql.formats import EncodeError, topic_serde
from ksql.views import EndOffsets, NotQueryable, ViewMaintainer, query_id_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.cluster.replicas.partition_assignment import PartitionAssignment
    from ksql.cluster.replicas.read_request import ReadRequest, ReadResult
    from ksql.cluster.replicas.replica_status import ReplicaStatus
    from ksql.core import Settings
    from ksql.formats import Registry
    from ksql.sql.catalog import Catalog, DataSource

TIMEOUT: Final = "ksql.query.pull.forwarding.timeout.ms"
CREDENTIALS: Final = "ksql.internal.credentials.file"
STANDBYS: Final = "num.standby.replicas"


class BadKey(KsqlError):
    """A key that a table cannot have, or that has no one place."""

    def __init__(self, table: str, why: str) -> None:
        super().__init__(f"the table {table} has no such key: {why}")


class ReplicaService:
    """This server's replicas, the way to those of other servers, and the talk about them."""

    def __init__(
        self,
        settings: Settings,
        assignment: PartitionAssignment,
        tables: ViewMaintainer,
        ends: EndOffsets,
        now_ms: Callable[[], int],
    ) -> None:
        """Make the parts; ``start`` begins the talk.

        Raises: StartError.
        """
        self.assignment = assignment
        self.credentials = _authorization(settings.text(CREDENTIALS))
        self.host = str(assignment.me)
        self._tables = tables
        self.local_replicas = LocalReplicas(
            tables, assignment, LagTracker(ends.end_offsets, boot_s)
        )
        self.cluster = Cluster(settings, assignment, self.local_replicas, tables, now_ms)
        self.tls = own_tls(settings)
        self.secret = ServerSecret.of(settings)
        self.peers = Peers(
            settings.number(TIMEOUT) / 1000,
            tls=self.tls,
            silent=self.cluster.silent,
            secret=self.secret,
        )
        self.replicas = Replicas(assignment, self.local_replicas, self.peers, tables, self.cluster)
        self._lag_reporter = LagReporter(
            settings,
            assignment,
            tables,
            self.local_replicas,
            self.peers,
            self.cluster,
            self.credentials,
        )

    def start(self) -> None:
        """Begin to talk to the other servers."""
        self._lag_reporter.start()

    def close(self) -> None:
        """End the talk and close the connections."""
        self._lag_reporter.close()
        self.peers.close()

    def read(self, ask: ReadRequest) -> ReadResult:
        """Read one of this server's replicas for another server.

        Raises: ReadRejected, Unreachable.
        """
        return self.local_replicas.read(ask)

    def replica_statuses(self) -> dict[tuple[str, int], ReplicaStatus]:
        """Return how far every replica of this server is, by query and partition.

        Raises: KsqlError.
        """
        self.local_replicas.refresh()
        return self.local_replicas.replica_statuses()

    def hosts(
        self, catalog: Catalog, name: str, key: list[Any] | None, registry: Registry | None
    ) -> list[dict[str, Any]]:
        """Return which servers hold a table's partitions, on request only the one of a key.

        Raises: UnknownName, NotQueryable, BadKey, TableNotReady.
        """
        source = _stored(catalog, name)
        table = self._tables.table(source)
        count = source.partitions if table is None else table.count
        partitions = range(count)
        if key is not None:
            if source.window is not None and source.topic in catalog.scattered:
                raise BadKey(source.name, "the windows of a key lie in all partitions")
            number = _partition(source, key, count, registry)
            partitions = range(number, number + 1)
        placement = self.assignment.placement()
        return [
            {
                "partition": partition,
                "topic": source.topic,
                "query": query_id_of(source),
                "active": str(holders[0]),
                "standbys": [str(server) for server in holders[1:]],
            }
            for partition in partitions
            for holders in (placement.holders(source.topic, partition),)
        ]


def _stored(catalog: Catalog, name: str) -> DataSource:
    source = catalog.sources.get(name)
    if source is None:
        raise UnknownName(f"there is no table {name}", ())
    stored = source.queryable()
    if stored is None:
        raise NotQueryable(name)
    return stored


def _partition(source: DataSource, key: list[Any], count: int, registry: Registry | None) -> int:
    """Return the partition of a key, with or without windows."""
    columns = source.schema.key
    if len(key) != len(columns):
        raise BadKey(source.name, f"it has {len(columns)} columns")
    serde = topic_serde(source.key_format, columns, "key", source.topic, registry)
    try:
        data = serde.encode(tuple(key))
    except EncodeError as error:
        raise BadKey(source.name, error.message) from error
    if data is None:
        raise BadKey(source.name, "it is NULL")
    return partitions_of([data], count)[0]


def _authorization(path: str) -> str:
    """Return the header Authorization of this server itself; empty without a file.

    Raises: StartError.
    """
    if not path:
        return ""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(
            f"{CREDENTIALS}: the file {path} cannot be read", detail=str(error)
        ) from error
    if ":" not in text:
        raise StartError(
            f"{CREDENTIALS}: the file {path} names no user and password",
            hint="It must hold one line: user:password",
        )
    return f"Basic {base64.b64encode(text.encode()).decode()}"
