from __future__ import annotations

import pytest

from ksql.core.types.model import BIGINT, BOOLEAN, STRING, Array
from ksql.sql.binder import bound as b
from ksql.sql.binder.show import sql_of

A, L = b.Column("A", BIGINT), b.Column("lower", STRING)
ONE, NULL = b.Const(1, BIGINT), b.Const(None, BIGINT)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (L, "`lower`"),
        (b.LambdaVar("X", BIGINT), "X"),
        (NULL, "NULL"),
        (b.Const("it's", STRING), "'it''s'"),
        (b.Const(True, BOOLEAN), "TRUE"),
        (b.Const(1.5, BIGINT), "1.5"),
        (b.Call("ABS", 0, (A,), BIGINT), "ABS(A)"),
        (b.Arith("+", A, ONE, BIGINT), "(A + 1)"),
        (b.Compare("IS DISTINCT FROM", A, NULL), "(A IS DISTINCT FROM NULL)"),
        (b.Logical("OR", b.Not(A), b.IsNull(A, False)), "((NOT A) OR (A IS NULL))"),
        (b.IsNull(A, True), "(A IS NOT NULL)"),
        (b.Negate(A, BIGINT), "-A"),
        (b.In(A, (ONE, NULL)), "(A IN (1, NULL))"),
        (b.Like(L, b.Const("a!%", STRING), "!"), "(`lower` LIKE 'a!%' ESCAPE '!')"),
        (b.Like(L, L, None), "(`lower` LIKE `lower`)"),
        (b.Case(((A, ONE), (L, NULL)), A, BIGINT),
         "(CASE WHEN A THEN 1 WHEN `lower` THEN NULL ELSE A END)"),
        (b.Case(((A, ONE),), None, BIGINT), "(CASE WHEN A THEN 1 END)"),
        (b.Cast(A, STRING, implicit=True), "CAST(A AS STRING)"),
        (b.Subscript(A, ONE, BIGINT), "A[1]"),
        (b.Deref(A, "f", BIGINT), "A->`f`"),
        (b.MakeArray((A, ONE), Array(BIGINT)), "ARRAY[A, 1]"),
        (b.MakeMap(((L, A),), BIGINT), "MAP(`lower` := A)"),
        (b.MakeStruct((("f", A),), BIGINT), "STRUCT(`f` := A)"),
        (b.Lambda(("X", "Y"), A, BIGINT), "(X, Y) => A"),
        (b.Let("X", A, b.LambdaVar("X", BIGINT), BIGINT), "LET X := A IN X"),
    ],
)  # fmt: skip
def test_show(expr, text):
    assert sql_of(expr) == text
