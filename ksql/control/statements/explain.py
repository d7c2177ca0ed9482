"""EXPLAIN: the plan of a query that runs, or of one that could be created."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from ksql.control.engine.errors import UpgradeRefused
from ksql.control.planning import rebuild, schemas
from ksql.control.planning.plan_queries import transient_plan
from ksql.control.statements import entities as e
from ksql.control.statements.describe import of_plan, push_description, push_of, query_description
from ksql.control.statements.upgradereport import ModeReport, SourceExtent, UpgradeReport
from ksql.core import StatementError, UnknownName, near
from ksql.exec.dataflow import generated_code, plan_of
from ksql.sql.binder import sources_of
from ksql.sql.plan import codec
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from ksql.control.engine.context import Context
    from ksql.control.statements.services import Handlers, Request
    from ksql.sql.plan import QueryPlan

    Explained = tuple[QueryPlan, e.QueryDescription]

GENERATED_CODE = "ksql.explain.generated.code"
_Mode = Literal["in_place", "rebuild", "backfill"]
_MODES: tuple[_Mode, ...] = get_args(_Mode)
_EXPLAIN = re.compile(r"EXPLAIN\s+", re.IGNORECASE)


def explain(stmt: ast.Explain, request: Request) -> e.Entity:
    """Answer EXPLAIN of a query's id, of a query, or of a CREATE .. AS SELECT (a dry run)."""
    if isinstance(stmt.target, str):
        plan, described = _running(stmt.target, stmt, request)
    else:
        plan, described = _dry(stmt.target, request)
    if request.settings.flag(GENERATED_CODE):
        described = replace(
            described, execution_plan=f"{described.execution_plan}\n\n{_code(plan, request)}"
        )
    return e.QueryDescriptionEntity(statement_text=request.text, query_description=described)


def _code(plan: QueryPlan, request: Request) -> str:
    context = request.engine.context(request.settings, 0)
    return generated_code(plan, context.functions, context.registry)


def _running(query_id: str, stmt: ast.Explain, request: Request) -> Explained:
    query = request.engine.catalog.query(query_id)
    if query is not None:
        upgrade = request.services.history.last(query.id)
        return plan_of(query), replace(query_description(query, request), upgrade=upgrade)
    push = push_of(query_id, request)
    if push is not None:
        return push.plan, push_description(push, request)
    raise UnknownName(
        f"Query with id:{query_id} does not exist, "
        "use SHOW QUERIES to view the full set of queries.",
        near(query_id, request.engine.catalog.queries),
        span=stmt.span,
    )


def _dry(target: ast.Statement, request: Request) -> Explained:
    context = request.engine.context(request.settings, 0)
    text = _EXPLAIN.sub("", request.text, count=1)
    match target:
        case ast.Query():
            plan = transient_plan("EXPLAIN", target, context)
            return plan, replace(of_plan(plan, text, "", request), query_type="PUSH")
        case ast.CreateAsSelect() | ast.InsertInto():
            return _dry_create(target, text, request, context)
        case _:
            raise StatementError("The provided statement does not run a ksql query")


def _dry_create(
    target: ast.CreateAsSelect | ast.InsertInto, text: str, request: Request, context: Context
) -> Explained:
    try:
        prepared = request.engine.dry_run(target, text, request.settings)
    except UpgradeRefused as refused:
        if refused.verdict is None:
            raise
        running = context.catalog.writers(target.name)[0]
        plan = plan_of(running)
        report = _with_modes(UpgradeReport.of(refused.verdict, running.id), target, request)
        return plan, replace(of_plan(plan, text, target.name, request), upgrade=report)
    if prepared.warning is not None:
        raise StatementError(prepared.warning)
    schemas.check(prepared.registrations, context.registry)
    plan = codec.loads(prepared.plans["new"])
    described = of_plan(plan, text, target.name, request)
    if prepared.verdict is None:
        return plan, described
    report = UpgradeReport.of(prepared.verdict, prepared.query_id)
    return plan, replace(described, upgrade=_with_modes(report, target, request))


def _with_modes(
    report: UpgradeReport, target: ast.CreateAsSelect | ast.InsertInto, request: Request
) -> UpgradeReport:
    """Add which modes are possible, and what a rebuild would read."""
    if not isinstance(target, ast.CreateAsSelect):
        return report
    modes = tuple(_mode(mode, target, request) for mode in _MODES)
    beside = any(mode.possible for mode in modes if mode.mode != "in_place")
    return replace(report, modes=modes, reads=_reads(target, request) if beside else None)


def _mode(mode: _Mode, target: ast.CreateAsSelect, request: Request) -> ModeReport:
    statement = rebuild.in_mode(target, mode)
    try:
        request.engine.dry_run(statement, request.text, request.settings)
    except UpgradeRefused as refused:
        verdict = refused.verdict
        reasons = () if verdict is None else verdict.reasons
        return ModeReport(mode, False, reasons or (refused.message,))
    except StatementError as error:
        return ModeReport(mode, False, (error.message,))
    return ModeReport(mode, True)


def _reads(target: ast.CreateAsSelect, request: Request) -> tuple[SourceExtent, ...]:
    catalog = request.engine.catalog
    sources = [origin.source for origin in sources_of(target.query.source, catalog)]
    ends = request.services.monitor.ends([source.topic for source in sources])
    extents = []
    for source in sources:
        spans = [span for (topic, _), span in ends.items() if topic == source.topic]
        records = sum(end - begin for begin, end in spans)
        lost = sum(begin for begin, _ in spans)
        extents.append(SourceExtent(source.name, source.topic, records, lost))
    return tuple(extents)


HANDLERS: Handlers = {
    ast.Explain: explain,
}
