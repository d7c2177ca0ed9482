"""KAFKA: the one column as Kafka's own serializers write it, big-endian and without coercion.

Source: docs/formats.md#kafka.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ksql.core.types import model
from ksql.formats.implementation import Implementation, SerdeSpec, only
from ksql.formats.serde import NOTHING, DecodeError, EncodeError, Serde, Value, serde_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.core import Row
    from ksql.core.types import SqlType


class _Primitive(NamedTuple):
    read: Callable[[bytes], Value]
    write: Callable[[Value], bytes]
    reader: str  # the class that Java's error message names
    keeps: Callable[[Sequence[bytes]], bool] | None = None
    plain: str | None = None


def _same(data: bytes) -> bytes:
    return data


def _fixed(code: str, reader: str) -> _Primitive:
    packed = struct.Struct(code)

    def read(data: bytes) -> Value:
        return packed.unpack(data)[0]

    return _Primitive(read, packed.pack, reader)


def _integer(code: str, reader: str) -> _Primitive:
    """Return a number whose every value has one form only.

    A double has several that are no number.
    """
    sizes = {struct.calcsize(code)}
    return _fixed(code, reader)._replace(keeps=lambda items: set(map(len, items)) <= sizes)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _is_text(items: Sequence[bytes]) -> bool:
    whole = b"\n".join(items)  # parted, since two halves of a character are no text
    if whole.isascii():
        return True
    try:
        whole.decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


PRIMITIVES: dict[SqlType, _Primitive] = {
    model.INTEGER: _integer(">i", "IntegerDeserializer"),
    model.BIGINT: _integer(">q", "LongDeserializer"),
    model.DOUBLE: _fixed(">d", "DoubleDeserializer"),
    model.STRING: _Primitive(_text, _utf8, "StringDeserializer", _is_text, "{}.decode()"),
    model.BYTES: _Primitive(_same, bytes, "BytesDeserializer", lambda _items: True, "{}"),
}
_SIZES: dict[SqlType, int] = {model.INTEGER: 4, model.BIGINT: 8, model.DOUBLE: 8}


def serde(spec: SerdeSpec) -> Serde:
    """Return the serde of the column, if there is one; its null is no bytes at all."""
    if not spec.columns:
        return NOTHING
    column = spec.columns[0]
    read, write, reader, keeps, plain = PRIMITIVES[column.type]
    size = _SIZES.get(column.type, 0)

    def decode(data: bytes) -> Row:
        try:
            return (read(data),)
        except struct.error:
            raise DecodeError(f"Size of data received by {reader} is not {size}") from None

    def encode(row: Row) -> bytes | None:
        value = row[0]
        try:
            return None if value is None else write(value)
        except (struct.error, TypeError, AttributeError) as error:
            raise EncodeError(f"Cannot write {column.name} as {column.type}: {error}") from error

    return serde_of(
        decode,
        encode,
        keeps,
        plain,
        texts=column.type == model.STRING,
        integer_bytes=size if column.type in (model.INTEGER, model.BIGINT) else 0,
    )


FORMAT = Implementation(serde, only(frozenset(PRIMITIVES), decimals=False, name_column=False))
