from __future__ import annotations

import math
from decimal import Decimal

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Array, Field, Map, Struct
from ksql.formats.implementation import SerdeSpec
from ksql.formats.json.serde import serde
from ksql.formats.json.values import NameMatch
from ksql.formats.table import SKIP, DecodeError, EncodeError
from tests.examples import examples
from tests.unit.formats import columns as c

D = Decimal
BOOLEAN, INT, BIGINT, DOUBLE, STRING = (
    model.BOOLEAN,
    model.INTEGER,
    model.BIGINT,
    model.DOUBLE,
    model.STRING,
)
BYTES, DATE, TIME, TIMESTAMP = model.BYTES, model.DATE, model.TIME, model.TIMESTAMP
DEC = model.Decimal(6, 4)
SHOP = Struct((Field("ID", INT), Field("name", STRING)))

READ = [
    (BOOLEAN, "true", True),
    (BOOLEAN, "null", None),
    (INT, "12", 12),
    (INT, "-0", 0),
    (INT, "1.9", 1),
    (INT, "-1.9", -1),
    (INT, "1e3", 1000),
    (INT, "0.000001", 0),
    (INT, "2147483648", -2147483648),
    (INT, "4294967297.5", 1),
    (INT, '"12"', 12),
    (INT, '"+12"', 12),
    (INT, "9007199254740993.0", 1),
    (BIGINT, "9223372036854775807", 2**63 - 1),
    (BIGINT, "9223372036854775808", -(2**63)),
    (BIGINT, "18446744073709551621", 5),
    (BIGINT, "9007199254740993.5", 9007199254740993),
    (BIGINT, "1e999999999", 0),
    (BIGINT, "1e-999999999", 0),
    (BIGINT, '"-9223372036854775808"', -(2**63)),
    (DOUBLE, "1", 1.0),
    (DOUBLE, "1.5", 1.5),
    (DOUBLE, "-0.0", 0.0),
    (DOUBLE, "0.0", 0.0),
    (DOUBLE, '"-0.0"', -0.0),
    (DOUBLE, "1e999", math.inf),
    (DOUBLE, '"1.5"', 1.5),
    (DOUBLE, '" 1.5d "', 1.5),
    (DOUBLE, '"-Infinity"', -math.inf),
    (DOUBLE, '"0x1p3"', 8.0),
    (DEC, "12.5", D("12.5000")),
    (DEC, "10", D("10.0000")),
    (DEC, "1e1", D("10.0000")),
    (DEC, "12.340000000000000000000", D("12.3400")),
    (DEC, '"12.3456"', D("12.3456")),
    (DEC, "-0.0", D("0.0000")),
    (
        model.Decimal(30, 10),
        "12345678901234567890.0123456789",
        D("12345678901234567890.0123456789"),
    ),
    (STRING, '"x"', "x"),
    (STRING, "12", "12"),
    (STRING, "1.50", "1.50"),
    (STRING, "-0.00", "0.00"),
    (STRING, '[-0.0, {"a": -0.0}]', '[0.0, {"a":0.0}]'),
    (STRING, "1e10", "1E+10"),
    (STRING, "123456789012345678901234567890", "123456789012345678901234567890"),
    (STRING, "true", "true"),
    (STRING, '[1, null, "a", [2.50], false]', "[1, null, a, [2.50], false]"),
    (STRING, '{"b": 1.50, "a": {"x": ["é", null, true]}}', '{"b":1.50,"a":{"x":["é",null,true]}}'),
    (STRING, '"\\ud83d\\ude00"', "😀"),
    (STRING, '"a\\ud83d"', "a?"),
    (BYTES, '"AQI="', b"\x01\x02"),
    (BYTES, '"AQ I="', b"\x01\x02"),
    (TIMESTAMP, "1.7", 1),
    (TIMESTAMP, '"-5"', -5),
    (DATE, "12", 12),
    (DATE, '"12"', 12),
    (TIME, "86399999", 86399999),
    (TIME, '"0"', 0),
    (Array(INT), '[1, null, "3"]', [1, None, 3]),
    (Map(STRING, DOUBLE), '{"a": 1, "A": null}', {"a": 1.0, "A": None}),
    (SHOP, '{"id": 1, "name": "n", "x": 5}', {"ID": 1, "name": "n"}),
    (SHOP, '{"NAME": "n"}', {"ID": None, "name": None}),
    (Array(SHOP), "[null, {}]", [None, {"ID": None, "name": None}]),
]

