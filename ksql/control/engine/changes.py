"""The changes that a command makes: small facts that replay the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.core import QueryId
from ksql.core.types import SqlType
from ksql.sql.catalog import DataSource, PersistentQuery
from ksql.sql.plan import codec

if TYPE_CHECKING:
    from ksql.sql.catalog import Catalog


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
        case DeleteSubject() | StepOver() | IdsFrom():
            return catalog


def _with_query(catalog: Catalog, query: PersistentQuery) -> Catalog:
    sink = codec.loads(query.plan).sink
    if sink.topic is not None and sink.window is not None and not sink.gathered:
        catalog = catalog.with_scattered(sink.topic)
    return catalog.with_query(query)
