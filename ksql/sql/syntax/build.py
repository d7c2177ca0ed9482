"""The builders that make a value of a rule of the grammar: their table and what they share.

A builder is a function of the rule's span and of its parts, without keywords and signs. It is
called while the text is parsed, so no tree but the result is ever made.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from ksql.core import Span
from ksql.sql.syntax.expr import NOWHERE
from ksql.sql.syntax.lexer import Token

if TYPE_CHECKING:
    from collections.abc import Callable

    Builder = Callable[..., object]
    Callback = Callable[[list[Any]], object]
    Declared = TypeVar("Declared", bound=Builder)

BUILDERS = SimpleNamespace()
"""One callback for each rule and alias of the grammar, filled by the `build_*` modules."""

_VALUES = frozenset(("NAME", "QUOTED", "STRING", "VARIABLE", "INTEGER", "DIGITS", "FLOAT"))


class Part:
    """A builder's result that is no node itself: a name, a list, a flag."""

    __slots__ = ("span", "value")

    def __init__(self, value: object, span: Span | None) -> None:
        self.value: Any = value
        self.span = span


def rule(*names: str) -> Callable[[Declared], Declared]:
    """Declare the function to be the builder of these rules."""

    def declare(build: Declared) -> Declared:
        for name in names:
            setattr(BUILDERS, name, _callback(build))
        return build

    return declare


def node(make: Callable[..., object], *names: str) -> None:
    """Declare rules whose parts, in their order, and span are the arguments of a node's class."""
    rule(*names)(lambda span, *parts: make(*parts, span=span))


def fields(kind: type[Any], order: str, *names: str) -> None:
    """Declare rules whose parts, in that order, are fields of a node's class.

    A list that is not in the text is empty. Words in the place of a flag change its default. A part
    whose name begins with ``_`` has no field.
    """
    known = {entry.name: entry for entry in dataclasses.fields(kind)}
    entries = [None if name[0] == "_" else known[name] for name in order.split()]

    def build(span: Span, *parts: object) -> object:
        named = zip(entries, parts, strict=True)
        values = {entry.name: _field(entry, part) for entry, part in named if entry is not None}
        return kind(**values, span=span)

    rule(*names)(build)


def _field(entry: dataclasses.Field[Any], part: object) -> object:
    text = str(entry.type)
    if text == "bool":
        return (part is None) == bool(entry.default)
    return () if part is None and text.startswith("tuple") else part


def value(make: Callable[..., object], *names: str) -> None:
    """Declare rules whose parts alone are the arguments: for what has no place of its own."""
    rule(*names)(lambda _span, *parts: make(*parts))


def only(*names: str) -> None:
    """Declare rules whose value is that of their only part, or None without it."""
    value(lambda part=None: part, *names)


def listed(*names: str) -> None:
    """Declare rules whose value is all their parts: things with commas between them."""
    value(lambda *parts: parts, *names)


def words(*names: str) -> None:
    """Declare rules whose value is their words: ``IF NOT EXISTS`` gives that text."""
    for name in names:
        setattr(BUILDERS, name, _join_words)


def join(first: Span, last: Span) -> Span:
    """Return the place from the start of one span to the end of another."""
    return Span(first.start, last.end, first.line, first.column)


def _callback(build: Builder) -> Callback:
    def call(children: list[Any]) -> object:
        first: Span | None = None
        last: Span | None = None
        parts: list[Any] = []
        for child in children:
            if child is None:
                parts.append(None)
                continue
            if child.__class__ is Token:
                if child.type in _VALUES:
                    parts.append(child)
            elif child.__class__ is Part:
                parts.append(child.value)
            else:
                parts.append(child)
            if child.span is not None:
                last = child.span
                first = first or last
        span = first if first is last or last is None else join(first or last, last)
        value = build(span or NOWHERE, *parts)
        return value if hasattr(value, "span") else Part(value, span)

    return call


def _join_words(children: list[Token]) -> Part:
    text = " ".join(child.text.upper() for child in children)
    return Part(text, join(children[0].span, children[-1].span))
