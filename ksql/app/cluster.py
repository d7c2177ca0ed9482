"""The servers of the service as one of them knows them: who lives, and how far their stores are.

A server alone knows itself. The reports of others over /heartbeat and /lag are kept and shown
along with it.
Source: KIP-535; ksqlDB developer guide, REST API, endpoint /clusterStatus.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ksql.base.errors import NotFound
from ksql.statements.cluster import (
    ActiveStandby,
    ClusterStatus,
    HostStatus,
    HostStoreLags,
    LagInfo,
    StateStoreLags,
)
from ksql.statements.entities import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.base.config import Settings
    from ksql.catalog.catalog import Catalog
    from ksql.catalog.model import DataSource
    from ksql.kafka.admin import Admin
    from ksql.query.materialize import Materialized, Materializer

ENABLED: Final = "ksql.heartbeat.enable"
WINDOW: Final = "ksql.heartbeat.window.ms"
ADVERTISED: Final = "ksql.advertised.listener"
_DEFAULT_PORT: Final = 8088
_MOST_OTHERS: Final = 1_000


class HeartbeatsOff(NotFound):
    """The cluster's state was asked of a server that exchanges no heartbeats."""

    def __init__(self) -> None:
        super().__init__(f"this server exchanges no heartbeats ({ENABLED} is false)")


@dataclass(frozen=True, slots=True)
class _Other:
    """Another server, by its own reports."""

    heard_ms: int
    lags: HostStoreLags = field(default_factory=HostStoreLags)


class Cluster:
    """This server and those that have reported to it."""

    def __init__(
        self, settings: Settings, admin: Admin, tables: Materializer, now_ms: Callable[[], int]
    ) -> None:
        self._enabled = settings.flag(ENABLED)
        self._window_ms = settings.number(WINDOW)
        self.host = own_host(settings)
        self._admin = admin
        self._tables = tables
        self._now_ms = now_ms
        self._others: dict[str, _Other] = {}
        self._lock = threading.Lock()

    def status(self, catalog: Catalog) -> ClusterStatus:
        """Return every server's status.

        Raises: HeartbeatsOff.
        """
        self._check()
        now_ms = self._now_ms()
        found = {self.host: self._own(catalog, now_ms)}
        with self._lock:
            others = dict(self._others)
        for host, other in others.items():
            alive = now_ms - other.heard_ms <= self._window_ms
            found[host] = HostStatus(alive, other.heard_ms, {}, other.lags)
        return ClusterStatus(found)

    def heard(self, host: str) -> None:
        """Note that another server lives.

        Raises: HeartbeatsOff.
        """
        self._check()
        with self._lock:
            self._note(host, replace(self._known(host), heard_ms=self._now_ms()))

    def reported(self, host: str, lags: HostStoreLags) -> None:
        """Note how far another server's stores are.

        Raises: HeartbeatsOff.
        """
        self._check()
        with self._lock:
            self._note(host, replace(self._known(host), lags=lags))

    def _check(self) -> None:
        if not self._enabled:
            raise HeartbeatsOff

    def _known(self, host: str) -> _Other:
        return self._others.get(host) or _Other(0)

    def _note(self, host: str, other: _Other) -> None:
        """Keep it, in place of the one that was silent longest when there are too many."""
        if host == self.host:
            return
        self._others[host] = other
        if len(self._others) > _MOST_OTHERS:
            del self._others[min(self._others, key=lambda name: self._others[name].heard_ms)]

    def _own(self, catalog: Catalog, now_ms: int) -> HostStatus:
        tables = self._followed(catalog)
        ends = self._admin.end_offsets(sorted({source.topic for source, _ in tables}))
        queries = {str(source.created_by): _active(source, table) for source, table in tables}
        lags = {
            f"{source.created_by}#{source.name}": StateStoreLags(
                {
                    str(partition): _lag(part.reached, ends[part.place])
                    for partition, part in sorted(table.parts.items())
                }
            )
            for source, table in tables
        }
        return HostStatus(True, now_ms, queries, HostStoreLags(lags, now_ms))

    def _followed(self, catalog: Catalog) -> list[tuple[DataSource, Materialized]]:
        stored = (source.queryable() for source in catalog.sources.values())
        found = ((source, self._tables.table(source)) for source in stored if source is not None)
        return [(source, table) for source, table in found if table is not None]


def _active(source: DataSource, table: Materialized) -> ActiveStandby:
    partitions = tuple(TopicPartition(source.topic, number) for number in sorted(table.parts))
    return ActiveStandby(active_stores=(source.name,), active_partitions=partitions)


def _lag(position: int, end: int) -> LagInfo:
    return LagInfo(position, end, max(0, end - position))


def own_host(settings: Settings) -> str:
    """Return the address of this server for others, as ``host:port``."""
    listener = next(iter(settings.parts("listeners")), "")
    url = urlsplit(settings.text(ADVERTISED) or listener)
    host = url.hostname or "localhost"
    port = _DEFAULT_PORT if url.port is None else url.port
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
