"""JSON in texts: read, taken apart, joined; and SQL values written as JSON."""

from __future__ import annotations

import base64
import re
from decimal import Decimal as Dec
from typing import TYPE_CHECKING, Any

from ksql.core.types import format_date, format_time, format_timestamp, java_double, model, stringer
from ksql.functions.build import family
from ksql.functions.spec import Scalar
from ksql.java import (
    MISSING,
    BadJson,
    EvaluationError,
    from_units,
    json_text,
    parse_json,
    quote,
    steps,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core.types import SqlType

_INDEX = re.compile(r"[+-]?\d+\Z", re.ASCII)


class NotAnArray(EvaluationError):
    """JSON that should be an array and is not."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a JSON array")


class NullJson(EvaluationError):
    """NULL where a JSON array is needed."""

    def __init__(self) -> None:
        super().__init__("JSON_ARRAY_CONTAINS needs a JSON array, not NULL")


def extract(text: str, path: str) -> str | None:
    """Return the value at the path: a text as it is, all else as JSON."""
    way = steps(path)
    value = parse_json(text)
    for step in way:
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list) and _INDEX.match(step) and 0 <= int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    if value is MISSING:
        return None
    return _unquoted(value)


def _unquoted(value: Any) -> str:
    return from_units(value) if isinstance(value, str) else json_text(value)


def is_json(text: str | None) -> bool:
    """Return whether the text is JSON."""
    if text is None:
        return False
    try:
        return parse_json(text) is not MISSING
    except BadJson:
        return False


_KINDS: dict[SqlType, type] = {
    model.BOOLEAN: bool,
    model.INTEGER: int,
    model.BIGINT: int,
    model.DOUBLE: Dec,
    model.STRING: str,
}


def _array_contains(types: tuple[SqlType, ...]) -> Callable[[str | None, Any], bool]:
    """Return a search: an element is found if its JSON kind is the SQL type's: 1.0 is no INT."""
    kind = _KINDS.get(types[1])

    def fits(value: Any, element: Any) -> bool:
        if element is None or value is None:
            return element is value
        if type(value) is not kind:
            return False
        return float(value) == element if isinstance(value, Dec) else bool(value == element)

    def run(text: str | None, element: Any) -> bool:
        if text is None:
            raise NullJson
        try:
            values = parse_json(text)
        except BadJson:
            return False
        return isinstance(values, list) and any(fits(value, element) for value in values)

    return run


def array_length(text: str) -> int | None:
    """Return the number of elements; NULL if it is no array."""
    value = parse_json(text)
    return len(value) if isinstance(value, list) else None


def concat(*texts: str | None) -> str | None:
    """Merge objects into one; join anything else into one array; nothing gives NULL."""
    if not texts:
        return None
    values: list[Any] = []
    for text in texts:
        value: Any = MISSING if text is None else parse_json(text)
        if value is MISSING:
            return None
        values.append(value)
    if all(isinstance(value, dict) for value in values):
        merged: dict[str, Any] = {}
        for value in values:
            merged |= value
        return json_text(merged)
    joined: list[Any] = []
    for value in values:
        joined += value if isinstance(value, list) else [value]
    return json_text(joined)


def items(text: str) -> list[str]:
    """Return the elements of an array as JSON texts."""
    value = parse_json(text)
    if not isinstance(value, list):
        raise NotAnArray(text)
    return list(map(json_text, value))


def keys(text: str) -> list[str] | None:
    """Return the names in an object; NULL if it is none."""
    value = parse_json(text)
    return list(map(from_units, value)) if isinstance(value, dict) else None


def records(text: str) -> dict[str, str] | None:
    """Return an object as a map: texts as they are, all else as JSON; NULL if it is no object."""
    value = parse_json(text)
    if not isinstance(value, dict):
        return None
    return {from_units(name): _unquoted(part) for name, part in value.items()}


def _double(value: float) -> str:
    text = java_double(value)
    return f'"{text}"' if text.endswith(("NaN", "Infinity")) else text


_WRITERS: dict[SqlType, Callable[[Any], str]] = {
    model.BOOLEAN: lambda value: "true" if value else "false",
    model.INTEGER: str,
    model.BIGINT: str,
    model.DOUBLE: _double,
    model.STRING: quote,
    model.BYTES: lambda value: f'"{base64.b64encode(value).decode("ascii")}"',
    model.DATE: lambda value: f'"{format_date(value)}"',
    model.TIME: lambda value: f'"{format_time(value)}"',
    model.TIMESTAMP: lambda value: f'"{format_timestamp(value)}"',
    model.NULL: lambda _: "null",
}


def _writer(type_: SqlType) -> Callable[[Any], str]:
    """Return a function that writes values as JSON; names in objects are in order."""
    write: Callable[[Any], str]
    match type_:
        case model.Array(item):
            write = _array(_writer(item))
        case model.Map(key, item):
            write = _object(stringer(key), _writer(item))
        case model.Struct(fields):
            write = _struct({field.name: _writer(field.type) for field in fields})
        case model.Decimal():
            write = _decimal
        case _:
            write = _WRITERS[type_]
    return lambda value: "null" if value is None else write(value)


def _decimal(value: Dec) -> str:
    return f"{value:f}"


def _array(item: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: f"[{','.join(map(item, value))}]"


def _object(key: Callable[[Any], str], item: Callable[[Any], str]) -> Callable[[Any], str]:
    def write(value: dict[Any, Any]) -> str:
        pairs = sorted((key(name), item(part)) for name, part in value.items())
        return f"{{{','.join(f'{quote(name)}:{part}' for name, part in pairs)}}}"

    return write


def _struct(fields: dict[str, Callable[[Any], str]]) -> Callable[[Any], str]:
    ordered = sorted(fields.items())

    def write(value: dict[str, Any]) -> str:
        return f"{{{','.join(f'{quote(name)}:{of(value.get(name))}' for name, of in ordered)}}}"

    return write


JSONS = family(
    "JSON",
    {
        "extractjsonfield": (
            "The part of a JSON text that a path such as $.name[0] leads to.",
            Scalar(("STRING input", "STRING path"), "STRING", extract),
        ),
        "is_json_string": (
            "Whether a text is JSON.",
            Scalar(("STRING input",), "BOOLEAN", is_json, nulls="pass"),
        ),
        "json_array_contains": (
            "Whether a JSON array has an element.",
            Scalar(("STRING jsonArray", "T val"), "BOOLEAN", typed=_array_contains, nulls="pass"),
        ),
        "json_array_length": (
            "The number of elements of a JSON array.",
            Scalar(("STRING jsonArray",), "INT", array_length),
        ),
        "json_concat": (
            "JSON objects merged, or JSON values joined into an array.",
            Scalar(("STRING... jsonStrings",), "STRING", concat, nulls="pass"),
        ),
        "json_items": (
            "The elements of a JSON array as an array of JSON texts.",
            Scalar(("STRING jsonItems",), "ARRAY<STRING>", items),
        ),
        "json_keys": (
            "The names at the top of a JSON object.",
            Scalar(("STRING jsonObj",), "ARRAY<STRING>", keys),
        ),
        "json_records": (
            "A JSON object as a map of texts.",
            Scalar(("STRING jsonObj",), "MAP<STRING, STRING>", records),
        ),
        "to_json_string": (
            "Any value as JSON.",
            Scalar(
                ("T val",),
                "STRING",
                typed=lambda types: _writer(types[0]),
                nulls="pass",
            ),
        ),
    },
)
