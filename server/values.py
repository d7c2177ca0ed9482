"""A run-time value as JSON: one converter per type, made once per query.

``None`` instead of a converter says that the JSON writer takes the value as it is. So a row of
plain columns costs nothing here. Source: ksqlDB developer guide, REST API, value encoding in rows.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import orjson

from ksql.core.types import model, times
from ksql.core.types.model import Kind, SqlType
from ksql.java.text import mended

Converter = Callable[[Any], Any]


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> orjson.Fragment:
    return orjson.Fragment(format(value, "f"))


def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


_BY_KIND: dict[Kind, Converter] = {
    Kind.DOUBLE: _double,
    Kind.BYTES: _bytes,
    Kind.DATE: times.format_date,
    Kind.TIME: times.format_time,
    Kind.TIMESTAMP: times.format_timestamp,
}


def converter(type_: SqlType) -> Converter | None:
    """Return the conversion of that type for the JSON writer; None if it needs none."""
    match type_:
        case model.Primitive(kind):
            return _BY_KIND.get(kind)
        case model.Decimal():
            return _decimal
        case model.Array(item):
            return _array(converter(item))
        case model.Map(key, value):
            return _map(key, converter(value))
        case model.Struct(fields):
            return _struct({f.name: c for f in fields if (c := converter(f.type))})


def _array(inner: Converter | None) -> Converter | None:
    if inner is None:
        return None
    return lambda items: [None if item is None else inner(item) for item in items]


def _map(key: SqlType, inner: Converter | None) -> Converter | None:
    name = None if key == model.STRING else _key_text(key)
    if name is None and inner is None:
        return None

    def convert(pairs: dict[Any, Any]) -> dict[str, Any]:
        return {
            (name(k) if name else k): (inner(v) if inner and v is not None else v)
            for k, v in pairs.items()
        }

    return convert


def _key_text(type_: SqlType) -> Converter:
    """Return the converter to texts, which JSON's objects have for keys."""
    inner = converter(type_)

    def text(key: object) -> str:
        converted = key if inner is None or key is None else inner(key)
        return converted if isinstance(converted, str) else orjson.dumps(converted).decode()

    return text


def _struct(inner: dict[str, Converter]) -> Converter | None:
    if not inner:
        return None

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return value | {
            name: to_json(value[name])
            for name, to_json in inner.items()
            if value.get(name) is not None
        }

    return convert


def row_converter(types: Sequence[SqlType]) -> Callable[[tuple[Any, ...]], Sequence[Any]] | None:
    """Return how a row's values become what the JSON writer takes; None if they already are."""
    work = [(index, c) for index, type_ in enumerate(types) if (c := converter(type_))]
    if not work:
        return None

    def convert(values: tuple[Any, ...]) -> list[Any]:
        converted = list(values)
        for index, to_json in work:
            value = converted[index]
            if value is not None:
                converted[index] = to_json(value)
        return converted

    return convert


def dumps(value: object) -> bytes:
    """Return the JSON text; texts that UTF-8 cannot hold lose those characters, as in Java."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(mended(value))
