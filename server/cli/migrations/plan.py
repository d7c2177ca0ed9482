"""``plan``: what the files that are due would do, all of them in one sandbox of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from server.cli.client import Client, JsonObject
from server.cli.grid import Grid, clean
from server.cli.kept import without_secrets
from server.cli.migrations.apply import Progress, Target, due, progress_key
from server.cli.migrations.check import FileRefused, disallowed, dry_run
from server.cli.migrations.failure import MigrationFailed
from server.cli.migrations.metadata import NONE, Metadata
from server.cli.migrations.project import MigrationFile
from server.cli.migrations.statements import (
    IN_PLACE,
    Allowed,
    FileSession,
    allowed_by,
    check_supported,
    mode_of,
    statements_of,
)
from server.cli.screen import Screen
from server.cli.split import Statement

HEADERS = ("#", "Statement", "Effect", "Class", "Mode")
_SHOWN = 60  # characters of a statement
_UNSAID = {
    "SET": "Holds for this file",
    "UNSET": "Holds for this file",
    "DEFINE": "Holds for this file",
    "UNDEFINE": "Holds for this file",
    "INSERT": "Writes a record",
    "DELETE": "Deletes a row",
    "ASSERT": "Is checked by apply",
}
"""The effects of statements of which the server has nothing to say."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that is due; its first ``done`` statements were carried out by an earlier try."""

    file: MigrationFile
    allowed: Allowed
    statements: tuple[Statement, ...]
    done: int

    @classmethod
    def of(
        cls, file: MigrationFile, metadata: Metadata | None, variables: Mapping[str, str]
    ) -> PlannedFile:
        """Read a file; ``metadata`` knows what of it was carried out.

        Raises: MigrationFailed.
        """
        text = file.read().text()
        statements = statements_of(text)
        for statement in statements:
            check_supported(statement)
        kept = Progress(0, "")
        if metadata is not None:
            kept = Progress.read(metadata.entry(progress_key(file.version)))
        done = kept.count if Progress.of(statements[: kept.count], variables) == kept else 0
        return cls(file, allowed_by(text), statements, done)


@dataclass(frozen=True, slots=True)
class _Line:
    """One statement of the sandbox; those between files have no file."""

    statement: Statement
    file: PlannedFile | None = None
    number: int = 0


def plan(
    client: Client,
    metadata: Metadata,
    files: Sequence[MigrationFile],
    target: Target,
    variables: Mapping[str, str],
    screen: Screen,
) -> None:
    """Print what the files would do, statement by statement.

    Raises: MigrationFailed if one of them would fail, or does what its file does not allow.
    """
    known = metadata if metadata.is_there() else None
    if known is None:
        screen.lines(["Schema metadata has not been initialized: all files are due."])
    pending = due(files, NONE if known is None else known.latest_migrated(), target)
    if not pending:
        screen.lines(["No eligible migrations found."])
        return
    planned = [PlannedFile.of(file, known, variables) for file in pending]
    lines = _lines(planned, variables)
    answers, refused = _answers(client, [line.statement for line in lines], variables)
    problems = _show(planned, lines, answers, refused, screen)
    if refused is not None and not problems:  # it is of none of the lines that are shown
        raise refused
    if problems:
        raise MigrationFailed("\n".join(problems))
    screen.lines([f"{len(planned)} migration file(s) can be applied. Nothing was carried out."])


def _answers(
    client: Client, statements: Sequence[Statement], variables: Mapping[str, str]
) -> tuple[Sequence[JsonObject], FileRefused | None]:
    if not statements:
        return [], None
    try:
        return dry_run(client, statements, FileSession(dict(variables)), None), None
    except FileRefused as refused:
        return refused.answers, refused


def _lines(planned: Sequence[PlannedFile], variables: Mapping[str, str]) -> list[_Line]:
    """Return the statements of all files; between two, what undoes the settings of the first."""
    lines = []
    for one in planned:
        session = FileSession(dict(variables))
        for number, statement in enumerate(one.statements, 1):
            if session.take(statement.text) or number > one.done:
                lines.append(_Line(statement, one, number))
        if one is not planned[-1]:
            lines += [_Line(Statement(text)) for text in session.undone(variables)]
    return lines


def _show(
    planned: Sequence[PlannedFile],
    lines: Sequence[_Line],
    answers: Sequence[JsonObject],
    refused: FileRefused | None,
    screen: Screen,
) -> list[str]:
    """Print a table for each file; return what is wrong."""
    problems: list[str] = []
    for one in planned:
        named = one.file.path.name
        screen.show(Text(f"Version {one.file.version}: {one.file.name}", style="bold"))
        rows = [
            [str(number), _short(statement.text), "carried out already", "", ""]
            for number, statement in enumerate(one.statements[: one.done], 1)
        ]
        for at, line in enumerate(lines):
            if line.file is not one or line.number <= one.done:
                continue
            effect, class_, mode = "not checked", "", ""
            if at < len(answers):
                effect, class_, mode = _effect(answers[at])
                why = disallowed(str(answers[at]["statementText"]), answers[at], one.allowed)
                if why:
                    effect = "not allowed"
                    problems.append(f"{named}, statement {line.number}: {why}")
            elif refused is not None and at == refused.at:
                effect = "fails"
                problems.append(f"{named}, statement {line.number}: {refused.why}")
            rows.append([str(line.number), _short(line.statement.text), effect, class_, mode])
        screen.show(Grid(HEADERS, rows))
        screen.lines([""])
    return problems


def _effect(answer: JsonObject) -> tuple[str, str, str]:
    """Return the cells of a statement: what it does, and of a replacement its class and mode."""
    text, report = str(answer["statementText"]), answer.get("upgrade")
    mode = mode_of(text, report)
    if report is None:
        message = clean(answer["message"]) or _UNSAID.get(text.split(maxsplit=1)[0].upper(), "")
        return message, "", "" if mode == IN_PLACE else mode
    query = report.get("queryId")
    effect = f"Replaces {query}" if query else "Replaces the query"
    return effect, ", ".join(report["classes"]), mode


def _short(text: str) -> str:
    line = clean(" ".join(without_secrets(text).split()))
    return line if len(line) <= _SHOWN else line[: _SHOWN - 2] + ".."
