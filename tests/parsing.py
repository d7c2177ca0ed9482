"""Expressions by themselves, as the WHERE of a statement."""

from __future__ import annotations

from ksql.syntax.expr import Expr
from ksql.syntax.machine import grammar
from ksql.syntax.parser import RawStatement, parse_one


def parse_expression(text: str) -> Expr:
    """Return the expression; its places are those of the text.

    Raises: ParseError if the text is anything else.
    """
    cut = grammar().lexer.words
    words = (*cut("SELECT * FROM S WHERE"), *cut(text), *cut(";"))
    found = parse_one(RawStatement(text, words[0].span, words)).statement.where
    assert found is not None
    return found
