from __future__ import annotations

import decimal
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types import model
from ksql.core.types.render import java_double, java_string


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (10.3, "10.3"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1234567.0, "1234567.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.5e10, "1.5E10"),
        (-1.25e-7, "-1.25E-7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (123456.789, "123456.789"),
        (0.05, "0.05"),
        (1e22, "1.0E22"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles(value, text):
    assert java_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value):
    assert float(java_double(value)) == value


STRUCT = model.Struct((model.Field("F0", model.INTEGER), model.Field("f1", model.STRING)))


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (None, model.STRING, "null"),
        (True, model.BOOLEAN, "true"),
        (1e10, model.DOUBLE, "1.0E10"),
        ([1, None], model.Array(model.INTEGER), "[1, null]"),
        ({"this": 1}, model.Map(model.STRING, model.INTEGER), "{this=1}"),
        ({"F0": 1, "f1": "x"}, STRUCT, "Struct{F0=1,f1=x}"),
        ({"F0": None, "f1": "x"}, STRUCT, "Struct{f1=x}"),
        ([decimal.Decimal("0.0000001")], model.Array(model.Decimal(9, 7)), "[1E-7]"),
        ([0], model.Array(model.TIMESTAMP), "[1970-01-01 00:00:00.0]"),
        ([120], model.Array(model.TIMESTAMP), "[1970-01-01 00:00:00.12]"),
        ([60_000], model.Array(model.TIME), "[00:01:00]"),
        ([1], model.Array(model.DATE), "[1970-01-02]"),
    ],
)
def test_values(value, type_, text):
    assert java_string(value, type_) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0**62, "4.6116860184273879E18"),
        (-(2.0**62), "-4.6116860184273879E18"),
        (2.0**53, "9.007199254740992E15"),
        (2.0**53 + 2, "9.007199254740994E15"),
        (1e18, "1.0E18"),
        (1.2345678901234568e17, "1.2345678901234568E17"),
        (2.0**63, "9.223372036854776E18"),
    ],
)
def test_integers_beyond_what_a_double_distinguishes(value, text):
    assert java_double(value) == text
    assert float(text) == value
