from __future__ import annotations

import decimal
import math

import pytest

from ksql.core.types import coerce, ints, model
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

D = decimal.Decimal
DEC = model.Decimal(4, 2)
SCALARS = (BOOLEAN, INTEGER, BIGINT, DEC, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP)
MATRIX: dict[model.SqlType, set[model.SqlType]] = {
    BOOLEAN: {STRING},
    INTEGER: {BIGINT, DEC, DOUBLE, STRING},
    BIGINT: {INTEGER, DEC, DOUBLE, STRING},
    DEC: {INTEGER, BIGINT, DOUBLE, STRING},
    DOUBLE: {INTEGER, BIGINT, DEC, STRING},
    STRING: {BOOLEAN, INTEGER, BIGINT, DEC, DOUBLE, TIMESTAMP, TIME, DATE, BYTES},
    BYTES: set(),
    DATE: {STRING, TIMESTAMP},
    TIME: {STRING},
    TIMESTAMP: {STRING, TIME, DATE},
}


def can_cast(source, target):
    try:
        coerce.caster(source, target)
    except coerce.CastNotSupported:
        return False
    return True


@pytest.mark.parametrize("source", SCALARS, ids=str)
def test_the_matrix_of_casts(source):
    assert {t for t in SCALARS if can_cast(source, t)} == MATRIX[source] | {source}


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (True, BOOLEAN, STRING, "true"),
        (2**31, BIGINT, INTEGER, -(2**31)),
        (5, INTEGER, DOUBLE, 5.0),
        (5, INTEGER, DEC, D("5.00")),
        (D("-1.99"), DEC, INTEGER, -1),
        (D("0.01"), DEC, DOUBLE, 0.01),
        (D("0.00"), DEC, STRING, "0.00"),
        (D("1E-7"), model.Decimal(9, 7), STRING, "0.0000001"),
        (-1.9, DOUBLE, INTEGER, -1),
        (1e300, DOUBLE, BIGINT, 2**63 - 1),
        (-math.inf, DOUBLE, INTEGER, -(2**31)),
        (math.nan, DOUBLE, BIGINT, 0),
        (1e10, DOUBLE, STRING, "1.0E10"),
        (0.125, DOUBLE, DEC, D("0.13")),
        (" ye", STRING, BOOLEAN, True),
        ("yess", STRING, BOOLEAN, False),
        ("", STRING, BOOLEAN, False),
        (" 42 ", STRING, INTEGER, 42),
        ("+42", STRING, BIGINT, 42),
        ("-1.5e3", STRING, DOUBLE, -1500.0),
        ("1.5d", STRING, DOUBLE, 1.5),
        ("0.995", STRING, DEC, D("1.00")),
        ("1e1", STRING, DEC, D("10.00")),
        ("IQ==", STRING, BYTES, b"!"),
        ("IQ", STRING, BYTES, b"!"),
        ("1970-01-02", STRING, TIMESTAMP, 86400000),
        (-2000, TIMESTAMP, DATE, -1),
        (86400100, TIMESTAMP, TIME, 100),
        (10, DATE, TIMESTAMP, 864000000),
        (4, DATE, STRING, "1970-01-05"),
        (61_001, TIME, STRING, "00:01:01"),
        (0, TIMESTAMP, STRING, "1970-01-01T00:00:00.000"),
    ],
)
def test_casts(value, source, target, result):
    cast = coerce.caster(source, target)(value)
    assert cast == result
    assert type(cast) is type(result)


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        ("1.5", STRING, INTEGER),
        ("2147483648", STRING, INTEGER),
        ("1_0", STRING, BIGINT),
        ("", STRING, BIGINT),
        ("NaN", STRING, DOUBLE),
        ("Infinity", STRING, DOUBLE),
        ("1e400", STRING, DOUBLE),
        ("1dd", STRING, DOUBLE),
        ("", STRING, DOUBLE),
        ("x", STRING, DEC),
        ("100", STRING, DEC),
        (100, INTEGER, DEC),
        (math.nan, DOUBLE, DEC),
        ("*", STRING, BYTES),
        ("foo", STRING, DATE),
    ],
)
def test_bad_values(value, source, target):
    with pytest.raises((ValueError, ArithmeticError)):
        coerce.caster(source, target)(value)


