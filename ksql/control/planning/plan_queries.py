"""Step 2, *plan*: makes the query's plan, checks co-partitioning and cycles, fits INSERT INTO.

It is pure: nothing is asked for and nothing is changed.

The sides of a join must have as many partitions, where they meet under one key. A query that reads
its own result, directly or through other queries, is refused. The columns of INSERT INTO are
converted to those of the stream.

Source: docs/sql/joins.md.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.control.engine.errors import ReadsItself
from ksql.control.planning import schemas, topics
from ksql.control.planning.columns import check_timestamp
from ksql.control.planning.properties import with_configured_wrap
from ksql.control.planning.row_ttl import row_ttl
from ksql.core import StatementError, quote_always
from ksql.core.types import Column, Decimal, Format, Role, Schema, SqlType, can_coerce, capabilities
from ksql.exec.dataflow import topic_acl
from ksql.exec.dataflow.partitioning.placement import placement
from ksql.exec.expressions import strict
from ksql.formats import validate
from ksql.sql.binder import Named, check_overlap, keys, type_of
from ksql.sql.binder import bound as b
from ksql.sql.catalog import Catalog, DataSource, Topic
from ksql.sql.plan import (
    Aggregate,
    Built,
    ForeignKeyJoin,
    Join,
    Plan,
    QueryPlan,
    Select,
    Sink,
    follows_time,
    sources,
    with_row_ttl,
    with_windows_placed,
)
from ksql.sql.plan.build import build
from ksql.sql.plan.walk import nodes
from ksql.sql.upgrade import LISTED, code_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ksql.control.engine.context import PlanningInputs
    from ksql.control.planning.resolve import ResolvedInsert, ResolvedQuery
    from ksql.core.types import KeyWindow
    from ksql.sql.syntax import ast


@dataclass(frozen=True, slots=True)
class PlannedInsert:
    """The plan of an INSERT INTO, and the names of the sources that it reads."""

    plan: QueryPlan
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """The plan of a CREATE .. AS SELECT, its result as a source, and that one's topic."""

    plan: QueryPlan
    source: DataSource
    settled: topics.SettledTopic


def created_as(resolved: ResolvedQuery, inputs: PlanningInputs) -> PlannedQuery:
    """Plan a CREATE .. AS SELECT.

    Raises: StatementError for everything that the language refuses; NotSupportedYet.
    """
    stmt = resolved.statement
    built = _built(resolved, inputs)
    if built.kind != stmt.kind:
        raise keys.wrong_kind(built.kind)
    if ttl_ms := row_ttl(resolved.topic.retention_ms, built):
        built = replace(built, plan=with_row_ttl(built.plan, ttl_ms))
        resolved = replace(resolved, topic=replace(resolved.topic, retention_ms=None))
    key_format, value_format = _formats(resolved, built, inputs)
    schemas.check_id(key_format, "key")
    schemas.check_id(value_format, "value")
    _check_states(built)
    key, value = columns(built.key, Role.KEY), columns(built.value, Role.VALUE)
    validate(key_format, key, "key")
    validate(value_format, value, "value")
    if resolved.timestamp is not None:
        check_timestamp(resolved.timestamp.name, resolved.timestamp.pattern, (*key, *value))
    settled = _topic(resolved, built, inputs)
    sink = Sink(
        source=built.plan,
        name=stmt.name,
        kind=stmt.kind,
        topic=settled.topic.name,
        key=key,
        value=value,
        key_format=key_format,
        value_format=value_format,
        timestamp=resolved.timestamp,
        window=built.window,
    )
    check_loop(stmt.name, settled.topic.name, _topics(built), inputs.catalog)
    sources, partitions = _sources(built), settled.topic.partitions
    plan = query_plan(resolved.query_id, sink, sources, inputs, partitions)
    return PlannedQuery(plan, _result(resolved, plan, settled.topic, _names(built)), settled)


