"""Catalog snapshots in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from ksql.base.ids import Millis, Offset
from ksql.ledger.entries import CatalogSnapshot
from ksql.ledger.model import SnapshotRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def save(session: Session, snapshot: CatalogSnapshot, keep: int) -> None:
    """Saves the snapshot, in place of one of the same offset; keeps the newest ``keep`` ones."""
    session.merge(
        SnapshotRow(
            service_id=snapshot.service_id,
            command_offset=snapshot.command_offset,
            format_version=snapshot.format_version,
            catalog=snapshot.catalog,
            taken_ms=snapshot.taken_ms,
        )
    )
    session.flush()
    own = SnapshotRow.service_id == snapshot.service_id
    offsets = select(SnapshotRow.command_offset).where(own)
    kept = session.scalars(offsets.order_by(SnapshotRow.command_offset.desc()).limit(keep)).all()
    session.execute(delete(SnapshotRow).where(own, SnapshotRow.command_offset < kept[-1]))


def latest(session: Session, service_id: str, max_offset: Offset | None) -> CatalogSnapshot | None:
    """The newest snapshot, or the newest one that stands for no more than ``max_offset``."""
    statement = select(SnapshotRow).where(SnapshotRow.service_id == service_id)
    if max_offset is not None:
        statement = statement.where(SnapshotRow.command_offset <= max_offset)
    row = session.scalars(statement.order_by(SnapshotRow.command_offset.desc()).limit(1)).first()
    if row is None:
        return None
    return CatalogSnapshot(
        service_id=row.service_id,
        command_offset=Offset(row.command_offset),
        format_version=row.format_version,
        catalog=row.catalog,
        taken_ms=Millis(row.taken_ms),
    )
