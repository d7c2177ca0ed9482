from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Array, Field, Map, Struct
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.schema import NotProtobuf
from ksql.formats.schema_registry import MemoryRegistry, Schema, framed
from ksql.formats.table import SKIP, DecodeError, EncodeError, serde_for
from tests.examples import examples
from tests.unit.formats import columns as c

D = Decimal
INT, BIGINT, DOUBLE, STRING = model.INTEGER, model.BIGINT, model.DOUBLE, model.STRING
DEC = model.Decimal(6, 2)
FORMATS = ["PROTOBUF", "PROTOBUF_NOSR"]
HEAD = 'syntax = "proto3"; '


def serde_of(name, columns, side="value", registry=None, **format_):
    return serde_for(Format(name, **format_), columns, side, registry or MemoryRegistry(), "s")


def written(text, path, **fields):
    """The bytes that another producer writes with the message of that path."""
    registry = MemoryRegistry()
    chosen = registry.register("other", Schema("PROTOBUF", text))
    messages = proto_schema.load(text)
    message = messages.message_class(messages.by_path(path))(**fields)
    index = {(0,): b"\0", (1,): b"\2\2", (0, 0): b"\4\0\0"}[path]
    return registry, framed(chosen) + index + message.SerializeToString()


def reads(text, columns, path=(0,), **fields):
    registry, data = written(HEAD + text, path, **fields)
    return serde_of("PROTOBUF", columns, registry=registry).decode(data)


ROUND = [
    (model.BOOLEAN, True, False),
    (INT, -5, 0),
    (BIGINT, 2**62, 0),
    (DOUBLE, 1.5, 0.0),
    (STRING, "é", ""),
    (model.BYTES, b"\0\xff", b""),
    (DEC, D("-12.30"), None),
    (model.DATE, -719162, None),
    (model.TIME, 86_399_999, None),
    (model.TIMESTAMP, -1, None),
    (Array(INT), [1, 2], []),
    (Array(STRING), ["a"], []),
    (Map(STRING, DOUBLE), {"a": 1.5}, {}),
    (Map(STRING, DEC), {"a": D("1.00")}, {}),
    (Array(model.TIMESTAMP), [5], []),
    (Struct((Field("A", INT), Field("b", DEC))), {"A": 1, "b": None}, None),
    (Array(Struct((Field("A", STRING),))), [{"A": "x"}], []),
    (Map(STRING, Struct((Field("A", STRING),))), {"k": {"A": "x"}}, {}),
]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("type_", "value", "nothing"), ROUND)
def test_round_trip_and_lost_nulls(name, type_, value, nothing):
    serde = serde_of(name, (c.value("V", type_), c.value("W", INT)))
    assert c.same(serde.decode(serde.encode((value, 7))), (value, 7))
    assert c.same(serde.decode(serde.encode((None, 7))), (nothing, 7))
    assert serde.encode_many([None]) == [None]
    assert serde.decode_many([None], c.fail) == [None]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("nullable", ["OPTIONAL", "WRAPPER"])
def test_nulls_that_are_kept(name, nullable):
    types = (model.BOOLEAN, INT, BIGINT, DOUBLE, STRING, model.BYTES)
    columns = tuple(c.value(f"C{i}", type_) for i, type_ in enumerate(types))
    serde = serde_of(name, columns, nullable_representation=nullable)
    zeros = (False, 0, 0, 0.0, "", b"")
    for row in (zeros, (None,) * 6, (None, 1, None, 1.5, None, b"x")):
        assert c.same(serde.decode(serde.encode(row)), row)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("day", [2**31 - 1, -(2**31), 2932897, -719163, -719529])
def test_dates_of_any_year(name, day):
    serde = serde_of(name, (c.value("D", model.DATE),))
    assert serde.decode(serde.encode((day,))) == (day,)


