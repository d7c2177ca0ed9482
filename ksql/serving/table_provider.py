"""The rows of tables for pull queries: those of this server, or of whichever server holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from ksql.cluster.replicas import (
    Caller,
    ConsistencyResolver,
    Freshness,
    NotFollowed,
    QueryReader,
    ReadProvenance,
    ReplicaService,
    StalenessLimits,
    TokenNotReached,
)
from ksql.control import BySite
from ksql.core import KsqlError, Settings, Token, merged
from ksql.core.properties import LONG_MAX
from ksql.serving.pull import Tables
from ksql.views import EndOffsets, MaterializedView, Places, TableNotReady, ViewMaintainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ksql.sql.catalog import DataSource
    from ksql.views.stores import Rows

_READY_S: Final = 10.0
_FIRST_S: Final = 20.0
ISOLATION: Final = "ksql.query.pull.isolation.level"
TIMEOUT: Final = "ksql.query.pull.consistency.token.timeout.ms"


class OpenTables(Tables, Protocol):
    """The tables as one request reads them."""

    @property
    def far(self) -> bool:
        """Whether other servers may be asked."""

    def last_host(self) -> str:
        """Return the server whose replica was read last; nothing if no other one may be asked."""

    def freshness(self) -> list[Freshness]:
        """Return the replicas that were read.

        Raises: KsqlError.
        """

    def sites(self) -> Mapping[str, BySite]:
        """Return at how many servers each table was read."""

    def demands(self, topics: Iterable[str]) -> Places:
        """Return how far these topics must be read for an answer of what the token names.

        Raises: TokenNotReached, KsqlError.
        """

    def token(self) -> Token:
        """Return what the client has seen now; to be called once all has been read.

        Raises: KsqlError.
        """


class AllTables(Protocol):
    """The rows of tables."""

    def opened(self, settings: Settings, caller: Caller) -> OpenTables:
        """Return the tables as one request reads them."""

    def at_hand(self, source: DataSource, settings: Settings) -> bool:
        """Return whether a read of a table asks neither Kafka nor other servers."""


class TableProvider:
    """Opens tables for the pull queries of this server; for any number of threads."""

    def __init__(
        self,
        tables: ViewMaintainer,
        ends: EndOffsets,
        has_processed: Callable[[str], bool],
        replica_service: ReplicaService | None,
        following: ConsistencyResolver,
    ) -> None:
        """Take ``has_processed``: whether a persistent query has looked at its sources."""
        self._following = following
        self._is_known = following.is_known
        self._tables = tables
        self._ends = ends
        self._has_begun = has_processed
        self._replica_service = replica_service
        self._begun: set[str] = set()
        self._first_ends: dict[str, tuple[str, Places]] = {}
        self._last = (Settings(), StalenessLimits.of(Settings()), False)

    def opened(self, settings: Settings, caller: Caller) -> ReadSnapshot:
        token = caller.token
        allowed, committed = self._terms(settings)
        reader = QueryReader(
            allowed=allowed,
            committed=committed,
            credentials=caller.credentials,
            info=caller.info,
            patience_s=_READY_S if token is None else settings.number(TIMEOUT) / 1000,
            token=token,
        )
        return ReadSnapshot(self, reader)

    def _terms(self, settings: Settings) -> tuple[StalenessLimits, bool]:
        """Return which replicas may be read, and whether only what is committed.

        One look-up after another asks with the same settings.
        """
        last = self._last
        if last[0] is not settings:
            committed = settings.text(ISOLATION).lower() == "read_committed"
            last = self._last = (settings, StalenessLimits.of(settings), committed)
        return last[1], last[2]

    def rows(self, source: DataSource, reader: QueryReader) -> tuple[Mapping[int, Rows], bool]:
        """Return a table's partitions, and whether they are not simply those of this server.

        Raises: TableNotReady, TokenNotReached.
        """
        service = self._replica_service
        if reader.token is not None:
            reader = replace(reader, at_least=self.demands(source.topic, reader))
        if service is None or self._is_here(reader.allowed):
            ready = self._ready(source, reader)
            if service is None or reader.is_plain:
                return ready.rows(committed=reader.committed), False
            return service.replicas.rows(source, ready.count, reader), True
        if not self._is_looked_at(source):
            raise self._not_ready(source, lambda: self._is_looked_at(source))
        view, first = self._tables.table(source), self._first_answer(source)
        count = len(first) if view is None else view.count
        reader = replace(reader, at_least=merged((reader.at_least, first)))
        return service.replicas.rows(source, count, reader), True

    def _is_looked_at(self, source: DataSource) -> bool:
        """Return whether a table is open here, or it is known why it is only elsewhere."""
        return self._tables.table(source) is not None or bool(self._tables.hindrance(source))

    def at_hand(self, source: DataSource, settings: Settings) -> bool:
        allowed, committed = self._terms(settings)
        plain = self._replica_service is None or not (committed or allowed.is_limited)
        return plain and str(source.created_by) in self._begun and self._is_here(allowed)

    def _is_here(self, allowed: StalenessLimits) -> bool:
        """Return whether the replicas of this server are the only ones to read."""
        service = self._replica_service
        return service is None or (allowed.time_lag_ms is None and service.replicas.is_alone())

    def demands(self, topic: str, reader: QueryReader) -> Places:
        """Return how far a topic must have been read for an answer of what its token names.

        Raises: TokenNotReached, KsqlError.
        """
        token = reader.token
        if token is None:
            return {}

        def required_offsets() -> Places:
            here = self._tables.reached(topic)
            return self._following.demands(topic, token, here, reader.credentials)

        def is_ready() -> bool:
            try:
                required_offsets()
            except NotFollowed:
                return False
            except KsqlError:
                return True  # the query itself will fail with it
            return True

        try:
            return required_offsets()
        except NotFollowed as late:
            raise TokenNotReached(str(late), is_ready, reader.patience_s) from late

    def measured(self, read: Freshness, topics: Mapping[str, str]) -> Freshness:
        """Return how far a replica was that was read, its lag as of now if it is here.

        ``topics`` are those of tables. Raises: KsqlError.
        """
        if self._replica_service is None or read.host != self._replica_service.host:
            return read
        partition = topics[read.table], read.partition
        return replace(
            read, status=self._replica_service.local_replicas.measured(partition, read.status)
        )

    def sites(self, origins: ReadProvenance) -> Mapping[str, BySite]:
        """Return at how many servers each table was read, here and elsewhere."""
        here = "" if self._replica_service is None else self._replica_service.host
        hosts_by_table: dict[str, set[str]] = {}
        for table, _, host in origins.freshness:
            hosts_by_table.setdefault(table, set()).add(host)
        return {
            table: BySite(local=int(here in hosts), remote=len(hosts - {here}))
            for table, hosts in hosts_by_table.items()
        }

    def reached(self, source: DataSource, reader: QueryReader) -> Places:
        """Return offsets after all that a read of a table's stores here can have seen."""
        table = self._tables.table(source)
        parts = () if table is None else table.parts.values()
        return {part.place: part.seen(committed=reader.committed) for part in parts}

    def seen(self, origins: ReadProvenance) -> Places:
        """Return how far the replicas were that a query has read, after all that it has seen.

        A replica that was not read to its end does not say it: then it is where its topic ends now.

        Raises: KsqlError.
        """
        offsets, unknown = origins.reached()
        if not unknown:
            return offsets
        ends = self._following.ends({topic for topic, _ in unknown})
        return offsets | {partition: ends[partition] for partition in unknown if partition in ends}

    def _ready(self, source: DataSource, reader: QueryReader) -> MaterializedView:
        """Return a table that lacks so many records at most; wait for nothing.

        Raises: TableNotReady.
        """
        query_id = str(source.created_by)
        begun, view, reason = query_id in self._begun, None, ""
        if not begun and not self._has_begun(query_id):
            reason = "its query has not finished its first batch"
        else:
            view = self._readable_view(source, reader, begun=begun)
        behind = "" if view is None else view.behind(reader.at_least, committed=reader.committed)
        if view is not None and not behind:
            return view

        def is_ready() -> bool:
            try:
                self._ready(source, reader)
            except TableNotReady:
                return False
            except KsqlError:
                return True  # the query itself will fail with it
            return True

        if behind:
            raise TokenNotReached(behind, is_ready, reader.patience_s)
        raise self._not_ready(source, is_ready, reason, _READY_S if begun else _FIRST_S)

    def _not_ready(
        self,
        source: DataSource,
        is_ready: Callable[[], bool],
        reason: str = "",
        patience_s: float = _READY_S,
    ) -> TableNotReady:
        return TableNotReady(
            source.name,
            0 if reason else self._tables.missing(source),
            reason or self._tables.hindrance(source),
            is_ready,
            patience_s,
        )

    def _readable_view(
        self, source: DataSource, reader: QueryReader, *, begun: bool
    ) -> MaterializedView | None:
        """Return a table that lacks no more than it may.

        For a table that was just made, no answer is better than an empty one.
        """
        lag, committed = _lag(reader.allowed), reader.committed
        ends = {} if begun else self._first_answer(source)
        view = self._tables.readable_view(source, lag, committed=committed)
        if view is None or (ends and view.missing(ends, committed=committed) > lag):
            return None
        if len(view.parts) < view.count:
            return None  # another server, which held the others, has just gone
        if not begun and lag == 0:
            self._begun = {query_id for query_id in self._begun if self._is_known(query_id)}
            self._begun.add(str(source.created_by))
        return view

    def _first_answer(self, source: DataSource) -> Places:
        """Return where its topic ended at the first request: a busy one is never read to its end.

        Raises: TableNotReady, if its query has not begun.
        """
        query_id, table = str(source.created_by), self._tables.table(source)
        topic_id = "" if table is None else table.topic_id
        known, ends = self._first_ends.get(query_id, (topic_id, None))
        if ends is None or topic_id not in ("", known):  # or of a topic that was recreated since
            if not self._has_begun(query_id):
                raise self._not_ready(
                    source,
                    lambda: self._has_begun(query_id),
                    "its query has not finished its first batch",
                    _FIRST_S,
                )
            ends = self._ends.end_offsets([source.topic])
            kept = {id_: at for id_, at in self._first_ends.items() if self._is_known(id_)}
            self._first_ends = {**kept, query_id: (topic_id, ends)}
        return ends


