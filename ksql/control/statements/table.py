"""The handler of each kind of statement, from the modules that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ksql.control.planning.prepare import DISTRIBUTED
from ksql.control.statements import (
    asserts,
    connectors,
    describe,
    distributed,
    explain,
    insert,
    settings,
    show,
)
from ksql.core.errors import NotSupportedYet, QueryOnWrongEndpoint
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from ksql.control.statements.services import Handler, Handlers, Request


def _wrong_endpoint(_stmt: ast.Statement, _request: Request) -> None:
    raise QueryOnWrongEndpoint(
        "The following statement types should be issued to the websocket endpoint '/query': "
        "SELECT and PRINT.",
        hint="Send it to /query-stream or /query; over a websocket, to /ws/query.",
    )


def _not_yet(what: str) -> Handler:
    def handle(stmt: Any, _request: Request) -> None:
        raise NotSupportedYet(what, span=stmt.span)

    return handle


HANDLERS: Handlers = {
    **dict.fromkeys(DISTRIBUTED, distributed.execute),
    **asserts.HANDLERS,
    **connectors.HANDLERS,
    **describe.HANDLERS,
    **explain.HANDLERS,
    **insert.HANDLERS,
    **settings.HANDLERS,
    **show.HANDLERS,
    ast.Query: _wrong_endpoint,
    ast.PrintTopic: _wrong_endpoint,
    ast.AssertValues: _not_yet("ASSERT VALUES outside of a test file"),
    ast.AssertNullValues: _not_yet("ASSERT NULL VALUES outside of a test file"),
    ast.AssertSource: _not_yet("ASSERT STREAM or ASSERT TABLE outside of a test file"),
    ast.RunScript: _not_yet("RUN SCRIPT on the server"),
}
