"""A schema of test data: the columns of its records, and values for them.

It is an Avro schema whose types may have ``arg.properties``: ``options``, ``regex``, ``range``,
``iteration``, ``length``, ``odds``. Source: the Avro random generator; docs/datagen.md#schemas.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import count, cycle
from pathlib import Path
from random import Random
from typing import Any, Final

from ksql.core.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT_MAX,
    INT_MIN,
    INTEGER,
    LONG_MAX,
    LONG_MIN,
    STRING,
    Array,
    Column,
    Field,
    Map,
    SqlType,
    Struct,
)
from server.datagen.patterns import BadSchema, maker_of

Maker = Callable[[Random], Any]
QUICKSTARTS: Final = {"orders": "orderid", "users": "userid", "pageviews": "viewtime"}
"""The schemas that are here already, each with its key."""

_PRIMITIVES: Final[Mapping[str, SqlType]] = {
    "string": STRING,
    "int": INTEGER,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "bytes": BYTES,
}
_WHOLE: Final = {"int": (INT_MIN, INT_MAX), "long": (LONG_MIN, LONG_MAX)}
_ARGUMENTS: Final = "arg.properties"
_KNOWN: Final = frozenset({"options", "regex", "range", "iteration", "length", "odds"})
_LENGTH: Final = (8, 16)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class RecordSchema:
    """The columns of a record, and what makes a value of each, in the columns' order."""

    columns: tuple[Column, ...]
    makers: tuple[Maker, ...]

    def row(self, dice: Random) -> tuple[Any, ...]:
        """Return the values of one more record."""
        return tuple(make(dice) for make in self.makers)


def quickstart(name: str) -> RecordSchema:
    """Return the schema of that name of ``QUICKSTARTS``."""
    file = resources.files("server.datagen") / "schemas" / f"{name}.json"
    return schema_of(file.read_text("utf-8"))


