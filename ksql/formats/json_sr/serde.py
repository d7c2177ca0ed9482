"""JSON_SR: JSON with its schema's id before it, and its schemas for topics and registries.

The written type decides first whether a column can take it. The text is then read as the written
type. If a column wants text, numbers become text as Java prints the written type. Source:
docs/formats.md#json_sr.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.core.types import model
from ksql.formats.connect import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    STRING,
    ConnectType,
    Convert,
    Entries,
    Group,
    Items,
    Number,
    Scalar,
    WithoutSqlType,
    find_name,
    mismatch,
    scalar_conversion,
    sql_type,
)
from ksql.formats.implementation import Implementation, SerdeSpec, string_map_keys
from ksql.formats.json.rows import reader, writer
from ksql.formats.json.serde import MAP_KEYS
from ksql.formats.json.values import OneOf, Written
from ksql.formats.json_sr import schema as json_schema
from ksql.formats.kind import Difference, Kind, Part, Roles, SchemaWithImports
from ksql.formats.registered import registered_serde
from ksql.formats.schema_registry import PREFIX_BYTES, Schema, frame_id
from ksql.formats.serde import EncodeError, Serde, Value, serde_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core import Row
    from ksql.core.types import Column, Format, SqlType


class _Json(Kind):
    """The methods of registries bring a validator: it would cost each start a tenth of a second."""

    name = "JSON"

    def connect_type(self, schema: SchemaWithImports, _part: Part = None) -> ConnectType:
        return json_schema.connect_type(schema.text, schema.imported)

    def text_for(self, columns: tuple[Column, ...], format_: Format, *, wrapped: bool) -> str:
        full_name = format_.schema_full_name
        return json_schema.text_for(columns, wrapped=wrapped, full_name=full_name)

    def following(self, schema: Schema, latest: Schema | None) -> Schema:
        if latest is None or latest.kind != self.name or not json_schema.is_open(latest.text):
            return schema
        return replace(schema, text=json_schema.opened(schema.text))

    def canonical(self, schema: SchemaWithImports, *, normalize: bool) -> str:
        from ksql.formats.json_sr import model  # noqa: PLC0415 - see the class

        model.parse(schema.text, schema.imported)
        return model.canonical_text(schema.text, normalize=normalize)

    def differences(
        self, reader: SchemaWithImports, writer: SchemaWithImports, roles: Roles
    ) -> list[Difference]:
        from ksql.formats.json_sr import compat, model  # noqa: PLC0415 - see the class

        documents = [model.parse(one.text, one.imported) for one in (reader, writer)]
        return compat.differences(documents[0], documents[1], roles)


JSON = _Json()


_WRITTEN: Final[dict[Scalar, Written]] = {
    BOOLEAN: "boolean",
    FLOAT32: "number",
    FLOAT64: "number",
    STRING: "text",
    BYTES: None,
}
_HINT = ". The data does not begin with a schema id: use the JSON format for plain JSON"


def _plan(source: ConnectType, target: SqlType, path: str) -> tuple[SqlType, Convert | None]:
    """Return the type to read the JSON as, and what makes the wanted one of it.

    Raises: UnreadableValue where the written type and the declared one do not go together.
    """
    match source, target:
        case Items(item), model.Array(wanted_item):
            type_, convert = _plan(item, wanted_item, f"{path}[]")
            return model.Array(type_), convert and partial(_converted_items, convert)
        case Entries(key, value, True), model.Map(_, wanted_value):
            text = scalar_conversion(key, model.STRING, f"{path}.key")
            type_, convert = _plan(value, wanted_value, f"{path}.value")
            entry = (model.Field("key", sql_type(key)), model.Field("value", type_))
            return model.Array(model.Struct(entry)), partial(_each_entry, text, convert)
        case Entries(_, value), model.Map(key, wanted_value):
            type_, convert = _plan(value, wanted_value, f"{path}.value")
            return model.Map(key, type_), convert and partial(_converted_values, convert)
        case Group(one_of=True), model.Struct(fields):
            return _choice_plan(source, fields, path)
        case Group(), model.Struct(fields):
            return _struct_plan(source, fields, path)
        case ((Items() | Entries() | Group()), _):
            raise mismatch(source, target, path)
        case _, model.STRING:
            convert = scalar_conversion(source, target, path)
            return sql_type(source), convert
        case _:
            scalar_conversion(source, target, path)
            return target, None


def _struct_plan(
    source: Group, fields: tuple[model.Field, ...], path: str
) -> tuple[SqlType, Convert | None]:
    members = _members(source, tuple((f.name, f.type) for f in fields), path)
    read_as = model.Struct(tuple(model.Field(m.source, m.type) for m in members if m))
    sources = {
        f.name: (m.source, m.convert) if m else None for f, m in zip(fields, members, strict=True)
    }
    if all(origin == (name, None) for name, origin in sources.items()):
        return read_as, None
    return read_as, partial(_each_member, sources)


def _choice_plan(
    source: Group, fields: tuple[model.Field, ...], path: str
) -> tuple[SqlType, Convert]:
    """Return how a value of one of several types is read: as a struct with a member for each."""
    targets = tuple((f.name, f.type) for f in fields)
    plans = [plan for plan in _members(source, targets, path) if plan]
    types = {plan.source: plan.type for plan in plans}
    read_as = tuple(model.Field(m.name, types.get(m.name, model.STRING)) for m in source.members)
    sources = {plan.source: (plan.source, plan.convert) for plan in plans}
    taken = {name: find_name(list(sources), name) for name, _ in targets}
    return (
        OneOf(read_as, tuple(_written_as(m.type) for m in source.members)),
        partial(_each_member, {n: sources[one] if one else None for n, one in taken.items()}),
    )


def _written_as(type_: ConnectType) -> Written:
    match type_:
        case Scalar():
            return _WRITTEN.get(type_, "whole")
        case Number():
            return "fraction"
        case Items():
            return "array"
        case Entries():
            return "map"
        case Group(members, one_of):
            return frozenset() if one_of else frozenset(member.name for member in members)
        case WithoutSqlType():
            return None


class _Member(NamedTuple):
    """How a member is read: under which name, as which type, and what is made of it then."""

    source: str
    type: SqlType
    convert: Convert | None


def _members(
    group: Group, members: tuple[tuple[str, SqlType], ...], path: str
) -> list[_Member | None]:
    """Return how each member is read; not at all if the schema does not know it."""
    written = {member.name: member.type for member in group.members}
    plans: list[_Member | None] = []
    for name, type_ in members:
        source = find_name(list(written), name)
        plans.append(
            None
            if source is None
            else _Member(source, *_plan(written[source], type_, f"{path}.{name}"))
        )
    return plans


def _converted_items(convert: Convert, items: list[Value]) -> list[Value]:
    return [None if item is None else convert(item) for item in items]


def _converted_values(convert: Convert, items: dict[str, Value]) -> dict[str, Value]:
    return {key: None if item is None else convert(item) for key, item in items.items()}


def _each_entry(
    text: Convert | None, convert: Convert | None, entries: list[dict[str, Value] | None]
) -> dict[str, Value]:
    return {
        _converted(text, entry["key"]): _converted(convert, entry["value"])
        for entry in entries
        if entry is not None
    }


def _each_member(
    sources: dict[str, tuple[str, Convert | None] | None], struct: dict[str, Value]
) -> dict[str, Value]:
    return {
        name: None if one is None else _converted(one[1], struct[one[0]])
        for name, one in sources.items()
    }


def _converted(convert: Convert | None, value: Value) -> Value:
    return value if convert is None or value is None else convert(value)


def _reader(
    source: ConnectType, columns: tuple[Column, ...], *, wrapped: bool
) -> Callable[[bytes], Row | None]:
    plans: list[_Member | None]
    if not wrapped:
        plans = [_Member(columns[0].name, *_plan(source, columns[0].type, "$"))]
    elif isinstance(source, Group):
        plans = _members(source, tuple((c.name, c.type) for c in columns), "$")
    else:
        whole = model.Struct(tuple(model.Field(c.name, c.type) for c in columns))
        raise mismatch(source, whole, "$")
    pairs = [(c, plan) for c, plan in zip(columns, plans, strict=True) if plan]
    read_as = tuple(replace(c, name=plan.source, type=plan.type) for c, plan in pairs)
    decode, _ = reader(read_as, wrapped=wrapped)
    as_read = len(pairs) == len(plans) and not any(plan.convert for _, plan in pairs)

    def read(data: bytes) -> Row | None:
        row = decode(data[PREFIX_BYTES:])
        if row is None or as_read:
            return row
        values = iter(row)
        return tuple(plan and _converted(plan.convert, next(values)) for plan in plans)

    return read


def _as_chosen(
    source: ConnectType, columns: tuple[Column, ...], *, wrapped: bool
) -> tuple[Column, ...]:
    """Return columns for writing by a chosen schema: what is one of several types is shown so."""
    if not wrapped:
        return (replace(columns[0], type=_written_type(source, columns[0].type)),)
    if not isinstance(source, Group):
        return columns
    types = {member.name: member.type for member in source.members}
    names = [find_name(list(types), column.name) for column in columns]
    return tuple(
        replace(column, type=_written_type(types[name], column.type)) if name else column
        for column, name in zip(columns, names, strict=True)
    )


def _written_type(source: ConnectType, type_: SqlType) -> SqlType:
    match source, type_:
        case Items(item), model.Array(ours):
            return model.Array(_written_type(item, ours))
        case Entries(_, value, False), model.Map(key, ours):
            return model.Map(key, _written_type(value, ours))
        case Group(members, one_of), model.Struct(fields):
            types = {member.name: member.type for member in members}
            sources = [find_name(list(types), field.name) for field in fields]
            inner = tuple(
                replace(field, type=_written_type(types[name], field.type)) if name else field
                for field, name in zip(fields, sources, strict=True)
            )
            return OneOf(inner) if one_of else model.Struct(inner)
        case _:
            return type_


def _lenient(columns: tuple[Column, ...], *, wrapped: bool) -> Serde:
    """Return a serde that reads the JSON after the id as the columns say, and writes nothing."""
    decode, _ = reader(columns, wrapped=wrapped)

    def read(data: bytes) -> Row | None:
        frame_id(data, _HINT)
        return decode(data[PREFIX_BYTES:])

    def write(_row: Row) -> bytes | None:
        raise EncodeError("A lenient reader does not write")

    return serde_of(read, write)


def serde(spec: SerdeSpec) -> Serde:
    """Return the serde of the columns.

    Not wrapped: the document is the value of the only column.
    """
    columns, wrapped = spec.columns, spec.wrapped
    encode, _ = writer(columns, wrapped=wrapped)

    def read(schema: Schema) -> Callable[[bytes], Row | None]:
        return _reader(JSON.connect_type(spec.whole(schema)), columns, wrapped=wrapped)

    def write(schema: Schema, prefix: bytes) -> Callable[[Row], bytes | None]:
        print_ = encode
        if spec.format.schema_id is not None:
            shown = _as_chosen(JSON.connect_type(spec.whole(schema)), columns, wrapped=wrapped)
            print_, _ = writer(shown, wrapped=wrapped)

        def text(row: Row) -> bytes | None:
            printed = print_(row)
            return None if printed is None else prefix + printed

        return text

    registered = registered_serde(
        spec, JSON, reader=read, writer=write, faults=(ValueError,), hint=_HINT
    )
    if not spec.lenient or not columns:
        return registered
    reading = _lenient(columns, wrapped=wrapped)
    return replace(registered, decode=reading.decode, decode_many=reading.decode_many)


FORMAT = Implementation(serde, string_map_keys(MAP_KEYS), kind=JSON)
