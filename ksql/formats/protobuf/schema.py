"""Protobuf schemas: made usable, seen as Connect types, and made for columns.

Source: docs/formats.md#protobuf; Confluent's Protobuf converter (names, decimal).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from ksql.core import MESSAGE_NOT_FOUND, StatementError
from ksql.core.types import model
from ksql.formats import connect
from ksql.formats.connect import (
    ConnectType,
    Entries,
    Group,
    Items,
    Member,
    Number,
    TypeBudget,
    WithoutSqlType,
)
from ksql.formats.protobuf import text as proto_text
from ksql.formats.protobuf.text import BrokenProtobuf, ProtoFile

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ksql.core.types import Column, Format, SqlType

_FILE: Final = "schema.proto"
_DECIMAL: Final = """
syntax = "proto3"; package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""
_KNOWN_FILES: Final[Mapping[str, str]] = {
    f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
    for name in "any duration empty field_mask struct timestamp wrappers".split()  # noqa: SIM905
} | {
    "google/type/date.proto": "google.type.date_pb2",
    "google/type/timeofday.proto": "google.type.timeofday_pb2",
    "google/type/datetime.proto": "google.type.datetime_pb2",
    "google/type/money.proto": "google.type.money_pb2",
}
_OPTIONS_ONLY: Final = frozenset({"confluent/meta.proto", "google/protobuf/descriptor.proto"})
_DECIMAL_FILES: Final = frozenset({"confluent/type/decimal.proto"})

WRAPPERS: Final[Mapping[str, ConnectType]] = {
    "google.protobuf.BoolValue": connect.BOOLEAN,
    "google.protobuf.Int32Value": connect.INT32,
    "google.protobuf.UInt32Value": connect.INT64,
    "google.protobuf.Int64Value": connect.INT64,
    "google.protobuf.UInt64Value": connect.INT64,
    "google.protobuf.FloatValue": connect.FLOAT32,
    "google.protobuf.DoubleValue": connect.FLOAT64,
    "google.protobuf.StringValue": connect.STRING,
    "google.protobuf.BytesValue": connect.BYTES,
}
DECIMAL: Final = "confluent.type.Decimal"
LOGICAL: Final[Mapping[str, ConnectType]] = {
    "google.protobuf.Timestamp": connect.TIMESTAMP,
    "google.type.Date": connect.DATE,
    "google.type.TimeOfDay": connect.TIME,
}
_F = FieldDescriptor
_SCALARS: Final[Mapping[int, ConnectType]] = {
    _F.TYPE_BOOL: connect.BOOLEAN,
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), connect.INT32),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32), connect.INT64),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64), connect.INT64),
    **dict.fromkeys((_F.TYPE_UINT64, _F.TYPE_FIXED64), connect.INT64),
    _F.TYPE_FLOAT: connect.FLOAT32,
    _F.TYPE_DOUBLE: connect.FLOAT64,
    _F.TYPE_STRING: connect.STRING,
    _F.TYPE_ENUM: connect.STRING,
    _F.TYPE_BYTES: connect.BYTES,
}
_DEFAULT_PRECISION: Final = 64
MAP_KEYS: Final = (
    "PROTOBUF format only supports MAP types with STRING keys. "
    "See https://github.com/confluentinc/ksql/issues/6177."
)


class SeveralMessages(StatementError):
    """A schema with several messages, and nobody says which."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"Schema contains multiple message definitions: {', '.join(names)}",
            hint="Name one of them with KEY_SCHEMA_FULL_NAME or VALUE_SCHEMA_FULL_NAME.",
        )


class NotProtobuf(StatementError):
    """Columns that no Protobuf schema can have."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Schema is not compatible with Protobuf: {reason}")


# --- schemas that are there -------------------------------------------------------------------


