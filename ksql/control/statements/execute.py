"""Executes a request's statements by their handlers, after a sandbox; health and identity, too."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ksql.control.access import digest
from ksql.control.engine.changes import applied
from ksql.control.engine.context import PlanningContext, Prepared
from ksql.control.planning import rebuild
from ksql.control.planning.prepare import DISTRIBUTED, prepare
from ksql.control.planning.schemas import forget
from ksql.control.statements import (
    asserts,
    connectors,
    delete_from,
    describe,
    distributed,
    explain,
    insert_values,
    settings,
    show,
    show_upgrades,
)
from ksql.control.statements.bounds import AnswerSize, Unpacked, statements_of
from ksql.control.statements.delete_from import check_delete
from ksql.control.statements.entities import ConsistencyToken, Entity, warned
from ksql.control.statements.insert_values import check_insert
from ksql.control.statements.sandbox_topics import SandboxTopics
from ksql.control.statements.services import ConditionPending, Handler, Handlers, Request, Services
from ksql.core import KsqlError, NotSupportedYet, QueryOnWrongEndpoint, StatementError, within_span
from ksql.core.types import SqlType
from ksql.formats import SandboxRegistry
from ksql.sql.catalog import Catalog
from ksql.sql.syntax import Parsed, RawStatement, ast, parse_one

if TYPE_CHECKING:
    from ksql.core import Settings, Token


_POLL_S = 0.1
_REQUEST = "Request"
"""The kind of what is refused as a whole, before its first statement is carried out."""


def run(
    text: str,
    services: Services,
    settings: Settings,
    properties: Mapping[str, str],
    variables: Mapping[str, str],
    token: Token | None = None,
    user: str = "",
) -> list[Entity]:
    """Execute a request.

    Returns: the answers of the statements that have one; with a ``token``, if records were written,
    at last one that names them as well.
    Raises: RequestFailed with the answers of those before the one that failed.
    """
    running = Execution(text, services, settings, properties, variables, token, user)
    while (done := running.proceed()) is None:
        time.sleep(_POLL_S)
    return done


class Execution:
    """A request under way; a statement that waits is tried again, and meanwhile holds no thread.

    Raises: RequestFailed for a text without statements, and for what the sandbox refuses.
    """

    def __init__(
        self,
        text: str,
        services: Services,
        settings: Settings,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        token: Token | None = None,
        user: str = "",
    ) -> None:
        raw = split_request(text, settings)
        self._request = session(services, settings, properties, variables, user)
        self._token = token
        self._done: list[Entity] = []
        self._deadline: float | None = None
        self._size = AnswerSize(settings)
        sandboxed = session(services, settings, properties, variables, user)
        try:
            self._left = deque(sandbox(raw, sandboxed))
        except RequestFailed:
            services.statements.add(_REQUEST, "refused")
            raise

    def proceed(self) -> list[Entity] | None:
        while self._left:
            try:
                with within_span("statement", _described(self._left[0]), ConditionPending):
                    self._carry_out(self._left[0])
            except ConditionPending as waiting:
                self._wait(waiting)
                return None
            except KsqlError as error:
                raise self._failed(error) from error
            self._left.popleft()
            self._deadline = None
        return [*self._done, *_token_entities(self._request, self._token)]

    def _carry_out(self, checked: CheckedStatement) -> None:
        parsed = checked.parsed_for(_names(self._request))
        request = self._request
        request.text = parsed.text
        request.requester.check(parsed.statement, request.engine.catalog, request.settings)
        answer = HANDLERS[type(parsed.statement)](parsed.statement, self._request)
        self._count(checked, "done")
        gaps = self._request.services.gaps()
        if answer is not None:
            self._size.add(answer)
            self._done.append(_incomplete(answer, gaps))

    def _wait(self, waiting: ConditionPending) -> None:
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + waiting.patience_ms / 1000
        if now >= self._deadline:
            raise self._failed(waiting.error)

    def _count(self, checked: CheckedStatement, outcome: str) -> None:
        kind = type(checked.parsed.statement).__name__
        self._request.services.statements.add(kind, outcome)

    def _failed(self, error: KsqlError) -> RequestFailed:
        self._count(self._left[0], "failed")
        entities = [*self._done, *_token_entities(self._request, self._token)]
        return RequestFailed(error, self._left[0].raw.text, entities)


def _described(checked: CheckedStatement) -> dict[str, str]:
    """Return what a span says of a statement; its text may hold secrets."""
    kind = type(checked.parsed.statement).__name__
    return {"statement.kind": kind, "statement.digest": digest(checked.raw.text)}


def _token_entities(request: Request, token: Token | None) -> list[Entity]:
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

    The leader is asked for the history of upgrades, too: it alone knows what is being built.
    What follows a statement that cannot be read is not looked at.

    Raises: RequestFailed if it has no statements at all.
    """
    changing = False
    unpacked = Unpacked(request.settings)
    for raw in split_request(text, request.settings):
        try:
            parsed = parsed_one(raw, request)
            unpacked.add(parsed)
        except KsqlError:
            return changing
        statement = parsed.statement
        match statement:
            case ast.SetProperty() | ast.UnsetProperty() | ast.Define() | ast.Undefine():
                HANDLERS[type(statement)](statement, request)
            case ast.QueryControl():
                changing = changing or not _is_push(statement, request.engine.catalog)
            case ast.Show("UPGRADES") | ast.DescribeUpgrade():
                changing = True
            case _:
                changing = changing or isinstance(statement, DISTRIBUTED)
    return changing


