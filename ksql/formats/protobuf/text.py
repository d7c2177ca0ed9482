"""The Protobuf language: a .proto text becomes a file descriptor.

Registries keep schemas as text, and protoc is not at hand in a Python process. Everything that
shapes messages is read (proto2 and proto3: nesting, enums, oneof, map, optional, imports). Options
and services are skipped, except the parameters of Confluent's decimals. Source: Protocol Buffers,
language specification (proto2, proto3).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import DecodeError as BrokenMessage

from ksql.core import KsqlError

Option: TypeAlias = "str | dict[str, Option] | list[Option]"

_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*|\.?\d[A-Za-z0-9_.+]*)
    |(?P<mark>[-+{}\[\]();:,.=<>/])""",
    re.VERBOSE | re.DOTALL,
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_MAX_DEPTH: Final = 100

_SCALARS: Final[Mapping[str, FieldDescriptorProto.Type.ValueType]] = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in FieldDescriptorProto.Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
_LABELS: Final = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


class BrokenProtobuf(KsqlError):
    """A text that is no Protobuf schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid Protobuf schema: {reason}")


@dataclass
class ProtoFile:
    """A schema: its descriptor, and the parameters of fields by their full names."""

    descriptor: FileDescriptorProto
    params: dict[str, dict[str, str]] = field(default_factory=dict)


def parse(text: str, name: str = "schema.proto") -> ProtoFile:
    """Return the schema of a .proto text or of a descriptor in Base64, as clients register it.

    Raises: BrokenProtobuf.
    """
    if (file := from_base64(text)) is not None:
        file.name = name
        return ProtoFile(file)
    return _Parser(text, name).file()


def from_base64(text: str) -> FileDescriptorProto | None:
    """Return the descriptor that a text is in Base64; None for any other text."""
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, BrokenMessage):
        return None


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._depth = 0
        self._result = ProtoFile(FileDescriptorProto(name=name, syntax="proto2"))

    # --- tokens ---------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        word = self._peek()
        if not word:
            raise BrokenProtobuf("it ends too early")
        self._at += 1
        return word

    def _take(self, word: str) -> bool:
        if self._peek() == word:
            self._at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        token = self._next()
        if token != word:
            raise BrokenProtobuf(f"expected {word} instead of {token}")

    def _name(self) -> str:
        word = self._next()
        if not _NAME.match(word):
            raise BrokenProtobuf(f"expected a name instead of {word}")
        return word

    def _path(self) -> str:
        parts = ["."] if self._take(".") else []
        parts.append(self._name())
        while self._take("."):
            parts += [".", self._name()]
        return "".join(parts)

    def _text(self) -> str:
        word = self._next()
        if word[0] not in "\"'":
            raise BrokenProtobuf(f"expected a text instead of {word}")
        text = _ESCAPE.sub(r"\1", word[1:-1])
        while self._peek()[:1] in ('"', "'"):
            text += _ESCAPE.sub(r"\1", self._next()[1:-1])
        return text

    def _int(self) -> int:
        sign = -1 if self._take("-") else 1
        word = self._next()
        try:
            octal = len(word) > 1 and word[0] == "0" and word.isdigit()
            return sign * int(word, 8 if octal else 0)
        except ValueError:
            raise BrokenProtobuf(f"expected a number instead of {word}") from None

    def _skip_statement(self) -> None:
        """Pass over everything up to the semicolon or the end of the block."""
        depth = 0
        while True:
            word = self._next()
            if word in "{[(":
                depth += 1
            elif word in "}])":
                depth -= 1
                if depth == 0 and word == "}":
                    self._take(";")
                    return
            elif word == ";" and depth == 0:
                return

    # --- file -----------------------------------------------------------------------------

    def file(self) -> ProtoFile:
        file = self._result.descriptor
        while self._peek():
            match self._next():
                case ";":
                    pass
                case "syntax":
                    self._expect("=")
                    file.syntax = self._syntax()
                case "package":
                    file.package = self._path()
                    self._expect(";")
                case "import":
                    _ = self._take("public") or self._take("weak")
                    file.dependency.append(self._text())
                    self._expect(";")
                case "message":
                    package = f"{file.package}." if file.package else ""
                    self._message(file.message_type.add(), package)
                case "enum":
                    self._enum(file.enum_type.add())
                case "option" | "service" | "extend":
                    self._skip_statement()
                case word:
                    raise BrokenProtobuf(f"unexpected {word}")
        return self._result

    def _syntax(self) -> str:
        syntax = self._text()
        if syntax not in ("proto2", "proto3"):
            raise BrokenProtobuf(f"unknown syntax {syntax}")
        self._expect(";")
        return syntax

    def _message(self, message: DescriptorProto, outer: str) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BrokenProtobuf("it is nested too deeply")
        message.name = self._name()
        full = f"{outer}{message.name}."
        self._expect("{")
        while not self._take("}"):
            self._member(message, full)
        _close_optionals(message)
        self._depth -= 1

    def _member(self, message: DescriptorProto, full: str) -> None:
        word = self._peek()
        read: dict[str, Callable[[], None]] = {
            ";": lambda: None,
            "message": lambda: self._message(message.nested_type.add(), full),
            "enum": lambda: self._enum(message.enum_type.add()),
            "oneof": lambda: self._oneof(message, full),
            "option": self._skip_statement,
            "reserved": self._skip_statement,
            "extensions": self._skip_statement,
            "extend": self._skip_statement,
        }
        if word in read:
            self._at += 1
            read[word]()
        elif self._tokens[self._at : self._at + 2] == ["map", "<"]:
            self._map(message, full)
        else:
            self._field(message, full)

    def _field(self, message: DescriptorProto, full: str, oneof: int | None = None) -> None:
        one = message.field.add(label=FieldDescriptorProto.LABEL_OPTIONAL)
        labelled = oneof is None and self._peek() in _LABELS
        if labelled:
            label = self._next()
            one.label = _LABELS[label]
            one.proto3_optional = label == "optional" and self._proto3
        if self._peek() == "group":
            raise BrokenProtobuf("groups are not supported")
        _set_type(one, self._path())
        one.name = self._name()
        if oneof is not None:
            one.oneof_index = oneof
        self._number(one, full)

    @property
    def _proto3(self) -> bool:
        return self._result.descriptor.syntax == "proto3"

    def _number(self, one: FieldDescriptorProto, full: str) -> None:
        self._expect("=")
        number = self._int()
        if not 0 < number < 1 << 29:
            raise BrokenProtobuf(f"{number} is no number of a field")
        one.number = number
        if self._take("["):
            options = self._options()
            if params := _params(options):
                self._result.params[full + one.name] = params
        self._expect(";")

    def _map(self, message: DescriptorProto, full: str) -> None:
        self._expect("map")
        self._expect("<")
        key = self._path()
        self._expect(",")
        value = self._path()
        self._expect(">")
        name = self._name()
        entry = message.nested_type.add(name=_camel(name) + "Entry")
        entry.options.map_entry = True
        for index, (part, type_) in enumerate((("key", key), ("value", value)), 1):
            label = FieldDescriptorProto.LABEL_OPTIONAL
            _set_type(entry.field.add(name=part, number=index, label=label), type_)
        one = message.field.add(name=name, label=FieldDescriptorProto.LABEL_REPEATED)
        one.type_name = entry.name
        self._number(one, full)
        if params := self._result.params.get(full + name):  # they are those of its values
            self._result.params[f"{full}{entry.name}.value"] = params

    def _oneof(self, message: DescriptorProto, full: str) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._name())
        self._expect("{")
        while not self._take("}"):
            if self._take("option"):
                self._skip_statement()
            elif not self._take(";"):
                self._field(message, full, index)

    def _enum(self, enum: EnumDescriptorProto) -> None:
        enum.name = self._name()
        self._expect("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            name = self._name()
            if name in ("option", "reserved") and self._peek() != "=":
                if name == "option":
                    enum.options.allow_alias |= self._peek() == "allow_alias"
                self._skip_statement()
                continue
            self._expect("=")
            enum.value.add(name=name, number=self._int())
            if self._take("["):
                self._options()
            self._expect(";")

    # --- options --------------------------------------------------------------------------

    def _options(self) -> dict[str, Option]:
        """Return the options in brackets, whose opening one has been taken."""
        options: dict[str, Option] = {}
        while not self._take("]"):
            name = self._until("=")
            self._expect("=")
            options[name] = self._value()
            self._take(",")
        return options

    def _until(self, end: str) -> str:
        parts = []
        while self._peek() not in (end, ""):
            parts.append(self._next())
        return "".join(parts)

    def _value(self) -> Option:
        word = self._peek()
        if word == "{":
            self._next()
            return self._aggregate()
        if word == "[":
            self._next()
            items: list[Option] = []
            while not self._take("]"):
                items.append(self._value())
                self._take(",")
            return items
        if word[:1] in ('"', "'"):
            return self._text()
        sign = self._next() if word in "+-" else ""
        return sign + self._next()

    def _aggregate(self) -> dict[str, Option]:
        fields: dict[str, Option] = {}
        while not self._take("}"):
            if self._take("["):
                name = self._until("]")
                self._expect("]")
            else:
                name = self._name()
            self._take(":")
            value = self._value()
            known = fields.get(name)
            if isinstance(known, list) and not isinstance(value, list):
                value = [*known, value]  # repeated without brackets
            elif known is not None:
                value = [known, value]
            fields[name] = value
            _ = self._take(",") or self._take(";")
        return fields


def tokens(text: str) -> list[str]:
    """Return the words and marks of a text; white space and comments are left out.

    Raises: BrokenProtobuf.
    """
    words: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            _unreadable(text, at)
        if word := match.group("text") or match.group("word") or match.group("mark"):
            words.append(word)
        at = match.end()
    return words


def _unreadable(text: str, at: int) -> NoReturn:
    line = text.count("\n", 0, at) + 1
    raise BrokenProtobuf(f"unexpected {text[at]} in line {line}")


def _set_type(one: FieldDescriptorProto, type_: str) -> None:
    scalar = _SCALARS.get(type_)
    if scalar is None:
        one.type_name = type_
    else:
        one.type = scalar


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _close_optionals(message: DescriptorProto) -> None:
    """Put each proto3 optional field alone into a oneof of its own, after the others."""
    for one in message.field:
        if one.proto3_optional:
            one.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{one.name}")


def _params(options: dict[str, Option]) -> dict[str, str]:
    """Return the parameters that Confluent's field_meta carries."""
    meta = options.get("(confluent.field_meta)")
    listed = options.get("(confluent.field_meta).params")
    if isinstance(meta, dict):
        listed = meta.get("params")
    items = listed if isinstance(listed, list) else [listed]
    return {
        str(item["key"]): str(item["value"])
        for item in items
        if isinstance(item, dict) and {"key", "value"} <= set(item)
    }
