"""Statements and the schema registry: columns that come from it, schemas that go to it.

What is inferred is written into the statement, so that a replay needs no registry.
Source: docs/schema-registry.md#with-statements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.base.errors import ServerError, StatementError
from ksql.engine.changes import DeleteSubject
from ksql.engine.properties import With, declared_formats
from ksql.formats.schema_registry import Schema, subject_name
from ksql.formats.schemas import check_given_schema, inferred_columns, schema_for
from ksql.formats.table import Columns, NoRegistry, Side
from ksql.syntax import ast
from ksql.types.format import capabilities

if TYPE_CHECKING:
    from ksql.catalog.model import DataSource
    from ksql.engine.context import Context
    from ksql.formats.schema_registry import Registry
    from ksql.types.format import Format


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema that a statement registers; ``schema_id`` is the one it must come back with."""

    topic: str
    side: Side
    schema: Schema
    schema_id: int | None = None

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
    """A schema id beside a format that has no schemas."""

    def __init__(self, side: Side, name: str) -> None:
        word = side.upper()
        super().__init__(
            f"{word}_FORMAT should support schema inference when {word}_SCHEMA_ID is provided. "
            f"Current format is {name}.",
            detail=f"{name} does not support the following configs: [schemaId]",
        )


class IdAndColumns(StatementError):
    """A schema id beside declared columns of the same side."""

    def __init__(self, side: Side) -> None:
        super().__init__(
            f"Table elements and {side.upper()}_SCHEMA_ID cannot both exist for create statement."
        )


class SchemaIdDiffers(StatementError):
    """The schema named by id has another id under the topic's subject."""

    def __init__(self, wanted: Registration, found: int) -> None:
        super().__init__(
            f"Schema id registered is {found} which is different from provided "
            f"{wanted.side.upper()}_SCHEMA_ID {wanted.schema_id}.",
            detail=f"Topic: {wanted.topic}\nSubject: {wanted.subject}\n"
            f"Schema: {wanted.schema.text}",
        )


# --- columns from schemas


def completed(stmt: ast.CreateSource, options: With, context: Context) -> ast.CreateSource:
    """The statement with the columns that the registry knows for it.

    A side's columns come from there if a schema id names them, or if none are declared and the
    format has schemas.

    Raises: StatementError, RegistryMissing, RegistryUnreachable.
    """
    key_format, value_format = declared_formats(options, context.settings, stmt.name)
    primary: ast.ColumnMark = "PRIMARY KEY" if stmt.kind == "TABLE" else "KEY"
    has_key = any(each.mark in ("KEY", "PRIMARY KEY") for each in stmt.columns)
    has_value = any(each.mark == "" for each in stmt.columns)
    sides: tuple[tuple[Side, Format, bool, ast.ColumnMark], ...] = (
        ("key", key_format, has_key, primary),
        ("value", value_format, has_value, ""),
    )
    found: list[ast.ColumnDef] = []
    for side, format_, declared, mark in sides:
        if _infers(format_, side, declared=declared):
            columns = _inferred(format_, side, options.topic or "", context)
            found += [ast.ColumnDef(each.name, each.type, mark) for each in columns]
    return replace(stmt, columns=(*stmt.columns, *found)) if found else stmt


def check_id(format_: Format, side: Side) -> None:
    """A schema id needs a format with schemas.

    Raises: IdNeedsSchemas.
    """
    if format_.schema_id is not None and not capabilities(format_.name).infers:
        raise IdNeedsSchemas(side, format_.name)


def _infers(format_: Format, side: Side, *, declared: bool) -> bool:
    check_id(format_, side)
    if format_.schema_id is not None and declared:
        raise IdAndColumns(side)
    return capabilities(format_.name).infers and not declared


def _inferred(format_: Format, side: Side, topic: str, context: Context) -> Columns:
    columns, _ = inferred_columns(format_, side, topic, _registry(format_, topic, context))
    return columns


def _registry(format_: Format, topic: str, context: Context) -> Registry:
    if context.registry is None:
        raise NoRegistryForTopic(format_.name, topic)
    return context.registry


# --- schemas from columns


def of_declared(source: DataSource, context: Context) -> tuple[Registration, ...]:
    """What a declared source registers: its schemas where the topic's subject has none yet.

    Raises: StatementError, RegistryMissing, RegistryUnreachable.
    """
    return _registrations(source, context, always=False)


def of_sink(source: DataSource, context: Context) -> tuple[Registration, ...]:
    """What a query's sink registers, always: the registry is to see that it is compatible.

    Raises: StatementError also where the columns do not fit the schema given by id.
    """
    topic = source.topic
    for side, format_, columns in _sides(source):
        if format_.schema_id is not None:
            check_given_schema(format_, side, columns, topic, _registry(format_, topic, context))
    return _registrations(source, context, always=True)


def _sides(source: DataSource) -> tuple[tuple[Side, Format, Columns], ...]:
    return (
        ("key", source.key_format, source.schema.key),
        ("value", source.value_format, source.schema.value),
    )


def _registrations(
    source: DataSource, context: Context, *, always: bool
) -> tuple[Registration, ...]:
    topic, found = source.topic, []
    for side, format_, columns in _sides(source):
        if not columns or not capabilities(format_.name).infers:
            continue
        registry = _registry(format_, topic, context)
        if format_.schema_id is not None:
            schema = registry.by_id(format_.schema_id)
            found.append(Registration(topic, side, schema, format_.schema_id))
            continue
        ours = Registration(topic, side, schema_for(format_, columns, side))
        if always or registry.latest(ours.subject) is None:
            found.append(ours)
    return tuple(found)


def subjects_of(source: DataSource) -> tuple[str, ...]:
    """Where the schemas of a source's topic are registered."""
    return tuple(
        subject_name(source.topic, side)
        for side, format_, _ in _sides(source)
        if capabilities(format_.name).infers
    )


def deletions(source: DataSource, context: Context) -> list[DeleteSubject]:
    """What deletes the subjects of a source's topic as they are now."""
    if context.registry is None:
        return []
    found = [context.registry.latest(subject) for subject in subjects_of(source)]
    return [DeleteSubject(each.subject, each.id, each.version) for each in found if each]


def register(wanted: tuple[Registration, ...], registry: Registry | None) -> list[str]:
    """Register the schemas, all or none.

    Returns: the subjects that did not exist before.
    Raises: SchemaRejected, SchemaIdDiffers, RegistryUnreachable.
    """
    made: list[str] = []
    if registry is None:
        return made
    try:
        for each in wanted:
            new = registry.latest(each.subject) is None
            found = registry.register(each.subject, each.schema)
            if new:
                made.append(each.subject)
            if each.schema_id not in (None, found):
                raise SchemaIdDiffers(each, found)
    except (StatementError, ServerError):
        forget(made, registry)
        raise
    return made


def forget(subjects: list[str] | tuple[str, ...], registry: Registry | None) -> None:
    """Delete subjects."""
    if registry is not None:
        for subject in subjects:
            registry.delete(subject)
