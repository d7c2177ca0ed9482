"""A JSON value as a value of a SQL type, by coercion; or of one of several types (a union).

Generated readers test for the expected Python class themselves and come here with everything else.
Source: docs/formats.md#json.

A value of one of several types becomes a struct with a member for each.

The first type that the value may be of counts; among objects it is the one that shares most names.
Source: docs/formats.md#json_sr; Confluent's converter (``oneOf``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

import orjson

from ksql.core.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, model, wrap32, wrap64
from ksql.formats.serde import (
    BadText,
    UnreadableValue,
    Value,
    check_time,
    fitting,
    parse_base64,
    parse_decimal,
    parse_double,
    parse_int,
    parse_long,
)
from ksql.java import mended

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core.types import SqlType


_EXACT_DOUBLE = 2.0**53


class NeedExact(Exception):
    """The fast reader lost digits that matter here: read the record again, exactly."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_exact = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)
_BLANKS = " \t\r\n"
_DIGITS = bytes(ord("0") if chr(byte) in "0123456789." else 0 for byte in range(256))
_LONG_NUMBER = b"0" * 16


def load_exact(data: bytes) -> Value:
    """Parse JSON with every digit kept; text after the document does not count.

    Raises: ValueError, RecursionError.
    """
    text = data.decode("utf-8-sig").lstrip(_BLANKS)
    value, _ = _exact.raw_decode(text)
    return mended(value) if "\\u" in text else value


def load_short(data: bytes) -> Value:
    """Parse JSON fast where every number has at most 15 digits: a double then keeps them all.

    Raises: NeedExact, ValueError.
    """
    if _LONG_NUMBER in data.translate(_DIGITS):
        raise NeedExact
    return orjson.loads(data)


def node_name(value: Value) -> str:
    """Return the name that the reader that we follow gives to a node of that kind."""
    match value:
        case None:
            return "NullNode"
        case bool():
            return "BooleanNode"
        case int() if INT_MIN <= value <= INT_MAX:
            return "IntNode"
        case int() if LONG_MIN <= value <= LONG_MAX:
            return "LongNode"
        case int():
            return "BigIntegerNode"
        case float() | Decimal():
            return "DecimalNode"
        case str():
            return "TextNode"
        case list():
            return "ArrayNode"
        case _:
            return "ObjectNode"


def wrong_kind(value: Value, target: str, path: str) -> UnreadableValue:
    """Return the error for a value of another kind than the type can take."""
    return UnreadableValue(
        f"Can't convert type. sourceType: {node_name(value)}, requiredType: {target}", path
    )


def _bad_text(target: str, path: str) -> UnreadableValue:
    return UnreadableValue(f"Can't coerce string to type. targetType: {target}", path)


def _truncated(value: float | Decimal) -> int:
    """Return the number without its fraction."""
    if type(value) is float:
        if -_EXACT_DOUBLE < value < _EXACT_DOUBLE:
            return int(value)
        raise NeedExact
    exact = Decimal(value)
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and exponent > 64:
        return 0  # a multiple of 2^64: nothing is left when it is wrapped
    return int(exact) if exact and exact.adjusted() >= 0 else 0


def _integer_reader(
    target: str,
    parse: Callable[[str], int],
    wrap: Callable[[int], int],
    check: Callable[[int], int] | None = None,
) -> Callable[[Value, str], int | None]:
    def read(value: Value, path: str) -> int | None:
        if value is None:
            return None
        kind = type(value)
        try:
            if kind is int:
                number = wrap(value)
            elif kind is float or kind is Decimal:
                number = wrap(_truncated(value))
            elif kind is str:
                number = parse(value)
            else:
                raise wrong_kind(value, target, path)
        except BadText:
            raise _bad_text(target, path) from None
        if check is None:
            return number
        try:
            return check(number)
        except BadText as error:
            raise UnreadableValue(str(error), path) from None

    return read


def to_boolean(value: Value, path: str) -> bool | None:
    """Return true, false or null for BOOLEAN; refuse anything else."""
    if value is None or type(value) is bool:
        return value
    raise wrong_kind(value, "BOOLEAN", path)


def to_double(value: Value, path: str) -> float | None:
    """Return a DOUBLE from a number or a text."""
    if value is None:
        return None
    kind = type(value)
    if kind is float or kind is int or kind is Decimal:
        try:
            return float(value) + 0.0  # a number of JSON has no negative zero
        except OverflowError:
            return float("-inf") if value < 0 else float("inf")
    if kind is str:
        try:
            return parse_double(value)
        except BadText:
            raise _bad_text("DOUBLE", path) from None
    raise wrong_kind(value, "DOUBLE", path)


