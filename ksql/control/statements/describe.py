"""DESCRIBE of a source, a function, all streams or tables, and of queries for EXPLAIN."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ksql.control.statements import entities as e
from ksql.core import UnknownName, application_id, hidden_if_secret, near
from ksql.exec.dataflow import changes_sent, plan_of, time_counted
from ksql.exec.dataflow.topology import stages, topology
from ksql.functions import describe
from ksql.sql.plan import QueryPlan
from ksql.sql.plan import sources as plan_sources
from ksql.sql.plan.explain import explain as plan_text
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.control.statements.services import (
        Handlers,
        OpenPush,
        QueryHealth,
        Request,
        StageState,
    )
    from ksql.core.types import Column
    from ksql.sql.catalog import DataSource, PersistentQuery

SPARK_PLAN = "ksql.explain.spark.plan"


def describe_source(stmt: ast.DescribeSource, request: Request) -> e.Entity:
    """Answer DESCRIBE name [EXTENDED]."""
    source = request.engine.catalog.sources.get(stmt.name)
    if source is None:
        raise UnknownName(
            f"Could not find STREAM/TABLE '{stmt.name}' in the Metastore",
            near(stmt.name, [source.name for source in visible_sources(request)]),
            span=stmt.span,
        )
    described = description(source, request, extended=stmt.extended)
    return e.SourceDescriptionEntity(statement_text=request.text, source_description=described)


def describe_all(stmt: ast.DescribeAll, request: Request) -> e.Entity:
    """Answer DESCRIBE STREAMS|TABLES [EXTENDED]."""
    sources = [s for s in visible_sources(request) if s.kind == stmt.kind]
    return e.SourceDescriptions(
        statement_text=request.text,
        source_descriptions=tuple(
            description(source, request, extended=stmt.extended)
            for source in sorted(sources, key=lambda s: s.name)
        ),
    )


def visible_sources(request: Request) -> list[DataSource]:
    """Return the streams and tables that the user has a right on."""
    sees = request.requester.sees
    return [s for s in request.engine.catalog.sources.values() if sees("source", s.name)]


def visible(queries: Iterable[PersistentQuery], request: Request) -> list[PersistentQuery]:
    """Return those of some queries that the user may see."""
    return [query for query in queries if request.requester.sees_query(query)]


def visible_pushes(request: Request) -> list[OpenPush]:
    """Return the push queries that the user may see."""
    sees = request.requester.sees_push
    return [push for push in request.services.pushes() if sees(push.user)]


def description(source: DataSource, request: Request, *, extended: bool) -> e.SourceDescription:
    """Return all about a source; the numbers only when ``extended``."""
    catalog = request.engine.catalog
    readers = tuple(visible(catalog.readers(source.name), request))
    writers = tuple(visible(catalog.writers(source.name), request))
    statistics = _statistics(writers, readers, request) if extended else ()
    pulls = _pulls(source, request) if extended else ()
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
        statistics=_statistics_text(
            statistics,
            (
                *_summed(pulls),
                *_sending(writers),
                *_unknown(writers, request),
                *_kept(source, request),
            )
            if extended
            else (),
        ),
        error_stats=_faults((*writers, *readers), request) if extended else "",
        extended=extended,
        partitions=source.partitions if extended else 0,
        replication=source.replicas if extended else 0,
        statement=_statement(source, request),
        query_offset_summaries=_offsets((*writers, *readers), request) if extended else (),
        source_constraints=tuple(
            name for name in catalog.derived(source.name) if request.requester.sees("source", name)
        ),
        cluster_statistics=(*statistics, *pulls),
    )


def _statement(source: DataSource, request: Request) -> str:
    """Return what has made a source; nothing if that names sources the user does not see."""
    catalog = request.engine.catalog
    return (
        source.statement
        if request.requester.sees_text(source.statement, source.name, catalog)
        else ""
    )


def _statistics(
    writers: tuple[PersistentQuery, ...], readers: tuple[PersistentQuery, ...], request: Request
) -> tuple[e.HostStatistic, ...]:
    """Count the records that queries wrote to and read from a source, where they run."""
    written = [request.services.monitor.health(query.id) for query in writers]
    read = [request.services.monitor.health(query.id) for query in readers]
    runner = next((health.host for health in (*written, *read) if health.host), "")
    if runner and not any(health.known for health in (*written, *read)):
        return ()  # they are counted there, and it did not answer
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
    for query, health in zip(writers, written, strict=True):
        for name, state in _states(query, health):
            named += [
                (f"state-rows of {query.id} {name}", state.rows, [health]),
                (f"state-bytes of {query.id} {name}", state.size_bytes, [health]),
            ]
    host = runner or request.services.host
    return tuple(
        e.HostStatistic(host, name, round(value, 2), max(h.last_ms for h in healths))
        for name, value, healths in named
    )


def _pulls(source: DataSource, request: Request) -> tuple[e.HostStatistic, ...]:
    """Count the pull queries of a source, at each server that has answered any."""
    return tuple(
        e.HostStatistic(host, f"pull-query-requests-{name}", value, pulls.last_ms)
        for host, pulls in sorted(request.services.pulls(source.name).items())
        for name, value in (
            ("total", pulls.total),
            ("error-total", pulls.failed),
            ("local", pulls.local),
            ("remote", pulls.remote),
        )
    )


def _summed(statistics: tuple[e.HostStatistic, ...]) -> tuple[str, ...]:
    """Return each statistic's sum over all servers."""
    sums: dict[str, float] = {}
    for statistic in statistics:
        sums[statistic.name] = sums.get(statistic.name, 0) + statistic.value
    return tuple(f"{name}: {_plain(value)}" for name, value in sums.items())


