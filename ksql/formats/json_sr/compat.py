"""Checks whether data that one JSON schema allows is allowed by another.

The differences, their names and which of them do no harm are Confluent's.
Source: Confluent documentation, schema evolution and compatibility, JSON Schema.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import orjson

from ksql.formats.json_sr.members import Arrays, Objects
from ksql.formats.kind import Comparison, Difference, Roles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.formats.json_sr.model import Document, Json, Kind, Node


_SUMS: Final = ("anyOf", "oneOf")
_TELLS: Final[Mapping[str, str]] = {
    "TYPE_CHANGED": "has another type",
    "TYPE_NARROWED": "has a narrower type",
    "SCHEMA_ADDED": "newly restricts what is",
    "PATTERN_ADDED": "adds a pattern",
    "PATTERN_CHANGED": "changes the pattern",
    "PATTERN_PROPERTIES_UNDECIDED": "has a pattern that takes too long to match",
    "MULTIPLE_OF_ADDED": "adds multipleOf",
    "MULTIPLE_OF_EXPANDED": "expands multipleOf",
    "MULTIPLE_OF_CHANGED": "changes multipleOf",
    "UNIQUE_ITEMS_ADDED": "newly demands unique items",
    "ENUM_ARRAY_NARROWED": "allows fewer values",
    "ENUM_ARRAY_CHANGED": "allows other values",
    "NOT_TYPE_EXTENDED": "excludes more",
    "COMBINED_TYPE_CHANGED": "combines schemas in another way",
    "PRODUCT_TYPE_EXTENDED": "demands more schemas at once",
    "SUM_TYPE_NARROWED": "has fewer alternatives",
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": "has incompatible alternatives",
    "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (
        "declares a property that was undeclared in an open content model, where it may have had"
        " any type,"
    ),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "has a closed content model and lacks a property",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "declares a property that does not fit the partially open content model"
    ),
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "lacks a property that its partially open content model does not cover"
    ),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (
        "adds a required property without a default"
    ),
    "REQUIRED_ATTRIBUTE_ADDED": "newly requires a property without a default",
    "DEPENDENCY_ARRAY_ADDED": "adds a dependency",
    "DEPENDENCY_ARRAY_EXTENDED": "extends a dependency",
    "DEPENDENCY_ARRAY_CHANGED": "changes a dependency",
    "DEPENDENCY_SCHEMA_ADDED": "adds a dependency",
    "ADDITIONAL_PROPERTIES_REMOVED": "no longer allows additional properties",
    "ADDITIONAL_PROPERTIES_NARROWED": "restricts additional properties",
    "ADDITIONAL_ITEMS_REMOVED": "no longer allows additional items",
    "ADDITIONAL_ITEMS_NARROWED": "restricts additional items",
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": "declares an item that was undeclared and could be any",
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": "has a closed content model and lacks an item",
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "declares an item that does not fit the schema of additional items"
    ),
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "lacks an item that the schema of additional items does not cover"
    ),
}
"""Every harmful difference, described; those of bounds have names made of the keyword's."""

_UPPER: Final = {
    "string": ("maxLength",),
    "number": ("maximum", "exclusiveMaximum"),
    "object": ("maxProperties",),
    "array": ("maxItems",),
}
_LOWER: Final = {
    "string": ("minLength",),
    "number": ("minimum", "exclusiveMinimum"),
    "object": ("minProperties",),
    "array": ("minItems",),
}


def differences(reader: Document, writer: Document, roles: Roles) -> list[Difference]:
    """Return all reasons why data that ``writer`` allows is not allowed by ``reader``."""
    comparison = JsonSchemaComparison(reader, writer, roles)
    return list(dict.fromkeys(comparison.compare(reader.root, writer.root, "#")))