REFUSED = [
    (BOOLEAN, "1", "$.V", "IntNode, requiredType: BOOLEAN"),
    (BOOLEAN, '"true"', "$.V", "TextNode, requiredType: BOOLEAN"),
    (INT, "true", "$.V", "BooleanNode, requiredType: INTEGER"),
    (INT, '"1.0"', "$.V", "Can't coerce string to type. targetType: INTEGER"),
    (INT, '" 1"', "$.V", "targetType: INTEGER"),
    (INT, '"1_0"', "$.V", "targetType: INTEGER"),
    (INT, '"2147483648"', "$.V", "targetType: INTEGER"),
    (INT, "[]", "$.V", "ArrayNode, requiredType: INTEGER"),
    (BIGINT, "{}", "$.V", "ObjectNode, requiredType: BIGINT"),
    (DOUBLE, '"1_0"', "$.V", "targetType: DOUBLE"),
    (DOUBLE, "false", "$.V", "BooleanNode, requiredType: DOUBLE"),
    (DEC, "123.4", "$.V", "Numeric field overflow"),
    (DEC, "1.00001", "$.V", "without rounding"),
    (DEC, "1.00000000000000000001", "$.V", "without rounding"),
    (DEC, "1e400", "$.V", "Numeric field overflow"),
    (DEC, "1e999999999", "$.V", "Numeric field overflow"),
    (DEC, '"x"', "$.V", "targetType: DECIMAL"),
    (DEC, "true", "$.V", "requiredType: DECIMAL"),
    (BYTES, "1", "$.V", "requiredType: BYTES"),
    (BYTES, '"A"', "$.V", "base64"),
    (TIMESTAMP, '"2020-01-01T00:00:00"', "$.V", "targetType: TIMESTAMP"),
    (DATE, '"2020-01-01"', "$.V", "targetType: DATE"),
    (TIME, "-1", "$.V", "milliseconds"),
    (TIME, "86400001", "$.V", "milliseconds"),
    (TIME, "[]", "$.V", "requiredType: TIME"),
    (Array(INT), '[1, "x"]', "$.V[1]", "targetType: INTEGER"),
    (Array(INT), "{}", "$.V", "requiredType: ARRAY<INTEGER>"),
    (Map(STRING, INT), '{"k": true}', "$.V.k.value", "requiredType: INTEGER"),
    (Map(STRING, INT), "1", "$.V", "requiredType: MAP<STRING, INTEGER>"),
    (SHOP, '{"ID": true}', "$.V.ID", "requiredType: INTEGER"),
    (SHOP, '"{}"', "$.V", "requiredType: STRUCT"),
    (Array(Array(SHOP)), '[[], [{}, {"ID": []}]]', "$.V[1][1].ID", "requiredType: INTEGER"),
]


def json(columns, *, wrapped):
    return serde(SerdeSpec(Format("JSON"), columns, wrapped))


@pytest.mark.parametrize(("type_", "text", "expected"), READ)
def test_reads(type_, text, expected):
    wrapped = json((c.value("V", type_),), wrapped=True)
    data = f'{{"V": {text}}}'.encode()
    assert c.same(wrapped.decode(data), (expected,))
    assert c.same(wrapped.decode_many([data, None], c.fail), [(expected,), None])
    bare = json((c.value("V", type_),), wrapped=False)
    assert c.same(bare.decode(text.encode()), (expected,))
    assert c.same(bare.decode_many([text.encode(), None], c.fail), [(expected,), None])


@pytest.mark.parametrize(("type_", "text", "path", "message"), REFUSED)
def test_refuses(type_, text, path, message):
    serde = json((c.value("K", STRING), c.value("V", type_)), wrapped=True)
    with pytest.raises(DecodeError, match=r".") as caught:
        serde.decode(f'{{"V": {text}}}'.encode())
    assert caught.value.path == path
    assert message in caught.value.message
    assert caught.value.message.endswith(f", path: {path}")
    bare = json((c.value("V", type_),), wrapped=False)
    with pytest.raises(DecodeError) as caught:
        bare.decode(text.encode())
    assert caught.value.path == path.replace("$.V", "$")


