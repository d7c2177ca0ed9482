"""JSON schemas as a tree of what they demand, references resolved, drafts made alike.

A schema that states several things at once is the sum of its parts: ``{"type": "string", "enum":
[..]}`` is "all of" a text and an enumeration.
Source: JSON Schema, drafts 4 to 2020-12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import orjson
from jsonschema import Draft7Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from ksql.formats.json_sr.schema import BrokenJsonSchema, document

Json = Any
"""A parsed JSON document."""

_NO_FORMATS: Final = FormatChecker(formats=())
"""Patterns are of JavaScript's dialect, which Python would judge wrongly."""

Kind = Literal[
    "any", "never", "null", "boolean", "string", "number", "integer", "object", "array",
    "enum", "not", "all", "anyOf", "oneOf",
]  # fmt: skip

_TYPES: Final[Mapping[str, Kind]] = {
    "null": "null",
    "boolean": "boolean",
    "string": "string",
    "number": "number",
    "integer": "integer",
    "object": "object",
    "array": "array",
}
_KEYWORDS: Final[Mapping[Kind, frozenset[str]]] = {
    "object": frozenset(
        {
            *("properties", "required", "additionalProperties", "patternProperties"),
            *("minProperties", "maxProperties", "dependencies", "propertyNames"),
            *("dependentRequired", "dependentSchemas"),
        }
    ),
    "array": frozenset(
        {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"}
    ),
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "number": frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    ),
}
"""What a schema without a type is about."""
_COMBINED: Final[Mapping[str, Kind]] = {"allOf": "all", "anyOf": "anyOf", "oneOf": "oneOf"}


@dataclass(eq=False)
class Node:
    """A schema; ``schema`` has its keywords, ``parts`` what it combines."""

    kind: Kind
    schema: Mapping[str, Json]
    parts: tuple[Node, ...] = ()


@dataclass(frozen=True)
class _Located:
    """A schema and what its references are resolved against."""

    schema: Json
    resolver: Any


class Document:
    """A schema document; nodes are made when they are asked for, each once."""

    def __init__(self, text: str, imported: Mapping[str, str]) -> None:
        documents = {name: _resource(one) for name, one in imported.items()}
        root = _resource(text)
        registry: Registry[Json] = Registry().with_resources(documents.items())
        self._root = _Located(root.contents, registry.resolver_with_root(root))
        self._nodes: dict[int, Node] = {}
        self._places: dict[int, _Located] = {}

    @property
    def root(self) -> Node:
        """The whole schema.

        Raises: BrokenJsonSchema for a reference that leads nowhere.
        """
        return self._node(self._root)

    def check(self) -> None:
        """Check every reference.

        Raises: BrokenJsonSchema.
        """
        seen: set[int] = set()
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                waiting += node.parts
                waiting += (self.child(node, one) for one in _inner(node))

    def child(self, node: Node, schema: Json) -> Node:
        """Return the node of a schema inside of a node's keywords."""
        return self._node(_Located(schema, self._places[id(node)].resolver))

    def _node(self, location: _Located) -> Node:
        location = self._follow(location)
        if isinstance(location.schema, bool) or not isinstance(location.schema, dict):
            return Node("any" if location.schema else "never", {})
        key = id(location.schema)
        if key not in self._nodes:
            self._nodes[key] = node = Node("any", location.schema)
            self._places[id(node)] = location
            self._fill(node, location)
        return self._nodes[key]

    def _follow(self, location: _Located) -> _Located:
        """Return where the references lead; keywords next to a reference do not count."""
        seen: set[str] = set()
        while isinstance(location.schema, dict):
            if "$ref" not in location.schema:
                return self._inside(location)
            reference = str(location.schema["$ref"])
            if reference in seen:
                raise BrokenJsonSchema(f'"{reference}" leads back to itself')
            seen.add(reference)
            try:
                resolved = location.resolver.lookup(reference)
            except Unresolvable as error:
                raise BrokenJsonSchema(f'"{reference}" leads nowhere') from error
            location = _Located(resolved.contents, resolved.resolver)
        return location

    def _inside(self, location: _Located) -> _Located:
        if isinstance(location.schema.get("$id"), str) and location.schema is not self._root.schema:
            resource = Resource.from_contents(location.schema, default_specification=DRAFT7)
            return _Located(location.schema, location.resolver.in_subresource(resource))
        return location

    def _fill(self, node: Node, location: _Located) -> None:
        """Make a node what its keywords say."""
        parts = list(self._parts(node, location))
        if len(parts) == 1:
            node.kind, node.parts = parts[0].kind, parts[0].parts
        elif parts:
            node.kind, node.parts = "all", tuple(parts)

    def _parts(self, node: Node, location: _Located) -> Iterator[Node]:
        schema = location.schema
        types = [_TYPES[one] for one in _listed(schema.get("type")) if one in _TYPES]
        if not types:
            types = [kind for kind, words in _KEYWORDS.items() if not words.isdisjoint(schema)]
        if len(types) > 1:
            yield Node("anyOf", schema, tuple(self._part(kind, location) for kind in types))
        elif types:
            yield self._part(types[0], location)
        if "enum" in schema or "const" in schema:
            yield self._part("enum", location)
        if "not" in schema:
            yield Node("not", schema, (self.child(node, schema["not"]),))
        for keyword, kind in _COMBINED.items():
            if isinstance(schema.get(keyword), list):
                inner = tuple(self.child(node, one) for one in schema[keyword])
                yield Node(kind, schema, inner)

    def _part(self, kind: Kind, location: _Located) -> Node:
        part = Node(kind, location.schema)
        self._places[id(part)] = location
        return part


def _resource(text: str) -> Resource[Json]:
    contents = document(text)
    if not isinstance(contents, dict | bool):
        raise BrokenJsonSchema("a schema is an object, true or false")
    return Resource.from_contents(contents, default_specification=DRAFT7)


def _listed(one: Json) -> list[Json]:
    if one is None:
        return []
    return one if isinstance(one, list) else [one]


def _inner(node: Node) -> Iterator[Json]:
    """Return the schemas inside the keywords of objects and arrays."""
    if node.kind == "object":
        for keyword in ("properties", "patternProperties", "dependentSchemas"):
            yield from (node.schema.get(keyword) or {}).values()
        needed = (node.schema.get("dependencies") or {}).values()
        yield from (one for one in needed if not isinstance(one, list))
        if "additionalProperties" in node.schema:
            yield node.schema["additionalProperties"]
    elif node.kind == "array":
        for keyword in ("items", "prefixItems", "additionalItems"):
            yield from _listed(node.schema.get(keyword))


def parse(text: str, imported: Mapping[str, str]) -> Document:
    """Return the document of a text; ``imported`` are the texts that its references name.

    Raises: BrokenJsonSchema for what is no schema of its draft, and for references that lead
        nowhere.
    """
    try:
        schema = _resource(text).contents
        draft = cast("type[Draft7Validator]", validator_for(schema, default=Draft7Validator))
        draft.check_schema(schema, _NO_FORMATS)
        parsed = Document(text, imported)
        parsed.check()
    except SchemaError as error:
        pointer = "/".join(map(str, error.absolute_path))
        raise BrokenJsonSchema(f"{error.message} at #/{pointer}") from error
    except RecursionError as error:
        raise BrokenJsonSchema("it is nested too deeply") from error
    return parsed


def canonical_text(text: str, *, normalize: bool = False) -> str:
    """Return the text without white space; ``normalize`` sorts the keywords too."""
    option = orjson.OPT_SORT_KEYS if normalize else None
    return orjson.dumps(document(text), option=option).decode()
