"""EXPLAIN: the plan of a query, or what a CREATE OR REPLACE would do in each upgrade mode."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, get_args

from ksql.control.engine.context import PlanningContext, Prepared
from ksql.control.engine.errors import UpgradeRefused
from ksql.control.engine.rebuild_progress import check_room
from ksql.control.planning import rebuild, schemas, start_mode
from ksql.control.planning.plan_queries import transient_plan
from ksql.control.statements import entities as e
from ksql.control.statements.describe import (
    of_plan,
    push_description,
    push_of,
    query_description,
    visible,
)
from ksql.control.statements.rebuild_estimate import estimated, extents
from ksql.control.statements.upgrade_sample import sampled
from ksql.control.statements.upgradereport import ModeReport, UpgradeReport
from ksql.core import StatementError, UnknownName, near
from ksql.exec.dataflow import generated_code, plan_of
from ksql.sql.plan import QueryPlan, codec
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.control.statements.services import Handlers, Request
    from ksql.sql.catalog import PersistentQuery
    from ksql.sql.upgrade import ReplacementKind

    _Creating = ast.CreateAsSelect | ast.InsertInto | ast.ReplaceQuery
    Explained = tuple[QueryPlan, e.QueryDescription]

GENERATED_CODE = "ksql.explain.generated.code"
_Mode = Literal["in_place", "rebuild", "backfill"]
_MODES: Final[tuple[_Mode, ...]] = get_args(_Mode)
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
    if query is not None and request.requester.sees_query(query):
        upgrade = request.services.history.last(query.id, query.started_at_offset)
        return plan_of(query), replace(query_description(query, request), upgrade=upgrade)
    push = push_of(query_id, request)
    if push is not None:
        return push.plan, push_description(push, request)
    raise UnknownName(
        f"Query with id:{query_id} does not exist, "
        "use SHOW QUERIES to view the full set of queries.",
        near(query_id, [query.id for query in visible(_queries(request), request)]),
        span=stmt.span,
    )


def _queries(request: Request) -> Iterable[PersistentQuery]:
    return request.engine.catalog.queries.values()


def _dry(target: ast.Statement, request: Request) -> Explained:
    context = request.engine.context(request.settings, 0)
    text = _EXPLAIN.sub("", request.text, count=1)
    match target:
        case ast.Query():
            plan = transient_plan("EXPLAIN", target, context)
            return plan, replace(of_plan(plan, text, "", request), query_type="PUSH")
        case ast.CreateAsSelect() | ast.InsertInto() | ast.ReplaceQuery():
            return _dry_create(target, text, request, context)
        case _:
            raise StatementError("The provided statement does not run a ksql query")


def _dry_create(
    target: _Creating, text: str, request: Request, context: PlanningContext
) -> Explained:
    try:
        prepared = request.engine.dry_run(target, text, request.settings)
    except UpgradeRefused as refused:
        if refused.verdict is None:
            raise
        assert not isinstance(target, ast.InsertInto)  # noqa: S101 - it replaces nothing
        running = rebuild.replaced_by(target, context.catalog)
        assert running is not None  # noqa: S101 - its plan was compared
        plan = plan_of(running)
        report = UpgradeReport.of(refused.verdict, running.id)
        report = _with_modes(report, target, request, {rebuild.stated_mode(target): refused})
        return plan, replace(of_plan(plan, text, target.name, request), upgrade=report)
    except rebuild.BeginningLost as lost:
        assert not isinstance(target, ast.InsertInto)  # noqa: S101 - nothing else is rebuilt
        return _without_beginning(target, text, request, lost)
    if prepared.warning is not None:
        raise StatementError(prepared.warning)
    registrations = (*prepared.registrations, *prepared.later_registrations)
    schemas.check(registrations, context.registry)
    plan = codec.loads(prepared.plans["new"])
    described = of_plan(plan, text, target.name, request)
    if prepared.verdict is None or prepared.mode is None:
        return plan, described
    report = UpgradeReport.of(prepared.verdict, prepared.query_id)
    report = _with_modes(report, target, request, {prepared.mode: prepared})
    return plan, replace(described, upgrade=report)


def _without_beginning(
    target: rebuild.Replacing, text: str, request: Request, lost: rebuild.BeginningLost
) -> Explained:
    """Describe a rebuild that is refused as long as it states no start."""
    prepared = _from_the_beginning(target, request)
    assert prepared.verdict is not None  # noqa: S101 - it would replace a query
    plan = codec.loads(prepared.plans["new"])
    report = UpgradeReport.of(prepared.verdict, prepared.query_id)
    report = _with_modes(report, target, request, {"rebuild": lost})
    report = replace(report, accepted=False, reasons=(lost.message,))
    return plan, replace(of_plan(plan, text, target.name, request), upgrade=report)


def _from_the_beginning(target: rebuild.Replacing, request: Request) -> Prepared:
    statement = start_mode.from_the_beginning(rebuild.in_mode(target, "rebuild"))
    return request.engine.dry_run(statement, request.text, request.settings)


def _with_modes(
    report: UpgradeReport,
    target: _Creating,
    request: Request,
    planned: Mapping[ReplacementKind, Prepared | StatementError],
) -> UpgradeReport:
    """Add which modes are possible, and what a rebuild would read and need.

    ``planned`` has the mode that the statement takes: it is not planned again.
    """
    if isinstance(target, ast.InsertInto):
        return report
    attempts = {mode: planned.get(mode) or _planned(mode, target, request) for mode in _MODES}
    rebuilt = attempts["rebuild"]
    if isinstance(rebuilt, rebuild.BeginningLost):
        rebuilt = _from_the_beginning(target, request)
    elif not isinstance(rebuilt, Prepared):
        rebuilt = attempts["backfill"]
    if isinstance(rebuilt, Prepared):
        reads = extents(rebuilt, request)
        report = replace(report, reads=reads, estimate=estimated(rebuilt, reads, request))
    modes = tuple(_mode(mode, _in_room(attempt, request)) for mode, attempt in attempts.items())
    plans = next((p for p in (*planned.values(), rebuilt) if isinstance(p, Prepared)), None)
    sample = None if plans is None else sampled(plans, request)
    report = replace(report, modes=modes, sample=sample)
    stated = next(mode for mode in modes if mode.mode in planned)
    if report.accepted and not stated.possible:
        return replace(report, accepted=False, reasons=stated.reasons)
    return report


def _in_room(attempt: Prepared | StatementError, request: Request) -> Prepared | StatementError:
    """Return the attempt, or the error if there is no room for the second state that it needs."""
    if isinstance(attempt, Prepared):
        try:
            check_room(attempt, request.engine.catalog, request.engine.runner, request.settings)
        except StatementError as error:
            return error
    return attempt


def _planned(mode: _Mode, target: rebuild.Replacing, request: Request) -> Prepared | StatementError:
    """Return what the statement would do in that mode, or why it would do nothing."""
    statement: ast.Statement = rebuild.in_mode(target, mode)
    try:
        return request.engine.dry_run(statement, request.text, request.settings)
    except StatementError as error:
        return error


def _mode(mode: ReplacementKind, attempt: Prepared | StatementError) -> ModeReport:
    match attempt:
        case UpgradeRefused() if attempt.verdict is not None:
            return ModeReport(mode, False, attempt.verdict.reasons or (attempt.message,))
        case StatementError():
            detail = f": {attempt.detail}" if attempt.detail else ""
            return ModeReport(mode, False, (f"{attempt.message}{detail}",))
        case Prepared():
            return ModeReport(mode, True)


HANDLERS: Handlers = {
    ast.Explain: explain,
}
