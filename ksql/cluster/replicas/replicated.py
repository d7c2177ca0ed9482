"""A table's partitions as one query reads them, from whichever servers hold them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ksql.cluster.replicas.failover import FailoverRows, ReadProvenance, ReplicaDown, Route
from ksql.cluster.replicas.replica_status import StalenessLimits
from ksql.core import Token
from ksql.views import ViewMaintainer, query_id_of

if TYPE_CHECKING:
    from ksql.cluster.members import Server
    from ksql.cluster.replicas.cluster_status import Cluster
    from ksql.cluster.replicas.partition_assignment import PartitionAssignment
    from ksql.cluster.replicas.read_request import ReplicaReader
    from ksql.cluster.replicas.replica_client import Peers
    from ksql.sql.catalog import DataSource
    from ksql.views.stores import Rows

READY_S: Final = 10.0
_PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A client's demands on the replicas that its request is answered from.

    Attributes: credentials: Its header Authorization; passed on to other servers. info: Whether the
        answer should say which replicas it is of, and how far those were. token: The positions
        that the client has seen already; the answer holds them, and ends with a token of its own.
        None for a request that is not about tokens.
    """

    credentials: str = ""
    info: bool = False
    token: Token | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReader:
    """The terms of a query's reads, and the replicas that it has read.

    Attributes:
        credentials: The client's, as the header Authorization has them; they are passed on.
        info: Whether the answer says how far its replicas were, which is to be of its rows exactly.
        at_least: The positions that replicas must have reached, by topic and partition.
        token: The client's token of what it has seen already, from which such positions follow.
        patience_s: How long it waits for replicas that cannot answer yet.
    """

    allowed: StalenessLimits
    committed: bool = False
    credentials: str = ""
    info: bool = False
    at_least: Mapping[tuple[str, int], int] = field(default_factory=dict)
    token: Token | None = None
    origins: ReadProvenance = field(default_factory=ReadProvenance)
    patience_s: float = READY_S

    @property
    def is_plain(self) -> bool:
        """Whether any running replica of this server will do, whatever moment it is of."""
        return not (self.committed or self.info or self.allowed.is_limited)


class Replicas:
    """The partitions of all tables, wherever they are; for any number of threads."""

    def __init__(
        self,
        assignment: PartitionAssignment,
        here: ReplicaReader,
        peers: Peers,
        tables: ViewMaintainer,
        others: Cluster,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``here``: the replicas of this server."""
        self._assignment = assignment
        self._here = here
        self._peers = peers
        self._tables = tables
        self._others = others
        self._now_s = now_s

    def is_alone(self) -> bool:
        """Return whether all partitions are here for good: no other server lives."""
        return not self._assignment.others()

    def rows(self, source: DataSource, partitions: int, reader: QueryReader) -> dict[int, Rows]:
        """Return the rows of a table's partitions; nothing is asked yet."""
        deadline = self._now_s() + reader.patience_s

        def pause() -> bool:
            self._tables.await_progress(_PAUSE_S)
            return self._now_s() < deadline

        def replicas_of(server: Server) -> ReplicaReader:
            if server == self._assignment.me:
                return self._here
            return self._peers.replicas_of(server, reader.credentials)

        def routed_rows(partition: int) -> FailoverRows:
            return FailoverRows(
                table=source.name,
                topic=source.topic,
                query_id=query_id_of(source),
                partition=partition,
                committed=reader.committed,
                route=lambda: self._route(source, partition, reader),
                replicas_of=replicas_of,
                pause=pause,
                origins=reader.origins,
                named=reader.token is not None and bool(reader.token.positions),
            )

        return {partition: routed_rows(partition) for partition in range(partitions)}

    def _route(self, source: DataSource, partition: int, reader: QueryReader) -> Route:
        route = Route(
            order=self._assignment.order(source.topic, partition),
            allowed=reader.allowed,
            lags=self._others.lags(query_id_of(source), partition),
            at_least=reader.at_least.get((source.topic, partition), 0),
        )
        for server in route.order:
            why = self._others.silent(server)
            if why and server != self._assignment.me:
                route.note(server, ReplicaDown(why))
        return route
