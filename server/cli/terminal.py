"""Runs what the user wrote: the terminal's commands, statements; hints for other terminals'.

A command that begins with a backslash is one of another terminal: the hint says what to write here.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from server.cli.answer import Answer
from server.cli.client import Client, JsonObject, ServerFailure, Unreachable
from server.cli.error_text import render_trouble
from server.cli.forms import csv_text
from server.cli.rebuild_bar import shown_while_waiting
from server.cli.render import as_json, grid_of, render
from server.cli.screen import Screen
from server.cli.session import Session, StatementRefused, answer_locally, of_the_session
from server.cli.split import Split, Statement, split

_HERE = {
    "?": "help",
    "h": "help",
    "q": "exit",
    "quit": "exit",
    "c": "server <url>",
    "connect": "server <url>",
    "d": "SHOW STREAMS; SHOW TABLES;",
    "ds": "SHOW STREAMS;",
    "dt": "SHOW TABLES;",
    "df": "SHOW FUNCTIONS;",
    "dT": "SHOW TYPES;",
    "l": "SHOW TOPICS;",
    "i": "run script '<file>'",
    "ir": "run script '<file>'",
    "o": "spool '<file>'",
    "s": "history",
    "set": "DEFINE <name> = '<value>';",
    "unset": "UNDEFINE <name>;",
    "pset": "output TABLE | JSON | CSV, pager ON | OFF, or set cli wrap ON | OFF",
    "a": "output TABLE | JSON | CSV",
}
_WORDS = re.compile(r"\\+\s*(\S*)\s*(.*)", re.DOTALL)


def has_backslash(text: str) -> bool:
    """Return whether the text begins with a backslash, as no statement does."""
    return text.lstrip().startswith("\\")


def advice(text: str, is_command: Callable[[str], bool]) -> str:
    """Return the sentence that refuses such a text and names the command or statement to use."""
    plain = text.strip().rstrip(";").strip()
    match = _WORDS.fullmatch(plain)
    word, rest = (match[1].rstrip("+"), match[2]) if match else ("", "")
    same = plain.lstrip("\\").strip()
    if same and is_command(same):
        instead = same
    elif word in ("d", "dt", "ds") and rest:
        instead = f"DESCRIBE {rest};"
    else:
        instead = _HERE.get(word, "")
    return f"commands have no backslash here; {f'write: {instead}' if instead else 'try: help'}"


_QUERY = re.compile(r"(SELECT|PRINT)\b", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`")
_GOES_ON = re.compile(r"\bEMIT\s+(?:CHANGES|FINAL)\b", re.IGNORECASE)
_BAD_REQUEST = 40000
_BEHIND = 50301
_SCRIPT = re.compile(r"RUN\s+SCRIPT\b", re.IGNORECASE)
_BOM = "\ufeff"
PROMPT = "ksql> "
_NOTHING_YET = (
    "A result follows its sources after a moment: ask again, or watch it with EMIT CHANGES."
)
Command = Callable[["Terminal", str], None]
Find = Callable[[str], "tuple[Command, str] | None"]


class CommandFailed(Exception):
    """A terminal command that could not be done."""


class AlreadyReported(CommandFailed):
    """A command that failed for a reason that the user has already seen."""


class NeverClosed(CommandFailed):
    """A text that ends inside a quote or a comment."""

    def __init__(self, pieces: Split) -> None:
        before = pieces.rest.text[: pieces.open_at]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        super().__init__(f"line {line}:{column}: {pieces.open_quote} is never closed")


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home = client.url
        self.client = client
        self.session = session
        self.screen = screen
        self.history: Callable[[], list[str]] = list
        self.after_change: Callable[[], None] = lambda: None
        self.interactive = False
        self._find = find
        self._clock = clock
        self._script = ""
        self._depth = 0  # of scripts within scripts

    def is_command(self, text: str) -> bool:
        """Return whether the text is for the terminal itself and needs no semicolon."""
        return has_backslash(text) or self._find(text) is not None

    def is_whole(self, text: str) -> bool:
        """Return whether Enter runs the text rather than starting another line."""
        if not text.strip() or self.is_command(text):
            return True
        pieces = self._split(text)
        return pieces.is_complete or has_backslash(pieces.rest.text)

    def _split(self, text: str) -> Split:
        return split(text, lambda line: self._find(line) is not None)

    def run(self, text: str, line: int = 1) -> bool:
        """Run a text, statement by statement, up to the first that fails; False if one did.

        ``line`` is the one of the user's input with which the text begins.
        """
        return self._run_all(text, line)

    def run_lines(self, lines: Iterable[str]) -> None:
        """Run lines as they come, as at the prompt; an error ends the line that it is about."""
        pending, start = "", 1
        for number, line in enumerate(lines, 1):
            if not pending:
                start = number
            looks_whole = not pending or ";" in line or "*/" in line
            pending += line.removeprefix(_BOM) if number == 1 else line
            if looks_whole and self.is_whole(pending):
                self._typed(pending, start)
                pending = ""
        self._typed(pending, start)

    def _typed(self, text: str, line: int) -> None:
        if text.strip():
            self.screen.record(PROMPT + text.removesuffix("\n"))
            self.run(text, line)

    def _run_all(self, text: str, line: int = 1, first: int = 1) -> bool:
        pieces = self._split(text)
        statements = pieces.statements if pieces.open_quote else pieces.closed()
        total = len(statements) + bool(pieces.open_quote)
        if first > max(total, 1):
            raise CommandFailed(f"there is no statement {first} in it: it has {total}")
        for number, statement in enumerate(statements, 1):
            if number < first and not of_the_session(statement.text):
                continue
            if not self._run_one(replace(statement, line=statement.line + line - 1)):
                return self._stopped(
                    number, total, within=_SCRIPT.match(statement.text) is not None
                )
        if pieces.open_quote:
            self._tell(NeverClosed(pieces), replace(pieces.rest, line=pieces.rest.line + line - 1))
            return self._stopped(total, total)
        return True

    def _stopped(self, number: int, total: int, *, within: bool = False) -> bool:
        """Count what was not run, and say how a script is continued; always False.

        ``within``: the statement that failed runs another script, which has its own way on.
        """
        if total > 1:
            left = f", {total - number} not run" if number < total else ""
            where = f"{self._script}: " if self._script else ""
            self._warn(f"{where}statement {number} of {total} failed{left}")
        following = number + within
        if self._script and 1 < following <= total:
            self._warn(
                f"to continue {'behind it' if within else 'there'}: {self._way_on(following)}"
            )
        return False

    def _way_on(self, number: int) -> str:
        if self.interactive or self._depth > 1:
            quoted = self._script.replace("'", "''")
            return f"run script '{quoted}' from statement {number}"
        return f"the same command with --from-statement {number}"

    def _warn(self, text: str) -> None:
        self.screen.error(Text(text, style="yellow"))

    def run_file(self, path: Path, first: int = 1) -> bool:
        """Run a script from its ``first`` statement on; ``-`` is the standard input.

        Returns: whether it could be read and no statement failed.
        """
        try:
            return self.run_script(path, first)
        except CommandFailed as error:
            return self._tell(error, Statement(""))

    def run_script(self, path: Path, first: int = 1) -> bool:
        """Run a script; errors name the file and the line.

        From another ``first`` statement on, those before it that set the session up (SET, UNSET,
        DEFINE, UNDEFINE) are run as well.
        Raises: CommandFailed when it cannot be read, or has not so many statements.
        """
        text = _text_of(path).removeprefix(_BOM)
        outer, self._script = self._script, str(path)
        self._depth += 1
        try:
            return self._run_all(text, first=first)
        finally:
            self._script = outer
            self._depth -= 1

    def _run_one(self, statement: Statement) -> bool:
        try:
            self._run_found(statement.text)
        except AlreadyReported:
            return False
        except (ServerFailure, Unreachable, StatementRefused, CommandFailed) as error:
            return self._tell(error, statement)
        return True

    def _run_found(self, text: str) -> None:
        parsed = self._find(text)
        if parsed is not None:
            command, argument = parsed
            command(self, argument)
        elif has_backslash(text):
            raise CommandFailed(advice(text, lambda other: self._find(other) is not None))
        else:
            with self._timed():
                (self._query if _QUERY.match(text) else self._execute)(text)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Show how long a statement took, the reading in the pager left out."""
        began = self._clock() - self.screen.paged_s
        try:
            yield
        finally:
            if self.session.timing:
                took = self._clock() - self.screen.paged_s - began
                self._tell_time(f"Time: {_duration(took)}")

    def _tell_time(self, text: str) -> None:
        """Show it among the answers, in their order; apart from those that programs read."""
        if self.session.output == "TABLE":
            self.screen.show(Text(text, style="dim"))
        else:
            self.screen.note(text)

    def _tell(self, error: Exception, statement: Statement) -> bool:
        if isinstance(error, ServerFailure):
            self._show(error.entities)
            if error.code == _BAD_REQUEST:  # perhaps the service was replaced under its address
                self.session.token = ""
        self.screen.error(render_trouble(error, statement, self._script, self.screen.width))
        if (
            isinstance(error, ServerFailure)
            and error.code == _BEHIND
            and not self.session.pipelining
        ):
            self.screen.error(Text("With request-pipelining ON the session waits for nothing."))
        return False

    def _execute(self, text: str) -> None:
        session = self.session
        entities = answer_locally(text, session, self.client)
        if entities is None:
            with shown_while_waiting(text, session.properties, self.client.upgrades, self.screen):
                entities = self.client.execute(
                    text, session.properties, session.variables, session.wait_for, session.seen
                )
        self._show(entities)

    def _show(self, entities: list[JsonObject]) -> None:
        for entity in entities:
            self.session.saw(entity)
        entities = [entity for entity in entities if entity.get("@type") != "consistencyToken"]
        if entities and self.session.output == "JSON":
            self.screen.page(as_json(entities).plain.splitlines())
        else:
            for entity in entities:
                self._show_one(entity)
        if any("commandId" in entity for entity in entities):
            self.after_change()

    def _show_one(self, entity: JsonObject) -> None:
        grid = grid_of(entity) if self.session.output == "CSV" else None
        if grid is None:
            self.screen.show(render(entity), shorten=not self.session.wrap)
        else:
            self.screen.page(csv_text(grid.cells()).splitlines())

    def _query(self, text: str) -> None:
        """Show a query's rows; Ctrl-C, the row limit or the time limit end it, not the session."""
        session = self.session
        is_whole = _ends_by_itself(text)
        answer = Answer(session, self.screen, whole=is_whole)
        why = ""
        try:
            with (
                _time_limit(session.timeout_ms),
                self.client.query(
                    text, session.properties, session.variables, session.seen
                ) as batches,
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
            if self.interactive and is_whole and not (answer.rows or answer.is_noted):
                self.screen.note(_NOTHING_YET)

    def _end(self, answer: Answer, why: str) -> None:
        answer.end(why)
        if answer.query_id:
            self.client.close_query(answer.query_id)


def _text_of(path: Path) -> str:
    try:
        if str(path) == "-":
            return sys.stdin.read()
        return path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise CommandFailed(f"cannot read the script {path}: {why}") from error


def _ends_by_itself(text: str) -> bool:
    return text[:6].upper() == "SELECT" and not _GOES_ON.search(_QUOTED.sub("", text))


def _duration(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


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
