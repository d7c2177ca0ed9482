"""The checks and changes that the requests of a registry consist of, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from ksql.formats import Schema, imports
from ksql.registry import errors as err
from ksql.registry.kinds import CheckedSchema, Level, checked, faults
from ksql.registry.state import EVERYWHERE, Draft, Schemas, StoredSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.registry.records import VersionSet

Mode = Literal["READWRITE", "READONLY", "IMPORT"]
MODES: Final[tuple[Mode, ...]] = ("READWRITE", "READONLY", "IMPORT")
LATEST: Final = -1
_MAX_SUBJECT: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectVersion:
    """A version of a subject with its schema."""

    subject: str
    version: int
    id: int
    guid: str
    schema: Schema
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a subject or of all; None is not set."""

    compatibility: Level | None = None
    normalize: bool | None = None


def add(
    tables: Draft, subject: str, new: CheckedSchema, schema_id: int | None, version: int | None
) -> SubjectVersion:
    """Add the schema to the subject, unless it is there; the version that it is.

    Raises: NotPermitted, Incompatible, OtherId.
    """
    mode = check_writable(tables, subject)
    if mode == "IMPORT":
        if schema_id is None:
            raise err.NotPermitted(f"Subject {subject} is in import mode: give the schema's id")
    elif schema_id is not None:
        raise err.NotPermitted(f"Subject {subject} is not in import mode")
    known = known_version(tables, subject, new)
    if known is not None and schema_id in (None, known.id):
        return entry_of(tables, known)
    if mode != "IMPORT":
        conflicts = against(tables, level_of(tables, subject), new, live_versions(tables, subject))
        if conflicts:
            raise err.Incompatible(subject, conflicts)
    given = _schema_id(tables, new, schema_id)
    if version is not None:
        _check_version(tables, subject, version, mode)
    return entry_of(tables, tables.add_version(subject, given, version))


def _check_version(tables: Schemas, subject: str, version: int, mode: Mode) -> None:
    """Check a version's number: imports may leave gaps; nobody may write over a version."""
    following = tables.next_version(subject)
    if version < following if mode == "IMPORT" else version != following:
        raise err.InvalidSchema(f"Version {version} is not one more than previous version")


def _schema_id(tables: Draft, new: CheckedSchema, schema_id: int | None) -> int:
    known = tables.by_guid(new.guid)
    if known is not None:
        if schema_id not in (None, known.id):
            raise err.OtherId(schema_id or 0, known.id)
        return known.id
    if schema_id is not None and (other := tables.schema(schema_id)) is not None:
        raise err.NotPermitted(f"Overwrite new schema with id {other.id} is not permitted.")
    return tables.add_schema(new.schema, new.guid, schema_id)


def against(
    tables: Schemas, level: Level, new: CheckedSchema, versions: Sequence[VersionSet]
) -> list[str]:
    """List the level's objections to a schema, for the newest version that does not fit."""
    for one in reversed(versions if level.transitive else versions[-1:]):
        stored = _stored(tables, one.id).schema
        old = CheckedSchema(stored, imported_by(tables, stored))
        conflicts = faults(level, new, old)
        if conflicts:
            return [
                *conflicts,
                f"{{oldSchemaVersion: {one.version}}}",
                f"{{oldSchema: '{stored.text}'}}",
                f"{{compatibility: '{level.value}'}}",
            ]
    return []


def check_schema(
    tables: Schemas, subject: str, schema: Schema, *, normalize: bool
) -> CheckedSchema:
    """Return the schema as the subject would keep it.

    Raises: InvalidSchema.
    """
    normalized = normalize or normalizes(tables, subject)
    schema = _pinned(tables, schema)
    return checked(schema, imported_by(tables, schema), normalize=normalized)


def _pinned(tables: Schemas, schema: Schema) -> Schema:
    """Turn references to a latest version into references to the version that it is now."""
    if all(one.version != LATEST for one in schema.references):
        return schema
    pinned = []
    for one in schema.references:
        if one.version == LATEST:
            live = live_versions(tables, one.subject)
            if not live:
                raise err.InvalidSchema(f"No schema reference found for subject {one.subject}")
            one = replace(one, version=live[-1].version)  # noqa: PLW2901 - the same, pinned
        pinned.append(one)
    return replace(schema, references=tuple(pinned))


def imported_by(tables: Schemas, schema: Schema) -> dict[str, str]:
    """Return the texts of all that a schema imports, directly or not, by name.

    Raises: InvalidSchema.
    """

    def find(subject: str, version: int) -> Schema:
        for one in tables.versions(subject):
            if one.version == version and (stored := tables.schema(one.id)):
                return stored.schema
        raise err.InvalidSchema(
            f"No schema reference found for subject {subject} and version {version}"
        )

    return imports(schema, find)


