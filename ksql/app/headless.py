"""Runs the file of ``ksql.queries.file`` at the start; its server takes no statements then."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ksql.control.statements import FILE, STATEMENTS, RequestFailed, left_to_run, run, session
from ksql.core import KsqlError, Settings, StartError
from ksql.sql.syntax import split

if TYPE_CHECKING:
    from ksql.control.statements import Services, StatementsOfCatalog

_log = logging.getLogger(__name__)
_MOST_STATEMENTS = 100_000
_NAMED = re.compile(r"Line: (\d+), Col: (\d+): ")


class _Position(NamedTuple):
    """A line of a file and a column in it, both from 1."""

    line: int
    column: int


class BadQueriesFile(StartError):
    """A file of queries that cannot be read, or a statement of it that cannot be carried out."""


def queries_file(settings: Settings) -> Path | None:
    """Return the file of the server's queries; None if clients send them."""
    name = settings.text(FILE)
    return Path(name).expanduser() if name else None


def read(file: Path) -> str:
    """Return the file's text.

    Raises: BadQueriesFile.
    """
    try:
        return file.read_text(encoding="utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadQueriesFile(f"cannot read {FILE} {file}: {why}") from error


def carry_out(
    file: Path, services: Services, settings: Settings, stated: StatementsOfCatalog, spared: str
) -> str:
    """Carry out what of the file does not run yet; return in words what was done.

    ``stated`` has the statements of the command topic; ``spared`` is the topic of the processing
    log, whose stream the file need not name.
    Raises: BadQueriesFile, with nothing done for what is found wrong before.
    """
    text = read(file)
    settings = Settings({**settings.server, STATEMENTS: str(_MOST_STATEMENTS)}, settings.overrides)
    try:
        left = left_to_run(text, session(services, settings, {}, {}), stated, spared)
        answers = run(left.text, services, settings, {}, {}) if left.to_run else []
    except RequestFailed as failed:
        raise _bad(file, text, failed.error, failed.statement_text) from failed.error
    except KsqlError as error:
        raise _bad(file, text, error) from error
    for answer in answers:
        for warning in answer.warnings:
            _log.warning("queries_file", extra={"warning": warning.message})
    return f"{left.to_run} statements of {file} carried out, {left.running} run already"


def _position(text: str, error: KsqlError, statement: str) -> _Position | None:
    """Return where the error is: its own place, one that its message names, its statement's."""
    if named := _NAMED.match(error.message):
        return _Position(int(named[1]), int(named[2]))
    span = error.span
    if span is None:
        span = next((raw.span for raw in split(text) if raw.text == statement), None)
    if span is None:
        return None
    return _Position(span.line, span.start - text.rfind("\n", 0, span.start))


def _bad(file: Path, text: str, error: KsqlError, statement: str = "") -> BadQueriesFile:
    position = _position(text, error, statement)
    if position is None:
        return BadQueriesFile(f"{file}: {error.message}", detail=error.detail, hint=error.hint)
    line = text.split("\n")[position.line - 1]
    before = "".join("\t" if letter == "\t" else " " for letter in line[: position.column - 1])
    detail = "\n".join(filter(None, (f"  {line}\n  {before}^", error.detail)))
    fact = _NAMED.sub("", error.message)
    where = f"{file}, line {position.line}:{position.column}"
    return BadQueriesFile(f"{where}: {fact}", detail=detail, hint=error.hint)
