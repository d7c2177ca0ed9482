"""Whole scripts; expressions and types by themselves, as parts of a statement."""

from __future__ import annotations

from collections.abc import Mapping

from ksql.core.types.model import SqlType
from ksql.sql.syntax.ast import CreateType
from ksql.sql.syntax.expr import Expr
from ksql.sql.syntax.machine import grammar
from ksql.sql.syntax.parser import Parsed, RawStatement, parse_one, split


def parse(
    text: str,
    *,
    types: Mapping[str, SqlType] | None = None,
    variables: Mapping[str, str] | None = None,
    test_statements: bool = False,
) -> list[Parsed]:
    """Parse a whole script with one state of types and variables; see `parse_one`."""
    return [
        parse_one(raw, types=types, variables=variables, test_statements=test_statements)
        for raw in split(text)
    ]


def parse_expression(text: str) -> Expr:
    """Return the expression; its places are those of the text.

    Raises: ParseError if the text is anything else.
    """
    cut = grammar().lexer.words
    words = (*cut("SELECT * FROM S WHERE"), *cut(text), *cut(";"))
    condition = parse_one(RawStatement(text, words[0].span, words)).statement.where
    assert condition is not None
    return condition


def parse_type(text: str) -> SqlType:
    """Return the type.

    Raises: ParseError if the text is anything else or names an unknown type.
    """
    (statement,) = parse(f"CREATE TYPE T AS {text};")
    assert isinstance(statement.statement, CreateType)
    return statement.statement.type
