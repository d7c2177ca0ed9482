"""The service as its doors see it: statements, queries, rows, health."""

from __future__ import annotations

import time
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from ksql.app.house import House
from ksql.app.teardown import end_cluster
from ksql.base.config import check
from ksql.base.errors import CommandTimeout, KsqlError, NotReady
from ksql.base.lease import NotInCharge
from ksql.commands.quarantine import CommandTrouble
from ksql.kafka.topics import KafkaTopics
from ksql.statements import entities as e
from ksql.statements import execute as requests
from ksql.statements.answers import Health, RequestFailed, ServerInfo
from ksql.statements.inserts import RowWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ksql.engine.progress import CommandStatus
    from ksql.query.results import ResultStream, TextStream
    from ksql.statements.cluster import ClusterStatus, HostStoreLags

_COMMAND_PAUSE_S = 0.05


def version() -> str:
    """Return the version of this service."""
    return metadata.version("ksql-spark")


class KsqlService(House):
    """One server as its doors see it; see ``House`` for its life.

    Every method may block and may be called from several threads at once. Every method raises
    ``KsqlError`` for a user's error; anything else is a defect and reported as a 50000.
    """

    def execute(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        command_sequence_number: int | None,
    ) -> list[e.Entity]:
        """Run one or more statements; return the entities of those that answer with one, in order.

        ``properties`` and ``variables`` hold for this request. With a sequence number the service
        first waits until it has replayed the command topic up to it.

        Raises: RequestFailed for the first statement that fails; CommandTimeout.
        """
        if self._lost:
            raise RequestFailed(NotInCharge(self._lost), text)
        if command_sequence_number is not None:
            self.await_command(command_sequence_number)
        done = requests.run(text, self.services, self.settings, properties, variables)
        found = self.log.quarantine
        return done if found is None else [e.warned(each, found.trouble.text()) for each in done]

    def await_command(self, offset: int) -> None:
        """Wait until the command topic has been replayed up to there; at once if it is negative.

        Raises: CommandTimeout.
        """
        if offset < 0:
            return
        timeout_ms = self.settings.number("ksql.server.command.response.timeout.ms")
        deadline = time.monotonic() + timeout_ms / 1000
        while self._next_command(offset) <= offset:
            if time.monotonic() > deadline:
                raise CommandTimeout(
                    "Timed out while waiting for a previous command to execute. "
                    f"command sequence number: {offset}"
                )
            time.sleep(_COMMAND_PAUSE_S)

    def _next_command(self, wanted: int) -> int:
        """The offset behind all commands that there are; they have been applied.

        Raises: CommandTrouble, if it is in the way of the wanted one.
        """
        with self.engine.exclusive():
            try:
                return self.log.catch_up()
            except CommandTrouble as trouble:
                if trouble.offset <= wanted:
                    raise
                return trouble.offset

    def query(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        tombstones: bool = True,
    ) -> ResultStream | TextStream:
        """Start one query or PRINT; the caller closes the stream.

        Without ``tombstones`` the deletions of a table are no rows: LIMIT does not count them.
        Raises: RequestFailed, also for a text that is not a single query.
        """
        if not self._ready.is_set():
            raise RequestFailed(NotReady("The service is starting."), text)
        return self.reads.open(
            text, self.services, self.settings, properties, variables, tombstones=tombstones
        )

    def close_query(self, query_id: str) -> bool:
        """End a push query of this server; False when there is none of that id."""
        return self.reads.close(query_id)

    def inserts(self, target: str, properties: Mapping[str, str]) -> RowWriter:
        """Return the writer of rows to the stream of that name.

        Raises: RequestFailed for what does not take rows.
        """
        if self._lost:
            raise RequestFailed(NotInCharge(self._lost))
        request = requests.session(self.services, self.settings, properties, {})
        try:
            return RowWriter(target, request)
        except KsqlError as error:
            raise RequestFailed(error) from error

    def info(self) -> ServerInfo:
        """Version and identity; cheap."""
        service_id = self.settings.text("ksql.service.id")
        status: Literal["RUNNING", "DEGRADED"] = "RUNNING" if self.log.sound else "DEGRADED"
        return ServerInfo(version(), self._cluster_id, service_id, status)

    def addresses(self) -> Mapping[str, str]:
        """Return the URLs of the other services of this server; known once it has started."""
        return self._addresses

    def health(self) -> Health:
        """Return how the parts are doing; may talk to Kafka, so the door caches it."""
        reasons = {
            "kafka": self._watch.kafka,
            "spark": self.runtime.problem(),
            "stores": self.materializer.problem,
            "inCharge": self._lost,
        }
        runner = not self._replaying and self.log.sound
        found = None if self._replaying else self.log.quarantine
        if found is not None:
            reasons["commandRunner"] = found.trouble.text()
        details = {"metastore": True, "kafka": not reasons["kafka"], "commandRunner": runner}
        details |= {part: not reasons[part] for part in ("spark", "stores", "inCharge")}
        state: Literal["READY", "INITIALIZING"] = (
            "READY" if self._ready.is_set() else "INITIALIZING"
        )
        return Health(details, reasons, state)

    @property
    def host(self) -> str:
        """The address of this server for others, as ``host:port``."""
        return self.cluster.host

    def cluster_status(self) -> ClusterStatus:
        """Return the servers that are known, and how far their stores are; asks Kafka.

        Raises: HeartbeatsOff.
        """
        return self.cluster.status(self.engine.catalog)

    def heard(self, host: str) -> None:
        """Note that another server lives.

        Raises: HeartbeatsOff.
        """
        self.cluster.heard(host)

    def reported(self, host: str, lags: HostStoreLags) -> None:
        """Note how far another server's stores are.

        Raises: HeartbeatsOff.
        """
        self.cluster.reported(host, lags)

    def statuses(self) -> Mapping[str, CommandStatus]:
        """Return the status of every distributed statement, by command id."""
        return dict(self.engine.statuses)

    def status(self, command_id: str) -> CommandStatus | None:
        """Return the status of one distributed statement (``stream/`S`/create``)."""
        return self.statuses().get(command_id)

    def is_valid_property(self, name: str) -> bool:
        """Return whether SET would accept that name."""
        try:
            check(name)
        except KsqlError:
            return False
        return True

    def terminate(self, delete_topics: Sequence[str]) -> list[e.Entity]:
        """Tear the cluster down: end all queries, delete the sink topics that the list matches.

        ``delete_topics`` holds names and patterns; the answer is the command's status. The command
        topic is deleted, too.

        Raises: BadPattern, RequestFailed.
        """
        topics = KafkaTopics(self.admin)
        ended = self._state.end if self._state is not None else lambda: None
        return end_cluster(
            self.services, self.settings, topics, self.log.topic, delete_topics, ended
        )
