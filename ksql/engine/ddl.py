"""CREATE STREAM/TABLE with columns, ALTER, DROP, CREATE/DROP TYPE: from statement to changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.base.errors import ParseError, StatementError
from ksql.base.ident import did_you_mean, quote
from ksql.catalog.model import DataSource
from ksql.catalog.topic import Topic
from ksql.dataflow import rights
from ksql.engine import schemas
from ksql.engine.changes import (
    Change,
    DeleteTopic,
    DropSource,
    DropType,
    EndQuery,
    PutSource,
    PutType,
)
from ksql.engine.compat import check_growth, check_replacement
from ksql.engine.context import Context, Prepared, command_id
from ksql.engine.errors import AlreadyExists, BadProperty, DoesNotExist, StillUsed, UpgradeRefused
from ksql.engine.properties import With, configured_formats, with_configured_wrap
from ksql.formats.table import validate
from ksql.syntax import printer
from ksql.types import model
from ksql.types.schema import SYSTEM_NAMES, Column, Role, Schema, quote_always

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.syntax import ast

_RETENTION = "retention.ms"
_DEFAULT_RETENTION_MS = 604_800_000
_HEADERS = model.Array(
    model.Struct((model.Field("KEY", model.STRING), model.Field("VALUE", model.BYTES)))
)


def create_source(stmt: ast.CreateSource, text: str, context: Context) -> Prepared:
    """CREATE [OR REPLACE] [SOURCE] STREAM|TABLE name (columns) WITH (..)."""
    existing = context.catalog.sources.get(stmt.name)
    if existing is not None:
        if stmt.if_not_exists and not stmt.or_replace:
            return Prepared(warning=str(AlreadyExists(stmt.kind, stmt.name, existing)))
        if not stmt.or_replace or not context.settings.flag("ksql.create.or.replace.enabled"):
            raise AlreadyExists(stmt.kind, stmt.name, existing)
    _refuse_read_only_replacement(stmt, existing)
    source, new_topic, registrations = _declared(stmt, text, context)
    if existing is not None:
        stems = check_replacement(existing, source)
        stems += check_growth(existing, source, context.catalog.queries)
        if stems:
            raise UpgradeRefused(stmt.name, stems, None)
        source = replace(source, created_by=existing.created_by, derived_from=existing.derived_from)
    return Prepared(
        command_id(stmt.kind.lower(), stmt.name, "create"),
        (PutSource(source),),
        f"{stmt.kind.capitalize()} created",
        new_topics=(new_topic,) if new_topic else (),
        registrations=registrations,
    )


def _refuse_read_only_replacement(stmt: ast.CreateSource, existing: DataSource | None) -> None:
    read_only = stmt.read_only or (existing is not None and existing.read_only)
    if stmt.or_replace and read_only:
        kind = stmt.kind.lower()
        raise StatementError(
            f"Cannot add {kind} '{stmt.name}': "
            f"CREATE OR REPLACE is not supported on source {kind}s."
        )


def _declared(
    stmt: ast.CreateSource, text: str, context: Context
) -> tuple[DataSource, Topic | None, tuple[schemas.Registration, ...]]:
    options = With(stmt.properties, ddl=True)
    if not options.topic:
        raise BadProperty('Missing required property "KAFKA_TOPIC" which has no default value.')
    whole = schemas.completed(stmt, options, context)
    columns = columns_of(whole.columns)
    schema = Schema(columns)
    key_format, value_format = configured_formats(
        options, context.settings, stmt.name, has_key=bool(schema.key)
    )
    if any(each.mark == "" for each in stmt.columns):  # an inferred schema is as it is
        value_format = with_configured_wrap(value_format, len(schema.value), context.settings)
    _check_columns(stmt, schema, by_id=value_format.schema_id is not None)
    validate(key_format, schema.key, "key")
    validate(value_format, schema.value, "value")
    window = options.window()
    if window is not None and not schema.key:
        raise StatementError("Windowed sources require a key column.")
    timestamp = options.timestamp()
    check_timestamp(timestamp.name, timestamp.pattern, columns) if timestamp else None
    topic, new = resolve_topic(options, context, stmt.kind, windowed=window is not None)
    source = DataSource(
        stmt.name,
        stmt.kind,
        topic.name,
        schema,
        key_format,
        value_format,
        topic.partitions,
        topic.replicas,
        timestamp,
        window,
        stmt.read_only,
        statement=text if whole is stmt else f"{printer.statement(whole)};",
    )
    return source, topic if new else None, schemas.of_declared(source, context)


def columns_of(defs: Iterable[ast.ColumnDef]) -> tuple[Column, ...]:
    """The declared columns: keys, then values, then headers.

    Raises: StatementError for reserved names and duplicates.
    """
    columns = [_column(each) for each in defs]
    names = [column.name for column in columns]
    twice = dict.fromkeys(quote_always(name) for name in names if names.count(name) > 1)
    if twice:
        raise ParseError(f"Duplicate column names: {', '.join(twice)}")
    headers = [c for c in columns if c.role is Role.HEADERS]
    if len(headers) > 1 and any(c.header_key is None for c in headers):
        raise StatementError("Schema already contains a HEADERS column.")
    keys = [c.header_key for c in headers]
    for key in keys:
        if keys.count(key) > 1:
            raise StatementError(f"Schema already contains a HEADER('{key}') column.")
    order = (Role.KEY, Role.VALUE, Role.HEADERS)
    return tuple(sorted(columns, key=lambda column: order.index(column.role)))


def _column(each: ast.ColumnDef) -> Column:
    if each.name in SYSTEM_NAMES:
        raise ParseError(
            f"'{each.name}' is a reserved column name. You cannot use it as a name for a column.",
            span=each.span,
        )
    match each.mark:
        case "KEY" | "PRIMARY KEY":
            return Column(each.name, each.type, Role.KEY)
        case "HEADERS":
            if each.type != _HEADERS:
                raise StatementError(
                    f"Invalid type for HEADERS column: expected {_HEADERS}, got {each.type}"
                )
            return Column(each.name, each.type, Role.HEADERS)
        case "HEADER":
            if each.type != model.BYTES:
                raise StatementError(
                    f"Invalid type for HEADER('{each.header_key}') column: "
                    f"expected BYTES, got {each.type}"
                )
            return Column(each.name, each.type, Role.HEADERS, each.header_key)
        case "":
            return Column(each.name, each.type)


def quote_column(name: str) -> str:
    """A column's name in backticks."""
    return f"`{name}`"


