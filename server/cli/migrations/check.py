"""Statements in the server's sandbox: what each would do, and whether its file allows that."""

from __future__ import annotations

import re
from collections.abc import Sequence

from server.cli.client import Client, JsonObject, ServerFailure
from server.cli.kept import without_secrets
from server.cli.migrations.failure import MigrationFailed
from server.cli.migrations.statements import IN_PLACE, Allowed, FileSession, mode_of
from server.cli.split import Statement

_NOT_FOUND = 404
_PLACE = re.compile(r"\b(line:? )(\d+)((?::|, col: )\d+)", re.IGNORECASE)


class FileRefused(MigrationFailed):
    """A statement that cannot be executed, or that its file does not allow.

    ``at`` is its place among those that were checked; ``answers`` are of those before it.
    """

    def __init__(
        self, statement: Statement, at: int, why: str, answers: Sequence[JsonObject] = ()
    ) -> None:
        text = without_secrets(statement.text)
        super().__init__(f"Failed to execute sql: {text} Error: {why}")
        self.at = at
        self.why = why
        self.answers = answers


def dry_run(
    client: Client, statements: Sequence[Statement], session: FileSession, sequence: int | None
) -> list[JsonObject]:
    """Return what each statement would do, with the effects of those before it.

    Raises: FileRefused for the first that cannot be executed; MigrationFailed for a server that has
        no sandbox for clients; ServerFailure, Unreachable.
    """
    text = "\n".join(map(_in_its_column, statements))
    try:
        return client.dry_run(text, session.properties, session.variables, sequence)
    except ServerFailure as failure:
        if failure.code // 100 == _NOT_FOUND and not failure.statement:
            raise MigrationFailed(
                f"the server at {client.url} has no /ksql/dry-run: it is older than this tool"
            ) from failure
        at = len(failure.entities)
        if at >= len(statements) or failure.statement.strip() != statements[at].text:
            raise  # the request as a whole is at fault
        begins = 1 + sum(one.text.count("\n") + 1 for one in statements[:at])
        why = _moved(failure.message, statements[at].line - begins)
        raise FileRefused(statements[at], at, why, failure.entities) from failure


def _in_its_column(statement: Statement) -> str:
    return " " * (statement.column - 1) + statement.text


def in_its_place(statement: Statement) -> str:
    """Return a statement as the server must get it to count lines and columns as its file does."""
    return "\n" * (statement.line - 1) + _in_its_column(statement)


def _moved(message: str, lines: int) -> str:
    """Return a message whose places are so many lines further down."""
    return _PLACE.sub(lambda place: f"{place[1]}{int(place[2]) + lines}{place[3]}", message)


def disallowed(statement: str, answer: JsonObject, allowed: Allowed) -> str:
    """Return why the head of a file does not allow a replacement; empty if it does."""
    report = answer.get("upgrade")
    mode = mode_of(statement, report)
    if report is None and mode == IN_PLACE:
        return ""
    lacking = allowed.lacks(mode, (report or {}).get("classes", ()))
    if not lacking:
        return ""
    what = f"a {mode}" if mode != IN_PLACE else f"of class {', '.join(lacking)}"
    return (
        f"the replacement is {what}, which the file does not allow. It allows: {allowed}. "
        f"The line '-- allow: {', '.join(lacking)}' at its head would allow it."
    )