def read(path: Path) -> RecordSchema:
    """Return the schema in a file.

    Raises: BadSchema, also for a file that cannot be read.
    """
    try:
        return schema_of(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadSchema(f"Cannot read the schema {path}: {why}.") from error


def schema_of(text: str) -> RecordSchema:
    """Return the schema of an Avro text.

    Raises: BadSchema.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BadSchema(f"The schema is not JSON: {error}.") from error
    if not isinstance(document, dict) or document.get("type") != "record":
        raise BadSchema("The schema is not an Avro record.")
    fields = [_field(entry) for entry in _fields(document)]
    return RecordSchema(
        tuple(Column(name, type_) for name, type_, _ in fields),
        tuple(make for _, _, make in fields),
    )


def _fields(record: Mapping[str, Any]) -> Sequence[Any]:
    fields = record.get("fields")
    if not isinstance(fields, list) or not fields:
        raise BadSchema("A record of the schema has no fields.")
    return fields


def _field(entry: Any) -> tuple[str, SqlType, Maker]:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise BadSchema(f"A field of the schema has no name: {json.dumps(entry)}.")
    return entry["name"], *_typed(entry.get("type"), entry["name"])


def _typed(type_: Any, place: str) -> tuple[SqlType, Maker]:
    """Return the SQL type of an Avro type, and what makes its values.

    Raises: BadSchema that names the field ``place``.
    """
    if isinstance(type_, list):
        return _union(type_, place)
    node = type_ if isinstance(type_, dict) else {"type": type_}
    name, given = node.get("type"), node.get(_ARGUMENTS, {})
    if isinstance(name, dict | list):
        return _typed(name, place)
    unknown = sorted(set(given) - _KNOWN)
    if unknown:
        raise BadSchema(f"{_ARGUMENTS} of {place} has {unknown[0]}, which is not supported.")
    if isinstance(name, str) and name in _PRIMITIVES:
        return _PRIMITIVES[name], _primitive(name, given, place)
    match name:
        case "record":
            return _record(node)
        case "array":
            item, make = _typed(node.get("items"), place)
            return Array(item), _many(make, given, place)
        case "map":
            value, make = _typed(node.get("values"), place)
            return Map(STRING, value), _mapped(make, given, place)
        case "enum":
            symbols = node.get("symbols") or []
            return STRING, _chosen(given.get("options", symbols), place)
        case _:
            raise BadSchema(f"The type {json.dumps(name)} of {place} is not supported.")


def _union(branches: Sequence[Any], place: str) -> tuple[SqlType, Maker]:
    """Return the one type of a union besides null; one value in ten is NULL then."""
    others = [branch for branch in branches if branch != "null"]
    if len(others) != 1:
        raise BadSchema(
            f"The union of {place} has {len(others)} types besides null; one is possible."
        )
    type_, make = _typed(others[0], place)
    if len(others) == len(branches):
        return type_, make
    return type_, lambda dice: None if dice.random() < 0.1 else make(dice)


def _record(node: Mapping[str, Any]) -> tuple[SqlType, Maker]:
    fields = [_field(entry) for entry in _fields(node)]
    makers = [(name, make) for name, _, make in fields]
    type_ = Struct(tuple(Field(name, type_) for name, type_, _ in fields))
    return type_, lambda dice: {name: make(dice) for name, make in makers}


def _primitive(name: str, given: Mapping[str, Any], place: str) -> Maker:
    if "options" in given:
        return _chosen(given["options"], place)
    if "iteration" in given:
        return _iterated(name, given["iteration"], place)
    match name:
        case "int" | "long":
            low, high = _range(given, _WHOLE[name], place)
            return lambda dice: dice.randint(int(low), int(high))
        case "float" | "double":
            low, high = _range(given, (0.0, 1.0), place)
            return lambda dice: dice.uniform(low, high)
        case "boolean":
            odds = float(given.get("odds", 0.5))
            return lambda dice: dice.random() < odds
        case "bytes":
            shortest, longest = _length(given, place)
            return lambda dice: dice.randbytes(dice.randint(shortest, longest))
        case _:
            if "regex" in given:
                return maker_of(str(given["regex"]))
            shortest, longest = _length(given, place)
            return lambda dice: _text(dice, shortest, longest)


def _chosen(options: Any, place: str) -> Maker:
    if not isinstance(options, list) or not options:
        raise BadSchema(f"The options of {place} are not a list of values.")
    return lambda dice: dice.choice(options)


def _iterated(name: str, given: Any, place: str) -> Maker:
    """Return what counts: from ``start`` by ``step``, and again from there before ``restart``."""
    if (
        not isinstance(given, dict)
        or "start" not in given
        or name in ("bytes", "boolean", "string")
    ):
        raise BadSchema(f"The iteration of {place} needs a start, and is for numbers.")
    start, step, end = given["start"], given.get("step", 1), given.get("restart")
    if not step or (end is not None and (end - start) * step <= 0):
        raise BadSchema(f"The iteration of {place} does not lead from its start to its restart.")
    numbers = count(start, step) if end is None else cycle(_steps(start, step, end))
    return lambda _dice: next(numbers)


def _steps(start: float, step: float, end: float) -> list[float]:
    return [start + number * step for number in range(math.ceil((end - start) / step))]


def _range(given: Mapping[str, Any], default: tuple[float, float], place: str) -> tuple[Any, Any]:
    bounds = given.get("range", {})
    low, high = bounds.get("min", default[0]), bounds.get("max", default[1])
    if high < low:
        raise BadSchema(f"The range of {place} ends before it begins.")
    return low, high


def _length(given: Mapping[str, Any], place: str) -> tuple[int, int]:
    length = given.get("length", {"min": _LENGTH[0], "max": _LENGTH[1]})
    if isinstance(length, int):
        return length, length
    low, high = int(length.get("min", 0)), int(length.get("max", _LENGTH[1]))
    if not 0 <= low <= high:
        raise BadSchema(f"The length of {place} ends before it begins.")
    return low, high


def _text(dice: Random, shortest: int, longest: int) -> str:
    return "".join(dice.choices(_LETTERS, k=dice.randint(shortest, longest)))


def _many(make: Maker, given: Mapping[str, Any], place: str) -> Maker:
    shortest, longest = _length(given, place)
    return lambda dice: [make(dice) for _ in range(dice.randint(shortest, longest))]


def _mapped(make: Maker, given: Mapping[str, Any], place: str) -> Maker:
    shortest, longest = _length(given, place)
    return lambda dice: {
        _text(dice, *_LENGTH): make(dice) for _ in range(dice.randint(shortest, longest))
    }
