from __future__ import annotations

import base64
import contextlib

import pytest
from google.protobuf import text_encoding, wrappers_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.error_table import MESSAGE_NOT_FOUND
from ksql.formats.connect import NotInferable, sql_type
from ksql.formats.protobuf import printer
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.text import BrokenProtobuf, parse, tokens

EVERYTHING = """
/* a comment
   of two lines */
syntax = 'proto3';
package a.b;  // the rest
import public "google/protobuf/wrappers.proto";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";

option java_package = "x.y";
option (my.option) = { a: [1, 2], b { c: "d" } };

message Outer {
  option deprecated = true;
  reserved 100, 200 to max;
  reserved "gone", 'too';
  bool b = 1 [deprecated = true, json_name = "bb"];
  sint32 i = 0x02;
  fixed32 u = 03;
  uint64 l = 4;
  float f = 5;
  optional double d = 6;
  string message = 7;
  bytes y = 8;
  repeated Inner items = 9;
  map<string, Inner.Deep> deeps = 10;
  oneof choice {
    option (x) = 1;
    string text = 11;
    int64 number = 12;
  }
  enum Suit { option allow_alias = true; SPADES = 0; HEARTS = 1 [deprecated = true]; H = 1; }
  Suit suit = 13;
  google.protobuf.Int32Value wrapped = 14;
  .google.protobuf.Timestamp at = 15;
  google.type.Date day = 16;
  confluent.type.Decimal dec = 17 [(confluent.field_meta) = {
    params: [ { key: "precision", value: "6" }, { value: "2"; key: "scale" } ]
  }];
  confluent.type.Decimal dec2 = 18 [(confluent.field_meta).params = {key: "precision" value: "5"}];
  map<int32, string> odd = 19;
  message Inner {
    message Deep { int32 x = 1; }
    Deep deep = 1;
  };
}
service S { rpc Do (Outer) returns (stream Outer) { option x = "}"; } }
"""
TYPE = (
    "STRUCT<`choice_0` STRUCT<`text` STRING, `number` BIGINT>, "
    "`b` BOOLEAN, `i` INTEGER, `u` BIGINT, `l` BIGINT, `f` DOUBLE, `d` DOUBLE, "
    "`message` STRING, `y` BYTES, `items` ARRAY<STRUCT<`deep` STRUCT<`x` INTEGER>>>, "
    "`deeps` MAP<STRING, STRUCT<`x` INTEGER>>, `suit` STRING, "
    "`wrapped` INTEGER, `at` TIMESTAMP, `day` DATE, `dec` DECIMAL(6, 2), `dec2` DECIMAL(5, 0)>"
)


def type_of(text, name=None, upper=False):
    messages = proto_schema.load(text)
    _, message = messages.chosen(name)
    return str(sql_type(proto_schema.connect_type(messages, message), upper=upper))


def test_everything():
    assert type_of(EVERYTHING.replace("map<int32, string> odd = 19;", "")) == TYPE
    with pytest.raises(NotInferable, match="map key"):
        type_of(EVERYTHING)
    messages = proto_schema.load(EVERYTHING)
    assert messages.names == ["a.b.Outer"]
    assert messages.by_path((0, 2, 0)).full_name == "a.b.Outer.Inner.Deep"


def test_parameters_of_a_map_are_those_of_its_values():
    meta = '[(confluent.field_meta).params = {key: "precision" value: "5"}]'
    head = 'syntax = "proto3"; import "confluent/type/decimal.proto";'
    text = f"{head} message M {{ map<string, confluent.type.Decimal> a_b = 1 {meta}; }}"
    assert type_of(text) == "STRUCT<`a_b` MAP<STRING, DECIMAL(5, 0)>>"


def test_optional_fields_have_presence():
    message = proto_schema.load(EVERYTHING).by_path((0,))
    present = {one.name for one in message.fields if one.has_presence}
    assert present == {"d", "text", "number", "wrapped", "at", "day", "dec", "dec2"}
    fields = parse(EVERYTHING).descriptor.message_type[0]
    assert [oneof.name for oneof in fields.oneof_decl] == ["choice", "_d"]


