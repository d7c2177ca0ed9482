"""The service as its doors see it: statements, queries, rows, health."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from ksql.app.headless import carry_out, queries_file, read
from ksql.app.node import Node
from ksql.app.teardown import end_cluster
from ksql.cluster.replicas.cluster import own_scheme
from ksql.control.log.quarantine import CommandTrouble
from ksql.control.log.topic_integrity import CommandTopicLost
from ksql.control.statements import entities as e
from ksql.control.statements import execute as requests
from ksql.control.statements import reports
from ksql.control.statements.answers import Health, RequestFailed, ServerInfo
from ksql.control.statements.inserts import RowWriter
from ksql.control.statements.queriesfile import StatedCommands
from ksql.core.errors import CommandTimeout, KsqlError, NotReady
from ksql.core.process.lease import NotLeader
from ksql.core.token import TokenScope
from ksql.kafka.topics import KafkaTopics

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ksql.cluster.cluster import ClusterStatus, HostStoreLags
    from ksql.cluster.members import Server
    from ksql.cluster.replicas.read_request import Processed, ReadRequest
    from ksql.cluster.replicas.replica_reader import ReadResult
    from ksql.cluster.replicas.replica_status import ReplicaStatus
    from ksql.cluster.replicas.replicated import Caller
    from ksql.control.engine.ports import Command
    from ksql.control.engine.progress import CommandStatus
    from ksql.core.servertoken import ServerSecret
    from ksql.core.token import Token
    from ksql.serving.results import ResultStream, TextStream

_WAITING_PAUSE_S = 0.05
_WITHDRAWAL_S = 1.0
_TAKEN_OVER_S = 2.5
"""The others look once a second who is there, and begin to fill the stores that come to them."""


@dataclass(frozen=True, slots=True)
class Running:
    """A request of statements that has begun."""

    execution: requests.Execution
    finish: Callable[[list[e.Entity]], list[e.Entity]]

    def proceed(self) -> list[e.Entity] | None:
        """Carry out what is left; return the answers, None while a statement waits.

        Raises: RequestFailed.
        """
        done = self.execution.proceed()
        return None if done is None else self.finish(done)


class NotLeaderYet(NotReady):
    """A statement that changes something came to a server that may not carry it out."""

    def __init__(self, leader: Server | None) -> None:
        super().__init__(
            "this server is not the leader of the service"
            if leader
            else "no server is the leader of the service at the moment",
            detail=f"{leader} is." if leader else "",
            hint="Send it again in some seconds: when a server dies, another one takes over.",
        )


def version() -> str:
    """Return the version of this service."""
    return metadata.version("ksql-spark")


class KsqlService(Node):
    """One server as its doors see it; see ``Node`` for its life.

    Every method may block and may be called from several threads at once. Every method raises
    ``KsqlError`` for a user's error; anything else is a defect and reported as a 50000.
    """

    headless = ""
    """What was done with the file that the server runs, in words; empty if clients send statements.

    Servers that stand by leave it to the leader.
    """

    def start(self) -> None:
        """Bring everything up, then run the file of ``ksql.queries.file`` if there is one.

        Raises: as ``Node.start`` does; BadQueriesFile.
        """
        self._stated = StatedCommands()
        file = queries_file(self.settings)
        if file is not None:
            read(file)  # before what takes long
        super().start()
        if file is None:
            return
        try:
            self.headless = self._run_file(file)
        except BaseException:
            self.stop()
            raise

    def _run_file(self, file: Path) -> str:
        if self.is_follower:
            return f"{file} is left to the leader"
        return carry_out(file, self.services, self.settings, self._stated, self.log_topic)

    def _replay(self, offset: int, command: Command) -> None:
        super()._replay(offset, command)
        self._stated.note(command)

    def leave(self) -> None:
        """Let the other servers take over the reads of its stores while it still answers.

        It takes charge no more, even if the leader ends. That one is among the others until
        its queries have ended. This ends in five seconds, whatever does not answer.
        """
        members, follower = self._peers, self._follower
        if members is None or follower is None or not follower.withdraw(_WITHDRAWAL_S):
            return
        leads = not self.is_follower or members.leader() == members.me
        if leads or self.again or len(members.alive()) == 1:
            return
        members.leave(_WITHDRAWAL_S)
        time.sleep(_TAKEN_OVER_S)

    def execute(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        command_sequence_number: int | None,
        credentials: str = "",
        token: Token | None = None,
    ) -> list[e.Entity]:
        """Run one or more statements; return the entities of those that answer with one, in order.

        ``properties`` and ``variables`` hold for this request. With a sequence number the service
        first waits until it has replayed the command topic up to it. ``credentials`` is the
        client's header Authorization, with which other servers are asked. With a ``token`` the last
        entity names the records of INSERT VALUES as well, if there are any.

        Raises: RequestFailed for the first statement that fails; CommandTimeout.
        """
        if command_sequence_number is not None:
            self.await_command(command_sequence_number)
        running = self.begin(text, properties, variables, credentials, token)
        while (done := running.proceed()) is None:
            time.sleep(_WAITING_PAUSE_S)
        return done

    def begin(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        credentials: str = "",
        token: Token | None = None,
    ) -> Running:
        """Check a request of statements, which is then carried out: see ``execute``.

        Raises: RequestFailed.
        """
        if self._lost:
            raise RequestFailed(NotLeader(self._lost), text)
        if self.is_follower and self._changes_something(text, properties, variables):
            raise RequestFailed(NotLeaderYet(self.members.leader()), text)
        services = self.hosts.asked_by(credentials, self.services)
        running = requests.Execution(text, services, self.settings, properties, variables, token)
        return Running(running, self._warned)

    def _warned(self, done: list[e.Entity]) -> list[e.Entity]:
        trouble = self.log.trouble
        return done if trouble is None else [e.warned(entity, trouble.text()) for entity in done]

    def elsewhere(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> Server | None:
        """Return the server that a request of statements is to be passed on to; None: this one.

        Raises: NotInChargeYet, if no server leads at the moment.
        """
        if not self.is_follower:
            return None
        if not self._changes_something(text, properties, variables):
            return None
        return self.leader()

    def leader(self) -> Server:
        """Return the other server that leads.

        Raises: NotInChargeYet, if there is none at the moment, or it has fallen silent.
        """
        leader = self.members.leader()
        if leader is None or leader == self.members.me or not self._leadership.responsive():
            raise NotLeaderYet(None)
        return leader

    @property
    def scheme(self) -> str:
        """How the servers of the service speak to each other: http or https."""
        return own_scheme(self.settings)

    @property
    def secret(self) -> ServerSecret | None:
        """The secret that they share, to know one another by."""
        return self.copies.secret

    @property
    def tls(self) -> ssl.SSLContext | None:
        """With which keys and trust they do over https."""
        return self.copies.tls if hasattr(self, "copies") else None

    def has_charge(self, server: Server) -> bool:
        """Return whether that other server leads, and has been heard lately."""
        return self._leadership.responsive() and self.members.leader() == server

    def _changes_something(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> bool:
        request = requests.session(self.services, self.settings, properties, variables)
        return requests.is_distributed(text, request)

    def await_command(self, offset: int) -> None:
        """Wait until the command topic has been replayed up to there; at once if it is negative.

        Raises: CommandTimeout.
        """
        is_there = self.awaiting(offset)
        while not is_there():
            time.sleep(_WAITING_PAUSE_S)

    def awaiting(self, offset: int) -> Callable[[], bool]:
        """Return whether the command topic has been replayed up to there, as a question.

        The question raises CommandTimeout once the time is over in which it should have been.
        """
        timeout_ms = self.settings.number("ksql.server.command.response.timeout.ms")
        deadline = time.monotonic() + timeout_ms / 1000

        def is_there() -> bool:
            if offset < 0 or self._next_command(offset) > offset:
                return True
            if time.monotonic() > deadline:
                raise CommandTimeout(
                    "Timed out while waiting for a previous command to execute. "
                    f"command sequence number: {offset}"
                )
            return False

        return is_there

    def _next_command(self, offset: int) -> int:
        """Return the offset after all commands that there are; they have been applied.

        Raises: CommandTrouble, if it is at or before that offset.
        """
        with self.engine.exclusive():
            try:
                return self.log.catch_up()
            except CommandTrouble as trouble:
                if trouble.offset <= offset:
                    raise
                return trouble.offset
            except CommandTopicLost:
                if self.log.known <= offset:
                    raise
                return self.log.known

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

        ``caller``: what the request says of the copies of tables that it is answered from.
        Without ``tombstones`` the deletions of a table are no rows: LIMIT does not count them.
        Raises: RequestFailed, also for a text that is not a single query.
        """
        if not self._ready.is_set():
            raise RequestFailed(NotReady("The service is starting."), text)
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
        """Start a query that waits for nothing; None for any other, which ``query`` starts.

        Raises: RequestFailed.
        """
        if not self._ready.is_set():
            return None
        return self.reads.at_once(text, self.settings, properties, caller)

    def close_query(self, query_id: str) -> bool:
        """End a push query of this server; False when there is none of that id."""
        return self.reads.close(query_id)

    def inserts(self, target: str, properties: Mapping[str, str]) -> RowWriter:
        """Return the writer of rows to the stream of that name.

        Raises: RequestFailed for what does not take rows.
        """
        if self._lost:
            raise RequestFailed(NotLeader(self._lost))
        request = requests.session(self.services, self.settings, properties, {})
        try:
            return RowWriter(target, request)
        except KsqlError as error:
            raise RequestFailed(error) from error

    def info(self) -> ServerInfo:
        """Return version and identity; cheap."""
        service_id = self.settings.text("ksql.service.id")
        status: Literal["RUNNING", "DEGRADED"] = "RUNNING" if self.log.sound else "DEGRADED"
        return ServerInfo(version(), self._cluster_id, service_id, status)

    @property
    def scope(self) -> TokenScope:
        """The Kafka cluster and the service that consistency tokens of this server are of."""
        return TokenScope(self._cluster_id, self.settings.text("ksql.service.id"))

    def addresses(self) -> Mapping[str, str]:
        """Return the URLs of the other services of this server; known once it has started."""
        return self._addresses

    def health(self) -> Health:
        """Return how the parts are doing; may talk to Kafka, so the door caches it."""
        reasons = {
            "kafka": self._watch.kafka,
            "spark": self.runtime.problem(),
            "stores": self.views.hindrance(),
            "inCharge": self._lost,
        }
        trouble = None if self._replaying else self.log.trouble
        runner = not self._replaying and trouble is None
        if trouble is not None:
            reasons["commandRunner"] = trouble.text()
        details = {"metastore": True, "kafka": not reasons["kafka"], "commandRunner": runner}
        if lost := self._kept.schemas():
            details["schemaRegistry"], reasons["schemaRegistry"] = False, lost
        details |= {part: not reasons[part] for part in ("spark", "stores", "inCharge")}
        reasons["stores"] = reasons["stores"] or self.views.upgrading()  # which is no fault
        state: Literal["READY", "INITIALIZING"] = (
            "READY" if self._ready.is_set() else "INITIALIZING"
        )
        return Health(details, reasons, state)

    @property
    def host(self) -> str:
        """The address of this server for others, as ``host:port``."""
        return self.copies.host

    def cluster_status(self) -> ClusterStatus:
        """Return the servers that are known, and how far their stores are; asks Kafka.

        Raises: HeartbeatsOff.
        """
        return self.copies.cluster.status()

    def heard(self, host: str) -> None:
        """Note that another server lives.

        Raises: HeartbeatsOff.
        """
        self.copies.cluster.heard(host)

    def reported(self, host: str, lags: HostStoreLags) -> None:
        """Note how far another server's stores are.

        Raises: HeartbeatsOff.
        """
        self.copies.cluster.reported(host, lags)

    def read_copy(self, ask: ReadRequest) -> ReadResult:
        """Read one of this server's copies for another server, which answers a query from it.

        Raises: Turned, Unreachable.
        """
        return self.copies.read(ask)

    def report(self, queries: Sequence[str]) -> bytes:
        """Report the queries of this server to another one: those in detail, or all in short."""
        return reports.form(reports.report(self.services, queries))

    def standings(self) -> dict[tuple[str, int], ReplicaStatus]:
        """Return how far every copy of this server is, by query and partition; asks Kafka."""
        return self.copies.standings()

    def processed(self, query_id: str) -> Processed:
        """Return how far a query that this server runs has processed its sources for good."""
        return self._monitor.processed(query_id)

    def holders(self, table: str, key: list[Any] | None) -> list[dict[str, Any]]:
        """Return which servers hold a table's partitions, on request only the one of a key.

        Raises: UnknownName, NotQueryable, BadKey.
        """
        return self.copies.hosts(self.engine.catalog, table, key, self.registry)

    def statuses(self) -> Mapping[str, CommandStatus]:
        """Return the status of every distributed statement, by command id."""
        return dict(self.engine.statuses)

    def status(self, command_id: str) -> CommandStatus | None:
        """Return the status of one distributed statement (``stream/`S`/create``)."""
        return self.statuses().get(command_id)

    def check_property(self, name: str) -> None:
        """Check that SET would accept that name.

        Raises: UnknownProperty, FixedProperty.
        """
        self.settings.settable(name)

    def terminate(self, delete_topics: Sequence[str]) -> list[e.Entity]:
        """Tear the cluster down: end all queries, delete the sink topics that the list matches.

        ``delete_topics`` holds names and patterns; the answer is the command's status. The command
        topic is deleted, too.

        Raises: BadPattern, RequestFailed.
        """
        if self.is_follower:
            raise RequestFailed(NotLeaderYet(self.members.leader()))
        topics = KafkaTopics(self.admin)
        ended = self._state.end if self._state is not None else lambda: None
        return end_cluster(
            self.services, self.settings, topics, self.log.topic, delete_topics, ended
        )
