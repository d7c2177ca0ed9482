"""Avro schemas: seen as Connect types, and made for columns.

Source: docs/formats.md#avro.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import orjson

from ksql.core import StatementError
from ksql.core.types import model
from ksql.formats import connect
from ksql.formats.avro import tree
from ksql.formats.avro.tree import Json, Node, is_null
from ksql.formats.connect import (
    ConnectType,
    Entries,
    Group,
    Items,
    Member,
    TypeBudget,
    WithoutSqlType,
)

if TYPE_CHECKING:
    from ksql.core.types import Column, SqlType

NAMESPACE: Final = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME: Final = f"{NAMESPACE}.KsqlDataSourceSchema"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ENTRY: Final = "MapEntry"  # what Connect calls an item of a map that it writes as an array
_ENTRY_NAME: Final = f"io.confluent.connect.avro.{_ENTRY}"


class NotAvro(StatementError):
    """Columns that no Avro schema can have."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Schema is not compatible with Avro: {reason}")


# --- as Connect types -------------------------------------------------------------------------


def connect_type(
    node: Node, inside: tuple[Node, ...] = (), room: TypeBudget | None = None
) -> ConnectType:
    """Return the type as Connect sees it; what leads back to itself is strange."""
    room = room or TypeBudget()
    if node in inside:
        return WithoutSqlType("Recursive schemas are not supported")
    if full := room.full():
        return full
    inside = (*inside, node)
    match node:
        case tree.Primitive():
            return node.connect or WithoutSqlType("The type null has no values")
        case tree.Fixed():
            return node.connect
        case tree.Enum():
            return connect.STRING
        case tree.Array(items):
            item_type = connect_type(items, inside, room)
            return _entries(items, item_type) or Items(item_type)
        case tree.Map(values):
            return Entries(connect.STRING, connect_type(values, inside, room))
        case tree.RecordType():
            members = (
                Member(f.name, connect_type(f.type, inside, room), required=is_required(f))
                for f in node.fields
            )
            return Group(tuple(members))
        case tree.Union():
            if len(node.real) == 1:
                return connect_type(node.real[0], inside, room)
            names = [branch_name(b) for b in node.real]
            if len(set(names)) < len(names):
                return WithoutSqlType("Several branches of a union have one name")
            return Group(
                tuple(Member(branch_name(b), connect_type(b, inside, room)) for b in node.real)
            )


def _entries(items: Node, item_type: ConnectType) -> Entries | None:
    """Return the map of texts that Connect has written as an array."""
    if not isinstance(items, tree.RecordType) or not isinstance(item_type, Group):
        return None
    if items.name != _ENTRY_NAME and items.props.get("connect.internal.type") != _ENTRY:
        return None
    types = {member.name: member.type for member in item_type.members}
    if set(types) != {"key", "value"} or types["key"] != connect.STRING:
        return None
    return Entries(connect.STRING, types["value"])


def is_required(field: tree.Field) -> bool:
    """Return whether a value must be given: no default, and null is not allowed."""
    optional = isinstance(field.type, tree.Union) and any(map(is_null, field.type.branches))
    return not field.has_default and not optional


def branch_name(node: Node) -> str:
    """Return the name of the field that a branch of a union becomes."""
    return node.short if isinstance(node, tree.Enum | tree.RecordType) else node.kind


# --- for columns ------------------------------------------------------------------------------


def text_for(columns: tuple[Column, ...], *, wrapped: bool, full_name: str | None = None) -> str:
    """Make the schema that rows of the columns are written with: all fields may be null.

    Raises: NotAvro for names that Avro does not know.
    """
    names = _Names(full_name or DEFAULT_NAME)
    if wrapped:
        whole = model.Struct(tuple(model.Field(c.name, c.type) for c in columns))
        schema = _type_for(whole, names, names.root)
    else:
        schema = _type_for(columns[0].type, names, names.root)
    return orjson.dumps(schema).decode()


class _Names:
    """Names of nested records: that of the outermost, then the path of fields."""

    def __init__(self, full_name: str) -> None:
        self.space, _, self.root = full_name.rpartition(".")
        self._used: set[str] = set()

    def take(self, name: str) -> str:
        chosen, number = name, 2
        while chosen in self._used:
            chosen, number = f"{name}_{number}", number + 1
        self._used.add(chosen)
        return chosen


def _logical(kind: str, logical: str, connect_name: str) -> Json:
    return {
        "type": kind,
        "connect.version": 1,
        "connect.name": f"org.apache.kafka.connect.data.{connect_name}",
        "logicalType": logical,
    }


_TYPES: Final[dict[SqlType, Json]] = {
    model.BOOLEAN: "boolean",
    model.INTEGER: "int",
    model.BIGINT: "long",
    model.DOUBLE: "double",
    model.STRING: "string",
    model.BYTES: "bytes",
    model.DATE: _logical("int", "date", "Date"),
    model.TIME: _logical("int", "time-millis", "Time"),
    model.TIMESTAMP: _logical("long", "timestamp-millis", "Timestamp"),
}


def _type_for(type_: SqlType, names: _Names, name: str, *, inside: bool = False) -> Json:
    """Return the schema of a type; ``inside`` a record the namespace is that record's."""
    match type_:
        case model.Primitive():
            return _TYPES[type_]
        case model.Decimal(precision, scale):
            return {
                **_logical("bytes", "decimal", "Decimal"),
                "precision": precision,
                "scale": scale,
                "connect.parameters": {
                    "scale": str(scale),
                    "connect.decimal.precision": str(precision),
                },
            }
        case model.Array(item):
            return {"type": "array", "items": ["null", _type_for(item, names, name, inside=inside)]}
        case model.Map(_, value):
            inner = _type_for(value, names, f"{name}_MapValue", inside=inside)
            return {"type": "map", "values": ["null", inner]}
        case model.Struct(fields):
            name = names.take(name)
            return {
                "type": "record",
                "name": _checked(name),
                **({"namespace": names.space} if names.space and not inside else {}),
                "fields": [
                    {
                        "name": _checked(f.name),
                        "type": ["null", _type_for(f.type, names, f"{name}_{f.name}", inside=True)],
                        "default": None,
                    }
                    for f in fields
                ],
                "connect.name": f"{names.space}.{name}" if names.space else name,
            }


def _checked(name: str) -> str:
    if not _NAME.match(name):
        if not name:
            raise NotAvro("Empty name")
        if not _NAME.match(name[0]):
            raise NotAvro(f"Illegal initial character: {name}")
        raise NotAvro(f"Illegal character in: {name}")
    return name