def _sending(writers: tuple[PersistentQuery, ...]) -> tuple[str, ...]:
    """Return how each query counts stream time and sends a table's changes to an aggregate."""
    lines: list[str] = []
    for query in writers:
        plan = plan_of(query)
        for name, text in (("stream time", time_counted(plan)), ("changes", changes_sent(plan))):
            lines += [f"{query.id}: {name}: {text}"] if text else []
    return tuple(lines)


def _kept(source: DataSource, request: Request) -> tuple[str, ...]:
    """Return how a table's rows are kept for pull queries."""
    table = source.queryable()
    if table is None:
        return ()
    text = request.services.monitor.health(str(table.created_by)).store
    return (f"{table.created_by}: store: {text}",) if text else ()


def _states(query: PersistentQuery, health: QueryHealth) -> list[tuple[str, StageState]]:
    """Return what the stages of a query keep, under their names."""
    if not health.stages:
        return []
    names = stages(plan_of(query))
    return [(f"stage {stage.stage} {names[stage.stage]}", stage) for stage in health.stages]


def _unknown(writers: tuple[PersistentQuery, ...], request: Request) -> tuple[str, ...]:
    """Return, for each stage whose state is known in part, in how many of its buckets it is."""
    lines: list[str] = []
    for query in writers:
        plan, health = plan_of(query), request.services.monitor.health(query.id)
        known = {stage.stage: stage.buckets for stage in health.stages}
        lines += [
            f"{query.id}: state of stage {number} {name}: known in {known.get(number, 0)} of "
            f"{plan.buckets} buckets, in each from its first record since the server began"
            for number, name in enumerate(stages(plan) if health.known else ())
            if known.get(number, 0) < plan.buckets
        ]
    return tuple(lines)


def _statistics_text(statistics: tuple[e.HostStatistic, ...], more: tuple[str, ...]) -> str:
    """Return statistics as one text, with more lines; when anything last came, if ever."""
    lines = [*(f"{statistic.name}: {_plain(statistic.value)}" for statistic in statistics), *more]
    last = max((statistic.timestamp for statistic in statistics), default=0)
    if last:
        lines.append(f"last-message: {_moment(last)}")
    return "\n".join(lines)


