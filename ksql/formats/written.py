"""Records as their own schema describes them, whatever columns a source declares.

For those who want to see all that was written: PRINT, test files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.formats.connect import ConnectType, Group
from ksql.formats.protobuf import schema as proto_schema
from ksql.formats.protobuf.serde import message_path
from ksql.formats.schema_registry import Registry, Schema, SchemaKind, frame_id, referenced
from ksql.formats.schemas import FORMAT_OF, columns_of, connect_type
from ksql.formats.serde import DecodeError, Row, Serde
from ksql.formats.table import Columns, serde_for
from ksql.types.format import Format, FormatName

if TYPE_CHECKING:
    from ksql.types.schema import Column


@dataclass(frozen=True, slots=True)
class Shape:
    """What a schema's records look like; ``alone``: the whole of one is the only column."""

    format: FormatName
    columns: Columns
    alone: bool

    def serde(self, registry: Registry, schema_id: int, full_name: str | None = None) -> Serde:
        """Reads and writes with that very schema."""
        wrap = False if self.alone else None
        format_ = Format(self.format, wrap=wrap, schema_id=schema_id, schema_full_name=full_name)
        return serde_for(format_, self.columns, "value", registry)


def shape(schema: Schema, registry: Registry, full_name: str | None = None) -> Shape:
    """What the records of a schema look like, with the schema's own names.

    Raises: NotInferable and what broken schemas raise.
    """
    return _shape(schema.kind, connect_type(schema, registry, full_name))


def _shape(kind: SchemaKind, found: ConnectType) -> Shape:
    alone = not isinstance(found, Group)
    return Shape(FORMAT_OF[kind], columns_of(found, "value", alone=alone, upper=False), alone)


class Written:
    """Reads any record that begins with a schema's id."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[int, tuple[int, ...]], tuple[Shape, Serde]] = {}

    def read(self, data: bytes) -> tuple[Shape, Row | None]:
        """The shape and the row of a record.

        Raises: DecodeError, NotInferable, SchemaNotFound, RegistryUnreachable.
        """
        schema_id = frame_id(data)
        schema = self._registry.by_id(schema_id)
        path = self._path(schema, data)
        found = self._known.get((schema_id, path))
        if found is None:
            made = self._shape(schema, path)
            found = self._known[schema_id, path] = (made, made.serde(self._registry, schema_id))
        return found[0], found[1].decode(data)

    def kind(self, data: bytes) -> FormatName:
        """The format of a record."""
        return FORMAT_OF[self._registry.by_id(frame_id(data)).kind]

    def _path(self, schema: Schema, data: bytes) -> tuple[int, ...]:
        if schema.kind != "PROTOBUF":
            return ()
        try:
            return message_path(data)[0]
        except (IndexError, ValueError) as error:
            raise DecodeError(f"Not a Protobuf message: {error}") from error

    def _shape(self, schema: Schema, path: tuple[int, ...]) -> Shape:
        if schema.kind != "PROTOBUF":
            return shape(schema, self._registry)
        messages = proto_schema.load(schema.text, referenced(self._registry, schema))
        return _shape("PROTOBUF", proto_schema.connect_type(messages, messages.by_path(path)))


def named(columns: tuple[Column, ...], row: Row) -> dict[str, object]:
    """A row as an object."""
    return dict(zip((column.name for column in columns), row, strict=True))