@pytest.mark.parametrize("name", FORMATS)
def test_halves_of_surrogate_pairs(name):
    inner = Struct((Field("F", Map(STRING, STRING)),))
    serde = serde_of(name, (c.value("A", STRING), c.value("B", Array(inner))))
    row = ("x\ud800", [{"F": {"\udc00": "\ud800"}}])
    assert serde.decode(serde.encode(row)) == ("x?", [{"F": {"?": "?"}}])


def test_names_match_in_any_case():
    columns = (c.value("x", INT), c.value("Y", INT), c.value("Z", INT))
    assert reads("message M { int32 X = 1; int32 y = 2; }", columns, X=1, y=2) == (1, 2, None)


@pytest.mark.parametrize("name", FORMATS)
def test_fields_named_like_methods(name):
    columns = (c.value("HasField", INT), c.value("SerializeToString", STRING), c.value("self", INT))
    serde = serde_of(name, columns, nullable_representation="OPTIONAL")
    assert serde.decode(serde.encode((1, None, 3))) == (1, None, 3)


def test_nulls_inside_become_zeros():
    serde = serde_of("PROTOBUF", (c.value("A", Array(INT)), c.value("M", Map(STRING, STRING))))
    assert serde.decode(serde.encode(([1, None], {"k": None}))) == ([1, 0], {"k": ""})


def test_wire_format():
    registry = MemoryRegistry()
    serde = serde_of("PROTOBUF", (c.value("A", INT),), registry=registry)
    assert serde.encode((5,)) == framed(1) + b"\0\x08\x05"
    assert serde.decode(framed(1) + b"\2\0\x08\x05") == (5,)  # the long form of the first message
    assert serde_of("PROTOBUF_NOSR", (c.value("A", INT),)).encode((5,)) == b"\x08\x05"


def test_keys():
    assert serde_of("PROTOBUF", (c.key("A", INT),), "key").encode((None,)) == framed(1) + b"\0"
    assert serde_of("PROTOBUF_NOSR", (c.key("A", INT),), "key").encode((None,)) is None


def test_any_message_of_the_schema():
    text = "message A { message In { string z = 1; } int32 x = 1; } message B { string y = 1; }"
    columns = (c.value("X", INT), c.value("Y", STRING), c.value("Z", STRING))
    assert reads(text, columns, (0,), x=5) == (5, None, None)
    assert reads(text, columns, (1,), y="b") == (None, "b", None)
    assert reads(text, columns, (0, 0), z="c") == (None, None, "c")


def test_conversions():
    text = """import "google/protobuf/wrappers.proto";
    message M {
      enum Suit { SPADES = 0; HEARTS = 1; }
      Suit suit = 1; float f = 2; uint32 u = 3; bool b = 4; repeated double ds = 5;
      google.protobuf.StringValue w = 6; int32 i = 7;
      oneof o { string left = 8; int32 right = 9; }
    }"""
    columns = (
        c.value("SUIT", STRING),
        c.value("F", STRING),
        c.value("U", BIGINT),
        c.value("B", STRING),
        c.value("DS", Array(STRING)),
        c.value("W", STRING),
        c.value("i", BIGINT),
        c.value("LEFT", STRING),
        c.value("RIGHT", INT),
    )
    values = reads(text, columns, suit=1, f=1.1, u=2**32 - 1, b=True, ds=[1e10], right=0)
    assert values == ("HEARTS", "1.1", 2**32 - 1, "true", ["1.0E10"], None, 0, None, 0)
    assert reads(text, columns[:1], suit=7) == ("UNKNOWN_ENUM_VALUE_Suit_7",)


CHOICE = """message M {
  int32 i = 1; optional int32 j = 2;
  oneof left { string a = 3; In b = 4; }
  oneof right { int64 c = 5; double d = 6; }
  message In { oneof deep { bool e = 7; } }
}"""
IN = Struct((Field("DEEP_0", Struct((Field("E", model.BOOLEAN),))),))
LEFT = c.value("LEFT_0", Struct((Field("A", STRING), Field("B", IN), Field("Z", INT))))
RIGHT = c.value("RIGHT_1", Struct((Field("D", DOUBLE), Field("C", BIGINT))))


