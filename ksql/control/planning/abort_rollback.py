"""ABORT UPGRADE and ROLLBACK UPGRADE, and the topics of versions that end with their query.

Source: docs/upgrades.md#rebuilds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.control.access import seen_queries
from ksql.control.engine.changes import BeginRebuild, DeleteSubject, DeleteTopic, EndRebuild
from ksql.control.engine.context import PlanningContext, PlanningInputs, Prepared, command_id
from ksql.control.engine.errors import DoesNotExist, NoFormerVersion, NotUpgradeable
from ksql.control.planning import rebuild, schemas
from ksql.control.planning.compare import check_others
from ksql.control.planning.plan_queries import check_loop
from ksql.core import (
    FORMER_READS_NOTHING,
    NO_REBUILD,
    OTHER_FORMER,
    ROLLBACK_REFUSED,
    quote,
    visible,
)
from ksql.core.types import as_written
from ksql.exec.dataflow import plan_of, read_topics
from ksql.sql.catalog import Catalog, FormerVersion, PersistentQuery, Rebuild, Topic
from ksql.sql.plan import sources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.core import QueryId
    from ksql.sql.catalog import DataSource
    from ksql.sql.plan import Source
    from ksql.sql.syntax import ast


def control(stmt: ast.UpgradeControl, context: PlanningContext) -> Prepared:
    """Prepare ABORT UPGRADE or ROLLBACK UPGRADE.

    Raises: StatementError.
    """
    find = by_id if stmt.of_query else upgraded
    query = find(stmt.name, context.catalog)
    match stmt.action:
        case "ABORT":
            return _aborted(query, context)
        case "ROLLBACK":
            return _rolled_back(query, stmt.upgrade_id, context)


def upgraded(name: str, catalog: Catalog) -> PersistentQuery:
    """Return the query that CREATE .. AS SELECT has made for a stream or table.

    Raises: DoesNotExist, NotUpgradeable.
    """
    source = catalog.sources.get(name)
    if source is None:
        raise DoesNotExist(f"Source {quote(name)} does not exist.", name, visible(catalog.sources))
    query = None if source.created_by is None else catalog.queries.get(source.created_by)
    if query is None:
        raise NotUpgradeable(source, [writer.id for writer in catalog.writers(name)])
    return query


def by_id(query_id: str, catalog: Catalog) -> PersistentQuery:
    """Return the query of that id.

    Raises: DoesNotExist.
    """
    query = catalog.query(query_id)
    if query is None:
        raise DoesNotExist(
            f"Unknown queryId: {query_id}", query_id, seen_queries(catalog), ends=True
        )
    return query


def ended(query_id: str, context: PlanningContext) -> Prepared:
    """Return the effects of giving up a candidate; a warning if there is none any more."""
    query = context.catalog.query(query_id)
    if query is None or query.id not in context.catalog.rebuilds:
        return Prepared(warning=f"{query_id} has no candidate")
    return _aborted(query, context)


def _aborted(query: PersistentQuery, context: PlanningContext) -> Prepared:
    """Give up the candidate; the rows of a table's former version stay for another rollback."""
    under_way = context.catalog.rebuilds.get(query.id)
    if under_way is None:
        raise NO_REBUILD(query_id=query.id, name=quote(query.sink))
    has_rows = under_way.rollback and query.kind == "CTAS"
    gone = () if has_rows else rebuild.deletion(under_way.candidate, context)
    return Prepared(
        command_id=command_id("upgrade", query.sink, "abort"),
        changes=(EndRebuild(query.id), *gone),
        message=f"{'Rollback' if under_way.rollback else 'Rebuild'} of {query.id} aborted",
        query_id=query.id,
    )


def _rolled_back(
    query: PersistentQuery, upgrade_id: str | None, context: PlanningContext
) -> Prepared:
    """Let the former version continue from its own offsets, next to the one that runs."""
    catalog = context.catalog
    rebuild.check_none(query, catalog)
    former = catalog.former_versions.get(query.id)
    if former is None:
        raise NoFormerVersion(query)
    _check_former(query, former, catalog)
    if query.kind == "INSERT":  # its stream may have got columns meanwhile, which it need not know
        former = replace(former, source=catalog.sources[query.sink])
    service_id = rebuild.service_id(context)
    known = former.query.version.upgrade_id(service_id)
    if upgrade_id is not None and upgrade_id != known and not upgrade_id.startswith(f"{known}-"):
        raise OTHER_FORMER(query_id=query.id, upgrade_id=upgrade_id, known=known)
    return Prepared(
        command_id=command_id("upgrade", query.sink, "rollback"),
        changes=(BeginRebuild(_continued(former, service_id, context)),),
        message=f"Rollback of {query.id} begun",
        query_id=query.id,
        new_topics=_results_of_stream(former, context),
        registrations=_schemas_of_table(former, context),
        plans={"old": query.plan, "new": former.query.plan},
    )


