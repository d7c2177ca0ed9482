"""Statements, queries, expressions and errors: what is read and how it is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksql.core.errors import KsqlError
from ksql.sql.syntax.printer import expression, statement
from tests.parsing import parse, parse_expression

HERE = Path(__file__).parent


def printed_statement(text: str) -> str:
    [parsed] = parse(text, test_statements=True)
    canonical = statement(parsed.statement)
    [again] = parse(canonical, test_statements=True)
    assert again.statement == parsed.statement
    assert statement(again.statement) == canonical
    return canonical


def printed_expression(text: str) -> str:
    parsed = parse_expression(text)
    canonical = expression(parsed)
    assert parse_expression(canonical) == parsed
    return canonical


def error(text: str) -> str:
    with pytest.raises(KsqlError) as caught:
        parse(text)
    return caught.value.text()


@pytest.mark.parametrize("name", ["statements", "queries"])
def test_statements(golden, name):
    golden(HERE / f"parse_{name}.sql", printed_statement)


def test_expressions(golden):
    golden(HERE / "parse_expressions.sql", printed_expression)


def test_errors(golden):
    golden(HERE / "parse_errors.sql", error)