def test_a_oneof_is_a_struct_of_which_one_member_is_there():
    columns = (LEFT, RIGHT, c.value("J", INT))
    values = reads(CHOICE, columns, a="", c=0)
    assert values == ({"A": "", "B": None, "Z": None}, {"D": None, "C": 0}, None)
    values = reads(CHOICE, columns, b={"e": False}, j=0)
    assert values == ({"A": None, "B": {"DEEP_0": {"E": False}}, "Z": None}, None, 0)
    with pytest.raises(DecodeError, match="LEFT_0"):
        reads(CHOICE, (c.value("LEFT_0", STRING),), a="x")


def test_the_first_member_that_is_there_is_written_into_a_oneof():
    registry = MemoryRegistry()
    registry.register("s-value", Schema("PROTOBUF", HEAD + CHOICE))
    columns = (LEFT, RIGHT, c.value("I", INT))
    serde = serde_of("PROTOBUF", columns, registry=registry, schema_id=1)
    both = {"D": 0.0, "C": 5}
    assert serde.decode(serde.encode((None, both, 1))) == (None, {"D": 0.0, "C": None}, 1)
    inner = {"A": None, "B": {"DEEP_0": {"E": True}}, "Z": 7}
    nothing = {"D": None, "C": None}
    assert serde.decode(serde.encode((inner, nothing, 1))) == (inner | {"Z": None}, None, 1)


def test_keys_of_maps_are_read_as_text():
    text = """message M { map<int32, string> a = 1; map<bool, int64> b = 2; map<fixed64, M> c = 3;
      map<int64, int32> d = 4; }"""
    columns = (
        c.value("A", Map(STRING, STRING)),
        c.value("B", Map(STRING, STRING)),
        c.value("C", Map(STRING, Struct((Field("A", Map(STRING, STRING)),)))),
        c.value("D", Map(STRING, INT)),
    )
    registry, data = written(
        HEAD + text, (0,), a={-1: "x"}, b={True: 5}, c={2**64 - 1: {"a": {7: "y"}}}, d={}
    )
    assert serde_of("PROTOBUF", columns, registry=registry).decode(data) == (
        {"-1": "x"},
        {"true": "5"},
        {"-1": {"A": {"7": "y"}}},
        {},
    )


def test_unsigned_numbers_have_the_bits_of_a_bigint():
    text = """import "google/protobuf/wrappers.proto";
    message M { uint64 u = 1; repeated fixed64 f = 2; google.protobuf.UInt64Value w = 3;
      uint64 s = 4; }"""
    columns = (
        c.value("U", BIGINT),
        c.value("F", Array(BIGINT)),
        c.value("W", BIGINT),
        c.value("S", STRING),
    )
    registry, data = written(HEAD + text, (0,), u=2**64 - 1, f=[5, 2**63], s=2**64 - 2)
    assert serde_of("PROTOBUF", columns, registry=registry).decode(data) == (
        -1,
        [5, -(2**63)],
        None,
        "-2",
    )
    serde = serde_of("PROTOBUF", columns[:3], registry=registry, schema_id=1)
    rows: list[tuple[Any, ...]] = [(-1, [-2, 3], -(2**63)), (2**63 - 1, [], None)]
    for row in rows:
        assert serde.decode(serde.encode(row)) == row


@pytest.mark.parametrize(
    ("text", "type_", "path", "message"),
    [
        ("message M { int64 V = 1; }", INT, "$.V", "type INT64 as type INTEGER"),
        ("message M { string V = 1; }", INT, "$.V", "type STRING as type INTEGER"),
        ("message M { repeated int64 V = 1; }", Array(INT), "$.V[]", "INT64 as type INTEGER"),
        ("message M { int32 V = 1; }", Array(INT), "$.V", "INT32 as type ARRAY<INTEGER>"),
        ("message M { repeated int32 V = 1; }", INT, "$.V", "ARRAY as type INTEGER"),
        ("message M { map<string, int64> V = 1; }", Map(STRING, INT), "$.V.value", "INT64"),
        ("message M { M V = 1; }", INT, "$.V", "STRUCT as type INTEGER"),
    ],
)
def test_mismatches_of_schema_and_columns(text, type_, path, message):
    with pytest.raises(DecodeError, match=message) as caught:
        reads(text, (c.value("V", type_),))
    assert caught.value.path == path


