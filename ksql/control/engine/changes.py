"""The changes that a command makes: small facts that replay the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ksql.core import QueryId
from ksql.core.types import SqlType
from ksql.sql.catalog import Catalog, DataSource, FormerVersion, PersistentQuery, Rebuild
from ksql.sql.plan import codec


@dataclass(frozen=True, slots=True)
class PutSource:
    """A source is created, replaced or altered."""

    source: DataSource


@dataclass(frozen=True, slots=True)
class RemoveSource:
    """A source is gone."""

    name: str


@dataclass(frozen=True, slots=True)
class PutQuery:
    """A query is created, or gets a new plan under its id."""

    query: PersistentQuery


@dataclass(frozen=True, slots=True)
class EndQuery:
    """A query is terminated; its state is forgotten."""

    query_id: QueryId


@dataclass(frozen=True, slots=True)
class PauseQuery:
    """A query is paused or resumed."""

    query_id: QueryId
    paused: bool


@dataclass(frozen=True, slots=True)
class PutType:
    """A custom type is created."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class RemoveType:
    """A custom type is gone; what was declared with it stays."""

    name: str


@dataclass(frozen=True, slots=True)
class StepOver:
    """An operator gives up the command at that offset, which could not be taken in."""

    offset: int


@dataclass(frozen=True, slots=True)
class IdsFrom:
    """The queries of commands from that offset on have ids that count from that number.

    A command topic that was restored has lost its last commands: their offsets come again, and
    the ids that were made of them must not.
    """

    offset: int
    number: int

    def number_of(self, offset: int) -> int:
        """Return the number that a query of the command at an offset has in its id."""
        return self.number + offset - self.offset if offset >= self.offset else offset


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """A topic is deleted once the command counts; one of another id under its name stays."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class DeleteSubject:
    """A subject is deleted, as long as this is the latest schema in it."""

    subject: str
    schema_id: int
    version: int


@dataclass(frozen=True, slots=True)
class BeginRebuild:
    """A candidate of a query begins, or the former version continues as one."""

    rebuild: Rebuild


@dataclass(frozen=True, slots=True)
class EndRebuild:
    """A candidate is given up; the query stays what it is."""

    query_id: QueryId


@dataclass(frozen=True, slots=True)
class CutOverQuery:
    """A candidate becomes the query; the version that ran is kept until then (Unix time in ms).

    ``query`` is the candidate as it runs from now on, ``source`` its result.
    """

    query: PersistentQuery
    source: DataSource
    keep_until_ms: int


@dataclass(frozen=True, slots=True)
class ForgetFormer:
    """The former version of a query is not kept any longer."""

    query_id: QueryId


Change = (
    PutSource
    | RemoveSource
    | PutQuery
    | EndQuery
    | PauseQuery
    | PutType
    | RemoveType
    | DeleteTopic
    | DeleteSubject
    | StepOver
    | IdsFrom
    | BeginRebuild
    | EndRebuild
    | CutOverQuery
    | ForgetFormer
)


def applied(catalog: Catalog, change: Change) -> Catalog:
    """Return the catalog after the change; applying one twice equals applying it once."""
    match change:
        case PutSource(source):
            return catalog.with_source(source)
        case RemoveSource(name):
            return catalog.without_source(name)
        case PutQuery(query):
            return _with_query(catalog, query)
        case EndQuery(query_id):
            return catalog.without_query(query_id)
        case PauseQuery(query_id, paused):
            target = catalog.queries.get(query_id)
            return catalog if target is None else catalog.with_query(replace(target, paused=paused))
        case PutType(name, type_):
            return catalog.with_type(name, type_)
        case RemoveType(name):
            return catalog.without_type(name)
        case DeleteTopic(name, _):
            return catalog.without_topic(name)
        case BeginRebuild() | EndRebuild() | CutOverQuery() | ForgetFormer():
            return _rebuilt(catalog, change)
        case DeleteSubject() | StepOver() | IdsFrom():
            return catalog


def _rebuilt(
    catalog: Catalog, change: BeginRebuild | EndRebuild | CutOverQuery | ForgetFormer
) -> Catalog:
    match change:
        case BeginRebuild(rebuild):
            return catalog.with_rebuild(rebuild)
        case EndRebuild(query_id):
            return catalog.without_rebuild(query_id)
        case CutOverQuery():
            return _cut_over(catalog, change)
        case ForgetFormer(query_id):
            return catalog.without_former(query_id)


def _cut_over(catalog: Catalog, change: CutOverQuery) -> Catalog:
    old = catalog.queries.get(change.query.id)
    rebuild = catalog.rebuilds.get(change.query.id)
    if old is not None and rebuild is not None and old.version != change.query.version:
        former = FormerVersion(
            query=old,
            source=catalog.sources.get(old.sink, change.source),
            keep_until_ms=change.keep_until_ms,
            replaced_by=rebuild,
        )
        catalog = catalog.with_former(former)
    catalog = catalog.without_rebuild(change.query.id).with_source(change.source)
    return _with_query(catalog, change.query)


def _with_query(catalog: Catalog, query: PersistentQuery) -> Catalog:
    sink = codec.loads(query.plan).sink
    if sink.topic is not None and sink.window is not None and not sink.gathered:
        catalog = catalog.with_scattered(sink.topic)
    return catalog.with_query(query)
