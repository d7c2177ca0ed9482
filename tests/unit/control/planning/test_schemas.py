"""Statements over a schema registry: what they take from it, what they leave there."""

from __future__ import annotations

import json

import pytest

from ksql.control.engine.memory import MemoryLog
from ksql.control.statements.answers import RequestFailed
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
        made = Schema(*schema) if isinstance(schema, tuple) else Schema("AVRO", json.dumps(schema))
        registry.register(subject_.replace("_", "-"), made)
    found = World(registry=registry)
    setattr(found, "registry", registry)  # noqa: B010 - only here
    found.topic("t")
    return found


def shown(world_, name="S"):
    source = world_.catalog.sources[name]
    return str(source.schema)


def subject(world_, name):
    found = world_.registry.latest(name)
    return None if found is None else found.schema.text


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
    found = world(t_value=RECORD, t_key="long")
    found.execute(f"CREATE {statement};")
    assert shown(found) == columns


def test_what_was_inferred_is_written_down():
    found = world(t_value=RECORD)
    found.execute("CREATE STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');")
    source = found.catalog.sources["S"]
    assert "(K INTEGER KEY, A INTEGER, B STRING)" in source.statement
    again = parse_one(split(source.statement)[0]).statement
    assert [c.name for c in again.columns] == ["K", "A", "B"]
    replayed = World(log=MemoryLog())
    for offset, command in enumerate(found.log.commands):
        replayed.engine.replay(offset, command)
    assert replayed.catalog.sources["S"] == source


def test_a_stated_text_stays():
    text = "CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');"
    found = world()
    found.execute(text)
    assert found.catalog.sources["S"].statement == text


def test_one_message_of_several():
    two = PROTO + " message N { bool x = 1; }"
    found = world(t_value=("PROTOBUF", two))
    found.execute(
        "CREATE STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='PROTOBUF', "
        "VALUE_SCHEMA_FULL_NAME='N');"
    )
    assert shown(found) == "`X` BOOLEAN"


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
    found = world(t_value=RECORD)
    refused = found.refuse(f"CREATE {statement};").message
    assert refused.removeprefix("Failed to prepare statement: ") == message
    assert found.registry.subjects() == ["t-value"]


def test_several_key_fields_must_be_declared():
    both = PROTO.replace("M", "K")
    found = world(t_key=("PROTOBUF", both))
    error = found.refuse("CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='t', FORMAT='PROTOBUF');")
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
    found = world(s_value=RECORD)
    found.execute(DECLARED)
    assert found.registry.subjects() == ["s-key", "s-value"]
    assert subject(found, "s-key") == '"int"'
    assert json.loads(subject(found, "s-value")) == RECORD


def test_names_of_records():
    found = world()
    found.execute(
        "CREATE STREAM my_s (K STRUCT<X INT> KEY, V INT) "
        "WITH (KAFKA_TOPIC='s', PARTITIONS=1, FORMAT='AVRO', VALUE_SCHEMA_FULL_NAME='my.Row');"
    )
    key, value = (json.loads(subject(found, f"s-{side}")) for side in ("key", "value"))
    assert (key["namespace"], key["name"]) == (NAMESPACE, "MySKey")
    assert (value["namespace"], value["name"]) == ("my", "Row")


def test_a_sink_registers_always():
    found = world()
    found.execute(DECLARED)
    found.execute("CREATE STREAM C AS SELECT K, V + 1 AS W FROM S;")
    assert '"W"' in subject(found, "C-value")
    error = found.refuse("CREATE STREAM D WITH (KAFKA_TOPIC='C') AS SELECT K, V FROM S;")
    assert isinstance(error, SchemaRejected)
    assert "Could not register schema for subject: C-value" in error.message


def test_a_replacement_registers_its_schema_and_repeats_nothing():
    found = world()
    found.registry.register = MemoryRegistry.register.__get__(found.registry)
    found.execute(DECLARED)
    found.execute("CREATE STREAM C AS SELECT K, V FROM S;")
    found.execute("CREATE OR REPLACE STREAM C AS SELECT K, V, V + 1 AS W FROM S;")
    assert len(found.registry.ids("C-value")) == 2
    found.execute("CREATE OR REPLACE STREAM C AS SELECT K, V, V + 1 AS W FROM S;")
    assert len(found.registry.ids("C-value")) == 2


