"""Avro schemas as a registry sees them: checked by the letter, and printed in one way.

Stricter and fuller than what the formats need (``ksql.formats.avro.schema``): aliases, defaults and
every extra attribute stay, since the text that comes back must be the schema that was sent.
Source: the Avro specification 1.11, schema declaration and names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from ksql.formats.avro.schema import BrokenAvro, document

Json = Any
"""A parsed JSON document."""

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED: Final = frozenset(
    {
        *("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size"),
        *("items", "values"),
    }
)
_FIELD_RESERVED: Final = frozenset({"name", "type", "doc", "default", "order", "aliases"})
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})
_INT: Final = 1 << 31
_LONG: Final = 1 << 63


@dataclass(eq=False)
class Primitive:
    """A type without parts."""

    kind: str
    props: Mapping[str, Json] = field(default_factory=dict)


@dataclass(eq=False)
class Array:
    """Items of one type."""

    items: Type
    props: Mapping[str, Json] = field(default_factory=dict)
    kind: str = "array"


@dataclass(eq=False)
class Map:
    """Values of one type by text."""

    values: Type
    props: Mapping[str, Json] = field(default_factory=dict)
    kind: str = "map"


@dataclass(eq=False)
class Union:
    """One of several types."""

    branches: tuple[Type, ...]
    kind: str = "union"


@dataclass(eq=False)
class Named:
    """What all named types have; ``aliases`` are full names.

    ``imported`` ones are defined in another schema.
    """

    name: str
    kind: str
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    props: Mapping[str, Json] = field(default_factory=dict)
    imported: bool = field(default=False, init=False)

    @property
    def space(self) -> str:
        """The namespace."""
        return self.name.rpartition(".")[0]

    @property
    def short(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class Fixed(Named):
    """So many bytes."""

    size: int = 0


@dataclass(eq=False)
class Enum(Named):
    """One of the symbols; ``default`` stands for unknown ones."""

    symbols: tuple[str, ...] = ()
    default: str | None = None


@dataclass(eq=False)
class FieldType:
    """A field of a record."""

    name: str
    type: Type
    has_default: bool = False
    default: Json = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    order: str = "ascending"
    props: Mapping[str, Json] = field(default_factory=dict)


@dataclass(eq=False)
class Record(Named):
    """Fields, which may lead back to the record."""

    fields: list[FieldType] = field(default_factory=list)


Type = Primitive | Array | Map | Union | Fixed | Enum | Record


def parse(text: str, imported: Iterable[str] = ()) -> Type:
    """The type that a text declares; ``imported`` are the texts whose names it may use.

    Raises: BrokenAvro.
    """
    try:
        reader = _Reader()
        waiting = [document(one) for one in imported]
        for _ in range(len(waiting)):  # in an order in which each finds the names it needs
            waiting = [one for one in waiting if not reader.knows(one)]
        return reader.type(document(text), "")
    except RecursionError as error:
        raise BrokenAvro("it is nested too deeply") from error


class _Reader:
    def __init__(self) -> None:
        self._named: dict[str, Fixed | Enum | Record] = {}

    def knows(self, schema: Json) -> bool:
        before = dict(self._named)
        try:
            self.type(schema, "")
        except BrokenAvro:
            self._named = before
            return False
        for one in self._named.values():
            one.imported = True
        return True

    def type(self, schema: Json, space: str) -> Type:
        if isinstance(schema, str):
            return self._by_name(schema, space)
        if isinstance(schema, list):
            return self._union(schema, space)
        if not isinstance(schema, dict) or "type" not in schema:
            raise BrokenAvro(f"no type in {_shown(schema)}")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.type(kind, space)
        props = {key: value for key, value in schema.items() if key not in _RESERVED}
        match kind:
            case _ if kind in PRIMITIVES:
                return Primitive(kind, props)
            case "array":
                return Array(self.type(_needed(schema, "items"), space), props)
            case "map":
                return Map(self.type(_needed(schema, "values"), space), props)
            case "record" | "error":
                return self._record(kind, schema, space, props)
            case "enum":
                return self._enum(schema, space, props)
            case "fixed":
                return self._fixed(schema, space, props)
            case _:
                return self._by_name(kind, space)

    def _by_name(self, name: str, space: str) -> Type:
        if name in PRIMITIVES:
            return Primitive(name)
        full = name if "." in name or not space else f"{space}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise BrokenAvro(f'"{full}" is not defined')
        return found

    def _union(self, schemas: list[Json], space: str) -> Type:
        branches = tuple(self.type(one, space) for one in schemas)
        seen: set[str] = set()
        for one in branches:
            if isinstance(one, Union):
                raise BrokenAvro("a union directly inside a union")
            name = one.name if isinstance(one, Named) else one.kind
            if name in seen:
                raise BrokenAvro(f"a union has {name} twice")
            seen.add(name)
        return Union(branches)

    def _record(
        self, kind: str, schema: dict[str, Json], space: str, props: dict[str, Json]
    ) -> Type:
        name, aliases = _named(schema, space)
        record = Record(name, kind, aliases, _doc(schema), props)
        self._define(record)
        fields = _needed(schema, "fields")
        if not isinstance(fields, list):
            raise BrokenAvro(f'the fields of "{name}" are no list')
        for one in fields:
            made = self._field(one, record)
            if any(known.name == made.name for known in record.fields):
                raise BrokenAvro(f'"{name}" has two fields "{made.name}"')
            record.fields.append(made)
        return record

    def _field(self, schema: Json, record: Record) -> FieldType:
        if not isinstance(schema, dict):
            raise BrokenAvro(f'a field of "{record.name}" is no object')
        name = _checked_name(_needed(schema, "name"))
        order = schema.get("order", "ascending")
        if not isinstance(order, str) or order not in _ORDERS:
            raise BrokenAvro(f'the field "{name}" has the unknown order {_shown(order)}')
        made = FieldType(
            name,
            self.type(_needed(schema, "type"), record.space),
            "default" in schema,
            schema.get("default"),
            _texts(schema, "aliases"),
            _doc(schema),
            order,
            {key: value for key, value in schema.items() if key not in _FIELD_RESERVED},
        )
        if made.has_default and not _fits(made.default, made.type):
            raise BrokenAvro(f'the default {_shown(made.default)} of the field "{name}" is of no '
                             "type that the field has")  # fmt: skip
        return made

    def _enum(self, schema: dict[str, Json], space: str, props: dict[str, Json]) -> Type:
        name, aliases = _named(schema, space)
        symbols = _texts(schema, "symbols")
        if "symbols" not in schema or len(set(symbols)) < len(symbols):
            raise BrokenAvro(f'the symbols of "{name}" are missing or not distinct')
        for one in symbols:
            _checked_name(one)
        default = props.pop("default", None)
        if default is not None and default not in symbols:
            raise BrokenAvro(f'the default {_shown(default)} is no symbol of "{name}"')
        made = Enum(name, "enum", aliases, _doc(schema), props, symbols, default)
        return self._define(made)

    def _fixed(self, schema: dict[str, Json], space: str, props: dict[str, Json]) -> Type:
        name, aliases = _named(schema, space)
        size = _needed(schema, "size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise BrokenAvro(f'"{name}" has the size {_shown(size)}')
        return self._define(Fixed(name, "fixed", aliases, _doc(schema), props, size))

    def _define(self, made: Fixed | Enum | Record) -> Type:
        if made.name in self._named:
            raise BrokenAvro(f'"{made.name}" is defined twice')
        self._named[made.name] = made
        return made


def _needed(schema: dict[str, Json], key: str) -> Json:
    if key not in schema:
        raise BrokenAvro(f'"{key}" is missing in {_shown(schema)}')
    return schema[key]


def _shown(schema: Json) -> str:
    return orjson.dumps(schema).decode()[:100]


def _doc(schema: dict[str, Json]) -> str | None:
    found = schema.get("doc")
    return found if isinstance(found, str) else None


def _texts(schema: dict[str, Json], key: str) -> tuple[str, ...]:
    found = schema.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise BrokenAvro(f'"{key}" is no list of texts')
    return tuple(found)


def _checked_name(name: Json) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise BrokenAvro(f"{_shown(name)} is no name")
    return name


def _named(schema: dict[str, Json], space: str) -> tuple[str, tuple[str, ...]]:
    """The full name of a named type and its aliases."""
    name = _needed(schema, "name")
    given = schema.get("namespace", space)
    if not isinstance(name, str) or not isinstance(given, str | None):
        raise BrokenAvro(f"{_shown(name)} is no name")
    full = name if "." in name or not given else f"{given}.{name}"
    for part in full.removeprefix(".").split("."):
        _checked_name(part)
    if full in PRIMITIVES:
        raise BrokenAvro(f"{full} cannot be defined anew")
    inner = full.rpartition(".")[0]
    aliases = tuple(
        one if "." in one or not inner else f"{inner}.{one}" for one in _texts(schema, "aliases")
    )
    return full, aliases


def _fits(value: Json, type_: Type) -> bool:
    """Whether a default is one of that type; bytes are written as text."""
    match type_:
        case Primitive(kind):
            return _fits_primitive(value, kind)
        case Enum():
            return value in type_.symbols
        case Fixed():
            return isinstance(value, str)
        case Array(items):
            return isinstance(value, list) and all(_fits(one, items) for one in value)
        case Map(values):
            return isinstance(value, dict) and all(_fits(one, values) for one in value.values())
        case Union(branches):
            return any(_fits(value, one) for one in branches)
        case Record():
            return isinstance(value, dict) and all(
                _fits(value[one.name], one.type) if one.name in value else one.has_default
                for one in type_.fields
            )


def _fits_primitive(value: Json, kind: str) -> bool:
    if isinstance(value, bool) or value is None:
        return kind == ("null" if value is None else "boolean")
    match kind:
        case "int":
            return isinstance(value, int) and -_INT <= value < _INT
        case "long":
            return isinstance(value, int) and -_LONG <= value < _LONG
        case "float" | "double":
            return isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity")
        case "bytes" | "string":
            return isinstance(value, str)
        case _:
            return False
