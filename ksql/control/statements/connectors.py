"""Connectors: there are none here, they run in Kafka Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.control.statements import entities as e
from ksql.core import StatementError, excerpt
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from typing import NoReturn

    from ksql.control.statements.services import Handlers, Request

ELSEWHERE: Final = "Connectors run in Kafka Connect; this server neither starts nor knows them."


class RunsInConnect(StatementError):
    """A connector that is to be made here."""

    def __init__(self, stmt: ast.CreateConnector) -> None:
        super().__init__(
            f"Failed to create connector {excerpt(stmt.name)}: connectors run in Kafka Connect",
            hint="Send its properties to Kafka Connect (POST /connectors), then declare its topic: "
            "CREATE STREAM .. WITH (KAFKA_TOPIC='..', ..);",
            span=stmt.span,
        )


class NoSuchConnector(StatementError):
    """A connector that is to be dropped or described."""

    def __init__(self, stmt: ast.DropConnector | ast.DescribeConnector) -> None:
        super().__init__(
            f"Connector '{excerpt(stmt.name)}' does not exist.", hint=ELSEWHERE, span=stmt.span
        )


def create(stmt: ast.CreateConnector, _request: Request) -> NoReturn:
    """Refuse CREATE SOURCE|SINK CONNECTOR.

    Raises: RunsInConnect.
    """
    raise RunsInConnect(stmt)


def drop(stmt: ast.DropConnector, request: Request) -> e.Entity:
    """Carry out DROP CONNECTOR: with IF EXISTS, nothing has to be done.

    Raises: NoSuchConnector.
    """
    if not stmt.if_exists:
        raise NoSuchConnector(stmt)
    return e.WarningEntity(
        statement_text=request.text, message=f"Connector '{excerpt(stmt.name)}' does not exist."
    )


def describe(stmt: ast.DescribeConnector, _request: Request) -> NoReturn:
    """Refuse DESCRIBE CONNECTOR.

    Raises: NoSuchConnector.
    """
    raise NoSuchConnector(stmt)


def show(_stmt: ast.Show, request: Request) -> e.Entity:
    """Answer SHOW CONNECTORS."""
    return e.warned(e.ConnectorList(statement_text=request.text), ELSEWHERE)


def show_plugins(_stmt: ast.Show, request: Request) -> e.Entity:
    """Answer SHOW CONNECTOR PLUGINS."""
    return e.warned(e.ConnectorPluginsList(statement_text=request.text), ELSEWHERE)


HANDLERS: Handlers = {
    ast.CreateConnector: create,
    ast.DropConnector: drop,
    ast.DescribeConnector: describe,
}