def inserted(resolved: ResolvedInsert, inputs: PlanningInputs) -> PlannedInsert:
    """Plan an INSERT INTO .. SELECT.

    Raises: StatementError, NotSupportedYet.
    """
    stmt, target = resolved.statement, resolved.target
    built = build(stmt.query, inputs.catalog, inputs.functions, sink=stmt.name)
    _check_overlap(stmt.query, inputs)
    check_result(built, target)
    built = fitted(built, target)
    check_loop(target.name, target.topic, _topics(built), inputs.catalog)
    sink = Sink(
        source=built.plan,
        name=target.name,
        kind="STREAM",
        topic=target.topic,
        key=target.schema.key,
        value=target.schema.value,
        key_format=target.key_format,
        value_format=target.value_format,
        timestamp=None,
        window=target.window,
    )
    plan = query_plan(resolved.query_id, sink, _sources(built), inputs, target.partitions)
    return PlannedInsert(plan, _names(built))


def transient_plan(query_id: str, query: ast.Query, inputs: PlanningInputs) -> QueryPlan:
    """Plan a push query: its rows go to the client, not to a topic.

    All columns are in the value; those of the key are there twice, for the deletions of a table.
    """
    built = build(query, inputs.catalog, inputs.functions, persistent=False)
    _check_overlap(query, inputs)
    sink = Sink(
        source=built.plan,
        name=query_id,
        kind=built.kind,
        topic=None,
        key=columns(built.key, Role.KEY),
        value=columns(built.value, Role.VALUE),
        key_format=Format("NONE"),
        value_format=Format("JSON"),
        timestamp=None,
        window=None,
    )
    return query_plan(query_id, sink, _sources(built), inputs)


def query_plan(
    query_id: str,
    sink: Sink,
    sources: Sequence[DataSource],
    inputs: PlanningInputs,
    partitions: int = 0,
) -> QueryPlan:
    """Add the settings that change results to the plan below a sink.

    ``partitions`` are those of its topic; 0 if it has none.

    Raises: PartitionsDiffer; INTERNAL_TOPIC for a source that may not be read.
    """
    check_partitions(sink, {source.name: source.partitions for source in sources})
    sink = with_windows_placed(sink, inputs.catalog.scattered)
    settings = inputs.settings
    buckets = settings.number("ksql.query.shuffle.partitions")
    most = max(source.partitions for source in sources)
    for source in sources:
        topic_acl.check_read(source.topic)
    lanes = most if follows_time(sink) else 0
    return QueryPlan(
        query_id=query_id,
        sink=sink,
        buckets=buckets or min(most, inputs.parallelism),
        every_change=settings.number("cache.max.bytes.buffering") == 0,
        settings=tuple((name, settings.text(name)) for name in LISTED)
        + tuple(sorted(settings.functions())),
        lanes=lanes,
        partitions=partitions,
        placement=placement(sink, most, partitions, lanes) if partitions else "",
        code=code_of(sink, inputs.functions),
    )


def _built(resolved: ResolvedQuery, inputs: PlanningInputs) -> Built:
    """Plan the query; a TIMESTAMP column that does not exist comes before a missing key."""
    stmt = resolved.statement
    try:
        built = build(
            stmt.query,
            inputs.catalog,
            inputs.functions,
            sink=stmt.name,
            keys_as_written=inputs.settings.flag("ksql.new.query.planner.enabled"),
        )
        _check_overlap(stmt.query, inputs)
        validate(Format("JSON"), built.exchanged, "key")  # no format may have these types as a key
        return built
    except keys.KeyMissing as error:
        timestamp = resolved.timestamp
        if timestamp is not None:
            sink_columns = columns(error.projected, Role.VALUE)
            check_timestamp(timestamp.name, timestamp.pattern, sink_columns)
        raise


def _check_overlap(query: ast.Query, inputs: PlanningInputs) -> None:
    check_overlap(query.window, inputs.settings.number("ksql.query.windows.per.record.max"))