def _plain(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


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
    """Return one line about a query."""
    sink = request.engine.catalog.sources.get(query.sink)
    health = request.services.monitor.health(query.id)
    state = health.state
    return e.QueryInfo(
        query_string=query.statement,
        sinks=(query.sink,) if query.sink else (),
        sink_kafka_topics=(sink.topic,) if sink else (),
        id=query.id,
        status_count={state: 1},
        query_type=_query_type(query),
        state=state,
        warnings=tuple(text for _, text in health.warnings),
    )


def _query_type(query: PersistentQuery) -> e.QueryType:
    return "CREATE_SOURCE" if query.kind == "CST" else "PERSISTENT"


def push_info(push: OpenPush) -> e.QueryInfo:
    """Return one line about a push query."""
    state = "RUNNING"
    return e.QueryInfo(
        query_string=push.text,
        sinks=(),
        sink_kafka_topics=(),
        id=push.plan.query_id,
        status_count={state: 1},
        query_type="PUSH",
        state=state,
    )


def push_description(push: OpenPush, request: Request) -> e.QueryDescription:
    """Return all about a push query."""
    return replace(
        of_plan(push.plan, push.text, "", request),
        query_type="PUSH",
        ksql_host_query_status={push.host or request.services.host: "RUNNING"},
        state="RUNNING",
    )


def push_of(query_id: str, request: Request) -> OpenPush | None:
    """Find the push query of that id, in any case of its letters."""
    upper = query_id.upper()
    pushes = visible_pushes(request)
    return next((push for push in pushes if push.plan.query_id.upper() == upper), None)


def query_description(query: PersistentQuery, request: Request) -> e.QueryDescription:
    """Return all about a running query, with Spark's plan if the request asks for it."""
    health = request.services.monitor.health(query.id)
    plan = plan_of(query)
    described = of_plan(plan, query.statement, query.sink, request)
    messages = (*health.errors, *health.warnings)
    errors = tuple(e.QueryErrorInfo(when, text, "UNKNOWN") for when, text in messages)
    with_plan = request.settings.flag(SPARK_PLAN)
    spark = request.services.monitor.spark_plan(query.id) if with_plan else ""
    kept = "".join(
        f"\nstate of {name}: {state.rows} rows, {state.size_bytes} bytes in {state.buckets} of "
        f"{plan.buckets} buckets"
        for name, state in _states(query, health)
    )
    return replace(
        described,
        topology=f"{described.topology}{kept}\n\n{spark}".rstrip(),
        overridden_properties={
            name: hidden_if_secret(name, value) for name, value in query.properties
        },
        ksql_host_query_status={health.host or request.services.host: health.state},
        query_errors=errors,
        tasks_metadata=_tasks(query, request),
        consumer_group_id=_group(query, request),
        query_type=_query_type(query),
        state=health.state,
        plan_offset=query.offset,
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


def of_plan(plan: QueryPlan, text: str, sink: str, request: Request) -> e.QueryDescription:
    """Describe a query by its plan alone, whether it runs or not."""
    columns: tuple[Column, ...] = plan.sink.value
    if plan.sink.topic is not None:
        columns = (*plan.sink.key, *columns)
    return e.QueryDescription(
        id=plan.query_id,
        statement_text=text,
        fields=tuple(e.FieldInfo.of(column) for column in columns),
        sources=tuple(source.name for source in plan_sources(plan.sink)),
        sinks=(sink,) if sink else (),
        topology=topology(plan, request.engine.functions),
        execution_plan=plan_text(plan.sink),
        window_type=plan.sink.window.kind if plan.sink.window else None,
    )


def describe_function(stmt: ast.DescribeFunction, request: Request) -> e.Entity:
    """Answer DESCRIBE FUNCTION name."""
    function = request.engine.functions.get(stmt.name, stmt.span)
    variations = tuple(
        e.FunctionInfo(
            tuple(e.ArgumentInfo(a.name, a.type, "", a.variadic) for a in variation.arguments),
            variation.returns,
            variation.description,
        )
        for variation in describe(function)
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


HANDLERS: Handlers = {
    ast.DescribeSource: describe_source,
    ast.DescribeAll: describe_all,
    ast.DescribeFunction: describe_function,
}
