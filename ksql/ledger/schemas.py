"""The embedded schema registry's tables: rows in, plain values out.

Every call belongs to a transaction that ``SchemaStore`` opened. What is allowed is decided by
``ksql.registry``; here nothing is refused but what would break a constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import delete, func, select, update

from ksql.ledger.model import SchemaReferenceRow, SchemaRow, SubjectRow, SubjectVersionRow
from ksql.topics.registry import Reference, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.orm import Session

EVERYWHERE: Final = ""
"""The subject whose settings hold for all that have none of their own."""


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema with both of its ids."""

    id: int
    guid: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class SubjectSettings:
    """What was set for one subject; None is not set."""

    compatibility: str | None = None
    mode: str | None = None
    normalize: bool | None = None


class SchemaTables:
    """The tables as one transaction sees them."""

    def __init__(self, session: Session, least_id: int = 0) -> None:
        self._session = session
        self._least_id = least_id

    # --- schemas

    def schema(self, schema_id: int) -> StoredSchema | None:
        """The schema of that id."""
        row = self._session.get(SchemaRow, schema_id)
        return self._stored(row) if row else None

    def by_guid(self, guid: str) -> StoredSchema | None:
        """The schema of that global id, which follows from its content."""
        row = self._session.scalars(select(SchemaRow).where(SchemaRow.guid == guid)).first()
        return self._stored(row) if row else None

    def last_id(self) -> int:
        """The highest id ever given; 0 before the first."""
        return max(self._session.scalar(select(func.max(SchemaRow.id))) or 0, self._least_id)

    def add_schema(self, schema: Schema, guid: str, schema_id: int | None = None) -> int:
        """Add a schema under that id or the next one; its id."""
        chosen = schema_id or self.last_id() + 1
        self._session.add(SchemaRow(id=chosen, guid=guid, kind=schema.kind, text=schema.text))
        self._session.flush()
        for position, one in enumerate(schema.references):
            self._session.add(
                SchemaReferenceRow(
                    schema_id=chosen,
                    position=position,
                    name=one.name,
                    subject=one.subject,
                    version=one.version,
                )
            )
        self._session.flush()
        return chosen

    def referring(self, subject: str, version: int) -> list[int]:
        """The ids of the schemas that import that version."""
        wanted = (SchemaReferenceRow.subject == subject) & (SchemaReferenceRow.version == version)
        found = select(SchemaReferenceRow.schema_id).where(wanted).distinct()
        return list(self._session.scalars(found.order_by(SchemaReferenceRow.schema_id)))

    def _stored(self, row: SchemaRow) -> StoredSchema:
        listed = self._session.scalars(
            select(SchemaReferenceRow)
            .where(SchemaReferenceRow.schema_id == row.id)
            .order_by(SchemaReferenceRow.position)
        )
        references = tuple(Reference(one.name, one.subject, one.version) for one in listed)
        return StoredSchema(row.id, row.guid, Schema(cast("Any", row.kind), row.text, references))

    # --- versions

    def versions(self, subject: str) -> list[StoredVersion]:
        """All versions of a subject in order, deleted ones too."""
        rows = select(SubjectVersionRow).where(SubjectVersionRow.subject == subject)
        return self._versions(rows.order_by(SubjectVersionRow.version))

    def all_versions(self) -> list[StoredVersion]:
        """Every version of every subject, in order."""
        order = (SubjectVersionRow.subject, SubjectVersionRow.version)
        return self._versions(select(SubjectVersionRow).order_by(*order))

    def uses(self, schema_id: int) -> list[StoredVersion]:
        """The versions that are that schema."""
        rows = select(SubjectVersionRow).where(SubjectVersionRow.schema_id == schema_id)
        order = (SubjectVersionRow.subject, SubjectVersionRow.version)
        return self._versions(rows.order_by(*order))

    def next_version(self, subject: str) -> int:
        """One above all versions that the subject ever had."""
        row = self._session.get(SubjectRow, subject)
        return row.last_version + 1 if row else 1

    def add_version(self, subject: str, schema_id: int, version: int | None = None) -> int:
        """Give the subject another version: that one, or one above all that it ever had."""
        row = self._subject(subject)
        chosen = version or row.last_version + 1
        row.last_version = max(row.last_version, chosen)
        self._session.flush()
        self._session.add(
            SubjectVersionRow(subject=subject, version=chosen, schema_id=schema_id, deleted=False)
        )
        self._session.flush()
        return chosen

    def mark(self, subject: str, versions: Iterable[int], *, deleted: bool) -> None:
        """Mark versions as deleted or not."""
        self._session.execute(
            update(SubjectVersionRow)
            .where(
                SubjectVersionRow.subject == subject, SubjectVersionRow.version.in_(list(versions))
            )
            .values(deleted=deleted)
        )

    def drop(self, subject: str, versions: Iterable[int]) -> None:
        """Delete versions for good; their numbers stay used."""
        self._session.execute(
            delete(SubjectVersionRow).where(
                SubjectVersionRow.subject == subject, SubjectVersionRow.version.in_(list(versions))
            )
        )

    def _versions(self, rows: Any) -> list[StoredVersion]:
        return [
            StoredVersion(row.subject, row.version, row.schema_id, row.deleted)
            for row in self._session.scalars(rows)
        ]

    # --- settings

    def settings(self, subject: str) -> SubjectSettings:
        """What was set for the subject."""
        row = self._session.get(SubjectRow, subject)
        if row is None:
            return SubjectSettings()
        return SubjectSettings(row.compatibility, row.mode, row.normalize)

    def set_settings(self, subject: str, settings: SubjectSettings) -> None:
        """Set all of them."""
        row = self._subject(subject)
        row.compatibility, row.mode = settings.compatibility, settings.mode
        row.normalize = settings.normalize
        self._session.flush()

    def _subject(self, subject: str) -> SubjectRow:
        row = self._session.get(SubjectRow, subject)
        if row is None:
            row = SubjectRow(subject=subject, last_version=0)
            self._session.add(row)
            self._session.flush()
        return row