def to_string(value: Value, path: str) -> str | None:
    """Return a STRING from any JSON: the text of the number, the compact JSON of the object."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case list():
            texts = (to_string(item, path) for item in value)
            return f"[{', '.join('null' if text is None else text for text in texts)}]"
        case dict():
            return _compact(value)
        case float():
            raise NeedExact
        case _:
            return _digits(value)


def _digits(value: Value) -> str:
    """Return the text of an exact number: no zero is negative."""
    return str(value if value else abs(value))


def _compact(value: Value) -> str:
    match value:
        case dict():
            pairs = (f"{_compact(key)}:{_compact(item)}" for key, item in value.items())
            return "{" + ",".join(pairs) + "}"
        case list():
            return f"[{','.join(map(_compact, value))}]"
        case str():
            return orjson.dumps(value).decode()
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            raise NeedExact
        case _:
            return _digits(value)


def to_bytes(value: Value, path: str) -> bytes | None:
    """Return BYTES from a Base64 text."""
    if value is None:
        return None
    if type(value) is not str:
        raise wrong_kind(value, "BYTES", path)
    try:
        return parse_base64(value)
    except BadText as error:
        raise UnreadableValue(str(error), path) from None


def decimal_reader(precision: int, scale: int) -> Callable[[Value, str], Decimal | None]:
    """Return the reader of DECIMAL(precision, scale).

    Numbers and texts that fit without rounding.
    """
    fit = fitting(precision, scale)

    def read(value: Value, path: str) -> Decimal | None:
        if value is None:
            return None
        kind = type(value)
        try:
            if kind is float:
                text = repr(value)
                if "e" in text:
                    raise NeedExact
                return fit(Decimal(text))
            if kind is int:
                return fit(Decimal(value))
            if kind is Decimal:
                return fit(value)
            if kind is str:
                return fit(_number(value, path))
        except BadText as error:
            raise UnreadableValue(str(error), path) from None
        raise wrong_kind(value, "DECIMAL", path)

    return read


def _number(text: str, path: str) -> Decimal:
    try:
        return parse_decimal(text)
    except BadText:
        raise _bad_text("DECIMAL", path) from None


to_int = _integer_reader("INTEGER", parse_int, wrap32)
to_bigint = _integer_reader("BIGINT", parse_long, wrap64)
to_timestamp = _integer_reader("TIMESTAMP", parse_long, wrap64)
to_date = _integer_reader("DATE", parse_long, wrap32)
to_time = _integer_reader("TIME", parse_long, wrap64, check_time)


class NameMatch:
    """Finds the property for each declared name: the exact one, else by upper case.

    Called only for objects that lack a name; objects of the same shape are looked at once.
    """

    __slots__ = ("_names", "_shapes")
    _MOST_SHAPES = 256

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._shapes: dict[tuple[str, ...], list[str | None]] = {}

    def __call__(self, members: dict[str, Any]) -> list[Any]:
        """Return the values in the order of the names; None where there is no property."""
        shape = tuple(members)
        properties = self._shapes.get(shape)
        if properties is None:
            properties = self._learn(shape)
        return [None if name is None else members[name] for name in properties]

    def places(self, members: dict[str, Any]) -> tuple[Any, ...]:
        """Return the object's shape, then the property for each name, None if it is not there."""
        shape = tuple(members)
        return shape, *(self._shapes.get(shape) or self._learn(shape))

    def _learn(self, shape: tuple[str, ...]) -> list[str | None]:
        upper = {name.upper(): name for name in shape}
        exact = set(shape)
        properties = [name if name in exact else upper.get(name) for name in self._names]
        if len(self._shapes) >= self._MOST_SHAPES:
            self._shapes.clear()
        self._shapes[shape] = properties
        return properties


Written = (
    Literal["boolean", "whole", "number", "fraction", "text", "array", "map"]
    | frozenset[str]
    | None
)
"""A member's JSON: its kind, the names of an object's properties, or None if it is neither."""

_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "whole": (int,),
    "number": (int, float, Decimal),
    "fraction": (float, Decimal),
    "text": (str,),
    "array": (list,),
    "map": (dict, list),
}


@dataclass(frozen=True, slots=True)
class OneOf(model.Struct):
    """A struct of which one member is there; ``written`` are the members' kinds of JSON."""

    written: tuple[Written, ...] = ()

    def choose(self, value: Any) -> int:
        """Return the index of the member that a value belongs to.

        Raises: UnreadableValue if it is none of them.
        """
        kind, chosen, most = type(value), -1, -1
        for index, written in enumerate(self.written):
            if isinstance(written, str):
                if kind in _CLASSES[written]:
                    return index
            elif written is not None and kind is dict:
                shared = len(written & value.keys())
                if shared > most:
                    chosen, most = index, shared
        if chosen < 0:
            shown = orjson.dumps(value, default=str).decode()
            raise UnreadableValue(f"Did not find matching oneof field for data: {shown}", "")
        return chosen


def has_choice(type_: SqlType) -> bool:
    """Return whether there is such a struct in the type."""
    match type_:
        case OneOf():
            return True
        case model.Array(item):
            return has_choice(item)
        case model.Map(_, value):
            return has_choice(value)
        case model.Struct(fields):
            return any(has_choice(field.type) for field in fields)
        case _:
            return False
