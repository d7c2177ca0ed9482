"""Avro schemas as text, in the one way that Avro's own library prints them.

Two texts that differ only in white space or in the order of their attributes are one schema.
Source: the Avro specification 1.11; the order of attributes is that of Avro's Java library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ksql.formats.avro import tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.formats.avro.tree import Json, Node


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
            case tree.Fixed() | tree.Enum() | tree.Record():
                return self._named(type_, space)

    def _named(self, type_: tree.Fixed | tree.Enum | tree.Record, space: str) -> Json:
        if type_.imported or type_.name in self._seen:
            return type_.short if type_.space == space else type_.name
        self._seen.add(type_.name)
        out: dict[str, Json] = {"type": type_.kind, "name": type_.short}
        if type_.space != space:
            out["namespace"] = type_.space
        if type_.doc is not None:
            out["doc"] = type_.doc
        match type_:
            case tree.Record():
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
