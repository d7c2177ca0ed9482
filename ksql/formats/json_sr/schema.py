"""JSON schemas: seen as Connect types, and made for columns.

Source: docs/formats.md#json_sr; Confluent's converter (``connect.*`` keywords).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from ksql.core import KsqlError, excerpt
from ksql.core.types import model
from ksql.formats import connect
from ksql.formats.connect import (
    ConnectType,
    Entries,
    Group,
    Items,
    Member,
    Number,
    TypeBudget,
    WithoutSqlType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.core.types import Column, SqlType

Json = Any
"""A parsed JSON document."""

_CONNECT: Final = "org.apache.kafka.connect.data"
_ONE_OF: Final = "io.confluent.connect.json.OneOf.field."
_DECIMAL: Final = f"{_CONNECT}.Decimal"
_DEFAULT_PRECISION: Final = 64
_LOGICAL: Final[dict[str, ConnectType]] = {
    f"{_CONNECT}.Date": connect.DATE,
    f"{_CONNECT}.Time": connect.TIME,
    f"{_CONNECT}.Timestamp": connect.TIMESTAMP,
}
_INTEGERS: Final[dict[str, ConnectType]] = {
    "int8": connect.INT8,
    "int16": connect.INT16,
    "int32": connect.INT32,
    "int64": connect.INT64,
}


_KINDS: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


class BrokenJsonSchema(KsqlError):
    """A text that is no JSON schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid JSON schema: {reason}")


# --- as Connect types -------------------------------------------------------------------------


def connect_type(text: str, imported: Mapping[str, str] | None = None) -> ConnectType:
    """Return a schema as Connect sees it; ``imported`` are the texts that its references name.

    Raises: BrokenJsonSchema.
    """
    documents = {name: document(one) for name, one in (imported or {}).items()}
    root = document(text)
    try:
        return _JsonSchemaReader(root, documents).type(root, root, ())
    except RecursionError as error:
        raise BrokenJsonSchema("it is nested too deeply") from error


