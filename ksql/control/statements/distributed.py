"""The statements that go through the command topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.engine.changes import BeginRebuild
from ksql.control.engine.ports import CommandStatus
from ksql.control.rebuild_supervisor import WAIT
from ksql.control.statements import entities as e
from ksql.control.statements.upgradereport import SwitchPoint, UpgradeReport
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.control.engine.context import Prepared
    from ksql.control.engine.engine import Outcome
    from ksql.control.statements.services import Request
    from ksql.sql.catalog import Catalog, Rebuild


def execute(stmt: ast.Statement, request: Request) -> e.Entity:
    """Carry it out and answer with its status."""
    ended = _ended_push(stmt, request)
    if ended is not None:
        return ended
    if request.services.commands is not None:
        request.services.commands.take()
    outcome = request.engine.execute(stmt, request.text, request.settings, request.user)
    prepared = outcome.prepared
    if prepared.warning is not None:
        return e.WarningEntity(statement_text=request.text, message=prepared.warning)
    status = CommandStatus("SUCCESS", prepared.message, prepared.query_id)
    answer: e.Entity = e.CurrentStatus(
        statement_text=request.text,
        command_id=prepared.command_id,
        command_status=status,
        command_sequence_number=outcome.offset,
        upgrade=_report(outcome),
    )
    for warning in (*outcome.warnings, *_awaited(prepared, request)):
        answer = e.warned(answer, warning)
    return answer


def _awaited(prepared: Prepared, request: Request) -> Iterator[str]:
    """Wait for the cut-over of a rebuild that was begun, if the request wants that."""
    limit_ms = request.settings.number(WAIT)
    for change in prepared.changes if limit_ms else ():
        if isinstance(change, BeginRebuild):
            version = change.rebuild.candidate.version
            if kept_by := request.services.await_rebuild(version, limit_ms / 1000):
                yield (
                    f"The rebuild of {version.query_id} continues; it is not cut over yet, and is "
                    f"not waited for ({WAIT}={limit_ms}): {kept_by}\n"
                    "SHOW UPGRADES; shows how far it is."
                )
            elif _was_given_up(change.rebuild, request.engine.catalog):
                yield (
                    f"The rebuild of {version.query_id} was ended before its cut-over.\n"
                    "SHOW UPGRADES; shows its id, and DESCRIBE UPGRADE 'id'; why it was ended."
                )


def _was_given_up(rebuild: Rebuild, catalog: Catalog) -> bool:
    """Return whether a rebuild was ended without a cut-over.

    A version that was cut over and has been replaced since is kept as the former one. So is that
    of a rollback that was aborted.
    """
    query_id, version = rebuild.candidate.id, rebuild.candidate.version
    under_way = catalog.rebuilds.get(query_id)
    if under_way is not None and under_way.candidate.offset == rebuild.candidate.offset:
        return False
    query, former = catalog.queries.get(query_id), catalog.former_versions.get(query_id)
    if query is not None and query.version == version:
        return False
    return rebuild.rollback or former is None or former.query.version != version


def _ended_push(stmt: ast.Statement, request: Request) -> e.TerminateQuery | None:
    """Terminate a push query, which no command knows; None for any other statement."""
    match stmt:
        case ast.QueryControl(action="TERMINATE", query_id=str() as query_id) if (
            request.services.close_push(query_id)
        ):
            return e.TerminateQuery(
                statement_text=request.text, query_id=query_id, was_terminated=True
            )
        case _:
            return None


def _report(outcome: Outcome) -> UpgradeReport | None:
    prepared = outcome.prepared
    if prepared.verdict is None:
        return None
    switch = None
    if outcome.switch is not None:
        offsets = {
            topic: {str(partition): offset for partition, offset in parts.items()}
            for topic, parts in outcome.switch.offsets.items()
        }
        switch = SwitchPoint(outcome.switch.batch, offsets, outcome.switch.gap_ms)
    return UpgradeReport.of(prepared.verdict, prepared.query_id, switch)
