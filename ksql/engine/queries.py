"""Statements about queries: from the statement to its changes.

CREATE .. AS SELECT, INSERT INTO .. SELECT, TERMINATE, PAUSE, RESUME.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.analysis import bound as b
from ksql.analysis import keys
from ksql.analysis.bound import Named, type_of
from ksql.analysis.describe import place
from ksql.base.errors import PREPARING, NotSupportedYet, ParseError, StatementError
from ksql.base.ident import did_you_mean
from ksql.base.ids import QueryId, persistent_query_id
from ksql.catalog.model import DataSource, PersistentQuery
from ksql.catalog.topic import Topic
from ksql.compile.constants import strict
from ksql.dataflow import rights
from ksql.engine import schemas
from ksql.engine.changes import Change, DeleteTopic, EndQuery, PauseQuery, PutQuery, PutSource
from ksql.engine.compat import check_replacement
from ksql.engine.context import Context, Prepared, command_id
from ksql.engine.ddl import check_timestamp, resolve_topic
from ksql.engine.errors import AlreadyExists, DoesNotExist, UpgradeRefused
from ksql.engine.loops import check_loop
from ksql.engine.properties import With, format_of, with_configured_wrap
from ksql.formats.table import validate
from ksql.plan import codec
from ksql.plan.build import Built, build
from ksql.plan.nodes import Aggregate, QueryPlan, Select, Sink
from ksql.plan.walk import nodes
from ksql.syntax import ast
from ksql.syntax import expr as ex
from ksql.types.coerce import can_coerce
from ksql.types.format import Format, KeyWindow, capabilities
from ksql.types.model import Decimal, SqlType
from ksql.types.schema import Column, Role, Schema, quote_always
from ksql.upgrade.settings import (
    LISTED,
    inherited,
    inherited_properties,
    notes,
)
from ksql.upgrade.validate import validate as validate_upgrade

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUERY_ID = re.compile(r"[A-Za-z0-9_]+\Z")
_RESERVED_IDS = ("INSERTQUERY_", "CTAS_", "CSAS_", "CST_")


def create_as_select(stmt: ast.CreateAsSelect, text: str, context: Context) -> Prepared:
    """CREATE [OR REPLACE] STREAM|TABLE name WITH (..) AS SELECT .."""
    existing = context.catalog.sources.get(stmt.name)
    if existing is not None:
        if stmt.if_not_exists and not stmt.or_replace:
            return Prepared(warning=str(AlreadyExists(stmt.kind, stmt.name, existing)))
        if not stmt.or_replace or not context.settings.flag("ksql.create.or.replace.enabled"):
            raise AlreadyExists(stmt.kind, stmt.name, existing)
        if existing.read_only:
            kind = existing.kind.lower()
            raise StatementError(
                f"Cannot add {kind} '{stmt.name}': "
                f"CREATE OR REPLACE is not supported on source {kind}s."
            )
    _refuse_limit(stmt.query, f"CREATE {stmt.kind} AS SELECT")
    options = With(stmt.properties, ddl=False)
    built = _built(stmt, options, context)
    if built.kind != stmt.kind:
        raise keys.wrong_kind(built.kind)
    running = _running(stmt.name, existing, context)
    key_format, value_format = _sink_formats(stmt.name, options, built, context)
    schemas.check_id(key_format, "key")
    schemas.check_id(value_format, "value")
    _check_states(built)
    sink, topic, is_new = _sink(stmt, built, options, (key_format, value_format), context)
    check_loop(stmt.name, topic.name, built.sources, context.catalog)
    kind = "CSAS" if stmt.kind == "STREAM" else "CTAS"
    query_id = running.id if running else persistent_query_id(kind, stmt.name, context.offset)
    plan = query_plan(query_id, sink, _read(built), context)
    prepared = Prepared(new_topics=(topic,) if is_new else ())
    if existing is not None:
        plan, prepared = _checked_replacement(
            existing, running, plan, topic, text, context, prepared
        )
    source = _source_of(sink, topic, query_id, built, text)
    query = PersistentQuery(
        query_id,
        "CSAS" if stmt.kind == "STREAM" else "CTAS",
        stmt.name,
        tuple(each.source.name for each in built.sources),
        text,
        codec.dumps(plan),
        context.offset,
        _properties(running, context),
        paused=running.paused if running else False,
        started_at_offset=running.started_at_offset if running else context.offset,
    )
    return replace(
        prepared,
        command_id=command_id(stmt.kind.lower(), stmt.name, "create"),
        changes=(PutSource(source), PutQuery(query)),
        message=f"Created query with ID {query_id}",
        query_id=query_id,
        plans={**prepared.plans, "new": query.plan},
        registrations=schemas.of_sink(source, context),
    )


def _properties(running: PersistentQuery | None, context: Context) -> tuple[tuple[str, str], ...]:
    """The settings that are stated for the query; a replacement inherits those it does not state.

    Those that only concern one statement are not handed on.
    """
    stated = dict(context.settings.overrides)
    if running is not None:
        stated = inherited_properties(dict(running.properties), stated)
    return tuple(sorted(stated.items()))


def _refuse_limit(query: ast.Query, what: str) -> None:
    """A query that never ends has no number of rows."""
    if query.limit is not None:
        raise ParseError(f"{PREPARING}{what} statements don't support LIMIT clause.")


def _built(stmt: ast.CreateAsSelect, options: With, context: Context) -> Built:
    """The query's plan; a TIMESTAMP column that is nowhere comes before a key that is not there."""
    in_text_order = context.settings.flag("ksql.new.query.planner.enabled")
    try:
        built = build(
            stmt.query,
            context.catalog,
            context.functions,
            sink=stmt.name,
            keys_as_written=in_text_order,
        )
        validate(Format("JSON"), built.exchanged, "key")  # what no format may have as a key
        return built
    except keys.KeyMissing as error:
        timestamp = options.timestamp()
        if timestamp is not None:
            check_timestamp(timestamp.name, timestamp.pattern, _columns(error.found, Role.VALUE))
        raise


