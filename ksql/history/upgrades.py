"""Upgrades in the database: rows from entries, entries from rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Select, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ksql.core import Millis, Offset, QueryId, hidden_if_secret, is_secret
from ksql.exec import DifferenceCounts
from ksql.history.entries import (
    KnownRebuild,
    KnownUpgrade,
    RecordedUpgrade,
    UpgradeEntry,
    UpgradeId,
    UpgradeOutcome,
)
from ksql.history.model import UpgradeRow
from ksql.sql.upgrade import Difference, Guarantee

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.orm import Session

    from ksql.core import QueryVersion


NEVER_WRITTEN = "the server ended before the statement was written to the command topic"


def add(session: Session, upgrade_id: UpgradeId, entry: UpgradeEntry) -> None:
    """Add an attempt; once it is there, adding it again does nothing."""
    status = "begun" if entry.accepted else "refused"
    _insert_if_absent(session, _values(upgrade_id, entry, status))


def add_known(session: Session, known: KnownUpgrade) -> bool:
    """Add an upgrade that the command topic knows, unless it is there already.

    An attempt of which only the outcome is missing is finished instead.
    """
    if isinstance(known, KnownRebuild):
        return _add_rebuild(session, known)
    return _add_switched(session, known)


def _add_rebuild(session: Session, known: KnownRebuild) -> bool:
    outcome = known.outcome
    status = "begun" if outcome is None else outcome.status
    ended = {} if outcome is None else _ended(outcome)
    values = _values(known.id, known.entry, status) | {"rebuilt": True} | ended
    if _insert_if_absent(session, values):
        return True
    if outcome is None:
        return False
    finished = session.execute(
        update(UpgradeRow)
        .where(UpgradeRow.id == known.id, UpgradeRow.status == "begun")
        .values(**ended)
        .returning(UpgradeRow.seq)
    )
    return finished.first() is not None


def _add_switched(session: Session, entry: UpgradeEntry) -> bool:
    if entry.command_offset is None or session.scalars(_same(entry, "switched")).first():
        return False
    begun = session.scalars(_begun(entry).order_by(UpgradeRow.seq.desc())).first()
    if begun is not None:
        begun.status, begun.finished_ms = "switched", entry.begun_ms
        begun.command_offset = entry.command_offset
        return True
    upgrade_id = UpgradeId(f"{entry.service_id}/{entry.query_id}/{entry.command_offset}/log")
    values = _values(upgrade_id, entry, "switched")
    return _insert_if_absent(session, values | {"rebuilt": True, "finished_ms": entry.begun_ms})


def close_begun(
    session: Session, service_id: str, now_ms: Millis, building: Collection[UpgradeId] = ()
) -> int:
    """Finish as rolled back the upgrades that were begun, but for rebuilds that are under way.

    Returns: how many there were.
    """
    closed = session.execute(
        update(UpgradeRow)
        .where(UpgradeRow.service_id == service_id, UpgradeRow.status == "begun")
        .where(UpgradeRow.id.not_in(building))
        .values(status="rolled_back", finished_ms=now_ms, outcome_reason=NEVER_WRITTEN)
        .returning(UpgradeRow.seq)
    )
    return len(closed.all())


def _same(entry: UpgradeEntry, status: str) -> Select[UpgradeRow]:
    """Return the rows of that status about the same command."""
    return _alike(entry, status).where(UpgradeRow.command_offset == entry.command_offset)


def _begun(entry: UpgradeEntry) -> Select[UpgradeRow]:
    """Return the attempts that may have come to that command.

    Others may lie before it meanwhile.
    """
    return _alike(entry, "begun").where(UpgradeRow.command_offset <= entry.command_offset)


def _alike(entry: UpgradeEntry, status: str) -> Select[UpgradeRow]:
    return select(UpgradeRow).where(
        UpgradeRow.service_id == entry.service_id,
        UpgradeRow.query_id == entry.query_id,
        UpgradeRow.statement_new == entry.statement_new,
        UpgradeRow.status == status,
        UpgradeRow.mode == entry.mode,
    )


def finish(session: Session, upgrade_id: UpgradeId, outcome: UpgradeOutcome) -> bool:
    """Write the outcome down; return False if the upgrade is not there.

    A row that was only rebuilt gives way to the attempt itself, which knows more.
    """
    attempt = session.scalars(select(UpgradeRow).where(UpgradeRow.id == upgrade_id)).first()
    if attempt is not None and outcome.command_offset is not None:
        attempt.command_offset = outcome.command_offset
        session.flush()
    if attempt is not None and outcome.status == "switched":
        rebuilt = _same(_entry(attempt), "switched").where(UpgradeRow.rebuilt)
        for row in session.scalars(rebuilt.where(UpgradeRow.id != upgrade_id)):
            session.delete(row)
    finished = session.execute(
        update(UpgradeRow)
        .where(UpgradeRow.id == upgrade_id)
        .values(**_ended(outcome), rebuilt=False)
        .returning(UpgradeRow.seq)
    )
    return finished.first() is not None


def add_difference(
    session: Session, service_id: str, version: QueryVersion, difference: DifferenceCounts
) -> bool:
    """Add what the last cut-over to a version has written, if it is known without that."""
    rows = select(UpgradeRow).where(
        UpgradeRow.service_id == service_id,
        UpgradeRow.query_id == version.query_id,
        UpgradeRow.candidate == version.number,
    )
    last = session.scalars(rows.order_by(UpgradeRow.seq.desc()).limit(1)).first()
    if last is None or last.status != "switched" or last.difference is not None:
        return False
    last.difference = difference._asdict()
    return True


def find(session: Session, upgrade_id: UpgradeId) -> RecordedUpgrade | None:
    """Return the upgrade of that id; None if there is none."""
    row = session.scalars(select(UpgradeRow).where(UpgradeRow.id == upgrade_id)).first()
    return None if row is None else _recorded(row)


def read(
    session: Session, query_id: QueryId | None, service_id: str | None, limit: int
) -> tuple[RecordedUpgrade, ...]:
    """Return the latest upgrades, newest first."""
    statement = select(UpgradeRow).order_by(UpgradeRow.seq.desc()).limit(limit)
    if query_id is not None:
        statement = statement.where(UpgradeRow.query_id == query_id)
    if service_id is not None:
        statement = statement.where(UpgradeRow.service_id == service_id)
    return tuple(map(_recorded, session.scalars(statement)))


def _insert_if_absent(session: Session, values: dict[str, Any]) -> bool:
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    statement = dialect.insert(UpgradeRow.__table__).values(values).on_conflict_do_nothing()
    return session.execute(statement.returning(UpgradeRow.seq)).first() is not None


def _values(upgrade_id: UpgradeId, entry: UpgradeEntry, status: str) -> dict[str, Any]:
    return {
        "id": upgrade_id,
        "service_id": entry.service_id,
        "query_id": entry.query_id,
        "sink": entry.sink,
        "statement_old": entry.statement_old,
        "statement_new": entry.statement_new,
        "plan_old": _shown(entry.plan_old),
        "plan_new": _shown(entry.plan_new),
        "classes": list(entry.classes),
        "traits": list(entry.traits),
        "guarantees": list(map(asdict, entry.guarantees)),
        "changes": list(map(asdict, entry.changes)),
        "inherited": list(entry.inherited),
        "accepted": entry.accepted,
        "reasons": list(entry.reasons),
        "command_offset": entry.command_offset,
        "status": status,
        "begun_ms": entry.begun_ms,
        "mode": entry.mode,
        "candidate": entry.candidate,
        "user_name": entry.user or None,
    }


def _shown(plan: str | None) -> str | None:
    """Return a plan's JSON without the secrets of its settings: others read the ledger, too."""
    if plan is None or not is_secret(plan):
        return plan
    tree = json.loads(plan)
    _hide_in(tree)
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def _hide_in(tree: object) -> None:
    branches = [*tree.values()] if isinstance(tree, dict) else tree
    if isinstance(tree, dict) and isinstance(settings := tree.get("settings"), list):
        tree["settings"] = [[name, hidden_if_secret(name, value)] for name, value in settings]
    if isinstance(branches, list):
        for branch in branches:
            _hide_in(branch)


