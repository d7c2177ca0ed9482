"""Step 2 of a declaration, *plan*: from the resolved statement to the source.

A SOURCE table has a query of its own, so that pull queries can read it. The query reads the table's
topic as every other query does. Records that do not decode, or that have no time, are skipped and
logged, and the table keeps its rows. It writes the rows to a topic that lists hide. Source:
docs/sql/sources.md#create-stream-create-table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.control.planning import topics
from ksql.control.planning.columns import check_columns, check_timestamp, columns_of
from ksql.control.planning.plan_queries import query_plan
from ksql.control.planning.resolve import ResolvedSource, new_query_id
from ksql.core import QueryId, StatementError, application_id, quote_always
from ksql.core.types import Format, Schema, capabilities
from ksql.formats import validate
from ksql.sql.binder import Named
from ksql.sql.binder import bound as b
from ksql.sql.catalog import HEADERS_FORMAT, DataSource, Materialization, Topic, kept_schema
from ksql.sql.plan import QueryPlan, Select, Sink, Source

if TYPE_CHECKING:
    from ksql.control.engine.context import PlanningInputs
    from ksql.core.types import Column
    from ksql.sql.syntax import ast


@dataclass(frozen=True, slots=True)
class KeepingQuery:
    """The query that keeps the rows of a SOURCE table, and the topic that it writes."""

    plan: QueryPlan
    topic: Topic


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A declared source, its topic and, for a SOURCE table, the query that keeps its rows."""

    source: DataSource
    settled: topics.SettledTopic
    keeper: KeepingQuery | None = None


def declared(resolved: ResolvedSource, inputs: PlanningInputs) -> PlannedSource:
    """Plan a declared source.

    Raises: StatementError.
    """
    stmt, schema = resolved.statement, resolved.schema
    check_columns(stmt, schema, by_id=resolved.value_format.schema_id is not None)
    validate(resolved.key_format, schema.key, "key")
    validate(resolved.value_format, schema.value, "value")
    if resolved.window is not None and not schema.key:
        raise StatementError("Windowed sources require a key column.")
    timestamp = resolved.timestamp
    if timestamp is not None:
        check_timestamp(timestamp.name, timestamp.pattern, schema.columns)
    windowed = resolved.window is not None
    settled = topics.settled(resolved.topic, stmt.kind, inputs.settings, windowed=windowed)
    source = DataSource(
        name=stmt.name,
        kind=stmt.kind,
        topic=settled.topic.name,
        schema=schema,
        key_format=resolved.key_format,
        value_format=resolved.value_format,
        partitions=settled.topic.partitions,
        replicas=settled.topic.replicas,
        timestamp=timestamp,
        window=resolved.window,
        read_only=stmt.read_only,
        statement=resolved.whole_text,
    )
    if stmt.read_only and stmt.kind == "TABLE":
        return _kept(source, settled, inputs)
    return PlannedSource(source, settled)


def grown(source: DataSource, stmt: ast.AlterSource) -> DataSource:
    """Add the columns of an ALTER .. ADD COLUMN.

    Raises: StatementError.
    """
    known = {column.name for column in source.schema.columns}
    for column in stmt.columns:
        if column.name in known:
            raise StatementError(
                f"Cannot add column {quote_always(column.name)} to schema. "
                "A column with the same name already exists."
            )
        known.add(column.name)
    schema, added = source.schema, columns_of(stmt.columns)
    wider = Schema((*schema.key, *schema.value, *added, *schema.headers))
    validate(source.value_format, wider.value, "value")
    return replace(source, schema=wider)


def _kept(
    source: DataSource, settled: topics.SettledTopic, inputs: PlanningInputs
) -> PlannedSource:
    query_id = new_query_id("CST", source.name, inputs.number)
    kept = Materialization(
        query_id,
        _topic(query_id, source, inputs),
        _plain(source.key_format),
        HEADERS_FORMAT if source.schema.headers else _plain(source.value_format),
    )
    source = replace(source, materialization=kept)
    settings = inputs.settings.with_overrides({"auto.offset.reset": "earliest"})
    whole = replace(inputs, settings=settings)
    plan = query_plan(query_id, _sink(source, kept), (source,), whole, source.partitions)
    policy = "compact" if source.window is None else "compact,delete"
    topic = Topic(kept.topic, source.partitions, source.replicas, {"cleanup.policy": policy})
    return PlannedSource(source, settled, KeepingQuery(plan, topic))


def _topic(query_id: QueryId, source: DataSource, inputs: PlanningInputs) -> str:
    owner = application_id(inputs.settings.text("ksql.service.id"), query_id)
    return f"{owner}-{source.topic}-changelog"


def _plain(format_: Format) -> Format:
    """Return the format of the kept rows: that of the table, unless it needs a registry."""
    return Format("JSON") if capabilities(format_.name).infers else format_


def _sink(source: DataSource, kept: Materialization) -> Sink:
    schema = kept_schema(source.schema, kept.value_format)
    key, value = schema.key, schema.value
    # Each record of windowed keys has its window: nothing need be remembered to delete one.
    kind: ast.SourceKind = "TABLE" if source.window is None else "STREAM"
    read = Source(
        name=source.name,
        kind=kind,
        topic=source.topic,
        prefix="",
        columns=source.schema.columns,
        key_format=source.key_format,
        value_format=source.value_format,
        timestamp=source.timestamp,
        window=source.window,
    )
    return Sink(
        source=Select(read, _same(key), _same(value)),
        name=source.name,
        kind="TABLE",
        topic=kept.topic,
        key=key,
        value=value,
        key_format=kept.key_format,
        value_format=kept.value_format,
        timestamp=None,
        window=source.window,
    )


def _same(columns: tuple[Column, ...]) -> tuple[Named, ...]:
    return tuple(Named(column.name, b.Column(column.name, column.type)) for column in columns)