def session(
    services: Services,
    settings: Settings,
    properties: Mapping[str, str],
    variables: Mapping[str, str],
    user: str = "",
) -> Request:
    """Return a request's state before its first statement.

    Raises: RequestFailed, of no statement, for properties that cannot be set.
    """
    try:
        merged = settings.with_overrides(properties)
    except KsqlError as error:
        raise RequestFailed(error) from error
    return Request(services, merged, dict(variables), user=user)


def split_request(text: str, settings: Settings) -> list[RawStatement]:
    """Return the statements of a request's text.

    Raises: RequestFailed, also for a text that has none.
    """
    try:
        raw = statements_of(text, settings)
    except KsqlError as error:
        raise RequestFailed(error, text) from error
    if not raw:
        raise RequestFailed(StatementError("The request has no statement."), text)
    return raw


@dataclass(frozen=True, slots=True)
class _Names:
    """All that the meaning of a text depends on: types, and variables if they are substituted."""

    types: Mapping[str, SqlType]
    variables: Mapping[str, str] | None

    def parse(self, raw: RawStatement) -> Parsed:
        return parse_one(raw, types=self.types, variables=self.variables)


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement as the sandbox has parsed it; ``prepared`` has the effects of a distributed one.

    ``catalog`` is the one before the statement.
    """

    raw: RawStatement
    parsed: Parsed
    names: _Names
    catalog: Catalog
    prepared: Prepared | None = None

    def parsed_for(self, names: _Names) -> Parsed:
        """Return it, parsed once more only if other commands have changed a type meanwhile."""
        return self.parsed if names == self.names else names.parse(self.raw)


def _names(request: Request, catalog: Catalog | None = None) -> _Names:
    """Return those of the request's moment; they stay as they are."""
    substitute = request.settings.flag("ksql.variable.substitution.enable")
    types = (catalog or request.engine.catalog).types
    return _Names(types, dict(request.variables) if substitute else None)


def single(
    text: str,
    services: Services,
    settings: Settings,
    properties: Mapping[str, str],
    variables: Mapping[str, str],
) -> tuple[Request, RawStatement, Parsed]:
    """Read a text of one statement that its sender may send; return the request's state, too.

    Raises: RequestFailed.
    """
    request = session(services, settings, properties, variables)
    shown = text
    try:
        raw = statements_of(text, settings)
        if len(raw) != 1:
            raise StatementError(f"Expected exactly one KSQL statement; found {len(raw)} instead")
        shown = raw[0].text
        parsed = parsed_one(raw[0], request)
        admit(parsed, shown, request, request.engine.catalog)
        return request, raw[0], parsed
    except KsqlError as error:
        raise RequestFailed(error, shown) from error


def parsed_one(raw: RawStatement, request: Request, catalog: Catalog | None = None) -> Parsed:
    """Parse with the types and variables of the request's inputs."""
    return _names(request, catalog).parse(raw)


def sandbox(
    raw: list[RawStatement], request: Request, *, recorded: bool = True
) -> Iterator[CheckedStatement]:
    """Check all statements against what those before them would leave; nothing is changed.

    ``recorded``: the history keeps a replacement that is refused.
    Raises: RequestFailed for the first that could not be executed.
    """
    context = request.engine.context(request.settings, 0)
    registry = None if context.registry is None else SandboxRegistry(context.registry)
    context = replace(context, topics=SandboxTopics(context.topics), registry=registry)
    unpacked = Unpacked(request.settings)
    for part in raw:
        try:
            names = _names(request, context.catalog)
            parsed = names.parse(part)
            admit(parsed, part.text, request, context.catalog)
            unpacked.add(parsed)
            if parsed.statement.__class__ not in HANDLERS:
                raise StatementError(f"{type(parsed.statement).__name__} cannot be executed here")
            catalog = context.catalog
            if len(raw) > 1 or not recorded:  # a statement alone is checked as it is carried out
                _check_row(parsed.statement, request, catalog)
            context, prepared = _pretend(parsed, request, context, recorded=recorded)
        except KsqlError as error:
            raise RequestFailed(error, part.text) from error
        yield CheckedStatement(part, parsed, names, catalog, prepared)


def _check_row(statement: ast.Statement, request: Request, catalog: Catalog) -> None:
    match statement:
        case ast.InsertValues():
            check_insert(statement, request, catalog)
        case ast.DeleteFrom():
            check_delete(statement, request, catalog)
        case _:
            pass


def admit(parsed: Parsed, text: str, request: Request, catalog: Catalog) -> None:
    """Check that who has sent a statement may do so, before anything of it is looked up.

    Raises: NotPermitted.
    """
    request.requester.admit(parsed.statement, text, catalog, request.settings)


