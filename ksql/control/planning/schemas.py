"""Statements and the schema registry: columns that come from it, schemas that go to it.

What is inferred is written into the statement, so that a replay needs no registry.
Source: docs/schema-registry.md#with-statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ksql.control.engine.changes import DeleteSubject
from ksql.control.planning.properties import RequestedFormat, With, declared_formats
from ksql.core import ServerError, StatementError
from ksql.core.types import capabilities
from ksql.formats import (
    Columns,
    FoundSchema,
    NoRegistry,
    Schema,
    Side,
    check_given_schema,
    inferred_columns,
    kind_of,
    look_up,
    schema_for,
    subject_name,
)
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from ksql.control.engine.context import PlanningContext
    from ksql.core.types import Format
    from ksql.formats import Registered as Version
    from ksql.formats import Registry
    from ksql.sql.catalog import DataSource
    from ksql.sql.plan import Sink


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema that a statement registers; ``schema_id`` is the one it must come back with.

    It becomes the next version of its subject, or what would be that of the topic ``follows``.
    """

    topic: str
    side: Side
    schema: Schema
    schema_id: int | None = None
    follows: str | None = None

    @property
    def subject(self) -> str:
        """Where it is registered."""
        return subject_name(self.topic, self.side)


class NoRegistryForTopic(NoRegistry):
    """A topic in a format with schemas, and no registry."""

    def __init__(self, name: str, topic: str) -> None:
        super().__init__(name)
        self.message = (
            f"Cannot create topic '{topic}' with format {name} "
            "without configuring 'ksql.schema.registry.url'"
        )


class IdNeedsSchemas(StatementError):
    """A schema id together with a format that has no schemas."""

    def __init__(self, side: Side, name: str) -> None:
        word = side.upper()
        super().__init__(
            f"{word}_FORMAT should support schema inference when {word}_SCHEMA_ID is provided. "
            f"Current format is {name}.",
            detail=f"{name} does not support the following configs: [schemaId]",
        )


class IdAndColumns(StatementError):
    """A schema id together with declared columns of the same side."""

    def __init__(self, side: Side) -> None:
        super().__init__(
            f"Table elements and {side.upper()}_SCHEMA_ID cannot both exist for create statement."
        )


