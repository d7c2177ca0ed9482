"""Reads records by the schema whose id they begin with, whatever columns a source declares.

PRINT and test files use it, which show all that was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core.types import Format, FormatName
from ksql.formats.connect import Group
from ksql.formats.schema_registry import Registry, Schema, frame_id
from ksql.formats.schemas import FORMAT_OF, columns_of, connect_type, kind_of
from ksql.formats.table import Columns, serde_for

if TYPE_CHECKING:
    from ksql.core import Row
    from ksql.formats.kind import Part
    from ksql.formats.serde import Serde


@dataclass(frozen=True, slots=True)
class RecordShape:
    """The columns of a schema's records; ``alone``: the whole of a record is the only column."""

    format: FormatName
    columns: Columns
    alone: bool

    def serde(self, registry: Registry, schema_id: int, full_name: str | None = None) -> Serde:
        """Return a serde that reads and writes with that very schema."""
        wrap = False if self.alone else None
        format_ = Format(self.format, wrap=wrap, schema_id=schema_id, schema_full_name=full_name)
        return serde_for(format_, self.columns, "value", registry)


def shape(schema: Schema, registry: Registry, part: Part = None) -> RecordShape:
    """Return the shape of a schema's records, with the schema's own names.

    Raises: NotInferable and what broken schemas raise.
    """
    type_ = connect_type(schema, registry, part)
    alone = not isinstance(type_, Group)
    columns = columns_of(type_, "value", alone=alone, upper=False)
    return RecordShape(FORMAT_OF[schema.kind], columns, alone)


class RegisteredReader:
    """Reads any record that begins with a schema's id."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[int, Part], tuple[RecordShape, Serde]] = {}

    def read(self, data: bytes) -> tuple[RecordShape, Row | None]:
        """Return the shape and the row of a record.

        Raises: DecodeError, NotInferable, SchemaNotFound, RegistryUnreachable.
        """
        schema_id = frame_id(data)
        schema = self._registry.by_id(schema_id)
        part = kind_of(schema.kind).part_of(data)
        pair = self._known.get((schema_id, part))
        if pair is None:
            record_shape = shape(schema, self._registry, part)
            pair = self._known[schema_id, part] = (
                record_shape,
                record_shape.serde(self._registry, schema_id),
            )
        return pair[0], pair[1].decode(data)

    def kind(self, data: bytes) -> FormatName:
        """Return the format of a record."""
        return FORMAT_OF[self._registry.by_id(frame_id(data)).kind]
