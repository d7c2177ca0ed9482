"""The service in memory behind the HTTP application: statements and queries of clients."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from ksql.control.statements import execute as requests
from ksql.core.config import Settings
from ksql.core.ids import Offset
from ksql.core.token import Token, TokenScope
from ksql.exec.memory.feed import MemoryExtents, MemoryFeed
from ksql.serving.query_service import QueryService
from ksql.views.store_config import store_config_of
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.retention_store import RetentionStore
from server.hosting import behind_http
from server.listeners import bind, parse_listeners, url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ksql.app.service import KsqlService
    from ksql.cluster.replicas.failover import Freshness
    from ksql.cluster.replicas.replicated import Caller
    from ksql.control.engine.engine import Engine
    from ksql.control.pull_metrics import BySite
    from ksql.control.statements.services import Services
    from ksql.exec.memory.driver import MemoryTopics
    from ksql.serving.results import ResultStream, TextStream
    from ksql.sql.catalog.model import DataSource
    from ksql.views.stores.base import Rows, Store

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
        """There are no copies."""
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


class MemoryService:
    """The part of ``KsqlService`` that a client's statements and queries ask."""

    is_follower = False
    terminated = False
    scope = TokenScope("memory", "default_")
    host = "localhost:8088"

    def __init__(
        self, engine: Engine, topics: MemoryTopics, services: Services, settings: Settings
    ) -> None:
        self._services = services
        self._settings = settings
        self._reads = memory_reads(engine, topics, services.now_ms)
        services.close_push, services.pushes = self._reads.close, self._reads.pushes

    def begin(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        credentials: str = "",
        token: Token | None = None,
    ) -> requests.Execution:
        """Begin to run statements.

        Raises: RequestFailed.
        """
        del credentials
        return requests.Execution(
            text, self._services, self._settings, properties, variables, token
        )

    def awaiting(self, offset: int) -> Callable[[], bool]:
        """Return a question: every command was carried out before its answer."""
        del offset
        return lambda: True

    def query(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        tombstones: bool = True,
        caller: Caller | None = None,
    ) -> ResultStream | TextStream:
        """Start one query or PRINT.

        Raises: RequestFailed.
        """
        return self._reads.open(
            text,
            self._services,
            self._settings,
            properties,
            variables,
            tombstones=tombstones,
            caller=caller,
        )

    def at_once(
        self, text: str, properties: Mapping[str, str], caller: Caller
    ) -> ResultStream | None:
        """Start a query that waits for nothing; None for any other, which ``query`` starts.

        Raises: RequestFailed.
        """
        return self._reads.at_once(text, self._settings, properties, caller)

    def close_query(self, query_id: str) -> bool:
        """End a push query; False when there is none of that id."""
        return self._reads.close(query_id)

    def close(self) -> None:
        """End all push queries."""
        self._reads.close_all()


@contextmanager
def hosted(service: MemoryService) -> Iterator[str]:
    """Answer over HTTP, at the URL that this gives."""
    with ExitStack() as stack:
        sockets = bind(parse_listeners(ANYWHERE_FREE))
        for sock in sockets:
            stack.callback(sock.close)
        stack.callback(service.close)
        stack.enter_context(behind_http(cast("KsqlService", service), sockets))
        yield url_of(sockets[0])
