"""A test's values as bytes of a topic, and back, per format."""

from __future__ import annotations

import base64
import struct
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ksql.core.types import WindowedKeys, capabilities, java_double, model, session_key, window_key
from ksql.formats import NoRegistry, RegisteredReader, Side, is_unwrapped, serde_for, shape
from qtt import tokens
from qtt.model import CaseRecord, Mismatch, WindowBounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core.types import Column, Format
    from ksql.sql.catalog import DataSource
    from qtt.driver import CaseStage, RawInput

_INT, _LONG, _DOUBLE = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">d")


def encode_key(record: CaseRecord, source: DataSource, driver: CaseStage) -> bytes | None:
    """The key's bytes, with its window."""
    key = _encode(record.key, source, "key", driver)
    if key is None or record.window is None:
        return key
    window = record.window
    if window.kind == "session":
        return session_key(key, window.start, window.end)
    return window_key(key, window.start)


def encode_value(record: CaseRecord, source: DataSource, driver: CaseStage) -> bytes | None:
    """The value's bytes."""
    return _encode(record.value, source, "value", driver)


def split_window(key: bytes | None, source: DataSource) -> tuple[bytes | None, WindowBounds | None]:
    """A key without its window, and the window."""
    if key is None or source.window is None:
        return key, None
    size_ms = source.window.size_ms
    alone, (start, end) = WindowedKeys(size_ms).split(key)
    return alone, WindowBounds(start, end, "session" if size_ms is None else "time")


def _encode(value: Any, source: DataSource, side: Side, driver: CaseStage) -> bytes | None:
    if value is None:
        return None
    key = side == "key"
    format_ = source.key_format if key else source.value_format
    columns = source.schema.key if key else source.schema.value
    info = capabilities(format_.name)
    if info.empty:
        return None
    if info.infers:
        return _encode_as_registered(value, format_, source.topic, side, driver)
    if plain := _PLAIN.get(format_.name):
        return plain.encode(value, columns)
    serde = serde_for(format_, columns, side)
    return serde.encode(row_of(value, columns, is_unwrapped(format_, columns, side)))


def _encode_as_registered(
    value: Any, format_: Format, topic: str, side: Side, driver: CaseStage
) -> bytes | None:
    """The value as the latest schema of the topic wants it."""
    registered, registry = driver.latest(topic, side), driver.registry
    if registered is None:
        raise Mismatch(f"no schema is registered for the {side}s of topic {topic}")
    full_name = format_.schema_full_name
    looks = shape(registered.schema, registry, full_name)
    row = row_of(value, looks.columns, looks.alone)
    return looks.serde(registry, registered.id, full_name).encode(row)


def row_of(value: Any, columns: tuple[Column, ...], alone: bool) -> tuple[Any, ...]:
    """A test's value as a row; ``alone``: it is the value of the only column.

    Raises: Mismatch for a value that the columns cannot take.
    """
    try:
        return _row_of(value, columns, alone)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise Mismatch(f"{tokens.dump(value)} does not fit {columns}: {error}") from error


def _row_of(value: Any, columns: tuple[Column, ...], alone: bool) -> tuple[Any, ...]:
    if alone:
        return (typed(value, columns[0].type),)
    if not isinstance(value, dict):
        raise Mismatch(f"an object with the fields of {columns} is needed, not {value}")
    by_name = {name.upper(): member for name, member in value.items()}
    return tuple(typed(by_name.get(c.name.upper()), c.type) for c in columns)


def typed(value: Any, type_: model.SqlType) -> Any:
    """A test's value as a value of the type: numbers and booleans are read from their text."""
    if value is None:
        return None
    match type_:
        case model.Array(model.Struct(fields)) if isinstance(value, dict):  # a map of any keys
            types = {f.name: f.type for f in fields}
            return [
                {"key": typed(k, types["key"]), "value": typed(v, types["value"])}
                for k, v in value.items()
            ]
        case model.Array(item):
            return [typed(member, item) for member in value]
        case model.Map(_, inner):
            return {k: typed(v, inner) for k, v in value.items()}
        case model.Struct(fields):
            by_name = {name.upper(): member for name, member in value.items()}
            return {f.name: typed(by_name.get(f.name.upper()), f.type) for f in fields}
        case model.Decimal(_, scale):
            return Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
        case _:
            return _PARSERS[type_](value)


def _text(value: Any) -> str:
    return value if type(value) is str else tokens.dump(value)