def _formats(
    resolved: ResolvedQuery, built: Built, inputs: PlanningInputs
) -> tuple[Format, Format]:
    """Fit the formats to the result: one without key columns has no key format."""
    if built.key:
        key = resolved.key.format()
    else:
        clause = resolved.key.clause
        if clause.own and not (clause.name and capabilities(clause.name).empty):
            raise StatementError("Key format specified for stream without key columns.")
        key = Format("NONE")
    value = resolved.value.format()
    return key, with_configured_wrap(value, len(built.value), inputs.settings)


def _check_states(built: Built) -> None:
    """Refuse states that do not fit the source's value format, as in Kafka Streams' topics.

    Raises: StatementError.
    """
    format_ = replace(built.sources[0].source.value_format, wrap=None)
    for state in built.states:
        try:
            validate(format_, (Column("STATE", state),), "value")
        except StatementError as error:
            raise StatementError(
                "One of the functions used in the statement has an intermediate type "
                "that the value format can not handle. "
                "Please remove the function or change the format.",
                detail=error.message,
            ) from error


def _topic(resolved: ResolvedQuery, built: Built, inputs: PlanningInputs) -> topics.SettledTopic:
    windows = [n.window for n in nodes(built.plan) if isinstance(n, Aggregate) and n.window]
    settled = topics.settled(
        resolved.topic,
        resolved.statement.kind,
        inputs.settings,
        windowed=built.window is not None,
        window_ms=max((window.retention_ms for window in windows), default=0),
    )
    topic_acl.check_write(settled.topic.name, inputs.settings)
    return settled


def _result(
    resolved: ResolvedQuery, plan: QueryPlan, topic: Topic, reads: tuple[str, ...]
) -> DataSource:
    sink, existing = plan.sink, resolved.existing
    # where rows lie follows from how many there were when the topic was made
    kept = existing is not None and existing.topic == topic.name
    return DataSource(
        name=sink.name,
        kind=sink.kind,
        topic=topic.name,
        schema=Schema((*sink.key, *sink.value)),
        key_format=sink.key_format,
        value_format=sink.value_format,
        partitions=existing.partitions if existing and kept else topic.partitions,
        replicas=topic.replicas,
        timestamp=sink.timestamp,
        window=sink.window,
        created_by=resolved.query_id,
        derived_from=reads,
        statement=resolved.text,
    )


def _sources(built: Built) -> list[DataSource]:
    return [origin.source for origin in built.sources]


def _names(built: Built) -> tuple[str, ...]:
    return tuple(origin.source.name for origin in built.sources)


class PartitionsDiffer(StatementError):
    """A join of topics with different numbers of partitions."""

    def __init__(self, left: str, right: str, partitions: Mapping[str, int]) -> None:
        one, other = quote_always(left), quote_always(right)
        super().__init__(
            f"Can't join {one} with {other} since the number of partitions don't match. "
            f"{one} partitions = {partitions[left]}; {other} partitions = {partitions[right]}. "
            "Please repartition either one so that the number of partitions match.",
        )


def check_partitions(plan: Plan, partitions: Mapping[str, int]) -> None:
    """Check all joins of a plan; ``partitions`` by the name of the source.

    The sides of a foreign-key join never have to agree: their rows are always moved.

    Raises: PartitionsDiffer.
    """
    for node in reversed(list(nodes(plan))):
        if isinstance(node, Join) and not isinstance(node, ForeignKeyJoin):
            left, right = sources(node.left)[0].name, sources(node.right)[0].name
            if partitions[left] != partitions[right]:
                raise PartitionsDiffer(left, right, partitions)