def _running(name: str, existing: DataSource | None, context: Context) -> PersistentQuery | None:
    """The one query that writes the source, if it is to be replaced."""
    if existing is None:
        return None
    writers = context.catalog.writers(name)
    if len(writers) > 1 or (writers and writers[0].kind == "INSERT"):
        ids = ", ".join(query.id for query in writers)
        several = len(writers) > 1
        cause = "there are multiple queries writing" if several else "an INSERT query writes"
        raise StatementError(
            f"REPLACE for sink {name} is not supported because {cause} into it: [{ids}]",
            hint="Terminate the INSERT queries first.",
        )
    return writers[0] if writers else None


def _checked_replacement(
    existing: DataSource,
    running: PersistentQuery | None,
    plan: QueryPlan,
    topic: Topic,
    text: str,
    context: Context,
    prepared: Prepared,
) -> tuple[QueryPlan, Prepared]:
    """The new plan on the old one's id and state; all reasons at once if it cannot be."""
    new_source = _source_of(plan.sink, topic, QueryId(plan.query_id), None, text)
    stems = check_replacement(existing, new_source)
    if running is None:
        if stems:
            raise UpgradeRefused(existing.name, stems, None)
        return plan, prepared
    old = codec.loads(running.plan, context.functions)
    fresh, plan = plan, inherited(plan, old, context.settings.overrides)
    verdict, aligned = validate_upgrade(old, plan, context.functions, context.generation)
    verdict = replace(verdict, inherited=notes(fresh, plan))
    if stems or not verdict.accepted:
        raise UpgradeRefused(existing.name, stems, verdict)
    return aligned, replace(prepared, verdict=verdict, plans={"old": running.plan})


def _sink_formats(
    name: str, options: With, built: Built, context: Context
) -> tuple[Format, Format]:
    first = built.sources[0].source
    key_clause = options.clause("KEY")
    if not built.key:
        if key_clause.own and not (key_clause.name and capabilities(key_clause.name).empty):
            raise StatementError("Key format specified for stream without key columns.")
        key = Format("NONE")
    else:
        inherited = None if capabilities(first.key_format.name).empty else first.key_format
        default = context.settings.text("ksql.persistence.default.format.key")
        key = format_of(key_clause, default, inherited, key_of=name)
    wrap = options.wrap
    value_clause = options.clause("VALUE")
    value = format_of(value_clause, None, first.value_format, wrap=wrap)
    return key, with_configured_wrap(value, len(built.value), context.settings)


