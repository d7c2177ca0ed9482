"""DESCRIBE and EXPLAIN: one thing in full."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ksql.base.errors import StatementError, UnknownName
from ksql.base.ident import near
from ksql.base.ids import application_id
from ksql.dataflow.starts import plan_of
from ksql.dataflow.topology import topology
from ksql.engine.errors import UpgradeRefused
from ksql.engine.queries import transient_plan
from ksql.functions import describe as functions
from ksql.plan import codec
from ksql.plan.build import build
from ksql.plan.explain import explain as plan_text
from ksql.plan.walk import sources as plan_sources
from ksql.statements import entities as e
from ksql.syntax import ast

if TYPE_CHECKING:
    from ksql.catalog.model import DataSource, PersistentQuery
    from ksql.engine.context import Context
    from ksql.plan.nodes import QueryPlan
    from ksql.statements.services import QueryHealth, Request, RunningPush
    from ksql.types.schema import Column

_EXPLAIN = re.compile(r"EXPLAIN\s+", re.IGNORECASE)


def describe_source(stmt: ast.DescribeSource, request: Request) -> e.Entity:
    """DESCRIBE name [EXTENDED]."""
    source = request.engine.catalog.sources.get(stmt.name)
    if source is None:
        raise UnknownName(
            f"Could not find STREAM/TABLE '{stmt.name}' in the Metastore",
            near(stmt.name, request.engine.catalog.sources),
            span=stmt.span,
        )
    found = description(source, request, extended=stmt.extended)
    return e.SourceDescriptionEntity(statement_text=request.text, source_description=found)


def describe_all(stmt: ast.DescribeAll, request: Request) -> e.Entity:
    """DESCRIBE STREAMS|TABLES [EXTENDED]."""
    found = [s for s in request.engine.catalog.sources.values() if s.kind == stmt.kind]
    return e.SourceDescriptions(
        statement_text=request.text,
        source_descriptions=tuple(
            description(source, request, extended=stmt.extended)
            for source in sorted(found, key=lambda s: s.name)
        ),
    )


def description(source: DataSource, request: Request, *, extended: bool) -> e.SourceDescription:
    """All about a source; the numbers only when ``extended``."""
    catalog = request.engine.catalog
    readers, writers = catalog.readers(source.name), catalog.writers(source.name)
    statistics = _statistics(writers, readers, request) if extended else ()
    return e.SourceDescription(
        name=source.name,
        type=source.kind,
        fields=tuple(map(e.FieldInfo.of, source.schema.columns)),
        key_format=source.key_format.name,
        value_format=source.value_format.name,
        topic=source.topic,
        window_type=source.window.kind if source.window else None,
        read_queries=tuple(query_info(query, request) for query in readers),
        write_queries=tuple(query_info(query, request) for query in writers),
        timestamp=source.timestamp.name if source.timestamp else "",
        statistics=_told(statistics),
        error_stats=_faults((*writers, *readers), request) if extended else "",
        extended=extended,
        partitions=source.partitions if extended else 0,
        replication=source.replicas if extended else 0,
        statement=source.statement,
        query_offset_summaries=_offsets((*writers, *readers), request) if extended else (),
        source_constraints=catalog.derived(source.name),
        cluster_statistics=statistics,
    )


def _statistics(
    writers: tuple[PersistentQuery, ...], readers: tuple[PersistentQuery, ...], request: Request
) -> tuple[e.HostStatistic, ...]:
    """What this server's queries wrote to and read from a source, since the server began."""
    written = [request.services.monitor.health(query.id) for query in writers]
    read = [request.services.monitor.health(query.id) for query in readers]
    named: list[tuple[str, float, list[QueryHealth]]] = []
    if written:
        named += [
            ("messages-per-sec", sum(h.rows_out_per_s for h in written), written),
            ("total-messages", sum(h.rows_out for h in written), written),
        ]
    if read:
        named += [
            ("consumer-messages-per-sec", sum(h.rows_in_per_s for h in read), read),
            ("consumer-total-messages", sum(h.rows_in for h in read), read),
        ]
    host = request.services.host
    return tuple(
        e.HostStatistic(host, name, round(value, 2), max(h.last_ms for h in healths))
        for name, value, healths in named
    )