def test_collections():
    to_text = coerce.caster(model.Array(BIGINT), model.Array(STRING))
    assert to_text([1, None, 2**31]) == ["1", None, "2147483648"]
    source = model.Struct((model.Field("F0", BIGINT), model.Field("F1", STRING)))
    target = model.Struct((model.Field("F0", STRING), model.Field("F3", STRING)))
    assert coerce.caster(source, target)({"F0": 1, "F1": "3"}) == {"F0": "1", "F3": None}
    maps = coerce.caster(model.Map(INTEGER, INTEGER), model.Map(STRING, BIGINT))
    assert maps({1: 2, 3: None}) == {"1": 2, "3": None}
    assert coerce.caster(model.Map(STRING, INTEGER), STRING)({"this": 1}) == "{this=1}"
    assert not can_cast(STRING, model.Array(INTEGER))
    assert not can_cast(model.Array(BOOLEAN), model.Array(INTEGER))
    with pytest.raises(coerce.CastNotSupported, match="Cast of STRING to ARRAY<INTEGER> is not"):
        coerce.caster(STRING, model.Array(INTEGER))


@pytest.mark.parametrize(
    ("source", "target", "can"),
    [
        (INTEGER, BIGINT, True),
        (INTEGER, DOUBLE, True),
        (BIGINT, INTEGER, False),
        (INTEGER, model.Decimal(10, 0), True),
        (INTEGER, model.Decimal(10, 1), False),
        (DEC, model.Decimal(5, 3), True),
        (DEC, DOUBLE, True),
        (DOUBLE, DEC, False),
        (STRING, DATE, True),
        (STRING, BYTES, True),
        (STRING, INTEGER, False),
        (INTEGER, STRING, False),
        (model.NULL, STRING, True),
        (model.Array(INTEGER), model.Array(BIGINT), True),
        (model.Map(STRING, INTEGER), model.Map(STRING, STRING), False),
        (
            model.Struct((model.Field("A", INTEGER),)),
            model.Struct((model.Field("A", BIGINT), model.Field("B", STRING))),
            True,
        ),
        (
            model.Struct((model.Field("X", INTEGER),)),
            model.Struct((model.Field("A", BIGINT),)),
            False,
        ),
    ],
)
def test_implicit_conversions(source, target, can):
    assert coerce.can_coerce(source, target) is can


@pytest.mark.parametrize(
    ("text", "value"), [("TrUe", True), ("tr", True), ("Y", True), ("n", False)]
)
def test_boolean_words(text, value):
    assert coerce.parse_boolean_word(text) is value


@pytest.mark.parametrize("text", ["maybe", "", "truely"])
def test_no_boolean_words(text):
    with pytest.raises(ValueError, match="invalid input syntax for type BOOLEAN"):
        coerce.parse_boolean_word(text)


def test_java_integers():
    assert ints.wrap32(2**31) == -(2**31)
    assert ints.wrap64(-(2**63) - 1) == 2**63 - 1
    assert [ints.divide(a, b) for a, b in ((7, 2), (-7, 2), (7, -2), (-7, -2))] == [3, -3, -3, 3]
    assert [ints.remainder(a, b) for a, b in ((7, 2), (-7, 2), (7, -2))] == [1, -1, 1]
    with pytest.raises(ZeroDivisionError):
        ints.divide(1, 0)
    assert ints.divide_double(1.0, 0.0) == math.inf
    assert ints.divide_double(1.0, -0.0) == -math.inf
    assert math.isnan(ints.divide_double(0.0, 0.0))
    assert math.isnan(ints.remainder_double(1.0, 0.0))
    assert math.isnan(ints.remainder_double(math.inf, 2.0))
    assert ints.remainder_double(-7.5, 2.0) == -1.5
