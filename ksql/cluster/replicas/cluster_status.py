"""The servers of the service as one of them knows them: who lives, and how far their stores are.

Reports over /heartbeat and /lag are kept for members and existing stores only. The assignment says
which partitions a server holds. Source: KIP-535; ksqlDB developer guide, REST API, endpoint
/clusterStatus.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from ksql.cluster.members import (
    ActiveStandby,
    ClusterStatus,
    HostStatus,
    HostStoreLags,
    LagInfo,
    Server,
    StateStoreLags,
)
from ksql.control.statements import TopicPartition
from ksql.core import NotFound
from ksql.http import ADVERTISED, INTERNAL, Renewable, client_context
from ksql.views import MaterializedView, ViewMaintainer, query_id_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ksql.cluster.replicas.local_replicas import LocalReplicas
    from ksql.cluster.replicas.partition_assignment import PartitionAssignment
    from ksql.core import Settings

ENABLED: Final = "ksql.heartbeat.enable"
WINDOW: Final = "ksql.heartbeat.window.ms"
_DEFAULT_PORT: Final = 8088


class HeartbeatsOff(NotFound):
    """The cluster's state was asked of a server that exchanges no heartbeats."""

    def __init__(self) -> None:
        super().__init__(f"this server exchanges no heartbeats ({ENABLED} is false)")


@dataclass(frozen=True, slots=True)
class _OtherServer:
    """Another server, by its own reports."""

    heard_ms: int
    lags: HostStoreLags = field(default_factory=HostStoreLags)


