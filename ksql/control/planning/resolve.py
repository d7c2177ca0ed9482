"""Step 1, *resolve*: reads a statement's properties, looks up topics and schemas, makes the id.

The result is one value with every default filled in: formats, topics, registered schemas, the
source or query to be replaced. Only this step asks Kafka and the schema registry.

Ids of queries name directories, groups and transactions, so they are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ksql.control.engine.errors import (
    AlreadyExists,
    BadProperty,
    DoesNotExist,
    NotReplaceable,
    OtherKind,
    QueryIdTooLong,
)
from ksql.control.planning import rebuild, schemas, start_mode, topics
from ksql.control.planning.columns import columns_of
from ksql.control.planning.properties import (
    RequestedFormat,
    With,
    configured_formats,
    with_configured_wrap,
)
from ksql.core import (
    PREPARING,
    ParseError,
    QueryId,
    StatementError,
    persistent_query_id,
    quote_always,
    visible,
)
from ksql.core.types import Format, KeyWindow, Schema, TimestampColumn, capabilities
from ksql.exec.dataflow import topic_acl
from ksql.sql.binder import position_text, sources_of
from ksql.sql.catalog import Catalog, DataSource, PersistentQuery, Topic
from ksql.sql.syntax import ast, printer
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from ksql.control.engine.context import PlanningContext, PlanningInputs
    from ksql.core import Span


OR_REPLACE: Final = "ksql.create.or.replace.enabled"
_QUERY_ID = re.compile(r"[A-Za-z0-9_]+\Z")
_EVERY_QUERY = "ALL"  # in TERMINATE, PAUSE, RESUME and ksql.state.anew
_RESERVED_IDS = ("INSERTQUERY_", "CTAS_", "CSAS_", "CST_")


class LostRecords(Protocol):
    """Counts the first records that a query's topics do not hold any more, by source."""

    def __call__(self, *, streams: bool = True) -> Mapping[str, int]:
        """Return the counts that are not 0; without ``streams`` those of tables alone."""


