from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.formats.implementation import SerdeSpec
from ksql.formats.kafka.serde import serde
from ksql.formats.table import DecodeError, EncodeError
from tests.unit.formats import columns as c

CASES = [
    (model.INTEGER, -2, b"\xff\xff\xff\xfe"),
    (model.BIGINT, 1, b"\0\0\0\0\0\0\0\x01"),
    (model.DOUBLE, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
    (model.STRING, "é", b"\xc3\xa9"),
    (model.STRING, "", b""),
    (model.BYTES, b"\0\xff", b"\0\xff"),
]


def kafka(*columns):
    return serde(SerdeSpec(Format("KAFKA"), columns, wrapped=False))


@pytest.mark.parametrize(("type_", "value", "data"), CASES)
def test_primitives(type_, value, data):
    serde = kafka(c.value("V", type_))
    assert serde.encode((value,)) == data
    assert serde.decode(data) == (value,)
    assert serde.encode_many([(None,), None, (value,)]) == [None, None, data]
    assert serde.decode_many([None, data], c.fail) == [None, (value,)]


@pytest.mark.parametrize(
    ("type_", "data", "message"),
    [
        (model.INTEGER, b"123", "Size of data received by IntegerDeserializer is not 4"),
        (model.BIGINT, b"", "Size of data received by LongDeserializer is not 8"),
        (model.DOUBLE, b"123456789", "Size of data received by DoubleDeserializer is not 8"),
    ],
)
def test_wrong_sizes(type_, data, message):
    with pytest.raises(DecodeError, match=message):
        kafka(c.value("V", type_)).decode(data)


def test_broken_text_is_replaced():
    assert kafka(c.value("V", model.STRING)).decode(b"a\xff") == ("a\ufffd",)
    assert kafka(c.value("V", model.STRING)).encode(("a\ud800",)) == b"a?"


def test_wrong_values():
    serde = kafka(c.value("V", model.INTEGER))
    with pytest.raises(EncodeError) as caught:
        serde.encode_many([(1,), (2**31,)])
    assert caught.value.index == 1
    with pytest.raises(EncodeError):
        kafka(c.value("V", model.STRING)).encode((1,))


@given(st.sampled_from([model.INTEGER, model.BIGINT, model.DOUBLE, model.STRING]), st.binary())
def test_nothing_but_decode_errors(type_, data):
    with contextlib.suppress(DecodeError):
        kafka(c.value("V", type_)).decode(data)


def test_no_column_is_no_bytes():
    serde = kafka()
    assert serde.decode(b"x") == ()
    assert serde.decode_many([b"x", None], c.fail) == [(), ()]
    assert serde.encode(()) is None
    assert serde.encode_many([(), ()]) == [None, None]