def test_nothing_is_half_done():
    found = world(s_key="long")
    found.registry.register("C-value", Schema("AVRO", '"int"'))
    found.execute(DECLARED.replace("FORMAT='AVRO'", "KEY_FORMAT='KAFKA', VALUE_FORMAT='AVRO'"))
    before = found.registry.subjects()
    found.refuse("CREATE STREAM C WITH (FORMAT='AVRO', PARTITIONS=3) AS SELECT K, V FROM S;")
    assert found.registry.subjects() == before
    assert found.topics.describe("C") is None


def test_a_log_that_fails_takes_the_schemas_back():
    found = world()
    found.log.append = None
    failing = RegistryUnreachable("http://r", "lost")

    class Pen:
        offset = 0

        def check(self, command):
            pass

        def append(self, command):
            raise failing

    class Log(MemoryLog):
        def begin(self):
            from contextlib import nullcontext  # noqa: PLC0415 - only here

            return nullcontext(Pen())

    found.engine.log = Log()
    with pytest.raises(RegistryUnreachable):
        found.execute(DECLARED)
    assert found.registry.subjects() == []
    assert found.topics.describe("s") is None


def test_a_registry_that_is_down():
    found = world()
    found.execute(DECLARED)
    found.registry.down = True
    error = found.refuse("CREATE STREAM C AS SELECT K, V FROM S;")
    assert isinstance(error, RegistryUnreachable)
    found.execute("CREATE STREAM J WITH (FORMAT='JSON') AS SELECT K, V FROM S;")


def test_a_declared_source_is_replaced_with_what_the_registry_knows_now():
    found = world(t_value=RECORD)
    found.registry.register = MemoryRegistry.register.__get__(found.registry)
    create = "STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');"
    found.execute(f"CREATE {create}")
    more = {**RECORD, "fields": [*RECORD["fields"], {"name": "c", "type": "long", "default": 0}]}
    found.registry.register("t-value", Schema("AVRO", json.dumps(more)))
    found.execute(f"CREATE OR REPLACE {create}")
    assert shown(found) == "`K` INTEGER KEY, `A` INTEGER, `B` STRING, `C` BIGINT"
    less = {**RECORD, "fields": RECORD["fields"][1:]}
    found.registry.register("t-value", Schema("AVRO", json.dumps(less)))
    error = found.refuse(f"CREATE OR REPLACE {create}")
    assert "The following columns are changed, missing or reordered: [`A` INTEGER" in error.message


def test_a_column_added_to_inferred_ones():
    found = world(t_value=RECORD)
    found.execute("CREATE STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');")
    found.execute("ALTER STREAM S ADD COLUMN X DOUBLE;")
    assert shown(found) == "`K` INTEGER KEY, `A` INTEGER, `B` STRING, `X` DOUBLE"
    assert json.loads(subject(found, "t-value")) == RECORD


def test_values_are_wrapped_as_the_settings_want():
    found = world(t_value=RECORD)
    off = {"ksql.persistence.wrap.single.values": "false"}
    for name, columns, format_ in (
        ("A", "V INT", "AVRO"),
        ("B", "V INT", "PROTOBUF"),
        ("C", "V INT, W INT", "AVRO"),
    ):
        found.execute(
            f"CREATE STREAM {name} ({columns}) "
            f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='{format_}');",
            **off,
        )
    wraps = [source.value_format.wrap for source in found.catalog.sources.values()]
    assert wraps == [False, None, None]
    assert subject(found, "A-value") == '"int"'


# --- ids


def test_a_sink_with_the_schema_of_an_id():
    found = world(x=RECORD)
    found.execute(DECLARED)
    found.execute(
        "CREATE STREAM C WITH (KEY_FORMAT='KAFKA', VALUE_SCHEMA_ID=1) AS "
        "SELECT K, V AS `a`, CAST(NULL AS STRING) AS `b` FROM S;"
    )
    assert found.registry.ids("C-value") == [1]
    found.topics.append("s", *_avro(found, 7, 8), 0)
    found.drain()
    [record] = found.topics.records["C"]
    assert record.value == b"\0\0\0\0\1" + b"\x10\0"


