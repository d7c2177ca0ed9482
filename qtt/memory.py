"""The service in memory behind the HTTP application: statements and queries of clients."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from ksql.cluster.replicas import (
    Caller,
    Freshness,
    HeartbeatsOff,
    Processed,
    ReadRequest,
    ReadResult,
    ReplicaStatus,
    Unreachable,
)
from ksql.control.statements import (
    Health,
    QueryHistory,
    ServerInfo,
    end_cluster,
    reports,
    row_writer,
)
from ksql.control.statements import execute as requests
from ksql.control.statements.dry_run import dry_run
from ksql.core import NotReady, Offset, Settings, Token, TokenScope
from ksql.exec.memory import MemoryExtents, MemoryFeed, MemoryTopics
from ksql.serving import BrowsedRecords, BrowseRequest, QueryService, ResultStream, TextStream
from ksql.views import store_config_of
from ksql.views.stores import MemoryStore, RetentionStore, Rows, Store
from server.app import behind_http
from server.listeners import bind, parse_listeners, url_of
from server.service import Service, StartedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ksql.cluster import ClusterStatus, HostStoreLags, Server
    from ksql.control import BySite
    from ksql.control.engine import CommandStatus, Engine
    from ksql.control.statements import Entity, RowWriter, Services
    from ksql.core import Counts
    from ksql.sql.catalog import DataSource

ANYWHERE_FREE: Final = "http://127.0.0.1:0"


class MemoryTables:
    """Each table in one store that holds all of its topic at the moment of the request."""

    far = False

    def __init__(self, engine: Engine, topics: MemoryTopics) -> None:
        self._engine = engine
        self._topics = topics

    def opened(self, settings: Settings, caller: Caller) -> MemoryTables:
        """Return the same for every request."""
        del settings, caller
        return self

    def at_hand(self, source: DataSource, settings: Settings) -> bool:
        """Nothing is elsewhere."""
        del source, settings
        return True

    def stores(self, source: DataSource) -> Mapping[int, Rows]:
        """Return a table's one partition, filled from its topic."""
        store: Store = MemoryStore()
        kept_ms = store_config_of(self._engine.catalog, source, Settings()).retention_ms
        if kept_ms is not None and source.window is not None:
            store = RetentionStore(store, kept_ms, sessions=source.window.size_ms is None)
        log = self._topics.records.get(source.topic, [])
        store.put(
            (record.key, record.value, record.timestamp) for record in log if record.key is not None
        )
        store.commit(Offset(len(log)))
        return {0: store}

    def last_host(self) -> str:
        """Return nothing: there is no other server."""
        return ""

    def sites(self) -> Mapping[str, BySite]:
        """Return nothing: nobody counts."""
        return {}

    def demands(self, topics: Iterable[str]) -> Mapping[tuple[str, int], int]:
        """Return nothing: all that was written is there."""
        del topics
        return {}

    def token(self) -> Token:
        """Return one that names nothing."""
        return Token()

    def freshness(self) -> list[Freshness]:
        """There are no replicas."""
        return []


def memory_reads(
    engine: Engine, topics: MemoryTopics, now_ms: Callable[[], int], *, follow: bool = True
) -> QueryService:
    """Return the queries of clients over these topics.

    ``follow``: push queries wait for records that are still to come.
    """
    return QueryService(
        engine,
        partial(MemoryFeed, topics, follow=follow),
        MemoryExtents(topics),
        MemoryTables(engine, topics),
        now_ms,
    )