@dataclass
class Messages:
    """The messages of a schema, ready to read and write."""

    file: ProtoFile
    pool: DescriptorPool
    params: Mapping[str, Mapping[str, str]]
    _by_path: dict[tuple[int, ...], Descriptor] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The full names of the outermost messages."""
        package = self.file.descriptor.package
        return [
            f"{package}.{m.name}" if package else m.name for m in self.file.descriptor.message_type
        ]

    def by_path(self, path: tuple[int, ...]) -> Descriptor:
        """Return the message that a record's index names.

        (1, 0) is the first one inside the second.

        Raises: BrokenProtobuf.
        """
        if path not in self._by_path:
            try:
                name = self.names[path[0]]
                descriptor: Descriptor = self.pool.FindMessageTypeByName(name)
                for index in path[1:]:
                    descriptor = descriptor.nested_types[index]
            except (IndexError, KeyError) as error:
                raise BrokenProtobuf(f"there is no message {list(path)}") from error
            self._by_path[path] = descriptor
        return self._by_path[path]

    def chosen(self, full_name: str | None) -> tuple[tuple[int, ...], Descriptor]:
        """Return the message of that name, or the only one; with its path.

        Raises: MESSAGE_NOT_FOUND, SeveralMessages, BrokenProtobuf.
        """
        names = self.names
        if not names:
            raise BrokenProtobuf("it defines no message")
        if full_name is None:
            if len(names) != 1:
                raise SeveralMessages(names)
            return (0,), self.by_path((0,))
        if full_name not in names:
            raise MESSAGE_NOT_FOUND(name=full_name)
        path = (names.index(full_name),)
        return path, self.by_path(path)

    def message_class(self, descriptor: Descriptor) -> type[Message]:
        """Return the class of the message."""
        return message_factory.GetMessageClass(descriptor)

    def number(self, one: FieldDescriptor) -> Number:
        """Return precision and scale that a field of type Decimal declares."""
        params = self.params.get(one.full_name, {})
        return Number(
            _count(params.get("precision"), _DEFAULT_PRECISION), _count(params.get("scale"), 0)
        )


def _count(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() else otherwise


def load(text: str, imported: Mapping[str, str] | None = None) -> Messages:
    """Return the messages of a schema; ``imported`` are the texts that it imports.

    Raises: BrokenProtobuf.
    """
    file = proto_text.parse(text, _FILE)
    pool = DescriptorPool()
    loader = _Loader(pool, imported or {})
    loader.add(file)
    return Messages(file, pool, loader.params)


class _Loader:
    """Adds a file to the pool, what it imports before it."""

    def __init__(self, pool: DescriptorPool, imported: Mapping[str, str]) -> None:
        self._pool = pool
        self._imported = imported
        self._added: set[str] = set()
        self.params: dict[str, Mapping[str, str]] = {}

    def add(self, parsed: ProtoFile) -> None:
        file = parsed.descriptor
        self.params.update(parsed.params)
        self._added.add(file.name)
        kept = [name for name in file.dependency if name not in _OPTIONS_ONLY]
        del file.dependency[:]
        file.dependency.extend(kept)
        for name in kept:
            if name not in self._added:
                self.add(self._find(name))
        try:
            self._pool.Add(file)
        except (TypeError, ValueError) as error:
            raise BrokenProtobuf(str(error)) from error

    def _find(self, name: str) -> ProtoFile:
        if name in self._imported:
            return proto_text.parse(self._imported[name], name)
        if name in _DECIMAL_FILES:
            return proto_text.parse(_DECIMAL, name)
        if name in _KNOWN_FILES:
            module = importlib.import_module(_KNOWN_FILES[name])
            file = FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(file)
            return ProtoFile(file)
        raise BrokenProtobuf(f'"{name}" is imported but not referenced')


# --- as Connect types -------------------------------------------------------------------------


def connect_type(
    messages: Messages,
    descriptor: Descriptor,
    inside: tuple[str, ...] = (),
    room: TypeBudget | None = None,
) -> ConnectType:
    """Return a message as Connect sees it; what leads back to itself is strange."""
    room = room or TypeBudget()
    if descriptor.full_name in inside:
        return WithoutSqlType("Recursive schemas are not supported")
    if full := room.full():
        return full
    inside = (*inside, descriptor.full_name)
    oneofs = unions(descriptor)
    within = {one.name for union in oneofs.values() for one in union.fields}
    members = [
        Member(name, union_type(messages, one, inside, room)) for name, one in oneofs.items()
    ]
    members += [
        Member(one.name, field_type(messages, one, inside, room))
        for one in descriptor.fields
        if one.name not in within
    ]
    return Group(tuple(members))


def unions(descriptor: Descriptor) -> dict[str, OneofDescriptor]:
    """Return the oneofs of a message by the names of the structs that Connect makes of them.

    What stands for an ``optional`` field is none.
    """
    declared = DescriptorProto()
    descriptor.CopyToProto(declared)
    real = {
        one.oneof_index
        for one in declared.field
        if one.HasField("oneof_index") and not one.proto3_optional
    }
    oneofs = enumerate(descriptor.oneofs)
    return {f"{one.name}_{index}": one for index, one in oneofs if index in real}


def union_type(
    messages: Messages,
    one: OneofDescriptor,
    inside: tuple[str, ...] = (),
    room: TypeBudget | None = None,
) -> Group:
    """Return a oneof as Connect sees it: a struct of which one member is there."""
    members = (
        Member(branch.name, field_type(messages, branch, inside, room)) for branch in one.fields
    )
    return Group(tuple(members), one_of=True)


def is_map(one: FieldDescriptor) -> bool:
    """Return whether the field is a map."""
    return one.message_type is not None and bool(one.message_type.GetOptions().map_entry)


def field_type(
    messages: Messages,
    one: FieldDescriptor,
    inside: tuple[str, ...] = (),
    room: TypeBudget | None = None,
) -> ConnectType:
    """Return a field as Connect sees it."""
    room = room or TypeBudget()
    if is_map(one) and one.message_type is not None:
        entry = one.message_type.fields_by_name
        key = item_type(messages, entry["key"], inside, room)
        return Entries(key, item_type(messages, entry["value"], inside, room))
    item = item_type(messages, one, inside, room)
    return Items(item) if one.is_repeated else item


def item_type(
    messages: Messages,
    one: FieldDescriptor,
    inside: tuple[str, ...] = (),
    room: TypeBudget | None = None,
) -> ConnectType:
    """Return the field's type, repeated or not."""
    room = room or TypeBudget()
    if one.message_type is None:
        if full := room.full():
            return full
        return _SCALARS[one.type]
    name = one.message_type.full_name
    if name == DECIMAL:
        return messages.number(one)
    known = WRAPPERS.get(name) or LOGICAL.get(name)
    return known or connect_type(messages, one.message_type, inside, room)