def document(text: str) -> Json:
    """Return a schema's text as JSON.

    Raises: BrokenJsonSchema.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BrokenJsonSchema(str(error)) from error


class _JsonSchemaReader:
    def __init__(self, root: Json, imported: dict[str, Json]) -> None:
        self._root = root
        self._imported = imported
        self._room = TypeBudget()

    def type(self, schema: Json, root: Json, inside: tuple[int, ...]) -> ConnectType:
        """Return the type of a schema in the document ``root``."""
        if schema is True or schema == {}:
            return WithoutSqlType("A schema without a type")
        if not isinstance(schema, dict):
            raise BrokenJsonSchema("a schema is an object")
        if id(schema) in inside:
            return WithoutSqlType("Recursive schemas are not supported")
        if full := self._room.full():
            return full
        inside = (*inside, id(schema))
        if "$ref" in schema:
            return self.type(*self._resolve(str(schema["$ref"]), root), inside)
        for keyword in ("oneOf", "anyOf"):
            if isinstance(schema.get(keyword), list):
                return self._one_of(schema[keyword], root, inside)
        if isinstance(schema.get("allOf"), list):
            return self._all_of(schema["allOf"], root, inside)
        kind = schema.get("type")
        if isinstance(kind, list):
            unknown = [one for one in kind if one not in _KINDS][:1]
            if unknown:
                return WithoutSqlType(f"A schema of type {excerpt(str(unknown[0]))}")
            choices = [{**schema, "type": one} for one in dict.fromkeys(kind)]
            return self._one_of(choices, root, inside)
        return self._simple(kind, schema, root, inside)

    def _simple(
        self, kind: Json, schema: dict[str, Json], root: Json, inside: tuple[int, ...]
    ) -> ConnectType:
        hint = schema.get("connect.type")
        match kind:
            case "boolean":
                return connect.BOOLEAN
            case "integer":
                return _LOGICAL.get(str(schema.get("title"))) or _INTEGERS.get(
                    str(hint), connect.INT64
                )
            case "number":
                return _number(schema)
            case "string":
                return connect.BYTES if hint == "bytes" else connect.STRING
            case "array":
                return self._array(schema, root, inside)
            case "object":
                return self._object(schema, root, inside)
            case None if "properties" in schema:
                return self._object(schema, root, inside)
            case None if "enum" in schema or isinstance(schema.get("const"), str):
                return connect.STRING
            case _:
                return WithoutSqlType(f"A schema of type {kind}")

    def _array(self, schema: dict[str, Json], root: Json, inside: tuple[int, ...]) -> ConnectType:
        item = self.type(schema.get("items", {}), root, inside)
        if schema.get("connect.type") == "map" and isinstance(item, Group):
            members = {member.name: member.type for member in item.members}
            if set(members) == {"key", "value"}:
                return Entries(members["key"], members["value"], listed=True)
        return Items(item)

    def _object(self, schema: dict[str, Json], root: Json, inside: tuple[int, ...]) -> ConnectType:
        properties = schema.get("properties")
        more = schema.get("additionalProperties")
        if schema.get("connect.type") == "map" or (properties is None and isinstance(more, dict)):
            return Entries(connect.STRING, self.type(more or {}, root, inside))
        if not isinstance(properties, dict):
            properties = {}
        stated = schema.get("required")
        required = {*filter(_is_text, stated)} if isinstance(stated, list) else set()
        listed = sorted(enumerate(properties.items()), key=lambda one: _index(one[1][1], one[0]))
        members = (
            Member(name, self.type(inner, root, inside), required=name in required)
            for _, (name, inner) in listed
        )
        return Group(tuple(members))

    def _one_of(self, branches: list[Json], root: Json, inside: tuple[int, ...]) -> ConnectType:
        real = [self.type(one, root, inside) for one in branches if not _is_null(one)]
        if len(real) == 1:
            return real[0]
        return Group(tuple(Member(f"{_ONE_OF}{i}", one) for i, one in enumerate(real)), one_of=True)

    def _all_of(self, parts: list[Json], root: Json, inside: tuple[int, ...]) -> ConnectType:
        types = [self.type(part, root, inside) for part in parts]
        groups = [one for one in types if isinstance(one, Group)]
        if len(groups) == len(types) and groups:
            members = {member.name: member for group in groups for member in group.members}
            return Group(tuple(members.values()))
        return types[0] if len(types) == 1 else WithoutSqlType("allOf of types that are no objects")

    def _resolve(self, ref: str, root: Json) -> tuple[Json, Json]:
        """Return the schema that a reference leads to, and its document."""
        name, _, pointer = ref.partition("#")
        document = root
        if name:
            if name not in self._imported:
                raise BrokenJsonSchema(f'"{name}" is not among the references')
            document = self._imported[name]
        target = document
        for part in pointer.split("/")[1:]:
            step = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or step not in target:
                raise BrokenJsonSchema(f'"{ref}" leads nowhere')
            target = target[step]
        return target, document


def _is_text(one: Json) -> bool:
    return isinstance(one, str)


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _index(schema: Json, otherwise: int) -> int:
    index = schema.get("connect.index") if isinstance(schema, dict) else None
    return index if isinstance(index, int) else otherwise


def _number(schema: dict[str, Json]) -> ConnectType:
    if schema.get("title") == _DECIMAL:
        params = schema.get("connect.parameters", {})
        precision = int(params.get("connect.decimal.precision", _DEFAULT_PRECISION))
        return Number(precision, int(params.get("scale", 0)))
    hint = str(schema.get("connect.type"))
    if hint == "float32":
        return connect.FLOAT32
    return _INTEGERS.get(hint, connect.FLOAT64)


# --- for columns ------------------------------------------------------------------------------


_MORE: Final = "additionalProperties"


def text_for(columns: tuple[Column, ...], *, wrapped: bool, full_name: str | None = None) -> str:
    """Return the schema of the rows of the columns; everything may be null.

    The name of a whole row is its title. Whole rows are closed: registries take another property
    of an open object for incompatible, since an earlier record may have had it with any type.
    """
    if wrapped:
        members = tuple(model.Field(c.name, c.type) for c in columns)
        titled = {"title": full_name} if full_name else {}
        closed = {_MORE: False}
        return orjson.dumps({**_schema(model.Struct(members)), **titled, **closed}).decode()
    return orjson.dumps(_optional(columns[0].type)).decode()


def is_open(text: str) -> bool:
    """Return whether a schema is one of objects with whatever else they like."""
    try:
        schema = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return (
        isinstance(schema, dict)
        and isinstance(schema.get("properties"), dict)
        and schema.get(_MORE, True) is True
    )


def opened(text: str) -> str:
    """Return a schema of ``text_for`` as earlier versions registered it."""
    schema = orjson.loads(text)
    if schema.get(_MORE) is False:
        del schema[_MORE]
    return orjson.dumps(schema).decode()


def _optional(type_: SqlType) -> dict[str, Json]:
    return {"oneOf": [{"type": "null"}, _schema(type_)]}


def _titled(kind: str, name: str, connect_type_: str) -> dict[str, Json]:
    return {
        "type": kind,
        "title": f"{_CONNECT}.{name}",
        "connect.version": 1,
        "connect.type": connect_type_,
    }


_TYPES: Final[dict[SqlType, dict[str, Json]]] = {
    model.BOOLEAN: {"type": "boolean"},
    model.INTEGER: {"type": "integer", "connect.type": "int32"},
    model.BIGINT: {"type": "integer", "connect.type": "int64"},
    model.DOUBLE: {"type": "number", "connect.type": "float64"},
    model.STRING: {"type": "string"},
    model.BYTES: {"type": "string", "connect.type": "bytes"},
    model.DATE: _titled("integer", "Date", "int32"),
    model.TIME: _titled("integer", "Time", "int32"),
    model.TIMESTAMP: _titled("integer", "Timestamp", "int64"),
}


def _schema(type_: SqlType) -> dict[str, Json]:
    match type_:
        case model.Primitive():
            return _TYPES[type_]
        case model.Decimal(precision, scale):
            params = {"scale": str(scale), "connect.decimal.precision": str(precision)}
            return {**_titled("number", "Decimal", "bytes"), "connect.parameters": params}
        case model.Array(item):
            return {"type": "array", "items": _optional(item)}
        case model.Map(_, value):
            more = _optional(value)
            return {"type": "object", "connect.type": "map", "additionalProperties": more}
        case model.Struct(fields):
            properties = {
                one.name: {"connect.index": index, **_optional(one.type)}
                for index, one in enumerate(fields)
            }
            return {"type": "object", "properties": properties}
