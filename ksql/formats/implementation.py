"""The row of a format in the table: its serde, the types it holds, its kind of schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core import RegistryMissing
from ksql.core.types import Column, Format, model
from ksql.formats.kind import Kind, SchemaWithImports, whole
from ksql.formats.schema_registry import Registry, Schema
from ksql.formats.serde import Serde

if TYPE_CHECKING:
    from ksql.core.types import SqlType

Columns = tuple[Column, ...]
TypeRule = Callable[[str, Column], "str | None"]
"""Why the format of that name cannot hold a column, or None."""


class NoRegistry(RegistryMissing):
    """A format that needs a schema registry where none is configured."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Format {name} needs a schema registry", hint="Set ksql.schema.registry.url."
        )


@dataclass(frozen=True, slots=True)
class SerdeSpec:
    """The serde that is asked for; not ``wrapped``: the only column stands alone.

    ``subject`` is where our schema is registered; ``lenient`` reads records whatever their schema
    says, where a format can.
    """

    format: Format
    columns: Columns
    wrapped: bool
    given: Registry | None = None
    subject: str = ""
    lenient: bool = False

    @property
    def registry(self) -> Registry:
        """The registry.

        Raises: NoRegistry.
        """
        if self.given is None:
            raise NoRegistry(self.format.name)
        return self.given

    def whole(self, schema: Schema) -> SchemaWithImports:
        """Return a registered schema with what it imports.

        Raises: SchemaNotFound, RegistryUnreachable.
        """
        return whole(schema, self.registry)


@dataclass(frozen=True, slots=True)
class Implementation:
    """A format; ``check`` raises for columns whose names or nesting it has no place for.

    Formats with registered schemas see that when those are made, and need no ``check``.
    """

    serde: Callable[[SerdeSpec], Serde]
    unfit: TypeRule
    check: Callable[[Columns, Format], object] | None = None
    kind: Kind | None = None


def any_type(_name: str, _column: Column) -> str | None:
    """Accept every type."""
    return None


def only(types: frozenset[SqlType], *, decimals: bool, name_column: bool) -> TypeRule:
    """Return the rule of a format that holds just these types."""

    def check(name: str, column: Column) -> str | None:
        if column.type in types or (decimals and isinstance(column.type, model.Decimal)):
            return None
        where = f", column: `{column.name}`" if name_column else ""
        return f"The '{name}' format does not support type '{model.base_name(column.type)}'{where}"

    return check


def string_map_keys(message: str) -> TypeRule:
    """Return the rule of a format that holds every type, but of maps only those from STRING."""

    def check(_name: str, column: Column) -> str | None:
        wrong = any(
            isinstance(type_, model.Map) and type_.key != model.STRING
            for type_ in within(column.type)
        )
        return message if wrong else None

    return check


def within(type_: SqlType) -> list[SqlType]:
    """Return the type and all types in it."""
    match type_:
        case model.Array(item):
            return [type_, *within(item)]
        case model.Map(key, value):
            return [type_, *within(key), *within(value)]
        case model.Struct(fields):
            return [type_, *(inner for field in fields for inner in within(field.type))]
        case _:
            return [type_]
