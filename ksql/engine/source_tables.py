"""SOURCE tables: a query of their own keeps the rows, so that pull queries can read them.

The query reads the table's topic as every other query does, so records that do not decode, or that
have no time, are skipped and logged, and the table keeps the rows it has. It writes the rows to a
topic that lists hide, from which they are served like those of any other table.
Source: docs/sql/sources.md#create-stream-create-table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis.bound import Named
from ksql.base.ids import QueryId, application_id, persistent_query_id
from ksql.catalog.model import Materialization, PersistentQuery
from ksql.catalog.topic import Topic
from ksql.engine.changes import PutQuery, PutSource
from ksql.engine.ddl import create_source
from ksql.engine.queries import query_plan
from ksql.plan import codec
from ksql.plan.nodes import Select, Sink, Source
from ksql.types.format import Format, capabilities

if TYPE_CHECKING:
    from ksql.catalog.model import DataSource
    from ksql.engine.context import Context, Prepared
    from ksql.syntax import ast
    from ksql.types.schema import Column


def create_read_only(stmt: ast.CreateSource, text: str, context: Context) -> Prepared:
    """CREATE SOURCE STREAM|TABLE .., a table together with the query that keeps its rows.

    Raises: StatementError.
    """
    prepared = create_source(stmt, text, context)
    match prepared.changes:
        case (PutSource(source),) if stmt.kind == "TABLE":
            return _with_query(prepared, source, text, context)
        case _:
            return prepared


def _with_query(prepared: Prepared, source: DataSource, text: str, context: Context) -> Prepared:
    query_id = persistent_query_id("CST", source.name, context.offset)
    kept = Materialization(
        query_id,
        _topic(query_id, source, context),
        _plain(source.key_format),
        _plain(source.value_format),
    )
    source = replace(source, materialization=kept)
    whole = replace(
        context, settings=context.settings.with_overrides({"auto.offset.reset": "earliest"})
    )
    plan = query_plan(query_id, _sink(source, kept), (source,), whole)
    query = PersistentQuery(
        query_id,
        "CST",
        "",
        (source.name,),
        text,
        codec.dumps(plan),
        context.offset,
        tuple(sorted(context.settings.overrides.items())),
        started_at_offset=context.offset,
    )
    policy = "compact" if source.window is None else "compact,delete"
    topic = Topic(kept.topic, source.partitions, source.replicas, {"cleanup.policy": policy})
    return replace(
        prepared,
        changes=(PutSource(source), PutQuery(query)),
        message=f"Created query with ID {query_id}",
        query_id=query_id,
        new_topics=(*prepared.new_topics, topic),
        plans={"new": query.plan},
    )


def _topic(query_id: QueryId, source: DataSource, context: Context) -> str:
    owner = application_id(context.settings.text("ksql.service.id"), query_id)
    return f"{owner}-{source.topic}-changelog"


def _plain(format_: Format) -> Format:
    """The format of the rows that are kept: that of the table, unless it needs a registry."""
    return Format("JSON") if capabilities(format_.name).infers else format_


def _sink(source: DataSource, kept: Materialization) -> Sink:
    key, value = source.schema.key, source.schema.value
    # Of windowed keys each record tells its window: nothing need be remembered to delete one.
    kind: ast.SourceKind = "TABLE" if source.window is None else "STREAM"
    read = Source(
        source.name,
        kind,
        source.topic,
        "",
        source.schema.columns,
        source.key_format,
        source.value_format,
        source.timestamp,
        source.window,
    )
    return Sink(
        Select(read, _same(key), _same(value)),
        source.name,
        "TABLE",
        kept.topic,
        key,
        value,
        kept.key_format,
        kept.value_format,
        None,
        source.window,
    )


def _same(columns: tuple[Column, ...]) -> tuple[Named, ...]:
    return tuple(Named(column.name, b.Column(column.name, column.type)) for column in columns)
