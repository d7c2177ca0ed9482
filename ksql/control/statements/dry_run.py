"""A dry run: what each statement of a request would do, with the effects of those before it.

The sandbox is the one that every request is checked in. Beyond that the values of INSERT VALUES and
the keys of DELETE FROM are checked. Kafka Connect checks connector statements, which a request
refuses only when their turn comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ksql.control.statements import connectors
from ksql.control.statements import entities as e
from ksql.control.statements.execute import (
    HANDLERS,
    CheckedStatement,
    RequestFailed,
    sandbox,
    session,
    split_request,
)
from ksql.control.statements.masking import masked
from ksql.control.statements.services import ConditionPending, Request, Services
from ksql.control.statements.upgradereport import UpgradeReport
from ksql.core import KsqlError
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.control.engine.context import Prepared
    from ksql.core import Settings


@dataclass(frozen=True, kw_only=True)
class DryRun(e.Entity):
    """The answer that a statement would have; ``upgrade`` if it would replace a running query."""

    type_name = "dry_run"
    message: str
    query_id: str | None = None
    upgrade: UpgradeReport | None = field(default=None, metadata=e.OMIT_NONE)


def dry_run(
    text: str,
    services: Services,
    settings: Settings,
    properties: Mapping[str, str],
    variables: Mapping[str, str],
) -> list[e.Entity]:
    """Check a request without carrying it out; the history does not keep what is refused.

    Returns: one answer for each statement.
    Raises: RequestFailed with the answers of those before the first that could not be executed.
    """
    raw = split_request(text, settings)
    request = session(services, settings, properties, variables)
    answers: list[e.Entity] = []
    try:
        for checked in sandbox(raw, request, recorded=False):
            answer = _answer(checked, request)
            answers.append(answer)
    except RequestFailed as failed:
        raise RequestFailed(failed.error, failed.statement_text, answers) from failed
    return answers


def _answer(checked: CheckedStatement, request: Request) -> DryRun:
    statement = checked.parsed.statement
    request.text = checked.parsed.text
    try:
        match statement:
            case ast.CreateConnector() | ast.DropConnector():
                message = connectors.check(statement, request)
                return DryRun(statement_text=masked(request.text), message=message)
            case ast.AlterSystem():  # which only refuses
                HANDLERS[type(statement)](statement, request)
            case _:
                pass
    except ConditionPending as waiting:
        raise RequestFailed(waiting.error, checked.raw.text) from waiting
    except KsqlError as error:
        raise RequestFailed(error, checked.raw.text) from error
    return _answered(checked.prepared, request)


def _answered(prepared: Prepared | None, request: Request) -> DryRun:
    """Return what a statement would do; a query that does not run yet has no id to be known by."""
    if prepared is None:
        return DryRun(statement_text=masked(request.text), message="")
    named = prepared.query_id
    is_new = named is not None and named not in request.engine.catalog.queries
    message = prepared.warning or prepared.message
    report = None
    if prepared.verdict is not None:
        report = UpgradeReport.of(prepared.verdict, None if is_new else named)
        report = replace(report, mode=prepared.mode)
    return DryRun(
        statement_text=masked(request.text),
        message=message.removesuffix(f" with ID {named}") if is_new else message,
        query_id=None if is_new else named,
        upgrade=report,
    )