def test_names_match_exactly_then_in_upper_case():
    serde = json((c.value("ID", INT), c.value("name", STRING)), wrapped=True)
    assert serde.decode(b'{"id": 1, "name": "a"}') == (1, "a")
    assert serde.decode(b'{"id": 1, "ID": 2, "Id": 3}') == (2, None)
    assert serde.decode(b'{"id": 1, "Id": 3, "NAME": "b"}') == (3, None)
    assert serde.decode(b'{"ID": 1, "ID": 2, "name": null}') == (2, None)


def test_shapes_are_forgotten_when_there_are_too_many():
    serde = json((c.value("ID", INT),), wrapped=True)
    for n in range(1000):
        assert serde.decode(b'{"id": 1, "x%d": 2}' % n) == (1,)


def test_a_document_must_be_an_object_or_null():
    serde = json((c.value("ID", INT),), wrapped=True)
    failures = c.Failures()
    items: list[bytes | None] = [
        b"null",
        b"{}",
        b"[]",
        b"1",
        b'"x"',
        b"",
        b"  ",
        b"{",
        b"\xff",
        b'{"ID": NaN}',
    ]
    items += [b'{"ID": 1} trailing', b'\xef\xbb\xbf{"ID": 1}', b"[" * 100_000, None]
    values = serde.decode_many(items, failures)
    assert values == [None, (None,)] + [SKIP] * 8 + [(1,), (1,), SKIP, None]
    assert [index for index, _ in failures] == [2, 3, 4, 5, 6, 7, 8, 9, 12]
    assert "requiredType: STRUCT<`ID` INTEGER>, path: $" in failures[0][1]
    assert "Not a JSON document" in failures[-1][1]


def test_errors_of_the_listener_pass():
    serde = json((c.value("ID", INT),), wrapped=True)
    with pytest.raises(AssertionError):
        serde.decode_many([b"["], c.fail)


def test_exact_digits_in_a_batch_with_decimals():
    serde = json((c.value("A", model.Decimal(20, 2)), c.value("S", STRING)), wrapped=True)
    rows = serde.decode_many([b'{"A":1.10,"S":1.10}', b'{"A":123456789012345678.91}'], c.fail)
    assert c.same(rows, [(D("1.10"), "1.10"), (D("123456789012345678.91"), None)])


def test_no_zero_of_a_number_is_negative_next_to_exact_digits():
    serde = json((c.value("A", DOUBLE), c.value("D", model.Decimal(20, 2))), wrapped=True)
    [(zero, _)] = serde.decode_many([b'{"A":-0.0,"D":123456789012345678.91}'], c.fail)
    assert c.same(zero, 0.0)


WRITTEN = [
    (BOOLEAN, False, "false"),
    (INT, -1, "-1"),
    (BIGINT, 2**63 - 1, "9223372036854775807"),
    (DOUBLE, 1.0, "1.0"),
    (DOUBLE, 0.1, "0.1"),
    (DOUBLE, -0.0, "-0.0"),
    (DOUBLE, 1e7, "1.0E7"),
    (DOUBLE, -1e10, "-1.0E10"),
    (DOUBLE, 1e-5, "1.0E-5"),
    (DOUBLE, 0.001, "0.001"),
    (DOUBLE, math.nan, '"NaN"'),
    (DOUBLE, -math.inf, '"-Infinity"'),
    (STRING, 'é"\\\n', '"é\\"\\\\\\n"'),
    (STRING, "a\ud800", '"a?"'),
    (DEC, D("10.0000"), "10.0000"),
    (model.Decimal(20, 10), D("0E-10"), "0.0000000000"),
    (BYTES, b"\x01\x02", '"AQI="'),
    (DATE, 5, "5"),
    (TIME, 6, "6"),
    (TIMESTAMP, 7, "7"),
    (Array(DOUBLE), [1e10, None], "[1.0E10,null]"),
    (Map(STRING, DEC), {"a": D("1.0000"), "b": None}, '{"a":1.0000,"b":null}'),
    (Map(STRING, STRING), {"a": "b"}, '{"a":"b"}'),
    (Struct((Field("A", BYTES), Field("b", INT))), {"A": b"x", "b": 1}, '{"A":"eA==","b":1}'),
    (Array(Struct((Field("A", DOUBLE),))), [None, {"A": None}], '[null,{"A":null}]'),
]


