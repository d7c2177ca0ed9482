from __future__ import annotations

from decimal import Decimal

import pytest

from ksql.core.errors import KsqlError
from ksql.core.types import model
from ksql.core.types.model import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
)
from ksql.exec.expressions.compile import constant_value
from tests.parsing import parse_expression
from tests.unit.exec.expressions.support import functions

STRUCT = model.Struct((model.Field("A", BIGINT), model.Field("B", model.Decimal(3, 1))))


def value(text, type_):
    return constant_value(parse_expression(text), type_, functions(), {}, "C")


@pytest.mark.parametrize(
    ("text", "type_", "result"),
    [
        ("1", INTEGER, 1),
        ("1", BIGINT, 1),
        ("1", DOUBLE, 1.0),
        ("1.5", DOUBLE, 1.5),
        ("1", model.Decimal(3, 1), Decimal("1.0")),
        ("1.50", model.Decimal(3, 1), Decimal("1.5")),
        ("-2", BIGINT, -2),
        ("NULL", STRING, None),
        ("'x'", STRING, "x"),
        ("true", BOOLEAN, True),
        ("'2020'", TIMESTAMP, 1577836800000),
        ("'1970-01-02'", DATE, 1),
        ("'00:00:01'", TIME, 1000),
        ("'IQ=='", BYTES, b"!"),
        ("UCASE('x')", STRING, "X"),
        ("1 + 2 * 3", BIGINT, 7),
        ("CAST('7' AS INT)", INTEGER, 7),
        ("ARRAY[1, NULL]", model.Array(BIGINT), [1, None]),
        ("MAP('a' := 1)", model.Map(STRING, DOUBLE), {"a": 1.0}),
        ("STRUCT(b := 2)", STRUCT, {"A": None, "B": Decimal("2.0")}),
        ("STRUCT(a := 1, z := 'x')", STRUCT, {"A": 1, "B": None}),
        ("STRUCT(z := MAP('x' := 1))", STRUCT, {"A": None, "B": None}),
        ("ARRAY[STRUCT(a := 1, z := 2), NULL]", model.Array(STRUCT), [{"A": 1, "B": None}, None]),
        ("ARRAY[STRUCT(a := 1)]", model.Array(STRUCT), [{"A": 1, "B": None}]),
    ],
)
def test_values(text, type_, result):
    actual = value(text, type_)
    assert actual == result
    assert type(actual) is type(result)


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("'10'", INTEGER, "Expected type INTEGER for field `C` but got STRING(10)"),
        ("10", STRING, "Expected type STRING for field `C` but got INTEGER(10)"),
        ("2147483648", INTEGER, "Expected type INTEGER for field `C` but got BIGINT(2147483648)"),
        ("1E0", model.Decimal(3, 1), "but got DOUBLE(1.0)"),
        ("1.55", model.Decimal(3, 1), "but got DECIMAL(1.55)"),
        ("100", model.Decimal(3, 1), "Numeric field overflow"),
        ("'soon'", TIMESTAMP, "is not a date"),
        ("ARRAY['x']", model.Array(BIGINT), "but got ARRAY([x])"),
        ("STRUCT(a := 'x', z := 2)", STRUCT, "but got STRUCT(Struct{A=x,Z=2})"),
        ("x", INTEGER, "INSERT VALUES column 'X' cannot be resolved."),
        ("foo.bar", INTEGER, "'FOO' is not a valid stream/table name or alias."),
        ("FAIL('x')", STRING, "Error computing expression FAIL('x'): bad x"),
        ("1 / 0", INTEGER, "Error computing expression (1 / 0)"),
    ],
)
def test_refused(text, type_, message):
    with pytest.raises(KsqlError) as error:
        value(text, type_)
    assert message in error.value.text()
