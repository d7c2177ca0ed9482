"""The stored forms of types, columns and formats: tags and keys, which never change.

After renaming a class or a field, leave them as they are and write ``key=field`` here.
"""

from __future__ import annotations

from typing import Final

from ksql.core.structs import Form, form
from ksql.core.types import format as formats
from ksql.core.types import model, schema

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
    form("schema.Role", schema.Role, "KEY VALUE HEADERS"),
    form("schema.Column", schema.Column, "name type role header_key"),
    form("schema.Schema", schema.Schema, "columns"),
    form(
        "format.Format",
        formats.Format,
        "name delimiter wrap schema_id schema_full_name nullable_representation",
    ),
    form("format.KeyWindow", formats.KeyWindow, "kind size_ms"),
    form("format.TimestampColumn", formats.TimestampColumn, "name pattern"),
)