def _ended(outcome: UpgradeOutcome) -> dict[str, Any]:
    offsets, difference = outcome.offsets, outcome.difference
    return {
        "status": outcome.status,
        "finished_ms": outcome.finished_ms,
        "batch_id": outcome.batch_id,
        "offsets": None if offsets is None else {t: dict(p) for t, p in offsets.items()},
        "gap_ms": outcome.gap_ms,
        "outcome_reason": outcome.reason,
        "difference": None if difference is None else difference._asdict(),
    }


def _recorded(row: UpgradeRow) -> RecordedUpgrade:
    return RecordedUpgrade(UpgradeId(row.id), _entry(row), _outcome(row), row.rebuilt)


def _entry(row: UpgradeRow) -> UpgradeEntry:
    return UpgradeEntry(
        service_id=row.service_id,
        query_id=QueryId(row.query_id),
        sink=row.sink,
        statement_old=row.statement_old,
        statement_new=row.statement_new,
        plan_old=row.plan_old,
        plan_new=row.plan_new,
        classes=tuple(cast("Any", row.classes)),
        traits=tuple(cast("Any", row.traits)),
        guarantees=tuple(Guarantee(**guarantee) for guarantee in row.guarantees),
        changes=tuple(Difference(**change) for change in row.changes or ()),
        inherited=tuple(row.inherited or ()),
        accepted=row.accepted,
        reasons=tuple(row.reasons),
        command_offset=None if row.command_offset is None else Offset(row.command_offset),
        begun_ms=Millis(row.begun_ms),
        mode=cast("Any", row.mode),
        candidate=row.candidate,
        user=row.user_name or "",
    )


def _outcome(row: UpgradeRow) -> UpgradeOutcome | None:
    if row.finished_ms is None:
        return None
    return UpgradeOutcome(
        status=cast("Any", row.status),
        finished_ms=Millis(row.finished_ms),
        batch_id=row.batch_id,
        offsets=row.offsets,
        gap_ms=row.gap_ms,
        reason=row.outcome_reason,
        difference=None if row.difference is None else DifferenceCounts(**row.difference),
    )