def _check_columns(stmt: ast.CreateSource, schema: Schema, *, by_id: bool) -> None:
    if not schema.columns:
        raise StatementError(
            "The statement does not define any columns.", detail="No columns supplied."
        )
    if stmt.kind == "TABLE" and not schema.key:
        hint = (
            "Use a partial schema to define the primary key and still load the value columns from "
            f"the Schema Registry, for example: CREATE TABLE {quote(stmt.name)} "
            "(ID INT PRIMARY KEY) WITH (...);"
        )
        raise StatementError(
            "Tables require a PRIMARY KEY. Please define the PRIMARY KEY.",
            hint=hint if by_id else "",
        )


def check_timestamp(name: str, pattern: str | None, columns: Iterable[Column]) -> None:
    """The TIMESTAMP column must exist and be of a fitting type.

    Raises: StatementError.
    """
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        raise StatementError(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{name}'"
        )
    if found.type == model.STRING:
        if pattern is None:
            raise StatementError(
                "A String timestamp field has been specified without also specifying the "
                "timestamp_format"
            )
    elif pattern is not None:
        raise StatementError(
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column "
            "is of type STRING."
        )
    elif found.type not in (model.BIGINT, model.TIMESTAMP):
        raise StatementError(
            f"Timestamp column, {quote_column(name)}, should be LONG(INT64), TIMESTAMP, "
            "or a String with a timestamp_format specified."
        )


