from __future__ import annotations

import datetime as dt
import io
import json
import math
from decimal import Decimal

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksql.core.errors import RegistryMissing
from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Array, Field, Map, Struct
from ksql.formats.avro.schema import NotAvro, connect_type
from ksql.formats.avro.text import parse
from ksql.formats.avro.tree import BrokenAvro
from ksql.formats.connect import NotInferable, sql_type
from ksql.formats.schema_registry import MemoryRegistry, Reference, Schema, framed
from ksql.formats.table import SKIP, DecodeError, EncodeError, serde_for
from tests.examples import examples
from tests.unit.formats import columns as c

D = Decimal
INT, BIGINT, DOUBLE, STRING = model.INTEGER, model.BIGINT, model.DOUBLE, model.STRING
DEC = model.Decimal(6, 2)


def opt(type_):
    return ["null", type_]


def record(*fields, name="R"):
    return {
        "type": "record",
        "name": name,
        "fields": [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields],
    }


def written(registry, schema, datum, schema_id=None):
    """The bytes that another producer writes."""
    chosen = registry.register("other", Schema("AVRO", json.dumps(schema)), schema_id)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
    return framed(chosen) + out.getvalue()


def reads(schema, datum, *columns, wrapped=True):
    registry = MemoryRegistry()
    serde = serde_for(
        Format("AVRO", wrap=None if wrapped else False), columns, "value", registry, "s"
    )
    return serde.decode(written(registry, schema, datum))


NUMBER = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
ENTRY = record(("key", opt("string")), ("value", opt("int")), name="Entry")
SUIT = {"type": "enum", "name": "Suit", "symbols": ["SPADES", "HEARTS"]}

READ = [
    ("boolean", True, model.BOOLEAN, True),
    ("int", -5, INT, -5),
    ("int", 5, BIGINT, 5),
    ("long", 2**62, BIGINT, 2**62),
    ("long", -(2**63), BIGINT, -(2**63)),
    ("float", 1.5, DOUBLE, 1.5),
    ("double", 1e300, DOUBLE, 1e300),
    ("string", "é", STRING, "é"),
    ("int", 7, STRING, "7"),
    ("boolean", False, STRING, "false"),
    ("double", 1e10, STRING, "1.0E10"),
    ("float", 1.1, STRING, "1.1"),
    (SUIT, "HEARTS", STRING, "HEARTS"),
    ("bytes", b"\0\xff", model.BYTES, b"\0\xff"),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", model.BYTES, b"ab"),
    (NUMBER, D("-12.34"), DEC, D("-12.34")),
    (NUMBER, D("1.50"), model.Decimal(8, 4), D("1.5000")),
    (
        {"type": "fixed", "name": "N", "size": 4, **{k: NUMBER[k] for k in list(NUMBER)[1:]}},
        D("1.50"),
        DEC,
        D("1.50"),
    ),
    ({"type": "int", "logicalType": "date"}, dt.date(1970, 1, 3), model.DATE, 2),
    ({"type": "int", "logicalType": "time-millis"}, dt.time(0, 0, 1), model.TIME, 1000),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
        model.TIMESTAMP,
        1000,
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
        BIGINT,
        1_000_000,
    ),
    (opt("int"), None, INT, None),
    (["string", "null"], "x", STRING, "x"),
    ({"type": "array", "items": opt("int")}, [1, None, 3], Array(INT), [1, None, 3]),
    ({"type": "array", "items": "int"}, [], Array(BIGINT), []),
    ({"type": "map", "values": "long"}, {"a": 1}, Map(STRING, BIGINT), {"a": 1}),
    (
        {"type": "array", "items": ENTRY},
        [{"key": "a", "value": 1}, {"key": "b", "value": None}],
        Map(STRING, INT),
        {"a": 1, "b": None},
    ),
    (
        record(("x", "int"), ("Y", "string"), name="Inner"),
        {"x": 1, "Y": "y"},
        Struct((Field("Y", STRING), Field("X", INT), Field("Z", INT))),
        {"Y": "y", "X": 1, "Z": None},
    ),
    (
        record(("X", "int"), ("y", "int"), ("Y", "int"), name="Inner"),
        {"X": 1, "y": 2, "Y": 3},
        Struct((Field("x", INT), Field("y", INT), Field("Y", INT))),
        {"x": 1, "y": 2, "Y": 3},
    ),
    (
        ["null", "int", "string"],
        "x",
        Struct((Field("INT", INT), Field("STRING", STRING))),
        {"INT": None, "STRING": "x"},
    ),
    (
        ["null", "int", "string", "boolean"],
        True,
        Struct((Field("INT", INT),)),
        {"INT": None},
    ),
]


