"""Checks whether data written with one Protobuf schema can be read with another.

Fields are identified by their numbers; names may change. A type may change as far as the wire
format allows. Source: Protocol Buffers, updating a message type; Confluent's names of the
differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from ksql.formats.kind import Difference, Roles

if TYPE_CHECKING:
    from ksql.formats.protobuf.resolved import Proto

_F = FieldDescriptorProto
_GROUPS: Final[Mapping[int, str]] = {
    **dict.fromkeys(
        (_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL), "varint"
    ),
    **dict.fromkeys((_F.TYPE_SINT32, _F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES), "text"),
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64), "fixed64"),
    _F.TYPE_FLOAT: "float",
    _F.TYPE_DOUBLE: "double",
    _F.TYPE_ENUM: "varint",
}
"""Types of one group read each other's bytes."""


@dataclass(frozen=True)
class _Messages:
    """All messages of a schema and its imports, by their names without the schema's package."""

    by_name: Mapping[str, DescriptorProto]
    package: str

    def local(self, type_name: str) -> str:
        """Return a full name, without the package if it is the schema's."""
        return _local(type_name, self.package)


def differences(reader: Proto, writer: Proto, roles: Roles) -> list[Difference]:
    """Return all reasons why ``reader`` cannot read what ``writer`` wrote."""
    return list(_compare(reader, writer, roles))


def _compare(reader: Proto, writer: Proto, roles: Roles) -> Iterator[Difference]:
    if reader.file.package != writer.file.package:
        yield Difference(
            "PACKAGE_CHANGED",
            "/",
            f"The package of the {roles.reader} schema at path / is"
            f" {reader.file.package or 'none'}, that of the {roles.writer} schema"
            f" {writer.file.package or 'none'}",
        )
    ours, theirs = _messages(reader), _messages(writer)
    local = {name for name, _ in _walk(writer.file.message_type, "")}
    for name, written in theirs.by_name.items():
        path = f"#/{name.replace('.', '/')}"
        if name in ours.by_name:
            yield from _Fields(ours, theirs, roles, path).compare(ours.by_name[name], written)
        elif name in local:
            yield Difference(
                "MESSAGE_REMOVED",
                path,
                f"The {roles.reader} schema lacks the message at path {path} of the"
                f" {roles.writer} schema",
            )


def _messages(schema: Proto) -> _Messages:
    package = schema.file.package
    messages: dict[str, DescriptorProto] = {}
    for file in schema.files:
        outer = f".{file.package}." if file.package else "."
        for name, message in _walk(file.message_type, outer):
            messages.setdefault(_local(name, package), message)
    return _Messages(messages, package)


def _walk(messages: Iterable[DescriptorProto], outer: str) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        if not message.options.map_entry:
            yield outer + message.name, message
            yield from _walk(message.nested_type, f"{outer}{message.name}.")


def _local(type_name: str, package: str) -> str:
    return type_name.removeprefix(f".{package}." if package else ".")


