"""A test's values as bytes of a topic, and back, per format."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ksql.topics.formats import is_unwrapped
from ksql.types import model
from ksql.types.render import java_double
from qtt import tokens
from qtt.model import Mismatch, Record, Unsupported, Window

if TYPE_CHECKING:
    from ksql.catalog.model import DataSource
    from ksql.types.format import Format
    from ksql.types.schema import Column

_INT, _LONG, _DOUBLE = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">d")


def encode_key(record: Record, source: DataSource) -> bytes | None:
    """The key's bytes, with its window."""
    key = _encode(record.key, source.key_format, source.schema.key)
    return key if key is None else key + _suffix(record.window)


def encode_value(record: Record, source: DataSource) -> bytes | None:
    """The value's bytes."""
    return _encode(record.value, source.value_format, source.schema.value)


def _suffix(window: Window | None) -> bytes:
    if window is None:
        return b""
    end = _LONG.pack(window.end) if window.kind == "session" else b""
    return end + _LONG.pack(window.start)


def split_window(key: bytes | None, source: DataSource) -> tuple[bytes | None, Window | None]:
    """A key without its window, and the window."""
    if key is None or source.window is None:
        return key, None
    start = _LONG.unpack(key[-8:])[0]
    if source.window.size_ms is None:
        return key[:-16], Window(start, _LONG.unpack(key[-16:-8])[0], "session")
    return key[:-8], Window(start, start + source.window.size_ms, "time")


def _encode(value: Any, format_: Format, columns: tuple[Column, ...]) -> bytes | None:
    if value is None:
        return None
    match format_.name:
        case "JSON":
            return tokens.dump(value).encode()
        case "DELIMITED":
            return str(value).encode()
        case "KAFKA":
            return _encode_kafka(value, columns)
        case "NONE":
            return None
        case other:
            raise Unsupported(f"the format {other}")


def _encode_kafka(value: Any, columns: tuple[Column, ...]) -> bytes:
    type_ = columns[0].type if columns else model.STRING
    match type_:
        case model.INTEGER:
            return _INT.pack(int(Decimal(value)))
        case model.BIGINT:
            return _LONG.pack(int(Decimal(value)))
        case model.DOUBLE:
            return _DOUBLE.pack(float(value))
        case _:
            return str(value).encode()


def decode(data: bytes | None, format_: Format, columns: tuple[Column, ...], side: str) -> Any:
    """What the bytes say, in the form that expectations have."""
    if data is None:
        return None
    match format_.name:
        case "JSON":
            return _typed(tokens.parse(data.decode()), columns, unwrapped(format_, columns, side))
        case "DELIMITED":
            return data.decode()
        case "KAFKA":
            return _decode_kafka(data, columns)
        case "NONE":
            raise Mismatch(f"a {side} was written although its format is NONE: {data!r}")
        case other:
            raise Unsupported(f"the format {other}")


def _typed(value: Any, columns: tuple[Column, ...], unwrapped: bool) -> Any:
    """DECIMAL columns marked as such."""
    if unwrapped:
        return _typed_value(value, columns[0].type)
    if not isinstance(value, dict):
        return value
    types = {column.name: column.type for column in columns}
    return {k: _typed_value(v, types[k]) if k in types else v for k, v in value.items()}


def _typed_value(value: Any, type_: model.SqlType) -> Any:
    match type_, value:
        case model.Decimal(), tokens.Number():
            return tokens.Decimal(value)
        case model.Array(item), list():
            return [_typed_value(each, item) for each in value]
        case model.Map(_, inner), dict():
            return {k: _typed_value(v, inner) for k, v in value.items()}
        case model.Struct() as struct, dict():
            found = {f.name: f.type for f in struct.fields}
            return {k: _typed_value(v, found[k]) if k in found else v for k, v in value.items()}
        case _:
            return value


def unwrapped(format_: Format, columns: tuple[Column, ...], side: str) -> bool:
    """Whether the one column stands alone."""
    return is_unwrapped(format_, columns, side)  # type: ignore[arg-type] # key or value


def _decode_kafka(data: bytes, columns: tuple[Column, ...]) -> Any:
    match columns[0].type if columns else model.STRING:
        case model.INTEGER:
            return tokens.Number(_INT.unpack(data)[0])
        case model.BIGINT:
            return tokens.Number(_LONG.unpack(data)[0])
        case model.DOUBLE:
            return tokens.Number(java_double(_DOUBLE.unpack(data)[0]))
        case _:
            return data.decode()