def resolve_topic(
    options: With,
    context: Context,
    kind: ast.SourceKind,
    *,
    windowed: bool,
    default_name: str = "",
    like: Topic | None = None,
    window_ms: int = 0,
) -> tuple[Topic, bool]:
    """The statement's topic, and whether it is to be created.

    ``like`` is the topic whose partitions, replicas and retention a new one takes over.
    ``window_ms`` is how long the query keeps its windows: the topic does not forget them earlier.
    Raises: StatementError if the counts differ from those of the existing topic, or none is given
    for a new one.
    """
    name = options.topic or default_name
    partitions, replicas = options.number("PARTITIONS"), options.number("REPLICAS")
    retention = options.number("RETENTION_MS")
    if retention is not None and kind == "TABLE" and not windowed:
        raise StatementError(
            "Invalid config variable in the WITH clause: RETENTION_MS. "
            "Non-windowed tables do not support retention."
        )
    rights.check_read(name, "use")
    existing = context.topics.describe(name)
    if existing is None:
        rights.check_write(name, context.settings, "create")
    else:
        kept = int(existing.configs.get(_RETENTION, -1 if retention is None else retention))
        for word, asked, found in (
            ("partitions", partitions, existing.partitions),
            ("replicas", replicas, existing.replicas),
            ("retention", retention, kept),
        ):
            if asked is not None and asked != found:
                raise StatementError(
                    f"A Kafka topic with the name '{name}' already exists, with different "
                    "partition/replica configuration than required. "
                    f"KSQL expects {asked} {word} (topic has {found})."
                )
        return existing, False
    count = like.partitions if partitions is None and like else partitions
    if count is None:
        raise StatementError(
            f"Topic '{name}' does not exist. If you want to create a new topic for the "
            f"{kind.lower()} please re-run the statement providing the required "
            "'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS').",
            hint=f"For example: CREATE {kind} .. WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, ..);",
        )
    if count < 1:
        raise StatementError(f"Invalid number of partitions: {count}")
    policy = "delete" if kind == "STREAM" else "compact,delete" if windowed else "compact"
    configs = {"cleanup.policy": policy}
    if retention is None and like is not None and policy != "compact":
        retention = int(like.configs.get(_RETENTION, _DEFAULT_RETENTION_MS))
    if retention is not None:
        configs[_RETENTION] = str(retention if retention < 0 else max(retention, window_ms))
    return Topic(name, count, replicas or (like.replicas if like else 1), configs), True


def alter_source(stmt: ast.AlterSource, text: str, context: Context) -> Prepared:
    """ALTER STREAM|TABLE name ADD COLUMN .."""
    source = context.catalog.sources.get(stmt.name)
    if source is None:
        raise DoesNotExist(
            f"Source {stmt.name} does not exist",
            hint=did_you_mean(stmt.name, context.catalog.sources),
        )
    kind = source.kind.lower()
    if source.kind != stmt.kind:
        raise StatementError(
            f"Incompatible data source type is {source.kind}, but statement was ALTER {stmt.kind}"
        )
    if source.read_only:
        raise StatementError(
            f"Cannot alter {kind} '{stmt.name}': "
            f"ALTER operations are not supported on source {kind}s."
        )
    if source.created_by is not None:
        raise StatementError(
            "ALTER command is not supported for CREATE ... AS statements.",
            hint="Use CREATE OR REPLACE with the new query.",
        )
    known = {column.name for column in source.schema.columns}
    for column in stmt.columns:
        if column.name in known:
            raise StatementError(
                f"Cannot add column {quote_column(column.name)} to schema. "
                "A column with the same name already exists."
            )
        known.add(column.name)
    schema, added = source.schema, columns_of(stmt.columns)
    grown = Schema((*schema.key, *schema.value, *added, *schema.headers))
    validate(source.value_format, grown.value, "value")
    wider = replace(source, schema=grown)
    if stems := check_growth(source, wider, context.catalog.queries):
        raise UpgradeRefused(stmt.name, stems, None)
    return Prepared(
        command_id(kind, stmt.name, "alter"),
        (PutSource(wider),),
        f"{kind.capitalize()} {stmt.name} altered.",
    )