def _told(statistics: tuple[e.HostStatistic, ...]) -> str:
    """Statistics as one text; when anything last came, if ever."""
    lines = [f"{each.name}: {each.value:g}" for each in statistics]
    last = max((each.timestamp for each in statistics), default=0)
    if last:
        lines.append(f"last-message: {_moment(last)}")
    return "\n".join(lines)


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _faults(queries: tuple[PersistentQuery, ...], request: Request) -> str:
    rows = []
    monitor = request.services.monitor
    for query in queries:
        rows.append(f"{query.id}: records-skipped: {monitor.skipped(query.id)}")
        health = monitor.health(query.id)
        for when, text in (*health.errors, *health.warnings):
            rows.append(f"  {_moment(when)} {text}")
    return "\n".join(rows)


def _offsets(
    queries: tuple[PersistentQuery, ...], request: Request
) -> tuple[e.QueryOffsetSummary, ...]:
    monitor = request.services.monitor
    summaries = []
    for query in queries:
        committed = monitor.committed(query.id)
        ends = monitor.ends(sorted(committed))
        topics = []
        for topic, parts in sorted(committed.items()):
            rows = tuple(
                e.PartitionOffset(p, *ends.get((topic, p), (0, 0)), offset)
                for p, offset in sorted(parts.items())
            )
            topics.append(e.TopicOffsets(topic, rows))
        summaries.append(e.QueryOffsetSummary(_group(query, request), tuple(topics)))
    return tuple(summaries)


def _group(query: PersistentQuery, request: Request) -> str:
    known = request.services.monitor.application(query.id)
    return known or application_id(request.settings.text("ksql.service.id"), query.id)


def query_info(query: PersistentQuery, request: Request) -> e.QueryInfo:
    """One line about a query."""
    sink = request.engine.catalog.sources.get(query.sink)
    health = request.services.monitor.health(query.id)
    state = health.state
    return e.QueryInfo(
        query.statement,
        (query.sink,) if query.sink else (),
        (sink.topic,) if sink else (),
        query.id,
        {state: 1},
        _query_type(query),
        state,
        tuple(text for _, text in health.warnings),
    )


def _query_type(query: PersistentQuery) -> e.QueryType:
    return "CREATE_SOURCE" if query.kind == "CST" else "PERSISTENT"


def push_info(push: RunningPush) -> e.QueryInfo:
    """One line about a push query."""
    state = "RUNNING"
    return e.QueryInfo(push.text, (), (), push.plan.query_id, {state: 1}, "PUSH", state)


def push_description(push: RunningPush, request: Request) -> e.QueryDescription:
    """All about a push query."""
    return replace(
        _of_plan(push.plan, push.text, ""),
        query_type="PUSH",
        ksql_host_query_status={request.services.host: "RUNNING"},
        state="RUNNING",
    )


def _push(query_id: str, request: Request) -> RunningPush | None:
    wanted = query_id.upper()
    pushes = request.services.pushes()
    return next((each for each in pushes if each.plan.query_id.upper() == wanted), None)


def query_description(query: PersistentQuery, request: Request) -> e.QueryDescription:
    """All about a running query."""
    health = request.services.monitor.health(query.id)
    described = _of_plan(plan_of(query), query.statement, query.sink)
    told = (*health.errors, *health.warnings)
    errors = tuple(e.QueryErrorInfo(when, text, "UNKNOWN") for when, text in told)
    spark = request.services.monitor.spark_plan(query.id)
    return replace(
        described,
        topology=f"{described.topology}\n\n{spark}".rstrip(),
        overridden_properties=dict(query.properties),
        ksql_host_query_status={request.services.host: health.state},
        query_errors=errors,
        tasks_metadata=_tasks(query, request),
        consumer_group_id=_group(query, request),
        query_type=_query_type(query),
        state=health.state,
    )


