from __future__ import annotations

import struct

import pytest

from ksql.types import model
from ksql.types.format import Format
from ksql.types.schema import Column
from qtt import tokens, wire
from qtt.model import Mismatch, Unsupported

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


def test_formats_to_come_are_named():
    with pytest.raises(Unsupported, match="the format MORSE"):
        wire.decode(b"x", Format("MORSE"), (), "value")
