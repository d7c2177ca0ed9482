"""SHOW and LIST: the catalogue as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.control.statements import connectors, describe, settings, show_upgrades
from ksql.control.statements import entities as e
from ksql.exec.dataflow import topic_acl
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ksql.control.statements.services import Handlers, Request
    from ksql.sql.catalog import DataSource


def show(stmt: ast.Show, request: Request) -> e.Entity:
    """Return the list that is asked for."""
    return _HANDLERS[stmt.what](stmt, request)


def source_info(source: DataSource) -> e.SourceInfo:
    """Return one line about a source."""
    return e.SourceInfo(
        type=source.kind,
        name=source.name,
        topic=source.topic,
        key_format=source.key_format.name,
        value_format=source.value_format.name,
        is_windowed=source.window is not None,
    )


def _sources(stmt: ast.Show, request: Request) -> e.Entity:
    kind = "STREAM" if stmt.what == "STREAMS" else "TABLE"
    sources = [s for s in describe.visible_sources(request) if s.kind == kind]
    sources.sort(key=lambda source: source.name)
    if stmt.extended:
        return e.SourceDescriptions(
            statement_text=request.text,
            source_descriptions=tuple(
                describe.description(source, request, extended=True) for source in sources
            ),
        )
    rows = tuple(map(source_info, sources))
    if kind == "STREAM":
        return e.Streams(statement_text=request.text, streams=rows)
    return e.Tables(statement_text=request.text, tables=rows)


def _queries(stmt: ast.Show, request: Request) -> e.Entity:
    queries = describe.visible(request.engine.catalog.queries.values(), request)
    pushes = describe.visible_pushes(request)
    if stmt.extended:
        described = [describe.query_description(query, request) for query in queries]
        described += [describe.push_description(push, request) for push in pushes]
        return e.QueryDescriptions(statement_text=request.text, query_descriptions=tuple(described))
    rows = [describe.query_info(query, request) for query in queries]
    rows += [describe.push_info(push) for push in pushes]
    return e.Queries(statement_text=request.text, queries=tuple(rows))


def _topics(stmt: ast.Show, request: Request) -> e.Entity:
    hidden = topic_acl.matching(topic_acl.HIDDEN, request.settings.text(topic_acl.HIDDEN))
    topics = sorted(_visible_topics(request).items())
    rows = [(n, tuple(r)) for n, r in topics if stmt.all_ or not hidden.fullmatch(n)]
    if not stmt.extended:
        infos = tuple(e.TopicInfo(name, replicas) for name, replicas in rows)
        return e.TopicList(statement_text=request.text, topics=infos)
    readers: dict[str, int] = {}
    for query in request.engine.catalog.queries.values():
        for topic in request.services.monitor.committed(query.id):
            readers[topic] = readers.get(topic, 0) + 1
    return e.TopicListExtended(
        statement_text=request.text,
        topics=tuple(
            e.TopicInfoExtended(name, replicas, readers.get(name, 0), readers.get(name, 0))
            for name, replicas in rows
        ),
    )


def _visible_topics(request: Request) -> Mapping[str, Sequence[int]]:
    """Return the topics that the user has a right on, and those of sources that it sees."""
    of_sources = {source.topic for source in describe.visible_sources(request)}
    sees = request.requester.sees
    topics = request.services.monitor.topics()
    return {n: r for n, r in topics.items() if n in of_sources or sees("topic", n)}


def _functions(_stmt: ast.Show, request: Request) -> e.Entity:
    rows = (e.FunctionName(f.name, f.kind, f.category) for f in request.engine.functions.all())
    return e.FunctionNames(statement_text=request.text, functions=tuple(rows))


def _types(_stmt: ast.Show, request: Request) -> e.Entity:
    sees = request.requester.sees
    known = sorted(request.engine.catalog.types.items())
    types = {name: type_ for name, type_ in known if sees("source", name)}
    return e.TypeList(statement_text=request.text, types=types)


_HANDLERS: dict[ast.Catalogue, Callable[[ast.Show, Request], e.Entity]] = {
    "STREAMS": _sources,
    "TABLES": _sources,
    "QUERIES": _queries,
    "TOPICS": _topics,
    "UPGRADES": show_upgrades.show,
    "FUNCTIONS": _functions,
    "TYPES": _types,
    "CONNECTORS": connectors.show,
    "CONNECTOR PLUGINS": connectors.show_plugins,
    "PROPERTIES": lambda _stmt, request: settings.show_properties(request),
    "VARIABLES": lambda _stmt, request: settings.show_variables(request),
}


HANDLERS: Handlers = {
    ast.Show: show,
}
