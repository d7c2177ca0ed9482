"""The errors between the service and Kafka Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import (
    KsqlError,
    NotFound,
    ServerError,
    StartError,
    StatementError,
    excerpt,
    without_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ksql.kafka.connect.model import Plugin

URL = "ksql.connect.url"
TIMEOUT = "ksql.connect.request.timeout.ms"
EMBEDDED = "ksql.connect.embedded"
_UNDECIDED = "Whether it was carried out is not known: look with SHOW CONNECTORS;"


class ConnectUnreachable(ServerError):
    """Kafka Connect takes no connection."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"Kafka Connect at {without_secrets(url)} cannot be reached",
            detail=without_secrets(reason),
            hint=f"Check {URL} and that Kafka Connect runs.",
        )


class ConnectTooSlow(ServerError):
    """Kafka Connect has not answered in time; what was to be changed may have been."""

    def __init__(self, url: str, timeout_s: float, *, changing: bool) -> None:
        super().__init__(
            f"Kafka Connect at {without_secrets(url)} did not answer within {timeout_s:g} s",
            detail=_UNDECIDED if changing else "",
            hint=f"Look at the log of Kafka Connect; {TIMEOUT} is how long it may take.",
        )


class ConnectBroke(ServerError):
    """Kafka Connect ended the connection in the middle of a request."""

    def __init__(self, url: str, reason: str, *, changing: bool) -> None:
        super().__init__(
            f"Kafka Connect at {without_secrets(url)} ended the connection without an answer",
            detail=without_secrets(f"{reason}\n{_UNDECIDED}" if changing else reason),
            hint="Look whether its worker runs, and at the log: it may have died.",
        )


class NotConnect(ServerError):
    """Something answers that is not Kafka Connect, or one of another form."""

    def __init__(self, url: str, path: str, status: int, body: bytes) -> None:
        shown = excerpt(" ".join(body.decode(errors="replace").split())) or "nothing"
        super().__init__(
            f"the answer of {without_secrets(url)} to {path} is not one of Kafka Connect",
            detail=f"It has the status {status} and says: {without_secrets(shown)}",
            hint=f"Check that {URL} is the address of Kafka Connect's REST interface.",
        )


class ConnectForbids(ServerError):
    """Kafka Connect does not know this service's user, or does not let it do that."""

    def __init__(self, url: str, status: int, reason: str) -> None:
        super().__init__(
            f"Kafka Connect at {without_secrets(url)} refuses this server (status {status})",
            detail=without_secrets(reason),
            hint="Check the user in the file of ksql.connect.basic.auth.credentials.file, "
            "and ksql.connect.basic.auth.credentials.source=FILE.",
        )


class ConnectFailed(ServerError):
    """Kafka Connect reports an error of its own."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, hint="Look at the log of Kafka Connect.")


class ConnectBusy(ServerError):
    """The workers of Kafka Connect are rebalancing."""

    code = 50300

    def __init__(self, reason: str) -> None:
        super().__init__(
            "Kafka Connect is rebalancing",
            detail=reason,
            hint="Send it again in some seconds.",
        )


class ConnectRejects(StatementError):
    """Kafka Connect does not take a request, mostly a configuration."""


class NoSuchConnector(NotFound):
    """A connector that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Connector '{excerpt(name)}' does not exist.",
            hint="SHOW CONNECTORS; lists them. A name without quotes is in upper case.",
        )


class ConnectorExists(KsqlError):
    """A connector of that name is there already."""

    code = 40900

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Connector {excerpt(name)} already exists",
            hint="Choose another name, DROP CONNECTOR it first, or add IF NOT EXISTS.",
        )


class UnknownPlugin(StatementError):
    """A class of connectors that no worker has."""

    def __init__(self, class_name: str, known: Sequence[Plugin], *, embedded: bool) -> None:
        path = "ksql.connect.plugin.path" if embedded else "plugin.path of Kafka Connect"
        listed = ", ".join(f"{plugin.class_name} ({plugin.type})" for plugin in known)
        super().__init__(
            f"Kafka Connect has no connector of the class {excerpt(class_name)}",
            detail=f"It has: {listed}." if listed else "It has no connectors at all.",
            hint=f"Put the connector's jars into a directory of {path}, and start it again.",
        )


class NoConnectConfigured(StatementError):
    """A statement about connectors, and no Kafka Connect to ask."""

    def __init__(self) -> None:
        super().__init__(
            "no Kafka Connect is configured",
            hint=f"Set {URL} to the address of one, or {EMBEDDED}=true to start one here.",
        )


class ConnectStarting(ServerError):
    """The embedded worker is on its way; it will answer soon."""

    code = 50302

    def __init__(self, detail: str) -> None:
        super().__init__(
            "the embedded Kafka Connect does not answer yet",
            detail=detail,
            hint="Send it again in some seconds.",
        )


class BadConnectSetting(StartError):
    """A setting of Kafka Connect that cannot be used."""

    def __init__(self, name: str, why: str, hint: str) -> None:
        super().__init__(f"{name} {why}", hint=hint)


class BadCredentials(StartError):
    """A file that should hold the user for Kafka Connect, and does not."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"ksql.connect.basic.auth.credentials.file: the file {path} {why}",
            hint="Write two lines into it: username=.. and password=..",
        )