def test_proto2():
    text = """
    message M {
      required int32 a = 1;
      optional string b = 2 [default = "x"];
      extensions 100 to 199;
      repeated int32 c = 3 [packed = true];
    }
    extend M { optional int32 more = 126; }
    """
    assert type_of(text) == "STRUCT<`a` INTEGER, `b` STRING, `c` ARRAY<INTEGER>>"


def test_a_descriptor_in_base64():
    file = FileDescriptorProto()
    wrappers_pb2.DESCRIPTOR.CopyToProto(file)
    text = base64.b64encode(file.SerializeToString()).decode()
    assert type_of(text, "google.protobuf.BoolValue") == "STRUCT<`value` BOOLEAN>"


ODD = st.text(
    alphabet=st.sampled_from("\n\r\t\0\x01\x7f\"'\\\u00e90n") | st.characters(codec="utf-8")
)


@given(default=ODD, json_name=ODD.filter(bool))
def test_texts_in_a_descriptor_are_escaped(default, json_name):
    file = FileDescriptorProto(name="s.proto", syntax="proto2")
    field = file.message_type.add(name="M").field.add(name="a", number=1, type=9, label=1)
    field.default_value, field.json_name = default, json_name
    text = printer.text(file)
    assert parse(text).descriptor.message_type[0].field[0].name == "a"
    options = [word for word in tokens(text) if word[0] == '"']
    shown = [text_encoding.CUnescape(word[1:-1]).decode() for word in options]
    expected = ["proto2", default, *([json_name] if json_name != "a" else [])]
    assert shown == expected


def test_imports_of_other_subjects():
    imported = {
        "event.proto": 'syntax = "proto3"; import "deep.proto"; message Event { Deep d = 1; }',
        "deep.proto": 'syntax = "proto3"; message Deep { int64 t = 1; }',
    }
    text = 'syntax = "proto3"; import "event.proto"; message L { Event event = 1; }'
    messages = proto_schema.load(text, imported)
    type_ = sql_type(proto_schema.connect_type(messages, messages.by_path((0,))))
    assert str(type_) == "STRUCT<`EVENT` STRUCT<`D` STRUCT<`T` BIGINT>>>"
    with pytest.raises(BrokenProtobuf, match="imported but not referenced"):
        proto_schema.load(text)


def test_recursion_has_no_type():
    with pytest.raises(NotInferable, match="Recursive"):
        type_of('syntax = "proto3"; message M { M next = 1; }')


def test_several_messages():
    text = 'syntax = "proto3"; message A { int32 x = 1; } message B { string y = 1; }'
    assert type_of(text, "B") == "STRUCT<`y` STRING>"
    with pytest.raises(proto_schema.SeveralMessages, match="multiple message definitions: A, B"):
        type_of(text)
    with pytest.raises(MESSAGE_NOT_FOUND.base, match="C does not exist"):
        type_of(text, "C")


@pytest.mark.parametrize(
    "text",
    [
        "message",
        "message M",
        "message M {",
        "message M { int32 }",
        "message M { int32 a }",
        "message M { int32 a = ; }",
        "message M { int32 a = x; }",
        "message M { int32 a = 0; }",
        "message M { int32 a = 1; int32 b = 1; }",
        "message M { Unknown a = 1; }",
        "message M { optional group G = 1 { } }",
        'syntax = "proto9";',
        "syntax = proto3;",
        "what is this",
        "message M { int32 a = 1 [x }",
        "message \u00e9 {}",
        'import "nowhere.proto";',
        "message M { " * 200,
        "enum E { }",
    ],
)
def test_broken_schemas(text):
    with pytest.raises(BrokenProtobuf):
        proto_schema.load(text)


@given(st.text("message M{}[]()=;<>,. int32enum\"'\\/\n0123"))
def test_nothing_but_its_own_error(text):
    with contextlib.suppress(BrokenProtobuf):
        parse(text)
