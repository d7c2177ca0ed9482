"""Statements over a schema registry: what they take from it, what they leave there."""

from __future__ import annotations

import json

import pytest

from ksql.control.engine.ports import MemoryLog
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import RegistryMissing
from ksql.formats.schema_registry import MemoryRegistry, RegistryUnreachable, Schema, SchemaRejected
from ksql.sql.syntax.parser import parse_one, split
from tests.unit.world import World

RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "b", "type": ["null", "string"], "default": None},
    ],
}
PROTO = 'syntax = "proto3"; message M { string Name = 1; int64 n = 2; }'
NAMESPACE = "io.confluent.ksql.avro_schemas"


class Choosy(MemoryRegistry):
    """Refuses a subject's second schema, or does not answer at all."""

    def __init__(self):
        super().__init__()
        self.down = False

    def latest(self, subject):
        if self.down:
            raise RegistryUnreachable("http://r", "refused")
        return super().latest(subject)

    def register(self, subject, schema, schema_id=None):
        known = super().latest(subject)
        if known is not None and known.schema != schema:
            raise SchemaRejected(subject, "they differ")
        return super().register(subject, schema, schema_id)


def world(**schemas):
    """A world whose registry has schemas by subject, ``_`` for ``-``."""
    registry = Choosy()
    for subject_, schema in schemas.items():
        schema_ = (
            Schema(*schema) if isinstance(schema, tuple) else Schema("AVRO", json.dumps(schema))
        )
        registry.register(subject_.replace("_", "-"), schema_)
    world_ = World(registry=registry)
    setattr(world_, "registry", registry)  # noqa: B010 - only here
    world_.topic("t")
    return world_


def shown(world_, name="S"):
    source = world_.catalog.sources[name]
    return str(source.schema)


def subject(world_, name):
    schema = world_.registry.latest(name)
    return None if schema is None else schema.schema.text


INFERRED = [
    ("STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO')", "`A` INTEGER, `B` STRING"),
    (
        "STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='avro')",
        "`K` INTEGER KEY, `A` INTEGER, `B` STRING",
    ),
    (
        "STREAM S (V INT) WITH (KAFKA_TOPIC='t', FORMAT='AVRO')",
        "`ROWKEY` BIGINT KEY, `V` INTEGER",
    ),
    (
        "TABLE S WITH (KAFKA_TOPIC='t', FORMAT='AVRO')",
        "`ROWKEY` BIGINT KEY, `A` INTEGER, `B` STRING",
    ),
    (
        "STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1)",
        "`a` INTEGER, `b` STRING",
    ),
    (
        "STREAM S (K INT KEY, H BYTES HEADER('h')) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO')",
        "`K` INTEGER KEY, `A` INTEGER, `B` STRING",
    ),
]


@pytest.mark.parametrize(("statement", "columns"), INFERRED)
def test_columns_come_from_the_registry(statement, columns):
    world_ = world(t_value=RECORD, t_key="long")
    world_.execute(f"CREATE {statement};")
    assert shown(world_) == columns


def test_inferred_columns_are_written_into_the_statement():
    world_ = world(t_value=RECORD)
    world_.execute("CREATE STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');")
    source = world_.catalog.sources["S"]
    assert source.statement == (
        "CREATE STREAM S (K INTEGER KEY, A INTEGER, B STRING) "
        "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');"
    )
    again = parse_one(split(source.statement)[0]).statement
    assert [c.name for c in again.columns] == ["K", "A", "B"]
    replayed = World(log=MemoryLog())
    for offset, command in enumerate(world_.log.commands):
        replayed.engine.replay(offset, command)
    assert replayed.catalog.sources["S"] == source


def test_a_stated_text_stays():
    text = "CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');"
    world_ = world()
    world_.execute(text)
    assert world_.catalog.sources["S"].statement == text


def test_message_is_chosen_among_several():
    two = PROTO + " message N { bool x = 1; }"
    world_ = world(t_value=("PROTOBUF", two))
    world_.execute(
        "CREATE STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='PROTOBUF', "
        "VALUE_SCHEMA_FULL_NAME='N');"
    )
    assert shown(world_) == "`X` BOOLEAN"