@pytest.mark.parametrize(("type_", "value", "text"), WRITTEN)
def test_writes(type_, value, text):
    wrapped = json((c.value("V", type_), c.value("N", INT)), wrapped=True)
    expected = f'{{"V":{text},"N":null}}'.encode()
    assert wrapped.encode((value, None)) == expected
    assert wrapped.encode_many([(value, None), None, (value, None)]) == [expected, None, expected]
    bare = json((c.value("V", type_),), wrapped=False)
    assert bare.encode((value,)) == text.encode()
    assert bare.encode_many([(value,), (None,), None]) == [text.encode(), None, None]


def test_no_columns_are_an_empty_object():
    serde = json((), wrapped=True)
    assert serde.encode_many([(), None]) == [b"{}", None]
    assert serde.decode(b'{"x": 1}') == ()


def test_unwritable_value_is_located():
    serde = json((c.value("V", BIGINT),), wrapped=True)
    with pytest.raises(EncodeError) as caught:
        serde.encode_many([(1,), None, (2**70,)])
    assert caught.value.index == 2
    with pytest.raises(EncodeError):
        serde.encode((object(),))
    assert serde.encode_many([]) == []


def test_documents_in_a_batch_are_parted_by_what_no_document_holds():
    serde = json((c.value("V", STRING),), wrapped=False)
    nasty = [",\n,", '"},{"', "\n", "", ",\\n,"]
    encoded = serde.encode_many([(text,) for text in nasty])
    assert serde.decode_many(encoded, c.fail) == [(text,) for text in nasty]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(50))
@given(c.rows(), st.booleans())
@example(((c.value("A", DOUBLE),), [(-0.0,)]), False)
def test_round_trip(table, single):
    columns, rows = table
    if single:
        columns, rows = columns[:1], [row[:1] for row in rows]
    serde = json(columns, wrapped=not single)
    expected = [None if single and row[0] is None else row for row in rows]
    encoded = serde.encode_many(rows)
    assert encoded == [serde.encode(row) for row in rows]
    decoded = serde.decode_many(encoded, c.fail)
    assert c.same(decoded, c.unsigned(expected))
    for data in encoded:
        if data is not None:
            orjson.loads(data)


OBJECTS = st.lists(
    st.tuples(st.sampled_from(["ID", "id", "Id", "NAME", "name", "other"]), st.integers(0, 99)),
    max_size=5,
).map(lambda pairs: b"{%s}" % b",".join(b'"%s":%d' % (k.encode(), v) for k, v in pairs))


@given(st.lists(OBJECTS, max_size=12).map(lambda some: some * 2))
@example([b'{"id":1,"name":2}', b'{"id":3,"name":4}', b'{"ID":5,"id":6,"name":7}'])
@example([b'{"id":1,"name":2}', b'{"name":4,"id":3}', b'{"ID":5,"NAME":6}', b'{"id":7}'])
def test_names_match_alike_in_a_batch_and_alone(items):
    serde = json((c.value("ID", INT), c.value("NAME", INT)), wrapped=True)
    assert serde.decode_many(items, c.fail) == [serde.decode(item) for item in items]


def test_objects_of_the_first_other_shape_are_looked_at_once(monkeypatch):
    serde = json((c.value("ID", INT), c.value("NAME", INT)), wrapped=True)
    lookups = []
    match = NameMatch.__call__

    def counted(*args):
        lookups.append(1)
        return match(*args)

    monkeypatch.setattr(NameMatch, "__call__", counted)
    items = [b'{"id":%d,"name":2}' % n for n in range(9)] + [b'{"ID":1,"NAME":1}']
    rows = serde.decode_many(items, c.fail)
    assert rows == [*((n, 2) for n in range(9)), (1, 1)]
    assert len(lookups) == 1
    items = [b'{"ID":%d,"other":2}' % n for n in range(9)]
    assert serde.decode_many(items, c.fail) == [(n, None) for n in range(9)]
    assert len(lookups) == 2


NOISE = st.binary(max_size=40) | st.text('{}[]",:\\u0eE+-.tfnd \n', max_size=40).map(str.encode)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(50))
@given(c.rows(), st.lists(NOISE, max_size=3), st.data())
def test_nothing_but_decode_errors(table, noise, data):
    columns, rows = table
    serde = json(columns, wrapped=True)
    mutated = [item for item in serde.encode_many(rows) if item]
    for item in mutated:
        at = data.draw(st.integers(0, len(item) - 1))
        noise = [*noise, item[:at] + data.draw(NOISE) + item[at + 1 :]]
    failures = c.Failures()
    values = serde.decode_many(noise, failures)
    assert len(values) == len(noise)
    assert len(failures) == values.count(SKIP)
