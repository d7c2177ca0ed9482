"""A Protobuf file's descriptor as the text of a .proto file.

Source: Protocol Buffers, language specification (proto2, proto3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.protobuf.message import Message

_F = FieldDescriptorProto
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCALARS: Final[Mapping[int, str]] = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in _F.Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
_FILE_PARTS: Final = frozenset(
    {"name", "package", "dependency", "message_type", "enum_type", "syntax", "source_code_info"}
)
_MESSAGE_PARTS: Final = frozenset({"name", "field", "nested_type", "enum_type", "oneof_decl"})
_FIELD_PARTS: Final = frozenset(
    {
        *("name", "number", "label", "type", "type_name", "json_name"),
        *("oneof_index", "proto3_optional", "default_value"),
    }
)
_ENUM_PARTS: Final = frozenset({"name", "value"})
_VALUE_PARTS: Final = frozenset({"name", "number"})


def is_printable(file: FileDescriptorProto) -> bool:
    """Return whether the text would say all that the descriptor does."""
    if not _only(file, _FILE_PARTS) or file.syntax not in ("", "proto2", "proto3"):
        return False
    return all(map(_message_printable, file.message_type)) and all(
        map(_enum_printable, file.enum_type)
    )


def _only(part: Message, known: frozenset[str]) -> bool:
    return all(one.name in known for one, _ in part.ListFields())


def _message_printable(message: DescriptorProto) -> bool:
    known = _MESSAGE_PARTS | ({"options"} if message.options.map_entry else frozenset())
    return (
        _only(message, known)
        and all(map(_field_printable, message.field))
        and all(_only(one, frozenset({"name"})) for one in message.oneof_decl)
        and all(map(_message_printable, message.nested_type))
        and all(map(_enum_printable, message.enum_type))
    )


def _field_printable(one: FieldDescriptorProto) -> bool:
    return _only(one, _FIELD_PARTS) and one.type != _F.TYPE_GROUP


def _enum_printable(enum: EnumDescriptorProto) -> bool:
    return _only(enum, _ENUM_PARTS) and all(_only(one, _VALUE_PARTS) for one in enum.value)


def text(file: FileDescriptorProto) -> str:
    """Return the text of a file that ``is_printable``."""
    lines = [f'syntax = "{file.syntax or "proto2"}";']
    if file.package:
        lines.append(f"package {file.package};")
    if file.dependency:
        lines += ["", *(f"import {_quoted(name)};" for name in file.dependency)]
    for message in file.message_type:
        lines += ["", *_message(message, file)]
    for enum in file.enum_type:
        lines += ["", *_enum(enum)]
    return "\n".join([*lines, ""])


def _message(message: DescriptorProto, file: FileDescriptorProto) -> Iterator[str]:
    entries = {one.name: one for one in message.nested_type if one.options.map_entry}
    yield f"message {message.name} {{"
    grouped: set[int] = set()
    for one in message.field:
        if not one.HasField("oneof_index") or one.proto3_optional:
            yield f"  {_field(one, entries, file)}"
        elif one.oneof_index not in grouped:
            grouped.add(one.oneof_index)
            yield from _oneof(message, one.oneof_index, entries, file)
    inner = [
        *(list(_message(one, file)) for one in message.nested_type if one.name not in entries),
        *(list(_enum(one)) for one in message.enum_type),
    ]
    for block in inner:
        yield ""
        yield from (f"  {line}" if line else "" for line in block)
    yield "}"


def _oneof(
    message: DescriptorProto,
    index: int,
    entries: Mapping[str, DescriptorProto],
    file: FileDescriptorProto,
) -> Iterator[str]:
    yield f"  oneof {message.oneof_decl[index].name} {{"
    for one in message.field:
        if one.HasField("oneof_index") and one.oneof_index == index:
            yield f"    {_field(one, entries, file)}"
    yield "  }"


def _field(
    one: FieldDescriptorProto, entries: Mapping[str, DescriptorProto], file: FileDescriptorProto
) -> str:
    entry = entries.get(one.type_name.rpartition(".")[2])
    if entry is not None and one.label == _F.LABEL_REPEATED:
        key, value = entry.field
        type_ = f"map<{_type(key)}, {_type(value)}>"
    else:
        type_ = _label(one, file) + _type(one)
    return f"{type_} {one.name} = {one.number}{_options(one)};"


def _label(one: FieldDescriptorProto, file: FileDescriptorProto) -> str:
    if one.label == _F.LABEL_REPEATED:
        return "repeated "
    if one.label == _F.LABEL_REQUIRED:
        return "required "
    plain = one.HasField("oneof_index") or file.syntax == "proto3"
    return "optional " if one.proto3_optional or not plain else ""


def _type(one: FieldDescriptorProto) -> str:
    return one.type_name or _SCALARS[one.type]


def _options(one: FieldDescriptorProto) -> str:
    options = []
    if one.HasField("default_value"):
        options.append(f"default = {_default(one)}")
    if one.json_name and one.json_name != _json_name(one.name):
        options.append(f"json_name = {_quoted(one.json_name)}")
    return f" [{', '.join(options)}]" if options else ""


def _default(one: FieldDescriptorProto) -> str:
    match one.type:
        case _F.TYPE_STRING:
            return _quoted(one.default_value)
        case _F.TYPE_BYTES:  # escaped already
            return f'"{one.default_value}"'
        case _:
            return one.default_value


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROL.sub(lambda char: f"\\{ord(char[0]):03o}", escaped) + '"'


def _json_name(name: str) -> str:
    """Return the name that a field has in JSON if none is declared."""
    out, upper = [], False
    for char in name:
        if char == "_":
            upper = True
        else:
            out.append(char.upper() if upper else char)
            upper = False
    return "".join(out)


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    for one in enum.value:
        yield f"  {one.name} = {one.number};"
    yield "}"
