"""Avro schemas checked by the letter, as a registry must before it keeps one.

Source: the Avro specification 1.11, schema declaration and names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from ksql.formats.avro import text as parser
from ksql.formats.avro import tree
from ksql.formats.avro.text import Rules, shown
from ksql.formats.avro.tree import BrokenAvro, Json, Node

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})
_INT: Final = 1 << 31
_LONG: Final = 1 << 63


def parse(text: str, imported: Iterable[str] = ()) -> Node:
    """Return the type that a text declares; ``imported`` are the texts whose names it may use.

    Raises: BrokenAvro.
    """
    return parser.parse(text, imported, STRICT)


def _check(part: Node | tree.Field, schema: Json) -> None:
    match part:
        case tree.Union():
            _check_union(part)
        case tree.Field():
            _check_field(part, schema)
        case tree.Fixed() | tree.Enum() | tree.RecordType():
            _check_named(part, schema)
        case _:
            return


STRICT: Final = Rules(_check, redefines=False)


def _check_union(union: tree.Union) -> None:
    seen: set[str] = set()
    for one in union.branches:
        if isinstance(one, tree.Union):
            raise BrokenAvro("a union directly inside a union")
        name = one.name if isinstance(one, tree.Named) else one.kind
        if name in seen:
            raise BrokenAvro(f"a union has {name} twice")
        seen.add(name)


def _check_field(field: tree.Field, schema: Json) -> None:
    _check_name(field.name)
    _check_texts(schema, "aliases")
    if not isinstance(field.order, str) or field.order not in _ORDERS:
        raise BrokenAvro(f'the field "{field.name}" has the unknown order {shown(field.order)}')
    if field.has_default and not _fits(field.default, field.type):
        raise BrokenAvro(
            f'the default {shown(field.default)} of the field "{field.name}" is of no type that '
            "the field has"
        )


def _check_named(named: tree.Fixed | tree.Enum | tree.RecordType, schema: Json) -> None:
    if not isinstance(schema.get("namespace"), str | None):
        raise BrokenAvro(f"{shown(schema['namespace'])} is no name")
    for part in named.name.removeprefix(".").split("."):
        _check_name(part)
    if named.name in tree.PRIMITIVES:
        raise BrokenAvro(f"{named.name} cannot be defined again")
    _check_texts(schema, "aliases")
    match named:
        case tree.RecordType():
            for name, times in Counter(one.name for one in named.fields).items():
                if times > 1:
                    raise BrokenAvro(f'"{named.name}" has two fields "{name}"')
        case tree.Enum():
            _check_symbols(named, schema)
        case tree.Fixed():
            if isinstance(named.size, bool):
                raise BrokenAvro(f'"{named.name}" has the size {shown(named.size)}')


def _check_symbols(enum: tree.Enum, schema: Json) -> None:
    _check_texts(schema, "symbols")
    if len(set(enum.symbols)) < len(enum.symbols):
        raise BrokenAvro(f'the symbols of "{enum.name}" are not distinct')
    for one in enum.symbols:
        _check_name(one)
    if enum.default is not None and enum.default not in enum.symbols:
        raise BrokenAvro(f'the default {shown(enum.default)} is no symbol of "{enum.name}"')


def _check_texts(schema: Json, key: str) -> None:
    texts = schema.get(key) or []
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise BrokenAvro(f'"{key}" is no list of texts')


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        raise BrokenAvro(f"{shown(name)} is no name")


def _fits(value: Json, type_: Node) -> bool:
    """Return whether a default is one of that type; bytes are written as text."""
    match type_:
        case tree.Primitive(kind):
            return _fits_primitive(value, kind)
        case tree.Enum():
            return value in type_.symbols
        case tree.Fixed():
            return isinstance(value, str)
        case tree.Array(items):
            return isinstance(value, list) and all(_fits(one, items) for one in value)
        case tree.Map(values):
            return isinstance(value, dict) and all(_fits(one, values) for one in value.values())
        case tree.Union(branches):
            return any(_fits(value, one) for one in branches)
        case tree.RecordType():
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
