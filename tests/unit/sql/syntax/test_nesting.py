from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError
from ksql.sql.syntax.lexer import MAX_NESTING, TooDeep
from ksql.sql.syntax.printer import expression
from ksql.sql.syntax.walk import transform, walk
from tests.parsing import parse, parse_expression, parse_type

DEEP = 2_000
BOMBS = {
    "brackets": "(" * DEEP + "1" + ")" * DEEP,
    "open": "(" * DEEP,
    "calls": "f(" * DEEP + ")" * DEEP,
    "arrays": "ARRAY[" * DEEP + "]" * DEEP,
    "sum": "1" + " + 1" * DEEP,
    "and": "a" + " AND a" * DEEP,
    "not": "NOT " * DEEP + "a",
    "minus": "- " * DEEP + "a",
    "fields": "a" + "->b" * DEEP,
    "indexes": "a" + "[1]" * DEEP,
    "case": "CASE WHEN a THEN " * DEEP + "1" + " END" * DEEP,
    "lambda": "f(" + "x => " * DEEP + "x)",
    "cast": "CAST(1 AS " + "ARRAY<" * DEEP + "INT" + ">" * DEEP + ")",
}


@pytest.mark.parametrize("name", BOMBS)
def test_deep_expressions_are_refused(name):
    with pytest.raises(Exception, match=r"too large|Syntax Error") as caught:
        parse_expression(BOMBS[name])
    assert isinstance(caught.value, KsqlError)
    assert caught.value.text()


@pytest.mark.parametrize("text", ["ARRAY<" * DEEP + "INT" + ">" * DEEP, "INT" + " ARRAY" * DEEP])
def test_deep_types_are_refused(text):
    with pytest.raises(TooDeep):
        parse_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN " * DEEP + "SHOW TABLES;",
        "SELECT * FROM a" + " JOIN a ON b = c" * DEEP + ";",
        "SELECT " + BOMBS["sum"] + " FROM s;",
    ],
)
def test_deep_statements_are_refused(text):
    with pytest.raises(TooDeep):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "1" + " + 1" * (MAX_NESTING - 1),
        "(" * MAX_NESTING + "1" + ")" * MAX_NESTING,
        "NOT " * (MAX_NESTING - 1) + "a",
        "a" + "->b" * (MAX_NESTING - 1),
    ],
)
def test_allowed_nesting_can_be_processed(text):
    tree = parse_expression(text)
    assert parse_expression(tree_text := expression(tree)) == tree
    assert tree_text
    assert hash(tree)
    assert sum(1 for _ in walk(tree)) >= 1
    assert transform(tree, lambda node: node) is tree


def test_wide_is_not_deep():
    values = ", ".join(["1"] * 5000)
    [parsed] = parse(f"INSERT INTO s VALUES ({values});")
    assert len(parsed.statement.values) == 5000
