"""Runs what the user wrote: the terminal's commands, the session's statements, the server's."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from server.cli.answer import Answer
from server.cli.client import Client, JsonObject, ServerFailure, Unreachable
from server.cli.render import as_json, render
from server.cli.screen import Screen
from server.cli.session import Refused, Session, answer_locally
from server.cli.split import Split, Statement, split
from server.cli.trouble import render_trouble

_QUERY = re.compile(r"(SELECT|PRINT)\b", re.IGNORECASE)
Command = Callable[["Terminal", str], None]
Find = Callable[[str], "tuple[Command, str] | None"]


class CommandFailed(Exception):
    """A terminal command that could not be done."""


class AlreadyTold(CommandFailed):
    """A command that failed because of something the user has been told of."""


class NeverClosed(CommandFailed):
    """A text that ends inside a quote or a comment."""

    def __init__(self, cut: Split) -> None:
        before = cut.rest.text[: cut.open_at]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        super().__init__(f"line {line}:{column}: {cut.open_quote} is never closed")


class _TimeIsUp(Exception):
    """The query has run as long as the user allowed."""


class Terminal:
    """One user's session with one server at a time."""

    def __init__(
        self,
        client: Client,
        session: Session,
        screen: Screen,
        find: Find,
        *,
        interactive: bool = False,
    ) -> None:
        self.home = client.url
        self.client = client
        self.session = session
        self.screen = screen
        self.history: Callable[[], list[str]] = list
        self.after_change: Callable[[], None] = lambda: None
        self.interactive = interactive
        self._find = find
        self._script = ""

    def is_command(self, text: str) -> bool:
        """Whether the text is for the terminal itself and needs no semicolon."""
        return self._find(text) is not None

    def run(self, text: str) -> bool:
        """Run a text, statement by statement, up to the first that fails; False if one did."""
        if self.is_command(text):
            return self._run_one(Statement(text.strip()))
        return self._run_all(text)

    def _run_all(self, text: str) -> bool:
        cut = split(text)
        if cut.open_quote:
            done = all(map(self._run_one, cut.statements))
            return done and self._tell(NeverClosed(cut), cut.rest)
        return all(map(self._run_one, cut.closed()))

    def run_file(self, path: Path) -> bool:
        """Run a script; errors name the file and the line."""
        try:
            text = path.expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8 text"
            return self._tell(CommandFailed(f"cannot read the script {path}: {why}"), Statement(""))
        outer, self._script = self._script, str(path)
        try:
            return self._run_all(text)
        finally:
            self._script = outer

    def _run_one(self, statement: Statement) -> bool:
        try:
            found = self._find(statement.text)
            if found is not None:
                command, argument = found
                command(self, argument)
            elif _QUERY.match(statement.text):
                self._query(statement.text)
            else:
                self._execute(statement.text)
        except AlreadyTold:
            return False
        except (ServerFailure, Unreachable, Refused, CommandFailed) as error:
            return self._tell(error, statement)
        return True

    def _tell(self, error: Exception, statement: Statement) -> bool:
        if isinstance(error, ServerFailure):
            self._show(error.entities)
        where = f"{self._script}, line {statement.line}: " if self._script else ""
        self.screen.error(render_trouble(error, statement.text, where, self.screen.width))
        return False

    def _execute(self, text: str) -> None:
        session = self.session
        entities = answer_locally(text, session, self.client)
        if entities is None:
            entities = self.client.execute(
                text, session.properties, session.variables, session.wait_for
            )
        self._show(entities)

    def _show(self, entities: list[JsonObject]) -> None:
        for entity in entities:
            self.session.saw(entity)
        if entities and self.session.output == "JSON":
            self.screen.lines([as_json(entities).plain])
        else:
            for entity in entities:
                self.screen.show(render(entity), cut=not self.session.wrap)
        if any("commandId" in entity for entity in entities):
            self.after_change()

    def _query(self, text: str) -> None:
        """Show a query's rows; Ctrl-C, the row limit or the time limit end it, not the session."""
        session = self.session
        answer = Answer(session, self.screen)
        why = ""
        try:
            with (
                _time_limit(session.timeout_ms),
                self.client.query(text, session.properties, session.variables) as batches,
            ):
                for batch in batches:
                    answer.show(batch)
                    if answer.is_full:
                        why = "Row limit reached."
                        break
        except KeyboardInterrupt:
            self.screen.lines([""] if self.interactive else [])  # the terminal has echoed ^C
            self._end(answer, "Query stopped.")
            if not self.interactive:
                raise
        except _TimeIsUp:
            self._end(answer, "Time limit reached.")
        except (ServerFailure, Unreachable):
            answer.end()
            raise
        else:
            answer.end(why)

    def _end(self, answer: Answer, why: str) -> None:
        answer.end(why)
        if answer.query_id:
            self.client.close_query(answer.query_id)


@contextmanager
def _time_limit(limit_ms: int | None) -> Iterator[None]:
    """Raise in the middle of whatever is being waited for; the terminal has but one thread."""
    if limit_ms is None:
        yield
        return
    old = signal.signal(signal.SIGALRM, _time_is_up)
    signal.setitimer(signal.ITIMER_REAL, limit_ms / 1000)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def _time_is_up(_number: int, _frame: object) -> None:
    raise _TimeIsUp