def _is_push(statement: ast.QueryControl, catalog: Catalog) -> bool:
    """Return whether it may mean a push query, which no command knows."""
    query_id = statement.query_id
    return query_id is not None and catalog.query(query_id) is None


def _pretend(
    parsed: Parsed, request: Request, context: PlanningContext, *, recorded: bool
) -> tuple[PlanningContext, Prepared | None]:
    statement = parsed.statement
    match statement:
        case ast.SetProperty() | ast.UnsetProperty() | ast.Define() | ast.Undefine():
            HANDLERS[type(statement)](statement, request)
            return replace(context, settings=request.settings), None
        case ast.Query() | ast.PrintTopic():
            HANDLERS[type(statement)](statement, request)
            return context, None
        case ast.InsertValues() | ast.DeleteFrom():
            request.services.check_kafka()
            return context, None
        case ast.QueryControl() if _is_push(statement, context.catalog):
            return context, None
        case _ if isinstance(statement, DISTRIBUTED):
            request.services.check_kafka()
            try:
                prepared = prepare(statement, parsed.text, context)
            except StatementError as refused:
                if recorded:
                    _note_refusal(statement, refused, parsed.text, request)
                raise show_upgrades.with_former(refused, request.services) from None
            return _left_by(prepared, context), prepared
        case _:
            return context, None


def _note_refusal(
    statement: ast.Statement, refused: StatementError, text: str, request: Request
) -> None:
    """Have a replacement that was refused kept by the history."""
    match statement:
        case ast.CreateAsSelect(or_replace=True) | ast.ReplaceQuery():
            query = rebuild.replaced_by(statement, request.engine.catalog)
        case _:
            return
    if query is not None:
        mode = rebuild.stated_mode(statement)
        request.engine.note_refusal(query, refused, text, mode, request.user)


def _left_by(prepared: Prepared, context: PlanningContext) -> PlanningContext:
    """Return the sandbox after a statement."""
    catalog = context.catalog
    for change in prepared.changes:
        catalog = applied(catalog, change)
    for topic in prepared.new_topics:
        context.topics.create(topic)
    context.topics.delete(prepared.doomed_topics)
    if context.registry is not None:
        for registration in (*prepared.registrations, *prepared.later_registrations):
            context.registry.register(registration.subject, registration.schema)
        forget(prepared.doomed_subjects, context.registry)
    return replace(context, catalog=catalog, offset=context.offset + 1)


class RequestFailed(Exception):
    """A statement of a request failed; those before it were executed.

    ``statement_text`` is empty when the request as a whole is at fault (a syntax error keeps the
    text that does not parse).
    """

    def __init__(
        self, error: KsqlError, statement_text: str = "", entities: Sequence[Entity] = ()
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.statement_text = statement_text
        self.entities = tuple(entities)


class UnknownField(StatementError):
    """A row with a field that the stream does not have: no later row can be better."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The identity of the answering server."""

    version: str
    kafka_cluster_id: str
    ksql_service_id: str
    server_status: Literal["RUNNING", "DEGRADED", "ERROR"] = "RUNNING"


@dataclass(frozen=True, slots=True)
class Health:
    """Whether each part works.

    ``details`` holds one verdict per part (metastore, kafka, commandRunner, and ours). ``reasons``
    says what is wrong with unhealthy parts, as far as it is known.
    """

    details: Mapping[str, bool] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    server_state: Literal["INITIALIZING", "READY", "TERMINATING", "TERMINATED"] = "READY"

    @property
    def is_healthy(self) -> bool:
        """Whether all parts are well."""
        return all(self.details.values())


def _wrong_endpoint(_stmt: ast.Statement, _request: Request) -> None:
    raise QueryOnWrongEndpoint(
        "The following statement types should be issued to the websocket endpoint '/query': "
        "SELECT and PRINT.",
        hint="Send it to /query-stream or /query; over a websocket, to /ws/query.",
    )


def _not_yet(what: str) -> Handler:
    def handle(stmt: Any, _request: Request) -> None:
        raise NotSupportedYet(what, span=stmt.span)

    return handle


HANDLERS: Handlers = {
    **dict.fromkeys(DISTRIBUTED, distributed.execute),
    **asserts.HANDLERS,
    **connectors.HANDLERS,
    **delete_from.HANDLERS,
    **describe.HANDLERS,
    **explain.HANDLERS,
    **insert_values.HANDLERS,
    **settings.HANDLERS,
    **show.HANDLERS,
    **show_upgrades.HANDLERS,
    ast.Query: _wrong_endpoint,
    ast.PrintTopic: _wrong_endpoint,
    ast.AssertValues: _not_yet("ASSERT VALUES outside of a test file"),
    ast.AssertNullValues: _not_yet("ASSERT NULL VALUES outside of a test file"),
    ast.AssertSource: _not_yet("ASSERT STREAM or ASSERT TABLE outside of a test file"),
    ast.RunScript: _not_yet("RUN SCRIPT on the server"),
}
