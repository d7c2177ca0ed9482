"""The rights that each kind of statement needs, and on which objects.

mypy names a kind of statement that has no arm here, so that none can be forgotten.
Source: docs/access.md#rights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from ksql.control.access.rights import EVERY, Right
from ksql.core import Kind, Settings, canonical
from ksql.sql.syntax import StringLit, ast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.sql.catalog import Catalog

PREFIX: Final = "ksql.output.topic.name.prefix"
_TOPIC: Final = "KAFKA_TOPIC"


@dataclass(frozen=True, slots=True)
class Need:
    """One right on one object; without a ``right`` any right on it will do.

    The name ``*`` stands for all objects of the kind. A topic that is ``own`` has the name of its
    stream or table. A refusal does not show a name that was ``looked_up``.
    """

    right: Right | None
    kind: Kind
    name: str
    own: bool = False
    looked_up: bool = False


def needs(  # noqa: C901  one arm for each statement
    statement: ast.Statement, catalog: Catalog, settings: Settings | None = None
) -> tuple[Need, ...]:
    """Return what somebody must be permitted who sends that statement; ``settings`` are its own."""
    match statement:
        case ast.Query():
            return _read(statement)
        case ast.PrintTopic():
            return (Need(Right.READ, "topic", statement.topic),)
        case (
            ast.CreateSource()
            | ast.CreateAsSelect()
            | ast.AlterSource()
            | ast.DropSource()
            | ast.CreateType()
            | ast.DropType()
        ):
            return tuple(_defining(statement, catalog, settings or Settings()))
        case ast.InsertInto() | ast.ReplaceQuery() | ast.InsertValues() | ast.DeleteFrom():
            return tuple(_writing(statement, catalog))
        case ast.CreateConnector() | ast.DropConnector():
            return (Need(Right.DEFINE, "connector", statement.name),)
        case ast.QueryControl():
            return _of_query(Right.OPERATE, statement.query_id, catalog)
        case ast.UpgradeControl():
            if statement.of_query:
                return _of_query(Right.DEFINE, statement.name, catalog)
            return (Need(Right.DEFINE, "source", statement.name),)
        case ast.Explain(target=str()):
            return ()
        case ast.Explain(target=target):
            assert not isinstance(target, str)  # noqa: S101 - the arm before has those
            return needs(target, catalog, settings)
        case (
            ast.DescribeSource() | ast.DescribeAll() | ast.DescribeFunction()
            | ast.DescribeConnector() | ast.DescribeUpgrade() | ast.Show()
        ):  # fmt: skip
            return _looking(statement)
        case ast.AssertTopic() | ast.AssertSchema():
            return _asserted(statement)
        case ast.SetProperty() | ast.UnsetProperty() | ast.Define() | ast.Undefine():
            return ()
        case (
            ast.AlterSystem() | ast.RunScript() | ast.AssertValues() | ast.AssertNullValues()
            | ast.AssertSource()
        ):  # fmt: skip
            return (Need(Right.ADMIN, "source", EVERY),)
        case _:
            assert_never(statement)


def names_in(statement: ast.Statement) -> tuple[str, ...]:
    """Return the streams and tables that a statement's query reads; none if it has no query."""
    match statement:
        case ast.Query():
            return names_of(statement.source)
        case ast.CreateAsSelect() | ast.InsertInto() | ast.ReplaceQuery():
            return names_of(statement.query.source)
        case _:
            return ()


def names_of(relation: ast.Relation) -> tuple[str, ...]:
    """Return the sources of FROM and all its joins."""
    if isinstance(relation, ast.SourceRef):
        return (relation.name,)
    return (*names_of(relation.left), relation.right.name)


def _read(query: ast.Query) -> tuple[Need, ...]:
    return tuple(Need(Right.READ, "source", name) for name in names_of(query.source))


_Definition = (
    ast.CreateSource
    | ast.CreateAsSelect
    | ast.AlterSource
    | ast.DropSource
    | ast.CreateType
    | ast.DropType
)


def _defining(statement: _Definition, catalog: Catalog, settings: Settings) -> Iterator[Need]:
    """Yield what a definition needs: itself, its topic if that has another name, its sources.

    Who defines a stream over a topic can read and write that topic.
    """
    yield Need(Right.DEFINE, "source", statement.name)
    match statement:
        case ast.CreateSource() | ast.CreateAsSelect():
            for topic in _topics(statement, settings) or (statement.name,):
                yield _topic_of(statement.name, topic)
            if isinstance(statement, ast.CreateAsSelect):
                yield from _read(statement.query)
        case ast.DropSource(delete_topic=True):
            source = catalog.sources.get(statement.name)
            if source is not None:
                yield _topic_of(source.name, source.topic)
        case ast.AlterSource() | ast.DropSource() | ast.CreateType() | ast.DropType():
            return
        case _:
            assert_never(statement)


def _topic_of(source: str, topic: str) -> Need:
    return Need(Right.DEFINE, "topic", topic, own=topic == source)


def _topics(statement: ast.CreateSource | ast.CreateAsSelect, settings: Settings) -> list[str]:
    """Return the topics that a statement, or its request, states; none if it has that of its name.

    A prefix of the server's own configuration is part of no name here.
    """
    values = [entry.value for entry in statement.properties if entry.name.upper() == _TOPIC]
    topics = [value.value if isinstance(value, StringLit) else EVERY for value in values]
    if canonical(PREFIX) in settings.overrides:
        topics.append(settings.text(PREFIX) + statement.name)
    return topics


def _writing(
    statement: ast.InsertInto | ast.ReplaceQuery | ast.InsertValues | ast.DeleteFrom,
    catalog: Catalog,
) -> Iterator[Need]:
    """Yield what rows need, and a query that writes them for as long as it runs."""
    yield Need(Right.WRITE, "source", statement.name)
    if isinstance(statement, ast.InsertValues | ast.DeleteFrom):
        return
    yield Need(Right.DEFINE, "source", statement.name)
    yield from _read(statement.query)
    if isinstance(statement, ast.ReplaceQuery):
        running = catalog.query(statement.query_id)
        if running is not None:
            yield Need(Right.DEFINE, "source", running.sink or EVERY, looked_up=True)


def _of_query(right: Right, query_id: str | None, catalog: Catalog) -> tuple[Need, ...]:
    """Return the right on what a query writes; on everything for all queries, and for push ones."""
    query = None if query_id is None else catalog.query(query_id)
    name = (query and query.sink) or EVERY
    return (Need(right, "source", name, looked_up=query_id is not None),)


def _looking(
    statement: ast.DescribeSource
    | ast.DescribeAll
    | ast.DescribeFunction
    | ast.DescribeConnector
    | ast.DescribeUpgrade
    | ast.Show,
) -> tuple[Need, ...]:
    """Return what a look needs; lists leave out what one has no right on."""
    match statement:
        case ast.DescribeSource():
            return (Need(None, "source", statement.name),)
        case ast.DescribeConnector():
            return (Need(None, "connector", statement.name),)
        case ast.Show() | ast.DescribeAll() | ast.DescribeFunction() | ast.DescribeUpgrade():
            return ()
        case _:
            assert_never(statement)


def _asserted(statement: ast.AssertTopic | ast.AssertSchema) -> tuple[Need, ...]:
    if isinstance(statement, ast.AssertTopic):
        return (Need(None, "topic", statement.topic),)
    subject = statement.subject
    topic = EVERY if subject is None else subject.removesuffix("-value").removesuffix("-key")
    return (Need(None, "topic", topic),)
