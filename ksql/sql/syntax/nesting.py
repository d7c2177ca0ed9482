"""The bounds of the depth of trees."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from ksql.core.errors import ParseError, Span

MAX_NESTING = 250
"""How deep brackets, expressions, types and statements may be nested.

Everything after the parser walks trees by recursion; this bound keeps that well below the limit of
Python.
"""


LONGEST_STATEMENT = 250_000
"""Characters of a statement: with its plan it has to fit a record of the command topic."""

MOST_WORDS = 30_000
"""Words of a statement, so that other clients' statements do not wait long for it."""


class TooLong(ParseError):
    """A statement that is longer than any that could be kept."""

    def __init__(self, span: Span | None = None) -> None:
        super().__init__(
            "Statement is too large to parse",
            detail=f"A statement may have {LONGEST_STATEMENT} characters and {MOST_WORDS} words.",
            hint="Split it, or put long lists into a table and join it.",
            span=span,
        )


class TooDeep(ParseError):
    """A statement that is nested beyond all reason."""

    def __init__(self, span: Span) -> None:
        super().__init__(
            "Statement is too large to parse",
            detail="This may be caused by having too many nested expressions in the statement.",
            hint=f"Expressions and types may be nested {MAX_NESTING} levels deep.",
            span=span,
        )


def check_nesting(tree: object, span: Span) -> None:
    """Refuse a tree that is deeper than `MAX_NESTING`, without recursion.

    Raises: TooDeep.
    """
    level = [tree]
    for _ in range(MAX_NESTING + 1):
        level = [part for node in level for part in _parts(node)]
        if not level:
            return
    raise TooDeep(span)


def _parts(node: object) -> list[object]:
    """Return the nodes directly below; tuples are no level of their own."""
    parts: list[object] = []
    waiting = [getattr(node, name) for name in _names(type(node))]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting.extend(value)
        elif _names(type(value)):
            parts.append(value)
    return parts


_FIELDS: dict[object, tuple[str, ...]] = {Span: ()}


def _names(kind: type) -> tuple[str, ...]:
    """Return the fields of a node's class that may hold nodes; none for anything else."""
    if kind not in _FIELDS:
        known = fields(kind) if is_dataclass(kind) else ()
        _FIELDS[kind] = tuple(field.name for field in known if field.name != "span")
    return _FIELDS[kind]
