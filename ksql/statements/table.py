"""Which handler runs which statement; the one place to add a new kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ksql.base.errors import NotSupportedYet, QueryOnWrongEndpoint
from ksql.engine.prepare import DISTRIBUTED
from ksql.statements import asserts, describe, distributed, explain, insert, settings, show
from ksql.statements.entities import Entity
from ksql.statements.services import Request
from ksql.syntax import ast

Handler = Callable[[Any, Request], Entity | None]


def _wrong_endpoint(_stmt: ast.Statement, _request: Request) -> None:
    raise QueryOnWrongEndpoint(
        "The following statement types should be issued to the websocket endpoint '/query': "
        "SELECT and PRINT.",
        hint="Send it to /query-stream or /query.",
    )


def _not_yet(what: str) -> Handler:
    def handle(stmt: Any, _request: Request) -> None:
        raise NotSupportedYet(what, span=stmt.span)

    return handle


HANDLERS: dict[type, Handler] = {
    **dict.fromkeys(DISTRIBUTED, distributed.execute),
    ast.InsertValues: insert.insert_values,
    ast.Show: show.show,
    ast.DescribeSource: describe.describe_source,
    ast.DescribeAll: describe.describe_all,
    ast.DescribeFunction: describe.describe_function,
    ast.Explain: explain.explain,
    ast.SetProperty: settings.set_property,
    ast.UnsetProperty: settings.unset_property,
    ast.Define: settings.define,
    ast.Undefine: settings.undefine,
    ast.AssertTopic: asserts.assert_topic,
    ast.AssertSchema: asserts.assert_schema,
    ast.Query: _wrong_endpoint,
    ast.PrintTopic: _wrong_endpoint,
    ast.AlterSystem: settings.alter_system,
    ast.CreateConnector: _not_yet("CREATE CONNECTOR"),
    ast.DropConnector: _not_yet("DROP CONNECTOR"),
    ast.DescribeConnector: _not_yet("DESCRIBE CONNECTOR"),
    ast.AssertValues: _not_yet("ASSERT VALUES outside of a test file"),
    ast.AssertNullValues: _not_yet("ASSERT NULL VALUES outside of a test file"),
    ast.AssertSource: _not_yet("ASSERT STREAM or ASSERT TABLE outside of a test file"),
    ast.RunScript: _not_yet("RUN SCRIPT on the server"),
}