class MemoryService(Service):
    """A server that is alone; what others would need of it is not there.

    ``follow``: push queries wait for records that are still to come.
    """

    is_follower = False
    terminated = False
    scope = TokenScope("memory", "default_")
    host = "localhost:8088"
    scheme = "http"
    secret = None
    tls = None

    def __init__(
        self,
        engine: Engine,
        topics: MemoryTopics,
        services: Services,
        settings: Settings,
        *,
        follow: bool = True,
    ) -> None:
        self.services = services
        self.settings = settings
        self.reads = memory_reads(engine, topics, services.now_ms, follow=follow)
        self._topics = topics
        services.close_push, services.pushes = self.reads.close, self.reads.pushes

    def begin(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        credentials: str = "",
        token: Token | None = None,
        user: str = "",
    ) -> StartedRequest:
        del credentials
        return requests.Execution(
            text, self.services, self.settings, properties, variables, token, user
        )

    def dry_run(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> list[Entity]:
        return dry_run(text, self.services, self.settings, properties, variables)

    def awaiting(self, offset: int) -> Callable[[], bool]:
        del offset
        return lambda: True

    def inserts(self, target: str, properties: Mapping[str, str]) -> RowWriter:
        return row_writer(target, self.services, self.settings, properties)

    def statuses(self) -> Mapping[str, CommandStatus]:
        return dict(self.services.engine.statuses)

    def status(self, command_id: str) -> CommandStatus | None:
        return self.statuses().get(command_id)

    def check_property(self, name: str) -> None:
        self.settings.settable(name)

    def terminate(self, delete_topics: Sequence[str]) -> list[Entity]:
        return end_cluster(
            self.services, self.settings, self._topics, "commands", delete_topics, lambda: None
        )

    def query(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        tombstones: bool = True,
        caller: Caller | None = None,
    ) -> ResultStream | TextStream:
        return self.reads.open(
            text,
            self.services,
            self.settings,
            properties,
            variables,
            tombstones=tombstones,
            caller=caller,
        )

    def at_once(
        self, text: str, properties: Mapping[str, str], caller: Caller
    ) -> ResultStream | None:
        return self.reads.at_once(text, self.settings, properties, caller)

    def close_query(self, query_id: str) -> bool:
        return self.reads.close(query_id)

    def browse(self, ask: BrowseRequest) -> BrowsedRecords:
        return self.reads.browse(ask)

    def close(self) -> None:
        """End all push queries."""
        self.reads.close_all()

    def info(self) -> ServerInfo:
        return ServerInfo(metadata.version("ksql-spark"), self.scope.cluster, self.scope.service)

    def health(self) -> Health:
        return Health({"metastore": True, "kafka": True, "commandRunner": True})

    def unready(self) -> dict[str, str]:
        return {}

    def metrics(self, accept: str, unready: Sequence[str], requests: Counts) -> tuple[bytes, str]:
        del accept, unready, requests
        return b"", "text/plain; charset=utf-8"

    def history(self, query_id: str) -> QueryHistory:
        return QueryHistory(query_id, ())

    def forward_target(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> None:
        del text, properties, variables

    def leader(self) -> Server:
        raise NotReady("there is no other server")

    def is_leader(self, server: Server) -> bool:
        del server
        return False

    def cluster_status(self) -> ClusterStatus:
        raise HeartbeatsOff

    def note_alive(self, host: str) -> None:
        raise HeartbeatsOff

    def reported(self, host: str, lags: HostStoreLags) -> None:
        raise HeartbeatsOff

    def read_replica(self, ask: ReadRequest) -> ReadResult:
        raise Unreachable(f"no copy of {ask.query_id} is here")

    def report(self, queries: Sequence[str]) -> bytes:
        return reports.form(reports.report(self.services, queries))

    def replica_statuses(self) -> Mapping[tuple[str, int], ReplicaStatus]:
        return {}

    def processed(self, query_id: str) -> Processed:
        del query_id
        return Processed({})

    def holders(self, table: str, key: list[Any] | None) -> list[dict[str, Any]]:
        del table, key
        return []


@contextmanager
def hosted(service: MemoryService) -> Iterator[str]:
    """Answer over HTTP, at the URL that this gives."""
    with ExitStack() as stack:
        sockets = bind(parse_listeners(ANYWHERE_FREE))
        for sock in sockets:
            stack.callback(sock.close)
        stack.callback(service.close)
        stack.enter_context(behind_http(service, sockets))
        yield url_of(sockets[0])