class SchemaIdDiffers(StatementError):
    """The schema named by id has another id under the topic's subject."""

    def __init__(self, registration: Registration, schema_id: int) -> None:
        super().__init__(
            f"Schema id registered is {schema_id} which is different from provided "
            f"{registration.side.upper()}_SCHEMA_ID {registration.schema_id}.",
            detail=f"Topic: {registration.topic}\nSubject: {registration.subject}\n"
            f"Schema: {registration.schema.text}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The state of the schema registry, as far as it concerns one topic.

    ``given`` holds the schemas that the statement names by id, ``present`` the sides whose subject
    has a schema already. ``there`` is False without a registry.
    """

    there: bool
    given: Mapping[Side, FoundSchema] = field(default_factory=dict)
    present: frozenset[Side] = frozenset()


# --- looking up, while a statement is resolved


def completed(
    stmt: ast.CreateSource, options: With, context: PlanningContext
) -> tuple[ast.CreateSource, Registered]:
    """Give the statement the columns that the registry knows for it.

    A side's columns come from there if a schema id names them, or if none are declared and the
    format has schemas.

    Raises: StatementError, RegistryMissing, RegistryUnreachable.
    """
    key_format, value_format = declared_formats(options, context.settings, stmt.name)
    topic = options.topic or ""
    primary: ast.ColumnMark = "PRIMARY KEY" if stmt.kind == "TABLE" else "KEY"
    has_key = any(column.mark in ("KEY", "PRIMARY KEY") for column in stmt.columns)
    has_value = any(column.mark == "" for column in stmt.columns)
    sides: tuple[tuple[Side, Format, bool, ast.ColumnMark], ...] = (
        ("key", key_format, has_key, primary),
        ("value", value_format, has_value, ""),
    )
    columns: list[ast.ColumnDef] = []
    given: dict[Side, FoundSchema] = {}
    for side, format_, declared, mark in sides:
        if not _infers(format_, side, declared=declared):
            continue
        registry = _required(context.registry, format_, topic)
        inferred, schema = inferred_columns(format_, side, topic, registry)
        columns += [ast.ColumnDef(column.name, column.type, mark) for column in inferred]
        if format_.schema_id is not None:
            given[side] = schema
    present = _present(topic, (("key", key_format), ("value", value_format)), context.registry)
    registered = Registered(there=context.registry is not None, given=given, present=present)
    whole = replace(stmt, columns=(*stmt.columns, *columns)) if columns else stmt
    return whole, registered


def _infers(format_: Format, side: Side, *, declared: bool) -> bool:
    check_id(format_, side)
    if format_.schema_id is not None and declared:
        raise IdAndColumns(side)
    return capabilities(format_.name).infers and not declared


def _present(
    topic: str, sides: Iterable[tuple[Side, Format]], registry: Registry | None
) -> frozenset[Side]:
    """Return the sides whose subject has a schema already."""
    if registry is None:
        return frozenset()
    return frozenset(
        side
        for side, format_ in sides
        if format_.schema_id is None
        and capabilities(format_.name).infers
        and registry.latest(subject_name(topic, side)) is not None
    )


def given(
    topic: str, requests: Iterable[tuple[Side, RequestedFormat]], registry: Registry | None
) -> Registered:
    """Look up the schemas that the request for a result's formats name by id.

    Raises: StatementError, RegistryUnreachable.
    """
    schemas: dict[Side, FoundSchema] = {}
    for side, request in requests:
        if request.clause.schema_id is None or registry is None or not request.name:
            continue
        if capabilities(request.name).infers:
            schemas[side] = look_up(request.format(), side, topic, registry)
    return Registered(there=registry is not None, given=schemas)


def _required(registry: Registry | None, format_: Format, topic: str) -> Registry:
    if registry is None:
        raise NoRegistryForTopic(format_.name, topic)
    return registry


def deletions(source: DataSource, context: PlanningContext) -> list[DeleteSubject]:
    """Return the changes that delete the subjects of a source's topic as they are now."""
    return _deletions(subjects_of(source), context)


def deletions_of_results(sink: Sink, topic: str, context: PlanningContext) -> list[DeleteSubject]:
    """Return the same of a topic to which a version of a query has written its results."""
    sides: tuple[tuple[Side, Format], ...] = (
        ("key", sink.key_format),
        ("value", sink.value_format),
    )
    subjects = (
        subject_name(topic, side) for side, format_ in sides if capabilities(format_.name).infers
    )
    return _deletions(subjects, context)


def _deletions(subjects: Iterable[str], context: PlanningContext) -> list[DeleteSubject]:
    if context.registry is None:
        return []
    versions = [context.registry.latest(subject) for subject in subjects]
    return [
        DeleteSubject(version.subject, version.id, version.version)
        for version in versions
        if version
    ]


# --- schemas from columns


def check_id(format_: Format, side: Side) -> None:
    """Refuse a schema id with a format that has no schemas.

    Raises: IdNeedsSchemas.
    """
    if format_.schema_id is not None and not capabilities(format_.name).infers:
        raise IdNeedsSchemas(side, format_.name)


def of_declared(source: DataSource, registered: Registered) -> tuple[Registration, ...]:
    """Return the schemas of a declared source that the topic's subjects do not have yet.

    Raises: StatementError, RegistryMissing.
    """
    return tuple(
        registration
        for registration in _registrations(source, registered)
        if registration.schema_id is not None or registration.side not in registered.present
    )


def of_sink(source: DataSource, registered: Registered) -> tuple[Registration, ...]:
    """Return the schemas of a query's result; all, so that the registry checks each of them.

    Raises: StatementError also where the columns do not fit the schema given by id.
    """
    for side, format_, columns in _sides(source):
        if format_.schema_id is not None:
            schema = _given(registered, side, format_, source.topic)
            check_given_schema(format_, side, columns, source.topic, schema)
    return tuple(_registrations(source, registered))


def of_rebuilt(source: DataSource, registry: Registry | None) -> tuple[Registration, ...]:
    """Return the schemas of a result that a rebuild is about to change.

    Raises: StatementError, RegistryUnreachable.
    """
    given = {
        side: look_up(format_, side, source.topic, registry)
        for side, format_, _ in _sides(source)
        if registry is not None and format_.schema_id is not None
    }
    return tuple(_registrations(source, Registered(there=registry is not None, given=given)))


def of_candidate(registrations: Iterable[Registration], topic: str) -> tuple[Registration, ...]:
    """Return the schemas of a candidate's hidden topic: those of the result, by the same ids.

    The ids are a part of keys and values. Under others no row would equal one of the result.
    """
    return tuple(
        replace(registration, topic=topic, follows=registration.topic)
        for registration in registrations
        if registration.schema_id is None
    )


def _registrations(source: DataSource, registered: Registered) -> Iterator[Registration]:
    topic = source.topic
    for side, format_, columns in _sides(source):
        if not columns or not capabilities(format_.name).infers:
            continue
        if not registered.there:
            raise NoRegistryForTopic(format_.name, topic)
        if format_.schema_id is not None:
            schema = _given(registered, side, format_, topic).schema
            yield Registration(topic, side, schema, format_.schema_id)
        else:
            yield Registration(topic, side, schema_for(format_, columns, side))


def _given(registered: Registered, side: Side, format_: Format, topic: str) -> FoundSchema:
    if not registered.there:
        raise NoRegistryForTopic(format_.name, topic)
    return registered.given[side]


def _sides(source: DataSource) -> tuple[tuple[Side, Format, Columns], ...]:
    return (
        ("key", source.key_format, source.schema.key),
        ("value", source.value_format, source.schema.value),
    )


def subjects_of(source: DataSource) -> tuple[str, ...]:
    """Return where the schemas of a source's topic are registered."""
    return tuple(
        subject_name(source.topic, side)
        for side, format_, _ in _sides(source)
        if capabilities(format_.name).infers
    )


# --- carrying out


class NewVersion(NamedTuple):
    """A version that was added to a subject; ``version`` is None if the subject is new, too."""

    subject: str
    version: int | None


def register(
    registrations: tuple[Registration, ...], registry: Registry | None
) -> list[NewVersion]:
    """Register the schemas, all or none.

    Returns: what was not there before.
    Raises: SchemaRejected, SchemaIdDiffers, RegistryUnreachable.
    """
    added: list[NewVersion] = []
    if registry is None:
        return added
    try:
        for registration in registrations:
            before = registry.latest(registration.subject)
            followed = before
            if registration.follows is not None:
                followed = registry.latest(subject_name(registration.follows, registration.side))
            schema_id = registry.register(registration.subject, _next(registration, followed))
            after = registry.latest(registration.subject)
            if before is None:
                added.append(NewVersion(registration.subject, None))
            elif after is not None and after.version > before.version:
                added.append(NewVersion(registration.subject, after.version))
            if registration.schema_id not in (None, schema_id):
                raise SchemaIdDiffers(registration, schema_id)
    except (StatementError, ServerError):
        rollback(added, registry)
        raise
    return added


def rollback(added: Iterable[NewVersion], registry: Registry | None) -> None:
    """Delete what was registered, unless somebody has registered more after it."""
    if registry is None:
        return
    for subject, version in added:
        if version is None:
            registry.delete(subject)
        elif (latest := registry.latest(subject)) is not None and latest.version == version:
            registry.delete_version(subject, version)


def forget(subjects: Iterable[str], registry: Registry | None) -> None:
    """Delete subjects."""
    if registry is not None:
        for subject in subjects:
            registry.delete(subject)


def check(registrations: Iterable[Registration], registry: Registry | None) -> None:
    """Ask whether the schemas could be registered; nothing is.

    Raises: SchemaRejected, RegistryUnreachable.
    """
    if registry is None:
        return
    for registration in registrations:
        before = registry.latest(registration.subject)
        if before is not None:
            registry.check(registration.subject, _next(registration, before))


def _next(registration: Registration, latest: Version | None) -> Schema:
    """Return the schema as it is registered after the subject's latest version."""
    if latest is None or registration.schema_id is not None:
        return registration.schema
    return kind_of(registration.schema.kind).following(registration.schema, latest.schema)