def test_values_that_do_not_fit():
    text = """import "confluent/type/decimal.proto"; import "google/type/date.proto";
    message M { repeated confluent.type.Decimal V = 1; google.type.Date D = 2;
      map<string, confluent.type.Decimal> M = 3; }"""
    registry, _ = written(HEAD + text, (0,))
    small = model.Decimal(3, 2)
    columns = (
        c.value("V", Array(small)),
        c.value("D", model.DATE),
        c.value("M", Map(STRING, small)),
    )
    serde = serde_of("PROTOBUF", columns, registry=registry)
    failures = c.Failures()
    big = b"\x0a\x02\x04\x00\x18\x01"  # 102.4
    items = [
        framed(1) + b"\0\x0a\x00\x0a\x06" + big,
        framed(1) + b"\0\x12\x02\x10\x0d",
        framed(1) + b"\0\x1a\x0b\x0a\x01k\x12\x06" + big,
        framed(1) + b"\0\x0a\x0b\x18\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01",
    ]
    assert serde.decode_many(items, failures) == [SKIP] * 4
    paths = [message.partition("path: ")[2] for _, message in failures]
    assert paths == ["$.V[1]", "$.D", "$.M.k.value", "$.V[0]"]


def test_a_given_schema():
    text = (
        HEAD
        + """
    message Other { int32 q = 1; }
    message M { enum Suit { SPADES = 0; HEARTS = 1; } Suit suit = 1; int64 n = 2; string more = 3; }
    """
    )
    registry = MemoryRegistry()
    chosen = registry.register("x", Schema("PROTOBUF", text))
    columns = (c.value("SUIT", STRING), c.value("n", BIGINT))
    format_ = {"schema_id": chosen, "schema_full_name": "M"}
    serde = serde_of("PROTOBUF", columns, registry=registry, **format_)
    assert serde.encode(("HEARTS", 5)) == framed(chosen) + b"\2\2\x08\x01\x10\x05"
    assert serde.decode(serde.encode(("HEARTS", 5))) == ("HEARTS", 5)
    with pytest.raises(EncodeError, match="is not a value of the enum"):
        serde.encode(("CLUBS", 5))


@pytest.mark.parametrize(("type_", "value"), [(INT, 2**40), (INT, "x"), (model.DATE, 10**13)])
@pytest.mark.parametrize("name", FORMATS)
def test_unwritable_values(name, type_, value):
    with pytest.raises(EncodeError) as caught:
        serde_of(name, (c.value("V", type_),)).encode_many([(None,), (value,)])
    assert caught.value.index == 1


@pytest.mark.parametrize("name", FORMATS)
def test_a_map_has_no_null_among_its_keys(name):
    with pytest.raises(EncodeError, match='null used as a key of the map "V"'):
        serde_of(name, (c.value("V", Map(STRING, INT)),)).encode(({"a": 1, None: 2},))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (c.value("a b", INT), "Illegal name: a b"),
        (c.value("A", Array(Array(INT))), "ARRAY<INTEGER> inside of ARRAY"),
        (c.value("A", Map(STRING, Map(STRING, INT))), "inside of MAP"),
    ],
)
def test_types_without_protobuf_equivalent(column, message):
    with pytest.raises(NotProtobuf, match=message):
        serde_of("PROTOBUF_NOSR", (column,))


