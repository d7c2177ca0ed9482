from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.formats.delimited.serde import serde
from ksql.formats.implementation import SerdeSpec
from ksql.formats.table import SKIP, DecodeError, EncodeError
from tests.unit.formats import columns as c

D = Decimal
INT, BIGINT, DOUBLE, STRING = model.INTEGER, model.BIGINT, model.DOUBLE, model.STRING
DEC = model.Decimal(6, 4)

READ = [
    (model.BOOLEAN, "TRUE", True),
    (model.BOOLEAN, "yes", False),
    (INT, "-12", -12),
    (INT, "+12", 12),
    (INT, "2147483647", 2147483647),
    (BIGINT, "-9223372036854775808", -(2**63)),
    (DOUBLE, "1", 1.0),
    (DOUBLE, "1.5", 1.5),
    (DOUBLE, "1e3", 1000.0),
    (DOUBLE, "NaN", math.nan),
    (DOUBLE, " -1f", -1.0),
    (DEC, "12.5", D("12.5000")),
    (DEC, ".12", D("0.1200")),
    (STRING, " a ", " a "),
    (STRING, 'a"b', 'a"b'),
    (STRING, '"a,""b"""', 'a,"b"'),
    (STRING, '"a\nb" ', "a\nb"),
    (model.BYTES, "AQI=", b"\x01\x02"),
    (model.DATE, "-5", -5),
    (model.TIME, "5", 5),
    (model.TIMESTAMP, "1600000000000", 1600000000000),
    (INT, "", None),
    (STRING, '""', None),
]

REFUSED = [
    (INT, "x", 'For input string: "x"'),
    (INT, " 1", 'For input string: " 1"'),
    (INT, "1_0", "For input string"),
    (INT, "2147483648", "For input string"),
    (BIGINT, "1.0", "For input string"),
    (DOUBLE, "1_0", "For input string"),
    (DOUBLE, "inf", "For input string"),
    (DEC, "100", "Numeric field overflow"),
    (DEC, "1.00001", "without rounding"),
    (model.TIME, "-1", "milliseconds"),
    (model.BYTES, "?", "base64"),
    (STRING, '"a"b', "invalid char between encapsulated token and delimiter"),
    (STRING, '"a', "EOF reached before encapsulated token finished"),
    (STRING, "a,b", "Column count mismatch on deserialization. expected: 2, got: 3"),
]


def delimited(columns, delimiter):
    return serde(SerdeSpec(Format("DELIMITED", delimiter=delimiter), columns, wrapped=True))


def two(type_, delimiter=","):
    return delimited((c.value("V", type_), c.value("N", INT)), delimiter)


@pytest.mark.parametrize(("type_", "text", "expected"), READ)
def test_reads(type_, text, expected):
    value = two(type_).decode(f"{text},7".encode())
    assert str(value) == str((expected, 7))
    assert type(value[0]) is type(expected)


@pytest.mark.parametrize(("type_", "text", "message"), REFUSED)
def test_refuses(type_, text, message):
    with pytest.raises(DecodeError) as caught:
        two(type_).decode(f"{text},7".encode())
    assert message in caught.value.message


def test_only_the_first_record_counts_but_all_must_be_sound():
    serde = two(INT)
    assert serde.decode(b"\r\n1,2\n3,4") == (1, 2)
    assert serde.decode(b"1,2\r\n") == (1, 2)
    with pytest.raises(DecodeError):
        serde.decode(b'1,2\n"3')


@pytest.mark.parametrize("data", [b"", b"\n\r\n"])
def test_no_fields(data):
    with pytest.raises(DecodeError, match="No fields in record"):
        delimited((c.value("V", INT),), ",").decode(data)


WRITTEN = [
    (model.BOOLEAN, True, "true", "true"),
    (INT, -5, '"-5"', "-5"),
    (INT, 5, "5", "5"),
    (DOUBLE, 1e10, "1.0E10", "1.0E10"),
    (DOUBLE, -1.5, '"-1.5"', "-1.5"),
    (DOUBLE, 0.0, "0.0", "0.0"),
    (DEC, D("-1.5000"), '"-1.5000"', "-1.5000"),
    (STRING, "abc", "abc", "abc"),
    (STRING, "", '""', ""),
    (STRING, "é", '"é"', "é"),
    (STRING, "!", '"!"', '"!"'),
    (STRING, "#x", '"#x"', '"#x"'),
    (STRING, "a,b", '"a,b"', '"a,b"'),
    (STRING, 'a"b', '"a""b"', '"a""b"'),
    (STRING, "a\nb", '"a\nb"', '"a\nb"'),
    (STRING, "a ", '"a "', '"a "'),
    (STRING, "-", '"-"', "-"),
    (model.BYTES, b"!", "IQ==", "IQ=="),
    (model.BYTES, b"", '""', ""),
    (model.TIMESTAMP, -1, '"-1"', "-1"),
    (INT, None, "", ""),
]


@pytest.mark.parametrize(("type_", "value", "first", "later"), WRITTEN)
def test_writes(type_, value, first, later):
    serde = delimited((c.value("A", type_), c.value("B", type_)), ",")
    assert serde.encode((value, value)) == f"{first},{later}".encode()


def test_nulls():
    serde = delimited((c.value("A", INT),), ",")
    assert serde.encode_many([(None,), None, (1,)]) == [b"", None, b"1"]
    assert serde.decode(None) is None
    failures = c.Failures()
    assert serde.decode_many([b"1", None, b"x"], failures) == [(1,), None, SKIP]
    assert failures == [(2, 'For input string: "x" in column 1')]


@pytest.mark.parametrize("delimiter", [" ", "\t", ";", "|", ".", "-", "^", "]", "\\", "1", "e"])
def test_delimiters(delimiter):
    columns = tuple(c.value(n, t) for n, t in (("A", DOUBLE), ("B", STRING), ("C", INT)))
    serde = delimited(columns, delimiter)
    row = (-1.5e-7, f"a{delimiter}b", -11)
    assert serde.decode(serde.encode(row)) == row


def test_unwritable_value_is_located():
    with pytest.raises(EncodeError) as caught:
        two(STRING).encode_many([("a", 1), (5, 1)])
    assert caught.value.index == 1


@settings(deadline=None)
@given(c.rows(c.scalar_types()), st.sampled_from(",; \t|"))
def test_round_trip(table, delimiter):
    columns, rows = table
    serde = delimited(columns, delimiter)
    empty_is_null = [tuple(None if v in ("", b"") else v for v in row) for row in rows]
    encoded = serde.encode_many(rows)
    failures = c.Failures()
    decoded = serde.decode_many(encoded, failures)
    for row, data, value in zip(empty_is_null, encoded, decoded, strict=True):
        assert value is SKIP if data == b"" else c.same(value, row)


@settings(deadline=None)
@given(c.rows(c.scalar_types()), st.lists(st.binary() | st.text('",\r\n 1.-ax').map(str.encode)))
def test_nothing_but_decode_errors(table, noise):
    failures = c.Failures()
    value = delimited(table[0], ",").decode_many(noise, failures)
    assert len(failures) == value.count(SKIP)