def check_loop(name: str, topic: str, read: Collection[str], catalog: Catalog) -> None:
    """Refuse a query into ``name`` over ``topic`` that would get its own results to read.

    What counts are the topics, and ``read`` are those of its sources: two streams over one topic
    read the same records. A candidate counts as if it were cut over.

    Example:
        ``CREATE STREAM B AS SELECT * FROM A;``, then ``CREATE OR REPLACE STREAM A WITH (..) AS
        SELECT * FROM B;``: a record would go A -> B -> A.
    Raises: ReadsItself, with the way.
    """
    ways: dict[str, tuple[str, ...]] = {topic: (name,)}
    left = deque(ways)
    while left:
        at = left.popleft()
        if at in read:
            raise ReadsItself(name, (*ways[at], name))
        for sink, target in _written_from(at, catalog):
            if target not in ways:
                ways[target] = (*ways[at], sink)
                left.append(target)


def _topics(built: Built) -> set[str]:
    return {origin.source.topic for origin in built.sources}


def _written_from(topic: str, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Return the results of the queries that read the topic: their names and topics."""
    for query in catalog.queries_and_candidates:
        if query.kind == "CST" or query.sink not in catalog.sources:
            continue
        sources = [catalog.sources[source] for source in query.sources if source in catalog.sources]
        if any(source.topic == topic for source in sources):
            yield query.sink, catalog.sources[query.sink].topic


def columns(named: Sequence[Named], role: Role) -> tuple[Column, ...]:
    """Return named expressions as the columns of a result."""
    return tuple(Column(column.name, type_of(column.expr), role) for column in named)


def check_result(built: Built, target: DataSource) -> None:
    """Refuse a table, and keys with other windows than those of the target.

    Raises: StatementError.
    """
    if built.kind == "TABLE":
        raise StatementError(
            "Incompatible data sink and query result. "
            f"Data sink ({target.name}) type is KSTREAM but select query result is KTABLE."
        )
    if _windowed(built.window) != _windowed(target.window):
        raise StatementError(
            f"Incompatible windows of data sink and query result. Data sink ({target.name}) is "
            f"{_windowed(target.window)} but select query result is {_windowed(built.window)}."
        )


def _windowed(window: KeyWindow | None) -> str:
    """Describe the windows of the keys for messages; TUMBLING and HOPPING look alike."""
    if window is None:
        return "not windowed"
    return "SESSION windowed" if window.size_ms is None else f"windowed by {window.size_ms} ms"


def fitted(built: Built, target: DataSource) -> Built:
    """Add the casts to the projection that the target's types need.

    Raises: StatementError if names, order, key-ness or types do not fit.
    """
    given, expected = (*built.key, *built.value), (*target.schema.key, *target.schema.value)
    shapes = (
        [(n.name, n in built.key) for n in given],
        [(c.name, c.role is Role.KEY) for c in expected],
    )
    casted = (
        [_fitted_column(n, c.type) for n, c in zip(given, expected, strict=True)]
        if shapes[0] == shapes[1]
        else [None]
    )
    fits = [column for column in casted if column is not None]
    if len(fits) < len(casted):
        key, value = columns(built.key, Role.KEY), columns(built.value, Role.VALUE)
        raise StatementError(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {Schema((*key, *value))}\nSink schema is {target.schema}"
        )
    keys, values = tuple(fits[: len(built.key)]), tuple(fits[len(built.key) :])
    assert isinstance(built.plan, Select)  # noqa: S101 - build ends in a projection
    return replace(built, plan=replace(built.plan, key=keys, value=values), key=keys, value=values)


def _fitted_column(named: Named, target: SqlType) -> Named | None:
    """Return the column in the target's type: as it is, as a literal that fits, or cast.

    None if it cannot be.
    """
    source = type_of(named.expr)
    if source == target:
        return named
    if isinstance(named.expr, b.Const) and isinstance(target, Decimal):
        try:
            return Named(named.name, b.Const(strict(named.expr.value, source, target), target))
        except (ValueError, ArithmeticError, TypeError):
            return None
    return Named(named.name, b.Cast(named.expr, target)) if can_coerce(source, target) else None