def _check_states(built: Built) -> None:
    """What aggregates keep must fit the source's value format, as it does in Kafka Streams' topics.

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


def _columns(named: Sequence[Named], role: Role) -> tuple[Column, ...]:
    return tuple(Column(each.name, type_of(each.expr), role) for each in named)


def _sink(
    stmt: ast.CreateAsSelect,
    built: Built,
    options: With,
    formats: tuple[Format, Format],
    context: Context,
) -> tuple[Sink, Topic, bool]:
    key, value = _columns(built.key, Role.KEY), _columns(built.value, Role.VALUE)
    validate(formats[0], key, "key")
    validate(formats[1], value, "value")
    timestamp = options.timestamp()
    if timestamp is not None:
        check_timestamp(timestamp.name, timestamp.pattern, (*key, *value))
    first = built.sources[0].source
    inherits = context.settings.flag("ksql.create.topic.inherit.source.replicas.enabled")
    read = context.topics.describe(first.topic)
    like = Topic(
        first.topic,
        first.partitions,
        first.replicas if inherits else 1,
        read.configs if read else {},
    )
    windows = [n.window for n in nodes(built.plan) if isinstance(n, Aggregate) and n.window]
    prefix = context.settings.text("ksql.output.topic.name.prefix")
    topic, is_new = resolve_topic(
        options,
        context,
        stmt.kind,
        windowed=built.window is not None,
        default_name=prefix + stmt.name,
        like=like,
        window_ms=max((window.retention_ms for window in windows), default=0),
    )
    rights.check_write(topic.name, context.settings)
    sink = Sink(
        built.plan,
        stmt.name,
        stmt.kind,
        topic.name,
        key,
        value,
        formats[0],
        formats[1],
        timestamp,
        built.window,
    )
    return sink, topic, is_new


def _source_of(
    sink: Sink, topic: Topic, query_id: QueryId, built: Built | None, text: str
) -> DataSource:
    assert sink.topic is not None  # noqa: S101 - persistent queries have a topic
    return DataSource(
        sink.name,
        sink.kind,
        sink.topic,
        Schema((*sink.key, *sink.value)),
        sink.key_format,
        sink.value_format,
        topic.partitions,
        topic.replicas,
        sink.timestamp,
        sink.window,
        created_by=query_id,
        derived_from=tuple(each.source.name for each in built.sources) if built else (),
        statement=text,
    )


def query_plan(
    query_id: str, sink: Sink, sources: Sequence[DataSource], context: Context
) -> QueryPlan:
    """The plan below a sink with what the settings add to it."""
    settings = context.settings
    wanted = settings.number("ksql.query.shuffle.partitions")
    most = max(source.partitions for source in sources)
    for source in sources:
        rights.check_read(source.topic)
    return QueryPlan(
        query_id,
        sink,
        wanted or min(most, context.parallelism),
        settings.number("cache.max.bytes.buffering") == 0,
        tuple((name, settings.text(name)) for name in LISTED) + tuple(sorted(settings.functions())),
    )


def _read(built: Built) -> list[DataSource]:
    """The sources of a query that can be run.

    Raises: NotSupportedYet.
    """
    if built.pending:
        raise NotSupportedYet(built.pending)
    return [each.source for each in built.sources]


def transient_plan(query_id: str, built: Built, context: Context) -> QueryPlan:
    """The plan of a push query: its rows go to the client, not to a topic.

    All columns are in the value; those of the key are there twice, for the deletions of a table.
    """
    window: KeyWindow | None = None
    sink = Sink(
        built.plan,
        query_id,
        built.kind,
        None,
        _columns(built.key, Role.KEY),
        _columns(built.value, Role.VALUE),
        Format("NONE"),
        Format("JSON"),
        None,
        window,
    )
    return query_plan(query_id, sink, _read(built), context)


def insert_into(stmt: ast.InsertInto, text: str, context: Context) -> Prepared:
    """INSERT INTO name SELECT .."""
    _refuse_limit(stmt.query, "INSERT INTO")
    target = _insert_target(stmt, context)
    built = build(stmt.query, context.catalog, context.functions, sink=stmt.name)
    _check_result(built, target)
    fitted = _fitted(built, target)
    query_id = _insert_id(stmt, context)
    check_loop(target.name, target.topic, built.sources, context.catalog)
    sink = Sink(
        fitted.plan,
        target.name,
        "STREAM",
        target.topic,
        target.schema.key,
        target.schema.value,
        target.key_format,
        target.value_format,
        None,
        target.window,
    )
    plan = query_plan(query_id, sink, _read(built), context)
    query = PersistentQuery(
        query_id,
        "INSERT",
        target.name,
        tuple(each.source.name for each in built.sources),
        text,
        codec.dumps(plan),
        context.offset,
        tuple(sorted(context.settings.overrides.items())),
        started_at_offset=context.offset,
    )
    return Prepared(
        command_id("stream", stmt.name, "create"),
        (PutQuery(query),),
        f"Created query with ID {query_id}",
        query_id=query_id,
        plans={"new": query.plan},
    )


def _insert_target(stmt: ast.InsertInto, context: Context) -> DataSource:
    target = context.catalog.sources.get(stmt.name)
    if target is None:
        raise DoesNotExist(
            f"{place(stmt.target)}Source {quote_always(stmt.name)} does not exist.",
            hint=did_you_mean(stmt.name, context.catalog.sources),
        )
    if target.kind == "TABLE":
        raise StatementError(
            f"INSERT INTO can only be used to insert into a stream. {stmt.name} is a table."
        )
    if target.read_only:
        raise StatementError(f"Cannot insert into read-only stream: {stmt.name}")
    rights.check_write(target.topic, context.settings, "insert into")
    if target.schema.headers:
        raise StatementError(f"Cannot insert into {stmt.name} because it has header columns")
    return target


def _check_result(built: Built, target: DataSource) -> None:
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
    """What a reader of the keys has to know; TUMBLING and HOPPING look alike."""
    if window is None:
        return "not windowed"
    return "SESSION windowed" if window.size_ms is None else f"windowed by {window.size_ms} ms"


def _fitted(built: Built, target: DataSource) -> Built:
    """The projection with the casts that the target's types need.

    Raises: StatementError if names, order, key-ness or types do not fit.
    """
    found, wanted = (*built.key, *built.value), (*target.schema.key, *target.schema.value)
    shapes = (
        [(n.name, n in built.key) for n in found],
        [(c.name, c.role is Role.KEY) for c in wanted],
    )
    casted = (
        [_fitted_column(n, c.type) for n, c in zip(found, wanted, strict=True)]
        if shapes[0] == shapes[1]
        else [None]
    )
    fits = [each for each in casted if each is not None]
    if len(fits) < len(casted):
        result = Schema((*_columns(built.key, Role.KEY), *_columns(built.value, Role.VALUE)))
        raise StatementError(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {result}\nSink schema is {target.schema}"
        )
    key, value = tuple(fits[: len(built.key)]), tuple(fits[len(built.key) :])
    assert isinstance(built.plan, Select)  # noqa: S101 - build ends in a projection
    return replace(built, plan=replace(built.plan, key=key, value=value), key=key, value=value)


def _fitted_column(named: Named, target: SqlType) -> Named | None:
    """The column in the target's type: as it is, as a literal that fits, or cast.

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


