"""The shape of a row (key, value, header, pseudo columns), and its stored form.

The tags and keys of stored types, columns and formats never change.

After renaming a class or a field, leave them as they are and write ``key=field`` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from ksql.core.ident import quote_always
from ksql.core.structs import Form, form
from ksql.core.types import format as formats
from ksql.core.types import model
from ksql.core.types.model import SqlType

ROWTIME = "ROWTIME"
ROWPARTITION = "ROWPARTITION"
ROWOFFSET = "ROWOFFSET"
WINDOWSTART = "WINDOWSTART"
WINDOWEND = "WINDOWEND"

PSEUDO_COLUMNS: dict[str, SqlType] = {
    ROWTIME: model.BIGINT,
    ROWPARTITION: model.INTEGER,
    ROWOFFSET: model.BIGINT,
}
WINDOW_COLUMNS: dict[str, SqlType] = {WINDOWSTART: model.BIGINT, WINDOWEND: model.BIGINT}
SYSTEM_NAMES = frozenset(PSEUDO_COLUMNS) | frozenset(WINDOW_COLUMNS)


class Role(Enum):
    """The part of a record that holds a column."""

    KEY = "KEY"
    VALUE = "VALUE"
    HEADERS = "HEADERS"  # all headers of the record, or the one named in header_key


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``header_key`` is set for HEADER('k') columns only."""

    name: str
    type: SqlType
    role: Role = Role.VALUE
    header_key: str | None = None

    def __str__(self) -> str:
        suffix = " KEY" if self.role is Role.KEY else ""
        return f"{quote_always(self.name)} {self.type}{suffix}"


@dataclass(frozen=True)
class Schema:
    """The columns of a source or of a step: keys first, then values; headers apart."""

    columns: tuple[Column, ...]

    @cached_property
    def key(self) -> tuple[Column, ...]:
        """The key columns in order."""
        return tuple(c for c in self.columns if c.role is Role.KEY)

    @cached_property
    def value(self) -> tuple[Column, ...]:
        """The value columns in order."""
        return tuple(c for c in self.columns if c.role is Role.VALUE)

    @cached_property
    def headers(self) -> tuple[Column, ...]:
        """The columns that read the record's headers."""
        return tuple(c for c in self.columns if c.role is Role.HEADERS)

    def find(self, name: str) -> Column | None:
        """Return the column of that exact name, or None."""
        return next((c for c in self.columns if c.name == name), None)

    def __str__(self) -> str:
        return ", ".join(map(str, (*self.key, *self.value)))


FORMS: Final[tuple[Form, ...]] = (
    form(
        "model.Kind",
        model.Kind,
        "BOOLEAN INTEGER BIGINT DOUBLE STRING BYTES DATE TIME TIMESTAMP NULL INTERVALUNIT=INTERVAL",
    ),
    form("model.Primitive", model.Primitive, "kind"),
    form("model.Decimal", model.Decimal, "precision scale"),
    form("model.Array", model.Array, "item"),
    form("model.Map", model.Map, "key value"),
    form("model.Field", model.Field, "name type"),
    form("model.Struct", model.Struct, "fields"),
    form("schema.Role", Role, "KEY VALUE HEADERS"),
    form("schema.Column", Column, "name type role header_key"),
    form("schema.Schema", Schema, "columns"),
    form(
        "format.Format",
        formats.Format,
        "name delimiter wrap schema_id schema_full_name nullable_representation",
    ),
    form("format.KeyWindow", formats.KeyWindow, "kind size_ms"),
    form("format.TimestampColumn", formats.TimestampColumn, "name pattern"),
)