def drop_source(stmt: ast.DropSource, context: Context) -> Prepared:
    """DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]."""
    catalog = context.catalog
    source = catalog.sources.get(stmt.name)
    noun = stmt.kind.capitalize()
    if source is None:
        if stmt.if_exists:
            return Prepared(warning=f"Source {quote_column(stmt.name)} does not exist.")
        raise DoesNotExist(
            f"{noun} {stmt.name} does not exist.",
            hint=did_you_mean(stmt.name, catalog.sources),
        )
    if source.kind != stmt.kind:
        raise StatementError(
            f"Incompatible data source type is {source.kind}, but statement was DROP {stmt.kind}"
        )
    _refuse_used(source, context)
    changes: list[Change] = []
    if source.created_by is not None:
        changes.append(EndQuery(source.created_by))
    doomed = (_doomed_topic(source, context),) if stmt.delete_topic else ()
    if source.materialization is not None:
        kept = source.materialization
        changes.append(EndQuery(kept.query_id))
        if rights.is_changelog(kept.topic, kept.query_id, context.settings):
            doomed = (kept.topic,)
    changes.append(DropSource(source.name))
    changes += [DeleteTopic(topic, context.topics.identity(topic)) for topic in doomed]
    if stmt.delete_topic:
        changes += schemas.deletions(source, context)
    return Prepared(
        command_id(stmt.kind.lower(), stmt.name, "drop"),
        tuple(changes),
        f"Source {quote_column(stmt.name)} (topic: {source.topic}) was dropped.",
    )


def _refuse_used(source: DataSource, context: Context) -> None:
    catalog = context.catalog
    readers = [q.id for q in catalog.readers(source.name) if q.kind != "CST"]
    writers = [q.id for q in catalog.writers(source.name) if q.id != source.created_by]
    derived = catalog.derived(source.name)
    if derived:
        raise StillUsed(
            f"Cannot drop {source.name}.\n"
            f"The following streams and/or tables read from this source: [{', '.join(derived)}].\n"
            f"You need to drop them before dropping {source.name}."
        )
    if readers or writers:
        raise StillUsed(
            f"Cannot drop {source.name}.\n"
            f"The following queries read from this source: [{', '.join(readers)}].\n"
            f"The following queries write into this source: [{', '.join(writers)}].\n"
            f"You need to terminate them before dropping {source.name}."
        )


def _doomed_topic(source: DataSource, context: Context) -> str:
    if source.read_only:
        raise StatementError(f"Cannot delete topic for read-only source: {source.name}")
    others = [
        s.name for s in context.catalog.sources.values() if s.topic == source.topic and s != source
    ]
    if others:
        raise StatementError(
            f"Refusing to delete topic. Found other data sources ({', '.join(others)}) "
            f"using topic {source.topic}"
        )
    rights.check_delete(source.topic, context.settings)
    return source.topic


def create_type(stmt: ast.CreateType, context: Context) -> Prepared:
    """CREATE TYPE [IF NOT EXISTS] name AS type."""
    existing = context.catalog.types.get(stmt.name)
    if existing is not None:
        message = (
            f"Cannot register custom type '{stmt.name}' since it is already registered "
            f"with type: {existing}"
        )
        if stmt.if_not_exists:
            return Prepared(warning=f"{stmt.name} is already registered with type {existing}")
        raise StatementError(message)
    return Prepared(
        command_id("type", stmt.name, "create"),
        (PutType(stmt.name, stmt.type),),
        f"Registered custom type with name '{stmt.name}' and SQL type {stmt.type}",
    )


def drop_type(stmt: ast.DropType, context: Context) -> Prepared:
    """DROP TYPE [IF EXISTS] name."""
    if stmt.name not in context.catalog.types:
        if stmt.if_exists:
            return Prepared(warning=f"Type '{stmt.name}' does not exist")
        raise DoesNotExist(f"Type {stmt.name} does not exist.")
    return Prepared(
        command_id("type", stmt.name, "drop"),
        (DropType(stmt.name),),
        f"Dropped type '{stmt.name}'",
    )