def known_version(
    tables: Schemas, subject: str, new: CheckedSchema, *, deleted: bool = False
) -> VersionSet | None:
    """Return the version of a subject that is the schema."""
    stored = tables.by_guid(new.guid)
    if stored is None:
        return None
    return next(
        (
            one
            for one in tables.uses(stored.id)
            if one.subject == subject and (deleted or not one.deleted)
        ),
        None,
    )


def live_versions(tables: Schemas, subject: str) -> list[VersionSet]:
    """Return the versions that are not deleted."""
    return [one for one in tables.versions(subject) if not one.deleted]


def find_version(
    tables: Schemas, subject: str, version: int, *, deleted: bool = False
) -> VersionSet:
    """Return a version of a subject, or its latest one.

    Raises: SubjectNotFound, VersionNotFound.
    """
    versions = [one for one in tables.versions(subject) if deleted or not one.deleted]
    if not versions:
        raise err.SubjectNotFound(subject)
    if version == LATEST:
        return versions[-1]
    for one in versions:
        if one.version == version:
            return one
    raise err.VersionNotFound(version)


def entry_of(tables: Schemas, version: VersionSet) -> SubjectVersion:
    """Return the version with its schema."""
    stored = _stored(tables, version.id)
    return SubjectVersion(
        subject=version.subject,
        version=version.version,
        id=stored.id,
        guid=stored.guid,
        schema=stored.schema,
        deleted=version.deleted,
    )


def _stored(tables: Schemas, schema_id: int) -> StoredSchema:
    schema = tables.schema(schema_id)
    if schema is None:
        raise err.StoreFailed(f"schema {schema_id} is missing")
    return schema


def used(tables: Schemas, schema: StoredSchema | None, key: int | str) -> StoredSchema:
    """Return the schema, if any version is that schema.

    Raises: NoSuchSchema.
    """
    if schema is None or not tables.uses(schema.id):
        raise err.NoSuchSchema(key)
    return schema


def referring(tables: Schemas, subject: str, version: int) -> list[int]:
    """Return the ids of the schemas in use that import a version."""
    return [one for one in tables.referring(subject, version) if tables.uses(one)]


def check_unreferenced(tables: Schemas, subject: str, version: int) -> None:
    """Make sure that nothing live imports the version.

    Raises: ReferenceExists.
    """
    live = (
        use
        for one in tables.referring(subject, version)
        for use in tables.uses(one)
        if not use.deleted
    )
    if any(live):
        raise err.ReferenceExists(subject, version)


def check_writable(tables: Schemas, subject: str) -> Mode:
    """Return the subject's mode.

    Raises: NotPermitted for one that is read-only.
    """
    mode = mode_of(tables, subject)
    if mode == "READONLY":
        raise err.NotPermitted(f"Subject {subject} is in read-only mode")
    return mode


def check_subject(subject: str) -> None:
    """Make sure that the name can be one of a subject.

    Raises: InvalidSubject.
    """
    printable = subject.isprintable() and bool(subject.strip())
    if not printable or len(subject) > _MAX_SUBJECT:
        raise err.InvalidSubject(subject)


def is_shown(is_deleted: bool, deleted: bool, only_deleted: bool) -> bool:
    """Return whether a list that was asked for in that way has it."""
    return is_deleted if only_deleted else deleted or not is_deleted


def own_config(tables: Schemas, subject: str) -> Config:
    """Return the settings of the subject itself."""
    settings = tables.settings(subject)
    level = None if settings.compatibility is None else Level(settings.compatibility)
    return Config(level, settings.normalize)


def level_of(tables: Schemas, subject: str) -> Level:
    """Return the level that holds for the subject."""
    own = own_config(tables, subject).compatibility
    return own or own_config(tables, EVERYWHERE).compatibility or Level.BACKWARD


def normalizes(tables: Schemas, subject: str) -> bool:
    """Return whether the subject's schemas are normalised without being asked."""
    own = tables.settings(subject).normalize
    return bool(tables.settings(EVERYWHERE).normalize) if own is None else own


def mode_of(tables: Schemas, subject: str) -> Mode:
    """Return the mode that holds for the subject."""
    for scope in (subject, EVERYWHERE):
        mode_ = tables.settings(scope).mode
        for mode in MODES:
            if mode_ == mode:
                return mode
    return "READWRITE"
