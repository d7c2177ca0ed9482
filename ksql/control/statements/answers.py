"""The service's answers apart from entities: failed requests, its identity, its health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ksql.core.errors import StatementError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.control.statements.entities import Entity
    from ksql.core.errors import KsqlError


class RequestFailed(Exception):
    """A statement of a request failed; those before it were executed.

    ``statement_text`` is empty when the request as a whole is at fault (a syntax error keeps the
    text that does not parse).
    """

    def __init__(
        self, error: KsqlError, statement_text: str = "", entities: Sequence[Entity] = ()
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.statement_text = statement_text
        self.entities = tuple(entities)


class UnknownField(StatementError):
    """A row with a field that the stream does not have: no later row can be better."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The identity of the answering server."""

    version: str
    kafka_cluster_id: str
    ksql_service_id: str
    server_status: Literal["RUNNING", "DEGRADED", "ERROR"] = "RUNNING"


@dataclass(frozen=True, slots=True)
class Health:
    """Whether each part works.

    ``details`` holds one verdict per part (metastore, kafka, commandRunner, and ours). ``reasons``
    says what is wrong with unhealthy parts, as far as it is known.
    """

    details: Mapping[str, bool] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    server_state: Literal["INITIALIZING", "READY", "TERMINATING", "TERMINATED"] = "READY"

    @property
    def is_healthy(self) -> bool:
        """Whether all parts are well."""
        return all(self.details.values())
