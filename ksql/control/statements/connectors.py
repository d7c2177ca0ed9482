"""Connectors: statements that act on Kafka Connect at once, and are in no command topic.

Source: ksqlDB developer guide, CREATE CONNECTOR and its like.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from ksql.control.statements import connector_entities as c
from ksql.control.statements import describe as sources
from ksql.control.statements import entities as e
from ksql.control.statements.masking import masked
from ksql.control.statements.services import ConditionPending, Handlers, Request
from ksql.core import KsqlError, StatementError, excerpt, hidden_if_secret
from ksql.kafka.connect import (
    CLASS,
    UNREACHABLE,
    ConnectorExists,
    ConnectRejects,
    ConnectStarting,
    NoConnectConfigured,
    NoSuchConnector,
    known_topics,
)
from ksql.sql.syntax import ast, expr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ksql.core import Span
    from ksql.kafka.connect import ConnectClient, ConnectorInfo, ConnectorStatus, Listed

_PATIENCE_MS: Final = 60_000

T = TypeVar("T")


class ConnectorStatementFailed(KsqlError):
    """A statement about connectors that failed; ``doing`` says what was to be done."""

    def __init__(self, doing: str, why: KsqlError, span: Span) -> None:
        super().__init__(
            f"Failed to {doing}: {why.message}", detail=why.detail, hint=why.hint, span=span
        )
        self.code = why.code


class BadConnector(StatementError):
    """A configuration that its connector's class does not take, or that has no class."""


def create(stmt: ast.CreateConnector, request: Request) -> e.Entity:
    """Carry out CREATE SOURCE|SINK CONNECTOR.

    Raises: ConnectorStatementFailed.
    """
    doing = f"create connector {excerpt(stmt.name)}"
    with _about(doing, stmt.span, request) as client:
        config = _checked(stmt, client)
        if config is None:
            return _exists(stmt, request)
        try:
            created = client.create(stmt.name, config)
        except ConnectorExists:
            if stmt.if_not_exists:
                return _exists(stmt, request)
            raise
    info = c.CreatedConnector(
        created.name,
        _shown(created.config),
        tuple(c.ConnectorTask(created.name, task) for task in created.tasks),
        created.type,
    )
    entity = c.ConnectorInfoEntity(statement_text=masked(request.text), info=info)
    if created.type in ("source", "sink") and created.type.upper() != stmt.scope:
        return e.warned(entity, f"{created.config.get(CLASS, '')} is a {created.type} connector.")
    return entity


def check(stmt: ast.CreateConnector | ast.DropConnector, request: Request) -> str:
    """Return what the statement would do, for a dry run; nothing is changed.

    Raises: ConnectorStatementFailed.
    """
    match stmt:
        case ast.CreateConnector():
            with _about(f"create connector {excerpt(stmt.name)}", stmt.span, request) as client:
                is_new = _checked(stmt, client) is not None
            return f"Created connector {stmt.name}" if is_new else _exists(stmt, request).message
        case ast.DropConnector():
            try:
                with _about(f"drop connector {excerpt(stmt.name)}", stmt.span, request) as client:
                    client.info(stmt.name)
            except ConnectorStatementFailed as failed:
                if not _excused(stmt, failed):
                    raise
                return _gone(stmt, request).message
            return f"Dropped connector {stmt.name}"


def drop(stmt: ast.DropConnector, request: Request) -> e.Entity:
    """Carry out DROP CONNECTOR; with IF EXISTS, one that is not there is a warning.

    Raises: ConnectorStatementFailed.
    """
    try:
        with _about(f"drop connector {excerpt(stmt.name)}", stmt.span, request) as client:
            client.delete(stmt.name)
    except ConnectorStatementFailed as failed:
        if not _excused(stmt, failed):
            raise
        return _gone(stmt, request)
    return c.DropConnector(statement_text=request.text, connector_name=stmt.name)


def describe(stmt: ast.DescribeConnector, request: Request) -> e.Entity:
    """Answer DESCRIBE CONNECTOR with its state, its topics, and the sources over these.

    Raises: ConnectorStatementFailed.
    """
    warnings: tuple[e.EntityWarning, ...] = ()
    with _about(f"describe connector {excerpt(stmt.name)}", stmt.span, request) as client:
        info = client.info(stmt.name)
        status = client.status(stmt.name)
        try:
            active = client.topics(stmt.name)
        except (ConnectRejects, NoSuchConnector) as refused:  # a worker may not track them
            active = ()
            text = f"Could not list related topics due to error: {refused.message}"
            warnings = (e.EntityWarning(text),)
    topics = known_topics(info.config, active)
    there = request.services.monitor.topics() if topics else {}
    warnings += tuple(
        e.EntityWarning(f"Topic {topic} does not exist.") for topic in topics if topic not in there
    )
    visible = sorted(sources.visible_sources(request), key=lambda source: source.name)
    return c.ConnectorDescription(
        statement_text=request.text,
        warnings=warnings,
        connector_class=info.config.get(CLASS, ""),
        status=_status_form(info, status),
        sources=tuple(
            sources.description(source, request, extended=False)
            for source in visible
            if source.topic in topics
        ),
        topics=topics,
    )


def show(stmt: ast.Show, request: Request) -> e.Entity:
    """Answer SHOW [SOURCE|SINK] CONNECTORS.

    Raises: ConnectorStatementFailed.
    """
    listed, warnings = _listed("list connectors", stmt, request, lambda client: client.connectors())
    sees = request.requester.sees
    shown = (
        each
        for each in listed
        if stmt.scope in ("", each.info.type.upper()) and sees("connector", each.info.name)
    )
    return c.ConnectorList(
        statement_text=request.text, warnings=warnings, connectors=tuple(map(_summary, shown))
    )