@dataclass(frozen=True)
class _Fields:
    """The fields of one message."""

    ours: _Messages
    theirs: _Messages
    roles: Roles
    path: str

    def compare(self, reader: DescriptorProto, writer: DescriptorProto) -> Iterator[Difference]:
        """Return each difference between two messages of one name."""
        read = {one.number: one for one in reader.field}
        written = {one.number: one for one in writer.field}
        for number, old in written.items():
            if number in read:
                yield from self._both(read[number], old, reader, writer)
            elif old.label == _F.LABEL_REQUIRED:
                yield self._difference("REQUIRED_FIELD_REMOVED", old, "lacks the required field")
        for number, new in read.items():
            required = new.label == _F.LABEL_REQUIRED
            if required and (number not in written or written[number].label != new.label):
                yield self._difference("REQUIRED_FIELD_ADDED", new, "newly requires the field")
        yield from self._oneofs(reader, writer)

    def _both(
        self,
        new: FieldDescriptorProto,
        old: FieldDescriptorProto,
        reader: DescriptorProto,
        writer: DescriptorProto,
    ) -> Iterator[Difference]:
        entries = _entry(new, reader), _entry(old, writer)
        if entries[0] is not None and entries[1] is not None:
            for one, other in zip(entries[0].field, entries[1].field, strict=True):
                yield from self._types(one, other, new)
            return
        if (entries[0] is None) != (entries[1] is None):
            yield self._difference(
                "FIELD_KIND_CHANGED", new, "has another kind of type for the field"
            )
            return
        type_differences = list(self._types(new, old, new))
        yield from type_differences
        repeated = (new.label == _F.LABEL_REPEATED, old.label == _F.LABEL_REPEATED)
        if not type_differences and repeated[0] != repeated[1] and _is_number(new):
            yield self._difference(
                "FIELD_NUMERIC_LABEL_CHANGED", new, "has another label for the numeric field"
            )

    def _types(
        self, new: FieldDescriptorProto, old: FieldDescriptorProto, shown: FieldDescriptorProto
    ) -> Iterator[Difference]:
        messages = (new.type == _F.TYPE_MESSAGE, old.type == _F.TYPE_MESSAGE)
        if messages[0] != messages[1]:
            yield self._difference(
                "FIELD_KIND_CHANGED", shown, "has another kind of type for the field"
            )
        elif messages[0] or new.type == old.type == _F.TYPE_ENUM:
            if self.ours.local(new.type_name) != self.theirs.local(old.type_name):
                yield self._difference(
                    "FIELD_NAMED_TYPE_CHANGED", shown, "has another named type for the field"
                )
        elif _GROUPS.get(new.type) != _GROUPS.get(old.type):
            yield self._difference(
                "FIELD_SCALAR_KIND_CHANGED", shown, "has another scalar type for the field"
            )

    def _oneofs(self, reader: DescriptorProto, writer: DescriptorProto) -> Iterator[Difference]:
        """Compare the fields that come into a oneof or leave one."""
        read, written = _membership(reader), _membership(writer)
        known = set(written.values())
        numbers = {one.number: one for one in reader.field}
        plain = {one.number for one in writer.field} - set(written)
        for number, name in written.items():
            if name in read.values() and read.get(number) != name:
                path = f"{self.path}/{name}/{number}"
                yield Difference(
                    "ONEOF_FIELD_REMOVED",
                    path,
                    f"The {self.roles.reader} schema lacks the field at path {path}, which is in a"
                    f" oneof of the {self.roles.writer} schema",
                )
        moved = {number: name for number, name in read.items() if number in plain}
        for number, name in moved.items():
            if name in known:
                yield self._difference(
                    "FIELD_MOVED_TO_EXISTING_ONEOF",
                    numbers[number],
                    f"moves into the oneof {name} the field",
                )
        for name, count in Counter(moved.values()).items():
            if count > 1 and name not in known:
                path = f"{self.path}/{name}"
                yield Difference(
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
                    path,
                    f"The {self.roles.reader} schema moves several fields of the"
                    f" {self.roles.writer} schema into the oneof at path {path}",
                )

    def _difference(self, kind: str, one: FieldDescriptorProto, what: str) -> Difference:
        path = f"{self.path}/{one.number}"
        return Difference(
            kind,
            path,
            f"The {self.roles.reader} schema {what} {one.name} at path {path} of the"
            f" {self.roles.writer} schema",
        )


def _is_number(one: FieldDescriptorProto) -> bool:
    return one.type not in (_F.TYPE_MESSAGE, _F.TYPE_STRING, _F.TYPE_BYTES)


def _entry(one: FieldDescriptorProto, message: DescriptorProto) -> DescriptorProto | None:
    """Return the entry of a map's field."""
    if one.type != _F.TYPE_MESSAGE or one.label != _F.LABEL_REPEATED:
        return None
    name = one.type_name.rpartition(".")[2]
    return next(
        (
            nested
            for nested in message.nested_type
            if nested.name == name and nested.options.map_entry
        ),
        None,
    )


def _membership(message: DescriptorProto) -> dict[int, str]:
    """Return the oneof of each field that is in one; optional fields of proto3 are not."""
    return {
        one.number: message.oneof_decl[one.oneof_index].name
        for one in message.field
        if one.HasField("oneof_index") and not one.proto3_optional
    }
