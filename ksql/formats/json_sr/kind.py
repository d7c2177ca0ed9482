"""JSON's schemas for topics and registries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.formats.json_sr import schema as json_schema
from ksql.formats.kind import Kind

if TYPE_CHECKING:
    from ksql.core.types.format import Format
    from ksql.core.types.schema import Column
    from ksql.formats.connect import ConnectType
    from ksql.formats.difference import Difference, Roles
    from ksql.formats.kind import Part, Whole
    from ksql.formats.schema_registry import Schema


class _Json(Kind):
    """The methods of registries bring a validator: it would cost each start a tenth of a second."""

    name = "JSON"

    def connect_type(self, schema: Whole, _part: Part = None) -> ConnectType:
        return json_schema.connect_type(schema.text, schema.imported)

    def text_for(self, columns: tuple[Column, ...], format_: Format, *, wrapped: bool) -> str:
        full_name = format_.schema_full_name
        return json_schema.text_for(columns, wrapped=wrapped, full_name=full_name)

    def following(self, schema: Schema, latest: Schema | None) -> Schema:
        if latest is None or latest.kind != self.name or not json_schema.is_open(latest.text):
            return schema
        return replace(schema, text=json_schema.opened(schema.text))

    def canonical(self, schema: Whole, *, normalize: bool) -> str:
        from ksql.formats.json_sr import model  # noqa: PLC0415 - see the class

        model.parse(schema.text, schema.imported)
        return model.canonical_text(schema.text, normalize=normalize)

    def differences(self, reader: Whole, writer: Whole, roles: Roles) -> list[Difference]:
        from ksql.formats.json_sr import compat, model  # noqa: PLC0415 - see the class

        documents = [model.parse(one.text, one.imported) for one in (reader, writer)]
        return compat.differences(documents[0], documents[1], roles)


JSON = _Json()
