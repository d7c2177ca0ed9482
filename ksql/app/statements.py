"""The statements of clients: carried out here, or left to the server that leads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.control.log import CommandTopicLost, UnusableCommand
from ksql.control.statements import RequestFailed, RowWriter, end_cluster, row_writer
from ksql.control.statements import entities as e
from ksql.control.statements import execute as requests
from ksql.control.statements.dry_run import dry_run
from ksql.core import CommandTimeout, NotReady
from ksql.core.process import NotLeader
from ksql.kafka import KafkaTopics

if TYPE_CHECKING:
    from ksql.app.node import Node
    from ksql.cluster import Server
    from ksql.core import Token


@dataclass(frozen=True, slots=True)
class StartedRequest:
    """A request of statements that has begun."""

    execution: requests.Execution
    finish: Callable[[list[e.Entity]], list[e.Entity]]

    def proceed(self) -> list[e.Entity] | None:
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


class StatementService:
    """The statements of one server; which of them it takes depends on whether it leads."""

    def __init__(self, node: Node) -> None:
        self._node = node

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

        ``properties`` and ``variables`` hold for this request. ``credentials`` is the client's
        header Authorization, with which other servers are asked. With a ``token`` the last entity
        names the records of INSERT VALUES as well, if there are any. ``user`` is who has signed in.

        Raises: RequestFailed.
        """
        node = self._node
        if node.lost:
            raise RequestFailed(NotLeader(node.lost), text)
        if node.is_follower and self._changes_something(text, properties, variables):
            raise RequestFailed(NotLeaderYet(node.members.leader()), text)
        services = node.hosts.asked_by(credentials, node.services)
        running = requests.Execution(
            text, services, node.settings, properties, variables, token, user
        )
        return StartedRequest(running, self._warned)

    def dry_run(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> list[e.Entity]:
        """Return what each statement would do, with the effects of those before it.

        Raises: RequestFailed.
        """
        return dry_run(text, self._node.services, self._node.settings, properties, variables)

    def _warned(self, done: list[e.Entity]) -> list[e.Entity]:
        problem = self._node.log.problem
        return done if problem is None else [e.warned(entity, problem.text()) for entity in done]

    def forward_target(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> Server | None:
        """Return the server that a request of statements is to be passed on to; None: this one.

        Raises: NotLeaderYet, if no server leads at the moment.
        """
        if not self._node.is_follower:
            return None
        if not self._changes_something(text, properties, variables):
            return None
        return self.leader()

    def leader(self) -> Server:
        """Return the other server that leads.

        Raises: NotLeaderYet, if there is none at the moment, or it has fallen silent.
        """
        node = self._node
        leader = node.members.leader()
        if leader is None or leader == node.members.me or not node.leadership.responsive():
            raise NotLeaderYet(None)
        return leader

    def is_leader(self, server: Server) -> bool:
        """Return whether that other server leads, and has been heard lately."""
        return self._node.leadership.responsive() and self._node.members.leader() == server

    def _changes_something(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> bool:
        request = requests.session(self._node.services, self._node.settings, properties, variables)
        return requests.is_distributed(text, request)

    def awaiting(self, offset: int) -> Callable[[], bool]:
        """Return whether the command topic has been replayed up to there, as a question.

        The question raises CommandTimeout once the time is over in which it should have been.
        """
        timeout_ms = self._node.settings.number("ksql.server.command.response.timeout.ms")
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

        Raises: UnusableCommand, if it is at or before that offset.
        """
        with self._node.engine.exclusive():
            try:
                return self._node.log.catch_up()
            except UnusableCommand as problem:
                if problem.offset <= offset:
                    raise
                return problem.offset
            except CommandTopicLost:
                if self._node.log.known <= offset:
                    raise
                return self._node.log.known

    def inserts(self, target: str, properties: Mapping[str, str]) -> RowWriter:
        """Return the writer of rows to the stream of that name.

        Raises: RequestFailed for what does not take rows.
        """
        if self._node.lost:
            raise RequestFailed(NotLeader(self._node.lost))
        return row_writer(target, self._node.services, self._node.settings, properties)

    def terminate(self, delete_topics: Sequence[str]) -> list[e.Entity]:
        """Tear the cluster down: end all queries, delete the sink topics that the list matches.

        ``delete_topics`` holds names and patterns; the answer is the command's status. The command
        topic is deleted, too.

        Raises: BadPattern, RequestFailed.
        """
        node = self._node
        if node.is_follower:
            raise RequestFailed(NotLeaderYet(node.members.leader()))
        topics = KafkaTopics(node.admin)
        ended = node.state_dir.end if node.state_dir is not None else lambda: None
        return end_cluster(
            node.services,
            node.settings,
            topics,
            node.log.topic,
            delete_topics,
            ended,
        )