def test_our_schema():
    columns = (
        c.value("I", INT),
        c.value("D", Array(DEC)),
        c.value("S", Struct((Field("x", BIGINT),))),
    )
    assert proto_schema.text_for(columns, Format("PROTOBUF", schema_full_name="my.pkg.Thing")) == (
        """syntax = "proto3";
package my.pkg;

import "confluent/meta.proto";
import "confluent/type/decimal.proto";

message Thing {
  int32 I = 1;
  repeated confluent.type.Decimal D = 2 [(confluent.field_meta) = {
    params: [
      {
        key: "precision",
        value: "6"
      },
      {
        key: "scale",
        value: "2"
      }
    ]
  }];
  ConnectDefault2 S = 3;

  message ConnectDefault2 {
    int64 x = 1;
  }
}
"""
    )
    for nullable, line in (
        ("OPTIONAL", "optional int32 I = 1;"),
        ("WRAPPER", "google.protobuf.Int32Value I = 1;"),
    ):
        text = proto_schema.text_for(
            columns[:1], Format("PROTOBUF", nullable_representation=nullable)
        )
        assert line in text


def test_our_schema_with_maps_as_entries():
    columns = (
        c.value("M", Map(STRING, Struct((Field("x", Map(STRING, BIGINT)),)))),
        c.value("S", Struct((Field("y", INT),))),
    )
    text = proto_schema.text_for(columns, Format("PROTOBUF"), entries=True)
    assert text == (
        """syntax = "proto3";

message ConnectDefault1 {
  repeated ConnectDefault2Entry M = 1;
  ConnectDefault5 S = 2;

  message ConnectDefault2Entry {
    string key = 1;
    ConnectDefault3 value = 2;

    message ConnectDefault3 {
      repeated ConnectDefault4Entry x = 1;

      message ConnectDefault4Entry {
        string key = 1;
        int64 value = 2;
      }
    }
  }

  message ConnectDefault5 {
    int32 y = 1;
  }
}
"""
    )
    assert proto_schema.load(text).names == ["ConnectDefault1"]


def test_decimal_in_an_entry_is_described_in_its_place():
    columns = (c.value("M", Map(STRING, DEC)),)
    text = proto_schema.text_for(columns, Format("PROTOBUF"), entries=True)
    assert "  repeated ConnectDefault2Entry M = 1;\n" in text
    assert "    confluent.type.Decimal value = 2 [(confluent.field_meta) = {\n" in text
    assert text.count("field_meta") == 1


def proto_safe(type_, inside=False):
    """The type with names and nestings that Protobuf knows."""
    match type_:
        case model.Array(item) | model.Map(_, item) if inside:
            return proto_safe(item, inside=True)
        case model.Array(item):
            return Array(proto_safe(item, inside=True))
        case model.Map(key, item):
            return Map(key, proto_safe(item, inside=True))
        case model.Struct(fields):
            return Struct(tuple(Field(f"F{i}", proto_safe(f.type)) for i, f in enumerate(fields)))
        case _:
            return type_


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(40))
@given(c.rows(c.types().map(proto_safe)), st.sampled_from(FORMATS))
def test_a_second_trip_changes_nothing(table, name):
    columns, rows = table
    serde = serde_of(name, columns)
    once = serde.decode_many(serde.encode_many(rows), c.fail)
    twice = serde.decode_many(serde.encode_many(once), c.fail)
    assert c.same(c.sorted_maps(twice), c.sorted_maps(once))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(40))
@given(
    c.rows(c.types().map(proto_safe)),
    st.sampled_from(FORMATS),
    st.lists(st.binary(max_size=20), max_size=3),
    st.data(),
)
def test_nothing_but_decode_errors(table, name, noise, data):
    columns, rows = table
    serde = serde_of(name, columns)
    serde.encode_many(rows)
    start = 5 if name == "PROTOBUF" else 0
    broken = [framed(1)[:start] + one for one in noise]
    for item in serde.encode_many(rows):
        at = data.draw(st.integers(start, len(item)))
        broken.append(item[:at] + data.draw(st.binary(max_size=4)) + item[at + 1 :])
    failures = c.Failures()
    values = serde.decode_many(broken, failures)
    assert len(failures) == values.count(SKIP)
