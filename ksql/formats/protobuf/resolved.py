"""Protobuf schemas as a registry sees them: files with every name resolved.

A schema comes in two forms: the text of a .proto file or, from some clients, its descriptor in
Base64.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ksql.formats.protobuf import printer as proto_print
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf import text as proto_text
from ksql.formats.protobuf.text import BrokenProtobuf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.protobuf import descriptor_pb2

_FORGOTTEN: Final = frozenset(
    {"option", "service", "extend", "extensions", "reserved", "group", "public", "weak", "["}
)
"""Words of what the parser passes over: a text that has them is not printed again."""


@dataclass(frozen=True)
class Proto:
    """A schema and what it imports, outermost first."""

    files: tuple[FileDescriptorProto, ...]

    @property
    def file(self) -> FileDescriptorProto:
        """The schema itself."""
        return self.files[0]


def parse(text: str, imported: Mapping[str, str]) -> Proto:
    """Return the schema of a text; ``imported`` are the texts that it imports.

    Raises: BrokenProtobuf.
    """
    try:
        loaded = proto_schema.load(text, imported)
    except RecursionError as error:
        raise BrokenProtobuf("it is nested too deeply") from error
    pool = loaded.pool
    files: dict[str, FileDescriptorProto] = {}
    waiting = [loaded.file.descriptor.name]
    while waiting:
        name = waiting.pop(0)
        if name not in files:
            files[name] = FileDescriptorProto()
            pool.FindFileByName(name).CopyToProto(files[name])
            waiting += files[name].dependency
    return Proto(tuple(files.values()))


def serialized(text: str, imported: Mapping[str, str]) -> str:
    """Return the schema as a descriptor in Base64, which clients without a parser ask for.

    Raises: BrokenProtobuf.
    """
    if is_serialized(text):
        return text
    return base64.b64encode(parse(text, imported).file.SerializeToString()).decode()


def is_serialized(text: str) -> bool:
    """Return whether the text is a descriptor in Base64."""
    return proto_text.from_base64(text) is not None


def canonical_text(text: str, imported: Mapping[str, str], *, normalize: bool = False) -> str:
    """Return the text to keep: readable, if the schema came as a descriptor.

    ``normalize`` brings imports, messages, enums, fields and their values into one order and writes
    full names. Parts that our printer cannot write (options, services, reserved numbers) are never
    dropped: such a schema stays as it came. Raises: BrokenProtobuf.
    """
    given = proto_text.from_base64(text)
    if given is not None:
        if not proto_print.is_printable(given):
            return text
        return proto_print.text(_sorted(parse(text, imported).file) if normalize else given)
    if normalize and not _FORGOTTEN.intersection(proto_text.tokens(text)):
        return proto_print.text(_sorted(parse(text, imported).file))
    return text.strip() + "\n"


def identity(text: str) -> str:
    """Return the schema without white space and comments: equal for texts that say the same."""
    return text if is_serialized(text) else " ".join(proto_text.tokens(text))


def _sorted(file: FileDescriptorProto) -> FileDescriptorProto:
    out = FileDescriptorProto()
    out.CopyFrom(file)
    imports = sorted(out.dependency)
    del out.dependency[:]
    out.dependency.extend(imports)
    for message in _messages(out):
        message.field.sort(key=lambda one: one.number)
        message.nested_type.sort(key=lambda one: one.name)
    for enum in _enums(out):
        enum.value.sort(key=lambda one: one.number)
    return out


def _messages(file: FileDescriptorProto) -> Iterator[descriptor_pb2.DescriptorProto]:
    waiting = list(file.message_type)
    while waiting:
        message = waiting.pop()
        yield message
        waiting += message.nested_type


def _enums(file: FileDescriptorProto) -> Iterator[descriptor_pb2.EnumDescriptorProto]:
    yield from file.enum_type
    for message in _messages(file):
        yield from message.enum_type