def _whole(value: Any) -> int:
    return int(Decimal(value))


_WIDE = Context(prec=1000)
_PARSERS: dict[model.SqlType, Callable[[Any], Any]] = {
    model.BOOLEAN: lambda value: _text(value).lower() == "true",
    model.INTEGER: _whole,
    model.BIGINT: _whole,
    model.DOUBLE: float,
    model.STRING: _text,
    model.BYTES: base64.b64decode,
    model.DATE: _whole,
    model.TIME: _whole,
    model.TIMESTAMP: _whole,
}


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


def decode(
    data: bytes | None,
    format_: Format,
    columns: tuple[Column, ...],
    side: Side,
    written: RegisteredReader | None = None,
) -> Any:
    """Decode bytes to the form that expectations have."""
    if data is None:
        return None
    info = capabilities(format_.name)
    if info.empty:
        raise Mismatch(f"a {side} was written although its format is {info.name}: {data!r}")
    if info.infers:
        if written is None:
            raise NoRegistry(format_.name)
        looks, row = written.read(data)
        return shown_row(row, looks.columns, looks.alone)
    alone = is_unwrapped(format_, columns, side)
    if plain := _PLAIN.get(format_.name):
        return plain.decode(data, columns, alone)
    return shown_row(serde_for(format_, columns, side).decode(data), columns, alone)


def shown_row(row: tuple[Any, ...] | None, columns: tuple[Column, ...], alone: bool) -> Any:
    """A row in the form that expectations have."""
    if row is None:
        return None
    values = [shown(value, c.type) for value, c in zip(row, columns, strict=True)]
    # bytes that are none at all read as null there
    values = [
        None if v == "" and c.type == model.BYTES else v
        for v, c in zip(values, columns, strict=True)
    ]
    return values[0] if alone else dict(zip((c.name for c in columns), values, strict=True))


def shown(value: Any, type_: model.SqlType) -> Any:
    """A value in the form that expectations have."""
    if value is None:
        return None
    match type_:
        case model.Array(item):
            return [shown(member, item) for member in value]
        case model.Map(_, inner):
            return {k: shown(v, inner) for k, v in value.items()}
        case model.Struct(fields):
            return {f.name: shown(value[f.name], f.type) for f in fields}
        case model.Decimal():
            return tokens.Decimal(format(value, "f"))
        case model.DOUBLE:
            return tokens.Double(java_double(value))
        case model.BYTES:
            return base64.b64encode(value).decode()
        case model.BOOLEAN | model.STRING:
            return value
        case _:
            return tokens.Number(value)


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
            return [_typed_value(member, item) for member in value]
        case model.Map(_, inner), dict():
            return {k: _typed_value(v, inner) for k, v in value.items()}
        case model.Struct() as struct, dict():
            types = {f.name: f.type for f in struct.fields}
            return {k: _typed_value(v, types[k]) if k in types else v for k, v in value.items()}
        case _:
            return value


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


class _Plain(NamedTuple):
    """Values as a test's author would write the bytes, without the product's own serde."""

    encode: Callable[[Any, tuple[Column, ...]], bytes]
    decode: Callable[[bytes, tuple[Column, ...], bool], Any]


_PLAIN: Final[dict[str, _Plain]] = {
    "JSON": _Plain(
        lambda value, _columns: tokens.dump(value).encode(),
        lambda data, columns, alone: _typed(tokens.parse(data.decode()), columns, alone),
    ),
    "DELIMITED": _Plain(
        lambda value, _columns: str(value).encode(), lambda data, _columns, _alone: data.decode()
    ),
    "KAFKA": _Plain(_encode_kafka, lambda data, columns, _alone: _decode_kafka(data, columns)),
}
"""Other formats are written and read by the product's serde."""


def raw(record: CaseRecord, driver: CaseStage) -> RawInput:
    """An input as its topic takes it.

    Raises: Mismatch.
    """
    source = source_of(record.topic, driver)
    return (
        record.topic,
        encode_key(record, source, driver),
        encode_value(record, source, driver),
        record.timestamp or 0,
        list(record.headers) or None,
    )


def source_of(topic: str, driver: CaseStage) -> DataSource:
    """The source over a topic, whose formats say how its records look.

    Raises: Mismatch.
    """
    for source in driver.catalog.sources.values():
        if source.topic == topic:
            return source
    raise Mismatch(f"no source is registered on topic {topic}")
