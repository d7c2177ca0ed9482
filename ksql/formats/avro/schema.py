"""Avro schemas: read into nodes, seen as Connect types, and made for columns.

Source: the Avro specification 1.11, schema declaration; docs/formats.md#avro.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from ksql.base.errors import KsqlError, StatementError
from ksql.formats import connect
from ksql.formats.connect import ConnectType, Entries, Group, Items, Member, Number, Strange
from ksql.types import model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ksql.types.model import SqlType
    from ksql.types.schema import Column

Json = Any
"""A parsed JSON document."""

NAMESPACE: Final = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME: Final = f"{NAMESPACE}.KsqlDataSourceSchema"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DEFAULT_PRECISION: Final = 64
_ENTRY: Final = "MapEntry"  # what Connect calls an item of a map that it writes as an array
_ENTRY_NAME: Final = f"io.confluent.connect.avro.{_ENTRY}"


class BrokenAvro(KsqlError):
    """A text that is no Avro schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid Avro schema: {reason}")


class NotAvro(StatementError):
    """Columns that no Avro schema can have."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Schema is not compatible with Avro: {reason}")


@dataclass(eq=False)
class Leaf:
    """A primitive; ``type`` is None for null."""

    kind: str
    type: ConnectType | None


@dataclass(eq=False)
class Fixed:
    """So many bytes."""

    size: int
    type: ConnectType


@dataclass(eq=False)
class Enum:
    """One of the symbols."""

    symbols: tuple[str, ...]
    name: str


@dataclass(eq=False)
class Array:
    """Items of one kind."""

    items: Node


@dataclass(eq=False)
class Map:
    """Values of one kind by text."""

    values: Node


@dataclass(eq=False)
class Union:
    """One of the branches."""

    branches: tuple[Node, ...]

    @property
    def real(self) -> tuple[Node, ...]:
        """The branches that are not null."""
        return tuple(b for b in self.branches if not is_null(b))


@dataclass(eq=False)
class FieldNode:
    """A field of a record; ``default`` counts if ``has_default``."""

    name: str
    node: Node
    has_default: bool
    default: Json


@dataclass(eq=False)
class Record:
    """A record; its fields may lead back to it. ``entry``: an item of a map of Connect's."""

    name: str
    fields: list[FieldNode] = field(default_factory=list)
    entry: bool = False


Node = Leaf | Fixed | Enum | Array | Map | Union | Record


def is_null(node: Node) -> bool:
    """Whether it is the type null."""
    return isinstance(node, Leaf) and node.type is None


_LEAVES: Final[dict[str, ConnectType | None]] = {
    "null": None,
    "boolean": connect.BOOLEAN,
    "int": connect.INT32,
    "long": connect.INT64,
    "float": connect.FLOAT32,
    "double": connect.FLOAT64,
    "bytes": connect.BYTES,
    "string": connect.STRING,
}
_LOGICAL: Final[dict[tuple[str, str], ConnectType]] = {
    ("int", "date"): connect.DATE,
    ("int", "time-millis"): connect.TIME,
    ("long", "timestamp-millis"): connect.TIMESTAMP,
}
_NARROW: Final = {"int8": connect.INT8, "int16": connect.INT16}


def parse(text: str, imported: Iterable[str] = ()) -> Node:
    """The nodes of a schema; ``imported`` are the texts of the schemas whose names it uses.

    Raises: BrokenAvro.
    """
    builder = _Builder()
    waiting = [document(one) for one in imported]
    for _ in range(len(waiting)):  # in an order in which each finds the names it needs
        waiting = [one for one in waiting if not builder.try_node(one)]
    try:
        return builder.node(document(text), "")
    except RecursionError as error:
        raise BrokenAvro("it is nested too deeply") from error


