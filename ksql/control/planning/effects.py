"""Step 4 of a statement, *effects*: the changes, topics and schemas that follow, as data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ksql.control.engine.changes import BeginRebuild, PutQuery, PutSource
from ksql.control.engine.context import PlanningInputs, Prepared, command_id, with_settings
from ksql.control.planning import rebuild, schemas
from ksql.control.planning.expected import stated_properties
from ksql.control.planning.properties import STORE
from ksql.core import FIRST, QueryId
from ksql.sql.catalog import DataSource, PersistentQuery, Rebuild, Topic
from ksql.sql.plan import QueryPlan, codec
from ksql.sql.upgrade import inherited_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.control.planning.compare import Compared
    from ksql.control.planning.plan_queries import PlannedInsert, PlannedQuery
    from ksql.control.planning.plan_sources import PlannedSource
    from ksql.control.planning.resolve import ResolvedInsert, ResolvedQuery, ResolvedSource
    from ksql.control.planning.schemas import Registration
    from ksql.control.planning.topics import SettledTopic


def created_as(
    resolved: ResolvedQuery, planned: PlannedQuery, compared: Compared, inputs: PlanningInputs
) -> Prepared:
    """Put the result and its query into the catalog; a replaced query keeps its id and pause."""
    stmt, query_id, old = resolved.statement, resolved.query_id, resolved.writer
    properties = _stated(inputs, resolved.store)
    if old is not None:
        properties = inherited_properties(dict(old.properties), properties)
    query = PersistentQuery(
        id=query_id,
        kind="CSAS" if stmt.kind == "STREAM" else "CTAS",
        sink=stmt.name,
        sources=planned.source.derived_from,
        statement=resolved.text,
        plan=codec.dumps(compared.plan),
        offset=inputs.offset,
        properties=tuple(sorted(properties.items())),
        paused=old is not None and old.paused,
        started_at_offset=inputs.offset if old is None else old.started_at_offset,
        version_number=FIRST if old is None else old.version_number,
        cut_over=None if old is None else old.cut_over,
    )
    if compared.rebuilds and old is not None:
        registrations = schemas.of_sink(planned.source, resolved.registered)
        like = planned.settled.topic
        return rebuilt(query, planned.source, like, compared, inputs, registrations)
    plans = {} if compared.old_plan is None else {"old": compared.old_plan}
    verdict = compared.verdict
    if verdict is not None and old is not None:
        verdict = with_settings(verdict, old, query)
    return Prepared(
        command_id=command_id(stmt.kind.lower(), stmt.name, "create"),
        changes=(PutSource(planned.source), PutQuery(query)),
        message=_created(query_id) + _begins_anew(resolved),
        query_id=query_id,
        new_topics=_new(planned.settled),
        registrations=schemas.of_sink(planned.source, resolved.registered),
        verdict=verdict,
        plans={**plans, "new": query.plan},
    )


def rebuilt(
    query: PersistentQuery,
    source: DataSource,
    like: Topic,
    compared: Compared,
    inputs: PlanningInputs,
    registrations: tuple[Registration, ...] = (),
) -> Prepared:
    """Begin a candidate next to the query, which runs on as it is.

    ``source`` is the result as it will be, with these schemas; its topic is ``like``.
    """
    candidate = replace(query, version_number=inputs.number, cut_over=None, paused=False)
    topic = rebuild.results_topic(candidate, like, inputs)
    begun = Rebuild(
        candidate=rebuild.writing_to(candidate, topic.name),
        source=source,
        backfill=compared.backfills,
    )
    word = "Backfill" if compared.backfills else "Rebuild"
    return Prepared(
        command_id=command_id(source.kind.lower(), query.sink, "create"),
        changes=(BeginRebuild(begun),),
        message=f"{word} of {query.id} begun",
        query_id=query.id,
        new_topics=(topic,),
        registrations=schemas.of_candidate(registrations, topic.name),
        later_registrations=registrations,
        verdict=compared.verdict,
        plans={"old": compared.old_plan or "", "new": query.plan},
    )


def inserted(resolved: ResolvedInsert, planned: PlannedInsert, inputs: PlanningInputs) -> Prepared:
    """Put the query into the catalog."""
    target = resolved.target.name
    properties = _stated(inputs, None)
    query = _new_query(
        "INSERT", target, planned.reads, resolved.text, planned.plan, inputs, properties
    )
    return Prepared(
        command_id=command_id("stream", target, "create"),
        changes=(PutQuery(query),),
        message=_created(query.id),
        query_id=query.id,
        plans={"new": query.plan},
    )


def declared(
    resolved: ResolvedSource, planned: PlannedSource, source: DataSource, inputs: PlanningInputs
) -> Prepared:
    """Put the source into the catalog, that of a SOURCE table together with its query."""
    id_ = command_id(source.kind.lower(), source.name, "create")
    topics = _new(planned.settled)
    registrations = schemas.of_declared(source, resolved.registered)
    keeper = planned.keeper
    if keeper is None:
        return Prepared(
            command_id=id_,
            changes=(PutSource(source),),
            message=f"{source.kind.capitalize()} created",
            new_topics=topics,
            registrations=registrations,
        )
    properties = _stated(inputs, resolved.store)
    query = _new_query("CST", "", (source.name,), resolved.text, keeper.plan, inputs, properties)
    return Prepared(
        command_id=id_,
        changes=(PutSource(source), PutQuery(query)),
        message=_created(query.id),
        query_id=query.id,
        new_topics=(*topics, keeper.topic),
        registrations=registrations,
        plans={"new": query.plan},
    )


def altered(source: DataSource) -> Prepared:
    """Put the wider source into the catalog."""
    kind = source.kind.lower()
    return Prepared(
        command_id=command_id(kind, source.name, "alter"),
        changes=(PutSource(source),),
        message=f"{kind.capitalize()} {source.name} altered.",
    )


def _new_query(
    kind: Literal["INSERT", "CST"],
    sink: str,
    sources: tuple[str, ...],
    text: str,
    plan: QueryPlan,
    inputs: PlanningInputs,
    properties: Mapping[str, str],
) -> PersistentQuery:
    return PersistentQuery(
        id=QueryId(plan.query_id),
        kind=kind,
        sink=sink,
        sources=sources,
        statement=text,
        plan=codec.dumps(plan),
        offset=inputs.offset,
        properties=tuple(sorted(properties.items())),
        started_at_offset=inputs.offset,
    )


def _stated(inputs: PlanningInputs, store: str | None) -> dict[str, str]:
    """Return the properties that the session or the statement states for its query."""
    stated = stated_properties(inputs.settings)
    return stated if store is None else {**stated, STORE: store}


def _created(query_id: QueryId) -> str:
    return f"Created query with ID {query_id}"


def _begins_anew(resolved: ResolvedQuery) -> str:
    """Say what becomes of the rows of a query that was terminated: it is not replaced."""
    existing = resolved.existing
    if existing is None or existing.created_by is None or resolved.writer is not None:
        return ""
    return (
        f"\nIt starts over: {existing.created_by} was terminated, and its state with it. "
        f"What it has written stays in topic {existing.topic}."
    )


def _new(settled: SettledTopic) -> tuple[Topic, ...]:
    return (settled.topic,) if settled.is_new else ()