# --- for columns ------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TYPES: Final[Mapping[SqlType, tuple[str, str | None]]] = {
    model.BOOLEAN: ("bool", "BoolValue"),
    model.INTEGER: ("int32", "Int32Value"),
    model.BIGINT: ("int64", "Int64Value"),
    model.DOUBLE: ("double", "DoubleValue"),
    model.STRING: ("string", "StringValue"),
    model.BYTES: ("bytes", "BytesValue"),
    model.DATE: ("google.type.Date", None),
    model.TIME: ("google.type.TimeOfDay", None),
    model.TIMESTAMP: ("google.protobuf.Timestamp", None),
}
_IMPORTS: Final[Mapping[str, str]] = {
    "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
}


def text_for(columns: tuple[Column, ...], format_: Format, *, entries: bool = False) -> str:
    """Return the schema that rows of the columns are written with; fields are numbered in order.

    ``entries`` shows a map as what it is on the wire, repeated messages of a key and a value.
    Raises: NotProtobuf for names and nestings that Protobuf does not know.
    """
    writer = _Text(format_.nullable_representation, entries=entries)
    package, _, name = (format_.schema_full_name or "").rpartition(".")
    fields = tuple(model.Field(c.name, c.type) for c in columns)
    body = writer.message(fields, 0, name)
    head = ['syntax = "proto3";']
    if package:
        head.append(f"package {package};")
    imports = [f'import "{path}";' for path in sorted(writer.imports)]
    return "\n".join([*head, "", *imports, *([""] if imports else []), *body, ""])


