"""Reads texts of Avro schemas as trees, and prints them as Avro's own library does.

The demands on a schema besides its structure are a matter of ``Rules``.

Two texts that differ only in white space or in the order of their attributes are one schema.
Source: the Avro specification 1.11; the order of attributes is that of Avro's Java library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from ksql.formats.avro import tree
from ksql.formats.avro.tree import BrokenAvro, Json, Node

_RESERVED: Final = frozenset(
    {
        *("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size"),
        *("items", "values"),
    }
)
_DECLARED: Final = frozenset({*tree.PRIMITIVES, "array", "map", "record", "error", "enum", "fixed"})
_FIELD_RESERVED: Final = frozenset({"name", "type", "doc", "default", "order", "aliases"})


@dataclass(frozen=True, slots=True)
class Rules:
    """The demands on a schema besides its structure.

    ``check`` raises BrokenAvro for a part that was made of a JSON document; fields are checked
    before their record. ``redefines``: a name may be defined again, and then means the last.
    """

    check: Callable[[Node | tree.Field, Json], None]
    redefines: bool


def _readable(part: Node | tree.Field, _schema: Json) -> None:
    if isinstance(part, tree.Fixed) or (isinstance(part, tree.Primitive) and part.kind == "bytes"):
        tree.decimal_of(part.props)


READING: Final = Rules(_readable, redefines=True)
"""A reader of records takes every schema that it can follow."""


def parse(text: str, imported: Iterable[str] = (), rules: Rules = READING) -> Node:
    """Parse the type that a text declares; ``imported`` are the texts whose names it may use.

    Raises: BrokenAvro.
    """
    try:
        reader = _AvroSchemaReader(rules)
        waiting = [document(one) for one in imported]
        for _ in range(len(waiting)):  # in an order in which each finds the names it needs
            waiting = [one for one in waiting if not reader.knows(one)]
        return reader.node(document(text), "")
    except RecursionError as error:
        raise BrokenAvro("it is nested too deeply") from error


def document(text: str) -> Json:
    """Parse a schema's text as JSON; the bare name of a primitive type is a schema too.

    Raises: BrokenAvro.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if text.strip() in tree.PRIMITIVES:
            return text.strip()
        raise BrokenAvro(str(error)) from error


class _AvroSchemaReader:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._named: dict[str, tree.Fixed | tree.Enum | tree.RecordType] = {}

    def knows(self, schema: Json) -> bool:
        before = dict(self._named)
        try:
            self.node(schema, "")
        except BrokenAvro:
            self._named = before
            return False
        for one in self._named.values():
            one.imported = True
        return True

    def node(self, schema: Json, space: str) -> Node:
        node: Node
        if isinstance(schema, str):
            return self._by_name(schema, space)
        if isinstance(schema, list):
            node = tree.Union(tuple(self.node(one, space) for one in schema))
        elif not isinstance(schema, dict) or "type" not in schema:
            raise BrokenAvro(f"no type in {shown(schema)}")
        elif not isinstance(schema["type"], str) or schema["type"] not in _DECLARED:
            return self.node(schema["type"], space)
        else:
            node = self._declared(schema, space)
        self._rules.check(node, schema)
        return node

    def _declared(self, schema: dict[str, Json], space: str) -> Node:
        props = {key: value for key, value in schema.items() if key not in _RESERVED}
        match schema["type"]:
            case kind if kind in tree.PRIMITIVES:
                return tree.Primitive(kind, props)
            case "array":
                return tree.Array(self.node(_needed(schema, "items"), space), props)
            case "map":
                return tree.Map(self.node(_needed(schema, "values"), space), props)
            case "record" | "error":
                return self._record(schema, space, props)
            case "enum":
                default = props.pop("default", None)
                symbols = tuple(map(str, _listed(schema, "symbols")))
                return self._define(
                    tree.Enum(*_named(schema, space), props, symbols=symbols, default=default)
                )
            case _:
                size = _needed(schema, "size")
                if not isinstance(size, int) or size < 0:
                    raise BrokenAvro(f"a fixed type has the size {shown(size)}")
                return self._define(tree.Fixed(*_named(schema, space), props, size=size))

    def _by_name(self, name: str, space: str) -> Node:
        if name in tree.PRIMITIVES:
            return tree.Primitive(name)
        full = _full(name, space)
        node = self._named.get(full) or self._named.get(name)
        if node is None:
            raise BrokenAvro(f'"{full}" is not defined')
        return node

    def _record(self, schema: dict[str, Json], space: str, props: dict[str, Json]) -> Node:
        record = tree.RecordType(*_named(schema, space), props)
        self._define(record)
        record.fields += (self._field(one, record) for one in _listed(schema, "fields"))
        return record

    def _field(self, schema: Json, record: tree.RecordType) -> tree.Field:
        if not isinstance(schema, dict):
            raise BrokenAvro(f'a field of "{record.name}" is no object')
        field = tree.Field(
            _text(schema, "name"),
            self.node(_needed(schema, "type"), record.space),
            "default" in schema,
            schema.get("default"),
            _texts(schema, "aliases"),
            _doc(schema),
            schema.get("order", "ascending"),
            {key: value for key, value in schema.items() if key not in _FIELD_RESERVED},
        )
        self._rules.check(field, schema)
        return field

    def _define(self, named: tree.Fixed | tree.Enum | tree.RecordType) -> Node:
        if named.name in self._named and not self._rules.redefines:
            raise BrokenAvro(f'"{named.name}" is defined twice')
        self._named[named.name] = named
        return named


