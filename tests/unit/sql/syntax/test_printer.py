from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from ksql.core.types.model import type_text
from ksql.sql.syntax.printer import expression, query, statement
from tests.examples import examples
from tests.parsing import parse, parse_expression, parse_type
from tests.unit.sql.syntax.strategies import expressions, queries, statements, types

FEW = settings(
    max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@FEW
@given(types)
def test_types_read_back(tree):
    assert parse_type(type_text(tree)) == tree
    assert parse_type(str(tree)) == tree


@FEW
@given(expressions)
def test_expressions_read_back(tree):
    assert parse_expression(expression(tree)) == tree


@FEW
@given(queries)
def test_queries_read_back(tree):
    [parsed] = parse(query(tree) + ";")
    assert parsed.statement == tree


@FEW
@given(statements)
def test_statements_read_back(tree):
    [parsed] = parse(statement(tree), test_statements=True)
    assert parsed.statement == tree