def _lag(allowed: StalenessLimits) -> int:
    """Return how many records a table of this server alone may lack."""
    if allowed.offset_lag is not None:
        return allowed.offset_lag
    return LONG_MAX if allowed.restoring else 0


class ReadSnapshot:
    """The tables as one request reads them; see ``ksql.serving.pull.Tables``."""

    def __init__(self, reads: TableProvider, reader: QueryReader) -> None:
        self._reads = reads
        self._reader = reader
        self._here: list[DataSource] = []
        self._topics: dict[str, str] = {}
        self.far = False
        """Whether other servers may be asked."""

    def stores(self, source: DataSource) -> Mapping[int, Rows]:
        rows, far = self._reads.rows(source, self._reader)
        self._topics[source.name] = source.topic
        if far:
            self.far = True
        else:
            self._here.append(source)
        return rows

    def last_host(self) -> str:
        """Return the server whose replica was read last; nothing if no other one may be asked."""
        return self._reader.origins.last

    def sites(self) -> Mapping[str, BySite]:
        """Return at how many servers each table was read; with those of this one."""
        here = {source.name: BySite(local=1) for source in self._here}
        return {**self._reads.sites(self._reader.origins), **here}

    def demands(self, topics: Iterable[str]) -> Places:
        """Return how far these topics must be read for an answer of what the token names.

        Raises: TokenNotReached, KsqlError.
        """
        return merged(self._reads.demands(topic, self._reader) for topic in topics)

    def freshness(self) -> list[Freshness]:
        """Return the replicas that were read.

        Raises: KsqlError.
        """
        read = self._reader.origins.listed()
        return [self._reads.measured(replica, self._topics) for replica in read]

    def token(self) -> Token:
        """Return what the client has seen now; to be called once all has been read.

        Raises: KsqlError.
        """
        seen = [self._reads.reached(source, self._reader) for source in self._here]
        seen.append(self._reads.seen(self._reader.origins))
        return (self._reader.token or Token()).with_(merged(seen))
