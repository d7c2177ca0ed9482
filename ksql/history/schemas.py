"""Schemas that earlier versions of the embedded registry kept in the ledger's database.

They are only read, once, to move to Kafka; see ``ksql.registry.ledger_import``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import select

from ksql.formats.schema_registry import Reference, Schema
from ksql.history.database import Database, parse_url
from ksql.history.migrate import migrate
from ksql.history.model import SchemaReferenceRow, SchemaRow, SubjectRow, SubjectVersionRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_BUSY_MS = 5000


@dataclass(frozen=True, slots=True)
class OldVersion:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class OldSettings:
    """The settings of one subject, or of all (""); None is not set."""

    subject: str
    compatibility: str | None
    mode: str | None
    normalize: bool | None


@dataclass(frozen=True, slots=True)
class OldSchemas:
    """All that there was; ``last_versions`` are the highest numbers that were ever given."""

    schemas: Mapping[int, Schema] = field(default_factory=dict)
    versions: tuple[OldVersion, ...] = ()
    settings: tuple[OldSettings, ...] = ()
    last_versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def last_id(self) -> int:
        """The highest id that was ever given."""
        return max(self.schemas, default=0)


def read_schemas(url: str) -> OldSchemas:
    """Read all schemas of the database; its tables are brought up to date first.

    Raises: LedgerUnavailable, NewerLedger, BadLedgerUrl.
    """
    database = Database(parse_url(url), _BUSY_MS)
    try:
        migrate(database)
        database.remember_file()
        with database.reading() as session:
            return _read(session)
    finally:
        database.close()


def _read(session: Session) -> OldSchemas:
    subjects = list(session.scalars(select(SubjectRow).order_by(SubjectRow.subject)))
    versions = session.scalars(select(SubjectVersionRow))
    return OldSchemas(
        _schemas(session),
        tuple(OldVersion(v.subject, v.version, v.schema_id, v.deleted) for v in versions),
        tuple(OldSettings(s.subject, s.compatibility, s.mode, s.normalize) for s in subjects),
        {s.subject: s.last_version for s in subjects if s.last_version},
    )


def _schemas(session: Session) -> dict[int, Schema]:
    references: dict[int, list[Reference]] = {}
    for one in session.scalars(select(SchemaReferenceRow).order_by(SchemaReferenceRow.position)):
        reference = Reference(one.name, one.subject, one.version)
        references.setdefault(one.schema_id, []).append(reference)
    return {
        row.id: Schema(cast("Any", row.kind), row.text, tuple(references.get(row.id, ())))
        for row in session.scalars(select(SchemaRow))
    }