REFUSED = [
    (
        "STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON_SR')",
        "Value schema is not in the expected format. You may want to set VALUE_FORMAT to 'AVRO'.",
    ),
    (
        "STREAM S (V INT) WITH (KAFKA_TOPIC='t', FORMAT='AVRO')",
        "Schema for message keys on topic 't' does not exist in the Schema Registry.",
    ),
    (
        "STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=9)",
        "Schema for message values on topic 't' does not exist in the Schema Registry.",
    ),
    (
        "STREAM S (V INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1)",
        "Table elements and VALUE_SCHEMA_ID cannot both exist for create statement.",
    ),
    (
        "STREAM S (V INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', VALUE_SCHEMA_ID=1)",
        "VALUE_FORMAT should support schema inference when VALUE_SCHEMA_ID is provided. "
        "Current format is JSON.",
    ),
    (
        "STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', KEY_SCHEMA_ID=1)",
        "KEY_FORMAT should support schema inference when KEY_SCHEMA_ID is provided. "
        "Current format is KAFKA.",
    ),
    (
        "TABLE S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1)",
        "Tables require a PRIMARY KEY. Please define the PRIMARY KEY.",
    ),
    (
        "STREAM S (`1` INT) WITH (KAFKA_TOPIC='n', PARTITIONS=1, VALUE_FORMAT='AVRO')",
        "Schema is not compatible with Avro: Illegal initial character: 1",
    ),
    (
        "STREAM S (A INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', "
        "VALUE_AVRO_SCHEMA_FULL_NAME='a', VALUE_SCHEMA_FULL_NAME='b')",
        "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' properties. "
        "Please only set 'VALUE_SCHEMA_FULL_NAME'.",
    ),
    (
        "STREAM S (A INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_FULL_NAME=' ')",
        "fullSchemaName cannot be empty. Format configured with empty fullSchemaName.",
    ),
    (
        "STREAM S (A INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='PROTOBUF', "
        "VALUE_PROTOBUF_NULLABLE_REPRESENTATION='SOME')",
        "Invalid value SOME for configuration VALUE_PROTOBUF_NULLABLE_REPRESENTATION: "
        "String must be one of: OPTIONAL, WRAPPER, null",
    ),
]


@pytest.mark.parametrize(("statement", "message"), REFUSED)
def test_refused(statement, message):
    world_ = world(t_value=RECORD)
    refused = world_.refuse(f"CREATE {statement};").message
    assert refused.removeprefix("Failed to prepare statement: ") == message
    assert world_.registry.subjects() == ["t-value"]


def test_several_key_fields_must_be_declared():
    both = PROTO.replace("M", "K")
    world_ = world(t_key=("PROTOBUF", both))
    error = world_.refuse("CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='t', FORMAT='PROTOBUF');")
    assert error.message.startswith("The key schema for topic: t contains multiple columns")


def test_without_a_registry():
    bare = World()
    bare.topic("t")
    for columns in ("", " (V INT)"):
        error = bare.refuse(
            f"CREATE STREAM S{columns} WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');"
        )
        assert isinstance(error, RegistryMissing)
        assert error.code == 42801
        assert "without configuring 'ksql.schema.registry.url'" in error.message


# --- registering

DECLARED = "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, FORMAT='AVRO');"


def test_a_declared_source_registers_what_is_missing():
    world_ = world(s_value=RECORD)
    world_.execute(DECLARED)
    assert world_.registry.subjects() == ["s-key", "s-value"]
    assert subject(world_, "s-key") == '"int"'
    assert json.loads(subject(world_, "s-value")) == RECORD


def test_names_of_records():
    world_ = world()
    world_.execute(
        "CREATE STREAM my_s (K STRUCT<X INT> KEY, V INT) "
        "WITH (KAFKA_TOPIC='s', PARTITIONS=1, FORMAT='AVRO', VALUE_SCHEMA_FULL_NAME='my.Row');"
    )
    key, value = (json.loads(subject(world_, f"s-{side}")) for side in ("key", "value"))
    assert (key["namespace"], key["name"]) == (NAMESPACE, "MySKey")
    assert (value["namespace"], value["name"]) == ("my", "Row")


def test_a_sink_registers_always():
    world_ = world()
    world_.execute(DECLARED)
    world_.execute("CREATE STREAM C AS SELECT K, V + 1 AS W FROM S;")
    assert '"W"' in subject(world_, "C-value")
    error = world_.refuse("CREATE STREAM D WITH (KAFKA_TOPIC='C') AS SELECT K, V FROM S;")
    assert isinstance(error, SchemaRejected)
    assert "Could not register schema for subject: C-value" in error.message


