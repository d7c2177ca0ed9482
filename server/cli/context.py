"""The words that fit a place: the first rule that recognizes the place decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from server.cli.names import Names, Source
from server.cli.place import Place, sources_of
from server.cli.words import (
    CLAUSES,
    FIRST,
    FORMATS,
    NEXT,
    OPERANDS,
    RESERVED,
    TYPES,
    WITH_PROPERTIES,
    words_in,
)

_BARE_TOPIC = re.compile(r"[A-Za-z_]\w*\Z")
_OPERAND_FOLLOWS = frozenset(
    words_in(
        """
    SELECT WHERE BY HAVING ON AND OR NOT WHEN THEN ELSE CASE BETWEEN LIKE ( [ , = < > + - * / % |
    """
    )
)
_BEFORE_A_STAR = frozenset({"SELECT", ",", ".", "("})
_JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "JOIN")
_GOES_ON = ("AND", "OR", "BETWEEN", "IN", "IS", "LIKE", "NOT")
_IN_EXPRESSIONS = frozenset({"SELECT", "ON", "WHERE", "HAVING"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """One offer: the text, and a word about it for the list."""

    text: str
    about: str = ""


Rule = Callable[[Place, Names], "Iterable[Candidate] | None"]


def candidates(place: Place, names: Names) -> list[Candidate]:
    """Return all that may stand at a place, the likeliest first."""
    if place.before[:1] == ("EXPLAIN",) and len(place.before) > 1:
        place = replace(place, before=place.before[1:])
    for rule in _RULES:
        found = rule(place, names)
        if found is not None:
            return list(found)
    return []


def texts(place: Place, names: Names) -> list[str]:
    """Return the words that fit in the quotes that begin at a place."""
    named = place.before[-2] if place.last == "=" and place.before[1:] else ""
    if place.last in ("SET", "UNSET", "SYSTEM"):
        return list(names.properties)
    if place.last == "PRINT" or named == "KAFKA_TOPIC":
        return list(names.topics)
    if named in ("FORMAT", "KEY_FORMAT", "VALUE_FORMAT"):
        return list(FORMATS)
    return []


def _start(place: Place, _names: Names) -> Iterable[Candidate] | None:
    return None if place.before else _words(FIRST)


def _column_of(place: Place, names: Names) -> Iterable[Candidate] | None:
    """Return the columns of the source before a point; a path into a struct is not followed."""
    if place.last == "->":
        return ()
    if place.last != ".":
        return None
    read = sources_of(place.whole, names)
    return _columns(source for source, alias in read if place.before[-2:-1] == (alias,))


def _text(place: Place, names: Names) -> Iterable[Candidate] | None:
    if place.last == "PRINT":
        topics = names.topics
        return (Candidate(t if _may_be_bare(t) else f"'{t}'", "topic") for t in topics)
    found = texts(place, names)
    if found or place.last in ("SET", "UNSET", "SYSTEM"):
        return (Candidate(f"'{text}'") for text in found)
    return None


def _may_be_bare(topic: str) -> bool:
    return bool(_BARE_TOPIC.match(topic)) and topic.upper() not in RESERVED


def _thing(place: Place, names: Names) -> Iterable[Candidate] | None:
    """Return the name of what a statement is about."""
    match tuple(token for token in place.before if token not in ("IF", "EXISTS")):
        case ("TERMINATE" | "PAUSE" | "RESUME",):
            return (*_named(names.queries, "query"), *_words(("ALL",)))
        case ("EXPLAIN",):
            return (*_named(names.queries, "query"), *_words(FIRST))
        case ("DESCRIBE",):
            kinds = _words(("FUNCTION", "STREAMS", "TABLES", "CONNECTOR"))
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
        case (*_, "FROM" | "JOIN" | "INTO"):
            return _sources(names.sources)
        case _:
            return None


def _fixed(place: Place, _names: Names) -> Iterable[Candidate] | None:
    """Return the words that a table has for the last words; a verb counts at the start only."""
    for count in (3, 2, 1):
        before = place.before[-count:]
        known = NEXT.get(" ".join(before))
        if known is not None and (before == place.before or before[0] not in FIRST):
            return _words(known)
    return None


def _rest(place: Place, _names: Names) -> Iterable[Candidate] | None:
    """Return the words that continue a statement that is no query."""
    match place.before:
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
        case ("INSERT", *_, ")") if "SELECT" not in place.before and not place.inside():
            return _words(("VALUES", "SELECT"))
        case ("CREATE", *_) if "SELECT" not in place.before and not place.inside():
            return _words(("SELECT",) if place.last == "AS" else ("WITH", "AS"))
        case _:
            return None


def _property(place: Place, _names: Names) -> Iterable[Candidate] | None:
    if place.inside()[-1:] != ("WITH",):
        return None
    return _named(WITH_PROPERTIES if place.last in ("(", ",") else (), "property")


def _type(place: Place, names: Names) -> Iterable[Candidate] | None:
    types = (*_named(TYPES, "type"), *_named(names.types, "type"))
    before, inside = place.before, place.inside()
    if before[:2] == ("CREATE", "TYPE"):
        return types if place.last in ("AS", "<") or _after_a_field(place) else ()
    if before[:1] == ("ALTER",) and len(before) > 2:
        adding = before[-2] in ("ADD", "COLUMN") and place.last != "COLUMN"
        return types if adding else _words(("COLUMN",) if place.last == "ADD" else ("ADD",))
    if place.last == "AS" and inside[-1:] == ("CAST",):
        return types
    if inside[:1] == ("CREATE",) and not {"AS", "WITH"} & {*inside}:
        if place.last == "<" or _after_a_field(place) or (place.last == "," and _in_angles(place)):
            return types
        return () if place.last in ("(", ",") else _words(("KEY", "PRIMARY", "HEADERS"))
    return None


def _in_angles(place: Place) -> bool:
    return place.before.count("<") > place.before.count(">")


def _after_a_field(place: Place) -> bool:
    """Return whether the last token is the name of a column or field, so that its type follows."""
    is_first = place.before[-2:-1] in (("(",), (",",)) or place.before[-3:-1] == ("STRUCT", "<")
    return is_first and place.after_a_name


def _target_column(place: Place, names: Names) -> Iterable[Candidate] | None:
    """Return a column between the brackets of INSERT INTO s (..)."""
    match place.inside():
        case ("INSERT", "INTO", target):
            return _columns(source for source in names.sources if source.name == target)
        case _:
            return None


def _operand(place: Place, names: Names) -> Iterable[Candidate] | None:
    """Return the start of an expression.

    Columns of the sources that are read, functions, a few words.
    """
    if place.last not in _OPERAND_FOLLOWS or not {*place.before} & {"SELECT", "VALUES"}:
        return None
    if place.last == "*" and place.before[-2] in _BEFORE_A_STAR:
        return None
    read = sources_of(place.whole, names)
    columns = _columns(source for source, _ in read) if read else _columns(names.sources)
    aliases = _named([alias for _, alias in read] if len(read) > 1 else [], "source")
    return (*columns, *aliases, *_named(names.functions, "function"), *_words(OPERANDS))


def _after_operand(place: Place, _names: Names) -> Iterable[Candidate] | None:
    """Return the clauses that may still come, then the words that continue an expression."""
    clauses = [word for word in place.before if word in CLAUSES or word == "SELECT"]
    if not clauses:
        return None
    latest = clauses[-1]
    goes_on = _GOES_ON if latest in _IN_EXPRESSIONS else ()
    if place.inside():
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
    _thing,
    _property,
    _type,
    _fixed,
    _rest,
    _target_column,
    _operand,
    _after_operand,
)


def _words(words: Iterable[str]) -> tuple[Candidate, ...]:
    return tuple(Candidate(word) for word in words)


def _named(names: Iterable[str], about: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(name, about) for name in names)


def _sources(sources: Iterable[Source]) -> tuple[Candidate, ...]:
    return tuple(Candidate(source.name, source.kind.lower()) for source in sources)


def _columns(sources: Iterable[Source]) -> tuple[Candidate, ...]:
    """Return the columns of sources; one that several have is offered once."""
    found = {name: type_ for source in sources for name, type_ in source.columns}
    return tuple(Candidate(name, type_) for name, type_ in found.items())
