"""The errors of statements that the engine refuses, beyond those of the analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import PREPARING, ParseError, StatementError, did_you_mean, excerpt, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ksql.core import Span
    from ksql.formats import Side
    from ksql.sql.catalog import DataSource, PersistentQuery
    from ksql.sql.syntax import SourceKind
    from ksql.sql.upgrade import Verdict


class AlreadyExists(StatementError):
    """A stream or table of that name is there already."""

    def __init__(self, kind: SourceKind, name: str, existing: DataSource) -> None:
        noun = existing.kind.lower()
        super().__init__(
            f"Cannot add {kind.lower()} '{name}': A {noun} with the same name already exists",
            hint=_instead(kind, existing),
        )


def _instead(kind: SourceKind, existing: DataSource) -> str:
    """Return what may be written of a name that is taken."""
    if kind != existing.kind:
        return "Choose another name: streams and tables share theirs."
    kept = f"CREATE {kind} IF NOT EXISTS leaves it as it is."
    return kept if existing.read_only else f"CREATE OR REPLACE {kind} changes it, {kept}"


class NotReplaceable(StatementError):
    """A CREATE OR REPLACE of, or by, a source that is read-only."""

    def __init__(self, kind: SourceKind, name: str) -> None:
        noun = kind.lower()
        super().__init__(
            f"Cannot add {noun} '{name}': CREATE OR REPLACE is not supported on source {noun}s."
        )


class DoesNotExist(StatementError):
    """A stream, table, query or type that a statement names is not there."""

    def __init__(
        self, fact: str, name: str = "", known: Iterable[str] = (), *, ends: bool = False
    ) -> None:
        """Take ``ends`` for a statement that ends or stops the thing of that name."""
        super().__init__(fact, hint=did_you_mean(name, known, sure=ends))


class OtherKind(StatementError):
    """A statement for streams that names a table, or the other way round."""

    def __init__(self, source: DataSource, action: str, kind: SourceKind) -> None:
        super().__init__(
            f"Incompatible data source type is {source.kind}, but statement was {action} {kind}",
            hint=f"{source.name} is a {source.kind.lower()}: write {action} {source.kind}.",
        )


class QueryIdTooLong(StatementError):
    """An id that cannot name a directory: file systems have a bound for names."""

    def __init__(self, query_id: str, most: int, *, span: Span | None = None) -> None:
        super().__init__(
            f"The query's ID would be too long: {len(query_id)} letters, {most} are allowed. "
            f"Got: '{excerpt(query_id)}'",
            hint="Choose a shorter name for the stream or table, or a shorter QUERY_ID.",
            span=span,
        )


class BadProperty(ParseError):
    """A WITH clause with an unknown, duplicate, missing or wrong property.

    It is a ``ParseError``, and its text begins like one, because ksqlDB checks the clause in its
    parser. Here it is found when the statement is resolved.
    """

    def __init__(self, message: str, *, hint: str = "", span: Span | None = None) -> None:
        super().__init__(PREPARING + message, hint=hint, span=span)


class InvalidValue(BadProperty):
    """A property of a WITH clause with a value that it cannot have."""

    def __init__(self, name: str, value: str, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")


class InvalidConfiguration(BadProperty):
    """A property of a WITH clause whose text does not read."""

    def __init__(self, name: str, reason: str, example: str) -> None:
        super().__init__(
            f"Configuration {name} is invalid: {reason}\nExample valid value: '{example}'"
        )


class MissingFormat(StatementError):
    """Neither the statement nor the configuration says how a side is written."""

    def __init__(self, side: Side) -> None:
        super().__init__(
            f"Statement is missing the '{side.upper()}_FORMAT' property from the WITH clause. "
            "Either provide one or set a default via the "
            f"'ksql.persistence.default.format.{side}' config."
        )


BESIDE: Final = "This rebuilds it next to the running one"


class UpgradeRefused(StatementError):
    """A CREATE OR REPLACE that would corrupt the running query; all reasons are in the text."""

    def __init__(
        self,
        name: str,
        stems: Iterable[str],
        verdict: Verdict | None,
        way_out: str = "",
        writer: str = "",
    ) -> None:
        """Take ``way_out``, the statement that would rebuild the query; empty if none would.

        ``writer`` is the id of the query if it was replaced by that.
        """
        reasons = [f"({stem})" for stem in stems]
        what = f"query: {writer}" if writer else f"data source: {name}"
        message = f"Cannot upgrade {what}. " + " AND ".join(reasons)
        detail = ""
        if verdict is not None and verdict.reasons:
            classes = ", ".join(verdict.classes)
            detail = f"The upgrade is of class: {classes}. Not possible because of"
            detail += _listed(verdict.reasons)
            if verdict.allowed:
                detail += "\nChanged as well:" + _listed(verdict.allowed)
        super().__init__(
            message.strip(),
            detail=detail,
            hint=("" if verdict is None else "The running query goes on unchanged. ")
            + (f"{way_out}\nOr " if way_out else "")
            + _otherwise(name, writer, "source" if verdict is None else "query", first=not way_out),
        )
        self.name = name
        self.verdict = verdict


def _otherwise(name: str, writer: str, noun: str, *, first: bool) -> str:
    """Say what may be done instead; ``first``: it begins a sentence."""
    if writer:
        text = f"create the new query by another INSERT INTO {quote(name)}, and terminate {writer}."
    else:
        text = f"create the new {noun} under another name instead."
    return text[0].upper() + text[1:] if first else text


class NotUpgradeable(StatementError):
    """A stream or table that no CREATE .. AS SELECT has made, or whose query is gone."""

    def __init__(self, source: DataSource, writers: Sequence[str] = ()) -> None:
        """Take the ids of the queries that write it by INSERT INTO."""
        why = "it was declared" if source.created_by is None else "its query was terminated"
        hint = f"Upgrades are for queries of CREATE {source.kind} .. AS SELECT."
        if writers:
            hint = f"Write OF QUERY and the id of the query. It is written by {', '.join(writers)}."
        super().__init__(f"{source.name} has no query that could be upgraded: {why}.", hint=hint)


class NoFormerVersion(StatementError):
    """A ROLLBACK UPGRADE of a query of which no former version is kept."""

    def __init__(self, query: PersistentQuery, statement: str = "") -> None:
        """Take the ``statement`` that was replaced in place, if the history knows it."""
        expired = query.cut_over is not None
        why = (
            "The version that ran before its last cut-over is not kept any longer."
            if expired
            else "It was never rebuilt. An upgrade in place leaves no former version."
        )
        hint = f"SHOW UPGRADES FOR {quote(query.sink)}; lists its former statements."
        if statement:
            hint = f"Replace the query by its former statement:\n{statement}"
        super().__init__(f"{query.id} has no former version", detail=why, hint=hint)
        self.query = query


def _listed(changes: Iterable[str]) -> str:
    return "".join(f"\n- {change}" for change in changes)


class ReadsItself(StatementError):
    """A query that would read what it writes: each result would be an input for the next."""

    def __init__(self, name: str, way: Iterable[str]) -> None:
        super().__init__(
            f"The query would read its own result: {' -> '.join(way)}.",
            detail="Each record that it writes would come back to it and be written again, "
            "without end.",
            hint=f"Write into another stream or table than {name}.",
        )


ACTIVE_LIMIT = "ksql.query.persistent.active.limit"


class TooManyQueries(StatementError):
    """One query more than the server may run."""

    def __init__(self, text: str, running: int, limit: int) -> None:
        super().__init__(
            f"Not executing statement(s) '{text}' as it would cause the number of active, "
            "persistent queries to exceed the configured limit. Use the TERMINATE command to "
            f"terminate existing queries, or increase the '{ACTIVE_LIMIT}' setting via the "
            "'ksql-server.properties' file. "
            f"Current persistent query count: {running}. Configured limit: {limit}."
        )


class StillUsed(StatementError):
    """A source that others read or write cannot be dropped."""
