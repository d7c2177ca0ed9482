"""Answers in protobuf, made comparable: one text for messages that are equal."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.text import BrokenProtobuf
from qtt import tokens
from qtt.model import Mismatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

_PAIR: Final = ["key", "value"]


def readable(
    where: str, want: Sequence[Mapping[str, Any]], got: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    """Both lists with a text for each row's message, by the schema of the answer.

    Raises: Mismatch when a row is no such message.
    """
    kind = _message(where, got)
    try:
        texts = [_shown(line, lambda row: text_format.Parse(row, kind())) for line in want]
    except text_format.ParseError as error:
        raise Mismatch(f"{where}: the schema of the answer has no such row: {error}") from error
    try:
        shown = [_shown(line, lambda row: kind.FromString(_bytes_of(row))) for line in got]
    except (DecodeError, KeyError, ValueError) as error:
        raise Mismatch(f"{where}: a row is not a message of its schema: {error}") from error
    return texts, shown


def _message(where: str, got: Sequence[Mapping[str, Any]]) -> type[Message]:
    try:
        messages = proto_schema.load(got[0]["header"]["protoSchema"])
        _, descriptor = messages.chosen(None)
    except (BrokenProtobuf, IndexError, KeyError) as error:
        shown = tokens.dump(list(got))
        raise Mismatch(f"{where}: a header with a schema expected, got {shown}") from error
    return messages.message_class(descriptor)


def _bytes_of(row: Mapping[str, Any]) -> bytes:
    return base64.b64decode(row["protobufBytes"], validate=True)


def _shown(line: Mapping[str, Any], message: Any) -> Mapping[str, Any]:
    return {"row": str(_nested(message(line["row"])))} if "row" in line else line


def _nested(message: Message) -> dict[str, Any]:
    """Return the fields in the message's text; without presence only if they are set."""
    return {field.name: _value(field, value) for field, value in message.ListFields()}


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is None:
        return list(value) if field.is_repeated else value
    if not field.is_repeated:
        return _nested(value)
    items = [_nested(item) for item in value]
    return sorted(items, key=repr) if _is_pair(field.message_type) else items


def _is_pair(message: Descriptor) -> bool:
    """The entry of a map, which has no order."""
    return message.name.endswith("Entry") and [f.name for f in message.fields] == _PAIR
