"""A request of some statements: checked as a whole in a sandbox, then executed one by one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ksql.base.errors import KsqlError, StatementError
from ksql.catalog.topic import Topic
from ksql.dataflow.ports import Topics
from ksql.engine.changes import applied
from ksql.engine.prepare import DISTRIBUTED, prepare
from ksql.engine.schemas import forget
from ksql.formats.schema_registry import SandboxRegistry
from ksql.statements.answers import RequestFailed
from ksql.statements.entities import ConsistencyToken, warned
from ksql.statements.services import Request, Services
from ksql.statements.table import HANDLERS
from ksql.syntax import ast
from ksql.syntax.parser import Parsed, RawStatement, parse_one, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ksql.base.config import Settings
    from ksql.catalog.catalog import Catalog
    from ksql.engine.context import Context
    from ksql.replicas.token import Token
    from ksql.statements.entities import Entity


@dataclass
class SandboxTopics:
    """The real topics, and what statements before would make of them (None: deleted)."""

    real: Topics
    changed: dict[str, Topic | None] = field(default_factory=dict)

    def describe(self, name: str) -> Topic | None:
        """Return the topic as it would be."""
        return self.changed[name] if name in self.changed else self.real.describe(name)

    def identity(self, name: str) -> str:
        """Return that of the real one; one that was pretended to be made has none."""
        return "" if name in self.changed else self.real.identity(name)

    def create(self, topic: Topic) -> bool:
        """Pretend to create it."""
        made = self.describe(topic.name) is None
        self.changed[topic.name] = topic
        return made

    def delete(self, names: Iterable[str]) -> None:
        """Pretend to delete."""
        self.changed |= dict.fromkeys(names)


def run(
    text: str,
    services: Services,
    settings: Settings,
    properties: Mapping[str, str],
    variables: Mapping[str, str],
    token: Token | None = None,
) -> list[Entity]:
    """Execute a request.

    Returns: the answers of the statements that have one; with a ``token``, if records were written,
    at last one that names them as well.
    Raises: RequestFailed with the answers of those before the one that failed.
    """
    done: list[Entity] = []
    raw = _split(text)
    request = session(services, settings, properties, variables)
    _sandbox(raw, session(services, settings, properties, variables))
    for each in raw:
        try:
            parsed = parsed_one(each, request)
            request.text = parsed.text
            answer = HANDLERS[type(parsed.statement)](parsed.statement, request)
        except KsqlError as error:
            raise RequestFailed(error, each.text, [*done, *_told(request, token)]) from error
        gaps = request.services.gaps()
        if answer is not None:
            done.append(_incomplete(answer, gaps))
    return [*done, *_told(request, token)]


def _told(request: Request, token: Token | None) -> list[Entity]:
    if token is None or not request.written:
        return []
    text = token.with_(request.written).text()
    return [ConsistencyToken(statement_text=request.text, consistency_token=text)]


def _incomplete(answer: Entity, gaps: Sequence[str]) -> Entity:
    for gap in gaps:
        answer = warned(answer, gap)
    return answer


def is_distributed(text: str, request: Request) -> bool:
    """Return whether a request goes through the command topic, as a whole or in a part.

    What follows a statement that cannot be read is not looked at.

    Raises: RequestFailed if it has no statements at all.
    """
    changing = False
    for each in _split(text):
        try:
            statement = parsed_one(each, request).statement
        except KsqlError:
            return changing
        match statement:
            case ast.SetProperty() | ast.UnsetProperty() | ast.Define() | ast.Undefine():
                HANDLERS[type(statement)](statement, request)
            case ast.QueryControl():
                changing = changing or not _is_push(statement, request.engine.catalog)
            case _:
                changing = changing or isinstance(statement, DISTRIBUTED)
    return changing


def session(
    services: Services,
    settings: Settings,
    properties: Mapping[str, str],
    variables: Mapping[str, str],
) -> Request:
    """Return a request's state before its first statement.

    Raises: RequestFailed, of no statement, for properties that cannot be set.
    """
    try:
        merged = settings.with_overrides(properties)
    except KsqlError as error:
        raise RequestFailed(error) from error
    return Request(services, merged, dict(variables))


def _split(text: str) -> list[RawStatement]:
    try:
        raw = split(text)
    except KsqlError as error:
        raise RequestFailed(error, text) from error
    if not raw:
        raise RequestFailed(StatementError("The request has no statement."), text)
    return raw


def parsed_one(raw: RawStatement, request: Request, catalog: Catalog | None = None) -> Parsed:
    """Parse with the types and variables of the request's moment."""
    substitute = request.settings.flag("ksql.variable.substitution.enable")
    types = (catalog or request.engine.catalog).types
    return parse_one(raw, types=types, variables=request.variables if substitute else None)


def _sandbox(raw: list[RawStatement], request: Request) -> None:
    """Check all statements against what those before them would leave; nothing is changed.

    Raises: RequestFailed for the first that could not be executed.
    """
    context = request.engine.context(request.settings, 0)
    registry = None if context.registry is None else SandboxRegistry(context.registry)
    context = replace(context, topics=SandboxTopics(context.topics), registry=registry)
    for each in raw:
        try:
            parsed = parsed_one(each, request, context.catalog)
            statement = parsed.statement
            if statement.__class__ not in HANDLERS:
                raise StatementError(f"{type(statement).__name__} cannot be executed here")
            context = _pretend(statement, parsed.text, request, context)
        except KsqlError as error:
            raise RequestFailed(error, each.text) from error


def _is_push(statement: ast.QueryControl, catalog: Catalog) -> bool:
    """Return whether it may mean a push query, which no command knows."""
    wanted = statement.query_id
    return wanted is not None and catalog.query(wanted) is None


def _pretend(statement: ast.Statement, text: str, request: Request, context: Context) -> Context:
    match statement:
        case ast.SetProperty() | ast.UnsetProperty() | ast.Define() | ast.Undefine():
            HANDLERS[type(statement)](statement, request)
            return replace(context, settings=request.settings)
        case ast.Query() | ast.PrintTopic():
            HANDLERS[type(statement)](statement, request)
            return context
        case ast.InsertValues():
            request.services.check_kafka()
            return context
        case _ if isinstance(statement, DISTRIBUTED):
            if isinstance(statement, ast.QueryControl) and _is_push(statement, context.catalog):
                return context
            request.services.check_kafka()
            try:
                prepared = prepare(statement, text, context)
            except StatementError as refused:
                if isinstance(statement, ast.CreateAsSelect) and statement.or_replace:
                    request.engine.note_refusal(statement.name, refused, text)
                raise
            catalog = context.catalog
            for change in prepared.changes:
                catalog = applied(catalog, change)
            for topic in prepared.new_topics:
                context.topics.create(topic)
            context.topics.delete(prepared.doomed_topics)
            if context.registry is not None:
                for each in prepared.registrations:
                    context.registry.register(each.subject, each.schema)
                forget(prepared.doomed_subjects, context.registry)
            return replace(context, catalog=catalog, offset=context.offset + 1)
        case _:
            return context