class _Text:
    def __init__(self, nullable: str | None, *, entries: bool) -> None:
        self._nullable = nullable
        self._entries = entries
        self._count = 0
        self.imports: set[str] = set()

    def message(
        self, fields: tuple[model.Field, ...], depth: int, name: str = "", suffix: str = ""
    ) -> list[str]:
        self._count += 1
        pad = "  " * depth
        lines = [f"{pad}message {name or f'ConnectDefault{self._count}{suffix}'} {{"]
        nested: list[str] = []
        for number, one in enumerate(fields, 1):
            if not _NAME.match(one.name):
                raise NotProtobuf(f"Illegal name: {one.name}")
            type_, inner = self._field(one.type, depth + 1)
            lines += [f"{pad}  {line}" for line in _declared(type_, one, number)]
            nested += ["", *inner] if inner else []
        return [*lines, *nested, f"{pad}}}"]

    def _field(self, type_: SqlType, depth: int) -> tuple[str, list[str]]:
        """Return the type of a field with its label, and the message that it needs."""
        match type_:
            case model.Array(item):
                name, inner = self._item(item, depth, "ARRAY")
                return f"repeated {name}", inner
            case model.Map(_, value) if self._entries:
                pair = (model.Field("key", model.STRING), model.Field("value", value))
                inner = self.message(pair, depth, suffix="Entry")
                return f"repeated {inner[0].split()[1]}", inner
            case model.Map(_, value):
                name, inner = self._item(value, depth, "MAP")
                return f"map<string, {name}>", inner
            case model.Primitive() if self._nullable and (wrapper := _TYPES[type_][1]):
                if self._nullable == "OPTIONAL":
                    return f"optional {_TYPES[type_][0]}", []
                self.imports.add("google/protobuf/wrappers.proto")
                return f"google.protobuf.{wrapper}", []
            case _:
                return self._item(type_, depth, "")

    def _item(self, type_: SqlType, depth: int, inside: str) -> tuple[str, list[str]]:
        match type_:
            case model.Primitive():
                name = _TYPES[type_][0]
                if name in _IMPORTS:
                    self.imports.add(_IMPORTS[name])
                return name, []
            case model.Decimal():
                self.imports |= {"confluent/meta.proto", "confluent/type/decimal.proto"}
                return DECIMAL, []
            case model.Struct(fields):
                inner = self.message(fields, depth)
                return inner[0].split()[1], inner
            case _:
                raise NotProtobuf(f"{type_} inside of {inside}")


def _declared(type_: str, one: model.Field, number: int) -> list[str]:
    line = f"{type_} {one.name} = {number}"
    decimal = _decimal_in(one.type) if DECIMAL in type_ else None
    if decimal is None:
        return [f"{line};"]
    params = (("precision", decimal.precision), ("scale", decimal.scale))
    shown = [
        line
        for index, (key, value) in enumerate(params)
        for line in (
            "    {",
            f'      key: "{key}",',
            f'      value: "{value}"',
            "    }" if index else "    },",
        )
    ]
    return [f"{line} [(confluent.field_meta) = {{", "  params: [", *shown, "  ]", "}];"]


def _decimal_in(type_: SqlType) -> model.Decimal | None:
    match type_:
        case model.Decimal():
            return type_
        case model.Array(item) | model.Map(_, item):
            return item if isinstance(item, model.Decimal) else None
        case _:
            return None
