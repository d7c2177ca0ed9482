"""The service as its clients see it: what routes call, and fakes and the query tests stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping, Sequence

    from ksql.cluster import ClusterStatus, HostStoreLags, Server
    from ksql.cluster.replicas import Caller, Processed, ReadRequest, ReadResult, ReplicaStatus
    from ksql.control.engine import CommandStatus
    from ksql.control.statements import Delivery, Entity, Health, QueryHistory, ServerInfo
    from ksql.core import Counts, ServerSecret, Token, TokenScope
    from ksql.serving import BrowsedRecords, BrowseRequest, ResultStream, TextStream


class StartedRequest(Protocol):
    """A request of statements that has begun."""

    def proceed(self) -> list[Entity] | None:
        """Carry out what is left; return the answers, None while a statement waits.

        Raises: RequestFailed.
        """


class RowInserter(Protocol):
    """The writer of rows to one stream."""

    def begin(self, row: Mapping[str, Any]) -> Delivery:
        """Hand one row over; it counts once ``wait`` has returned. Absent columns are NULL.

        Raises: UnknownField, CannotInsert.
        """


class Service(Protocol):
    """One server of the service.

    Every method may block and may be called from several threads at once. Every method raises
    ``KsqlError`` for a user's error; anything else is a defect and reported as a 50000.
    """

    # statements

    def begin(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        credentials: str = "",
        token: Token | None = None,
        user: str = "",
    ) -> StartedRequest:
        """Check a request of one or more statements, which is then carried out.

        It answers with the entities of those that have one, in order. ``properties`` and
        ``variables`` hold for this request. ``credentials`` is the client's header Authorization,
        with which other servers are asked. With a ``token`` the last entity names the records of
        INSERT VALUES as well, if there are any. ``user`` is who has signed in, for the history.

        Raises: RequestFailed.
        """

    def dry_run(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> list[Entity]:
        """Return what each statement of a request would do, with the effects of those before it.

        Raises: RequestFailed, with the answers of those before the first that could not be
            executed.
        """

    def awaiting(self, offset: int) -> Callable[[], bool]:
        """Return whether the command topic has been replayed up to there, as a question.

        The question raises CommandTimeout once the time is over in which it should have been.
        """

    def inserts(self, target: str, properties: Mapping[str, str]) -> RowInserter:
        """Return the writer of rows to the stream of that name.

        Raises: RequestFailed for what does not take rows.
        """

    def statuses(self) -> Mapping[str, CommandStatus]:
        """Return the status of every distributed statement, by command id."""

    def status(self, command_id: str) -> CommandStatus | None:
        """Return the status of one distributed statement (``stream/`S`/create``)."""

    def check_property(self, name: str) -> None:
        """Check that SET would accept that name.

        Raises: UnknownProperty, FixedProperty.
        """

    def terminate(self, delete_topics: Sequence[str]) -> list[Entity]:
        """Tear the cluster down: end all queries, delete the sink topics that the list matches.

        ``delete_topics`` holds names and patterns; the answer is the command's status. The command
        topic is deleted, too.

        Raises: BadPattern, RequestFailed.
        """

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
        """Start one query or PRINT; the caller closes the stream.

        ``caller``: what the request says of the replicas that it is answered from.
        Without ``tombstones`` the deletions of a table are no rows: LIMIT does not count them.
        Raises: RequestFailed, also for a text that is not a single query.
        """

    def at_once(
        self, text: str, properties: Mapping[str, str], caller: Caller
    ) -> ResultStream | None:
        """Start a query that waits for nothing; None for any other, which ``query`` starts.

        Raises: RequestFailed.
        """

    def close_query(self, query_id: str) -> bool:
        """End a push query of this server; False when there is none of that id."""

    def browse(self, ask: BrowseRequest) -> BrowsedRecords:
        """Return some records of a topic as text; it waits for none that is still to come.

        Raises: NotPermitted, UnknownName, INTERNAL_TOPIC, UnknownPartition.
        """

    # the server

    @property
    def scope(self) -> TokenScope:
        """The Kafka cluster and the service that consistency tokens of this server are of."""

    @property
    def terminated(self) -> bool:
        """Whether this follower has found that the service was terminated at another server."""

    def info(self) -> ServerInfo:
        """Return version and identity; cheap."""

    def health(self) -> Health:
        """Return how the parts are doing; may talk to Kafka, so that the result is cached."""

    def unready(self) -> Mapping[str, str]:
        """Return why it should get no requests, a sentence by word; also while it starts.

        It neither blocks nor asks anybody: the event loop calls it.
        """

    def metrics(self, accept: str, unready: Sequence[str], requests: Counts) -> tuple[bytes, str]:
        """Return the metrics and their media type, also while it starts; waits for nobody.

        ``accept`` is the client's header, ``unready`` are the words of the reasons that it is so.
        ``requests`` are the numbers of answers by route and status.
        """

    def history(self, query_id: str) -> QueryHistory:
        """Return the last hours of a query as this server has seen them; waits for nobody."""

    # several servers

    @property
    def host(self) -> str:
        """The address of this server for other servers (``host:port``), known before its start."""

    @property
    def is_follower(self) -> bool:
        """Whether another server leads, or is to, and this one follows it."""

    @property
    def scheme(self) -> str:
        """How the servers of the service speak to each other: http or https."""

    @property
    def secret(self) -> ServerSecret | None:
        """The secret that they share, to know one another by."""

    @property
    def tls(self) -> ssl.SSLContext | None:
        """With which keys and trust they speak over https."""

    def forward_target(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> Server | None:
        """Return the server that a request of statements is to be passed on to; None: this one.

        Raises: NotLeaderYet, if no server leads at the moment.
        """

    def leader(self) -> Server:
        """Return the other server that leads.

        Raises: NotLeaderYet, if there is none at the moment, or it has fallen silent.
        """

    def is_leader(self, server: Server) -> bool:
        """Return whether that other server leads, and has sent a heartbeat lately."""

    def cluster_status(self) -> ClusterStatus:
        """Return the servers that are known, and how far their stores are; asks Kafka.

        Raises: HeartbeatsOff.
        """

    def note_alive(self, host: str) -> None:
        """Note that another server lives.

        Raises: HeartbeatsOff.
        """

    def reported(self, host: str, lags: HostStoreLags) -> None:
        """Note how far another server's stores are.

        Raises: HeartbeatsOff.
        """

    def read_replica(self, ask: ReadRequest) -> ReadResult:
        """Read one of this server's replicas for another server, which answers a query from it.

        Raises: ReadRejected, Unreachable.
        """

    def report(self, queries: Sequence[str]) -> bytes:
        """Report the queries of this server to another one: those in detail, or all in short."""

    def replica_statuses(self) -> Mapping[tuple[str, int], ReplicaStatus]:
        """Return how far every copy of this server is, by query and partition; asks Kafka."""

    def processed(self, query_id: str) -> Processed:
        """Return how far a query that this server runs has processed its sources for good."""

    def holders(self, table: str, key: list[Any] | None) -> list[dict[str, Any]]:
        """Return which servers hold a table's partitions, on request only the one of a key.

        Raises: UnknownName, NotQueryable, BadKey.
        """


class ServerProcess(Service, Protocol):
    """A service with its life, which the process around it begins and ends."""

    headless: str
    """What was done with the file that the server runs, in words; empty if clients send statements.

    Followers leave it to the leader.
    """
    on_lost: Callable[[], object]
    """Called when this server, one of several, must restart to rejoin; see ``again``."""

    @property
    def again(self) -> bool:
        """Whether it is to be started again once it has been stopped."""

    def start(self) -> None:
        """Bring everything up.

        Raises: StartError and other KsqlErrors; what was started is stopped again.
        """

    def leave(self) -> None:
        """Let the other servers take over the reads of its stores while it still answers."""

    def stop(self) -> None:
        """End everything; a second call does nothing."""

    def addresses(self) -> Mapping[str, str]:
        """Return the URLs of the other services of this server; known once it has started."""