def none_lost(*, streams: bool = True) -> Mapping[str, int]:
    """Return that nothing is lost."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuery:
    """CREATE .. AS SELECT. ``existing`` is the source that it replaces, ``writer`` its query.

    ``store`` is STORE_TYPE, in small letters, ``mode`` REPLACE_MODE. ``start`` is START_MODE, as a
    plan keeps it; None if it is not stated. ``lost`` counts the first records that the topics of
    its streams do not hold any more; it asks Kafka.
    """

    statement: ast.CreateAsSelect
    text: str
    query_id: QueryId
    existing: DataSource | None
    writer: PersistentQuery | None
    key: RequestedFormat
    value: RequestedFormat
    timestamp: TimestampColumn | None
    topic: topics.RequestedTopic
    registered: schemas.Registered
    store: str | None
    mode: rebuild.ReplaceMode = "in_place"
    start: str | None = None
    lost: LostRecords = none_lost


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedInsert:
    """INSERT INTO .. SELECT."""

    statement: ast.InsertInto
    text: str
    query_id: QueryId
    target: DataSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSource:
    """CREATE STREAM or TABLE with columns; ``schema`` has those that come from the registry, too.

    ``whole_text`` is the statement with all columns. ``existing`` is the source that it replaces.
    """

    statement: ast.CreateSource
    text: str
    whole_text: str
    existing: DataSource | None
    schema: Schema
    key_format: Format
    value_format: Format
    window: KeyWindow | None
    timestamp: TimestampColumn | None
    topic: topics.RequestedTopic
    registered: schemas.Registered
    store: str | None


def already_there(stmt: ast.CreateSource | ast.CreateAsSelect, catalog: Catalog) -> str | None:
    """Return the warning of an IF NOT EXISTS that finds the source; then there is nothing to do."""
    existing = catalog.sources.get(stmt.name)
    if existing is None or not stmt.if_not_exists or stmt.or_replace:
        return None
    return str(AlreadyExists(stmt.kind, stmt.name, existing))


def created_as(stmt: ast.CreateAsSelect, text: str, context: PlanningContext) -> ResolvedQuery:
    """Resolve CREATE [OR REPLACE] STREAM|TABLE name WITH (..) AS SELECT ..

    Raises: StatementError.
    """
    settings, catalog = context.settings, context.catalog
    existing = _replaced(stmt, context)
    if existing is not None and existing.read_only:
        raise NotReplaceable(existing.kind, stmt.name)
    _refuse_limit(stmt.query, f"CREATE {stmt.kind} AS SELECT")
    options = With(stmt.properties, ddl=False)
    first = sources_of(stmt.query.source, catalog)[0].source
    writer = _writer(existing, catalog)
    kind = "CSAS" if stmt.kind == "STREAM" else "CTAS"
    mode = rebuild.replace_mode(options, or_replace=stmt.or_replace)
    key = RequestedFormat(
        clause=options.clause("KEY"),
        default=settings.text("ksql.persistence.default.format.key"),
        inherited=None if capabilities(first.key_format.name).empty else first.key_format,
        key_of=stmt.name,
    )
    value = RequestedFormat(
        clause=options.clause("VALUE"), inherited=first.value_format, wrap=options.wrap
    )
    topic = options.topic or settings.text("ksql.output.topic.name.prefix") + stmt.name
    return ResolvedQuery(
        statement=stmt,
        text=text,
        query_id=writer.id if writer else new_query_id(kind, stmt.name, context.number),
        existing=existing,
        writer=writer,
        key=key,
        value=value,
        timestamp=options.timestamp(),
        topic=topics.requested(topic, options, context.topics, _like(first, context)),
        registered=schemas.given(topic, (("key", key), ("value", value)), context.registry),
        store=options.store(queryable=stmt.kind == "TABLE"),
        mode=mode,
        start=start_mode.start(options, context),
        lost=partial(lost, stmt.query, context),
    )


def lost(query: ast.Query, context: PlanningContext, *, streams: bool = True) -> dict[str, int]:
    """Return the sources whose topics have lost their first records, with how many these were.

    Without ``streams`` the tables alone. Compaction loses none: a topic that is only compacted
    begins where it always did.
    """
    origins = (origin.source for origin in sources_of(query.source, context.catalog))
    read = [source for source in origins if streams or source.kind == "TABLE"]
    counts = {source.name: context.topics.lost(source.topic) for source in read}
    return {name: count for name, count in counts.items() if count}


def _replaced(
    stmt: ast.CreateSource | ast.CreateAsSelect, inputs: PlanningInputs
) -> DataSource | None:
    """Find the source that the statement replaces.

    Raises: AlreadyExists if it may not.
    """
    existing = inputs.catalog.sources.get(stmt.name)
    allowed = stmt.or_replace and inputs.settings.flag(OR_REPLACE)
    if existing is not None and not allowed:
        raise AlreadyExists(stmt.kind, stmt.name, existing)
    return existing


def _refuse_limit(query: ast.Query, statements: str) -> None:
    """Refuse LIMIT: a query that never ends has no number of rows."""
    if query.limit is not None:
        raise ParseError(f"{PREPARING}{statements} statements don't support LIMIT clause.")


def _writer(existing: DataSource | None, catalog: Catalog) -> PersistentQuery | None:
    """Find the one query that writes the source which is to be replaced.

    What counts is the topic: a query may write there under another source's name.
    """
    if existing is None:
        return None
    writers = catalog.writers_to(existing.topic)
    if len(writers) > 1 or any(not _owns(query, existing) for query in writers):
        ids = ", ".join(query.id for query in writers)
        raise StatementError(
            f"REPLACE for sink {existing.name} is not supported because {_cause(writers)} "
            f"into it: [{ids}]",
            hint=_advice(existing, writers),
        )
    return writers[0] if writers else None


def _owns(query: PersistentQuery, source: DataSource) -> bool:
    return query.sink == source.name and query.kind != "INSERT"


def _cause(writers: Sequence[PersistentQuery]) -> str:
    if len(writers) > 1:
        return "there are multiple queries writing"
    [writer] = writers
    return "an INSERT query writes" if writer.kind == "INSERT" else f"that of {writer.sink} writes"


def _advice(source: DataSource, writers: Sequence[PersistentQuery]) -> str:
    if all(query.sink == source.name for query in writers):
        return (
            "Terminate the INSERT queries first, or replace one of them: "
            f"CREATE OR REPLACE QUERY {writers[0].id} AS INSERT INTO {source.name} SELECT .."
        )
    ids = ", ".join(query.id for query in writers if not _owns(query, source))
    return f"Terminate {ids} first: what counts is who writes topic {source.topic}."


def _like(first: DataSource, context: PlanningContext) -> Topic:
    """Return the topic whose partitions, replicas and retention a result's topic takes over."""
    inherits = context.settings.flag("ksql.create.topic.inherit.source.replicas.enabled")
    read = context.topics.describe(first.topic)
    replicas = first.replicas if inherits else 1
    return Topic(first.topic, first.partitions, replicas, read.configs if read else {})


