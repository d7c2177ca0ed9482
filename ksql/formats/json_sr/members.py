"""Compares two JSON Schemas' objects by their properties, and arrays by their items.

An object is open (anything may be in it), closed (only its properties) or partly open (patterns, or
a schema for more). Arrays whose first items have schemas of their own are alike. A property that is
added to an open object may be there already, with values of any type. Source: Confluent
documentation, schema evolution and compatibility, JSON Schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.java.regex import BadRegex, TooSlow, compile_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.formats.json_sr.compat import JsonSchemaComparison
    from ksql.formats.json_sr.model import Json, Node
    from ksql.formats.kind import Difference


class Objects:
    """The properties of two objects."""

    def __init__(self, on: JsonSchemaComparison, reader: Node, writer: Node, path: str) -> None:
        self._on = on
        self._nodes = (reader, writer)
        self._new, self._old = reader.schema, writer.schema
        self._path = path

    def compare(self) -> Iterator[Difference]:
        new, old = _object(self._new, "properties"), _object(self._old, "properties")
        for name in dict.fromkeys((*old, *new)):
            path = f"{self._path}/properties/{name}"
            try:
                yield from self._property(name, new, old, path)
            except TooSlow:
                yield self._on.difference("PATTERN_PROPERTIES_UNDECIDED", path)
        yield from self._required(new, old)
        yield from self._dependencies()
        yield from self._additional()

    def _property(
        self, name: str, new: Mapping[str, Json], old: Mapping[str, Json], path: str
    ) -> Iterator[Difference]:
        if name not in new:
            yield from self._removed(name, old[name], path)
        elif name not in old:
            yield from self._added(name, new[name], path)
        else:
            yield from self._on.inner(new[name], old[name], self._nodes, path)

    def _removed(self, name: str, old: Json, path: str) -> Iterator[Difference]:
        if _is_open(self._new):
            return
        covering = _covering(self._new, name)
        if covering is not None:
            yield from self._uncovered("REMOVED", covering, old, path)
        elif not self._on.is_never(old, self._nodes[1]):
            yield self._on.difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)

    def _added(self, name: str, new: Json, path: str) -> Iterator[Difference]:
        covering = _covering(self._old, name)
        if _is_open(self._old):
            if self._on.reader_node(new, self._nodes[0]).kind != "any":
                yield self._on.difference("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path)
        elif covering is not None:
            yield from self._uncovered("ADDED", new, covering, path)
        elif name in self._new.get("required", ()) and not _has_default(new):
            yield self._on.difference("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", path)

    def _uncovered(self, change: str, new: Json, old: Json, path: str) -> Iterator[Difference]:
        differences = self._on.inner(new, old, self._nodes, path)
        yield from differences
        if differences:
            kind = f"PROPERTY_{change}_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
            yield self._on.difference(kind, path)

    def _required(self, new: Mapping[str, Json], old: Mapping[str, Json]) -> Iterator[Difference]:
        known = self._old.get("required", ())
        for name in self._new.get("required", ()):
            told_already = name in new and name not in old and not _is_open(self._old)
            if name not in known and not told_already and not _has_default(new.get(name)):
                yield self._on.difference(
                    "REQUIRED_ATTRIBUTE_ADDED", f"{self._path}/required/{name}"
                )

    def _dependencies(self) -> Iterator[Difference]:
        new, old = _dependencies(self._new), _dependencies(self._old)
        for name, needed in new.items():
            path = f"{self._path}/dependencies/{name}"
            had = old.get(name)
            match needed, had:
                case list(), list():
                    if not set(needed) <= set(had):
                        more = "EXTENDED" if set(had) <= set(needed) else "CHANGED"
                        yield self._on.difference(f"DEPENDENCY_ARRAY_{more}", path)
                case list(), _:
                    yield self._on.difference("DEPENDENCY_ARRAY_ADDED", path)
                case _, (dict() | bool()):
                    yield from self._on.inner(needed, had, self._nodes, path)
                case _:
                    yield self._on.difference("DEPENDENCY_SCHEMA_ADDED", path)

    def _additional(self) -> Iterator[Difference]:
        path = f"{self._path}/additionalProperties"
        new = self._new.get("additionalProperties", True)
        old = self._old.get("additionalProperties", True)
        yield from _more(self._on, new, old, self._nodes, path, "ADDITIONAL_PROPERTIES")


class Arrays:
    """The items of two arrays; a list of schemas is for the first items."""

    def __init__(self, on: JsonSchemaComparison, reader: Node, writer: Node, path: str) -> None:
        self._on = on
        self._nodes = (reader, writer)
        self._new, self._old = _items(reader.schema), _items(writer.schema)
        self._path = path

    def compare(self) -> Iterator[Difference]:
        if self._nodes[0].schema.get("uniqueItems") and not self._nodes[1].schema.get(
            "uniqueItems"
        ):
            yield self._on.difference("UNIQUE_ITEMS_ADDED", f"{self._path}/uniqueItems")
        (first, rest), (old_first, old_rest) = self._new, self._old
        if first is None and old_first is None:
            yield from self._on.inner(rest, old_rest, self._nodes, f"{self._path}/items")
            return
        for index in range(max(len(first or ()), len(old_first or ()))):
            yield from self._item(index, first or (), old_first or ())
        path = f"{self._path}/additionalItems"
        ours, theirs = _or_true(rest), _or_true(old_rest)
        yield from _more(self._on, ours, theirs, self._nodes, path, "ADDITIONAL_ITEMS")

    def _item(self, index: int, new: Sequence[Json], old: Sequence[Json]) -> Iterator[Difference]:
        path = f"{self._path}/items/{index}"
        if index < len(new) and index < len(old):
            yield from self._on.inner(new[index], old[index], self._nodes, path)
        elif index < len(old):
            rest = _or_true(self._new[1])
            if rest is False:
                if not self._on.is_never(old[index], self._nodes[1]):
                    yield self._on.difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
            elif differences := self._on.inner(rest, old[index], self._nodes, path):
                yield from differences
                kind = "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                yield self._on.difference(kind, path)
        else:
            rest = _or_true(self._old[1])
            if rest is True:
                if self._on.reader_node(new[index], self._nodes[0]).kind != "any":
                    yield self._on.difference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path)
            elif rest is not False and (
                differences := self._on.inner(new[index], rest, self._nodes, path)
            ):
                yield from differences
                kind = "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                yield self._on.difference(kind, path)


def _more(
    on: JsonSchemaComparison, new: Json, old: Json, nodes: tuple[Node, Node], path: str, what: str
) -> Iterator[Difference]:
    """Compare what is allowed beyond what is declared."""
    if old is False or new is True:
        return
    if new is False:
        yield on.difference(f"{what}_REMOVED", path)
    elif old is True:
        if on.reader_node(new, nodes[0]).kind != "any":
            yield on.difference(f"{what}_NARROWED", path)
    else:
        yield from on.inner(new, old, nodes, path)


def _object(schema: Mapping[str, Json], keyword: str) -> Mapping[str, Json]:
    members = schema.get(keyword)
    return members if isinstance(members, dict) else {}


def _is_open(schema: Mapping[str, Json]) -> bool:
    return not schema.get("patternProperties") and schema.get("additionalProperties", True) is True


def _covering(schema: Mapping[str, Json], name: str) -> Json | None:
    """Return the schema for a property that is not declared in a partly open object."""
    for pattern, covering in _object(schema, "patternProperties").items():
        if _is_in(pattern, name):
            return covering
    more = schema.get("additionalProperties", True)
    return more if isinstance(more, dict) else None


def _is_in(pattern: str, name: str) -> bool:
    """Return whether a stranger's pattern is in a name; one of another dialect is in none.

    Raises: TooSlow.
    """
    try:
        return compile_java(pattern).search(name) is not None
    except BadRegex:
        return False


def _has_default(schema: Json) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _dependencies(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    return {
        **_object(schema, "dependencies"),
        **_object(schema, "dependentRequired"),
        **_object(schema, "dependentSchemas"),
    }


def _items(schema: Mapping[str, Json]) -> tuple[list[Json] | None, Json | None]:
    """Return the schemas of the first items, or None; and that of all others, or None."""
    if isinstance(schema.get("prefixItems"), list):
        return schema["prefixItems"], schema.get("items")
    items = schema.get("items")
    if isinstance(items, list):
        return items, schema.get("additionalItems")
    return None, items


def _or_true(schema: Json | None) -> Json:
    return True if schema is None else schema