@pytest.mark.parametrize(("schema", "datum", "type_", "expected"), READ)
def test_reads(schema, datum, type_, expected):
    column = c.value("V", type_)
    assert c.same(reads(record(("v", schema)), {"v": datum}, column), (expected,))
    between = record(("a", schema), ("V", schema), ("z", "int"))
    if "name" not in str(schema):  # a named type cannot be defined twice
        assert c.same(reads(between, {"a": datum, "V": datum, "z": 1}, column), (expected,))
    assert c.same(reads(schema, datum, column, wrapped=False), (expected,))


MISMATCHED = [
    ("long", 1, INT, "$.V", "Cannot deserialize type INT64 as type INTEGER"),
    ("int", 1, DOUBLE, "$.V", "Cannot deserialize type INT32 as type DOUBLE"),
    ("string", "1", INT, "$.V", "Cannot deserialize type STRING as type INTEGER"),
    ("int", 1, model.DATE, "$.V", "type INT32 as type DATE"),
    ("bytes", b"", DEC, "$.V", "type BYTES as type DECIMAL(6, 2)"),
    (NUMBER, D("1.00"), STRING, "$.V", "type DECIMAL as type STRING"),
    (NUMBER, D("99.99"), model.Decimal(3, 2), "$.V", "Numeric field overflow"),
    ({"type": "array", "items": "long"}, [1], Array(INT), "$.V[]", "type INT64 as type INTEGER"),
    (
        {"type": "array", "items": NUMBER},
        [D("1.00"), D("99.99")],
        Array(model.Decimal(3, 2)),
        "$.V[1]",
        "Numeric field overflow",
    ),
    ("int", 1, Array(INT), "$.V", "type INT32 as type ARRAY<INTEGER>"),
    (
        {"type": "map", "values": NUMBER},
        {"k": D("99.99")},
        Map(STRING, model.Decimal(3, 2)),
        "$.V.k.value",
        "Numeric field overflow",
    ),
    (
        record(("f", "string"), name="I"),
        {"f": "x"},
        Struct((Field("F", INT),)),
        "$.V.F",
        "type STRING as type INTEGER",
    ),
]


@pytest.mark.parametrize(("schema", "datum", "type_", "path", "message"), MISMATCHED)
def test_mismatches_of_schema_and_columns(schema, datum, type_, path, message):
    with pytest.raises(DecodeError) as caught:
        reads(record(("V", schema)), {"V": datum}, c.value("V", type_))
    assert message in caught.value.message
    assert caught.value.path == path