def show_plugins(stmt: ast.Show, request: Request) -> e.Entity:
    """Answer SHOW CONNECTOR PLUGINS.

    Raises: ConnectorStatementFailed.
    """
    plugins, warnings = _listed(
        "list connector plugins", stmt, request, lambda client: client.plugins()
    )
    return c.ConnectorPluginsList(
        statement_text=request.text,
        warnings=warnings,
        connectors_plugins=tuple(
            c.ConnectorPlugin(plugin.class_name, plugin.type, plugin.version) for plugin in plugins
        ),
    )


@contextmanager
def _about(doing: str, span: Span, request: Request) -> Iterator[ConnectClient]:
    """Lend the client; what goes wrong says what was to be done.

    Raises: ConnectorStatementFailed; ConditionPending while an embedded worker starts.
    """
    try:
        yield request.services.connect.client()
    except ConnectStarting as starting:
        failed = ConnectorStatementFailed(doing, starting, span)
        raise ConditionPending(failed, _PATIENCE_MS) from starting
    except KsqlError as error:
        raise ConnectorStatementFailed(doing, error, span) from error


def _checked(stmt: ast.CreateConnector, client: ConnectClient) -> Mapping[str, str] | None:
    """Return the configuration if the connector can be made; None if IF NOT EXISTS applies.

    Raises: ConnectorExists, BadConnector, UnknownPlugin.
    """
    config = _config(stmt)
    if stmt.name in client.names():
        if stmt.if_not_exists:
            return None
        raise ConnectorExists(stmt.name)
    if not config.get(CLASS):
        raise BadConnector(
            "Validation error: the configuration names no class",
            hint=f"Add '{CLASS}'='..'; SHOW CONNECTOR PLUGINS; lists the classes.",
        )
    if stmt.name in UNREACHABLE:
        raise BadConnector(
            f"Validation error: no connector can be called {stmt.name}",
            detail="Kafka Connect's paths could not name it again, not even to drop it.",
            hint="Choose another name.",
        )
    if config.get("name", stmt.name) != stmt.name:
        raise BadConnector(
            f"Validation error: 'name' is {excerpt(config['name'])}, and the connector is called "
            f"{excerpt(stmt.name)}",
            hint="Leave 'name' out. A name of small letters is written in quotes.",
        )
    config = {**client.defaults(client.plugin(config[CLASS])), **config}
    problems = client.problems(stmt.name, config)
    if problems:
        raise BadConnector("Validation error: " + "\n".join(problems))
    return config


def _config(stmt: ast.CreateConnector) -> dict[str, str]:
    """Return what is sent to Kafka Connect: all of WITH, each value as a text."""
    config = {}
    for each in stmt.properties:
        match each.value:
            case expr.NullLit() | expr.Variable():
                raise BadConnector(f"Validation error: {excerpt(each.name)} has no value")
            case expr.BoolLit(value):
                config[each.name] = str(value).lower()
            case literal:
                config[each.name] = str(literal.value)
    return config


def _shown(config: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration without its secrets."""
    return {name: hidden_if_secret(name, value) for name, value in config.items()}


def _exists(stmt: ast.CreateConnector, request: Request) -> e.WarningEntity:
    return e.WarningEntity(
        statement_text=masked(request.text),
        message=f"Connector {excerpt(stmt.name)} already exists",
    )


def _excused(stmt: ast.DropConnector, failed: ConnectorStatementFailed) -> bool:
    """Return whether there is nothing to drop, and the statement takes that."""
    return stmt.if_exists and isinstance(failed.__cause__, NoSuchConnector | NoConnectConfigured)


def _gone(stmt: ast.DropConnector, request: Request) -> e.WarningEntity:
    return e.WarningEntity(
        statement_text=request.text, message=f"Connector '{excerpt(stmt.name)}' does not exist."
    )


def _listed(
    doing: str, stmt: ast.Show, request: Request, ask: Callable[[ConnectClient], tuple[T, ...]]
) -> tuple[tuple[T, ...], tuple[e.EntityWarning, ...]]:
    """Return a list of Kafka Connect; without one nothing, and a warning about that.

    Raises: ConnectorStatementFailed.
    """
    try:
        with _about(doing, stmt.span, request) as client:
            return ask(client), ()
    except ConnectorStatementFailed as failed:
        why = failed.__cause__
        if not isinstance(why, NoConnectConfigured):
            raise
        return (), (e.EntityWarning(why.text().replace("\n", ". ")),)


def _summary(each: Listed) -> c.ConnectorInfo:
    state = "UNASSIGNED" if each.status is None else each.status.summary()
    class_name = each.info.config.get(CLASS, "")
    return c.ConnectorInfo(each.info.name, each.info.type, class_name, state)


def _status_form(info: ConnectorInfo, status: ConnectorStatus | None) -> dict[str, object]:
    """Return a status as Kafka Connect writes it; one that is not known yet is UNASSIGNED."""
    connector: dict[str, object] = {"state": "UNASSIGNED", "worker_id": "", "trace": None}
    if status is None:
        return {"name": info.name, "connector": connector, "tasks": [], "type": info.type}
    connector = {
        "state": status.state,
        "worker_id": status.worker_id,
        "trace": info.masked(status.trace) or None,
    }
    tasks = [
        {
            "id": t.id,
            "state": t.state,
            "worker_id": t.worker_id,
            "trace": info.masked(t.trace) or None,
        }
        for t in status.tasks
    ]
    return {"name": status.name, "connector": connector, "tasks": tasks, "type": status.type}


HANDLERS: Handlers = {
    ast.CreateConnector: create,
    ast.DropConnector: drop,
    ast.DescribeConnector: describe,
}
