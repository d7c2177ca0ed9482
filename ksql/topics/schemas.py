"""Schemas and columns: what a registered schema says about a topic, and what we register for one.

Source: reference, serde, sections 4 and 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.base.errors import StatementError
from ksql.topics import avro_schema, json_schema, proto_schema
from ksql.topics.connect import ConnectType, Group, NotInferable, sql_type
from ksql.topics.formats import Columns, Side, format_info, is_unwrapped, serde_for
from ksql.topics.registry import Registry, Schema, SchemaKind, referenced, subject_name
from ksql.types.schema import Column, Role

if TYPE_CHECKING:
    from ksql.topics.wire import Serde
    from ksql.types.format import Format

KINDS: Final[dict[str, SchemaKind]] = {"AVRO": "AVRO", "PROTOBUF": "PROTOBUF", "JSON_SR": "JSON"}
ROWKEY: Final = "ROWKEY"
ROWVAL: Final = "ROWVAL"
_ROLES: Final[dict[Side, Role]] = {"key": Role.KEY, "value": Role.VALUE}


class SchemaMissing(StatementError):
    """A topic whose columns are to be inferred has no schema."""

    def __init__(self, topic: str, side: Side) -> None:
        super().__init__(
            f"Schema for message {side}s on topic '{topic}' does not exist in the Schema Registry.",
            detail=f"Subject: {subject_name(topic, side)}\n"
            "Possible causes: the topic does not exist; its messages are written in a format "
            "without schemas; the schema was registered under another subject.",
            hint=f"Declare the columns, or check the topic with PRINT '{topic}' FROM BEGINNING;",
        )


class WrongSchemaKind(StatementError):
    """The registered schema belongs to another format."""

    def __init__(self, topic: str, side: Side, format_: str, found: SchemaKind) -> None:
        names = [name for name, kind in KINDS.items() if kind == found]
        super().__init__(
            f"{side.capitalize()} schema of topic '{topic}' is not in {format_} format but {found}",
            hint=f"Use {side.upper()}_FORMAT='{names[0]}'.",
        )


class UnfitForColumns(StatementError):
    """A schema that no columns can be made of."""

    def __init__(self, reason: str, schema: Schema) -> None:
        super().__init__(
            f"Schema is not compatible with ksqlDB: {reason}", detail=f"Schema: {schema.text}"
        )


class SeveralKeyFields(StatementError):
    """A key schema with several fields cannot be inferred."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(
            "The key schema has several fields: keys of several columns must be declared",
            detail=f"Schema: {schema.text}",
        )


class SchemaDiffers(StatementError):
    """Result columns that the schema named by id does not have."""

    def __init__(self, side: Side, columns: Columns, found: Columns) -> None:
        super().__init__(
            f"The following {side} columns are changed, missing or reordered: "
            f"[{', '.join(map(str, columns))}]. "
            f"Schema from schema registry is [{', '.join(map(str, found))}]"
        )


def topic_serde(
    format_: Format, columns: Columns, side: Side, topic: str, registry: Registry | None
) -> Serde:
    """The serde of a side of a topic; only formats with schemas look at topic and registry.

    Raises: StatementError, RegistryMissing; see ``serde_for``.
    """
    if not format_info(format_.name).needs_registry:
        return serde_for(format_, columns, side)
    return serde_for(format_, columns, side, registry, subject_name(topic, side))


def connect_type(schema: Schema, registry: Registry, full_name: str | None = None) -> ConnectType:
    """A registered schema as Connect sees it; ``full_name`` chooses among several messages.

    Raises: KsqlError for broken schemas, MessageNotFound, SeveralMessages, RegistryUnreachable.
    """
    imported = referenced(registry, schema)
    match schema.kind:
        case "AVRO":
            return avro_schema.connect_type(avro_schema.parse(schema.text, imported.values()))
        case "PROTOBUF":
            messages = proto_schema.load(schema.text, imported)
            _, message = messages.chosen(full_name)
            return proto_schema.connect_type(messages, message)
        case "JSON":
            return json_schema.connect_type(schema.text, imported)


def inferred_columns(
    format_: Format, side: Side, topic: str, registry: Registry
) -> tuple[Columns, Schema]:
    """The columns of a side of a topic, and the schema they come from.

    They come from the schema that the format names by id, whose names keep their case, else from
    the latest one of the topic's subject, in upper case.

    Raises: SchemaMissing, SchemaNotFound, WrongSchemaKind, UnfitForColumns, SeveralKeyFields,
        RegistryUnreachable.
    """
    by_id = format_.schema_id is not None
    if format_.schema_id is not None:
        schema = registry.by_id(format_.schema_id)
    else:
        latest = registry.latest(subject_name(topic, side))
        if latest is None:
            raise SchemaMissing(topic, side)
        schema = latest.schema
    if schema.kind != KINDS.get(format_.name):
        raise WrongSchemaKind(topic, side, format_.name, schema.kind)
    found = connect_type(schema, registry, format_.schema_full_name)
    return _columns(format_, side, schema, found, upper=not by_id), schema


def _columns(
    format_: Format, side: Side, schema: Schema, found: ConnectType, *, upper: bool
) -> Columns:
    role = _ROLES[side]
    alone = format_info(format_.name).unwraps_keys if side == "key" else format_.wrap is False
    try:
        if alone:
            name = ROWKEY if side == "key" else ROWVAL
            return (Column(name, sql_type(found, upper=upper), role),)
        if not isinstance(found, Group):
            raise NotInferable("its top level is not a record")
        if side == "key" and len(found.members) != 1:
            raise SeveralKeyFields(schema)
        return tuple(
            Column(
                member.name.upper() if upper else member.name,
                sql_type(member.type, upper=upper),
                role,
            )
            for member in found.members
        )
    except NotInferable as error:
        raise UnfitForColumns(error.message, schema) from error


def check_given_schema(
    format_: Format, side: Side, columns: Columns, topic: str, registry: Registry
) -> None:
    """Check result columns against the schema that the format names by id.

    Each must be there by name, type and position; the schema may have more behind them.

    Raises: SchemaDiffers and what ``inferred_columns`` does.
    """
    found, _ = inferred_columns(format_, side, topic, registry)
    if side == "key" and len(columns) == len(found) == 1 and found[0].name == ROWKEY:
        found = (Column(columns[0].name, found[0].type, found[0].role),)
    wrong = tuple(
        column
        for index, column in enumerate(columns)
        if index >= len(found)
        or (found[index].name, found[index].type) != (column.name, column.type)
    )
    if wrong:
        raise SchemaDiffers(side, wrong, found)


def schema_for(format_: Format, columns: Columns, side: Side) -> Schema:
    """The schema that we register for a side of a topic.

    Raises: NotAvro, NotProtobuf for columns that the format cannot name or nest.
    """
    wrapped = not is_unwrapped(format_, columns, side)
    match KINDS[format_.name]:
        case "AVRO":
            name = format_.schema_full_name
            return Schema("AVRO", avro_schema.text_for(columns, wrapped=wrapped, full_name=name))
        case "PROTOBUF":
            return Schema("PROTOBUF", proto_schema.text_for(columns, format_))
        case "JSON":
            return Schema("JSON", json_schema.text_for(columns, wrapped=wrapped))


def avro_key_name(source: str) -> str:
    """The record name of a source's AVRO key: ``MY_STREAM`` gives ``...MyStreamKey``."""
    camel = "".join(part.capitalize() for part in source.split("_"))
    return f"{avro_schema.NAMESPACE}.{camel}Key"
