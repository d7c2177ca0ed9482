"""Suggestion: the names on the server, where the cursor is, and the words that fit there.

The place of the cursor is the words of the statement before it, and the sources it reads.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from server.cli.client import Client, JsonObject
from server.cli.grid import type_text
from server.cli.words import (
    CLAUSES,
    FIRST,
    FORMATS,
    KEYWORDS,
    NEXT,
    OPERANDS,
    RESERVED,
    TYPES,
    WITH_PROPERTIES,
    words_in,
)

NAME_STATEMENTS = (
    "DESCRIBE STREAMS; DESCRIBE TABLES; SHOW FUNCTIONS; SHOW QUERIES; SHOW TOPICS; "
    "SHOW PROPERTIES; SHOW TYPES;"
)
_BARE = re.compile(r"[A-Z_][A-Z0-9_@]*\Z")


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A stream or table; names as they must be written, columns with their types."""

    name: str
    kind: str = "STREAM"
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that a statement may use."""

    sources: tuple[NamedSource, ...] = ()
    functions: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


def fetch_names(client: Client) -> Names:
    """Ask the server for all names.

    Raises: ServerFailure, Unreachable.
    """
    names: defaultdict[str, list[str]] = defaultdict(list)
    sources: list[NamedSource] = []
    for entity in client.execute(NAME_STATEMENTS):
        sources += map(_source, entity.get("sourceDescriptions") or ())
        for key in ("functions", "queries", "topics"):
            names[key] += [item.get("name") or item["id"] for item in entity.get(key) or ()]
        names["properties"] += map(_setting, filter(_may_be_set, entity.get("properties") or ()))
        names["types"] += entity.get("types") or ()
    return Names(
        sources=tuple(sources),
        functions=tuple(names["functions"]),
        queries=tuple(names["queries"]),
        topics=tuple(names["topics"]),
        properties=tuple(sorted(set(names["properties"]))),
        types=tuple(map(quoted, names["types"])),
    )


def _may_be_set(item: JsonObject) -> bool:
    return bool(item.get("editable", True))


def _setting(item: JsonObject) -> str:
    """Return the name of a property, without the prefix that SET does not need."""
    return str(item["name"]).removeprefix("ksql.streams.")


def _source(description: JsonObject) -> NamedSource:
    columns = [(quoted(f["name"]), type_text(f["schema"])) for f in description["fields"]]
    return NamedSource(quoted(description["name"]), description["type"], tuple(columns))


def quoted(name: str) -> str:
    """Return the name as it must be written in a statement."""
    bare = _BARE.match(name) and name not in RESERVED
    return name if bare else "`" + name.replace("`", "``") + "`"


_TOKEN = re.compile(r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|[\w@]+|->|[^\s\w]")
_NAME = re.compile(r"[\w@`\"]")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The statement's tokens before the cursor, and all of them."""

    before: tuple[str, ...]
    whole: tuple[str, ...] = ()

    @property
    def last(self) -> str:
        """The token just before the cursor's word."""
        return self.before[-1] if self.before else ""

    @property
    def after_a_name(self) -> bool:
        """Whether the last token is a name or a number."""
        return bool(_NAME.match(self.last))

    def inside(self) -> tuple[str, ...]:
        """Return the tokens up to the innermost bracket that is still open; empty if none is."""
        depth = 0
        for index in range(len(self.before) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(self.before[index], 0)
            if depth < 0:
                return self.before[:index]
        return ()


def tokens_of(text: str) -> tuple[str, ...]:
    """Return the tokens of a text; words that are not quoted in capitals."""
    tokens = _TOKEN.findall(text)
    return tuple(token if token[0] in "`\"'" else token.upper() for token in tokens)


def sources_of(tokens: Sequence[str], names: Names) -> list[tuple[NamedSource, str]]:
    """Return the sources that a statement reads, each with its alias or name."""
    by_name = {source.name: source for source in names.sources}
    sources = []
    for index, token in enumerate(tokens[:-1]):
        source = by_name.get(tokens[index + 1]) if token in ("FROM", "JOIN") else None
        if source is not None:
            following = [t for t in tokens[index + 2 : index + 4] if t != "AS"]
            sources.append((source, _alias(following) or source.name))
    return sources


def _alias(following: Sequence[str]) -> str:
    is_alias = following and _NAME.match(following[0]) and following[0] not in KEYWORDS
    return following[0] if is_alias else ""


_BARE_TOPIC = re.compile(r"[A-Za-z_]\w*\Z")
_OPERAND_FOLLOWS = frozenset(
    words_in(
        """
    SELECT WHERE BY HAVING ON AND OR NOT WHEN THEN ELSE CASE BETWEEN LIKE ( [ , = < > + - * / % |
    """
    )
)
_WITH_OPERANDS = frozenset({"SELECT", "VALUES", "DELETE"})
_BEFORE_A_STAR = frozenset({"SELECT", ",", ".", "("})
_JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "JOIN")
_GOES_ON = ("AND", "OR", "BETWEEN", "IN", "IS", "LIKE", "NOT")
_IN_EXPRESSIONS = frozenset({"SELECT", "ON", "WHERE", "HAVING"})


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One offer: the text, and a word about it for the list."""

    text: str
    about: str = ""


Rule = Callable[[Cursor, Names], "Iterable[Suggestion] | None"]


def suggestions(cursor: Cursor, names: Names) -> list[Suggestion]:
    """Return all words that may be at a place, the likeliest first."""
    if cursor.before[:1] == ("EXPLAIN",) and len(cursor.before) > 1:
        cursor = replace(cursor, before=cursor.before[1:])
    for rule in _RULES:
        matches = rule(cursor, names)
        if matches is not None:
            return list(matches)
    return []


def texts(cursor: Cursor, names: Names) -> list[str]:
    """Return the words that fit in the quotes that begin at a place."""
    named = cursor.before[-2] if cursor.last == "=" and cursor.before[1:] else ""
    if cursor.last in ("SET", "UNSET", "SYSTEM"):
        return list(names.properties)
    if cursor.last == "PRINT" or named == "KAFKA_TOPIC":
        return list(names.topics)
    if named in ("FORMAT", "KEY_FORMAT", "VALUE_FORMAT"):
        return list(FORMATS)
    return []


def _start(cursor: Cursor, _names: Names) -> Iterable[Suggestion] | None:
    return None if cursor.before else _words(FIRST)


def _column_of(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    """Return the columns of the source before a point; a path into a struct is not followed."""
    if cursor.last == "->":
        return ()
    if cursor.last != ".":
        return None
    read = sources_of(cursor.whole, names)
    return _columns(source for source, alias in read if cursor.before[-2:-1] == (alias,))


def _text(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    if cursor.last == "PRINT":
        topics = names.topics
        return (Suggestion(t if _may_be_bare(t) else f"'{t}'", "topic") for t in topics)
    choices = texts(cursor, names)
    if choices or cursor.last in ("SET", "UNSET", "SYSTEM"):
        return (Suggestion(f"'{text}'") for text in choices)
    return None


def _may_be_bare(topic: str) -> bool:
    return bool(_BARE_TOPIC.match(topic)) and topic.upper() not in RESERVED


def _upgraded(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    match cursor.before:
        case ("ABORT" | "ROLLBACK", "UPGRADE", "OF"):
            return (*_sources(names.sources), *_words(("QUERY",)))
        case ("SHOW" | "LIST", "UPGRADES", "FOR"):
            return (*_sources(names.sources), *_named(names.queries, "query"))
        case ("ABORT" | "ROLLBACK", "UPGRADE", "OF", "QUERY"):
            return _named(names.queries, "query")
        case ("CREATE", "OR", "REPLACE", "QUERY"):
            return _named(names.queries, "query")
        case _:
            return None


def _thing(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    """Return the name of what a statement is about."""
    match tuple(token for token in cursor.before if token not in ("IF", "EXISTS")):
        case ("TERMINATE" | "PAUSE" | "RESUME",):
            return (*_named(names.queries, "query"), *_words(("ALL",)))
        case ("EXPLAIN",):
            return (*_named(names.queries, "query"), *_words(FIRST))
        case ("DESCRIBE",):
            kinds = _words(("FUNCTION", "STREAMS", "TABLES", "CONNECTOR", "UPGRADE"))
            return (*_sources(names.sources), *kinds)
        case ("DESCRIBE", "FUNCTION"):
            return _named(names.functions, "function")
        case ("DROP" | "ALTER", ("STREAM" | "TABLE") as kind):
            return _sources(source for source in names.sources if source.kind == kind)
        case ("DROP", "TYPE"):
            return _named(names.types, "type")
        case ("PRINT", *_, "FROM"):
            return _words(("BEGINNING",))
        case (*_, "DISTINCT", "FROM"):
            return None
        case ("DELETE", "FROM"):
            return _sources(source for source in names.sources if source.kind == "TABLE")
        case (*_, "FROM" | "JOIN" | "INTO"):
            return _sources(names.sources)
        case _:
            return None


def _fixed(cursor: Cursor, _names: Names) -> Iterable[Suggestion] | None:
    """Return the words that a table has for the last words; a verb counts at the start only."""
    for count in (3, 2, 1):
        before = cursor.before[-count:]
        known = NEXT.get(" ".join(before))
        if known is not None and (before == cursor.before or before[0] not in FIRST):
            return _words(known)
    return None


def _rest(cursor: Cursor, _names: Names) -> Iterable[Suggestion] | None:
    """Return the words that continue a statement that is no query."""
    match cursor.before:
        case ("SHOW" | "LIST", "STREAMS" | "TABLES" | "QUERIES" | "TOPICS") | (
            "DESCRIBE",
            "STREAMS" | "TABLES",
        ):
            return _words(("EXTENDED",))
        case ("DESCRIBE", _):
            return _words(("EXTENDED",))
        case ("PRINT", _):
            return _words(("FROM", "INTERVAL", "LIMIT"))
        case ("INSERT", "INTO", _):
            return _words(("VALUES", "SELECT"))
        case ("INSERT", *_, ")") if "SELECT" not in cursor.before and not cursor.inside():
            return _words(("VALUES", "SELECT"))
        case ("CREATE", "OR", "REPLACE", "QUERY", _, *_) if cursor.last in ("AS", "INSERT"):
            return _words(("INSERT",) if cursor.last == "AS" else ("INTO",))
        case ("CREATE", "OR", "REPLACE", "QUERY", _, *_, "INTO", _):
            return _words(("SELECT",))
        case ("CREATE", *_) if "SELECT" not in cursor.before and not cursor.inside():
            return _words(("SELECT",) if cursor.last == "AS" else ("WITH", "AS"))
        case _:
            return None


def _deletion(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    """Return what continues DELETE FROM t: its condition of columns, = and AND."""
    match cursor.before:
        case ("DELETE", "FROM", _):
            return _words(("WHERE",))
        case ("DELETE", "FROM", _, "WHERE", *_) if not cursor.inside() and cursor.last != "=":
            if cursor.last in ("WHERE", "AND"):
                return _columns(source for source, _ in sources_of(cursor.whole, names))
            return _words(("AND",) if "=" in cursor.before[-3:] else ())
        case _:
            return None


def _property(cursor: Cursor, _names: Names) -> Iterable[Suggestion] | None:
    if cursor.inside()[-1:] != ("WITH",):
        return None
    return _named(WITH_PROPERTIES if cursor.last in ("(", ",") else (), "property")


def _type(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    types = (*_named(TYPES, "type"), *_named(names.types, "type"))
    before, inside = cursor.before, cursor.inside()
    if before[:2] == ("CREATE", "TYPE"):
        return types if cursor.last in ("AS", "<") or _after_a_field(cursor) else ()
    if before[:1] == ("ALTER",) and len(before) > 2:
        adding = before[-2] in ("ADD", "COLUMN") and cursor.last != "COLUMN"
        return types if adding else _words(("COLUMN",) if cursor.last == "ADD" else ("ADD",))
    if cursor.last == "AS" and inside[-1:] == ("CAST",):
        return types
    if inside[:1] == ("CREATE",) and not {"AS", "WITH"} & {*inside}:
        if (
            cursor.last == "<"
            or _after_a_field(cursor)
            or (cursor.last == "," and _in_angles(cursor))
        ):
            return types
        return () if cursor.last in ("(", ",") else _words(("KEY", "PRIMARY", "HEADERS"))
    return None


def _in_angles(cursor: Cursor) -> bool:
    return cursor.before.count("<") > cursor.before.count(">")


def _after_a_field(cursor: Cursor) -> bool:
    """Return whether the last token is the name of a column or field, so that its type follows."""
    is_first = cursor.before[-2:-1] in (("(",), (",",)) or cursor.before[-3:-1] == ("STRUCT", "<")
    return is_first and cursor.after_a_name


def _target_column(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    """Return a column between the brackets of INSERT INTO s (..)."""
    match cursor.inside():
        case ("INSERT", "INTO", target):
            return _columns(source for source in names.sources if source.name == target)
        case _:
            return None


def _operand(cursor: Cursor, names: Names) -> Iterable[Suggestion] | None:
    """Return the start of an expression.

    Columns of the sources that are read, functions, a few words.
    """
    if cursor.last not in _OPERAND_FOLLOWS or not {*cursor.before} & _WITH_OPERANDS:
        return None
    if cursor.last == "*" and cursor.before[-2] in _BEFORE_A_STAR:
        return None
    read = sources_of(cursor.whole, names)
    columns = _columns(source for source, _ in read) if read else _columns(names.sources)
    aliases = _named([alias for _, alias in read] if len(read) > 1 else [], "source")
    return (*columns, *aliases, *_named(names.functions, "function"), *_words(OPERANDS))


def _after_operand(cursor: Cursor, _names: Names) -> Iterable[Suggestion] | None:
    """Return the clauses that may still come, then the words that continue an expression."""
    clauses = [word for word in cursor.before if word in CLAUSES or word == "SELECT"]
    if not clauses:
        return None
    latest = clauses[-1]
    goes_on = _GOES_ON if latest in _IN_EXPRESSIONS else ()
    if cursor.inside():
        return _words(goes_on)
    if latest == "SELECT":
        return _words(("FROM", "AS", *goes_on))
    if CLAUSES.index(latest) >= CLAUSES.index("WINDOW"):
        return _words((*CLAUSES[CLAUSES.index(latest) + 1 :], *goes_on))
    joined = ("AS", "WITHIN", "ON") if latest == "JOIN" else ("AS",) if latest == "FROM" else ()
    return _words((*joined, *_JOINS, *CLAUSES[CLAUSES.index("WINDOW") :], *goes_on))


_RULES: tuple[Rule, ...] = (
    _start,
    _column_of,
    _text,
    _upgraded,
    _thing,
    _property,
    _type,
    _fixed,
    _rest,
    _deletion,
    _target_column,
    _operand,
    _after_operand,
)


def _words(words: Iterable[str]) -> tuple[Suggestion, ...]:
    return tuple(Suggestion(word) for word in words)


def _named(names: Iterable[str], about: str) -> tuple[Suggestion, ...]:
    return tuple(Suggestion(name, about) for name in names)


def _sources(sources: Iterable[NamedSource]) -> tuple[Suggestion, ...]:
    return tuple(Suggestion(source.name, source.kind.lower()) for source in sources)


def _columns(sources: Iterable[NamedSource]) -> tuple[Suggestion, ...]:
    """Return the columns of sources; one that several have is offered once."""
    types = {name: type_ for source in sources for name, type_ in source.columns}
    return tuple(Suggestion(name, type_) for name, type_ in types.items())