class JsonSchemaComparison(Comparison["Node"]):
    """Compares the schemas of two documents; ``members`` asks it about inner ones."""

    def __init__(self, reader: Document, writer: Document, roles: Roles) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._roles = roles

    def differences(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        reader, writer = _alone(reader), _alone(writer)
        if writer.kind == "never" or reader.kind == "any":
            return
        combined = (reader.kind in (*_SUMS, "all"), writer.kind in (*_SUMS, "all"))
        match combined:
            case (True, True):
                yield from self._combined(reader, writer, path)
            case (True, False):
                yield from self._one_into_many(reader, writer, path)
            case (False, True):
                yield from self._many_into_one(reader, writer, path)
            case _:
                yield from self._plain(reader, writer, path)

    # --- combinations

    def _one_into_many(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        """Compare one schema with the several that it has become."""
        fits = [not self.compare(one, writer, path) for one in reader.parts]
        if not (all(fits) if reader.kind == "all" else any(fits)):
            yield self.difference("TYPE_CHANGED", path)

    def _many_into_one(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        """Compare several schemas with the one that they have become."""
        fits = [not self.compare(reader, one, path) for one in writer.parts]
        if not (any(fits) if writer.kind == "all" else all(fits)):
            kind = "SUM_TYPE_NARROWED" if any(fits) else "TYPE_CHANGED"
            yield self.difference(kind, path)

    def _combined(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        ours, theirs = len(reader.parts), len(writer.parts)
        product = reader.kind == "all"
        if product != (writer.kind == "all"):
            yield self.difference("COMBINED_TYPE_CHANGED", path)
            return
        if reader.kind == "oneOf" and writer.kind == "anyOf":
            yield self.difference("COMBINED_TYPE_CHANGED", path)
        if product and ours > theirs:
            yield self.difference("PRODUCT_TYPE_EXTENDED", path)
        elif not product and ours < theirs:
            yield self.difference("SUM_TYPE_NARROWED", path)
        elif self._matched(reader.parts, writer.parts, path) < min(ours, theirs):
            yield self.difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)

    def _matched(self, reader: Sequence[Node], writer: Sequence[Node], path: str) -> int:
        """Return how many schemas find a compatible one of their own (the largest matching)."""
        taken: dict[int, int] = {}

        def assign(index: int, tried: set[int]) -> bool:
            for other, one in enumerate(reader):
                if other not in tried and not self.compare(one, writer[index], path):
                    tried.add(other)
                    if other not in taken or assign(taken[other], tried):
                        taken[other] = index
                        return True
            return False

        return sum(assign(index, set()) for index in range(len(writer)))

    # --- single schemas

    def _plain(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        numbers = ("number", "integer")
        if reader.kind in numbers and writer.kind in numbers:
            if (reader.kind, writer.kind) == ("integer", "number"):
                yield self.difference("TYPE_NARROWED", path)
            yield from self._bounds("number", reader, writer, path)
            yield from self._multiples(reader, writer, path)
        elif reader.kind != writer.kind:
            yield self.difference("TYPE_CHANGED", path)
        else:
            yield from self._same_kind(reader.kind, reader, writer, path)

    def _same_kind(self, kind: Kind, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        match kind:
            case "string":
                yield from self._bounds("string", reader, writer, path)
                yield from self._pattern(reader, writer, path)
            case "object":
                yield from self._bounds("object", reader, writer, path)
                yield from Objects(self, reader, writer, path).compare()
            case "array":
                yield from self._bounds("array", reader, writer, path)
                yield from Arrays(self, reader, writer, path).compare()
            case "enum":
                yield from self._values(reader, writer, path)
            case "not":
                if self._swapped().compare(writer.parts[0], reader.parts[0], path):
                    yield self.difference("NOT_TYPE_EXTENDED", path)
            case _:
                return

    def _bounds(self, group: str, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        for keywords, sign in ((_UPPER, 1), (_LOWER, -1)):
            for keyword in keywords[group]:
                new, old = _bound(reader, keyword), _bound(writer, keyword)
                if new is None or new == old:
                    continue
                narrower = old is None or sign * new < sign * old
                if narrower:
                    change = "ADDED" if old is None else "DECREASED" if sign > 0 else "INCREASED"
                    yield self.difference(f"{_constant(keyword)}_{change}", f"{path}/{keyword}")

    def _multiples(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        new, old = reader.schema.get("multipleOf"), writer.schema.get("multipleOf")
        if new is None or new == old:
            return
        if old is None:
            yield self.difference("MULTIPLE_OF_ADDED", f"{path}/multipleOf")
        elif old % new != 0:
            kind = "MULTIPLE_OF_EXPANDED" if new % old == 0 else "MULTIPLE_OF_CHANGED"
            yield self.difference(kind, f"{path}/multipleOf")

    def _pattern(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        new, old = reader.schema.get("pattern"), writer.schema.get("pattern")
        if new is not None and new != old:
            kind = "PATTERN_ADDED" if old is None else "PATTERN_CHANGED"
            yield self.difference(kind, f"{path}/pattern")

    def _values(self, reader: Node, writer: Node, path: str) -> Iterator[Difference]:
        new, old = _allowed(reader), _allowed(writer)
        if not old <= new:
            kind = "ENUM_ARRAY_NARROWED" if new <= old else "ENUM_ARRAY_CHANGED"
            yield self.difference(kind, f"{path}/enum")

    # --- for objects and arrays

    def inner(
        self, reader: Json | None, writer: Json | None, nodes: tuple[Node, Node], path: str
    ) -> list[Difference]:
        """Compare schemas inside of two nodes; None is a schema that is not there."""
        if reader is None:
            return []
        if writer is None:
            harmless = self.reader_node(reader, nodes[0]).kind == "any"
            return [] if harmless else [self.difference("SCHEMA_ADDED", path)]
        return self.compare(
            self._reader.child(nodes[0], reader), self._writer.child(nodes[1], writer), path
        )

    def reader_node(self, schema: Json, node: Node) -> Node:
        """Return the node of a schema inside of one of the reader's."""
        return _alone(self._reader.child(node, schema))

    def is_never(self, schema: Json, node: Node) -> bool:
        """Return whether a schema inside of one of the writer's nodes allows nothing."""
        return _alone(self._writer.child(node, schema)).kind == "never"

    def difference(self, kind: str, path: str) -> Difference:
        """Return the difference in words."""
        what = _TELLS.get(kind) or f"has a narrower bound ({kind.lower().replace('_', ' ')})"
        return Difference(
            kind,
            path,
            f"The {self._roles.reader} schema {what} at path {path},"
            f" compared with the {self._roles.writer} schema",
        )

    def _swapped(self) -> JsonSchemaComparison:
        return JsonSchemaComparison(self._writer, self._reader, self._roles)


def _alone(node: Node) -> Node:
    """Reduce a combination of one schema to that schema."""
    while node.kind in (*_SUMS, "all") and len(node.parts) == 1:
        node = node.parts[0]
    return node


def _constant(keyword: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", keyword).upper()


def _bound(node: Node, keyword: str) -> float | None:
    """Return the value of a bound; draft 4 marks the plain one as exclusive."""
    bound = node.schema.get(keyword)
    if keyword.startswith("exclusive") and isinstance(bound, bool):
        plain = node.schema.get(keyword.removeprefix("exclusive").lower())
        bound = plain if bound else None
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else None


def _allowed(node: Node) -> frozenset[bytes]:
    values = node.schema["enum"] if "enum" in node.schema else [node.schema["const"]]
    return frozenset(orjson.dumps(one, option=orjson.OPT_SORT_KEYS) for one in values)