def test_a_replacement_registers_its_schema_and_repeats_nothing():
    world_ = world()
    world_.registry.register = MemoryRegistry.register.__get__(world_.registry)
    world_.execute(DECLARED)
    world_.execute("CREATE STREAM C AS SELECT K, V FROM S;")
    world_.execute("CREATE OR REPLACE STREAM C AS SELECT K, V, V + 1 AS W FROM S;")
    assert len(world_.registry.ids("C-value")) == 2
    world_.execute("CREATE OR REPLACE STREAM C AS SELECT K, V, V + 1 AS W FROM S;")
    assert len(world_.registry.ids("C-value")) == 2


def test_nothing_is_half_done():
    world_ = world(s_key="long")
    world_.registry.register("C-value", Schema("AVRO", '"int"'))
    world_.execute(DECLARED.replace("FORMAT='AVRO'", "KEY_FORMAT='KAFKA', VALUE_FORMAT='AVRO'"))
    before = world_.registry.subjects()
    world_.refuse("CREATE STREAM C WITH (FORMAT='AVRO', PARTITIONS=3) AS SELECT K, V FROM S;")
    assert world_.registry.subjects() == before
    assert world_.topics.describe("C") is None


def test_a_log_that_fails_takes_the_schemas_back():
    world_ = world()
    world_.log.append = None
    failing = RegistryUnreachable("http://r", "lost")

    class Writer:
        offset = 0

        def check(self, command):
            pass

        def append(self, command):
            raise failing

    class Log(MemoryLog):
        def begin(self):
            from contextlib import nullcontext  # noqa: PLC0415 - only here

            return nullcontext(Writer())

    world_.engine.log = Log()
    with pytest.raises(RegistryUnreachable):
        world_.execute(DECLARED)
    assert world_.registry.subjects() == []
    assert world_.topics.describe("s") is None


def test_a_registry_that_is_down():
    world_ = world()
    world_.execute(DECLARED)
    world_.registry.down = True
    error = world_.refuse("CREATE STREAM C AS SELECT K, V FROM S;")
    assert isinstance(error, RegistryUnreachable)
    world_.execute("CREATE STREAM J WITH (FORMAT='JSON') AS SELECT K, V FROM S;")


def test_a_declared_source_is_replaced_with_what_the_registry_knows_now():
    world_ = world(t_value=RECORD)
    world_.registry.register = MemoryRegistry.register.__get__(world_.registry)
    create = "STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');"
    world_.execute(f"CREATE {create}")
    more = {**RECORD, "fields": [*RECORD["fields"], {"name": "c", "type": "long", "default": 0}]}
    world_.registry.register("t-value", Schema("AVRO", json.dumps(more)))
    world_.execute(f"CREATE OR REPLACE {create}")
    assert shown(world_) == "`K` INTEGER KEY, `A` INTEGER, `B` STRING, `C` BIGINT"
    less = {**RECORD, "fields": RECORD["fields"][1:]}
    world_.registry.register("t-value", Schema("AVRO", json.dumps(less)))
    error = world_.refuse(f"CREATE OR REPLACE {create}")
    assert "The following columns are changed, missing or reordered: [`A` INTEGER" in error.message


def test_a_column_added_to_inferred_ones():
    world_ = world(t_value=RECORD)
    world_.execute("CREATE STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');")
    world_.execute("ALTER STREAM S ADD COLUMN X DOUBLE;")
    assert shown(world_) == "`K` INTEGER KEY, `A` INTEGER, `B` STRING, `X` DOUBLE"
    assert json.loads(subject(world_, "t-value")) == RECORD


def test_values_are_wrapped_as_the_settings_want():
    world_ = world(t_value=RECORD)
    off = {"ksql.persistence.wrap.single.values": "false"}
    for name, columns, format_ in (
        ("A", "V INT", "AVRO"),
        ("B", "V INT", "PROTOBUF"),
        ("C", "V INT, W INT", "AVRO"),
    ):
        world_.execute(
            f"CREATE STREAM {name} ({columns}) "
            f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='{format_}');",
            **off,
        )
    wraps = [source.value_format.wrap for source in world_.catalog.sources.values()]
    assert wraps == [False, None, None]
    assert subject(world_, "A-value") == '"int"'


# --- ids


def test_a_sink_with_the_schema_of_an_id():
    world_ = world(x=RECORD)
    world_.execute(DECLARED)
    world_.execute(
        "CREATE STREAM C WITH (KEY_FORMAT='KAFKA', VALUE_SCHEMA_ID=1) AS "
        "SELECT K, V AS `a`, CAST(NULL AS STRING) AS `b` FROM S;"
    )
    assert world_.registry.ids("C-value") == [1]
    world_.topics.append("s", *_avro(world_, 7, 8), 0)
    world_.drain()
    [record] = world_.topics.records["C"]
    assert record.value == b"\0\0\0\0\1" + b"\x10\0"


