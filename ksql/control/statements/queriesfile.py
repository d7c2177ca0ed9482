"""The file of ``ksql.queries.file``: which statements of it still have to run.

The file says what should run; the command topic knows what runs. A statement that is in both is not
carried out again: its query continues under its id, wherever the statement is in the file.
Source: docs/operations.md#a-server-that-runs-a-file-of-queries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ksql.control.engine.changes import PutQuery, PutSource
from ksql.control.statements import settings
from ksql.control.statements.execute import parsed_one
from ksql.control.statements.services import Request
from ksql.core import NO_QUERIES, QueryId, StatementError, quote_always
from ksql.sql.catalog import Catalog, DataSource
from ksql.sql.syntax import Parsed, RawStatement, ast, split

if TYPE_CHECKING:
    from ksql.control.engine.ports import Command
    from ksql.core import Span

FILE: Final = "ksql.queries.file"
_TAKEN: Final = (
    "SET, UNSET, CREATE STREAM, CREATE TABLE, CREATE STREAM AS SELECT, CREATE TABLE AS SELECT, "
    "INSERT INTO .. SELECT, CREATE TYPE; besides DROP .. IF EXISTS and TERMINATE of what is not to "
    "run any more"
)
_UPGRADE: Final = "To upgrade what runs, write CREATE OR REPLACE; else restore the statement."


class NotInFile(StatementError):
    """A statement that such a file may not have."""

    def __init__(self, what: str, span: Span) -> None:
        super().__init__(
            f"{what} cannot stand in {FILE}",
            detail=f"Only these statements can: {_TAKEN}.",
            span=span,
        )


class NameStatedTwice(StatementError):
    """Two statements about the same name, which would be carried out in turn at every start."""

    def __init__(self, name: str, span: Span) -> None:
        super().__init__(
            f"the file has more than one statement about {quote_always(name)}",
            hint="The file is read at every start: keep the one that is to hold.",
            span=span,
        )


class StatementChanged(StatementError):
    """A statement without OR REPLACE that is not the one that made what runs."""

    def __init__(self, name: str, what: str, span: Span) -> None:
        super().__init__(
            f"{quote_always(name)} runs already, and was made by another statement",
            detail=what,
            hint=_UPGRADE,
            span=span,
        )


class TypeChanged(StatementError):
    """A type of another structure than the one of its name."""

    def __init__(self, name: str, span: Span) -> None:
        super().__init__(
            f"the type {quote_always(name)} exists with another structure",
            hint=f"Write DROP TYPE IF EXISTS {name}; before it: what was declared with it stays.",
            span=span,
        )


class NoLongerInFile(StatementError):
    """Sources and queries that run, and that the file says nothing about."""

    def __init__(self, sources: Collection[DataSource], queries: Collection[QueryId]) -> None:
        drops = [f"DROP {source.kind} IF EXISTS {quote_always(source.name)};" for source in sources]
        ends = [f"TERMINATE {query_id};" for query_id in queries]
        super().__init__(
            "the file says nothing about what runs: "
            + ", ".join([*(source.name for source in sources), *queries]),
            hint="Restore their statements or, to end them for good, end the file with:\n"
            + "\n".join([*ends, *reversed(drops)]),
        )


@dataclass(frozen=True, slots=True)
class StatedCommand:
    """A statement of the command topic with the properties that it was issued with."""

    text: str
    properties: Mapping[str, str]


class StatementsOfCatalog:
    """The statement that made each source and query of the catalog, as the command topic has it."""

    def __init__(self) -> None:
        self.sources: dict[str, StatedCommand] = {}
        self.queries: dict[QueryId, StatedCommand] = {}

    def note(self, command: Command) -> None:
        """Take in the next command; later ones about a name hide earlier ones."""
        stated = StatedCommand(command.statement, dict(command.properties))
        for change in command.changes:
            match change:
                case PutSource(source):
                    self.sources[source.name] = stated
                case PutQuery(query):
                    self.queries[query.id] = stated
                case _:
                    continue


@dataclass(frozen=True, slots=True)
class RemainingFile:
    """The file with blanks in place of what runs already: all places in it stay what they are."""

    text: str
    running: int
    to_run: int


def left_to_run(
    text: str, request: Request, stated: StatementsOfCatalog, spared: str
) -> RemainingFile:
    """Return what is to be carried out so that all that the file says runs, and nothing else.

    ``spared`` is a topic whose streams may run though the file says nothing about them.
    Raises: StatementError, also for a file that does not say what becomes of something that runs.
    """
    reading = _FileReader(request, stated, request.engine.catalog)
    raws = split(text)
    done = [raw for raw in raws if not reading.is_to_run(parsed_one(raw, request, reading.catalog))]
    if not reading.persistent:
        raise NO_QUERIES()
    reading.check_whole(spared)
    return RemainingFile(_without(text, done), len(done), reading.to_run)


def _without(text: str, done: Collection[RawStatement]) -> str:
    for raw in done:
        span = raw.span
        blank = "".join("\n" if letter == "\n" else " " for letter in text[span.start : span.end])
        text = text[: span.start] + blank + text[span.end :]
    return text


@dataclass
class _FileReader:
    """The state of reading a file: the catalog's types as its statements would leave them."""

    request: Request
    stated: StatementsOfCatalog
    catalog: Catalog
    persistent: bool = False
    to_run: int = 0
    _known: set[str] = field(default_factory=set)
    _touched: set[str] = field(default_factory=set)
    _settled: set[QueryId] = field(default_factory=set)

    def is_to_run(self, parsed: Parsed) -> bool:
        """Return whether a statement is to be carried out.

        Raises: StatementError.
        """
        statement = parsed.statement
        if isinstance(statement, ast.SetProperty | ast.UnsetProperty):
            settings.HANDLERS[type(statement)](statement, self.request)
            return True
        needed = self._is_wanted(statement, parsed)
        self.to_run += needed
        return needed

    def _is_wanted(self, statement: ast.Statement, parsed: Parsed) -> bool:
        match statement:
            case ast.CreateSource() | ast.CreateAsSelect():
                self._once(statement.name, parsed.span)
                self.persistent |= _has_query(statement)
                return self._creates(statement, parsed)
            case ast.InsertInto():
                self.persistent = True
                return self._inserts(parsed)
            case ast.CreateType():
                return self._makes_type(statement, parsed.span)
            case ast.DropType(name, True):
                exists = name in self.catalog.types
                self.catalog = self.catalog.without_type(name)
                return exists
            case ast.DropSource(if_exists=True):
                self._once(statement.name, parsed.span)
                return statement.name in self.catalog.sources
            case ast.QueryControl("TERMINATE", str() as query_id):
                return self._terminates(query_id, parsed.span)
            case ast.DropSource() | ast.DropType():
                raise NotInFile("DROP without IF EXISTS", parsed.span)
            case ast.ReplaceQuery():
                raise NotInFile("CREATE OR REPLACE QUERY", parsed.span)
            case _:
                words = parsed.text.split()[:2]
                raise NotInFile(" ".join(words).rstrip(";").upper(), parsed.span)

    def _once(self, name: str, span: Span) -> None:
        if name in self._known:
            raise NameStatedTwice(name, span)
        self._known.add(name)

    def _creates(self, stmt: ast.CreateSource | ast.CreateAsSelect, parsed: Parsed) -> bool:
        there = self.catalog.sources.get(stmt.name)
        what = "" if there is None else self._difference(there, stmt, parsed)
        if there is None or (stmt.or_replace and (what or self._reads_touched(there))):
            self._touched.add(stmt.name)
            return True
        if what and not stmt.if_not_exists:
            raise StatementChanged(stmt.name, what, parsed.span)
        return False

    def _difference(
        self, there: DataSource, stmt: ast.CreateSource | ast.CreateAsSelect, parsed: Parsed
    ) -> str:
        """Say how the statement differs from the one that made the source; empty if it does not."""
        was = self.stated.sources.get(there.name)
        if was is None or _words(was.text) != _words(parsed.text):
            return f"It was: {there.statement if was is None else was.text}"
        if isinstance(stmt, ast.CreateSource):
            return ""
        if there.created_by not in self.catalog.queries:
            return "Its query was terminated."
        return self._other_settings(was)

    def _other_settings(self, was: StatedCommand) -> str:
        now = dict(self.request.settings.overrides)
        other = sorted(
            name
            for name in now.keys() | was.properties
            if now.get(name) != was.properties.get(name)
        )
        return f"It was made with other settings: {', '.join(other)}." if other else ""

    def _reads_touched(self, there: DataSource) -> bool:
        """Return whether something that it reads is made or replaced by this file."""
        query = None if there.created_by is None else self.catalog.queries.get(there.created_by)
        return query is not None and not self._touched.isdisjoint(query.sources)

    def _inserts(self, parsed: Parsed) -> bool:
        words = _words(parsed.text)
        for query in self.catalog.queries.values():
            was = self.stated.queries.get(query.id)
            if query.kind != "INSERT" or query.id in self._settled or was is None:
                continue
            if _words(was.text) == words and not self._other_settings(was):
                self._settled.add(query.id)
                return False
        return True

    def _makes_type(self, stmt: ast.CreateType, span: Span) -> bool:
        there = self.catalog.types.get(stmt.name)
        if there is not None and there != stmt.type and not stmt.if_not_exists:
            raise TypeChanged(stmt.name, span)
        if there is None:
            self.catalog = self.catalog.with_type(stmt.name, stmt.type)
        return there is None

    def _terminates(self, query_id: str, span: Span) -> bool:
        query = self.catalog.query(query_id)
        if query is None:
            return False
        if query.kind != "INSERT":
            raise NotInFile(f"TERMINATE of {query.id}, the query of {query.sink},", span)
        if query.id in self._settled:
            raise NameStatedTwice(query.id, span)
        self._settled.add(query.id)
        return True

    def check_whole(self, spared: str) -> None:
        """Check that the file says something about all that runs.

        Raises: NoLongerInFile.
        """
        catalog = self.request.engine.catalog
        sources = [
            source
            for source in catalog.sources.values()
            if source.name not in self._known and source.topic != spared
        ]
        queries = [
            query.id
            for query in catalog.queries.values()
            if query.kind == "INSERT" and query.id not in self._settled
        ]
        if sources or queries:
            raise NoLongerInFile(sources, queries)


def _has_query(stmt: ast.CreateSource | ast.CreateAsSelect) -> bool:
    return isinstance(stmt, ast.CreateAsSelect) or (stmt.read_only and stmt.kind == "TABLE")


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a statement; comments, OR REPLACE and IF NOT EXISTS do not count."""
    words = [word.text for raw in split(text)[:1] for word in raw.words if word.text != ";"]
    for extra in (["OR", "REPLACE"], ["IF", "NOT", "EXISTS"]):
        for at in range(1, min(len(words), _HEAD)):
            if [word.upper() for word in words[at : at + len(extra)]] == extra:
                del words[at : at + len(extra)]
                break
    return tuple(words)


_HEAD: Final = 5
"""CREATE [OR REPLACE] [SOURCE] TABLE [IF NOT EXISTS]: where these words may begin."""