def test_every_kind_of_value_is_skipped():
    loop = record(("next", opt("Loop")), ("n", "int"), name="Loop")
    kinds = [
        ("a", "null", None),
        ("b", "boolean", True),
        ("c", "long", -(2**40)),
        ("d", "float", 1.0),
        ("e", "double", 1.0),
        ("f", "bytes", b"x" * 300),
        ("g", "string", "é"),
        ("h", SUIT, "HEARTS"),
        ("i", {"type": "fixed", "name": "F", "size": 3}, b"abc"),
        ("j", {"type": "array", "items": "int"}, [1, 2, 300]),
        ("k", {"type": "map", "values": ["null", "int"]}, {"a": 1, "b": None}),
        ("l", loop, {"next": {"next": None, "n": 1}, "n": 2}),
        ("m", ["int", "string"], "x"),
    ]
    schema = record(*((name, type_) for name, type_, _ in kinds), ("V", "int"))
    datum = {name: value for name, _, value in kinds} | {"V": 42}
    assert reads(schema, datum, c.value("V", INT)) == (42,)
    assert reads(record(("V", "int")), {"V": 1}, c.value("W", INT)) == (None,)


def test_two_columns_may_match_one_field_and_a_record_may_be_null():
    schema = record(("v", "int"), ("n", "int"))
    values = reads(schema, {"v": 1, "n": 2}, c.value("V", INT), c.value("v", BIGINT))
    assert values == (1, 1)
    assert reads(opt(schema), {"v": 1, "n": 2}, c.value("V", INT)) == (1,)
    assert reads(opt(schema), None, c.value("V", INT)) is None


def test_blocks_with_sizes_are_read_and_skipped():
    registry = MemoryRegistry()
    schema = record(("a", {"type": "array", "items": "int"}), ("b", "int"))
    chosen = registry.register("s", Schema("AVRO", json.dumps(schema)))
    # a block of -2 items says that it has 2, in 2 bytes; then the end; then b
    data = framed(chosen) + bytes([3, 4, 2, 4, 0, 10])
    both = (c.value("A", Array(INT)), c.value("B", INT))
    assert serde_for(Format("AVRO"), both, "value", registry, "x").decode(data) == ([1, 2], 5)
    assert serde_for(Format("AVRO"), both[1:], "value", registry, "x").decode(data) == (5,)


def test_names_of_other_subjects():
    registry = MemoryRegistry()
    inner = json.dumps({**record(("n", "int"), name="Inner"), "namespace": "a.b"})
    registry.register("inner-subject", Schema("AVRO", inner))
    outer = json.dumps(record(("i", "a.b.Inner")))
    references = (Reference("a.b.Inner", "inner-subject", 1),)
    chosen = registry.register("outer", Schema("AVRO", outer, references))
    column = c.value("I", Struct((Field("N", INT),)))
    serde = serde_for(Format("AVRO"), (column,), "value", registry, "x")
    assert serde.decode(framed(chosen) + b"\x0a") == ({"N": 5},)


def test_frames():
    registry = MemoryRegistry()
    serde = serde_for(Format("AVRO"), (c.value("V", INT),), "value", registry, "s")
    failures = c.Failures()
    items = [b"", b"\0\0\0", b"\1\0\0\0\1\0", framed(99), None]
    assert serde.decode_many(items, failures) == [SKIP] * 4 + [None]
    assert [message for _, message in failures] == ["Unknown magic byte!"] * 3 + [
        "Schema 99 not found"
    ]
    assert serde.encode_many([(1,), None, (None,)]) == [
        framed(1) + b"\2\2",
        None,
        framed(1) + b"\0",
    ]
    assert serde.decode(framed(1) + b"\2\2") == (1,)


def test_broken_schemas_and_bytes():
    registry = MemoryRegistry()
    registry.register("a", Schema("AVRO", '{"type": "record"}'))
    registry.register("b", Schema("AVRO", json.dumps(record(("v", "string")))))
    serde = serde_for(Format("AVRO"), (c.value("V", STRING),), "value", registry, "s")
    for data in (framed(1), framed(2), framed(2) + b"\x10ab", framed(2) + b"\x01a"):
        with pytest.raises(DecodeError):
            serde.decode(data)


def test_a_registry_is_needed():
    with pytest.raises(RegistryMissing, match="Format AVRO needs a schema registry"):
        serde_for(Format("AVRO"), (c.value("V", INT),), "value")


# --- writing ----------------------------------------------------------------------------------


