"""DROP STREAM|TABLE: resolved to what goes with the source, then to its effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.control.engine.changes import Change, DeleteSubject, DeleteTopic, EndQuery, RemoveSource
from ksql.control.engine.context import PlanningContext, PlanningInputs, Prepared, command_id
from ksql.control.engine.errors import DoesNotExist, OtherKind, StillUsed
from ksql.control.planning import abort_rollback, schemas
from ksql.core import QueryId, StatementError, quote_always, visible
from ksql.exec.dataflow import topic_acl
from ksql.sql.catalog import DataSource

if TYPE_CHECKING:
    from ksql.sql.syntax import ast


@dataclass(frozen=True, slots=True)
class ResolvedDrop:
    """A source to be dropped, and the topics and subjects to be deleted with it."""

    source: DataSource
    topics: tuple[DeleteTopic | DeleteSubject, ...]
    subjects: tuple[DeleteSubject, ...]


def already_gone(stmt: ast.DropSource, inputs: PlanningInputs) -> str | None:
    """Return the warning of an IF EXISTS that finds no source; then there is nothing to do."""
    if not stmt.if_exists or stmt.name in inputs.catalog.sources:
        return None
    return f"Source {quote_always(stmt.name)} does not exist."


def resolved(stmt: ast.DropSource, context: PlanningContext) -> ResolvedDrop:
    """Resolve DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC].

    Raises: StatementError.
    """
    source = context.catalog.sources.get(stmt.name)
    if source is None:
        raise DoesNotExist(
            f"{stmt.kind.capitalize()} {stmt.name} does not exist.",
            stmt.name,
            visible(context.catalog.sources),
            ends=True,
        )
    if source.kind != stmt.kind:
        raise OtherKind(source, "DROP", stmt.kind)
    _refuse_used(source, context)
    doomed = (_doomed_topic(source, context),) if stmt.delete_topic else ()
    kept = source.materialization
    if kept is not None and topic_acl.is_changelog(kept.topic, kept.query_id, context.settings):
        doomed = (kept.topic,)
    subjects = schemas.deletions(source, context) if stmt.delete_topic else []
    topics: tuple[DeleteTopic | DeleteSubject, ...] = tuple(
        DeleteTopic(topic, context.topics.identity(topic)) for topic in doomed
    )
    created_by = context.catalog.queries.get(source.created_by or QueryId(""))
    if created_by is not None:
        topics += abort_rollback.results_of([created_by], context)
    return ResolvedDrop(source, topics, tuple(subjects))


def effects(drop: ResolvedDrop) -> Prepared:
    """End the queries that belong to the source, drop it, delete its topics and subjects."""
    source = drop.source
    changes: list[Change] = []
    if source.created_by is not None:
        changes.append(EndQuery(source.created_by))
    if source.materialization is not None:
        changes.append(EndQuery(source.materialization.query_id))
    return Prepared(
        command_id=command_id(source.kind.lower(), source.name, "drop"),
        changes=(*changes, RemoveSource(source.name), *drop.topics, *drop.subjects),
        message=f"Source {quote_always(source.name)} (topic: {source.topic}) was dropped.",
    )


def _refuse_used(source: DataSource, inputs: PlanningInputs) -> None:
    catalog = inputs.catalog
    readers = [q.id for q in catalog.readers(source.name) if q.kind != "CST"]
    readers += abort_rollback.candidates_reading(source.name, catalog)
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


def _doomed_topic(source: DataSource, inputs: PlanningInputs) -> str:
    if source.read_only:
        raise StatementError(f"Cannot delete topic for read-only source: {source.name}")
    others = [
        s.name for s in inputs.catalog.sources.values() if s.topic == source.topic and s != source
    ]
    if others:
        raise StatementError(
            f"Refusing to delete topic. Found other data sources ({', '.join(others)}) "
            f"using topic {source.topic}"
        )
    topic_acl.check_delete(source.topic, inputs.settings)
    return source.topic
