"""The parts of the service that the doors need, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ksql.engine.progress import CommandStatus
from ksql.query.results import ResultStream, TextStream
from ksql.statements.answers import Health, RequestFailed, ServerInfo, UnknownField
from ksql.statements.entities import Entity

__all__ = ["Health", "RequestFailed", "RowWriter", "ServerInfo", "Service", "UnknownField"]


class Delivery(Protocol):
    """A row that is under way."""

    def wait(self) -> None:
        """Return once it is acknowledged.

        Raises: KsqlErrors that describe its failure.
        """


class RowWriter(Protocol):
    """Writes rows of JSON to one stream; numbers in them are ``int`` or ``Decimal``."""

    def begin(self, row: Mapping[str, Any]) -> Delivery:
        """Hand one row over.

        Raises: UnknownField, which ends the writing; other KsqlErrors, which end only this row.
        """


class Service(Protocol):
    """The whole service as a door sees it.

    Every method may block and may be called from several threads at once. Every method raises
    ``KsqlError`` for a user's error; anything else is a defect and reported as a 50000.
    """

    def start(self) -> None:
        """Bring up Kafka, Spark and the running queries; called once, before anything else.

        Raises: StartError when the service cannot start.
        """

    def stop(self) -> None:
        """End what ``start`` began, so that a new start finds everything; idempotent."""

    def execute(
        self,
        text: str,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        command_sequence_number: int | None,
    ) -> list[Entity]:
        """Run one or more statements; the entities of those that answer with one, in order.

        ``properties`` and ``variables`` hold for this request. With a sequence number the service
        first waits until it has replayed the command topic up to it.
        Raises: RequestFailed for the first statement that fails; CommandTimeout.
        """

    def query(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> ResultStream | TextStream:
        """Start one query or PRINT; the caller closes what it gets.

        Raises: RequestFailed, also for a text that is not a single query.
        """

    def close_query(self, query_id: str) -> bool:
        """End a push query of this server; False when there is none of that id."""

    def inserts(self, target: str, properties: Mapping[str, str]) -> RowWriter:
        """Return the writer of rows to the stream of that name.

        Raises: RequestFailed for what does not take rows.
        """

    def info(self) -> ServerInfo:
        """Version and identity; cheap."""

    def addresses(self) -> Mapping[str, str]:
        """Return the URLs of the other services of this server; known once it has started."""

    def health(self) -> Health:
        """Return how the parts are doing; may talk to Kafka, so the door caches it."""

    def statuses(self) -> Mapping[str, CommandStatus]:
        """Return the status of every distributed statement of this server, by command id."""

    def status(self, command_id: str) -> CommandStatus | None:
        """Return the status of one distributed statement (``stream/`S`/create``)."""

    def is_valid_property(self, name: str) -> bool:
        """Return whether SET would accept that name."""

    def terminate(self, delete_topics: Sequence[str]) -> list[Entity]:
        """Tear the cluster down: end all queries, delete the sink topics that the list matches.

        ``delete_topics`` holds names and patterns; the answer is the command's status.
        """