def _tasks(query: PersistentQuery, request: Request) -> tuple[e.TaskMetadata, ...]:
    monitor = request.services.monitor
    committed = monitor.committed(query.id)
    ends = monitor.ends(sorted(committed))
    rows = tuple(
        e.TaskTopicOffset(e.TopicPartition(topic, p), ends.get((topic, p), (0, 0))[1], offset)
        for topic, parts in sorted(committed.items())
        for p, offset in sorted(parts.items())
    )
    return (e.TaskMetadata("0_0", rows),) if rows else ()


def _of_plan(plan: QueryPlan, text: str, sink: str) -> e.QueryDescription:
    columns: tuple[Column, ...] = plan.sink.value
    if plan.sink.topic is not None:
        columns = (*plan.sink.key, *columns)
    return e.QueryDescription(
        id=plan.query_id,
        statement_text=text,
        fields=tuple(e.FieldInfo.of(column) for column in columns),
        sources=tuple(source.name for source in plan_sources(plan.sink)),
        sinks=(sink,) if sink else (),
        topology=topology(plan),
        execution_plan=plan_text(plan.sink),
        window_type=plan.sink.window.kind if plan.sink.window else None,
    )


def explain(stmt: ast.Explain, request: Request) -> e.Entity:
    """EXPLAIN of a query's id, of a query, or of a CREATE .. AS SELECT (a dry run)."""
    if isinstance(stmt.target, str):
        query = request.engine.catalog.query(stmt.target)
        push = _push(stmt.target, request) if query is None else None
        if push is not None:
            found = push_description(push, request)
            return e.QueryDescriptionEntity(statement_text=request.text, query_description=found)
        if query is None:
            close = near(stmt.target, request.engine.catalog.queries)
            raise UnknownName(
                f"Query with id:{stmt.target} does not exist, "
                "use SHOW QUERIES to view the full set of queries.",
                close,
                span=stmt.span,
            )
        found = query_description(query, request)
    else:
        found = _dry(stmt.target, request)
    return e.QueryDescriptionEntity(statement_text=request.text, query_description=found)


def _dry(target: ast.Statement, request: Request) -> e.QueryDescription:
    context = request.engine.context(request.settings, 0)
    text = _EXPLAIN.sub("", request.text, count=1)
    match target:
        case ast.Query():
            plan = _transient(target, context)
            return replace(_of_plan(plan, text, ""), query_type="PUSH")
        case ast.CreateAsSelect() | ast.InsertInto():
            return _dry_create(target, text, request, context)
        case _:
            raise StatementError("The provided statement does not run a ksql query")


def _transient(query: ast.Query, context: Context) -> QueryPlan:
    built = build(query, context.catalog, context.functions, persistent=False)
    return transient_plan("EXPLAIN", built, context)


def _dry_create(
    target: ast.CreateAsSelect | ast.InsertInto, text: str, request: Request, context: Context
) -> e.QueryDescription:
    try:
        prepared = request.engine.dry_run(target, text, request.settings)
    except UpgradeRefused as refused:
        if refused.verdict is None:
            raise
        running = context.catalog.writers(target.name)[0]
        return replace(
            _of_plan(plan_of(running), text, target.name),
            upgrade=e.UpgradeReport.of(refused.verdict, running.id),
        )
    if prepared.warning is not None:
        raise StatementError(prepared.warning)
    plan = codec.loads(prepared.plans["new"])
    report = e.UpgradeReport.of(prepared.verdict, prepared.query_id) if prepared.verdict else None
    return replace(_of_plan(plan, text, target.name), upgrade=report)


def describe_function(stmt: ast.DescribeFunction, request: Request) -> e.Entity:
    """DESCRIBE FUNCTION name."""
    function = request.engine.functions.get(stmt.name, stmt.span)
    variations = tuple(
        e.FunctionInfo(
            tuple(e.ArgumentInfo(a.name, a.type, "", a.variadic) for a in variation.arguments),
            variation.returns,
            variation.description,
        )
        for variation in functions.describe(function)
    )
    return e.DescribeFunction(
        statement_text=request.text,
        name=function.name,
        type=function.kind,
        functions=variations,
        description=function.description,
        author=function.author,
        version=function.version,
        path=function.path,
    )