def writes(schema, columns, row, **format_):
    registry = MemoryRegistry()
    chosen = registry.register("physical", Schema("AVRO", json.dumps(schema)))
    serde = serde_for(Format("AVRO", schema_id=chosen, **format_), columns, "value", registry, "s")
    data = serde.encode(row)
    if data is None:
        return None
    assert data.startswith(framed(chosen))
    return fastavro.schemaless_reader(io.BytesIO(data[5:]), fastavro.parse_schema(schema))


WRITE = [
    ("int", INT, 5, 5),
    ("long", INT, 5, 5),
    (["string", "null"], STRING, None, None),
    (["int", "string"], STRING, "x", "x"),
    ("float", DOUBLE, 1.5, 1.5),
    ("float", DOUBLE, -1e300, -math.inf),
    (SUIT, STRING, "HEARTS", "HEARTS"),
    ({"type": "fixed", "name": "F", "size": 2}, model.BYTES, b"ab", b"ab"),
    (NUMBER, DEC, D("-0.01"), D("-0.01")),
    (
        {"type": "fixed", "name": "N", "size": 4, **{k: NUMBER[k] for k in list(NUMBER)[1:]}},
        DEC,
        D("-1.28"),
        D("-1.28"),
    ),
    (
        {"type": "array", "items": ENTRY},
        Map(STRING, INT),
        {"a": 1, "b": None},
        [{"key": "a", "value": 1}, {"key": "b", "value": None}],
    ),
    ({"type": "map", "values": "int"}, Map(STRING, INT), {}, {}),
    (
        record(("Y", opt("string")), ("q", "int", 7), ("X", "long"), name="I"),
        Struct((Field("X", BIGINT), Field("Y", STRING))),
        {"X": 1, "Y": None},
        {"Y": None, "q": 7, "X": 1},
    ),
]


@pytest.mark.parametrize(("schema", "type_", "value", "expected"), WRITE)
def test_writes_a_given_schema(schema, type_, value, expected):
    column = c.value("V", type_)
    assert writes(record(("V", schema)), (column,), (value,)) == {"V": expected}
    assert writes(record(("v", schema)), (column,), (value,)) == {"v": expected}


def test_fields_without_a_column_take_their_defaults():
    defaults = [
        ("a", "int", -3),
        ("b", "string", "foo"),
        ("c", opt("int"), None),
        ("d", ["int", "null"], 4),
        ("e", "bytes", "\u00ff"),
        ("f", {"type": "fixed", "name": "F", "size": 2}, "ab"),
        ("g", SUIT, "HEARTS"),
        ("h", {"type": "array", "items": "long"}, [1, 2]),
        ("i", {"type": "map", "values": "boolean"}, {"x": True}),
        ("j", record(("k", "double"), ("l", "float", 2.0), name="I"), {"k": 1.5}),
        ("k", "null", None),
        ("l", "boolean", False),
        ("m", opt("int")),
    ]
    data = writes(record(*defaults, ("V", "int")), (c.value("V", INT),), (1,))
    expected = {field[0]: field[2] if len(field) > 2 else None for field in defaults}
    expected |= {"e": b"\xff", "f": b"ab", "j": {"k": 1.5, "l": 2.0}, "V": 1}
    assert data == expected


def test_a_null_takes_the_default_of_a_field_that_must_have_a_value():
    assert writes(record(("V", "int", 9)), (c.value("V", INT),), (None,)) == {"V": 9}