def _avro(world_, key, value):
    ids = [world_.registry.latest(f"s-{side}").id for side in ("key", "value")]
    head = [b"\0" + each.to_bytes(4, "big") for each in ids]
    return head[0] + bytes([key * 2]), head[1] + b"\2" + bytes([value * 2])


def test_a_sink_whose_columns_the_schema_does_not_have():
    world_ = world(x=RECORD)
    world_.execute(DECLARED)
    error = world_.refuse("CREATE STREAM C WITH (VALUE_SCHEMA_ID=1) AS SELECT K, V FROM S;")
    assert error.message == (
        "The following value columns are changed, missing or reordered: [`V` INTEGER]. "
        "Schema from schema registry is [`a` INTEGER, `b` STRING]"
    )
    error = world_.refuse(
        "CREATE STREAM C WITH (VALUE_FORMAT='JSON', VALUE_SCHEMA_ID=1) AS SELECT K, V FROM S;"
    )
    assert error.message.startswith("VALUE_FORMAT should support schema inference")


def test_an_id_that_comes_back_as_another():
    world_ = world(x=RECORD)
    world_.registry._subjects["t-value"] = []
    world_.registry.register("t-value", Schema("AVRO", json.dumps(RECORD)), 5)
    error = world_.refuse(
        "CREATE STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1);"
    )
    assert error.message == (
        "Schema id registered is 5 which is different from provided VALUE_SCHEMA_ID 1."
    )


# --- the rest


def test_dropping_a_topic_drops_its_subjects():
    world_ = world()
    world_.execute(DECLARED)
    world_.execute("DROP STREAM S;")
    assert world_.registry.subjects() == ["s-key", "s-value"]
    world_.execute(DECLARED)
    world_.execute("DROP STREAM S DELETE TOPIC;")
    assert world_.registry.subjects() == []


def test_statements_of_one_request_see_each_other():
    world_ = world()
    world_.run(
        DECLARED
        + "CREATE STREAM C AS SELECT K, V FROM S;"
        + "CREATE STREAM D WITH (KAFKA_TOPIC='C', FORMAT='AVRO');"
    )
    assert shown(world_, "D") == "`ROWKEY` INTEGER KEY, `V` INTEGER"


def test_the_sandbox_registers_nothing():
    world_ = world()
    with pytest.raises(RequestFailed):
        world_.run(DECLARED + "CREATE STREAM C AS SELECT X FROM S;")
    assert world_.registry.subjects() == []


@pytest.mark.parametrize("by_id", [True, False])
def test_a_struct_of_an_older_schema_is_inserted_as_its_source_has_it(by_id):
    fields = [{"name": name, "type": ["null", "int"], "default": None} for name in "AB"]

    def registered(count):
        struct = {"type": "record", "name": "P", "fields": fields[:count]}
        field = {"name": "P", "type": ["null", struct], "default": None}
        text = json.dumps({"type": "record", "name": "R", "fields": [field]})
        return registry.register("t-value", Schema("AVRO", text))

    registry = MemoryRegistry()
    world_ = World(registry=registry)
    world_.topic("t")
    older = registered(1)
    if by_id:
        registered(2)
    more = f", VALUE_SCHEMA_ID={older}" if by_id else ""
    world_.run(f"CREATE STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO'{more});")
    newer = registered(2)
    assert shown(world_) == "`K` INTEGER KEY, `P` STRUCT<`A` INTEGER>"
    world_.run("INSERT INTO S VALUES (1, STRUCT(A := 5));")
    [record] = world_.topics.records["t"]
    assert record.value is not None
    assert record.value[5:] == b"\2\2\n"  # a record, its struct, an A that is 5
    assert (int.from_bytes(record.value[1:5], "big") == older) == by_id
    assert newer != older
    world_.run("INSERT INTO S VALUES (1, STRUCT(A := 5, B := 6));")  # B is left out
    assert world_.topics.records["t"][-1].value == record.value


def test_keys_are_inserted_only_with_their_registered_schema():
    world_ = world(s_key="long")
    world_.execute(DECLARED)
    with pytest.raises(RequestFailed) as caught:
        world_.run("INSERT INTO S VALUES (1, 2);")
    assert "ksqlDB generated schema would overwrite existing key schema." in str(caught.value)
    world_.registry.delete("s-key")
    world_.registry.register("s-key", Schema("AVRO", '"int"'))
    world_.run("INSERT INTO S VALUES (1, 2);")
    [record] = world_.topics.records["s"]
    assert record.value.endswith(b"\2\4")