def _avro(found, key, value):
    ids = [found.registry.latest(f"s-{side}").id for side in ("key", "value")]
    head = [b"\0" + each.to_bytes(4, "big") for each in ids]
    return head[0] + bytes([key * 2]), head[1] + b"\2" + bytes([value * 2])


def test_a_sink_whose_columns_the_schema_does_not_have():
    found = world(x=RECORD)
    found.execute(DECLARED)
    error = found.refuse("CREATE STREAM C WITH (VALUE_SCHEMA_ID=1) AS SELECT K, V FROM S;")
    assert error.message == (
        "The following value columns are changed, missing or reordered: [`V` INTEGER]. "
        "Schema from schema registry is [`a` INTEGER, `b` STRING]"
    )
    error = found.refuse(
        "CREATE STREAM C WITH (VALUE_FORMAT='JSON', VALUE_SCHEMA_ID=1) AS SELECT K, V FROM S;"
    )
    assert error.message.startswith("VALUE_FORMAT should support schema inference")


def test_an_id_that_comes_back_as_another():
    found = world(x=RECORD)
    found.registry._subjects["t-value"] = []
    found.registry.register("t-value", Schema("AVRO", json.dumps(RECORD)), 5)
    error = found.refuse(
        "CREATE STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1);"
    )
    assert error.message == (
        "Schema id registered is 5 which is different from provided VALUE_SCHEMA_ID 1."
    )


# --- the rest


def test_dropping_a_topic_drops_its_subjects():
    found = world()
    found.execute(DECLARED)
    found.execute("DROP STREAM S;")
    assert found.registry.subjects() == ["s-key", "s-value"]
    found.execute(DECLARED)
    found.execute("DROP STREAM S DELETE TOPIC;")
    assert found.registry.subjects() == []


def test_statements_of_one_request_see_each_other():
    found = world()
    found.run(
        DECLARED
        + "CREATE STREAM C AS SELECT K, V FROM S;"
        + "CREATE STREAM D WITH (KAFKA_TOPIC='C', FORMAT='AVRO');"
    )
    assert shown(found, "D") == "`ROWKEY` INTEGER KEY, `V` INTEGER"


def test_the_sandbox_registers_nothing():
    found = world()
    with pytest.raises(RequestFailed):
        found.run(DECLARED + "CREATE STREAM C AS SELECT X FROM S;")
    assert found.registry.subjects() == []


@pytest.mark.parametrize("by_id", [True, False])
def test_a_struct_of_an_older_schema_is_inserted_as_its_source_has_it(by_id):
    fields = [{"name": name, "type": ["null", "int"], "default": None} for name in "AB"]

    def registered(count):
        struct = {"type": "record", "name": "P", "fields": fields[:count]}
        field = {"name": "P", "type": ["null", struct], "default": None}
        text = json.dumps({"type": "record", "name": "R", "fields": [field]})
        return registry.register("t-value", Schema("AVRO", text))

    registry = MemoryRegistry()
    found = World(registry=registry)
    found.topic("t")
    older = registered(1)
    if by_id:
        registered(2)
    more = f", VALUE_SCHEMA_ID={older}" if by_id else ""
    found.run(f"CREATE STREAM S (K INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO'{more});")
    newer = registered(2)
    assert shown(found) == "`K` INTEGER KEY, `P` STRUCT<`A` INTEGER>"
    found.run("INSERT INTO S VALUES (1, STRUCT(A := 5));")
    [record] = found.topics.records["t"]
    assert record.value is not None
    assert record.value[5:] == b"\2\2\n"  # a record, its struct, an A that is 5
    assert (int.from_bytes(record.value[1:5], "big") == older) == by_id
    assert newer != older
    found.run("INSERT INTO S VALUES (1, STRUCT(A := 5, B := 6));")  # B is left out
    assert found.topics.records["t"][-1].value == record.value


def test_keys_are_inserted_only_with_their_registered_schema():
    found = world(s_key="long")
    found.execute(DECLARED)
    with pytest.raises(RequestFailed) as caught:
        found.run("INSERT INTO S VALUES (1, 2);")
    assert "ksqlDB generated schema would overwrite existing key schema." in str(caught.value)
    found.registry.delete("s-key")
    found.registry.register("s-key", Schema("AVRO", '"int"'))
    found.run("INSERT INTO S VALUES (1, 2);")
    [record] = found.topics.records["s"]
    assert record.value.endswith(b"\2\4")