def _results_of_stream(former: FormerVersion, context: PlanningContext) -> tuple[Topic, ...]:
    """Return the topic that the muted results of a stream's former version go to.

    That of a table is there since the cut-over: it has the rows of then.
    """
    topic = context.topics.describe(former.source.topic)
    if former.query.kind == "CTAS" or topic is None:
        return ()
    return (rebuild.results_topic(former.query, topic, context),)


def _schemas_of_table(
    former: FormerVersion, context: PlanningContext
) -> tuple[schemas.Registration, ...]:
    """Return the schemas of the topic that a table's former version writes to."""
    if former.query.kind != "CTAS":
        return ()
    topic = former.query.version.results_topic(rebuild.service_id(context))
    return schemas.of_candidate(schemas.of_rebuilt(former.source, context.registry), topic)


def _continued(former: FormerVersion, service_id: str, inputs: PlanningInputs) -> Rebuild:
    """Return the former version as a candidate: it writes to the topic of its own results."""
    topic = former.query.version.results_topic(service_id)
    candidate = replace(
        rebuild.writing_to(former.query, topic), offset=inputs.offset, cut_over=None, paused=False
    )
    return Rebuild(candidate=candidate, source=former.source, rollback=True)


def _check_former(query: PersistentQuery, former: FormerVersion, catalog: Catalog) -> None:
    """Refuse a version that could not run any more, or whose rows readers could not follow."""
    plan, known = plan_of(former.query), catalog.sources
    reads = {source.name: source for source in sources(plan.sink)}
    gone = [name for name, source in reads.items() if not _is_read_alike(source, known.get(name))]
    if gone:
        remade = any(name in known for name in gone)
        raise FORMER_READS_NOTHING(
            query_id=query.id,
            sources=", ".join(map(quote, gone)),
            elsewhere=", or is declared otherwise now" if remade else "",
        )
    check_loop(query.sink, known[query.sink].topic, read_topics(plan), catalog)
    if query.kind == "INSERT":
        return
    stems, others = check_others(query, former.source, catalog)
    if stems:
        reasons = " AND ".join(f"({stem})" for stem in stems)
        raise ROLLBACK_REFUSED(query_id=query.id, reasons=reasons, others=others)


def _is_read_alike(read: Source, now: DataSource | None) -> bool:
    """Return whether a source is what a plan reads; it may have got columns.

    One that was dropped may have been declared again, over another topic or in another form.
    """
    if now is None:
        return False
    then = (read.kind, read.topic, read.timestamp, read.window)
    formats = zip(
        (read.key_format, read.value_format), (now.key_format, now.value_format), strict=True
    )
    return (
        then == (now.kind, now.topic, now.timestamp, now.window)
        and all(as_written(one) == as_written(other) for one, other in formats)
        and set(read.columns) <= set(now.schema.columns)
    )


def results_of(
    queries: Iterable[PersistentQuery], context: PlanningContext
) -> tuple[DeleteTopic | DeleteSubject, ...]:
    """Delete the results of the candidates and former versions of queries that end."""
    return tuple(
        deletion
        for query in queries
        for version in _kept(query, context.catalog)
        for deletion in rebuild.deletion(version, context)
    )


def candidates_reading(name: str, catalog: Catalog) -> list[QueryId]:
    """Return the queries of which only the candidate reads that source."""
    return [
        under_way.candidate.id
        for under_way in catalog.rebuilds.values()
        if name in under_way.candidate.sources
        and name not in catalog.queries[under_way.candidate.id].sources
    ]


def _kept(query: PersistentQuery, catalog: Catalog) -> tuple[PersistentQuery, ...]:
    """Return the other versions of a query; a former one that is a candidate counts once."""
    under_way, former = catalog.rebuilds.get(query.id), catalog.former_versions.get(query.id)
    others = {} if former is None else {former.query.version: former.query}
    if under_way is not None:
        others[under_way.candidate.version] = under_way.candidate
    return tuple(others.values())
