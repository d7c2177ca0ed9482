from __future__ import annotations

import pytest

from ksql.core.errors import StatementError
from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.model import Array, Field, Map, Struct
from ksql.formats.table import configured_wrap, serde_features, serde_for, validate
from tests.unit.formats import columns as c

INT, STRING = model.INTEGER, model.STRING
INT_MAP = Map(INT, model.DOUBLE)

REFUSED = [
    (
        Format("DELIMITED"),
        "key",
        (c.key("K", Array(model.DOUBLE)),),
        "Key format does not support schema.\nformat: DELIMITED\n"
        "schema: Persistence{columns=[`K` ARRAY<DOUBLE> KEY], features=[]}\n"
        "reason: The 'DELIMITED' format does not support type 'ARRAY', column: `K`",
    ),
    (
        Format("KAFKA"),
        "key",
        (c.key("K", model.Decimal(21, 19)),),
        "Key format does not support schema.\nformat: KAFKA\n"
        "schema: Persistence{columns=[`K` DECIMAL(21, 19) KEY], features=[]}\n"
        "reason: The 'KAFKA' format does not support type 'DECIMAL'",
    ),
    (
        Format("KAFKA"),
        "value",
        (c.value("A", INT), c.value("B", STRING)),
        "The 'KAFKA' format only supports a single field. Got: [`A` INTEGER, `B` STRING]",
    ),
    (Format("KAFKA"), "value", (c.value("A", model.BOOLEAN),), "not support type 'BOOLEAN'"),
    (Format("DELIMITED"), "value", (c.value("A", INT_MAP),), "not support type 'MAP'"),
    (Format("DELIMITED"), "value", (c.value("A", Struct(())),), "not support type 'STRUCT'"),
    (
        Format("NONE"),
        "key",
        (c.key("K", STRING),),
        "The 'NONE' format can only be used when no columns are defined. Got: [`K` STRING KEY]",
    ),
    (Format("NONE"), "value", (c.value("A", INT),), "Got: [`A` INTEGER]"),
    (
        Format("JSON"),
        "key",
        (c.key("K", Array(INT_MAP)),),
        "Map keys, including types that contain maps, are not supported as they may lead to "
        "unexpected behavior due to inconsistent serialization. Key column name: `K`. "
        "Column type: ARRAY<MAP<INTEGER, DOUBLE>>. See ",
    ),
    (
        Format("JSON"),
        "value",
        (c.value("A", Struct((Field("F", INT_MAP),))),),
        "JSON only supports MAP types with STRING keys",
    ),
    (
        Format("AVRO"),
        "value",
        (c.value("A", INT_MAP),),
        "Avro only supports MAPs with STRING keys",
    ),
    *(
        (
            Format(name),
            "value",
            (c.value("A", Array(INT_MAP)),),
            "PROTOBUF format only supports MAP types with STRING keys. See ",
        )
        for name in ("PROTOBUF", "PROTOBUF_NOSR")
    ),
    (
        Format("KAFKA", wrap=True),
        "value",
        (c.value("A", INT),),
        "Format 'KAFKA' does not support 'WRAP_SINGLE_VALUE' set to 'true'.",
    ),
    (
        Format("PROTOBUF", wrap=False),
        "value",
        (c.value("A", INT),),
        "Format 'PROTOBUF' does not support 'WRAP_SINGLE_VALUE' set to 'false'.",
    ),
    (
        Format("PROTOBUF_NOSR"),
        "value",
        (c.value("A", Array(Array(INT))),),
        "Schema is not compatible with Protobuf: ARRAY<INTEGER> inside of ARRAY",
    ),
    (
        Format("PROTOBUF_NOSR"),
        "key",
        (c.key("a b", INT),),
        "Schema is not compatible with Protobuf: Illegal name: a b",
    ),
    (
        Format("PROTOBUF", wrap=False),
        "value",
        (c.value("A", INT), c.value("B", INT)),
        "'WRAP_SINGLE_VALUE' is only valid for single-field value schemas",
    ),
    (
        Format("JSON", schema_full_name="a.B"),
        "value",
        (c.value("A", INT),),
        "JSON does not support the following configs: [fullSchemaName]",
    ),
]


@pytest.mark.parametrize(("format_", "side", "columns", "message"), REFUSED)
def test_refused(format_, side, columns, message):
    with pytest.raises(StatementError) as caught:
        validate(format_, columns, side)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("format_", "side", "row", "data"),
    [
        (Format("JSON"), "value", (1,), b'{"C":1}'),
        (Format("JSON", wrap=False), "value", (1,), b"1"),
        (Format("JSON"), "key", (1,), b"1"),
        (Format("DELIMITED", delimiter=";"), "value", (1,), b"1"),
        (Format("DELIMITED", wrap=False), "value", (1,), b"1"),
        (Format("KAFKA"), "key", (1,), b"\0\0\0\x01"),
    ],
)
def test_single_columns(format_, side, row, data):
    columns = (c.key("C", INT) if side == "key" else c.value("C", INT),)
    serde = serde_for(format_, columns, side)
    assert serde.encode(row) == data
    assert serde.decode(data) == row


def test_keys_of_several_columns():
    columns = (c.key("A", INT), c.key("b", STRING))
    assert serde_for(Format("JSON"), columns, "key").encode((1, "x")) == b'{"A":1,"b":"x"}'
    delimited = serde_for(Format("DELIMITED", delimiter="|"), columns, "key")
    assert delimited.encode((1, "x")) == b"1|x"


@pytest.mark.parametrize("name", ["JSON", "DELIMITED", "KAFKA", "NONE"])
def test_keys_without_columns_are_not_read(name):
    serde = serde_for(Format(name), (), "key")
    assert serde.decode(b"{{{") == ()
    assert serde.encode(()) is None


def test_values_without_columns():
    assert serde_for(Format("JSON"), (), "value").encode(()) == b"{}"


@pytest.mark.parametrize(
    ("format_", "side", "columns", "features"),
    [
        (Format("JSON"), "key", (c.key("K", INT),), ("UNWRAP_SINGLES",)),
        (Format("JSON"), "key", (c.key("K", INT), c.key("L", INT)), ()),
        (Format("DELIMITED"), "key", (c.key("K", INT),), ()),
        (Format("PROTOBUF"), "key", (c.key("K", INT),), ()),
        (Format("JSON"), "value", (c.value("V", INT),), ()),
        (Format("JSON", wrap=True), "value", (c.value("V", INT),), ("WRAP_SINGLES",)),
        (Format("JSON", wrap=False), "value", (c.value("V", INT),), ("UNWRAP_SINGLES",)),
    ],
)
def test_features(format_, side, columns, features):
    assert serde_features(format_, columns, side) == features


@pytest.mark.parametrize(
    ("name", "columns", "setting", "wrap"),
    [
        ("JSON", 1, False, False),
        ("JSON", 1, None, None),
        ("JSON", 2, False, None),
        ("KAFKA", 1, True, None),
        ("DELIMITED", 1, False, False),
        ("PROTOBUF", 1, False, None),
    ],
)
def test_wrapping_by_configuration(name, columns, setting, wrap):
    assert configured_wrap(name, columns, setting) is wrap


def test_several_keys_in_a_format_for_one_name_a_way_out():
    both = (c.key("A", INT), c.key("B", STRING))
    with pytest.raises(StatementError, match="only supports a single field") as caught:
        validate(Format("KAFKA"), both, "key")
    assert "KEY_FORMAT='JSON'" in caught.value.hint