@pytest.mark.parametrize(
    ("schema", "type_", "value", "message"),
    [
        (record(("V", "int")), INT, None, "null used for required field"),
        (record(("V", "int"), ("W", "int")), INT, 1, 'required field: "W"'),
        (record(("V", SUIT)), STRING, "CLUBS", "is not a symbol"),
        (record(("V", {"type": "fixed", "name": "F", "size": 2})), model.BYTES, b"a", "do not fit"),
        (record(("V", ["null", "int"])), STRING, "x", "required field"),
        (record(("V", "int")), INT, "x", "Cannot write the row"),
        (
            record(("V", {"type": "map", "values": "int"})),
            Map(STRING, INT),
            {None: 1},
            'null used as a key of the map "V"',
        ),
    ],
)
def test_unwritable_values(schema, type_, value, message):
    with pytest.raises(EncodeError, match=message):
        writes(schema, (c.value("V", type_),), (value,))


def test_single_values_are_unwrapped():
    column = c.value("V", STRING)
    assert writes("string", (column,), ("x",), wrap=False) == "x"
    assert writes("string", (column,), (None,), wrap=False) is None
    registry = MemoryRegistry()
    serde_for(Format("AVRO"), (c.key("K", INT),), "key", registry, "t-key").encode((1,))
    assert registry.latest("t-key").schema.text == '"int"'


def test_a_struct_of_branches_is_written_as_the_one_that_is_there():
    registry = MemoryRegistry()
    union = ["null", "int", {"type": "array", "items": "string"}]
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "u", "type": union}]})
    chosen = registry.register("s", Schema("AVRO", text))
    struct = Struct((Field("INT", model.INTEGER), Field("ARRAY", Array(model.STRING))))
    columns = (c.value("u", struct),)
    serde = serde_for(Format("AVRO", schema_id=chosen), columns, "value", registry, "s")
    for value in ({"INT": 5, "ARRAY": None}, {"INT": None, "ARRAY": ["a"]}, None):
        assert serde.decode(serde.encode((value,))) == (value,)
    with pytest.raises(EncodeError, match="required"):
        serde.encode(({"INT": None, "ARRAY": None},))


def test_our_schema():
    registry = MemoryRegistry()
    columns = (c.value("A", DEC), c.value("S", Array(Struct((Field("x", model.TIMESTAMP),)))))
    format_ = Format("AVRO", schema_full_name="my.space.Thing")
    serde_for(format_, columns, "value", registry, "t-value").encode((None, None))
    logical = {"connect.version": 1}
    x = {
        "type": "long",
        **logical,
        "connect.name": "org.apache.kafka.connect.data.Timestamp",
        "logicalType": "timestamp-millis",
    }
    inner = {
        "type": "record",
        "name": "Thing_S",
        "fields": [{"name": "x", "type": ["null", x], "default": None}],
        "connect.name": "my.space.Thing_S",
    }
    number = {
        "type": "bytes",
        **logical,
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
        "precision": 6,
        "scale": 2,
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "6"},
    }
    array = {"type": "array", "items": ["null", inner]}
    assert json.loads(registry.latest("t-value").schema.text) == {
        "type": "record",
        "name": "Thing",
        "namespace": "my.space",
        "fields": [
            {"name": "A", "type": ["null", number], "default": None},
            {"name": "S", "type": ["null", array], "default": None},
        ],
        "connect.name": "my.space.Thing",
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("1x", "Schema is not compatible with Avro: Illegal initial character: 1x"),
        ("a b", "Schema is not compatible with Avro: Illegal character in: a b"),
    ],
)
def test_names_that_avro_does_not_know(name, message):
    serde = serde_for(Format("AVRO"), (c.value(name, INT),), "value", MemoryRegistry(), "s")
    with pytest.raises(NotAvro, match=message):
        serde.encode((1,))


# --- schemas ----------------------------------------------------------------------------------

