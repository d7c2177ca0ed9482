from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types import decimals, model

D = decimal.Decimal


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        ("+", (4, 2), (4, 2), (5, 2)),
        ("-", (4, 2), (10, 0), (13, 2)),
        ("*", (4, 2), (4, 2), (9, 4)),
        ("/", (4, 2), (4, 2), (11, 7)),
        ("/", (2, 0), (1, 0), (8, 6)),
        ("%", (4, 2), (5, 3), (5, 3)),
    ],
)
def test_result_types(op, a, b, result):
    assert decimals.result_type(op, model.Decimal(*a), model.Decimal(*b)) == model.Decimal(*result)


@pytest.mark.parametrize(
    ("text", "type_"),
    [("0.005", (4, 3)), ("0.8", (2, 1)), ("10.00", (4, 2)), ("5", (1, 0)), ("0.0", (2, 1))],
)
def test_literal_types(text, type_):
    assert decimals.of_literal(D(text)) == model.Decimal(*type_)


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        ("+", "10.01", "5.10", "15.11"),
        ("-", "10.01", "10.01", "0.00"),
        ("*", "-1.00", "0.00", "0.0000"),
        ("/", "10.10", "-2.00", "-5.0500000"),
        ("%", "-7.50", "2.00", "-1.50"),
    ],
)
def test_operations(op, a, b, result):
    type_ = decimals.result_type(op, model.Decimal(4, 2), model.Decimal(4, 2))
    assert str(decimals.operation(op, type_)(D(a), D(b))) == result


@pytest.mark.parametrize(
    ("op", "a", "b"), [("/", "1.00", "3.00"), ("/", "1.00", "0.00"), ("%", "1.00", "0.00")]
)
def test_inexact_decimal_is_an_error(op, a, b):
    type_ = decimals.result_type(op, model.Decimal(4, 2), model.Decimal(4, 2))
    with pytest.raises(ArithmeticError):
        decimals.operation(op, type_)(D(a), D(b))


def test_a_null_operand_raises():
    with pytest.raises(TypeError):
        decimals.operation("+", model.Decimal(5, 2))(D("1.00"), None)


@given(st.decimals(-99, 99, places=2), st.decimals(-99, 99, places=2))
def test_sums_and_products_are_exact(a, b):
    four = model.Decimal(4, 2)
    for op, exact in (("+", a + b), ("-", a - b), ("*", a * b)):
        type_ = decimals.result_type(op, four, four)
        result = decimals.operation(op, type_)(a, b)
        assert result == exact
        assert result.as_tuple().exponent == -type_.scale
        assert not (result == 0 and result.is_signed())


def test_fitting():
    two_one = model.Decimal(2, 1)
    assert str(decimals.fitter(two_one, exact=False)(D("0.99"))) == "1.0"
    assert str(decimals.fitter(two_one, exact=True)(D("1"))) == "1.0"
    assert str(decimals.fitter(two_one, exact=False)(D("-0.01"))) == "0.0"
    for value in ("10", "-10.01", "NaN", "Infinity"):
        with pytest.raises(ArithmeticError):
            decimals.fitter(two_one, exact=False)(D(value))
    with pytest.raises(ArithmeticError):
        decimals.fitter(two_one, exact=True)(D("0.99"))


def test_widening():
    a, b = model.Decimal(4, 2), model.Decimal(10, 0)
    assert decimals.widen(a, b) == model.Decimal(12, 2)
    assert decimals.holds(model.Decimal(12, 2), a)
    assert not decimals.holds(b, a)
    assert decimals.as_decimal(model.BIGINT) == model.Decimal(19, 0)
    assert decimals.as_decimal(model.DOUBLE) is None


def test_doubles():
    assert decimals.from_double(model.Decimal(2, 1))(1.1) == D("1.1")
    assert decimals.exact_double(1.1) == D("1.1")
    with pytest.raises(ArithmeticError):
        decimals.exact_double(float("inf"))