class Cluster:
    """This server and the other members."""

    def __init__(
        self,
        settings: Settings,
        assignment: PartitionAssignment,
        local_replicas: LocalReplicas,
        tables: ViewMaintainer,
        now_ms: Callable[[], int],
    ) -> None:
        self._enabled = settings.flag(ENABLED)
        self._window_ms = settings.number(WINDOW)
        self.host = str(assignment.me)
        self._assignment = assignment
        self._local_replicas = local_replicas
        self._tables = tables
        self._now_ms = now_ms
        self._others: dict[Server, _OtherServer] = {}
        self._lock = threading.Lock()

    def status(self) -> ClusterStatus:
        """Return every server's status; asks Kafka how far this server's topics are.

        Raises: HeartbeatsOff.
        """
        self._check()
        self._local_replicas.refresh()
        now_ms, me = self._now_ms(), self._assignment.me
        statuses = {str(me): HostStatus(True, now_ms, self._held(me), self.own_lags())}
        for server in self._assignment.others():
            other = self._known(server)
            statuses[str(server)] = HostStatus(
                now_ms - other.heard_ms <= self._window_ms,
                other.heard_ms,
                self._held(server),
                other.lags,
            )
        return ClusterStatus(statuses)

    def own_lags(self) -> HostStoreLags:
        """Return how far the stores of this server are, by the last look at their topics."""
        by_store: dict[str, dict[str, LagInfo]] = {}
        for (query_id, partition), status in self._local_replicas.replica_statuses().items():
            lag, table = status.offset_lag, self._tables.of_query(query_id)
            if lag is not None and table is not None:
                info = LagInfo(status.position, status.position + lag, lag)
                by_store.setdefault(_store(table), {})[str(partition)] = info
        return HostStoreLags(
            {name: StateStoreLags(lags) for name, lags in by_store.items()}, self._now_ms()
        )

    def note_alive(self, host: str) -> None:
        """Note that another server lives; one that is no member is not noted.

        Raises: HeartbeatsOff.
        """
        self._check()
        self._note(host, lambda known: replace(known, heard_ms=self._now_ms()))

    def reported(self, host: str, lags: HostStoreLags) -> None:
        """Note how far another member's stores are, those that there are.

        Raises: HeartbeatsOff.
        """
        self._check()
        counts = {_store(table): table.count for table in self._tables.tables()}
        kept = {
            name: StateStoreLags(
                {
                    partition: lag
                    for partition, lag in store_lags.lag_by_partition.items()
                    if partition.isdecimal() and int(partition) < counts[name]
                }
            )
            for name, store_lags in lags.state_store_lags.items()
            if name in counts
        }
        host_lags = HostStoreLags(kept, lags.update_time_ms)
        self._note(host, lambda known: replace(known, lags=host_lags))

    # --- what reads want to know

    def silent(self, server: Server) -> str:
        """Return why a server is not worth asking, or nothing: it has stopped its heartbeats."""
        if not self._enabled:
            return ""
        heard_ms = self._known(server).heard_ms
        age_ms = self._now_ms() - heard_ms
        if heard_ms == 0 or age_ms <= self._window_ms:
            return ""
        return f"its last heartbeat was {age_ms} ms ago"

    def lags(self, query_id: str, partition: int) -> dict[Server, int]:
        """Return how many offsets members' replicas of a partition lack, as they have reported."""
        table = self._tables.of_query(query_id)
        if table is None:
            return {}
        name, number = _store(table), str(partition)
        with self._lock:
            others = dict(self._others)
        return {
            server: store_lags.lag_by_partition[number].offset_lag
            for server, other in others.items()
            if (store_lags := other.lags.state_store_lags.get(name)) is not None
            and number in store_lags.lag_by_partition
        }

    def _check(self) -> None:
        if not self._enabled:
            raise HeartbeatsOff

    def _known(self, server: Server) -> _OtherServer:
        with self._lock:
            return self._others.get(server) or _OtherServer(0)

    def _note(self, host: str, change: Callable[[_OtherServer], _OtherServer]) -> None:
        """Change what is known of a member; what is known of servers that left is forgotten."""
        members = self._assignment.others()
        with self._lock:
            self._others = {
                member: self._others[member] for member in members if member in self._others
            }
            for server in members:
                if str(server) == host:
                    self._others[server] = change(self._others.get(server) or _OtherServer(0))

    def _held(self, server: Server) -> dict[str, ActiveStandby]:
        """Return the stores that are placed with a server, by query."""
        stores: dict[str, ActiveStandby] = {}
        for table in self._tables.tables():
            source = table.source
            roles: dict[str, tuple[TopicPartition, ...]] = {"ACTIVE": (), "STANDBY": ()}
            for partition in range(table.count):
                role = self._assignment.role(source.topic, partition, server)
                if role != "NONE":
                    roles[role] += (TopicPartition(source.topic, partition),)
            if any(roles.values()):
                stores[query_id_of(source)] = ActiveStandby(
                    active_stores=(source.name,) if roles["ACTIVE"] else (),
                    active_partitions=roles["ACTIVE"],
                    stand_by_stores=(source.name,) if roles["STANDBY"] else (),
                    stand_by_partitions=roles["STANDBY"],
                )
        return stores


def _store(table: MaterializedView) -> str:
    """Return a table's name in lags: ``query#store``."""
    return f"{query_id_of(table.source)}#{table.source.name}"


def own_scheme(settings: Settings) -> str:
    """Return how servers of the service speak to each other: as others reach this one."""
    return _own_url(settings).scheme or "http"


def _own_url(settings: Settings) -> SplitResult:
    own = settings.text(ADVERTISED) or settings.text(INTERNAL)
    return urlsplit(own or next(iter(settings.parts("listeners")), ""))


def own_server(settings: Settings) -> Server:
    """Return the address of this server for other servers."""
    url = _own_url(settings)
    return Server(url.hostname or "localhost", _DEFAULT_PORT if url.port is None else url.port)


def own_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return with which keys and trust they do; None where they speak http.

    Raises: NoPemStore, BadKeyStore, BadTrustStore.
    """
    if own_scheme(settings) != "https":
        return None
    return Renewable(lambda: client_context(settings.server))


def own_host(settings: Settings) -> str:
    """Return that address as ``host:port``."""
    return str(own_server(settings))