def shown(schema: Json) -> str:
    """Return the beginning of a document, for messages."""
    return orjson.dumps(schema).decode()[:100]


def _needed(schema: dict[str, Json], key: str) -> Json:
    if key not in schema:
        raise BrokenAvro(f'"{key}" is missing in {shown(schema)}')
    return schema[key]


def _listed(schema: dict[str, Json], key: str) -> list[Json]:
    items = _needed(schema, key)
    if not isinstance(items, list):
        raise BrokenAvro(f'the {key} of "{schema.get("name")}" are no list')
    return items


def _text(schema: dict[str, Json], key: str) -> str:
    text = _needed(schema, key)
    if not isinstance(text, str):
        raise BrokenAvro(f"{shown(text)} is no {key}")
    return text


def _texts(schema: dict[str, Json], key: str) -> tuple[str, ...]:
    texts = schema.get(key)
    return tuple(one for one in texts if isinstance(one, str)) if isinstance(texts, list) else ()


def _doc(schema: dict[str, Json]) -> str | None:
    doc = schema.get("doc")
    return doc if isinstance(doc, str) else None


def _full(name: str, space: Json) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _named(schema: dict[str, Json], space: str) -> tuple[str, str, tuple[str, ...], str | None]:
    """Return the full name of a named type, its kind, its aliases, its documentation."""
    name, given = _text(schema, "name"), schema.get("namespace", space)
    if not name:
        raise BrokenAvro(f"{shown(name)} is no name")
    full = _full(name, given)
    inner = full.rpartition(".")[0]
    aliases = tuple(_full(one, inner) for one in _texts(schema, "aliases"))
    return full, schema["type"], aliases, _doc(schema)


def canonical_text(type_: Node, *, normalize: bool = False) -> str:
    """Return the type as text, its attributes in Avro's order.

    ``normalize`` sorts the extra ones too.
    """
    return orjson.dumps(_Printer(normalize).json(type_, "")).decode()


class _Printer:
    def __init__(self, normalize: bool) -> None:
        self._normalize = normalize
        self._seen: set[str] = set()

    def json(self, type_: Node, space: str) -> Json:
        match type_:
            case tree.Primitive(kind, props):
                return {"type": kind, **self._props(props)} if props else kind
            case tree.Array(items, props):
                return {"type": "array", "items": self.json(items, space), **self._props(props)}
            case tree.Map(values, props):
                return {"type": "map", "values": self.json(values, space), **self._props(props)}
            case tree.Union(branches):
                return [self.json(one, space) for one in branches]
            case tree.Fixed() | tree.Enum() | tree.RecordType():
                return self._named(type_, space)

    def _named(self, type_: tree.Fixed | tree.Enum | tree.RecordType, space: str) -> Json:
        if type_.imported or type_.name in self._seen:
            return type_.short if type_.space == space else type_.name
        self._seen.add(type_.name)
        out: dict[str, Json] = {"type": type_.kind, "name": type_.short}
        if type_.space != space:
            out["namespace"] = type_.space
        if type_.doc is not None:
            out["doc"] = type_.doc
        match type_:
            case tree.RecordType():
                out["fields"] = [self._field(one, type_.space) for one in type_.fields]
            case tree.Enum():
                out["symbols"] = type_.symbols
                if type_.default is not None:
                    out["default"] = type_.default
            case tree.Fixed():
                out["size"] = type_.size
        out.update(self._props(type_.props))
        if type_.aliases:
            inner = f"{type_.space}."
            out["aliases"] = [
                one.removeprefix(inner) if one.rpartition(".")[0] == type_.space else one
                for one in type_.aliases
            ]
        return out

    def _field(self, one: tree.Field, space: str) -> Json:
        out: dict[str, Json] = {"name": one.name, "type": self.json(one.type, space)}
        if one.doc is not None:
            out["doc"] = one.doc
        if one.has_default:
            out["default"] = one.default
        if one.order != "ascending":
            out["order"] = one.order
        if one.aliases:
            out["aliases"] = one.aliases
        return {**out, **self._props(one.props)}

    def _props(self, props: Mapping[str, Json]) -> Mapping[str, Json]:
        return dict(sorted(props.items())) if self._normalize else props