def declared(stmt: ast.CreateSource, text: str, context: PlanningContext) -> ResolvedSource:
    """Resolve CREATE [OR REPLACE] [SOURCE] STREAM|TABLE name (columns) WITH (..).

    Raises: StatementError, RegistryUnreachable.
    """
    existing = _replaced(stmt, context)
    if stmt.or_replace and (stmt.read_only or (existing is not None and existing.read_only)):
        raise NotReplaceable(stmt.kind, stmt.name)
    options = With(stmt.properties, ddl=True)
    if not options.topic:
        raise BadProperty('Missing required property "KAFKA_TOPIC" which has no default value.')
    whole, registered = schemas.completed(stmt, options, context)
    schema = Schema(columns_of(whole.columns))
    key_format, value_format = configured_formats(
        options, context.settings, stmt.name, has_key=bool(schema.key)
    )
    if any(column.mark == "" for column in stmt.columns):  # an inferred schema is as it is
        value_format = with_configured_wrap(value_format, len(schema.value), context.settings)
    return ResolvedSource(
        statement=stmt,
        text=text,
        whole_text=text if whole is stmt else printer.statement(whole),
        existing=existing,
        schema=schema,
        key_format=key_format,
        value_format=value_format,
        window=options.window(),
        timestamp=options.timestamp(),
        topic=topics.requested(options.topic, options, context.topics),
        registered=registered,
        store=options.store(queryable=stmt.read_only and stmt.kind == "TABLE"),
    )


def altered(stmt: ast.AlterSource, inputs: PlanningInputs) -> DataSource:
    """Find the source of an ALTER STREAM|TABLE.

    Raises: StatementError.
    """
    source = inputs.catalog.sources.get(stmt.name)
    if source is None:
        known = visible(inputs.catalog.sources)
        raise DoesNotExist(f"Source {stmt.name} does not exist", stmt.name, known)
    kind = source.kind.lower()
    if source.kind != stmt.kind:
        raise OtherKind(source, "ALTER", stmt.kind)
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
    return source


def inserted(stmt: ast.InsertInto, text: str, inputs: PlanningInputs) -> ResolvedInsert:
    """Resolve INSERT INTO name SELECT ..

    Raises: StatementError.
    """
    _refuse_limit(stmt.query, "INSERT INTO")
    target = _insert_target(stmt, inputs)
    query_id = _insert_id(stmt, inputs)
    return ResolvedInsert(statement=stmt, text=text, query_id=query_id, target=target)


def _insert_target(stmt: ast.InsertInto, inputs: PlanningInputs) -> DataSource:
    target = inputs.catalog.sources.get(stmt.name)
    if target is None:
        raise DoesNotExist(
            f"{position_text(stmt.target)}Source {quote_always(stmt.name)} does not exist.",
            stmt.name,
            visible(inputs.catalog.sources),
        )
    if target.kind == "TABLE":
        raise StatementError(
            f"INSERT INTO can only be used to insert into a stream. {stmt.name} is a table."
        )
    if target.read_only:
        raise StatementError(f"Cannot insert into read-only stream: {stmt.name}")
    topic_acl.check_write(target.topic, inputs.settings, "insert into")
    if target.schema.headers:
        raise StatementError(f"Cannot insert into {stmt.name} because it has header columns")
    return target


def _insert_id(stmt: ast.InsertInto, inputs: PlanningInputs) -> QueryId:
    for prop in stmt.properties:
        if prop.name.upper() != "QUERY_ID":
            raise StatementError(
                f"Invalid config variable(s) in the WITH clause: {prop.name}", span=prop.span
            )
        if not isinstance(prop.value, ex.StringLit) or not _QUERY_ID.match(prop.value.value):
            given = getattr(prop.value, "value", None)
            raise StatementError(
                f"Query IDs may contain only alphanumeric characters and '_'. Got: '{given}'",
                span=prop.span,
            )
        query_id = prop.value.value.upper()
        if query_id.startswith(_RESERVED_IDS):
            raise StatementError(
                "Query IDs must not start with a reserved query ID prefix "
                f"({', '.join(_RESERVED_IDS)}). Got '{query_id}'.",
                span=prop.span,
            )
        if query_id == _EVERY_QUERY:
            raise StatementError(
                f"Query ID '{query_id}' is reserved: it stands for all queries.", span=prop.span
            )
        check_length(query_id, prop.span)
        if inputs.catalog.query(query_id) is not None:
            raise StatementError(f"Query ID '{query_id}' already exists.", span=prop.span)
        return QueryId(query_id)
    return new_query_id("INSERTQUERY", stmt.name, inputs.number)


LONGEST: Final = 200
"""In bytes; file systems take 255 for a name, and some names are built around an id."""


def new_query_id(kind: str, sink: str, number: int) -> QueryId:
    """Return the id of a query that is to be created.

    Raises: QueryIdTooLong.
    """
    query_id = persistent_query_id(kind, sink, number)
    check_length(query_id)
    return query_id


def check_length(query_id: str, span: Span | None = None) -> None:
    """Refuse an id that is too long for a directory's name.

    Raises: QueryIdTooLong.
    """
    if len(query_id.encode("utf-8", "surrogatepass")) > LONGEST:
        raise QueryIdTooLong(query_id, LONGEST, span=span)
