"""Schemas and columns: what a registered schema says about a topic, and what we register for one.

Source: docs/schema-registry.md#with-statements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ksql.core import UNKNOWN_KIND, KsqlError, ServerError, StatementError
from ksql.core.types import Column, Role, capabilities
from ksql.formats.connect import ConnectType, Group, NotInferable, sql_type
from ksql.formats.kind import Kind, Part, whole
from ksql.formats.schema_registry import Registry, Schema, SchemaNotFound, subject_name
from ksql.formats.table import FORMATS, Columns, Side, is_unwrapped, serde_for

if TYPE_CHECKING:
    from ksql.core.types import Format, FormatName
    from ksql.formats.serde import Serde

FORMAT_OF: Final[dict[str, FormatName]] = {
    impl.kind.name: capabilities(name).name for name, impl in FORMATS.items() if impl.kind
}
"""The format of each kind of registered schemas."""
KINDS: Final[dict[str, str]] = {name: kind for kind, name in FORMAT_OF.items()}

JSON_SR_CONVERTER: Final = "ksql.json_sr.converter.deserializer.enabled"
ROWKEY: Final = "ROWKEY"
ROWVAL: Final = "ROWVAL"
_ROLES: Final[dict[Side, Role]] = {"key": Role.KEY, "value": Role.VALUE}
_ANONYMOUS: Final = (
    "Schema returned from schema registry is anonymous type. To use this schema with ksqlDB, "
    "set 'WRAP_SINGLE_VALUE=false' in the WITH clause properties."
)


def kind_of(name: str) -> Kind:
    """Return the kind of schemas that registries call so.

    Raises: UNKNOWN_KIND.
    """
    kind = FORMATS[FORMAT_OF[name]].kind if name in FORMAT_OF else None
    if kind is None:
        raise UNKNOWN_KIND(kind=name)
    return kind


class SchemaMissing(StatementError):
    """A topic whose columns are to be inferred has no schema, or none of that id."""

    def __init__(self, topic: str, side: Side, schema_id: int | None = None) -> None:
        id_ = f"Schema Id: {schema_id}\n" if schema_id is not None else ""
        super().__init__(
            f"Schema for message {side}s on topic '{topic}' does not exist in the Schema Registry.",
            detail=f"Subject: {subject_name(topic, side)}\n{id_}"
            "Possible causes include:\n"
            "- The topic itself does not exist: SHOW TOPICS; tells\n"
            f"- Its messages have no registered schema: PRINT '{topic}' FROM BEGINNING; shows them"
            "\n- The schema is registered under another subject, or with another registry",
            hint="Declare the columns, or register the schema first.",
        )


class WrongSchemaKind(StatementError):
    """The registered schema belongs to another format."""

    def __init__(self, topic: str, side: Side, format_: str, kind: str) -> None:
        super().__init__(
            f"{side.capitalize()} schema is not in the expected format. "
            f"You may want to set {side.upper()}_FORMAT to '{FORMAT_OF.get(kind, kind)}'.",
            detail=f"topic: {topic}\nsubject: {subject_name(topic, side)}\n"
            f"expected format: {format_}\nactual format from Schema Registry: {kind}",
        )


class UnfitForColumns(StatementError):
    """A schema that no columns can be made of."""

    def __init__(self, topic: str, side: Side, reason: str, schema: Schema) -> None:
        super().__init__(
            f"Unable to verify if the {side} schema for topic: {topic} is compatible with ksqlDB.",
            detail=f"Reason: {reason}\nSchema: {schema.text}",
            hint="Declare the columns that are to be read.",
        )


class SeveralKeyFields(StatementError):
    """A key schema with several fields cannot be inferred."""

    def __init__(self, topic: str, schema: Schema) -> None:
        super().__init__(
            f"The key schema for topic: {topic} contains multiple columns, "
            "which is not supported by ksqlDB at this time.",
            detail=f"Schema: {schema.text}",
            hint="Declare the key columns.",
        )


class SchemaDiffers(StatementError):
    """Result columns that the schema named by id does not have."""

    def __init__(self, side: Side, columns: Columns, registered: Columns) -> None:
        super().__init__(
            f"The following {side} columns are changed, missing or reordered: "
            f"[{', '.join(map(str, columns))}]. "
            f"Schema from schema registry is [{', '.join(map(str, registered))}]"
        )


def topic_serde(
    format_: Format,
    columns: Columns,
    side: Side,
    topic: str,
    registry: Registry | None,
    *,
    lenient: bool = False,
) -> Serde:
    """Return the serde of a side of a topic; only formats with schemas look at topic and registry.

    Raises: StatementError, RegistryMissing; see ``serde_for``, also for ``lenient``.
    """
    if not capabilities(format_.name).infers:
        return serde_for(format_, columns, side)
    return serde_for(format_, columns, side, registry, subject_name(topic, side), lenient=lenient)


def connect_type(schema: Schema, registry: Registry, part: Part = None) -> ConnectType:
    """Return a registered schema as Connect sees it; ``part`` chooses among several messages.

    Raises: KsqlError for broken schemas, MESSAGE_NOT_FOUND, SeveralMessages, RegistryUnreachable.
    """
    return kind_of(schema.kind).connect_type(whole(schema, registry), part)


def inferred_columns(
    format_: Format, side: Side, topic: str, registry: Registry
) -> tuple[Columns, FoundSchema]:
    """Return the columns of a side of a topic, and the schema that they come from.

    Raises: the errors of ``look_up`` and of ``columns_in``.
    """
    registered = look_up(format_, side, topic, registry)
    return columns_in(registered, format_, side, topic), registered


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """A registered schema and its content."""

    schema: Schema
    type: ConnectType


def look_up(format_: Format, side: Side, topic: str, registry: Registry) -> FoundSchema:
    """Find the schema that the format names by id, else the latest one of the topic's subject.

    Raises: SchemaMissing, WrongSchemaKind, UnfitForColumns, RegistryUnreachable.
    """
    schema = _registered(format_, side, topic, registry)
    if schema.kind != KINDS.get(format_.name):
        raise WrongSchemaKind(topic, side, format_.name, schema.kind)
    try:
        return FoundSchema(schema, connect_type(schema, registry, format_.schema_full_name))
    except ServerError:
        raise
    except KsqlError as error:
        raise UnfitForColumns(topic, side, error.text(), schema) from error


def columns_in(registered: FoundSchema, format_: Format, side: Side, topic: str) -> Columns:
    """Return the columns of a side of a topic that has this schema.

    Names keep their case if the format names the schema by id, else they are in upper case.

    Raises: UnfitForColumns, SeveralKeyFields.
    """
    upper = format_.schema_id is None
    alone = capabilities(format_.name).unwraps_keys if side == "key" else format_.wrap is False
    try:
        columns = columns_of(registered.type, side, alone=alone, upper=upper)
    except NotInferable as error:
        raise UnfitForColumns(topic, side, error.text(), registered.schema) from error
    if side == "key" and len(columns) != 1:
        raise SeveralKeyFields(topic, registered.schema)
    return columns


def _registered(format_: Format, side: Side, topic: str, registry: Registry) -> Schema:
    if format_.schema_id is not None:
        try:
            return registry.by_id(format_.schema_id)
        except SchemaNotFound as error:
            raise SchemaMissing(topic, side, format_.schema_id) from error
    latest = registry.latest(subject_name(topic, side))
    if latest is None:
        raise SchemaMissing(topic, side)
    return latest.schema


def columns_of(type_: ConnectType, side: Side, *, alone: bool, upper: bool) -> Columns:
    """Return the columns that a schema's type becomes; ``alone``: the whole of it is one column.

    Raises: NotInferable.
    """
    role = _ROLES[side]
    if alone:
        name = ROWKEY if side == "key" else ROWVAL
        return (Column(name, sql_type(type_, upper=upper), role),)
    if not isinstance(type_, Group):
        raise NotInferable(_ANONYMOUS)
    return tuple(
        Column(
            member.name.upper() if upper else member.name, sql_type(member.type, upper=upper), role
        )
        for member in type_.members
    )


def check_given_schema(
    format_: Format, side: Side, columns: Columns, topic: str, given: FoundSchema
) -> None:
    """Check result columns against the schema that the format names by id.

    Each must be there by name, type and position; the schema may have more after them.

    Raises: SchemaDiffers and the errors of ``columns_in``.
    """
    inferred = columns_in(given, format_, side, topic)
    if side == "key" and len(columns) == len(inferred) == 1 and inferred[0].name == ROWKEY:
        inferred = (Column(columns[0].name, inferred[0].type, inferred[0].role),)
    wrong = tuple(
        column
        for index, column in enumerate(columns)
        if index >= len(inferred)
        or (inferred[index].name, inferred[index].type) != (column.name, column.type)
    )
    if wrong:
        raise SchemaDiffers(side, wrong, inferred)


def key_schema_fits(format_: Format, columns: Columns, topic: str, registry: Registry) -> bool:
    """Return whether the latest key schema of the topic has these columns: names, types, order."""
    latest = registry.latest(subject_name(topic, "key"))
    if latest is None or latest.schema.kind != KINDS[format_.name]:
        return False
    expected = [(c.name, c.type) for c in columns]
    try:
        type_ = connect_type(latest.schema, registry, format_.schema_full_name)
        alone = is_unwrapped(format_, columns, "key")
        for upper in (False, True):
            actual = [(c.name, c.type) for c in columns_of(type_, "key", alone=alone, upper=upper)]
            if actual == expected or (alone and actual[0][1] == expected[0][1]):
                return True
    except NotInferable:
        return False
    return False


def schema_for(format_: Format, columns: Columns, side: Side) -> Schema:
    """Return the schema that we register for a side of a topic.

    Raises: NotAvro, NotProtobuf for columns that the format cannot name or nest.
    """
    wrapped = not is_unwrapped(format_, columns, side)
    return kind_of(KINDS[format_.name]).schema_for(columns, format_, wrapped=wrapped)


def key_schema_name(format_name: str, source: str) -> str | None:
    """Return the name that the schema of a source's key has; None where it gets none.

    Raises: UnknownFormat.
    """
    kind = FORMATS[capabilities(format_name).name].kind
    return None if kind is None else kind.key_name(source)