def document(text: str) -> Json:
    """A schema's text as JSON; the bare name of a primitive type is a schema too.

    Raises: BrokenAvro.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if text.strip() in _LEAVES:
            return text.strip()
        raise BrokenAvro(str(error)) from error


class _Builder:
    def __init__(self) -> None:
        self._named: dict[str, Node] = {}

    def try_node(self, schema: Json) -> bool:
        try:
            self.node(schema, "")
        except BrokenAvro:
            return False
        return True

    def node(self, schema: Json, space: str) -> Node:
        match schema:
            case str():
                return self._by_name(schema, space)
            case list():
                return Union(tuple(self.node(branch, space) for branch in schema))
            case {"type": "record" | "error"}:
                return self._record(schema, space)
            case {"type": "enum", "symbols": list(symbols)}:
                name = self._name(schema, space)
                return self._define(name, Enum(tuple(map(str, symbols)), name))
            case {"type": "fixed", "size": int(size)} if size >= 0:
                node = Fixed(size, _decimal(schema) or connect.BYTES)
                return self._define(self._name(schema, space), node)
            case {"type": "array", "items": items}:
                return Array(self.node(items, space))
            case {"type": "map", "values": values}:
                return Map(self.node(values, space))
            case {"type": str(kind)} if kind in _LEAVES:
                return _leaf(kind, schema)
            case {"type": (dict() | list() | str()) as inner}:
                return self.node(inner, space)
            case _:
                raise BrokenAvro(f"no type in {orjson.dumps(schema).decode()[:100]}")

    def _by_name(self, name: str, space: str) -> Node:
        if name in _LEAVES:
            return Leaf(name, _LEAVES[name])
        full = name if "." in name or not space else f"{space}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise BrokenAvro(f'"{name}" is not defined')
        return found

    def _record(self, schema: dict[str, Json], space: str) -> Node:
        name = self._name(schema, space)
        entry = name == _ENTRY_NAME or schema.get("connect.internal.type") == _ENTRY
        record = Record(name, entry=entry)
        self._define(name, record)
        inner = name.rpartition(".")[0]
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise BrokenAvro(f'record "{name}" has no fields')
        for one in fields:
            match one:
                case {"name": str(field_name), "type": type_}:
                    node = self.node(type_, inner)
                    default = one.get("default")
                    record.fields.append(FieldNode(field_name, node, "default" in one, default))
                case _:
                    raise BrokenAvro(f'a field of "{name}" lacks its name or type')
        return record

    def _name(self, schema: dict[str, Json], space: str) -> str:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise BrokenAvro("a named type lacks its name")
        space = schema.get("namespace", space)
        return name if "." in name or not space else f"{space}.{name}"

    def _define(self, name: str, node: Node) -> Node:
        self._named[name] = node
        return node


def _leaf(kind: str, schema: dict[str, Json]) -> Leaf:
    logical = schema.get("logicalType")
    if kind == "bytes" and (number := _decimal(schema)):
        return Leaf(kind, number)
    narrow = _NARROW.get(str(schema.get("connect.type"))) if kind == "int" else None
    return Leaf(kind, narrow or _LOGICAL.get((kind, str(logical)), _LEAVES[kind]))


def _decimal(schema: dict[str, Json]) -> Number | None:
    if schema.get("logicalType") != "decimal":
        return None
    precision, scale = schema.get("precision", _DEFAULT_PRECISION), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or precision < 1:
        raise BrokenAvro("a decimal has a broken precision or scale")
    return Number(precision, scale)


# --- as Connect types -------------------------------------------------------------------------


def connect_type(node: Node, inside: tuple[Node, ...] = ()) -> ConnectType:
    """The type as Connect sees it; what leads back to itself is strange."""
    if node in inside:
        return Strange("Recursive schemas are not supported")
    inside = (*inside, node)
    match node:
        case Leaf(_, type_):
            return type_ or Strange("The type null has no values")
        case Fixed(_, type_):
            return type_
        case Enum():
            return connect.STRING
        case Array(items):
            found = connect_type(items, inside)
            return _entries(items, found) or Items(found)
        case Map(values):
            return Entries(connect.STRING, connect_type(values, inside))
        case Record(_, fields):
            members = (
                Member(f.name, connect_type(f.node, inside), required=is_required(f))
                for f in fields
            )
            return Group(tuple(members))
        case Union():
            if len(node.real) == 1:
                return connect_type(node.real[0], inside)
            names = [branch_name(b) for b in node.real]
            if len(set(names)) < len(names):
                return Strange("Several branches of a union have one name")
            return Group(tuple(Member(branch_name(b), connect_type(b, inside)) for b in node.real))


def _entries(items: Node, found: ConnectType) -> Entries | None:
    """The map of texts that Connect has written as an array."""
    if not isinstance(items, Record) or not items.entry or not isinstance(found, Group):
        return None
    types = {member.name: member.type for member in found.members}
    if set(types) != {"key", "value"} or types["key"] != connect.STRING:
        return None
    return Entries(connect.STRING, types["value"])


def is_required(field_: FieldNode) -> bool:
    """Whether a value must be given: no default, and null is not allowed."""
    optional = isinstance(field_.node, Union) and any(map(is_null, field_.node.branches))
    return not field_.has_default and not optional


def branch_name(node: Node) -> str:
    """The name of the field that a branch of a union becomes."""
    match node:
        case Leaf(kind, _):
            return kind
        case Enum(_, name) | Record(name, _):
            return name.rpartition(".")[2]
        case Array():
            return "array"
        case Map():
            return "map"
        case Fixed():
            return "fixed"
        case Union():
            return "union"


# --- for columns ------------------------------------------------------------------------------


def text_for(columns: tuple[Column, ...], *, wrapped: bool, full_name: str | None = None) -> str:
    """The schema that rows of the columns are written with: all fields may be null.

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
    """The schema of a type; ``inside`` a record the namespace is that record's."""
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