def _insert_id(stmt: ast.InsertInto, context: Context) -> QueryId:
    for each in stmt.properties:
        if each.name.upper() != "QUERY_ID":
            raise StatementError(
                f"Invalid config variable(s) in the WITH clause: {each.name}", span=each.span
            )
        if not isinstance(each.value, ex.StringLit) or not _QUERY_ID.match(each.value.value):
            given = getattr(each.value, "value", None)
            raise StatementError(
                f"Query IDs may contain only alphanumeric characters and '_'. Got: '{given}'",
                span=each.span,
            )
        wanted = each.value.value.upper()
        if wanted.startswith(_RESERVED_IDS):
            raise StatementError(
                "Query IDs must not start with a reserved query ID prefix "
                f"({', '.join(_RESERVED_IDS)}). Got '{wanted}'.",
                span=each.span,
            )
        if context.catalog.query(wanted) is not None:
            raise StatementError(f"Query ID '{wanted}' already exists.", span=each.span)
        return QueryId(wanted)
    return persistent_query_id("INSERTQUERY", stmt.name, context.offset)


def control(stmt: ast.QueryControl, context: Context) -> Prepared:
    """TERMINATE, PAUSE or RESUME of one query or of all."""
    queries = _chosen(stmt, context)
    changes: tuple[Change, ...]
    match stmt.action:
        case "TERMINATE":
            changes = tuple(EndQuery(query.id) for query in queries)
            changes += _changelogs(queries, context)
        case "PAUSE":
            changes = tuple(PauseQuery(query.id, True) for query in queries)
        case "RESUME":
            changes = tuple(PauseQuery(query.id, False) for query in queries)
    verb = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}[stmt.action]
    return Prepared(
        command_id(stmt.action.lower(), stmt.query_id or "ALL", "execute"),
        changes,
        f"Query {verb}.",
        query_id=queries[0].id if len(queries) == 1 else None,
    )


def _changelogs(queries: Sequence[PersistentQuery], context: Context) -> tuple[Change, ...]:
    """The topics that these queries keep for themselves."""
    kept = (source.materialization for source in context.catalog.sources.values())
    ended = {query.id for query in queries}
    return tuple(
        DeleteTopic(each.topic, context.topics.identity(each.topic))
        for each in kept
        if each is not None
        and each.query_id in ended
        and rights.is_changelog(each.topic, each.query_id, context.settings)
    )


def _chosen(stmt: ast.QueryControl, context: Context) -> list[PersistentQuery]:
    if stmt.query_id is None:
        known = context.catalog.queries.values()
        return [query for query in known if stmt.everything or query.kind != "CST"]
    found = context.catalog.query(stmt.query_id)
    if found is None:
        raise DoesNotExist(
            f"Unknown queryId: {stmt.query_id}",
            hint=did_you_mean(stmt.query_id, context.catalog.queries),
        )
    if found.kind == "CST":
        raise StatementError(
            f"Cannot {stmt.action.lower()} query '{found.id}' because it is linked to a "
            "source table.",
            hint=f"DROP TABLE {found.sources[0]} ends it.",
        )
    return [found]
