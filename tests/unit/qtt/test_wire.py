from __future__ import annotations

import struct

import pytest

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Struct
from ksql.core.types.schema import Column
from ksql.formats.table import NoRegistry
from qtt import tokens, wire
from qtt.model import Mismatch
from qtt.post import columns_of

KAFKA, JSON = Format("KAFKA"), Format("JSON")


@pytest.mark.parametrize(
    ("type_", "text", "data"),
    [
        (model.INTEGER, "7", b"\0\0\0\x07"),
        (model.BIGINT, "-1", b"\xff" * 8),
        (model.DOUBLE, "1.0E10", struct.pack(">d", 1e10)),  # as Java prints it
        (model.DOUBLE, "2.5", struct.pack(">d", 2.5)),
    ],
)
def test_kafkas_numbers(type_, text, data):
    columns = (Column("V", type_),)
    assert wire._encode_kafka(tokens.Number(text), columns) == data
    assert wire.decode(data, KAFKA, columns, "value") == text


def test_kafkas_texts():
    columns = (Column("V", model.STRING),)
    assert wire.decode("ä".encode(), KAFKA, columns, "value") == "ä"


def test_nothing_is_nothing():
    assert wire.decode(None, JSON, (), "value") is None


def test_a_key_without_format_must_not_be_written():
    with pytest.raises(Mismatch, match="NONE"):
        wire.decode(b"x", Format("NONE"), (), "key")


VALUES = [
    ("INTEGER", "7", "7"),
    ("BOOLEAN", True, True),
    ("STRING", "7", "7"),
    ("STRING", tokens.Number("7.0"), "7.0"),
    ("DOUBLE", tokens.Number("1"), "1.0"),
    ("DECIMAL(4,2)", tokens.Number("1.5"), "1.50"),
    ("BYTES", "AQI=", "AQI="),
    ("BYTES", "", None),
    ("TIMESTAMP", tokens.Number("12"), "12"),
    ("ARRAY<INTEGER>", [tokens.Number("1"), None], ["1", None]),
    ("MAP<STRING, BIGINT>", {"a": tokens.Number("1")}, {"a": "1"}),
    ("STRUCT<`a` INTEGER, B INTEGER>", {"A": tokens.Number("1"), "c": "x"}, {"a": "1", "B": None}),
]


@pytest.mark.parametrize(("type_", "given", "expected"), VALUES)
def test_values_of_columns(type_, given, expected):
    column = columns_of(f"V {type_}")[0]
    row = wire.row_of({"v": given, "more": "x"}, (column,), False)
    assert wire.shown_row(row, (column,), False) == {"V": expected}
    assert wire.row_of(given, (column,), True) == row


def test_a_map_whose_keys_are_no_texts_is_an_array_of_entries():
    entry = Struct((model.Field("key", model.INTEGER), model.Field("value", model.STRING)))
    value = wire.typed({"1": "a"}, model.Array(entry))
    assert value == [{"key": 1, "value": "a"}]


def test_an_object_is_needed_for_columns():
    with pytest.raises(Mismatch, match="an object"):
        wire.row_of("x", (Column("V", model.STRING),), False)


def test_formats_with_schemas_need_a_registry():
    with pytest.raises(NoRegistry):
        wire.decode(b"x", Format("AVRO"), (), "value")
