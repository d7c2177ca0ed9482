from __future__ import annotations

from decimal import Decimal

import pytest

from ksql.base.records import RawRecord
from ksql.formats.schema_registry import MemoryRegistry, framed
from ksql.formats.table import serde_for
from ksql.formats.written import Written
from ksql.query.printing import _line, _shown, guess
from ksql.types import model
from ksql.types.format import Format
from tests.unit.formats import columns as c

COLUMNS = (c.value("ID", model.INTEGER), c.value("D", model.Decimal(4, 2)))


@pytest.fixture
def registry():
    return MemoryRegistry()


def data(name, registry, row=(7, None)):
    return serde_for(Format(name), COLUMNS, "value", registry, f"{name}-value").encode(row)


@pytest.mark.parametrize("name", ["AVRO", "PROTOBUF", "JSON_SR"])
def test_formats_with_schemas_are_known_by_their_ids(registry, name):
    sample = data(name, registry)
    assert guess([sample, None], Written(registry)) == name
    assert "AVRO or PROTOBUF or JSON_SR" in guess([sample])


def test_bytes_that_could_be_text_are_known_too(registry):
    sample = data("AVRO", registry, (5, None))
    assert b"\n" in sample
    assert guess([sample], Written(registry)) == "AVRO"


def test_several_of_them_are_mixed(registry):
    samples = [data("AVRO", registry), data("JSON_SR", registry)]
    assert guess(samples, Written(registry)) == "MIXED"


def test_an_unknown_id_is_just_bytes(registry):
    assert guess([framed(9) + b"\x01\x02"], Written(registry)) == "AVRO or PROTOBUF or JSON_SR"


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([b'{"a":1}', b"[]"], "JSON"),
        ([b"text"], "KAFKA_STRING"),
        ([b"\0\0\0\x05"], "KAFKA_INT"),
        ([b"\0\0\0\0\0\0\0\x05"], "KAFKA_BIGINT"),
        ([b"\xff\xfe\xfd"], "UNRECOGNISED_BYTES"),
        ([None], "no data processed"),
    ],
)
def test_plain_formats(registry, samples, expected):
    assert expected in guess(samples, Written(registry))


def test_records_are_shown_as_their_schema_says(registry):
    written = Written(registry)
    for name in ("AVRO", "JSON_SR"):
        shown = _shown(data(name, registry, (7, Decimal("1.50"))), name, written)
        assert shown == '{"ID":7,"D":1.50}'
    assert _shown(None, "AVRO", written) == "<null>"
    broken = data("AVRO", registry)[:5] + b"\xff"
    assert _shown(broken, "AVRO", written).startswith("\x00")


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (1, "1970/01/01 00:00:00.001 Z"),
        (-5, "1969/12/31 23:59:59.995 Z"),
        (253402300800000, "+10000/01/01 00:00:00.000 Z"),
        (2**63 - 1, "+292278994/08/17 07:12:55.807 Z"),
    ],
)
def test_a_record_may_have_any_time(time, shown):
    record = RawRecord("t", 0, 0, time, None, b"x", [])
    assert f"rowtime: {shown}, key" in _line(record, ("", "KAFKA_STRING"), None)


def test_later_records_need_not_fit_the_guess():
    for name, earlier in (("KAFKA_INT", b"\1\0\0\0"), ("KAFKA_BIGINT or KAFKA_DOUBLE", b"\1" * 8)):
        assert guess([earlier]) == name
        assert _shown(b"abcde", name, None) == "abcde"


def test_json_that_is_nested_too_deeply_is_text():
    assert guess([b"[" * 200_000]) == "KAFKA_STRING"