INFERRED = [
    ("string", "STRING"),
    ({"type": "int", "connect.type": "int16"}, "INTEGER"),
    (NUMBER, "DECIMAL(6, 2)"),
    ({"type": "bytes", "logicalType": "decimal"}, "DECIMAL(64, 0)"),
    ({"type": {"type": "string"}}, "STRING"),
    (record(("a", opt("float")), ("b", SUIT)), "STRUCT<`A` DOUBLE, `B` STRING>"),
    (["null", "int", "string"], "STRUCT<`INT` INTEGER, `STRING` STRING>"),
    ({"type": "map", "values": {"type": "array", "items": "long"}}, "MAP<STRING, ARRAY<BIGINT>>"),
    ({"type": "array", "items": ENTRY}, "ARRAY<STRUCT<`KEY` STRING, `VALUE` INTEGER>>"),
    (
        {"type": "array", "items": {**ENTRY, "connect.internal.type": "MapEntry"}},
        "MAP<STRING, INTEGER>",
    ),
    (
        {
            "type": "array",
            "items": {**ENTRY, "name": "MapEntry", "namespace": "io.confluent.connect.avro"},
        },
        "MAP<STRING, INTEGER>",
    ),
]


@pytest.mark.parametrize(("schema", "expected"), INFERRED)
def test_schemas_as_types(schema, expected):
    assert str(sql_type(connect_type(parse(json.dumps(schema))))) == expected


def test_a_union_of_two_records_of_one_name_has_no_type():
    inner = record(("x", "int"), name="P")
    union = [{**inner, "namespace": "a"}, {**inner, "namespace": "b"}]
    with pytest.raises(NotInferable, match="branches of a union"):
        sql_type(connect_type(parse(json.dumps(union))))


def test_recursion_has_no_type():
    loop = parse(json.dumps(record(("next", opt("R")))))
    with pytest.raises(NotInferable, match="Recursive"):
        sql_type(connect_type(loop))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        '"Unknown"',
        "{}",
        "1",
        "[" * 5000,
        '{"type": "enum"}',
        '{"type": "record", "name": "R"}',
        '{"type": "record", "name": "R", "fields": [{"name": "a"}]}',
    ],
)
def test_broken_schemas(text):
    with pytest.raises(BrokenAvro):
        parse(text)


# --- properties -------------------------------------------------------------------------------

NAMES = st.sampled_from(["A", "b", "C_1", "_d", "Ef"])


def avro_safe(type_):
    """The type with names that Avro knows."""
    match type_:
        case model.Array(item):
            return Array(avro_safe(item))
        case Map(key, item):
            return Map(key, avro_safe(item))
        case model.Struct(fields):
            return Struct(tuple(Field(f"F{i}", avro_safe(f.type)) for i, f in enumerate(fields)))
        case _:
            return type_


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(50))
@given(c.rows(c.types().map(avro_safe)))
def test_round_trip(table):
    columns, rows = table
    registry = MemoryRegistry()
    serde = serde_for(Format("AVRO"), columns, "value", registry, "s")
    encoded = serde.encode_many(rows)
    assert c.same(serde.decode_many(encoded, c.fail), rows)
    theirs = fastavro.parse_schema(json.loads(registry.latest("s").schema.text))
    for data in encoded:
        assert data is not None
        rest = io.BytesIO(data[5:])
        fastavro.schemaless_reader(rest, plain(theirs))
        assert rest.read() == b""


def plain(schema):
    """Without logical types: Python has not all their values."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if isinstance(schema, dict):
        return {k: plain(v) for k, v in schema.items() if k != "logicalType"}
    return schema


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(50))
@given(c.rows(c.types().map(avro_safe)), st.lists(st.binary(max_size=30), max_size=3), st.data())
def test_nothing_but_decode_errors(table, noise, data):
    columns, rows = table
    serde = serde_for(Format("AVRO"), columns, "value", MemoryRegistry(), "s")
    serde.encode_many(rows)
    broken = [framed(1) + one for one in noise]
    for item in serde.encode_many(rows):
        assert item is not None
        at = data.draw(st.integers(5, len(item)))
        broken.append(item[:at] + data.draw(st.binary(max_size=4)) + item[at + 1 :])
    failures = c.Failures()
    values = serde.decode_many(broken, failures)
    assert len(failures) == values.count(SKIP)
