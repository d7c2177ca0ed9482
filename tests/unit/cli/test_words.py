"""The terminal may not import the language, so its words are compared with it here."""

from __future__ import annotations

import pytest

from ksql.control.planning import properties
from ksql.core import ident
from ksql.core.types.format import CAPABILITIES
from ksql.core.types.model import PRIMITIVES
from ksql.sql.syntax.explain_error import leading_words
from ksql.sql.syntax.lexer import WordContext
from ksql.sql.syntax.machine import Machine, Unexpected, grammar
from server.cli import words

IN_A_QUERY = ("EMIT", "GROUP", "PARTITION", "ORDER", "LEFT", "RIGHT", "FULL", "INNER")
AFTER_A_VALUE = ("AND", "AT", "BETWEEN", "IN", "IS", "LIKE", "NOT", "OR")
BEFORE = {
    **dict.fromkeys(IN_A_QUERY, "SELECT A FROM B C "),
    "OUTER": "SELECT A FROM B LEFT ",
    "NULLS": "SELECT A FROM B ORDER BY A ",
    "GRACE": "SELECT A FROM B JOIN C WITHIN 1 DAY ",
    "PRIMARY": "CREATE TABLE A (B INT ",
}


def keywords_after(text: str) -> set[str]:
    """The keywords of the grammar that may follow a text."""
    lexer = grammar().lexer
    machine = Machine(tuple(lexer.words(text)), WordContext())
    with pytest.raises(Unexpected):
        machine.run()
    accepted = machine.accepted()
    return {word for word, terminal in lexer.keywords.items() if terminal in accepted}


def test_the_lists_are_those_of_the_language() -> None:
    assert set(grammar().lexer.keywords) == words.KEYWORDS
    assert ident.RESERVED == words.RESERVED
    assert {*PRIMITIVES, "DECIMAL", "ARRAY", "MAP", "STRUCT"} == set(words.TYPES)
    assert leading_words() == set(words.FIRST)
    assert set(CAPABILITIES) == set(words.FORMATS)
    assert set(words.WITH_PROPERTIES) == properties._COMMON | properties._DDL_ONLY


@pytest.mark.parametrize("before", words.NEXT)
def test_completions_follow_the_grammar(before: str) -> None:
    assert keywords_after(BEFORE.get(before, "") + before) == set(words.NEXT[before])


def test_the_clauses_of_a_query() -> None:
    texts = ("SELECT A", "SELECT A FROM B C", "SELECT A FROM B JOIN C D", "SELECT A FROM B JOIN C")
    following = set[str]().union(*map(keywords_after, texts))
    assert set(words.CLAUSES) == following - {"AS"} - set(AFTER_A_VALUE)


def test_the_words_that_an_expression_starts_with() -> None:
    assert keywords_after("SELECT A FROM B WHERE") - set(words.TYPES) == (
        set(words.OPERANDS) - set(words.TYPES)
    )
