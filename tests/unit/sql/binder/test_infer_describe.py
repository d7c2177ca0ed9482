from __future__ import annotations

import pytest

from ksql.sql.binder.errors import describe
from ksql.sql.syntax import expr as ex
from tests.parsing import parse_expression


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a.b + 1 * c", "(A.B + (1 * C))"),
        ("`a` || 'it''s'", "CONCAT(`a`, 'it''s')"),
        ("null = TRUE and false", "((null = true) AND false)"),
        ("1.50 <> 1E10", "(1.50 <> 1E10)"),
        ("not a", "(NOT A)"),
        ("-a", "-A"),
        ("a between 1 and 2", "(A BETWEEN 1 AND 2)"),
        ("a in (1, 'x')", "(A IN (1, 'x'))"),
        ("a like 'x%'", "(A LIKE 'x%')"),
        ("a like 'x' escape '!'", "(A LIKE 'x' ESCAPE '!')"),
        ("a is null", "(A IS NULL)"),
        ("a is not null", "(A IS NOT NULL)"),
        ("case when a then 1 else 2 end", "(CASE WHEN A THEN 1 ELSE 2 END)"),
        ("case a when 1 then 2 end", "(CASE A WHEN 1 THEN 2 END)"),
        ("cast(a as decimal(4, 2))", "CAST(A AS DECIMAL(4, 2))"),
        ("count(*)", "COUNT(*)"),
        ("dateadd(day, 1, d)", "DATEADD(DAYS, 1, D)"),
        ("f(a, x => x + 1)", "F(A, X => (X + 1))"),
        ("f(a, (x, y) => x)", "F(A, (X, Y) => X)"),
        ("a[1]->b", "A[1]->B"),
        ("array[1, 2]", "ARRAY[1, 2]"),
        ("map('a' := 1)", "MAP('a':=1)"),
        ("struct(f := 1, `g` := 2)", "STRUCT(F:=1, `g`:=2)"),
        ("a is distinct from b", "(A IS DISTINCT FROM B)"),
    ],
)
def test_texts(text, shown):
    assert describe(parse_expression(text)) == shown


def test_variables():
    assert describe(ex.Variable("v")) == "${v}"
