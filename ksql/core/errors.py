"""The base of all errors (code, fact, detail, hint, place in the text), and shortened texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Where a piece of text starts and ends; line and column count from 1 as ksqlDB prints them.

    ``start`` and ``end`` are character offsets into the whole text, end exclusive.
    """

    start: int
    end: int
    line: int
    column: int


class KsqlError(Exception):
    """The root of all errors that are meant for a user.

    ``code`` is ksqlDB's error code; the HTTP status is ``code // 100``.
    ``message`` states the fact, ``detail`` gives more of it, ``hint`` says what to do.
    """

    code = 40000
    operator = False
    """At a start: whether somebody has to change something, as every later try fails alike."""

    def __init__(
        self, message: str, *, detail: str = "", hint: str = "", span: Span | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.span = span

    def text(self) -> str:
        """Return the whole error as a user reads it: place, fact, detail, hint."""
        position = f"line {self.span.line}:{self.span.column}: " if self.span else ""
        parts = [position + self.message, self.detail, self.hint]
        return "\n".join(part for part in parts if part)


class StatementError(KsqlError):
    """A statement that cannot be executed (ksqlDB's KsqlStatementException)."""

    code = 40001

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        span: Span | None = None,
        statement: str = "",
    ) -> None:
        super().__init__(message, detail=detail, hint=hint, span=span)
        self.statement = statement


PREPARING = "Failed to prepare statement: "
"""How ksqlDB begins what it finds wrong with a statement that is in the language."""
RESOLVING = "Exception while preparing statement: "
"""How it begins what it finds when it looks up the names of such a statement."""


class ParseError(StatementError):
    """A text that is not in the language (ksqlDB's ParseFailedException)."""


class NotSupportedYet(StatementError):
    """A construct of the language that this version parses but does not run."""

    def __init__(self, what: str, *, span: Span | None = None) -> None:
        super().__init__(f"{what} is not supported yet", span=span)


class UnknownName(StatementError):
    """A stream, table, column, function, type or query that does not exist."""

    def __init__(
        self, message: str, near: tuple[str, ...] = (), *, span: Span | None = None
    ) -> None:
        hint = f"Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(message, hint=hint, span=span)


class QueryOnWrongEndpoint(KsqlError):
    """A query or PRINT that was sent to the endpoint for statements."""

    code = 40002


class NotFound(KsqlError):
    """A resource of the REST interface that does not exist."""

    code = 40400


class AssertionFailed(KsqlError):
    """An ASSERT statement whose condition did not come true in time."""

    code = 41700


class TooManyRequests(KsqlError):
    """A limit of what the server does at a time has been reached; later it may be done."""

    code = 42900


class RegistryMissing(KsqlError):
    """A format needs a schema registry and none is configured."""

    code = 42801


class ServerError(KsqlError):
    """Something failed that is not the user's doing."""

    code = 50000


class QueryFailed(KsqlError):
    """A record that a running query may not skip: the query stops here until it can continue.

    ``entry`` is what the processing log says of it: operator, message, row.
    """

    code = 50000

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        entry: tuple[str, str, object] | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.entry = entry

    def __str__(self) -> str:
        """Return one line: all that is left of it once a worker's stack trace has been read."""
        said = f"{self.message.rstrip('.')}: {self.detail}" if self.detail else self.message
        return f"{said}. {self.hint}" if self.hint else said


class CommandTimeout(KsqlError):
    """The command sequence number that was asked for did not arrive in time."""

    code = 50301


class NotReady(KsqlError):
    """The service is still starting."""

    code = 50302


class StartError(KsqlError):
    """The service cannot start: a port, a directory, a broker, Java."""

    code = 50000
    operator = True


EXCERPT = 200
"""Characters of a user's value in a message."""


def excerpt(text: str, longest: int = EXCERPT) -> str:
    """Return the text, or its start and how much was left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text) - longest} more characters)"
