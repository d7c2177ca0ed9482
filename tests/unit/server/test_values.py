from __future__ import annotations

import decimal
import json

import pytest

from ksql.core.types import model
from ksql.core.types.model import SqlType
from server.answers.row_encoders import converter, dumps, row_converter

STRUCT = model.Struct((model.Field("A", model.INTEGER), model.Field("T", model.TIMESTAMP)))


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (model.INTEGER, 1, "1"),
        (model.BIGINT, 2**63 - 1, "9223372036854775807"),
        (model.DOUBLE, 1.5, "1.5"),
        (model.DOUBLE, float("nan"), '"NaN"'),
        (model.DOUBLE, float("-inf"), '"-Infinity"'),
        (model.BOOLEAN, True, "true"),
        (model.STRING, "é\n", '"é\\n"'),
        (model.Decimal(10, 8), decimal.Decimal("0.00000010"), "0.00000010"),
        (model.BYTES, b"\x00\xff", '"AP8="'),
        (model.DATE, 19_000, '"2022-01-08"'),
        (model.TIME, 3_661_000, '"01:01:01"'),
        (model.TIMESTAMP, 1_600_000_000_123, '"2020-09-13T12:26:40.123"'),
        (model.Array(model.DATE), [0, None], '["1970-01-01",null]'),
        (model.Array(model.STRING), ["a", None], '["a",null]'),
        (model.Map(model.STRING, model.INTEGER), {"a": None}, '{"a":null}'),
        (model.Map(model.STRING, model.BYTES), {"a": None, "b": b""}, '{"a":null,"b":""}'),
        (model.Map(model.INTEGER, model.INTEGER), {1: 2}, '{"1":2}'),
        (model.Map(model.BOOLEAN, model.DATE), {True: 0}, '{"true":"1970-01-01"}'),
        (model.Map(model.DATE, model.INTEGER), {0: 1}, '{"1970-01-01":1}'),
        (STRUCT, {"A": 1, "T": 0}, '{"A":1,"T":"1970-01-01T00:00:00.000"}'),
        (STRUCT, {"A": None, "T": None}, '{"A":null,"T":null}'),
    ],
)
def test_values_as_json(type_: SqlType, value: object, text: str) -> None:
    to_json = converter(type_)
    assert dumps(to_json(value) if to_json else value).decode() == text
    types: list[SqlType] = [model.STRING, type_]
    convert = row_converter(types)
    row = ("k", value)
    assert dumps(convert(row) if convert else row).decode() == f'["k",{text}]'


def test_plain_rows_need_no_conversion() -> None:
    plain: list[SqlType] = [
        model.INTEGER,
        model.Array(model.STRING),
        model.Map(model.STRING, model.BIGINT),
    ]
    assert row_converter(plain) is None


def test_nulls_pass() -> None:
    convert = row_converter([model.DATE, STRUCT])
    assert convert is not None
    assert convert((None, None)) == [None, None]


def test_half_a_surrogate_pair_does_not_end_a_stream() -> None:
    assert json.loads(dumps(["\ud800x", {"a": "\udc00"}])) == ["?x", {"a": "?"}]
    assert json.loads(dumps(("\ud800x", 1))) == ["?x", 1]


def test_a_key_that_is_null_does_not_end_a_stream() -> None:
    assert json.loads(dumps(({None: 1, "a": {None: "\ud800"}},))) == [
        {"null": 1, "a": {"null": "?"}}
    ]
